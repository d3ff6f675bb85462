//! Transactions that append to some lists of one tenant and read others, and reads on any member in between, all in causally
//! consistent sessions: of each tenant no anomaly that snapshot isolation forbids, as of one database that was never moved.

use super::super::board::View;
use super::caller::{Answer, Caller, majority};
use crate::client::Client;
use crate::executor::lock;
use crate::set::users::caller::{docs, is_done, operation_time};
use pando_base::Timestamp;
use pando_bson::{Bson, DocBuf, Document, RawDoc, doc};
use pando_checkers::history::{History, Op, Outcome, Txn};
use pando_checkers::list_append::{self, Level};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Lists of a tenant.
const LISTS: u64 = 4;
const TRIES_MAX: u32 = 60;

#[derive(Default)]
pub(in super::super) struct Transactions {
    histories: BTreeMap<usize, History>,
    elements: u64,
}

impl Transactions {
    pub(in super::super) fn committed(&self) -> usize {
        let all = self.histories.values().flat_map(|h| &h.txns);
        all.filter(|t| t.outcome == Outcome::Committed).count()
    }
}

struct User {
    c: Caller,
    number: i64,
    /// By tenant, of the set that it was at behind so many moves: whatever comes later may not show less than this.
    seen: BTreeMap<(usize, u32), Timestamp>,
    transactions: Arc<Mutex<Transactions>>,
}

pub(in super::super) async fn run(c: Caller, transactions: Arc<Mutex<Transactions>>) {
    let session = c.place.user as u64;
    let mut user = User { c, number: 0, seen: BTreeMap::new(), transactions };
    while !user.c.stopped() {
        let tenant = user.c.some_tenant();
        let done =
            if user.c.below(3) == 0 { user.look(tenant).await } else { user.transaction(tenant).await };
        let txn = done.map(|(outcome, ops)| Txn { session, outcome, ops });
        lock(&user.transactions).histories.entry(tenant).or_default().txns.extend(txn);
        user.c.pause().await;
    }
}

impl User {
    /// Of sets without a common history, each has its own times.
    fn place(&self, tenant: usize, view: View) -> (usize, u32) {
        let one_history = lock(&self.c.place.board).one_history;
        (tenant, if one_history { 0 } else { view.moves })
    }
    fn concern(&self, tenant: usize, level: &str) -> Option<Document> {
        match self.seen.get(&self.place(tenant, self.c.view(tenant))) {
            Some(seen) => Some(doc! { "level": level, "afterClusterTime": *seen }),
            None => self.c.read_concern(tenant, level),
        }
    }
    fn note(&mut self, tenant: usize, view: View, at: Option<Timestamp>) {
        let Some(at) = at else { return };
        let seen = self.seen.entry(self.place(tenant, view)).or_insert(at);
        *seen = (*seen).max(at);
    }

    /// One read somewhere, outside transactions.
    async fn look(&mut self, tenant: usize) -> Option<(Outcome, Vec<Op>)> {
        let list = self.c.below(LISTS);
        let mut body = find(list);
        body.push("readConcern", self.concern(tenant, "majority")?);
        body.push("$readPreference", doc! { "mode": "secondaryPreferred" });
        let Answer::Reply(view, reply) = self.c.ask_anybody(tenant, &body).await else { return None };
        let elements = elements(docs(&reply).filter(|_| is_done(&reply))?.first());
        self.note(tenant, view, operation_time(&reply));
        Some((Outcome::Committed, vec![Op::Read { list, elements }]))
    }

    fn within(&self, mut body: Document, start: Option<Document>) -> Document {
        body.push("lsid", self.c.session(0));
        body.push("txnNumber", self.number);
        body.push("autocommit", false);
        if let Some(concern) = start {
            body.push("startTransaction", true);
            body.push("readConcern", concern);
        }
        body
    }
    fn some_op(&self) -> Op {
        let list = self.c.below(LISTS);
        if self.c.below(2) == 0 {
            return Op::Read { list, elements: Vec::new() };
        }
        let mut all = lock(&self.transactions);
        all.elements += 1;
        Op::Append { list, element: all.elements }
    }
    async fn transaction(&mut self, tenant: usize) -> Option<(Outcome, Vec<Op>)> {
        self.number += 1;
        let mut ops = Vec::new();
        for n in 0..1 + self.c.below(4) {
            // What it reads holds only if a majority takes its commit: it need not ask for a time.
            let start = self.concern(tenant, "snapshot").unwrap_or_else(|| doc! { "level": "snapshot" });
            let start = Some(start).filter(|_| n == 0);
            let mut op = self.some_op();
            let body = match op {
                Op::Read { list, .. } => find(list),
                Op::Append { list, element } => push(list, element),
            };
            let body = self.within(body, start);
            let reply = match self.c.ask(tenant, &body).await {
                Answer::Reply(_, reply) if is_done(&reply) => Some(reply),
                _ => None,
            };
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
        Some((self.commit(tenant).await, ops))
    }
    /// Asks again until somebody knows, at whichever set has the tenant by then.
    async fn commit(&mut self, tenant: usize) -> Outcome {
        let mut commit = doc! { "commitTransaction": 1 };
        commit.push("writeConcern", majority());
        let mut commit = self.within(commit, None);
        commit.push("$db", "admin");
        for _ in 0..TRIES_MAX {
            if self.c.stopped() {
                return Outcome::Unknown;
            }
            match self.c.ask(tenant, &commit).await {
                Answer::Reply(view, reply) if is_done(&reply) => {
                    self.note(tenant, view, operation_time(&reply));
                    return Outcome::Committed;
                }
                Answer::Reply(_, reply) if is_unknown(&reply) => return Outcome::Aborted,
                Answer::Reply(..) | Answer::Nothing | Answer::Again => self.c.pause().await,
            }
        }
        Outcome::Unknown
    }
}

fn is_unknown(reply: &RawDoc) -> bool {
    let labels = reply.get("errorLabels").and_then(|v| v.as_array());
    let transient = Some("TransientTransactionError");
    labels.is_some_and(|l| l.iter().any(|e| e.value().as_str() == transient))
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

/// What is wrong with a tenant's lists, seen from a primary.
pub(in super::super) async fn check(
    c: &mut Client,
    tenant: usize,
    transactions: &Mutex<Transactions>,
) -> Result<Vec<String>, String> {
    let mut history = lock(transactions).histories.entry(tenant).or_default().clone();
    for list in 0..LISTS {
        let mut body = find(list);
        body.push("$db", super::super::database(tenant));
        let reply = c.command(&body.to_raw()).await.map_err(|e| e.to_string())?;
        let found = docs(&reply).ok_or_else(|| format!("list {list} of tenant {tenant}: {reply}"))?;
        history.end.insert(list, elements(found.first()));
    }
    let found = list_append::check(&history, Level::Snapshot);
    Ok(found.iter().map(|p| format!("transactions of tenant {tenant}: {p}")).collect())
}
