//! Documents in a collection that is sharded by range, one by hash, and one that is not sharded. Each has one owner, who
//! inserts it, appends to its list in every way that there is, and deletes it; everybody reads.
//!
//! What a majority has acknowledged is there exactly once; a reply says how many documents a command has met, and the owner
//! knows that; a read of many documents finds each that was acknowledged before it began, once, on whichever shard.

use super::pages::{after, all, lsid};
use crate::cluster::shape::KEYS;
use crate::executor::lock;
use crate::set::users::caller::{Caller, Place, is_done, majority, operation_time};
use pando_base::Timestamp;
use pando_bson::{Bson, DocBuf, Document, RawDoc, doc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

pub(crate) const DB: &str = "m";
pub(crate) const COLLECTIONS: [&str; 3] = ["ranged", "hashed", "plain"];
const TRIES_MAX: u32 = 40;
const DUPLICATE_KEY: i64 = 11000;
/// Documents that one owner keeps.
const KEPT: usize = 60;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    There,
    /// Nobody knows what came of its insertion, or its deletion.
    Unknown,
    Gone,
}

#[derive(Clone, Debug)]
pub(crate) struct Doc {
    pub(crate) coll: usize,
    pub(crate) k: i64,
    pub(crate) state: State,
    /// Its insertion was acknowledged.
    pub(crate) inserted: bool,
    pub(crate) acknowledged: BTreeSet<i64>,
    /// Sent, and nobody knows.
    pub(crate) maybe: BTreeSet<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub inserted: usize,
    pub appended: usize,
    pub deleted: usize,
    pub scans: usize,
    /// Commands of which nobody knows what came of them.
    pub unknown: usize,
}

#[derive(Default)]
pub(crate) struct Model {
    /// Documents move between shards: what is sent to all shards may meet one twice, or not at all, as with MongoDB.
    pub(crate) moves: bool,
    pub(crate) docs: BTreeMap<i64, Doc>,
    /// Everything that was acknowledged is visible at this time.
    pub(crate) at: Timestamp,
    pub(crate) counts: Counts,
    pub(crate) problems: Vec<String>,
}

impl Model {
    /// What is wrong with a document that was read.
    pub(crate) fn problem(&self, coll: usize, found: &RawDoc) -> Option<String> {
        let int = |name: &str| found.get(name).and_then(|v| v.as_i64());
        let Some(doc) = int("_id").and_then(|id| self.docs.get(&id)) else {
            return Some(format!("{found} in {} was never written", COLLECTIONS[coll]));
        };
        let list = elements(found);
        let unique: BTreeSet<i64> = list.iter().copied().collect();
        let twice = unique.len() != list.len();
        let strange = unique.iter().any(|e| !doc.acknowledged.contains(e) && !doc.maybe.contains(e));
        let wrong = twice || strange || doc.coll != coll || int("k") != Some(doc.k);
        wrong.then(|| format!("{found} in {} is not what was written: {doc:x?}", COLLECTIONS[coll]))
    }
}

fn elements(doc: &RawDoc) -> Vec<i64> {
    let list = doc.get("l").and_then(|v| v.as_array());
    list.into_iter().flatten().filter_map(|e| e.value().as_i64()).collect()
}

struct Owner {
    c: Caller,
    user: i64,
    model: Arc<Mutex<Model>>,
    /// Of documents and elements.
    n: i64,
    txn: i64,
    own: Vec<i64>,
}

pub(crate) async fn run(place: Place, model: Arc<Mutex<Model>>) {
    let user = place.user;
    let mut owner = Owner { c: Caller::new(place), user, model, n: 0, txn: 0, own: Vec::new() };
    while !owner.c.stopped() {
        owner.step().await;
        owner.c.pause().await;
    }
}

