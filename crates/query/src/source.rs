//! What the executor reads from: one collection at one snapshot. The catalog implements it.
//!
//! Documents are [`Bytes`]: ref-counted slices that storage hands out without copying.
//!
//! **Index keys** are KeyString bytes (`pando_bson::keystring`), one encoded value per key-pattern field,
//! descending fields inverted. Strings of an index with a collation are stored as collation sort keys.
//! Ranges are half-open `[start, end)` over those bytes in ascending byte order, whatever the direction of
//! the scan; the planner has already turned inclusive, exclusive, descending and open bounds into bytes.
//!
//! **Lifetimes.** Cursors are owned and `Send`: the executor keeps them between calls while the same snapshot
//! lives, and drops them on `save`. After `restore` it asks a fresh `Source` for a cursor `after` the last
//! entry it consumed. `after` need not exist any more.
//!
//! **Speed.** `fetch` is often called with ascending, nearly adjacent record ids (a range over an index whose
//! order follows insertion). An implementation should keep one open record cursor and, when the wanted id is
//! at or a few steps after its position, step it instead of doing a point get.

use crate::collation::Collation;
use crate::matcher::Matcher;
use crate::text::TextSpec;
use bytes::Bytes;
use pando_base::{Result, Timestamp};
use pando_bson::{DocBuf, RawDoc};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Which record. Ids of one collection are all of one form.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RecordId {
    /// Ascending in insertion order.
    Long(i64),
    /// The KeyString of `_id`, in a clustered collection.
    Key(Bytes),
}

impl RecordId {
    /// The record id of a document in a clustered collection.
    pub fn of_id(id: pando_bson::Value<'_>, collation: &Option<Arc<Collation>>) -> RecordId {
        let mut b = pando_bson::keystring::KeyBuilder::default();
        b.append_with(id, Collation::order(collation));
        RecordId::Key(Bytes::from(b.finish()))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    Forward,
    Backward,
}

impl Direction {
    pub fn is_forward(self) -> bool {
        self == Direction::Forward
    }
    pub fn reverse(self) -> Direction {
        match self {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        }
    }
}

/// On a shard: which documents of a collection are this shard's.
pub trait Owned: Send + Sync + std::fmt::Debug {
    /// The fields of the shard key.
    fn fields(&self) -> &[String];
    /// Whether it owns a document, or one of which only these fields are known.
    fn owns(&self, doc: &RawDoc) -> bool;
    /// Whether the query is for one value of the shard key: what it finds is owned by whoever was asked.
    fn is_pinned_by(&self, matcher: &Matcher) -> bool;
}

/// One collection at one snapshot.
pub trait Source: Send {
    /// The collection's shape (indexes, collation, ...), as of this snapshot or newer.
    fn collection(&self) -> &Arc<CollectionInfo>;
    /// Which of its documents plans may show; `None` is all of them.
    fn owned(&self) -> Option<&Arc<dyn Owned>> {
        None
    }
    /// The snapshot's timestamp, for messages and explain; zero when reading the latest.
    fn read_ts(&self) -> Timestamp;
    /// Number of records, exact or nearly so. Cheap.
    fn record_count(&self) -> u64;
    /// The document with this record id, `None` if there is none at this snapshot.
    fn fetch(&mut self, rid: &RecordId) -> Result<Option<Bytes>>;
    /// All records (or those in `scan`'s range) in record-id order.
    fn scan_records(&mut self, scan: RecordScan<'_>) -> Result<Box<dyn RecordCursor>>;
    /// Entries of the index `collection().indexes[scan.index]` with keys in `[start, end)`.
    fn scan_index(&mut self, scan: IndexScan<'_>) -> Result<Box<dyn IndexCursor>>;
    /// The record under exactly this key of a unique index; faster than a scan where the store has point reads.
    fn find_key(&mut self, index: usize, key: &[u8]) -> Result<Option<RecordId>> {
        let mut end = key.to_vec();
        end.push(pando_bson::keystring::AFTER);
        let scan = IndexScan { index, start: key, end: &end, dir: Direction::Forward, after: None };
        let mut cursor = self.scan_index(scan)?;
        Ok(cursor.next()?.map(|e| e.rid))
    }
    /// A few random records, without a promise of uniformity; `None` when the store has no such access.
    fn sample_record(&mut self) -> Option<Result<Option<(RecordId, Bytes)>>> {
        None
    }
}

/// A scan of records. Both ends are inclusive and `None` is open.
#[derive(Clone, Debug)]
pub struct RecordScan<'a> {
    pub dir: Direction,
    /// Smallest record id wanted.
    pub min: Option<&'a RecordId>,
    /// Largest record id wanted.
    pub max: Option<&'a RecordId>,
    /// Start strictly past this record in the direction of the scan.
    pub after: Option<&'a RecordId>,
}

impl RecordScan<'_> {
    pub fn all(dir: Direction) -> RecordScan<'static> {
        RecordScan { dir, min: None, max: None, after: None }
    }
}

