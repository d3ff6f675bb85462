//! Base64 and dates.

use pando_base::calendar::{self, MS_PER_DAY, civil_of_ms, date_of, days_of};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Standard base64 with padding.
pub fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            let sextet = (word >> (18 - 6 * i) & 63) as usize;
            out.push(if i <= chunk.len() { char::from(ALPHABET[sextet]) } else { '=' });
        }
    }
    out
}

/// Reads standard base64; padding may be missing. `None` for anything else.
pub fn unbase64(text: &str) -> Option<Vec<u8>> {
    let body = text.trim_end_matches('=').as_bytes();
    if text.len() - body.len() > 2 || body.len() % 4 == 1 {
        return None;
    }
    let mut out = Vec::with_capacity(body.len() * 3 / 4);
    for chunk in body.chunks(4) {
        let mut word = 0u32;
        for b in chunk {
            let sextet = match b {
                b'A'..=b'Z' => b - b'A',
                b'a'..=b'z' => b - b'a' + 26,
                b'0'..=b'9' => b - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            word = word << 6 | u32::from(sextet);
        }
        word <<= 6 * (4 - chunk.len());
        out.extend_from_slice(&word.to_be_bytes()[1..chunk.len()]);
    }
    Some(out)
}

/// `YYYY-MM-DDTHH:MM:SS[.mmm]Z` for milliseconds since the Unix epoch, in the proleptic Gregorian calendar;
/// `None` outside the years 0 to 9999.
pub fn date_text(ms: i64) -> Option<String> {
    (0..=9999).contains(&civil_of_ms(ms).year).then(|| {
        let text = calendar::iso(ms);
        text.strip_suffix(".000").map(str::to_owned).unwrap_or(text) + "Z"
    })
}

/// Reads `YYYY-MM-DDTHH:MM:SS[.fff](Z|±hh[:]mm)`.
pub(super) fn parse_date(text: &str) -> Option<i64> {
    let b = text.as_bytes();
    let digits = |at: usize, len: usize| -> Option<i64> {
        let part = b.get(at..at + len)?;
        part.iter().all(u8::is_ascii_digit).then(|| part.iter().fold(0, |n, c| n * 10 + i64::from(c - b'0')))
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if marks.iter().any(|(at, c)| b.get(*at) != Some(c)) {
        return None;
    }
    let (y, m, d) = (digits(0, 4)?, digits(5, 2)?, digits(8, 2)?);
    let (hour, minute, second) = (digits(11, 2)?, digits(14, 2)?, digits(17, 2)?);
    if !(1..=12).contains(&m) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let day = days_of(y, m, d);
    if date_of(day) != (y, m as u8, d as u8) {
        return None;
    }
    let mut at = 19;
    let mut millis = 0;
    if b.get(at) == Some(&b'.') {
        let len = b[at + 1..].iter().take_while(|c| c.is_ascii_digit()).count();
        millis = match len {
            0 => return None,
            1 => digits(at + 1, 1)? * 100,
            2 => digits(at + 1, 2)? * 10,
            _ => digits(at + 1, 3)?,
        };
        at += 1 + len;
    }
    let offset = match b.get(at..)? {
        b"Z" => 0,
        [sign @ (b'+' | b'-'), rest @ ..] => {
            let colon = usize::from(rest.get(2) == Some(&b':'));
            if rest.len() != 4 + colon {
                return None;
            }
            let minutes = digits(at + 1, 2)? * 60 + digits(at + 3 + colon, 2)?;
            if *sign == b'-' { -minutes } else { minutes }
        }
        _ => return None,
    };
    let seconds = hour * 3600 + (minute - offset) * 60 + second;
    Some(day * MS_PER_DAY + seconds * 1000 + millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_round_trips_and_refuses_rubbish() {
        for (bytes, text) in
            [(&b""[..], ""), (b"f", "Zg=="), (b"fo", "Zm8="), (b"foo", "Zm9v"), (b"\xff\xff", "//8=")]
        {
            assert_eq!(base64(bytes), text);
            assert_eq!(unbase64(text).as_deref(), Some(bytes));
            assert_eq!(unbase64(text.trim_end_matches('=')).as_deref(), Some(bytes));
        }
        for bad in ["Z", "Zg===", "Z g=", "Zg-_", "é"] {
            assert_eq!(unbase64(bad), None, "{bad}");
        }
    }

    #[test]
    fn dates_round_trip_over_all_printable_years() {
        let mut ms = -62_167_219_200_000i64; // 0000-01-01
        while ms < 253_402_300_800_000 {
            let text = date_text(ms).unwrap();
            assert_eq!(parse_date(&text), Some(ms), "{text}");
            ms += 86_400_000 * 37 + 12_345_678;
        }
        assert_eq!(date_text(253_402_300_800_000), None);
        assert_eq!(date_text(1_356_351_330_501).unwrap(), "2012-12-24T12:15:30.501Z");
        assert_eq!(parse_date("2012-12-24T13:15:30.501+01:00"), Some(1_356_351_330_501));
        assert_eq!(parse_date("2012-12-24T07:15:30.501-0500"), Some(1_356_351_330_501));
        for bad in ["2011-02-29T00:00:00Z", "2012-13-01T00:00:00Z", "2012-12-24", "2012-12-24T12:15:30", "x"]
        {
            assert_eq!(parse_date(bad), None, "{bad}");
        }
    }
}
