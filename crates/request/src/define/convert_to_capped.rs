//! The arguments of `convertToCapped` and `cloneCollectionAsCapped`, which are looked at one by one, not in the order in
//! which they stand.

use crate::declare::arguments;
use crate::declare::kinds::Anything;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::Value;
use pando_command::Request;

arguments! {
    /// What `convertToCapped` asks for.
    pub struct ConvertToCappedArgs of "convertToCapped" as "convertToCapped", keeping {
        "size" size: optional Anything,
    }
}
arguments! {
    /// What `cloneCollectionAsCapped` asks for.
    pub struct CloneAsCappedArgs of "cloneCollectionAsCapped" as "cloneCollectionAsCapped", keeping {
        "toCollection" to: optional Anything,
        "size" size: optional Anything,
    }
}

impl ConvertToCappedArgs<'_> {
    /// Bytes: cut to whole ones, what is out of range to the nearest end. Whether a collection can be that large is said
    /// once the source is found.
    pub fn size(&self) -> Result<i64> {
        match number(self.size).map(|n| n as i64) {
            Some(n) if n != 0 => Ok(n),
            _ => Err(invalid_spec()),
        }
    }
}

impl CloneAsCappedArgs<'_> {
    /// Source and target.
    pub fn names(&self, req: &Request<'_>) -> Result<(Namespace, Namespace)> {
        let Value::String(name) = req.first().value() else {
            return Err(Error::type_mismatch("'cloneCollectionAsCapped' must be of type String"));
        };
        let Some(Value::String(to)) = self.to else {
            return Err(Error::type_mismatch("'toCollection' must be of type String"));
        };
        let check = |which: &str, name: &str| match name.is_empty() || name.contains('$') {
            true => {
                let text = format!("Invalid {which} collection name: {name}");
                Err(Error::new(ErrorCode::InvalidNamespace, text))
            }
            false => Ok(()),
        };
        check("source", name)?;
        check("target", to)?;
        Ok((req.ns()?, Namespace::new(req.db, to)?))
    }
    /// Bytes: numbers that no 64-bit integer holds count as the least one.
    pub fn size(&self) -> Result<i64> {
        const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
        match number(self.size) {
            Some(n) if n.is_nan() || n >= TOO_LARGE => Ok(i64::MIN),
            Some(n) if n != 0.0 => Ok(n as i64),
            _ => Err(invalid_spec()),
        }
    }
}

fn number(v: Option<Value<'_>>) -> Option<f64> {
    match v? {
        Value::Decimal128(d) => Some(d.to_f64()),
        v => v.as_f64(),
    }
}

fn invalid_spec() -> Error {
    Error::uncoded("invalid command spec")
}
