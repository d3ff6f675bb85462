//! Members log in to each other before anything else, with a key of their keyfile.
//!
//! ```text
//!   hello {speculativeAuthenticate: first message} ─► challenge ─► saslContinue {proof} ─► the other side's proof
//!   a peer that did not look at the first message is sent saslStart instead
//! ```
//! A peer that does not know the key learns nothing by it, and its own proof is checked, too.

use crate::connection::Connection;
use crate::failure::{CallResult, Failure};
use pando_auth::scram::Client;
use pando_auth::{ClusterKeys, SYSTEM_USER};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_env::{Component, Env};
use std::time::Duration;

/// Bytes of chance in a caller's nonce.
const NONCE: usize = 24;

pub(crate) struct Login<'k> {
    keys: &'k ClusterKeys,
    conversation: Client,
    first: Vec<u8>,
}

impl<'k> Login<'k> {
    pub(crate) fn begin(env: &Env, keys: &'k ClusterKeys) -> Login<'k> {
        let mut nonce = [0; NONCE];
        env.rng.fill(&mut nonce);
        let (conversation, first) = keys.speak(&nonce);
        Login { keys, conversation, first }
    }
    /// `saslStart`, as it is sent along with a `hello` or by itself; `database` is the field that names the user's.
    pub(crate) fn start(&self, b: &mut DocBuilder, database: &str) {
        b.i32("saslStart", 1).str("mechanism", "SCRAM-SHA-256");
        b.value("payload", Value::Binary { subtype: 0, bytes: &self.first });
        b.doc("options", |o| {
            o.bool("skipEmptyExchange", true);
        });
        b.str(database, SYSTEM_USER.1);
    }

    /// The conversation from the other side's challenge on.
    pub(crate) async fn run(
        &mut self,
        c: &mut Connection,
        challenge: Option<DocBuf>,
        limit: Duration,
    ) -> CallResult<()> {
        match self.converse(c, challenge, limit).await {
            Err(failure) => {
                if !failure.breaks_connection() {
                    self.keys.was_refused();
                    c.env().log.warn(Component::Access, 20430, "Unable to log in to another member", |a| {
                        a.str("member", c.addr()).str("error", &failure.to_string());
                    });
                }
                Err(failure)
            }
            done => done,
        }
    }
    async fn converse(
        &mut self,
        c: &mut Connection,
        challenge: Option<DocBuf>,
        limit: Duration,
    ) -> CallResult<()> {
        let challenge = match challenge {
            Some(challenge) => challenge,
            None => {
                let mut b = DocBuilder::new();
                self.start(&mut b, "$db");
                c.call(&b.finish(), limit).await?.to_buf()
            }
        };
        let unreadable =
            |c: &Connection| Failure::protocol(c.addr(), "a login was answered without a payload");
        let payload = payload_of(&challenge).ok_or_else(|| unreadable(c))?;
        let proof = self.conversation.prove(payload).map_err(|e| Failure::protocol(c.addr(), &e.message))?;
        let mut b = DocBuilder::new();
        b.i32("saslContinue", 1).i32("conversationId", conversation_of(&challenge));
        b.value("payload", Value::Binary { subtype: 0, bytes: &proof });
        b.str("$db", SYSTEM_USER.1);
        let last = c.call(&b.finish(), limit).await?.to_buf();
        let payload = payload_of(&last).ok_or_else(|| unreadable(c))?;
        self.conversation.verify(payload).map_err(|e| Failure::protocol(c.addr(), &e.message))
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
