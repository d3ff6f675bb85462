//! createIndexes and dropIndexes.

use crate::Catalog;
use crate::build::slots::Slot;
use crate::ddl::conflict::{self, Verdict};
use crate::schema::collection::{Collection, Index, KeyFormat};
use crate::schema::durable::{self, Parts};
use crate::schema::names;
use crate::schema::options::CollectionOptions;
use crate::schema::snapshot::Named;
use crate::write::interrupt::Interrupt;
use crate::write::observer::Defined;
use crate::write::unit::WriteUnit;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, Uuid, limits};
use pando_bson::{RawDoc, doc};
use pando_index::{IndexSpec, Requested, same_key};
use pando_query::source::IndexKind;
use pando_storage::{Dir, IdentKind, ReadAt};
use std::ops::Bound;
use std::sync::Arc;

/// What `createIndexes` tells.
#[derive(Clone, Debug, Default)]
pub struct IndexesCreated {
    pub before: usize,
    pub after: usize,
    pub created_collection: bool,
    pub note: Option<&'static str>,
    /// [`OpTime::NULL`] when nothing had to be done.
    pub last: OpTime,
}

/// Which indexes `dropIndexes` is about.
#[derive(Clone, Copy, Debug)]
pub enum DropWhich<'a> {
    /// `"*"`: all but `_id_`.
    All,
    Name(&'a str),
    Names(&'a [&'a str]),
    Key(&'a RawDoc),
}

/// What `dropIndexes` tells.
#[derive(Clone, Debug, Default)]
pub struct IndexesDropped {
    pub were: usize,
    pub msg: Option<&'static str>,
    pub last: OpTime,
}

/// The specifications of one command after parsing.
pub(crate) struct Wanted {
    pub(crate) specs: Vec<IndexSpec>,
    /// How many named the clustered index, which is there by definition.
    clustered: usize,
}

pub(crate) fn parse_all(raw: &[&RawDoc], coll: Option<&Collection>) -> Result<Wanted> {
    let default = coll.and_then(|c| c.options.collation.as_deref());
    let mut wanted = Wanted { specs: Vec::with_capacity(raw.len()), clustered: 0 };
    for requested in IndexSpec::parse_all(raw, default)? {
        match requested {
            Requested::Index(spec) => {
                if let Some(filter) = &spec.partial {
                    let ctx = pando_query::QueryCtx::default();
                    pando_query::matcher::Matcher::parse(filter, &ctx)
                        .map_err(|e| e.context(format_args!("Error in specification {}", spec.doc)))?;
                }
                if spec.expire_after_seconds.is_some() && coll.is_some_and(Collection::is_capped) {
                    let text = "Cannot create TTL index on a capped collection";
                    return Err(Error::new(ErrorCode::CannotCreateIndex, text));
                }
                wanted.specs.push(*spec);
            }
            Requested::Clustered { .. } if coll.is_some_and(|c| c.is_clustered()) => wanted.clustered += 1,
            Requested::Clustered { .. } if coll.is_none() => {
                return Err(Error::location(
                    6_100_900,
                    "Cannot implicitly create a new collection with createIndex 'clustered' option",
                ));
            }
            Requested::Clustered { spec } => {
                return Err(Error::location(
                    6_243_700,
                    format!(
                        "Error in specification {spec} :: caused by :: Cannot create index with option 'clustered' \
                         that does not match an existing clustered index"
                    ),
                ));
            }
        }
    }
    Ok(wanted)
}

pub(crate) fn check_kinds<'a>(specs: impl IntoIterator<Item = &'a IndexSpec>) -> Result<()> {
    specs.into_iter().try_for_each(IndexSpec::check_kind)
}

