//! Config servers: shards, databases, collections and chunks as commands change them, over restarts and against each other.

#![allow(clippy::unwrap_used)]

use pando_base::Timestamp;
use pando_bson::{Binary, Bson, Document, ObjectId, doc};
use pando_command::roles::ClusterRole;
use pando_testserver::{Client, Running, Set, World, pause, run, spawn};

/// A config server, and sets that may become shards.
struct Cluster {
    world: World,
    config: Option<Running>,
    shards: Vec<(World, Running)>,
}

async fn start(world: &World, port: u16, set: &str, role: Option<ClusterRole>) -> Running {
    let set = set.to_owned();
    world
        .start_at(port, |c| {
            c.repl_set = Some(set);
            c.cluster_role = role;
            c.auto_initiate = Some(format!("127.0.0.1:{}", c.port));
        })
        .await
}

impl Cluster {
    /// The sets are called `s0`, `s1`, …
    async fn of(shards: usize) -> Cluster {
        let world = World::new();
        let config = start(&world, 0, "c", Some(ClusterRole::Config)).await;
        let mut all = Vec::new();
        for i in 0..shards {
            let world = World::new();
            let running = start(&world, 0, &format!("s{i}"), Some(ClusterRole::Shard)).await;
            all.push((world, running));
        }
        Cluster { world, config: Some(config), shards: all }
    }
    /// With all of them added.
    async fn complete(shards: usize) -> (Cluster, Client) {
        let cluster = Cluster::of(shards).await;
        let mut c = cluster.connect().await;
        for i in 0..shards {
            ok(&mut c, "AddShard", cluster.string(i), doc! {}).await;
        }
        (cluster, c)
    }
    async fn connect(&self) -> Client {
        self.config.as_ref().unwrap().connect().await
    }
    fn string(&self, i: usize) -> String {
        format!("s{i}/127.0.0.1:{}", self.shards[i].1.port)
    }
    /// The config server ends, whether cleanly or not, and comes back.
    async fn restart(&mut self, clean: bool) -> Client {
        let config = self.config.take().unwrap();
        let port = config.port;
        if clean {
            config.shut_down().await;
        } else {
            config.abandon();
        }
        // Its listener goes when its task is next awake.
        while std::net::TcpListener::bind(("127.0.0.1", port)).is_err() {
            pause(10).await;
        }
        self.config = Some(start(&self.world, port, "c", Some(ClusterRole::Config)).await);
        self.connect().await
    }
}

fn command(name: &str, first: impl Into<Bson>, args: Document) -> Document {
    let mut command = Document::new();
    command.push(format!("_configsvr{name}"), first.into());
    for (name, v) in args.iter() {
        command.push(name, v.clone());
    }
    command.push("writeConcern", doc! { "w": "majority" });
    command.push("$db", "admin");
    command
}
async fn ok(c: &mut Client, name: &str, first: impl Into<Bson>, args: Document) -> Document {
    c.ok(command(name, first, args)).await
}
async fn err(c: &mut Client, name: &str, first: impl Into<Bson>, args: Document) -> (i32, String) {
    c.err(command(name, first, args)).await
}
async fn all(c: &mut Client, collection: &str) -> Vec<Document> {
    c.all(doc! { "find": collection, "readConcern": { "level": "majority" }, "$db": "config" }).await
}
fn text<'a>(d: &'a Document, field: &str) -> &'a str {
    d.get(field).and_then(Bson::as_str).unwrap()
}
fn time(d: &Document, field: &str) -> Timestamp {
    match d.get(field) {
        Some(Bson::Timestamp(t)) => *t,
        other => panic!("{field}: {other:?}"),
    }
}
/// `placement` of a version in a reply.
fn placement(reply: &Document, field: &str) -> (u32, u32) {
    let v = time(reply.get(field).and_then(Bson::as_doc).unwrap(), "v");
    (v.secs(), v.inc())
}
async fn happened(c: &mut Client) -> Vec<String> {
    all(c, "changelog").await.iter().map(|d| text(d, "what").to_owned()).collect()
}

const EPOCH: ObjectId = ObjectId([7; 12]);
const UUID: [u8; 16] = [0x11, 1, 1, 1, 1, 1, 0x41, 1, 0x81, 1, 1, 1, 1, 1, 1, 1];

