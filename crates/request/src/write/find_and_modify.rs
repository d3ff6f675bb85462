//! The arguments of `findAndModify`.

use super::update::UpdateStatement;
use crate::spell::{self, spell_hint};
use pando_base::{Error, Result};
use pando_bson::shape::Shape;
use pando_bson::{DocBuilder, Elem, RawDoc, Value};
use pando_command::Request;
use pando_query::plan::Hint;

#[derive(Clone, Default)]
pub struct FindAndModifyArgs<'a> {
    pub query: Option<&'a RawDoc>,
    /// Which of those that match is meant: the first in this order.
    pub sort: Option<&'a RawDoc>,
    pub remove: bool,
    pub update: Option<Value<'a>>,
    /// The document as it is afterwards is returned.
    pub new: bool,
    /// What of the document is returned.
    pub fields: Option<&'a RawDoc>,
    pub upsert: bool,
    pub bypass_validation: bool,
    pub collation: Option<&'a RawDoc>,
    pub array_filters: Option<&'a RawDoc>,
    pub hint: Option<Hint>,
    pub let_vars: Option<&'a RawDoc>,
    /// Arguments that nobody acts on, and `collectionUUID`, which is checked where the collection is looked up.
    pub passthrough: Vec<Elem<'a>>,
}

impl<'a> FindAndModifyArgs<'a> {
    /// Reads everything behind the collection's name.
    pub fn parse(req: &Request<'a>) -> Result<FindAndModifyArgs<'a>> {
        const OWNER: &str = "findAndModify";
        let mut a = FindAndModifyArgs::default();
        for arg in req.args(OWNER) {
            let v = arg.value();
            if arg.is_absent() && is_nullable(arg.name()) {
                continue;
            }
            match arg.name() {
                "query" => a.query = Some(arg.doc()?),
                "sort" => a.sort = Some(arg.doc()?),
                "remove" => a.remove = arg.boolish()?,
                "update" => a.update = Some(UpdateStatement::change(&arg)?),
                "new" => a.new = arg.boolish()?,
                "fields" => a.fields = Some(arg.doc()?),
                "upsert" => a.upsert = arg.boolish()?,
                "bypassDocumentValidation" => a.bypass_validation = arg.boolish()?,
                "collation" => a.collation = Some(arg.doc()?).filter(|d| !d.is_empty()),
                "arrayFilters" => {
                    arg.check(&Shape::List(&Shape::Object))?;
                    a.array_filters = Some(arg.array()?);
                }
                "hint" => a.hint = Hint::parse(v)?,
                "let" => a.let_vars = Some(arg.doc()?),
                "encryptionInformation" => {
                    arg.no_encryption()?;
                    a.passthrough.push(arg.elem());
                }
                "isTimeseriesNamespace" | "collectionUUID" | "legacyRuntimeConstants" | "sampleId" => {
                    a.passthrough.push(arg.elem());
                }
                _ => return Err(arg.unknown()),
            }
        }
        req.check_statement_numbers(OWNER)?;
        Ok(a)
    }

    /// Options that exclude each other (code 9).
    pub fn check(&self) -> Result<()> {
        let refuse = |text: &'static str| Err(Error::failed_to_parse(text));
        if self.remove {
            if self.update.is_some() {
                return refuse("Cannot specify both an update and remove=true");
            }
            if self.upsert {
                return refuse("Cannot specify both upsert=true and remove=true ");
            }
            if self.new {
                return refuse(
                    "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document",
                );
            }
            if self.array_filters.is_some() {
                return refuse("Cannot specify arrayFilters and remove=true");
            }
        } else if self.update.is_none() {
            return refuse("Either an update or remove=true must be specified");
        }
        if self.array_filters.is_some() && matches!(self.update, Some(Value::Array(_))) {
            return refuse("Cannot specify arrayFilters and a pipeline update");
        }
        Ok(())
    }

    /// Writes the arguments that [`FindAndModifyArgs::parse`] reads.
    pub fn spell(&self, b: &mut DocBuilder) {
        spell::doc(b, "query", self.query);
        spell::doc(b, "sort", self.sort);
        spell::flag(b, "remove", self.remove);
        if let Some(update) = self.update {
            b.value("update", update);
        }
        spell::flag(b, "new", self.new);
        spell::doc(b, "fields", self.fields);
        spell::flag(b, "upsert", self.upsert);
        spell::flag(b, "bypassDocumentValidation", self.bypass_validation);
        spell::doc(b, "collation", self.collation);
        if let Some(filters) = self.array_filters {
            b.raw_array("arrayFilters", filters);
        }
        spell_hint(b, self.hint.as_ref());
        spell::doc(b, "let", self.let_vars);
        spell::passthrough(b, &self.passthrough);
    }
}

/// Arguments that may be null, which counts as not given.
fn is_nullable(name: &str) -> bool {
    matches!(
        name,
        "query"
            | "sort"
            | "remove"
            | "update"
            | "new"
            | "fields"
            | "upsert"
            | "bypassDocumentValidation"
            | "collation"
            | "let"
            | "isTimeseriesNamespace"
            | "collectionUUID"
            | "encryptionInformation"
            | "legacyRuntimeConstants"
            | "sampleId"
    )
}
