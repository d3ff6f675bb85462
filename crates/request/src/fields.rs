//! Fields that several commands read in the same way.

use pando_base::{Error, Result};
use pando_bson::{Elem, Value};
use pando_command::{Arg, Args, Names};

/// A real boolean, refused in the words of `find` (14).
pub fn bool_field(arg: &Arg<'_>) -> Result<bool> {
    match arg.value() {
        Value::Boolean(b) => Ok(b),
        v => Err(Error::type_mismatch(format!(
            "Field '{}' should be a boolean value, but found: {}",
            arg.name(),
            v.type_name()
        ))),
    }
}

/// The batch size within the element `cursor: {batchSize: n}` of the command `owner`; `None` when it tells none.
pub fn cursor_option(owner: &'static str, e: Elem<'_>) -> Result<Option<u64>> {
    let Value::Document(d) = e.value() else {
        return Err(pando_command::request::wrong_type(owner, "cursor", &e.value(), &["object"]));
    };
    let mut size = None;
    let mut before = Names::default();
    for arg in Args::of_doc("cursor", d) {
        match arg.name() {
            "batchSize" if arg.is_absent() => continue,
            "batchSize" => size = Some(arg.i64_at_least(0)? as u64),
            _ => return Err(arg.unknown()),
        }
        arg.once(&mut before)?;
    }
    Ok(size)
}
