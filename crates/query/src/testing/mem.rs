//! A [`Source`] over maps.

use crate::collation::Collation;
use crate::ctx::QueryCtx;
use crate::expand::expand;
use crate::matcher::Matcher;
use crate::source::*;
use bytes::Bytes;
use pando_base::{Result, Timestamp};
use pando_bson::keystring::{Directions, KeyBuilder};
use pando_bson::{Bson, DocBuf, Document, Elem, ElementType, RawDoc, Value};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

type Entries = BTreeMap<(Vec<u8>, RecordId), Vec<u8>>;

#[derive(Clone)]
pub(crate) struct MemSource {
    pub(crate) info: Arc<CollectionInfo>,
    docs: Arc<BTreeMap<RecordId, Bytes>>,
    entries: Vec<Arc<Entries>>,
    /// Documents fetched by record id.
    pub(crate) fetches: usize,
    /// Which documents plans may show.
    pub(crate) owned: Option<Arc<dyn Owned>>,
}

impl MemSource {
    /// `indexes`: `{key: {...}, name, sparse, hidden, partialFilterExpression, wildcardProjection}`; `_id_` is added.
    pub(crate) fn new(docs: &[Document], indexes: &[Document]) -> MemSource {
        MemSource::with_collation(docs, indexes, None)
    }

    pub(crate) fn with_collation(
        docs: &[Document],
        indexes: &[Document],
        collation: Option<Arc<Collation>>,
    ) -> MemSource {
        let mut all = vec![pando_bson::doc! { "key": { "_id": 1 }, "name": "_id_", "unique": true }];
        all.extend(indexes.iter().cloned());
        let infos: Vec<IndexInfo> = all.iter().map(|s| index_info(s, &collation)).collect();
        let map: BTreeMap<RecordId, Bytes> = docs
            .iter()
            .enumerate()
            .map(|(i, d)| (RecordId::Long(i as i64 + 1), Bytes::from(d.to_raw().into_bytes())))
            .collect();
        let entries = infos
            .iter()
            .map(|index| {
                let mut e = Entries::new();
                for (rid, doc) in &map {
                    for (key, bits) in keys(index, RawDoc::trusted(doc)) {
                        e.insert((key, rid.clone()), bits);
                    }
                }
                Arc::new(e)
            })
            .collect();
        let info = CollectionInfo { indexes: infos, collation, ..CollectionInfo::default() };
        MemSource { info: Arc::new(info), docs: Arc::new(map), entries, fetches: 0, owned: None }
    }
    /// The same as a capped collection.
    pub(crate) fn capped(mut self) -> MemSource {
        if let Some(info) = Arc::get_mut(&mut self.info) {
            info.capped = true;
        }
        self
    }
}

fn index_info(spec: &Document, default: &Option<Arc<Collation>>) -> IndexInfo {
    let key = spec.get("key").and_then(Bson::as_doc).unwrap();
    let kind_of = |v: &Bson| match v {
        Bson::String(s) if s == "hashed" => FieldKind::Hashed,
        Bson::String(s) if s == "text" => FieldKind::Text,
        Bson::String(_) => FieldKind::Geo,
        v if v.as_f64().unwrap() < 0.0 => FieldKind::Descending,
        _ => FieldKind::Ascending,
    };
    let fields: Vec<IndexField> =
        key.iter().map(|(path, v)| IndexField { path: path.to_owned(), kind: kind_of(v) }).collect();
    let wild = fields.iter().find(|f| f.path == "$**" || f.path.ends_with(".$**")).map(|f| f.path.clone());
    let hashed = fields.iter().any(|f| f.kind == FieldKind::Hashed);
    let is = |name: &str| spec.get(name).is_some_and(Bson::is_truthy);
    let partial = spec.get("partialFilterExpression").and_then(Bson::as_doc);
    let own = spec.get("collation").and_then(Bson::as_doc);
    let wildcard = wild.as_ref().map(|path| {
        let projection = spec.get("wildcardProjection").and_then(Bson::as_doc);
        Arc::new(Wildcard {
            prefix: path.strip_suffix(".$**").unwrap_or_default().to_owned(),
            projection: projection.map_or_else(DocBuf::new, Document::to_raw),
            ..Wildcard::default()
        })
    });
    IndexInfo {
        name: spec.get("name").and_then(Bson::as_str).unwrap().to_owned(),
        key_pattern: key.to_raw(),
        multikey: Arc::new(Multikey::new(if wild.is_some() { 0 } else { fields.len() })),
        kind: match (wild.is_some(), hashed) {
            (true, _) => IndexKind::Wildcard,
            (_, true) => IndexKind::Hashed,
            _ => IndexKind::Btree,
        },
        fields,
        version: 2,
        unique: is("unique"),
        sparse: is("sparse"),
        hidden: is("hidden"),
        partial: partial.map(|d| Arc::new(Matcher::parse(&d.to_raw(), &QueryCtx::default()).unwrap())),
        collation: match own {
            Some(c) => Collation::parse(&c.to_raw()).unwrap(),
            None => default.clone(),
        },
        wildcard,
        text: None,
        geo: None,
    }
}

