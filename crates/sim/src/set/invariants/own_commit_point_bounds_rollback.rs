//! Nobody rolls back past what it took for committed or stable itself (INV-3).

use super::{Invariant, Problems};
use crate::set::look::{Look, Loss};

pub(super) struct Rule;

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (who, why, lost) in look.gone.iter().filter(|(_, why, _)| *why == Loss::Rollback) {
            let (Some(before), Some(oldest_lost)) = (&look.before[*who], lost.last()) else { continue };
            let kept = before.stable.max(before.committed.ts.min(before.applied.ts));
            if oldest_lost.at.ts <= before.stable
                || (before.committed.t == before.applied.t && oldest_lost.at.ts <= kept)
            {
                problems.push(format!(
                    "member {who} lost {} by {why:?}; it knew {} as committed, {} as stable",
                    oldest_lost.at, before.committed, before.stable
                ));
            }
        }
    }
}
