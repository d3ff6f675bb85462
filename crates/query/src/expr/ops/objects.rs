//! `$mergeObjects`, `$objectToArray`, `$arrayToObject`, `$getField`, `$setField`, `$unsetField`.

use crate::accumulator::merged;
use crate::expr::{Call, Expr, Held, Op, ParseCtx, Scope, Val, parts, shown};
use pando_base::{Error, HashMap, Result, patience};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc, Value};
use std::collections::hash_map::Entry;

pub(in crate::expr) fn merge_objects<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    let (mut out, mut held) = (DocBuf::new(), Held::default());
    // A single array stands for its elements.
    let elements: Vec<Val<'_>> = match args {
        [one] if one.as_array().is_some() => {
            one.as_array().into_iter().flatten().map(|e| Val::Ref(e.value())).collect()
        }
        many => many.iter().map(Val::borrowed).collect(),
    };
    for arg in &elements {
        if arg.is_nullish() {
            continue;
        }
        let Some(d) = arg.as_doc() else {
            return Err(Error::location(
                40400,
                format!(
                    "$mergeObjects requires object inputs, but input {} is of type {}",
                    shown(arg),
                    arg.type_name()
                ),
            ));
        };
        held.grow_to(out.byte_len() + d.byte_len(), out.byte_len() + d.byte_len())?;
        out = merged(&out, d);
    }
    Ok(Val::Doc(out))
}

pub(in crate::expr) fn object_to_array<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    if args[0].is_nullish() {
        return Ok(Val::NULL);
    }
    let Some(d) = args[0].as_doc() else {
        return Err(Error::location(
            40390,
            format!("$objectToArray requires a document input, found: {}", args[0].type_name()),
        ));
    };
    let mut out = ArrayBuilder::new();
    for e in d {
        out.doc(|b| {
            b.string_bytes("k", e.name_bytes());
            b.raw(e.ty, "v", e.data());
        });
    }
    Ok(Val::Array(out.finish()))
}

/// Later values of a name win, in the place of the first.
#[derive(Default)]
struct Pairs<'a> {
    list: Vec<(&'a [u8], Value<'a>)>,
    /// Where each name stands in the list.
    places: HashMap<&'a [u8], usize>,
}

impl<'a> Pairs<'a> {
    /// `code` is for a name that no field can have.
    fn put(&mut self, key: &'a [u8], v: Value<'a>, code: i32) -> Result<()> {
        if key.contains(&0) {
            return Err(Error::location(code, "Key field cannot contain an embedded null byte"));
        }
        patience::spend(1)?;
        match self.places.entry(key) {
            Entry::Occupied(place) => self.list[*place.get()].1 = v,
            Entry::Vacant(place) => {
                place.insert(self.list.len());
                self.list.push((key, v));
            }
        }
        Ok(())
    }
}

pub(in crate::expr) fn array_to_object<'v>(args: &[Val<'v>], _: &Call<'_>) -> Result<Val<'v>> {
    if args[0].is_nullish() {
        return Ok(Val::NULL);
    }
    let Some(a) = args[0].as_array() else {
        return Err(Error::location(
            40386,
            format!("$arrayToObject requires an array input, found: {}", args[0].type_name()),
        ));
    };
    let mut pairs = Pairs::default();
    let mut as_arrays: Option<bool> = None;
    for e in a {
        match e.value() {
            Value::Array(pair) => {
                if as_arrays == Some(false) {
                    return Err(mixed("Object", "array", 40391));
                }
                as_arrays = Some(true);
                let (key, v) = array_pair(pair)?;
                pairs.put(key, v, 4940400)?;
            }
            Value::Document(pair) => {
                if as_arrays == Some(true) {
                    return Err(mixed("Array", "object", 40396));
                }
                as_arrays = Some(false);
                let (key, v) = object_pair(pair)?;
                pairs.put(key, v, 4940401)?;
            }
            other => {
                return Err(Error::location(
                    40398,
                    format!("Unrecognised input type format for $arrayToObject: {}", other.type_name()),
                ));
            }
        }
    }
    let mut b = DocBuilder::new();
    for (key, v) in pairs.list {
        b.value(key, v);
    }
    Ok(Val::Doc(b.finish()))
}

