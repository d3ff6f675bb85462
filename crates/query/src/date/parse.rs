//! Reading dates: with a `%`-format, or in the many forms people write.
//!
//! Without a format the text is cut into words; each is recognized by its look (ISO 8601 dates in all three forms,
//! `1/2/2020`, `Jan 2, 2020`, `17:30:05.25`, `5pm`, `+02:00`, `EST`, `@seconds`). Anything left over, anything
//! said twice and anything missing is an error (code 241).

use super::zone::Zone;
use pando_base::calendar::{MS_PER_DAY, MS_PER_HOUR, MS_PER_MINUTE, days_in_month, days_of};
use pando_base::{Error, ErrorCode, Result};

/// The fields found so far.
#[derive(Default)]
struct Fields {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    iso: Option<(i64, i64, i64)>,
    hour: Option<i64>,
    minute: Option<i64>,
    second: Option<i64>,
    ms: Option<i64>,
    /// Minutes east.
    offset: Option<i64>,
    zone_text: Option<String>,
    epoch_ms: Option<i64>,
}

fn conversion(text: String) -> Error {
    Error::new(ErrorCode::ConversionFailure, text)
}

fn failed(s: &str, at: usize, why: &str) -> Error {
    let c = s.get(at..).and_then(|rest| rest.chars().next()).unwrap_or('\0');
    conversion(format!("Error parsing date string '{s}'; {at}: {why} '{c}'"))
}

/// Milliseconds since 1970 of a date written in some form.
pub fn parse_free(s: &str, zone: Option<&Zone>) -> Result<i64> {
    if s.is_empty() {
        return Err(failed(s, 0, "Empty string"));
    }
    let mut f = Fields::default();
    let mut p = Free { s, at: 0, f: &mut f };
    p.run()?;
    f.finish(s, zone)
}

