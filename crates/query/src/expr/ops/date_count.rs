//! `$dateAdd`, `$dateSubtract`, `$dateDiff`, `$dateTrunc`.

use super::date_parts::{ZoneArg, date_ms};
use crate::ctx::QueryCtx;
use crate::date::{Unit, Weekday, Zone, add_exactly, difference, truncate};
use crate::expr::{Expr, Op, ParseCtx, Scope, Val, optional, parts, shown};
use crate::matcher::exact_i64;
use pando_base::{Error, Result};
use pando_bson::Value;

#[derive(Clone)]
struct DateAdd {
    name: &'static str,
    start: Expr,
    unit: Expr,
    amount: Expr,
    zone: ZoneArg,
}

pub(in crate::expr) fn parse_add(name: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let Value::Document(d) = v else {
        return Err(Error::location(5166400, format!("{name} expects an object as its argument")));
    };
    let (mut start, mut unit, mut amount, mut zone) = (None, None, None, None);
    for e in d {
        let slot = match e.name() {
            "startDate" => &mut start,
            "unit" => &mut unit,
            "amount" => &mut amount,
            "timezone" => &mut zone,
            other => {
                return Err(Error::location(
                    5166401,
                    format!(
                        "Unrecognized argument to {name}: {other}. Expected arguments are startDate, unit, amount, and \
                         optionally timezone."
                    ),
                ));
            }
        };
        *slot = Some(p.parse(e.value())?);
    }
    match (start, unit, amount) {
        (Some(start), Some(unit), Some(amount)) => {
            Ok(Expr::Op(Box::new(DateAdd { name, start, unit, amount, zone: ZoneArg::new(zone) })))
        }
        _ => Err(Error::location(
            5166402,
            format!("{name} requires startDate, unit, and amount to be present"),
        )),
    }
}

impl Op for DateAdd {
    fn name(&self) -> &'static str {
        self.name
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let start = self.start.eval(scope)?;
        if start.is_nullish() {
            return Ok(Val::NULL);
        }
        let unit = self.unit.eval(scope)?;
        if unit.is_nullish() {
            return Ok(Val::NULL);
        }
        let amount = self.amount.eval(scope)?;
        if amount.is_nullish() {
            return Ok(Val::NULL);
        }
        let Some(zone) = self.zone.eval(scope)? else { return Ok(Val::NULL) };
        let Some(ms) = date_ms(&start) else {
            return Err(Error::location(
                5166403,
                format!("{} requires startDate to be convertible to a date", self.name),
            ));
        };
        let unit = self.unit_of(&unit)?;
        let Some(n) = amount.value().and_then(exact_i64) else {
            return Err(Error::location(
                5166405,
                format!("{} expects integer amount of time units", self.name),
            ));
        };
        let n = match self.name {
            "$dateSubtract" => n.checked_neg().ok_or_else(|| {
                let text = format!("invalid $dateSubtract 'amount' parameter value: {n}");
                Error::location(6_045_000, text)
            })?,
            _ => n,
        };
        Ok(Val::date(add_exactly(ms, unit, n, &zone)?))
    }
    parts!(start, unit, amount, zone);
    fn folds(&self) -> bool {
        true
    }
    fn simplify(&mut self, _: &QueryCtx) -> Result<Option<Expr>> {
        self.zone.settle();
        Ok(None)
    }
}

impl DateAdd {
    fn unit_of(&self, v: &Val<'_>) -> Result<Unit> {
        let Some(name) = v.as_word() else {
            return Err(Error::location(
                5166404,
                format!("{} expects string defining the time unit", self.name),
            ));
        };
        Unit::parse(&name).ok_or_else(|| Error::failed_to_parse(format!("unknown time unit value: {name}")))
    }
}

/// The arguments that `$dateDiff` and `$dateTrunc` share.
#[derive(Clone)]
struct Counting {
    name: &'static str,
    unit: Expr,
    zone: ZoneArg,
    week_start: Option<Expr>,
}

