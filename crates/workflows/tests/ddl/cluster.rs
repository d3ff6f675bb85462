//! Config servers and shards as coordinators see them, for the kit: what they remember, and what they do with a command that comes
//! again, or late.

use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc, Value, doc};
use pando_workflows::{
    Target, create_collection, drop_collection, drop_sharded_database, move_primary, refine_shard_key,
    rename_collection,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

pub(crate) const DB: &str = "db";
pub(crate) const NS: &str = "db.c";
/// What it is renamed to.
pub(crate) const TO: &str = "db.e";
/// The same in another database.
pub(crate) const ELSEWHERE: &str = "other.e";
pub(crate) const SHARDS: [&str; 2] = ["s1", "s2"];

/// A collection as one node has it: its UUID, and which definition made it.
pub(crate) type Made = (Uuid, Timestamp);

/// What refuses, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Mood {
    #[default]
    Willing,
    /// This shard will not have it so.
    CheckFails,
    IsThereAlready,
    /// The second shard says no, always or from its second command on.
    ShardRefuses,
    ShardRefusesTheSecond,
    /// The second shard says no to its first command.
    ShardRefusesTheFirst,
    ConfigRefuses,
    /// The config servers do it and say that no majority has it.
    ConfigCommitsAndComplains,
    /// This node will not drop it.
    NodeRefuses,
}

#[derive(Default)]
pub(crate) struct Model {
    pub(crate) mood: Mood,
    pub(crate) clock: u32,
    /// By namespace, on the config servers.
    pub(crate) entries: BTreeMap<String, Made>,
    pub(crate) fences: BTreeMap<String, Timestamp>,
    /// On the coordinator's own shard.
    pub(crate) here: BTreeMap<String, Made>,
    /// On each of the others.
    pub(crate) there: [BTreeMap<String, Made>; 2],
    pub(crate) numbers: [BTreeMap<String, Timestamp>; 2],
    /// Names of which each of the others has a section.
    pub(crate) blocked: [BTreeSet<String>; 2],
    pub(crate) asked: [u32; 2],
    /// The database's entry: which one of its name it is.
    pub(crate) database: Option<i64>,
    /// The database's primary shard, once it is another one.
    pub(crate) primary: Option<String>,
    /// What is dropped is the database.
    pub(crate) lost: bool,
    /// Its key is the longer one.
    pub(crate) refined: bool,
    /// Whenever something is gone, somebody makes it anew at once.
    pub(crate) eager: bool,
    /// Definitions of this shard, made and unmade: (what was done, calls before it).
    pub(crate) commits: u32,
}

pub(crate) type Shared = Rc<RefCell<Model>>;

pub(crate) fn at(n: u32) -> Timestamp {
    Timestamp::new(n, 1)
}
pub(crate) fn uuid(n: u8) -> Uuid {
    Uuid([n; 16])
}
fn refuse(code: ErrorCode) -> Result<DocBuf> {
    Err(Error::new(code, "the model refuses"))
}
fn too_old() -> Result<DocBuf> {
    refuse(ErrorCode::TransactionTooOld)
}
fn number(body: &RawDoc) -> Option<Timestamp> {
    match body.get("timestamp") {
        Some(Value::Timestamp(at)) => Some(at),
        _ => None,
    }
}
fn its_uuid(body: &RawDoc, name: &str) -> Uuid {
    match body.get(name) {
        Some(Value::Binary { bytes, .. }) => Uuid::from_slice(bytes).expect("a UUID"),
        other => panic!("no UUID: {other:?}"),
    }
}
fn version() -> DocBuf {
    let mut b = DocBuilder::new();
    b.doc("collectionVersion", |d| {
        d.timestamp("v", at(1));
    });
    b.finish()
}

impl Model {
    pub(crate) fn with(mood: Mood) -> Model {
        Model { mood, clock: 100, database: Some(1), ..Model::default() }
    }
    /// A sharded collection everywhere.
    pub(crate) fn sharded(mut self, ns: &str, made: Made) -> Model {
        self.entries.insert(ns.into(), made);
        self.here.insert(ns.into(), made);
        self.there.iter_mut().for_each(|shard| _ = shard.insert(ns.into(), made));
        self
    }
    fn next(&mut self) -> Timestamp {
        self.clock += 1;
        at(self.clock)
    }
    /// The answer to one command.
    pub(crate) fn hear(&mut self, to: &Target, body: &RawDoc) -> Result<DocBuf> {
        let first = body.first().expect("a command");
        match to {
            Target::Own => self.own(first.name(), first.value().as_str().expect("a name"), body),
            Target::ConfigServers => self.config(first.name(), body),
            Target::Shard(name) => {
                let i = SHARDS.iter().position(|s| s == name).expect("a shard");
                self.shard(i, first.name(), body)
            }
            Target::Host(host) | Target::Set(host) => panic!("nobody knows {host}"),
        }
    }

