//! Sharded collections that come and go: entry, chunks and zones together (SH-DDL-7, SH-DDL-8, SYS-251).

use crate::manager::CatalogManager;
use crate::metadata::ns;
use crate::mutexes::Subject;
use pando_access::{Change, Interrupt};
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp, Uuid, limits};
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc, Value};
use pando_query::source::Direction;
use pando_routing::{Chunk, ChunkVersion, CollectionEntry, RoutingTable};

impl CatalogManager {
    /// Writes a new sharded collection: its chunks, then its entry, in one transaction. The same once more changes nothing.
    ///
    /// # Errors
    /// 23 where the collection is sharded already, as another one than this; 225 where it was given up, or dropped since.
    pub async fn commit_collection(
        &self,
        interrupt: &dyn Interrupt,
        client: &str,
        entry_doc: &RawDoc,
        chunk_docs: &[&RawDoc],
    ) -> Result<ChunkVersion> {
        let entry = CollectionEntry::parse(entry_doc)?;
        let mut chunks = chunk_docs.iter().map(|doc| Chunk::parse(doc)).collect::<Result<Vec<Chunk>>>()?;
        // They must tile all keys before they may be believed.
        let table = RoutingTable::new(entry.clone(), &chunks)?;
        if table.chunks.len() != chunks.len() {
            return Err(Error::bad_value(format!("chunks of {} overlap", entry.ns)));
        }
        let name = Namespace::parse(&entry.ns)?;
        self.prepare().await?;
        // Zones of the name are by this key from now on.
        let _zones = self.lock(interrupt, Subject::Zones).await?;
        let _one = self.lock(interrupt, Subject::Collection(entry.ns.clone())).await?;
        let metadata = self.metadata();
        if let Some(there) = self.stored(&entry.ns)? {
            return same_as(&there.table, &entry);
        }
        self.check_not_fenced(&entry.ns, entry.generation.timestamp)?;
        // `config` is everybody's and nobody's.
        if name.db() != "config" && metadata.database(name.db())?.is_none() {
            let text = format!("database {} not found", name.db());
            return Err(Error::new(ErrorCode::NamespaceNotFound, text));
        }
        let parts: Vec<_> = table.chunks.parts().iter().map(|part| part.shard.clone()).collect();
        let _owners =
            self.keep_shards(interrupt, &parts.iter().map(|id| id.as_str()).collect::<Vec<_>>()).await?;
        let mut d = DocBuilder::new();
        d.raw_doc("shardKey", entry.key.pattern()).str("collection", &entry.ns);
        d.i32("numChunks", chunks.len() as i32);
        self.log_change(client, "shardCollection.start", &entry.ns, &d.finish()).await;
        // Chunks of a try that was given up.
        self.remove_chunks(interrupt, entry.uuid).await?;
        let mut changes = Vec::with_capacity(chunks.len() + 1);
        for chunk in &mut chunks {
            if chunk.id == ObjectId([0; 12]) {
                chunk.id = self.new_object_id();
            }
            changes.push(Change::Insert(ns("chunks"), chunk.to_doc(entry.uuid)));
        }
        changes.push(Change::Insert(ns("collections"), entry_doc.to_buf()));
        self.write(interrupt, &changes).await?;
        let mut d = DocBuilder::new();
        table.version().append("version", &mut d);
        self.log_change(client, "shardCollection.end", &entry.ns, &d.finish()).await;
        Ok(table.version())
    }

