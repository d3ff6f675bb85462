//! What a recipient's node does for a migration (`pando_workflows::receive_range`).

use super::{Ddl, range, throttle};
use pando_access::Uninterrupted;
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_routing::ShardId;
use pando_storage::ReadAt;
use pando_workflows::migration::{self, Migration};
use std::time::Duration;

fn failed(text: String) -> Error {
    Error::new(ErrorCode::OperationFailed, text)
}

/// Nothing of the range is this shard's, nothing of it waits to be deleted, and none of its documents are here.
pub(super) async fn prepare(ddl: &Ddl<'_>, migration: &Migration) -> Result<DocBuf> {
    let table = range::as_routed(ddl, migration).await?;
    let table = table.ok_or_else(|| failed(format!("{} is another collection by now", migration.ns)))?;
    let keys = range::keys_among(&table, migration)?;
    let own = ddl.own_id();
    if table.chunks.iter().any(|c| c.shard() == own && keys.meets(c.start(), c.end())) {
        let text = format!("shard {own} owns something of [{}, {}) already", migration.min, migration.max);
        return Err(failed(text));
    }
    await_deletions(ddl, migration).await?;
    // What nobody has a task for: this shard has not owned it for long, or never.
    if ddl.server.access.definitions().collection(&migration.ns).is_some_and(|c| c.uuid == migration.uuid) {
        let range = range::whatever_there_is(ddl, migration)?;
        let maintenance = &ddl.server.upkeep.maintenance;
        maintenance.delete_all_in_range(&Uninterrupted, &range, limits::RANGE_DELETION_DOCUMENTS_MAX).await?;
    }
    Ok(DocBuf::default())
}

/// Earlier deletions of what is to be received.
async fn await_deletions(ddl: &Ddl<'_>, migration: &Migration) -> Result<()> {
    let (keys, key) = (range::keys(migration)?, range::key(migration)?);
    let clock = &ddl.ctx.env().clock;
    let until = clock.mono() + Duration::from_millis(limits::MIGRATION_DELETIONS_AWAITED_MS);
    loop {
        let tasks = ddl.server.access.internal_collections().all(&migration::deletions(), ReadAt::Latest)?;
        let overlaps = |task: &DocBuf| {
            let Some(other) = Migration::parse(task) else { return false };
            let of_it = other.uuid == migration.uuid && other.id != migration.id;
            // One from before the key got its last fields.
            let (min, max) = (key.extend_bound(&other.min), key.extend_bound(&other.max));
            of_it && key.range(&min, &max).is_ok_and(|other| keys.overlaps(&other))
        };
        if !tasks.iter().any(overlaps) {
            return Ok(());
        }
        if clock.mono() >= until {
            let text = format!(
                "the range [{}, {}) of {} waits to be deleted here; try again when that is done",
                migration.min, migration.max, migration.ns
            );
            return Err(failed(text));
        }
        clock.sleep(Duration::from_millis(limits::MIGRATION_DELETIONS_LOOKED_AT_MS)).await;
    }
}

/// The collection as the donor has it, with its indexes.
pub(super) async fn make_collection(ddl: &Ddl<'_>, migration: &Migration) -> Result<DocBuf> {
    let (ns, donor) = (&migration.ns, ShardId::new(&migration.donor));
    let batch = async |body: DocBuf| -> Result<Vec<DocBuf>> {
        let reply = ddl.on_shard(&donor, &body).await?;
        let list = reply.get("cursor").and_then(|v| v.as_doc()?.get("firstBatch")?.as_array());
        Ok(list.into_iter().flatten().filter_map(|e| e.value().as_doc().map(RawDoc::to_buf)).collect())
    };
    let mut b = DocBuilder::new();
    b.i32("listCollections", 1).doc("filter", |d| _ = d.str("name", ns.coll())).str("$db", ns.db());
    let listed = batch(b.finish()).await?;
    let there = listed.first().ok_or_else(|| failed(format!("the donor has no collection {ns}")))?;
    let options = there.get("options").and_then(|v| v.as_doc().map(RawDoc::to_buf)).unwrap_or_default();
    let mut b = DocBuilder::new();
    b.str("listIndexes", ns.coll());
    b.doc("cursor", |d| _ = d.i32("batchSize", i32::MAX)).str("$db", ns.db());
    let indexes = batch(b.finish()).await?;
    let mut list = pando_bson::ArrayBuilder::new();
    indexes.iter().for_each(|index| _ = list.raw_doc(index));
    let still = async || {
        // Behind a rename it would be here under its old name for ever.
        ddl.check_not_renamed_now(ns)?;
        match range::as_routed(ddl, migration).await? {
            Some(table) => Ok(table.chunks.parts().iter().any(|p| p.shard == *ddl.own_id() && p.chunks > 0)),
            None => Err(failed(format!("{ns} is another collection by now"))),
        }
    };
    ddl.create_for_range(ns, migration.uuid, &options, &list.finish(), still).await?;
    range::by_index(ddl, migration)?;
    Ok(DocBuf::default())
}

/// What came in one turn.
struct Helped {
    /// Documents, keys and entries.
    things: usize,
    more: bool,
}

