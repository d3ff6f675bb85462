//! Dotted paths, compared.

/// Whether two dotted paths have the same first name.
pub(super) fn same_root(a: &str, b: &str) -> bool {
    a.split('.').next() == b.split('.').next()
}
