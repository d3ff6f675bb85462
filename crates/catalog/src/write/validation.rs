//! Collection validators: code 121 with an explanation, or only a warning in the log.

use crate::Catalog;
use crate::schema::collection::Collection;
use crate::schema::options::{ValidationAction, ValidationLevel};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_env::log::Component;
use pando_query::{QueryCtx, mismatch};

/// Checks a document that is about to be inserted.
pub(crate) fn check_insert(catalog: &Catalog, coll: &Collection, doc: &RawDoc) -> Result<()> {
    let Some(v) = &coll.validator else { return Ok(()) };
    if v.level == ValidationLevel::Off || v.matcher.matches(doc)? {
        return Ok(());
    }
    refuse(catalog, coll, doc, v.action)
}

/// Checks the result of an update; at level "moderate" a document that was invalid before may stay so.
pub(crate) fn check_update(catalog: &Catalog, coll: &Collection, old: &RawDoc, new: &RawDoc) -> Result<()> {
    let Some(v) = &coll.validator else { return Ok(()) };
    if v.level == ValidationLevel::Off || v.matcher.matches(new)? {
        return Ok(());
    }
    if v.level == ValidationLevel::Moderate && !v.matcher.matches(old)? {
        return Ok(());
    }
    refuse(catalog, coll, new, v.action)
}

fn refuse(catalog: &Catalog, coll: &Collection, doc: &RawDoc, action: ValidationAction) -> Result<()> {
    if action == ValidationAction::Warn {
        catalog.env().log.warn(Component::Storage, 20294, "Document would fail validation", |a| {
            a.str("namespace", coll.ns.as_str());
            a.data("document", doc);
        });
        return Ok(());
    }
    let ctx = QueryCtx::default().with_collation(coll.collation().cloned());
    let details = match &coll.options.validator {
        Some(filter) => mismatch::details(filter, doc, &ctx)?,
        None => DocBuf::new(),
    };
    let mut b = DocBuilder::new();
    b.doc("errInfo", |info| {
        if let Some(id) = doc.get("_id") {
            info.value("failingDocumentId", id);
        }
        info.raw_doc("details", &details);
    });
    Err(Error::new(ErrorCode::DocumentValidationFailure, "Document failed validation")
        .with_extra(b.finish().into_bytes()))
}
