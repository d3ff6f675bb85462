//! The arguments of `getParameter` and `setParameter`: names of parameters, which are not known here.

use crate::declare::arguments;
use pando_base::Result;
use pando_bson::Value;
use pando_bson::shape::{Field, Shape, check_fields};
use pando_command::Request;

arguments! {
    /// What `getParameter` asks for: the parameters that are named, beside what its own element says.
    pub struct GetParameterArgs of "getParameter" as "getParameter", keeping {}
}
arguments! {
    /// What `setParameter` asks for: parameters and what they shall be.
    pub struct SetParameterArgs of "setParameter" as "setParameter", keeping {}
}

const OPTIONS: &[Field] = &[
    Field::optional("showDetails", Shape::SafeBool),
    Field::optional("allParameters", Shape::SafeBool),
    Field::optional("setAt", Shape::String),
];

/// What `getParameter`'s own element says.
#[derive(Clone, Copy, Default, Debug)]
pub struct GetParameterOptions<'a> {
    pub details: bool,
    pub all: bool,
    /// "startup" or "runtime": only those that can be set then.
    pub set_at: Option<&'a str>,
}

impl<'a> GetParameterOptions<'a> {
    pub fn parse(req: &Request<'a>) -> Result<GetParameterOptions<'a>> {
        let first = req.first().value();
        let mut o = GetParameterOptions { all: matches!(first, Value::String("*")), ..Default::default() };
        if let Value::Document(options) = first {
            check_fields(OPTIONS, "getParameter", options)?;
            for e in options {
                match e.name() {
                    "showDetails" => o.details = e.value().is_truthy(),
                    "allParameters" => o.all = e.value().is_truthy(),
                    "setAt" => o.set_at = e.value().as_str(),
                    _ => {}
                }
            }
        }
        Ok(o)
    }
}