/// What MongoDB puts around an error that the index kind finds.
fn at_start(e: Error, coll: &Collection, build: Uuid, specs: &[IndexSpec]) -> Error {
    let first = specs.first().map_or_else(String::new, |s| s.doc.to_string());
    e.context(format_args!(
        "Caught exception during index builder ({build}) initialization on namespace{} ({}). {} index specs \
         provided. First index spec: {first}",
        coll.ns,
        coll.uuid,
        specs.len()
    ))
}

impl Catalog {
    /// Creates indexes (and the collection, if there is none), and returns when they are ready.
    pub async fn create_indexes(
        &self,
        ns: &Namespace,
        specs: &[&RawDoc],
        interrupt: &dyn Interrupt,
    ) -> Result<IndexesCreated> {
        let quorum = doc! { "commitQuorum": "votingMembers" }.to_raw();
        self.create_indexes_with(ns, specs, &quorum, interrupt).await
    }
    /// The same, ready when so many members have them (`{commitQuorum}`).
    pub async fn create_indexes_with(
        &self,
        ns: &Namespace,
        specs: &[&RawDoc],
        quorum: &RawDoc,
        interrupt: &dyn Interrupt,
    ) -> Result<IndexesCreated> {
        if crate::schema::names::is_table_name(ns) {
            return Err(Error::new(
                ErrorCode::IllegalOperation,
                format!("not allowed to create index on {ns}"),
            ));
        }
        names::check_writable(ns)?;
        if specs.is_empty() {
            return Err(Error::bad_value("Must specify at least one index to create"));
        }
        let mut created_collection = false;
        loop {
            let db = self.unless_interrupted(interrupt, self.lock_database(ns.db())).await?;
            if let Some(view) = self.lookup_view(ns) {
                return Err(crate::catalog::is_a_view(&view));
            }
            let Some(seen) = self.lookup(ns) else {
                // Everything that can be checked beforehand is, so that a refused index leaves no collection.
                let wanted = parse_all(specs, None)?;
                conflict::among(&wanted.specs, false)?;
                check_kinds(&wanted.specs)?;
                self.create_collection_locked(ns, CollectionOptions::default())?;
                created_collection = true;
                continue;
            };
            let wanted = parse_all(specs, Some(&seen))?;
            if let Some(unchanged) = all_there(&wanted, &seen)? {
                return Ok(IndexesCreated { created_collection, ..unchanged });
            }
            let locked = self.unless_interrupted(interrupt, self.ddl_lock(ns)).await?;
            let Some(guard) = locked else { continue };
            // It has waited for the locks, and may be elsewhere by now.
            self.check_may_come(ns)?;
            let coll = guard.coll.clone();
            let mut new = Vec::new();
            let mut someone_builds = false;
            for spec in &wanted.specs {
                match conflict::with_collection(spec, &coll)? {
                    Verdict::New => new.push(spec),
                    Verdict::Exists => {}
                    Verdict::Building => someone_builds = true,
                }
            }
            if someone_builds {
                drop((guard, db));
                self.wait_for_builds(&coll, interrupt).await?;
                continue;
            }
            let builds = coll.replicated && !self.is_empty_collection(&coll)?;
            let slot = if builds { self.0.builds.slots.take() } else { None };
            if builds && slot.is_none() {
                drop((guard, db));
                self.0.builds.slots.wait(self.env(), interrupt).await?;
                continue;
            }
            let before = coll.index_count();
            let note = (new.len() < specs.len()).then_some("index already exists");
            let new: Vec<IndexSpec> = new.into_iter().cloned().collect();
            let last = self.add_indexes(coll, new, quorum, (guard, db), slot, interrupt).await?;
            let after = self.lookup(ns).map_or(before, |c| c.index_count());
            return Ok(IndexesCreated { before, after, created_collection, note, last });
        }
    }

