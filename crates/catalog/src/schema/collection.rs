//! One collection as the catalog knows it: an immutable version, plus what lives on across versions.
//!
//! A change of definition makes a new [`Collection`] and puts it into the next catalog snapshot; whoever holds the
//! old one keeps a consistent view. Locks, counters and record ids are in [`Shared`], which all versions share.

use crate::build::state::Build;
use crate::lock::Lock;
use crate::schema::durable;
use crate::schema::options::{CollectionOptions, ValidationAction, ValidationLevel};
use crate::schema::sizes::Sizes;
use crate::schema::table::Table;
use pando_base::panics::poisoned;
use pando_base::{Namespace, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder};
use pando_index::{IndexSpec, KeyGen};
use pando_query::collation::Collation;
use pando_query::matcher::Matcher;
use pando_query::plan::PlanCache;
use pando_query::source::{CollectionInfo, IndexInfo, Multikey, Wildcard};
use pando_query::text::TextSpec;
use pando_storage::Ident;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Stands for the records of a collection that has none in the storage.
pub(crate) const NO_ROWS: Ident = Ident(0);

/// One version of a collection.
#[derive(Debug)]
pub struct Collection {
    pub ns: Namespace,
    pub uuid: Uuid,
    pub options: CollectionOptions,
    /// The record store.
    pub records: Ident,
    /// The first timestamp at which the collection exists under this name.
    pub since: Timestamp,
    /// Ready indexes, in the order of `info.indexes`, then those being built.
    pub indexes: Vec<Arc<Index>>,
    /// What the planner sees; holds the ready indexes only.
    pub info: Arc<CollectionInfo>,
    pub validator: Option<Validator>,
    /// Writes make oplog entries.
    pub replicated: bool,
    pub shared: Arc<Shared>,
}

/// A parsed validator and when it counts.
#[derive(Clone, Debug)]
pub struct Validator {
    pub matcher: Arc<Matcher>,
    pub level: ValidationLevel,
    pub action: ValidationAction,
}

/// What outlives versions of a collection.
#[derive(Debug)]
pub struct Shared {
    /// Writers hold it shared, definition changes alone.
    pub lock: Lock,
    pub(crate) next_rid: AtomicI64,
    pub sizes: Sizes,
    /// Inserts into a capped collection commit in record order, so that a tailing reader misses nothing.
    pub(crate) capped_turn: pando_base::sync::Mutex<()>,
    /// No live record of a capped collection lies before this id.
    pub(crate) capped_front: AtomicI64,
    pub index_filters: Arc<pando_query::plan::IndexFilters>,
    pub scans: Scans,
    dropped: AtomicBool,
    /// Where the rows come from, when they are none of the storage's.
    pub(crate) table: OnceLock<Arc<dyn Table>>,
}

/// How often plans walked through all records of a collection since the start.
#[derive(Default, Debug)]
pub struct Scans {
    pub total: AtomicU64,
    /// Of cursors that do not wait for more.
    pub not_tailing: AtomicU64,
}

impl Shared {
    pub(crate) fn new(next_rid: i64, sizes: Sizes) -> Arc<Shared> {
        Arc::new(Shared {
            lock: Lock::of(crate::lock::order::Resource::Collection),
            next_rid: AtomicI64::new(next_rid),
            sizes,
            capped_turn: pando_base::sync::Mutex::new(()),
            capped_front: AtomicI64::new(0),
            index_filters: Arc::default(),
            scans: Scans::default(),
            dropped: AtomicBool::new(false),
            table: OnceLock::new(),
        })
    }
    /// True once the collection is gone (dropped or replaced by a rename onto its name).
    pub fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }
    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }
    /// Reserves `n` consecutive record ids and returns the first.
    pub(crate) fn take_rids(&self, n: usize) -> i64 {
        self.next_rid.fetch_add(n as i64, Ordering::Relaxed)
    }
    /// No record had this id so far.
    pub(crate) fn next_rid(&self) -> i64 {
        self.next_rid.load(Ordering::Relaxed)
    }
    /// Whether no record had this id so far; from now on one has.
    pub(crate) fn is_fresh_rid(&self, rid: i64) -> bool {
        self.next_rid.fetch_max(rid.saturating_add(1), Ordering::Relaxed) <= rid
    }
    /// Later ids will be above `rid`.
    pub(crate) fn saw_rid(&self, rid: i64) {
        self.next_rid.fetch_max(rid.saturating_add(1), Ordering::Relaxed);
    }
}

/// How the entries of an index lie in storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyFormat {
    /// Key: key string and record id; value: type bits. One key may occur often.
    WithRid,
    /// Key: key string; value: record id and type bits. The key is there once, so looking it up is one point get.
    Bare,
}

