//! Dates: the calendar (proleptic Gregorian, milliseconds since 1970), time zones, formats and parsing.

mod calendar;

pub use calendar::{Civil, civil_of_ms, ms_of_civil};

/// `2020-09-13T12:26:40.123Z`
pub fn iso(ms: i64) -> String {
    let c = civil_of_ms(ms);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        c.year, c.month, c.day, c.hour, c.minute, c.second, c.millisecond
    )
}
