//! For each collection and each database what this shard knows of it, and the judgement on what a request believes (SYS-212).

use crate::{OwnedDocuments, ShardIdentity};
use pando_base::{Error, ErrorCode, HashMap, Namespace, Result, Uuid};
use pando_env::sync::Notify;
use pando_routing::check::{self, Access, Section, Verdict};
use pando_routing::stale::{StaleConfig, StaleDatabase};
use pando_routing::{ChunkVersion, DatabaseVersion, KeyRange, Ownership, RoutingTable, ShardId};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// What is known of a collection.
#[derive(Clone, Debug, Default)]
pub enum Known {
    /// Nothing yet: the config servers must be asked.
    #[default]
    Nothing,
    Unsharded,
    Sharded(Arc<OwnedDocuments>),
}

impl Known {
    fn judged(&self) -> check::Known {
        match self {
            Known::Nothing => check::Known::Nothing,
            Known::Unsharded => check::Known::Unsharded,
            Known::Sharded(owned) => {
                let Ownership { table, .. } = owned.ownership();
                check::Known::Sharded(table.shard_version(owned.ownership().shard()))
            }
        }
    }
    /// The version of this shard's part.
    pub fn version(&self) -> Option<ChunkVersion> {
        self.judged().version()
    }
    pub fn table(&self) -> Option<&Arc<RoutingTable>> {
        match self {
            Known::Sharded(owned) => Some(&owned.ownership().table),
            Known::Nothing | Known::Unsharded => None,
        }
    }
}

/// Why a request goes no further.
#[derive(Debug)]
pub struct Refusal {
    /// What its sender is told.
    pub error: Error,
    pub why: Why,
}

/// What the shard does before it tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// It may be this shard that is out of date: it asks the config servers about the collection.
    RefreshCollection(Namespace),
    RefreshDatabase(String),
    /// It waits until a change of ownership is over; of a whole database, where the name has no collection.
    AwaitSection(Namespace),
}

#[derive(Default)]
struct Collection {
    known: Known,
    section: Option<Section>,
    /// A section has ended.
    ended: Notify,
}

/// What is known of a database: its version if this shard is its primary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KnownDatabase {
    /// Here it has its primary shard.
    Here(DatabaseVersion),
    /// Another shard is its primary, or nobody knows it.
    Elsewhere,
}

#[derive(Default)]
struct Database {
    known: Option<KnownDatabase>,
    /// Who goes by its version does not get in.
    section: Option<Section>,
    ended: Notify,
}

/// Whose section a name without a collection stands for.
fn whole_database(of: &Namespace) -> Option<&str> {
    of.coll().is_empty().then(|| of.db())
}

#[derive(Default)]
struct State {
    collections: HashMap<Namespace, Collection>,
    databases: HashMap<String, Database>,
    /// Collections of which somebody asks just now.
    asked: HashMap<Namespace, Asked>,
    /// What readers may still go by, for each collection the newest last.
    given: HashMap<Namespace, Vec<Weak<OwnedDocuments>>>,
}

#[derive(Default)]
struct Asked {
    by: usize,
    /// How often it was forgotten since the first of them asked: what was asked for before is not believed after.
    forgotten: u64,
}

/// Somebody asks the config servers of a collection, and will be believed if it was not forgotten meanwhile.
pub struct Asking<'a> {
    metadata: &'a FilteringMetadata,
    ns: Namespace,
    forgotten: u64,
}

impl Asking<'_> {
    fn still(&self, state: &State) -> bool {
        state.asked.get(&self.ns).is_some_and(|asked| asked.forgotten == self.forgotten)
    }
    /// Whether an answer would be believed.
    pub fn is_current(&self) -> bool {
        self.still(&self.metadata.state())
    }
    /// The config servers have said. False where the collection was forgotten since they were asked: the answer may be of before, and
    /// must be asked for again.
    pub fn install(self, table: Option<Arc<RoutingTable>>) -> bool {
        let Some(known) = self.metadata.known_of(table) else { return true };
        let mut state = self.metadata.state();
        let still = self.still(&state);
        if still {
            state.know(&self.ns, known);
        }
        drop(state);
        still
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut state = self.metadata.state();
        if let Some(asked) = state.asked.get_mut(&self.ns) {
            asked.by -= 1;
            if asked.by == 0 {
                state.asked.remove(&self.ns);
            }
        }
    }
}

/// What a shard knows of who owns what. Empty where the process is no shard yet.
#[derive(Default)]
pub struct FilteringMetadata {
    identity: OnceLock<Arc<ShardIdentity>>,
    state: Mutex<State>,
}