/// An index of one collection version.
#[derive(Clone, Debug)]
pub struct Index {
    pub spec: IndexSpec,
    pub ident: Ident,
    pub format: KeyFormat,
    /// Readers below this timestamp must not use the index.
    pub ready_at: Timestamp,
    /// Set while the index is being built: writers leave their changes there.
    pub building: Option<Arc<Build>>,
    pub keys: KeyGen,
    pub wildcard: Option<Arc<Wildcard>>,
    pub text: Option<Arc<TextSpec>>,
    pub state: Arc<IndexState>,
}

/// What outlives versions of an index.
///
/// Array paths are known twice: *seen* as soon as a writer meets an array (readers must be careful from then on),
/// *durable* once a committed catalog row says so. A writer that meets an array not yet durably known writes the
/// row in its own unit; if that unit fails, the next writer does it again.
#[derive(Debug, Default)]
pub struct IndexState {
    pub(crate) seen: Arc<Multikey>,
    pub(crate) durable: Multikey,
    pub(crate) durable_paths: Mutex<BTreeSet<String>>,
    /// The key pattern as logs show it, written when it is first asked for: every query does.
    key_text: OnceLock<String>,
    /// For `$indexStats`.
    pub accesses: AtomicU64,
    pub since_ms: AtomicI64,
}

impl IndexState {
    pub(crate) fn new(fields: usize, now_ms: i64) -> Arc<IndexState> {
        Arc::new(IndexState {
            seen: Arc::new(Multikey::new(fields)),
            durable: Multikey::new(fields),
            since_ms: AtomicI64::new(now_ms),
            ..IndexState::default()
        })
    }
    /// Marks array paths for readers.
    pub(crate) fn see(&self, bits: &[u64], paths: &BTreeSet<String>, wildcard: Option<&Wildcard>) {
        self.seen.any.store(true, Ordering::Release);
        for (i, b) in bits.iter().enumerate() {
            self.seen.mark(i, *b);
        }
        if let Some(w) = wildcard {
            let mut known = w.multikey_paths.write().unwrap_or_else(poisoned);
            known.extend(paths.iter().cloned());
        }
    }
    /// A committed row knows these array paths.
    pub(crate) fn remember<'a>(&self, bits: &[u64], paths: impl IntoIterator<Item = &'a String>) {
        self.durable.any.store(true, Ordering::Release);
        for (i, b) in bits.iter().enumerate() {
            self.durable.mark(i, *b);
        }
        let mut known = self.durable_paths.lock().unwrap_or_else(poisoned);
        known.extend(paths.into_iter().cloned());
    }
    /// Whether the durable row already says all this.
    pub(crate) fn knows(&self, bits: &[u64], paths: &[String]) -> bool {
        self.durable.is_multikey()
            && bits.iter().enumerate().all(|(i, b)| self.durable.field(i) & b == *b)
            && (paths.is_empty() || {
                let known = self.durable_paths.lock().unwrap_or_else(poisoned);
                paths.iter().all(|p| known.contains(p))
            })
    }
}

impl Index {
    /// Whether some document has an array in one of its fields.
    pub fn is_multikey(&self) -> bool {
        self.state.seen.is_multikey()
    }
    pub fn name(&self) -> &str {
        &self.spec.name
    }
    /// `{ a: 1, b: -1 }`
    pub fn key_text(&self) -> &str {
        self.state.key_text.get_or_init(|| self.spec.key.to_string())
    }
    pub fn is_ready(&self) -> bool {
        self.building.is_none()
    }
    /// It was completed after `ts`: what it holds is not what the collection held then. The one by `_id` is as old as the collection.
    pub fn is_younger_than(&self, ts: Timestamp) -> bool {
        self.ready_at > ts && !self.spec.is_id_index()
    }
    /// Whether this build makes it.
    pub(crate) fn is_of(&self, build: Uuid) -> bool {
        self.building.as_ref().is_some_and(|b| b.uuid == build)
    }
    /// An unfinished index of which the log has said that it is ready.
    pub(crate) fn into_committed(mut self) -> Index {
        self.building = self.building.map(|build| Arc::new(build.committed()));
        self
    }
    /// Notes that a plan used the index.
    pub fn used(&self) {
        self.state.accesses.fetch_add(1, Ordering::Relaxed);
    }
}

