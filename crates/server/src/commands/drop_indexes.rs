//! `dropIndexes`: by name, by key pattern, several by name, or all but `_id_`.

use super::prelude::*;
use pando_catalog::DropWhich;
use pando_command::request::missing;
use pando_query::timeseries::key_on_buckets;

/// The misplaced quote is MongoDB's.
fn not_an_index(found: &str, expected: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field 'dropIndexes.index' is the wrong type '{found}', expected types '[{expected}']"
    ))
}

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    const OWNER: &str = "dropIndexes";
    let ns = req.ns()?;
    let (mut index, mut by_buckets) = (None, false);
    for arg in req.args(OWNER) {
        match arg.name() {
            "index" => index = Some(arg.value()),
            "isTimeseriesNamespace" => by_buckets = arg.boolish()?,
            "collectionUUID" => arg.uuid_or_none().map(drop)?,
            _ => return Err(arg.unknown()),
        }
    }
    let index = index.ok_or_else(|| missing(OWNER, "index"))?;
    let series = server.series_of_definition(&ns, by_buckets)?;
    let on_buckets;
    let mut names = Vec::new();
    let which = match index {
        Value::String("*") => DropWhich::All,
        Value::String(name) => DropWhich::Name(name),
        Value::Document(key) => match &series {
            Some(s) => {
                on_buckets = key_on_buckets(&s.of, key)?;
                DropWhich::Key(&on_buckets)
            }
            None => DropWhich::Key(key),
        },
        Value::Array(list) => {
            for e in list {
                match e.value() {
                    Value::String(name) => names.push(name),
                    _ => return Err(not_an_index("array", "string")),
                }
            }
            match names[..] {
                ["*"] => DropWhich::All,
                _ => DropWhich::Names(&names),
            }
        }
        v => return Err(not_an_index(v.type_name(), "string, object")),
    };
    ctx.arguments_read()?;
    server.uuid_of_write(true, OWNER, &req, &ns, series.as_ref())?;
    server.before_write(ctx).await?;
    let ns = series.as_ref().map_or(ns, |s| s.buckets.clone());
    let done = ctx.interruptible(server.catalog.drop_indexes(&ns, which)).await??;
    ctx.wrote(done.last);
    let mut r = Reply::new();
    r.body.i32("nIndexesWas", done.were as i32);
    if let Some(msg) = done.msg {
        r.body.str("msg", msg);
    }
    Ok(r)
}
