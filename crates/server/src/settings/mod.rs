//! Settings of the set that every member reads back from documents: default concerns, the feature version, blocked writes,
//! cluster parameters. And two that are this process's own: which databases are profiled, how long the oplog is kept.
//!
//! Commands change them through [`Settings`], which stores the document and puts it in force; whoever applies a primary's
//! writes, rolls back or starts has them read again ([`Settings::restore`]). The part uses no other part.

pub(crate) mod cluster_parameters;
pub(crate) mod feature_version;
pub(crate) mod feature_version_guard;
pub(crate) mod profiling;
pub(crate) mod rw_defaults;
pub(crate) mod user_writes;

use crate::principals::authority::PrincipalsVersion;
use cluster_parameters::ClusterParameters;
use feature_version::{FEATURE_VERSION, FeatureVersion, Reach};
use pando_access::ByCtx;
use pando_access::Lock;
use pando_access::Resource;
use pando_access::{InternalCollections, LogAs, Uninterrupted};
use pando_base::{Error, Namespace, OpTime, Result};
use pando_bson::RawDoc;
use pando_command::{Instance, OpCtx, Param};
use pando_env::Env;
use pando_storage::Storage;
use profiling::Profiling;
use rw_defaults::{ClusterWide, RwDefaults};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use user_writes::UserWrites;

/// What is in force here.
pub(crate) struct Settings {
    env: Env,
    instance: Arc<Instance>,
    storage: Storage,
    internal: InternalCollections,
    pub(crate) rw_defaults: RwDefaults,
    pub(crate) cluster_parameters: ClusterParameters,
    pub(crate) user_writes: UserWrites,
    /// Of users and roles.
    pub(crate) principals: PrincipalsVersion,
    feature_version: Mutex<FeatureVersion>,
    /// Held while it is changed.
    pub(crate) feature_version_lock: Lock,
    pub(crate) profiling: Profiling,
    /// Milliseconds of oplog that its size bound does not take away; 0 = only the size counts.
    pub(crate) oplog_retention_ms: AtomicU64,
}

impl Settings {
    pub(crate) fn new(
        instance: Arc<Instance>,
        storage: Storage,
        internal: InternalCollections,
        oplog_retention_ms: u64,
    ) -> Arc<Settings> {
        Arc::new(Settings {
            env: instance.env.clone(),
            instance,
            storage,
            internal,
            rw_defaults: RwDefaults::default(),
            cluster_parameters: ClusterParameters::default(),
            user_writes: UserWrites::default(),
            principals: PrincipalsVersion::default(),
            feature_version: Mutex::default(),
            feature_version_lock: Lock::of(Resource::FeatureVersion),
            profiling: Profiling::default(),
            oplog_retention_ms: AtomicU64::new(oplog_retention_ms),
        })
    }

    /// Inserts `doc` or replaces the one with its `_id`, in any collection.
    pub(crate) async fn put(&self, ctx: &OpCtx, ns: &Namespace, doc: &RawDoc) -> Result<()> {
        ctx.wrote(self.internal.put(&ByCtx(ctx), ns, doc).await?);
        Ok(())
    }

    /// Reads all of them back: at the start, when this member applies a change of one, after a rollback.
    pub(crate) fn restore(&self) -> Result<()> {
        let stored = self.internal.named(&settings_ns(), RW_DEFAULTS)?;
        let mut v = stored.map_or_else(ClusterWide::default, |doc| ClusterWide::from_doc(&doc));
        v.local_wall_ms = self.env.clock.wall_ms();
        self.rw_defaults.set(v);
        let stored = self.internal.named(&versions_ns(), FEATURE_VERSION)?;
        self.set_feature_version(stored.and_then(|d| FeatureVersion::from_doc(&d)).unwrap_or_default());
        self.principals.bump();
        self.restore_user_writes()?;
        self.restore_cluster_parameters()
    }
    pub(crate) async fn save_rw_defaults(&self, ctx: &OpCtx, v: &ClusterWide) -> Result<()> {
        self.put(ctx, &settings_ns(), &v.to_doc(RW_DEFAULTS)).await
    }

    pub(crate) fn feature_version(&self) -> FeatureVersion {
        *self.feature_version.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// One step on the way to `wanted`, as far as it is to go: where it was written down, and from where it holds.
    pub(crate) async fn advance_feature_version(
        &self,
        wanted: &'static str,
        reach: Reach,
    ) -> Result<Option<OpTime>> {
        let now = self.feature_version();
        let Some(step) = now.next(wanted, reach)? else { return Ok(None) };
        if step.is_behind_start() {
            self.fail_if_told(now.goes_up(wanted))?;
        }
        let at = self.internal.put(&Uninterrupted, &versions_ns(), &step.to_doc()).await?;
        self.env.log.info(pando_env::Component::Command, 5_853_300, "setFCV progress", |a| {
            a.show("featureCompatibilityVersion", step);
        });
        Ok(Some(at))
    }
    /// Fail points between the first phase and the last.
    fn fail_if_told(&self, upgrade: bool) -> Result<()> {
        let (name, code, what) = match upgrade {
            true => ("failUpgrading", 549_180, "upgrade"),
            false => ("failDowngrading", 549_181, "downgrade"),
        };
        match self.instance.fail_points.find(name)?.check(&*self.env.rng, |_| true) {
            Some(_) => Err(Error::location(code, format!("Failing {what} due to '{name}' failpoint set"))),
            None => Ok(()),
        }
    }
    /// On whoever may write: a document says what holds without one, too.
    pub(crate) async fn write_feature_version(&self) -> Result<()> {
        let doc = self.feature_version().to_doc();
        let absent = |old: Option<&RawDoc>| Ok(old.is_none().then(|| doc.clone()));
        self.internal.change(&Uninterrupted, &versions_ns(), &doc, LogAs::Replacement, absent).await.map(drop)
    }
    /// Also as a parameter, which tells the version alone.
    fn set_feature_version(&self, v: FeatureVersion) {
        *self.feature_version.lock().unwrap_or_else(PoisonError::into_inner) = v;
        self.instance.params.force_text(Param::featureCompatibilityVersion, v.version);
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
