//! How users reach the set: one connection each, to whichever member they want next.

use crate::client::Client;
use crate::set::asking::primary_within;
use pando_base::{OpTime, Timestamp};
use pando_bson::{Bson, DocBuf, Document, RawDoc, Value, doc};
use pando_env::Env;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// After this nobody waits for a reply any more.
const PATIENCE: Duration = Duration::from_secs(12);

/// What every user is given.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) env: Env,
    pub(crate) addrs: Vec<String>,
    pub(crate) user: i64,
    pub(crate) pause_ms: u64,
    pub(crate) stop: Arc<AtomicBool>,
    /// The addresses are routers': each may be asked for everything, and none of them prepares transactions.
    pub(crate) routed: bool,
}

pub(crate) struct Caller {
    place: Place,
    connected: Option<(usize, Client)>,
    primary: Option<usize>,
    txn: i64,
}

impl Caller {
    pub(crate) fn new(place: Place) -> Caller {
        Caller { place, connected: None, primary: None, txn: 0 }
    }
    pub(crate) fn below(&self, n: u64) -> u64 {
        self.place.env.rng.next_u64() % n
    }
    pub(crate) fn now(&self) -> Duration {
        self.place.env.clock.mono()
    }
    pub(crate) fn stopped(&self) -> bool {
        self.place.stop.load(Relaxed)
    }
    pub(crate) fn is_routed(&self) -> bool {
        self.place.routed
    }
    pub(crate) fn anyone(&self) -> usize {
        self.below(self.place.addrs.len() as u64) as usize
    }
    /// Between two commands.
    pub(crate) async fn pause(&mut self) {
        let ms = self.below(self.place.pause_ms * 2);
        self.place.env.clock.sleep(Duration::from_millis(ms)).await;
    }

    /// The reply of a member; `None` when nobody knows what became of the command.
    pub(crate) async fn ask(&mut self, at: usize, body: &DocBuf) -> Option<DocBuf> {
        let kept = self.connected.take().filter(|(who, _)| *who == at);
        let env = self.place.env.clone();
        let addr = self.place.addrs[at].clone();
        let asking = async {
            let mut client = match kept {
                Some((_, client)) => client,
                None => Client::connect(&env, &addr).await.ok()?,
            };
            let reply = client.command(body).await.ok()?;
            Some((client, reply))
        };
        let (client, reply) = self.place.env.timeout(PATIENCE, asking).await??;
        self.connected = Some((at, client));
        Some(reply)
    }
    /// The reply of the primary.
    pub(crate) async fn ask_primary(&mut self, body: &DocBuf) -> Option<DocBuf> {
        self.ask_primary_at(body).await.map(|(_, reply)| reply)
    }
    /// The same, and who that was.
    pub(crate) async fn ask_primary_at(&mut self, body: &DocBuf) -> Option<(usize, DocBuf)> {
        let (env, addrs) = (self.place.env.clone(), self.place.addrs.clone());
        let at = match self.primary {
            Some(at) => at,
            None => primary_within(&env, &addrs, PATIENCE).await?,
        };
        let reply = self.ask(at, body).await;
        let still = reply.as_ref().is_some_and(|r| !super::is_not_primary(r));
        self.primary = still.then_some(at);
        reply.map(|reply| (at, reply))
    }

    /// Session and number for the next retryable write.
    pub(crate) fn next_txn(&mut self) -> impl Fn(&mut Document) + use<> {
        self.txn += 1;
        let (txn, user) = (self.txn, self.place.user);
        move |body: &mut Document| {
            let mut bytes = vec![7; 16];
            bytes[..8].copy_from_slice(&user.to_le_bytes());
            let mut lsid = Document::new();
            lsid.push("id", Bson::Binary(pando_bson::Binary { subtype: 4, bytes }));
            body.push("lsid", lsid);
            body.push("txnNumber", txn);
        }
    }
}

pub(crate) fn majority() -> Document {
    doc! { "w": "majority", "wtimeout": 8000 }
}

/// Acknowledged in full.
pub(crate) fn is_done(reply: &RawDoc) -> bool {
    reply.get("ok").is_some_and(|v| v.is_truthy())
        && reply.get("writeConcernError").is_none()
        && reply.get("writeErrors").is_none()
}

/// Where an acknowledged write stands in the log.
pub(crate) fn op_time(reply: &RawDoc) -> Option<OpTime> {
    let at = reply.get("opTime")?.as_doc()?;
    let Value::Timestamp(ts) = at.get("ts")? else { return None };
    Some(OpTime::new(ts, at.get("t")?.as_i64()?))
}

pub(crate) fn operation_time(reply: &RawDoc) -> Option<Timestamp> {
    match reply.get("operationTime")? {
        Value::Timestamp(ts) => Some(ts),
        _ => None,
    }
}

/// Documents of a first batch.
pub(crate) fn docs(reply: &RawDoc) -> Option<Vec<DocBuf>> {
    let batch = reply.get_path("cursor.firstBatch")?.as_array()?;
    Some(batch.iter().filter_map(|e| e.value().as_doc().map(RawDoc::to_buf)).collect())
}
