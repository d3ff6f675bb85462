//! The arguments of `profile`.

use crate::declare::kinds::{Anything, AnythingGiven, Integer};
use crate::declare::{arguments, kind};
use pando_base::{Error, Result};
use pando_bson::fields::safe_i64;
use pando_bson::shape::{Means, Null, Shape};
use pando_bson::{RawDoc, Value};
use pando_command::Request;
use pando_command::request::{missing, wrong_type};

arguments! {
    /// What `profile` asks for.
    pub struct ProfileArgs of "profile" as "profile", keeping {
        "slowms" slow_ms: optional Integer,
        "sampleRate" sample_rate: optional Rate,
        "filter" filter: optional ProfileFilter,
    }
}

impl<'a> ProfileArgs<'a> {
    /// The command's own element; numbers that are no level change nothing.
    pub fn level(req: &Request<'_>) -> Result<i64> {
        const OWNER: &str = "profile";
        match req.first().value() {
            Value::Null | Value::Undefined => Err(missing(OWNER, OWNER)),
            v => safe_i64(&v)
                .ok_or_else(|| wrong_type(OWNER, OWNER, &v, &["long", "int", "decimal", "double"])),
        }
    }
    /// The share of slow operations, 0 to 1.
    pub fn rate(&self) -> Result<Option<f64>> {
        let rate = match self.sample_rate {
            Some(Value::Decimal128(d)) => Some(d.to_f64()),
            v => v.and_then(|v| v.as_f64()),
        };
        match rate {
            Some(r) if r.is_nan() => Ok(Some(0.0)),
            Some(r) if !(0.0..=1.0).contains(&r) => {
                Err(Error::bad_value("'sampleRate' must be between 0.0 and 1.0 inclusive"))
            }
            rate => Ok(rate),
        }
    }
    /// `Some(None)` takes the filter away.
    pub fn new_filter(&self) -> Option<Option<&'a RawDoc>> {
        self.filter.map(|v| v.as_doc())
    }
}

kind! { pub Rate like Anything { SHAPE: Shape::Number } }
kind! {
    /// A filter, or "unset".
    pub ProfileFilter like AnythingGiven {
        SHAPE: Shape::Checked { like: &[Shape::Object, Shape::Word(&["unset"])], check: check_filter },
        NULL: Null::Value,
        MEANS: Means::Filter,
    }
}

fn check_filter(_: &str, v: &Value<'_>) -> Result<()> {
    match v {
        Value::String("unset") | Value::Document(_) => Ok(()),
        _ => Err(Error::bad_value("Expected an object, or the string 'unset'.")),
    }
}
