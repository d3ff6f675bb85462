//! Members log in to each other before anything else, with a key of their keyfile or with their certificate.
//!
//! ```text
//!   hello {speculativeAuthenticate: first message} ─► challenge ─► saslContinue {proof} ─► the other side's proof
//!   hello {speculativeAuthenticate: authenticate} ─► done: the handshake of TLS has shown the certificate
//!   a peer that did not look at the first message is sent it by itself
//! ```
//! A peer that does not know the key learns nothing by it, and its own proof is checked, too.

use crate::connection::Connection;
use crate::failure::{CallResult, Failure};
use pando_auth::certificate::{EXTERNAL, X509};
use pando_auth::cluster::Shown;
use pando_auth::scram::{Client, NONCE};
use pando_auth::{ClusterKeys, SYSTEM_USER};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_env::{Component, Env};
use std::sync::Arc;
use std::time::Duration;

/// A login that is under way.
pub(crate) enum Login {
    Key(Conversation),
    Certificate,
}

pub(crate) struct Conversation {
    keys: Arc<ClusterKeys>,
    scram: Client,
    first: Vec<u8>,
}

impl Login {
    pub(crate) fn begin(env: &Env, shown: Shown) -> Login {
        match shown {
            Shown::Certificate => Login::Certificate,
            Shown::Key(keys) => {
                let mut nonce = [0; NONCE];
                env.rng.fill(&mut nonce);
                let (scram, first) = keys.speak(&nonce);
                Login::Key(Conversation { keys, scram, first })
            }
        }
    }
    /// The first message, as it is sent along with a `hello` or by itself; `database` is the field that names the user's.
    pub(crate) fn start(&self, b: &mut DocBuilder, database: &str) {
        match self {
            Login::Certificate => {
                b.i32("authenticate", 1).str("mechanism", X509).str(database, EXTERNAL);
            }
            Login::Key(conversation) => {
                b.i32("saslStart", 1).str("mechanism", "SCRAM-SHA-256");
                b.value("payload", Value::Binary { subtype: 0, bytes: &conversation.first });
                b.doc("options", |o| {
                    o.bool("skipEmptyExchange", true);
                });
                b.str(database, SYSTEM_USER.1);
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
            if let Login::Key(conversation) = self {
                conversation.keys.was_refused();
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
            Login::Key(conversation) => conversation.end(c, &answer, limit).await,
        }
    }
}

impl Conversation {
    async fn end(&mut self, c: &mut Connection, challenge: &RawDoc, limit: Duration) -> CallResult<()> {
        let unreadable =
            |c: &Connection| Failure::protocol(c.addr(), "a login was answered without a payload");
        let payload = payload_of(challenge).ok_or_else(|| unreadable(c))?;
        let proof = self.scram.prove(payload).map_err(|e| Failure::protocol(c.addr(), &e.message))?;
        let mut b = DocBuilder::new();
        b.i32("saslContinue", 1).i32("conversationId", conversation_of(challenge));
        b.value("payload", Value::Binary { subtype: 0, bytes: &proof });
        b.str("$db", SYSTEM_USER.1);
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
