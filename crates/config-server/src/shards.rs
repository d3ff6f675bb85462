//! Adding a shard (SH-SHARD-1): asked who it is, told what it belongs to, then written down.

use crate::documents::with_fields;
use crate::manager::CatalogManager;
use crate::metadata::{ns, text};
use crate::mutexes::Subject;
use crate::shard_checks::{ConnectionString, NewShard, illegal};
use pando_access::{Change, Interrupt};
use pando_base::{Error, ErrorCode, Result, Timestamp, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_routing::{DatabaseEntry, DatabaseVersion, ShardId};
use std::time::Duration;

/// A set's primary, and its `hello`.
pub(crate) struct Primary {
    pub(crate) host: String,
    pub(crate) hello: DocBuf,
}

impl CatalogManager {
    /// Returns the shard's name.
    pub async fn add_shard(&self, interrupt: &dyn Interrupt, client: &str, new: &NewShard) -> Result<String> {
        self.prepare().await?;
        if new.name.as_deref() == Some("") {
            return Err(Error::bad_value("shard name cannot be empty"));
        }
        let own = ConnectionString::parse(&self.node.connection_string())?;
        new.check_reachable(&own)?;
        let _membership = self.lock_membership(interrupt).await?;
        let _topology = self.lock(interrupt, Subject::Topology).await?;
        let metadata = self.metadata();
        let shards = metadata.shards()?;
        if let Some(there) = new.among(&shards)? {
            return Ok(there);
        }
        let primary = self.primary_of(interrupt, &new.connection).await?;
        let (name, actual) = new.check_hello(&primary.hello)?;
        let defaults = metadata.setting("ReadWriteConcernDefaults")?;
        let has_default = defaults.is_some_and(|doc| doc.get("defaultWriteConcern").is_some());
        new.check_default_write_concern(&primary.hello, has_default)?;
        let listed = self.node.call(&primary.host, &list_databases(true)).await?;
        let listed = listed.get("databases").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
        let databases = new.check_databases(listed, &name, &metadata.databases()?)?;
        if shards.iter().any(|shard| text(shard, "_id").is_ok_and(|id| id == name)) {
            return Err(illegal(format!("A shard named {name} already exists")));
        }
        self.take_in(&primary.host, &name).await?;
        self.hand_on_blocks(&primary.host, &name).await?;
        self.hand_on_parameters(&primary.host, &name).await?;
        // Databases come into being while a shard is added, and a name may be taken only once.
        let _guards = self.lock_databases(interrupt, &databases).await?;
        let databases = new.check_databases(listed, &name, &metadata.databases()?)?;
        self.write(interrupt, &self.entries(&name, &actual, &databases)).await?;
        let mut details = DocBuilder::new();
        details.str("name", &name).str("host", &new.connection.to_string());
        self.log_change(client, "addShard", "", &details.finish()).await;
        Ok(name)
    }

    pub(crate) async fn lock_databases(
        &self,
        interrupt: &dyn Interrupt,
        names: &[String],
    ) -> Result<Vec<pando_access::Guard>> {
        let mut names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        names.sort_unstable();
        names.dedup();
        let mut guards = Vec::new();
        for name in names {
            guards.push(self.lock(interrupt, Subject::Database(name)).await?);
        }
        Ok(guards)
    }
    /// The shard and the databases that it brings along.
    pub(crate) fn entries(&self, name: &str, actual: &ConnectionString, databases: &[String]) -> Vec<Change> {
        let mut shard = DocBuilder::new();
        shard.str("_id", name).str("host", &actual.to_string()).i32("state", 1);
        shard.timestamp("topologyTime", self.node.next_time());
        let mut changes = vec![Change::Insert(ns("shards"), shard.finish())];
        for db in databases {
            let version = self.new_database_version();
            let entry = DatabaseEntry { name: db.clone(), primary: ShardId::new(name), version };
            changes.push(Change::Insert(ns("databases"), entry.to_doc()));
        }
        changes
    }
    pub(crate) fn new_database_version(&self) -> DatabaseVersion {
        DatabaseVersion { uuid: self.new_uuid(), timestamp: self.node.next_time(), last_mod: 1 }
    }

    /// Tells the new shard what it belongs to, and makes it use the features that the cluster does. Told twice it stays the same.
    async fn take_in(&self, host: &str, name: &str) -> Result<()> {
        match self.node.call(host, &drop_sessions()).await {
            Err(e) if e.code != ErrorCode::NamespaceNotFound => return Err(e),
            _ => {}
        }
        let identity = self.identity_of(name)?;
        match self.node.call(host, &add_shard(&identity)).await {
            // A shard that has no such command takes the document itself.
            Err(e) if e.code == ErrorCode::CommandNotSupported => {
                let reply = self.node.call(host, &upsert_identity(&identity)).await?;
                first_write_error(&reply)?;
            }
            Err(e) if e.code == ErrorCode::NoShardingEnabled => {
                let text = "Cannot run addShard on a node started without --shardsvr";
                return Err(Error::location(50_876, text));
            }
            done => drop(done?),
        }
        self.node.call(host, &set_feature_version(&self.node.feature_version())).await.map(drop)
    }
    pub(crate) fn identity_of(&self, name: &str) -> Result<DocBuf> {
        let mut d = DocBuilder::new();
        d.str("shardName", name).object_id("clusterId", self.cluster_id()?);
        d.str("configsvrConnectionString", &self.node.connection_string());
        Ok(d.finish())
    }

    /// Asks hosts until one is the primary of the set. While there may be an election they are asked again.
    pub(crate) async fn primary_of(
        &self,
        interrupt: &dyn Interrupt,
        set: &ConnectionString,
    ) -> Result<Primary> {
        let pause = Duration::from_millis(limits::SHARD_PRIMARY_PAUSE_MS);
        let mut refused = None;
        for round in 0..limits::SHARD_PRIMARY_ROUNDS {
            if round > 0 {
                interrupt.check()?;
                self.env.clock.sleep(pause).await;
            }
            let mut hosts = set.hosts.clone();
            let (mut at, mut of_the_set) = (0, false);
            while let Some(host) = hosts.get(at).cloned() {
                at += 1;
                let mut hello = DocBuilder::new();
                hello.i32("hello", 1).str("$db", "admin");
                let hello = match self.node.call(&host, &hello.finish()).await {
                    Ok(hello) => hello,
                    Err(e) if set.set.is_none() => return Err(e),
                    // It is there, and has another key than this cluster, or none.
                    Err(e) if e.code == ErrorCode::AuthenticationFailed => {
                        refused = Some(e);
                        continue;
                    }
                    Err(_) => continue,
                };
                let name = hello.get("setName").and_then(|v| v.as_str());
                if set.set.is_some() && name != set.set.as_deref() {
                    continue;
                }
                if hello.get("isWritablePrimary").is_some_and(|v| v.is_truthy()) || set.set.is_none() {
                    return Ok(Primary { host, hello });
                }
                of_the_set = true;
                let primary = hello.get("primary").and_then(|v| v.as_str()).map(str::to_owned);
                hosts.extend(primary.filter(|p| !hosts.contains(p)));
            }
            if !of_the_set {
                break;
            }
        }
        let name = set.set.as_deref().unwrap_or_default();
        let text =
            format!("Could not find host matching read preference {{ mode: \"primary\" }} for set {name}");
        Err(refused.unwrap_or_else(|| Error::new(ErrorCode::FailedToSatisfyReadPreference, text)))
    }
}

pub(crate) fn list_databases(name_only: bool) -> DocBuf {
    let mut d = DocBuilder::new();
    d.i32("listDatabases", 1);
    if name_only {
        d.bool("nameOnly", true);
    }
    d.str("$db", "admin");
    d.finish()
}
fn majority(d: &mut DocBuilder) {
    d.doc("writeConcern", |wc| {
        wc.str("w", "majority").i32("wtimeout", limits::SHARD_WRITE_MS_MAX as i32);
    });
}
/// The set had its own record of sessions; the cluster has one for all.
fn drop_sessions() -> DocBuf {
    let mut d = DocBuilder::new();
    d.str("drop", "system.sessions");
    majority(&mut d);
    d.str("$db", "config");
    d.finish()
}
fn add_shard(identity: &RawDoc) -> DocBuf {
    let mut d = DocBuilder::new();
    d.i32("_addShard", 1).raw_doc("shardIdentity", identity).str("$db", "admin");
    d.finish()
}
fn upsert_identity(identity: &RawDoc) -> DocBuf {
    let mut d = DocBuilder::new();
    d.str("update", "system.version");
    d.array("updates", |a| {
        a.doc(|u| {
            u.doc("q", |q| {
                // Another cluster's stays: the update finds nothing and the insert meets it.
                q.str("_id", "shardIdentity");
                q.elems_of(identity);
            });
            u.doc("u", |u| {
                u.raw_doc("$set", identity);
            });
            u.bool("upsert", true);
        });
    });
    majority(&mut d);
    d.str("$db", "admin");
    d.finish()
}
fn set_feature_version(version: &str) -> DocBuf {
    let mut d = DocBuilder::new();
    d.str("setFeatureCompatibilityVersion", version).bool("fromConfigServer", true);
    // Before 7.0 nobody asks for it, and 6.0 does not know it.
    if version >= "7.0" {
        d.bool("confirm", true);
    }
    majority(&mut d);
    d.str("$db", "admin");
    d.finish()
}
/// A reply that is `ok` tells mistakes of writes beside it.
fn first_write_error(reply: &RawDoc) -> Result<()> {
    let errors = reply.get("writeErrors").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
    let first = errors.first().and_then(|e| e.value().as_doc());
    let Some(e) = first.or_else(|| reply.get("writeConcernError").and_then(|v| v.as_doc())) else {
        return Ok(());
    };
    let code = e.get("code").and_then(|v| v.as_i64()).unwrap_or(8) as i32;
    let text = e.get("errmsg").and_then(|v| v.as_str()).unwrap_or_default().to_owned();
    Err(Error::new(ErrorCode(code), text))
}

/// A shard's entry as of another time: those who have the list of shards read it again.
pub(crate) fn ticked(shard: &RawDoc, at: Timestamp) -> DocBuf {
    with_fields(shard, &[("topologyTime", Some(Value::Timestamp(at)))])
}
