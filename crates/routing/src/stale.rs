//! How a shard tells a sender that a version does not fit, and how the sender reads it (SH-PROTO-2, SH-PROTO-3).

use crate::database::DatabaseVersion;
use crate::fields::Fields;
use crate::shard_id::ShardId;
use crate::version::ChunkVersion;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuilder, RawDoc};

/// What goes with [`ErrorCode::StaleConfig`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StaleConfig {
    pub ns: String,
    pub received: ChunkVersion,
    /// Nothing when the shard does not know itself.
    pub wanted: Option<ChunkVersion>,
    pub shard: ShardId,
}

impl StaleConfig {
    pub fn into_error(self) -> Error {
        let StaleConfig { ns, received, wanted, shard } = &self;
        let text = match wanted {
            None => {
                format!("sharding status of collection {ns} is not currently known and needs to be recovered")
            }
            Some(w) if w.generation == received.generation => format!("version mismatch detected for {ns}"),
            Some(_) => format!("timestamp mismatch detected for {ns}"),
        };
        let mut d = DocBuilder::new();
        d.str("ns", ns);
        received.append("vReceived", &mut d);
        if let Some(wanted) = wanted {
            wanted.append("vWanted", &mut d);
        }
        d.str("shardId", shard.as_str());
        Error::new(ErrorCode::StaleConfig, text).with_extra(d.finish().into_bytes())
    }
    /// From the reply, or from the error of one write.
    pub fn parse(reply: &RawDoc) -> Result<StaleConfig> {
        let f = Fields { kind: "StaleConfigInfo", doc: reply };
        let wanted = f.optional_document("vWanted")?.map(ChunkVersion::parse).transpose()?;
        Ok(StaleConfig {
            ns: f.text("ns")?.to_owned(),
            received: ChunkVersion::parse(f.document("vReceived")?)?,
            wanted,
            shard: ShardId::new(f.text("shardId")?),
        })
    }
    /// Whether another generation is meant, so that nothing that is known of the collection holds.
    pub fn is_about_another_generation(&self) -> bool {
        self.wanted.is_none_or(|w| w.generation != self.received.generation)
    }
}

/// What goes with [`ErrorCode::StaleDbVersion`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StaleDatabase {
    pub db: String,
    pub received: DatabaseVersion,
    pub wanted: Option<DatabaseVersion>,
}

impl StaleDatabase {
    pub fn into_error(self) -> Error {
        let text = match self.wanted {
            None => format!(
                "sharding status of database {} is not currently known and needs to be recovered",
                self.db
            ),
            Some(_) => format!("dbVersion mismatch for database {}", self.db),
        };
        let mut d = DocBuilder::new();
        d.str("db", &self.db);
        self.received.append("vReceived", &mut d);
        if let Some(wanted) = self.wanted {
            wanted.append("vWanted", &mut d);
        }
        Error::new(ErrorCode::StaleDbVersion, text).with_extra(d.finish().into_bytes())
    }
    pub fn parse(reply: &RawDoc) -> Result<StaleDatabase> {
        let f = Fields { kind: "StaleDbRoutingVersion", doc: reply };
        let wanted = f.optional_document("vWanted")?.map(DatabaseVersion::parse).transpose()?;
        let received = DatabaseVersion::parse(f.document("vReceived")?)?;
        Ok(StaleDatabase { db: f.text("db")?.to_owned(), received, wanted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::{Generation, Placement};
    use pando_base::{Timestamp, uuid::Uuid};
    use pando_bson::{DocBuf, ObjectId};

    #[test]
    fn what_is_told_is_read() {
        let generation = Generation { epoch: ObjectId([1; 12]), timestamp: Timestamp::new(5, 1) };
        let version = |major| ChunkVersion::new(generation, Placement::new(major, 0));
        for wanted in [None, Some(version(3)), Some(ChunkVersion::UNSHARDED)] {
            let told =
                StaleConfig { ns: "d.c".to_owned(), received: version(2), wanted, shard: ShardId::new("a") };
            let e = told.clone().into_error();
            assert_eq!(e.code, ErrorCode::StaleConfig);
            assert_eq!(StaleConfig::parse(&DocBuf::from_trusted(e.extra.clone())).unwrap(), told);
            assert_eq!(told.is_about_another_generation(), wanted != Some(version(3)));
        }
        let v = DatabaseVersion { uuid: Uuid([1; 16]), timestamp: Timestamp::new(1, 1), last_mod: 1 };
        let told = StaleDatabase { db: "d".to_owned(), received: v, wanted: Some(v.after_move()) };
        let e = told.clone().into_error();
        assert_eq!(e.message, "dbVersion mismatch for database d");
        assert_eq!(StaleDatabase::parse(&DocBuf::from_trusted(e.extra.clone())).unwrap(), told);
    }
}
