//! `validate`: does every record have its index entries, and every entry its record?

use crate::Catalog;
use crate::schema::collection::{Collection, Index, KeyFormat};
use crate::schema::tables::TableSource;
use crate::write::entry_layout::{bare_value, split_bare, with_rid};
use crate::write::interrupt::Interrupt;
use crate::write::record_id::{self, Record};
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp, Uuid, limits, patience};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_index::KeySet;
use pando_query::source::Source;
use pando_storage::{Dir, ReadAt, Txn};
use std::ops::Bound;
use std::sync::Arc;

/// Records and entries looked at between two yields.
const STEP: usize = 1000;
/// Bytes of a document looked at in one step of work.
const BYTES_PER_STEP: usize = 64;

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The definitions alone.
    Definitions,
    /// The newest state, and the count that is kept beside it ([`Catalog::mend_count`]); writers are held up for the
    /// moment in which both are taken.
    Latest,
    /// The state at a timestamp, which the report names.
    At(Timestamp),
    /// The same; a wrong count is an error.
    Counted,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub uuid: Option<Uuid>,
    /// What the kept count lacks, which is never shown as less than nothing.
    pub uncounted: i64,
    /// Records were looked at.
    pub looked: bool,
    pub read_timestamp: Option<Timestamp>,
    pub records: u64,
    pub bytes: u64,
    /// The count kept beside the collection (equal to `records` unless something is wrong or writes went on).
    pub fast_count: u64,
    pub invalid_documents: u64,
    /// Name and entries of each index.
    pub keys_per_index: Vec<(String, u64)>,
    pub missing_entries: u64,
    pub extra_entries: u64,
    pub errors: Vec<String>,
    pub warnings: Vec<String>,
}

impl Report {
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
    fn error(&mut self, text: String) {
        if self.errors.len() < limits::VALIDATE_ERRORS_MAX {
            self.errors.push(text);
        }
    }
    /// The fields of the `validate` reply.
    pub fn append_to(&self, b: &mut DocBuilder, ns: &Namespace) {
        b.str("ns", ns.as_str());
        if self.looked {
            self.append_found(b);
        }
        b.bool("valid", self.is_valid());
        b.bool("repaired", false);
        if let Some(at) = self.read_timestamp {
            b.timestamp("readTimestamp", at);
        }
        for (name, list) in [("warnings", &self.warnings), ("errors", &self.errors)] {
            b.array(name, |a| {
                for text in list {
                    a.str(text);
                }
            });
        }
        for name in ["extraIndexEntries", "missingIndexEntries", "corruptRecords"] {
            b.array(name, |_| {});
        }
    }
    fn append_found(&self, b: &mut DocBuilder) {
        let n = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
        let number = |b: &mut DocBuilder, name: &str, v: u64| {
            b.i32_or_i64(name, n(v));
        };
        number(b, "nInvalidDocuments", self.invalid_documents);
        b.i32("nNonCompliantDocuments", 0);
        number(b, "nrecords", self.records);
        b.i32("nIndexes", self.keys_per_index.len() as i32);
        b.doc("keysPerIndex", |d| {
            for (name, keys) in &self.keys_per_index {
                number(d, name, *keys);
            }
        });
        b.doc("indexDetails", |d| {
            for (name, _) in &self.keys_per_index {
                d.doc(name, |i| {
                    i.bool("valid", !self.errors.iter().any(|e| e.contains(name.as_str())));
                });
            }
        });
    }
}

