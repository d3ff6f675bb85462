//! The arguments of `collStats`.

use crate::declare::kinds::{Bool, Integer};
use crate::declare::{arguments, kind};
use pando_base::{Error, Result};
use pando_bson::Value;
use pando_bson::shape::{Null, Range, Shape};

arguments! {
    /// What `collStats` asks for.
    pub struct CollStatsArgs of "collStats" as "collStats", keeping {
        /// Sizes are told in so many bytes.
        "scale" scale: optional Scale,
        "verbose" verbose: optional Flag,
        "waitForLock" wait_for_lock: optional Flag,
        "numericOnly" numeric_only: optional Flag,
    }
}

kind! { pub Scale like Integer { SHAPE: Shape::Integer(Range::at_least(1)) } }
kind! {
    pub Flag like Bool { SHAPE: Shape::Checked { like: &[Shape::Bool], check: check_flag }, NULL: Null::Value }
}

fn check_flag(path: &str, v: &Value<'_>) -> Result<()> {
    let name = path.rsplit('.').next().unwrap_or(path);
    match v {
        Value::Boolean(_) => Ok(()),
        v => Err(Error::type_mismatch(format!(
            "Field '{name}' should be a boolean value, but found: {}",
            v.type_name()
        ))),
    }
}
