//! The arguments of `splitVector`.

use crate::declare::kinds::{Anything, Truth};
use crate::declare::{arguments, kind};
use pando_base::limits::{SPLIT_MEGABYTES_MAX, SPLIT_OBJECTS_MAX};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::fields::safe_i64;
use pando_bson::shape::{Means, Shape};
use pando_bson::{RawDoc, Value};

arguments! {
    /// What `splitVector` asks for. Its first element is a whole namespace. What is not of the right type counts as not given.
    pub struct SplitVectorArgs of "splitVector" as "splitVector", keeping {
        "keyPattern" key_pattern: optional Key,
        "min" min: optional Key,
        "max" max: optional Key,
        /// One key, in the middle.
        "force" force: optional Truth,
        "maxSplitPoints" max_points: optional Amount,
        "maxChunkObjects" max_objects: optional Amount,
        /// Megabytes.
        "maxChunkSize" max_size: optional Amount,
        "maxChunkSizeBytes" max_bytes: optional Amount,
    }
}

kind! {
    /// An object that says something.
    pub Key like Anything {
        SHAPE: Shape::Checked { like: &[Shape::Object], check: |_, _| Ok(()) },
        MEANS: Means::IndexKey,
    }
}
kind! { pub Amount like Anything { SHAPE: Shape::Checked { like: &[Shape::Number], check: |_, _| Ok(()) } } }

const MEGABYTE: i64 = 1 << 20;

/// What the arguments come to.
#[derive(Clone, Copy, Debug)]
pub struct Split<'a> {
    pub pattern: &'a RawDoc,
    /// From and to.
    pub range: Option<(&'a RawDoc, &'a RawDoc)>,
    /// One key, in the middle.
    pub force: bool,
    /// 0 = as many as there are.
    pub max_points: i64,
    pub max_objects: i64,
    /// Bytes of a piece.
    pub size: Option<i64>,
}

impl<'a> SplitVectorArgs<'a> {
    /// What the arguments mean together.
    pub fn split(&self) -> Result<Split<'a>> {
        let key = |v: Option<Value<'a>>| match v {
            Some(Value::Document(d) | Value::Array(d)) if !d.is_empty() => Some(d),
            _ => None,
        };
        let Some(pattern) = key(self.key_pattern) else {
            return Err(Error::uncoded("no key pattern found in splitVector"));
        };
        let range = match (key(self.min), key(self.max)) {
            (Some(min), Some(max)) => Some((min, max)),
            (None, None) => None,
            _ => return Err(Error::uncoded("either provide both min and max or leave both empty")),
        };
        let max_objects = number(self.max_objects).unwrap_or(SPLIT_OBJECTS_MAX);
        if max_objects <= 0 {
            return Err(invalid("maxChunkObjects must be greater than 0"));
        }
        let max_points = number(self.max_points).unwrap_or(0);
        let force = self.force == Some(true);
        Ok(Split { pattern, range, force, max_points, max_objects, size: self.size()? })
    }

    /// Bytes of a piece.
    fn size(&self) -> Result<Option<i64>> {
        match (number(self.max_size), number(self.max_bytes)) {
            (Some(n), _) if !(1..=SPLIT_MEGABYTES_MAX).contains(&n) => {
                Err(invalid("maxChunkSize must lie within the range [1MB, 1024MB]"))
            }
            (Some(n), _) => Ok(Some(n * MEGABYTE)),
            (None, Some(n)) if !(MEGABYTE..=SPLIT_MEGABYTES_MAX * MEGABYTE).contains(&n) => {
                Err(invalid("The specified max chunk size must lie within the range [1MB, 1024MB]"))
            }
            (None, n) => Ok(n),
        }
    }
}

fn number(v: Option<Value<'_>>) -> Option<i64> {
    safe_i64(&v?)
}

fn invalid(text: &'static str) -> Error {
    Error::new(ErrorCode::InvalidOptions, text)
}
