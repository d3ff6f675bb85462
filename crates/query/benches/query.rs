//! Inner loops of queries. `cargo bench -p pando-query [NAME]`; figures are nanoseconds per call or per document.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use bytes::Bytes;
use pando_base::{Result, Timestamp};
use pando_bson::keystring::{Directions, KeyBuilder};
use pando_bson::{DocBuf, Document, RawDoc, Value, doc};
use pando_query::QueryCtx;
use pando_query::exec::{Executor, Quota, Resources, Step};
use pando_query::matcher::Matcher;
use pando_query::plan::{Query, solutions};
use pando_query::projection::{Projection, RowMeta};
use pando_query::sort::SortPattern;
use pando_query::source::*;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time this thread has spent on a processor, where the system tells it: other load does not count.
fn cpu_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = stat.and_then(|s| s.split(' ').next()?.parse().ok());
    ns.map_or_else(|| START.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}

fn run(name: &str, per_call: u32, mut f: impl FnMut()) {
    let filter = std::env::args().nth(1).filter(|a| !a.starts_with('-'));
    if filter.is_some_and(|want| !name.contains(&want)) {
        return;
    }
    let mut calls = 1u32;
    let mut best = f64::MAX;
    // Best of five batches of at least 50 ms.
    let mut batches = 0;
    while batches < 5 {
        let start = cpu_time();
        for _ in 0..calls {
            f();
        }
        let took = cpu_time() - start;
        if took < Duration::from_millis(50) {
            calls = calls.saturating_mul(2);
            continue;
        }
        batches += 1;
        best = best.min(took.as_nanos() as f64 / f64::from(calls));
    }
    println!("{name:<44} {:>10.1} ns", best / f64::from(per_call));
}

/// Twenty fields, some 430 bytes: a typical order record.
fn order(id: i32) -> DocBuf {
    doc! {
        "_id": id, "customer": "C-0098123", "status": "shipped", "total": 199.99, "currency": "EUR",
        "created": 1700000000000i64, "updated": 1700000100000i64, "paid": true, "gift": false, "weight": 1.25,
        "address": { "street": "Long Road 12", "city": "Uppsala", "zip": "75310", "country": "SE" },
        "items": [{ "sku": "A-1", "qty": 2, "price": 50.0 }, { "sku": "B-7", "qty": 1, "price": 99.99 }],
        "tags": ["a", "b", "c"], "note": "leave at the door, please ring twice", "rank": (id % 1000), "score": 0.5,
        "region": "north", "channel": "web", "attempts": 1, "version": 3
    }
    .to_raw()
}

/// Records and one index in plain vectors, to see what the executor itself costs.
struct VecSource {
    info: Arc<CollectionInfo>,
    docs: Arc<Vec<Bytes>>,
    /// Per index.
    keys: Vec<Arc<Vec<(Vec<u8>, i64)>>>,
}

struct Records(Arc<Vec<Bytes>>, usize);
impl RecordCursor for Records {
    fn next(&mut self) -> Result<Option<(RecordId, Bytes)>> {
        let Some(doc) = self.0.get(self.1) else { return Ok(None) };
        self.1 += 1;
        Ok(Some((RecordId::Long(self.1 as i64), doc.clone())))
    }
}

struct Keys {
    keys: Arc<Vec<(Vec<u8>, i64)>>,
    at: usize,
    end: usize,
}
impl IndexCursor for Keys {
    fn next(&mut self) -> Result<Option<IndexEntry<'_>>> {
        if self.at >= self.end {
            return Ok(None);
        }
        let (key, rid) = &self.keys[self.at];
        self.at += 1;
        Ok(Some(IndexEntry { key, type_bits: &[], rid: RecordId::Long(*rid) }))
    }
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.at += self.keys[self.at..self.end].partition_point(|(k, _)| k.as_slice() < key);
        Ok(())
    }
}

impl Source for VecSource {
    fn collection(&self) -> &Arc<CollectionInfo> {
        &self.info
    }
    fn read_ts(&self) -> Timestamp {
        Timestamp::ZERO
    }
    fn record_count(&self) -> u64 {
        self.docs.len() as u64
    }
    fn fetch(&mut self, rid: &RecordId) -> Result<Option<Bytes>> {
        let RecordId::Long(n) = rid else { return Ok(None) };
        Ok(self.docs.get(*n as usize - 1).cloned())
    }
    fn scan_records(&mut self, _scan: RecordScan<'_>) -> Result<Box<dyn RecordCursor>> {
        Ok(Box::new(Records(self.docs.clone(), 0)))
    }
    fn scan_index(&mut self, scan: IndexScan<'_>) -> Result<Box<dyn IndexCursor>> {
        let keys = self.keys[scan.index].clone();
        let at = keys.partition_point(|(k, _)| k.as_slice() < scan.start);
        let end = match scan.end {
            [] => keys.len(),
            end => keys.partition_point(|(k, _)| k.as_slice() < end),
        };
        Ok(Box::new(Keys { keys, at, end }))
    }
}

fn index(name: &str, path: &str) -> IndexInfo {
    let mut key = Document::new();
    key.push(path, 1);
    IndexInfo {
        name: name.to_owned(),
        key_pattern: key.to_raw(),
        fields: vec![IndexField { path: path.to_owned(), kind: FieldKind::Ascending }],
        kind: IndexKind::Btree,
        version: 2,
        unique: path == "_id",
        sparse: false,
        hidden: false,
        partial: None,
        collation: None,
        multikey: Multikey::new(1).into(),
        wildcard: None,
        text: None,
        geo: None,
    }
}