struct Free<'s, 'f> {
    s: &'s str,
    at: usize,
    f: &'f mut Fields,
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/// Abbreviations and their minutes east.
const ABBREVIATIONS: &[(&str, i64)] = &[
    ("z", 0),
    ("utc", 0),
    ("gmt", 0),
    ("est", -300),
    ("edt", -240),
    ("cst", -360),
    ("cdt", -300),
    ("mst", -420),
    ("mdt", -360),
    ("pst", -480),
    ("pdt", -420),
    ("cet", 60),
    ("cest", 120),
    ("bst", 60),
];

impl<'s> Free<'s, '_> {
    fn rest(&self) -> &'s str {
        &self.s[self.at..]
    }
    fn error(&self, why: &str) -> Error {
        failed(self.s, self.at, why)
    }

    fn run(&mut self) -> Result<()> {
        while let Some(c) = self.rest().chars().next() {
            match c {
                ' ' | '\t' | ',' => self.at += 1,
                '@' => self.epoch()?,
                'T' | 't'
                    if self.f.year.is_some()
                        && self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) =>
                {
                    self.at += 1;
                }
                c if c.is_ascii_digit() => self.number()?,
                '+' | '-' => self.offset(c == '-')?,
                c if c.is_alphabetic() => self.word()?,
                _ => return Err(self.error("Unexpected character")),
            }
        }
        Ok(())
    }

    fn epoch(&mut self) -> Result<()> {
        let digits = &self.rest()[1..];
        let end = digits.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(digits.len());
        let seconds: i64 = digits[..end].parse().map_err(|_| self.error("Unexpected character"))?;
        self.f.epoch_ms = seconds.checked_mul(1000);
        self.at += 1 + end;
        Ok(())
    }

    /// Digits at `at`: value, how many, and what follows.
    fn digits(&self, from: usize) -> (i64, usize) {
        let rest = &self.s.as_bytes()[from..];
        let n = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        (self.s[from..from + n].parse().unwrap_or(i64::MAX), n)
    }
    fn byte(&self, at: usize) -> u8 {
        self.s.as_bytes().get(at).copied().unwrap_or(0)
    }

    fn number(&mut self) -> Result<()> {
        let start = self.at;
        let (first, n) = self.digits(start);
        let next = self.byte(start + n);
        match next {
            b':' => return self.time(first, n),
            _ if self.f.year.is_some() && self.f.hour.is_none() && (n == 4 || n == 6) && self.has_date() => {
                return self.compact_time(n);
            }
            b'-' | b'/' => return self.separated_date(first, n, next),
            _ => {}
        }
        let after = self.s[start + n..].to_ascii_lowercase();
        if n <= 2 && (after.starts_with("am") || after.starts_with("pm")) {
            self.set_time(first, 0, 0, 0)?;
            self.meridiem(&after[..2])?;
            self.at = start + n + 2;
            return Ok(());
        }
        if n == 8 && !self.has_date() {
            self.set_date(first / 10_000, first / 100 % 100, first % 100)?;
            self.at += n;
            return Ok(());
        }
        let ordinal = ["st", "nd", "rd", "th"].iter().any(|o| after.starts_with(o));
        if n <= 2 && self.f.day.is_none() && (1..=31).contains(&first) {
            self.f.day = Some(first);
            self.at += n + if ordinal { 2 } else { 0 };
            return Ok(());
        }
        if n == 4 && self.f.year.is_none() {
            self.f.year = Some(first);
            self.at += n;
            return Ok(());
        }
        Err(self.error("Unexpected character"))
    }

    fn has_date(&self) -> bool {
        self.f.day.is_some() || self.f.day_of_year.is_some() || self.f.iso.is_some()
    }

    fn set_date(&mut self, year: i64, month: i64, day: i64) -> Result<()> {
        if self.has_date() {
            return Err(self.error("Double date specification"));
        }
        (self.f.year, self.f.month, self.f.day) = (Some(year), Some(month), Some(day));
        Ok(())
    }

    /// `2020-01-02`, `2020-01`, `2020-005`, `2020-W05-3`, `2020/1/2`, `1/2/2020`, `1-2-2020`.
    fn separated_date(&mut self, first: i64, n: usize, separator: u8) -> Result<()> {
        let mut at = self.at + n + 1;
        if n == 4 && separator == b'-' && matches!(self.byte(at), b'W' | b'w') {
            let (week, w) = self.digits(at + 1);
            at += 1 + w;
            let mut day = 1;
            if self.byte(at) == b'-' {
                let (d, dn) = self.digits(at + 1);
                day = d;
                at += 1 + dn;
            }
            if w != 2 || self.has_date() {
                return Err(self.error("Unexpected character"));
            }
            self.f.year = Some(first);
            self.f.iso = Some((first, week, day));
            self.at = at;
            return Ok(());
        }
        let (second, m) = self.digits(at);
        if n == 4 && separator == b'-' && m == 3 {
            self.f.year = Some(first);
            self.f.day_of_year = Some(second);
            self.at = at + m;
            return Ok(());
        }
        if m == 0 || m > 2 {
            self.at = at;
            return Err(self.error("Unexpected character"));
        }
        at += m;
        if self.byte(at) != separator {
            if n != 4 {
                self.at = at;
                return Err(self.error("Unexpected character"));
            }
            self.at = at;
            return self.set_date(first, second, 1);
        }
        let (third, k) = self.digits(at + 1);
        if k == 0 {
            self.at = at + 1;
            return Err(self.error("Unexpected character"));
        }
        let (y, mo, d) = if n == 4 { (first, second, third) } else { (two_digit(third, k), first, second) };
        if mo > 12 {
            // Where the second digit of the month cannot stand.
            self.at += if n == 4 { n + 2 } else { 1 };
            return Err(self.error("Unexpected character"));
        }
        self.at = at + 1 + k;
        self.set_date(y, mo, d)
    }

    fn set_time(&mut self, h: i64, m: i64, s: i64, ms: i64) -> Result<()> {
        if self.f.hour.is_some() {
            return Err(self.error("Double time specification"));
        }
        if h > 24 || m > 59 || s > 60 {
            return Err(self.error("Unexpected character"));
        }
        (self.f.hour, self.f.minute, self.f.second, self.f.ms) = (Some(h), Some(m), Some(s), Some(ms));
        Ok(())
    }

    fn time(&mut self, hour: i64, n: usize) -> Result<()> {
        let mut at = self.at + n + 1;
        let (minute, k) = self.digits(at);
        if n > 2 || k != 2 {
            return Err(self.error("Unexpected character"));
        }
        at += k;
        let (mut second, mut ms) = (0, 0);
        if self.byte(at) == b':' {
            let (s, k) = self.digits(at + 1);
            if k != 2 {
                return Err(self.error("Unexpected character"));
            }
            second = s;
            at += 1 + k;
            if matches!(self.byte(at), b'.' | b',') && self.byte(at + 1).is_ascii_digit() {
                let (_, k) = self.digits(at + 1);
                ms = fraction(&self.s[at + 1..at + 1 + k]);
                at += 1 + k;
            }
        }
        self.set_time(hour, minute, second, ms)?;
        self.at = at;
        let after = self.rest().trim_start().to_ascii_lowercase();
        if after.starts_with("am") || after.starts_with("pm") {
            self.meridiem(&after[..2])?;
            self.at = self.s.len() - after.len() + 2;
        }
        Ok(())
    }

    fn meridiem(&mut self, half: &str) -> Result<()> {
        let Some(h) = self.f.hour.filter(|h| (1..=12).contains(h)) else {
            return Err(self.error("Unexpected character"));
        };
        self.f.hour = Some(h % 12 + if half == "pm" { 12 } else { 0 });
        Ok(())
    }

    /// `hhmm` or `hhmmss`.
    fn compact_time(&mut self, n: usize) -> Result<()> {
        let (v, _) = self.digits(self.at);
        match n {
            4 => self.set_time(v / 100, v % 100, 0, 0)?,
            _ => self.set_time(v / 10_000, v / 100 % 100, v % 100, 0)?,
        }
        self.at += n;
        if self.byte(self.at) == b'.' {
            let (_, k) = self.digits(self.at + 1);
            self.f.ms = Some(fraction(&self.s[self.at + 1..self.at + 1 + k]));
            self.at += 1 + k;
        }
        Ok(())
    }

    fn offset(&mut self, negative: bool) -> Result<()> {
        if self.f.offset.is_some() {
            return Err(self.error("Double timezone specification"));
        }
        let start = self.at;
        let (v, n) = self.digits(start + 1);
        let mut at = start + 1 + n;
        let minutes = match n {
            1 | 2 if self.byte(at) == b':' => {
                let (m, k) = self.digits(at + 1);
                at += 1 + k;
                v * 60 + m
            }
            1 | 2 => v * 60,
            3 | 4 => v / 100 * 60 + v % 100,
            _ => return Err(self.error("Unexpected character")),
        };
        self.f.offset = Some(if negative { -minutes } else { minutes });
        self.f.zone_text = Some(self.s[start..at].to_owned());
        self.at = at;
        Ok(())
    }

    fn word(&mut self) -> Result<()> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let word = rest[..end].to_ascii_lowercase();
        if let Some(m) = MONTHS.iter().position(|m| word.starts_with(m) && month_word(&word)) {
            if self.f.month.is_some() {
                return Err(self.error("Double date specification"));
            }
            self.f.month = Some(m as i64 + 1);
        } else if DAYS.iter().any(|d| word.starts_with(d) && (word.len() == 3 || word.ends_with("day"))) {
            // The date says which day it is.
        } else if let Some((_, minutes)) = ABBREVIATIONS.iter().find(|(a, _)| *a == word) {
            if self.f.offset.is_some() {
                return Err(self.error("Double timezone specification"));
            }
            self.f.offset = Some(*minutes);
            self.f.zone_text = Some(rest[..end].to_owned());
        } else if matches!(
            word.as_str(),
            "now" | "today" | "tomorrow" | "yesterday" | "midnight" | "noon" | "x"
        ) {
            // Words that give no date.
        } else {
            return Err(self.error("passing a time zone identifier as part of the string is not allowed"));
        }
        self.at += end;
        if self.byte(self.at) == b'.' {
            self.at += 1;
        }
        Ok(())
    }
}

