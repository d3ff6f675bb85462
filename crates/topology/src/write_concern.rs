//! When a write may be acknowledged (R-WC-1..9). A question first ([`Core::is_satisfied`]), then who waits for a yes.

use crate::action::{Action, Actions};
use crate::config::{Member, ReplSetConfig};
use crate::core::Core;
use crate::member::{MemberState, Positions};
use crate::mutants::{Mutant, broken};
pub use crate::waiters::{Concern, Waiter, Want};
use pando_base::mutants::{Mutant as Planted, broken as planted};
use pando_base::{Error, ErrorCode, OpTime};
use std::collections::BTreeSet;

impl ReplSetConfig {
    /// The tags a custom mode asks for.
    pub(crate) fn mode_tags(&self, mode: &str) -> Option<Vec<(String, u32)>> {
        let modes = &self.settings.get_last_error_modes;
        let wanted = modes.iter().find(|(name, _)| *name == mode)?.1.as_doc()?;
        Some(wanted.iter().map(|(key, n)| (key.to_owned(), n.as_f64().unwrap_or(0.0) as u32)).collect())
    }

    /// Whether this set could ever meet it: 79 for an unknown mode, 100 for more than there is.
    pub fn check_concern(&self, want: &Want) -> Result<(), Error> {
        let too_many =
            || Err(Error::new(ErrorCode::UnsatisfiableWriteConcern, "Not enough data-bearing nodes"));
        match want {
            Want::Nodes(n) if *n as usize > self.data_bearing() => too_many(),
            Want::Nodes(_) | Want::Majority => Ok(()),
            Want::Mode(name) => match self.mode_tags(name) {
                None => Err(Error::new(
                    ErrorCode::UnknownReplWriteConcern,
                    format!("No write concern mode named '{name}' found in replica set configuration"),
                )),
                Some(tags) => self.check_tags(&tags),
            },
            Want::Tags(tags) => self.check_tags(tags),
        }
    }

    fn check_tags(&self, tags: &[(String, u32)]) -> Result<(), Error> {
        for (key, n) in tags {
            let values: BTreeSet<&str> = self
                .members
                .iter()
                .filter(|m| m.is_data_bearing())
                .flat_map(|m| m.tags.iter().filter(|(k, _)| k == key).map(|(_, v)| v.as_str()))
                .collect();
            if values.is_empty() {
                let text = format!("No replica set tag key {key} in config");
                return Err(Error::new(ErrorCode::NoSuchKey, text));
            }
            if values.len() < *n as usize {
                let text = "Not enough nodes match write concern mode";
                return Err(Error::new(ErrorCode::UnsatisfiableWriteConcern, text));
            }
        }
        Ok(())
    }
}

impl Core {
    /// R-WC-3..6, R-WC-8, for a target of the present term.
    pub fn is_satisfied(&self, target: OpTime, concern: &Concern) -> bool {
        let Some(config) = &self.config else { return false };
        // This node itself comes first.
        if !reaches(&self.me, target, concern.journaled) && !broken(Mutant::WaitSkipsSelf) {
            return false;
        }
        let holders = || {
            let counts = |m: &&Member| !m.newly_added || broken(Mutant::WaitCountsNewMembers);
            config.members.iter().filter(|m| m.is_data_bearing()).filter(counts).filter(|m| {
                m.id == self.self_id()
                    || self.members.get(&m.id).is_some_and(|d| {
                        (d.state != MemberState::Startup2 || broken(Mutant::WaitCountsStartup2))
                            && reaches(&d.best, target, concern.journaled)
                    })
            })
        };
        let tagged = |tags: &[(String, u32)]| {
            tags.iter().all(|(key, n)| {
                let values: BTreeSet<&str> = holders()
                    .flat_map(|m| m.tags.iter().filter(|(k, _)| k == key).map(|(_, v)| v.as_str()))
                    .collect();
                values.len() >= *n as usize
            })
        };
        match &concern.want {
            Want::Nodes(n) => holders().count() >= *n as usize,
            Want::Majority => {
                let committed = self.committed.op.t == target.t && self.committed_applied().ts >= target.ts;
                // Committed is on a majority's disks, unless being written is enough for this set.
                let on_disk = config.write_concern_majority_journal_default || !concern.journaled || {
                    let voters = holders().filter(|m| m.is_voter()).count();
                    voters >= config.write_majority() || broken(Mutant::MajorityForgetsJournal)
                };
                committed && on_disk
            }
            Want::Mode(name) => config.mode_tags(name).is_some_and(|tags| tagged(&tags)),
            Want::Tags(tags) => tagged(tags),
        }
    }

    pub(crate) fn on_await(&mut self, waiter: Waiter, out: &mut Actions) {
        let refused = self.refuse_waiter(&waiter);
        let result = match refused {
            Some(e) => Err(e),
            None if self.is_satisfied(waiter.target, &waiter.concern) => Ok(()),
            None => return self.waiters.add(waiter),
        };
        out.push(Action::WaitDone { id: waiter.id, result });
    }

    fn refuse_waiter(&self, waiter: &Waiter) -> Option<Error> {
        let config = self.config.as_ref()?;
        if self.shut_down {
            return Some(Error::new(ErrorCode::ShutdownInProgress, "Replication is being shut down"));
        }
        if !self.is_leader() {
            let text = "Primary stepped down while waiting for replication";
            return Some(Error::new(ErrorCode::PrimarySteppedDown, text));
        }
        if waiter.target.t != self.term {
            return Some(Error::new(
                ErrorCode::PrimarySteppedDown,
                format!(
                    "Term changed from {} to {} while waiting for replication, indicating that this node must have \
                     stepped down.",
                    waiter.target.t, self.term
                ),
            ));
        }
        config.check_concern(&waiter.concern.want).err()
    }

    /// Ends the waiters that are satisfied now.
    pub(crate) fn wake_waiters(&mut self, out: &mut Actions) {
        for id in self.waiters.satisfied(|target, concern| self.is_satisfied(target, concern)) {
            self.waiters.cancel(id);
            out.push(Action::WaitDone { id, result: Ok(()) });
        }
    }

    /// A step-down, a shutdown (R-WC-7).
    pub(crate) fn fail_all_waiters(&mut self, error: &Error, out: &mut Actions) {
        for id in std::mem::take(&mut self.waiters).into_ids() {
            out.push(Action::WaitDone { id, result: Err(error.clone()) });
        }
    }

    /// A new configuration may know fewer members, or other modes.
    pub(crate) fn recheck_waiters(&mut self, out: &mut Actions) {
        let Some(config) = self.config.clone() else { return };
        let bad: Vec<(Concern, Error)> = self
            .waiters
            .concerns()
            .filter_map(|c| config.check_concern(&c.want).err().map(|e| (c.clone(), e)))
            .collect();
        for (concern, error) in bad {
            for id in self.waiters.drop_concern(&concern) {
                out.push(Action::WaitDone { id, result: Err(error.clone()) });
            }
        }
        self.wake_waiters(out);
    }
}

/// Same term, and far enough.
fn reaches(p: &Positions, target: OpTime, journaled: bool) -> bool {
    let synced = if planted(Planted::JournalBeforeSync) { p.written.op } else { p.durable.op };
    let at = if journaled { synced.min(p.applied.op) } else { p.applied.op };
    (at.t == target.t || broken(Mutant::WaitCountsOtherTerms)) && at.ts >= target.ts
}
