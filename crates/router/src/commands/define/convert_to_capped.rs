//! `convertToCapped`: of a collection that is not sharded, on the primary shard.

use super::super::prelude::*;
use super::on_primary::OnPrimary;
use pando_request::ConvertToCappedArgs;
use pando_rpc::Retry;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns_of_ddl()?;
    ConvertToCappedArgs::parse(&req)?;
    if router.catalog.route(&ns).await?.is_sharded() {
        let text = "You can't convertToCapped a sharded collection";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    let on = OnPrimary { ns, name: "convertToCapped", creates: false, retry: Retry::NotIdempotent };
    on.run(router, ctx, &req).await.map(|reply| handed_on(&reply))
}