fn month_word(word: &str) -> bool {
    const LONG: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    word.len() == 3 || word == "sept" || LONG.contains(&word)
}

fn two_digit(year: i64, digits: usize) -> i64 {
    match (digits, year) {
        (1 | 2, 0..=69) => year + 2000,
        (1 | 2, _) => year + 1900,
        _ => year,
    }
}

/// The first three digits behind the point.
fn fraction(digits: &str) -> i64 {
    let mut ms = 0;
    for i in 0..3 {
        ms = ms * 10 + digits.as_bytes().get(i).map_or(0, |b| i64::from(b - b'0'));
    }
    ms
}

impl Fields {
    fn finish(self, s: &str, zone: Option<&Zone>) -> Result<i64> {
        if let Some(ms) = self.epoch_ms {
            return Ok(ms);
        }
        if let (Some(text), Some(_)) = (&self.zone_text, zone) {
            return Err(conversion(format!(
                "you cannot pass in a date/time string with time zone information ('{text}') together with a timezone \
                 argument"
            )));
        }
        let incomplete = || {
            conversion(format!(
                "an incomplete date/time string has been found, with elements missing: \"{s}\""
            ))
        };
        let invalid = |what: &str| {
            failed(
                s,
                s.len() + usize::from(what == "date" && !s.contains(':')),
                &format!("The parsed {what} was invalid"),
            )
        };
        let days = if let Some((year, week, day)) = self.iso {
            if !(1..=53).contains(&week) || !(1..=7).contains(&day) {
                return Err(invalid("date"));
            }
            iso_days(year, week, day)
        } else {
            let year = self.year.ok_or_else(incomplete)?;
            if let Some(n) = self.day_of_year {
                days_of(year, 1, 1) + n - 1
            } else {
                let (month, day) = (self.month.ok_or_else(incomplete)?, self.day.ok_or_else(incomplete)?);
                let in_month = (1..=12).contains(&month)
                    && (1..=i64::from(days_in_month(year, month as u8))).contains(&day);
                if !in_month {
                    return Err(invalid("date"));
                }
                days_of(year, month, day)
            }
        };
        let (h, m) = (self.hour.unwrap_or(0), self.minute.unwrap_or(0));
        if h > 24 || m > 59 {
            return Err(invalid("time"));
        }
        let clock =
            h * MS_PER_HOUR + m * MS_PER_MINUTE + self.second.unwrap_or(0) * 1000 + self.ms.unwrap_or(0);
        let local =
            days.checked_mul(MS_PER_DAY).and_then(|d| d.checked_add(clock)).ok_or_else(|| invalid("date"))?;
        Ok(match (self.offset, zone) {
            (Some(minutes), _) => local - minutes * MS_PER_MINUTE,
            (None, Some(zone)) => zone.utc_of_local(local),
            (None, None) => local,
        })
    }
}