fn keys(index: &IndexInfo, doc: &RawDoc) -> Vec<(Vec<u8>, Vec<u8>)> {
    if index.partial.as_ref().is_some_and(|p| !p.matches(doc).unwrap()) {
        return Vec::new();
    }
    if let Some(w) = &index.wildcard {
        return wildcard_keys(w, index, doc);
    }
    if index.sparse && index.fields.iter().all(|f| !exists(doc, &f.path)) {
        return Vec::new();
    }
    for (i, f) in index.fields.iter().enumerate() {
        let bits = array_bits(doc, &f.path);
        if bits != 0 {
            index.multikey.mark(i, bits);
        }
    }
    let directions = index.fields.iter().enumerate();
    let directions =
        Directions(directions.fold(0, |b, (i, f)| b | u32::from(f.kind == FieldKind::Descending) << i));
    let paths: Vec<Vec<&str>> = index.fields.iter().map(|f| f.path.split('.').collect()).collect();
    let mut out = Vec::new();
    let paths: Vec<&[&str]> = paths.iter().map(|p| &**p).collect();
    expand(&paths, None, doc, &mut |values: &[Value<'_>]| {
        let mut b = KeyBuilder::new(directions);
        for (v, f) in values.iter().zip(&index.fields) {
            match f.kind {
                FieldKind::Hashed => b.append(Value::Int64(pando_bson::hashed::hashed_key(*v))),
                _ => b.append_with(*v, Collation::order(&index.collation)),
            };
        }
        out.push((b.bytes().to_vec(), b.type_bits().to_vec()));
    })
    .unwrap();
    out
}

fn exists(doc: &RawDoc, path: &str) -> bool {
    let mut filter = Document::new();
    filter.push(path, pando_bson::doc! { "$exists": true });
    Matcher::parse(&filter.to_raw(), &QueryCtx::default()).unwrap().matches(doc).unwrap()
}

/// Which components of the path reach an array.
fn array_bits(doc: &RawDoc, path: &str) -> u64 {
    fn walk(e: Option<Elem<'_>>, rest: &[&str], at: u32) -> u64 {
        let Some(e) = e else { return 0 };
        let inner = RawDoc::trusted(e.data());
        match e.ty {
            ElementType::Array => {
                let below = |x: Elem<'_>| match rest.split_first() {
                    Some((head, tail)) if x.ty == ElementType::Document => {
                        walk(RawDoc::trusted(x.data()).elem(head), tail, at + 1)
                    }
                    _ => 0,
                };
                let by_position =
                    rest.split_first().map_or(0, |(head, tail)| walk(inner.elem(head), tail, at + 1));
                inner.iter().map(below).fold(1 << at | by_position, |a, b| a | b)
            }
            ElementType::Document => match rest.split_first() {
                Some((head, tail)) => walk(inner.elem(head), tail, at + 1),
                None => 0,
            },
            _ => 0,
        }
    }
    let parts: Vec<&str> = path.split('.').collect();
    walk(doc.elem(parts[0]), &parts[1..], 0)
}

fn wildcard_keys(w: &Wildcard, index: &IndexInfo, doc: &RawDoc) -> Vec<(Vec<u8>, Vec<u8>)> {
    fn walk<'a>(d: &'a RawDoc, prefix: &str, w: &Wildcard, out: &mut Vec<(String, Value<'a>)>) {
        for e in d {
            let path = if prefix.is_empty() { e.name().to_owned() } else { format!("{prefix}.{}", e.name()) };
            leaf(e, path, w, out, false);
        }
    }
    fn leaf<'a>(e: Elem<'a>, path: String, w: &Wildcard, out: &mut Vec<(String, Value<'a>)>, in_array: bool) {
        let inner = RawDoc::trusted(e.data());
        match e.ty {
            ElementType::Document if !inner.is_empty() => walk(inner, &path, w, out),
            ElementType::Array if !in_array => {
                w.multikey_paths.write().unwrap().insert(path.clone());
                if inner.is_empty() {
                    out.push((path, Value::Undefined));
                } else {
                    inner.iter().for_each(|x| leaf(x, path.clone(), w, out, true));
                }
            }
            _ => out.push((path, e.value())),
        }
    }
    let mut leaves = Vec::new();
    walk(doc, "", w, &mut leaves);
    leaves
        .into_iter()
        .filter(|(path, _)| crate::plan::wildcard_covers(&w.prefix, &w.projection, path))
        .map(|(path, v)| {
            let mut b = KeyBuilder::default();
            b.append(Value::String(&path)).append_with(v, Collation::order(&index.collation));
            if !w.multikey_paths.read().unwrap().is_empty() {
                index.multikey.any.store(true, Ordering::Release);
            }
            (b.bytes().to_vec(), b.type_bits().to_vec())
        })
        .collect()
}