fn uuid() -> Bson {
    Bson::Binary(Binary { subtype: 4, bytes: UUID.to_vec() })
}
fn made() -> Timestamp {
    Timestamp::new(1_795_000_000, 5)
}
/// The arguments that shard `d.c` by `a`, with these bounds in between, each chunk on the shard named.
fn sharded(bounds: &[i32], shards: &[&str]) -> Document {
    let mut edges = vec![Bson::MinKey];
    edges.extend(bounds.iter().map(|n| Bson::Int32(*n)));
    edges.push(Bson::MaxKey);
    let mut chunks = Vec::new();
    for (i, shard) in shards.iter().enumerate() {
        let bound = |at: usize| doc! { "a": edges[at].clone() };
        let owner = doc! { "validAfter": made(), "shard": *shard };
        let mut chunk = doc! { "uuid": uuid(), "min": bound(i), "max": bound(i + 1), "shard": *shard };
        chunk.push("lastmod", Timestamp::new(1, i as u32));
        chunk.push("history", Bson::Array(vec![owner.into()]));
        chunks.push(Bson::Document(chunk));
    }
    let mut args = doc! { "collection": { "_id": "d.c", "lastmodEpoch": EPOCH, "lastmod": Bson::DateTime(0), "timestamp": made(),
    "uuid": uuid(), "key": { "a": 1 }, "unique": false, "noBalance": false } };
    args.push("chunks", Bson::Array(chunks));
    args
}
fn split(min: impl Into<Bson>, max: impl Into<Bson>, at: &[i32]) -> Document {
    let points = at.iter().map(|n| doc! { "a": *n }.into()).collect();
    let mut args =
        doc! { "collEpoch": EPOCH, "min": { "a": min.into() }, "max": { "a": max.into() }, "shard": "s0" };
    args.push("splitPoints", Bson::Array(points));
    args
}
async fn bounds(c: &mut Client) -> Vec<(Bson, String)> {
    let find = doc! { "find": "chunks", "filter": { "uuid": uuid() }, "sort": { "min": 1 }, "$db": "config" };
    let chunks = c.all(find).await;
    let min = |d: &Document| d.get("min").and_then(Bson::as_doc).and_then(|d| d.get("a")).cloned().unwrap();
    chunks.iter().map(|d| (min(d), text(d, "shard").to_owned())).collect()
}

#[test]
fn a_config_server_is_one_from_its_first_moment() {
    run(async {
        let cluster = Cluster::of(0).await;
        let mut c = cluster.connect().await;
        assert_eq!(c.admin(doc! { "hello": 1 }).await.get("configsvr"), Some(&Bson::Int32(2)));
        assert!(matches!(all(&mut c, "version").await[0].get("clusterId"), Some(Bson::ObjectId(_))));
        let listed = c.all(doc! { "listIndexes": "chunks", "$db": "config" }).await;
        let names: Vec<&str> = listed.iter().map(|d| text(d, "name")).collect();
        for name in ["uuid_1_min_1", "uuid_1_shard_1_min_1", "uuid_1_lastmod_1"] {
            assert!(names.contains(&name), "{names:?}");
        }
        let (code, words) = c.err(doc! { "create": "x", "$db": "foo" }).await;
        assert_eq!(
            (code, words.as_str()),
            (73, "Can't create user databases on a --configsvr instance foo.x")
        );
        // Who is no config server says so.
        let world = World::new();
        let member = world.start_set().await;
        let add = command("AddShard", "x/h:1", doc! {});
        assert_eq!(member.connect().await.err(add).await.0, 20);
    });
}

