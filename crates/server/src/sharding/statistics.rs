//! `serverStatus.shardingStatistics` of a shard: what migrations have done, and what they cost.
//!
//! Each primary counts what it does itself, since its start: who takes a migration over counts how it ends, and not how long it took.

use super::Sharding;
use pando_base::Uuid;
use pando_base::panics::poisoned;
use pando_bson::RawDoc;
use pando_metrics::{Collector, Source, group};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

group! {
    /// See the module text.
    pub(crate) struct ShardingStatistics {
        /// Requests that were refused for what their sender, or this shard, knew of who owns what
        pub(crate) stale: Counter = "countStaleConfigErrors", "requests";
        /// Migrations that have begun to give a range away
        pub(crate) donor_started: Counter = "countDonorMoveChunkStarted", "migrations";
        /// Migrations that have given a range away
        pub(crate) donor_committed: Counter = "countDonorMoveChunkCommitted", "migrations";
        /// Migrations whose range has stayed
        pub(crate) donor_aborted: Counter = "countDonorMoveChunkAborted", "migrations";
        /// Time from the beginning of migrations to their decision
        pub(crate) donor_ms: Counter = "totalDonorMoveChunkTimeMillis", "milliseconds";
        /// Time until recipients had nearly everything
        pub(crate) clone_ms: Counter = "totalDonorChunkCloneTimeMillis", "milliseconds";
        /// Time in which config servers were asked to commit
        pub(crate) commit_ms: Counter = "totalCriticalSectionCommitTimeMillis", "milliseconds";
        /// Time in which writes of collections waited
        pub(crate) section_ms: Counter = "totalCriticalSectionTimeMillis", "milliseconds";
        /// Migrations that have begun to receive a range
        pub(crate) recipient_started: Counter = "countRecipientMoveChunkStarted", "migrations";
        /// Documents that were received
        pub(crate) docs_received: Counter = "countDocsClonedOnRecipient", "documents";
        /// Bytes of documents that were received
        pub(crate) bytes_received: Counter = "countBytesClonedOnRecipient", "bytes";
        /// Documents that were written while their range was received, and were received again
        pub(crate) docs_caught_up: Counter = "countDocsClonedOnCatchUpOnRecipient", "documents";
        /// Bytes of those
        pub(crate) bytes_caught_up: Counter = "countBytesClonedOnCatchUpOnRecipient", "bytes";
        /// Documents that were given
        pub(crate) docs_given: Counter = "countDocsClonedOnDonor", "documents";
        /// Bytes of documents that were given
        pub(crate) bytes_given: Counter = "countBytesClonedOnDonor", "bytes";
        /// Documents of ranges of others that were deleted
        pub(crate) deleted: Counter = "countDocsDeletedByRangeDeleter", "documents";
    }
}

/// When what this primary gives away has reached which step.
#[derive(Default)]
struct Times {
    begun: Duration,
    entered: Option<Duration>,
    numbered: Option<Duration>,
}

/// Of migrations under way, until their section is left.
#[derive(Default)]
pub(crate) struct DonorTimes(Mutex<BTreeMap<Uuid, Times>>);

impl DonorTimes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Uuid, Times>> {
        self.0.lock().unwrap_or_else(poisoned)
    }
}

/// The migration that a section belongs to.
pub(super) fn migration_of(section: &RawDoc) -> Option<Uuid> {
    let reason = section.get("reason")?;
    pando_workflows::ddl::uuid_at(reason.as_doc()?, "migrationId")
}
fn add(to: &pando_metrics::Counter, from: Option<Duration>, now: Duration) {
    from.iter().for_each(|from| to.add(now.saturating_sub(*from).as_millis() as u64));
}

impl Sharding {
    fn now(&self) -> Duration {
        self.env.clock.mono()
    }
    pub(crate) fn donor_begins(&self, id: Uuid) {
        let times = Times { begun: self.now(), ..Times::default() };
        if self.donor_times.lock().insert(id, times).is_none() {
            self.statistics.donor_started.inc();
        }
    }
    /// The range's collection takes no writes: nearly everything is copied.
    pub(super) fn donor_enters(&self, id: Uuid) {
        let now = self.now();
        if let Some(times) = self.donor_times.lock().get_mut(&id).filter(|t| t.entered.is_none()) {
            times.entered = Some(now);
            add(&self.statistics.clone_ms, Some(times.begun), now);
        }
    }
    pub(crate) fn donor_commits(&self, id: Uuid) {
        let now = self.now();
        self.donor_times.lock().entry(id).and_modify(|t| t.numbered = Some(now));
    }
    pub(crate) fn donor_decides(&self, id: Uuid, committed: bool) {
        let (now, counts) = (self.now(), &self.statistics);
        match committed {
            true => counts.donor_committed.inc(),
            false => counts.donor_aborted.inc(),
        }
        let mut all = self.donor_times.lock();
        let Some(times) = all.get_mut(&id) else { return };
        add(&counts.donor_ms, Some(times.begun), now);
        add(&counts.commit_ms, times.numbered, now);
        if times.entered.is_none() {
            all.remove(&id);
        }
    }
    pub(super) fn donor_leaves(&self, id: Uuid) {
        if let Some(times) = self.donor_times.lock().remove(&id) {
            add(&self.statistics.section_ms, times.entered, self.now());
        }
    }
    /// This node is primary no more.
    pub(crate) fn forget_donor_times(&self) {
        self.donor_times.lock().clear();
    }
}

impl Source for Sharding {
    fn collect(&self, to: &mut Collector<'_>) {
        self.statistics.collect(to);
        if let Ok(cluster) = self.cluster() {
            to.within("catalogCache", |to| cluster.catalog.collect(to));
        }
    }
}
