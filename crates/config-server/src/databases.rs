//! Databases: where each lives, and since when (SH-DDL-6, SYS-253).

use crate::manager::CatalogManager;
use crate::metadata::{is_draining, ns, text};
use crate::mutexes::Subject;
use crate::remove_shard::not_found;
use crate::shard_checks::{ConnectionString, illegal};
use crate::shards::list_databases;
use pando_access::{Change, Interrupt};
use pando_base::ns::DbName;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_routing::{DatabaseEntry, DatabaseVersion, ShardId};

/// Names that are not for everybody; the version of `config`, which nobody creates.
fn check_name(name: &str) -> Result<Option<DatabaseVersion>> {
    match name {
        "admin" | "local" => {
            let text = format!("Cannot manually create database '{name}'");
            Err(Error::new(ErrorCode::InvalidOptions, text))
        }
        "config" => Ok(Some(DatabaseVersion::FIXED)),
        _ => match DbName::parse(name) {
            Ok(_) => Ok(None),
            Err(_) => {
                let text = format!("Invalid db name specified: {name}");
                Err(Error::new(ErrorCode::InvalidNamespace, text))
            }
        },
    }
}

/// What there is under this name: nothing, or a database that has the primary shard that is wanted.
fn among(databases: &[DocBuf], name: &str, primary: Option<&str>) -> Result<Option<DatabaseVersion>> {
    for doc in databases {
        let known = text(doc, "_id")?;
        if !known.eq_ignore_ascii_case(name) && known.to_lowercase() != name.to_lowercase() {
            continue;
        }
        if known != name {
            let text =
                format!("can't have 2 databases that just differ on case  have: {known} want to add: {name}");
            return Err(Error::new(ErrorCode::DatabaseDifferCase, text));
        }
        let entry = DatabaseEntry::parse(doc)?;
        if let Some(wanted) = primary.filter(|wanted| *wanted != entry.primary.as_str()) {
            let text = format!("database already created on a primary which is different from {wanted}");
            return Err(Error::new(ErrorCode::NamespaceExists, text));
        }
        return Ok(Some(entry.version));
    }
    Ok(None)
}

impl CatalogManager {
    /// Creates a database on the shard named, or on the one with least data; one that is there is found.
    pub async fn create_database(
        &self,
        interrupt: &dyn Interrupt,
        name: &str,
        primary: Option<&str>,
    ) -> Result<DatabaseVersion> {
        if let Some(fixed) = check_name(name)? {
            return Ok(fixed);
        }
        self.prepare().await?;
        let _one = self.lock(interrupt, Subject::Database(name.to_lowercase())).await?;
        if let Some(there) = among(&self.metadata().databases()?, name, primary)? {
            return Ok(there);
        }
        let primary = match primary {
            Some(named) => match self.metadata().shard(named)? {
                Some(doc) if is_draining(&doc) => {
                    let text =
                        format!("shard {named} is draining and cannot become the primary shard of {name}");
                    return Err(Error::new(ErrorCode::ShardNotFound, text));
                }
                Some(_) => ShardId::new(named),
                None => return Err(not_found(named)),
            },
            None => self.least_loaded(interrupt).await?,
        };
        let _owners = self.keep_shards(interrupt, &[primary.as_str()]).await?;
        let entry = DatabaseEntry { name: name.to_owned(), primary, version: self.new_database_version() };
        self.write(interrupt, &[Change::Insert(ns("databases"), entry.to_doc())]).await?;
        Ok(entry.version)
    }
    /// By what each tells of itself; one that does not answer is passed over unless nobody does.
    async fn least_loaded(&self, interrupt: &dyn Interrupt) -> Result<ShardId> {
        let shards = self.metadata().shards()?;
        let mut least: Option<(i64, ShardId)> = None;
        let mut failure = None;
        for shard in shards.iter().filter(|doc| !is_draining(doc)) {
            match self.size_of(interrupt, shard).await {
                Ok(bytes) if least.as_ref().is_none_or(|(known, _)| bytes < *known) => {
                    least = Some((bytes, ShardId::new(text(shard, "_id")?)));
                }
                Ok(_) => {}
                Err(e) => failure = Some(e),
            }
        }
        match (least, failure) {
            (Some((_, id)), _) => Ok(id),
            (None, Some(e)) => Err(e),
            (None, None) => Err(Error::new(ErrorCode::ShardNotFound, "No shards found")),
        }
    }
    async fn size_of(&self, interrupt: &dyn Interrupt, shard: &RawDoc) -> Result<i64> {
        let set = ConnectionString::parse(text(shard, "host")?)?;
        let primary = self.primary_of(interrupt, &set).await?;
        let reply = self.node.call(&primary.host, &list_databases(false)).await?;
        Ok(reply.get("totalSize").and_then(|v| v.as_i64()).unwrap_or(0))
    }

