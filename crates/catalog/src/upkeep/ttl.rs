//! The sweeper of TTL indexes: one pass deletes what has expired, in small units through the normal write path.
//!
//! The server calls [`Catalog::ttl_pass`] every sixty seconds, on a primary only.

use crate::Catalog;
use crate::read::source::CollectionSource;
use crate::schema::collection::{Collection, Index};
use crate::write::interrupt::Interrupt;
use crate::write::op::WriteOp;
use pando_base::redaction::WithCode;
use pando_base::{ErrorCode, Millis, Namespace, Result, limits};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{ObjectId, RawDoc, Value};
use pando_env::log::Component;
use pando_query::source::{Direction, IndexScan, RecordId, RecordScan, Source};
use std::sync::Arc;

/// Where expiry is looked up.
enum By {
    Index(Arc<Index>),
    /// A clustered collection whose `_id` is a date (or an ObjectId, by its seconds).
    Clustered,
}

impl Catalog {
    /// Deletes what has expired at `now`; returns how many documents. A collection that fails is skipped until the
    /// next pass.
    pub async fn ttl_pass(&self, now: Millis, interrupt: &dyn Interrupt) -> Result<u64> {
        let mut deleted = 0;
        let colls: Vec<Arc<Collection>> = self.snapshot().all_collections().cloned().collect();
        for coll in colls {
            let mut by: Vec<(By, i64)> = Vec::new();
            for i in coll.ready_indexes() {
                if let Some(seconds) = i.spec.expire_after_seconds.filter(|_| i.spec.fields.len() == 1) {
                    by.push((By::Index(i.clone()), seconds));
                }
            }
            if let (true, Some(seconds)) = (coll.is_clustered(), coll.options.expire_after_seconds) {
                by.push((By::Clustered, seconds));
            }
            for (by, seconds) in by {
                interrupt.check()?;
                let cutoff = now.saturating_sub(seconds.saturating_mul(1000));
                match self.expire(&coll.ns, &by, cutoff, interrupt).await {
                    Ok(n) => deleted += n,
                    Err(e) => {
                        interrupt.check()?;
                        self.env().log.warn(
                            Component::Index,
                            5400703,
                            "Error running TTL job on collection",
                            |a| {
                                a.str("namespace", coll.ns.as_str());
                                a.data("error", &WithCode(&e));
                            },
                        );
                    }
                }
            }
        }
        Ok(deleted)
    }

    async fn expire(
        &self,
        ns: &Namespace,
        by: &By,
        cutoff: Millis,
        interrupt: &dyn Interrupt,
    ) -> Result<u64> {
        let mut deleted = 0;
        loop {
            interrupt.check()?;
            let n = {
                let Some(coll) = self.write_lock(ns).await? else { return Ok(deleted) };
                match self.expire_some(coll.collection(), by, cutoff) {
                    // Somebody else works on the same documents: they can wait for the next pass.
                    Err(e) if e.code == ErrorCode::WriteConflict => return Ok(deleted),
                    // The tenant is about to be elsewhere, or is: what expires there is the new owner's business.
                    Err(e) if e.code.is_of_tenant() => return Ok(deleted),
                    n => n?,
                }
            };
            deleted += n as u64;
            if n < limits::TTL_UNIT_DOCS {
                return Ok(deleted);
            }
            self.env().tasks.yield_now().await;
        }
    }

    fn expire_some(&self, coll: &Arc<Collection>, by: &By, cutoff: Millis) -> Result<usize> {
        let mut unit = self.begin_write(coll)?;
        let mut source = CollectionSource::within(coll.clone(), unit.txn());
        let found = match by {
            By::Index(index) => expired_by_index(&mut source, coll, index, cutoff)?,
            By::Clustered => expired_by_id(&mut source, coll, cutoff)?,
        };
        let mut docs = Vec::with_capacity(found.len());
        for rid in found {
            if let Some(doc) = source.fetch(&rid)? {
                docs.push((rid, doc));
            }
        }
        drop(source);
        for (rid, doc) in &docs {
            unit.delete(&WriteOp::default(), coll, rid, RawDoc::trusted(doc), &[])?;
        }
        unit.commit()?;
        Ok(docs.len())
    }
}

fn expired_by_index(
    source: &mut CollectionSource<&pando_storage::Txn>,
    coll: &Collection,
    index: &Index,
    cutoff: Millis,
) -> Result<Vec<RecordId>> {
    let Some(at) = coll.ready_indexes().iter().position(|i| i.ident == index.ident) else {
        return Ok(Vec::new());
    };
    let key = |ms: Millis| {
        let mut b = KeyBuilder::new(index.keys.directions());
        b.append(Value::DateTime(ms));
        b
    };
    // Only dates count; with a descending index the range lies the other way round.
    let (first, last) = match index.keys.directions().is_descending(0) {
        false => (key(Millis::MIN), key(cutoff)),
        true => (key(cutoff), key(Millis::MIN)),
    };
    let (start, end) = (first.finish_before(), last.finish_after());
    let scan = IndexScan { index: at, start: &start, end: &end, dir: Direction::Forward, after: None };
    let mut cursor = source.scan_index(scan)?;
    let mut found: Vec<RecordId> = Vec::new();
    while found.len() < limits::TTL_UNIT_DOCS {
        let Some(entry) = cursor.next()? else { break };
        if !found.contains(&entry.rid) {
            found.push(entry.rid);
        }
    }
    Ok(found)
}

fn expired_by_id(
    source: &mut CollectionSource<&pando_storage::Txn>,
    coll: &Collection,
    cutoff: Millis,
) -> Result<Vec<RecordId>> {
    let key = |v: Value<'_>| {
        let mut b = KeyBuilder::default();
        b.append(v);
        RecordId::Key(b.finish().into())
    };
    let (min, max) = match &coll.options.time_series {
        None => (key(Value::DateTime(Millis::MIN)), key(Value::DateTime(cutoff))),
        // A bucket's `_id` has the second it begins at: all of its span must be over.
        Some(series) => {
            let secs = cutoff.div_euclid(1000) - series.bucketing.span_secs();
            let Ok(secs) = u32::try_from(secs) else { return Ok(Vec::new()) };
            let mut id = [0; 12];
            let first = key(Value::ObjectId(ObjectId(id)));
            id[..4].copy_from_slice(&secs.to_be_bytes());
            (first, key(Value::ObjectId(ObjectId(id))))
        }
    };
    let scan = RecordScan { dir: Direction::Forward, min: Some(&min), max: Some(&max), after: None };
    let mut cursor = source.scan_records(scan)?;
    let mut found = Vec::new();
    while found.len() < limits::TTL_UNIT_DOCS {
        let Some((rid, _)) = cursor.next()? else { break };
        found.push(rid);
    }
    Ok(found)
}
