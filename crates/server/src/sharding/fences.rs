//! What a shard remembers of definitions in which it takes part: `config.ddl_fences {_id: <namespace or database>, timestamp, since?}`.
//!
//! A command of a coordinator that was deposed may arrive when another definition of the name has been made. Each has a number (see
//! `pando_workflows::ddl`); the newest that was here is written down before anything is done, and older ones are refused. Nobody acts
//! for an older one meanwhile, since a lock is held.

use super::Sharding;
use pando_access::{Guard, InternalCollections, Uninterrupted};
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_storage::ReadAt;

fn ns() -> Namespace {
    Namespace::unchecked("config", "ddl_fences")
}
/// Everything of a database was here at `since`, which came here by the definition of that number: snapshots from before are of another
/// shard's (`pando_access` reads it).
pub(crate) async fn note_arrival(
    internal: &InternalCollections,
    db: &str,
    at: Timestamp,
    since: Timestamp,
) -> Result<OpTime> {
    let mut b = DocBuilder::new();
    b.str("_id", db).timestamp("timestamp", at).timestamp("since", since);
    internal.put(&Uninterrupted, &ns(), &b.finish()).await
}
fn document(name: &str, at: Timestamp) -> DocBuf {
    let mut b = DocBuilder::new();
    b.str("_id", name).timestamp("timestamp", at);
    b.finish()
}
fn number(doc: &RawDoc) -> Option<Timestamp> {
    match doc.get("timestamp") {
        Some(Value::Timestamp(at)) => Some(at),
        _ => None,
    }
}
fn too_old(name: &str, at: Timestamp, newest: Timestamp) -> Error {
    let text = format!("a definition of {name} of {at} comes too late: there was one of {newest}");
    Error::new(ErrorCode::TransactionTooOld, text)
}

/// Above the number of a definition that is over, and not above that of the next one.
pub(crate) fn behind(at: Timestamp) -> Timestamp {
    Timestamp::new(at.secs(), at.inc() + 1)
}

/// While it is held nobody else takes part in a definition of the name.
pub(crate) struct Part {
    _locks: (Guard, Option<Guard>),
    /// Where the number was written down.
    pub(crate) wrote: Option<OpTime>,
}

impl Sharding {
    /// Takes part in a definition of a collection. Without `leaves` it is none that leaves something behind where nothing is: such
    /// numbers are not kept.
    ///
    /// # Errors
    /// 225 when a newer one has been here, of the collection or of its database.
    pub(crate) async fn take_part(
        &self,
        internal: &InternalCollections,
        of: &Namespace,
        at: Option<Timestamp>,
        leaves: bool,
    ) -> Result<Part> {
        let (database, collection) = self.part_locks.collection(&self.env, of.db(), of.as_str()).await;
        let mut part = Part { _locks: (database, Some(collection)), wrote: None };
        // Whoever does not know of numbers sends none.
        let Some(at) = at else { return Ok(part) };
        let own = internal.named(&ns(), of.as_str())?.as_deref().and_then(number);
        let database = internal.named(&ns(), of.db())?.as_deref().and_then(number);
        if let Some(newest) = own.max(database).filter(|newest| *newest > at) {
            return Err(too_old(of.as_str(), at, newest));
        }
        if own < Some(at) && (leaves || own.is_some()) {
            part.wrote = Some(internal.put(&Uninterrupted, &ns(), &document(of.as_str(), at)).await?);
        }
        Ok(part)
    }
    /// The same of a whole database; numbers of its collections are not needed any more.
    pub(crate) async fn take_part_in_database(
        &self,
        internal: &InternalCollections,
        db: &str,
        at: Option<Timestamp>,
    ) -> Result<Part> {
        let database = self.part_locks.exclusive(&self.env, db).await;
        let mut part = Part { _locks: (database, None), wrote: None };
        let Some(at) = at else { return Ok(part) };
        let of_database = |doc: &DocBuf| {
            let name = doc.get("_id").and_then(|v| v.as_str().map(str::to_owned))?;
            let rest = name.strip_prefix(db)?;
            (rest.is_empty() || rest.starts_with('.')).then_some((name.clone(), number(doc)?))
        };
        let all = internal.all(&ns(), ReadAt::Latest)?;
        let known: Vec<(String, Timestamp)> = all.iter().filter_map(of_database).collect();
        if let Some(newest) = known.iter().map(|(_, at)| *at).max().filter(|newest| *newest > at) {
            return Err(too_old(db, at, newest));
        }
        let wrote = internal.put(&Uninterrupted, &ns(), &document(db, at)).await?;
        let collections = known.into_iter().filter(|(name, _)| name != db);
        let keys: Vec<DocBuf> = collections.map(|(name, at)| document(&name, at)).collect();
        internal.remove_all(&Uninterrupted, &ns(), &keys).await?;
        part.wrote = Some(wrote);
        Ok(part)
    }
}
