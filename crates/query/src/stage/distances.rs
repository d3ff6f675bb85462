//! `$_internalComputeGeoNearDistance`: tells of each measurement how near it is, for a `$geoNear` on a time series.

use super::needs::Needs;
use super::parsed::{Compiled, Parsed};
use super::running::{Running, Start};
use super::step::Step;
use super::upstream::Upstream;
use crate::expr::ParseCtx;
use crate::geo::NearQuery;
use crate::matcher::Path;
use crate::plan::NearOutput;
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, Value};
use std::sync::Arc;

/// Adds to each measurement how near it is.
#[derive(Clone, PartialEq)]
pub(crate) struct Distances {
    pub(super) near: Compiled<Arc<NearQuery>>,
    pub(super) path: Path,
    pub(super) output: Arc<NearOutput>,
    /// The buckets have been chosen already.
    pub(super) keeps_all: bool,
}

impl Distances {
    fn write(&self, d: &mut DocBuilder) {
        d.elems_of(&self.near.source);
        d.str("key", self.path.dotted()).str("distanceField", &self.output.distance_field);
        d.f64("distanceMultiplier", self.output.multiplier);
    }
    /// As it is written.
    pub(super) fn text(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.doc(NAME, |d| {
            self.write(d);
            if let Some(place) = &self.output.place_field {
                d.str("includeLocs", place);
            }
            d.bool("keepsAll", self.keeps_all);
        });
        b.finish()
    }
    /// How explain shows it.
    pub(super) fn shown(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.doc(NAME, |d| self.write(d));
        b.finish()
    }
}

pub(super) const NAME: &str = "$_internalComputeGeoNearDistance";

pub(super) fn parse(e: Elem<'_>, _: &mut ParseCtx<'_>) -> Result<Distances> {
    let damaged = || Error::internal(format!("a damaged {NAME}"));
    let spec = e.value().as_doc().ok_or_else(damaged)?;
    let text = |name: &str| spec.get(name).and_then(|v| v.as_str());
    let mut near = DocBuilder::new();
    for e in spec.iter().filter(|e| e.name_bytes().starts_with(b"$")) {
        near.elem(e);
    }
    Ok(Distances {
        near: Compiled(Arc::new(NearQuery::parse(&near.finish())?)),
        path: Path::new(text("key").ok_or_else(damaged)?),
        output: Arc::new(NearOutput {
            distance_field: text("distanceField").ok_or_else(damaged)?.to_owned(),
            multiplier: spec.get("distanceMultiplier").and_then(|v| v.as_f64()).ok_or_else(damaged)?,
            place_field: text("includeLocs").map(str::to_owned),
        }),
        keeps_all: matches!(spec.get("keepsAll"), Some(Value::Boolean(true))),
    })
}

impl Parsed for Distances {
    fn start(self, _: &mut Start<'_>) -> Result<Box<dyn Running>> {
        Ok(Box::new(self))
    }
    fn needs(&self, needs: &mut Needs) {
        needs.whole();
    }
}

impl Running for Distances {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        loop {
            let row = match up.next()? {
                Step::Row(row) => row,
                other => return Ok(other),
            };
            let Some(found) = self.near.measure(row.doc(), &self.path) else {
                if self.keeps_all {
                    return Ok(Step::Row(row));
                }
                continue;
            };
            if self.keeps_all || self.near.accepts(&found) {
                return Ok(Step::Row(self.output.added_to(row.doc(), &found).into()));
            }
        }
    }
}
