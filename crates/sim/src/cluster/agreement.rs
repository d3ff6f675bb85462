//! What must hold once everything has healed: what users were promised, through every router; each document lies on the shard that
//! owns it, and on no other (INV-53); shards and config servers agree on collections (INV-62); and nothing is held for ever: what
//! users have defined is dropped and defined once more (INV-65).

use super::users::pages::{after, everything};
use super::users::{Users, documents, metadata};
use crate::client::Client;
use crate::executor::lock;
use crate::set::asking::{connected, primary_of};
use crate::set::users::caller::{docs, is_done};
use pando_base::Timestamp;
use pando_bson::keystring::KeyBuilder;
use pando_bson::{Bson, DocBuf, Document, RawDoc, Value, doc};
use pando_env::Env;
use pando_routing::{Chunk, ChunkMap, CollectionEntry};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(500);
/// What a router or a secondary has not heard by then it will never hear.
const TRIES_MAX: u32 = 30;
/// Transactions that users have left open last for 60 seconds, are looked for every 30, and hold up who writes or defines: users who
/// have given up are still being served by their routers.
const LEFT_OPEN: Duration = Duration::from_secs(100);
/// A definition with everybody in their places.
const DEFINED_WITHIN: Duration = Duration::from_secs(60);
/// Where a shard keeps what it has not ended.
const UNDER_WAY: [&str; 4] =
    ["rangeDeletions", "migrationCoordinators", "migrationRecipients", "system.sharding_ddl_coordinators"];
/// Databases of users' collections.
const DATABASES: [&str; 2] = ["d", "m"];

/// What is asked, and who is.
pub(super) struct Parts {
    pub(super) env: Env,
    pub(super) routers: Vec<String>,
    /// By name, with their members; the config servers first.
    pub(super) sets: Vec<(String, Vec<String>)>,
    pub(super) users: Users,
    /// How far it is, for whoever looks for what holds it up.
    pub(super) stage: Arc<Mutex<String>>,
}

/// What is wrong.
pub(super) async fn run(parts: Parts) -> Vec<String> {
    match parts.all().await {
        Ok(problems) => problems,
        Err(why) => vec![why],
    }
}

impl Parts {
    fn at(&self, stage: &str) {
        stage.clone_into(&mut lock(&self.stage));
    }
    async fn all(&self) -> Result<Vec<String>, String> {
        let mut primaries = BTreeMap::new();
        for (name, addrs) in &self.sets {
            self.at(&format!("a primary of {name}"));
            let at = primary_of(&self.env, addrs).await;
            primaries.insert(name.clone(), addrs[at].clone());
        }
        let mut problems = self.promises().await;
        problems.extend(self.stream().await);
        for router in &self.routers {
            problems.extend(self.documents(router).await?);
            problems.extend(self.spaces(router).await?);
        }
        problems.extend(self.deletions(&primaries).await);
        problems.extend(self.places(&primaries).await?);
        problems.extend(self.once_more().await);
        Ok(problems)
    }

    /// Of users who may read at secondaries: what those lack must come.
    async fn promises(&self) -> Vec<String> {
        self.at("what users of single shards were promised");
        let mut problems = Vec::new();
        for _ in 0..TRIES_MAX {
            let mut c = connected(&self.env, &self.routers[0]).await;
            problems = self.users.check(&mut c).await;
            if problems.is_empty() {
                break;
            }
            self.env.clock.sleep(PAUSE).await;
        }
        problems
    }

    /// The change stream shows everything at last.
    async fn stream(&self) -> Option<String> {
        self.at("what the change stream shows");
        for _ in 0..2 * TRIES_MAX {
            if self.users.unseen().is_empty() {
                return None;
            }
            self.env.clock.sleep(PAUSE).await;
        }
        Some(format!("insertions that no change stream shows: {:x?}", self.users.unseen()))
    }

