//! `checkMetadataConsistency`: whether what shards have is what the config servers say, and whether that fits together; of a collection,
//! a database or the cluster.
//!
//! ```text
//!   config.collections, config.databases ─► registered.rs      a collection without its database
//!   config.chunks of each, in one read ───► routing_table.rs   keys in no chunk, keys in two, bounds of another key
//!   config.tags of each ──────────────────► zones.rs           zones with the same keys, bounds of another key
//!   listCollections of each shard ────────► collections.rs     on the wrong shard, with another UUID, not there
//!   getShardVersion of each owner ───────► collections.rs     taken for not sharded
//!   listIndexes of each owner ────────────► indexes.rs         none on the shard key; with `checkIndexes`, not the same everywhere
//! ```
//! What is found is looked at once more a moment later (`again.rs`): what was only being changed is not there any more, or is something
//! else, and is not told.

mod again;
mod collections;
mod indexes;
mod look;
mod ranges;
mod registered;
mod routing_table;
mod scope;
#[cfg(test)]
mod testing;
mod wrong;
mod zones;

use super::super::prelude::*;
use crate::cursors::{Open, Remotes, RouterCursor, Shape};
use look::Looker;
use pando_command::Names;
use pando_request::fields::cursor_option;
use scope::Scope;

const NAME: &str = "checkMetadataConsistency";

/// What is asked for.
struct Asked {
    /// One collection of the database.
    only: Option<Namespace>,
    batch_size: Option<u64>,
    indexes: bool,
}

impl Asked {
    fn parse(req: &Request<'_>) -> Result<Asked> {
        let mut asked = Asked { only: only(req)?, batch_size: None, indexes: false };
        let mut before = Names::default();
        for arg in req.given_args(NAME, &["cursor", "checkIndexes"]) {
            match arg.name() {
                "cursor" => asked.batch_size = cursor_option(NAME, arg.elem())?,
                "checkIndexes" => asked.indexes = arg.bool()?,
                _ => return Err(arg.unknown()),
            }
            arg.once(&mut before)?;
        }
        Ok(asked)
    }
}

/// The collection that is named, or nothing for `1`.
fn only(req: &Request<'_>) -> Result<Option<Namespace>> {
    match req.first().value() {
        Value::String(_) => req.ns().map(Some),
        v if v.is_number() && wrong::same(v, Value::Int32(1)) => Ok(None),
        v if v.is_number() => Err(Error::failed_to_parse(format!(
            "Invalid command format: the '{NAME}' field must specify a collection name or 1"
        ))),
        v => Err(Error::type_mismatch(format!("collection name has invalid type: {}", v.type_name()))),
    }
}

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let asked = Asked::parse(&req)?;
    ctx.arguments_read()?;
    let scope = match (&asked.only, req.db) {
        (Some(ns), _) => Scope::collection(ns),
        (None, "admin") => Scope::Cluster,
        (None, db) => Scope::database(db),
    };
    let looker = Looker { router, ctx, indexes: asked.indexes };
    let found = again::confirmed(&looker, looker.look(&scope).await?).await?;
    let ns = asked.only.unwrap_or_else(|| Namespace::unchecked(req.db, "$cmd.aggregate"));
    let open = Open { batch_size: asked.batch_size, ..Open::new(ns) };
    let cursor = RouterCursor::with_documents(Remotes::none(router, ctx), found, Shape::default())?;
    router.begin(ctx, &req, open, cursor).await
}
