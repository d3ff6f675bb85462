//! A sharded collection, as the config servers know it (SH-CAT-2).

use crate::fields::Fields;
use crate::shard_key::ShardKey;
use crate::version::Generation;
use pando_base::{Result, uuid::Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc};

/// A document of `config.collections`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CollectionEntry {
    /// `database.collection`
    pub ns: String,
    pub generation: Generation,
    pub uuid: Uuid,
    pub key: ShardKey,
    pub unique: bool,
    /// What strings are compared by where a query does not say; never used for the shard key.
    pub default_collation: Option<DocBuf>,
    /// When the document was written, milliseconds since 1970.
    pub last_mod_ms: i64,
    pub max_chunk_bytes: Option<i64>,
    pub no_balance: bool,
    pub allow_migrations: bool,
    pub timeseries: Option<DocBuf>,
    pub resharding: Option<DocBuf>,
}

impl CollectionEntry {
    pub fn parse(doc: &RawDoc) -> Result<CollectionEntry> {
        let f = Fields { kind: "CollectionType", doc };
        let owned = |d: Option<&RawDoc>| d.map(RawDoc::to_buf);
        let generation =
            Generation { epoch: f.object_id("lastmodEpoch")?, timestamp: f.timestamp("timestamp")? };
        Ok(CollectionEntry {
            ns: f.text("_id")?.to_owned(),
            generation,
            uuid: f.uuid("uuid")?,
            key: ShardKey::parse(f.document("key")?)?,
            unique: f.flag("unique")?.unwrap_or(false),
            default_collation: owned(f.optional_document("defaultCollation")?),
            last_mod_ms: f.date("lastmod")?.unwrap_or(0),
            max_chunk_bytes: f.optional_number("maxChunkSizeBytes")?,
            no_balance: f.flag("noBalance")?.unwrap_or(false),
            allow_migrations: f.flag("allowMigrations")?.unwrap_or(true),
            timeseries: owned(f.optional_document("timeseriesFields")?),
            resharding: owned(f.optional_document("reshardingFields")?),
        })
    }
    pub fn to_doc(&self) -> DocBuf {
        let mut d = DocBuilder::new();
        d.str("_id", &self.ns)
            .object_id("lastmodEpoch", self.generation.epoch)
            .date("lastmod", self.last_mod_ms);
        d.timestamp("timestamp", self.generation.timestamp).uuid("uuid", &self.uuid.0);
        d.raw_doc("key", self.key.pattern());
        if let Some(collation) = &self.default_collation {
            d.raw_doc("defaultCollation", collation);
        }
        d.bool("unique", self.unique).bool("noBalance", self.no_balance);
        if let Some(bytes) = self.max_chunk_bytes {
            d.i64("maxChunkSizeBytes", bytes);
        }
        if !self.allow_migrations {
            d.bool("allowMigrations", false);
        }
        if let Some(fields) = &self.timeseries {
            d.raw_doc("timeseriesFields", fields);
        }
        if let Some(fields) = &self.resharding {
            d.raw_doc("reshardingFields", fields);
        }
        d.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::doc;

    #[test]
    fn what_a_real_server_stores_is_read_and_comes_back() {
        let doc = doc(
            r#"{"_id": "d.k19", "lastmodEpoch": {"$oid": "6b07de6a3fd5ff96b4f33c16"}, "lastmod": {"$date": 1795677802889},
                "timestamp": {"$timestamp": {"t": 1795677802, "i": 194}}, "uuid": {"$uuid": "12be7e90-446a-4b17-af34-1934439dcdc2"},
                "key": {"a": 1, "b": "hashed"}, "unique": false, "chunksAlreadySplitForDowngrade": false, "noBalance": false}"#,
        );
        let entry = CollectionEntry::parse(&doc).unwrap();
        assert!(entry.allow_migrations && entry.key.is_hashed() && !entry.key.begins_hashed());
        assert_eq!(entry.last_mod_ms, 1_795_677_802_889);
        assert_eq!(CollectionEntry::parse(&entry.to_doc()).unwrap(), entry);
    }
}
