//! What an index scan visits in one field.

use super::interval::IntervalList;
use crate::source::FieldKind;

/// One field of an index scan.
#[derive(Clone, Debug)]
pub struct BoundField {
    pub name: String,
    pub kind: FieldKind,
    pub intervals: IntervalList,
    /// Multikey bits, see [`crate::source::Multikey::paths`].
    pub multikey: u64,
}