/// A scan of index entries.
#[derive(Clone, Debug)]
pub struct IndexScan<'a> {
    /// Position in [`CollectionInfo::indexes`].
    pub index: usize,
    /// First key bytes wanted (inclusive); empty = from the beginning.
    pub start: &'a [u8],
    /// Key bytes that end the range (exclusive); empty = to the end.
    pub end: &'a [u8],
    pub dir: Direction,
    /// Start strictly past this entry in the direction of the scan.
    pub after: Option<(&'a [u8], &'a RecordId)>,
}

pub trait RecordCursor: Send {
    fn next(&mut self) -> Result<Option<(RecordId, Bytes)>>;
    /// Shows `look` one record after the other, until it wants one or wants to stop. A store that can show a
    /// document without handing it out does so here: most filters refuse most documents.
    fn find(&mut self, look: &mut Look<'_>) -> Result<Found> {
        while let Some((rid, doc)) = self.next()? {
            match look(&rid, &doc)? {
                Verdict::Take => return Ok(Found::Record(rid, doc)),
                Verdict::Pass => {}
                Verdict::Stop => return Ok(Found::Stopped),
            }
        }
        Ok(Found::End)
    }
}

/// Judges a record.
pub type Look<'a> = dyn FnMut(&RecordId, &[u8]) -> Result<Verdict> + 'a;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Take,
    Pass,
    /// This one is passed, and no other is wanted now.
    Stop,
}

/// What [`RecordCursor::find`] came to.
#[derive(Debug)]
pub enum Found {
    Record(RecordId, Bytes),
    Stopped,
    End,
}

pub trait IndexCursor: Send {
    fn next(&mut self) -> Result<Option<IndexEntry<'_>>>;
    /// Moves on so that the next entry is the first one at or past `key` in the direction of the scan: forward
    /// the first whose key is `>= key`, backward the first whose key is `< key`. Never moves back, never
    /// leaves the scan's range.
    fn seek(&mut self, key: &[u8]) -> Result<()>;
}

/// One index entry; borrows from the cursor until the next call.
#[derive(Clone, Debug)]
pub struct IndexEntry<'a> {
    /// KeyString of the indexed values, without the record id.
    pub key: &'a [u8],
    /// What the key string cannot tell about the exact numeric types; needed to decode the key.
    pub type_bits: &'a [u8],
    pub rid: RecordId,
}

/// What planning needs to know about a collection. Replaced as a whole by DDL.
#[derive(Debug, Default)]
pub struct CollectionInfo {
    /// Ready indexes only (hidden ones included).
    pub indexes: Vec<IndexInfo>,
    /// Default collation of the collection.
    pub collation: Option<Arc<Collation>>,
    /// The name of the index that the records are ordered by, in a clustered collection.
    pub clustered: Option<String>,
    pub capped: bool,
    /// The oplog: the record id of an entry is its `ts`.
    pub keyed_by_ts: bool,
    /// Remembered plan choices; starts empty with each new `CollectionInfo`.
    pub plan_cache: crate::plan::PlanCache,
    pub index_filters: Arc<crate::plan::IndexFilters>,
}

