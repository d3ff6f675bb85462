//! `listCollections`: the collections and views of a database.

use super::prelude::*;
use pando_catalog::Named;
use pando_query::QueryCtx;
use pando_query::matcher::Matcher;
use pando_request::fields::cursor_option;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let (mut name_only, mut filter, mut batch_size) = (false, None, None);
    for arg in req.args("listCollections") {
        let none = matches!(arg.value(), Value::Null | Value::Undefined);
        match arg.name() {
            "nameOnly" | "authorizedCollections" | "filter" | "cursor" | "includePendingDrops" if none => {}
            "nameOnly" => name_only = arg.bool()?,
            "authorizedCollections" => drop(arg.bool()?),
            "filter" => filter = Some(arg.doc()?),
            "cursor" => batch_size = cursor_option("listCollections", arg.elem())?,
            "includePendingDrops" => drop(arg.boolish()?),
            _ => return Err(arg.unknown()),
        }
    }
    ctx.arguments_read()?;
    let filter = filter.map(|f| Matcher::parse_restricted(f, &QueryCtx::default())).transpose()?;
    let mut docs = Vec::new();
    for named in server.catalog.snapshot().list(req.db) {
        let show = |name_only| match &named {
            Named::Collection(c) => c.list_doc(name_only),
            Named::View(v) => match v.buckets().and_then(|ns| server.catalog.lookup(ns)) {
                Some(buckets) => v.list_time_series(&buckets.options, name_only),
                None => v.list_doc(name_only),
            },
        };
        // The filter sees the whole row, whatever is returned.
        if let Some(f) = &filter
            && !f.matches(&show(false))?
        {
            continue;
        }
        docs.push(show(name_only));
    }
    let ns = Namespace::unchecked(req.db, "$cmd.listCollections");
    server.list_cursor(ctx, &req, ns, batch_size, docs).await
}
