//! What can be seen of a set at one moment, from outside of it: states, positions, logs. Looking changes nothing and
//! draws no chance.

use crate::executor::mix_bytes;
use crate::node::Node;
use crate::set::committed::{Committed, Entry, Promise};
use crate::set::story::Story;
use crate::world::Line;
use pando_base::{OpTime, Term, Timestamp};
use pando_bson::RawDoc;
use pando_oplog::EntryView;
use pando_repl::MemberState;
use pando_repl::topology::{ConfigId, Core, ReplSetConfig};
use pando_server::Server;
use std::ops::Bound;
use std::time::Duration;

/// One member as it says it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// Which start of the process this is.
    pub(crate) boots: u32,
    pub(crate) rbid: i32,
    pub(crate) state: MemberState,
    /// Without data, or with a copy that is not done: what it holds is no log yet, and it counts for nothing.
    pub(crate) copying: bool,
    pub(crate) leader: bool,
    pub(crate) writable: bool,
    pub(crate) term: Term,
    pub(crate) committed: OpTime,
    pub(crate) config: ConfigId,
    /// Members, by number, whose copies make an entry committed, and how many of them do.
    pub(crate) voters: u64,
    pub(crate) write_majority: u32,
    /// Term and candidate of the last vote, once it may have been told.
    pub(crate) kept_vote: Option<(Term, i64)>,
    pub(crate) applied: OpTime,
    pub(crate) durable: OpTime,
    pub(crate) written: OpTime,
    pub(crate) oldest: Timestamp,
    pub(crate) stable: Timestamp,
    pub(crate) all_durable: Timestamp,
    /// Where its log is synced up to.
    pub(crate) synced: Timestamp,
}

impl Member {
    fn of(server: &Server, node: &Node, first_port: u16) -> Option<Member> {
        let (storage, rbid) = (&server.storage, server.replication.progress.rbid());
        server.replication.inspect(|core| Member {
            voters: core.config().map_or(0, |c| voters_of(c, first_port)),
            write_majority: core.config().map_or(0, |c| c.write_majority() as u32),
            // A vote that could not be written is not told either.
            kept_vote: core
                .kept_vote()
                .filter(|_| node.disk.errors() == 0)
                .map(|v| (v.term, v.candidate_index)),
            boots: node.boots(),
            rbid,
            state: core.state(),
            // Between giving its data up and saying so it is still in ROLLBACK; taken out of the set meanwhile, REMOVED.
            copying: matches!(core.state(), MemberState::Startup | MemberState::Startup2)
                || server.access.maintenance().is_copying(),
            leader: core.is_leader(),
            writable: core.is_writable(),
            term: core.term(),
            committed: core.commit_point().op,
            config: core.config_id(),
            applied: core.positions().applied.op,
            durable: core.positions().durable.op,
            written: core.positions().written.op,
            oldest: storage.oldest(),
            stable: storage.stable(),
            all_durable: storage.all_durable(),
            synced: storage.log().durable(),
        })
    }
}

fn voters_of(config: &ReplSetConfig, first_port: u16) -> u64 {
    let voting = config.members.iter().filter(|m| m.is_voter() && m.is_data_bearing());
    voting.filter_map(|m| number_of(&m.host, first_port)).fold(0, |all, n| all | 1 << n)
}

/// Which member has an address, in a set whose ports count from `first_port`.
fn number_of(host: &str, first_port: u16) -> Option<usize> {
    let port: u16 = host.rsplit(':').next()?.parse().ok()?;
    port.checked_sub(first_port).map(usize::from)
}

/// Why entries disappeared from a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Loss {
    /// The process or the machine had died.
    Crash,
    Rollback,
    /// Some by the one and some by the other.
    CrashInRollback,
    /// Neither: it must not happen.
    Unexplained,
}

/// A member's log as it was last seen, also while the member is away.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) entries: Vec<Entry>,
    /// Synced up to here when last seen.
    pub(crate) synced: Timestamp,
    seen: Option<(u32, i32)>,
    /// The last look was in the middle of a rollback.
    rolling_back: bool,
    visible: Timestamp,
}

