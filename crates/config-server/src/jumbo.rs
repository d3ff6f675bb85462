//! Chunks that are too large to be moved: the balancer marks them and passes them over, whoever knows better takes the mark away
//! (SH-MIG-19, SYS-245). A split and a migration take it away, too.

use crate::chunks::{no_collection, placed};
use crate::documents::with_fields;
use crate::manager::CatalogManager;
use crate::metadata::ns;
use crate::mutexes::Subject;
use pando_access::{Change, Interrupt};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, ObjectId, RawDoc, Value};
use pando_routing::{Chunk, CollectionEntry};

fn is_jumbo(chunk: &RawDoc) -> bool {
    chunk.get("jumbo").is_some_and(|v| v.is_truthy())
}

impl CatalogManager {
    /// A chunk that cannot be moved, and that nobody can split. It keeps its version: only config servers go by the mark.
    ///
    /// # Errors
    /// 150 for a collection of another generation, 51262 for what is no chunk by now.
    pub async fn mark_jumbo(
        &self,
        interrupt: &dyn Interrupt,
        of: &str,
        epoch: ObjectId,
        (min, max): (&RawDoc, &RawDoc),
    ) -> Result<()> {
        self.prepare().await?;
        let _one = self.lock(interrupt, Subject::Collection(of.to_owned())).await?;
        let other = || format!("the collection {of} is another one than the balancer has seen");
        let (entry, was) = self.chunk_of(of, epoch, (min, max), other)?;
        if is_jumbo(&was) {
            return Ok(());
        }
        let now = with_fields(&was, &[("jumbo", Some(Value::Boolean(true)))]);
        let marked = Chunk::parse(&now)?;
        let written = self.write(interrupt, &[Change::Replace { ns: ns("chunks"), was, now }]).await;
        // Also where it is not known whether a majority will have it: it may be there.
        self.tables.remark(entry.uuid, marked);
        written.map(drop)
    }
    /// A chunk that was too large to be moved may have become smaller.
    pub async fn clear_jumbo_flag(
        &self,
        interrupt: &dyn Interrupt,
        of: &str,
        epoch: ObjectId,
        (min, max): (&RawDoc, &RawDoc),
    ) -> Result<()> {
        self.prepare().await?;
        let _one = self.lock(interrupt, Subject::Collection(of.to_owned())).await?;
        let other = || {
            format!(
                "clearJumboFlag namespace {of} has a different epoch than mongos had in its routing table cache"
            )
        };
        let (entry, was) = self.chunk_of(of, epoch, (min, max), other)?;
        if !is_jumbo(&was) {
            return Ok(());
        }
        let newest = self.metadata().newest_chunk(entry.uuid)?.ok_or_else(no_collection)?;
        let next = Chunk::parse(&newest)?.placement.after_move()?;
        self.write(interrupt, &[placed(was, next, Some(("jumbo", None)))]).await.map(drop)
    }
    /// The chunk with just these bounds.
    fn chunk_of(
        &self,
        of: &str,
        epoch: ObjectId,
        (min, max): (&RawDoc, &RawDoc),
        other: impl FnOnce() -> String,
    ) -> Result<(CollectionEntry, DocBuf)> {
        let metadata = self.metadata();
        let entry = metadata.collection(of)?.ok_or_else(no_collection)?;
        let entry = CollectionEntry::parse(&entry)?;
        if entry.generation.epoch != epoch {
            return Err(Error::new(ErrorCode::StaleEpoch, other()));
        }
        let found = metadata.chunk(entry.uuid, min)?.filter(|doc| {
            doc.get("max").and_then(|v| v.as_doc()).is_some_and(|m| m.as_bytes() == max.as_bytes())
        });
        let found = found.ok_or_else(|| {
            Error::location(51_262, format!("Unable to locate chunk [{min}, {max}) from ns: {of}"))
        })?;
        Ok((entry, found))
    }
}
