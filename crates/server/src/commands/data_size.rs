//! `dataSize`: documents and bytes of a collection, or of a range of an index's keys.

use super::key_range::{bound, full_namespace, has_all};
use super::prelude::*;
use crate::statistics::sizes::int;
use pando_access::{Acquisition, Index};
use pando_query::plan::Hint;
use pando_request::stats::data_size::KeyRange;
use pando_request::{DataSizeArgs, FindArgs};

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = full_namespace(&req)?;
    ctx.arguments_read()?;
    let args = DataSizeArgs::parse(&req)?;
    let range = args.range()?;
    let (max_size, max_objects) = (args.max_size.unwrap_or(0), args.max_objects.unwrap_or(0));
    let estimate = args.estimate == Some(true);
    let coll = server.access.collection(ctx, &ns)?.filter(|c| c.count() > 0);
    let is_there = coll.is_some();
    if is_there && range.0.is_some() != range.1.is_some() {
        return Err(Error::uncoded("only one of min or max specified"));
    }
    let (size, count, reached) = match coll {
        None => (0, 0, false),
        Some(c) if range.0.is_none() && (estimate || max_size == 0 && max_objects == 0) => {
            (c.data_bytes(), c.count(), false)
        }
        Some(c) => add_up(server, ctx, &c, &args, range).await?,
    };
    let mut r = Reply::new();
    if is_there {
        r.body.bool("estimate", estimate);
    }
    int(&mut r.body, "size", size);
    int(&mut r.body, "numObjects", count);
    if reached {
        r.body.bool("maxReached", true);
    }
    r.body.i32("millis", ctx.elapsed().as_millis() as i32);
    Ok(r)
}

/// Reads the documents in the range until a bound is reached: bytes, documents, whether one was.
async fn add_up(
    server: &Server,
    ctx: &OpCtx,
    coll: &Acquisition,
    a: &DataSizeArgs<'_>,
    range: KeyRange<'_>,
) -> Result<(u64, u64, bool)> {
    let (min, max);
    let mut find = FindArgs::default();
    if let (Some(from), Some(to)) = range {
        let pattern = a.pattern().map_or_else(|| ascending(from), RawDoc::to_buf);
        let Some(index) = coll.ready_indexes().iter().find(|i| begins_with(i, &pattern)) else {
            return Err(Error::bad_value("couldn't find valid index containing key pattern"));
        };
        (min, max) = (bound(index, from), bound(index, to));
        find = FindArgs {
            min: Some(&min),
            max: Some(&max),
            hint: Some(Hint::Name(index.name().to_owned())),
            ..find
        };
    }
    let (mut size, mut count, mut reached) = (0, 0, false);
    let each = |doc: &RawDoc| {
        size += doc.byte_len() as u64;
        count += 1;
        let over = |bound: i64, n: u64| bound != 0 && n as i64 > bound;
        reached = over(a.max_size.unwrap_or(0), size) || over(a.max_objects.unwrap_or(0), count);
        Ok(!reached)
    };
    server.crud.reads.each_found(ctx, coll, &find, each).await?;
    Ok((size, count, reached))
}

/// `{field: 1}` for each field of a key.
fn ascending(key: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::new();
    for e in key {
        b.i32(e.name(), 1);
    }
    b.finish()
}

/// An index that has every document under plain keys, the first of which are these.
fn begins_with(index: &Index, pattern: &RawDoc) -> bool {
    let own = &index.spec.key;
    has_all(index)
        && pattern.iter().zip(own.iter()).filter(|(a, b)| a.name() == b.name()).count()
            == pattern.iter().count()
}