#[test]
fn a_shard_is_added_once_and_told_what_it_belongs_to() {
    run(async {
        let cluster = Cluster::of(2).await;
        let mut c = cluster.connect().await;
        let (s0, s1) = (cluster.string(0), cluster.string(1));
        let host = |s: &str| s.split_once('/').unwrap().1.to_owned();
        let without = doc! { "_configsvrAddShard": s0.clone(), "$db": "admin" };
        assert_eq!(
            c.err(without).await.1,
            "\"_configsvrAddShard\" must be called with majority writeConcern, got: { w: 1, wtimeout: 0, provenance: \
             \"implicitDefault\" } "
        );
        let wrong = [
            (host(&s0), doc! {}, 96, "host is part of set s0; use replica set url format"),
            (format!("zz/{}", host(&s0)), doc! {}, 133, "Could not find host matching read preference"),
            (format!("{s0},{}", host(&s1)), doc! {}, 96, "in seed list s0/"),
            (format!("c/127.0.0.1:{}", c_port(&cluster)), doc! {}, 96, "Cannot add c/127.0.0.1:"),
            ("s0/far:1".to_owned(), doc! {}, 72, "Can't use localhost as a shard"),
            (s0.clone(), doc! { "name": "config" }, 2, "use of shard replica set with name 'config'"),
            (s0.clone(), doc! { "name": "" }, 2, "shard name cannot be empty"),
        ];
        for (connection, args, code, words) in wrong {
            let said = err(&mut c, "AddShard", connection, args).await;
            assert!(said.0 == code && said.1.starts_with(words), "{said:?}");
        }
        assert_eq!(text(&ok(&mut c, "AddShard", s0.clone(), doc! {}).await, "shardAdded"), "s0");
        assert_eq!(text(&ok(&mut c, "AddShard", s0.clone(), doc! {}).await, "shardAdded"), "s0");
        let other = err(&mut c, "AddShard", s0.clone(), doc! { "name": "other" }).await;
        assert_eq!(other, (20, "A shard already exists containing the replica set 's0'".to_owned()));
        let shards = all(&mut c, "shards").await;
        assert_eq!((text(&shards[0], "_id"), text(&shards[0], "host")), ("s0", s0.as_str()));
        assert!(time(&shards[0], "topologyTime") > Timestamp::ZERO);
        let mut shard = cluster.shards[0].1.connect().await;
        let told = shard
            .all(doc! { "find": "system.version", "filter": { "_id": "shardIdentity" }, "$db": "admin" })
            .await;
        assert_eq!(text(&told[0], "shardName"), "s0");
        let version = &all(&mut c, "version").await[0];
        assert_eq!(told[0].get("clusterId"), version.get("clusterId"));
        // Databases come along, unless another shard has them.
        ok(&mut c, "CreateDatabase", "mine", doc! { "primaryShardId": "s0" }).await;
        let mut second = cluster.shards[1].1.connect().await;
        second.ok(doc! { "insert": "x", "documents": [{ "_id": 1 }], "$db": "mine" }).await;
        let clash = err(&mut c, "AddShard", s1.clone(), doc! {}).await;
        assert_eq!(
            clash.1,
            format!("can't add shard '{s1}' because a local database 'mine' exists in another s0")
        );
        second.ok(doc! { "dropDatabase": 1, "$db": "mine" }).await;
        second.ok(doc! { "insert": "x", "documents": [{ "_id": 1 }], "$db": "theirs" }).await;
        assert_eq!(err(&mut c, "AddShard", s1.clone(), doc! { "name": "s0" }).await.0, 20);
        ok(&mut c, "AddShard", s1.clone(), doc! {}).await;
        let databases = all(&mut c, "databases").await;
        let theirs = databases.iter().find(|d| text(d, "_id") == "theirs").unwrap();
        assert_eq!(text(theirs, "primary"), "s1");
        assert_eq!(happened(&mut c).await, ["addShard", "addShard"]);
    });
}

fn c_port(cluster: &Cluster) -> u16 {
    cluster.config.as_ref().unwrap().port
}