impl Owner {
    fn next(&mut self) -> i64 {
        self.n += 1;
        self.user << 32 | self.n
    }
    fn command(&mut self, mut body: Document, retryable: bool) -> DocBuf {
        body.push("writeConcern", majority());
        if retryable {
            self.txn += 1;
            body.push("lsid", lsid(self.user, 13));
            body.push("txnNumber", self.txn);
        }
        body.push("$db", DB);
        body.to_raw()
    }
    /// Sends it until somebody knows what came of it.
    async fn until_done(&mut self, body: &DocBuf) -> Option<DocBuf> {
        for _ in 0..TRIES_MAX {
            if self.c.stopped() {
                break;
            }
            match self.c.ask_primary(body).await {
                Some(reply) if is_done(&reply) => {
                    let mut model = lock(&self.model);
                    model.at = model.at.max(operation_time(&reply).unwrap_or(Timestamp::ZERO));
                    return Some(reply);
                }
                Some(reply) if is_double(&reply) => {
                    let what = format!("a statement was carried out twice: {body}: {reply}");
                    lock(&self.model).problems.push(what);
                }
                _ => {}
            }
            self.c.pause().await;
        }
        lock(&self.model).counts.unknown += 1;
        None
    }
    /// Some of its documents, of one collection.
    fn some(&self) -> (usize, Vec<i64>) {
        let coll = self.c.below(COLLECTIONS.len() as u64) as usize;
        let model = lock(&self.model);
        let mut of_coll: Vec<i64> = self
            .own
            .iter()
            .copied()
            .filter(|id| model.docs.get(id).is_some_and(|d| d.coll == coll))
            .collect();
        let wanted = 1 + self.c.below(4) as usize;
        let mut some = Vec::new();
        while some.len() < wanted && !of_coll.is_empty() {
            some.push(of_coll.swap_remove(self.c.below(of_coll.len() as u64) as usize));
        }
        (coll, some)
    }
    fn key_of(&self, id: i64) -> i64 {
        lock(&self.model).docs.get(&id).map_or(0, |d| d.k)
    }

    async fn step(&mut self) {
        let (coll, some) = self.some();
        if some.is_empty() {
            return self.insert(coll).await;
        }
        match self.c.below(12) {
            0..=2 if self.own.len() < KEPT => self.insert(coll).await,
            0..=3 => self.delete(coll, &some).await,
            4..=6 => self.update(coll, &some, true).await,
            7 => self.update(coll, &some, false).await,
            8 | 9 => self.find_and_modify(coll, some[0]).await,
            10 => self.update_many(coll, &some).await,
            _ => self.delete_many(coll, &some[..1]).await,
        }
    }

    async fn insert(&mut self, coll: usize) {
        let (mut docs, mut ids) = (Vec::new(), Vec::new());
        for _ in 0..1 + self.c.below(5) {
            let (id, k) = (self.next(), self.c.below(KEYS as u64) as i64);
            let mut doc = doc! { "_id": id, "k": k };
            doc.push("l", Vec::<Bson>::new());
            docs.push(Bson::from(doc));
            ids.push(id);
            let (acknowledged, maybe) = Default::default();
            let known = Doc { coll, k, state: State::Unknown, inserted: false, acknowledged, maybe };
            lock(&self.model).docs.insert(id, known);
        }
        let mut body = doc! { "insert": COLLECTIONS[coll] };
        body.push("documents", docs);
        body.push("ordered", self.c.below(2) == 0);
        let body = self.command(body, true);
        let Some(reply) = self.until_done(&body).await else { return };
        self.expect(&body, &reply, ids.len());
        let mut model = lock(&self.model);
        model.counts.inserted += ids.len();
        for id in &ids {
            if let Some(doc) = model.docs.get_mut(id) {
                doc.state = State::There;
                doc.inserted = true;
            }
        }
        drop(model);
        self.own.extend(ids);
    }

    /// One statement for each; with the shard key, or with the `_id` alone.
    async fn update(&mut self, coll: usize, some: &[i64], keyed: bool) {
        let element = self.next();
        let statements = some.iter().map(|id| {
            let mut q = doc! { "_id": *id };
            if keyed {
                q.push("k", self.key_of(*id));
            }
            let mut s = doc! { "q": q };
            s.push("u", doc! { "$push": { "l": element } });
            Bson::from(s)
        });
        let statements: Vec<Bson> = statements.collect();
        let mut body = doc! { "update": COLLECTIONS[coll] };
        body.push("updates", statements);
        body.push("ordered", self.c.below(2) == 0);
        let body = self.command(body, true);
        self.append(&body, some, element, !keyed).await;
    }
    /// In one statement, which may be repeated as it is.
    async fn update_many(&mut self, coll: usize, some: &[i64]) {
        let element = self.next();
        let mut s = doc! { "q": within(some), "multi": true };
        s.push("u", doc! { "$addToSet": { "l": element } });
        let mut body = doc! { "update": COLLECTIONS[coll] };
        body.push("updates", vec![Bson::from(s)]);
        let body = self.command(body, false);
        self.append(&body, some, element, true).await;
    }
    async fn append(&mut self, body: &DocBuf, some: &[i64], element: i64, everywhere: bool) {
        self.sent(some, element);
        let Some(reply) = self.until_done(body).await else { return };
        if everywhere && lock(&self.model).moves {
            return;
        }
        self.expect(body, &reply, some.len());
        self.acknowledged(some, element);
    }
    async fn find_and_modify(&mut self, coll: usize, id: i64) {
        let element = self.next();
        let mut query = doc! { "_id": id };
        if self.c.below(3) > 0 {
            query.push("k", self.key_of(id));
        }
        let mut body = doc! { "findAndModify": COLLECTIONS[coll], "new": true };
        body.push("query", query);
        body.push("update", doc! { "$push": { "l": element } });
        let keyed = body.get("query").and_then(Bson::as_doc).is_some_and(|q| q.contains("k"));
        if !keyed && COLLECTIONS[coll] != "plain" {
            // Which shard would know of the first try cannot be said: not retryable.
            let body = self.command(body, false);
            self.sent(&[id], element);
            if let Some(reply) = self.c.ask_primary(&body).await.filter(|r| is_done(r)) {
                self.modified(&body, &reply, id, element);
            }
            return;
        }
        let body = self.command(body, true);
        self.sent(&[id], element);
        let Some(reply) = self.until_done(&body).await else { return };
        self.modified(&body, &reply, id, element);
    }
    fn modified(&mut self, body: &DocBuf, reply: &RawDoc, id: i64, element: i64) {
        self.acknowledged(&[id], element);
        let mut model = lock(&self.model);
        model.at = model.at.max(operation_time(reply).unwrap_or(Timestamp::ZERO));
        let found = reply.get("value").and_then(|v| v.as_doc()).map(elements).unwrap_or_default();
        let owed = model.docs.get(&id).map(|d| d.acknowledged.clone()).unwrap_or_default();
        if !owed.iter().all(|e| found.contains(e)) {
            model.problems.push(format!("{body}: {reply} lacks some of {owed:x?}"));
        }
    }