/// One index as the planner and the key generator see it.
#[derive(Debug)]
pub struct IndexInfo {
    pub name: String,
    /// As in `listIndexes`, `{a: 1, b: -1}`.
    pub key_pattern: DocBuf,
    /// The same, parsed.
    pub fields: Vec<IndexField>,
    pub kind: IndexKind,
    /// `v` of the index, 2.
    pub version: i32,
    pub unique: bool,
    pub sparse: bool,
    pub hidden: bool,
    /// Only documents that match this are indexed.
    pub partial: Option<Arc<Matcher>>,
    /// `None` is the simple collation.
    pub collation: Option<Arc<Collation>>,
    /// Shared with whoever writes to the index.
    pub multikey: Arc<Multikey>,
    /// For [`IndexKind::Wildcard`].
    pub wildcard: Option<Arc<Wildcard>>,
    /// For [`IndexKind::Text`].
    pub text: Option<Arc<TextSpec>>,
    /// For [`IndexKind::Geo2d`] and [`IndexKind::Geo2dSphere`].
    pub geo: Option<Arc<crate::geo::GeoIndex>>,
}

/// A field of a key pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexField {
    /// Dotted path; `$**` or `a.$**` for the wildcard field.
    pub path: String,
    pub kind: FieldKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    Ascending,
    Descending,
    Hashed,
    Text,
    /// `2d` or `2dsphere`.
    Geo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    Btree,
    /// One field is hashed, others may be ordered.
    Hashed,
    Wildcard,
    Text,
    Geo2d,
    Geo2dSphere,
}

/// Which fields of an index hold array elements.
///
/// Setting a bit must be visible to every `Source` opened after the write that needed it became visible.
#[derive(Debug, Default)]
pub struct Multikey {
    /// Some document put more than one key (or an array) into the index.
    pub any: std::sync::atomic::AtomicBool,
    /// Per field of the key pattern: bit `i` says that the first `i + 1` components of the path reached an array
    /// in some document (components past 63 share the last bit). Empty when not tracked (wildcard).
    pub paths: Vec<std::sync::atomic::AtomicU64>,
}

impl Multikey {
    pub fn new(fields: usize) -> Multikey {
        Multikey {
            any: false.into(),
            paths: (0..fields).map(|_| std::sync::atomic::AtomicU64::new(0)).collect(),
        }
    }
    pub fn is_multikey(&self) -> bool {
        self.any.load(std::sync::atomic::Ordering::Acquire)
    }
    /// Bits of field `i`, see [`Multikey::paths`]. All ones when multikey but untracked.
    pub fn field(&self, i: usize) -> u64 {
        match self.paths.get(i) {
            Some(bits) => bits.load(std::sync::atomic::Ordering::Acquire),
            None if self.is_multikey() => u64::MAX,
            None => 0,
        }
    }
    /// Marks components of field `i`; returns whether anything changed (then the catalog must make it durable).
    pub fn mark(&self, i: usize, bits: u64) -> bool {
        let old = match self.paths.get(i) {
            Some(slot) => slot.fetch_or(bits, std::sync::atomic::Ordering::AcqRel),
            None => bits,
        };
        let was = self.any.swap(true, std::sync::atomic::Ordering::AcqRel);
        !was || old | bits != old
    }
}

/// Extra facts of a wildcard index. Its keys are `(path string, value)`; for compound wildcard indexes the pair
/// stands at the position of the wildcard field.
#[derive(Debug, Default)]
pub struct Wildcard {
    /// `a.b` of `a.b.$**`; empty for `$**`.
    pub prefix: String,
    /// `wildcardProjection`, normalized; empty = all paths.
    pub projection: DocBuf,
    /// Paths (without array positions) that held an array in some document.
    pub multikey_paths: std::sync::RwLock<BTreeSet<String>>,
}

impl IndexInfo {
    pub fn is_id_index(&self) -> bool {
        self.name == "_id_"
    }
    /// Position of the wildcard field.
    pub fn wildcard_field(&self) -> Option<usize> {
        self.fields.iter().position(|f| f.path == "$**" || f.path.ends_with(".$**"))
    }
}