#[test]
fn a_database_has_one_shard_and_one_spelling() {
    run(async {
        let (mut cluster, mut c) = Cluster::complete(2).await;
        // The one with less data gets it.
        let mut full = cluster.shards[0].1.connect().await;
        let fat = "x".repeat(100_000);
        full.ok(doc! { "insert": "x", "documents": [{ "_id": 1, "s": fat }], "$db": "admin" }).await;
        let made = ok(&mut c, "CreateDatabase", "d", doc! {}).await;
        assert_eq!(text(&all(&mut c, "databases").await[0], "primary"), "s1");
        assert_eq!(
            ok(&mut c, "CreateDatabase", "d", doc! {}).await.get("databaseVersion"),
            made.get("databaseVersion")
        );
        assert_eq!(err(&mut c, "CreateDatabase", "D", doc! {}).await.0, 13297);
        assert_eq!(err(&mut c, "CreateDatabase", "d", doc! { "primaryShardId": "s0" }).await.0, 48);
        assert_eq!(err(&mut c, "CreateDatabase", "e", doc! { "primaryShardId": "nope" }).await.0, 70);
        assert_eq!(err(&mut c, "CreateDatabase", "admin", doc! {}).await.0, 72);
        assert_eq!(err(&mut c, "CreateDatabase", "a.b", doc! {}).await.0, 73);
        let mut c = cluster.restart(false).await;
        assert_eq!(
            ok(&mut c, "CreateDatabase", "d", doc! {}).await.get("databaseVersion"),
            made.get("databaseVersion")
        );
        // Many ask at once, in either case: one spelling wins, and everybody hears of the same database.
        let mut asking = Vec::new();
        for i in 0..8 {
            let mut c = cluster.connect().await;
            let name = if i % 2 == 0 { "both" } else { "Both" };
            asking.push(spawn(async move { c.run(command("CreateDatabase", name, doc! {})).await }));
        }
        let mut versions = Vec::new();
        for asked in asking {
            let reply = asked.await.unwrap();
            match reply.get("databaseVersion") {
                Some(version) => versions.push(version.clone()),
                None => assert_eq!(reply.get("code"), Some(&Bson::Int32(13297))),
            }
        }
        assert_eq!(versions.len(), 4);
        assert!(versions.windows(2).all(|two| two[0] == two[1]));
    });
}

#[test]
fn a_collection_is_committed_split_merged_moved_and_dropped_over_restarts() {
    run(async {
        let (mut cluster, mut c) = Cluster::complete(2).await;
        let database = ok(&mut c, "CreateDatabase", "d", doc! { "primaryShardId": "s0" }).await;
        let args = || sharded(&[], &["s0"]);
        assert_eq!(
            placement(&ok(&mut c, "CommitShardCollection", 1, args()).await, "collectionVersion"),
            (1, 0)
        );
        let mut c = cluster.restart(false).await;
        assert_eq!(
            placement(&ok(&mut c, "CommitShardCollection", 1, args()).await, "collectionVersion"),
            (1, 0)
        );
        let mut torn = args();
        let Some(Bson::Array(chunks)) = torn.remove("chunks") else { panic!() };
        torn.push("chunks", Bson::Array([chunks.clone(), chunks].concat()));
        assert_ne!(err(&mut c, "CommitShardCollection", 1, torn).await.0, 0);
        let (min, max) = (|| Bson::MinKey, || Bson::MaxKey);
        let reply = ok(&mut c, "CommitChunkSplit", "d.c", split(min(), max(), &[0, 10])).await;
        assert_eq!(placement(&reply, "collectionVersion"), (1, 3));
        let mut c = cluster.restart(true).await;
        // Once more it changes nothing; another one is refused.
        let reply = ok(&mut c, "CommitChunkSplit", "d.c", split(min(), max(), &[0, 10])).await;
        assert_eq!(placement(&reply, "shardVersion"), (1, 3));
        assert_eq!(err(&mut c, "CommitChunkSplit", "d.c", split(min(), max(), &[5])).await.0, 2);
        assert_eq!(err(&mut c, "CommitChunkSplit", "d.c", split(5, max(), &[7])).await.0, 105);
        assert_eq!(err(&mut c, "CommitChunkSplit", "d.x", split(min(), max(), &[5])).await.0, 117);
        let merge = || doc! { "shard": "s0", "collUUID": { "uuid": uuid() }, "chunkRange": { "min": { "a": 0 }, "max": { "a": Bson::MaxKey } } };
        assert_eq!(placement(&ok(&mut c, "CommitChunksMerge", "d.c", merge()).await, "shardVersion"), (1, 4));
        let mut c = cluster.restart(false).await;
        assert_eq!(placement(&ok(&mut c, "CommitChunksMerge", "d.c", merge()).await, "shardVersion"), (1, 4));
        let version =
            |major: u32, minor: u32| doc! { "e": EPOCH, "t": made(), "v": Timestamp::new(major, minor) };
        let moved = || {
            let chunk =
                doc! { "min": { "a": 3 }, "max": { "a": 5 }, "shard": "s0", "lastmod": version(1, 4) };
            let at = Timestamp::new(1_796_000_000, 1);
            doc! { "fromShard": "s0", "toShard": "s1", "migratedChunk": chunk, "fromShardCollectionVersion": version(1, 4),
            "validAfter": at }
        };
        let reply = ok(&mut c, "CommitChunkMigration", "d.c", moved()).await;
        assert_eq!(placement(&reply, "collectionVersion"), (2, 2));
        let mut c = cluster.restart(false).await;
        let reply = ok(&mut c, "CommitChunkMigration", "d.c", moved()).await;
        assert_eq!(placement(&reply, "collectionVersion"), (2, 2));
        let owners: Vec<String> = bounds(&mut c).await.into_iter().map(|(_, shard)| shard).collect();
        assert_eq!(owners, ["s0", "s0", "s1", "s0"]);
        assert_eq!(
            err(
                &mut c,
                "CommitDropDatabase",
                "d",
                doc! { "version": database.get("databaseVersion").unwrap().clone() }
            )
            .await
            .0,
            20
        );
        ok(&mut c, "CommitDropCollection", "d.c", doc! { "collectionUUID": uuid() }).await;
        let mut c = cluster.restart(false).await;
        ok(&mut c, "CommitDropCollection", "d.c", doc! { "collectionUUID": uuid() }).await;
        assert!(all(&mut c, "collections").await.is_empty() && all(&mut c, "chunks").await.is_empty());
        ok(
            &mut c,
            "CommitDropDatabase",
            "d",
            doc! { "version": database.get("databaseVersion").unwrap().clone() },
        )
        .await;
        assert!(all(&mut c, "databases").await.is_empty());
        let told = happened(&mut c).await;
        let expected = [
            "shardCollection.start",
            "shardCollection.end",
            "multi-split",
            "merge",
            "dropCollection",
            "dropDatabase",
        ];
        assert!(expected.iter().all(|what| told.iter().any(|t| t == what)), "{told:?}");
    });
}

