//! Parts of dates: `$year` to `$millisecond`, weeks, `$dateToParts`, `$dateFromParts`. Shared here: how a value
//! becomes a date and an argument a time zone.

use crate::date::{
    Civil, MS_PER_DAY, MS_PER_HOUR, MS_PER_MINUTE, MS_PER_SECOND, Zone, civil_of_ms, days_of, iso_days,
};
use crate::expr::{Expr, Op, ParseCtx, Scope, Val, optional, parts, shown};
use crate::matcher::exact_i64;
use pando_base::{Error, Result};
use pando_bson::{DocBuilder, Value};

/// Milliseconds of a date, timestamp or object id.
pub(super) fn date_ms(v: &Val<'_>) -> Option<i64> {
    match v.value()? {
        Value::DateTime(ms) => Some(ms),
        Value::Timestamp(t) => Some(i64::from(t.secs()) * 1000),
        Value::ObjectId(o) => {
            let secs = u32::from_be_bytes([o.0[0], o.0[1], o.0[2], o.0[3]]);
            // MongoDB reads the seconds as signed.
            Some(i64::from(secs as i32) * 1000)
        }
        _ => None,
    }
}

pub(super) fn to_date(v: &Val<'_>) -> Result<i64> {
    date_ms(v).ok_or_else(|| {
        Error::location(16006, format!("can't convert from BSON type {} to Date", v.type_name()))
    })
}

pub(super) fn zone_of(id: &str) -> Result<Zone> {
    Zone::parse(id)
        .ok_or_else(|| Error::location(40485, format!("unrecognized time zone identifier: \"{id}\"")))
}

/// A time zone argument. Constant ones are looked up once.
#[derive(Clone)]
pub(super) struct ZoneArg {
    expr: Option<Expr>,
    known: Option<Zone>,
}

impl ZoneArg {
    pub(super) fn new(expr: Option<Expr>) -> ZoneArg {
        ZoneArg { expr, known: None }
    }
    pub(super) fn is_given(&self) -> bool {
        self.expr.is_some()
    }
    /// `None` when the argument is nullish.
    pub(super) fn eval(&self, scope: &Scope<'_>) -> Result<Option<Zone>> {
        self.eval_with(scope, |v| {
            Error::location(40517, format!("timezone must evaluate to a string, found {}", v.type_name()))
        })
    }
    fn eval_with(&self, scope: &Scope<'_>, not_string: impl Fn(&Val<'_>) -> Error) -> Result<Option<Zone>> {
        if let Some(zone) = &self.known {
            return Ok(Some(zone.clone()));
        }
        let Some(e) = &self.expr else { return Ok(Some(Zone::Utc)) };
        let v = e.eval(scope)?;
        if v.is_nullish() {
            return Ok(None);
        }
        match v.as_word() {
            Some(id) => zone_of(&id).map(Some),
            None => Err(not_string(&v)),
        }
    }
    /// Looks a constant zone up; a bad one fails later, with the first document.
    pub(super) fn settle(&mut self) {
        if let Some(id) = self.expr.as_ref().and_then(Expr::as_const).and_then(Val::as_str) {
            self.known = Zone::parse(id);
        }
    }
}

impl crate::expr::Part for ZoneArg {
    fn collect<'e>(&'e self, out: &mut Vec<&'e Expr>) {
        self.expr.collect(out);
    }
    fn collect_mut<'e>(&'e mut self, out: &mut Vec<&'e mut Expr>) {
        self.expr.collect_mut(out);
    }
}

#[derive(Clone)]
struct DatePart {
    name: &'static str,
    date: Expr,
    zone: ZoneArg,
    part: fn(&Civil) -> Val<'static>,
}

fn part_of(name: &str) -> fn(&Civil) -> Val<'static> {
    match name {
        "$year" => |c| Val::int(c.year as i32),
        "$month" => |c| Val::int(c.month.into()),
        "$dayOfMonth" => |c| Val::int(c.day.into()),
        "$dayOfWeek" => |c| Val::int(c.day_of_week() as i32),
        "$dayOfYear" => |c| Val::int(c.day_of_year() as i32),
        "$hour" => |c| Val::int(c.hour.into()),
        "$minute" => |c| Val::int(c.minute.into()),
        "$second" => |c| Val::int(c.second.into()),
        "$week" => |c| Val::int(c.week() as i32),
        "$isoWeek" => |c| Val::int(c.iso_week().1 as i32),
        "$isoWeekYear" => |c| Val::long(c.iso_week().0),
        "$isoDayOfWeek" => |c| Val::int(c.iso_day_of_week() as i32),
        _ => |c| Val::int(c.millisecond.into()),
    }
}

