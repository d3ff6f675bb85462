//! What the keys of members come to under the salts of other members, kept: working it out takes milliseconds on purpose, and a member
//! connects to the same few others again and again, in haste when one of them has just died.

use crate::scram::Key;
use crate::{Mechanism, Password};
use pando_base::limits::SALTED_KEYS_KEPT_MAX;
use pando_base::panics::poisoned;
use std::collections::VecDeque;
use std::sync::Mutex;

/// The youngest [`SALTED_KEYS_KEPT_MAX`].
#[derive(Debug, Default)]
pub struct SaltedKeys {
    kept: Mutex<VecDeque<Salted>>,
}

#[derive(Debug)]
struct Salted {
    mechanism: Mechanism,
    password: Password,
    salt: Vec<u8>,
    iterations: u32,
    key: Key,
}

impl SaltedKeys {
    pub(crate) fn get(&self, m: Mechanism, password: &Password, salt: &[u8], iterations: u32) -> Option<Key> {
        let kept = self.kept.lock().unwrap_or_else(poisoned);
        let is_it = |s: &&Salted| {
            s.mechanism == m
                && s.iterations == iterations
                && s.salt == salt
                && s.password.text() == password.text()
        };
        kept.iter().find(is_it).map(|s| s.key.clone())
    }
    pub(crate) fn keep(&self, m: Mechanism, password: &Password, salt: &[u8], iterations: u32, key: &Key) {
        let mut kept = self.kept.lock().unwrap_or_else(poisoned);
        if kept.len() >= SALTED_KEYS_KEPT_MAX {
            kept.pop_front();
        }
        let (password, salt, key) = (password.clone(), salt.to_vec(), key.clone());
        kept.push_back(Salted { mechanism: m, password, salt, iterations, key });
    }
    pub(crate) fn clear(&self) {
        self.kept.lock().unwrap_or_else(poisoned).clear();
    }
}
