//! Critical sections as documents (SH-DDL-5): `config.collection_critical_sections {_id: <ns>, reason, blockReads}`. That of a whole
//! database, which is being dropped or moved, has its name as `_id`.
//!
//! ```text
//!   workflow ─► document, in the log ─► every member: observer, or read anew ─► FilteringMetadata ◄─ the door
//! ```
//! What the door goes by is what the collection says, on every member and at every time: a new primary is in the section before it
//! takes its first write.

use super::Sharding;
use super::statistics::migration_of;
use pando_access::observer::{Defined, Deleted, Inserted, OpObserver, Updated};
use pando_access::{Collection, InternalCollections, LogAs, Maintenance, Uninterrupted, WriteOp, WriteUnit};
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_routing::check::Section;
use pando_storage::ReadAt;
use pando_workflows::whole_database;
use std::sync::{Arc, Weak};

const COLLECTION: &str = "config.collection_critical_sections";

fn ns() -> Namespace {
    Namespace::unchecked("config", "collection_critical_sections")
}
/// The `_id` of a section's document.
fn id_of(of: &Namespace) -> &str {
    if of.coll().is_empty() { of.db() } else { of.as_str() }
}
fn key(of: &Namespace) -> DocBuf {
    let mut b = DocBuilder::new();
    b.str("_id", id_of(of));
    b.finish()
}
fn belongs_to(doc: &RawDoc, reason: &RawDoc) -> bool {
    doc.get("reason").and_then(|v| v.as_doc()) == Some(reason)
}
fn blocks_reads(doc: &RawDoc) -> bool {
    doc.get("blockReads").is_some_and(|v| v.is_truthy())
}

/// What a document says.
fn said_by(doc: &RawDoc) -> Option<(Namespace, Section)> {
    let id = doc.get("_id")?.as_str()?;
    let of = if id.contains('.') { Namespace::parse(id).ok()? } else { whole_database(id) };
    Some((of, if blocks_reads(doc) { Section::BlocksAll } else { Section::BlocksWrites }))
}

/// Enters a section, or blocks reads, too; returns when everybody is out who came in before. Nothing where it is so already.
///
/// # Errors
/// 117 where it belongs to another reason.
pub(crate) async fn enter(
    internal: &InternalCollections,
    maintenance: &Maintenance,
    of: &Namespace,
    reason: &RawDoc,
    block_reads: bool,
) -> Result<Option<OpTime>> {
    let change = |there: Option<&RawDoc>| {
        if let Some(there) = there {
            if !belongs_to(there, reason) {
                let text = format!("{} is in a critical section of another operation: {there}", id_of(of));
                return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
            }
            if blocks_reads(there) || !block_reads {
                return Ok(None);
            }
        }
        let mut b = DocBuilder::new();
        b.str("_id", id_of(of)).raw_doc("reason", reason).bool("blockReads", block_reads);
        Ok(Some(b.finish()))
    };
    let at = internal.change(&Uninterrupted, &ns(), &key(of), LogAs::Replacement, change).await?;
    maintenance.await_writers(of).await;
    Ok(at)
}

/// Which command the section of a collection belongs to.
pub(crate) fn command(internal: &InternalCollections, of: &Namespace) -> Result<Option<String>> {
    let there = internal.named(&ns(), id_of(of))?;
    let reason = |doc: &DocBuf| doc.get("reason")?.as_doc()?.get("command")?.as_str().map(str::to_owned);
    Ok(there.as_ref().and_then(reason))
}

/// Sections of definitions that other shards coordinate: one that was not there at the end was told by nobody.
pub(crate) async fn leave_those_of(internal: &InternalCollections, commands: &[&str]) -> Result<()> {
    let is_of = |doc: &DocBuf| {
        let command = doc.get("reason").and_then(|v| v.as_doc()?.get("command")?.as_str().map(str::to_owned));
        command.is_some_and(|command| commands.contains(&command.as_str()))
    };
    let all = internal.all(&ns(), ReadAt::Latest)?;
    let left = all.iter().filter(|doc| is_of(doc)).filter_map(|doc| said_by(doc)).map(|(of, _)| key(&of));
    internal.remove_all(&Uninterrupted, &ns(), &left.collect::<Vec<_>>()).await
}

/// The section ends, if it belongs to that reason.
pub(crate) async fn leave(
    internal: &InternalCollections,
    of: &Namespace,
    reason: &RawDoc,
) -> Result<Option<OpTime>> {
    match internal.named(&ns(), id_of(of))? {
        Some(there) if belongs_to(&there, reason) => internal.remove(&Uninterrupted, &ns(), &key(of)).await,
        _ => Ok(None),
    }
}

impl Sharding {
    /// What the collection says, whatever was known before; and of which times this shard has heard.
    pub(crate) fn read_sections(&self, internal: &InternalCollections) -> Result<()> {
        self.remember_times(internal)?;
        let docs = internal.all(&ns(), ReadAt::Latest)?;
        let all: Vec<_> = docs.iter().filter_map(|doc| said_by(doc)).collect();
        self.metadata.sections_are(&all);
        Ok(())
    }
    /// What was known of it is of before.
    fn section_ended(&self, of: &Namespace) {
        match of.coll().is_empty() {
            true => self.forget_database(of.db()),
            false => self.forget(of),
        }
        self.metadata.leave(of);
    }
}

/// Watches the collection, by whatever command or member it is written.
pub(crate) struct SectionObserver(Weak<Sharding>);

impl SectionObserver {
    pub(crate) fn of(sharding: &Arc<Sharding>) -> Arc<SectionObserver> {
        Arc::new(SectionObserver(Arc::downgrade(sharding)))
    }
    fn written(&self, unit: &mut WriteUnit, coll: &Collection, doc: &RawDoc) {
        let Some(sharding) = self.0.upgrade().filter(|_| coll.ns.as_str() == COLLECTION) else { return };
        let migration = migration_of(doc).filter(|_| !unit.is_applying());
        if let Some((of, section)) = said_by(doc) {
            unit.after_commit(move |_| {
                sharding.metadata.enter(&of, section);
                migration.iter().for_each(|id| sharding.donor_enters(*id));
            });
        }
    }
}

impl OpObserver for SectionObserver {
    fn inserted(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Inserted<'_>) -> Result<()> {
        self.written(unit, e.coll, e.doc);
        Ok(())
    }
    fn updated(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Updated<'_>) -> Result<()> {
        self.written(unit, e.coll, e.new);
        Ok(())
    }
    fn deleted(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Deleted<'_>) -> Result<()> {
        let Some(sharding) = self.0.upgrade().filter(|_| e.coll.ns.as_str() == COLLECTION) else {
            return Ok(());
        };
        let migration = migration_of(e.old).filter(|_| !unit.is_applying());
        if let Some((of, _)) = said_by(e.old) {
            unit.after_commit(move |_| {
                sharding.section_ended(&of);
                migration.iter().for_each(|id| sharding.donor_leaves(*id));
            });
        }
        Ok(())
    }
    fn defined(&self, unit: &mut WriteUnit, e: &Defined<'_>) -> Result<()> {
        if let Defined::Dropped { coll } = e
            && coll.ns.as_str() == COLLECTION
            && let Some(sharding) = self.0.upgrade()
        {
            unit.after_commit(move |_| sharding.metadata.sections_are(&[]));
        }
        Ok(())
    }
}
