//! Whom a member that rolls back asks, and whom it does not follow afterwards.

use super::Replication;
use pando_base::{OpTime, limits};
use pando_env::Component;
use pando_repl::topology::Event;

impl Replication {
    /// Nothing has been changed. Which member is asked next, and when nobody is left, the coordinator knows.
    pub(super) fn ask_another(&self, source: &str, reached: OpTime) {
        self.env.log.warn(
            Component::Rollback,
            9100026,
            "The oplogs of this node and its sync source have no entry in common: another member is asked where they parted",
            |a| {
                a.str("syncSource", source).show("partedBefore", reached);
            },
        );
        self.rollbacks.without_common_point.inc();
        self.tell(Event::NoCommonPoint { host: source.into(), reached });
        self.tell(Event::FollowerState(self.follower_state()));
    }

    /// It is not asked for a while.
    pub(super) fn avoid(&self, source: &str) {
        let for_ms = limits::DENY_PROBE_FAILED_MS as i64;
        self.tell(Event::SyncSourceDenied { host: source.into(), for_ms });
    }
    /// A member that is still on an older branch has newer entries than ours again: fetched from it, they would have
    /// to be undone once more, over and over.
    pub(super) fn avoid_older_branches(&self, source: &str) {
        let Some(coordinator) = self.coordinator.get() else { return };
        let older: Vec<_> = coordinator.read(|core| {
            let members = core.config().into_iter().flat_map(|c| &c.members);
            let others = members.filter(|m| m.id != core.self_id() && m.host != source);
            let behind = |id| core.member(id).is_some_and(|d| d.best.written.op.t < core.term());
            others.filter(|m| behind(m.id)).map(|m| m.host.as_str().into()).collect()
        });
        let for_ms = limits::DENY_PROBE_FAILED_MS as i64;
        older.into_iter().for_each(|host| coordinator.tell(Event::SyncSourceDenied { host, for_ms }));
    }
}