impl FilteringMetadata {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Which shard this is, once it has been told.
    pub fn identity(&self) -> Option<&Arc<ShardIdentity>> {
        self.identity.get()
    }
    /// From now on this set is that shard. It cannot become another one.
    pub fn become_shard(&self, identity: ShardIdentity) {
        let _ = self.identity.set(Arc::new(identity));
    }
    /// The same, or 203 where nobody has said so yet.
    pub fn expect_identity(&self) -> Result<&Arc<ShardIdentity>> {
        self.identity().ok_or_else(|| {
            let text = "Cannot accept sharding commands if sharding state has not been initialized with a \
                        shardIdentity document";
            Error::new(ErrorCode::ShardingStateNotInitialized, text)
        })
    }
    fn shard(&self) -> Result<&ShardId> {
        self.expect_identity().map(|i| &i.shard)
    }

    /// Whether a request that believes `received` of a collection may go on, and which documents it may see (`None`: all). Whoever
    /// reads keeps what is returned, also where this shard owns everything: what moves away is deleted behind him.
    pub fn check(
        &self,
        ns: &Namespace,
        received: ChunkVersion,
        access: Access,
    ) -> Result<Option<Arc<OwnedDocuments>>, Refusal> {
        let collection = |why: fn(Namespace) -> Why, error| Refusal { error, why: why(ns.clone()) };
        let shard = self.shard().map_err(|error| collection(Why::RefreshCollection, error))?;
        if is_never_sharded(ns) && received.is_unsharded() {
            return Ok(None);
        }
        let state = self.state();
        let found = state.collections.get(ns);
        let (known, section) = found.map_or((&Known::Nothing, None), |c| (&c.known, c.section));
        let told =
            |wanted| StaleConfig { ns: ns.to_string(), received, wanted, shard: shard.clone() }.into_error();
        match check::judge(Some(received), known.judged(), section, access) {
            Verdict::Go => match known {
                Known::Sharded(owned) if !received.is_ignored() => Ok(Some(owned.clone())),
                _ => Ok(None),
            },
            Verdict::InSection => Err(collection(Why::AwaitSection, told(None))),
            Verdict::NotKnown => Err(collection(Why::RefreshCollection, told(None))),
            Verdict::Mismatch { wanted } => Err(collection(Why::RefreshCollection, told(Some(wanted)))),
        }
    }

    /// Whether something of that name may come into being: nothing does while writers are kept from it, whoever owns it.
    pub fn check_section(&self, ns: &Namespace) -> Result<(), Refusal> {
        let why = Why::AwaitSection(ns.clone());
        let refused = |error| Refusal { error, why: why.clone() };
        let shard = self.shard().map_err(refused)?;
        if self.section(ns).is_none_or(|section| !section.blocks(Access::Write)) {
            return Ok(());
        }
        let received = ChunkVersion::UNSHARDED;
        let told = StaleConfig { ns: ns.to_string(), received, wanted: None, shard: shard.clone() };
        Err(refused(told.into_error()))
    }

    /// Whether a request that believes `received` of a database may go on: its primary shard has the collections that are not
    /// sharded.
    pub fn check_database(&self, db: &str, received: DatabaseVersion, access: Access) -> Result<(), Refusal> {
        let refused = |error| Refusal { error, why: Why::RefreshDatabase(db.to_owned()) };
        self.shard().map_err(refused)?;
        let (known, section) = self.state().databases.get(db).map_or((None, None), |d| (d.known, d.section));
        let told = |wanted| StaleDatabase { db: db.to_owned(), received, wanted }.into_error();
        if section.is_some_and(|section| section.blocks(access)) {
            let why = Why::AwaitSection(Namespace::unchecked(db, ""));
            return Err(Refusal { error: told(None), why });
        }
        match known {
            Some(KnownDatabase::Here(version)) if version.order(received).is_eq() => Ok(()),
            Some(KnownDatabase::Here(version)) => Err(refused(told(Some(version)))),
            Some(KnownDatabase::Elsewhere) | None => Err(refused(told(None))),
        }
    }

