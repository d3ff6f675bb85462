//! `$inc` and `$mul`.

use crate::number::Number;
use crate::update::modifier::{Apply, Arg, Effect, Modifier, id_text};
use crate::update::path::Path;
use pando_base::{Error, Result};
use pando_bson::{Elem, ElementType, Value};

#[derive(Debug)]
struct Arith {
    name: &'static str,
    operand: Number,
    combine: fn(Number, Number) -> Option<Number>,
    /// What a missing field becomes.
    missing: Number,
}

fn operand(arg: &Arg<'_>, verb: &str) -> Result<Number> {
    Number::of(arg.elem.value()).ok_or_else(|| {
        Error::type_mismatch(format!("Cannot {verb} with non-numeric argument: {{{:#}}}", arg.elem))
    })
}

pub(super) fn parse_inc(arg: &Arg<'_>) -> Result<Box<dyn Modifier>> {
    let operand = operand(arg, "increment")?;
    Ok(Box::new(Arith { name: "$inc", operand, combine: Number::checked_add, missing: operand }))
}

pub(super) fn parse_mul(arg: &Arg<'_>) -> Result<Box<dyn Modifier>> {
    let operand = operand(arg, "multiply")?;
    // Zero times the operand: its type, a decimal's exponent, NaN and the sign of zero all come out right.
    let missing = Number::Int(0).checked_mul(operand).unwrap_or(Number::Long(0));
    Ok(Box::new(Arith { name: "$mul", operand, combine: Number::checked_mul, missing }))
}

/// Appends an encoded number.
pub(super) fn put(n: Number, out: &mut Vec<u8>) -> ElementType {
    match n {
        Number::Int(n) => {
            out.extend_from_slice(&n.to_le_bytes());
            ElementType::Int32
        }
        Number::Long(n) => {
            out.extend_from_slice(&n.to_le_bytes());
            ElementType::Int64
        }
        Number::Double(d) => {
            out.extend_from_slice(&d.to_le_bytes());
            ElementType::Double
        }
        Number::Decimal(d) => {
            out.extend_from_slice(&d.0);
            ElementType::Decimal128
        }
    }
}

impl Modifier for Arith {
    fn update(&self, cx: &Apply<'_>, old: Elem<'_>, _path: &Path<'_>, out: &mut Vec<u8>) -> Result<Effect> {
        let Some(before) = Number::of(old.value()) else {
            return Err(Error::type_mismatch(format!(
                "Cannot apply {} to a value of non-numeric type. {} has the field '{}' of non-numeric type {}",
                self.name,
                id_text(cx.root),
                old.name(),
                old.ty.name()
            )));
        };
        let Some(after) = (self.combine)(before, self.operand) else {
            let shown = match old.value() {
                Value::Int64(n) => format!("(NumberLong){n}"),
                v => format!("(NumberInt){v}"),
            };
            return Err(Error::bad_value(format!(
                "Failed to apply {} operations to current value ({shown}) for document {}",
                self.name,
                id_text(cx.root)
            )));
        };
        let start = out.len();
        let ty = put(after, out);
        // Another way to write an equal number is no change. NaN differs even from itself.
        let same = match (before, after) {
            (Number::Int(a), Number::Int(b)) => a == b,
            (Number::Long(a), Number::Long(b)) => a == b,
            (Number::Double(a), Number::Double(b)) => a == b,
            (Number::Decimal(a), Number::Decimal(b)) => !a.is_nan() && a.total_cmp(b).is_eq(),
            _ => false,
        };
        if same {
            out.truncate(start);
            return Ok(Effect::Same);
        }
        Ok(Effect::Set(ty))
    }
    fn create(&self, _cx: &Apply<'_>, out: &mut Vec<u8>) -> Result<Option<ElementType>> {
        Ok(Some(put(self.missing, out)))
    }
}
