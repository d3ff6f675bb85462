//! Chunks that change without a document moving: split, merged (SH-SPLIT-1, SH-SPLIT-2, SYS-257).

use crate::documents::with_fields;
use crate::manager::CatalogManager;
use crate::metadata::{Stored, ns};
use crate::mutexes::Subject;
use pando_access::{Change, Interrupt};
use pando_base::{Error, ErrorCode, Result, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc, Value};
use pando_routing::{Chunk, ChunkVersion, CollectionEntry, Placement, RoutingTable, ShardId, commit};

/// What `_configsvrCommitChunkSplit` asks for.
pub struct Split {
    pub ns: String,
    pub epoch: ObjectId,
    pub timestamp: Option<Timestamp>,
    pub min: DocBuf,
    pub max: DocBuf,
    pub points: Vec<DocBuf>,
    pub shard: ShardId,
}

/// What `_configsvrCommitChunksMerge` asks for.
pub struct Merge {
    pub ns: String,
    pub uuid: Uuid,
    pub timestamp: Option<Timestamp>,
    pub min: DocBuf,
    pub max: DocBuf,
    pub shard: ShardId,
}

pub(crate) fn no_collection() -> Error {
    Error::new(ErrorCode::ConflictingOperationInProgress, "Collection does not exist")
}

/// `{min, max, lastmod}` of a chunk in `config.changelog`.
fn told(d: &mut DocBuilder, name: &str, min: &RawDoc, max: &RawDoc, version: ChunkVersion) {
    d.doc(name, |c| {
        c.raw_doc("min", min).raw_doc("max", max);
        version.append("lastmod", c);
    });
}

impl CatalogManager {
    /// Returns the versions of the collection and of the shard's part of it.
    pub async fn split(
        &self,
        interrupt: &dyn Interrupt,
        client: &str,
        split: &Split,
    ) -> Result<(ChunkVersion, ChunkVersion)> {
        self.prepare().await?;
        let _one = self.lock(interrupt, Subject::Collection(split.ns.clone())).await?;
        let stored = self.stored(&split.ns)?.ok_or_else(no_collection)?;
        check_generation(&stored, split)?;
        if stored.chunk(&split.min).is_none() {
            return Err(Error::new(
                ErrorCode::IncompatibleShardingMetadata,
                format!(
                    "Tried to find the chunk for uuid{} and min key {}, but found no chunks",
                    stored.entry().uuid,
                    split.min
                ),
            ));
        }
        let done = commit::split(&stored.table, &split.shard, &split.min, &split.max, &split.points);
        let change = done.map_err(not_committed)?;
        let before = stored.table.version();
        let written = change.written.clone();
        let after = stored.after(&written)?;
        let what = if written.len() == 2 { "split" } else { "multi-split" };
        let (changes, told) = (self.changes(&stored, change)?, split_details(split, before, &written));
        self.write_told(interrupt, &changes, client, (what, &split.ns), &told).await?;
        Ok(versions(&after, &split.shard))
    }
    /// Returns the version of the shard's part of the collection.
    pub async fn merge(
        &self,
        interrupt: &dyn Interrupt,
        client: &str,
        merge: &Merge,
    ) -> Result<ChunkVersion> {
        self.prepare().await?;
        let _one = self.lock(interrupt, Subject::Collection(merge.ns.clone())).await?;
        let stored = self.stored(&merge.ns)?.ok_or_else(|| {
            let text = format!("Collection '{}' no longer either exists", merge.ns);
            Error::location(5_057_701, text)
        })?;
        let entry = stored.entry();
        if entry.uuid != merge.uuid {
            let text = format!(
                "UUID of collection does not match UUID of request. Colletion UUID: {}, request UUID: {}",
                entry.uuid, merge.uuid
            );
            return Err(Error::new(ErrorCode::InvalidUUID, text));
        }
        if merge.timestamp.is_some_and(|t| t != entry.generation.timestamp) {
            return Err(Error::new(ErrorCode::StaleEpoch, "Collection changed"));
        }
        let fits = |bound: &RawDoc| entry.key.key_of_bound(bound).is_ok();
        if !fits(&merge.min) || !fits(&merge.max) {
            let text = format!(
                "could not merge chunks, shard {} does not contain a sequence of chunks that exactly fills the range [{}, {})",
                merge.shard, merge.min, merge.max
            );
            return Err(Error::new(ErrorCode::IllegalOperation, text));
        }
        let change = commit::merge(&stored.table, &merge.shard, &merge.min, &merge.max)?;
        let version = stored.after(&change.written)?.shard_version(&merge.shard);
        if let [merged] = &change.written[..] {
            let told = merge_details(&stored, merged, change.removed.len() + 1);
            let changes = self.changes(&stored, change)?;
            self.write_told(interrupt, &changes, client, ("merge", &merge.ns), &[told]).await?;
        }
        Ok(version)
    }

