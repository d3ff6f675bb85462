//! The router as the pipeline of commands sees it: everything may run here, and what a reply says of time is what shards said.

use crate::Router;
use crate::op::OpTimes;
use pando_base::{Error, ErrorCode, Result, Timestamp, limits};
use pando_command::cluster_time::Signature;
use pando_command::concern::{Provenance, W};
use pando_command::{
    Client, Flags, Instance, Node, OpCtx, ReplyTimes, Request, TopologyVersion, WriteConcern,
    WriteConcernError,
};
use pando_env::BoxFuture;
use std::sync::Arc;

impl Node for Router {
    fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }
    fn admit(&self, ctx: &OpCtx, _flags: Flags) -> Result<()> {
        ctx.attach(Arc::new(OpTimes::default()));
        Ok(())
    }
    /// Its shards look at it again.
    fn advance_cluster_time(&self, _: &Client, seen: Timestamp, signature: &Signature) -> Result<()> {
        let now = (self.instance.env.clock.wall_ms() / 1000).max(0) as u32;
        if seen.secs().saturating_sub(now) > limits::CLUSTER_TIME_AHEAD_SECS {
            let text =
                format!("New cluster time, {seen}, is too far from this node's wall clock time, {now}.");
            return Err(Error::new(ErrorCode::ClusterTimeFailsRateLimiter, text));
        }
        self.times.advance_cluster(seen, *signature);
        Ok(())
    }
    /// A transaction's state is with the router's own record of it, which the handler looks up.
    fn check_out<'a>(&'a self, _: &'a OpCtx, _: &'a Request<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }
    fn default_write_concern(&self) -> WriteConcern {
        WriteConcern::of(W::Majority, Provenance::ImplicitDefault)
    }
    /// Shards have waited.
    fn await_write_concern<'a>(
        &'a self,
        _: &'a OpCtx,
        _: &'a WriteConcern,
    ) -> BoxFuture<'a, Option<WriteConcernError>> {
        Box::pin(async { None })
    }
    fn reply_times(&self, ctx: &OpCtx) -> Option<ReplyTimes> {
        let (cluster_time, signature) = self.times.cluster();
        if cluster_time.is_zero() {
            return None;
        }
        let heard = ctx.attached::<OpTimes>().map_or(Timestamp::ZERO, OpTimes::operation);
        let operation_time = if heard.is_zero() { cluster_time } else { heard };
        Some(ReplyTimes { cluster_time, signature, operation_time })
    }
    fn topology_version(&self) -> Option<TopologyVersion> {
        Some(TopologyVersion { process_id: self.process_id, counter: 0 })
    }
}
