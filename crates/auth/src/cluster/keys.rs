//! The keys of a keyfile at work: what a member proves itself with to others, and what it accepts of them.
//!
//! ```text
//!   caller    speaks with the first key; where the other side does not take it, with the next one on its next connection
//!   called    `__system` of `local` has one salt, and each key of the file is right
//! ```

use super::SaltedKeys;
use crate::authority::SYSTEM_USER;
use crate::scram::{Client, Credentials};
use crate::{Keyfile, Mechanism, Password};
use pando_base::Result;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Reads the keyfile.
pub type ReadsKeyfile = Box<dyn Fn() -> Result<Keyfile> + Send + Sync>;

/// Of one process; its file may be read again while it runs.
pub struct ClusterKeys {
    reads: ReadsKeyfile,
    state: Mutex<State>,
    /// Which key is spoken with.
    speaks: AtomicUsize,
    salted: Arc<SaltedKeys>,
}

impl fmt::Debug for ClusterKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterKeys(..)")
    }
}

struct State {
    keyfile: Arc<Keyfile>,
    /// Of each key and mechanism, once somebody has asked: making them takes a while on purpose.
    accepted: Vec<(Mechanism, Arc<Vec<Credentials>>)>,
}

/// What members log in by.
pub(crate) const MECHANISM: Mechanism = Mechanism::ScramSha256;

impl ClusterKeys {
    /// The keys that `reads` finds now.
    pub fn read(reads: ReadsKeyfile) -> Result<ClusterKeys> {
        let state = State { keyfile: Arc::new(reads()?), accepted: Vec::new() };
        Ok(ClusterKeys {
            reads,
            state: Mutex::new(state),
            speaks: AtomicUsize::new(0),
            salted: Arc::default(),
        })
    }
    /// Keys that are in no file.
    pub fn fixed(text: &str) -> Result<ClusterKeys> {
        let text = text.to_owned();
        ClusterKeys::read(Box::new(move || Keyfile::parse("keyfile", &text)))
    }
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// What the file holds now; nothing changes by it.
    pub fn read_again(&self) -> Result<Keyfile> {
        (self.reads)()
    }
    /// From now on these keys count. Whoever is logged in stays so.
    pub fn replace(&self, keyfile: Keyfile) {
        let mut state = self.lock();
        state.keyfile = Arc::new(keyfile);
        state.accepted.clear();
        self.speaks.store(0, Relaxed);
        self.salted.clear();
    }

    /// Begins a login to another member: the conversation, and its first message.
    pub fn speak(&self, nonce: &[u8]) -> (Client, Vec<u8>) {
        let (client, first) = Client::start(MECHANISM, SYSTEM_USER.0, self.spoken(), nonce);
        (client.keeping(self.salted.clone()), first)
    }
    fn spoken(&self) -> Password {
        let keyfile = self.lock().keyfile.clone();
        let keys = keyfile.keys();
        keys[self.speaks.load(Relaxed) % keys.len()].clone()
    }
    /// The other side did not take the key that was spoken with: the next one is tried next time.
    pub fn was_refused(&self) {
        self.speaks.fetch_add(1, Relaxed);
    }

    /// What `__system` may prove itself with, under one salt. `salt` is chance; it is used where there is none yet.
    pub fn accepted(
        &self,
        mechanism: Mechanism,
        salt: &[u8],
        iterations: u32,
    ) -> Result<Arc<Vec<Credentials>>> {
        let keyfile = {
            let state = self.lock();
            if let Some((_, known)) = state.accepted.iter().find(|(m, _)| *m == mechanism) {
                return Ok(known.clone());
            }
            state.keyfile.clone()
        };
        let salt = salt.get(..mechanism.salt_size()).unwrap_or(salt);
        let of = |key: &Password| Credentials::of_password(mechanism, SYSTEM_USER.0, key, salt, iterations);
        let made = Arc::new(keyfile.keys().iter().map(of).collect::<Result<Vec<_>>>()?);
        let mut state = self.lock();
        if Arc::ptr_eq(&state.keyfile, &keyfile) {
            state.accepted.push((mechanism, made.clone()));
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::login::{Begun, CONVERSATION};
    use crate::scram::{ClientFirst, Decoy};
    use crate::{Login, UserName};

    const OLD: &str = "b2xkIGtleQ==";
    const NEW: &str = "bmV3IGtleQ==";

    fn keys(listed: &[&str]) -> ClusterKeys {
        let text: String = listed.iter().map(|k| format!("- {k}\n")).collect();
        ClusterKeys::fixed(&text).unwrap()
    }

    fn logs_in(caller: &ClusterKeys, called: &ClusterKeys) -> bool {
        let (mut client, first) = caller.speak(&[9; 18]);
        let mut accepted = (*called.accepted(MECHANISM, &[7; 28], 4096).unwrap()).clone();
        let found = Ok(accepted.remove(0));
        let mut login = Login::default();
        let begun = Begun {
            name: UserName::new("__system", "local"),
            id: None,
            mechanism: MECHANISM,
            first: ClientFirst::parse(&first).unwrap(),
            found,
            others: accepted,
            speculative: true,
            skips_empty: true,
            in_text: false,
        };
        let challenge = login.begin(begun, &Decoy::new(&[1; 32]), 4096, &[2; 24]);
        let proof = client.prove(&challenge.payload).unwrap();
        match login.step(CONVERSATION, &proof) {
            Ok(step) => client.verify(&step.answer.payload).is_ok() && step.proven.is_some(),
            Err(_) => false,
        }
    }

    #[test]
    fn a_key_is_changed_while_members_run() {
        let (old, both, turned, new) = (keys(&[OLD]), keys(&[OLD, NEW]), keys(&[NEW, OLD]), keys(&[NEW]));
        for (caller, called) in [(&old, &both), (&both, &old), (&both, &turned), (&turned, &both)] {
            assert!(logs_in(caller, called));
        }
        for (caller, called) in [(&turned, &new), (&new, &turned)] {
            assert!(logs_in(caller, called));
        }
        assert!(!logs_in(&old, &new) && !logs_in(&new, &old));
    }

    #[test]
    fn a_refused_key_makes_room_for_the_next() {
        let (both, new) = (keys(&[OLD, NEW]), keys(&[NEW]));
        assert!(!logs_in(&both, &new));
        both.was_refused();
        assert!(logs_in(&both, &new));
    }

    #[test]
    fn a_file_that_is_read_again_counts_as_a_whole_or_not_at_all() {
        let text = Arc::new(Mutex::new(OLD.to_owned()));
        let file = text.clone();
        let read = ClusterKeys::read(Box::new(move || Keyfile::parse("k", &file.lock().unwrap()))).unwrap();
        let (old, new) = (keys(&[OLD]), keys(&[NEW]));
        // Twice, so that what is kept of the first time is used and has to be forgotten.
        assert!(logs_in(&read, &old) && logs_in(&read, &old) && logs_in(&old, &read));
        *text.lock().unwrap() = "short".to_owned();
        assert!(read.read_again().is_err() && logs_in(&read, &old) && logs_in(&old, &read));
        *text.lock().unwrap() = NEW.to_owned();
        let new_keys = read.read_again().unwrap();
        assert!(logs_in(&read, &old), "reading changes nothing");
        read.replace(new_keys);
        assert!(
            !logs_in(&read, &old) && logs_in(&read, &new) && logs_in(&new, &read) && !logs_in(&old, &read)
        );
    }
}
