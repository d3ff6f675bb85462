//! The proleptic Gregorian calendar: days and clock fields, for all 64-bit milliseconds since 1970.

/// A point in time taken apart, without a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Astronomical: 0 is 1 BC.
    pub year: i64,
    /// From 1.
    pub month: u8,
    /// From 1.
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub millisecond: u16,
}

pub const MS_PER_SECOND: i64 = 1000;
pub const MS_PER_MINUTE: i64 = 60 * MS_PER_SECOND;
pub const MS_PER_HOUR: i64 = 60 * MS_PER_MINUTE;
pub const MS_PER_DAY: i64 = 24 * MS_PER_HOUR;

/// Days since 1970-01-01 of a date; month and day may lie outside their ranges and carry over.
pub fn days_of(year: i64, month: i64, day: i64) -> i64 {
    // Months carry into years first.
    let months = month - 1;
    let year = year + months.div_euclid(12);
    let month = months.rem_euclid(12) + 1;
    // Years start in March, so the leap day is the last of its year.
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468 + (day - 1)
}

/// Year, month and day of a day number.
pub fn date_of(days: i64) -> (i64, u8, u8) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u8, day as u8)
}

pub fn civil_of_ms(ms: i64) -> Civil {
    let days = ms.div_euclid(MS_PER_DAY);
    let rest = ms.rem_euclid(MS_PER_DAY);
    let (year, month, day) = date_of(days);
    Civil {
        year,
        month,
        day,
        hour: (rest / MS_PER_HOUR) as u8,
        minute: (rest / MS_PER_MINUTE % 60) as u8,
        second: (rest / MS_PER_SECOND % 60) as u8,
        millisecond: (rest % 1000) as u16,
    }
}

/// `2020-09-13T12:26:40.123`, without a zone.
pub fn iso(ms: i64) -> String {
    let c = civil_of_ms(ms);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}",
        c.year, c.month, c.day, c.hour, c.minute, c.second, c.millisecond
    )
}

/// `None` when the result does not fit.
pub fn ms_of_civil(c: &Civil) -> Option<i64> {
    let days = days_of(c.year, c.month.into(), c.day.into());
    let clock = i64::from(c.hour) * MS_PER_HOUR
        + i64::from(c.minute) * MS_PER_MINUTE
        + i64::from(c.second) * MS_PER_SECOND
        + i64::from(c.millisecond);
    i64::try_from(i128::from(days) * i128::from(MS_PER_DAY) + i128::from(clock)).ok()
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub fn days_in_month(year: i64, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

impl Civil {
    pub fn days(&self) -> i64 {
        days_of(self.year, self.month.into(), self.day.into())
    }
    /// From 1.
    pub fn day_of_year(&self) -> i64 {
        self.days() - days_of(self.year, 1, 1) + 1
    }
    /// Sunday 1 to Saturday 7.
    pub fn day_of_week(&self) -> i64 {
        (self.days() + 4).rem_euclid(7) + 1
    }
    /// Monday 1 to Sunday 7.
    pub fn iso_day_of_week(&self) -> i64 {
        (self.days() + 3).rem_euclid(7) + 1
    }
    /// Weeks start on Sundays; days before the first Sunday are in week 0.
    pub fn week(&self) -> i64 {
        (self.day_of_year() + 7 - self.day_of_week()) / 7
    }
    /// ISO 8601 year and week.
    pub fn iso_week(&self) -> (i64, i64) {
        // The week belongs to the year of its Thursday.
        let thursday = self.days() + 4 - self.iso_day_of_week();
        let (year, _, _) = date_of(thursday);
        (year, (thursday - days_of(year, 1, 1)) / 7 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_inverse_over_many_centuries() {
        for days in (-1_000_000..1_000_000).step_by(37) {
            let (y, m, d) = date_of(days);
            assert_eq!(days_of(y, m.into(), d.into()), days);
        }
        assert_eq!(date_of(0), (1970, 1, 1));
        assert_eq!(days_of(2000, 14, 1), days_of(2001, 2, 1));
        assert_eq!(days_of(2000, 0, 1), days_of(1999, 12, 1));
    }

    #[test]
    fn a_time_is_printed_with_its_milliseconds() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000"),
            (951_782_400_000, "2000-02-29T00:00:00.000"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999"),
            (-1, "1969-12-31T23:59:59.999"),
            (4_102_444_800_000, "2100-01-01T00:00:00.000"),
        ] {
            assert_eq!(iso(ms), text);
        }
    }

    #[test]
    fn weeks_follow_mongodb_and_iso() {
        let c = civil_of_ms(1_609_459_200_000); // 2021-01-01, a Friday
        assert_eq!((c.day_of_week(), c.iso_day_of_week()), (6, 5));
        assert_eq!(c.week(), 0);
        assert_eq!(c.iso_week(), (2020, 53));
        assert_eq!(c.day_of_year(), 1);
    }

    #[test]
    fn the_ends_of_the_range_do_not_overflow() {
        for ms in [i64::MIN, i64::MAX, -1, 0] {
            assert_eq!(ms_of_civil(&civil_of_ms(ms)), Some(ms));
        }
    }
}
