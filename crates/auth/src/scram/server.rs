//! The server's part: a challenge, then a proof that is right or not.

use super::credentials::{Credentials, Decoy};
use super::digest::{Key, hash, hmac};
use super::message::{ClientFinal, ClientFirst, bad};
use crate::Mechanism;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::extjson::base64;
use subtle::ConstantTimeEq;

/// Bytes of chance in a server's nonce.
pub const NONCE: usize = 24;

/// What the server sends, and whether the client has been believed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    pub payload: Vec<u8>,
    /// The conversation is over, and the client is who it says.
    pub done: bool,
}

/// A conversation after its first message.
#[derive(Debug)]
pub struct Server {
    mechanism: Mechanism,
    /// Told where a proof is wrong for another reason than the password.
    no_user: Option<Error>,
    credentials: Credentials,
    /// Of other passwords that are right, too, under the same salt.
    others: Vec<Credentials>,
    first: ClientFirst,
    state: State,
    /// The client does not send an empty message when it has seen the server's proof.
    skips_empty: bool,
}

#[derive(Debug)]
enum State {
    /// A proof is awaited, of these messages.
    Challenged {
        nonce: String,
        server_first: String,
    },
    /// The proof was right; the client has to say that the server's was, too.
    Proven,
    Ended,
}

impl Server {
    /// Answers a first message. `found` is what is stored of the user of that name, or why there is nothing; nobody who talks to the server
    /// can tell the two apart.
    pub fn challenge(
        mechanism: Mechanism,
        first: ClientFirst,
        db: &str,
        found: Result<Credentials>,
        decoy: &Decoy,
        iterations: u32,
        chance: &[u8; NONCE],
        skips_empty: bool,
    ) -> (Server, Answer) {
        let (credentials, no_user) = match found {
            Ok(credentials) => (credentials, None),
            Err(why) => (decoy.credentials(mechanism, &first.user, db, iterations), Some(why)),
        };
        let nonce = format!("{}{}", first.nonce, base64(chance));
        let server_first = format!("r={nonce},s={},i={}", base64(&credentials.salt), credentials.iterations);
        let answer = Answer { payload: server_first.clone().into_bytes(), done: false };
        let state = State::Challenged { nonce, server_first };
        (Server { mechanism, no_user, credentials, others: Vec::new(), first, state, skips_empty }, answer)
    }

    /// While a password is changed, the old one and the new one are right.
    pub fn accept_also(&mut self, others: Vec<Credentials>) {
        self.others = others;
    }
    /// Who the client says it is.
    pub fn user(&self) -> &str {
        &self.first.user
    }
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// Takes the client's next message. An error ends the conversation; its text is for the log, the client learns no more than that it
    /// failed.
    pub fn step(&mut self, payload: &[u8]) -> Result<Answer> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Challenged { nonce, server_first } => {
                let signature = self.check(payload, &nonce, &server_first)?;
                if !self.skips_empty {
                    self.state = State::Proven;
                }
                let payload = format!("v={}", base64(signature.bytes())).into_bytes();
                Ok(Answer { payload, done: self.skips_empty })
            }
            State::Proven if payload.is_empty() => Ok(Answer { payload: Vec::new(), done: true }),
            State::Proven => Err(bad("The last SCRAM client message is empty")),
            State::Ended => Err(Error::new(ErrorCode::ProtocolError, "The SCRAM conversation is over")),
        }
    }

    /// The server's own proof, when the client's is right.
    fn check(&self, payload: &[u8], nonce: &str, server_first: &str) -> Result<Key> {
        let last = ClientFinal::parse(payload)?;
        if last.nonce.as_bytes().ct_ne(nonce.as_bytes()).into() {
            return Err(bad("Unmatched SCRAM nonce received from client in second step"));
        }
        if last.header != self.first.header.as_bytes() {
            return Err(bad("Incorrect SCRAM channel binding"));
        }
        let proof =
            Key::of_bytes(self.mechanism, &last.proof).ok_or_else(|| bad("Incorrect SCRAM ClientProof"))?;
        let all = format!("{},{server_first},{}", self.first.bare, last.without_proof);
        let is_right = |known: &&Credentials| {
            let signature = hmac(self.mechanism, known.stored_key.bytes(), all.as_bytes());
            hash(self.mechanism, proof.xor(&signature).bytes()) == known.stored_key
        };
        let right = std::iter::once(&self.credentials).chain(&self.others).find(is_right);
        if let Some(why) = &self.no_user {
            return Err(why.clone());
        }
        let Some(known) = right else {
            let what = "SCRAM authentication failed, storedKey mismatch";
            return Err(Error::new(ErrorCode::AuthenticationFailed, what));
        };
        Ok(hmac(self.mechanism, known.server_key.bytes(), all.as_bytes()))
    }
}
