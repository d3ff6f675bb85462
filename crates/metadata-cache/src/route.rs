//! Where one operation goes: what is known of its collection and database at that moment, and by which tickets.

use crate::MetadataCache;
use crate::tables::{KnownCollection, KnownDatabase};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::DocBuilder;
use pando_query::matcher::Matcher;
use pando_routing::cache::Ticket;
use pando_routing::target::owners_of;
use pando_routing::{ChunkVersion, DatabaseEntry, DatabaseVersion, RoutingTable, ShardId, ShardSet};
use std::sync::Arc;

/// What is known of a collection, immutable.
#[derive(Clone, Debug)]
pub struct Route {
    pub ns: Namespace,
    pub db: Arc<DatabaseEntry>,
    /// `None` where it is not sharded, or not there.
    pub table: Option<Arc<RoutingTable>>,
    pub(crate) db_ticket: Ticket,
    pub(crate) ticket: Ticket,
}

/// A shard, and what it is told that its sender knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    pub shard: ShardId,
    pub version: Option<ChunkVersion>,
    pub database: Option<DatabaseVersion>,
}

impl Target {
    /// What the shard compares with what it knows.
    pub fn append(&self, b: &mut DocBuilder) {
        if let Some(version) = self.version {
            version.append("shardVersion", b);
        }
        if let Some(version) = self.database {
            version.append("databaseVersion", b);
        }
    }
    /// A shard that is asked whatever anybody knows.
    pub fn unversioned(shard: ShardId) -> Target {
        Target { shard, version: None, database: None }
    }
}

/// Held by the config servers, and the same everywhere.
fn is_internal(db: &str) -> bool {
    matches!(db, "admin" | "config")
}

impl Route {
    /// One that nobody has read: for tests.
    pub fn known(ns: Namespace, db: DatabaseEntry, table: Option<Arc<RoutingTable>>) -> Route {
        Route { ns, db: Arc::new(db), table, db_ticket: 1, ticket: 1 }
    }
    pub fn is_sharded(&self) -> bool {
        self.table.is_some()
    }
    /// What lives on one shard lives there.
    pub fn primary(&self) -> Target {
        let internal = is_internal(&self.db.name);
        Target {
            shard: self.db.primary.clone(),
            version: (!internal).then_some(ChunkVersion::UNSHARDED),
            database: (!internal).then_some(self.db.version),
        }
    }
    /// The primary shard, for a command about the database.
    pub fn primary_of_database(&self) -> Target {
        Target { version: None, ..self.primary() }
    }
    /// A shard of a sharded collection.
    pub fn part(table: &RoutingTable, shard: &ShardId) -> Target {
        Target { shard: shard.clone(), version: Some(table.shard_version(shard)), database: None }
    }
    fn parts(table: &RoutingTable, set: &ShardSet) -> Vec<Target> {
        set.iter().filter_map(|n| Route::part_of_number(table, n)).collect()
    }
    /// The same by its number in the table, which is quicker than by its name.
    fn part_of_number(table: &RoutingTable, n: u32) -> Option<Target> {
        let part = table.chunks.parts().get(n as usize)?;
        let version = ChunkVersion::new(table.collection.generation, part.placement);
        Some(Target { shard: part.shard.clone(), version: Some(version), database: None })
    }
    /// All shards with documents of the collection.
    pub fn owners(&self) -> Vec<Target> {
        match &self.table {
            None => vec![self.primary()],
            Some(table) => Route::parts(table, &table.chunks.owners()),
        }
    }
    /// Those that a condition concerns; one of them where it concerns none, which then says what nothing looks like. What this
    /// router cannot read concerns all: they say what is wrong with it.
    pub fn concerned(&self, matcher: Option<&Matcher>) -> Vec<Target> {
        let (Some(table), Some(matcher)) = (&self.table, matcher) else { return self.owners() };
        let set = owners_of(&table.chunks, matcher);
        let mut out = Route::parts(table, &set);
        if out.is_empty() {
            out = self.owners();
            out.truncate(1);
        }
        out
    }
    /// The shard with the documents of a key.
    pub fn owner_of_key(table: &RoutingTable, key: &[u8]) -> Result<Target> {
        let chunk = table.chunks.find(key);
        let owner = chunk.and_then(|chunk| Route::part_of_number(table, chunk.owner()));
        owner.ok_or_else(|| Error::internal("no chunk holds a shard key"))
    }
}