/// The day number of an ISO week date; weeks and days may carry over.
pub fn iso_days(year: i64, week: i64, day: i64) -> i64 {
    let january_4 = days_of(year, 1, 4);
    let monday_1 = january_4 - (january_4 + 3).rem_euclid(7);
    monday_1 + (week - 1) * 7 + day - 1
}

/// Milliseconds since 1970 of a date in a given format (already checked).
pub fn parse_format(s: &str, format: &str, zone: Option<&Zone>) -> Result<i64> {
    let mut read = ByFormat { s, at: 0, f: Fields::default(), iso: IsoWeek::default() };
    let mut spec = format.chars();
    while let Some(c) = spec.next() {
        if read.at >= s.len() {
            return Err(read.failed("Not enough data available to satisfy format"));
        }
        match c {
            '%' => read.field(spec.next())?,
            _ if s[read.at..].starts_with(c) => read.at += c.len_utf8(),
            _ => return Err(read.failed("The separation symbol could not be found")),
        }
    }
    if read.at < s.len() {
        return Err(read.failed("Trailing data"));
    }
    let ByFormat { mut f, iso, .. } = read;
    if let Some(y) = iso.year {
        f.iso = Some((y, iso.week.unwrap_or(1), iso.day.unwrap_or(1)));
    }
    if f.month.is_none() && f.day.is_none() && f.iso.is_none() || f.year.is_none() && f.iso.is_none() {
        return Err(conversion(format!(
            "an incomplete date/time string has been found, with elements missing: \"{s}\""
        )));
    }
    f.finish(s, zone)
}

/// A text that is read as a format says.
struct ByFormat<'s> {
    s: &'s str,
    at: usize,
    f: Fields,
    iso: IsoWeek,
}

#[derive(Default)]
struct IsoWeek {
    year: Option<i64>,
    week: Option<i64>,
    day: Option<i64>,
}

impl<'s> ByFormat<'s> {
    fn failed(&self, text: &str) -> Error {
        failed(self.s, self.at, text)
    }

