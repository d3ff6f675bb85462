//! Looks at whole collections: are they what they claim to be, and are they the same on another member?

use crate::{Access, ByCtx};
use pando_base::{Namespace, Result};
use pando_catalog::{DbHash, Extent, ValidateReport};
use pando_command::OpCtx;
use pando_storage::ReadAt;

impl Access {
    /// Compares a collection with its indexes and counters.
    pub async fn validate(&self, ctx: &OpCtx, ns: &Namespace, how: Extent) -> Result<ValidateReport> {
        self.outside_transaction(ctx)?.validate(ns, how, &ByCtx(ctx)).await
    }
    /// Digests of the collections of a database: of those that `only` names, or of all when it is empty.
    pub async fn db_hash(&self, ctx: &OpCtx, db: &str, only: &[&str], at: ReadAt) -> Result<DbHash> {
        self.outside_transaction(ctx)?.db_hash(db, only, at, &ByCtx(ctx)).await
    }
}
