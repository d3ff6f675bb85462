//! `listCollections`: the collections and views of a database.

use super::prelude::*;
use pando_access::Named;
use pando_auth::Target;
use pando_query::QueryCtx;
use pando_query::matcher::{Matcher, Place};
use pando_request::ListCollectionsArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = ListCollectionsArgs::parse(&req)?;
    ctx.arguments_read()?;
    let name_only = args.name_only == Some(true);
    let filter =
        args.filter.map(|f| Matcher::parse_in(Place::Document, f, &QueryCtx::default())).transpose()?;
    server.access.check_listed_database(ctx, req.db)?;
    let mut docs = Vec::new();
    let definitions = server.access.definitions();
    let who = server.principals.of(ctx)?.filter(|_| args.authorized == Some(true));
    let may_see = |named: &Named| {
        let coll = named.ns().coll();
        who.as_ref().is_none_or(|who| who.has_anything_on(Target::Collection(req.db, coll)))
    };
    for named in definitions.list(req.db).into_iter().filter(may_see) {
        let show = |name_only| match &named {
            Named::Collection(c) => c.list_doc(name_only),
            Named::View(v) => match v.buckets().and_then(|ns| definitions.collection(ns)) {
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
    let batch_size = args.cursor.and_then(|c| c.batch_size);
    server.crud.cursors.list(ctx, &req, ns, batch_size, docs).await
}
