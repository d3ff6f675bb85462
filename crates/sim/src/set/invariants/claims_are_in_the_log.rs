//! What a follower says it has written, applied and synced is in its log (INV-15): others count copies and grant votes by that.

use super::{Invariant, Problems};
use crate::set::look::Look;
use pando_repl::MemberState;

pub(super) struct Rule;

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (who, now, _) in look.running().filter(|(_, m, _)| m.state == MemberState::Secondary) {
            let log = &look.logs[who];
            let Some(first) = log.entries.first() else { continue };
            for (what, at) in [("written", now.written), ("applied", now.applied), ("synced", now.durable)] {
                // A copy of the set's data ends where the log may begin later.
                if at.ts >= first.at.ts && !log.holds(at) {
                    problems
                        .push(format!("member {who} says {at} is {what}, and its log ends at {}", log.top()));
                }
            }
        }
    }
}
