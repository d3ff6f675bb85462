//! `create`: a collection or a view.

use super::prelude::*;
use pando_catalog::{CollectionOptions, CreateArgs};
use pando_command::generic_args::is_generic;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    let args = CreateArgs::parse(req.body, |name| is_generic(name.as_bytes()))?;
    let noted = args.has_auto_index_id();
    server.before_write(ctx).await?;
    let now_secs = ctx.env().clock.wall_ms() / 1000;
    let options = args.options(&ns, now_secs)?;
    if let Some(open) = server.open_txn(ctx) {
        open.with(|unit| {
            if let Some(pando_catalog::Named::View(_)) = server.catalog.snapshot().get(&ns) {
                return Err(Error::new(
                    ErrorCode::NamespaceExists,
                    format!("A view already exists. NS: {ns}"),
                ));
            }
            server.catalog.create_within(unit, &ns, options)
        })?;
        return Ok(reply(noted));
    }
    let same = server.same_as_existing(&ns, &options)?;
    if same {
        return Ok(reply(noted));
    }
    let last = server.catalog.create(&ns, options).await?;
    ctx.wrote(last);
    Ok(reply(noted))
}

fn reply(noted: bool) -> Reply {
    let mut r = Reply::new();
    if noted {
        r.body.str("note", "The autoIndexId option is deprecated and will be removed in a future release");
    }
    r
}

impl Server {
    /// Since 7.0 creating what exists with the same options succeeds.
    fn same_as_existing(&self, ns: &Namespace, options: &CollectionOptions) -> Result<bool> {
        let snapshot = self.catalog.snapshot();
        let Some(existing) = snapshot.collection(ns) else { return Ok(false) };
        if options.is_view() {
            return Ok(false);
        }
        let mut wanted = options.clone();
        wanted.collation = match &options.collation {
            Some(c) => pando_catalog::full_collation(c)?,
            None => None,
        };
        Ok(existing.options == wanted)
    }
}
