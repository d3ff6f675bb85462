//! What the config servers have to do with chunks that move: they say who owns the range from now on (SH-MIG-12, SH-MIG-18), and
//! whether anything may move at all.

use crate::chunks::{no_collection, versions};
use crate::documents::with_fields;
use crate::manager::CatalogManager;
use crate::metadata::{Stored, ns};
use crate::mutexes::Subject;
use pando_access::{Change, Interrupt};
use pando_base::{Error, ErrorCode, Result, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, Value};
use pando_routing::{ChunkVersion, CollectionEntry, ShardId, commit};

/// What `_configsvrCommitChunkMigration` asks for.
pub struct Migration {
    pub ns: String,
    pub from: ShardId,
    pub to: ShardId,
    pub min: DocBuf,
    pub max: DocBuf,
    /// Of the chunk, as the donor knows it.
    pub version: ChunkVersion,
    /// Of the donor's part of the collection.
    pub collection_version: ChunkVersion,
    pub valid_after: Option<Timestamp>,
}

fn conflict(text: String) -> Error {
    Error::new(ErrorCode::ConflictingOperationInProgress, text)
}

impl CatalogManager {
    /// Returns the versions of the collection and of the donor's part of it.
    pub async fn commit_migration(
        &self,
        interrupt: &dyn Interrupt,
        client: &str,
        migration: &Migration,
    ) -> Result<(ChunkVersion, ChunkVersion)> {
        self.prepare().await?;
        let _one = self.lock(interrupt, Subject::Collection(migration.ns.clone())).await?;
        let _owners = self.keep_shards(interrupt, &[migration.to.as_str()]).await.map_err(|e| {
            let text = format!("Shard {} does not exist", migration.to);
            if e.code == ErrorCode::ShardNotFound { Error::new(e.code, text) } else { e }
        })?;
        let stored = self.stored(&migration.ns)?.ok_or_else(no_collection)?;
        let Some(at) = migration.valid_after else {
            let text = "chunk operation requires validAfter timestamp";
            return Err(Error::new(ErrorCode::IllegalOperation, text));
        };
        migration.check_generation(&stored)?;
        if migration.is_done(&stored)? {
            return Ok(versions(&stored.table, &migration.from));
        }
        migration.check(&stored, at)?;
        let Migration { from, to, min, max, .. } = migration;
        let change = commit::move_range(&stored.table, from, to, min, max, at)?;
        let after = stored.after(&change.written)?;
        let mut d = DocBuilder::new();
        d.raw_doc("min", min).raw_doc("max", max).str("from", from.as_str()).str("to", to.as_str());
        // Writers wait for it on the donor.
        let (changes, what) = (self.changes(&stored, change)?, ("moveChunk.commit", &*migration.ns));
        self.write_told(interrupt, &changes, client, what, &[d.finish()]).await?;
        Ok(versions(&after, from))
    }

    /// Says whether chunks of a collection may move, and makes everybody who keeps its chunks look again. Who names the version that
    /// it changes changes no other one: a command that comes late has no effect.
    ///
    /// # Errors
    /// 118 where it is not sharded, 117 where its version is another one by now and it is not as wanted.
    pub async fn set_allow_migrations(
        &self,
        interrupt: &dyn Interrupt,
        of: &str,
        uuid: Option<Uuid>,
        version: Option<ChunkVersion>,
        allow: bool,
    ) -> Result<()> {
        self.prepare().await?;
        let _one = self.lock(interrupt, Subject::Collection(of.to_owned())).await?;
        let was = self.metadata().collection(of)?.ok_or_else(|| {
            Error::new(ErrorCode::NamespaceNotSharded, format!("Collection {of} is not sharded."))
        })?;
        let entry = CollectionEntry::parse(&was)?;
        if let Some(uuid) = uuid.filter(|uuid| *uuid != entry.uuid) {
            let text = format!(
                "Collection uuid {uuid} in the request does not match the current uuid {} for ns {of}",
                entry.uuid
            );
            return Err(Error::new(ErrorCode::InvalidUUID, text));
        }
        if let Some(version) = version {
            if entry.allow_migrations == allow {
                return Ok(());
            }
            let stored = self.stored(of)?;
            if stored.is_none_or(|stored| stored.table.version() != version) {
                return Err(conflict(format!("collection {of} has changed since it was looked at")));
            }
        }
        let now = with_fields(&was, &[("allowMigrations", (!allow).then_some(Value::Boolean(false)))]);
        let mut changes = vec![Change::Replace { ns: ns("collections"), was, now }];
        changes.extend(self.bump(entry.uuid)?);
        self.write(interrupt, &changes).await.map(drop)
    }
}

