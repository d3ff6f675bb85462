//! Logins before anything else: members to each other with a key of their keyfile or with their certificate, users of the tool with a
//! password or a certificate.
//!
//! ```text
//!   hello {speculativeAuthenticate: first message} ─► challenge ─► saslContinue {proof} ─► the other side's proof
//!   hello {speculativeAuthenticate: authenticate} ─► done: the handshake of TLS has shown the certificate
//!   a peer that did not look at the first message is sent it by itself
//! ```
//! A peer that does not know the key learns nothing by it, and its own proof is checked, too.

use crate::connection::Connection;
use crate::failure::{CallResult, Failure};
use crate::login_as::{By, LoginAs, UserLogin};
use pando_auth::certificate::{EXTERNAL, X509};
use pando_auth::cluster::Shown;
use pando_auth::scram::{Client, NONCE};
use pando_auth::{ClusterKeys, Mechanism, SYSTEM_USER};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_env::{Component, Env};
use std::sync::Arc;
use std::time::Duration;

/// A login that is under way.
pub(crate) enum Login {
    Password(Conversation),
    Certificate,
}

pub(crate) struct Conversation {
    who: Who,
    mechanism: Mechanism,
    scram: Client,
    first: Vec<u8>,
}

/// Whose password is proven.
enum Who {
    Member(Arc<ClusterKeys>),
    User(Arc<UserLogin>),
}

impl Login {
    /// `None` where nobody logs in.
    pub(crate) fn begin(env: &Env, login: &LoginAs) -> Option<Login> {
        let who = match login {
            LoginAs::Member(auth) => match auth.shows()? {
                Shown::Certificate => return Some(Login::Certificate),
                Shown::Key(keys) => Who::Member(keys),
            },
            LoginAs::User(user) if matches!(user.by, By::Certificate) => return Some(Login::Certificate),
            LoginAs::User(user) => Who::User(user.clone()),
        };
        let mechanism = match &who {
            Who::User(user) => user.mechanism().unwrap_or(Mechanism::ScramSha256),
            Who::Member(_) => Mechanism::ScramSha256,
        };
        Some(Login::Password(Conversation::begin(env, who, mechanism)))
    }

    /// The user whose mechanisms a `hello` is to list, where it is not settled which one is taken.
    pub(crate) fn user_to_look_up(&self) -> Option<String> {
        match self {
            Login::Password(Conversation { who: Who::User(user), .. }) if user.mechanism().is_none() => {
                Some(format!("{}.{}", user.db, user.name))
            }
            _ => None,
        }
    }
    /// The mechanism to go on with, where the user has not the one that was begun with.
    pub(crate) fn other_mechanism(&self, hello: &RawDoc) -> Option<Mechanism> {
        self.user_to_look_up()?;
        let listed = hello.get("saslSupportedMechs").and_then(|v| v.as_array())?;
        let has = |m: Mechanism| listed.iter().any(|e| e.value().as_str() == Some(m.name()));
        (!has(Mechanism::ScramSha256) && has(Mechanism::ScramSha1)).then_some(Mechanism::ScramSha1)
    }
    pub(crate) fn begin_anew(&mut self, env: &Env, mechanism: Mechanism) {
        if let Login::Password(Conversation { who: Who::User(user), .. }) = self {
            *self = Login::Password(Conversation::begin(env, Who::User(user.clone()), mechanism));
        }
    }

    /// The first message, as it is sent along with a `hello` or by itself; `database` is the field that names the user's.
    pub(crate) fn start(&self, b: &mut DocBuilder, database: &str) {
        match self {
            Login::Certificate => {
                b.i32("authenticate", 1).str("mechanism", X509).str(database, EXTERNAL);
            }
            Login::Password(conversation) => {
                b.i32("saslStart", 1).str("mechanism", conversation.mechanism.name());
                b.value("payload", Value::Binary { subtype: 0, bytes: &conversation.first });
                b.doc("options", |o| {
                    o.bool("skipEmptyExchange", true);
                });
                b.str(database, conversation.db());
            }
        }
    }

    /// The login from the other side's answer to the first message on.
    pub(crate) async fn run(
        &mut self,
        c: &mut Connection,
        answer: Option<DocBuf>,
        limit: Duration,
    ) -> CallResult<()> {
        let done = self.go_on(c, answer, limit).await;
        if let Err(failure) = &done
            && !failure.breaks_connection()
        {
            if let Login::Password(Conversation { who: Who::Member(keys), .. }) = self {
                keys.was_refused();
            }
            c.env().log.warn(Component::Access, 20430, "Unable to log in to another member", |a| {
                a.str("member", c.addr()).data("error", &failure.error);
            });
        }
        done
    }
    async fn go_on(&mut self, c: &mut Connection, answer: Option<DocBuf>, limit: Duration) -> CallResult<()> {
        let answer = match answer {
            Some(answer) => answer,
            None => {
                let mut b = DocBuilder::new();
                self.start(&mut b, "$db");
                c.call(&b.finish(), limit).await?.to_buf()
            }
        };
        match self {
            Login::Certificate => Ok(()),
            Login::Password(conversation) => conversation.end(c, &answer, limit).await,
        }
    }
}

impl Conversation {
    fn begin(env: &Env, who: Who, mechanism: Mechanism) -> Conversation {
        let mut nonce = [0; NONCE];
        env.rng.fill(&mut nonce);
        let (scram, first) = match &who {
            Who::Member(keys) => keys.speak(&nonce),
            Who::User(user) => Client::start(mechanism, &user.name, user.password(), &nonce),
        };
        Conversation { who, mechanism, scram, first }
    }
    fn db(&self) -> &str {
        match &self.who {
            Who::Member(_) => SYSTEM_USER.1,
            Who::User(user) => &user.db,
        }
    }
    async fn end(&mut self, c: &mut Connection, challenge: &RawDoc, limit: Duration) -> CallResult<()> {
        let unreadable =
            |c: &Connection| Failure::protocol(c.addr(), "a login was answered without a payload");
        let payload = payload_of(challenge).ok_or_else(|| unreadable(c))?;
        let proof = self.scram.prove(payload).map_err(|e| Failure::protocol(c.addr(), &e.message))?;
        let mut b = DocBuilder::new();
        b.i32("saslContinue", 1).i32("conversationId", conversation_of(challenge));
        b.value("payload", Value::Binary { subtype: 0, bytes: &proof });
        b.str("$db", self.db());
        let last = c.call(&b.finish(), limit).await?.to_buf();
        let payload = payload_of(&last).ok_or_else(|| unreadable(c))?;
        self.scram.verify(payload).map_err(|e| Failure::protocol(c.addr(), &e.message))
    }
}

fn payload_of(reply: &RawDoc) -> Option<&[u8]> {
    match reply.get("payload") {
        Some(Value::Binary { bytes, .. }) => Some(bytes),
        _ => None,
    }
}

fn conversation_of(reply: &RawDoc) -> i32 {
    reply.get("conversationId").and_then(|v| v.as_i64()).map_or(1, |n| n as i32)
}