    fn own(&mut self, step: &str, name: &str, body: &RawDoc) -> Result<DocBuf> {
        match step {
            rename_collection::LOOK if self.mood == Mood::CheckFails => refuse(ErrorCode::NamespaceExists),
            rename_collection::LOOK => Ok(self.look_at_rename(name, body)),
            rename_collection::RENAME_HERE if self.mood == Mood::NodeRefuses => {
                refuse(ErrorCode::IllegalOperation)
            }
            rename_collection::RENAME_HERE if body.get("copyUUID").is_some() => {
                let copy = its_uuid(body, "copyUUID");
                if self.here.get(ELSEWHERE).is_none_or(|(there, _)| *there != copy) {
                    let source =
                        self.here.get(name).filter(|(id, _)| *id == its_uuid(body, "collectionUUID"));
                    let (_, made) = *source.expect("a source to copy");
                    self.here.insert(ELSEWHERE.to_owned(), (copy, made));
                }
                Ok(DocBuf::default())
            }
            rename_collection::DROP_SOURCE => {
                let source = its_uuid(body, "collectionUUID");
                if self.here.get(name).is_some_and(|(id, _)| *id == source) {
                    self.here.remove(name);
                }
                Ok(DocBuf::default())
            }
            rename_collection::RENAME_HERE => {
                renamed(&mut self.here, name, its_uuid(body, "collectionUUID"));
                Ok(DocBuf::default())
            }
            create_collection::CHECK if self.mood == Mood::CheckFails => refuse(ErrorCode::InvalidOptions),
            create_collection::CHECK if self.mood == Mood::IsThereAlready => {
                Ok(doc! { "already": { "x": 1 } }.to_raw())
            }
            create_collection::CHECK => Ok(DocBuf::default()),
            create_collection::MAKE => Ok(self.make(name)),
            create_collection::REFRESH | drop_sharded_database::REFRESH => Ok(DocBuf::default()),
            drop_collection::LOOK => Ok(self.look(name)),
            drop_collection::DROP_HERE if self.mood == Mood::NodeRefuses => {
                refuse(ErrorCode::IllegalOperation)
            }
            drop_collection::DROP_HERE => {
                self.here.remove(name);
                Ok(DocBuf::default())
            }
            drop_sharded_database::LOOK => Ok(self.look_at_database()),
            drop_sharded_database::DROP_HERE => {
                self.here.clear();
                Ok(DocBuf::default())
            }
            move_primary::LOOK | move_primary::CLONE | move_primary::DRAIN => self.move_primary(step),
            move_primary::DROP_MOVED | move_primary::LET_GO => {
                // Each drops what is not the database any more.
                self.lost |= (step == move_primary::DROP_MOVED) == self.primary.is_none();
                Ok(DocBuf::default())
            }
            refine_shard_key::LOOK if self.mood == Mood::CheckFails => refuse(ErrorCode::InvalidOptions),
            refine_shard_key::LOOK => Ok(self.look_at_key(name)),
            other => panic!("no step: {other}"),
        }
    }
    fn move_primary(&mut self, step: &str) -> Result<DocBuf> {
        let mut b = DocBuilder::new();
        match (step, self.mood) {
            (move_primary::LOOK, Mood::CheckFails) => return refuse(ErrorCode::ShardNotFound),
            (move_primary::CLONE, Mood::ShardRefuses) => return refuse(ErrorCode::OutOfDiskSpace),
            (move_primary::DRAIN, Mood::ShardRefusesTheSecond) => return refuse(ErrorCode::OutOfDiskSpace),
            (move_primary::LOOK, mood) if mood != Mood::IsThereAlready && self.primary.is_none() => {
                b.doc("version", |d| _ = d.i64("n", self.database.expect("a database")));
                let at = self.next();
                b.timestamp("timestamp", at);
            }
            _ => {}
        }
        Ok(b.finish())
    }
    fn commit_move_primary(&mut self, body: &RawDoc) -> Result<DocBuf> {
        let expected = body.get("expectedDatabaseVersion").and_then(|v| v.as_doc()?.get("n")?.as_i64());
        let to = body.get("to").and_then(|v| v.as_str().map(str::to_owned));
        let moved = expected.map(|n| n + 1);
        let made = self.database == moved && self.primary == to;
        if body.get("giveUp").is_some() {
            if !made && self.database == expected {
                self.database = moved;
            }
            let mut b = DocBuilder::new();
            b.bool("made", made);
            return Ok(b.finish());
        }
        match self.mood {
            _ if made => return Ok(DocBuf::default()),
            Mood::ConfigRefuses => return refuse(ErrorCode::ShardNotFound),
            _ if self.database != expected => return refuse(ErrorCode::ConflictingOperationInProgress),
            _ => (self.database, self.primary) = (moved, to),
        }
        match self.mood {
            Mood::ConfigCommitsAndComplains => refuse(ErrorCode::WriteConcernFailed),
            _ => Ok(DocBuf::default()),
        }
    }
    /// A collection whose key was refined has another generation under the same UUID.
    fn look_at_key(&mut self, ns: &str) -> DocBuf {
        let mut b = DocBuilder::new();
        let there = self.entries.get(ns).map(|(_, at)| *at);
        if let Some(old) = there.filter(|_| self.mood != Mood::IsThereAlready && !self.refined) {
            let now = self.next();
            b.doc("commit", |d| _ = d.timestamp("oldTimestamp", old).timestamp("timestamp", now));
            b.array("shards", |list| SHARDS.iter().for_each(|s| _ = list.str(s)));
        }
        b.finish()
    }
    fn make(&mut self, ns: &str) -> DocBuf {
        let now = self.next();
        let (id, _) = *self.here.entry(ns.into()).or_insert((uuid(7), now));
        let mut b = DocBuilder::new();
        b.doc("collection", |d| {
            d.str("_id", ns).timestamp("timestamp", now).uuid("uuid", &id.0);
        });
        b.array("chunks", |_| {}).doc("options", |_| {}).array("indexes", |_| {});
        b.array("shards", |list| SHARDS.iter().for_each(|s| _ = list.str(s)));
        b.finish()
    }
    fn look(&mut self, ns: &str) -> DocBuf {
        let mut b = DocBuilder::new();
        if let Some((id, _)) = self.entries.get(ns) {
            b.uuid("collectionUUID", &id.0);
        }
        b.timestamp("timestamp", self.next());
        b.array("shards", |list| SHARDS.iter().for_each(|s| _ = list.str(s)));
        b.finish()
    }
    fn look_at_rename(&mut self, from: &str, body: &RawDoc) -> DocBuf {
        let mut b = DocBuilder::new();
        let source = self.entries.get(from).or(self.here.get(from)).expect("a source");
        b.uuid("collectionUUID", &source.0.0);
        if self.entries.contains_key(from) {
            b.object_id("epoch", ObjectId([5; 12]));
        }
        if let Some((target, _)) = self.entries.get(TO) {
            b.uuid("targetUUID", &target.0);
        }
        let now = self.next();
        if body.get("to").is_some_and(|to| to.as_str() == Some(ELSEWHERE)) {
            // Another one with every look.
            b.uuid("copyUUID", &copy_at(now).0);
        }
        b.timestamp("timestamp", now);
        b.array("shards", |list| SHARDS.iter().for_each(|s| _ = list.str(s)));
        b.finish()
    }
    fn commit_rename(&mut self, body: &RawDoc) -> Result<DocBuf> {
        let now = number(body).expect("a number");
        if self.fences.get(NS).max(self.fences.get(TO)) >= Some(&now) {
            return Ok(DocBuf::default());
        }
        self.entries.remove(TO);
        if body.get("epoch").is_some() {
            let there = self.entries.remove(NS).filter(|(id, _)| *id == its_uuid(body, "collectionUUID"));
            let Some((id, _)) = there else { return refuse(ErrorCode::NamespaceNotFound) };
            self.entries.insert(TO.into(), (id, now));
        }
        self.fences.insert(NS.into(), now);
        self.fences.insert(TO.into(), now);
        match self.mood {
            Mood::ConfigCommitsAndComplains => {
                self.mood = Mood::Willing;
                refuse(ErrorCode::WriteConcernFailed)
            }
            _ => Ok(DocBuf::default()),
        }
    }
    /// A shard's part in a rename.
    fn rename_part(&mut self, i: usize, command: &str, body: &RawDoc) -> Result<DocBuf> {
        let over = command == "_shardsvrRenameCollectionParticipantUnblock";
        let mine = number(body).map(|at| if over { Timestamp::new(at.secs(), at.inc() + 1) } else { at });
        let newest = [NS, TO].iter().filter_map(|ns| self.numbers[i].get(*ns)).max().copied();
        if mine.is_some() && newest > mine {
            return too_old();
        }
        for ns in [NS, TO] {
            mine.into_iter().for_each(|at| _ = self.numbers[i].insert(ns.into(), at));
            match over {
                true => _ = self.blocked[i].remove(ns),
                false => _ = self.blocked[i].insert(ns.into()),
            }
        }
        if !over {
            renamed(&mut self.there[i], NS, its_uuid(body, "sourceUUID"));
        }
        Ok(DocBuf::default())
    }
    fn look_at_database(&mut self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.timestamp("timestamp", self.next());
        b.array("shards", |list| SHARDS.iter().for_each(|s| _ = list.str(s)));
        b.array("collections", |list| {
            for (ns, (id, _)) in &self.entries {
                list.doc(|d| _ = d.str("ns", ns).uuid("uuid", &id.0));
            }
        });
        if let Some(generation) = self.database {
            b.doc("version", |d| _ = d.i64("n", generation));
        }
        b.finish()
    }