#[test]
fn operations_at_once_leave_chunks_that_tile_all_keys() {
    run(async {
        let (cluster, mut c) = Cluster::complete(1).await;
        ok(&mut c, "CreateDatabase", "d", doc! {}).await;
        ok(&mut c, "CommitShardCollection", 1, sharded(&[], &["s0"])).await;
        let mut working = Vec::new();
        for i in 0..6 {
            let mut c = cluster.connect().await;
            working.push(spawn(async move {
                let mut done = 0;
                for n in 0..10 {
                    let edges = bounds(&mut c).await;
                    let at = i * 100 + n;
                    let (first, then) =
                        (edges[0].0.clone(), edges.get(1).map_or(Bson::MaxKey, |e| e.0.clone()));
                    let reply =
                        c.run(command("CommitChunkSplit", "d.c", split(first, then, &[-at - 1]))).await;
                    done += usize::from(pando_testserver::is(&reply, "ok"));
                }
                done
            }));
        }
        let mut done = 0;
        for work in working {
            done += work.await.unwrap();
        }
        // Each that was answered is there, and none twice.
        assert_eq!(bounds(&mut c).await.len(), done + 1);
        let find = doc! { "find": "chunks", "sort": { "min": 1 }, "$db": "config" };
        let chunks = c.all(find).await;
        assert!(chunks.windows(2).all(|two| two[0].get("max") == two[1].get("min")));
        let mut versions: Vec<Timestamp> = chunks.iter().map(|d| time(d, "lastmod")).collect();
        versions.sort();
        versions.dedup();
        assert_eq!(versions.len(), chunks.len());
    });
}

