//! How long the catalog takes per document: `cargo run --release -p pando-catalog --example catalog_bench [docs]`.
//!
//! One thread, tables in a temporary folder, no network, no command handling.

use pando_base::Namespace;
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc, doc};
use pando_catalog::{Catalog, CollectionSource, OpenOptions, Uninterrupted, UpdateForm, WriteOp, find_by_id};
use pando_env::{BoxFuture, Env, Spawn};
use pando_query::source::{Direction, IndexScan, RecordScan, Source};
use pando_storage::testing::{RealDisk, env_on};
use pando_storage::{Backend, Options, ReadAt, Storage};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<Vec<BoxFuture<'static, ()>>>>);

impl Spawn for Tasks {
    fn spawn(&self, _name: &'static str, task: BoxFuture<'static, ()>) {
        self.0.lock().expect("one thread").push(task);
    }
    fn offload(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        work();
        Box::pin(std::future::ready(()))
    }
    fn yield_now(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl Tasks {
    fn run<T>(&self, f: impl Future<Output = T>) -> T {
        let mut f = pin!(f);
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(v) = f.as_mut().poll(&mut cx) {
                return v;
            }
            let tasks = std::mem::take(&mut *self.0.lock().expect("one thread"));
            let pending = |mut t: BoxFuture<'static, ()>| t.as_mut().poll(&mut cx).is_pending().then_some(t);
            let left: Vec<_> = tasks.into_iter().filter_map(pending).collect();
            self.0.lock().expect("one thread").extend(left);
        }
    }
}

fn document(i: u32, n: u32) -> DocBuf {
    // Ids in no order, like those of many clients.
    let mut id = [0u8; 12];
    id[..4].copy_from_slice(&i.wrapping_mul(2_654_435_761).to_be_bytes());
    id[8..].copy_from_slice(&i.to_be_bytes());
    let mut b = DocBuilder::with_capacity(1100);
    b.object_id("_id", ObjectId(id));
    b.i32("a", (i.wrapping_mul(48_271) % n) as i32);
    b.i64("n", i64::from(i));
    b.str("name", "somebody with a name");
    b.str("text", &"x".repeat(900));
    b.finish()
}

/// CPU time of this process so far, in microseconds (in steps of 10 ms), so that a busy machine does not blur the
/// figures.
struct Cpu(f64);

impl Cpu {
    fn now() -> Cpu {
        let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: f64 = fields.skip(11).take(2).filter_map(|f| f.parse::<f64>().ok()).sum();
        Cpu(ticks * 10_000.0)
    }
}

fn report(what: &str, n: usize, start: Cpu) {
    println!("{what:<36} {:>8.3} us of CPU each ({n})", (Cpu::now().0 - start.0) / n as f64);
}

fn main() {
    let n: u32 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(200_000);
    let backend = if std::env::args().nth(2).as_deref() == Some("mem") { Backend::Mem } else { Backend::Lsm };
    let path = std::env::temp_dir().join(format!("pando-catalog-bench-{}", std::process::id()));
    std::fs::create_dir_all(&path).expect("temporary folder");
    let tasks = Tasks::default();
    let env = Env { tasks: Arc::new(tasks.clone()), ..env_on(Arc::new(RealDisk::new(&path)), 1).0 };
    let options = Options { backend, memtable_bytes: 4 << 30, replicated: false, ..Options::default() };
    let storage = Storage::open(env.clone(), options).expect("storage");
    let catalog = Catalog::open(env, storage, OpenOptions { replset: true }).expect("catalog");
    let ns = Namespace::parse("db.c").expect("name");
    run(&tasks, &catalog, &ns, n);
    drop(catalog);
    let _ = std::fs::remove_dir_all(&path);
}

fn run(tasks: &Tasks, catalog: &Catalog, ns: &Namespace, n: u32) {
    let docs: Vec<DocBuf> = (0..n).map(|i| document(i, n)).collect();
    let refs: Vec<&RawDoc> = docs.iter().map(|d| &**d).collect();
    let op = WriteOp::default();
    let coll = tasks.run(catalog.write_lock_or_create(ns)).expect("collection");

    let start = Cpu::now();
    for batch in refs.chunks(1000) {
        let done = tasks.run(catalog.insert_many(&op, &coll, batch, &[], true, &Uninterrupted));
        assert_eq!(done.n, batch.len());
    }
    report("insert_many x1000", refs.len(), start);

    let ns1 = Namespace::parse("db.one").expect("name");
    let one = tasks.run(catalog.write_lock_or_create(&ns1)).expect("collection");
    let few = &refs[..refs.len().min(50_000)];
    let start = Cpu::now();
    for d in few {
        let done =
            tasks.run(catalog.insert_many(&op, &one, std::slice::from_ref(d), &[], true, &Uninterrupted));
        assert_eq!(done.n, 1);
    }
    report("insert_one", few.len(), start);
    drop(one);

    let start = Cpu::now();
    for d in few {
        let txn = catalog.begin_read(ReadAt::Latest).expect("snapshot");
        assert!(find_by_id(&txn, &coll, d).expect("read").is_some());
    }
    report("find_by_id, own snapshot", few.len(), start);
    drop(coll);

    let start = Cpu::now();
    let spec = doc! { "key": { "a": 1 }, "name": "a_1" }.to_raw();
    tasks.run(catalog.create_indexes(ns, &[&spec], &Uninterrupted)).expect("index");
    report("createIndex", refs.len(), start);

    let coll = tasks.run(catalog.write_lock(ns)).expect("lock").expect("collection");
    let start = Cpu::now();
    for d in few {
        let mut unit = catalog.begin_write(&coll).expect("unit");
        let (rid, old) = find_by_id(unit.txn(), &coll, d).expect("read").expect("there");
        let old = RawDoc::trusted(&old);
        let mut b = DocBuilder::with_capacity(old.byte_len());
        for e in old {
            match e.name() {
                "n" => b.i64("n", 7),
                _ => b.elem(e),
            };
        }
        let new = b.finish();
        let diff = doc! { "u": { "n": 7i64 } }.to_raw();
        unit.update(&op, &coll, &rid, old, &new, UpdateForm::Diff(&diff), &[]).expect("update");
        unit.commit().expect("commit");
    }
    report("find_by_id + update one field", few.len(), start);

    let mut source = CollectionSource::new(
        coll.collection().clone(),
        catalog.begin_read(ReadAt::Latest).expect("snapshot"),
    );
    let start = Cpu::now();
    let mut cursor = source.scan_records(RecordScan::all(Direction::Forward)).expect("scan");
    let mut seen = 0;
    while let Some((_, doc)) = cursor.next().expect("row") {
        seen += usize::from(doc.len() > 10);
    }
    report("scan of records", seen, start);

    let start = Cpu::now();
    let at = coll.ready_indexes().iter().position(|i| i.name() == "a_1").expect("index");
    let scan = IndexScan { index: at, start: &[], end: &[], dir: Direction::Forward, after: None };
    let mut cursor = source.scan_index(scan).expect("scan");
    let mut seen = 0;
    while let Some(e) = cursor.next().expect("entry") {
        seen += usize::from(!e.key.is_empty());
    }
    report("scan of an index", seen, start);

    let start = Cpu::now();
    let scan = IndexScan { index: at, start: &[], end: &[], dir: Direction::Forward, after: None };
    let mut cursor = source.scan_index(scan).expect("scan");
    let mut seen = 0;
    while let Some(rid) = cursor.next().expect("entry").map(|e| e.rid) {
        seen += usize::from(source.fetch(&rid).expect("doc").is_some());
        if seen == few.len() {
            break;
        }
    }
    report("index scan + fetch, random records", seen, start);
}
