//! Catalog rows: one document per collection, under its UUID, written in the unit that changes the definition.
//!
//! Rows are versioned like any other row, so the catalog as of a timestamp can be read back; recovery and
//! rollback depend on that. Rows of unreplicated collections carry no timestamp.

use crate::schema::collection::{Collection, Index, IndexState, KeyFormat, NO_ROWS, Shared, Validator};
use crate::schema::options::CollectionOptions;
use crate::write::array_marks::PendingMarks;
use pando_base::panics::poisoned;
use pando_base::{Error, Namespace, Result, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_index::{IndexSpec, KeyGen};
use pando_query::QueryCtx;
use pando_query::collation::Collation;
use pando_query::matcher::{Matcher, Place};
use pando_query::plan::PlanCache;
use pando_query::source::{CollectionInfo, FieldKind, IndexInfo, IndexKind, Wildcard};
use pando_storage::{Ident, Txn};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, RwLock};

/// Version of the keys in an index, kept in its part of the row. 1 (older rows say nothing): hashes of decimals with
/// fractions and of the double 2^63 were not MongoDB's, so lookups missed them. 2: one hash for keys and for lookups.
/// 3: the words of a text end at its first NUL, as those of a search do.
const KEYS_VERSION: i32 = 3;
/// The last version in which hashes were made in another way.
const KEYS_VERSION_OTHER_HASH: i32 = 1;
/// The last version in which words behind a NUL were indexed.
const KEYS_VERSION_WORDS_BEHIND_NUL: i32 = 2;

/// The parts of a collection version, before what derives from them is built.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) ns: Namespace,
    pub(crate) uuid: Uuid,
    pub(crate) options: CollectionOptions,
    pub(crate) records: Ident,
    pub(crate) since: Timestamp,
    pub(crate) replicated: bool,
    /// In any order; ready ones come first in the version.
    pub(crate) indexes: Vec<Arc<Index>>,
    pub(crate) shared: Arc<Shared>,
}

impl Parts {
    pub(crate) fn of(c: &Collection) -> Parts {
        Parts {
            ns: c.ns.clone(),
            uuid: c.uuid,
            options: c.options.clone(),
            records: c.records,
            since: c.since,
            replicated: c.replicated,
            indexes: c.indexes.clone(),
            shared: c.shared.clone(),
        }
    }
    /// Builds the version. What is known of array paths is taken over from the indexes' state.
    pub(crate) fn assemble(self) -> Result<Arc<Collection>> {
        let Parts { ns, uuid, options, records, since, replicated, indexes, shared } = self;
        let collation = match &options.collation {
            Some(c) => Collation::stored(c)?,
            None => None,
        };
        let (ready, building): (Vec<_>, Vec<_>) = indexes.into_iter().partition(|i| i.is_ready());
        let info = CollectionInfo {
            indexes: infos(&ready),
            collation: collation.clone(),
            clustered: options.clustered.as_ref().map(|c| c.name.clone()),
            capped: options.capped.is_some(),
            keyed_by_ts: records == NO_ROWS && shared.table.get().is_none(),
            plan_cache: PlanCache::default(),
            index_filters: shared.index_filters.clone(),
        };
        let validator = parse_validator(&options, collation)?;
        Ok(Arc::new(Collection {
            ns,
            uuid,
            records,
            since,
            indexes: ready.into_iter().chain(building).collect(),
            info: Arc::new(info),
            validator,
            replicated,
            shared,
            options,
        }))
    }
}

/// Scripts cannot judge what is stored: every member would have to run them.
pub(crate) fn validator_matcher(filter: &RawDoc, ctx: &QueryCtx) -> Result<Matcher> {
    let matcher = Matcher::parse_in(Place::Document, filter, ctx)?;
    if matcher.runs_scripts() {
        return Err(Error::location(4_660_800, "$function cannot be used inside a validator."));
    }
    Ok(matcher)
}

fn parse_validator(o: &CollectionOptions, collation: Option<Arc<Collation>>) -> Result<Option<Validator>> {
    let Some(filter) = &o.validator else { return Ok(None) };
    let ctx = QueryCtx::default().with_collation(collation);
    let matcher = validator_matcher(filter, &ctx)?;
    Ok(Some(Validator {
        matcher: Arc::new(matcher),
        level: o.validation_level.unwrap_or_default(),
        action: o.validation_action.unwrap_or_default(),
    }))
}

pub(crate) fn infos(ready: &[Arc<Index>]) -> Vec<IndexInfo> {
    ready.iter().map(|i| index_info(i)).collect()
}