#[test]
fn zones_belong_to_shards_and_to_ranges_that_do_not_overlap() {
    run(async {
        let (_cluster, mut c) = Cluster::complete(2).await;
        ok(&mut c, "CreateDatabase", "d", doc! {}).await;
        ok(&mut c, "CommitShardCollection", 1, sharded(&[], &["s0"])).await;
        assert_eq!(err(&mut c, "AddShardToZone", "nope", doc! { "zone": "z" }).await.0, 70);
        ok(&mut c, "AddShardToZone", "s0", doc! { "zone": "z" }).await;
        ok(&mut c, "AddShardToZone", "s0", doc! { "zone": "z" }).await;
        let range =
            |min: i32, max: i32, zone: Bson| doc! { "min": { "a": min }, "max": { "a": max }, "zone": zone };
        let z = || Bson::from("z");
        assert_eq!(err(&mut c, "UpdateZoneKeyRange", "d.c", range(0, 10, "y".into())).await.0, 177);
        ok(&mut c, "UpdateZoneKeyRange", "d.c", range(0, 10, z())).await;
        ok(&mut c, "UpdateZoneKeyRange", "d.c", range(0, 10, z())).await;
        let overlap = err(&mut c, "UpdateZoneKeyRange", "d.c", range(5, 15, z())).await;
        assert_eq!(
            overlap.1,
            "Zone range: { a: 5 } -->> { a: 15 }  on  z is overlapping with existing: { a: 0 } -->> { a: 10 }  on  z"
        );
        assert_eq!(err(&mut c, "RemoveShardFromZone", "s0", doc! { "zone": "z" }).await.0, 163);
        assert_eq!(err(&mut c, "RemoveShard", "s0", doc! {}).await.0, 163);
        ok(&mut c, "UpdateZoneKeyRange", "d.c", range(0, 10, Bson::Null)).await;
        assert!(all(&mut c, "tags").await.is_empty());
        ok(&mut c, "RemoveShardFromZone", "s0", doc! { "zone": "z" }).await;
    });
}

#[test]
fn a_shard_leaves_when_it_owns_nothing() {
    run(async {
        let (mut cluster, mut c) = Cluster::complete(2).await;
        ok(&mut c, "CreateDatabase", "d", doc! { "primaryShardId": "s0" }).await;
        ok(&mut c, "CommitShardCollection", 1, sharded(&[0], &["s0", "s1"])).await;
        assert_eq!(err(&mut c, "RemoveShard", "nope", doc! {}).await.0, 70);
        assert_eq!(text(&ok(&mut c, "RemoveShard", "s0", doc! {}).await, "state"), "started");
        let last = "Operation not allowed because it would remove the last shard";
        assert_eq!(err(&mut c, "RemoveShard", "s1", doc! {}).await.1, last);
        let mut c = cluster.restart(false).await;
        let ongoing = ok(&mut c, "RemoveShard", "s0", doc! {}).await;
        let remaining = ongoing.get("remaining").and_then(Bson::as_doc).unwrap();
        assert_eq!(remaining.get("chunks").and_then(Bson::as_i64), Some(1));
        assert_eq!(remaining.get("dbs").and_then(Bson::as_i64), Some(1));
        ok(&mut c, "CommitDropCollection", "d.c", doc! { "collectionUUID": uuid() }).await;
        let version = all(&mut c, "databases").await[0].get("version").cloned().unwrap();
        ok(&mut c, "CommitMovePrimary", "d", doc! { "expectedDatabaseVersion": version, "to": "s1" }).await;
        let before = time(&all(&mut c, "shards").await[1], "topologyTime");
        assert_eq!(text(&ok(&mut c, "RemoveShard", "s0", doc! {}).await, "state"), "completed");
        assert_eq!(err(&mut c, "RemoveShard", "s0", doc! {}).await.0, 70);
        let shards = all(&mut c, "shards").await;
        // The one that stays tells that something has changed.
        assert!(shards.len() == 1 && time(&shards[0], "topologyTime") > before);
    });
}

#[test]
fn servers_of_the_cluster_hear_up_to_where_they_can_rely_on_it() {
    run(async {
        let (cluster, mut c) = Cluster::complete(1).await;
        let plain = c.admin(doc! { "ping": 1 }).await;
        assert!(plain.get("$configTime").is_none());
        let mut server = cluster.connect().await;
        server
            .admin(doc! { "hello": 1, "internalClient": { "minWireVersion": 0, "maxWireVersion": 21 } })
            .await;
        let reply = server.admin(doc! { "ping": 1, "$configTime": Timestamp::new(1, 1) }).await;
        let (config, topology) = (time(&reply, "$configTime"), time(&reply, "$topologyTime"));
        let shards = all(&mut c, "shards").await;
        assert!(topology == time(&shards[0], "topologyTime") && config > topology);
        let find = |rc: Document| doc! { "find": "shards", "readConcern": rc, "$db": "config" };
        let after = doc! { "ts": config, "t": 1i64 };
        assert_eq!(c.all(find(doc! { "level": "majority", "afterOpTime": after })).await.len(), 1);
        assert_eq!(c.all(find(doc! { "level": "snapshot", "afterClusterTime": config })).await.len(), 1);
    });
}

