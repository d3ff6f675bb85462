//! A session's transactions, as a driver carries them out.

use super::caller::{Caller, is_done, majority, operation_time};
use pando_base::Timestamp;
use pando_bson::{Binary, Bson, DocBuf, Document, RawDoc, Value, doc};

const TRIES_MAX: u32 = 40;

pub(crate) struct Session {
    id: Vec<u8>,
    pub(crate) user: i64,
    /// Of the transaction under way.
    pub(crate) number: i64,
}

pub(crate) enum Ended {
    /// At this operation time, by a majority.
    Committed(Option<Timestamp>),
    /// `TransientTransactionError`, with a majority behind it: begin anew, nothing of this one will ever be seen.
    Unknown,
    NobodyKnows,
    /// It was prepared by a majority at this time, and somebody with a majority behind it gave this reply: it knows nothing
    /// of it.
    Lost(Timestamp, DocBuf),
}

impl Session {
    /// Users' sessions of one kind have a number in common.
    pub(crate) fn new(user: i64, kind: u8) -> Session {
        let mut id = vec![kind; 16];
        id[..8].copy_from_slice(&user.to_le_bytes());
        Session { id, user, number: 0 }
    }

    /// A command of the transaction; `start` says it is the first one and under which read concern.
    pub(crate) fn within(&self, mut body: Document, db: &str, start: Option<Document>) -> DocBuf {
        let mut lsid = Document::new();
        lsid.push("id", Bson::Binary(Binary { subtype: 4, bytes: self.id.clone() }));
        body.push("lsid", lsid);
        body.push("txnNumber", self.number);
        body.push("autocommit", false);
        if let Some(concern) = start {
            body.push("startTransaction", true);
            body.push("readConcern", concern);
        }
        body.push("$db", db);
        body.to_raw()
    }

    /// Asks again until somebody knows.
    pub(crate) async fn commit(&self, c: &mut Caller) -> Ended {
        let mut commit = doc! { "commitTransaction": 1 };
        commit.push("writeConcern", majority());
        let commit = self.within(commit, "admin", None);
        for _ in 0..TRIES_MAX {
            if c.stopped() {
                return Ended::NobodyKnows;
            }
            match c.ask_primary(&commit).await {
                Some(reply) if is_done(&reply) => return Ended::Committed(operation_time(&reply)),
                Some(reply) if is_unknown(&reply) => return Ended::Unknown,
                Some(reply) if is_another_routers(&reply) => return Ended::NobodyKnows,
                _ => c.pause().await,
            }
        }
        Ended::NobodyKnows
    }
}

impl Session {
    /// Prepares, and decides as a coordinator does: what is decided is said again until it is done.
    pub(crate) async fn commit_in_two_phases(&self, c: &mut Caller, gives_up: bool) -> Ended {
        let Some(at) = self.prepare(c).await.filter(|_| !gives_up) else {
            let told = self.decide(c, doc! { "abortTransaction": 1 }).await;
            return if told.is_some() { Ended::Unknown } else { Ended::NobodyKnows };
        };
        c.pause().await;
        match self.decide(c, doc! { "commitTransaction": 1, "commitTimestamp": at }).await {
            Some(reply) if is_done(&reply) => Ended::Committed(operation_time(&reply)),
            Some(reply) => Ended::Lost(at, reply),
            None => Ended::NobodyKnows,
        }
    }
    async fn prepare(&self, c: &mut Caller) -> Option<Timestamp> {
        let mut prepare = doc! { "prepareTransaction": 1 };
        prepare.push("writeConcern", majority());
        let prepare = self.within(prepare, "admin", None);
        for _ in 0..TRIES_MAX {
            match c.ask_primary(&prepare).await {
                Some(reply) if is_done(&reply) => match reply.get("prepareTimestamp")? {
                    Value::Timestamp(at) => return Some(at),
                    _ => return None,
                },
                Some(reply) if is_unknown(&reply) => return None,
                _ if c.stopped() => return None,
                _ => c.pause().await,
            }
        }
        None
    }
    /// The reply of a primary that has done it, or knows with a majority behind it that there is nothing to do.
    async fn decide(&self, c: &mut Caller, mut command: Document) -> Option<DocBuf> {
        command.push("writeConcern", majority());
        let command = self.within(command, "admin", None);
        while !c.stopped() {
            match c.ask_primary(&command).await {
                Some(reply) if is_done(&reply) => return Some(reply),
                Some(reply) if is_unknown(&reply) && reply.get("writeConcernError").is_none() => {
                    return Some(reply);
                }
                _ => c.pause().await,
            }
        }
        None
    }
}

/// A router was asked that had not begun it, or has forgotten that it did.
fn is_another_routers(reply: &RawDoc) -> bool {
    reply.get("code").and_then(|v| v.as_i64()) == Some(50940)
}
fn is_unknown(reply: &RawDoc) -> bool {
    let labels = reply.get("errorLabels").and_then(|v| v.as_array());
    let transient = Some("TransientTransactionError");
    labels.is_some_and(|l| l.iter().any(|e| e.value().as_str() == transient))
}