    /// What is known of a collection.
    pub fn known(&self, ns: &Namespace) -> Known {
        self.state().collections.get(ns).map_or(Known::Nothing, |c| c.known.clone())
    }
    pub fn known_database(&self, db: &str) -> Option<KnownDatabase> {
        self.state().databases.get(db).and_then(|d| d.known)
    }
    /// The config servers have said: `None` is not sharded.
    pub fn install(&self, ns: &Namespace, table: Option<Arc<RoutingTable>>) {
        let Some(known) = self.known_of(table) else { return };
        self.state().know(ns, known);
    }
    fn known_of(&self, table: Option<Arc<RoutingTable>>) -> Option<Known> {
        let shard = self.shard().ok()?;
        Some(match table {
            None => Known::Unsharded,
            Some(table) => {
                Known::Sharded(Arc::new(OwnedDocuments::new(Ownership::new(table, shard.clone()))))
            }
        })
    }
    /// Before the config servers are asked.
    pub fn ask(&self, ns: &Namespace) -> Asking<'_> {
        let mut state = self.state();
        let asked = state.asked.entry(ns.clone()).or_default();
        asked.by += 1;
        Asking { metadata: self, ns: ns.clone(), forgotten: asked.forgotten }
    }
    /// Whether somebody still reads a collection who believes that this shard owns something of `range`, by what was known before.
    pub fn is_read_as_of_before(&self, ns: &Namespace, uuid: Uuid, range: &KeyRange) -> bool {
        let state = self.state();
        let now = match state.collections.get(ns).map(|c| &c.known) {
            Some(Known::Sharded(owned)) => Some(Arc::as_ptr(owned)),
            _ => None,
        };
        let given = state.given.get(ns).into_iter().flatten().filter_map(Weak::upgrade);
        let before = given.filter(|owned| Some(Arc::as_ptr(owned)) != now);
        before.filter(|owned| is_of(owned, uuid)).any(|owned| owned.owns_of(range))
    }
    /// A range of a collection, whatever it is called by now, is being deleted by this set's primary, which knows of its own readers only: who reads here
    /// as if this shard owned it may read no further.
    pub fn outlive(&self, uuid: Uuid, range: &KeyRange) {
        let mut state = self.state();
        let given = state.given.values().flatten().filter_map(Weak::upgrade);
        for owned in given.filter(|owned| is_of(owned, uuid) && owned.owns_of(range)) {
            owned.outlive();
        }
        for c in state.collections.values_mut() {
            if matches!(&c.known, Known::Sharded(owned) if owned.is_outlived()) {
                c.known = Known::Nothing;
            }
        }
    }
    pub fn install_database(&self, db: &str, known: KnownDatabase) {
        self.state().databases.entry(db.to_owned()).or_default().known = Some(known);
    }
    /// Nothing is known of it any more.
    pub fn forget(&self, ns: &Namespace) {
        let mut state = self.state();
        state.asked.get_mut(ns).into_iter().for_each(|asked| asked.forgotten += 1);
        match state.collections.get_mut(ns) {
            Some(c) if c.section.is_some() => c.known = Known::Nothing,
            _ => drop(state.collections.remove(ns)),
        }
    }
    /// The same of all collections and databases. Sections stay.
    pub fn forget_all(&self) {
        let mut state = self.state();
        state.asked.values_mut().for_each(|asked| asked.forgotten += 1);
        state.databases.retain(|_, d| d.section.is_some());
        state.databases.values_mut().for_each(|d| d.known = None);
        state.given.retain(|_, given| given.iter().any(|g| g.strong_count() > 0));
        state.collections.retain(|_, c| c.section.is_some());
        state.collections.values_mut().for_each(|c| c.known = Known::Nothing);
    }
    pub fn forget_database(&self, db: &str) {
        let mut state = self.state();
        match state.databases.get_mut(db) {
            Some(d) if d.section.is_some() => d.known = None,
            _ => drop(state.databases.remove(db)),
        }
    }
    /// Versions of this shard's parts of sharded collections, in the order of their names.
    pub fn versions(&self) -> Vec<(Namespace, ChunkVersion)> {
        let state = self.state();
        let sharded = state.collections.iter().filter(|(_, c)| matches!(c.known, Known::Sharded(_)));
        let mut all: Vec<_> = sharded.filter_map(|(ns, c)| Some((ns.clone(), c.known.version()?))).collect();
        all.sort_by(|a, b| a.0.as_str().cmp(b.0.as_str()));
        all
    }
    /// How many collections something is known of.
    pub fn collections(&self) -> usize {
        self.state().collections.len()
    }

    /// Ownership of a collection is about to change, or that of a database. So of all that follows: a name without a collection stands
    /// for the database.
    pub fn enter(&self, of: &Namespace, section: Section) {
        self.state().enter(of, section);
    }
    /// These are the sections that there are, and there is no other.
    pub fn sections_are(&self, all: &[(Namespace, Section)]) {
        let mut state = self.state();
        for c in state.collections.values_mut().filter(|c| c.section.is_some()) {
            c.section = None;
            c.ended.bump();
        }
        for d in state.databases.values_mut().filter(|d| d.section.is_some()) {
            d.section = None;
            d.ended.bump();
        }
        all.iter().for_each(|(of, section)| state.enter(of, *section));
    }
    /// Whether somebody is kept from the collection.
    pub fn section(&self, ns: &Namespace) -> Option<Section> {
        self.state().collections.get(ns).and_then(|c| c.section)
    }
    /// It has changed, or has not.
    pub fn leave(&self, ns: &Namespace) {
        let mut state = self.state();
        if let Some(d) = whole_database(ns).and_then(|db| state.databases.get_mut(db)) {
            d.section = None;
            d.ended.bump();
        }
        if let Some(c) = state.collections.get_mut(ns) {
            c.section = None;
            c.ended.bump();
        }
    }
    /// Returns when no section keeps anybody from it.
    pub async fn section_ended(&self, of: &Namespace) {
        let under_way = || self.state().under_way(of).map(|ended| (ended.clone(), ended.version()));
        while let Some((ended, seen)) = under_way() {
            ended.changed(seen).await;
        }
    }
}

