//! `config.system.indexBuilds`: one document for each build that is not decided, with its commit quorum and who has voted.
//!
//! A primary adds it together with the first entry of the build; votes and changes of the quorum are ordinary updates, so
//! that the next primary finds them. It goes when the build is over.

use crate::schema::collection::Collection;
use crate::write::op::WriteOp;
use crate::write::unit::WriteUnit;
use pando_base::{Namespace, Result, Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_index::IndexSpec;

/// Where the documents are.
pub fn ns() -> Namespace {
    Namespace::unchecked("config", "system.indexBuilds")
}

/// `quorum` has one field, `commitQuorum`.
fn entry(build: Uuid, collection: Uuid, quorum: &RawDoc, specs: &[IndexSpec]) -> DocBuf {
    let mut b = DocBuilder::new();
    b.uuid("_id", &build.0);
    b.uuid("collectionUUID", &collection.0);
    b.elems_of(quorum);
    b.array("indexNames", |a| {
        for spec in specs {
            a.str(&spec.name);
        }
    });
    b.finish()
}

/// Adds the document of a build within the unit that begins it.
pub(crate) fn add(
    unit: &mut WriteUnit,
    entries: &Collection,
    build: Uuid,
    collection: Uuid,
    quorum: &RawDoc,
    specs: &[IndexSpec],
) -> Result<()> {
    let doc = entry(build, collection, quorum, specs);
    let rid = entries.shared.take_rids(1);
    let op = WriteOp { bypass_validation: true, ..WriteOp::default() };
    unit.insert(&op, entries, &doc, rid, &[])
}