#[test]
fn the_next_primary_knows_what_was_answered() {
    run(async {
        let set = Set::configured(3, |c| c.cluster_role = Some(ClusterRole::Config)).await;
        let world = World::new();
        let shard = start(&world, 0, "s0", Some(ClusterRole::Shard)).await;
        let mut c = set.connect(set.primary().await).await;
        ok(&mut c, "AddShard", format!("s0/127.0.0.1:{}", shard.port), doc! {}).await;
        ok(&mut c, "CreateDatabase", "d", doc! {}).await;
        ok(&mut c, "CommitShardCollection", 1, sharded(&[], &["s0"])).await;
        for round in 0..3 {
            let first = set.primary().await;
            let mut c = set.connect(first).await;
            let before = bounds(&mut c).await;
            let then = before.get(1).map_or(Bson::MaxKey, |e| e.0.clone());
            ok(&mut c, "CommitChunkSplit", "d.c", split(Bson::MinKey, then, &[-round])).await;
            set.until("a step-down", async |set| {
                let reply =
                    set.connect(first).await.run(doc! { "replSetStepDown": 30, "$db": "admin" }).await;
                pando_testserver::is(&reply, "ok")
            })
            .await;
            let mut next = set.connect(set.primary().await).await;
            assert_eq!(bounds(&mut next).await.len(), before.len() + 1);
            // A transaction of one command was one: the entry is as new as the chunks are.
            let reply = ok(&mut next, "CommitShardCollection", 1, sharded(&[], &["s0"])).await;
            assert_eq!(placement(&reply, "collectionVersion"), (1, 2 * (round as u32 + 1)));
        }
        // Who follows has the same.
        set.until("a secondary that has all chunks", async |set| {
            let at = set.secondaries().await[0];
            let mode = doc! { "mode": "secondary" };
            let find = doc! { "find": "chunks", "$readPreference": mode, "$db": "config" };
            set.connect(at).await.all(find).await.len() == 4
        })
        .await;
        set.shut_down().await;
    });
}

#[test]
fn what_the_balancer_is_told_is_kept() {
    run(async {
        let (mut cluster, mut c) = Cluster::complete(1).await;
        let plain = |name: &str| {
            let mut d = Document::new();
            d.push(format!("_configsvrBalancer{name}"), 1);
            d.push("$db", "admin");
            d
        };
        assert_eq!(text(&c.ok(plain("Status")).await, "mode"), "full");
        c.ok(plain("Stop")).await;
        let mut c = cluster.restart(false).await;
        assert_eq!(text(&c.ok(plain("Status")).await, "mode"), "off");
        c.ok(plain("Start")).await;
        assert_eq!(text(&c.ok(plain("Status")).await, "mode"), "full");
        ok(&mut c, "CreateDatabase", "d", doc! {}).await;
        ok(&mut c, "CommitShardCollection", 1, sharded(&[], &["s0"])).await;
        ok(&mut c, "SetAllowMigrations", "d.c", doc! { "allowMigrations": false }).await;
        let of = |c: Vec<Document>| c[0].clone();
        assert_eq!(of(all(&mut c, "collections").await).get("allowMigrations"), Some(&Bson::Boolean(false)));
        assert_eq!(time(&of(all(&mut c, "chunks").await), "lastmod"), Timestamp::new(1, 1));
        ok(&mut c, "SetAllowMigrations", "d.c", doc! { "allowMigrations": true }).await;
        assert_eq!(of(all(&mut c, "collections").await).get("allowMigrations"), None);
        let configure =
            doc! { "_configsvrConfigureCollectionBalancing": "d.c", "chunkSize": 5, "$db": "admin" };
        c.ok(configure).await;
        let status = c.ok(doc! { "_configsvrBalancerCollectionStatus": "d.c", "$db": "admin" }).await;
        assert_eq!(status.get("chunkSize"), Some(&Bson::Double(5.0)));
        assert_eq!(status.get("balancerCompliant"), Some(&Bson::Boolean(true)));
    });
}
