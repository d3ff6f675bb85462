//! A catalog manager on a node of its own, with the metadata in memory and nobody else around.

use pando_access::types::OpenOptions;
use pando_access::{Access, Change, InternalCollections, Uninterrupted};
use pando_base::{OpTime, Result, SessionId, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc, Value};
use pando_config_server::{CatalogManager, Node, ns};
use pando_env::{BoxFuture, Env};
use pando_routing::chunk::Owner;
use pando_routing::{Chunk, Placement, ShardId, ShardKey};
use pando_storage::testing::{FaultyDisk, env_on};
use pando_storage::{Backend, Options, Storage};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

pub(crate) const EPOCH: ObjectId = ObjectId([7; 12]);
pub(crate) const TIMESTAMP: Timestamp = Timestamp::new(9, 1);
pub(crate) const UUID: Uuid = Uuid([1; 16]);
pub(crate) const NS: &str = "d.c";

/// Nothing here waits for anybody.
pub(crate) fn now<T>(f: impl Future<Output = T>) -> T {
    match pin!(f).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("it waits"),
    }
}

struct Alone(AtomicU32);

impl Node for Alone {
    fn call<'a>(&'a self, _: &'a str, _: &'a RawDoc) -> BoxFuture<'a, Result<DocBuf>> {
        unreachable!("nobody is called")
    }
    fn await_majority(&self, _: OpTime) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }
    fn committed(&self, _: SessionId, _: i64, _: OpTime) {}
    fn next_time(&self) -> Timestamp {
        Timestamp::new(100 + self.0.fetch_add(1, Relaxed), 1)
    }
    fn number<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<Timestamp>> {
        Box::pin(async { Ok(self.next_time()) })
    }
    fn become_shard<'a>(&'a self, _: &'a RawDoc) -> BoxFuture<'a, Result<()>> {
        unreachable!("it becomes no shard")
    }
    fn connection_string(&self) -> String {
        "config/localhost:1".to_owned()
    }
    fn history_from(&self) -> Timestamp {
        Timestamp::new(500, 0)
    }
    fn feature_version(&self) -> String {
        "6.0".to_owned()
    }
    fn host_port(&self) -> String {
        "localhost:1".to_owned()
    }
}

pub(crate) struct World {
    env: Env,
    pub(crate) internal: InternalCollections,
    pub(crate) key: ShardKey,
    storage: Storage,
    _access: Access,
}

pub(crate) fn at(k: i64) -> DocBuf {
    let mut d = DocBuilder::new();
    d.i64("k", k);
    d.finish()
}

impl World {
    /// `d.c` by `k`: chunks that end at 1, 2, 3, …, given to shards by `owner`.
    pub(crate) fn new(chunks: i64, shards: usize, owner: impl Fn(i64) -> usize) -> World {
        let (env, _) = env_on(Arc::new(FaultyDisk::new(7)), 7);
        let options = Options { backend: Backend::Mem, ..Options::default() };
        let storage = Storage::open(env.clone(), options).unwrap();
        let access =
            Access::open(env.clone(), storage.clone(), OpenOptions { replset: true }, || true).unwrap();
        access.maintenance().set_term(1);
        let key = ShardKey::parse(&{
            let mut d = DocBuilder::new();
            d.i32("k", 1);
            d.finish()
        })
        .unwrap();
        let world = World { env, internal: access.internal_collections(), key, storage, _access: access };
        now(world.manager().prepare()).unwrap();
        world.fill(chunks, shards, owner);
        world
    }
    /// One that has kept nothing yet.
    pub(crate) fn manager(&self) -> CatalogManager {
        CatalogManager::new(self.env.clone(), self.internal.clone(), Arc::new(Alone(AtomicU32::new(0))))
    }
    fn put(&self, collection: &str, docs: &[DocBuf]) {
        now(self.internal.ensure(&ns(collection))).unwrap();
        for some in docs.chunks(10_000) {
            if self.storage.wants_checkpoint() {
                self.storage.checkpoint_past_stable().unwrap();
            }
            now(self.internal.put_all(&Uninterrupted, &ns(collection), some)).unwrap();
        }
    }
    fn fill(&self, chunks: i64, shards: usize, owner: impl Fn(i64) -> usize) {
        let shard = |n: usize| ShardId::new(&format!("shard{n:04}"));
        let entry = |n: usize| {
            let mut d = DocBuilder::new();
            d.str("_id", shard(n).as_str()).str("host", &format!("s{n}/localhost:{}", 2 + n)).i32("state", 1);
            d.finish()
        };
        self.put("shards", &(0..shards).map(entry).collect::<Vec<_>>());
        let mut d = DocBuilder::new();
        d.str("_id", NS).object_id("lastmodEpoch", EPOCH).date("lastmod", 0);
        d.timestamp("timestamp", TIMESTAMP).uuid("uuid", &UUID.0).raw_doc("key", self.key.pattern());
        self.put("collections", &[d.finish()]);
        let bound = |k: i64| match k {
            0 => self.key.least(),
            k if k == chunks => self.key.greatest(),
            k => at(k),
        };
        let chunk = |k: i64| {
            let shard = shard(owner(k));
            let history = vec![Owner { valid_after: Timestamp::new(10, 1), shard: shard.clone() }];
            let mut id = [0; 12];
            id[4..].copy_from_slice(&k.to_be_bytes());
            let (min, max, placement) = (bound(k), bound(k + 1), Placement::new(1, k as u32));
            Chunk { id: ObjectId(id), min, max, shard, placement, history, jumbo: false }.to_doc(UUID)
        };
        let mut from = 0;
        while from < chunks {
            let upto = chunks.min(from + 10_000);
            self.put("chunks", &(from..upto).map(chunk).collect::<Vec<_>>());
            from = upto;
        }
    }
    /// Somebody changes the stored chunks by hand.
    pub(crate) fn write(&self, changes: &[Change]) {
        let session = (SessionId::of([9; 16]), i64::from(self.env.rng.next_u64() as u32));
        now(self.internal.write_together(&Uninterrupted, session, changes)).unwrap();
    }
    /// All chunks, in order.
    pub(crate) fn chunks(&self) -> Vec<Chunk> {
        let docs = self.internal.all(&ns("chunks"), pando_storage::ReadAt::Latest).unwrap();
        let mut all: Vec<Chunk> = docs.iter().map(|doc| Chunk::parse(doc).unwrap()).collect();
        all.sort_by_key(|c| self.key.key_of_bound(&c.min).unwrap());
        all
    }
}

/// The number that ends a shard's name.
pub(crate) fn number(shard: &ShardId) -> usize {
    shard.as_str().trim_start_matches("shard").parse().unwrap()
}

pub(crate) fn jumbo(doc: &RawDoc) -> bool {
    doc.get("jumbo").is_some_and(|v| matches!(v, Value::Boolean(true)))
}