    fn shard(&mut self, i: usize, command: &str, body: &RawDoc) -> Result<DocBuf> {
        if command == "_flushRoutingTableCacheUpdates" {
            return Ok(DocBuf::default());
        }
        self.asked[i] += 1;
        let refuses = match self.mood {
            Mood::ShardRefuses => true,
            Mood::ShardRefusesTheFirst => self.asked[i] == 1,
            Mood::ShardRefusesTheSecond => self.asked[i] > 1,
            _ => false,
        };
        if refuses && i == 1 {
            return refuse(ErrorCode::NamespaceExists);
        }
        if command.starts_with("_shardsvrRenameCollectionParticipant") {
            return self.rename_part(i, command, body);
        }
        let whole = command == "_shardsvrDropDatabaseParticipant";
        let coll = body.first().and_then(|e| e.value().as_str().map(str::to_owned)).unwrap_or_default();
        let name = if whole { DB.to_owned() } else { format!("{DB}.{coll}") };
        let of = |known: &&String| known.as_str() == DB || **known == name || whole;
        let newest = self.numbers[i].iter().filter(|(known, _)| of(known)).map(|(_, at)| *at).max();
        if number(body).is_some_and(|at| newest > Some(at)) {
            return too_old();
        }
        if let Some(at) = number(body) {
            self.numbers[i].insert(name.clone(), at);
        }
        match command {
            "_shardsvrValidateShardKeyCandidate" => {}
            "_shardsvrCreateCollectionParticipant" => {
                let made = (its_uuid(body, "collectionUUID"), number(body).unwrap_or_default());
                self.there[i].insert(name, made);
            }
            "_shardsvrDropCollectionParticipant" => drop(self.there[i].remove(&name)),
            _ => self.there[i].clear(),
        }
        Ok(DocBuf::default())
    }