impl Counting {
    fn date(&self, v: &Val<'_>, which: &str) -> Result<i64> {
        let code = if self.name == "$dateDiff" { 5166307 } else { 5439012 };
        date_ms(v).ok_or_else(|| {
            Error::location(
                code,
                format!("{} requires '{which}' to be a date, but got {}", self.name, v.type_name()),
            )
        })
    }
    fn zone(&self, scope: &Scope<'_>) -> Result<Option<Zone>> {
        let wrong =
            |e: Error| e.context(format_args!("{} parameter 'timezone' value parsing failed", self.name));
        self.zone.eval(scope).map_err(|e| if e.code.ends_command() { e } else { wrong(e) })
    }
    fn unit_of(&self, v: &Val<'_>) -> Result<Unit> {
        let Some(name) = v.as_word() else {
            return Err(Error::location(
                5439013,
                format!("{} requires 'unit' to be a string, but got {}", self.name, v.type_name()),
            ));
        };
        Unit::parse(&name).ok_or_else(|| {
            Error::location(
                5439014,
                format!("{} parameter 'unit' value cannot be recognized as a time unit: {name}", self.name),
            )
        })
    }
    /// The day that weeks begin with; only looked at when the unit is a week.
    fn week_start<'s>(&'s self, unit: &Val<'_>, scope: &Scope<'s>) -> Result<Option<Val<'s>>> {
        let weeks = unit.as_str().and_then(Unit::parse) == Some(Unit::Week);
        self.week_start.as_ref().filter(|_| weeks).map(|e| e.eval(scope)).transpose()
    }
    fn weekday_of(&self, v: Option<&Val<'_>>) -> Result<Weekday> {
        let Some(v) = v else { return Ok(Weekday::SUNDAY) };
        let Some(name) = v.as_word() else {
            return Err(Error::location(
                5439015,
                format!("{} requires 'startOfWeek' to be a string, but got {}", self.name, v.type_name()),
            ));
        };
        Weekday::parse(&name).ok_or_else(|| {
            Error::location(
                5439016,
                format!(
                    "{} parameter 'startOfWeek' value cannot be recognized as a day of a week: {name}",
                    self.name
                ),
            )
        })
    }
}

impl crate::expr::Part for Counting {
    fn collect<'e>(&'e self, out: &mut Vec<&'e Expr>) {
        self.unit.collect(out);
        self.zone.collect(out);
        self.week_start.collect(out);
    }
    fn collect_mut<'e>(&'e mut self, out: &mut Vec<&'e mut Expr>) {
        self.unit.collect_mut(out);
        self.zone.collect_mut(out);
        self.week_start.collect_mut(out);
    }
}

#[derive(Clone)]
struct DateDiff {
    start: Expr,
    end: Expr,
    by: Counting,
}

pub(in crate::expr) fn parse_diff(name: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let Value::Document(d) = v else {
        return Err(Error::location(5166301, "$dateDiff only supports an object as its argument"));
    };
    let (mut start, mut end, mut unit, mut zone, mut week_start) = (None, None, None, None, None);
    for e in d {
        let slot = match e.name() {
            "startDate" => &mut start,
            "endDate" => &mut end,
            "unit" => &mut unit,
            "timezone" => &mut zone,
            "startOfWeek" => &mut week_start,
            other => {
                return Err(Error::location(5166302, format!("Unrecognized argument to $dateDiff: {other}")));
            }
        };
        *slot = Some(e.value());
    }
    let missing =
        |code, what: &str| Error::location(code, format!("Missing '{what}' parameter to $dateDiff"));
    let start = start.ok_or_else(|| missing(5166303, "startDate"))?;
    let end = end.ok_or_else(|| missing(5166304, "endDate"))?;
    let unit = unit.ok_or_else(|| missing(5166305, "unit"))?;
    // The last one is parsed first.
    let [week_start, zone] = optional([week_start, zone], p)?;
    let (unit, end, start) = (p.parse(unit)?, p.parse(end)?, p.parse(start)?);
    let by = Counting { name, unit, zone: ZoneArg::new(zone), week_start };
    Ok(Expr::Op(Box::new(DateDiff { start, end, by })))
}