    /// From now on this collection cannot be committed any more, however late its commit arrives; its version, where it was.
    pub async fn give_up_collection(
        &self,
        interrupt: &dyn Interrupt,
        entry_doc: &RawDoc,
    ) -> Result<Option<ChunkVersion>> {
        let entry = CollectionEntry::parse(entry_doc)?;
        self.prepare().await?;
        let _one = self.lock(interrupt, Subject::Collection(entry.ns.clone())).await?;
        if let Some(there) = self.stored(&entry.ns)?
            && let Ok(version) = same_as(&there.table, &entry)
        {
            return Ok(Some(version));
        }
        let change = self.fenced(&entry.ns, entry.generation.timestamp)?;
        self.write(interrupt, &change.into_iter().collect::<Vec<_>>()).await?;
        Ok(None)
    }
    /// Takes everything away that says of a collection of this UUID that it is sharded, and the zones of its name. What was created
    /// under the name meanwhile stays. `at` is the number of the definition (see `pando_workflows::ddl`): older ones of the name are
    /// refused from now on, and this one has its effect once.
    pub async fn commit_drop_collection(
        &self,
        interrupt: &dyn Interrupt,
        client: &str,
        of: &str,
        uuid: Uuid,
        at: Option<Timestamp>,
    ) -> Result<()> {
        self.prepare().await?;
        let _zones = self.lock(interrupt, Subject::Zones).await?;
        let _one = self.lock(interrupt, Subject::Collection(of.to_owned())).await?;
        let metadata = self.metadata();
        let entry = metadata.collection(of)?;
        let its_uuid = entry.as_deref().map(CollectionEntry::parse).transpose()?.map(|entry| entry.uuid);
        let made = at.is_some() && self.fence(of)? >= at;
        if its_uuid.is_none_or(|there| there == uuid) && !made {
            let mut changes: Vec<Change> =
                entry.into_iter().map(|was| Change::Remove { ns: ns("collections"), was }).collect();
            let tags = metadata.tags(of)?.into_iter();
            changes.extend(tags.map(|was| Change::Remove { ns: ns("tags"), was }));
            // Together with as many chunks as one transaction should hold: nobody reads those that are left.
            changes.extend(self.some_chunks_removed(uuid)?);
            if let Some(at) = at {
                changes.extend(self.fenced(of, at)?);
            }
            self.write(interrupt, &changes).await?;
        }
        self.remove_chunks(interrupt, uuid).await?;
        if its_uuid == Some(uuid) {
            self.log_change(client, "dropCollection", of, RawDoc::empty()).await;
        }
        Ok(())
    }
    pub(crate) fn some_chunks_removed(&self, uuid: Uuid) -> Result<Vec<Change>> {
        let key = [Value::Binary { subtype: 4, bytes: &uuid.0 }];
        let max = limits::CHUNKS_REMOVED_AT_ONCE;
        let (chunks, index) = (ns("chunks"), crate::metadata::BY_START);
        let some: Vec<DocBuf> = self.internal.by_index(&chunks, index, &key, Direction::Forward, max)?;
        Ok(some.into_iter().map(|was| Change::Remove { ns: chunks.clone(), was }).collect())
    }
}

/// Numbers of the newest definitions: `{_id: <ns>, timestamp}`. One small document for each name that was sharded and is no more.
const FENCES: &str = "ddl_fences";

impl CatalogManager {
    /// 225 where a newer definition of the name was here, or this one was given up.
    pub(crate) fn check_not_fenced(&self, of: &str, at: Timestamp) -> Result<()> {
        match self.fence(of)?.filter(|newest| *newest >= at) {
            Some(newest) => Err(too_old(of, at, newest)),
            None => Ok(()),
        }
    }
    /// The newest definition of a name that took a sharded collection away, or was given up.
    pub(crate) fn fence(&self, of: &str) -> Result<Option<Timestamp>> {
        Ok(self.internal.named(&ns(FENCES), of)?.as_deref().and_then(fence_of))
    }
    /// The change that makes it at least `at`.
    pub(crate) fn fenced(&self, of: &str, at: Timestamp) -> Result<Option<Change>> {
        let was = self.internal.named(&ns(FENCES), of)?;
        let mut now = DocBuilder::new();
        now.str("_id", of).timestamp("timestamp", at);
        let now = now.finish();
        Ok(match was {
            None => Some(Change::Insert(ns(FENCES), now)),
            Some(was) if fence_of(&was) < Some(at) => Some(Change::Replace { ns: ns(FENCES), was, now }),
            Some(_) => None,
        })
    }
}

fn fence_of(doc: &RawDoc) -> Option<Timestamp> {
    match doc.get("timestamp") {
        Some(Value::Timestamp(at)) => Some(at),
        _ => None,
    }
}
fn too_old(of: &str, at: Timestamp, newest: Timestamp) -> Error {
    let text =
        format!("a definition of {of} of {at} comes too late: there was one of {newest}, or it was given up");
    Error::new(ErrorCode::TransactionTooOld, text)
}

fn same_as(there: &RoutingTable, wanted: &CollectionEntry) -> Result<ChunkVersion> {
    let known = &there.collection;
    if known.uuid == wanted.uuid && known.generation == wanted.generation && known.key == wanted.key {
        return Ok(there.version());
    }
    let text = format!(
        "{} is sharded already, by {}, since {}",
        known.ns,
        known.key.pattern(),
        known.generation.timestamp
    );
    Err(Error::new(ErrorCode::AlreadyInitialized, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stored;
    use pando_routing::Placement;

    #[test]
    fn what_is_sharded_so_already_is_no_mistake() {
        let there = stored(&[(Value::MinKey, "a"), (Value::Int32(0), "a")]);
        let wanted = there.entry().clone();
        assert_eq!(same_as(&there.table, &wanted).unwrap().placement, Placement::new(1, 1));
        let other = CollectionEntry { uuid: Uuid([2; 16]), ..wanted };
        assert_eq!(same_as(&there.table, &other).unwrap_err().code, ErrorCode::AlreadyInitialized);
    }
}
