//! The tables of stages: those that there are, and other names for a few of them in a row.

use super::element::stage_spec;
use super::sinks::{Sink, WhenMatched};
use super::spec::Stage;
use super::transform::Reshape;
use super::{
    add_fields, bucket, bucket_auto, count, densify, distances, facet, fill, geo_near, graph_lookup, group,
    limit, lookup_spec, matching, redact, replace_root, sample, sinks, skip, sort, sort_by_count, transform,
    union_with, unpack_bucket, unwind, window,
};
use crate::ctx::QueryCtx;
use crate::expr::ParseCtx;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, Elem};

type Parse = fn(Elem<'_>, &mut ParseCtx<'_>, &mut Vec<Stage>) -> Result<()>;

/// The row of a stage that stands for itself.
macro_rules! one {
    ($parse:expr) => {
        |e, p, out| {
            let parsed = $parse(e, p)?;
            out.push(Stage::new(text(e.name(), e), parsed));
            Ok(())
        }
    };
}
/// The row of a stage that reshapes each document.
macro_rules! each {
    ($parse:expr) => {
        one!(|e, p: &mut ParseCtx<'_>| $parse(e, p).map(Reshape::from))
    };
}

#[rustfmt::skip]
static TABLE: &[(&str, Parse)] = &[
    ("$addFields", each!(add_fields::transform)),
    ("$bucketAuto", one!(bucket_auto::parse)),
    ("$densify", densify),
    ("$facet", one!(facet::parse)),
    ("$geoNear", one!(geo_near::parse)),
    ("$graphLookup", one!(graph_lookup::parse)),
    ("$group", one!(group::parse)),
    ("$limit", one!(limit::parse)),
    ("$lookup", one!(lookup_spec::parse)),
    ("$match", one!(matching::parse)),
    ("$project", each!(transform::project)),
    ("$redact", one!(redact::parse)),
    ("$replaceRoot", each!(replace_root::root)),
    ("$replaceWith", each!(replace_root::with)),
    ("$sample", one!(sample::parse)),
    ("$set", each!(add_fields::transform)),
    ("$setWindowFields", window),
    ("$skip", one!(skip::parse)),
    ("$sort", one!(sort::parse)),
    ("$unionWith", one!(union_with::parse)),
    ("$unset", each!(transform::unset)),
    ("$unwind", one!(unwind::parse)),
    ("$_internalUnpackBucket", one!(unpack_bucket::parse)),
];

/// Stages that only another server may name.
#[rustfmt::skip]
static FORWARDED: &[(&str, Parse)] = &[
    (distances::NAME, one!(distances::parse)),
    ("$_internalDensify", one!(densify::parse)),
    ("$_internalSetWindowFields", one!(window::parse)),
];

/// The stage under a name, as it is written.
fn text(name: &str, e: Elem<'_>) -> DocBuf {
    let mut b = DocBuilder::new();
    b.value(name, e.value());
    b.finish()
}

/// `$densify` sorts first.
fn densify(e: Elem<'_>, p: &mut ParseCtx<'_>, out: &mut Vec<Stage>) -> Result<()> {
    let parsed = densify::parse(e, p)?;
    let sort = parsed.order()?;
    out.push(Stage::hidden(sort.text(), sort));
    out.push(Stage::new(text("$_internalDensify", e), parsed));
    Ok(())
}

/// `$setWindowFields` sorts first where that may become an index.
fn window(e: Elem<'_>, p: &mut ParseCtx<'_>, out: &mut Vec<Stage>) -> Result<()> {
    let parsed = window::parse(e, p)?;
    if let Some(sort) = parsed.order()? {
        out.push(Stage::hidden(sort.text(), sort));
    }
    out.push(Stage::new(text("$_internalSetWindowFields", e), parsed));
    Ok(())
}

type Rewrite = fn(Elem<'_>, &ParseCtx<'_>) -> Result<DocBuf>;

/// Stages that stand for others: a row's function gives these, one field each.
static REWRITTEN: &[(&str, Rewrite)] = &[
    ("$bucket", bucket::rewritten),
    ("$count", count::rewritten),
    ("$fill", fill::rewritten),
    ("$sortByCount", sort_by_count::rewritten),
];

/// MongoDB's other stages: known, not here.
const KNOWN: &[&str] = &["$listCatalog", "$listSampledQueries", "$shardedDataDistribution"];

/// Stages that MongoDB has only on Atlas.
const ATLAS: &[&str] = &["$listSearchIndexes", "$search", "$searchMeta", "$vectorSearch"];

pub(super) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>, out: &mut Vec<Stage>) -> Result<()> {
    let forwarded = FORWARDED.iter().filter(|_| p.forwarded);
    let wanted = e.name();
    match TABLE.iter().chain(forwarded).find(|(name, _)| *name == wanted) {
        Some((_, parse)) => parse(e, p, out),
        None => Err(unknown(e.name())),
    }
}

/// The stages that one stands for, if it is not a stage itself.
pub(super) fn rewritten(e: Elem<'_>, p: &ParseCtx<'_>) -> Result<Option<DocBuf>> {
    let wanted = e.name();
    let found = REWRITTEN.iter().find(|(name, _)| *name == wanted);
    found.map(|(_, rewrite)| rewrite(e, p)).transpose()
}

/// Neither here nor a source.
pub(super) fn unknown(name: &str) -> Error {
    if ATLAS.contains(&name) {
        return Error::location(6_047_401, format!("{name} stage is only allowed on MongoDB Atlas"));
    }
    if KNOWN.contains(&name) {
        return Error::new(ErrorCode::NotImplemented, format!("{name} is not supported by this server"));
    }
    Error::location(40324, format!("Unrecognized pipeline stage name: '{name}'"))
}

/// Every stage that runs, wherever in a pipeline it may stand.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let tables = TABLE.iter().map(|(n, _)| *n).chain(REWRITTEN.iter().map(|(n, _)| *n));
    tables
        .chain(super::sources::NAMES.iter().copied())
        .chain([super::split_event::NAME])
        .chain(sinks::NAMES.iter().copied())
}

/// The names that only another server may use.
#[cfg(test)]
pub(super) fn forwarded_names() -> impl Iterator<Item = &'static str> {
    FORWARDED.iter().map(|(name, _)| *name)
}

/// The sink that a stage stands for; `None` for other stages.
///
/// Of the stages of its update the names are looked at here, the rest when there is something to update.
pub(super) fn sink(e: Elem<'_>, ctx: Option<&QueryCtx>) -> Result<Option<Sink>> {
    let found = sinks::parse(e, ctx)?;
    if let Some(Sink::Merge(merge)) = &found
        && let WhenMatched::Pipeline(stages) = &merge.when_matched
    {
        for e in &**stages {
            let Some(stage) = stage_spec(e.value())?.first() else { continue };
            if !is_known(stage.name()) {
                return Err(unknown(stage.name()));
            }
        }
    }
    Ok(found)
}

/// Stages that MongoDB knows: those a pipeline update may not use are refused by name.
pub(super) fn is_known(name: &str) -> bool {
    KNOWN.contains(&name)
        || ATLAS.contains(&name)
        || TABLE.iter().any(|(n, _)| *n == name)
        || REWRITTEN.iter().any(|(n, _)| *n == name)
        || super::sources::is_source(name)
        || name == super::split_event::NAME
        || sinks::is_sink(name)
}