    async fn delete(&mut self, coll: usize, some: &[i64]) {
        let statements = some.iter().map(|id| {
            let mut s = doc! { "limit": 1 };
            s.push("q", doc! { "_id": *id, "k": self.key_of(*id) });
            Bson::from(s)
        });
        let statements: Vec<Bson> = statements.collect();
        let mut body = doc! { "delete": COLLECTIONS[coll] };
        body.push("deletes", statements);
        body.push("ordered", self.c.below(2) == 0);
        let body = self.command(body, true);
        self.leave(some);
        let Some(reply) = self.until_done(&body).await else { return };
        self.expect(&body, &reply, some.len());
        self.gone(some);
    }
    async fn delete_many(&mut self, coll: usize, some: &[i64]) {
        let mut s = doc! { "limit": 0 };
        s.push("q", within(some));
        let mut body = doc! { "delete": COLLECTIONS[coll] };
        body.push("deletes", vec![Bson::from(s)]);
        let body = self.command(body, false);
        self.leave(some);
        if self.until_done(&body).await.is_some() && !lock(&self.model).moves {
            self.gone(some);
        }
    }
    fn leave(&mut self, some: &[i64]) {
        self.own.retain(|id| !some.contains(id));
        self.set(some, State::Unknown);
    }
    fn gone(&self, some: &[i64]) {
        self.set(some, State::Gone);
        lock(&self.model).counts.deleted += some.len();
    }
    fn set(&self, some: &[i64], state: State) {
        let mut model = lock(&self.model);
        for id in some {
            if let Some(doc) = model.docs.get_mut(id) {
                doc.state = state;
            }
        }
    }
    fn sent(&self, some: &[i64], element: i64) {
        let mut model = lock(&self.model);
        for id in some {
            model.docs.get_mut(id).map(|d| d.maybe.insert(element));
        }
    }
    fn acknowledged(&self, some: &[i64], element: i64) {
        let mut model = lock(&self.model);
        model.counts.appended += some.len();
        for id in some {
            model.docs.get_mut(id).map(|d| d.acknowledged.insert(element));
        }
    }
    /// The owner knows how many documents there are.
    fn expect(&self, body: &DocBuf, reply: &RawDoc, n: usize) {
        if reply.get("n").and_then(|v| v.as_i64()) != Some(n as i64) {
            lock(&self.model).problems.push(format!("{body} met others than {n} documents: {reply}"));
        }
    }
}

fn within(ids: &[i64]) -> Document {
    doc! { "_id": { "$in": ids.iter().map(|id| Bson::from(*id)).collect::<Vec<_>>() } }
}

fn is_double(reply: &RawDoc) -> bool {
    let errors = reply.get("writeErrors").and_then(|v| v.as_array());
    let mut codes = errors.into_iter().flatten().filter_map(|e| e.value().as_doc()?.get("code")?.as_i64());
    codes.any(|code| code == DUPLICATE_KEY)
}

/// Reads of many documents, and of single ones.
pub(crate) async fn scan(place: Place, model: Arc<Mutex<Model>>) {
    let mut c = Caller::new(place);
    while !c.stopped() {
        look(&mut c, &model).await;
        c.pause().await;
    }
}

/// A range of shard keys that is asked for.
struct Asked {
    coll: usize,
    from: i64,
    to: i64,
}

