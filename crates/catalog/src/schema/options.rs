//! Collection options: what they are, and how `listCollections`, catalog rows and log entries show them.

use crate::schema::stored_options;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc};
use pando_query::timeseries::TimeSeries;

/// What `create` may say about a collection or view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectionOptions {
    pub capped: Option<Capped>,
    pub validator: Option<DocBuf>,
    pub validation_level: Option<ValidationLevel>,
    pub validation_action: Option<ValidationAction>,
    /// With all fields filled in; `None` is the simple collation.
    pub collation: Option<DocBuf>,
    pub clustered: Option<ClusteredIndex>,
    /// Seconds; clustered collections only.
    pub expire_after_seconds: Option<i64>,
    pub change_stream_pre_and_post_images: bool,
    pub storage_engine: Option<DocBuf>,
    pub index_option_defaults: Option<DocBuf>,
    /// Goes away at the next start.
    pub temp: bool,
    pub view: Option<ViewDefinition>,
    /// Of a collection of buckets; in a command, of the time series to be made.
    pub time_series: Option<TimeSeries>,
    /// `autoIndexId` as it was given. `false` only unreplicated collections may have, and it is never stored.
    pub auto_index_id: Option<bool>,
}

/// Bounds of a capped collection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capped {
    /// Bytes, a multiple of 256.
    pub size: i64,
    /// Documents; `None` is no bound.
    pub max: Option<i64>,
}

/// The index a clustered collection's records are ordered by: `{_id: 1}`, unique.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusteredIndex {
    pub name: String,
}

/// What a view stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewDefinition {
    /// Collection or view name in the same database.
    pub view_on: String,
    /// An array of stages, as bytes.
    pub pipeline: DocBuf,
}

/// Which writes are validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ValidationLevel {
    Off,
    /// Inserts, and updates of documents that were valid before.
    Moderate,
    #[default]
    Strict,
}

/// What happens to an invalid write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ValidationAction {
    Warn,
    #[default]
    Error,
}

impl ValidationLevel {
    pub fn as_str(self) -> &'static str {
        match self {
            ValidationLevel::Off => "off",
            ValidationLevel::Moderate => "moderate",
            ValidationLevel::Strict => "strict",
        }
    }
    /// `field` is the full name for the error text, such as `create.validationLevel`.
    pub fn parse(s: &str, field: &str) -> Result<ValidationLevel> {
        match s {
            "off" => Ok(ValidationLevel::Off),
            "moderate" => Ok(ValidationLevel::Moderate),
            "strict" => Ok(ValidationLevel::Strict),
            _ => Err(bad_enum(s, field)),
        }
    }
}

impl ValidationAction {
    pub fn as_str(self) -> &'static str {
        match self {
            ValidationAction::Warn => "warn",
            ValidationAction::Error => "error",
        }
    }
    pub fn parse(s: &str, field: &str) -> Result<ValidationAction> {
        match s {
            "warn" => Ok(ValidationAction::Warn),
            "error" => Ok(ValidationAction::Error),
            _ => Err(bad_enum(s, field)),
        }
    }
}

fn bad_enum(s: &str, field: &str) -> Error {
    Error::bad_value(format!("Enumeration value '{s}' for field '{field}' is not a valid value."))
}

pub use pando_base::limits::CAPPED_BYTES_MAX;
/// Capped sizes are multiples of this many bytes.
const CAPPED_GRANULE: i64 = 256;

impl Capped {
    /// `size` rounded up as MongoDB does and kept within its bounds; `max` of zero or less means no bound but is shown as 2^31 - 1.
    pub fn new(size: i64, max: Option<i64>) -> Capped {
        let size = (size.clamp(1, CAPPED_BYTES_MAX) + CAPPED_GRANULE - 1) / CAPPED_GRANULE * CAPPED_GRANULE;
        let max = max.map(|m| if m <= 0 { i64::from(i32::MAX) } else { m });
        Capped { size, max }
    }
}