    fn config(&mut self, command: &str, body: &RawDoc) -> Result<DocBuf> {
        match command {
            "_configsvrCommitShardCollection" => self.commit_shard(body),
            "_configsvrCommitDropCollection" => {
                let ns = body.first().and_then(|e| e.value().as_str().map(str::to_owned)).expect("a name");
                let made = number(body).is_some() && self.fences.get(&ns) >= number(body).as_ref();
                if !made
                    && self.entries.get(&ns).is_some_and(|(id, _)| *id == its_uuid(body, "collectionUUID"))
                {
                    self.entries.remove(&ns);
                }
                if let Some(at) = number(body).filter(|_| !made) {
                    self.fences.insert(ns, at);
                }
                Ok(DocBuf::default())
            }
            "_configsvrCommitDropDatabase" => {
                let of = body.get("version").and_then(|v| v.as_doc()?.get("n")?.as_i64());
                if self.entries.keys().any(|ns| ns.starts_with("db.")) {
                    return refuse(ErrorCode::IllegalOperation);
                }
                if self.database == of {
                    // Somebody makes it anew at once.
                    self.database = self.eager.then_some(2);
                    if self.eager {
                        self.here.insert("db.new".into(), (uuid(9), at(9999)));
                    }
                }
                Ok(DocBuf::default())
            }
            "_configsvrRenameCollectionMetadata" => self.commit_rename(body),
            "_configsvrCommitMovePrimary" => self.commit_move_primary(body),
            "_configsvrCommitRefineCollectionShardKey" => self.commit_refine(body),
            other => panic!("no command: {other}"),
        }
    }
    fn commit_refine(&mut self, body: &RawDoc) -> Result<DocBuf> {
        let ns = body.first().and_then(|e| e.value().as_str().map(str::to_owned)).expect("a name");
        let now = number(body).expect("a number");
        let old = match body.get("oldTimestamp") {
            Some(Value::Timestamp(at)) => at,
            other => panic!("no generation: {other:?}"),
        };
        let made = self.entries.get(&ns).is_some_and(|(_, at)| *at == now);
        if body.get("giveUp").is_some() {
            if !made {
                let fence = self.fences.entry(ns).or_default();
                *fence = (*fence).max(now);
            }
            let mut b = DocBuilder::new();
            b.bool("made", made);
            return Ok(b.finish());
        }
        if made {
            return Ok(DocBuf::default());
        }
        if self.fences.get(&ns).is_some_and(|fence| *fence >= now) {
            return too_old();
        }
        match self.entries.get_mut(&ns) {
            _ if self.mood == Mood::ConfigRefuses => return refuse(ErrorCode::BadValue),
            Some((_, at)) if *at == old => *at = now,
            _ => return refuse(ErrorCode::StaleEpoch),
        }
        self.refined = true;
        match self.mood {
            Mood::ConfigCommitsAndComplains => refuse(ErrorCode::WriteConcernFailed),
            _ => Ok(DocBuf::default()),
        }
    }
    fn commit_shard(&mut self, body: &RawDoc) -> Result<DocBuf> {
        let entry = body.get("collection").and_then(|v| v.as_doc().map(RawDoc::to_buf)).expect("an entry");
        let ns = entry.get("_id").and_then(|v| v.as_str().map(str::to_owned)).expect("a name");
        let wanted = (its_uuid(&entry, "uuid"), number(&entry).expect("a number"));
        if self.entries.get(&ns) == Some(&wanted) {
            return Ok(version());
        }
        if body.get("giveUp").is_some() {
            let fence = self.fences.entry(ns).or_default();
            *fence = (*fence).max(wanted.1);
            return Ok(DocBuf::default());
        }
        if self.entries.contains_key(&ns) {
            return refuse(ErrorCode::AlreadyInitialized);
        }
        if self.fences.get(&ns).is_some_and(|fence| *fence >= wanted.1) {
            return too_old();
        }
        if self.mood == Mood::ConfigRefuses {
            return refuse(ErrorCode::ShardNotFound);
        }
        self.entries.insert(ns, wanted);
        self.commits += 1;
        match self.mood {
            Mood::ConfigCommitsAndComplains => refuse(ErrorCode::WriteConcernFailed),
            _ => Ok(version()),
        }
    }
}

/// The UUID of a copy that was decided then.
fn copy_at(at: Timestamp) -> Uuid {
    let mut id = [0xc0; 16];
    id[..4].copy_from_slice(&at.secs().to_be_bytes());
    Uuid(id)
}
pub(crate) fn is_copy(id: Uuid) -> bool {
    id.0[4..] == [0xc0; 12]
}
/// What one node has of the two names, once it has renamed.
fn renamed(has: &mut BTreeMap<String, Made>, from: &str, id: Uuid) {
    let is_it = |made: Option<&Made>| made.is_some_and(|(there, _)| *there == id);
    if is_it(has.get(TO)) {
        return;
    }
    has.remove(TO);
    if is_it(has.get(from)) {
        let made = has.remove(from).expect("it is there");
        has.insert(TO.into(), made);
    }
}

pub(crate) fn ns(name: &str) -> Namespace {
    Namespace::parse(name).expect("a name")
}
