//! What a write concern has promised is so when the reply comes (INV-21): as many members as it says hold the entry, on
//! disk if it says so; and a member that has acknowledged `j: true` still holds the entry after any crash, unless it was
//! rolled back, or copied the set's data anew, in between.

use super::{Invariant, Problems};
use crate::executor::lock;
use crate::set::look::Look;
use crate::set::users::concerns::{Promise, Promises, Where};
use pando_base::OpTime;
use pando_repl::MemberState;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a member has on its disk, as it was promised.
#[derive(Default)]
struct Kept {
    entries: BTreeSet<OpTime>,
    /// Under which start of the process and which rollback that was so.
    boots: u32,
    rbid: i32,
}

pub(super) struct Rule {
    promises: Arc<Mutex<Promises>>,
    kept: BTreeMap<usize, Kept>,
    /// When a member was last seen away, starting, rolling back or copying: it may have lost entries then.
    disturbed: BTreeMap<usize, Duration>,
    /// Under which start and which rollback a member was last seen.
    seen: BTreeMap<usize, (u32, i32)>,
}

impl Rule {
    pub(super) fn new(promises: Arc<Mutex<Promises>>) -> Rule {
        let (kept, disturbed, seen) = Default::default();
        Rule { promises, kept, disturbed, seen }
    }

    fn note_disturbed(&mut self, look: &Look<'_>) {
        for (who, member) in look.members.iter().enumerate() {
            let steady = member.as_ref().is_some_and(|m| {
                let marks = (m.boots, m.rbid);
                self.seen.insert(who, marks) == Some(marks) && is_settled(m.state)
            });
            if !steady {
                self.disturbed.insert(who, look.now);
            }
        }
    }

    /// The entries that a member promised to keep, after a crash.
    fn check_crashes(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (who, now, _) in look.running() {
            let (Some(kept), log) = (self.kept.get_mut(&who), &look.logs[who]) else { continue };
            if kept.rbid != now.rbid || now.copying {
                kept.entries.clear();
                (kept.boots, kept.rbid) = (now.boots, now.rbid);
                continue;
            }
            let Some(first) = log.entries.first().filter(|_| is_settled(now.state)) else { continue };
            if kept.boots == now.boots {
                continue;
            }
            kept.boots = now.boots;
            let lost = kept.entries.iter().find(|at| at.ts >= first.at.ts && !log.holds(**at)).copied();
            if let Some(at) = lost {
                problems.push(format!(
                    "member {who} acknowledged {at} as written to its disk, and lost it by a crash"
                ));
                kept.entries.clear();
            }
        }
    }

    fn check_promise(&mut self, p: &Promise, look: &Look<'_>, problems: &mut Problems) {
        let disturbed = |who: usize| self.disturbed.get(&who).is_some_and(|at| *at >= p.sent);
        let may_hold: Vec<usize> = (0..look.members.len())
            .filter(|who| {
                let log = &look.logs[*who];
                disturbed(*who) || (log.holds(p.at) && (!p.on_disk || log.synced >= p.at.ts))
            })
            .collect();
        let enough = match p.held {
            Where::Members(n) => may_hold.len() >= n && may_hold.contains(&p.asked),
            Where::TwoPlaces => [0, 1].iter().all(|place| may_hold.iter().any(|who| who % 2 == *place)),
        };
        if !enough {
            let text = format!("{p:?} was acknowledged, but only members {may_hold:?} can hold it");
            problems.push(text);
        }
        let Some(m) = look.members[p.asked].as_ref().filter(|_| p.on_disk && !disturbed(p.asked)) else {
            return;
        };
        let kept = self.kept.entry(p.asked).or_default();
        if (kept.boots, kept.rbid) != (m.boots, m.rbid) {
            *kept = Kept { boots: m.boots, rbid: m.rbid, entries: BTreeSet::new() };
        }
        kept.entries.insert(p.at);
    }
}

fn is_settled(state: MemberState) -> bool {
    matches!(
        state,
        MemberState::Primary | MemberState::Secondary | MemberState::Arbiter | MemberState::Removed
    )
}

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        self.check_crashes(look, problems);
        self.note_disturbed(look);
        let new = std::mem::take(&mut *lock(&self.promises));
        for p in &new {
            self.check_promise(p, look, problems);
        }
    }
    fn forget(&mut self, who: usize) {
        self.kept.remove(&who);
    }
}
