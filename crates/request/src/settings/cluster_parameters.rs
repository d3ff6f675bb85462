//! The arguments of `getClusterParameter` and `setClusterParameter`: names of parameters, which are not known here.

use crate::declare::arguments;
use pando_base::{Error, Result};
use pando_bson::Value;
use pando_command::Request;
use pando_command::request::{missing, wrong_type};

arguments! {
    /// `getClusterParameter` has no arguments beside the names.
    pub struct GetClusterParameterArgs of "getClusterParameter" as "getClusterParameter", keeping {}
}
arguments! {
    /// `setClusterParameter` has no arguments beside the parameter.
    pub struct SetClusterParameterArgs of "setClusterParameter" as "setClusterParameter", keeping {}
}

/// Which parameters are asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClusterParameterNames<'a> {
    All,
    Named(Vec<&'a str>),
}

impl<'a> ClusterParameterNames<'a> {
    pub fn parse(req: &Request<'a>) -> Result<ClusterParameterNames<'a>> {
        const OWNER: &str = "getClusterParameter";
        let first = req.first().value();
        let list = match first {
            Value::String("*") => return Ok(ClusterParameterNames::All),
            Value::String(name) => return Ok(ClusterParameterNames::Named(vec![name])),
            // It is a list of names when its first member is one.
            Value::Array(list) if list.first().is_none_or(|e| matches!(e.value(), Value::String(_))) => list,
            v => {
                // The list of types has one member, and MongoDB writes it as a list.
                let found = v.type_name();
                let text = format!(
                    "BSON field '{OWNER}.{OWNER}' is the wrong type '{found}', expected types '[string']"
                );
                return Err(Error::type_mismatch(text));
            }
        };
        let names = list.iter().map(|e| match e.value() {
            Value::String(name) => Ok(name),
            v => Err(wrong_type(OWNER, &format!("{OWNER}.{}", e.name()), &v, &["string"])),
        });
        names.collect::<Result<_>>().map(ClusterParameterNames::Named)
    }
}

/// The parameter that `setClusterParameter` sets, and what it shall be: the first one that its own element names.
pub fn parameter_to_set<'a>(req: &Request<'a>) -> Result<(&'a str, Value<'a>)> {
    const OWNER: &str = "setClusterParameter";
    match req.first().value() {
        Value::Document(given) => Ok(given.first().map_or(("", Value::Null), |e| (e.name(), e.value()))),
        Value::Null | Value::Undefined => Err(missing(OWNER, OWNER)),
        v => Err(wrong_type(OWNER, OWNER, &v, &["object"])),
    }
}
