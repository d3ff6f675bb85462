//! The arguments of `killOp`.

use crate::declare::arguments;
use crate::declare::kinds::AnythingGiven;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::fields::safe_i64;
use pando_bson::{DocBuilder, Value};

arguments! {
    /// What `killOp` asks for.
    pub struct KillOpArgs of "killOp" as "killOp", keeping {
        "op" op: optional AnythingGiven,
    }
}

impl KillOpArgs<'_> {
    /// The operation's number.
    pub fn op_id(&self) -> Result<u32> {
        let Some(op) = self.op else {
            return Err(Error::new(ErrorCode::NoSuchKey, "Missing expected field \"op\""));
        };
        let is_exact = |n: f64| n.fract() == 0.0 && n.abs() < 9e18;
        let exact = match op {
            Value::Double(n) => is_exact(n),
            Value::Decimal128(n) => is_exact(n.to_f64()),
            _ => true,
        };
        if !exact {
            let mut shown = DocBuilder::new();
            shown.value("op", op);
            let shown = shown.finish();
            let Some(e) = shown.first() else { return Err(Error::internal("an element that is not there")) };
            return Err(Error::bad_value(format!(
                "Expected field \"op\" to have a value exactly representable as a 64-bit integer, but found {e:#}"
            )));
        }
        let Some(id) = safe_i64(&op) else {
            let found = op.type_name();
            let text = format!("Expected field \"op\" to have numeric type, but found {found}");
            return Err(Error::type_mismatch(text));
        };
        match id {
            // Negative numbers name the same operations.
            id @ -0x8000_0000..=0xFFFF_FFFF => Ok(id as u32),
            _ => {
                let text = format!("invalid op : {id}. Op ID cannot be represented with 32 bits");
                Err(Error::location(26823, text))
            }
        }
    }
}
