//! Who is logged in on a connection, and the conversation that may change that.
//!
//! A connection has one conversation at a time: who begins another gives the first up, and every mistake ends it. It has one user at most: the same
//! one may log in again, another one has to wait until the first has logged out.

use crate::certificate::X509;
use crate::scram::{Answer, ClientFirst, Credentials, Decoy, NONCE, Server};
use crate::{Authority, Mechanism, UserName};
use pando_base::session_id::NO_USER_DIGEST;
use pando_base::{Error, ErrorCode, Result, Uuid};
use std::sync::Arc;

/// The number of every conversation, as there is one at a time.
pub const CONVERSATION: i32 = 1;

/// How somebody has proven who it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Password(Mechanism),
    /// Of the connection's TLS handshake.
    Certificate,
}

impl Way {
    /// The mechanism's name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Way::Password(mechanism) => mechanism.name(),
            Way::Certificate => X509,
        }
    }
}

/// Somebody who has proven who it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoggedIn {
    pub name: UserName,
    /// Of the user that has logged in: another one of the same name is not that user.
    pub id: Option<Uuid>,
    pub by: Way,
    /// The first message came with a `hello`.
    pub speculative: bool,
}

/// A conversation that waits for the client.
#[derive(Debug)]
struct Conversation {
    name: UserName,
    id: Option<Uuid>,
    scram: Server,
    speculative: bool,
    in_text: bool,
}

/// A client's first message, and what is known of the user that it names.
#[derive(Debug)]
pub struct Begun {
    pub name: UserName,
    pub id: Option<Uuid>,
    pub mechanism: Mechanism,
    pub first: ClientFirst,
    /// What is stored of the user, or why there is nothing.
    pub found: Result<Credentials>,
    /// Of other passwords that are right, too.
    pub others: Vec<Credentials>,
    /// Sent along with a `hello`.
    pub speculative: bool,
    pub skips_empty: bool,
    /// The client speaks in base64, and is answered so.
    pub in_text: bool,
}

/// What a connection keeps.
#[derive(Debug, Default)]
pub struct Login {
    user: Option<LoggedIn>,
    /// Its digest.
    owner: Option<[u8; 32]>,
    /// What that user may do, at a version of users and roles.
    authority: Option<(u64, Arc<Authority>)>,
    conversation: Option<Conversation>,
}

/// What came of a client's message.
#[derive(Debug)]
pub struct Step {
    pub answer: Answer,
    pub in_text: bool,
    /// Who has proven to be whom with it. It counts when [`Login::admit`] agrees.
    pub proven: Option<LoggedIn>,
}

/// Why a message did not go on: who it was about, and what the log is told.
#[derive(Debug)]
pub struct Failed {
    pub about: Option<(UserName, Mechanism)>,
    pub why: Error,
}

impl Login {
    pub fn user(&self) -> Option<&LoggedIn> {
        self.user.as_ref()
    }
    /// Whose sessions and cursors are opened here.
    pub fn owner(&self) -> [u8; 32] {
        self.owner.unwrap_or(NO_USER_DIGEST)
    }
    /// What the user may do, if that was found out at this version of users and roles.
    pub fn authority(&self, version: u64) -> Option<Arc<Authority>> {
        self.authority.as_ref().filter(|(of, _)| *of == version).map(|(_, may)| may.clone())
    }
    /// What the user may do, as it was found out last.
    pub fn last_authority(&self) -> Option<&Arc<Authority>> {
        self.authority.as_ref().map(|(_, may)| may)
    }
    pub fn keep_authority(&mut self, version: u64, may: Arc<Authority>) {
        self.authority = Some((version, may));
    }
    /// Gives up the conversation that may be open, and begins another. `iterations` and `decoy` are for users that are not there.
    pub fn begin(&mut self, with: Begun, decoy: &Decoy, iterations: u32, chance: &[u8; NONCE]) -> Answer {
        let Begun { name, id, mechanism, first, found, others, speculative, skips_empty, in_text } = with;
        let (mut scram, answer) =
            Server::challenge(mechanism, first, &name.db, found, decoy, iterations, chance, skips_empty);
        scram.accept_also(others);
        self.conversation = Some(Conversation { name, id, scram, speculative, in_text });
        answer
    }
    /// Gives up the conversation that is open, if one is; returns whose it was.
    pub fn give_up(&mut self) -> Option<(UserName, Mechanism)> {
        self.conversation.take().map(|open| (open.name, open.scram.mechanism()))
    }

