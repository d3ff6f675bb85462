//! Time zones: UTC, fixed offsets (`+02`, `+0230`, `-02:30`) and names of the tz database.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use pando_base::calendar::{Civil, MS_PER_HOUR, MS_PER_MINUTE, MS_PER_SECOND, civil_of_ms, ms_of_civil};

#[derive(Clone, Debug)]
pub enum Zone {
    Utc,
    /// Milliseconds east of Greenwich.
    Fixed(i64),
    Named(TimeZone),
}

impl Zone {
    /// `None` when it is no zone. Names are case-sensitive.
    pub fn parse(id: &str) -> Option<Zone> {
        if matches!(id, "UTC" | "GMT") {
            return Some(Zone::Utc);
        }
        if id.starts_with(['+', '-']) {
            return parse_offset(id).map(Zone::Fixed);
        }
        let tz = TimeZone::get(id).ok()?;
        // The database is searched without regard to case.
        (tz.iana_name() == Some(id)).then_some(Zone::Named(tz))
    }

    /// Milliseconds to add to UTC at this instant.
    pub fn offset_ms(&self, utc_ms: i64) -> i64 {
        match self {
            Zone::Utc => 0,
            Zone::Fixed(ms) => *ms,
            Zone::Named(tz) => i64::from(tz.to_offset(clamped(utc_ms)).seconds()) * MS_PER_SECOND,
        }
    }
    /// The clock on the wall at this instant.
    pub fn civil(&self, utc_ms: i64) -> Civil {
        civil_of_ms(utc_ms.saturating_add(self.offset_ms(utc_ms)))
    }
    /// The instant of a local time, given as milliseconds as if it were UTC. A time that a clock change skips
    /// is as much later; one that comes twice is the first.
    pub fn utc_of_local(&self, local_ms: i64) -> i64 {
        match self {
            Zone::Utc => local_ms,
            Zone::Fixed(offset) => local_ms.saturating_sub(*offset),
            Zone::Named(_) => {
                // The offset changes at most once within a day of the time.
                let before = self.offset_ms(local_ms.saturating_sub(24 * MS_PER_HOUR));
                let after = self.offset_ms(local_ms.saturating_add(24 * MS_PER_HOUR));
                let early = local_ms.saturating_sub(before);
                if self.offset_ms(early) == before {
                    return early;
                }
                let late = local_ms.saturating_sub(after);
                // In a gap neither fits: the old offset carries over.
                if self.offset_ms(late) == after { late } else { early }
            }
        }
    }
    pub fn utc_of_civil(&self, c: &Civil) -> Option<i64> {
        Some(self.utc_of_local(ms_of_civil(c)?))
    }
}

fn clamped(ms: i64) -> Timestamp {
    let end = if ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(ms).unwrap_or(end)
}

/// `±hh`, `±hhmm`, `±hh:mm`.
fn parse_offset(s: &str) -> Option<i64> {
    let negative = s.starts_with('-');
    let digits: Vec<u8> = match &s.as_bytes()[1..] {
        d @ ([_, _] | [_, _, _, _]) => d.to_vec(),
        [a, b, b':', c, d] => vec![*a, *b, *c, *d],
        _ => return None,
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let pair = |at: usize| {
        digits.get(at..at + 2).map_or(0, |p| i64::from(p[0] - b'0') * 10 + i64::from(p[1] - b'0'))
    };
    let ms = pair(0) * MS_PER_HOUR + pair(2) * MS_PER_MINUTE;
    Some(if negative { -ms } else { ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * MS_PER_HOUR;

    #[test]
    fn zones_are_offsets_or_database_names() {
        let t = 1_600_000_000_123;
        for (id, minutes) in
            [("+02", 120), ("+0545", 345), ("-03:30", -210), ("America/New_York", -240), ("UTC", 0)]
        {
            assert_eq!(Zone::parse(id).map(|z| z.offset_ms(t)), Some(minutes * MS_PER_MINUTE), "{id}");
        }
        for id in ["europe/paris", "Z", "+2", "UTC+3", "", "+1x", "Nope/Zone", "+12345"] {
            assert!(Zone::parse(id).is_none(), "{id}");
        }
    }

    #[test]
    fn skipped_times_move_on_and_doubled_ones_are_the_first() {
        let ny = Zone::parse("America/New_York").expect("known");
        let local = |y, mo, d, h, mi| {
            ms_of_civil(&Civil { year: y, month: mo, day: d, hour: h, minute: mi, second: 0, millisecond: 0 })
                .unwrap()
        };
        // 2021-03-14 02:30 does not exist: 03:30 EDT = 07:30 UTC.
        assert_eq!(ny.utc_of_local(local(2021, 3, 14, 2, 30)), local(2021, 3, 14, 7, 30));
        // 2021-11-07 01:30 comes twice: first in EDT.
        assert_eq!(ny.utc_of_local(local(2021, 11, 7, 1, 30)), local(2021, 11, 7, 5, 30));
        for step in 0..800 {
            let utc = 1_600_000_000_000 + step * DAY / 2;
            let there = utc + ny.offset_ms(utc);
            let back = ny.utc_of_local(there);
            assert_eq!(back + ny.offset_ms(back), there);
        }
        // Far outside the database nothing overflows.
        for ms in [i64::MIN, i64::MAX] {
            let _ = ny.civil(ms);
        }
    }
}
