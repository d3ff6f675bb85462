//! What every rule can do.

use crate::set::look::Look;

/// What was found wrong.
pub(in crate::set) type Problems = Vec<String>;

pub(in crate::set) trait Invariant {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems);
    /// Another machine stands in the place of this member: what was kept of it says nothing any more.
    fn forget(&mut self, _who: usize) {}
}
