//! As long as a process lives its commit point and its stable timestamp never move back (INV-9, INV-16), unless it gives its
//! data up.

use super::{Invariant, Problems};
use crate::set::look::Look;

pub(super) struct Rule;

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (who, now, before) in look.running() {
            let Some(before) = before.filter(|b| b.boots == now.boots) else { continue };
            if now.committed < before.committed {
                problems.push(format!(
                    "member {who}: commit point from {} to {}",
                    before.committed, now.committed
                ));
            }
            // A member that copies the set's data again has given up what it was stable at.
            if now.stable < before.stable && !now.copying {
                problems.push(format!("member {who}: stable from {} to {}", before.stable, now.stable));
            }
        }
    }
}
