//! The arguments of `dbStats`.

use crate::declare::kinds::Truth;
use crate::declare::{Kind, arguments};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::fields::safe_i64;
use pando_bson::shape::{Null, Shape};
use pando_bson::{DocBuilder, Value};
use pando_command::Request;

arguments! {
    /// What `dbStats` asks for.
    pub struct DbStatsArgs of "dbStats" as "dbStats", keeping {
        /// Sizes are told in so many bytes.
        "scale" scale: optional Scale,
        "freeStorage" free_storage: optional Truth,
    }
}

/// A text beside the command makes a name that no database has.
pub fn check_name(req: &Request<'_>) -> Result<()> {
    match req.first().value().as_str() {
        None => Ok(()),
        Some(text) => {
            let text = format!("Invalid db name: {}.{text}", req.db);
            Err(Error::new(ErrorCode::InvalidNamespace, text))
        }
    }
}

/// A positive number; what is false counts as 1.
#[derive(Debug)]
pub struct Scale;
impl Kind for Scale {
    type Of<'a> = i64;
    const SHAPE: Shape = Shape::Checked { like: &[Shape::Number], check: check_scale };
    const NULL: Null = Null::Value;
    fn read(v: Value<'_>) -> Option<i64> {
        Some(scale_of(&v).unwrap_or(1))
    }
    fn spell(n: &i64, name: &str, b: &mut DocBuilder) {
        b.i64(name, *n);
    }
}

/// A long counts by its last 32 bits, as in MongoDB.
fn scale_of(v: &Value<'_>) -> Option<i64> {
    match v {
        Value::Int64(n) => Some(i64::from(*n as i32)),
        v => safe_i64(v),
    }
}

fn check_scale(_: &str, v: &Value<'_>) -> Result<()> {
    match scale_of(v) {
        Some(n) if (1..=i64::from(i32::MAX)).contains(&n) => Ok(()),
        None if !v.is_truthy() => Ok(()),
        Some(_) => Err(Error::uncoded("scale has to be > 0")),
        None => Err(Error::uncoded("scale has to be a number > 0")),
    }
}
