//! The arguments of `distinct`.

use super::find::FindArgs;
use crate::spell;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::shape::Shape;
use pando_bson::{DocBuilder, Value};
use pando_command::Request;
use pando_command::request::missing;
use pando_query::expr::FieldPath;
use pando_query::projection::positional_path;

#[derive(Clone)]
pub struct DistinctArgs<'a> {
    /// The path whose values are asked for.
    pub key: &'a str,
    /// Filter and collation.
    pub find: FindArgs<'a>,
}

/// Arguments that may be null, which counts as not given.
const NULLABLE: &[&str] = &["key", "query", "collation", "collectionUUID"];

impl<'a> DistinctArgs<'a> {
    /// The command has a code of its own for collection names of the wrong type.
    pub fn check_name(req: &Request<'a>) -> Result<()> {
        if !matches!(
            req.first().value(),
            Value::String(_) | Value::Symbol(_) | Value::Binary { subtype: 4, .. }
        ) {
            let text = format!("collection name has invalid type {}", req.first().value().type_name());
            return Err(Error::new(ErrorCode::InvalidNamespace, text));
        }
        Ok(())
    }
    /// Reads the whole command.
    pub fn parse(req: &Request<'a>) -> Result<DistinctArgs<'a>> {
        DistinctArgs::check_name(req)?;
        let mut key = None;
        let mut find = FindArgs::default();
        for arg in req.args("distinct") {
            if arg.is_absent() && NULLABLE.contains(&arg.name()) {
                continue;
            }
            match arg.name() {
                "key" => key = Some(arg.str()?),
                "query" => find.filter = Some(arg.doc()?),
                "collation" => find.collation = Some(arg.doc()?).filter(|d| !d.is_empty()),
                "collectionUUID" => {
                    arg.check(&Shape::Uuid)?;
                    find.collection_uuid = Some(arg.value());
                }
                "querySettings" => find.passthrough.push(arg.elem()),
                _ => return Err(arg.unknown()),
            }
        }
        let key = key.ok_or_else(|| missing("distinct", "key"))?;
        if key.contains('\0') {
            return Err(Error::location(31032, "Key field cannot contain an embedded null byte"));
        }
        check_key(key)?;
        Ok(DistinctArgs { key, find })
    }

    /// Writes the arguments that [`DistinctArgs::parse`] reads.
    pub fn spell(&self, b: &mut DocBuilder) {
        b.str("key", self.key);
        spell::doc(b, "query", self.find.filter);
        spell::doc(b, "collation", self.find.collation);
        if let Some(uuid) = self.find.collection_uuid {
            b.value("collectionUUID", uuid);
        }
        spell::passthrough(b, &self.find.passthrough);
    }
}

/// A field path, which may end like a positional projection (and then finds nothing).
fn check_key(key: &str) -> Result<()> {
    FieldPath::parse(positional_path(key)?.unwrap_or(key)).map(drop)
}