    async fn documents(&self, router: &str) -> Result<Vec<String>, String> {
        self.at(&format!("documents through {router}"));
        let mut c = connected(&self.env, router).await;
        let (at, known) = {
            let model = lock(&self.users.documents);
            (model.at, model.docs.clone())
        };
        let mut problems = Vec::new();
        for (coll, name) in documents::COLLECTIONS.iter().enumerate() {
            let found = self.read(&mut c, documents::DB, name, Document::new(), at).await?;
            problems.extend(documents::judge_all(&lock(&self.users.documents), coll, &found));
        }
        // Each as its shard key alone says where it is.
        let there = known.iter().filter(|(_, d)| d.state == documents::State::There);
        for (id, doc) in there.step_by(3) {
            let name = documents::COLLECTIONS[doc.coll];
            let found = self.read(&mut c, documents::DB, name, doc! { "k": doc.k, "_id": *id }, at).await?;
            if found.len() != 1 {
                problems.push(format!("{id:x} in {name} by its key {}: {found:?}", doc.k));
            }
        }
        Ok(problems.into_iter().map(|p| format!("at {router}: {p}")).collect())
    }
    async fn spaces(&self, router: &str) -> Result<Vec<String>, String> {
        let mut c = connected(&self.env, router).await;
        let mut problems = Vec::new();
        let (at, names) = {
            let spaces = lock(&self.users.spaces);
            (spaces.at, spaces.all.keys().cloned().collect::<Vec<_>>())
        };
        for ns in names {
            self.at(&format!("{ns} through {router}"));
            let Some((db, coll)) = ns.split_once('.') else { continue };
            let found = self.read(&mut c, db, coll, Document::new(), at).await?;
            let spaces = lock(&self.users.spaces);
            let owed = spaces.all.get(&ns).filter(|s| s.stands).map(|s| s.acknowledged.clone());
            problems.extend(spaces.judge(&ns, &owed.unwrap_or_default(), &found));
        }
        Ok(problems.into_iter().map(|p| format!("at {router}: {p}")).collect())
    }
    async fn read(
        &self,
        c: &mut Client,
        db: &str,
        coll: &str,
        filter: Document,
        at: Timestamp,
    ) -> Result<Vec<DocBuf>, String> {
        let mut find = doc! { "find": coll, "batchSize": 10_000 };
        find.push("filter", filter);
        find.push("readConcern", after(at));
        find.push("$db", db);
        let find = find.to_raw();
        let mut last = Ok(Vec::new());
        for _ in 0..TRIES_MAX {
            last = everything(c, &find, coll, db).await;
            if last.is_ok() {
                break;
            }
            self.env.clock.sleep(PAUSE).await;
        }
        last
    }

    /// What has moved away is deleted at last, and nothing moves any more; nor is anything being defined, which may wait for a transaction that
    /// was left open, and has documents in two places meanwhile.
    async fn deletions(&self, primaries: &BTreeMap<String, String>) -> Vec<String> {
        let mut left = Vec::new();
        for _ in 0..10 * TRIES_MAX {
            left.clear();
            for (shard, _) in &self.sets[1..] {
                self.at(&format!("what {shard} still has to delete"));
                let Some(addr) = primaries.get(shard) else { continue };
                let mut c = connected(&self.env, addr).await;
                for coll in UNDER_WAY {
                    let find = doc! { "find": coll, "$db": "config" };
                    match everything(&mut c, &find.to_raw(), coll, "config").await {
                        Ok(docs) => left.extend(docs.iter().map(|d| format!("{shard} has {d} in {coll}"))),
                        Err(why) => left.push(why),
                    }
                }
            }
            if left.is_empty() {
                break;
            }
            self.env.clock.sleep(PAUSE).await;
        }
        left
    }

    /// Documents lie where the config servers say, and shards have the collections that these know.
    async fn places(&self, primaries: &BTreeMap<String, String>) -> Result<Vec<String>, String> {
        self.at("where documents lie");
        let config =
            self.sets.first().and_then(|(name, _)| primaries.get(name)).ok_or("no config servers")?;
        let known = Known::read(&self.env, config).await?;
        let mut problems = Vec::new();
        let mut names: BTreeSet<String> = DATABASES.iter().map(|d| (*d).to_owned()).collect();
        names.extend(
            lock(&self.users.spaces).all.keys().filter_map(|ns| Some(ns.split_once('.')?.0.to_owned())),
        );
        for (shard, _) in &self.sets[1..] {
            let addr = primaries.get(shard).ok_or("no shard")?;
            let mut c = connected(&self.env, addr).await;
            for db in &names {
                known.judge(&mut c, shard, db, &mut problems).await?;
            }
        }
        Ok(problems)
    }

    /// Every name is dropped, defined, written to and read, through one router and the other.
    async fn once_more(&self) -> Vec<String> {
        self.at("the end of what was left open");
        self.env.clock.sleep(LEFT_OPEN).await;
        let names: Vec<String> = lock(&self.users.spaces).all.keys().cloned().collect();
        let mut problems = Vec::new();
        for ns in names {
            self.at(&format!("{ns} is defined once more"));
            let stage = Mutex::new(String::new());
            match self.env.timeout(DEFINED_WITHIN, self.define(&ns, &stage)).await {
                Some(Ok(())) => {}
                Some(Err(why)) => problems.push(format!("{ns} once more: {why}")),
                None => problems.push(format!("{ns} once more takes too long: {}", lock(&stage))),
            }
        }
        problems
    }
    async fn define(&self, ns: &str, stage: &Mutex<String>) -> Result<(), String> {
        let (db, coll) = ns.split_once('.').ok_or("a name")?;
        let mut c =
            [connected(&self.env, &self.routers[0]).await, connected(&self.env, &self.routers[1]).await];
        let mut insert = doc! { "insert": coll };
        insert.push("documents", (0..20).map(|i| Bson::from(doc! { "_id": i, "k": i })).collect::<Vec<_>>());
        let steps = [
            (0, doc! { "drop": coll }, db),
            (1, doc! { "shardCollection": ns, "key": { "k": "hashed" } }, "admin"),
            (0, insert, db),
        ];
        for (router, mut body, db) in steps {
            body.push("$db", db);
            self.done(&mut c[router], &body.to_raw(), stage).await;
        }
        for c in &mut c {
            let found = self.read(c, db, coll, Document::new(), Timestamp::ZERO).await?;
            if found.len() != 20 {
                return Err(format!("{} of 20 documents: {found:?}", found.len()));
            }
        }
        Ok(())
    }
    async fn done(&self, c: &mut Client, body: &DocBuf, stage: &Mutex<String>) {
        loop {
            match c.command(body).await {
                Ok(reply) if is_done(&reply) => return,
                Ok(reply) => *lock(stage) = format!("{body}: {reply}"),
                Err(e) => *lock(stage) = format!("{body}: {e}"),
            }
            self.env.clock.sleep(PAUSE).await;
        }
    }
}

