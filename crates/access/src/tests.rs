//! The door, check by check, on a node without a server around it.

use crate::transaction::metrics::Metrics;
use crate::types::{CollectionOptions, DropWhich, OpenOptions, Uninterrupted};
use crate::{Access, Change, IndexRange, Missing, RangePlace, Reading, Statement};
use pando_base::{Error, ErrorCode, Namespace, SessionId, Timestamp, Uuid};
use pando_bson::{Binary, Bson, Document, RawDoc, doc};
use pando_catalog::WriteOp;
use pando_catalog::options::{Capped, ViewDefinition};
use pando_command::{Instance, OpCtx};
use pando_query::source::{Direction, RecordScan};
use pando_routing::ShardKey;
use pando_session::retryable::{Begin, Retryable};
use pando_storage::testing::{FaultyDisk, env_on};
use pando_storage::{Backend, Options, ReadAt, Storage};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

/// Nothing here waits for anybody.
fn now<T>(f: impl Future<Output = T>) -> T {
    match pin!(f).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("it waits"),
    }
}

fn ns(name: &str) -> Namespace {
    Namespace::parse(name).unwrap()
}

struct Node {
    access: Access,
    storage: Storage,
    instance: Arc<Instance>,
    sessions: Arc<Retryable>,
    oplog_is_readable: Arc<AtomicBool>,
}

impl Node {
    fn new() -> Node {
        let (env, _) = env_on(Arc::new(FaultyDisk::new(7)), 7);
        let options = Options { backend: Backend::Mem, ..Options::default() };
        let storage = Storage::open(env.clone(), options).unwrap();
        let oplog_is_readable = Arc::new(AtomicBool::new(true));
        let readable = oplog_is_readable.clone();
        let options = OpenOptions { replset: true };
        let access =
            Access::open(env.clone(), storage.clone(), options, move || readable.load(Relaxed)).unwrap();
        access.maintenance().set_term(1);
        let instance = Instance::new(env, Default::default());
        Node { access, storage, instance, sessions: Arc::default(), oplog_is_readable }
    }
    fn op(&self) -> OpCtx {
        OpCtx::internal(self.instance.internal_client("test"), "insert", "db")
    }
    /// An operation that is a statement of a new transaction.
    fn op_in_transaction(&self, number: i64) -> OpCtx {
        let ctx = self.op();
        let lsid = SessionId::of([number as u8; 16]);
        let Begin::Yours(mut loan) = self.sessions.check_out(&lsid, ctx.started) else { panic!("in use") };
        loan.start(&lsid, number, false).unwrap();
        let metrics = Arc::<Metrics>::default();
        let open = self.access.begin_transaction(&ctx, (lsid, number), ReadAt::Latest, &metrics).unwrap();
        ctx.attach(Arc::new(Statement::new(loan, Some(open))));
        ctx
    }
    fn insert(&self, ctx: &OpCtx, name: &str, doc: Document) -> Result<(), Error> {
        let coll = now(self.access.write_or_create(ctx, &ns(name)))?;
        let doc = doc.to_raw();
        let done =
            now(self.access.insert_many(ctx, &WriteOp::default(), &coll, &[&*doc as &RawDoc], &[], true));
        done.errors.into_iter().next().map_or(Ok(()), |(_, e)| Err(e))
    }
    fn create(&self, name: &str, options: CollectionOptions) {
        now(self.access.create(&self.op(), &ns(name), options)).unwrap();
    }
    fn create_view(&self, name: &str, on: &str) {
        let options = CollectionOptions {
            view: Some(ViewDefinition { view_on: on.to_owned(), pipeline: Default::default() }),
            ..CollectionOptions::default()
        };
        self.create(name, options);
    }
    fn count(&self, ctx: &OpCtx, name: &str, at: ReadAt) -> Option<usize> {
        let Reading::Collection(coll) = self.access.read(ctx, &ns(name), at).unwrap() else { return None };
        let mut source = self.access.source(ctx, &coll, at).unwrap();
        let all = pando_query::source::RecordScan::all(pando_query::source::Direction::Forward);
        let mut rows = source.scan_records(all).unwrap();
        let mut n = 0;
        while rows.next().unwrap().is_some() {
            n += 1;
        }
        Some(n)
    }
    fn last(&self) -> Timestamp {
        self.storage.last_committed()
    }
}

fn code<T>(done: Result<T, Error>) -> Option<ErrorCode> {
    done.err().map(|e| e.code)
}