fn mixed(first: &str, now: &str, code: i32) -> Error {
    Error::location(
        code,
        format!(
            "$arrayToObject requires a consistent input format. Elements mustall be arrays or all be objects. {first} was \
             detected, now found: {now}"
        ),
    )
}

fn array_pair(pair: &RawDoc) -> Result<(&[u8], Value<'_>)> {
    let mut items = pair.iter();
    let (Some(k), Some(v), None) = (items.next(), items.next(), items.next()) else {
        return Err(Error::location(
            40397,
            format!(
                "$arrayToObject requires an array of size 2 arrays,found array of size: {}",
                pair.count()
            ),
        ));
    };
    let k = k.value();
    match k.string_bytes() {
        Some(key) => Ok((key, v.value())),
        None => Err(Error::location(
            40395,
            format!(
                "$arrayToObject requires an array of key-value pairs, where the key must be of type string. Found key \
                 type: {}",
                k.type_name()
            ),
        )),
    }
}

fn object_pair(pair: &RawDoc) -> Result<(&[u8], Value<'_>)> {
    if pair.count() != 2 {
        return Err(Error::location(
            40392,
            format!(
                "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:{}",
                pair.count()
            ),
        ));
    }
    let (Some(k), Some(v)) = (pair.get("k"), pair.get("v")) else {
        return Err(Error::location(
            40393,
            format!(
                "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: {pair}"
            ),
        ));
    };
    match k.string_bytes() {
        Some(key) => Ok((key, v)),
        None => Err(Error::location(
            40394,
            format!(
                "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string. \
                 Found type: {}",
                k.type_name()
            ),
        )),
    }
}

#[derive(Clone)]
struct GetField {
    field: Box<[u8]>,
    input: Expr,
}

