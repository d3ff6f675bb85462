//! What every rule can do.

use crate::set::look::Look;

/// What was found wrong.
pub(crate) type Problems = Vec<String>;

pub(crate) trait Invariant {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems);
    /// Another machine stands in the place of this member: what was kept of it says nothing any more.
    fn forget(&mut self, _who: usize) {}
}
