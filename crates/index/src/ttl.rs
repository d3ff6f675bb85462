//! After how many seconds documents expire, as users may say it.

use crate::spec_check::check_ttl_value;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::Value;

/// The seconds after which rows of a clustered collection or a time series expire.
pub fn ttl_seconds(v: Value<'_>) -> Result<i64> {
    let v = if matches!(v, Value::Double(d) if d.is_nan()) { Value::Int32(0) } else { v };
    check_ttl_value(v).map_err(|why| {
        Error::new(ErrorCode::InvalidOptions, format!("TTL index 'expireAfterSeconds' option {why}"))
    })
}

/// What a clustered collection or a time series keeps cannot be older than the clock can tell.
pub fn check_reach(seconds: i64, now_secs: i64) -> Result<()> {
    if seconds <= now_secs {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::InvalidOptions,
        "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower number",
    ))
}
