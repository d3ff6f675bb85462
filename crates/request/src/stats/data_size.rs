//! The arguments of `dataSize`.

use crate::declare::kinds::{Anything, AnythingGiven, Truth};
use crate::declare::{Kind, arguments};
use pando_base::{Error, Result};
use pando_bson::fields::safe_i64;
use pando_bson::shape::Shape;
use pando_bson::{DocBuilder, RawDoc, Value};

arguments! {
    /// What `dataSize` asks for. Its first element is a whole namespace.
    pub struct DataSizeArgs of "dataSize" as "dataSize", keeping {
        "keyPattern" key_pattern: optional Anything,
        "min" min: optional AnythingGiven,
        "max" max: optional AnythingGiven,
        /// Bytes.
        "maxSize" max_size: optional Bound,
        /// Documents.
        "maxObjects" max_objects: optional Bound,
        "estimate" estimate: optional Truth,
    }
}

/// Where the range begins and where it ends.
pub type KeyRange<'a> = (Option<&'a RawDoc>, Option<&'a RawDoc>);

impl<'a> DataSizeArgs<'a> {
    /// The ends of the range, where they say something: from and to nothing is everything.
    pub fn range(&self) -> Result<KeyRange<'a>> {
        let end = |name: &str, v: Option<Value<'a>>| match v {
            Some(Value::Document(d)) => Ok(Some(d).filter(|d| !d.is_empty())),
            None => Ok(None),
            _ => Err(Error::bad_value(format!("{name} key must be an object"))),
        };
        // One that says nothing is there, as far as the other is concerned.
        match (self.min, self.max) {
            (Some(_), None) => Err(Error::bad_value("max must be set if min is set")),
            (None, Some(_)) => Err(Error::bad_value("min must be set if max is set")),
            (min, max) => Ok((end("min", min)?, end("max", max)?)),
        }
    }
    pub fn pattern(&self) -> Option<&'a RawDoc> {
        self.key_pattern?.as_doc().filter(|d| !d.is_empty())
    }
}

/// 0 is no bound.
#[derive(Debug)]
pub struct Bound;
impl Kind for Bound {
    type Of<'a> = i64;
    const SHAPE: Shape = Shape::Checked { like: &[Shape::Number], check: |_, _| Ok(()) };
    /// A number beyond all integers is the least one, which everything is over.
    fn read(v: Value<'_>) -> Option<i64> {
        const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
        Some(match v {
            Value::Double(n) if n >= TOO_LARGE => i64::MIN,
            v => safe_i64(&v).unwrap_or(0),
        })
    }
    fn spell(n: &i64, name: &str, b: &mut DocBuilder) {
        b.i64(name, *n);
    }
}
