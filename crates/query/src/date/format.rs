//! `%`-formats of `$dateToString` and `$dateFromString`.

use super::zone::Zone;
use pando_base::calendar::{Civil, MS_PER_MINUTE};
use pando_base::{Error, Result};
use std::fmt::Write;

/// What `$dateToString` prints when no format is given (whatever the zone: MongoDB's `Z` is only a letter there).
pub const DEFAULT_FORMAT: &str = "%Y-%m-%dT%H:%M:%S.%LZ";

const PRINTED: &str = "dGHjLmMSwuUVYzZ%";
const PARSED: &str = "dGHLmMSuVYzZ%";

fn check(format: &str, allowed: &str) -> Result<()> {
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            continue;
        }
        match chars.next() {
            None => return Err(Error::location(18535, "Unmatched '%' at end of format string")),
            Some(spec) if allowed.contains(spec) => {}
            Some(spec) => {
                return Err(Error::location(
                    18536,
                    format!("Invalid format character '%{spec}' in format string"),
                ));
            }
        }
    }
    Ok(())
}

/// Codes 18535 and 18536 for a format that cannot be printed.
pub fn check_printed(format: &str) -> Result<()> {
    check(format, PRINTED)
}
/// The same for parsing.
pub fn check_parsed(format: &str) -> Result<()> {
    check(format, PARSED)
}

fn year(y: i64) -> Result<i64> {
    if (0..=9999).contains(&y) {
        return Ok(y);
    }
    Err(Error::location(
        18537,
        format!(
            "Could not convert date to string: date component was outside the supported range of 0-9999: {y}"
        ),
    ))
}

/// Prints an instant.
pub fn print(ms: i64, zone: &Zone, format: &str) -> Result<String> {
    let c: Civil = zone.civil(ms);
    let offset = zone.offset_ms(ms) / MS_PER_MINUTE;
    let mut out = String::with_capacity(format.len() + 16);
    let mut chars = format.chars();
    while let Some(ch) = chars.next() {
        if ch != '%' {
            out.push(ch);
            continue;
        }
        // Writing to a String cannot fail.
        let _ = match chars.next() {
            Some('d') => write!(out, "{:02}", c.day),
            Some('G') => write!(out, "{:04}", year(c.iso_week().0)?),
            Some('H') => write!(out, "{:02}", c.hour),
            Some('j') => write!(out, "{:03}", c.day_of_year()),
            Some('L') => write!(out, "{:03}", c.millisecond),
            Some('m') => write!(out, "{:02}", c.month),
            Some('M') => write!(out, "{:02}", c.minute),
            Some('S') => write!(out, "{:02}", c.second),
            Some('w') => write!(out, "{}", c.day_of_week()),
            Some('u') => write!(out, "{}", c.iso_day_of_week()),
            Some('U') => write!(out, "{:02}", c.week()),
            Some('V') => write!(out, "{:02}", c.iso_week().1),
            Some('Y') => write!(out, "{:04}", year(c.year)?),
            Some('z') => {
                let sign = if offset < 0 { '-' } else { '+' };
                write!(out, "{sign}{:02}{:02}", offset.abs() / 60, offset.abs() % 60)
            }
            Some('Z') => write!(out, "{offset}"),
            Some(other) => out.write_char(other),
            None => Ok(()),
        };
    }
    Ok(out)
}
