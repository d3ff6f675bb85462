//! `listDatabases`: names and sizes.

use super::prelude::*;
use crate::statistics::sizes::database_bytes;
use pando_auth::Action;
use pando_query::QueryCtx;
use pando_query::matcher::{Matcher, Place};
use pando_request::ListDatabasesArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = ListDatabasesArgs::parse(&req)?;
    ctx.arguments_read()?;
    let name_only = args.name_only == Some(true);
    let filter =
        args.filter.map(|f| Matcher::parse_in(Place::Document, f, &QueryCtx::default())).transpose()?;
    let mut rows = Vec::new();
    let mut total = 0;
    let definitions = server.access.definitions();
    let who = server.principals.of(ctx)?;
    let own = |db: &str| who.as_ref().is_none_or(|who| who.has_anything_in(db));
    let all = who.as_ref().is_none_or(|who| who.may_on_cluster(Action::ListDatabases));
    let all = all && args.authorized != Some(true);
    for db in definitions.databases().into_iter().filter(|db| all || own(db)) {
        let size = database_bytes(&server.access, &definitions, &db)?;
        let mut b = DocBuilder::new();
        b.str("name", &db);
        b.i64("sizeOnDisk", size as i64);
        b.bool("empty", definitions.collections(&db).iter().all(|c| c.count() == 0));
        let row = b.finish();
        if let Some(f) = &filter
            && !f.matches(&row)?
        {
            continue;
        }
        total += size;
        rows.push((db, row));
    }
    let mut r = Reply::with_capacity(1024);
    r.body.array("databases", |a| {
        for (name, row) in &rows {
            if name_only {
                a.doc(|d| {
                    d.str("name", name);
                });
            } else {
                a.raw_doc(row);
            }
        }
    });
    if !name_only {
        r.body.i64("totalSize", total as i64);
        r.body.i64("totalSizeMb", (total >> 20) as i64);
    }
    Ok(r)
}