    /// Takes the client's next message: 17 where there is no conversation of that number. A mistake ends it.
    pub fn step(&mut self, number: i32, payload: &[u8]) -> std::result::Result<Step, Failed> {
        let protocol =
            |text: &'static str| Failed { about: None, why: Error::new(ErrorCode::ProtocolError, text) };
        let Some(mut open) = self.conversation.take() else {
            return Err(protocol("No SASL session state found"));
        };
        if number != CONVERSATION {
            return Err(protocol("sasl: Mismatched conversation id"));
        }
        let mechanism = open.scram.mechanism();
        let answer = match open.scram.step(payload) {
            Ok(answer) => answer,
            Err(why) => return Err(Failed { about: Some((open.name, mechanism)), why }),
        };
        let in_text = open.in_text;
        let proven = match answer.done {
            true => {
                let by = Way::Password(mechanism);
                Some(LoggedIn { name: open.name, id: open.id, by, speculative: open.speculative })
            }
            false => {
                self.conversation = Some(open);
                None
            }
        };
        Ok(Step { answer, in_text, proven })
    }

    /// Logs somebody in who has proven who it is, unless somebody else is (5626702).
    pub fn admit(&mut self, user: LoggedIn) -> Result<()> {
        if let Some(there) = self.user.as_ref().filter(|there| there.name != user.name) {
            let text = format!(
                "Client has attempted to authenticate on multiple databases.Already authenticated as: {}",
                there.name
            );
            return Err(Error::location(5_626_702, text));
        }
        self.owner = Some(user.name.digest());
        self.user = Some(user);
        self.authority = None;
        Ok(())
    }

    /// Logs out who is of this database, and gives the conversation up. Returns who that was.
    pub fn leave(&mut self, db: &str) -> Option<UserName> {
        self.conversation = None;
        self.authority = None;
        let left = self.user.take_if(|u| u.name.db == db)?;
        self.owner = None;
        Some(left.name)
    }
    /// The user is there no more.
    pub fn forget(&mut self) {
        self.user = None;
        self.owner = None;
        self.authority = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Password;
    use crate::scram::Client;

    fn begun(login: &mut Login, user: &str, password: &str) -> (Client, Vec<u8>) {
        let mechanism = Mechanism::ScramSha256;
        let (client, first) = Client::start(mechanism, user, Password::new(password), &[9; 18]);
        let known =
            Credentials::of_password(mechanism, user, &Password::new("right"), &[7; 28], 4096).unwrap();
        let begun = Begun {
            name: UserName::new(user, "test"),
            id: None,
            mechanism,
            first: ClientFirst::parse(&first).unwrap(),
            found: Ok(known),
            others: Vec::new(),
            speculative: false,
            skips_empty: true,
            in_text: false,
        };
        let answer = login.begin(begun, &Decoy::new(&[1; 32]), 4096, &[2; 24]);
        (client, answer.payload)
    }

    fn log_in(login: &mut Login, user: &str, password: &str) -> std::result::Result<LoggedIn, Failed> {
        let (mut client, challenge) = begun(login, user, password);
        let proof = client.prove(&challenge).unwrap();
        Ok(login.step(CONVERSATION, &proof)?.proven.unwrap())
    }

    #[test]
    fn one_user_at_a_time() {
        let mut login = Login::default();
        let ann = log_in(&mut login, "ann", "right").unwrap();
        login.admit(ann.clone()).unwrap();
        login.admit(ann.clone()).unwrap();
        let bob = log_in(&mut login, "bob", "right").unwrap();
        assert_eq!(login.admit(bob.clone()).unwrap_err().code, ErrorCode(5_626_702));
        assert_eq!(login.user(), Some(&ann));
        login.leave("other");
        assert_eq!(login.user(), Some(&ann));
        login.leave("test");
        login.admit(bob.clone()).unwrap();
        assert_eq!(login.user(), Some(&bob));
    }

    #[test]
    fn every_mistake_ends_a_conversation() {
        let mut login = Login::default();
        assert_eq!(login.step(1, b"").unwrap_err().why.code, ErrorCode::ProtocolError);
        let wrong = log_in(&mut login, "ann", "wrong").unwrap_err();
        assert_eq!(wrong.why.code, ErrorCode::AuthenticationFailed);
        assert_eq!(wrong.about.unwrap().0, UserName::new("ann", "test"));
        assert_eq!(login.step(1, b"").unwrap_err().why.code, ErrorCode::ProtocolError);
        begun(&mut login, "ann", "right");
        assert_eq!(login.step(2, b"").unwrap_err().why.message, "sasl: Mismatched conversation id");
        assert_eq!(login.step(1, b"").unwrap_err().why.message, "No SASL session state found");
    }
}
