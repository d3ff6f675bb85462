//! Counting in units of time: adding, difference (boundaries crossed), truncation to bins.
//!
//! Hours and less are lengths of time; days and more follow the calendar of the zone.

use super::zone::Zone;
use pando_base::calendar::{
    Civil, MS_PER_DAY, MS_PER_HOUR, MS_PER_MINUTE, MS_PER_SECOND, days_in_month, days_of, ms_of_civil,
};
use pando_base::{Error, ErrorCode, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

impl Unit {
    pub fn parse(name: &str) -> Option<Unit> {
        Some(match name {
            "millisecond" => Unit::Millisecond,
            "second" => Unit::Second,
            "minute" => Unit::Minute,
            "hour" => Unit::Hour,
            "day" => Unit::Day,
            "week" => Unit::Week,
            "month" => Unit::Month,
            "quarter" => Unit::Quarter,
            "year" => Unit::Year,
            _ => return None,
        })
    }
    /// Milliseconds of units up to an hour.
    fn ms(self) -> Option<i64> {
        Some(match self {
            Unit::Millisecond => 1,
            Unit::Second => MS_PER_SECOND,
            Unit::Minute => MS_PER_MINUTE,
            Unit::Hour => MS_PER_HOUR,
            _ => return None,
        })
    }
    /// So many units, and more, are farther apart than two instants can be.
    fn most(self) -> u64 {
        const YEARS: u64 = 584_942_418;
        const DAYS: u64 = 213_503_982_335;
        match self {
            Unit::Millisecond => u64::MAX,
            Unit::Second => DAYS * 86_400,
            Unit::Minute => DAYS * 1440,
            Unit::Hour => DAYS * 24,
            Unit::Day => DAYS,
            Unit::Week => DAYS / 7,
            Unit::Month => YEARS * 12,
            Unit::Quarter => YEARS * 4,
            Unit::Year => YEARS,
        }
    }
    fn name(self) -> &'static str {
        match self {
            Unit::Millisecond => "millisecond",
            Unit::Second => "second",
            Unit::Minute => "minute",
            Unit::Hour => "hour",
            Unit::Day => "day",
            Unit::Week => "week",
            Unit::Month => "month",
            Unit::Quarter => "quarter",
            Unit::Year => "year",
        }
    }
    /// Days of days and weeks, months of the longer ones.
    fn length(self) -> (i64, i64) {
        match self {
            Unit::Week => (7, 0),
            Unit::Month => (0, 1),
            Unit::Quarter => (0, 3),
            Unit::Year => (0, 12),
            _ => (1, 0),
        }
    }
}

/// Monday 0 to Sunday 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weekday(u8);

impl Weekday {
    pub const SUNDAY: Weekday = Weekday(6);

    /// Full or three-letter names, in any case.
    pub fn parse(name: &str) -> Option<Weekday> {
        const NAMES: [&str; 7] =
            ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
        let name = name.to_ascii_lowercase();
        let at = NAMES.iter().position(|n| *n == name || n[..3] == name)?;
        Some(Weekday(at as u8))
    }
    /// Days since the last such day, for a day number.
    fn days_since(self, day: i64) -> i64 {
        // Day 0 was a Thursday.
        (day + 3 - i64::from(self.0)).rem_euclid(7)
    }
}

/// The instant `amount` units later; `None` when it does not fit.
pub fn add(ms: i64, unit: Unit, amount: i64, zone: &Zone) -> Option<i64> {
    if let Some(length) = unit.ms() {
        let sum = ms.checked_add(amount.checked_mul(length)?)?;
        // Where the first of them has none, the sum is looked at a second before.
        let before = if with_second(ms).is_some() { 0 } else { 1000 };
        return match unit {
            Unit::Millisecond => Some(sum),
            _ => with_second(sum.checked_sub(before)?).map(|_| sum),
        };
    }
    add_days_or_months(ms, unit, amount, zone).and_then(with_second)
}

/// [`add`] with MongoDB's errors.
pub fn add_exactly(ms: i64, unit: Unit, amount: i64, zone: &Zone) -> Result<i64> {
    if unit == Unit::Millisecond {
        let wrapped = ms.wrapping_add(amount);
        let text = || format!("Overflow while adding {amount}ms to {wrapped}ms");
        return ms.checked_add(amount).ok_or_else(|| Error::new(ErrorCode::DurationOverflow, text()));
    }
    if amount.unsigned_abs() >= unit.most() {
        let text = format!("invalid dateAdd 'amount' parameter value: {amount} {}", unit.name());
        return Err(Error::location(5_976_500, text));
    }
    add(ms, unit, amount, zone).ok_or_else(|| Error::location(5_166_406, "dateAdd overflowed"))
}

