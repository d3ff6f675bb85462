//! What is known of a row beside its document, and the names under which `$meta` asks for it.

use pando_base::{Error, Result};
use pando_bson::{DocBuf, RawDoc, Value};

/// Goes with a row through plans and pipelines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// How well a text search liked it.
    pub text_score: Option<f64>,
    /// The values it was sorted by, as an array.
    pub sort_key: Option<DocBuf>,
    pub near: Option<Nearness>,
    /// Where it stands (as the only element), and the index key that led to it: known to what is projected at once, and not kept.
    pub place: Option<DocBuf>,
    pub index_key: Option<DocBuf>,
}

/// How near a row is to what was searched.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearness {
    /// In the query's unit.
    pub distance: f64,
    /// The place that is so near, as the only element.
    pub place: DocBuf,
}

impl Facts {
    pub fn scored(score: f64) -> Box<Facts> {
        Box::new(Facts { text_score: Some(score), ..Facts::default() })
    }
    pub(crate) fn byte_len(&self) -> usize {
        let key = self.sort_key.as_ref().map_or(0, |k| k.byte_len());
        size_of::<Facts>() + key + self.near.as_ref().map_or(0, |n| n.place.byte_len())
    }
    /// For a run on disk: a byte that says what is there, then that.
    pub(crate) fn encode(facts: Option<&Facts>, out: &mut Vec<u8>) {
        let none = Facts::default();
        let facts = facts.unwrap_or(&none);
        let bits = [facts.text_score.is_some(), facts.sort_key.is_some(), facts.near.is_some()];
        out.push(bits.iter().enumerate().fold(0, |kinds, (i, there)| kinds | u8::from(*there) << i));
        if let Some(score) = facts.text_score {
            out.extend_from_slice(&score.to_le_bytes());
        }
        if let Some(key) = &facts.sort_key {
            out.extend_from_slice(&(key.byte_len() as u32).to_le_bytes());
            out.extend_from_slice(key.as_bytes());
        }
        if let Some(near) = &facts.near {
            out.extend_from_slice(&near.distance.to_le_bytes());
            out.extend_from_slice(&(near.place.byte_len() as u32).to_le_bytes());
            out.extend_from_slice(near.place.as_bytes());
        }
    }
    /// Takes what [`Facts::encode`] wrote from the front of `bytes`.
    pub(crate) fn decode(bytes: &mut &[u8]) -> Result<Option<Box<Facts>>> {
        let short = || Error::internal("a sort run on disk is damaged");
        let kinds = take(bytes, 1).ok_or_else(short)?[0];
        if kinds == 0 {
            return Ok(None);
        }
        let number =
            |bytes: &mut &[u8]| take(bytes, 8).and_then(|b| b.first_chunk().copied()).map(f64::from_le_bytes);
        let doc = |bytes: &mut &[u8]| {
            let len = take(bytes, 4).and_then(|b| b.first_chunk().copied())?;
            Some(RawDoc::trusted(take(bytes, u32::from_le_bytes(len) as usize)?).to_buf())
        };
        let mut facts = Facts::default();
        if kinds & 1 != 0 {
            facts.text_score = Some(number(bytes).ok_or_else(short)?);
        }
        if kinds & 2 != 0 {
            facts.sort_key = Some(doc(bytes).ok_or_else(short)?);
        }
        if kinds & 4 != 0 {
            let distance = number(bytes).ok_or_else(short)?;
            facts.near = Some(Nearness { distance, place: doc(bytes).ok_or_else(short)? });
        }
        Ok(Some(Box::new(facts)))
    }
}

fn take<'a>(bytes: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(n)?;
    *bytes = rest;
    Some(head)
}

/// What `$meta` names.
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
    SearchScoreDetails,
    RandVal,
    BucketMinTime,
    BucketMaxTime,
}

impl MetaField {
    pub fn parse(v: Value<'_>) -> Result<MetaField> {
        let Some(name) = v.string_bytes().map(String::from_utf8_lossy) else {
            return Err(Error::location(17307, "$meta only supports string arguments"));
        };
        Ok(match &*name {
            "textScore" => MetaField::TextScore,
            "geoNearDistance" => MetaField::GeoNearDistance,
            "geoNearPoint" => MetaField::GeoNearPoint,
            "indexKey" => MetaField::IndexKey,
            "recordId" => MetaField::RecordId,
            "sortKey" => MetaField::SortKey,
            "searchScore" => MetaField::SearchScore,
            "searchHighlights" => MetaField::SearchHighlights,
            "searchScoreDetails" => MetaField::SearchScoreDetails,
            "randVal" => MetaField::RandVal,
            "timeseriesBucketMinTime" => MetaField::BucketMinTime,
            "timeseriesBucketMaxTime" => MetaField::BucketMaxTime,
            other => return Err(Error::location(17308, format!("Unsupported argument to $meta: {other}"))),
        })
    }

    /// Only a search that is not there would know it, and so it is nowhere refused.
    pub(crate) fn is_of_search(self) -> bool {
        matches!(self, MetaField::SearchScore | MetaField::SearchHighlights | MetaField::SearchScoreDetails)
    }
    /// 40218: it is asked for where nobody knows it.
    pub(crate) fn unknown(self) -> Error {
        let what = match self {
            MetaField::TextScore => "text score",
            MetaField::GeoNearDistance => "$geoNear distance",
            MetaField::GeoNearPoint => "$geoNear point",
            MetaField::IndexKey => "index key",
            MetaField::RecordId => "record ID",
            MetaField::SortKey => "sort key",
            MetaField::SearchScore => "$search score",
            MetaField::SearchHighlights => "$search highlights",
            MetaField::SearchScoreDetails => "$search score details",
            MetaField::RandVal => "rand val",
            MetaField::BucketMinTime => "timeseries bucket min time",
            MetaField::BucketMaxTime => "timeseries bucket max time",
        };
        Error::location(40218, format!("query requires {what} metadata, but it is not available"))
    }
    /// Only a geo search knows it.
    pub(crate) fn is_of_near(self) -> bool {
        matches!(self, MetaField::GeoNearDistance | MetaField::GeoNearPoint)
    }
}

/// 40218 when one of these is known of rows of a geo search only.
pub(crate) fn check_nearness(metas: &[MetaField]) -> Result<()> {
    metas.iter().find(|m| m.is_of_near()).map_or(Ok(()), |missing| Err(missing.unknown()))
}

pub(crate) fn no_text_score() -> Error {
    MetaField::TextScore.unknown()
}
