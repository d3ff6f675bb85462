//! Dates: the calendar (proleptic Gregorian, milliseconds since 1970), time zones, formats and parsing.

mod format;
mod parse;
mod units;
mod zone;

pub use format::{DEFAULT_FORMAT, check_parsed, check_printed, print};
pub use pando_base::calendar::{Civil, civil_of_ms, days_of, ms_of_civil};
pub use pando_base::calendar::{MS_PER_DAY, MS_PER_HOUR, MS_PER_MINUTE, MS_PER_SECOND};
pub use parse::{iso_days, parse_format, parse_free};
pub use units::{Unit, Weekday, add, add_exactly, difference, truncate};
pub use zone::Zone;

/// `2020-09-13T12:26:40.123Z`
pub fn iso(ms: i64) -> String {
    pando_base::calendar::iso(ms) + "Z"
}
