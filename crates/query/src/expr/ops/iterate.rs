//! Array operators that evaluate an expression per element: `$map`, `$filter`, `$reduce`, `$zip`, `$sortArray`,
//! and the `$firstN` family over an array.

use super::array::exact_i32;
use crate::accumulator::{Accumulator, NFamily, NKind, check_n};
use crate::expr::{Expr, Held, Op, ParseCtx, Scope, Val, VarId, check_user_var_name, parts, shown};
use pando_base::limits::REDUCE_STEPS_PER_LOOK;
use pando_base::{Error, Result, patience};
use pando_bson::{ArrayBuilder, Elem, RawDoc, Value};
use std::cmp::Ordering;

#[derive(Clone)]
struct Map {
    input: Expr,
    var: VarId,
    body: Expr,
}

/// Parses `body` with one more variable.
fn with_var(p: &mut ParseCtx<'_>, name: &str, body: Value<'_>) -> Result<(VarId, Expr)> {
    let mark = p.mark();
    let var = p.bind(name);
    let body = p.parse(body);
    p.forget(mark);
    Ok((var, body?))
}

/// The `as` of `$map` and `$filter`.
fn var_name<'v>(v: Option<Value<'v>>) -> Result<&'v str> {
    match v {
        None => Ok("this"),
        Some(Value::String(name)) => {
            check_user_var_name(name)?;
            Ok(name)
        }
        // What is no string counts as an empty one.
        Some(_) => check_user_var_name("").map(|()| ""),
    }
}

pub(in crate::expr) fn parse_map(_: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let Value::Document(d) = v else {
        return Err(Error::location(16878, "$map only supports an object as its argument"));
    };
    let (mut input, mut name, mut body) = (None, None, None);
    for e in d {
        match e.name() {
            "input" => input = Some(e.value()),
            "as" => name = Some(e.value()),
            "in" => body = Some(e.value()),
            other => return Err(Error::location(16879, format!("Unrecognized parameter to $map: {other}"))),
        }
    }
    let input = input.ok_or_else(|| Error::location(16880, "Missing 'input' parameter to $map"))?;
    let body = body.ok_or_else(|| Error::location(16882, "Missing 'in' parameter to $map"))?;
    let input = p.parse(input)?;
    let (var, body) = with_var(p, var_name(name)?, body)?;
    Ok(Expr::Op(Box::new(Map { input, var, body })))
}

impl Op for Map {
    fn name(&self) -> &'static str {
        "$map"
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let input = self.input.eval(scope)?;
        if input.is_nullish() {
            return Ok(Val::NULL);
        }
        let Some(array) = input.as_array() else {
            return Err(Error::location(
                16883,
                format!("input to $map must be an array not {}", input.type_name()),
            ));
        };
        let _held = Held::of(&input)?;
        let (mut out, mut made) = (ArrayBuilder::new(), Held::default());
        for e in array {
            let frame = scope.frame_value(self.var, Some(e.value()));
            self.body.eval(&scope.within(&frame))?.push_to(&mut out);
            made.grow_to(out.byte_len(), 0)?;
        }
        Ok(Val::Array(out.finish()))
    }
    parts!(input, body);
}

#[derive(Clone)]
struct Filter {
    input: Expr,
    var: VarId,
    cond: Expr,
    limit: Option<Expr>,
}

pub(in crate::expr) fn parse_filter(_: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let Value::Document(d) = v else {
        return Err(Error::location(28646, "$filter only supports an object as its argument"));
    };
    let (mut input, mut name, mut cond, mut limit) = (None, None, None, None);
    for e in d {
        match e.name() {
            "input" => input = Some(e.value()),
            "as" => name = Some(e.value()),
            "cond" => cond = Some(e.value()),
            "limit" => limit = Some(e.value()),
            other => {
                return Err(Error::location(28647, format!("Unrecognized parameter to $filter: {other}")));
            }
        }
    }
    let input = input.ok_or_else(|| Error::location(28648, "Missing 'input' parameter to $filter"))?;
    let cond = cond.ok_or_else(|| Error::location(28650, "Missing 'cond' parameter to $filter"))?;
    let input = p.parse(input)?;
    let name = var_name(name)?;
    let (var, cond) = with_var(p, name, cond)?;
    let limit = limit.map(|l| p.parse(l)).transpose()?;
    Ok(Expr::Op(Box::new(Filter { input, var, cond, limit })))
}