impl CollectionOptions {
    /// Parses options as stored: the rest of `{create: "c", ...}` in an oplog entry, or a catalog row's part.
    pub fn from_stored(options: &RawDoc) -> Result<CollectionOptions> {
        stored_options::read(options)
    }
    pub fn is_view(&self) -> bool {
        self.view.is_some()
    }
    /// Appends the options as `listCollections` shows them and as rows and oplog entries carry them.
    pub fn append_to(&self, b: &mut DocBuilder) {
        if let Some(capped) = &self.capped {
            b.bool("capped", true);
            b.i32_or_i64("size", capped.size);
            if let Some(max) = capped.max {
                b.i32_or_i64("max", max);
            }
        }
        if self.auto_index_id == Some(true) {
            b.bool("autoIndexId", true);
        }
        if self.temp {
            b.bool("temp", true);
        }
        if self.change_stream_pre_and_post_images {
            b.doc("changeStreamPreAndPostImages", |d| {
                d.bool("enabled", true);
            });
        }
        if let Some(d) = &self.storage_engine {
            b.raw_doc("storageEngine", d);
        }
        if let Some(d) = self.validator.as_ref().filter(|d| !d.is_empty()) {
            b.raw_doc("validator", d);
        }
        if let Some(level) = self.validation_level {
            b.str("validationLevel", level.as_str());
        }
        if let Some(action) = self.validation_action {
            b.str("validationAction", action.as_str());
        }
        if let Some(d) = &self.index_option_defaults {
            b.raw_doc("indexOptionDefaults", d);
        }
        if let Some(view) = &self.view {
            b.str("viewOn", &view.view_on);
            b.raw_array("pipeline", &view.pipeline);
        }
        if let Some(d) = &self.collation {
            b.raw_doc("collation", d);
        }
        match &self.clustered {
            Some(_) if self.time_series.is_some() => {
                b.bool("clusteredIndex", true);
            }
            Some(clustered) => {
                b.raw_doc("clusteredIndex", &clustered.to_doc());
            }
            None => {}
        }
        if let Some(seconds) = self.expire_after_seconds {
            b.i64("expireAfterSeconds", seconds);
        }
        if let Some(series) = &self.time_series {
            b.doc("timeseries", |d| series.append_to(d));
        }
    }
    pub fn to_doc(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        self.append_to(&mut b);
        b.finish()
    }
}

impl ClusteredIndex {
    pub fn to_doc(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.i32("v", 2);
        b.doc("key", |k| {
            k.i32("_id", 1);
        });
        b.str("name", &self.name);
        b.bool("unique", true);
        b.finish()
    }
}

pub(crate) fn invalid(message: &'static str) -> Error {
    Error::new(ErrorCode::InvalidOptions, message)
}

pub(crate) fn wrong_type(command: &str, e: Elem<'_>, expected: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '{command}.{}' is the wrong type '{}', expected {expected}",
        e.name(),
        e.value().type_name()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    #[test]
    fn capped_sizes_round_up_to_256() {
        for (size, stored) in [(100, 256), (1000, 1024), (5000, 5120), (256, 256)] {
            assert_eq!(Capped::new(size, None).size, stored);
        }
        assert_eq!(Capped::new(5000, Some(0)), Capped { size: 5120, max: Some(2_147_483_647) });
    }

    #[test]
    fn sizes_that_only_an_older_version_let_in_are_cut_to_the_bound() {
        for size in [CAPPED_BYTES_MAX + 1, i64::MAX] {
            let stored = doc! { "capped": true, "size": size }.to_raw();
            let capped = CollectionOptions::from_stored(&stored).unwrap().capped.unwrap();
            assert_eq!(capped.size, CAPPED_BYTES_MAX);
            assert_eq!(Capped::new(size, None), capped);
        }
    }

    #[test]
    fn stored_options_read_back_the_same() {
        let all = [
            doc! { "capped": true, "size": 512, "max": 3 },
            doc! { "validator": { "a": 1 }, "validationLevel": "off", "validationAction": "warn" },
            doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": true, "name": "x" }, "expireAfterSeconds": 5 },
            doc! { "viewOn": "c", "pipeline": [{ "$match": {} }] },
            doc! { "changeStreamPreAndPostImages": { "enabled": true } },
        ];
        for fields in all {
            let o = CollectionOptions::from_stored(&fields.to_raw()).unwrap();
            assert_eq!(CollectionOptions::from_stored(&o.to_doc()).unwrap(), o);
        }
    }
}