struct Records {
    docs: Arc<BTreeMap<RecordId, Bytes>>,
    low: Bound<RecordId>,
    high: Bound<RecordId>,
    dir: Direction,
}

impl RecordCursor for Records {
    fn next(&mut self) -> Result<Option<(RecordId, Bytes)>> {
        let empty = match (&self.low, &self.high) {
            (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => a > b,
            _ => false,
        } || matches!((&self.low, &self.high), (Bound::Excluded(a), Bound::Excluded(b) | Bound::Included(b)) if a == b);
        if empty {
            return Ok(None);
        }
        let mut range = self.docs.range((self.low.clone(), self.high.clone()));
        let found = if self.dir.is_forward() { range.next() } else { range.next_back() };
        let Some((rid, doc)) = found else { return Ok(None) };
        match self.dir {
            Direction::Forward => self.low = Bound::Excluded(rid.clone()),
            Direction::Backward => self.high = Bound::Excluded(rid.clone()),
        }
        Ok(Some((rid.clone(), doc.clone())))
    }
}

struct Keys {
    entries: Arc<Entries>,
    start: Vec<u8>,
    end: Vec<u8>,
    dir: Direction,
    after: Option<(Vec<u8>, RecordId)>,
    seek: Option<Vec<u8>>,
    /// The entry given last, for its borrow.
    current: (Vec<u8>, Vec<u8>),
}

impl IndexCursor for Keys {
    fn next(&mut self) -> Result<Option<IndexEntry<'_>>> {
        let inside =
            |key: &[u8]| key >= self.start.as_slice() && (self.end.is_empty() || key < self.end.as_slice());
        let past = |k: &(Vec<u8>, RecordId)| match (&self.after, self.dir) {
            (None, _) => true,
            (Some(a), Direction::Forward) => k > a,
            (Some(a), Direction::Backward) => k < a,
        };
        let sought = |key: &[u8]| match (&self.seek, self.dir) {
            (None, _) => true,
            (Some(t), Direction::Forward) => key >= t.as_slice(),
            (Some(t), Direction::Backward) => key < t.as_slice(),
        };
        let wanted = |k: &(Vec<u8>, RecordId)| inside(&k.0) && past(k) && sought(&k.0);
        let found = match self.dir {
            Direction::Forward => self.entries.iter().find(|(k, _)| wanted(k)),
            Direction::Backward => self.entries.iter().rev().find(|(k, _)| wanted(k)),
        };
        let Some(((key, rid), bits)) = found else { return Ok(None) };
        let rid = rid.clone();
        self.current = (key.clone(), bits.clone());
        self.after = Some((key.clone(), rid.clone()));
        self.seek = None;
        Ok(Some(IndexEntry { key: &self.current.0, type_bits: &self.current.1, rid }))
    }
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.seek = Some(key.to_vec());
        Ok(())
    }
}

impl Source for MemSource {
    fn collection(&self) -> &Arc<CollectionInfo> {
        &self.info
    }
    fn read_ts(&self) -> Timestamp {
        Timestamp::ZERO
    }
    fn owned(&self) -> Option<&Arc<dyn Owned>> {
        self.owned.as_ref()
    }
    fn record_count(&self) -> u64 {
        self.docs.len() as u64
    }
    fn fetch(&mut self, rid: &RecordId) -> Result<Option<Bytes>> {
        self.fetches += 1;
        Ok(self.docs.get(rid).cloned())
    }
    fn scan_records(&mut self, scan: RecordScan<'_>) -> Result<Box<dyn RecordCursor>> {
        let bound = |r: Option<&RecordId>| r.cloned().map_or(Bound::Unbounded, Bound::Included);
        let (mut low, mut high) = (bound(scan.min), bound(scan.max));
        if let Some(after) = scan.after {
            match scan.dir {
                Direction::Forward => low = Bound::Excluded(after.clone()),
                Direction::Backward => high = Bound::Excluded(after.clone()),
            }
        }
        Ok(Box::new(Records { docs: self.docs.clone(), low, high, dir: scan.dir }))
    }
    fn scan_index(&mut self, scan: IndexScan<'_>) -> Result<Box<dyn IndexCursor>> {
        Ok(Box::new(Keys {
            entries: self.entries[scan.index].clone(),
            start: scan.start.to_vec(),
            end: scan.end.to_vec(),
            dir: scan.dir,
            after: scan.after.map(|(k, r)| (k.to_vec(), r.clone())),
            seek: None,
            current: Default::default(),
        }))
    }
}
