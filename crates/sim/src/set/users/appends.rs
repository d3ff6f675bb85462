//! Transactions that append to some lists and read others, and reads on any member in between, all in causally consistent
//! sessions: no anomaly that snapshot isolation forbids, nothing lost or doubled, and no session sees less than before
//! (INV-27, INV-40).

use super::caller::{Caller, Place, docs, is_done, operation_time};
use super::session::{Ended, Session};
use crate::client::Client;
use crate::executor::lock;
use pando_base::Timestamp;
use pando_bson::{Bson, DocBuf, Document, RawDoc, doc};
use pando_checkers::history::{History, Op, Outcome, Txn};
use pando_checkers::list_append::{self, Level};
use std::sync::{Arc, Mutex};

/// Lists that are in use at one time.
const LISTS: u64 = 4;
/// Transactions before the next lists are taken.
const TRANSACTIONS_A_SET: usize = 60;

#[derive(Default)]
pub(crate) struct Appends {
    history: History,
    elements: u64,
}

impl Appends {
    pub(crate) fn committed(&self) -> usize {
        self.history.txns.iter().filter(|t| t.outcome == Outcome::Committed).count()
    }
    fn lists(&self) -> u64 {
        (self.history.txns.len() / TRANSACTIONS_A_SET) as u64 * LISTS
    }
}

pub(crate) async fn run(place: Place, appends: Arc<Mutex<Appends>>) {
    let mut user = User { session: Session::new(place.user, 11), c: Caller::new(place), seen: None, appends };
    while !user.c.stopped() {
        let done = if user.c.below(3) == 0 { user.look().await } else { user.transaction().await };
        let session = user.session.user as u64;
        let txn = done.map(|(outcome, ops)| Txn { session, outcome, ops });
        lock(&user.appends).history.txns.extend(txn);
        user.c.pause().await;
    }
}

struct User {
    c: Caller,
    session: Session,
    /// Whatever comes later may not show less than this.
    seen: Option<Timestamp>,
    appends: Arc<Mutex<Appends>>,
}

impl User {
    fn some_list(&self) -> u64 {
        let lists = lock(&self.appends).lists();
        lists + self.c.below(LISTS)
    }
    fn concern(&self, level: &str) -> Document {
        let mut concern = doc! { "level": level };
        if let Some(seen) = self.seen {
            concern.push("afterClusterTime", seen);
        }
        concern
    }
    fn note(&mut self, reply: &RawDoc) {
        self.seen = self.seen.max(operation_time(reply));
    }

    /// One read somewhere, outside transactions.
    async fn look(&mut self) -> Option<(Outcome, Vec<Op>)> {
        let list = self.some_list();
        let mut body = find(list);
        body.push("readConcern", self.concern("majority"));
        body.push("$readPreference", doc! { "mode": "secondaryPreferred" });
        body.push("$db", "d");
        let at = self.c.anyone();
        let reply = self.c.ask(at, &body.to_raw()).await.filter(|r| is_done(r))?;
        let elements = elements(docs(&reply)?.first());
        self.note(&reply);
        Some((Outcome::Committed, vec![Op::Read { list, elements }]))
    }

    async fn transaction(&mut self) -> Option<(Outcome, Vec<Op>)> {
        self.session.number += 1;
        let mut ops = Vec::new();
        for n in 0..1 + self.c.below(4) {
            let list = self.some_list();
            let start = (n == 0).then(|| self.concern("snapshot"));
            let mut op = match self.c.below(2) {
                0 => Op::Read { list, elements: Vec::new() },
                _ => {
                    let mut appends = lock(&self.appends);
                    appends.elements += 1;
                    Op::Append { list, element: appends.elements }
                }
            };
            let body = match op {
                Op::Read { .. } => find(list),
                Op::Append { element, .. } => push(list, element),
            };
            let reply = self.c.ask_primary(&self.session.within(body, "d", start)).await;
            let reply = reply.filter(|r| is_done(r));
            if let (Op::Read { elements: found, .. }, Some(reply)) = (&mut op, &reply) {
                *found = elements(docs(reply)?.first());
            }
            ops.push(op);
            if reply.is_none() {
                return Some((Outcome::Aborted, ops));
            }
            if self.c.below(4) == 0 {
                self.c.pause().await;
            }
        }
        let outcome = match self.session.commit(&mut self.c).await {
            Ended::Committed(at) => {
                self.seen = self.seen.max(at);
                Outcome::Committed
            }
            Ended::Unknown => Outcome::Aborted,
            Ended::NobodyKnows | Ended::Lost(..) => Outcome::Unknown,
        };
        Some((outcome, ops))
    }
}

fn find(list: u64) -> Document {
    doc! { "find": "appends", "filter": { "_id": list as i64 }, "maxTimeMS": 8000 }
}

fn push(list: u64, element: u64) -> Document {
    let mut statement = doc! { "q": { "_id": list as i64 }, "upsert": true };
    statement.push("u", doc! { "$push": { "l": element as i64 } });
    let mut body = doc! { "update": "appends" };
    body.push("updates", vec![Bson::from(statement)]);
    body
}

fn elements(doc: Option<&DocBuf>) -> Vec<u64> {
    let list = doc.and_then(|d| d.get("l").and_then(|v| v.as_array()).map(RawDoc::to_buf));
    list.iter()
        .flat_map(|l| l.iter().filter_map(|e| Some(e.value().as_i64()? as u64)).collect::<Vec<_>>())
        .collect()
}

/// What is wrong with the lists, seen from a primary.
pub(crate) async fn check(c: &mut Client, appends: &Mutex<Appends>) -> Vec<String> {
    let mut history = lock(appends).history.clone();
    let lists = lock(appends).lists() + LISTS;
    for list in 0..lists {
        let mut body = find(list);
        body.push("$db", "d");
        match c.command(&body.to_raw()).await.ok().as_deref().and_then(docs) {
            Some(docs) => history.end.insert(list, elements(docs.first())),
            None => return vec![format!("list {list} of appends cannot be read")],
        };
    }
    list_append::check(&history, Level::Snapshot).iter().map(|p| format!("appends: {p}")).collect()
}