impl Catalog {
    /// Checks a collection against its indexes, both ways, at one snapshot.
    pub async fn validate(
        &self,
        ns: &Namespace,
        extent: Extent,
        interrupt: &dyn Interrupt,
    ) -> Result<Report> {
        let held = match extent {
            Extent::Counted | Extent::Latest => {
                let _db = self.unless_interrupted(interrupt, self.lock_database(ns.db())).await?;
                self.unless_interrupted(interrupt, self.ddl_lock(ns)).await?
            }
            _ => None,
        };
        let coll = match self.lookup(ns) {
            Some(c) => c,
            None if self.lookup_view(ns).is_some() => {
                return Err(Error::new(ErrorCode::CommandNotSupportedOnView, "Cannot validate a view"));
            }
            None => {
                return Err(Error::new(
                    ErrorCode::NamespaceNotFound,
                    format!("Collection '{ns}' does not exist to validate."),
                ));
            }
        };
        if extent == Extent::Definitions {
            return Ok(Report::default());
        }
        if let Some(source) = TableSource::of(&coll) {
            // Nothing is stored that could be damaged.
            let n = source.record_count();
            let keys = coll.ready_indexes().iter().map(|i| (i.spec.name.clone(), n)).collect();
            let counted = Report { records: n, fast_count: n, keys_per_index: keys, ..Report::default() };
            return Ok(Report { looked: true, ..counted });
        }
        let read_timestamp = match extent {
            Extent::At(ts) => Some(ts),
            _ => None,
        };
        let txn = self.storage().begin(read_timestamp.map_or(ReadAt::Latest, ReadAt::At))?;
        let (fast_count, counted) = (coll.count(), coll.shared.sizes.signed_count());
        drop(held);
        let mut report =
            Report { uuid: Some(coll.uuid), looked: true, read_timestamp, fast_count, ..Report::default() };
        let expected = self.check_records(&coll, &txn, &mut report, interrupt).await?;
        for (index, expected) in coll.ready_indexes().iter().zip(expected) {
            let found = self.check_entries(&coll, index, &txn, expected, &mut report, interrupt).await?;
            report.keys_per_index.push((index.spec.name.clone(), found));
        }
        if report.missing_entries > 0 {
            report.warnings.push(format!("Detected {} missing index entries.", report.missing_entries));
        }
        if report.extra_entries > 0 {
            report.warnings.push(format!("Detected {} extra index entries.", report.extra_entries));
        }
        report.uncounted = report.records as i64 - counted;
        if extent == Extent::Counted && report.fast_count != report.records {
            report.errors.push(format!(
                "fast count ({}) does not match number of records ({}) for collection '{ns}'",
                report.fast_count, report.records
            ));
        }
        Ok(report)
    }

    /// Sets the kept count right by what a check of [`Extent::Latest`] has found. Only where no entries of another member
    /// were applied when the two were taken: those lock nothing, and are counted before they can be seen.
    pub fn mend_count(&self, found: &Report) {
        if let Some(coll) = found.uuid.and_then(|uuid| self.lookup_uuid(uuid)) {
            coll.shared.sizes.mend(found.uncounted);
        }
    }