impl State {
    fn drop_unread(&mut self, ns: &Namespace) {
        if self.given.get(ns).is_some_and(|given| given.iter().all(|g| g.strong_count() == 0)) {
            self.given.remove(ns);
        }
    }
    fn know(&mut self, ns: &Namespace, known: Known) {
        if let Known::Sharded(owned) = &known {
            let given = self.given.entry(ns.clone()).or_default();
            given.retain(|g| g.strong_count() > 0);
            given.push(Arc::downgrade(owned));
        } else {
            self.drop_unread(ns);
        }
        self.collections.entry(ns.clone()).or_default().known = known;
    }
    fn enter(&mut self, of: &Namespace, section: Section) {
        match whole_database(of) {
            Some(db) => self.databases.entry(db.to_owned()).or_default().section = Some(section),
            None => self.collections.entry(of.clone()).or_default().section = Some(section),
        }
    }
    /// What tells of the end of a section that keeps somebody out.
    fn under_way(&self, of: &Namespace) -> Option<&Notify> {
        match whole_database(of) {
            Some(db) => self.databases.get(db).filter(|d| d.section.is_some()).map(|d| &d.ended),
            None => self.collections.get(of).filter(|c| c.section.is_some()).map(|c| &c.ended),
        }
    }
}

fn is_of(owned: &OwnedDocuments, uuid: Uuid) -> bool {
    owned.ownership().table.collection.uuid == uuid
}