impl Log {
    pub(crate) fn top(&self) -> OpTime {
        self.entries.last().map_or(OpTime::NULL, |e| e.at)
    }
    /// The newest entry at or below `ts`.
    pub(crate) fn at(&self, ts: Timestamp) -> Option<&Entry> {
        let n = self.entries.partition_point(|e| e.at.ts <= ts);
        self.entries[..n].last()
    }
    pub(crate) fn holds(&self, at: OpTime) -> bool {
        self.at(at.ts).is_some_and(|e| e.at == at)
    }
    /// Entries after `after`, up to `upto`.
    pub(crate) fn between(&self, after: Timestamp, upto: Timestamp) -> &[Entry] {
        let from = self.entries.partition_point(|e| e.at.ts <= after);
        let to = self.entries.partition_point(|e| e.at.ts <= upto);
        &self.entries[from.min(to)..to]
    }

    /// Takes in what happened since; what is gone, and how many entries are new.
    fn refresh(
        &mut self,
        server: &Server,
        now: &Member,
        story: &mut Story,
    ) -> Result<(Vec<Entry>, Loss, usize), String> {
        let log = server.storage.log();
        let marks = (now.boots, now.rbid);
        let why = loss(self.seen.replace(marks), self.rolling_back, marks, now.state);
        // A member that is taken out of the set meanwhile says so, and goes on.
        self.rolling_back = goes_on_rolling_back(why, now.state);
        let visible = log.visible();
        let mut gone = Vec::new();
        if why != Loss::Unexplained || visible < self.visible {
            while let Some(last) = self.entries.last() {
                let there = log.read(Bound::Included(last.at.ts), false).next().map_err(|e| e.to_string())?;
                if there.is_some_and(|(ts, bytes)| ts == last.at.ts && mix_bytes(&bytes) == last.hash) {
                    break;
                }
                gone.extend(self.entries.pop());
            }
        }
        let had = self.entries.len();
        let mut new = log.read(Bound::Excluded(self.top().ts), false);
        while let Some((ts, bytes)) = new.next().map_err(|e| e.to_string())? {
            let view = EntryView::parse(RawDoc::trusted(&bytes)).map_err(|e| e.to_string())?;
            if view.op_time().ts != ts {
                return Err(format!("the entry at {ts} says {}", view.op_time()));
            }
            let before = self.entries.last().map(|e| e.at);
            let hash = mix_bytes(&bytes);
            story.note(hash, &view);
            self.entries.push(Entry { at: view.op_time(), hash, before });
        }
        self.visible = visible;
        self.synced = now.synced;
        Ok((gone, why, self.entries.len() - had))
    }
}

/// Why entries may be gone. `before` are the marks (boots, rollbacks) of the last look, which was in the middle of a rollback or not. Who dies in the
/// middle of one has taken out what the rollback takes out, and no more.
fn loss(before: Option<(u32, i32)>, was_rolling_back: bool, marks: (u32, i32), now: MemberState) -> Loss {
    match before {
        Some(before) if before.1 != marks.1 => Loss::Rollback,
        Some(before) if before.0 != marks.0 && was_rolling_back => Loss::CrashInRollback,
        Some(before) if before.0 != marks.0 => Loss::Crash,
        _ if was_rolling_back || now == MemberState::Rollback => Loss::Rollback,
        _ => Loss::Unexplained,
    }
}

/// Whether a member is in the middle of a rollback, for all that can be seen. One that is taken out of the set meanwhile says so, and goes on; that
/// it was rolling back may have been seen by its mark alone.
fn goes_on_rolling_back(why: Loss, now: MemberState) -> bool {
    now == MemberState::Rollback || (now == MemberState::Removed && why == Loss::Rollback)
}

