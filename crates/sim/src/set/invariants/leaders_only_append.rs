//! A leader takes nothing out of its log, and nobody loses entries but by a crash or a rollback (INV-6).

use super::{Invariant, Problems};
use crate::set::look::{Look, Loss, Member};

pub(super) struct Rule;

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (who, why, lost) in look.gone {
            let led = |m: &Option<Member>| m.as_ref().filter(|m| m.leader).map(|m| m.term);
            // In another term it may have stood down, rolled back and won again between two looks.
            let always = led(&look.members[*who]).is_some_and(|term| led(&look.before[*who]) == Some(term));
            if *why == Loss::Unexplained || (*why == Loss::Rollback && always) {
                let newest = lost.first().map(|e| e.at);
                problems.push(format!("{} entries up to {newest:?} are gone from member {who}", lost.len()));
            }
        }
    }
}