impl Collection {
    /// Of its records and of its indexes.
    pub fn idents(&self) -> impl Iterator<Item = Ident> {
        std::iter::once(self.records).chain(self.indexes.iter().map(|i| i.ident))
    }
    /// Ready indexes, in the order of `info.indexes`.
    pub fn ready_indexes(&self) -> &[Arc<Index>] {
        &self.indexes[..self.info.indexes.len()]
    }
    pub fn building_indexes(&self) -> &[Arc<Index>] {
        &self.indexes[self.info.indexes.len()..]
    }
    /// The version that a reader at `ts` may plan on: a ready index that is younger than that stands among those that are not ready.
    /// Who writes at `ts` meets it there ([`Index::is_younger_than`]).
    pub fn as_seen_at(self: &Arc<Collection>, ts: Timestamp) -> Arc<Collection> {
        if !self.ready_indexes().iter().any(|i| i.is_younger_than(ts)) {
            return self.clone();
        }
        let (ready, rest): (Vec<_>, Vec<_>) =
            self.indexes.iter().cloned().partition(|i| i.is_ready() && !i.is_younger_than(ts));
        let info = CollectionInfo {
            indexes: durable::infos(&ready),
            collation: self.info.collation.clone(),
            clustered: self.info.clustered.clone(),
            capped: self.info.capped,
            keyed_by_ts: self.info.keyed_by_ts,
            plan_cache: PlanCache::default(),
            index_filters: self.info.index_filters.clone(),
        };
        Arc::new(Collection {
            ns: self.ns.clone(),
            uuid: self.uuid,
            options: self.options.clone(),
            records: self.records,
            since: self.since,
            indexes: ready.into_iter().chain(rest).collect(),
            info: Arc::new(info),
            validator: self.validator.clone(),
            replicated: self.replicated,
            shared: self.shared.clone(),
        })
    }
    pub fn index(&self, name: &str) -> Option<&Arc<Index>> {
        self.indexes.iter().find(|i| i.spec.name == name)
    }
    /// The planner's view of a ready index.
    pub fn index_info(&self, position: usize) -> Option<&IndexInfo> {
        self.info.indexes.get(position)
    }
    /// The `_id_` index; `None` in clustered collections.
    pub fn id_index(&self) -> Option<&Arc<Index>> {
        self.indexes.first().filter(|i| i.spec.is_id_index())
    }
    pub fn is_clustered(&self) -> bool {
        self.options.clustered.is_some()
    }
    /// The rows are the storage's; else they are read from somewhere else, and nobody writes to them here.
    pub fn is_stored(&self) -> bool {
        self.records != NO_ROWS
    }
    /// `local.oplog.rs`, which has no rows of its own.
    pub fn is_oplog(&self) -> bool {
        !self.is_stored() && self.table().is_none()
    }
    pub(crate) fn table(&self) -> Option<&Arc<dyn Table>> {
        self.shared.table.get()
    }
    pub fn is_capped(&self) -> bool {
        self.options.capped.is_some()
    }
    /// Default collation in parsed form.
    pub fn collation(&self) -> Option<&Arc<Collation>> {
        self.info.collation.as_ref()
    }
    /// Documents, as of the last commit.
    pub fn count(&self) -> u64 {
        self.table().map_or_else(|| self.shared.sizes.count(), |t| t.ids().len() as u64)
    }
    /// Bytes of documents, as of the last commit.
    pub fn data_bytes(&self) -> u64 {
        self.shared.sizes.bytes()
    }
    /// `listIndexes`' documents, ready ones (and with `building`, unfinished ones too).
    pub fn index_docs(&self, building: bool) -> Vec<DocBuf> {
        let mut docs = Vec::new();
        // Buckets are clustered in an older way, which is not listed.
        if let Some(c) = self.options.clustered.as_ref().filter(|_| self.options.time_series.is_none()) {
            let mut b = DocBuilder::new();
            b.elems_of(&c.to_doc());
            b.bool("clustered", true);
            docs.push(b.finish());
        }
        docs.extend(self.indexes.iter().filter(|i| building || i.is_ready()).map(|i| i.spec.listed()));
        docs
    }
    /// Indexes as MongoDB counts them: the clustered one does not count.
    pub fn index_count(&self) -> usize {
        self.indexes.iter().filter(|i| i.is_ready()).count()
    }
    /// The element of `listCollections` for this collection.
    pub fn list_doc(&self, name_only: bool) -> DocBuf {
        let mut b = DocBuilder::new();
        b.str("name", self.ns.coll());
        b.str("type", "collection");
        if name_only {
            return b.finish();
        }
        b.doc("options", |o| self.options.append_to(o));
        b.doc("info", |i| {
            i.bool("readOnly", false);
            i.uuid("uuid", &self.uuid.0);
        });
        if let Some(id) = self.id_index() {
            b.raw_doc("idIndex", &id.spec.doc);
        }
        b.finish()
    }
}

/// A view: a name for a pipeline over another collection or view.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    pub ns: Namespace,
    pub on: Namespace,
    /// An array of stages, as bytes.
    pub pipeline: DocBuf,
    /// Full form; `None` is the simple collation.
    pub collation: Option<DocBuf>,
}

impl View {
    pub fn list_doc(&self, name_only: bool) -> DocBuf {
        let mut b = DocBuilder::new();
        b.str("name", self.ns.coll());
        b.str("type", "view");
        if name_only {
            return b.finish();
        }
        b.doc("options", |o| {
            o.str("viewOn", self.on.coll());
            o.raw_array("pipeline", &self.pipeline);
            if let Some(c) = &self.collation {
                o.raw_doc("collation", c);
            }
        });
        b.doc("info", |i| {
            i.bool("readOnly", true);
        });
        b.finish()
    }
}