    /// Sees to it that nothing that was decided upon `version` of the chunk can be committed any more (SH-MIG-13). Nothing happens
    /// where the chunk, or the collection, is another one by now.
    pub async fn ensure_chunk_version_is_greater(
        &self,
        interrupt: &dyn Interrupt,
        of: &str,
        uuid: Uuid,
        (min, max): (&RawDoc, &RawDoc),
        version: ChunkVersion,
    ) -> Result<()> {
        self.prepare().await?;
        let _one = self.lock(interrupt, Subject::Collection(of.to_owned())).await?;
        let metadata = self.metadata();
        let Some(entry) = metadata.collection(of)? else { return Ok(()) };
        let entry = CollectionEntry::parse(&entry)?;
        let (true, Some(was)) = (entry.uuid == uuid, metadata.chunk(uuid, min)?) else { return Ok(()) };
        let chunk = Chunk::parse(&was)?;
        let newer = chunk.placement > version.placement;
        if chunk.max.as_bytes() != max.as_bytes() || entry.generation != version.generation || newer {
            return Ok(());
        }
        let newest = metadata.newest_chunk(uuid)?.ok_or_else(no_collection)?;
        let next = Chunk::parse(&newest)?.placement.after_move()?;
        self.write(interrupt, &[placed(was, next, None)]).await.map(drop)
    }
    /// A change of the newest chunk's version alone: those who keep the collection's chunks learn that something is new.
    pub(crate) fn bump(&self, uuid: Uuid) -> Result<Option<Change>> {
        let Some(was) = self.metadata().newest_chunk(uuid)? else { return Ok(None) };
        let next = Chunk::parse(&was)?.placement.after_change()?;
        Ok(Some(placed(was, next, None)))
    }
    /// All chunks that a collection of this UUID has.
    pub async fn remove_chunks(&self, interrupt: &dyn Interrupt, uuid: Uuid) -> Result<()> {
        self.prepare().await?;
        self.tables.forget(uuid);
        loop {
            let changes = self.some_chunks_removed(uuid)?;
            if changes.is_empty() {
                return Ok(());
            }
            self.write(interrupt, &changes).await?;
        }
    }
}

/// Of the collection, and of a shard's part of it.
pub(crate) fn versions(table: &RoutingTable, shard: &ShardId) -> (ChunkVersion, ChunkVersion) {
    (table.version(), table.shard_version(shard))
}

