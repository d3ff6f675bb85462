//! Index builds, whose ends the set decides together.

use super::Maintenance;
use pando_base::{Error, Namespace, Result, Uuid};
use pando_catalog::{BuildView, Index};
use pando_env::sync::Notify;
use std::sync::Arc;

impl Maintenance {
    /// Builds of this process.
    pub fn builds(&self) -> Vec<BuildView> {
        self.catalog.builds()
    }
    /// Builds that run now: collection, build id, index names and counters, for `currentOp` and `listIndexes`.
    pub fn running_builds(&self) -> Vec<(Namespace, Uuid, Vec<Arc<Index>>)> {
        self.catalog.running_builds()
    }
    /// Bumped when a build of this process begins, has its part, or is over.
    pub fn build_news(&self) -> &Notify {
        self.catalog.build_news()
    }
    /// Whether a collection has unfinished indexes of this build.
    pub fn is_unfinished(&self, build: Uuid) -> bool {
        self.catalog.is_unfinished(build)
    }
    /// The commit quorum is met: this primary commits the build when it has its own part.
    pub fn permit_build(&self, build: Uuid) {
        self.catalog.permit_build(build)
    }
    /// A primary gives the build up, if somebody wishes so or its own part failed.
    pub fn permit_abort(&self, build: Uuid) {
        self.catalog.permit_abort(build)
    }
    /// Whoever did not want the build any more is not heard: this node is not primary.
    pub fn keep_build(&self, build: Uuid) {
        self.catalog.keep_build(build)
    }
    /// Somebody does not want a build any more; false where none runs.
    pub fn unwanted_build(&self, build: Uuid, why: Error) -> bool {
        self.catalog.unwanted_build(build, why)
    }
    /// Stops builds on a collection that is about to go and waits until they have stopped.
    pub async fn abort_builds(&self, ns: &Namespace, why: &str) -> Result<()> {
        self.catalog.abort_builds(ns, why).await
    }
    /// Stops all builds and waits until they have stopped. Their indexes stay unfinished, for
    /// [`Maintenance::resume_builds`] here or on another member.
    pub async fn end_builds(&self, why: &str) {
        self.catalog.end_builds(why).await
    }
    /// The same without a wait.
    pub fn abandon_builds(&self, why: &str) {
        self.catalog.abandon_builds(why)
    }
    /// Takes up unfinished builds that nobody works on, in the background. Nothing else may change definitions that the locks
    /// of collections do not hold back (on a member that follows: while nothing is applied). Returns how many.
    pub async fn resume_builds(&self) -> Result<usize> {
        self.catalog.resume_builds().await
    }
    /// From now on a primary commits a build only when [`Maintenance::permit_build`] was called for it, and gives it up only after
    /// [`Maintenance::permit_abort`].
    pub fn judge_builds(&self) {
        self.catalog.judge_builds()
    }
    /// For tests: builds that have been registered wait while `held` says so; with an error this member's part fails.
    pub fn hold_builds_while(&self, held: impl Fn() -> Result<bool> + Send + Sync + 'static) {
        self.catalog.hold_builds_while(held)
    }
    /// `maxNumActiveUserIndexBuilds`.
    pub fn set_active_builds_max(&self, n: usize) {
        self.catalog.set_active_builds_max(n)
    }
    /// Whether what the log or another member tells of indexes is made here, too (`buildIndexes` of this member). Kept, because
    /// the log is replayed before the set's configuration is known.
    pub fn set_makes_indexes(&self, yes: bool) -> Result<()> {
        self.catalog.set_makes_indexes(yes)
    }
}
