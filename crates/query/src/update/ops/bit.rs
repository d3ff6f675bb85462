//! `$bit`.

use super::arith::put;
use crate::number::Number;
use crate::update::modifier::{Apply, Arg, Effect, Modifier, bare_id_text};
use crate::update::path::Path;
use pando_base::{Error, Result};
use pando_bson::{Elem, ElementType, Value};

#[derive(Clone, Copy, Debug)]
enum Op {
    And,
    Or,
    Xor,
}

#[derive(Debug)]
struct Bit {
    /// Applied one after the other.
    ops: Vec<(Op, Number)>,
}

pub(super) fn parse(arg: &Arg<'_>) -> Result<Box<dyn Modifier>> {
    let Value::Document(spec) = arg.elem.value() else {
        return Err(Error::bad_value(format!(
            "The $bit modifier is not compatible with a {}. You must pass in an embedded document: {{$bit: {{field: \
             {{and/or/xor: #}}}}",
            arg.elem.ty.name()
        )));
    };
    let mut ops = Vec::new();
    for e in spec {
        let op = match e.name() {
            "and" => Op::And,
            "or" => Op::Or,
            "xor" => Op::Xor,
            other => {
                return Err(Error::bad_value(format!(
                    "The $bit modifier only supports 'and', 'or', and 'xor', not '{other}' which is an unknown \
                     operator: {{{e:#}}}"
                )));
            }
        };
        let operand = match Number::of(e.value()) {
            Some(n @ (Number::Int(_) | Number::Long(_))) => n,
            _ => {
                return Err(Error::bad_value(format!(
                    "The $bit modifier field must be an Integer(32/64 bit); a '{}' is not supported here: {{{e:#}}}",
                    e.ty.name()
                )));
            }
        };
        ops.push((op, operand));
    }
    if ops.is_empty() {
        return Err(Error::bad_value(
            "You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}",
        ));
    }
    Ok(Box::new(Bit { ops }))
}

fn combine(op: Op, a: Number, b: Number) -> Number {
    let apply = |x: i64, y: i64| match op {
        Op::And => x & y,
        Op::Or => x | y,
        Op::Xor => x ^ y,
    };
    match (a, b) {
        (Number::Int(x), Number::Int(y)) => Number::Int(apply(x.into(), y.into()) as i32),
        (a, b) => {
            let wide = |n| match n {
                Number::Int(n) => i64::from(n),
                Number::Long(n) => n,
                _ => 0,
            };
            Number::Long(apply(wide(a), wide(b)))
        }
    }
}

impl Modifier for Bit {
    fn update(&self, cx: &Apply<'_>, old: Elem<'_>, _path: &Path<'_>, out: &mut Vec<u8>) -> Result<Effect> {
        let before = match Number::of(old.value()) {
            Some(n @ (Number::Int(_) | Number::Long(_))) => n,
            _ => {
                return Err(Error::bad_value(format!(
                    "Cannot apply $bit to a value of non-integral type.{} has the field {} of non-integer type {}",
                    bare_id_text(cx.root),
                    old.name(),
                    old.ty.name()
                )));
            }
        };
        let after = self.ops.iter().fold(before, |n, (op, operand)| combine(*op, n, *operand));
        let start = out.len();
        let ty = put(after, out);
        if ty == old.ty && out[start..] == *old.data() {
            return Ok(Effect::Same);
        }
        Ok(Effect::Set(ty))
    }
    fn create(&self, _cx: &Apply<'_>, out: &mut Vec<u8>) -> Result<Option<ElementType>> {
        Ok(Some(put(self.ops.iter().fold(Number::Int(0), |n, (op, operand)| combine(*op, n, *operand)), out)))
    }
}