#[test]
fn a_name_without_a_collection_is_missing_and_only_a_write_that_wants_one_makes_it() {
    let node = Node::new();
    let ctx = node.op();
    assert!(matches!(node.access.read(&ctx, &ns("db.c"), ReadAt::Latest), Ok(Reading::Missing)));
    assert!(node.access.collection(&ctx, &ns("db.c")).unwrap().is_none());
    assert!(now(node.access.write(&ctx, &ns("db.c"), Missing::Nothing)).unwrap().is_none());
    assert!(node.access.definitions().collection(&ns("db.c")).is_none());
    assert!(now(node.access.write(&ctx, &ns("db.c"), Missing::Create)).unwrap().is_some());
    assert!(node.access.definitions().collection(&ns("db.c")).is_some());
    assert_eq!(node.count(&ctx, "db.c", ReadAt::Latest), Some(0));
}

#[test]
fn a_view_is_read_as_what_is_below_and_never_written() {
    let node = Node::new();
    let ctx = node.op();
    node.insert(&ctx, "db.c", doc! { "_id": 1 }).unwrap();
    node.create_view("db.v", "c");
    assert!(matches!(node.access.read(&ctx, &ns("db.v"), ReadAt::Latest), Ok(Reading::View(_))));
    let refused = Some(ErrorCode::CommandNotSupportedOnView);
    assert_eq!(code(node.access.collection(&ctx, &ns("db.v"))), refused);
    assert_eq!(code(now(node.access.write(&ctx, &ns("db.v"), Missing::Nothing))), refused);
    assert_eq!(code(now(node.access.write(&ctx, &ns("db.v"), Missing::Create))), refused);
    let below = node.access.read_below(&ctx, &ns("db.v"), ReadAt::Latest).unwrap();
    assert!(below.coll.is_some_and(|c| c.ns == ns("db.c")) && below.view.is_some() && below.ns == ns("db.c"));
}

#[test]
fn a_closed_gate_lets_reads_pass_and_no_write() {
    let node = Node::new();
    let ctx = node.op();
    node.insert(&ctx, "db.c", doc! { "_id": 1 }).unwrap();
    node.access.maintenance().gate().close();
    assert_eq!(node.count(&ctx, "db.c", ReadAt::Latest), Some(1));
    let refused = Some(ErrorCode::NotWritablePrimary);
    assert_eq!(code(node.insert(&ctx, "db.c", doc! { "_id": 2 })), refused);
    assert_eq!(code(node.insert(&ctx, "db.new", doc! { "_id": 2 })), refused);
    assert_eq!(code(now(node.access.drop_collection(&ctx, &ns("db.c")))), refused);
    // What belongs to this node alone is written behind any gate.
    node.insert(&ctx, "local.c", doc! { "_id": 1 }).unwrap();
}

#[test]
fn a_collection_must_be_the_one_with_the_uuid_that_is_named() {
    let node = Node::new();
    let ctx = node.op();
    node.insert(&ctx, "db.c", doc! { "_id": 1 }).unwrap();
    let uuid = node.access.collection(&ctx, &ns("db.c")).unwrap().unwrap().uuid;
    assert!(node.access.check_uuid(&ns("db.c"), uuid).is_ok());
    assert_eq!(node.access.name_of(uuid), Some(ns("db.c")));
    for (name, uuid) in [("db.c", Uuid([9; 16])), ("db.other", uuid)] {
        let wrong = node.access.check_uuid(&ns(name), uuid);
        assert_eq!(code(wrong), Some(ErrorCode::CollectionUUIDMismatch), "{name}");
    }
}

#[test]
fn a_read_of_the_past_finds_what_the_name_meant_then() {
    let node = Node::new();
    let ctx = node.op();
    let before = node.last();
    node.insert(&ctx, "db.c", doc! { "_id": 1 }).unwrap();
    let then = node.last();
    now(node.access.drop_collection(&ctx, &ns("db.c"))).unwrap();
    assert_eq!(node.count(&ctx, "db.c", ReadAt::At(before)), None);
    assert_eq!(node.count(&ctx, "db.c", ReadAt::At(then)), Some(1));
    assert_eq!(node.count(&ctx, "db.c", ReadAt::Latest), None);
}

#[test]
fn a_transaction_reads_and_writes_what_it_has_met_and_made() {
    let node = Node::new();
    let outside = node.op();
    node.insert(&outside, "db.c", doc! { "_id": 1 }).unwrap();
    let ctx = node.op_in_transaction(1);
    node.insert(&ctx, "db.c", doc! { "_id": 2 }).unwrap();
    node.insert(&ctx, "db.made", doc! { "_id": 1 }).unwrap();
    assert_eq!(node.count(&ctx, "db.c", ReadAt::Latest), Some(2));
    assert_eq!(node.count(&ctx, "db.made", ReadAt::Latest), Some(1));
    assert_eq!(node.count(&outside, "db.c", ReadAt::Latest), Some(1));
    assert_eq!(node.count(&outside, "db.made", ReadAt::Latest), None);
}

