//! Log lines that tell what happened between two looks.

pub(super) const ELECTED: i32 = 21450;
pub(super) const VOTED: i32 = 5_972_100;
pub(super) const ROLLED_BACK: i32 = 21612;
pub(super) const COPIED: i32 = 21163;
pub(super) const CANNOT_TELL: i32 = 9_100_026;
pub(super) const COPIES_AGAIN: i32 = 9_100_027;

/// All of them.
pub(super) const WATCHED: [i32; 6] = [ELECTED, VOTED, ROLLED_BACK, COPIED, CANNOT_TELL, COPIES_AGAIN];

/// A number in the attributes of a log line.
pub(super) fn number(attr: &str, name: &str) -> Option<i64> {
    let rest = attr.split_once(&format!("\"{name}\":"))?.1;
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '-')).unwrap_or(rest.len());
    rest[..end].parse().ok()
}
