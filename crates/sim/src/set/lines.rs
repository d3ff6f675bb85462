//! Log lines that tell what happened between two looks.

pub(crate) const ELECTED: i32 = 21450;
pub(crate) const VOTED: i32 = 5_972_100;
pub(crate) const ROLLED_BACK: i32 = 21612;
pub(crate) const COPIED: i32 = 21163;
pub(crate) const CANNOT_TELL: i32 = 9_100_026;
pub(crate) const COPIES_AGAIN: i32 = 9_100_027;
/// A member has not what its set has taken in: found at a start, and while it follows.
pub(crate) const LACKS_AT_START: i32 = 9_100_188;
pub(crate) const LACKS: i32 = 9_100_189;

/// All of them.
pub(crate) const WATCHED: [i32; 8] =
    [ELECTED, VOTED, ROLLED_BACK, COPIED, CANNOT_TELL, COPIES_AGAIN, LACKS_AT_START, LACKS];

/// A number in the attributes of a log line.
pub(crate) fn number(attr: &str, name: &str) -> Option<i64> {
    let rest = attr.split_once(&format!("\"{name}\":"))?.1;
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '-')).unwrap_or(rest.len());
    rest[..end].parse().ok()
}