    /// Every record has its entries. Returns how many entries each index should have.
    async fn check_records(
        &self,
        coll: &Collection,
        txn: &Txn,
        report: &mut Report,
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<u64>> {
        let indexes = coll.ready_indexes();
        let mut expected = vec![0u64; indexes.len()];
        let (mut builder, mut keys) = (KeyBuilder::default(), KeySet::default());
        let mut cursor = txn.scan(coll.records, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
        let mut n = 0usize;
        while let Some((key, bytes)) = cursor.next()? {
            n += 1;
            if n.is_multiple_of(STEP) {
                interrupt.check()?;
                self.env().tasks.yield_now().await;
            }
            report.records += 1;
            report.bytes += bytes.len() as u64;
            patience::spend(bytes.len() / BYTES_PER_STEP)?;
            let doc = match RawDoc::validate(&bytes) {
                Ok(doc) => doc,
                Err(e) => {
                    report.invalid_documents += 1;
                    report.error(format!("record {key:?} is damaged: {}", e.message));
                    continue;
                }
            };
            let record = Record::of(&record_id::from_storage_key(coll.is_clustered(), &key)?);
            for (index, expected) in indexes.iter().zip(&mut expected) {
                if let Err(e) = index.keys.keys(doc, &mut builder, &mut keys) {
                    report.error(format!("index {}: no keys for a record: {}", index.name(), e.message));
                    continue;
                }
                *expected += keys.len() as u64;
                let info = coll.info.indexes.iter().find(|i| i.name == index.spec.name);
                if keys.multikey && !info.is_some_and(|i| i.multikey.is_multikey()) {
                    report.error(format!("index {} is not marked multikey but holds an array", index.name()));
                }
                for k in keys.iter() {
                    let there = match index.format {
                        KeyFormat::WithRid => {
                            let entry = txn.get(index.ident, &with_rid(k.bytes, &record))?;
                            entry.is_some_and(|bits| &*bits == k.type_bits)
                        }
                        KeyFormat::Bare => {
                            let entry = txn.get(index.ident, k.bytes)?;
                            entry.is_some_and(|v| *v == bare_value(&record, k.type_bits)[..])
                        }
                    };
                    if !there {
                        report.missing_entries += 1;
                        let id = doc.get("_id").map(|v| v.to_string()).unwrap_or_default();
                        report.error(format!(
                            "index {} has no entry for the record with _id {id}",
                            index.name()
                        ));
                    }
                }
            }
        }
        Ok(expected)
    }

    /// Every entry has its record. Returns how many entries the index has.
    async fn check_entries(
        &self,
        coll: &Collection,
        index: &Arc<Index>,
        txn: &Txn,
        expected: u64,
        report: &mut Report,
        interrupt: &dyn Interrupt,
    ) -> Result<u64> {
        let mut found = 0u64;
        let mut cursor = txn.scan(index.ident, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
        while cursor.next()?.is_some() {
            found += 1;
            if found.is_multiple_of(STEP as u64) {
                interrupt.check()?;
                self.env().tasks.yield_now().await;
            }
        }
        if found == expected && report.missing_entries == 0 {
            // As many as there should be, and all that should be are there.
            return Ok(found);
        }
        let (mut builder, mut keys) = (KeyBuilder::default(), KeySet::default());
        let mut cursor = txn.scan(index.ident, Bound::Unbounded, Bound::Unbounded, Dir::Forward)?;
        while let Some((key, value)) = cursor.next()? {
            let parts = match index.format {
                KeyFormat::WithRid => record_id::split(coll.is_clustered(), &key),
                KeyFormat::Bare => split_bare(&value)
                    .and_then(|(record, _)| record_id::from_storage_key(coll.is_clustered(), record))
                    .map(|rid| (&*key, rid)),
            };
            let Ok((bare, rid)) = parts else {
                report.extra_entries += 1;
                report.error(format!("index {} has a damaged entry", index.name()));
                continue;
            };
            let doc = txn.get(coll.records, &record_id::storage_key(&rid))?;
            let belongs = match &doc {
                None => false,
                Some(doc) => {
                    index.keys.keys(RawDoc::trusted(doc), &mut builder, &mut keys)?;
                    keys.iter().any(|k| k.bytes == bare)
                }
            };
            if !belongs {
                report.extra_entries += 1;
                report.error(format!("index {} has an entry without its record: {rid:?}", index.name()));
            }
        }
        Ok(found)
    }

    /// Collections that `validate` would be asked about, for whole-database checks in tests and tools.
    pub async fn validate_all(&self, interrupt: &dyn Interrupt) -> Result<Vec<(Namespace, Report)>> {
        let names: Vec<Namespace> =
            self.snapshot().all_collections().filter(|c| c.is_stored()).map(|c| c.ns.clone()).collect();
        let mut out = Vec::new();
        for ns in names {
            let report = self.validate(&ns, Extent::Latest, interrupt).await?;
            out.push((ns, report));
        }
        Ok(out)
    }
}

/// The reply document of a report alone.
impl Report {
    pub fn to_doc(&self, ns: &Namespace) -> DocBuf {
        let mut b = DocBuilder::new();
        self.append_to(&mut b, ns);
        b.finish()
    }
}
