//! `{x: {$meta: "sortKey"}}`: facts about a row that are not in the document.

use super::RowMeta;
use crate::source::RecordId;
use pando_base::{Error, Result};
use pando_bson::{DocBuilder, Value};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetaField {
    TextScore,
    GeoNearDistance,
    GeoNearPoint,
    IndexKey,
    RecordId,
    SortKey,
    SearchScore,
    SearchHighlights,
    RandVal,
}

impl MetaField {
    pub fn parse(v: Value<'_>) -> Result<MetaField> {
        let Value::String(name) = v else {
            return Err(Error::location(17307, "$meta only supports string arguments"));
        };
        Ok(match name {
            "textScore" => MetaField::TextScore,
            "geoNearDistance" => MetaField::GeoNearDistance,
            "geoNearPoint" => MetaField::GeoNearPoint,
            "indexKey" => MetaField::IndexKey,
            "recordId" => MetaField::RecordId,
            "sortKey" => MetaField::SortKey,
            "searchScore" => MetaField::SearchScore,
            "searchHighlights" => MetaField::SearchHighlights,
            // What no row here has reads as that.
            "randVal" | "searchScoreDetails" | "timeseriesBucketMinTime" | "timeseriesBucketMaxTime" => {
                MetaField::RandVal
            }
            other => return Err(Error::location(17308, format!("Unsupported argument to $meta: {other}"))),
        })
    }

    /// Only a geo search knows it.
    pub(crate) fn is_of_near(self) -> bool {
        matches!(self, MetaField::GeoNearDistance | MetaField::GeoNearPoint)
    }

    /// Adds the value under `name`, if the row has it.
    pub(super) fn write(self, row: &RowMeta<'_>, name: &str, out: &mut DocBuilder) {
        match self {
            MetaField::RecordId => match row.record_id {
                Some(RecordId::Long(n)) => {
                    out.i64(name, *n);
                }
                Some(RecordId::Key(k)) => {
                    out.binary(name, 0, k);
                }
                None => {
                    out.null(name);
                }
            },
            MetaField::SortKey => {
                if let Some(key) = row.sort_key {
                    out.raw_array(name, key);
                }
            }
            MetaField::IndexKey => {
                if let Some(key) = row.index_key {
                    out.raw_doc(name, key);
                }
            }
            MetaField::TextScore => {
                if let Some(score) = row.facts.and_then(|f| f.text_score) {
                    out.f64(name, score);
                }
            }
            MetaField::GeoNearDistance => {
                if let Some(near) = row.facts.and_then(|f| f.near.as_ref()) {
                    out.f64(name, near.distance);
                }
            }
            MetaField::GeoNearPoint => {
                if let Some(place) = row.facts.and_then(|f| f.near.as_ref()?.place.get("")) {
                    out.value(name, place);
                }
            }
            // No row carries these without a search stage.
            MetaField::SearchScore | MetaField::SearchHighlights | MetaField::RandVal => {}
        }
    }
}