pub(in crate::expr) fn parse_part(name: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let make = |date, zone| {
        Ok(Expr::Op(Box::new(DatePart { name, date, zone: ZoneArg::new(zone), part: part_of(name) })))
    };
    match v {
        Value::Document(d) if !d.first().is_some_and(|e| e.name_bytes().starts_with(b"$")) => {
            let (mut date, mut zone) = (None, None);
            for e in d {
                match e.name() {
                    "date" => date = Some(p.parse(e.value())?),
                    "timezone" => zone = Some(p.parse(e.value())?),
                    other => {
                        return Err(Error::location(
                            40535,
                            format!("unrecognized option to {name}: \"{other}\""),
                        ));
                    }
                }
            }
            match date {
                Some(date) => make(date, zone),
                None => Err(Error::location(
                    40539,
                    format!("missing 'date' argument to {name}, provided: {name}: {d:#}"),
                )),
            }
        }
        Value::Array(a) => match (a.first(), a.count()) {
            (Some(e), 1) => make(p.parse(e.value())?, None),
            (_, n) => Err(Error::location(
                40536,
                format!("{name} accepts exactly one argument if given an array, but was given {n}"),
            )),
        },
        v => make(p.parse(v)?, None),
    }
}

impl Op for DatePart {
    fn name(&self) -> &'static str {
        self.name
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let date = self.date.eval(scope)?;
        if date.is_nullish() {
            return Ok(Val::NULL);
        }
        let ms = to_date(&date)?;
        let zone = self.zone.eval_with(scope, |v| {
            Error::location(
                40533,
                format!(
                    "{} requires a string for the timezone argument, but was given a {} ({})",
                    self.name,
                    v.type_name(),
                    shown(v)
                ),
            )
        })?;
        Ok(match zone {
            Some(Zone::Utc) => (self.part)(&civil_of_ms(ms)),
            Some(zone) => (self.part)(&zone.civil(ms)),
            None => Val::NULL,
        })
    }
    parts!(date, zone);
    fn folds(&self) -> bool {
        true
    }
    fn simplify(&mut self, _: &crate::ctx::QueryCtx) -> Result<Option<Expr>> {
        self.zone.settle();
        Ok(None)
    }
}

#[derive(Clone)]
struct DateToParts {
    date: Expr,
    zone: ZoneArg,
    iso: Option<Expr>,
}

pub(in crate::expr) fn parse_to_parts(_: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let Value::Document(d) = v else {
        return Err(Error::location(40524, "$dateToParts only supports an object as its argument"));
    };
    let (mut date, mut zone, mut iso) = (None, None, None);
    for e in d {
        let slot = match e.name() {
            "date" => &mut date,
            "timezone" => &mut zone,
            "iso8601" => &mut iso,
            other => {
                return Err(Error::location(
                    40520,
                    format!("Unrecognized argument to $dateToParts: {other}"),
                ));
            }
        };
        *slot = Some(e.value());
    }
    let date = date.ok_or_else(|| Error::location(40522, "Missing 'date' parameter to $dateToParts"))?;
    let date = p.parse(date)?;
    let [zone, iso] = optional([zone, iso], p)?;
    Ok(Expr::Op(Box::new(DateToParts { date, zone: ZoneArg::new(zone), iso })))
}

impl Op for DateToParts {
    fn name(&self) -> &'static str {
        "$dateToParts"
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let date = self.date.eval(scope)?;
        let Some(zone) = self.zone.eval(scope)? else { return Ok(Val::NULL) };
        let iso = match &self.iso {
            None => false,
            Some(e) => {
                let v = e.eval(scope)?;
                match v.value() {
                    None | Some(Value::Null | Value::Undefined) => return Ok(Val::NULL),
                    Some(Value::Boolean(b)) => b,
                    Some(_) => {
                        return Err(Error::location(
                            40521,
                            format!("iso8601 must evaluate to a bool, found {}", v.type_name()),
                        ));
                    }
                }
            }
        };
        if date.is_nullish() {
            return Ok(Val::NULL);
        }
        let c = zone.civil(to_date(&date)?);
        let mut b = DocBuilder::new();
        if iso {
            let (year, week) = c.iso_week();
            b.i32("isoWeekYear", year as i32)
                .i32("isoWeek", week as i32)
                .i32("isoDayOfWeek", c.iso_day_of_week() as i32);
        } else {
            b.i32("year", c.year as i32).i32("month", c.month.into()).i32("day", c.day.into());
        }
        b.i32("hour", c.hour.into()).i32("minute", c.minute.into()).i32("second", c.second.into());
        b.i32("millisecond", c.millisecond.into());
        Ok(Val::Doc(b.finish()))
    }
    parts!(date, zone, iso);
    fn folds(&self) -> bool {
        true
    }
    fn simplify(&mut self, _: &crate::ctx::QueryCtx) -> Result<Option<Expr>> {
        self.zone.settle();
        Ok(None)
    }
}