impl Op for Filter {
    fn name(&self) -> &'static str {
        "$filter"
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let input = self.input.eval(scope)?;
        if input.is_nullish() {
            return Ok(Val::NULL);
        }
        let Some(array) = input.as_array() else {
            return Err(Error::location(
                28651,
                format!("input to $filter must be an array not {}", input.type_name()),
            ));
        };
        if array.is_empty() {
            return Ok(Val::Array(ArrayBuilder::new().finish()));
        }
        let mut left = usize::MAX;
        if let Some(e) = &self.limit {
            let v = e.eval(scope)?;
            if !v.is_nullish() {
                let Some(n) = exact_i32(&v) else {
                    return Err(Error::location(
                        327391,
                        format!(
                            "$filter: limit must be represented as a 32-bit integral value: {}",
                            shown(&v)
                        ),
                    ));
                };
                left = usize::try_from(n).ok().filter(|n| *n > 0).ok_or_else(|| {
                    Error::location(327392, format!("$filter: limit must be greater than 0: {n}"))
                })?;
            }
        }
        let _held = Held::of(&input)?;
        let (mut out, mut made) = (ArrayBuilder::new(), Held::default());
        for e in array {
            made.grow_to(out.byte_len(), 0)?;
            if left == 0 {
                break;
            }
            let frame = scope.frame_value(self.var, Some(e.value()));
            if self.cond.eval(&scope.within(&frame))?.is_truthy() {
                out.raw(e.ty, e.data());
                left -= 1;
            }
        }
        Ok(Val::Array(out.finish()))
    }
    parts!(input, cond, limit);
}

#[derive(Clone)]
struct Reduce {
    input: Expr,
    initial: Expr,
    this: VarId,
    value: VarId,
    body: Expr,
}

pub(in crate::expr) fn parse_reduce(_: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let Value::Document(d) = v else {
        return Err(Error::location(
            40075,
            format!("$reduce requires an object as an argument, found: {}", v.type_name()),
        ));
    };
    let (mut input, mut initial, mut folded) = (None, None, None);
    for e in d {
        match e.name() {
            "input" => input = Some(p.parse(e.value())?),
            "initialValue" => initial = Some(p.parse(e.value())?),
            "in" => {
                let mark = p.mark();
                let (this, value) = (p.bind("this"), p.bind("value"));
                let body = p.parse(e.value());
                p.forget(mark);
                folded = Some((this, value, body?));
            }
            other => {
                return Err(Error::location(40076, format!("$reduce found an unknown argument: {other}")));
            }
        }
    }
    let missing =
        |code, what: &str| Error::location(code, format!("$reduce requires '{what}' to be specified"));
    let input = input.ok_or_else(|| missing(40077, "input"))?;
    let initial = initial.ok_or_else(|| missing(40078, "initialValue"))?;
    let (this, value, body) = folded.ok_or_else(|| missing(40079, "in"))?;
    Ok(Expr::Op(Box::new(Reduce { input, initial, this, value, body })))
}

impl Op for Reduce {
    fn name(&self) -> &'static str {
        "$reduce"
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let input = self.input.eval(scope)?;
        if input.is_nullish() {
            return Ok(Val::NULL);
        }
        let Some(array) = input.as_array() else {
            return Err(Error::location(
                40080,
                format!("$reduce requires that 'input' be an array, found: {}", shown(&input)),
            ));
        };
        let _held = Held::of(&input)?;
        let mut value = self.initial.eval(scope)?.into_owned();
        let mut made = Held::default();
        for (step, e) in array.iter().enumerate() {
            made.grow_to(value.heap_bytes(), value.heap_bytes())?;
            if step.is_multiple_of(REDUCE_STEPS_PER_LOOK) {
                value.check_depth()?;
            }
            let this = scope.frame_value(self.this, Some(e.value()));
            let inner = scope.within(&this);
            let so_far = inner.frame(self.value, &value);
            let next = self.body.eval(&inner.within(&so_far))?.into_owned();
            value = next;
        }
        value.check_depth()?;
        Ok(value)
    }
    parts!(input, initial, body);
}

#[derive(Clone)]
struct Zip {
    inputs: Vec<Expr>,
    longest: bool,
    defaults: Vec<Expr>,
}