/// With another version.
pub(crate) fn placed(was: DocBuf, next: Placement, also: Option<(&str, Option<Value<'_>>)>) -> Change {
    let mut fields = vec![("lastmod", Some(Value::Timestamp(next.timestamp())))];
    fields.extend(also);
    Change::Replace { ns: ns("chunks"), now: with_fields(&was, &fields), was }
}

fn check_generation(stored: &Stored, split: &Split) -> Result<()> {
    let now = stored.entry().generation;
    if now.epoch == split.epoch && split.timestamp.is_none_or(|t| t == now.timestamp) {
        return Ok(());
    }
    let text = format!(
        "splitChunk cannot split chunk [{}, {}). Epoch of collection '{}' has changed. Current epoch: {}, cmd epoch: {}",
        split.min,
        split.max,
        split.ns,
        now.epoch.to_hex(),
        split.epoch.to_hex()
    );
    Err(Error::new(ErrorCode::StaleEpoch, text))
}

/// A chunk that is not as the sender believed: 6.0.5 finds out while it writes.
fn not_committed(e: Error) -> Error {
    match e.code {
        ErrorCode::ConflictingOperationInProgress | ErrorCode::BadValue => {
            Error::bad_value(format!("chunk operation commit failed: {}", e.message))
        }
        _ => e,
    }
}

/// What the changelog tells of a chunk that was `chunks` chunks.
pub(crate) fn merge_details(stored: &Stored, merged: &Chunk, chunks: usize) -> DocBuf {
    let mut d = DocBuilder::new();
    stored.table.shard_version(&merged.shard).append("prevShardVersion", &mut d);
    ChunkVersion::new(stored.entry().generation, merged.placement).append("mergedVersion", &mut d);
    d.str("owningShard", merged.shard.as_str()).raw_doc("min", &merged.min).raw_doc("max", &merged.max);
    d.i32("numChunks", chunks as i32);
    d.finish()
}

fn split_details(split: &Split, before: ChunkVersion, written: &[Chunk]) -> Vec<DocBuf> {
    let version = |chunk: &Chunk| ChunkVersion::new(before.generation, chunk.placement);
    let whole = |d: &mut DocBuilder| told(d, "before", &split.min, &split.max, before);
    if let [left, right] = written {
        let mut d = DocBuilder::new();
        whole(&mut d);
        told(&mut d, "left", &left.min, &left.max, version(left));
        told(&mut d, "right", &right.min, &right.max, version(right));
        d.str("owningShard", split.shard.as_str());
        return vec![d.finish()];
    }
    let of = written.len() as i32;
    let each = written.iter().enumerate().map(|(i, chunk)| {
        let mut d = DocBuilder::new();
        whole(&mut d);
        d.i32("number", i as i32 + 1).i32("of", of);
        told(&mut d, "chunk", &chunk.min, &chunk.max, version(chunk));
        d.str("owningShard", split.shard.as_str());
        d.finish()
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{GENERATION, stored};
    use pando_bson::doc;

    fn split(points: &[i32]) -> Split {
        Split {
            ns: "d.c".to_owned(),
            epoch: GENERATION.0,
            timestamp: None,
            min: doc! { "a": 0 }.to_raw(),
            max: doc! { "a": 9 }.to_raw(),
            points: points.iter().map(|n| doc! { "a": *n }.to_raw()).collect(),
            shard: ShardId::new("a"),
        }
    }

    #[test]
    fn a_split_in_two_is_told_at_once_and_others_piece_by_piece() {
        let stored = stored(&[(Value::MinKey, "a"), (Value::Int32(0), "a"), (Value::Int32(9), "b")]);
        let told = |points: &[i32]| {
            let split = split(points);
            let change =
                commit::split(&stored.table, &split.shard, &split.min, &split.max, &split.points).unwrap();
            split_details(&split, stored.table.version(), &change.written)
        };
        let number = |d: &RawDoc, path: &str| d.get_path(path).and_then(|v| v.as_i64());
        let two = told(&[5]);
        assert!(two.len() == 1 && number(&two[0], "left.max.a") == Some(5));
        let three = told(&[3, 5]);
        assert_eq!(three.len(), 3);
        assert_eq!((number(&three[2], "number"), number(&three[2], "of")), (Some(3), Some(3)));
        assert_eq!(number(&three[1], "before.max.a"), Some(9));
    }

    #[test]
    fn a_split_of_another_generation_is_refused() {
        let stored = stored(&[(Value::MinKey, "a")]);
        assert!(check_generation(&stored, &split(&[5])).is_ok());
        let late = Split { timestamp: Some(Timestamp::new(99, 1)), ..split(&[5]) };
        assert_eq!(check_generation(&stored, &late).unwrap_err().code, ErrorCode::StaleEpoch);
        assert_eq!(not_committed(Error::bad_value("x")).code, ErrorCode::BadValue);
    }
}