impl MetadataCache {
    /// A database, by its name; 26 where there is none.
    pub async fn database(&self, name: &str) -> Result<(u64, Arc<DatabaseEntry>)> {
        if is_internal(name) {
            let entry = DatabaseEntry {
                name: name.to_owned(),
                primary: ShardId::config(),
                version: DatabaseVersion::FIXED,
            };
            return Ok((0, Arc::new(entry)));
        }
        let (ticket, KnownDatabase(known)) = self.databases.get(name).await?;
        match known {
            Some(entry) => Ok((ticket, entry)),
            None => {
                // Somebody may create it at any time without telling this router.
                self.databases.forget(name);
                Err(no_database(name))
            }
        }
    }
    /// Where a collection is; 26 where there is no such database.
    pub async fn route(&self, ns: &Namespace) -> Result<Route> {
        let (db_ticket, db) = self.database(ns.db()).await?;
        let sharded = !is_internal(ns.db()) || ns.as_str() == "config.system.sessions";
        let (ticket, table) = match sharded {
            true => {
                let (ticket, KnownCollection(table)) = self.table(ns.as_str()).await?;
                (ticket, table)
            }
            false => (0, None),
        };
        Ok(Route { ns: ns.clone(), db, table, db_ticket, ticket })
    }
    /// The same, and nothing where there is no such database: there is nothing to find.
    pub async fn route_if_any(&self, ns: &Namespace) -> Result<Option<Route>> {
        match self.route(ns).await {
            Ok(route) => Ok(Some(route)),
            Err(e) if e.code == ErrorCode::NamespaceNotFound => Ok(None),
            Err(e) => Err(e),
        }
    }
    /// A shard has sent somebody away from the collection.
    pub fn collection_is_stale(&self, route: &Route, wanted: Option<ChunkVersion>) {
        self.refreshes.stale.inc();
        self.collections.stale(route.ns.as_str(), route.ticket, wanted);
    }
    /// A shard has sent somebody away from the database.
    pub fn database_is_stale(&self, route: &Route, wanted: Option<DatabaseVersion>) {
        self.databases.stale(&route.db.name, route.db_ticket, wanted);
    }
}

fn no_database(name: &str) -> Error {
    Error::new(ErrorCode::NamespaceNotFound, format!("database {name} not found"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{doc, route, table};
    use pando_query::QueryCtx;

    fn shards(targets: &[Target]) -> Vec<&str> {
        targets.iter().map(|t| t.shard.as_str()).collect()
    }
    fn concerned(route: &Route, filter: &str) -> Vec<Target> {
        let matcher = Matcher::parse(&doc(filter), &QueryCtx::default()).unwrap();
        route.concerned(Some(&matcher))
    }

    #[test]
    fn what_is_not_sharded_is_on_the_primary_shard_and_versioned_by_its_database() {
        let route = route(None);
        let target = route.primary();
        assert_eq!((target.shard.as_str(), target.version), ("a", Some(ChunkVersion::UNSHARDED)));
        assert_eq!(target.database, Some(route.db.version));
        assert_eq!(concerned(&route, r#"{"k": 1}"#), [target]);
    }

    #[test]
    fn a_shard_has_the_same_version_by_its_number_as_by_its_name() {
        let bounds: Vec<(String, Option<i32>)> =
            (0..300).map(|i| (format!("s{}", i % 70), (i > 0).then_some(i))).collect();
        let table = table(&bounds.iter().map(|(s, at)| (s.as_str(), *at)).collect::<Vec<_>>());
        let route = route(Some(table.clone()));
        let owners = route.owners();
        assert_eq!(owners.len(), 70);
        for target in &owners {
            assert_eq!(*target, Route::part(&table, &target.shard));
        }
        let key = table.collection.key.key_of_bound(&doc(r#"{"k": 211}"#)).unwrap();
        assert_eq!(Route::owner_of_key(&table, &key).unwrap().shard.as_str(), "s1");
    }

    #[test]
    fn a_condition_goes_to_the_shards_that_may_have_what_matches() {
        // `k` below 0 is on a, from 0 to 10 on b, the rest on a.
        let table = table(&[("a", None), ("b", Some(0)), ("a", Some(10))]);
        let route = route(Some(table));
        assert_eq!(shards(&concerned(&route, r#"{"k": 5}"#)), ["b"]);
        assert_eq!(shards(&concerned(&route, r#"{"k": {"$gte": 5}}"#)), ["a", "b"]);
        assert_eq!(shards(&concerned(&route, r#"{"x": 5}"#)), ["a", "b"]);
        assert_eq!(shards(&route.concerned(None)), ["a", "b"]);
        // Nothing matches; somebody has to say what nothing looks like.
        assert_eq!(concerned(&route, r#"{"$and": [{"k": 1}, {"k": 2}]}"#).len(), 1);
    }
}