#[derive(Clone)]
struct DateFromParts {
    /// Year, month, day, or ISO year, week, day.
    date: Vec<(&'static str, Option<Expr>)>,
    iso: bool,
    clock: Vec<(&'static str, Option<Expr>)>,
    zone: ZoneArg,
}

const NATURAL: [&str; 3] = ["year", "month", "day"];
const ISO: [&str; 3] = ["isoWeekYear", "isoWeek", "isoDayOfWeek"];
const CLOCK: [&str; 4] = ["hour", "minute", "second", "millisecond"];

pub(in crate::expr) fn parse_from_parts(_: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let Value::Document(d) = v else {
        return Err(Error::location(40519, "$dateFromParts only supports an object as its argument"));
    };
    let mut given: Vec<(&'static str, Value<'_>)> = Vec::new();
    let mut zone = None;
    for e in d {
        if e.name() == "timezone" {
            zone = Some(e.value());
            continue;
        }
        let known = NATURAL.iter().chain(&ISO).chain(&CLOCK).find(|n| **n == e.name());
        match known {
            Some(name) => given.push((name, e.value())),
            None => {
                return Err(Error::location(
                    40518,
                    format!("Unrecognized argument to $dateFromParts: {}", e.name()),
                ));
            }
        }
    }
    let has = |name: &str| given.iter().any(|(n, _)| *n == name);
    if !has("year") && !has("isoWeekYear") {
        return Err(Error::location(
            40516,
            "$dateFromParts requires either 'year' or 'isoWeekYear' to be present",
        ));
    }
    let iso = !has("year");
    let (mixed, code, text) = if iso {
        (
            NATURAL.iter().any(|n| has(n)),
            40525,
            "$dateFromParts does not allow mixing ISO dates with natural dates",
        )
    } else {
        (
            ISO.iter().any(|n| has(n)),
            40489,
            "$dateFromParts does not allow mixing natural dates with ISO dates",
        )
    };
    if mixed {
        return Err(Error::location(code, text));
    }
    let mut take = |names: &[&'static str]| -> Result<Vec<(&'static str, Option<Expr>)>> {
        let mut parsed = |name: &&'static str| {
            let given = given.iter().rev().find(|(n, _)| n == name);
            Ok((*name, given.map(|(_, v)| p.parse(*v)).transpose()?))
        };
        names.iter().map(&mut parsed).collect()
    };
    let date = take(if iso { &ISO } else { &NATURAL })?;
    let clock = take(&CLOCK)?;
    let zone = zone.map(|v| p.parse(v)).transpose()?;
    Ok(Expr::Op(Box::new(DateFromParts { date, iso, clock, zone: ZoneArg::new(zone) })))
}

/// Values that other parts than the year may have.
const PART_RANGE: std::ops::RangeInclusive<i64> = i16::MIN as i64..=i16::MAX as i64;

impl DateFromParts {
    /// `None` when nullish.
    fn part(
        &self,
        (name, e): &(&'static str, Option<Expr>),
        default: i64,
        scope: &Scope<'_>,
    ) -> Result<Option<i64>> {
        let Some(e) = e else { return Ok(Some(default)) };
        let v = e.eval(scope)?;
        if v.is_nullish() {
            return Ok(None);
        }
        let Some(n) = v.value().and_then(exact_i64) else {
            return Err(Error::location(
                40515,
                format!(
                    "'{name}' must evaluate to an integer, found {} with value {}",
                    v.type_name(),
                    shown(&v)
                ),
            ));
        };
        let wide = ["year", "isoWeekYear", "second", "millisecond"];
        if !wide.contains(name) && !PART_RANGE.contains(&n) {
            return Err(Error::location(
                31034,
                format!(
                    "'{name}' must evaluate to a value in the range [-32768, 32767]; value {n} is not in range"
                ),
            ));
        }
        Ok(Some(n))
    }
}

impl Op for DateFromParts {
    fn name(&self) -> &'static str {
        "$dateFromParts"
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let mut n = [0i64; 7];
        for (i, part) in self.clock.iter().enumerate() {
            match self.part(part, 0, scope)? {
                Some(v) => n[i + 3] = v,
                None => return Ok(Val::NULL),
            }
        }
        let Some(zone) = self.zone.eval(scope)? else { return Ok(Val::NULL) };
        for (i, part) in self.date.iter().enumerate() {
            match self.part(part, i64::from(i > 0), scope)? {
                Some(v) => n[i] = v,
                None => return Ok(Val::NULL),
            }
        }
        if !(1..=9999).contains(&n[0]) {
            let (name, n) = (if self.iso { "isoWeekYear" } else { "year" }, n[0]);
            return Err(Error::location(
                40523,
                format!("'{name}' must evaluate to an integer in the range 1 to 9999, found {n}"),
            ));
        }
        let days = if self.iso { iso_days(n[0], n[1], n[2]) } else { days_of(n[0], n[1], n[2]) };
        let overflow = || Error::location(159, "Overflow casting from a lower-precision duration");
        let clock = n[3] * MS_PER_HOUR + n[4] * MS_PER_MINUTE;
        let local = n[5]
            .checked_mul(MS_PER_SECOND)
            .and_then(|s| s.checked_add(n[6]))
            .and_then(|ms| ms.checked_add(days * MS_PER_DAY + clock))
            .ok_or_else(overflow)?;
        Ok(Val::date(zone.utc_of_local(local)))
    }
    parts!(date, clock, zone);
    fn folds(&self) -> bool {
        true
    }
    fn simplify(&mut self, _: &crate::ctx::QueryCtx) -> Result<Option<Expr>> {
        self.zone.settle();
        Ok(None)
    }
}
