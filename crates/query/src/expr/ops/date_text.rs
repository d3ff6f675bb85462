//! `$dateToString` and `$dateFromString`.

use super::date_parts::{ZoneArg, to_date};
use crate::ctx::QueryCtx;
use crate::date::{DEFAULT_FORMAT, check_parsed, check_printed, parse_format, parse_free, print};
use crate::expr::{Expr, Op, ParseCtx, Scope, Val, optional, parts, shown};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::Value;

#[derive(Clone)]
struct DateToString {
    date: Expr,
    format: Option<Expr>,
    zone: ZoneArg,
    on_null: Option<Expr>,
}

pub(in crate::expr) fn parse_to_string(_: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let Value::Document(d) = v else {
        return Err(Error::location(18629, "$dateToString only supports an object as its argument"));
    };
    let (mut date, mut format, mut zone, mut on_null) = (None, None, None, None);
    for e in d {
        let slot = match e.name() {
            "date" => &mut date,
            "format" => &mut format,
            "timezone" => &mut zone,
            "onNull" => &mut on_null,
            other => {
                return Err(Error::location(
                    18534,
                    format!("Unrecognized argument to $dateToString: {other}"),
                ));
            }
        };
        *slot = Some(e.value());
    }
    let date = date.ok_or_else(|| Error::location(18628, "Missing 'date' parameter to $dateToString"))?;
    let date = p.parse(date)?;
    let [format, zone, on_null] = optional([format, zone, on_null], p)?;
    Ok(Expr::Op(Box::new(DateToString { date, format, zone: ZoneArg::new(zone), on_null })))
}

fn printed_format<'v>(v: &'v Val<'_>) -> Result<&'v str> {
    let Some(format) = v.as_str() else {
        return Err(Error::location(
            18533,
            format!(
                "$dateToString requires that 'format' be a string, found: {} with value {}",
                v.type_name(),
                shown(v)
            ),
        ));
    };
    check_printed(format)?;
    Ok(format)
}

impl Op for DateToString {
    fn name(&self) -> &'static str {
        "$dateToString"
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let date = self.date.eval(scope)?;
        let format = self.format.as_ref().map(|e| e.eval(scope)).transpose()?;
        let no_format = format.as_ref().is_some_and(Val::is_nullish);
        let format = format.as_ref().filter(|v| !v.is_nullish()).map(printed_format).transpose()?;
        let zone = self.zone.eval(scope)?;
        if date.is_nullish() {
            return self.on_null.as_ref().map_or(Ok(Val::NULL), |e| e.eval(scope));
        }
        let Some(zone) = zone.filter(|_| !no_format) else { return Ok(Val::NULL) };
        let ms = to_date(&date)?;
        Ok(Val::Str(print(ms, &zone, format.unwrap_or(DEFAULT_FORMAT))?))
    }
    parts!(date, format, zone, on_null);
    fn folds(&self) -> bool {
        true
    }
    fn simplify(&mut self, _: &QueryCtx) -> Result<Option<Expr>> {
        self.zone.settle();
        Ok(None)
    }
}

#[derive(Clone)]
struct DateFromString {
    text: Expr,
    format: Option<Expr>,
    zone: ZoneArg,
    on_null: Option<Expr>,
    on_error: Option<Expr>,
}

pub(in crate::expr) fn parse_from_string(
    _: &'static str,
    v: Value<'_>,
    p: &mut ParseCtx<'_>,
) -> Result<Expr> {
    let Value::Document(d) = v else {
        return Err(Error::location(
            40540,
            format!("$dateFromString only supports an object as an argument, found: {}", v.type_name()),
        ));
    };
    let (mut text, mut format, mut zone, mut on_null, mut on_error) = (None, None, None, None, None);
    for e in d {
        let slot = match e.name() {
            "dateString" => &mut text,
            "format" => &mut format,
            "timezone" => &mut zone,
            "onNull" => &mut on_null,
            "onError" => &mut on_error,
            other => {
                return Err(Error::location(
                    40541,
                    format!("Unrecognized argument to $dateFromString: {other}"),
                ));
            }
        };
        *slot = Some(e.value());
    }
    let text =
        text.ok_or_else(|| Error::location(40542, "Missing 'dateString' parameter to $dateFromString"))?;
    let text = p.parse(text)?;
    let [zone, format, on_null, on_error] = optional([zone, format, on_null, on_error], p)?;
    Ok(Expr::Op(Box::new(DateFromString { text, format, zone: ZoneArg::new(zone), on_null, on_error })))
}

impl Op for DateFromString {
    fn name(&self) -> &'static str {
        "$dateFromString"
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let text = self.text.eval(scope)?;
        let format = self.format.as_ref().map(|e| e.eval(scope)).transpose()?;
        if let Some(f) = format.as_ref().filter(|f| !f.is_nullish()) {
            let Some(f) = f.as_str() else {
                return Err(Error::location(
                    40684,
                    format!(
                        "$dateFromString requires that 'format' be a string, found: {} with value {}",
                        f.type_name(),
                        shown(f)
                    ),
                ));
            };
            check_parsed(f)?;
        }
        let zone = self.zone.eval(scope)?;
        if text.is_nullish() {
            return self.on_null.as_ref().map_or(Ok(Val::NULL), |e| e.eval(scope));
        }
        let parsed = match text.as_str() {
            None => Err(Error::new(
                ErrorCode::ConversionFailure,
                format!(
                    "$dateFromString requires that 'dateString' be a string, found: {} with value {}",
                    text.type_name(),
                    shown(&text)
                ),
            )),
            Some(s) => {
                let Some(zone) = &zone else { return Ok(Val::NULL) };
                let zone = self.zone.is_given().then_some(zone);
                match &format {
                    None => parse_free(s, zone),
                    Some(f) => match f.as_str() {
                        Some(f) => parse_format(s, f, zone),
                        None => return Ok(Val::NULL),
                    },
                }
            }
        };
        match (parsed, &self.on_error) {
            (Ok(ms), _) => Ok(Val::date(ms)),
            (Err(e), Some(fallback)) if e.code == ErrorCode::ConversionFailure => fallback.eval(scope),
            (Err(e), _) => Err(e),
        }
    }
    parts!(text, format, zone, on_null, on_error);
    fn folds(&self) -> bool {
        true
    }
    fn simplify(&mut self, _: &QueryCtx) -> Result<Option<Expr>> {
        self.zone.settle();
        Ok(None)
    }
}