/// One moment: what is, what was at the last one, and what happened in between.
pub(crate) struct Look<'a> {
    /// Virtual time.
    pub(crate) now: Duration,
    pub(crate) members: &'a [Option<Member>],
    pub(crate) before: &'a [Option<Member>],
    pub(crate) logs: &'a [Log],
    /// Entries that a member's log had and has no more.
    pub(crate) gone: &'a [(usize, Loss, Vec<Entry>)],
    /// How many entries of a member's log are new.
    pub(crate) new: &'a [usize],
    pub(crate) committed: &'a Committed,
    /// Entries that have become committed.
    pub(crate) newly_committed: &'a [Entry],
    /// Watched log lines: member, id, attributes.
    pub(crate) lines: &'a [(usize, Line)],
}

impl Look<'_> {
    /// Members that run, with their number and how they were at the last look.
    pub(crate) fn running(&self) -> impl Iterator<Item = (usize, &Member, Option<&Member>)> {
        let both = self.members.iter().zip(self.before).enumerate();
        both.filter_map(|(i, (now, before))| Some((i, now.as_ref()?, before.as_ref())))
    }
}

/// What is remembered between two looks.
pub(crate) struct Watch {
    /// The first member's; the others' follow.
    first_port: u16,
    /// Whoever has the configuration of a set of no such name, or none, is away. Without names everybody counts.
    names: Vec<&'static str>,
    members: Vec<Option<Member>>,
    pub(crate) logs: Vec<Log>,
    pub(crate) committed: Committed,
    pub(crate) story: Story,
}

impl Watch {
    pub(crate) fn new(members: usize, first_port: u16) -> Watch {
        let logs = (0..members).map(|_| Log::default()).collect();
        let (committed, story) = (Committed::default(), Story::default());
        Watch { first_port, names: Vec::new(), members: vec![None; members], logs, committed, story }
    }
    /// Of machines that may be members of one set now and of another one later: looks at those of the set that has
    /// one of these names.
    pub(crate) fn of_set(members: usize, first_port: u16, names: &[&'static str]) -> Watch {
        Watch { names: names.to_vec(), ..Watch::new(members, first_port) }
    }
    fn is_watched(&self, server: &Server) -> bool {
        let has =
            |core: &Core| core.config().is_some_and(|config| self.names.contains(&config.name.as_str()));
        self.names.is_empty() || server.replication.inspect(has) == Some(true)
    }

    /// Another machine stands in the place of this member.
    pub(crate) fn forget(&mut self, who: usize) {
        self.members[who] = None;
        self.logs[who] = Log::default();
    }
    pub(crate) fn members(&self) -> &[Option<Member>] {
        &self.members
    }
    pub(crate) fn state(&self, who: usize) -> Option<MemberState> {
        self.members[who].as_ref().map(|m| m.state)
    }

    /// How the members were when last seen, for whoever looks for a fault.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        let logs = self.members.iter().zip(&self.logs).enumerate();
        logs.map(|(i, (m, log))| {
            format!("member {i}: log up to {}, synced up to {}: {m:?}", log.top(), log.synced)
        })
    }

    /// The leader of the newest term, if it was seen.
    pub(crate) fn newest_leader(&self) -> Option<usize> {
        let leaders = self
            .members
            .iter()
            .enumerate()
            .filter_map(|(i, m)| Some((m.as_ref()?.term, i, m.as_ref()?.leader)));
        leaders.filter(|l| l.2).max().map(|(_, i, _)| i)
    }