/// Instants before the first whole second that there is are none that seconds and longer units could lead to.
fn with_second(ms: i64) -> Option<i64> {
    (ms >= i64::MIN / 1000 * 1000).then_some(ms)
}

fn add_days_or_months(ms: i64, unit: Unit, amount: i64, zone: &Zone) -> Option<i64> {
    let local: Civil = zone.civil(ms);
    let (days, months) = unit.length();
    if days > 0 {
        let shifted = ms_of_civil(&local)?.checked_add(amount.checked_mul(days)?.checked_mul(MS_PER_DAY)?)?;
        return Some(zone.utc_of_local(shifted));
    }
    let total = local.year.checked_mul(12)?.checked_add(i64::from(local.month) - 1)?;
    let total = total.checked_add(amount.checked_mul(months)?)?;
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) as u8 + 1);
    // The 31st of a shorter month is its last day. Years far beyond the range end here.
    if !(-300_000_000..300_000_000).contains(&year) {
        return None;
    }
    let day = local.day.min(days_in_month(year, month));
    zone.utc_of_civil(&Civil { year, month, day, ..local })
}

/// How many boundaries of the unit lie between two instants.
pub fn difference(start: i64, end: i64, unit: Unit, zone: &Zone, week_start: Weekday) -> Option<i64> {
    if let Some(length) = unit.ms() {
        if unit == Unit::Millisecond {
            return end.checked_sub(start);
        }
        // Hours of zones that are off by minutes begin where the clock says.
        let bin = |ms: i64| ms.saturating_add(zone.offset_ms(ms)).div_euclid(length);
        let shifts = (zone.offset_ms(end) - zone.offset_ms(start)).div_euclid(length);
        return Some(bin(end) - bin(start) - shifts);
    }
    let (a, b) = (zone.civil(start), zone.civil(end));
    Some(match unit {
        Unit::Day => b.days() - a.days(),
        Unit::Week => {
            let week = |day: i64| (day - week_start.days_since(day)).div_euclid(7);
            week(b.days()) - week(a.days())
        }
        Unit::Year => b.year - a.year,
        _ => {
            let (_, months) = unit.length();
            let bin = |c: &Civil| (c.year * 12 + i64::from(c.month) - 1).div_euclid(months);
            bin(&b) - bin(&a)
        }
    })
}

/// The most days, weeks, months … that MongoDB puts into one bin.
const LARGEST_BIN: i64 = 100_000_000_000;

/// The start of the bin of `size` units that an instant lies in; bins are counted from the year 2000.
pub fn truncate(ms: i64, unit: Unit, size: i64, zone: &Zone, week_start: Weekday) -> Result<i64> {
    match unit.ms() {
        Some(length) => {
            let bin = length.checked_mul(size).ok_or_else(|| overflowed(5_439_002))?;
            truncate_time(ms, bin, zone).ok_or_else(|| overflowed(5_439_000))
        }
        None if size > LARGEST_BIN => Err(Error::location(5_439_006, "dateTrunc unsupported binSize value")),
        None => truncate_days(ms, unit, size, zone, week_start)
            .ok_or_else(|| Error::location(5_166_406, "dateAdd overflowed")),
    }
}

fn overflowed(code: i32) -> Error {
    Error::location(code, "dateTrunc overflowed")
}

fn truncate_time(ms: i64, bin: i64, zone: &Zone) -> Option<i64> {
    let reference = days_of(2000, 1, 1) * MS_PER_DAY;
    let offset = zone.offset_ms(ms);
    let local = ms.checked_add(offset)?.checked_sub(reference)?;
    local.div_euclid(bin).checked_mul(bin)?.checked_add(reference)?.checked_sub(offset)
}