impl Op for DateDiff {
    fn name(&self) -> &'static str {
        "$dateDiff"
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let start = self.start.eval(scope)?;
        if start.is_nullish() {
            return Ok(Val::NULL);
        }
        let end = self.end.eval(scope)?;
        if end.is_nullish() {
            return Ok(Val::NULL);
        }
        let unit = self.by.unit.eval(scope)?;
        if unit.is_nullish() {
            return Ok(Val::NULL);
        }
        let week_start = self.by.week_start(&unit, scope)?;
        if week_start.as_ref().is_some_and(Val::is_nullish) {
            return Ok(Val::NULL);
        }
        let Some(zone) = self.by.zone(scope)? else { return Ok(Val::NULL) };
        let start = self.by.date(&start, "startDate")?;
        let end = self.by.date(&end, "endDate")?;
        let unit = self.by.unit_of(&unit)?;
        let week_start = self.by.weekday_of(week_start.as_ref())?;
        let n = difference(start, end, unit, &zone, week_start)
            .ok_or_else(|| Error::location(5166308, "dateDiff overflowed"))?;
        Ok(Val::long(n))
    }
    parts!(start, end, by);
    fn folds(&self) -> bool {
        true
    }
    fn simplify(&mut self, _: &QueryCtx) -> Result<Option<Expr>> {
        self.by.zone.settle();
        Ok(None)
    }
}

#[derive(Clone)]
struct DateTrunc {
    date: Expr,
    size: Option<Expr>,
    by: Counting,
}

pub(in crate::expr) fn parse_trunc(name: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let Value::Document(d) = v else {
        return Err(Error::location(5439007, "$dateTrunc only supports an object as its argument"));
    };
    let (mut date, mut unit, mut size, mut zone, mut week_start) = (None, None, None, None, None);
    for e in d {
        let slot = match e.name() {
            "date" => &mut date,
            "unit" => &mut unit,
            "binSize" => &mut size,
            "timezone" => &mut zone,
            "startOfWeek" => &mut week_start,
            other => {
                return Err(Error::location(
                    5439008,
                    format!(
                        "Unrecognized argument to $dateTrunc: {other}. Expected arguments are date, unit, and optionally, \
                         binSize, timezone, startOfWeek"
                    ),
                ));
            }
        };
        *slot = Some(e.value());
    }
    let date = date.ok_or_else(|| Error::location(5439009, "Missing 'date' parameter to $dateTrunc"))?;
    let unit = unit.ok_or_else(|| Error::location(5439010, "Missing 'unit' parameter to $dateTrunc"))?;
    // The last one is parsed first.
    let [week_start, zone, size] = optional([week_start, zone, size], p)?;
    let (unit, date) = (p.parse(unit)?, p.parse(date)?);
    let by = Counting { name, unit, zone: ZoneArg::new(zone), week_start };
    Ok(Expr::Op(Box::new(DateTrunc { date, size, by })))
}

impl Op for DateTrunc {
    fn name(&self) -> &'static str {
        "$dateTrunc"
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let date = self.date.eval(scope)?;
        if date.is_nullish() {
            return Ok(Val::NULL);
        }
        let unit = self.by.unit.eval(scope)?;
        if unit.is_nullish() {
            return Ok(Val::NULL);
        }
        let size = self.size.as_ref().map(|e| e.eval(scope)).transpose()?;
        if size.as_ref().is_some_and(Val::is_nullish) {
            return Ok(Val::NULL);
        }
        let week_start = self.by.week_start(&unit, scope)?;
        if week_start.as_ref().is_some_and(Val::is_nullish) {
            return Ok(Val::NULL);
        }
        let Some(zone) = self.by.zone(scope)? else { return Ok(Val::NULL) };
        let ms = self.by.date(&date, "date")?;
        let unit = self.by.unit_of(&unit)?;
        let size = match &size {
            None => 1,
            Some(v) => {
                let Some(n) = v.value().and_then(exact_i64) else {
                    return Err(Error::location(
                        5439017,
                        format!(
                            "$dateTrunc requires 'binSize' to be a 64-bit integer, but got value '{}' of type {}",
                            shown(v),
                            v.type_name()
                        ),
                    ));
                };
                if n <= 0 {
                    return Err(Error::location(
                        5439018,
                        format!("$dateTrunc requires 'binSize' to be greater than 0, but got value {n}"),
                    ));
                }
                n
            }
        };
        let week_start = self.by.weekday_of(week_start.as_ref())?;
        let start = truncate(ms, unit, size, &zone, week_start)?;
        Ok(Val::date(start))
    }
    parts!(date, size, by);
    fn folds(&self) -> bool {
        true
    }
    fn simplify(&mut self, _: &QueryCtx) -> Result<Option<Expr>> {
        self.by.zone.settle();
        Ok(None)
    }
}
