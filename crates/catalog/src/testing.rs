//! A catalog in a small world: tasks run on one thread, round robin, until the awaited one is done.

use crate::{Catalog, OpenOptions, Uninterrupted, WriteOp};
use pando_base::{Namespace, OpTime, Result};
use pando_bson::{Document, RawDoc};
use pando_env::{BoxFuture, Env, Spawn};
use pando_query::source::{Direction, IndexScan, RecordScan};
use pando_storage::testing::{FaultyDisk, RealDisk, env_on};
use pando_storage::{Backend, Options, ReadAt, Storage};
use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

#[derive(Clone, Default)]
pub(crate) struct Tasks(Arc<Mutex<Vec<BoxFuture<'static, ()>>>>);

/// Pending once, ready the second time.
struct YieldOnce(Cell<bool>);

impl Future for YieldOnce {
    type Output = ();
    fn poll(self: std::pin::Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        if self.0.replace(true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Spawn for Tasks {
    fn spawn(&self, _name: &'static str, task: BoxFuture<'static, ()>) {
        self.0.lock().unwrap().push(task);
    }
    fn offload(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        work();
        Box::pin(std::future::ready(()))
    }
    fn yield_now(&self) -> BoxFuture<'static, ()> {
        Box::pin(YieldOnce(Cell::new(false)))
    }
}

impl Tasks {
    /// Polls every task once.
    pub(crate) fn turn(&self) {
        let mut cx = Context::from_waker(Waker::noop());
        let tasks = std::mem::take(&mut *self.0.lock().unwrap());
        let left: Vec<_> = tasks
            .into_iter()
            .filter_map(|mut t| t.as_mut().poll(&mut cx).is_pending().then_some(t))
            .collect();
        self.0.lock().unwrap().extend(left);
    }
    pub(crate) fn run<T>(&self, f: impl Future<Output = T>) -> T {
        let mut f = pin!(f);
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..10_000_000u32 {
            if let Poll::Ready(v) = f.as_mut().poll(&mut cx) {
                return v;
            }
            self.turn();
        }
        panic!("nothing moves any more");
    }
}

/// A catalog with what it lives on.
pub(crate) struct World {
    pub(crate) tasks: Tasks,
    pub(crate) disk: Option<Arc<FaultyDisk>>,
    pub(crate) env: Env,
    pub(crate) catalog: Catalog,
    backend: Backend,
    _folder: Option<Folder>,
}

struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(env: &Env, options: Options) -> Catalog {
    let storage = Storage::open(env.clone(), options).unwrap();
    let catalog = Catalog::open(env.clone(), storage, OpenOptions { replset: true }).unwrap();
    catalog.set_term(1);
    catalog
}

pub(crate) fn ns(name: &str) -> Namespace {
    Namespace::parse(name).unwrap()
}

impl World {
    /// On memory tables and a disk that can fail.
    pub(crate) fn new() -> World {
        World::drawing(7)
    }
    /// The same; what is drawn by chance differs from seed to seed.
    pub(crate) fn drawing(seed: u64) -> World {
        let disk = Arc::new(FaultyDisk::new(7));
        let tasks = Tasks::default();
        let env = Env { tasks: Arc::new(tasks.clone()), ..env_on(disk.clone(), seed).0 };
        let catalog = open(&env, Options { backend: Backend::Mem, ..Options::default() });
        World { tasks, disk: Some(disk), env, catalog, backend: Backend::Mem, _folder: None }
    }
    /// On log-structured tables in a folder of its own.
    pub(crate) fn on_files(name: &str) -> World {
        World::on_files_drawing(name, 7)
    }
    pub(crate) fn on_files_drawing(name: &str, seed: u64) -> World {
        let path = std::env::temp_dir().join(format!("pando-catalog-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        let tasks = Tasks::default();
        let disk = Arc::new(RealDisk::new(&path));
        let env = Env { tasks: Arc::new(tasks.clone()), ..env_on(disk, seed).0 };
        let catalog = open(&env, Options { backend: Backend::Lsm, ..Options::default() });
        World { tasks, disk: None, env, catalog, backend: Backend::Lsm, _folder: Some(Folder(path)) }
    }
    /// Closes cleanly enough (log synced) and opens again.
    pub(crate) fn reopen(self) -> World {
        self.catalog.storage().log().flush_once().unwrap();
        self.catalog.storage().sync_local().unwrap();
        self.reopen_as_is()
    }
    /// Opens again without syncing anything (after `disk.crash()`, say).
    pub(crate) fn reopen_as_is(self) -> World {
        let options = Options { backend: self.backend, ..Options::default() };
        self.reopen_with(options)
    }
    pub(crate) fn reopen_with(self, options: Options) -> World {
        let World { disk, env, catalog, backend, _folder, .. } = self;
        drop(catalog);
        let tasks = Tasks::default();
        let env = Env { tasks: Arc::new(tasks.clone()), ..env };
        let catalog = open(&env, options);
        World { tasks, disk, env, catalog, backend, _folder }
    }
    pub(crate) fn run<T>(&self, f: impl Future<Output = T>) -> T {
        self.tasks.run(f)
    }
    pub(crate) fn create(&self, name: &str, options: Document) -> Result<OpTime> {
        let body = options.to_raw();
        let options = crate::CollectionOptions::from_stored(&body)?;
        self.run(self.catalog.create(&ns(name), options))
    }
    pub(crate) fn try_insert(&self, name: &str, docs: Vec<Document>) -> crate::Inserts {
        let raw: Vec<_> = docs.iter().map(Document::to_raw).collect();
        let refs: Vec<&RawDoc> = raw.iter().map(|d| &**d).collect();
        self.run(async {
            let coll = self.catalog.write_lock_or_create(&ns(name)).await.unwrap();
            self.catalog.insert_many(&WriteOp::default(), &coll, &refs, &[], true, &Uninterrupted).await
        })
    }
    pub(crate) fn insert(&self, name: &str, docs: Vec<Document>) {
        let n = docs.len();
        let done = self.try_insert(name, docs);
        assert!(done.errors.is_empty(), "{:?}", done.errors);
        assert_eq!(done.n, n);
    }
    pub(crate) fn update(&self, name: &str, id: i32, new: Document) -> Result<OpTime> {
        self.run(async {
            let coll = self.catalog.write_lock(&ns(name)).await?.unwrap();
            let mut unit = self.catalog.begin_write(&coll)?;
            let key = pando_bson::doc! { "_id": id }.to_raw();
            let (rid, old) = crate::find_by_id(unit.txn(), &coll, &key)?.unwrap();
            let old = RawDoc::trusted(&old).to_buf();
            let new = new.to_raw();
            let diff = pando_oplog::diff::compute(&old, &new);
            let form = diff.as_ref().map_or(crate::UpdateForm::Replacement, |d| crate::UpdateForm::Diff(d));
            unit.update(&WriteOp::default(), &coll, &rid, &old, &new, form, &[])?;
            unit.commit()
        })
    }
    pub(crate) fn delete(&self, name: &str, id: i32) -> Result<OpTime> {
        self.run(async {
            let coll = self.catalog.write_lock(&ns(name)).await?.unwrap();
            let mut unit = self.catalog.begin_write(&coll)?;
            let key = pando_bson::doc! { "_id": id }.to_raw();
            let (rid, old) = crate::find_by_id(unit.txn(), &coll, &key)?.unwrap();
            let old = RawDoc::trusted(&old).to_buf();
            unit.delete(&WriteOp::default(), &coll, &rid, &old, &[])?;
            unit.commit()
        })
    }
    pub(crate) fn index(&self, name: &str, spec: Document) -> Result<crate::IndexesCreated> {
        let raw = spec.to_raw();
        self.run(self.catalog.create_indexes(&ns(name), &[&raw], &Uninterrupted))
    }
    /// Documents in record order.
    pub(crate) fn docs(&self, name: &str) -> Vec<Document> {
        self.docs_at(name, ReadAt::Latest)
    }
    pub(crate) fn docs_at(&self, name: &str, at: ReadAt) -> Vec<Document> {
        let Some(coll) = self.catalog.lookup(&ns(name)) else { return Vec::new() };
        let mut src = self.catalog.open_source(&coll, at).unwrap();
        let mut cursor = src.scan_records(RecordScan::all(Direction::Forward)).unwrap();
        let mut out = Vec::new();
        while let Some((_, doc)) = cursor.next().unwrap() {
            out.push(Document::from(RawDoc::trusted(&doc)));
        }
        out
    }
    pub(crate) fn ids(&self, name: &str) -> Vec<i64> {
        self.docs(name).iter().map(|d| d.get("_id").and_then(|v| v.as_i64()).unwrap()).collect()
    }
    /// `_id`s in the order of an index.
    pub(crate) fn ids_by_index(&self, name: &str, index: &str) -> Vec<i64> {
        let coll = self.catalog.lookup(&ns(name)).unwrap();
        let at = coll.ready_indexes().iter().position(|i| i.name() == index).unwrap();
        let mut src = self.catalog.open_source(&coll, ReadAt::Latest).unwrap();
        let scan = IndexScan { index: at, start: &[], end: &[], dir: Direction::Forward, after: None };
        let mut cursor = src.scan_index(scan).unwrap();
        let mut rids = Vec::new();
        while let Some(e) = cursor.next().unwrap() {
            rids.push(e.rid);
        }
        rids.iter()
            .map(|rid| {
                let doc = src.fetch(rid).unwrap().unwrap();
                RawDoc::trusted(&doc).get("_id").and_then(|v| v.as_i64()).unwrap()
            })
            .collect()
    }
    /// `(op, o)` of every entry of the log.
    pub(crate) fn log(&self) -> Vec<(String, Document)> {
        let mut cursor = self.catalog.storage().log().read(std::ops::Bound::Unbounded, false);
        let mut out = Vec::new();
        while let Some((_, entry)) = cursor.next().unwrap() {
            let entry = RawDoc::trusted(&entry);
            let op = entry.get("op").and_then(|v| v.as_str()).unwrap().to_owned();
            out.push((op, Document::from(entry.get("o").and_then(|v| v.as_doc()).unwrap())));
        }
        out
    }
}
