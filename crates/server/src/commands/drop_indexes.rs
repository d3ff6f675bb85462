//! `dropIndexes`: by name, by key pattern, several by name, or all but `_id_`.

use super::prelude::*;
use pando_access::DropWhich;
use pando_base::Uuid;
use pando_query::timeseries::key_on_buckets;
use pando_request::DropIndexesArgs;
use pando_request::define::drop_indexes::IndexSelector;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = DropIndexesArgs::parse(&req)?;
    let ns = req.ns()?;
    let series = server.access.series_of_definition(&ns, args.by_buckets == Some(true))?;
    let on_buckets;
    let which = match (&args.index, &series) {
        (IndexSelector::All, _) => DropWhich::All,
        (IndexSelector::Name(name), _) => DropWhich::Name(name),
        (IndexSelector::Names(names), _) => DropWhich::Names(names),
        (IndexSelector::Key(key), None) => DropWhich::Key(key),
        (IndexSelector::Key(key), Some(s)) => {
            // What no index can be, no index is.
            on_buckets = key_on_buckets(&s.of, key)
                .map_err(|e| Error::new(ErrorCode::IndexNotFound, e.message.to_string()))?;
            DropWhich::Key(&on_buckets)
        }
    };
    ctx.arguments_read()?;
    let ns = series.as_ref().map_or(ns, |s| s.buckets.clone());
    if let Some(uuid) = args.collection_uuid {
        server.access.check_uuid(&ns, Uuid(uuid))?;
    }
    server.upkeep.admission.before_write(ctx).await?;
    let done = server.access.drop_indexes(ctx, &ns, which).await?;
    ctx.wrote(done.last);
    let mut r = Reply::new();
    r.body.i32("nIndexesWas", done.were as i32);
    if let Some(msg) = done.msg {
        r.body.str("msg", msg);
    }
    Ok(r)
}
