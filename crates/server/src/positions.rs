//! How far the log is, as replies show it.

use crate::Server;
use pando_base::{OpTime, Timestamp};
use pando_repl::show::Positions;

impl Server {
    /// The newest write that a new read would see, with the current term.
    pub(crate) fn last_applied(&self) -> OpTime {
        OpTime::new(self.storage.log().visible(), self.repl.term())
    }
    /// With one member, what is durable here is committed by the majority.
    pub(crate) fn committed(&self) -> Timestamp {
        let log = self.storage.log();
        log.durable().min(log.visible())
    }
    pub(crate) fn positions(&self) -> Positions {
        let term = self.repl.term();
        let log = self.storage.log();
        let (applied, durable) = (log.visible(), log.durable());
        let committed = durable.min(applied);
        // Wall times of entries are their timestamps' seconds: good enough between whole seconds.
        let wall = |t: Timestamp| i64::from(t.secs()) * 1000;
        Positions {
            applied: OpTime::new(applied, term),
            applied_wall_ms: wall(applied),
            durable: OpTime::new(durable, term),
            durable_wall_ms: wall(durable),
            committed: OpTime::new(committed, term),
            committed_wall_ms: wall(committed),
        }
    }
}