/// Named arguments of an operator, each as it is written and parsed, in the order of `names`. They are parsed as they stand.
fn parsed_arguments<'v, const N: usize>(
    d: &'v RawDoc,
    names: [&str; N],
    p: &mut ParseCtx<'_>,
    unknown: impl Fn(&str) -> Error,
) -> Result<[Option<(Value<'v>, Expr)>; N]> {
    let mut out = [const { None }; N];
    for e in d {
        let at = names.iter().position(|n| *n == e.name()).ok_or_else(|| unknown(e.name()))?;
        out[at] = Some((e.value(), p.parse(e.value())?));
    }
    Ok(out)
}

/// The `field` argument: a constant string.
fn field_name(op: &str, (v, e): (Value<'_>, Expr), path: i32, not_string: i32) -> Result<Box<[u8]>> {
    if let Value::String(s) = v
        && s.starts_with('$')
    {
        let shown =
            s.strip_prefix("$$").map_or_else(|| format!("$CURRENT.{}", &s[1..]), |v| format!("$${v}"));
        return Err(Error::location(
            path,
            format!(
                "'{shown}' is a field path reference which is not allowed in this context. Did you mean {{$literal: \
                 '{shown}'}}?"
            ),
        ));
    }
    // Arrays and objects are expressions, whatever is in them.
    let is_made = match v {
        Value::Array(_) => true,
        Value::Document(d) => d.first().is_none_or(|e| !e.name_bytes().starts_with(b"$")),
        _ => false,
    };
    let constant = e.as_const().filter(|_| !is_made);
    match constant {
        Some(v) => match v.string_bytes() {
            Some(s) => Ok(s.into()),
            None => Err(Error::location(
                not_string,
                format!("{op} requires 'field' to evaluate to type String, but got {}", v.type_name()),
            )),
        },
        None => Err(Error::location(
            not_string - 1,
            format!("{op} requires 'field' to evaluate to a constant, but got a non-constant argument"),
        )),
    }
}

pub(in crate::expr) fn parse_get_field(_: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let is_operator = |d: &RawDoc| d.first().is_some_and(|e| e.name_bytes().starts_with(b"$"));
    let Some(d) = v.as_doc().filter(|d| !is_operator(d)) else {
        // The short form names a field of the document.
        let field = p.parse(v)?;
        let field = field_name("$getField", (v, field), 5654600, 5654602)?;
        return Ok(Expr::Op(Box::new(GetField { field, input: p.parse(Value::String("$$CURRENT"))? })));
    };
    let [field, input] = parsed_arguments(d, ["field", "input"], p, |other| {
        Error::location(3041701, format!("$getField found an unknown argument: {other}"))
    })?;
    let field =
        field.ok_or_else(|| Error::location(3041702, "$getField requires 'field' to be specified"))?;
    let (_, input) =
        input.ok_or_else(|| Error::location(3041703, "$getField requires 'input' to be specified"))?;
    let field = field_name("$getField", field, 5654600, 5654602)?;
    Ok(Expr::Op(Box::new(GetField { field, input })))
}

impl Op for GetField {
    fn name(&self) -> &'static str {
        "$getField"
    }
    fn stays(&self) -> bool {
        true
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let input = self.input.eval(scope)?;
        Ok(match &input {
            v if v.is_missing() => Val::Missing,
            v if v.is_nullish() => Val::NULL,
            Val::Ref(Value::Document(d)) => Val::option(d.get(&self.field)),
            v => v.as_doc().map_or(Val::Missing, |d| Val::option(d.get(&self.field)).into_owned()),
        })
    }
    parts!(input);
}

#[derive(Clone)]
struct SetField {
    name: &'static str,
    field: Box<[u8]>,
    input: Expr,
    value: Expr,
}

pub(in crate::expr) fn parse_set_field(
    name: &'static str,
    v: Value<'_>,
    p: &mut ParseCtx<'_>,
) -> Result<Expr> {
    let unset = name == "$unsetField";
    let Value::Document(d) = v else {
        return Err(Error::location(4161100, format!("{name} only supports an object as its argument")));
    };
    let known = ["field", "input", if unset { "" } else { "value" }];
    let [field, input, value] = parsed_arguments(d, known, p, |other| {
        Error::location(4161101, format!("{name} found an unknown argument: {other}"))
    })?;
    let missing =
        |what: &str, code| Error::location(code, format!("{name} requires '{what}' to be specified"));
    let field = field.ok_or_else(|| missing("field", 4161102))?;
    let value = match unset {
        true => Expr::Const(Val::Missing),
        false => value.ok_or_else(|| missing("value", 4161103))?.1,
    };
    let (_, input) = input.ok_or_else(|| missing("input", 4161109))?;
    let field = field_name(name, field, 4161108, 4161107)?;
    Ok(Expr::Op(Box::new(SetField { name, field, input, value })))
}

impl Op for SetField {
    fn name(&self) -> &'static str {
        self.name
    }
    fn stays(&self) -> bool {
        true
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let input = self.input.eval(scope)?;
        if input.is_nullish() {
            return Ok(Val::NULL);
        }
        let Some(d) = input.as_doc() else {
            return Err(Error::location(
                4161105,
                format!("{} requires 'input' to evaluate to type Object", self.name),
            ));
        };
        let value = self.value.eval(scope)?;
        // Such a name is found nowhere, so it can be asked for and removed; but no document can hold it.
        if !matches!(value, Val::Missing) && self.field.contains(&0) {
            return Err(Error::location(16411, "FieldPath field names may not contain '\0'."));
        }
        let mut b = DocBuilder::with_capacity(d.byte_len() + 64);
        let mut found = false;
        for e in d {
            if e.name_bytes() == &*self.field {
                found = true;
                value.put_to(&mut b, &self.field);
            } else {
                b.elem(e);
            }
        }
        if !found {
            value.put_to(&mut b, &self.field);
        }
        Ok(Val::Doc(b.finish()))
    }
    parts!(input, value);
}
