//! Fields are added to the shard key of a collection: bounds of chunks and zones get them, too, and who owns what stays (SYS-267).

use crate::documents::with_fields;
use crate::manager::CatalogManager;
use crate::metadata::{Stored, ns};
use crate::mutexes::Subject;
use pando_access::{Change, Interrupt};
use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_routing::{Generation, ShardKey};

/// What `_configsvrCommitRefineCollectionShardKey` asks for.
pub struct Refinement {
    pub ns: String,
    pub key: ShardKey,
    /// Of the collection as it was when this was decided.
    pub old: Timestamp,
    /// What it will be of. The timestamp is the number of the definition (see `pando_workflows::ddl`).
    pub new: Generation,
}

impl CatalogManager {
    /// Writes entry, chunks and zones in one transaction. The same once more changes nothing.
    ///
    /// # Errors
    /// 118 where it is not sharded, 150 where it is of another generation, 225 where this was given up; 72 for a key that does not begin
    /// with the one that it has.
    pub async fn refine_shard_key(
        &self,
        interrupt: &dyn Interrupt,
        client: &str,
        refinement: &Refinement,
    ) -> Result<()> {
        self.prepare().await?;
        let _zones = self.lock(interrupt, Subject::Zones).await?;
        let _one = self.lock(interrupt, Subject::Collection(refinement.ns.clone())).await?;
        let stored = self.stored(&refinement.ns)?.ok_or_else(|| {
            let text = format!("Collection {} is not sharded.", refinement.ns);
            Error::new(ErrorCode::NamespaceNotSharded, text)
        })?;
        if refinement.is_made(&stored) {
            return Ok(());
        }
        self.check_not_fenced(&refinement.ns, refinement.new.timestamp)?;
        refinement.check(&stored)?;
        let tags = self.metadata().tags(&refinement.ns)?;
        let (was, now) = (stored.entry(), refinement);
        let mut d = DocBuilder::new();
        d.raw_doc("oldKey", was.key.pattern()).raw_doc("newKey", now.key.pattern());
        d.object_id("oldEpoch", was.generation.epoch).object_id("newEpoch", now.new.epoch);
        self.log_change(client, "refineCollectionShardKey.start", &now.ns, &d.finish()).await;
        let chunks = self.metadata().chunks(was.uuid)?;
        self.write(interrupt, &refinement.changes(&stored, chunks, tags)).await?;
        self.log_change(client, "refineCollectionShardKey.end", &now.ns, RawDoc::empty()).await;
        Ok(())
    }

    /// From now on this cannot be committed any more, however late its commit arrives; whether it was.
    pub async fn give_up_refinement(
        &self,
        interrupt: &dyn Interrupt,
        refinement: &Refinement,
    ) -> Result<bool> {
        self.prepare().await?;
        let _one = self.lock(interrupt, Subject::Collection(refinement.ns.clone())).await?;
        if self.stored(&refinement.ns)?.is_some_and(|stored| refinement.is_made(&stored)) {
            return Ok(true);
        }
        let change = self.fenced(&refinement.ns, refinement.new.timestamp)?;
        self.write(interrupt, &change.into_iter().collect::<Vec<_>>()).await?;
        Ok(false)
    }
}

