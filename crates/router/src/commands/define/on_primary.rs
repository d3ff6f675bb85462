//! Definitions that the primary shard of a database coordinates (SH-RT-4).

use super::super::prelude::*;
use crate::remote::stale::Tries;
use pando_rpc::Retry;

/// What becomes of a command on its way to the primary shard.
pub(in crate::commands) struct OnPrimary<'a> {
    /// What it is about.
    pub(in crate::commands) ns: Namespace,
    /// The name that the primary shard knows it by.
    pub(in crate::commands) name: &'a str,
    /// The database comes into being with it.
    pub(in crate::commands) creates: bool,
    /// A second time it leads to the same.
    pub(in crate::commands) retry: Retry,
}

impl OnPrimary<'_> {
    /// The command with its own arguments.
    pub(in crate::commands) async fn run(
        &self,
        router: &Router,
        ctx: &OpCtx,
        req: &Request<'_>,
    ) -> Result<DocBuf> {
        self.run_with(router, ctx, req, |b| envelope::renamed(b, req, self.name)).await
    }
    /// The command with these.
    pub(in crate::commands) async fn run_with(
        &self,
        router: &Router,
        ctx: &OpCtx,
        req: &Request<'_>,
        arguments: impl Fn(&mut DocBuilder),
    ) -> Result<DocBuf> {
        self.ask(router, ctx, req, Kind::Write, arguments).await
    }
    /// The same of a command that need not be a write.
    pub(super) async fn ask(
        &self,
        router: &Router,
        ctx: &OpCtx,
        req: &Request<'_>,
        kind: Kind,
        arguments: impl Fn(&mut DocBuilder),
    ) -> Result<DocBuf> {
        let mut tries = Tries::default();
        loop {
            let route = match self.creates {
                true => router.route_for_write(ctx, &self.ns).await?,
                false => router.catalog.route(&self.ns).await?,
            };
            let mut b = DocBuilder::with_capacity(req.body.byte_len() + 256);
            arguments(&mut b);
            envelope::append(&mut b, ctx, req, kind, &route.primary_of_database());
            let done = router.call_primary(ctx, &route.db.primary, &b.finish(), self.retry).await;
            // Whatever came of it, what is known of the collection is of before.
            router.catalog.renew_collection(self.ns.as_str());
            match done.map_err(Error::from) {
                Err(e) if tries.again(router, ctx, &route, &e).await => {}
                done => return done.map(|answer| answer.reply),
            }
        }
    }
}
