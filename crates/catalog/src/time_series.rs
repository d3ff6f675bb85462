//! Time series: a collection of buckets and a view of it, made and dropped together.

use crate::Catalog;
use crate::collection::View;
use crate::options::{ClusteredIndex, CollectionOptions, ViewDefinition};
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result};
use pando_bson::{DocBuf, DocBuilder, doc};
use pando_query::timeseries::TimeSeries;

/// What the names of collections of buckets begin with.
pub(crate) const BUCKETS: &str = "system.buckets.";

impl Catalog {
    /// Creates the buckets, then the view.
    pub(crate) async fn create_time_series(
        &self,
        ns: &Namespace,
        options: CollectionOptions,
    ) -> Result<OpTime> {
        let Some(series) = options.time_series.clone() else {
            return Err(Error::internal("a time series without its definition"));
        };
        check(ns, &options, &series)?;
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
        if self.lookup(&buckets).is_none() {
            self.create_collection(&buckets, below).await?;
        }
        self.create_view(ns, &view).await
    }
}

fn check(ns: &Namespace, o: &CollectionOptions, series: &TimeSeries) -> Result<()> {
    let refused = [
        ("capped", o.capped.is_some()),
        ("viewOn", o.view.is_some()),
        ("clusteredIndex", o.clustered.is_some()),
        ("validator", o.validator.is_some()),
        ("validationLevel", o.validation_level.is_some()),
        ("validationAction", o.validation_action.is_some()),
    ];
    if let Some((name, _)) = refused.iter().find(|(_, given)| *given) {
        let text = format!("{ns}: 'timeseries' is not allowed with '{name}'");
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    series.check(ns.as_str())
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
