//! Code points of strings that may be no UTF-8, as MongoDB counts them: a code point's first byte says how long it is.

use pando_base::{Error, HashSet, Result};

pub(super) fn is_continuation(b: u8) -> bool {
    b & 0xC0 == 0x80
}

/// Bytes of the code point that begins with `b`, which is no continuation: as many as it has leading ones.
fn len_by_first(b: u8) -> usize {
    (b.leading_ones() as usize).max(1)
}

/// Where each code point begins, and the end.
pub(super) fn offsets(s: &[u8]) -> Result<Vec<usize>> {
    let (mut at, mut out) = (0, Vec::with_capacity(s.len() + 1));
    while let Some(b) = s.get(at) {
        if is_continuation(*b) {
            return Err(Error::location(40095, "$indexOfCP found bad UTF-8 in the input"));
        }
        out.push(at);
        at += len_by_first(*b);
    }
    out.push(s.len());
    Ok(out)
}

/// `len` code points from the one at `start`.
pub(super) fn part(s: &[u8], start: usize, len: usize) -> Result<&[u8]> {
    let invalid = |code| Error::location(code, "$substrCP: invalid UTF-8 string");
    let from = walk(s, 0, start, || invalid(34456))?;
    if from > s.len() {
        return Err(invalid(34457));
    }
    let to = walk(s, from, len, || invalid(34458))?;
    s.get(from..to).ok_or_else(|| invalid(34459))
}

/// Where the code point stands that is `points` behind the one at `at`; more than the length when one is cut short.
fn walk(s: &[u8], mut at: usize, points: usize, bad: impl Fn() -> Error) -> Result<usize> {
    for _ in 0..points {
        let Some(b) = s.get(at) else { break };
        if is_continuation(*b) {
            return Err(bad());
        }
        at += len_by_first(*b);
    }
    Ok(at)
}

/// The code points of `chars`, which the operator `name` takes away.
pub(super) fn set<'s>(name: &str, chars: &'s [u8]) -> Result<HashSet<&'s [u8]>> {
    let refused = |code, why: &str| {
        let text = format!("Failed to parse \"chars\" argument to {name}: Detected invalid UTF-8. {why}");
        Error::location(code, text)
    };
    let (mut rest, mut out) = (chars, HashSet::default());
    while let Some(first) = rest.first() {
        let len = match first {
            0x80..=0xBF => {
                let why = "Got continuation byte when expecting the start of a new code point.";
                return Err(refused(50698, why));
            }
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            _ => 1,
        };
        let Some((point, after)) = rest.split_at_checked(len) else {
            return Err(refused(50697, "Missing expected continuation byte at end of string."));
        };
        out.insert(point);
        rest = after;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T: std::fmt::Debug>(r: Result<T>) -> i32 {
        r.unwrap_err().code.0
    }

    #[test]
    fn code_points_are_as_long_as_their_first_byte_says() {
        assert_eq!(offsets("aé😀b".as_bytes()).unwrap(), [0, 1, 3, 7, 8]);
        assert_eq!(offsets(b"\xFFaaaaaaab").unwrap(), [0, 8, 9]);
        assert_eq!(code(offsets(b"a\x80b")), 40095);
        assert_eq!(part("aé😀b".as_bytes(), 1, 2).unwrap(), "é😀".as_bytes());
        assert_eq!(part(b"ab\xFF", 0, 1).unwrap(), b"a");
        assert_eq!(part(b"ab\x80", 0, 2).unwrap(), b"ab");
        assert_eq!(part(b"ab", 5, 2).unwrap(), b"");
        let codes = [(&b"\x80ab"[..], 1, 1), (b"\xFF", 1, 1), (b"ab\x80", 0, 3), (b"ab\xFF", 0, 3)];
        assert_eq!(codes.map(|(s, start, len)| code(part(s, start, len))), [34456, 34457, 34458, 34459]);
        assert_eq!(set("$trim", b"a\xFF\xC3\xA9").unwrap().len(), 3);
        assert_eq!(code(set("$trim", b"\x80")), 50698);
        assert_eq!(code(set("$trim", b"a\xC3")), 50697);
    }
}