#[test]
fn a_transaction_writes_to_no_capped_collection() {
    let node = Node::new();
    let capped = Some(Capped { size: 4096, max: None });
    node.create("db.capped", CollectionOptions { capped, ..CollectionOptions::default() });
    node.insert(&node.op(), "db.capped", doc! { "_id": 1 }).unwrap();
    let ctx = node.op_in_transaction(1);
    assert_eq!(node.count(&ctx, "db.capped", ReadAt::Latest), Some(1));
    let refused = code(node.insert(&ctx, "db.capped", doc! { "_id": 2 }));
    assert_eq!(refused, Some(ErrorCode::OperationNotSupportedInTransaction));
}

#[test]
fn a_transaction_defines_nothing_but_new_collections() {
    let node = Node::new();
    node.insert(&node.op(), "db.c", doc! { "_id": 1 }).unwrap();
    node.create_view("db.v", "c");
    let ctx = node.op_in_transaction(1);
    let refused = Some(ErrorCode::OperationNotSupportedInTransaction);
    assert_eq!(code(now(node.access.drop_collection(&ctx, &ns("db.c")))), refused);
    assert_eq!(code(now(node.access.drop_indexes(&ctx, &ns("db.c"), DropWhich::All))), refused);
    assert_eq!(code(now(node.access.rename_collection(&ctx, &ns("db.c"), &ns("db.d"), false))), refused);
    let there = now(node.access.create(&ctx, &ns("db.v"), CollectionOptions::default()));
    assert_eq!(code(there), Some(ErrorCode::NamespaceExists));
    now(node.access.create(&ctx, &ns("db.new"), CollectionOptions::default())).unwrap();
    assert!(node.access.definitions().collection(&ns("db.new")).is_none());
    assert_eq!(node.count(&ctx, "db.new", ReadAt::Latest), Some(0));
}

#[test]
fn a_cursor_goes_on_only_on_the_collection_that_it_was_opened_on() {
    let node = Node::new();
    let ctx = node.op();
    node.insert(&ctx, "db.c", doc! { "_id": 1 }).unwrap();
    let coll = node.access.collection(&ctx, &ns("db.c")).unwrap().unwrap();
    assert!(node.access.changed_since(&coll).unwrap().is_none());
    now(node.access.rename_collection(&ctx, &ns("db.c"), &ns("db.d"), false)).unwrap();
    assert_eq!(code(node.access.changed_since(&coll)), Some(ErrorCode::QueryPlanKilled));
    now(node.access.drop_collection(&ctx, &ns("db.d"))).unwrap();
    assert_eq!(code(node.access.changed_since(&coll)), Some(ErrorCode::QueryPlanKilled));
}

#[test]
fn the_log_is_scanned_only_while_it_is_readable() {
    let node = Node::new();
    let ctx = node.op();
    node.insert(&ctx, "db.c", doc! { "_id": 1 }).unwrap();
    let oplog = node.access.collection(&ctx, &ns("local.oplog.rs")).unwrap().expect("a member has a log");
    let other = node.access.collection(&ctx, &ns("db.c")).unwrap().unwrap();
    assert!(node.access.scan(&ctx, &oplog, ReadAt::Latest).is_ok());
    node.oplog_is_readable.store(false, Relaxed);
    let refused = node.access.scan(&ctx, &oplog, ReadAt::Latest);
    assert_eq!(code(refused), Some(ErrorCode::NotPrimaryOrSecondary));
    assert!(node.access.scan(&ctx, &other, ReadAt::Latest).is_ok());
}

