//! The client's part, which members of a set and the command line tool speak.

use super::credentials::{client_key, salted_password, server_key};
use super::digest::{Key, hash, hmac};
use super::message::{ServerFirst, bad, escaped};
use crate::cluster::SaltedKeys;
use crate::{Mechanism, Password};
use pando_base::Result;
use pando_base::limits::{SCRAM_ITERATIONS_ASKED_MIN, SCRAM_ITERATIONS_MAX};
use pando_bson::extjson::{base64, unbase64};
use std::sync::Arc;

#[derive(Debug)]
pub struct Client {
    mechanism: Mechanism,
    user: String,
    password: Password,
    nonce: String,
    bare: String,
    /// The server's proof, once it is known what it has to be.
    awaited: Option<Key>,
    salted: Option<Arc<SaltedKeys>>,
}

impl Client {
    /// The conversation, and its first message. `nonce` is made of chance.
    pub fn start(mechanism: Mechanism, user: &str, password: Password, nonce: &[u8]) -> (Client, Vec<u8>) {
        let nonce = base64(nonce);
        let bare = format!("n={},r={nonce}", escaped(user));
        let payload = format!("n,,{bare}").into_bytes();
        let user = user.to_owned();
        (Client { mechanism, user, password, nonce, bare, awaited: None, salted: None }, payload)
    }
    /// Hashes the password once for each salt, and keeps what it comes to there.
    pub fn keeping(self, salted: Arc<SaltedKeys>) -> Client {
        Client { salted: Some(salted), ..self }
    }
    fn salted(&self, salt: &[u8], iterations: u32) -> Result<Key> {
        let m = self.mechanism;
        let kept = self.salted.as_deref();
        if let Some(key) = kept.and_then(|kept| kept.get(m, &self.password, salt, iterations)) {
            return Ok(key);
        }
        let key = salted_password(m, &self.user, &self.password, salt, iterations)?;
        if let Some(kept) = kept {
            kept.keep(m, &self.password, salt, iterations, &key);
        }
        Ok(key)
    }

    /// The proof for a challenge.
    pub fn prove(&mut self, challenge: &[u8]) -> Result<Vec<u8>> {
        let asked = ServerFirst::parse(challenge)?;
        if !asked.nonce.starts_with(&self.nonce) || asked.nonce.len() == self.nonce.len() {
            return Err(bad("The SCRAM server nonce does not begin with the client's"));
        }
        if !(SCRAM_ITERATIONS_ASKED_MIN..=SCRAM_ITERATIONS_MAX).contains(&asked.iterations) {
            return Err(bad(format!("The SCRAM server asks for {} iterations", asked.iterations)));
        }
        let m = self.mechanism;
        let salted = self.salted(&asked.salt, asked.iterations)?;
        let without_proof = format!("c=biws,r={}", asked.nonce);
        let challenge = String::from_utf8_lossy(challenge);
        let all = format!("{},{challenge},{without_proof}", self.bare);
        let key = client_key(m, &salted);
        let signature = hmac(m, hash(m, key.bytes()).bytes(), all.as_bytes());
        self.awaited = Some(hmac(m, server_key(m, &salted).bytes(), all.as_bytes()));
        Ok(format!("{without_proof},p={}", base64(key.xor(&signature).bytes())).into_bytes())
    }

    /// Whether the server knows the password, too.
    pub fn verify(&self, last: &[u8]) -> Result<()> {
        let proof = std::str::from_utf8(last).ok().and_then(|t| t.strip_prefix("v=")).and_then(unbase64);
        let proof = proof.and_then(|p| Key::of_bytes(self.mechanism, &p));
        match (proof, &self.awaited) {
            (Some(proof), Some(awaited)) if proof == *awaited => Ok(()),
            _ => Err(bad("The SCRAM server did not prove that it knows the password")),
        }
    }
}
