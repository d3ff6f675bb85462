//! `create`: a collection or a view.

use super::prelude::*;
use pando_catalog::CollectionOptions;
use pando_command::generic_args::is_generic;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    let options = CollectionOptions::from_command(req.body, |name| is_generic(name.as_bytes()))?;
    server.before_write(ctx).await?;
    let same = server.same_as_existing(&ns, &options)?;
    if same {
        return Ok(Reply::new());
    }
    let last = server.catalog.create(&ns, options).await?;
    server.wrote(ctx, last);
    Ok(Reply::new())
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
