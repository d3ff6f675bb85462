//! Values as numbers whose differences are small, and back.

use super::{Literal, malformed};
use crate::types::ElementType as T;
use pando_base::Result;

/// How the differences of a type are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Of 64 bits.
    Narrow,
    /// Of 64 bits, between one difference and the next.
    Twice,
    /// Of 128 bits.
    Wide,
    /// The value before, or a literal.
    Repeat,
}

pub(super) fn kind(ty: T) -> Kind {
    match ty {
        T::Double | T::Int32 | T::Int64 | T::Boolean | T::Null | T::Undefined => Kind::Narrow,
        T::ObjectId | T::DateTime | T::Timestamp => Kind::Twice,
        T::String | T::JavaScript | T::Binary | T::Decimal128 => Kind::Wide,
        _ => Kind::Repeat,
    }
}

/// How doubles become whole numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Scale {
    /// Their bits.
    Bits,
    /// Multiplied by this.
    By(f64),
}

impl Scale {
    /// From the upper half of a control byte.
    pub(super) fn of(control: u8) -> Result<Scale> {
        Ok(match control >> 4 {
            0x8 => Scale::Bits,
            0x9 => Scale::By(1.0),
            0xA => Scale::By(10.0),
            0xB => Scale::By(100.0),
            0xC => Scale::By(10_000.0),
            0xD => Scale::By(100_000_000.0),
            _ => return Err(malformed("an unknown scale")),
        })
    }
}

/// Integers that doubles tell apart.
const EXACT_DOUBLES: f64 = 9_007_199_254_740_992.0;

fn double_as_number(v: f64, scale: Scale) -> Option<i64> {
    match scale {
        Scale::Bits => Some(v.to_bits() as i64),
        Scale::By(n) => {
            let scaled = (v * n).round();
            let fits = scaled.abs() <= EXACT_DOUBLES;
            (fits && (scaled / n).to_bits() == v.to_bits()).then_some(scaled as i64)
        }
    }
}

/// Places in an ObjectId by how fast they change, the fastest first. The other five are those of a process.
const PLACES_BY_CHANGE: [usize; 7] = [11, 3, 10, 2, 9, 1, 0];

fn int<const N: usize>(data: &[u8]) -> Option<[u8; N]> {
    data.first_chunk::<N>().copied()
}

/// A value as a number; `None` when it has none, so that only a repetition of it can follow.
pub(super) fn to_number(v: &Literal, scale: Scale) -> Option<u128> {
    let d = &v.data[..];
    let narrow = |n: i64| u128::from(n as u64);
    Some(match v.ty {
        T::Double => narrow(double_as_number(f64::from_le_bytes(int(d)?), scale)?),
        T::Int32 => narrow(i32::from_le_bytes(int(d)?).into()),
        T::Int64 | T::DateTime | T::Timestamp => narrow(i64::from_le_bytes(int(d)?)),
        T::Boolean => narrow((*d.first()?).into()),
        T::Null | T::Undefined => 0,
        T::ObjectId => {
            let mut bytes = [0; 16];
            for (to, from) in PLACES_BY_CHANGE.iter().enumerate() {
                bytes[to] = *d.get(*from)?;
            }
            u128::from_le_bytes(bytes)
        }
        T::Decimal128 => u128::from_le_bytes(int(d)?),
        T::String | T::JavaScript => {
            let text = d.get(4..d.len().checked_sub(1)?)?;
            if text.len() > 16 || text.first() == Some(&0) {
                return Some(0);
            }
            text.iter().fold(0, |n, b| n << 8 | u128::from(*b))
        }
        T::Binary => {
            let bytes = d.get(5..)?;
            let mut padded = [0; 16];
            padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
            u128::from_le_bytes(padded)
        }
        _ => return None,
    })
}

/// Makes `v` the value with this number; what the number does not tell stays.
pub(super) fn from_number(v: &mut Literal, n: u128, scale: Scale) -> Result<()> {
    let narrow = n as u64 as i64;
    let out_of_range = || malformed("a difference that leads out of its type");
    match v.ty {
        T::Double => {
            let value = match scale {
                Scale::Bits => f64::from_bits(narrow as u64),
                Scale::By(n) => narrow as f64 / n,
            };
            v.data = value.to_le_bytes().to_vec();
        }
        T::Int32 => v.data = i32::try_from(narrow).map_err(|_| out_of_range())?.to_le_bytes().to_vec(),
        T::Int64 | T::DateTime | T::Timestamp => v.data = narrow.to_le_bytes().to_vec(),
        T::Boolean if narrow == 0 || narrow == 1 => v.data = vec![narrow as u8],
        T::ObjectId if n >> 56 == 0 && v.data.len() == 12 => {
            for (from, to) in PLACES_BY_CHANGE.iter().enumerate() {
                v.data[*to] = n.to_le_bytes()[from];
            }
        }
        T::Decimal128 => v.data = n.to_le_bytes().to_vec(),
        T::String | T::JavaScript => v.data = text(n)?,
        T::Binary => {
            let len = v.data.len().saturating_sub(5).min(16);
            let bytes = n.to_le_bytes();
            if bytes[len..].iter().any(|b| *b != 0) {
                return Err(out_of_range());
            }
            v.data.truncate(5);
            v.data.extend_from_slice(&bytes[..len]);
        }
        _ => return Err(out_of_range()),
    }
    Ok(())
}

fn text(n: u128) -> Result<Vec<u8>> {
    let bytes = n.to_be_bytes();
    let text = &bytes[n.leading_zeros() as usize / 8..];
    let mut data = Vec::with_capacity(text.len() + 5);
    data.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
    data.extend_from_slice(text);
    data.push(0);
    Ok(data)
}

/// Numbers of both signs, the small ones first: 0, -1, 1, -2, ...
pub(super) fn signed_narrow(n: u128) -> i64 {
    let n = n as u64;
    (n >> 1) as i64 ^ -((n & 1) as i64)
}

pub(super) fn signed_wide(n: u128) -> u128 {
    n >> 1 ^ (n & 1).wrapping_neg()
}