    /// Looks at everybody and shows it to `judge`.
    pub(crate) fn look(
        &mut self,
        nodes: &[Node],
        now: Duration,
        lines: Vec<Line>,
        judge: &mut dyn FnMut(&Look<'_>),
    ) -> Result<(), String> {
        let watched = |node: &Node| node.server().filter(|server| self.is_watched(server));
        let servers: Vec<_> = nodes.iter().map(watched).collect();
        let first_port = self.first_port;
        let seen: Vec<Option<Member>> =
            servers.iter().zip(nodes).map(|(s, n)| Member::of(s.as_deref()?, n, first_port)).collect();
        let before = std::mem::replace(&mut self.members, seen);
        let (mut gone, mut new) = (Vec::new(), vec![0; nodes.len()]);
        for (i, (server, member)) in servers.iter().zip(&self.members).enumerate() {
            let (Some(server), Some(member)) = (server, member) else { continue };
            if member.copying {
                self.logs[i] = Log::default();
                continue;
            }
            let refreshed = self.logs[i].refresh(server, member, &mut self.story);
            let (lost, why, n) = refreshed.map_err(|e| format!("log of member {i}: {e}"))?;
            new[i] = n;
            if !lost.is_empty() {
                gone.push((i, why, lost));
            }
        }
        let newly_committed = self.note_committed()?;
        let lines: Vec<(usize, Line)> = lines
            .into_iter()
            .filter_map(|l| Some((nodes.iter().position(|n| n.machine() == l.machine)?, l)))
            .collect();
        judge(&Look {
            now,
            members: &self.members,
            before: &before,
            logs: &self.logs,
            gone: &gone,
            new: &new,
            committed: &self.committed,
            newly_committed: &newly_committed,
            lines: &lines,
        });
        Ok(())
    }

    /// Follows the newest commit point that anybody knows.
    fn note_committed(&mut self) -> Result<Vec<Entry>, String> {
        let point = self.members.iter().flatten().map(|m| m.committed).max().unwrap_or(OpTime::NULL);
        let known = self.committed.newest();
        if point.is_null() || point == known {
            return Ok(Vec::new());
        }
        if point.ts <= known.ts {
            return match self.committed.chain.get(&point.ts) {
                Some(p) if p.entry.at == point => Ok(Vec::new()),
                _ => Err(format!("the commit point {point} names no committed entry (newest {known})")),
            };
        }
        // The log of a member that was copied may begin behind what is known: another one tells more.
        let holders = || self.logs.iter().filter(|l| l.holds(point));
        let holder = holders().find(|l| l.holds(known)).or_else(|| holders().next());
        // Whoever held it has just died: later.
        let Some(holder) = holder else { return Ok(Vec::new()) };
        let first = holder.entries.first().map_or(OpTime::NULL, |e| e.at);
        if !known.is_null() && !holder.holds(known) {
            if first.ts <= known.ts {
                return Err(format!(
                    "{point} is committed by a log without {known}, which was committed before"
                ));
            }
            self.committed.unseen.push((known.ts, first.ts));
        }
        let new = holder.between(known.ts, point.ts).to_vec();
        let in_term = point.t;
        self.committed.chain.extend(new.iter().map(|e| (e.at.ts, Promise { entry: *e, in_term })));
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_dies_in_the_middle_of_a_rollback_has_rolled_back() {
        use MemberState::{Rollback, Secondary};
        assert_eq!(loss(Some((2, 2)), true, (3, 2), Secondary), Loss::CrashInRollback);
        assert_eq!(loss(Some((2, 2)), false, (3, 2), Secondary), Loss::Crash);
        assert_eq!(loss(Some((2, 1)), false, (3, 2), Secondary), Loss::Rollback);
        assert_eq!(loss(Some((2, 1)), false, (2, 1), Rollback), Loss::Rollback);
        assert_eq!(loss(Some((2, 1)), false, (2, 1), Secondary), Loss::Unexplained);
        assert_eq!(loss(None, false, (1, 1), Secondary), Loss::Unexplained);
    }

    #[test]
    fn a_rollback_of_a_member_that_is_taken_out_goes_on() {
        use MemberState::{Removed, Rollback, Secondary};
        assert!(goes_on_rolling_back(Loss::Unexplained, Rollback));
        // Its mark was seen, and the state never.
        assert!(goes_on_rolling_back(Loss::Rollback, Removed));
        assert!(
            !goes_on_rolling_back(Loss::Unexplained, Removed)
                && !goes_on_rolling_back(Loss::Rollback, Secondary)
        );
    }
}
