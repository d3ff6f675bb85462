//! `$geoNear` on a time series.

use super::conditions;
use super::distances::Distances;
use super::geo_near::{NearPart, misplaced};
use super::matching::Match;
use super::parsed::Compiled;
use super::sort::Sort;
use super::spec::Stage;
use crate::ctx::QueryCtx;
use crate::geo::NearQuery;
use crate::matcher::Path;
use crate::sort::SortPattern;
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, Value};
use std::sync::Arc;

/// `$geoNear` on a time series, in place of the stages `[unpack, $geoNear]`.
///
/// By the source, buckets come nearest first and so do their measurements; by a measurement, buckets that may hold one near
/// enough are unpacked, and measurements sorted.
pub(super) fn near_buckets(
    part: &NearPart,
    unpack: Stage,
    key_of_source: impl Fn(&str) -> Option<String>,
    ctx: &QueryCtx,
) -> Result<Vec<Stage>> {
    let refused = |code, text| Err(Error::location(code, text));
    let Some(key) = &part.key else {
        return refused(5_892_921, "Must specify 'key' option for $geoNear on a time-series collection");
    };
    if !part.query.is_empty() {
        let text = "Must not specify 'query' for $geoNear on a time-series collection; use $match instead";
        return refused(1_938_439, text);
    }
    let Some(output) = part.output.clone() else { return Err(misplaced()) };
    let near = Arc::new(NearQuery::parse(&part.near)?);
    let field = output.distance_field.clone();
    let path = Path::new(key);
    let distances = |keeps_all| {
        let stage = Distances { near: Compiled(near.clone()), path: path.clone(), output, keeps_all };
        Stage::new(stage.text(), stage)
    };
    if let Some(key) = key_of_source(key) {
        let part = NearPart { key: Some(key), output: None, ..part.clone() };
        return Ok(vec![Stage::hidden(part.text(), part), unpack, distances(true)]);
    }
    let mut stages = Vec::new();
    if let Some(filter) = around(key, &near) {
        stages.push(Stage::hidden(conditions::text(&filter), Match::new(&filter, ctx)?));
    }
    let mut by_distance = DocBuilder::new();
    by_distance.i32(&field, 1);
    let sort = Sort::by(SortPattern::parse(&by_distance.finish())?);
    stages.extend([unpack, distances(false), Stage::hidden(sort.text(), sort)]);
    Ok(stages)
}

/// The buckets that may hold something near enough, where that can be said.
fn around(key: &str, near: &NearQuery) -> Option<DocBuf> {
    // A little more, for what is lost between units.
    let radius = near.reach(near.max) * (1.0 + 1e-9) + 1e-9;
    if !near.on_sphere || radius >= std::f64::consts::PI || key.contains('.') {
        return None;
    }
    let mut b = DocBuilder::new();
    b.doc(crate::geo::BUCKET_OPERATOR, |d| {
        d.doc("withinRegion", |r| {
            r.array("$centerSphere", |a| {
                a.array(|p| {
                    p.value(Value::Double(near.center.at.x));
                    p.value(Value::Double(near.center.at.y));
                });
                a.value(Value::Double(radius));
            });
        });
        d.str("field", key);
    });
    Some(b.finish())
}