    async fn add_indexes(
        &self,
        coll: Arc<Collection>,
        new: Vec<IndexSpec>,
        quorum: &RawDoc,
        locks: (crate::catalog::DdlGuard, crate::lock::Guard),
        slot: Option<Slot>,
        interrupt: &dyn Interrupt,
    ) -> Result<OpTime> {
        let refs: Vec<&IndexSpec> = new.iter().collect();
        let uuid = self.new_uuid();
        let failed = |e: Error| {
            e.context(format_args!("Index build failed: {uuid}: Collection {} ( {} )", coll.ns, coll.uuid))
        };
        conflict::check_count(&coll.ns, coll.indexes.len(), &refs)?;
        // Without a slot there is nothing to build: an empty collection, or one that is not replicated.
        if slot.is_none() && self.is_empty_collection(&coll)? {
            conflict::among(&new, false)?;
            let places = |s: &IndexSpec| matches!(s.kind, IndexKind::Geo2d | IndexKind::Geo2dSphere);
            check_kinds(&new).map_err(|e| match new.iter().any(places) {
                true => failed(e.context(format_args!("index build on empty collection failed: {uuid}"))),
                false => e,
            })?;
            return self.create_on_empty(&coll, new);
        }
        conflict::among(&new, true).map_err(failed)?;
        check_kinds(&new).map_err(|e| failed(at_start(e, &coll, uuid, &new)))?;
        let Some(slot) = slot else {
            return self.build_in_place(&coll, &new, None).map_err(failed);
        };
        let build = self.start_build(&coll, new, uuid, quorum, slot)?;
        drop(locks);
        self.run_build(build, interrupt).await.map_err(failed)
    }