impl Migration {
    fn check_generation(&self, stored: &Stored) -> Result<()> {
        let entry = stored.entry();
        if !entry.allow_migrations {
            return Err(conflict("Collection is undergoing changes and chunks cannot be moved".to_owned()));
        }
        let (now, theirs) = (entry.generation, self.collection_version.generation);
        if now.epoch == theirs.epoch && now.timestamp == theirs.timestamp {
            return Ok(());
        }
        let text = format!(
            "The epoch of collection '{}' has changed since the migration began. The config server's collection version \
             epoch is now '{}', but the shard's is {}'. Aborting migration commit for chunk ([{}, {})).",
            self.ns,
            now.epoch.to_hex(),
            theirs.epoch.to_hex(),
            self.min,
            self.max
        );
        Err(Error::new(ErrorCode::StaleEpoch, text))
    }
    /// The recipient owns just this range: the command came before.
    fn is_done(&self, stored: &Stored) -> Result<bool> {
        let Some(chunk) = stored.chunk(&self.min) else { return Ok(false) };
        let is_whole = stored.entry().key.key_of_bound(&self.max).is_ok_and(|end| chunk.end() == end);
        Ok(*chunk.shard() == self.to && is_whole)
    }
    fn check(&self, stored: &Stored, at: Timestamp) -> Result<()> {
        let key = &stored.entry().key;
        let (Ok(start), Ok(end)) = (key.key_of_bound(&self.min), key.key_of_bound(&self.max)) else {
            return Err(self.no_chunk());
        };
        let holds = stored.table.chunks.find(&start).filter(|c| start < end && end.as_slice() <= c.end());
        let Some(chunk) = holds else { return Err(self.no_chunk()) };
        if self.version.placement < chunk.placement() {
            return Err(conflict(format!(
                "Rejecting migration request because the version of the requested chunk [{}, {})({}) is older than the \
                 version of the current chunk [{}, {})({}) on shard {}",
                self.min,
                self.max,
                self.version.placement,
                chunk.min(),
                chunk.max(),
                chunk.placement(),
                chunk.shard()
            )));
        }
        if chunk.shard() == &self.from && chunk.since().is_some_and(|since| since >= at) {
            let text = format!(
                "The chunk history for chunk with namespace {} and min key {} is corrupted. The last validAfter {} is \
                 greater or equal to the new validAfter {at}",
                self.ns,
                self.min,
                chunk.since().unwrap_or(Timestamp::ZERO)
            );
            return Err(Error::new(ErrorCode::IncompatibleShardingMetadata, text));
        }
        Ok(())
    }
    fn no_chunk(&self) -> Error {
        let text = format!(
            "Could not find a chunk including bounds [{}, {}). Cannot execute the migration commit with invalid chunks.",
            self.min, self.max
        );
        Error::location(40_165, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{GENERATION, stored};
    use pando_bson::doc;
    use pando_routing::{Generation, Placement};

    fn version(minor: u32) -> ChunkVersion {
        let generation = Generation { epoch: GENERATION.0, timestamp: GENERATION.1 };
        ChunkVersion::new(generation, Placement::new(1, minor))
    }
    fn migration(from: &str, to: &str, min: i32, max: i32) -> Migration {
        Migration {
            ns: "d.c".to_owned(),
            from: ShardId::new(from),
            to: ShardId::new(to),
            min: doc! { "a": min }.to_raw(),
            max: doc! { "a": max }.to_raw(),
            version: version(5),
            collection_version: version(5),
            valid_after: None,
        }
    }
    fn code(r: Result<()>) -> Option<i32> {
        r.err().map(|e| e.code.0)
    }

    #[test]
    fn a_range_moves_from_its_owner_once_and_only_by_what_is_so_now() {
        let stored = stored(&[(Value::MinKey, "a"), (Value::Int32(0), "a"), (Value::Int32(9), "b")]);
        let late = Timestamp::new(11, 1);
        let fits = migration("a", "b", 2, 5);
        assert_eq!((code(fits.check_generation(&stored)), code(fits.check(&stored, late))), (None, None));
        assert!(!fits.is_done(&stored).unwrap());
        // Across two chunks, and of the past.
        assert_eq!(code(migration("a", "b", 2, 15).check(&stored, late)), Some(40_165));
        assert_eq!(code(fits.check(&stored, Timestamp::new(10, 1))), Some(105));
        assert_eq!(
            code(Migration { version: version(0), ..migration("a", "b", 2, 5) }.check(&stored, late)),
            Some(117)
        );
        let of_another = Generation { epoch: GENERATION.0, timestamp: Timestamp::new(8, 1) };
        let other = ChunkVersion::new(of_another, Placement::new(1, 5));
        let other = Migration { collection_version: other, ..migration("a", "b", 2, 5) };
        assert_eq!(code(other.check_generation(&stored)), Some(150));
        // What the recipient owns has been moved.
        assert!(migration("b", "a", 0, 9).is_done(&stored).unwrap());
    }
}
