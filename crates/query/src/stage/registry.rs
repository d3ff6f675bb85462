//! The tables of stages: those that there are, and other names for a few of them in a row.

use super::{
    Stage, add_fields, bucket, bucket_auto, count, densify, facet, fill, geo_near, graph_lookup, group,
    limit, lookup_spec, matching, redact, replace_root, sample, skip, sort, sort_by_count, transform,
    union_with, unpack_bucket, unwind, window,
};
use crate::expr::ParseCtx;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, Elem};

type Parse = fn(Elem<'_>, &mut ParseCtx<'_>, &mut Vec<Box<dyn Stage>>) -> Result<()>;

#[rustfmt::skip]
static TABLE: &[(&str, Parse)] = &[
    ("$addFields", add_fields::parse),
    ("$bucketAuto", bucket_auto::parse),
    ("$densify", densify::parse),
    ("$facet", facet::parse),
    ("$geoNear", geo_near::parse),
    ("$graphLookup", graph_lookup::parse),
    ("$group", group::parse),
    ("$limit", limit::parse),
    ("$lookup", lookup_spec::parse),
    ("$match", matching::parse),
    ("$project", transform::parse_project),
    ("$redact", redact::parse),
    ("$replaceRoot", replace_root::parse_root),
    ("$replaceWith", replace_root::parse_with),
    ("$sample", sample::parse),
    ("$set", add_fields::parse),
    ("$setWindowFields", window::parse),
    ("$skip", skip::parse),
    ("$sort", sort::parse),
    ("$unionWith", union_with::parse),
    ("$unset", transform::parse_unset),
    ("$unwind", unwind::parse),
    ("$_internalUnpackBucket", unpack_bucket::parse),
];

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

pub(super) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>, out: &mut Vec<Box<dyn Stage>>) -> Result<()> {
    match TABLE.iter().find(|(name, _)| *name == e.name()) {
        Some((_, parse)) => parse(e, p, out),
        None => Err(unknown(e.name())),
    }
}

/// The stages that one stands for, if it is not a stage itself.
pub(super) fn rewritten(e: Elem<'_>, p: &ParseCtx<'_>) -> Result<Option<DocBuf>> {
    let found = REWRITTEN.iter().find(|(name, _)| *name == e.name());
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
        .chain(super::sinks::NAMES.iter().copied())
}

/// Stages that MongoDB knows: those a pipeline update may not use are refused by name.
pub(super) fn is_known(name: &str) -> bool {
    KNOWN.contains(&name)
        || ATLAS.contains(&name)
        || TABLE.iter().any(|(n, _)| *n == name)
        || REWRITTEN.iter().any(|(n, _)| *n == name)
        || super::sources::is_source(name)
        || name == super::split_event::NAME
        || super::sinks::is_sink(name)
}