fn index_info(i: &Index) -> IndexInfo {
    IndexInfo {
        name: i.spec.name.clone(),
        key_pattern: i.spec.key.clone(),
        fields: i.spec.fields.clone(),
        kind: i.spec.kind,
        version: i.spec.version,
        // An index that only prepares to be unique may still hold duplicates.
        unique: i.spec.unique || i.spec.is_id_index(),
        sparse: i.spec.sparse,
        hidden: i.spec.hidden,
        partial: i.keys.partial.clone(),
        collation: i.keys.collation.clone(),
        multikey: i.state.seen.clone(),
        wildcard: i.wildcard.clone(),
        text: i.text.clone(),
        geo: i.keys.geo.clone(),
    }
}

/// Builds an index version from its specification.
pub(crate) fn new_index(
    spec: IndexSpec,
    ident: Ident,
    format: KeyFormat,
    ready_at: Timestamp,
    now_ms: i64,
) -> Result<Index> {
    let keys = KeyGen::new(&spec)?;
    let tracked = if spec.kind == IndexKind::Wildcard { 0 } else { spec.fields.len() };
    let wildcard = (spec.kind == IndexKind::Wildcard).then(|| {
        let path =
            spec.fields.iter().map(|f| f.path.as_str()).find(|p| p.ends_with("$**")).unwrap_or_default();
        Arc::new(Wildcard {
            prefix: path.strip_suffix(".$**").unwrap_or_default().to_owned(),
            projection: spec.wildcard_projection.clone().unwrap_or_default(),
            multikey_paths: RwLock::default(),
        })
    });
    Ok(Index {
        spec,
        ident,
        format,
        ready_at,
        building: None,
        text: keys.text().cloned(),
        keys,
        wildcard,
        state: IndexState::new(tracked, now_ms),
    })
}

/// The row of a collection, with what `pending` will have made durable.
pub(crate) fn encode<'a>(c: &Collection, pending: impl Iterator<Item = &'a PendingMarks> + Clone) -> DocBuf {
    let mut b = DocBuilder::with_capacity(512);
    b.str("ns", c.ns.as_str());
    b.uuid("uuid", &c.uuid.0);
    b.doc("options", |o| c.options.append_to(o));
    b.i64("records", i64::from(c.records.0));
    b.timestamp("since", c.since);
    b.bool("replicated", c.replicated);
    b.array("indexes", |a| {
        for i in &c.indexes {
            a.doc(|d| encode_index(d, i, pending.clone()));
        }
    });
    b.finish()
}

fn encode_index<'a>(d: &mut DocBuilder, i: &Index, pending: impl Iterator<Item = &'a PendingMarks>) {
    d.raw_doc("spec", &i.spec.doc);
    d.i64("ident", i64::from(i.ident.0));
    d.bool("bare", i.format == KeyFormat::Bare);
    d.i32("keysVersion", KEYS_VERSION);
    d.timestamp("readyAt", i.ready_at);
    if let Some(build) = &i.building {
        d.uuid("build", &build.uuid.0);
        d.i64("side", i64::from(build.side.0));
        if build.is_committed {
            d.bool("committed", true);
        }
    }
    let durable = &i.state.durable;
    let mut any = durable.is_multikey();
    let mut bits: Vec<u64> = durable.paths.iter().map(|p| p.load(Ordering::Acquire)).collect();
    let mut paths: BTreeSet<String> = i.state.durable_paths.lock().unwrap_or_else(poisoned).clone();
    for m in pending.filter(|m| Arc::ptr_eq(&m.index.state, &i.state)) {
        any = true;
        bits.iter_mut().zip(&m.bits).for_each(|(b, more)| *b |= more);
        paths.extend(m.paths.iter().cloned());
    }
    d.bool("multikey", any);
    d.array("multikeyBits", |a| {
        for b in &bits {
            a.value(Value::Int64(*b as i64));
        }
    });
    if !paths.is_empty() {
        d.array("multikeyPaths", |a| {
            for p in &paths {
                a.str(p);
            }
        });
    }
}

/// What a row says about an index that was being built when it was written.
#[derive(Clone, Debug)]
pub(crate) struct Unfinished {
    pub(crate) spec: IndexSpec,
    pub(crate) ident: Ident,
    pub(crate) side: Ident,
    pub(crate) build: Uuid,
    /// The format in which a replay would have made it, which had read that it is ready and was not at its end.
    pub(crate) committed: Option<KeyFormat>,
}

/// A ready index whose keys were made in an older way, so that it has to be made anew.
#[derive(Clone, Debug)]
pub(crate) struct Outdated {
    pub(crate) spec: IndexSpec,
    pub(crate) ident: Ident,
    pub(crate) format: KeyFormat,
}

/// A row read back. Indexes that cannot be used as they lie come apart from the rest.
pub(crate) struct Row {
    pub(crate) parts: Parts,
    pub(crate) unfinished: Vec<Unfinished>,
    pub(crate) outdated: Vec<Outdated>,
}