fn source(n: i32) -> VecSource {
    let docs: Vec<Bytes> = (0..n).map(|i| Bytes::from(order(i).into_bytes())).collect();
    let key = |v: Value<'_>| {
        let mut b = KeyBuilder::new(Directions::ASCENDING);
        b.append(v);
        b.finish()
    };
    let keys = ["_id", "rank"].map(|path| {
        let value = |d: &Bytes| key(RawDoc::trusted(d).get(path).unwrap());
        let mut all: Vec<(Vec<u8>, i64)> =
            docs.iter().enumerate().map(|(i, d)| (value(d), i as i64 + 1)).collect();
        all.sort();
        Arc::new(all)
    });
    let indexes = vec![index("_id_", "_id"), index("rank_1", "rank")];
    let info = CollectionInfo { indexes, ..CollectionInfo::default() };
    VecSource { info: Arc::new(info), docs: Arc::new(docs), keys: keys.to_vec() }
}

fn query(filter: Document) -> Query {
    let ctx = QueryCtx::default();
    Query::new("t.c", Arc::new(Matcher::parse(&filter.to_raw(), &ctx).unwrap()), ctx)
}

fn drain(q: Query, src: &mut VecSource) -> usize {
    let mut ex = Executor::new(q, src, Resources::default()).unwrap();
    let mut quota = Quota::new(1000);
    let mut n = 0;
    loop {
        match ex.next(src, &mut quota).unwrap() {
            Step::Row(row) => n += usize::from(!black_box(row.doc).is_empty()),
            Step::NeedYield => quota = Quota::new(1000),
            Step::Eof => return n,
        }
    }
}

fn filters() {
    let d = order(17);
    for (name, filter) in [
        ("match first field, int", doc! { "_id": 17 }),
        ("match third field, string", doc! { "status": "shipped" }),
        ("match fifteenth field, int", doc! { "rank": 17 }),
        ("match range of doubles", doc! { "score": { "$gt": 0.1, "$lt": 0.9 } }),
        (
            "match three fields, one nested",
            doc! { "rank": { "$gt": 5 }, "paid": true, "address.city": "Uppsala" },
        ),
        ("match through an array", doc! { "items.sku": "B-7" }),
        ("match $elemMatch", doc! { "items": { "$elemMatch": { "qty": 1, "price": { "$gt": 60.0 } } } }),
        ("match $in of ten ints", doc! { "rank": { "$in": [1, 3, 5, 7, 9, 11, 13, 15, 17, 19] } }),
        ("match regex, contains", doc! { "note": { "$regex": "ring" } }),
        ("match regex, classes", doc! { "note": { "$regex": "r[a-z]+ twice$" } }),
        ("match missing field", doc! { "nothing": 5 }),
    ] {
        let m = Matcher::parse(&filter.to_raw(), &QueryCtx::default()).unwrap();
        run(name, 1, || {
            black_box(m.matches(black_box(&d)).unwrap());
        });
    }
    let raw = doc! { "rank": { "$gt": 5 }, "paid": true, "address.city": "Uppsala" }.to_raw();
    let ctx = QueryCtx::default();
    run("parse filter of three fields", 1, || {
        black_box(Matcher::parse(black_box(&raw), &ctx).unwrap());
    });
}

fn projections() {
    let d = order(17);
    for (name, spec) in [
        ("project two fields", doc! { "status": 1, "total": 1 }),
        ("project all but one", doc! { "note": 0 }),
        ("project nested", doc! { "address.city": 1, "items.sku": 1 }),
    ] {
        let p = Projection::parse(&spec.to_raw(), &QueryCtx::default()).unwrap();
        run(name, 1, || {
            black_box(p.apply(black_box(&d), &RowMeta::default()).unwrap());
        });
    }
}

fn plans() {
    let src = source(10);
    let by_id = query(doc! { "_id": 5 });
    run("plan {_id: 5}", 1, || {
        black_box(solutions(black_box(&by_id), &src.info).unwrap());
    });
    let by_rank = query(doc! { "rank": 5 });
    run("plan {rank: 5}", 1, || {
        black_box(solutions(black_box(&by_rank), &src.info).unwrap());
    });
}

fn executions() {
    let n = 20_000;
    let mut src = source(n);
    run("run {_id: 5}, all in", 1, || {
        black_box(drain(query(doc! { "_id": 5 }), &mut src));
    });
    run("run {rank: 5}, 20 rows, all in", 1, || {
        black_box(drain(query(doc! { "rank": 5 }), &mut src));
    });
    run("scan with filter, none match, per document", n as u32, || {
        black_box(drain(query(doc! { "attempts": 2 }), &mut src));
    });
    run("scan all, per document", n as u32, || {
        black_box(drain(query(doc! {}), &mut src));
    });
    run("index range and fetch, per document", 10_000, || {
        black_box(drain(query(doc! { "rank": { "$lt": 500 } }), &mut src));
    });
    run("sort by two fields, limit 10, per document", n as u32, || {
        let mut q = query(doc! {});
        q.sort = Some(Arc::new(SortPattern::parse(&doc! { "region": 1, "version": -1 }.to_raw()).unwrap()));
        q.limit = Some(10);
        black_box(drain(q, &mut src));
    });
    run("sort by one field, per document", n as u32, || {
        let mut q = query(doc! {});
        q.sort = Some(Arc::new(SortPattern::parse(&doc! { "rank": 1, "x": 1 }.to_raw()).unwrap()));
        black_box(drain(q, &mut src));
    });
}

fn main() {
    filters();
    projections();
    plans();
    executions();
}
