//! Small ones: `$type`, `$isNumber`, sizes, timestamps' parts, `$rand`, `$meta`, `$toHashedIndexKey`, `$median`,
//! `$percentile`.

use crate::accumulator::percentile::Percentile;
use crate::accumulator::{Accumulator, parse_percentile};
use crate::expr::{Call, Expr, Op, ParseCtx, Scope, Val, parts};
use crate::facts::MetaField;
use pando_base::{Error, Result};
use pando_bson::{ElementType, Value};

pub(in crate::expr) fn type_of<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    Ok(Val::string(args[0].type_name()))
}

pub(in crate::expr) fn is_number<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    Ok(Val::bool(args[0].value().is_some_and(|v| v.is_number())))
}

pub(in crate::expr) fn binary_size<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    match args[0].value() {
        None | Some(Value::Null | Value::Undefined) => Ok(Val::NULL),
        Some(v) if v.element_type() == ElementType::String => {
            Ok(Val::count(v.string_bytes().unwrap_or_default().len()))
        }
        Some(Value::Binary { bytes, .. }) => Ok(Val::count(bytes.len())),
        Some(v) => Err(Error::location(
            51276,
            format!("$binarySize requires a string or BinData argument, found: {}", v.type_name()),
        )),
    }
}

pub(in crate::expr) fn bson_size<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    match args[0].value() {
        None | Some(Value::Null | Value::Undefined) => Ok(Val::NULL),
        Some(Value::Document(d)) => Ok(Val::count(d.byte_len())),
        Some(v) => Err(Error::location(
            31393,
            format!("$bsonSize requires a document input, found: {}", v.type_name()),
        )),
    }
}

fn timestamp<'v>(
    args: &[Val<'v>],
    call: &Call<'_>,
    part: fn(pando_base::Timestamp) -> u32,
    code: i32,
) -> Result<Val<'v>> {
    match args[0].value() {
        None | Some(Value::Null | Value::Undefined) => Ok(Val::NULL),
        Some(Value::Timestamp(t)) => Ok(Val::long(part(t).into())),
        Some(v) => Err(Error::location(
            code,
            format!(" Argument to {} must be a timestamp, but is {}", call.name, v.type_name()),
        )),
    }
}

pub(in crate::expr) fn ts_second<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    timestamp(args, call, pando_base::Timestamp::secs, 5687301)
}
pub(in crate::expr) fn ts_increment<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    timestamp(args, call, pando_base::Timestamp::inc, 5687302)
}

/// The value that a hashed index stores. An array is no list of arguments here, and nothing is evaluated ahead.
#[derive(Clone)]
struct Hashed {
    of: Expr,
}

pub(in crate::expr) fn parse_hashed(_: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    Ok(Expr::Op(Box::new(Hashed { of: p.parse(v)? })))
}

impl Op for Hashed {
    fn name(&self) -> &'static str {
        "$toHashedIndexKey"
    }
    fn stays(&self) -> bool {
        true
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let v = self.of.eval(scope)?;
        Ok(Val::long(pando_bson::hashed::hashed_key(v.value().unwrap_or(Value::Null))))
    }
    parts!(of);
}

#[derive(Clone)]
struct Rand;

pub(in crate::expr) fn parse_rand(_: &'static str, v: Value<'_>, _: &mut ParseCtx<'_>) -> Result<Expr> {
    match v {
        Value::Document(d) if d.is_empty() => Ok(Expr::Op(Box::new(Rand))),
        Value::Array(a) if a.is_empty() => Ok(Expr::Op(Box::new(Rand))),
        Value::Document(_) | Value::Array(_) => {
            Err(Error::location(3040501, "$rand does not currently accept arguments"))
        }
        _ => Err(Error::location(10065, "invalid parameter: expected an object ($rand)")),
    }
}

impl Op for Rand {
    fn name(&self) -> &'static str {
        "$rand"
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        Ok(Val::double(scope.ctx.random.next_f64()))
    }
    parts!();
}

/// What is known of the row beside its document.
#[derive(Clone)]
struct Meta(MetaField);

pub(in crate::expr) fn parse_meta(_: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let field = MetaField::parse(v)?;
    p.metas.push(field);
    Ok(Expr::Op(Box::new(Meta(field))))
}

impl Op for Meta {
    fn name(&self) -> &'static str {
        "$meta"
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let Some(facts) = scope.facts else { return Ok(Val::Missing) };
        Ok(match self.0 {
            MetaField::TextScore => facts.text_score.map_or(Val::Missing, Val::double),
            MetaField::SortKey => match &facts.sort_key {
                Some(key) => Val::Ref(Value::Array(key)),
                None => Val::Missing,
            },
            MetaField::GeoNearDistance => {
                facts.near.as_ref().map_or(Val::Missing, |n| Val::double(n.distance))
            }
            MetaField::GeoNearPoint => Val::option(facts.near.as_ref().and_then(|n| n.place.get(""))),
            MetaField::RecordId => Val::option(facts.place.as_ref().and_then(|place| place.get(""))),
            MetaField::IndexKey => {
                facts.index_key.as_deref().map_or(Val::Missing, |k| Val::Ref(Value::Document(k)))
            }
            _ => Val::Missing,
        })
    }
    parts!();
}

#[derive(Clone)]
struct Quantile {
    name: &'static str,
    input: Expr,
    ps: Vec<f64>,
    single: bool,
}

pub(in crate::expr) fn parse_quantile(
    name: &'static str,
    v: Value<'_>,
    p: &mut ParseCtx<'_>,
) -> Result<Expr> {
    let single = name == "$median";
    let (input, ps) = parse_percentile(name, v, single, p)?;
    Ok(Expr::Op(Box::new(Quantile { name, input, ps, single })))
}

impl Op for Quantile {
    fn name(&self) -> &'static str {
        self.name
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let mut acc = Percentile::new(self.ps.clone(), self.single);
        let input = self.input.eval(scope)?;
        match input.as_array() {
            Some(a) => {
                for e in a {
                    acc.add(Val::Ref(e.value()), scope.ctx)?;
                }
            }
            None => acc.add(input, scope.ctx)?,
        }
        acc.result()
    }
    parts!(input);
}
