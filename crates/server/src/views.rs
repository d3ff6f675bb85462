//! Reads on views: a find, count or distinct becomes a pipeline on the collection below.

use crate::aggregation::{AggSpec, Aggregations};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{ArrayBuilder, DocBuf, RawDoc};
use pando_command::OpCtx;
use pando_query::plan::{Hint, natural_of};
use pando_query::stage::Glance;
use pando_request::FindArgs;
use std::borrow::Cow;

/// A find as stages. `$natural` becomes a hint.
fn stages_of(args: &FindArgs<'_>) -> Result<(DocBuf, Option<Hint>)> {
    let mut hint = args.hint.clone();
    let mut a = ArrayBuilder::new();
    if let Some(filter) = args.filter.filter(|f| !f.is_empty()) {
        a.doc(|d| {
            d.raw_doc("$match", filter);
        });
    }
    if let Some(sort) = args.sort {
        match natural_of(sort)? {
            Some(dir) => hint = Some(Hint::Natural(dir)),
            None => {
                a.doc(|d| {
                    d.raw_doc("$sort", sort);
                });
            }
        }
    }
    if args.skip > 0 {
        a.doc(|d| {
            d.i64("$skip", args.skip as i64);
        });
    }
    if let Some(limit) = args.limit {
        a.doc(|d| {
            d.i64("$limit", limit as i64);
        });
    }
    if let Some(projection) = args.projection {
        a.doc(|d| {
            d.raw_doc("$project", projection);
        });
    }
    Ok((a.finish(), hint))
}

/// A find's arguments as an aggregation on the view.
pub(crate) fn as_aggregation<'a>(view: &Namespace, args: &FindArgs<'a>) -> Result<AggSpec<'a>> {
    let (pipeline, hint) = stages_of(args)?;
    Ok(AggSpec {
        ns: view.clone(),
        pipeline: Cow::Owned(pipeline),
        collation: args.collation,
        let_vars: args.let_vars,
        hint,
        allow_disk_use: args.allow_disk_use,
        for_merge: false,
        seen: Glance::ANYTHING,
    })
}

/// Options that an aggregation cannot serve (168).
pub(crate) fn check_options(args: &FindArgs<'_>) -> Result<()> {
    let refuse = |text: String| Err(Error::new(ErrorCode::InvalidPipelineOperator, text));
    if args.tailable {
        return refuse("Tailable cursors are not supported in aggregation.".to_owned());
    }
    for (given, name) in [
        (args.return_key, "returnKey"),
        (args.show_record_id, "showRecordId"),
        (args.no_cursor_timeout, "noCursorTimeout"),
        (args.allow_partial, "allowPartialResults"),
        (args.read_once, "readOnce"),
        (args.min.is_some(), "min"),
        (args.max.is_some(), "max"),
        (args.single_batch, "singleBatch"),
    ] {
        if given {
            return refuse(format!("Option {name} not supported in aggregation."));
        }
    }
    Ok(())
}

/// How many documents a query on a view gives.
pub(crate) async fn count(
    aggregations: &Aggregations,
    ctx: &OpCtx,
    view: &Namespace,
    args: &FindArgs<'_>,
) -> Result<u64> {
    let mut spec = as_aggregation(view, args)?;
    let mut stages = ArrayBuilder::new();
    for stage in spec.pipeline.iter() {
        stages.value(stage.value());
    }
    stages.doc(|d| {
        d.str("$count", "n");
    });
    spec.pipeline = Cow::Owned(stages.finish());
    let mut n = 0;
    let mut each = |doc: &RawDoc| {
        n = doc.get("n").and_then(|v| v.as_i64()).unwrap_or(0) as u64;
        Ok(())
    };
    aggregations.each(ctx, spec, &mut each).await?;
    Ok(n)
}