fn truncate_days(ms: i64, unit: Unit, size: i64, zone: &Zone, week_start: Weekday) -> Option<i64> {
    let reference_days = days_of(2000, 1, 1);
    let c = zone.civil(ms);
    let days = match unit {
        Unit::Day | Unit::Week => {
            let (length, _) = unit.length();
            let bin = length.checked_mul(size)?;
            // Weeks count from the first week start of 2000.
            let reference = match unit {
                Unit::Week => reference_days + (7 - week_start.days_since(reference_days)) % 7,
                _ => reference_days,
            };
            reference + (c.days() - reference).div_euclid(bin).checked_mul(bin)?
        }
        _ => {
            let (_, length) = unit.length();
            let bin = length.checked_mul(size)?;
            let months = (c.year - 2000) * 12 + i64::from(c.month) - 1;
            days_of(2000, 1 + months.div_euclid(bin).checked_mul(bin)?, 1)
        }
    };
    Some(zone.utc_of_local(days.checked_mul(MS_PER_DAY)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: i64 = 1_600_000_000_123; // 2020-09-13T12:26:40.123Z, a Sunday

    #[test]
    fn adding_months_keeps_to_the_month() {
        let jan_31 = days_of(2020, 1, 31) * MS_PER_DAY;
        assert_eq!(add(jan_31, Unit::Month, 1, &Zone::Utc), Some(days_of(2020, 2, 29) * MS_PER_DAY));
        assert_eq!(add(jan_31, Unit::Year, 1, &Zone::Utc), Some(days_of(2021, 1, 31) * MS_PER_DAY));
        assert_eq!(add(T, Unit::Year, i64::MAX, &Zone::Utc), None);
        assert_eq!(add(T, Unit::Hour, i64::MAX, &Zone::Utc), None);
    }

    #[test]
    fn days_follow_the_clock_of_the_zone_across_a_change() {
        let ny = Zone::parse("America/New_York").expect("known");
        let before = ny.utc_of_local(days_of(2021, 3, 13) * MS_PER_DAY + 12 * MS_PER_HOUR);
        assert_eq!(add(before, Unit::Day, 1, &ny).map(|t| t - before), Some(23 * MS_PER_HOUR));
        assert_eq!(add(before, Unit::Hour, 24, &ny).map(|t| t - before), Some(24 * MS_PER_HOUR));
    }

    #[test]
    fn differences_count_boundaries() {
        let cases = [
            (Unit::Year, 50),
            (Unit::Quarter, 202),
            (Unit::Month, 608),
            (Unit::Week, 2646),
            (Unit::Day, 18518),
            (Unit::Hour, 444_444),
            (Unit::Minute, 26_666_666),
            (Unit::Second, 1_600_000_000),
            (Unit::Millisecond, T),
        ];
        for (unit, n) in cases {
            assert_eq!(difference(0, T, unit, &Zone::Utc, Weekday::SUNDAY), Some(n), "{unit:?}");
        }
    }

    #[test]
    fn truncation_gives_the_start_of_the_bin() {
        let cases = [
            (Unit::Year, 1, 1_577_836_800_000),
            (Unit::Quarter, 3, 1_585_699_200_000),
            (Unit::Week, 3, 1_599_955_200_000),
            (Unit::Hour, 3, 1_599_998_400_000),
            (Unit::Second, 3, 1_599_999_999_000),
        ];
        for (unit, size, start) in cases {
            let got = truncate(T, unit, size, &Zone::Utc, Weekday::SUNDAY).expect("a date");
            assert_eq!(got, start, "{unit:?}");
        }
        for unit in [Unit::Year, Unit::Day, Unit::Hour, Unit::Millisecond] {
            for ms in [i64::MIN, i64::MAX, 0] {
                let _ = truncate(ms, unit, i64::MAX, &Zone::Utc, Weekday::SUNDAY);
                let _ = difference(ms, T, unit, &Zone::Utc, Weekday::SUNDAY);
            }
        }
    }

    /// What a real server answers at the ends.
    #[test]
    fn truncation_at_the_ends_of_dates_and_bins() {
        let east = Zone::parse("+01:00").expect("an offset");
        let ask = |ms, unit, size| match truncate(ms, unit, size, &east, Weekday::SUNDAY) {
            Ok(start) => start,
            Err(e) => i64::from(e.code.0),
        };
        assert_eq!(ask(i64::MAX, Unit::Day, 1), 9_223_372_036_825_200_000);
        assert_eq!(ask(i64::MAX, Unit::Year, 1), 9_223_372_017_126_000_000);
        assert_eq!(ask(i64::MIN, Unit::Day, 1), 5_166_406);
        assert_eq!(ask(i64::MIN, Unit::Hour, 5), 5_439_000);
        assert_eq!(ask(0, Unit::Hour, 1 << 62), 5_439_002);
        assert_eq!(ask(0, Unit::Month, LARGEST_BIN + 1), 5_439_006);
        assert!(ask(1_000_000_000_000, Unit::Week, LARGEST_BIN) > 0);
        // Clocks of zones with names change; there is no panic at the ends either.
        let berlin = Zone::parse("Europe/Berlin").expect("known");
        assert!(truncate(i64::MAX, Unit::Day, 1, &berlin, Weekday::SUNDAY).is_ok());
        assert!(truncate(i64::MIN, Unit::Day, 1, &berlin, Weekday::SUNDAY).is_err());
    }
}
