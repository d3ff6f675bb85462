//! A moment on the command line: `SECONDS`, `SECONDS:INCREMENT`, or a date as `2026-11-22T02:03:04Z`.

use pando_base::Timestamp;
use pando_base::calendar::{self, MS_PER_SECOND, days_of};

/// The last timestamp that belongs to it.
pub(crate) fn parse(text: &str) -> Result<Timestamp, String> {
    let bad = || format!("'{text}' is not a moment: say seconds, seconds:increment, or 2026-11-22T02:03:04Z");
    let whole = |secs: u32| Timestamp::new(secs, u32::MAX);
    if let Some((secs, increment)) =
        text.split_once(':').filter(|(s, _)| s.bytes().all(|b| b.is_ascii_digit()))
    {
        let (secs, increment) = (secs.parse().map_err(|_| bad())?, increment.parse().map_err(|_| bad())?);
        return Ok(Timestamp::new(secs, increment));
    }
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().map(whole).map_err(|_| bad());
    }
    date(text).map(whole).ok_or_else(bad)
}

fn date(text: &str) -> Option<u32> {
    let (day, time) = text.strip_suffix('Z')?.split_once('T')?;
    let numbers = |s: &str, by: char| -> Option<[i64; 3]> {
        let parts: Vec<i64> = s.split(by).map(|p| p.parse().ok()).collect::<Option<_>>()?;
        parts.try_into().ok()
    };
    let ([year, month, day], [h, m, s]) = (numbers(day, '-')?, numbers(time, ':')?);
    let fits = (1..=12).contains(&month) && (1..=31).contains(&day) && h < 24 && m < 60 && s < 60;
    let secs = days_of(year, month, day) * 86_400 + h * 3600 + m * 60 + s;
    fits.then(|| u32::try_from(secs).ok()).flatten()
}

/// For people: as a date and as `--until` takes it.
pub(crate) fn shown(ts: Timestamp) -> String {
    let at = calendar::iso(i64::from(ts.secs()) * MS_PER_SECOND);
    let date = at.strip_suffix(".000").unwrap_or(&at);
    format!("{date}Z ({}:{})", ts.secs(), ts.inc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates_seconds_and_places_in_the_oplog() {
        assert_eq!(parse("1795311000:7"), Ok(Timestamp::new(1_795_311_000, 7)));
        assert_eq!(parse("5"), Ok(Timestamp::new(5, u32::MAX)));
        assert_eq!(parse("1970-01-02T00:00:01Z"), Ok(Timestamp::new(86_401, u32::MAX)));
        assert_eq!(parse("2026-11-22T01:30:00Z"), Ok(Timestamp::new(1_795_311_000, u32::MAX)));
        assert_eq!(parse("2024-02-29T00:00:00Z"), Ok(Timestamp::new(1_709_164_800, u32::MAX)));
        for bad in ["", "now", "2026-13-01T00:00:00Z", "1:x", "2026-11-22"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        for secs in [0, 86_399, 951_782_400, 1_709_164_800, 1_795_311_000, 4_000_000_000] {
            let text = shown(Timestamp::new(secs, 3));
            let (date, place) = text.split_once(' ').unwrap();
            assert_eq!(parse(date), Ok(Timestamp::new(secs, u32::MAX)), "{text}");
            assert_eq!(place, format!("({secs}:3)"));
        }
    }
}
