//! `{x: {$meta: "sortKey"}}`: facts about a row that are not in the document.

use super::RowMeta;
use crate::facts::MetaField;
use crate::source::RecordId;
use pando_bson::DocBuilder;

/// Adds the value under `name`, if the row has it.
pub(super) fn write(meta: MetaField, row: &RowMeta<'_>, name: &str, out: &mut DocBuilder) {
    match meta {
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
        MetaField::SearchScore
        | MetaField::SearchHighlights
        | MetaField::SearchScoreDetails
        | MetaField::RandVal
        | MetaField::BucketMinTime
        | MetaField::BucketMaxTime => {}
    }
}
