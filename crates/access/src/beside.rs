//! The collections that the stages of an aggregation read beside its own. They are asked for when a stage first needs them, long
//! after the operation was begun, so what decides about them is noted at its begin.

use crate::Access;
use crate::placement;
use crate::reading::Reading;
use crate::transaction::conflicts::on_prepared;
use crate::transaction::{OpenTxn, open_txn};
use pando_base::{Namespace, Result};
use pando_catalog::{Collection, Named, ResolvedView};
use pando_command::{OpCtx, Versions};
use pando_query::source::Source;
use pando_routing::check::Access as Kind;
use pando_storage::{OnPrepared, ReadAt};
use std::sync::Arc;

pub struct Beside {
    access: Access,
    on_prepared: OnPrepared,
    /// Whose view of them is wanted.
    transaction: Option<Arc<OpenTxn>>,
    versions: Versions,
}

impl Access {
    pub fn beside(&self, ctx: &OpCtx) -> Beside {
        Beside {
            access: self.clone(),
            on_prepared: on_prepared(&ctx.read_concern),
            transaction: open_txn(ctx).cloned(),
            versions: Versions::of(ctx),
        }
    }
}

impl Beside {
    /// What a view comes down to; `None` when `ns` is not one.
    pub fn view(&self, ns: &Namespace) -> Result<Option<ResolvedView>> {
        self.access.catalog.snapshot().resolve_view(ns)
    }
    /// For stages that tell about a collection and read nothing of it.
    pub fn definition(&self, ns: &Namespace) -> Option<Arc<Collection>> {
        self.access.catalog.lookup(ns)
    }
    /// The collection in the operation's transaction, or at `at`.
    pub fn source(&self, ns: &Namespace, at: ReadAt) -> Result<Option<Box<dyn Source>>> {
        let catalog = &self.access.catalog;
        let named = match (&self.transaction, at) {
            (Some(open), _) => open.meet_now(catalog, ns)?.map(Named::Collection),
            (None, ReadAt::At(ts)) => catalog.named_at(ns, ts)?,
            (None, _) => catalog.snapshot().get(ns).cloned(),
        };
        let visible = match &self.access.placement {
            None => None,
            Some(_) if self.versions.is_none() => None,
            Some(metadata) => {
                placement::check(metadata, &self.versions, ns, Kind::Read).map_err(|r| r.error)?
            }
        };
        let Reading::Collection(coll) = self.access.admit(named, visible) else { return Ok(None) };
        self.access.open_source(self.transaction.as_ref(), &coll, at, self.on_prepared).map(Some)
    }
}
