//! The arguments of `filemd5`.

use crate::declare::kinds::{AnythingGiven, Text, Truth};
use crate::declare::{Kind, arguments, kind};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::decimal128::Rounding;
use pando_bson::shape::{Means, Null, Shape};
use pando_bson::{DocBuilder, Value};
use pando_command::Request;

arguments! {
    /// What `filemd5` asks for. Its first element is the file's id.
    pub struct FileMd5Args of "filemd5" as "filemd5", keeping {
        "root" root: optional Root,
        /// A part of the file is enough.
        "partialOk" partial: optional Truth,
        /// What an earlier call has come to; it counts only for a part.
        "md5state" state: optional AnythingGiven,
        /// The chunk with which to go on; it counts only for a part.
        "startAt" start_at: optional Chunk,
    }
}

impl FileMd5Args<'_> {
    /// `<root>.chunks`; the root is `fs` where none is named.
    pub fn chunks(&self, req: &Request<'_>) -> Result<Namespace> {
        let root = self.root.filter(|root| !root.is_empty()).unwrap_or("fs");
        Namespace::new(req.db, &format!("{root}.chunks"))
    }
    pub fn is_partial(&self) -> bool {
        self.partial == Some(true)
    }
}

kind! {
    pub Root like Text {
        SHAPE: Shape::Checked { like: &[Shape::String], check: check_root },
        NULL: Null::Value,
        MEANS: Means::Collection,
    }
}

fn check_root(_: &str, v: &Value<'_>) -> Result<()> {
    match v {
        Value::String(_) => Ok(()),
        _ => Err(Error::new(ErrorCode::InvalidNamespace, "'root' must be of type String")),
    }
}

/// A chunk's number: the low half of a long number, and the least of all for what lies beyond 32 bits otherwise.
#[derive(Debug)]
pub struct Chunk;
impl Kind for Chunk {
    type Of<'a> = i32;
    const SHAPE: Shape = Shape::Checked { like: &[Shape::Number], check: |_, _| Ok(()) };
    fn read(v: Value<'_>) -> Option<i32> {
        Some(match v {
            Value::Int32(n) => n,
            Value::Int64(n) => n as i32,
            Value::Double(n) if n > f64::from(i32::MIN) && n < f64::from(i32::MAX) + 1.0 => n as i32,
            Value::Decimal128(n) => {
                i32::try_from(n.to_i64_saturating(Rounding::HalfEven)).unwrap_or(i32::MIN)
            }
            Value::Double(_) => i32::MIN,
            _ => 0,
        })
    }
    fn spell(n: &i32, name: &str, b: &mut DocBuilder) {
        b.i64(name, i64::from(*n));
    }
}