/// Whether the keys of this index were made in an older way. Versions from the future are refused.
fn is_outdated(d: &RawDoc, ns: &str, spec: &IndexSpec) -> Result<bool> {
    let version = d.get("keysVersion").and_then(|v| v.as_i64()).unwrap_or(1);
    if version > i64::from(KEYS_VERSION) {
        return Err(Error::internal(format!(
            "index {} of {ns} has keys of version {version}, and this program knows versions up to {KEYS_VERSION}: \
             open the data with the newer program that wrote it",
            spec.name
        )));
    }
    let hashed = spec.fields.iter().any(|f| f.kind == FieldKind::Hashed);
    let text = spec.fields.iter().any(|f| f.kind == FieldKind::Text);
    Ok(hashed && version <= i64::from(KEYS_VERSION_OTHER_HASH)
        || text && version <= i64::from(KEYS_VERSION_WORDS_BEHIND_NUL))
}

pub(crate) fn decode(row: &RawDoc, now_ms: i64) -> Result<Row> {
    let bad = || Error::internal(format!("damaged catalog row: {row}"));
    let ns = row.get("ns").and_then(|v| v.as_str()).ok_or_else(bad)?;
    let (db, coll) = ns.split_once('.').ok_or_else(bad)?;
    let uuid = uuid_field(row, "uuid").ok_or_else(bad)?;
    let options = row.get("options").and_then(|v| v.as_doc()).ok_or_else(bad)?;
    let (mut indexes, mut unfinished, mut outdated) = (Vec::new(), Vec::new(), Vec::new());
    for e in row.get("indexes").and_then(|v| v.as_array()).ok_or_else(bad)? {
        let d = e.value().as_doc().ok_or_else(bad)?;
        let spec = IndexSpec::from_stored(d.get("spec").and_then(|v| v.as_doc()).ok_or_else(bad)?)?;
        let ident = ident_field(d, "ident").ok_or_else(bad)?;
        let bare = d.get("bare").and_then(|v| v.as_bool()).unwrap_or(false);
        let format = if bare { KeyFormat::Bare } else { KeyFormat::WithRid };
        if let Some(build) = uuid_field(d, "build") {
            let side = ident_field(d, "side").ok_or_else(bad)?;
            let committed = d.get("committed").is_some_and(|v| v.is_truthy()).then_some(format);
            unfinished.push(Unfinished { spec, ident, side, build, committed });
            continue;
        }
        if is_outdated(d, ns, &spec)? {
            outdated.push(Outdated { spec, ident, format });
            continue;
        }
        let index = new_index(spec, ident, format, timestamp_field(d, "readyAt"), now_ms)?;
        read_marks(d, &index);
        indexes.push(Arc::new(index));
    }
    let parts = Parts {
        ns: Namespace::unchecked(db, coll),
        uuid,
        options: CollectionOptions::from_stored(options)?,
        records: ident_field(row, "records").ok_or_else(bad)?,
        since: timestamp_field(row, "since"),
        replicated: row.get("replicated").and_then(|v| v.as_bool()).unwrap_or(true),
        indexes,
        shared: Shared::new(1, crate::schema::sizes::Sizes::default()),
    };
    Ok(Row { parts, unfinished, outdated })
}

fn read_marks(d: &RawDoc, index: &Index) {
    if !d.get("multikey").is_some_and(|v| v.is_truthy()) {
        return;
    }
    let list = |name| d.get(name).and_then(|v: Value<'_>| v.as_array()).unwrap_or(RawDoc::empty());
    let bits: Vec<u64> =
        list("multikeyBits").iter().map(|e| e.value().as_i64().unwrap_or(0) as u64).collect();
    let paths = list("multikeyPaths").iter().filter_map(|e| e.value().as_str().map(str::to_owned)).collect();
    index.state.see(&bits, &paths, index.wildcard.as_deref());
    index.state.remember(&bits, &paths);
}

fn uuid_field(d: &RawDoc, name: &str) -> Option<Uuid> {
    match d.get(name)? {
        Value::Binary { bytes, .. } => Uuid::from_slice(bytes),
        _ => None,
    }
}

fn ident_field(d: &RawDoc, name: &str) -> Option<Ident> {
    Some(Ident(u32::try_from(d.get(name)?.as_i64()?).ok()?))
}

fn timestamp_field(d: &RawDoc, name: &str) -> Timestamp {
    match d.get(name) {
        Some(Value::Timestamp(ts)) => ts,
        _ => Timestamp::ZERO,
    }
}

/// Writes the collection's row.
pub(crate) fn put_row<'a>(
    txn: &mut Txn,
    c: &Collection,
    pending: impl Iterator<Item = &'a PendingMarks> + Clone,
) -> Result<()> {
    txn.put(Ident::CATALOG, &c.uuid.0, encode(c, pending).as_bytes())
}

pub(crate) fn delete_row(txn: &mut Txn, uuid: Uuid) -> Result<()> {
    txn.delete(Ident::CATALOG, &uuid.0)
}

/// The unit that wrote these marks into the row has committed.
pub(crate) fn mark_durable(m: &PendingMarks) {
    m.index.state.remember(&m.bits, &m.paths);
}