pub(in crate::expr) fn parse_zip(_: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let Value::Document(d) = v else {
        return Err(Error::location(
            34460,
            format!("$zip only supports an object as an argument, found {}", v.type_name()),
        ));
    };
    let mut zip = Zip { inputs: Vec::new(), longest: false, defaults: Vec::new() };
    let list = |v: Value<'_>, code, what: &str, p: &mut ParseCtx<'_>| -> Result<Vec<Expr>> {
        match v {
            Value::Array(a) => a.iter().map(|e| p.parse(e.value())).collect(),
            v => Err(Error::location(
                code,
                format!("{what} must be an array of expressions, found {}", v.type_name()),
            )),
        }
    };
    for e in d {
        match e.name() {
            "inputs" => zip.inputs = list(e.value(), 34461, "inputs", p)?,
            "defaults" => zip.defaults = list(e.value(), 34462, "defaults", p)?,
            "useLongestLength" => match e.value() {
                Value::Boolean(b) => zip.longest = b,
                v => {
                    return Err(Error::location(
                        34463,
                        format!("useLongestLength must be a bool, found {}", v.type_name()),
                    ));
                }
            },
            other => return Err(Error::location(34464, format!("$zip found an unknown argument: {other}"))),
        }
    }
    if zip.inputs.is_empty() {
        return Err(Error::location(34465, "$zip requires at least one input array"));
    }
    if !zip.defaults.is_empty() {
        if !zip.longest {
            return Err(Error::location(34466, "cannot specify defaults unless useLongestLength is true"));
        }
        if zip.defaults.len() != zip.inputs.len() {
            return Err(Error::location(34467, "defaults and inputs must have the same length"));
        }
    }
    Ok(Expr::Op(Box::new(zip)))
}

impl Op for Zip {
    fn name(&self) -> &'static str {
        "$zip"
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let (mut values, mut held, mut bytes) = (Vec::with_capacity(self.inputs.len()), Held::default(), 0);
        for e in &self.inputs {
            let v = e.eval(scope)?;
            if v.is_nullish() {
                return Ok(Val::NULL);
            }
            if v.as_array().is_none() {
                return Err(Error::location(
                    34468,
                    format!("$zip found a non-array expression in input: {}", shown(&v)),
                ));
            }
            bytes += v.heap_bytes();
            held.set(bytes)?;
            values.push(v);
        }
        let defaults = self.defaults.iter().map(|e| e.eval(scope)).collect::<Result<Vec<_>>>()?;
        let arrays: Vec<&RawDoc> = values.iter().filter_map(Val::as_array).collect();
        let lengths = arrays.iter().map(|a| a.count());
        let rows = if self.longest { lengths.max() } else { lengths.min() }.unwrap_or(0);
        let mut columns: Vec<_> = arrays.iter().map(|a| a.iter()).collect();
        let (mut out, mut made) = (ArrayBuilder::new(), Held::default());
        for _ in 0..rows {
            made.grow_to(out.byte_len(), columns.len() * 16)?;
            out.array(|row| {
                for (i, column) in columns.iter_mut().enumerate() {
                    match (column.next(), defaults.get(i)) {
                        (Some(e), _) => {
                            row.raw(e.ty, e.data());
                        }
                        (None, Some(default)) => default.push_to(row),
                        (None, None) => {
                            row.value(Value::Null);
                        }
                    }
                }
            });
        }
        Ok(Val::Array(out.finish()))
    }
    parts!(inputs, defaults);
}

#[derive(Clone)]
struct SortArray {
    input: Expr,
    order: SortOrder,
}

#[derive(Clone)]
enum SortOrder {
    Whole { descending: bool },
    Fields(Vec<(Vec<String>, bool)>),
}

pub(in crate::expr) fn parse_sort_array(_: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let Value::Document(d) = v else {
        return Err(Error::location(
            2942500,
            format!("$sortArray requires an object as an argument, found: {}", v.type_name()),
        ));
    };
    let (mut input, mut by) = (None, None);
    for e in d {
        match e.name() {
            "input" => input = Some(p.parse(e.value())?),
            "sortBy" => by = Some(e),
            other => {
                return Err(Error::location(
                    2942501,
                    format!("$sortArray found an unknown argument: {other}"),
                ));
            }
        }
    }
    let input =
        input.ok_or_else(|| Error::location(2942502, "$sortArray requires 'input' to be specified"))?;
    let by = by.ok_or_else(|| Error::location(2942503, "$sortArray requires 'sortBy' to be specified"))?;
    Ok(Expr::Op(Box::new(SortArray { input, order: sort_order(by)? })))
}

fn descending(v: Value<'_>) -> Option<bool> {
    match crate::matcher::exact_i64(v) {
        Some(1) => Some(false),
        Some(-1) => Some(true),
        _ => None,
    }
}

