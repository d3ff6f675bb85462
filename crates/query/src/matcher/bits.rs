//! `$bitsAllSet`, `$bitsAllClear`, `$bitsAnySet`, `$bitsAnyClear`: positions in numbers and binary data.

use super::number::{exact_i64, parse_i64, parse_position, shown};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::decimal128::Rounding;
use pando_bson::{Elem, Value};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BitOp {
    AllSet,
    AllClear,
    AnySet,
    AnyClear,
}

impl BitOp {
    pub fn name(self) -> &'static str {
        match self {
            BitOp::AllSet => "$bitsAllSet",
            BitOp::AllClear => "$bitsAllClear",
            BitOp::AnySet => "$bitsAnySet",
            BitOp::AnyClear => "$bitsAnyClear",
        }
    }
}

#[derive(Clone, Debug)]
pub struct BitTest {
    pub op: BitOp,
    /// Ascending bit positions, 0 = least significant.
    pub positions: Vec<u32>,
}

impl BitTest {
    /// `field` and `arg` name things in messages.
    pub(crate) fn parse(op: BitOp, field: &str, arg: Elem<'_>) -> Result<BitTest> {
        let mut positions = match arg.value() {
            Value::Array(items) => items.iter().map(parse_position).collect::<Result<Vec<u32>>>()?,
            v if v.is_number() => {
                let mask = parse_i64(arg).and_then(|n| {
                    if n < 0 {
                        return Err(format!("Expected a non-negative number in: {}", shown(arg)));
                    }
                    Ok(n)
                });
                let mask = mask.map_err(|m| Error::new(ErrorCode::FailedToParse, m))?;
                (0..64).filter(|i| mask >> i & 1 == 1).collect()
            }
            Value::Binary { bytes, .. } => {
                (0..bytes.len() as u32 * 8).filter(|i| bytes[*i as usize / 8] >> (i % 8) & 1 == 1).collect()
            }
            _ => {
                return Err(Error::bad_value(format!(
                    "{field} takes an Array, a number, or a BinData but received: {}",
                    shown(arg)
                )));
            }
        };
        positions.sort_unstable();
        positions.dedup();
        Ok(BitTest { op, positions })
    }

    pub(crate) fn test(&self, e: Option<&Elem<'_>>) -> bool {
        let Some(e) = e else { return false };
        match e.value() {
            Value::Binary { bytes, .. } => {
                self.decide(|i| bytes.get(i as usize / 8).is_some_and(|b| b >> (i % 8) & 1 == 1))
            }
            // Decimals are rounded; what has no 64-bit value counts as the smallest number.
            Value::Decimal128(d) => {
                let n = d.to_i64(Rounding::HalfEven).unwrap_or(i64::MIN);
                self.decide(|i| n >> i.min(63) & 1 == 1)
            }
            v => match exact_i64(v) {
                // Positions past the 63rd repeat the sign.
                Some(n) => self.decide(|i| n >> i.min(63) & 1 == 1),
                None => false,
            },
        }
    }

    fn decide(&self, is_set: impl Fn(u32) -> bool) -> bool {
        let mut positions = self.positions.iter().map(|i| is_set(*i));
        match self.op {
            BitOp::AllSet => positions.all(|set| set),
            BitOp::AllClear => positions.all(|set| !set),
            BitOp::AnySet => positions.any(|set| set),
            BitOp::AnyClear => positions.any(|set| !set),
        }
    }
}