    /// The digits from here on, so many at most.
    fn digits(&self, max: usize) -> &'s str {
        let rest = &self.s[self.at..];
        &rest[..rest.bytes().take(max).take_while(u8::is_ascii_digit).count()]
    }

    fn number(&mut self, max: usize, what: &str) -> Result<i64> {
        let digits = self.digits(max);
        if digits.is_empty() {
            return Err(self.failed(&format!("{what} could not be found")));
        }
        self.at += digits.len();
        Ok(digits.parse().unwrap_or(0))
    }

    /// What a letter behind a `%` stands for. There is text left.
    fn field(&mut self, letter: Option<char>) -> Result<()> {
        match letter {
            Some('d') => self.f.day = Some(self.number(2, "A two digit day")?),
            Some('m') => self.f.month = Some(self.number(2, "A two digit month")?),
            Some('Y') => self.f.year = Some(self.number(4, "A four digit year")?),
            Some('G') => self.iso.year = Some(self.number(4, "A four digit year")?),
            Some('V') => self.iso.week = Some(self.number(2, "A two digit week")?),
            Some('u') => self.iso.day = Some(self.number(1, "A one digit day of the week")?),
            Some('H') => self.f.hour = Some(self.number(2, "A two digit hour")?),
            Some('M') => self.f.minute = Some(self.number(2, "A two digit minute")?),
            Some('S') => self.f.second = Some(self.number(2, "A two digit second")?),
            Some('L') => {
                let digits = self.digits(3);
                if digits.is_empty() {
                    return Err(self.failed("A three digit millisecond could not be found"));
                }
                self.f.ms = Some(fraction(digits));
                self.at += digits.len();
            }
            Some('z') => self.zone()?,
            Some('Z') => self.minutes()?,
            Some('%') if self.s[self.at..].starts_with('%') => self.at += 1,
            _ => return Err(self.failed("Unexpected character")),
        }
        Ok(())
    }

    /// `+02:00` or a name.
    fn zone(&mut self) -> Result<()> {
        let mut p = Free { s: self.s, at: self.at, f: &mut self.f };
        match self.s[self.at..].chars().next() {
            Some(c @ ('+' | '-')) => p.offset(c == '-')?,
            _ => p.word()?,
        }
        self.at = p.at;
        Ok(())
    }

    /// `+120`
    fn minutes(&mut self) -> Result<()> {
        let sign = match self.s.as_bytes()[self.at] {
            b'-' => -1,
            b'+' => 1,
            _ => return Err(self.failed("A UTC offset in minutes could not be found")),
        };
        let from = self.at;
        self.at += 1;
        let digits = self.digits(usize::MAX);
        self.at += digits.len();
        self.f.offset = Some(sign * digits.parse::<i64>().unwrap_or(0));
        self.f.zone_text = Some(self.s[from..self.at].to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_577_934_245_000; // 2020-01-02T03:04:05Z
    const DAY: i64 = 1_577_923_200_000;

    #[test]
    fn dates_are_read_in_the_forms_people_write() {
        let cases = [
            ("2020-01-02", DAY),
            ("2020/01/02", DAY),
            ("01/02/2020", DAY),
            ("1/2/20", DAY),
            ("Jan 2, 2020", DAY),
            ("2 January 2020", DAY),
            ("January 2nd, 2020 5pm", DAY + 17 * MS_PER_HOUR),
            ("2020-1-2", DAY),
            ("20200102", DAY),
            ("20200102T030405", MS),
            ("2020-01-02 03:04:05", MS),
            ("2020-01-02T03:04:05Z", MS),
            ("2020-01-02T03:04:05.123456Z", MS + 123),
            ("Thu, 02 Jan 2020 03:04:05 GMT", MS),
            ("2020-01-02T03:04:05-0500", MS + 5 * MS_PER_HOUR),
            ("2020-01-02T03:04:05 EST", MS + 5 * MS_PER_HOUR),
            ("2020-01-02T03:04:05.678+02:00", MS + 678 - 2 * MS_PER_HOUR),
            ("2020-W05-3", 1_580_256_000_000),
            ("2020-005", DAY + 3 * MS_PER_DAY),
            ("2020-01", DAY - MS_PER_DAY),
            ("@1577934245", MS),
        ];
        for (text, ms) in cases {
            assert_eq!(parse_free(text, None).ok(), Some(ms), "{text}");
        }
        for text in [
            "",
            "x",
            "2020",
            "12:30",
            "now",
            "abc",
            "2020-13-01",
            "2020-02-30",
            "2020-01-02T25:00:00",
            "12",
            "+",
            "é",
            "2020-01-02T",
            "-3",
            "9999999999999999999999",
            "1:",
            "2020-01-02 1:2:",
        ] {
            let _ = parse_free(text, None).map(|ms| assert!(text == "2020-01-02T", "{text} gave {ms}"));
        }
    }

    #[test]
    fn dates_are_read_in_a_given_format() {
        let cases = [
            ("%Y-%m-%d", "2020-1-2", DAY),
            ("%d/%m/%Y", "02/01/2020", DAY),
            ("%G-%V-%u", "2020-05-3", 1_580_256_000_000),
            ("%Y-%m-%dT%H:%M:%S.%L", "2020-01-02T03:04:05.6", MS + 600),
            ("%Y-%m-%d %z", "2020-01-02 +0530", DAY - 330 * MS_PER_MINUTE),
            ("%Y-%m-%d %Z", "2020-01-02 +120", DAY - 120 * MS_PER_MINUTE),
        ];
        for (format, text, ms) in cases {
            assert_eq!(parse_format(text, format, None).ok(), Some(ms), "{format} {text}");
        }
        for (format, text) in [
            ("%Y", "x"),
            ("%Y-%m-%d", "2020-01"),
            ("%d/%m/%Y", "31/02/2020"),
            ("%H:%M", "10:20"),
            ("%Y", "02/01/2020"),
        ] {
            assert!(parse_format(text, format, None).is_err(), "{format} {text}");
        }
    }
}
