//! Who defines collections: each user has a database, in which collections come, are sharded, get and lose indexes, are split and
//! merged, and are dropped for others with another key, while [`super::writers`] go on.
//!
//! A document that was acknowledged after a drop stays until the next one begins, however the collection is created and sharded
//! meanwhile, and never comes back in what takes its place. A drop of which nobody knows what came of it may still be carried out
//! for a while; until it cannot any more, nothing is promised of the collection's documents. What a renaming of which nobody knows
//! what came of it had under the old name may be under either one, also if it was under the new one before and left it.

use super::pages::{after, all};
use crate::cluster::shape::{self, KEYS};
use crate::executor::lock;
use crate::set::users::caller::{Caller, Place, is_done, majority};
use pando_base::Timestamp;
use pando_bson::{Bson, DocBuf, Document, RawDoc, doc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Of each database.
const COLLECTIONS: [&str; 2] = ["a", "b"];
const TRIES_MAX: u32 = 40;
/// A command that was cut off is not carried out later than this.
const LINGERS: Duration = Duration::from_secs(180);
/// Of so many definitions in the middle of one somebody breaks, and how long after it was sent.
const HIT_ONE_IN: u64 = 12;
const HIT_WITHIN_US: u64 = 60_000;
const ALREADY_INITIALIZED: i64 = 23;
const NAMESPACE_EXISTS: i64 = 48;
const INVALID_OPTIONS: i64 = 72;
const NOT_SHARDED: i64 = 118;
const NO_SUCH_COLLECTION: i64 = 26;
/// The name has zones.
const COMMAND_FAILED: i64 = 125;
const UUID_MISMATCH: i64 = 361;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub created: usize,
    pub sharded: usize,
    pub refined: usize,
    pub renamed: usize,
    pub dropped: usize,
    pub databases_dropped: usize,
    pub indexes: usize,
    pub splits: usize,
    pub merges: usize,
    pub written: usize,
    /// Of those who write there.
    pub transactions: usize,
    pub scans: usize,
    /// Of codes with which definitions and writes were refused.
    pub refused: BTreeMap<i64, usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Key {
    Unsharded,
    Ranged,
    /// It was by range of one field.
    Refined,
    Hashed,
    Id,
}

impl Key {
    fn pattern(self) -> Document {
        match self {
            Key::Hashed => doc! { "k": "hashed" },
            Key::Id => doc! { "_id": "hashed" },
            Key::Ranged | Key::Unsharded => doc! { "k": 1 },
            Key::Refined => doc! { "k": 1, "_id": 1 },
        }
    }
}

/// One name, and what stands under it.
#[derive(Default)]
pub(crate) struct Space {
    /// Grows when a drop begins, and when it is done.
    generation: u64,
    /// No drop has begun since the last one was done: what is written there stays.
    pub(crate) stands: bool,
    /// What it was defined as, if it was; whoever writes there creates it all the same.
    key: Option<Key>,
    /// Acknowledged while it stood.
    pub(crate) acknowledged: BTreeSet<i64>,
    /// The same, also where it is not promised: it goes where the collection goes.
    ever: BTreeSet<i64>,
    /// What was in collections that are dropped.
    pub(crate) gone: BTreeSet<i64>,
    /// What is acknowledged before this is not promised.
    unsure_until: Duration,
    /// Until then a command may come late that gives the collection this name: it would do so once more if it had its former one again.
    stays_until: Duration,
}

/// What was acknowledged of two collections before one began to take the place of the other.
struct Had {
    source: BTreeSet<i64>,
    target: BTreeSet<i64>,
}

#[derive(Default)]
pub(crate) struct Spaces {
    pub(crate) all: BTreeMap<String, Space>,
    pub(crate) at: Timestamp,
    /// Somebody shall break then: a definition is under way.
    hit_at: Option<Duration>,
    pub(crate) counts: Counts,
    pub(crate) problems: Vec<String>,
}

impl Spaces {
    /// Whether it is time to break somebody.
    pub(crate) fn is_hit(&mut self, now: Duration) -> bool {
        self.hit_at.take_if(|at| *at <= now).is_some()
    }
    /// Somebody shall break within so many microseconds.
    pub(crate) fn hit_within(&mut self, now: Duration, us: u64) {
        self.hit_at = Some(now + Duration::from_micros(us));
    }
    /// Some name, and the generation of what stands there.
    pub(crate) fn somewhere(&self, chance: u64) -> Option<(String, u64)> {
        let at = chance % (self.all.len() as u64).max(1);
        self.all.iter().nth(at as usize).map(|(ns, s)| (ns.clone(), s.generation))
    }
    /// It was acknowledged: a promise if the same collection has stood all the time.
    pub(crate) fn written(
        &mut self,
        ns: &str,
        generation: u64,
        id: i64,
        at: Option<Timestamp>,
        sent: Duration,
    ) {
        self.counts.written += 1;
        let Some(space) = self.all.get_mut(ns) else { return };
        if !space.stands || space.generation != generation {
            return;
        }
        space.ever.insert(id);
        if sent >= space.unsure_until {
            space.acknowledged.insert(id);
            self.at = self.at.max(at.unwrap_or(Timestamp::ZERO));
        }
    }
    pub(crate) fn refused(&mut self, reply: &RawDoc) {
        *self.counts.refused.entry(code(reply)).or_default() += 1;
    }
    /// Whatever stands under the name may go from now on.
    fn ends(&mut self, ns: &str) -> BTreeSet<i64> {
        let space = self.all.entry(ns.to_owned()).or_default();
        space.key = None;
        space.stays_until = Duration::ZERO;
        space.ever.clear();
        self.pauses(ns)
    }
    /// What is written from now on is not promised.
    fn pauses(&mut self, ns: &str) -> BTreeSet<i64> {
        let space = self.all.entry(ns.to_owned()).or_default();
        space.stands = false;
        space.generation += 1;
        std::mem::take(&mut space.acknowledged)
    }
    /// It was dropped: there is nothing any more, and what comes now stays.
    fn begins(&mut self, ns: &str, gone: BTreeSet<i64>) {
        let space = self.all.entry(ns.to_owned()).or_default();
        space.gone.extend(gone);
        space.generation += 1;
        space.stands = true;
    }
    /// A renaming has ended. If nobody knows whether it was made, the collection's documents may be found under either name, also those that
    /// were under the new one before and left it with the collection.
    fn renaming_ended(&mut self, is_made: bool, from: &str, to: &str, had: Had, now: Duration) {
        if is_made {
            return self.renamed(from, to, had.source, had.target, now);
        }
        let ever = self.all.get(from).map(|space| space.ever.clone()).unwrap_or_default();
        if let Some(space) = self.all.get_mut(to) {
            space.gone.retain(|id| !ever.contains(id));
        }
    }
    /// A collection that had this under one name has it under another one, and what had that name is gone.
    fn renamed(&mut self, from: &str, to: &str, had: BTreeSet<i64>, gone: BTreeSet<i64>, now: Duration) {
        let (key, ever) = self
            .all
            .get_mut(from)
            .map(|space| (space.key.take(), std::mem::take(&mut space.ever)))
            .unwrap_or_default();
        self.begins(to, gone);
        if let Some(space) = self.all.get_mut(to) {
            space.key = key;
            space.gone.retain(|id| !ever.contains(id));
            space.ever = ever;
            // A drop may still come late.
            if space.unsure_until <= now {
                space.acknowledged = had.clone();
            }
        }
        self.begins(from, had);
        self.counts.renamed += 1;
    }
    /// A command that gave a collection this name may come once more until then.
    fn stays(&mut self, ns: &str, until: Duration) {
        if let Some(space) = self.all.get_mut(ns) {
            space.stays_until = until;
        }
    }
    /// Whether what has this name may get another one.
    fn may_leave(&self, ns: &str, now: Duration) -> bool {
        self.all.get(ns).is_none_or(|space| space.stays_until <= now)
    }
    fn defined(&mut self, ns: &str, key: Key) {
        if let Some(space) = self.all.get_mut(ns) {
            space.key = Some(key);
        }
    }
    fn unsure(&mut self, ns: &str, until: Duration) {
        if let Some(space) = self.all.get_mut(ns) {
            space.unsure_until = space.unsure_until.max(until);
            space.acknowledged.clear();
        }
    }
    /// What is wrong with the documents that were found under a name, of which `owed` were acknowledged before.
    pub(crate) fn judge(&self, ns: &str, owed: &BTreeSet<i64>, found: &[DocBuf]) -> Vec<String> {
        let mut problems = Vec::new();
        let Some(space) = self.all.get(ns) else { return problems };
        let mut seen = BTreeSet::new();
        for doc in found {
            let id = doc.get("_id").and_then(|v| v.as_i64()).unwrap_or(-1);
            if !seen.insert(id) {
                problems.push(format!("{id:x} was found twice in {ns}"));
            }
            if space.gone.contains(&id) {
                problems.push(format!("{doc} came back in {ns}"));
            }
        }
        let missed: Vec<_> = owed.difference(&seen).collect();
        if !missed.is_empty() {
            problems.push(format!("{missed:x?} are missed in {ns} ({:?})", space.key));
        }
        problems
    }
}

fn code(reply: &RawDoc) -> i64 {
    let of = |d: &RawDoc| d.get("code").and_then(|v| v.as_i64());
    let first = || reply.get("writeErrors")?.as_array()?.first()?.value().as_doc().and_then(of);
    let concern = || reply.get("writeConcernError")?.as_doc().and_then(of);
    of(reply).or_else(first).or_else(concern).unwrap_or(0)
}

struct Definer {
    c: Caller,
    spaces: Arc<Mutex<Spaces>>,
    db: String,
    /// The last definition was sent more than once.
    sent_again: bool,
}

pub(crate) async fn run(place: Place, spaces: Arc<Mutex<Spaces>>) {
    let db = format!("x{}", place.user);
    for coll in COLLECTIONS {
        lock(&spaces).begins(&format!("{db}.{coll}"), BTreeSet::new());
    }
    let mut definer = Definer { c: Caller::new(place), spaces, db, sent_again: false };
    while !definer.c.stopped() {
        definer.step().await;
        definer.c.pause().await;
    }
}

/// How a definition ended.
enum Ended {
    Done,
    Refused(i64),
    NobodyKnows,
}

impl Definer {
    fn space<T>(&self, ns: &str, of: impl Fn(&Space) -> T) -> Option<T> {
        lock(&self.spaces).all.get(ns).map(of)
    }

    /// Sends a definition until it is done, or refused with one of these codes. After one of which nobody knows what came of it
    /// the names are unsure for a while.
    async fn until(&mut self, body: &Document, db: &str, names: &[&str], known: &[i64]) -> Ended {
        let mut body = body.clone();
        body.push("$db", db);
        let body = body.to_raw();
        for n in 0..TRIES_MAX {
            if self.c.stopped() {
                break;
            }
            self.sent_again = n > 0;
            if self.c.below(HIT_ONE_IN) == 0 {
                let at = self.c.now() + Duration::from_micros(self.c.below(HIT_WITHIN_US));
                lock(&self.spaces).hit_at = Some(at);
            }
            match self.c.ask_primary(&body).await {
                Some(reply) if is_done(&reply) => return Ended::Done,
                Some(reply) if known.contains(&code(&reply)) => return Ended::Refused(code(&reply)),
                Some(reply) => lock(&self.spaces).refused(&reply),
                None => {}
            }
            let until = self.c.now() + LINGERS;
            names.iter().for_each(|ns| lock(&self.spaces).unsure(ns, until));
            self.c.pause().await;
        }
        Ended::NobodyKnows
    }

    async fn step(&mut self) {
        let coll = COLLECTIONS[self.c.below(2) as usize];
        let ns = format!("{}.{coll}", self.db);
        let key = match self.space(&ns, |s| (s.stands, s.key)) {
            Some((true, Some(key))) => key,
            Some((true, None)) => return self.create(coll, &ns).await,
            _ => return self.drop_collection(coll, &ns).await,
        };
        match self.c.below(16) {
            0 => self.drop_collection(coll, &ns).await,
            1 if self.c.below(3) == 0 => self.drop_database().await,
            2 | 3 => self.index(coll).await,
            4 if matches!(key, Key::Ranged | Key::Refined) => self.split(&ns, key).await,
            5 if matches!(key, Key::Ranged | Key::Refined) => self.merge(&ns, key).await,
            8 if key == Key::Ranged => self.refine(coll, &ns).await,
            9 => self.rename(coll, &ns).await,
            6 | 7 if key == Key::Unsharded => {
                let key = self.some_key();
                self.shard(coll, &ns, key).await;
            }
            _ => self.scan(coll, &ns).await,
        }
    }

    async fn create(&mut self, coll: &str, ns: &str) {
        let key = if self.c.below(4) == 0 { Key::Unsharded } else { self.some_key() };
        if key != Key::Unsharded {
            return self.shard(coll, ns, key).await;
        }
        let db = self.db.clone();
        let mut body = doc! { "create": coll };
        body.push("writeConcern", majority());
        match self.until(&body, &db, &[], &[NAMESPACE_EXISTS]).await {
            Ended::Done | Ended::Refused(_) => {
                let mut spaces = lock(&self.spaces);
                spaces.counts.created += 1;
                spaces.defined(ns, key);
            }
            Ended::NobodyKnows => return,
        }
        // What has an index and seems to be empty is sharded over all shards at once, though transactions write there.
        if self.c.below(2) == 0 {
            let key = self.some_key();
            if self.create_index(coll, key.pattern()).await {
                self.c.pause().await;
                self.shard(coll, ns, key).await;
            }
        }
    }
    fn some_key(&self) -> Key {
        match self.c.below(4) {
            0 => Key::Hashed,
            1 => Key::Id,
            _ => Key::Ranged,
        }
    }

    /// In two zones if it is sharded by range.
    async fn shard(&mut self, coll: &str, ns: &str, key: Key) {
        if key == Key::Ranged && self.c.below(3) > 0 {
            for zone in shape::zones(ns, "k", &[KEYS / 4, KEYS / 2, KEYS * 3 / 4]) {
                // Those of a collection that is on its way out may be in the way.
                let mut body = zone;
                body.push("$db", "admin");
                self.c.ask_primary(&body.to_raw()).await;
            }
        }
        let mut body = doc! { "shardCollection": ns };
        body.push("key", key.pattern());
        loop {
            match self.until(&body, "admin", &[], &[ALREADY_INITIALIZED, INVALID_OPTIONS]).await {
                Ended::Done => {
                    let mut spaces = lock(&self.spaces);
                    spaces.counts.sharded += 1;
                    return spaces.defined(ns, key);
                }
                // Somebody has written there: it needs an index.
                Ended::Refused(INVALID_OPTIONS) if !self.c.stopped() => {
                    self.create_index(coll, key.pattern()).await;
                }
                // An earlier command has come late.
                Ended::Refused(_) => return self.drop_collection(coll, ns).await,
                Ended::NobodyKnows => return,
            }
            self.c.pause().await;
        }
    }
    async fn create_index(&mut self, coll: &str, key: Document) -> bool {
        let mut index = doc! { "name": format!("{key:?}").replace([' ', '"'], "") };
        index.push("key", key);
        let mut body = doc! { "createIndexes": coll };
        body.push("indexes", vec![Bson::from(index)]);
        body.push("writeConcern", majority());
        let db = self.db.clone();
        matches!(self.until_harmless(&body, &db).await, Ended::Done)
    }
    /// Of what takes nothing away, however late it is carried out.
    async fn until_harmless(&mut self, body: &Document, db: &str) -> Ended {
        self.until(body, db, &[], &[26, 27]).await
    }

    async fn drop_collection(&mut self, coll: &str, ns: &str) {
        let had = lock(&self.spaces).ends(ns);
        let mut body = doc! { "drop": coll };
        body.push("writeConcern", majority());
        let db = self.db.clone();
        if let Ended::Done | Ended::Refused(_) = self.until(&body, &db, &[ns], &[26]).await {
            let mut spaces = lock(&self.spaces);
            spaces.counts.dropped += 1;
            spaces.begins(ns, had);
        }
    }
    async fn drop_database(&mut self) {
        let names: Vec<String> = COLLECTIONS.iter().map(|coll| format!("{}.{coll}", self.db)).collect();
        let had: Vec<BTreeSet<i64>> = names.iter().map(|ns| lock(&self.spaces).ends(ns)).collect();
        let mut body = doc! { "dropDatabase": 1 };
        body.push("writeConcern", majority());
        let db = self.db.clone();
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        if let Ended::Done = self.until(&body, &db, &all, &[]).await {
            let mut spaces = lock(&self.spaces);
            spaces.counts.databases_dropped += 1;
            names.iter().zip(had).for_each(|(ns, had)| spaces.begins(ns, had));
        }
    }

    async fn index(&mut self, coll: &str) {
        let done = if self.c.below(2) == 0 {
            self.create_index(coll, doc! { "v": 1 }).await
        } else {
            let mut body = doc! { "dropIndexes": coll, "index": { "v": 1 } };
            body.push("writeConcern", majority());
            let db = self.db.clone();
            matches!(self.until_harmless(&body, &db).await, Ended::Done)
        };
        lock(&self.spaces).counts.indexes += usize::from(done);
    }
    async fn refine(&mut self, coll: &str, ns: &str) {
        if !self.create_index(coll, Key::Refined.pattern()).await {
            return;
        }
        let mut body = doc! { "refineCollectionShardKey": ns };
        body.push("key", Key::Refined.pattern());
        if let Ended::Done = self.until(&body, "admin", &[], &[INVALID_OPTIONS, NOT_SHARDED]).await {
            let mut spaces = lock(&self.spaces);
            spaces.counts.refined += 1;
            spaces.defined(ns, Key::Refined);
        }
    }
    /// The UUID of what stands under a name.
    async fn uuid_of(&mut self, coll: &str) -> Option<Bson> {
        let mut body = doc! { "listCollections": 1 };
        body.push("filter", doc! { "name": coll });
        body.push("$db", self.db.as_str());
        let reply = self.c.ask_primary(&body.to_raw()).await.filter(|r| is_done(r))?;
        let first = reply.get("cursor")?.as_doc()?.get("firstBatch")?.as_array()?.first()?;
        let info = first.value().as_doc()?.get("info")?;
        info.as_doc()?.get("uuid").map(Bson::from)
    }
    /// The collection takes the place of the other one. Named by its UUID, it does so once, however often that is asked for, unless it
    /// goes back meanwhile: what was sent more than once is not followed by that before all of it has been carried out.
    async fn rename(&mut self, coll: &str, from: &str) {
        let other = if coll == COLLECTIONS[0] { COLLECTIONS[1] } else { COLLECTIONS[0] };
        let to = format!("{}.{other}", self.db);
        let may_leave = lock(&self.spaces).may_leave(from, self.c.now());
        if !may_leave || self.space(&to, |s| s.stands) != Some(true) {
            return;
        }
        let Some(uuid) = self.uuid_of(coll).await else { return };
        let had = {
            let mut spaces = lock(&self.spaces);
            Had { source: spaces.pauses(from), target: spaces.ends(&to) }
        };
        let mut body = doc! { "renameCollection": from, "to": to.as_str(), "dropTarget": true };
        body.push("collectionUUID", uuid.clone());
        body.push("writeConcern", majority());
        let known = [NO_SUCH_COLLECTION, UUID_MISMATCH, COMMAND_FAILED];
        let ended = self.until(&body, "admin", &[], &known).await;
        let is_sent_again = self.sent_again;
        let is_made = match ended {
            Ended::Done => true,
            Ended::Refused(_) => self.uuid_of(other).await == Some(uuid),
            Ended::NobodyKnows => false,
        };
        // Where it is not, or nobody knows, both names are dropped: they stand no more.
        let now = self.c.now();
        let mut spaces = lock(&self.spaces);
        spaces.renaming_ended(is_made, from, &to, had, now);
        if is_sent_again {
            spaces.stays(&to, now + LINGERS);
        }
    }
    async fn split(&mut self, ns: &str, key: Key) {
        let mut body = doc! { "split": ns };
        let mut middle = doc! { "k": self.c.below(KEYS as u64) as i64 };
        if key == Key::Refined {
            middle.push("_id", self.c.below(KEYS as u64) as i64);
        }
        body.push("middle", middle);
        body.push("$db", "admin");
        let done = self.c.ask_primary(&body.to_raw()).await.is_some_and(|r| is_done(&r));
        lock(&self.spaces).counts.splits += usize::from(done);
    }
    /// Of two quarters, in the collection's zones.
    async fn merge(&mut self, ns: &str, key: Key) {
        let at = self.c.below(4) as i64 * KEYS / 4;
        let mut body = doc! { "mergeChunks": ns };
        let bound = |n: i64| match key {
            Key::Refined => Bson::from(doc! { "k": n, "_id": Bson::MinKey }),
            _ => Bson::from(doc! { "k": n }),
        };
        body.push("bounds", vec![bound(at), bound(at + KEYS / 4)]);
        body.push("$db", "admin");
        let done = self.c.ask_primary(&body.to_raw()).await.is_some_and(|r| is_done(&r));
        lock(&self.spaces).counts.merges += usize::from(done);
    }

    async fn scan(&mut self, coll: &str, ns: &str) {
        let known = |s: &Space| (s.stands, s.generation, s.acknowledged.clone());
        let (Some(before), at) = (self.space(ns, known), lock(&self.spaces).at) else { return };
        let mut body = doc! { "find": coll, "batchSize": 100_000, "maxTimeMS": 8000 };
        body.push("readConcern", after(at));
        body.push("$db", self.db.as_str());
        let who = self.c.anyone();
        let db = self.db.clone();
        let Some(found) = all(&mut self.c, who, &body.to_raw(), coll, &db).await else { return };
        let mut spaces = lock(&self.spaces);
        spaces.counts.scans += 1;
        let Some(now) = spaces.all.get(ns) else { return };
        // What became unsure meanwhile is owed no more.
        let mut owed = before.2;
        owed.retain(|id| now.acknowledged.contains(id));
        let problems = spaces.judge(ns, &owed, &found);
        spaces.problems.extend(problems.into_iter().map(|p| format!("at router {who}: {p}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_and_undead_documents_are_found_and_unsure_ones_owed_to_nobody() {
        let mut spaces = Spaces::default();
        let found = |ids: &[i64]| ids.iter().map(|id| doc! { "_id": *id }.to_raw()).collect::<Vec<_>>();
        spaces.begins("x.a", BTreeSet::new());
        let mark = spaces.all["x.a"].generation;
        spaces.written("x.a", mark, 1, None, Duration::ZERO);
        spaces.written("x.a", mark - 1, 2, None, Duration::ZERO);
        let owed = spaces.all["x.a"].acknowledged.clone();
        assert_eq!(owed, [1].into(), "another generation's promises nothing");
        assert!(spaces.judge("x.a", &owed, &found(&[1, 2])).is_empty());
        assert_eq!(spaces.judge("x.a", &owed, &found(&[2])).len(), 1, "missed");
        assert_eq!(spaces.judge("x.a", &owed, &found(&[1, 1])).len(), 1, "twice");
        let had = spaces.ends("x.a");
        spaces.begins("x.a", had);
        assert_eq!(spaces.judge("x.a", &BTreeSet::new(), &found(&[1])).len(), 1, "it came back");
        let mark = spaces.all["x.a"].generation;
        spaces.unsure("x.a", Duration::from_secs(9));
        spaces.written("x.a", mark, 3, None, Duration::from_secs(8));
        spaces.written("x.a", mark, 4, None, Duration::from_secs(9));
        assert_eq!(spaces.all["x.a"].acknowledged, [4].into());
    }

    /// `x.a` takes the place of `x.b`, or the other way around.
    fn rename(spaces: &mut Spaces, from: &str, to: &str, is_made: bool) {
        let had = Had { source: spaces.pauses(from), target: spaces.ends(to) };
        spaces.renaming_ended(is_made, from, to, had, Duration::ZERO);
    }

    #[test]
    fn what_was_renamed_there_and_back_may_be_there_again_when_nobody_knows_what_came_of_a_third_renaming() {
        let mut spaces = Spaces::default();
        let found = |ids: &[i64]| ids.iter().map(|id| doc! { "_id": *id }.to_raw()).collect::<Vec<_>>();
        let undead = |spaces: &Spaces, ns: &str, id: i64| {
            !spaces.judge(ns, &BTreeSet::new(), &found(&[id])).is_empty()
        };
        let write = |spaces: &mut Spaces, ns: &str, id: i64| {
            let mark = spaces.all[ns].generation;
            spaces.written(ns, mark, id, None, Duration::ZERO);
        };
        spaces.begins("x.a", BTreeSet::new());
        spaces.begins("x.b", BTreeSet::new());
        write(&mut spaces, "x.a", 1);
        write(&mut spaces, "x.b", 2);
        rename(&mut spaces, "x.a", "x.b", true);
        assert!(undead(&spaces, "x.a", 1) && undead(&spaces, "x.b", 2), "it made room");
        assert!(!undead(&spaces, "x.b", 1));
        rename(&mut spaces, "x.b", "x.a", true);
        assert!(undead(&spaces, "x.b", 1) && !undead(&spaces, "x.a", 1), "it has gone back");
        write(&mut spaces, "x.b", 3);
        rename(&mut spaces, "x.a", "x.b", false);
        assert!(!undead(&spaces, "x.a", 1) && !undead(&spaces, "x.b", 1), "it may be under both names");
        assert!(!undead(&spaces, "x.b", 3), "what it would take the place of may be there");
        assert!(undead(&spaces, "x.b", 2), "what was dropped before is gone all the same");
        assert!(!spaces.all["x.a"].stands && !spaces.all["x.b"].stands, "and both are dropped");
    }

    #[test]
    fn a_collection_keeps_the_name_that_it_may_be_given_once_more_and_what_takes_its_place_does_not() {
        let mut spaces = Spaces::default();
        let (before, then) = (LINGERS - Duration::from_secs(1), LINGERS);
        spaces.begins("x.a", BTreeSet::new());
        spaces.begins("x.b", BTreeSet::new());
        rename(&mut spaces, "x.a", "x.b", true);
        assert!(spaces.may_leave("x.b", Duration::ZERO), "it was sent once");
        spaces.stays("x.b", then);
        assert!(!spaces.may_leave("x.b", before), "the same command may come late");
        assert!(spaces.may_leave("x.b", then) && spaces.may_leave("x.a", Duration::ZERO));
        let had = spaces.ends("x.b");
        spaces.begins("x.b", had);
        assert!(spaces.may_leave("x.b", before), "this is another collection");
    }
}
