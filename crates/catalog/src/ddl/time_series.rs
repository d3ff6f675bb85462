//! Time series: a collection of buckets and a view of it, made and dropped together.

use crate::Catalog;
use crate::ddl::coll_mod::Modified;
use crate::read::source::CollectionSource;
use crate::schema::collection::{Collection, View};
use crate::schema::names;
use crate::schema::options::{ClusteredIndex, CollectionOptions, ViewDefinition};
use crate::write::interrupt::Uninterrupted;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, Uuid};
use pando_bson::keystring::{KeyBuilder, key_of};
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc, Value, doc};
use pando_query::source::{Direction, IndexScan, RecordId, RecordScan, Source};
use pando_query::timeseries::{TimeSeries, id_seconds, index_on_buckets, key_on_buckets};
use pando_storage::Txn;
use std::sync::Arc;

/// What the names of collections of buckets begin with.
pub(crate) const BUCKETS: &str = "system.buckets.";

impl Catalog {
    /// Creates the buckets, with a UUID that they had elsewhere if one is given, then the view.
    pub(crate) async fn create_time_series(
        &self,
        ns: &Namespace,
        options: CollectionOptions,
        uuid: Option<Uuid>,
    ) -> Result<OpTime> {
        let Some(series) = options.time_series.clone() else {
            return Err(Error::internal("a time series without its definition"));
        };
        self.check_free(ns)?;
        let buckets = Namespace::unchecked(ns.db(), &format!("{BUCKETS}{}", ns.coll()));
        let view = CollectionOptions {
            view: Some(ViewDefinition {
                view_on: buckets.coll().to_owned(),
                pipeline: series.view_pipeline(),
            }),
            collation: options.collation.clone(),
            ..CollectionOptions::default()
        };
        let below = CollectionOptions {
            validator: Some(bucket_schema(&series)),
            clustered: Some(ClusteredIndex { name: "_id_".to_owned() }),
            ..options
        };
        names::check_creatable(ns)?;
        names::check_view_name(ns)?;
        if let Some(there) = self.lookup(&buckets) {
            // Buckets like these were left behind by a command that did not come to its end: only their view is missing.
            if there.options != below {
                return Err(Error::new(
                    ErrorCode::NamespaceExists,
                    format!("Bucket Collection already exists. NS: {buckets}. UUID: {}", there.uuid),
                ));
            }
        } else {
            match uuid {
                None => self.create_collection(&buckets, below).await?,
                Some(uuid) => self.create_as(&buckets, below, uuid).await?,
            };
            // As MongoDB does since 6.3.
            if let Some(spec) = series.first_index() {
                let spec = index_on_buckets(&series, &spec, false)?;
                self.create_indexes(&buckets, &[&*spec], &Uninterrupted).await?;
            }
        }
        self.create_view(ns, &view).await
    }
}

impl Catalog {
    /// The time series that a view shows. None where only the name below is one of buckets: anybody may define such a view.
    pub(crate) fn series_below(&self, view: &View) -> Option<TimeSeries> {
        self.lookup(view.buckets()?)?.options.time_series.clone()
    }

    /// `collMod` of a time series: of its buckets, and of the view when buckets get another span. With the database's
    /// lock held.
    pub(crate) async fn modify_series(&self, view: &View, command: &RawDoc) -> Result<Modified> {
        let Some(series) = self.series_below(view) else { return Err(Error::internal("no time series")) };
        let mut below = DocBuilder::with_capacity(command.byte_len() + 32);
        for (i, e) in command.iter().enumerate() {
            match (e.name(), e.value()) {
                _ if i == 0 => below.str("collMod", view.on.coll()),
                ("isTimeseriesNamespace", _) => &mut below,
                ("index", Value::Document(index)) => {
                    let mut change = DocBuilder::new();
                    for f in index {
                        match (f.name(), f.value()) {
                            ("keyPattern", Value::Document(key)) => {
                                change.raw_doc("keyPattern", &key_on_buckets(&series, key)?)
                            }
                            _ => change.elem(f),
                        };
                    }
                    below.raw_doc("index", &change.finish())
                }
                _ => below.elem(e),
            };
        }
        let done = self.modify_collection(&view.on, below.finish()).await?;
        let now = self.lookup(&view.on).and_then(|c| c.options.time_series.clone());
        let Some(now) = now.filter(|now| *now != series) else { return Ok(done) };
        let new = View { pipeline: now.view_pipeline(), ..view.clone() };
        let last = self.change_view_doc(&view.ns, Some(&new)).await?;
        Ok(Modified { last, ..done })
    }
}

/// How many buckets are looked at before a new one is opened.
const REOPEN_TRIES: usize = 4;

