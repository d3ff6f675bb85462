//! Commands of config servers, which routers and shards send: one file each. What they decide and write is the catalog manager's
//! ([`pando_config_server`]); here stand their arguments, their replies and the wait for a majority.

pub(super) mod add_shard;
pub(super) mod add_shard_to_zone;
pub(super) mod balancer_collection_status;
pub(super) mod balancer_start;
pub(super) mod balancer_status;
pub(super) mod balancer_stop;
pub(super) mod clear_jumbo_flag;
pub(super) mod commit_chunk_migration;
pub(super) mod commit_chunk_split;
pub(super) mod commit_chunks_merge;
pub(super) mod commit_drop_collection;
pub(super) mod commit_drop_database;
pub(super) mod commit_move_primary;
pub(super) mod commit_shard_collection;
pub(super) mod configure_collection_balancing;
pub(super) mod create_database;
pub(super) mod ensure_chunk_version;
pub(super) mod remove_chunks;
pub(super) mod remove_shard;
pub(super) mod remove_shard_from_zone;
pub(super) mod remove_tags;
pub(super) mod set_allow_migrations;
pub(super) mod update_zone_key_range;

mod fields;

use super::prelude::*;
use crate::config_server::ConfigServer;
use pando_access::ByCtx;
use pando_base::Uuid;
use pando_command::W;
use std::sync::Arc;

/// What nearly every one of these files uses.
mod prelude {
    pub(super) use super::super::prelude::*;
    pub(super) use super::{Call, fields};
    pub(super) use pando_bson::fields::missing;
    pub(super) use pando_routing::ShardId;
}

/// One command on its way.
pub(super) struct Call<'a> {
    server: &'a Server,
    ctx: &'a OpCtx,
    config_server: &'a Arc<ConfigServer>,
    interrupt: ByCtx<'a>,
    client: String,
}

impl<'a> Call<'a> {
    pub(super) fn new(server: &'a Server, ctx: &'a OpCtx) -> Result<Call<'a>> {
        let config_server = server.config_server.as_ref().ok_or_else(|| {
            let text = format!("{} can only be run on config servers", ctx.command);
            Error::new(ErrorCode::IllegalOperation, text)
        })?;
        let client = ctx.client.remote.clone().unwrap_or_default();
        Ok(Call { server, ctx, config_server, interrupt: ByCtx(ctx), client })
    }
    /// The sender knows that the answer is for good.
    fn with_majority(server: &'a Server, ctx: &'a OpCtx) -> Result<Call<'a>> {
        let given = ctx.write_concern.as_ref();
        if given.is_some_and(|wc| wc.w == W::Majority) {
            return Call::new(server, ctx);
        }
        let mut said = DocBuilder::new();
        match given {
            Some(wc) => wc.append_to(&mut said),
            None => drop(said.i32("w", 1).i32("wtimeout", 0).str("provenance", "implicitDefault")),
        }
        let text =
            format!("\"{}\" must be called with majority writeConcern, got: {} ", ctx.command, said.finish());
        Err(Error::new(ErrorCode::InvalidOptions, text))
    }
    /// Two commands of one session that were sent for the same do not cross.
    fn as_retryable_write(&self, code: i32) -> Result<()> {
        if self.ctx.args.is_retryable_write() {
            return Ok(());
        }
        Err(Error::location(code, format!("{} must be run as a retryable write", self.ctx.command)))
    }
    /// What the answer rests on is on a majority, whether this command has written it or has found it.
    async fn settled(&self) -> Result<()> {
        let upto = self.server.replication.last_applied();
        self.ctx.interruptible(self.server.replication.await_majority(upto)).await??;
        self.ctx.wrote(upto);
        self.config_server.topology_changed();
        Ok(())
    }
    async fn done(&self) -> Result<Reply> {
        self.settled().await?;
        Ok(Reply::new())
    }
}

/// A UUID as old servers and new ones give it: bare, or as `{uuid: <UUID>}`.
fn uuid_of(v: &Value<'_>) -> Option<Uuid> {
    match v {
        Value::Binary { subtype: 4, bytes } => Uuid::from_slice(bytes),
        Value::Document(d) => d.get("uuid").as_ref().and_then(uuid_of),
        _ => None,
    }
}
