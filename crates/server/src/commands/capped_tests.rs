//! `captrunc` and `emptycapped` (test commands): documents of a capped collection are taken from its end, or all.

use super::prelude::*;
use crate::write::writes::Retry;
use pando_access::{Acquisition, Reading};
use pando_bson::ArrayBuilder;
use pando_command::args::safe_i64;
use pando_request::DeleteStatement;
use pando_request::FindArgs;
use pando_storage::ReadAt;

pub(super) async fn truncate(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns_of_ddl()?;
    let n = match req.body.get("n").filter(|v| v.is_number()).and_then(|v| safe_i64(&v)) {
        Some(n) if n > 0 => n,
        _ => return Err(Error::bad_value("n must be a positive integer")),
    };
    let inclusive = req.body.get("inc").is_some_and(|v| v.is_truthy());
    server.upkeep.admission.before_write(ctx).await?;
    let coll = match server.access.read(ctx, &ns, ReadAt::Latest)? {
        Reading::Missing => {
            let text = format!("collection {ns} does not exist");
            return Err(Error::new(ErrorCode::NamespaceNotFound, text));
        }
        Reading::View(_) => {
            let text = format!("Namespace {ns} is a view, not a collection");
            return Err(Error::new(ErrorCode::CommandNotSupportedOnView, text));
        }
        Reading::Collection(coll) => coll,
    };
    if !coll.is_capped() {
        return Err(Error::new(ErrorCode::IllegalOperation, "collection must be capped"));
    }
    // The document before those that go has to be there: they go after it.
    if coll.count() as i64 <= n {
        let text = format!("invalid n, collection contains fewer than {n} documents");
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    let ids = last_ids(server, ctx, &coll, n + i64::from(inclusive)).await?;
    let mut filter = DocBuilder::new();
    filter.doc("_id", |d| {
        d.raw_array("$in", &ids);
    });
    delete(server, ctx, &req, &ns, &filter.finish()).await
}

/// `_id`s of the newest documents.
async fn last_ids(server: &Server, ctx: &OpCtx, coll: &Acquisition, n: i64) -> Result<DocBuf> {
    let sort = pando_bson::doc! { "$natural": -1 }.to_raw();
    let find = FindArgs { sort: Some(&sort), limit: Some(n as u64), ..FindArgs::default() };
    let mut ids = ArrayBuilder::new();
    let each = |doc: &RawDoc| {
        if let Some(id) = doc.get("_id") {
            ids.value(id);
        }
        Ok(true)
    };
    server.crud.reads.each_found(ctx, coll, &find, each).await?;
    Ok(ids.finish())
}

pub(super) async fn empty(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns_of_ddl()?;
    server.upkeep.admission.before_write(ctx).await?;
    match server.access.read(ctx, &ns, ReadAt::Latest)? {
        Reading::Missing => return Err(Error::new(ErrorCode::NamespaceNotFound, "no such collection")),
        Reading::View(_) => {
            let text = format!("emptycapped not supported on view: {ns}");
            return Err(Error::new(ErrorCode::CommandNotSupportedOnView, text));
        }
        Reading::Collection(_) if ns.coll().starts_with("system.") => {
            let text = format!("Cannot truncate a system collection: {ns}");
            return Err(Error::new(ErrorCode::IllegalOperation, text));
        }
        Reading::Collection(_) => {}
    }
    delete(server, ctx, &req, &ns, &DocBuf::new()).await
}

async fn delete(
    server: &Server,
    ctx: &OpCtx,
    req: &Request<'_>,
    ns: &Namespace,
    filter: &RawDoc,
) -> Result<Reply> {
    let mut retry = Retry::begin(&server.crud.writes, ctx, req.body).await?;
    let all = DeleteStatement { filter, multi: true, ..DeleteStatement::default() };
    server.crud.writes.delete(ctx, ns, None, &all, &mut retry).await?;
    Ok(Reply::new())
}
