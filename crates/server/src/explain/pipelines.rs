//! What `explain` shows of aggregations: one plan, or the stages above it with what they gave and read.

use crate::aggregation::{Aggregation, Aggregations, Planned};
use crate::cursors::body::CursorBody;
use crate::explain::{self, Verbosity, Work};
use pando_base::Result;
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc};
use pando_command::OpCtx;
use pando_query::stage::{JoinStats, RanStage};

/// What stages did in a run whose results nobody sees.
#[derive(Default)]
struct Ran {
    /// Documents of a first stage that reads no plan.
    source: u64,
    stages: Vec<RanStage>,
}

/// Either one plan, when the whole pipeline went into it, or `stages`.
pub(crate) async fn pipeline(
    aggregations: &Aggregations,
    ctx: &OpCtx,
    agg: Aggregation,
    verbosity: Verbosity,
    b: &mut DocBuilder,
) -> Result<()> {
    let Planned { query, source, mut rest, sink } = agg.as_query()?;
    let coll = agg.coll.clone();
    let near = query.near_output.is_some();
    if rest.is_empty() && sink.is_none() && source.is_none() && !near {
        let mut planned = DocBuilder::new();
        explain::query(&aggregations.reads, ctx, coll.as_ref(), query, Work::Find, verbosity, &mut planned)
            .await?;
        append_optimized(b, &planned.finish());
        return Ok(());
    }
    let mut cursor = DocBuilder::new();
    if source.is_none() {
        let stepped = explain::query(
            &aggregations.reads,
            ctx,
            coll.as_ref(),
            query,
            Work::Find,
            verbosity,
            &mut cursor,
        )
        .await?;
        if let (true, Some(Some(group))) = (stepped.0, rest.first_mut()) {
            *group = group_by_distinct_scan(group);
        }
    }
    let ran = match verbosity {
        Verbosity::Planner => None,
        _ => Some(run_silently(aggregations, ctx, agg).await?),
    };
    let cursor = cursor.finish();
    let name = if near { "$geoNearCursor" } else { "$cursor" };
    b.array("stages", |stages| {
        stages.doc(|d| match &source {
            Some(spec) => {
                d.elems_of(spec);
                if let Some(ran) = &ran {
                    append_returned(ran.source, d);
                }
            }
            None => append_plan(name, &cursor, d),
        });
        append_stages(&rest, sink.as_deref(), ran.as_ref(), stages);
    });
    Ok(())
}

/// The plan that the first stage pulls from.
fn append_plan(name: &str, cursor: &RawDoc, d: &mut DocBuilder) {
    d.raw_doc(name, cursor);
    if let Some(n) = cursor.get_path("executionStats.nReturned").and_then(|n| n.as_i64()) {
        append_returned(n as u64, d);
    }
}

/// The stages above, and where the results go.
fn append_stages(rest: &[Option<DocBuf>], sink: Option<&RawDoc>, ran: Option<&Ran>, to: &mut ArrayBuilder) {
    for (i, spec) in rest.iter().enumerate() {
        let Some(spec) = spec else { continue };
        to.doc(|d| match ran {
            Some(ran) => append_ran(spec, ran.stages.get(i), d),
            None => {
                d.elems_of(spec);
            }
        });
    }
    if let Some(sink) = sink {
        to.doc(|d| {
            d.elems_of(sink);
            if ran.is_some() {
                append_returned(0, d);
            }
        });
    }
}

/// Runs an aggregation to its end.
async fn run_silently(aggregations: &Aggregations, ctx: &OpCtx, agg: Aggregation) -> Result<Ran> {
    let (CursorBody::Pipeline(mut cursor), source) = aggregations.open(ctx, agg)? else {
        return Ok(Ran::default());
    };
    let at_hand = cursor.at_hand();
    let mut turn = cursor.begin(&aggregations.reads, ctx, source)?;
    while cursor.next(&aggregations.reads, ctx, &mut turn).await?.is_some() {}
    Ok(Ran { source: at_hand, stages: cursor.ran() })
}

fn append_returned(n: u64, d: &mut DocBuilder) {
    d.i64("nReturned", n as i64);
    d.i64("executionTimeMillisEstimate", 0);
}

/// A stage with what it did.
fn append_ran(spec: &RawDoc, ran: Option<&RanStage>, d: &mut DocBuilder) {
    let Some(ran) = ran else {
        d.elems_of(spec);
        return append_returned(0, d);
    };
    match spec.get("$facet").and_then(|v| v.as_doc()) {
        Some(facets) => {
            d.doc("$facet", |d| append_facets(facets, &ran.facets, d));
        }
        None => {
            d.elems_of(spec);
        }
    }
    if let Some(join) = &ran.join {
        append_join(join, d);
    }
    if let Some(held) = ran.held.as_ref().filter(|_| spec.elem("$groupByDistinctScan").is_none()) {
        held.write(d);
    }
    append_returned(ran.returned, d);
}

fn append_facets(facets: &RawDoc, ran: &[(u64, Vec<RanStage>)], d: &mut DocBuilder) {
    for (facet, (input, ran)) in facets.iter().zip(ran) {
        let stages = facet.value().as_array().unwrap_or(RawDoc::empty());
        d.array(facet.name_bytes(), |a| {
            for (i, stage) in stages.iter().filter_map(|e| e.value().as_doc()).enumerate() {
                a.doc(|d| match i.checked_sub(1) {
                    Some(i) => append_ran(stage, ran.get(i), d),
                    None => {
                        d.elems_of(stage);
                        append_returned(*input, d);
                    }
                });
            }
        });
    }
}

fn append_join(join: &JoinStats, d: &mut DocBuilder) {
    d.i64("totalDocsExamined", join.docs as i64);
    d.i64("totalKeysExamined", join.keys as i64);
    d.i64("collectionScans", join.collection_scans as i64);
    d.array("indexesUsed", |a| {
        for name in &join.indexes {
            a.str(name);
        }
    });
}

/// A `$group` of which the plan gives one document per group.
fn group_by_distinct_scan(group: &RawDoc) -> DocBuf {
    let fields = group.get("$group").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
    let mut b = DocBuilder::new();
    b.doc("$groupByDistinctScan", |d| {
        d.doc("newRoot", |d| {
            for f in fields {
                let picked = f.value().as_doc().and_then(|acc| acc.first()).filter(|_| f.name() != "_id");
                d.value(f.name_bytes(), picked.map_or(f.value(), |e| e.value()));
            }
        });
    });
    b.finish()
}

/// Copies the plan of an aggregation that became a find, marked as such.
fn append_optimized(b: &mut DocBuilder, planned: &RawDoc) {
    for e in planned {
        match e.value().as_doc() {
            Some(planner) if e.name() == "queryPlanner" => {
                b.doc("queryPlanner", |p| {
                    let after =
                        if planner.elem("planCacheKey").is_some() { "planCacheKey" } else { "parsedQuery" };
                    for e in planner {
                        p.elem(e);
                        if e.name() == after {
                            p.bool("optimizedPipeline", true);
                        }
                    }
                });
            }
            _ => {
                b.elem(e);
            }
        }
    }
}