impl Refinement {
    fn is_made(&self, stored: &Stored) -> bool {
        stored.entry().generation == self.new
    }
    fn check(&self, stored: &Stored) -> Result<()> {
        let entry = stored.entry();
        if entry.generation.timestamp != self.old {
            let text = format!("collection {} was defined anew since its shard key was looked at", self.ns);
            return Err(Error::new(ErrorCode::StaleEpoch, text));
        }
        if entry.key == self.key || !entry.key.is_prefix_of(&self.key) {
            let text = format!(
                "refineCollectionShardKey shard key {} does not extend the current shard key {}",
                self.key.pattern(),
                entry.key.pattern()
            );
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
        Ok(())
    }
    fn changes(&self, stored: &Stored, chunks: Vec<DocBuf>, tags: Vec<DocBuf>) -> Vec<Change> {
        let (was, generation) = (stored.doc.clone(), self.new);
        let fields = [
            ("lastmodEpoch", Some(Value::ObjectId(generation.epoch))),
            ("timestamp", Some(Value::Timestamp(generation.timestamp))),
            ("key", Some(Value::Document(self.key.pattern()))),
        ];
        let now = with_fields(&was, &fields);
        let mut changes = vec![Change::Replace { ns: ns("collections"), was, now }];
        let of = |collection: &'static str| {
            move |was: DocBuf| {
                let now = self.with_bounds(&was);
                Change::Replace { ns: ns(collection), was, now }
            }
        };
        changes.extend(chunks.into_iter().map(of("chunks")));
        changes.extend(tags.into_iter().map(of("tags")));
        changes
    }
    /// A chunk or a zone; what was too large to be moved may be cut by the new fields.
    fn with_bounds(&self, doc: &RawDoc) -> DocBuf {
        let bound = |name: &str| doc.get(name).and_then(|v| v.as_doc().map(|b| self.key.extend_bound(b)));
        let (min, max) = (bound("min").unwrap_or_default(), bound("max").unwrap_or_default());
        let fields =
            [("min", Some(Value::Document(&min))), ("max", Some(Value::Document(&max))), ("jumbo", None)];
        with_fields(doc, &fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{GENERATION, chunk_docs, of_docs, stored};
    use pando_bson::{ObjectId, doc};
    use pando_routing::Chunk;

    fn refinement(key: DocBuf, old: Timestamp) -> Refinement {
        let new = Generation { epoch: ObjectId([9; 12]), timestamp: Timestamp::new(20, 1) };
        Refinement { ns: "d.c".to_owned(), key: ShardKey::parse(&key).unwrap(), old, new }
    }

    #[test]
    fn bounds_get_the_new_fields_and_owners_stay() {
        let stored = stored(&[(Value::MinKey, "a"), (Value::Int32(0), "b")]);
        let wanted = refinement(doc! { "a": 1, "b": 1 }.to_raw(), GENERATION.1);
        assert!(wanted.check(&stored).is_ok() && !wanted.is_made(&stored));
        let zone = doc! { "_id": 1, "ns": "d.c", "min": { "a": 0 }, "max": { "a": 5 }, "tag": "z" }.to_raw();
        let changes = wanted.changes(&stored, chunk_docs(&stored), vec![zone]);
        let now = |i: usize| match &changes[i] {
            Change::Replace { now, .. } => now.clone(),
            other => panic!("{other:?}"),
        };
        let docs: Vec<DocBuf> = (1..3).map(now).collect();
        let after = of_docs(now(0), &docs);
        assert!(wanted.is_made(&after) && after.entry().uuid == stored.entry().uuid);
        let chunks: Vec<Chunk> = docs.iter().map(|doc| Chunk::parse(doc).unwrap()).collect();
        assert_eq!(chunks[0].min, wanted.key.least());
        assert_eq!(chunks[1].max, wanted.key.greatest());
        assert_eq!(chunks[0].max.to_string(), r#"{ a: 0, b: MinKey }"#);
        for (chunk, was) in chunks.iter().zip(chunk_docs(&stored)) {
            let was = Chunk::parse(&was).unwrap();
            assert_eq!((chunk.id, &chunk.shard, chunk.placement), (was.id, &was.shard, was.placement));
        }
        assert_eq!(now(3).get("max").unwrap().as_doc().unwrap().to_string(), r#"{ a: 5, b: MinKey }"#);
    }

    #[test]
    fn only_what_extends_the_key_of_that_generation_is_committed() {
        let stored = stored(&[(Value::MinKey, "a")]);
        let code = |r: Refinement| r.check(&stored).err().map(|e| e.code.0);
        assert_eq!(code(refinement(doc! { "a": 1, "b": 1 }.to_raw(), Timestamp::new(8, 1))), Some(150));
        for key in [doc! { "a": 1 }, doc! { "b": 1, "a": 1 }, doc! { "a": "hashed", "b": 1 }] {
            assert_eq!(code(refinement(key.to_raw(), GENERATION.1)), Some(72));
        }
    }
}