/// What the config servers know.
struct Known {
    /// Primary shards of databases.
    primaries: BTreeMap<String, String>,
    collections: BTreeMap<String, (CollectionEntry, ChunkMap)>,
}

impl Known {
    async fn read(env: &Env, config: &str) -> Result<Known, String> {
        let mut c = connected(env, config).await;
        let mut all = Vec::new();
        for coll in ["databases", "collections", "chunks"] {
            let find = doc! { "find": coll, "batchSize": 10_000, "readConcern": { "level": "majority" }, "$db": "config" };
            all.push(everything(&mut c, &find.to_raw(), coll, "config").await?);
        }
        let text =
            |d: &RawDoc, name: &str| d.get(name).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
        let primaries = all[0].iter().map(|d| (text(d, "_id"), text(d, "primary"))).collect();
        let mut collections = BTreeMap::new();
        for doc in &all[1] {
            let entry = CollectionEntry::parse(doc).map_err(|e| e.to_string())?;
            let own = all[2].iter().filter(|c| metadata::is_of(c, &entry.uuid));
            let own: Vec<Chunk> =
                own.map(|c| Chunk::parse(c)).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
            let map = ChunkMap::new(&entry.key, &own).map_err(|e| format!("{}: {e}", entry.ns))?;
            collections.insert(entry.ns.clone(), (entry, map));
        }
        Ok(Known { primaries, collections })
    }

    /// What is wrong with a database's collections as a shard has them.
    async fn judge(
        &self,
        c: &mut Client,
        shard: &str,
        db: &str,
        problems: &mut Vec<String>,
    ) -> Result<(), String> {
        let mut list = doc! { "listCollections": 1 };
        list.push("$db", db);
        let reply = c.command(&list.to_raw()).await.map_err(|e| e.to_string())?;
        let mut there = BTreeMap::new();
        for doc in docs(&reply).ok_or_else(|| format!("listCollections on {shard}: {reply}"))? {
            let name = doc.get("name").and_then(|v| v.as_str()).unwrap_or_default().to_owned();
            let uuid = match doc.get_path("info.uuid") {
                Some(Value::Binary { bytes, .. }) => bytes.to_vec(),
                _ => Vec::new(),
            };
            there.insert(name, uuid);
        }
        for (name, uuid) in there.iter().filter(|(name, _)| !name.starts_with("system.")) {
            let ns = format!("{db}.{name}");
            let find = doc! { "find": name.as_str(), "batchSize": 10_000, "$db": db };
            let found = everything(c, &find.to_raw(), name, db).await?;
            match self.collections.get(&ns) {
                Some((entry, map)) => {
                    let owns = map.parts().iter().any(|p| p.shard.as_str() == shard && p.chunks > 0);
                    if owns && uuid[..] != entry.uuid.0 {
                        problems.push(format!(
                            "{ns} is {uuid:x?} on {shard}, and {} on the config servers",
                            entry.uuid
                        ));
                    }
                    for doc in found {
                        let owner = owner(entry, map, &doc)?;
                        if owner != shard {
                            problems.push(format!("{doc} of {ns} is on {shard}, and belongs on {owner}"));
                        }
                    }
                }
                None if self.primaries.get(db).is_none_or(|p| p != shard) => {
                    for doc in found {
                        problems.push(format!("{doc} of {ns}, which is not sharded, is on {shard}"));
                    }
                }
                None => {}
            }
        }
        for (ns, (_, map)) in self.collections.iter().filter(|(ns, _)| ns.split('.').next() == Some(db)) {
            let owns = map.parts().iter().any(|p| p.shard.as_str() == shard && p.chunks > 0);
            if owns && !there.contains_key(&ns[db.len() + 1..]) {
                problems.push(format!("{shard} owns a part of {ns} and does not have the collection"));
            }
        }
        Ok(())
    }
}

fn owner(entry: &CollectionEntry, map: &ChunkMap, doc: &RawDoc) -> Result<String, String> {
    let mut key = KeyBuilder::default();
    entry.key.key_of(doc, &mut key).map_err(|e| e.to_string())?;
    map.find(key.bytes()).map(|c| c.shard().as_str().to_owned()).ok_or_else(|| format!("{doc} has no chunk"))
}