impl Helped {
    fn is_nothing(&self) -> bool {
        self.things == 0 && !self.more
    }
    /// Few enough to fetch the rest while nobody may write: under load there is always something.
    fn is_little(&self) -> bool {
        self.things <= limits::MIGRATION_LITTLE_LEFT && !self.more
    }
}

/// One request to the donor, the same each time until its answer is put here.
struct Asking<'a> {
    ddl: &'a Ddl<'a>,
    migration: &'a Migration,
    receiver: i64,
}

impl<'a> Asking<'a> {
    fn new(ddl: &'a Ddl<'a>, migration: &'a Migration, body: &RawDoc) -> Result<Asking<'a>> {
        let receiver = body.get("receiver").and_then(|v| v.as_i64());
        let receiver = receiver.ok_or_else(|| Error::internal("a recipient without a number"))?;
        Ok(Asking { ddl, migration, receiver })
    }
    async fn turn(&self, command: &str, number: u64) -> Result<DocBuf> {
        let mut b = DocBuilder::new();
        b.str(command, self.migration.ns.as_str()).uuid("migrationId", &self.migration.id.0);
        b.i64("receiver", self.receiver).i64("number", number.cast_signed()).str("$db", "admin");
        self.ddl.on_shard(&ShardId::new(&self.migration.donor), &b.finish()).await
    }
    async fn put(&self, docs: &[DocBuf], gone: &[DocBuf]) -> Result<()> {
        let (ns, uuid) = (&self.migration.ns, self.migration.uuid);
        let (key, keys) = (range::key(self.migration)?, range::keys(self.migration)?);
        let in_range = |doc: &RawDoc| {
            let mut at = KeyBuilder::default();
            key.key_of(doc, &mut at).is_ok() && keys.holds(at.bytes())
        };
        let maintenance = &self.ddl.server.upkeep.maintenance;
        maintenance.remove_moved(&Uninterrupted, ns, uuid, gone, &in_range).await?;
        maintenance.put_moved(&Uninterrupted, ns, uuid, docs, &in_range).await
    }
    /// One helping of what sessions have done.
    async fn learn(&self) -> Result<Helped> {
        let receptions = &self.ddl.sharding.receptions;
        let number = receptions.histories(self.migration.id, self.receiver)? + 1;
        let reply = self.turn("_getNextSessionMods", number).await?;
        let entries = documents(&reply, "oplog");
        self.ddl.server.sessions.take_moved(&Uninterrupted, &entries).await?;
        receptions.has_histories(self.migration.id, number);
        Ok(Helped { things: entries.len(), more: reply.get("more").is_some_and(|v| v.is_truthy()) })
    }
    /// One helping of changes.
    async fn change(&self) -> Result<Helped> {
        let receptions = &self.ddl.sharding.receptions;
        let number = receptions.changed(self.migration.id, self.receiver)? + 1;
        let reply = self.turn("_transferMods", number).await?;
        let (gone, written) = (documents(&reply, "deleted"), documents(&reply, "reload"));
        self.put(&written, &gone).await?;
        receptions.has_changed(self.migration.id, number);
        let counts = &self.ddl.sharding.statistics;
        counts.docs_caught_up.add(written.len() as u64);
        counts.bytes_caught_up.add(written.iter().map(|d| d.byte_len() as u64).sum());
        let Helped { things, more } = self.learn().await?;
        let helped = Helped { things: things + gone.len() + written.len(), more };
        receptions.steady(self.migration.id, helped.is_little());
        Ok(helped)
    }
}

fn documents(reply: &RawDoc, name: &str) -> Vec<DocBuf> {
    let list = reply.get(name).and_then(|v| v.as_array());
    list.into_iter().flatten().filter_map(|e| e.value().as_doc().map(RawDoc::to_buf)).collect()
}

pub(super) async fn copy(ddl: &Ddl<'_>, migration: &Migration, body: &RawDoc) -> Result<DocBuf> {
    let asking = Asking::new(ddl, migration, body)?;
    let receptions = &ddl.sharding.receptions;
    loop {
        let number = receptions.copied(migration.id, asking.receiver)? + 1;
        let docs = documents(&asking.turn("_migrateClone", number).await?, "objects");
        asking.put(&docs, &[]).await?;
        throttle::wait(ddl, body).await?;
        receptions.has_copied(migration.id, number, &docs);
        ddl.sharding.statistics.docs_received.add(docs.len() as u64);
        ddl.sharding.statistics.bytes_received.add(docs.iter().map(|d| d.byte_len() as u64).sum());
        if docs.is_empty() {
            return Ok(DocBuf::default());
        }
    }
}

/// `{empty}`: hardly anything was left.
pub(super) async fn catch_up(ddl: &Ddl<'_>, migration: &Migration, body: &RawDoc) -> Result<DocBuf> {
    let helped = Asking::new(ddl, migration, body)?.change().await?;
    let mut b = DocBuilder::new();
    b.bool("empty", helped.is_little());
    Ok(b.finish())
}

pub(super) async fn drain(ddl: &Ddl<'_>, migration: &Migration, body: &RawDoc) -> Result<DocBuf> {
    let asking = Asking::new(ddl, migration, body)?;
    while !asking.change().await?.is_nothing() {}
    Ok(DocBuf::default())
}
