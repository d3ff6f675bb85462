//! An element of a pipeline's array, before anybody knows which stage it is.

use pando_base::{Error, Result};
use pando_bson::{RawDoc, Value};

pub(super) fn not_one_field() -> Error {
    Error::location(40323, "A pipeline stage specification object must contain exactly one field.")
}

/// A stage is an object with one field.
pub(super) fn stage_spec(v: Value<'_>) -> Result<&RawDoc> {
    let Value::Document(spec) = v else {
        return Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"));
    };
    if spec.count() != 1 {
        return Err(not_one_field());
    }
    Ok(spec)
}

/// What `null` where an array is expected gets.
pub(super) fn null_array(field: &str) -> Error {
    Error::location(10065, format!("invalid parameter: expected an object ({field})"))
}

pub(super) fn not_first(stage: &str) -> Error {
    Error::location(40602, format!("{stage} is only valid as the first stage in a pipeline"))
}
