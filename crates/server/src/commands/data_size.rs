//! `dataSize`: documents and bytes of a collection, or of a range of an index's keys.

use super::coll_stats::int;
use super::key_range::{bound, has_all};
use super::prelude::*;
use pando_catalog::{Collection, Index};
use pando_command::args::safe_i64;
use pando_query::plan::Hint;
use pando_request::FindArgs;
use std::sync::Arc;

#[derive(Default)]
struct Args<'a> {
    pattern: Option<&'a RawDoc>,
    min: Option<&'a RawDoc>,
    max: Option<&'a RawDoc>,
    max_size: i64,
    max_objects: i64,
    estimate: bool,
}

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let full = req.coll()?;
    let ns = Namespace::parse(full)?;
    let args = parse(&req)?;
    let coll = server.existing_collection(&ns)?.filter(|c| c.count() > 0);
    let is_there = coll.is_some();
    if is_there && args.min.is_some() != args.max.is_some() {
        return Err(Error::uncoded("only one of min or max specified"));
    }
    let (size, count, reached) = match coll {
        None => (0, 0, false),
        Some(c) if args.min.is_none() && (args.estimate || args.max_size == 0 && args.max_objects == 0) => {
            (c.data_bytes(), c.count(), false)
        }
        Some(c) => add_up(server, ctx, &c, &args).await?,
    };
    let mut r = Reply::new();
    if is_there {
        r.body.bool("estimate", args.estimate);
    }
    int(&mut r.body, "size", size);
    int(&mut r.body, "numObjects", count);
    if reached {
        r.body.bool("maxReached", true);
    }
    r.body.i32("millis", ctx.elapsed().as_millis() as i32);
    Ok(r)
}

fn parse<'a>(req: &Request<'a>) -> Result<Args<'a>> {
    let mut a = Args::default();
    let range = |name: &str, v: Value<'a>| match v {
        Value::Document(d) => Ok(Some(d)),
        Value::Null | Value::Undefined => Ok(None),
        _ => Err(Error::bad_value(format!("{name} key must be an object"))),
    };
    // A bound that says nothing is there, as far as the other is concerned.
    let given = |name: &str| req.body.elem(name).is_some();
    if given("min") != given("max") {
        let (there, absent) = if given("min") { ("min", "max") } else { ("max", "min") };
        return Err(Error::bad_value(format!("{absent} must be set if {there} is set")));
    }
    for arg in req.args("dataSize") {
        match arg.name() {
            "keyPattern" => a.pattern = arg.value().as_doc().filter(|d| !d.is_empty()),
            "min" => a.min = range("min", arg.value())?,
            "max" => a.max = range("max", arg.value())?,
            "maxSize" => a.max_size = bound_of(&arg.value()),
            "maxObjects" => a.max_objects = bound_of(&arg.value()),
            "estimate" => a.estimate = arg.value().is_truthy(),
            _ => {}
        }
    }
    // From and to nothing is everything.
    a.min = a.min.filter(|d| !d.is_empty());
    a.max = a.max.filter(|d| !d.is_empty());
    Ok(a)
}

/// A number beyond all integers is the least one, which everything is over.
fn bound_of(v: &Value<'_>) -> i64 {
    const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
    match v {
        Value::Double(n) if *n >= TOO_LARGE => i64::MIN,
        v => safe_i64(v).unwrap_or(0),
    }
}

/// Reads the documents in the range until a bound is reached: bytes, documents, whether one was.
async fn add_up(
    server: &Server,
    ctx: &OpCtx,
    coll: &Arc<Collection>,
    a: &Args<'_>,
) -> Result<(u64, u64, bool)> {
    let (min, max);
    let mut find = FindArgs::default();
    if let (Some(from), Some(to)) = (a.min, a.max) {
        let pattern = a.pattern.map_or_else(|| ascending(from), RawDoc::to_buf);
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
        reached = over(a.max_size, size) || over(a.max_objects, count);
        Ok(!reached)
    };
    server.each_found(ctx, coll, &find, each).await?;
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