async fn look(c: &mut Caller, model: &Mutex<Model>) {
    let coll = c.below(COLLECTIONS.len() as u64) as usize;
    let (a, b) = (c.below(KEYS as u64) as i64, c.below(KEYS as u64) as i64);
    let (asked, filter) = match c.below(4) {
        0 => {
            let filter = doc! { "k": { "$gte": a.min(b), "$lt": a.max(b) } };
            (Asked { coll, from: a.min(b), to: a.max(b) }, filter)
        }
        1 => (Asked { coll, from: a, to: a + 1 }, doc! { "k": a }),
        _ => (Asked { coll, from: 0, to: KEYS }, Document::new()),
    };
    let before = lock(model).docs.clone();
    let mut body =
        doc! { "find": COLLECTIONS[coll], "batchSize": 2 + c.below(100) as i64, "maxTimeMS": 8000 };
    body.push("filter", filter);
    match c.below(3) {
        0 => body.push("sort", doc! { "k": 1, "_id": 1 }),
        1 => body.push("sort", doc! { "_id": -1 }),
        _ => {}
    }
    body.push("readConcern", after(lock(model).at));
    body.push("$db", DB);
    let body = body.to_raw();
    let at = c.anyone();
    let Some(found) = all(c, at, &body, COLLECTIONS[coll], DB).await else { return };
    let mut model = lock(model);
    model.counts.scans += 1;
    let problems = judge(&model, &before, &asked, &found);
    model.problems.extend(problems.into_iter().map(|p| format!("{body} at router {at}: {p}")));
}

/// What is wrong with what was found, by what was known before the read began and is known now.
fn judge(model: &Model, before: &BTreeMap<i64, Doc>, asked: &Asked, found: &[DocBuf]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen: BTreeMap<i64, &DocBuf> = BTreeMap::new();
    for doc in found {
        let id = doc.get("_id").and_then(|v| v.as_i64()).unwrap_or(-1);
        if seen.insert(id, doc).is_some() {
            problems.push(format!("{id:x} was found twice"));
        }
        problems.extend(model.problem(asked.coll, doc));
        if before.get(&id).is_some_and(|d| d.state == State::Gone) {
            problems.push(format!("{id:x} was deleted and is found: {doc}"));
        }
    }
    let wanted = |d: &Doc| d.coll == asked.coll && (asked.from..asked.to).contains(&d.k);
    for (id, known) in before.iter().filter(|(_, d)| d.state == State::There && wanted(d)) {
        if model.docs.get(id).is_none_or(|d| d.state != State::There) {
            continue;
        }
        match seen.get(id) {
            None => problems.push(format!("{id:x} ({known:x?}) is missed")),
            Some(doc) => {
                let list = elements(doc);
                if !known.acknowledged.iter().all(|e| list.contains(e)) {
                    problems.push(format!("{doc} lacks some of {known:x?}"));
                }
            }
        }
    }
    problems
}

/// What is wrong with all documents of a collection, which `found` is.
pub(crate) fn judge_all(model: &Model, coll: usize, found: &[DocBuf]) -> Vec<String> {
    judge(model, &model.docs, &Asked { coll, from: 0, to: KEYS }, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_doubled_undead_and_strange_documents_are_found() {
        let known = |state| Doc {
            coll: 0,
            k: 7,
            state,
            inserted: true,
            acknowledged: [1, 2].into(),
            maybe: [1, 2, 3].into(),
        };
        let docs = [(1, known(State::There)), (2, known(State::Gone)), (3, known(State::Unknown))];
        let model = Model { docs: docs.into(), ..Model::default() };
        let doc = |id: i64, list: &[i64]| {
            let mut d = doc! { "_id": id, "k": 7 };
            d.push("l", list.iter().map(|n| Bson::from(*n)).collect::<Vec<_>>());
            d.to_raw()
        };
        let wrong = |found: &[DocBuf]| judge_all(&model, 0, found).len();
        assert_eq!(wrong(&[doc(1, &[1, 2])]), 0);
        assert_eq!(wrong(&[doc(1, &[3, 1, 2]), doc(3, &[])]), 0);
        assert_eq!(wrong(&[]), 1, "missed");
        assert_eq!(wrong(&[doc(1, &[1, 2]), doc(1, &[1, 2])]), 1, "twice");
        assert_eq!(wrong(&[doc(1, &[1])]), 1, "an append is lost");
        assert_eq!(wrong(&[doc(1, &[1, 2, 2])]), 1, "an append is there twice");
        assert_eq!(wrong(&[doc(1, &[1, 2, 4])]), 1, "never written");
        assert_eq!(wrong(&[doc(1, &[1, 2]), doc(2, &[])]), 1, "undead");
        assert_eq!(wrong(&[doc(1, &[1, 2]), doc(9, &[])]), 1, "nobody's");
    }
}