    /// Takes a database's entry away, if it is still the one with this version. Its collections are gone by then.
    pub async fn commit_drop_database(
        &self,
        interrupt: &dyn Interrupt,
        client: &str,
        name: &str,
        version: DatabaseVersion,
    ) -> Result<()> {
        self.prepare().await?;
        let _one = self.lock(interrupt, Subject::Database(name.to_lowercase())).await?;
        let Some(doc) = self.metadata().database(name)? else { return Ok(()) };
        let entry = DatabaseEntry::parse(&doc)?;
        if entry.version != version {
            return Ok(());
        }
        let within = |doc: &RawDoc| {
            let of = doc.get("_id").and_then(|v| v.as_str()).and_then(|ns| ns.split_once('.'));
            of.is_some_and(|(db, _)| db == name)
        };
        let left = self.metadata().count("collections", within)?;
        if left > 0 {
            return Err(illegal(format!("database {name} still has {left} sharded collections")));
        }
        self.write(interrupt, &[Change::Remove { ns: ns("databases"), was: doc }]).await?;
        self.log_change(client, "dropDatabase", name, RawDoc::empty()).await;
        Ok(())
    }
    /// Gives a database another primary shard, once (SH-VER-4). Returns its version.
    pub async fn commit_move_primary(
        &self,
        interrupt: &dyn Interrupt,
        client: &str,
        name: &str,
        expected: DatabaseVersion,
        to: &str,
    ) -> Result<DatabaseVersion> {
        self.prepare().await?;
        let _one = self.lock(interrupt, Subject::Database(name.to_lowercase())).await?;
        let doc = self.metadata().database(name)?;
        let doc = doc
            .ok_or_else(|| Error::new(ErrorCode::NamespaceNotFound, format!("database {name} not found")))?;
        let entry = DatabaseEntry::parse(&doc)?;
        let moved = expected.after_move();
        if entry.version == moved && entry.primary.as_str() == to {
            return Ok(moved);
        }
        if entry.version != expected {
            let text = format!("database {name} is not of the version that was to be moved any more");
            return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
        }
        let _owners = self.keep_shards(interrupt, &[to]).await?;
        let from = entry.primary.clone();
        let now = DatabaseEntry { primary: ShardId::new(to), version: moved, ..entry }.to_doc();
        self.write(interrupt, &[Change::Replace { ns: ns("databases"), was: doc, now }]).await?;
        let mut details = DocBuilder::new();
        details.str("database", name).str("from", from.as_str()).str("to", to);
        self.log_change(client, "movePrimary.commit", name, &details.finish()).await;
        Ok(moved)
    }
    /// From now on this move cannot be committed any more, however late its commit arrives; whether it was. The database gets another
    /// version where it was not.
    pub async fn give_up_move_primary(
        &self,
        interrupt: &dyn Interrupt,
        name: &str,
        expected: DatabaseVersion,
        to: &str,
    ) -> Result<bool> {
        self.prepare().await?;
        let _one = self.lock(interrupt, Subject::Database(name.to_lowercase())).await?;
        let Some(doc) = self.metadata().database(name)? else { return Ok(false) };
        let entry = DatabaseEntry::parse(&doc)?;
        let moved = expected.after_move();
        if entry.version == expected {
            let now = DatabaseEntry { version: moved, ..entry }.to_doc();
            self.write(interrupt, &[Change::Replace { ns: ns("databases"), was: doc, now }]).await?;
            return Ok(false);
        }
        Ok(entry.version == moved && entry.primary.as_str() == to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_base::{Timestamp, Uuid};

    #[test]
    fn a_database_is_created_once_and_in_one_case() {
        let version = DatabaseVersion { uuid: Uuid([1; 16]), timestamp: Timestamp::new(2, 1), last_mod: 1 };
        let entry = DatabaseEntry { name: "d".to_owned(), primary: ShardId::new("a"), version };
        let known = [entry.to_doc()];
        let words = |r: Result<Option<DatabaseVersion>>| r.map_err(|e| format!("{} {}", e.code.0, e.message));
        assert_eq!(words(among(&known, "d", None)), Ok(Some(version)));
        assert_eq!(words(among(&known, "d", Some("a"))), Ok(Some(version)));
        assert_eq!(words(among(&known, "e", None)), Ok(None));
        let text = "48 database already created on a primary which is different from b";
        assert_eq!(words(among(&known, "d", Some("b"))), Err(text.to_owned()));
        let text = "13297 can't have 2 databases that just differ on case  have: d want to add: D";
        assert_eq!(words(among(&known, "D", None)), Err(text.to_owned()));
    }

    #[test]
    fn some_names_are_nobodys() {
        let words = |name| check_name(name).map_err(|e| format!("{} {}", e.code.0, e.message));
        assert_eq!(words("config"), Ok(Some(DatabaseVersion::FIXED)));
        assert_eq!(words("admin"), Err("72 Cannot manually create database 'admin'".to_owned()));
        let long = "q".repeat(64);
        for name in ["a.b", "", "q a", &long] {
            assert_eq!(words(name), Err(format!("73 Invalid db name specified: {name}")));
        }
        assert_eq!(words("q-a"), Ok(None));
    }
}
