//! What a rollback came to, for the log and for `serverStatus`.

use super::Replication;
use super::rollback_stats::Last;
use pando_base::{Millis, OpTime, Timestamp};
use pando_env::Component;
use pando_query::date;
use pando_repl::data::Undone;
use std::sync::Arc;

pub(super) struct Summary<'a> {
    pub(super) started: Millis,
    pub(super) source: &'a str,
    pub(super) rbid: i32,
    pub(super) common: OpTime,
    pub(super) stable: Timestamp,
    pub(super) undone: Arc<Undone>,
    /// Documents in rollback files.
    pub(super) kept: u64,
    /// Entries of the log, or documents of the source.
    pub(super) redone: Redone,
}

#[derive(Clone, Copy)]
pub(super) enum Redone {
    Replayed(u64),
    Fetched(u64),
}

impl Replication {
    pub(super) fn tell_rollback(&self, s: Summary<'_>) {
        let ended = self.env.clock.wall_ms();
        let first = s.undone.oldest.map_or(OpTime::NULL, |p| p.op_time);
        let last = s.undone.newest.map_or(OpTime::NULL, |p| p.op_time);
        self.env.log.info(Component::Rollback, 21612, "Rollback summary", |a| {
            a.str("startTime", &date::iso(s.started)).str("endTime", &date::iso(ended));
            a.str("syncSource", s.source).i64("rbid", i64::from(s.rbid));
            a.show("lastOptimeRolledBack", last).show("commonPoint", s.common);
            a.show("firstOpTimeAfterCommonPoint", first).show("stableTimestamp", s.stable);
            a.u64("affectedSessions", s.undone.sessions.len() as u64);
            a.str(
                "affectedNamespaces",
                &Vec::from_iter(s.undone.namespaces.iter().map(String::as_str)).join(", "),
            );
            let commands = s.undone.commands.iter().map(|(name, n)| format!("{name}: {n}"));
            a.str("rollbackCommandCounts", &Vec::from_iter(commands).join(", "));
            a.u64("totalEntriesRolledBackIncludingNoops", s.undone.entries);
            a.u64("documentsInRollbackFiles", s.kept);
            match s.redone {
                Redone::Replayed(n) => a.u64("numOpsReplayed", n),
                Redone::Fetched(n) => a.u64("documentsRefetched", n),
            };
        });
        let last = Last {
            ended,
            millis: ended - s.started,
            common: s.common,
            entries: s.undone.entries,
            documents: s.kept,
        };
        self.rollbacks.note(last);
    }
}