/// Collections of the server's own belong to their shard, but for the sessions.
fn is_never_sharded(ns: &Namespace) -> bool {
    matches!(ns.db(), "admin" | "local")
        || (ns.db() == "config" && ns.coll() != "system.sessions")
        // What `$out` fills.
        || ns.coll().starts_with("tmp.agg_out.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::ObjectId;
    use pando_metadata_cache::testing::table;
    use pando_routing::{Chunk, Placement};

    fn shard() -> FilteringMetadata {
        let metadata = FilteringMetadata::default();
        metadata.become_shard(ShardIdentity {
            shard: ShardId::new("a"),
            cluster: ObjectId([1; 12]),
            config_set: "c".to_owned(),
            config_hosts: vec!["h:1".to_owned()],
        });
        metadata
    }

    /// Who asked before a definition was made hears of it late: what he was told is of before.
    #[test]
    fn an_answer_that_was_asked_for_before_something_was_forgotten_is_not_believed() {
        let (metadata, ns) = (shard(), Namespace::parse("d.c").unwrap());
        let ask = || metadata.check(&ns, ChunkVersion::UNSHARDED, Access::Write);
        let asking = metadata.ask(&ns);
        metadata.enter(&ns, Section::BlocksAll);
        metadata.forget(&ns);
        metadata.leave(&ns);
        assert!(!asking.is_current() && !asking.install(None));
        assert_eq!(ask().unwrap_err().why, Why::RefreshCollection(ns.clone()));
        // Another collection is nobody's business.
        let asking = metadata.ask(&ns);
        metadata.forget(&Namespace::parse("d.other").unwrap());
        assert!(asking.is_current() && asking.install(None));
        assert!(ask().unwrap().is_none());
        let asking = metadata.ask(&ns);
        metadata.forget_all();
        assert!(!asking.install(None) && metadata.state().asked.is_empty());
    }

    #[test]
    fn the_sections_that_are_read_are_all_there_are() {
        let (metadata, c, d) = (shard(), Namespace::parse("d.c").unwrap(), Namespace::parse("d.d").unwrap());
        metadata.enter(&c, Section::BlocksAll);
        metadata.sections_are(&[(d.clone(), Section::BlocksWrites)]);
        assert_eq!((metadata.section(&c), metadata.section(&d)), (None, Some(Section::BlocksWrites)));
        let read = metadata.check(&d, ChunkVersion::UNSHARDED, Access::Read).unwrap_err();
        assert_eq!(read.why, Why::RefreshCollection(d.clone()));
        let write = metadata.check(&d, ChunkVersion::UNSHARDED, Access::Write).unwrap_err();
        assert_eq!(write.why, Why::AwaitSection(d));
    }

    #[test]
    fn nobody_who_goes_by_a_databases_version_gets_into_its_section() {
        let (metadata, version) = (shard(), DatabaseVersion::FIXED);
        let ask = || metadata.check_database("d", version, Access::Read);
        let whole = Namespace::unchecked("d", "");
        metadata.install_database("d", KnownDatabase::Here(version));
        assert!(ask().is_ok());
        metadata.enter(&whole, Section::BlocksWrites);
        assert!(ask().is_ok());
        let write = metadata.check_database("d", version, Access::Write);
        assert_eq!(write.unwrap_err().why, Why::AwaitSection(whole.clone()));
        metadata.enter(&whole, Section::BlocksAll);
        assert_eq!(ask().unwrap_err().why, Why::AwaitSection(whole.clone()));
        assert!(
            metadata.check_database("e", version, Access::Write).unwrap_err().why
                == Why::RefreshDatabase("e".to_owned())
        );
        // It outlives what is known.
        metadata.forget_all();
        metadata.forget_database("d");
        assert_eq!(ask().unwrap_err().why, Why::AwaitSection(whole.clone()));
        metadata.leave(&whole);
        assert_eq!(ask().unwrap_err().why, Why::RefreshDatabase("d".to_owned()));
        metadata.sections_are(&[(whole.clone(), Section::BlocksAll)]);
        assert_eq!(ask().unwrap_err().why, Why::AwaitSection(whole));
        metadata.sections_are(&[]);
        assert_eq!(ask().unwrap_err().why, Why::RefreshDatabase("d".to_owned()));
    }

    #[test]
    fn what_was_known_before_is_believed_by_nobody_once_it_is_forgotten() {
        let (metadata, ns) = (shard(), Namespace::parse("d.c").unwrap());
        let ask = || metadata.check(&ns, ChunkVersion::UNSHARDED, Access::Write);
        assert_eq!(ask().unwrap_err().why, Why::RefreshCollection(ns.clone()));
        metadata.install(&ns, None);
        metadata.install_database("d", KnownDatabase::Elsewhere);
        assert!(ask().unwrap().is_none());
        metadata.forget_all();
        assert_eq!(ask().unwrap_err().why, Why::RefreshCollection(ns.clone()));
        assert_eq!(metadata.known_database("d"), None);
        // A section outlives what is known.
        metadata.install(&ns, None);
        metadata.enter(&ns, Section::BlocksAll);
        metadata.forget_all();
        assert_eq!(ask().unwrap_err().why, Why::AwaitSection(ns.clone()));
        metadata.forget(&ns);
        metadata.leave(&ns);
        assert_eq!(ask().unwrap_err().why, Why::RefreshCollection(ns.clone()));
    }

    #[test]
    fn what_a_cursor_goes_by_lives_as_long_as_the_cursor() {
        let (metadata, ns) = (shard(), Namespace::parse("d.c").unwrap());
        let version = |table: &RoutingTable| table.shard_version(&ShardId::new("a"));
        let old = table(&[("a", None), ("b", Some(0)), ("a", Some(9))]);
        let mut moved: Vec<Chunk> = old.chunks.iter().skip(1).map(|c| c.to_chunk()).collect();
        for (chunk, minor) in moved.iter_mut().zip(0..) {
            chunk.placement = Placement::new(2, minor);
        }
        moved[0].shard = ShardId::new("a");
        moved[1].shard = ShardId::new("b");
        let new = Arc::new(old.advanced(old.collection.clone(), &moved).unwrap());
        metadata.install(&ns, Some(old.clone()));
        let cursor = metadata.check(&ns, version(&old), Access::Read).unwrap().expect("a part is owned");
        let known = Arc::downgrade(&cursor);
        metadata.install(&ns, Some(new.clone()));
        // It goes on by what it began with, whoever comes now goes by the new one.
        assert_eq!(cursor.ownership().table.version(), old.version());
        assert!(metadata.check(&ns, version(&old), Access::Read).is_err());
        assert!(metadata.check(&ns, version(&new), Access::Read).unwrap().is_some());
        drop(cursor);
        assert_eq!(known.strong_count(), 0);
    }
}
