//! BSON columns (binary data of subtype 7): the values of one field of many documents, mostly as differences.
//!
//! ```text
//! column      = { literal | differences | objects } 00
//! literal     = type byte, 00 (an empty name), value
//! differences = control byte (8..d: how doubles are scaled; low half: blocks less one), blocks of 8 bytes
//! objects     = f0, f1 or f2, reference document, { literal | differences } 00
//! ```
//!
//! A difference is to the value before it ([`coding`]), or to the difference before it for dates, timestamps and
//! ObjectIds; blocks hold many small ones ([`simple8b`]). A row may be missing. Objects of one shape are taken apart into
//! a stream per leaf of the reference document ([`objects`]), each of which takes the next blocks when it has no more.
//!
//! Nothing here trusts the bytes: what is malformed is an error (22), and rows and bytes are bounded by the caller.

mod coding;
mod objects;
mod simple8b;
mod stream;
#[cfg(test)]
mod tests;

use crate::raw::{RawDoc, value_size};
use crate::types::ElementType;
use pando_base::{Error, ErrorCode, Result};
use stream::{Slot, Stream};

/// The subtype of binary data that says it is a column.
pub const COLUMN_SUBTYPE: u8 = 7;

/// How much a column may come to.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub rows_max: usize,
    pub bytes_max: usize,
}

#[cold]
fn malformed(what: &str) -> Error {
    Error::new(ErrorCode::InvalidBSON, format!("Invalid BSON column: {what}"))
}

/// A value as bytes.
#[derive(Clone, Debug)]
struct Literal {
    ty: ElementType,
    data: Vec<u8>,
}

/// Takes each row's value: its number, type and bytes.
pub type EachRow<'a> = dyn FnMut(usize, ElementType, &[u8]) + 'a;

/// Shows the values of a column to `each`, without the rows that have none. Returns how many rows there are.
pub fn decode(column: &[u8], bounds: Bounds, each: &mut EachRow<'_>) -> Result<usize> {
    let mut input = Input { bytes: column, at: 0 };
    let mut rows = Rows { bounds, row: 0, bytes: 0, each };
    let mut stream = Stream::default();
    loop {
        match input.next()? {
            Part::End if input.at == column.len() => return Ok(rows.row),
            Part::End => return Err(malformed("bytes behind its end")),
            Part::Literal(v) => {
                rows.give(v.ty, &v.data)?;
                stream.begin(v);
            }
            Part::Differences { control, blocks } => {
                stream.take_blocks(control, blocks)?;
                while let Some(slot) = stream.next()? {
                    match slot {
                        Slot::Missing => rows.skip()?,
                        Slot::Value => {
                            let v = stream.value()?;
                            rows.give(v.ty, &v.data)?;
                        }
                    }
                }
            }
            Part::Objects { control } => {
                let last = objects::decode(control, &mut input, &mut rows)?;
                stream.begin(last);
            }
        }
    }
}

/// What comes next.
enum Part<'a> {
    End,
    Literal(Literal),
    Differences { control: u8, blocks: &'a [u8] },
    Objects { control: u8 },
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..n));
        self.at += n;
        taken.ok_or_else(|| malformed("it ends too early"))
    }

    fn next(&mut self) -> Result<Part<'a>> {
        let control = self.take(1)?[0];
        match control {
            0 => Ok(Part::End),
            0x80..=0xDF => {
                let blocks = self.take((usize::from(control & 0x0F) + 1) * 8)?;
                Ok(Part::Differences { control, blocks })
            }
            0xF0..=0xF2 => Ok(Part::Objects { control }),
            ty => {
                let ty = ElementType::from_byte(ty).ok_or_else(|| malformed("an unknown control byte"))?;
                if self.take(1)?[0] != 0 {
                    return Err(malformed("a value with a name"));
                }
                Ok(Part::Literal(Literal { ty, data: self.value(ty)?.to_vec() }))
            }
        }
    }

    /// A value of this type, checked.
    fn value(&mut self, ty: ElementType) -> Result<&'a [u8]> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let size = value_size(ty, rest).ok_or_else(|| malformed("a value without its end"))?;
        let data = self.take(size)?;
        check(ty, data)?;
        Ok(data)
    }
}

/// Checks a value from outside.
fn check(ty: ElementType, data: &[u8]) -> Result<()> {
    let mut holder = Vec::with_capacity(data.len() + 7);
    holder.extend_from_slice(&(data.len() as u32 + 7).to_le_bytes());
    holder.extend_from_slice(&[ty as u8, 0]);
    holder.extend_from_slice(data);
    holder.push(0);
    RawDoc::validate(&holder).map(|_| ())
}

/// Where the values go.
struct Rows<'a, 'b> {
    bounds: Bounds,
    row: usize,
    bytes: usize,
    each: &'a mut EachRow<'b>,
}

impl Rows<'_, '_> {
    fn skip(&mut self) -> Result<()> {
        self.row += 1;
        if self.row > self.bounds.rows_max {
            return Err(malformed("more rows than there may be"));
        }
        Ok(())
    }
    fn give(&mut self, ty: ElementType, data: &[u8]) -> Result<()> {
        let row = self.row;
        self.skip()?;
        self.bytes += data.len();
        if self.bytes > self.bounds.bytes_max {
            return Err(malformed("more bytes than there may be"));
        }
        (self.each)(row, ty, data);
        Ok(())
    }
}
