//! A database's primary shard, where everything that is not sharded lives, and the version of that (SH-VER-4).

use crate::fields::Fields;
use crate::shard_id::ShardId;
use pando_base::{Error, Result, Timestamp, uuid::Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};

/// Grows by one with every move to another primary shard; a database that was dropped and created again has another UUID
/// and timestamp.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DatabaseVersion {
    pub uuid: Uuid,
    pub timestamp: Timestamp,
    pub last_mod: i32,
}

impl DatabaseVersion {
    /// Of `config` and `admin`, which the config servers hold and nobody moves.
    pub const FIXED: DatabaseVersion =
        DatabaseVersion { uuid: Uuid([0; 16]), timestamp: Timestamp::ZERO, last_mod: 0 };

    pub fn parse(doc: &RawDoc) -> Result<DatabaseVersion> {
        let f = Fields { kind: "DatabaseVersion", doc };
        let timestamp = f.timestamp("timestamp")?;
        // It is compared by nobody.
        let uuid = f.optional_uuid("uuid")?.unwrap_or(Uuid([0; 16]));
        Ok(DatabaseVersion { uuid, timestamp, last_mod: f.int("lastMod")? })
    }
    /// The value of `databaseVersion` in a command.
    pub fn parse_argument(v: &Value<'_>) -> Result<DatabaseVersion> {
        match v {
            Value::Document(doc) => DatabaseVersion::parse(doc),
            _ => Err(Error::location(10065, "invalid parameter: expected an object (databaseVersion)")),
        }
    }
    pub fn append(self, name: &str, out: &mut DocBuilder) {
        out.doc(name, |d| {
            d.uuid("uuid", &self.uuid.0).timestamp("timestamp", self.timestamp).i32("lastMod", self.last_mod);
        });
    }
    /// After a move to another primary shard.
    pub fn after_move(self) -> DatabaseVersion {
        DatabaseVersion { last_mod: self.last_mod.saturating_add(1), ..self }
    }
    /// What is compared first is when the database was created.
    pub fn order(self, other: DatabaseVersion) -> std::cmp::Ordering {
        self.timestamp.cmp(&other.timestamp).then(self.last_mod.cmp(&other.last_mod))
    }
}

/// A document of `config.databases`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DatabaseEntry {
    pub name: String,
    pub primary: ShardId,
    pub version: DatabaseVersion,
}

impl DatabaseEntry {
    pub fn parse(doc: &RawDoc) -> Result<DatabaseEntry> {
        let f = Fields { kind: "DatabaseType", doc };
        let version = DatabaseVersion::parse(f.document("version")?)?;
        Ok(DatabaseEntry {
            name: f.text("_id")?.to_owned(),
            primary: ShardId::new(f.text("primary")?),
            version,
        })
    }
    pub fn to_doc(&self) -> DocBuf {
        let mut d = DocBuilder::new();
        d.str("_id", &self.name).str("primary", self.primary.as_str());
        // Drivers' and shells' helpers still ask for it; since 6.0 every database may have sharded collections.
        d.bool("partitioned", false);
        self.version.append("version", &mut d);
        d.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_comes_back() {
        let version = DatabaseVersion { uuid: Uuid([7; 16]), timestamp: Timestamp::new(3, 4), last_mod: 2 };
        let entry = DatabaseEntry { name: "d".to_owned(), primary: ShardId::new("a"), version };
        assert_eq!(DatabaseEntry::parse(&entry.to_doc()).unwrap(), entry);
        assert!(version.after_move().order(version).is_gt());
        let recreated = DatabaseVersion { timestamp: Timestamp::new(4, 1), last_mod: 1, ..version };
        assert!(recreated.order(version.after_move()).is_gt());
    }

    #[test]
    fn mistakes_have_the_texts_of_a_real_server() {
        let text = |doc: &RawDoc| DatabaseVersion::parse(doc).unwrap_err().message.to_string();
        assert_eq!(
            text(RawDoc::empty()),
            "BSON field 'DatabaseVersion.timestamp' is missing but a required field"
        );
        let mut d = DocBuilder::new();
        d.timestamp("timestamp", Timestamp::ZERO).i32("uuid", 1);
        assert_eq!(
            text(&d.finish()),
            "BSON field 'DatabaseVersion.uuid' is the wrong type 'int', expected type 'binData'"
        );
        let mut d = DocBuilder::new();
        d.timestamp("timestamp", Timestamp::ZERO).uuid("uuid", &[0; 16]).i64("lastMod", 1);
        assert_eq!(
            text(&d.finish()),
            "BSON field 'DatabaseVersion.lastMod' is the wrong type 'long', expected type 'int'"
        );
    }
}