fn sort_order(e: Elem<'_>) -> Result<SortOrder> {
    let bad = |text: &str| Error::location(2942505, format!("BadValue: {text}"));
    match e.value() {
        Value::Document(fields) => {
            if fields.is_empty() {
                return Err(bad("The sort pattern is empty when it should be a set of fields."));
            }
            let mut out = Vec::new();
            for f in fields {
                let down = descending(f.value());
                let down = down.ok_or_else(|| bad("The sort element value must be either 1 or -1"))?;
                let path = f.path()?;
                if path.is_empty() {
                    return Err(bad("The sort field cannot be empty"));
                }
                out.push((path.split('.').map(str::to_owned).collect(), down));
            }
            Ok(SortOrder::Fields(out))
        }
        v if v.is_number() => match descending(v) {
            Some(descending) => Ok(SortOrder::Whole { descending }),
            None => Err(Error::location(2942506, "The $sort element value must be either 1 or -1")),
        },
        _ => Err(Error::location(
            2942507,
            "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields",
        )),
    }
}

fn at_path<'d>(v: Value<'d>, path: &[String]) -> Value<'d> {
    let mut at = v;
    for part in path {
        let (Value::Document(d) | Value::Array(d)) = at else { return Value::Null };
        match d.get(part) {
            Some(v) => at = v,
            None => return Value::Null,
        }
    }
    at
}

impl Op for SortArray {
    fn name(&self) -> &'static str {
        "$sortArray"
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let input = self.input.eval(scope)?;
        if input.is_nullish() {
            return Ok(Val::NULL);
        }
        let Some(array) = input.as_array() else {
            return Err(Error::location(
                2942504,
                format!(
                    "The input argument to $sortArray must be an array, but was of type: {}",
                    input.type_name()
                ),
            ));
        };
        let _held = Held::of(&input)?;
        let mut elements: Vec<Elem<'_>> = array.iter().collect();
        let mut listed = Held::default();
        listed.grow_to(std::mem::size_of_val(&*elements), array.byte_len())?;
        let directed = |o: Ordering, down: bool| if down { o.reverse() } else { o };
        patience::sort_by(&mut elements, patience::COMPARE_STEPS, |a, b| match &self.order {
            SortOrder::Whole { descending } => directed(scope.ctx.compare(a.value(), b.value()), *descending),
            SortOrder::Fields(fields) => fields
                .iter()
                .map(|(path, down)| {
                    directed(scope.ctx.compare(at_path(a.value(), path), at_path(b.value(), path)), *down)
                })
                .find(|o| o.is_ne())
                .unwrap_or(Ordering::Equal),
        })?;
        let mut out = ArrayBuilder::new();
        for e in elements {
            out.raw(e.ty, e.data());
        }
        Ok(Val::Array(out.finish()))
    }
    parts!(input);
}

/// `$firstN` and its kin over one array.
#[derive(Clone)]
struct OverArray {
    name: &'static str,
    kind: NKind,
    input: Expr,
    n: Expr,
}

pub(in crate::expr) fn parse_n(name: &'static str, v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<Expr> {
    let Value::Document(d) = v else {
        let code = if matches!(name, "$minN" | "$maxN") { 5787900 } else { 5787801 };
        return Err(Error::location(code, format!("specification must be an object; found {name}: {v:#}")));
    };
    let (mut input, mut n) = (None, None);
    for e in d {
        match e.name() {
            "input" => input = Some(p.parse(e.value())?),
            "n" => n = Some(p.parse(e.value())?),
            other => {
                return Err(Error::location(5787901, format!("Unknown argument for 'n' operator: {other}")));
            }
        }
    }
    let n = n.ok_or_else(|| Error::location(5787906, "Missing value for 'n'"))?;
    let input = input.ok_or_else(|| Error::location(5787907, "Missing value for 'input'"))?;
    let kind = match name {
        "$firstN" => NKind::First,
        "$lastN" => NKind::Last,
        "$minN" => NKind::Min,
        _ => NKind::Max,
    };
    Ok(Expr::Op(Box::new(OverArray { name, kind, input, n })))
}

impl Op for OverArray {
    fn name(&self) -> &'static str {
        self.name
    }
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        let n = check_n(&self.n.eval(scope)?)?;
        let input = self.input.eval(scope)?;
        let Some(array) = input.as_array() else {
            return Err(Error::location(5788200, "Input must be an array"));
        };
        let mut acc = NFamily::new(self.name, self.kind, n, false);
        let _held = Held::of(&input)?;
        for e in array {
            patience::spend(1)?;
            acc.add(Val::Ref(e.value()), scope.ctx)?;
        }
        acc.result()
    }
    fn stays(&self) -> bool {
        true
    }
    parts!(input, n);
}
