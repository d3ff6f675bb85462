//! What a request believes of who owns what: the versions that its router sent along, and the collection that they speak of.

use crate::OpCtx;
use pando_base::Namespace;
use pando_bson::{RawDoc, Value};
use pando_routing::{ChunkVersion, DatabaseVersion};
use std::sync::Arc;

/// Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Versions {
    pub shard: Option<ChunkVersion>,
    pub database: Option<DatabaseVersion>,
    /// Of the collection that the command names, without its database.
    target: Option<Arc<str>>,
}

impl Versions {
    pub fn of(ctx: &OpCtx) -> Versions {
        let target = ctx.target().cloned();
        Versions { shard: ctx.args.shard_version, database: ctx.args.database_version, target }
    }
    pub fn is_none(&self) -> bool {
        self.shard.is_none() && self.database.is_none()
    }
    /// Whether the shard version is that of this collection. Some commands name it with its database (`dataSize`).
    pub fn speaks_of(&self, ns: &Namespace) -> bool {
        self.target.as_deref().is_some_and(|target| target == ns.coll() || target == ns.as_str())
    }
    /// The name that a command has first, also of one that is explained.
    pub(crate) fn target_of(body: &RawDoc) -> Option<Arc<str>> {
        match body.first()?.value() {
            Value::String(name) => Some(name.into()),
            Value::Document(inner) => inner.first()?.value().as_str().map(Into::into),
            _ => None,
        }
    }
}