    pub(crate) fn is_empty_collection(&self, coll: &Collection) -> Result<bool> {
        // Not a unit of work: a rollback replays the log behind a closed gate.
        let storage = self.storage();
        let txn = match (coll.replicated, storage.is_replaying()) {
            (false, _) => storage.begin_local()?,
            (true, true) => storage.begin(ReadAt::Applied)?,
            (true, false) => storage.begin(ReadAt::Latest)?,
        };
        let mut c = txn.scan(coll.records, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
        Ok(c.next()?.is_none())
    }

    pub(super) fn create_on_empty(&self, coll: &Arc<Collection>, specs: Vec<IndexSpec>) -> Result<OpTime> {
        let mut unit = self.begin_write(coll)?;
        let mut current = coll.clone();
        for spec in specs {
            unit.stamp();
            current = self.with_new_index(&unit, &current, spec.clone())?;
            durable::put_row(&mut unit.txn, &current, [].iter())?;
            unit.observe(&Defined::IndexCreated { coll: &current, spec: &spec })?;
        }
        let last = unit.commit()?;
        self.publish(|s| s.put(Named::Collection(current)));
        Ok(last)
    }

    pub(crate) fn format_for(&self, spec: &IndexSpec) -> KeyFormat {
        if self.is_copying() && !spec.is_id_index() { KeyFormat::WithRid } else { format_of(spec) }
    }
    /// A version of the collection with one more ready, empty index.
    pub(crate) fn with_new_index(
        &self,
        unit: &WriteUnit,
        coll: &Collection,
        spec: IndexSpec,
    ) -> Result<Arc<Collection>> {
        let ident = self.storage().create_ident(IdentKind::Index)?;
        let index =
            durable::new_index(spec.clone(), ident, self.format_for(&spec), unit.ts(), self.now_ms())?;
        let mut parts = Parts::of(coll);
        parts.indexes.push(Arc::new(index));
        parts.assemble()
    }

    /// Drops indexes by name, key pattern or all of them.
    pub async fn drop_indexes(&self, ns: &Namespace, which: DropWhich<'_>) -> Result<IndexesDropped> {
        if ns.coll() == "system.views" {
            return Err(Error::location(51_070, "Modifications to system.views must take an exclusive lock"));
        }
        let _db = self.lock_database(ns.db()).await;
        if let Some(view) = self.lookup_view(ns) {
            return Err(crate::catalog::is_a_view(&view));
        }
        let coll = self
            .lookup(ns)
            .ok_or_else(|| Error::new(ErrorCode::NamespaceNotFound, format!("ns not found {ns}")))?;
        let names = chosen(&coll, which)?;
        let building = coll.building_indexes().iter().any(|i| names.contains(&i.spec.name));
        if building {
            self.abort_builds(ns, "dropIndexes command").await?;
        }
        let Some(guard) = self.ddl_lock(ns).await else {
            return Err(Error::new(ErrorCode::NamespaceNotFound, format!("ns not found {ns}")));
        };
        let coll = guard.coll.clone();
        let were = coll.index_count();
        let msg =
            matches!(which, DropWhich::All).then_some(if coll.is_clustered() || coll.id_index().is_some() {
                "non-_id indexes dropped for collection"
            } else {
                "all indexes dropped for collection"
            });
        let last = self.drop_named(&coll, &names)?;
        Ok(IndexesDropped { were, msg, last })
    }

    pub(super) fn drop_named(&self, coll: &Arc<Collection>, names: &[String]) -> Result<OpTime> {
        let gone: Vec<Arc<Index>> =
            coll.indexes.iter().filter(|i| names.contains(&i.spec.name)).cloned().collect();
        if gone.is_empty() {
            return Ok(OpTime::NULL);
        }
        let mut unit = self.begin_write(coll)?;
        let mut current = coll.clone();
        for index in &gone {
            unit.stamp();
            current = without_index(&current, |i| i.spec.name == index.spec.name)?;
            durable::put_row(&mut unit.txn, &current, [].iter())?;
            unit.observe(&Defined::IndexDropped { coll, spec: &index.spec })?;
        }
        let last = unit.commit()?;
        self.publish(|s| s.put(Named::Collection(current)));
        gone.iter().for_each(|i| self.drop_index_rows(i, last.ts));
        Ok(last)
    }

    /// Removes indexes as a log entry says.
    pub(crate) fn apply_remove_indexes(
        &self,
        e: &pando_oplog::EntryView<'_>,
        named: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let Some(coll) = e.ui.and_then(|u| self.lookup_uuid(u)) else { return Ok(()) };
        let gone: Vec<Arc<Index>> = coll.indexes.iter().filter(|i| named(&i.spec.name)).cloned().collect();
        if gone.is_empty() {
            return Ok(());
        }
        let mut parts = Parts::of(&coll);
        parts.indexes.retain(|i| !named(&i.spec.name));
        self.apply_parts(e.ts, parts)?;
        gone.iter().for_each(|i| self.drop_index_rows(i, e.ts));
        Ok(())
    }

    /// Makes indexes as a log entry says, over what the collection holds at that point.
    pub(crate) fn apply_new_indexes(
        &self,
        e: &pando_oplog::EntryView<'_>,
        specs: &[IndexSpec],
    ) -> Result<()> {
        let Some(coll) = e.ui.and_then(|u| self.lookup_uuid(u)) else { return Ok(()) };
        let missing: Vec<IndexSpec> = specs
            .iter()
            .filter(|s| self.makes_indexes() || s.is_id_index())
            .filter(|s| !coll.index(&s.name).is_some_and(|i| i.is_ready()))
            .cloned()
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let replaying = self.storage().is_replaying();
        // A few entries fit into one unit; the rows of a replay may be ahead of this entry.
        let large = coll.count() > limits::INDEX_BUILD_STEP_DOCS as u64
            || coll.data_bytes() > limits::INDEX_BUILD_IN_PLACE_BYTES_MAX;
        if large || (replaying && !self.is_empty_collection(&coll)?) {
            self.rebuild_later(&coll, &missing, e.ts)?;
            return if replaying { Ok(()) } else { self.finish_rebuilds(e.ts) };
        }
        // What the build had so far is dropped: it starts over, here and at once.
        let unfinished: Vec<Arc<Index>> = coll
            .building_indexes()
            .iter()
            .filter(|i| missing.iter().any(|s| s.name == i.spec.name))
            .cloned()
            .collect();
        let coll = without_index(&coll, |i| unfinished.iter().any(|u| u.spec.name == i.spec.name))?;
        self.build_in_place(&coll, &missing, Some(e.ts))?;
        unfinished.iter().for_each(|i| self.drop_index_rows(i, e.ts));
        Ok(())
    }
}

/// Unique keys stand alone; all others carry their record id.
pub(crate) fn format_of(spec: &IndexSpec) -> KeyFormat {
    if spec.unique || spec.is_id_index() { KeyFormat::Bare } else { KeyFormat::WithRid }
}

pub(crate) fn without_index(coll: &Collection, gone: impl Fn(&Index) -> bool) -> Result<Arc<Collection>> {
    let mut parts = Parts::of(coll);
    parts.indexes.retain(|i| !gone(i));
    parts.assemble()
}

/// The answer when every wanted index is ready already.
pub(crate) fn all_there(wanted: &Wanted, coll: &Collection) -> Result<Option<IndexesCreated>> {
    for spec in &wanted.specs {
        if conflict::with_collection(spec, coll)? != Verdict::Exists {
            return Ok(None);
        }
    }
    let n = coll.index_count();
    let note = Some("all indexes already exist");
    Ok(Some(IndexesCreated { before: n, after: n, note, ..IndexesCreated::default() }))
}

fn index_not_found(message: String) -> Error {
    Error::new(ErrorCode::IndexNotFound, message)
}

fn cannot_drop_id() -> Error {
    Error::new(ErrorCode::InvalidOptions, "cannot drop _id index")
}

/// Names of the indexes to drop.
fn chosen(coll: &Collection, which: DropWhich<'_>) -> Result<Vec<String>> {
    let clustered = |name: &str| coll.options.clustered.as_ref().is_some_and(|c| c.name == name);
    let one = |name: &str| -> Result<String> {
        if clustered(name) {
            return Err(Error::location(5_979_800, "It is illegal to drop the clusteredIndex"));
        }
        match coll.index(name) {
            Some(i) if i.spec.is_id_index() => Err(cannot_drop_id()),
            Some(i) => Ok(i.spec.name.clone()),
            None => Err(index_not_found(format!("index not found with name [{name}]"))),
        }
    };
    match which {
        DropWhich::All | DropWhich::Name("*") => {
            Ok(coll.indexes.iter().filter(|i| !i.spec.is_id_index()).map(|i| i.spec.name.clone()).collect())
        }
        DropWhich::Name(name) => Ok(vec![one(name)?]),
        DropWhich::Names(names) => {
            let mut chosen: Vec<String> = Vec::with_capacity(names.len());
            for n in names {
                // Named before: it is gone already.
                if chosen.iter().any(|c| c == n) {
                    return Err(index_not_found(format!("index not found with name [{n}]")));
                }
                chosen.push(one(n)?);
            }
            Ok(chosen)
        }
        DropWhich::Key(key) => {
            let found: Vec<&Arc<Index>> =
                coll.indexes.iter().filter(|i| same_key(&i.spec.key, key)).collect();
            match found[..] {
                [] if coll.is_clustered() && pando_index::is_id_key(key) => {
                    Err(Error::location(5_979_800, "It is illegal to drop the clusteredIndex"))
                }
                [] => Err(index_not_found(format!("can't find index with key: {key}"))),
                [i] if i.spec.is_id_index() => Err(cannot_drop_id()),
                [i] => Ok(vec![i.spec.name.clone()]),
                [a, b, ..] => Err(Error::new(
                    ErrorCode::AmbiguousIndexKeyPattern,
                    format!(
                        "{} indexes found for key: {key}, identify by name instead. Conflicting indexes: {}, {}",
                        found.len(),
                        a.spec.doc,
                        b.spec.doc
                    ),
                )),
            }
        }
    }
}