/// Stored buckets whose span may take a measurement of this source (`{meta: ..}`, or nothing), the newest first.
/// Without an index on sources and times there are none, unless no measurement has a source.
pub fn buckets_for(
    txn: &Txn,
    coll: &Arc<Collection>,
    series: &TimeSeries,
    source: &RawDoc,
    time_ms: i64,
) -> Result<Vec<(RecordId, DocBuf)>> {
    let first = time_ms.saturating_sub(series.span_ms() - 1);
    let mut cursor = CollectionSource::within(coll.clone(), txn);
    let mut rids = Vec::new();
    match &series.meta_field {
        None => {
            let id = |ms: i64, rest: u8| {
                let mut id = [rest; 12];
                id[..4].copy_from_slice(&id_seconds(ms).to_be_bytes());
                RecordId::Key(key_of(Value::ObjectId(ObjectId(id))).into())
            };
            let (min, max) = (id(first, 0), id(time_ms, 0xff));
            let dir = Direction::Backward;
            let scan = RecordScan { dir, min: Some(&min), max: Some(&max), after: None };
            let mut records = cursor.scan_records(scan)?;
            let mut out = Vec::new();
            while out.len() < REOPEN_TRIES {
                let Some((rid, doc)) = records.next()? else { break };
                out.push((rid, RawDoc::trusted(&doc).to_buf()));
            }
            return Ok(out);
        }
        Some(_) => {
            let Some((index, descending)) = index_of_sources(coll, series) else { return Ok(Vec::new()) };
            let source = source.get("meta").unwrap_or(Value::Null);
            if matches!(source, Value::Array(_)) {
                // Its entries are those of its members.
                return Ok(Vec::new());
            }
            let key = |ms: i64| {
                let mut b = KeyBuilder::new(coll.ready_indexes()[index].keys.directions());
                b.append(source).append(Value::DateTime(ms));
                b
            };
            let (from, to, dir) = match descending {
                false => (first, time_ms, Direction::Backward),
                true => (time_ms, first, Direction::Forward),
            };
            let (start, end) = (key(from).finish_before(), key(to).finish_after());
            let mut entries =
                cursor.scan_index(IndexScan { index, start: &start, end: &end, dir, after: None })?;
            while rids.len() < REOPEN_TRIES {
                let Some(entry) = entries.next()? else { break };
                rids.push(entry.rid);
            }
        }
    }
    let mut out = Vec::with_capacity(rids.len());
    for rid in rids {
        if let Some(doc) = cursor.fetch(&rid)? {
            out.push((rid, RawDoc::trusted(&doc).to_buf()));
        }
    }
    Ok(out)
}

/// A ready index whose key begins with the source and the least time; true when the latter descends.
fn index_of_sources(coll: &Collection, series: &TimeSeries) -> Option<(usize, bool)> {
    // Keys under a collation are not those of the values.
    if coll.collation().is_some() {
        return None;
    }
    let time = format!("control.min.{}", series.time_field);
    coll.ready_indexes().iter().enumerate().find_map(|(at, i)| {
        let mut key = i.spec.key.iter();
        let (meta, min) = (key.next()?, key.next()?);
        let plain = i.spec.doc.get("partialFilterExpression").is_none()
            && !i.spec.doc.get("sparse").is_some_and(|v| v.is_truthy())
            && meta.value().is_number();
        let descending = min.value().as_f64()? < 0.0;
        (plain && meta.name() == "meta" && min.name() == time).then_some((at, descending))
    })
}

/// What a bucket has to look like.
fn bucket_schema(series: &TimeSeries) -> DocBuf {
    let extreme = || {
        let mut properties = pando_bson::Document::new();
        properties.push(series.time_field.clone(), doc! { "bsonType": "date" });
        doc! { "bsonType": "object", "required": [series.time_field.clone()], "properties": properties }
    };
    let control = doc! {
        "bsonType": "object",
        "required": ["version", "min", "max"],
        "properties": {
            "version": { "bsonType": "number" }, "min": extreme(), "max": extreme(), "closed": { "bsonType": "bool" },
        },
    };
    let schema = doc! {
        "bsonType": "object",
        "required": ["_id", "control", "data"],
        "properties": {
            "_id": { "bsonType": "objectId" }, "control": control, "data": { "bsonType": "object" }, "meta": {},
        },
        "additionalProperties": false,
    };
    doc! { "$jsonSchema": schema }.to_raw()
}

impl View {
    /// The collection of buckets below, if this is a time series.
    pub fn buckets(&self) -> Option<&Namespace> {
        Some(&self.on).filter(|on| on.coll().starts_with(BUCKETS))
    }

    /// As `listCollections` shows a time series, from the options of its buckets.
    pub fn list_time_series(&self, buckets: &CollectionOptions, name_only: bool) -> DocBuf {
        let mut b = DocBuilder::new();
        b.str("name", self.ns.coll()).str("type", "timeseries");
        if name_only {
            return b.finish();
        }
        b.doc("options", |o| {
            let shown = CollectionOptions { validator: None, clustered: None, ..buckets.clone() };
            shown.append_to(o);
        });
        b.doc("info", |i| {
            i.bool("readOnly", false);
        });
        b.finish()
    }
}