#[test]
fn documents_of_several_collections_change_together_or_not_at_all() {
    let node = Node::new();
    let internal = node.access.internal_collections();
    let (a, b, oplog) = (ns("config.a"), ns("config.b"), ns("local.oplog.rs"));
    let all = |ns: &Namespace| internal.all(ns, ReadAt::Latest).unwrap();
    let session = SessionId::of([9; 16]);
    let write = |number: i64, changes: &[Change]| {
        now(internal.write_together(&Uninterrupted, (session, number), changes))
    };
    let (one, two) = (doc! { "_id": 1, "v": 1 }.to_raw(), doc! { "_id": 2, "v": 1 }.to_raw());
    write(0, &[Change::Insert(a.clone(), one.clone()), Change::Insert(b.clone(), two.clone())]).unwrap();
    let ctx = node.op();
    let last = |node: &Node| {
        let log = node.access.collection(&ctx, &oplog).unwrap().unwrap();
        let (_, mut source) = node.access.scan(&ctx, &log, ReadAt::Latest).unwrap();
        let mut entries = source.scan_records(RecordScan::all(Direction::Forward)).unwrap();
        let (mut n, mut applies) = (0, 0);
        while let Some((_, entry)) = entries.next().unwrap() {
            n += 1;
            let entry = RawDoc::trusted(&entry);
            applies += usize::from(entry.get_path("o.applyOps").is_some());
        }
        (n, applies)
    };
    let (entries, applies) = last(&node);
    assert_eq!(applies, 1);
    // One of them is not what it was: the other one stays, too.
    let now_two = doc! { "_id": 2, "v": 2 }.to_raw();
    let stale = Change::Replace { ns: b.clone(), was: now_two.clone(), now: two.clone() };
    let refused = write(1, &[Change::Remove { ns: a.clone(), was: one.clone() }, stale]).unwrap_err();
    assert_eq!(refused.code, ErrorCode::ConflictingOperationInProgress);
    assert_eq!((all(&a), all(&b), last(&node)), (vec![one.clone()], vec![two.clone()], (entries, applies)));
    let twice = write(
        1,
        &[Change::Remove { ns: a.clone(), was: one.clone() }, Change::Insert(b.clone(), two.clone())],
    );
    assert_eq!(twice.unwrap_err().code, ErrorCode::DuplicateKey);
    let change = Change::Replace { ns: b.clone(), was: two, now: now_two.clone() };
    write(2, &[Change::Remove { ns: a.clone(), was: one }, change]).unwrap();
    assert_eq!((all(&a), all(&b)), (vec![], vec![now_two.clone()]));
    // A change alone needs no transaction.
    write(3, &[Change::Remove { ns: b.clone(), was: now_two }]).unwrap();
    assert_eq!((all(&b).len(), last(&node)), (0, (entries + 2, applies + 1)));
}

/// By the index, and looking at everything.
#[test]
fn a_range_is_deleted_helping_by_helping_each_behind_the_one_before() {
    for index in [Some("_id_".to_owned()), None] {
        let node = Node::new();
        for id in 0..20 {
            node.insert(&node.op(), "db.c", doc! { "_id": id }).unwrap();
        }
        let uuid = node.access.definitions().collection(&ns("db.c")).unwrap().uuid;
        let key = ShardKey::parse(&doc! { "_id": 1 }.to_raw()).unwrap();
        let keys = key.range(&doc! { "_id": 3 }.to_raw(), &doc! { "_id": 17 }.to_raw()).unwrap();
        let (start, end) = (keys.start.clone(), keys.index_end().to_vec());
        let range = IndexRange { ns: ns("db.c"), uuid, index, key, start, end };
        let maintenance = node.access.maintenance();
        let mut place = None;
        let mut helping = |node: &Node| {
            let done = now(maintenance.delete_in_range(&Uninterrupted, &range, place.as_ref(), 5)).unwrap();
            // As it is kept by whoever asks for the next one.
            place = done.last.map(|last| RangePlace::parse(&last.to_raw()).unwrap());
            (done.documents, place.is_some(), node.count(&node.op(), "db.c", ReadAt::Latest).unwrap())
        };
        assert_eq!(helping(&node), (5, true, 15));
        // What is in front of the place is seen by whoever begins anew; of what has no index the latest is the last.
        node.insert(&node.op(), "db.c", doc! { "_id": 4 }).unwrap();
        assert_eq!(helping(&node), (5, true, 11));
        let left = if range.index.is_some() { 4 } else { 5 };
        assert_eq!(helping(&node), (left, left == 5, 11 - left));
        now(maintenance.delete_all_in_range(&Uninterrupted, &range, 2)).unwrap();
        assert_eq!(node.count(&node.op(), "db.c", ReadAt::Latest), Some(6));
        // A place of another kind is none.
        node.insert(&node.op(), "db.c", doc! { "_id": 4 }).unwrap();
        let other = match &range.index {
            Some(_) => doc! { "record": 1_000_i64 },
            None => {
                doc! { "key": Bson::Binary(Binary { subtype: 0, bytes: vec![255] }), "record": 1_000_i64 }
            }
        };
        let other = RangePlace::parse(&other.to_raw());
        let done = now(maintenance.delete_in_range(&Uninterrupted, &range, other.as_ref(), 5)).unwrap();
        assert_eq!((other.is_some(), done.documents), (true, 1));
    }
}
