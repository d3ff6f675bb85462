//! The arguments of `count`: those of a query, by names of its own.

use super::find::FindArgs;
use crate::spell::{self, spell_hint};
use pando_base::{Error, Result};
use pando_bson::shape::Shape;
use pando_bson::{DocBuilder, Elem};
use pando_command::Request;
use pando_query::plan::Hint;

/// The query; of [`FindArgs`] only what `count` has is set.
#[derive(Clone, Default)]
pub struct CountArgs<'a> {
    pub find: FindArgs<'a>,
    /// A limit of 0 was given, which is none.
    limit_is_0: bool,
}

/// Arguments that may be null, which counts as not given.
const NULLABLE: &[&str] = &["query", "skip", "collation", "fields", "collectionUUID", "queryOptions"];

impl<'a> CountArgs<'a> {
    /// Reads everything behind the collection's name.
    pub fn parse(req: &Request<'a>) -> Result<CountArgs<'a>> {
        let (mut a, mut limit_is_0) = (FindArgs::default(), false);
        for arg in req.args("count") {
            if arg.name() == "limit" {
                a.limit = parse_limit(arg.elem())?;
                limit_is_0 = a.limit.is_none();
                continue;
            }
            if arg.is_absent() && NULLABLE.contains(&arg.name()) {
                continue;
            }
            match arg.name() {
                "query" => a.filter = Some(arg.doc()?),
                "skip" => a.skip = arg.i64_at_least(0)? as u64,
                "hint" => a.hint = Hint::parse(arg.value())?,
                "collation" => a.collation = Some(arg.doc()?).filter(|d| !d.is_empty()),
                "collectionUUID" => {
                    arg.check(&Shape::Uuid)?;
                    a.collection_uuid = Some(arg.value());
                }
                "encryptionInformation" => {
                    arg.no_encryption()?;
                    a.passthrough.push(arg.elem());
                }
                "fields" | "queryOptions" | "mirrored" => a.passthrough.push(arg.elem()),
                _ => return Err(arg.unknown()),
            }
        }
        Ok(CountArgs { find: a, limit_is_0 })
    }

    /// The query as a view's, whose stages take a limit of 0 at its word.
    pub fn on_view(&self) -> FindArgs<'a> {
        let limit = self.find.limit.or(self.limit_is_0.then_some(0));
        FindArgs { limit, ..self.find.clone() }
    }

    /// Writes the arguments that [`CountArgs::parse`] reads.
    pub fn spell(&self, b: &mut DocBuilder) {
        let a = &self.find;
        spell::doc(b, "query", a.filter);
        spell::count(b, "limit", a.limit.or(self.limit_is_0.then_some(0)));
        spell::count(b, "skip", Some(a.skip).filter(|n| *n > 0));
        spell_hint(b, a.hint.as_ref());
        spell::doc(b, "collation", a.collation);
        if let Some(uuid) = a.collection_uuid {
            b.value("collectionUUID", uuid);
        }
        spell::passthrough(b, &a.passthrough);
    }
}

/// A negative limit counts like a positive one; 0 is none.
fn parse_limit(e: Elem<'_>) -> Result<Option<u64>> {
    if !e.value().is_number() {
        return Err(Error::bad_value("limit value is not a valid number"));
    }
    let n = pando_query::matcher::number::parse_i64(e).map_err(Error::failed_to_parse)?;
    if n == i64::MIN {
        return Err(Error::bad_value("limit value for count cannot be min long"));
    }
    Ok(Some(n.unsigned_abs()).filter(|n| *n > 0))
}
