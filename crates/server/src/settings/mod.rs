//! Settings of the set that every member reads back from documents: default concerns, the feature version, blocked writes,
//! cluster parameters.

pub(crate) mod cluster_parameters;
pub(crate) mod feature_version;
pub(crate) mod feature_version_guard;
pub(crate) mod profiling;
pub(crate) mod rw_defaults;
pub(crate) mod user_writes;

use crate::Server;
use crate::settings::feature_version::{FEATURE_VERSION, FeatureVersion};
use crate::settings::rw_defaults::ClusterWide;
use crate::write::writes::ByCtx;
use pando_base::{Namespace, Result};
use pando_bson::{DocBuilder, Elem, RawDoc};
use pando_command::OpCtx;

impl Server {
    /// Inserts `doc` or replaces the one with its `_id`, in any collection.
    pub(crate) async fn put_by_id(&self, ctx: &OpCtx, ns: &Namespace, doc: &RawDoc) -> Result<()> {
        let last = self.internal.put(&ByCtx(ctx), ns, doc).await?;
        self.wrote(ctx, last);
        Ok(())
    }

    /// Removes the document with this `_id`, if there is one.
    pub(crate) async fn remove_by_id(&self, ctx: &OpCtx, ns: &Namespace, id: Elem<'_>) -> Result<()> {
        let mut key = DocBuilder::new();
        key.elem(id);
        if let Some(last) = self.internal.remove(&ByCtx(ctx), ns, &key.finish()).await? {
            self.wrote(ctx, last);
        }
        Ok(())
    }

    /// Reads back what `setDefaultRWConcern` and `setFeatureCompatibilityVersion` stored.
    pub(crate) fn restore_settings(&self) -> Result<()> {
        let stored = self.internal.named(&settings_ns(), RW_DEFAULTS)?;
        let mut v = stored.map_or_else(ClusterWide::default, |doc| ClusterWide::from_doc(&doc));
        v.local_wall_ms = self.env.clock.wall_ms();
        self.rw_defaults.set(v);
        let stored = self.internal.named(&versions_ns(), FEATURE_VERSION)?;
        self.set_feature_version(stored.and_then(|d| FeatureVersion::from_doc(&d)).unwrap_or_default());
        self.restore_user_writes()?;
        self.restore_cluster_parameters()
    }
    pub(crate) async fn save_rw_defaults(&self, ctx: &OpCtx, v: &ClusterWide) -> Result<()> {
        self.put_by_id(ctx, &settings_ns(), &v.to_doc(RW_DEFAULTS)).await
    }
}

fn settings_ns() -> Namespace {
    Namespace::unchecked("config", "settings")
}

pub(crate) fn versions_ns() -> Namespace {
    Namespace::unchecked("admin", "system.version")
}

/// `_id` of the document in `config.settings`.
const RW_DEFAULTS: &str = "ReadWriteConcernDefaults";
