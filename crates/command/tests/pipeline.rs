//! The pipeline with a toy role: what every command gets without doing anything for it.
#![allow(clippy::unwrap_used)]

use pando_base::{Error, ErrorCode, Millis, Result, Timestamp};
use pando_bson::{Document, ObjectId, RawDoc, Value, doc};
use pando_command::cluster_time::Signature;
use pando_command::concern::{Provenance, W};
use pando_command::pipeline::{Answer, Incoming, run};
use pando_command::{
    Client, CommandRow, Flags, Handler, Instance, Node, OpCtx, Params, Privileges, Registry, Reply,
    ReplyTimes, Request, Roles, TopologyVersion, WriteConcern, WriteConcernError,
};
use pando_env::{BoxFuture, Env, Log};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

#[derive(Default)]
struct World {
    now_ms: AtomicU64,
}
impl pando_env::Clock for World {
    fn mono(&self) -> Duration {
        Duration::from_millis(self.now_ms.load(Relaxed))
    }
    fn wall_ms(&self) -> Millis {
        self.now_ms.load(Relaxed) as i64
    }
    fn sleep(&self, d: Duration) -> BoxFuture<'static, ()> {
        self.now_ms.fetch_add(d.as_millis() as u64, Relaxed);
        Box::pin(async {})
    }
}
impl pando_env::Rng for World {
    fn next_u64(&self) -> u64 {
        7
    }
}
impl pando_env::Spawn for World {
    fn spawn(&self, _: &'static str, _: BoxFuture<'static, ()>) {}
    fn offload(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        work();
        Box::pin(async {})
    }
    fn yield_now(&self) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}
struct NoNet;
impl pando_env::Net for NoNet {
    fn listen(&self, _: String) -> BoxFuture<'static, std::io::Result<Box<dyn pando_env::Listener>>> {
        Box::pin(async { Err(std::io::ErrorKind::Unsupported.into()) })
    }
    fn connect(&self, _: String) -> BoxFuture<'static, std::io::Result<Box<dyn pando_env::Stream>>> {
        Box::pin(async { Err(std::io::ErrorKind::Unsupported.into()) })
    }
}
struct NoDisk;
impl pando_env::Disk for NoDisk {
    fn open(&self, _: &str, _: bool) -> std::io::Result<Arc<dyn pando_env::DiskFile>> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
    fn exists(&self, _: &str) -> bool {
        false
    }
    fn list(&self, _: &str) -> std::io::Result<Vec<String>> {
        Ok(Vec::new())
    }
    fn create_dir_all(&self, _: &str) -> std::io::Result<()> {
        Ok(())
    }
    fn rename(&self, _: &str, _: &str) -> std::io::Result<()> {
        Ok(())
    }
    fn remove(&self, _: &str) -> std::io::Result<()> {
        Ok(())
    }
    fn sync_dir(&self, _: &str) -> std::io::Result<()> {
        Ok(())
    }
    fn real_path(&self) -> Option<std::path::PathBuf> {
        None
    }
    fn free_bytes(&self) -> std::io::Result<u64> {
        Ok(0)
    }
}

struct Toy {
    instance: Arc<Instance>,
    primary: AtomicBool,
}

impl Node for Toy {
    fn roles(&self) -> Roles {
        Roles::MEMBER
    }
    fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }
    fn admit(&self, _: &OpCtx, flags: Flags) -> Result<()> {
        if flags.has(Flags::WRITE) && !self.primary.load(Relaxed) {
            return Err(Error::new(ErrorCode::NotWritablePrimary, "not primary"));
        }
        Ok(())
    }
    fn default_read_level(&self) -> Option<pando_command::ReadLevel> {
        None
    }
    fn default_write_concern(&self) -> WriteConcern {
        WriteConcern::of(W::Majority, Provenance::ImplicitDefault)
    }
    fn await_write_concern<'a>(
        &'a self,
        _: &'a OpCtx,
        wc: &'a WriteConcern,
    ) -> BoxFuture<'a, Option<WriteConcernError>> {
        let code = match wc.w {
            W::Nodes(2) => Some(ErrorCode::UnsatisfiableWriteConcern),
            W::Nodes(3) => Some(ErrorCode::PrimarySteppedDown),
            _ => None,
        };
        Box::pin(async move {
            code.map(|code| WriteConcernError { code, message: "not enough".to_owned(), info: None })
        })
    }
    fn reply_times(&self, _: &OpCtx) -> Option<ReplyTimes> {
        let t = Timestamp::new(9, 1);
        Some(ReplyTimes { cluster_time: t, signature: Signature::default(), operation_time: t })
    }
    fn topology_version(&self) -> Option<TopologyVersion> {
        Some(TopologyVersion { process_id: ObjectId([1; 12]), counter: 6 })
    }
}

async fn write(_: &Toy, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let docs = req.required_docs("insert", "documents")?;
    for arg in req.args("insert") {
        match arg.name() {
            "documents" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let mut reply = Reply::new();
    reply.body.i32("n", docs.count() as i32);
    Ok(reply)
}

const ROWS: &[CommandRow] = &[
    CommandRow { api_v1: true, privileges: Privileges::Open, ..CommandRow::new("hello", Flags::NONE) },
    CommandRow {
        api_v1: true,
        help: "insert documents",
        ..CommandRow::new("insert", Flags::WRITE.or(Flags::RETRYABLE).or(Flags::IN_TXN))
    },
    CommandRow::new("later", Flags::NONE),
    CommandRow { aliases: &["stop"], ..CommandRow::new("shutdown", Flags::ADMIN_ONLY) },
    CommandRow::new("sleep", Flags::TEST_ONLY),
];

const HANDLERS: &[(&str, Handler<Toy>)] = &[
    ("hello", |_, _, _| Box::pin(async { Ok(Reply::new()) })),
    ("insert", |s, c, r| Box::pin(write(s, c, r))),
    ("shutdown", |_, _, _| Box::pin(async { Ok(Reply::new()) })),
    ("sleep", |_, ctx, _| {
        Box::pin(async move {
            ctx.sleep(Duration::from_millis(100)).await?;
            ctx.check_interrupt()?;
            Ok(Reply::new())
        })
    }),
];

struct Rig {
    toy: Toy,
    registry: Registry<Toy>,
    client: Arc<Client>,
}

fn block_on<T>(fut: impl Future<Output = T>) -> T {
    let mut fut = std::pin::pin!(fut);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..1000 {
        if let Poll::Ready(v) = fut.as_mut().poll(&mut cx) {
            return v;
        }
    }
    panic!("the future never became ready");
}

fn rig() -> Rig {
    let world = Arc::new(World { now_ms: AtomicU64::new(1_000_000) });
    let env = Env {
        clock: world.clone(),
        rng: world.clone(),
        disk: Arc::new(NoDisk),
        net: Arc::new(NoNet),
        tasks: world,
        log: Log::none(),
    };
    let params = Params::new();
    params.set_at_startup("enableTestCommands", "1").unwrap();
    let instance = Instance::new(env, params);
    let client = instance.connection("127.0.0.1:5".to_owned(), "127.0.0.1:27017".to_owned());
    let registry = Registry::new(Roles::D, ROWS, HANDLERS, &[]);
    CommandRow::check(ROWS).unwrap();
    Rig { toy: Toy { instance, primary: AtomicBool::new(true) }, registry, client }
}

impl Rig {
    fn outcome(&self, d: &RawDoc) -> Answer {
        let msg = Incoming { body: d, sequences: &[], exhaust_allowed: false, legacy_db: None };
        block_on(run(&self.registry, &self.toy, &self.client, msg))
    }
    fn run(&self, d: Document) -> Document {
        Document::from(self.outcome(&d.to_raw()).reply.doc())
    }
    /// `code errmsg`.
    fn fails(&self, d: Document) -> String {
        let r = self.run(d);
        let code = r.get("code").and_then(|v| v.as_i64()).unwrap_or(0);
        format!("{code} {}", r.get("errmsg").and_then(|v| v.as_str()).unwrap_or(""))
    }
    fn fail_point(&self, d: Document) {
        self.toy.instance.fail_points.configure("failCommand", &d.to_raw()).unwrap();
    }
}

fn insert() -> Document {
    doc! { "insert": "c", "documents": [{ "a": 1 }], "$db": "t" }
}
fn with(mut d: Document, extra: Document) -> Document {
    for (k, v) in extra {
        d.push(k, v);
    }
    d
}
fn retryable(d: Document) -> Document {
    let id = pando_bson::Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![1; 16] });
    with(d, doc! { "lsid": { "id": id }, "txnNumber": 1i64 })
}

#[test]
fn replies_end_with_ok_and_the_times() {
    let r = rig().run(insert());
    let names: Vec<_> = r.iter().map(|(k, _)| k.to_owned()).collect();
    assert_eq!(names, ["n", "ok", "$clusterTime", "operationTime"]);
}

#[test]
fn envelope_checks_come_before_the_handler() {
    let rig = rig();
    assert_eq!(rig.fails(doc! { "nosuch": 1, "$db": "t" }), "59 no such command: 'nosuch'");
    assert_eq!(
        rig.fails(doc! { "later": 1, "$db": "t" }),
        "115 The later command is not supported by this server"
    );
    assert_eq!(rig.fails(doc! { "insert": "c" }), "40571 OP_MSG requests require a $db argument");
    assert_eq!(rig.fails(doc! { "insert": "c", "$db": 1 }), "13111 wrong type for field ($db) int != string");
    assert_eq!(rig.fails(doc! { "insert": "c", "$db": "a b" }), "73 Invalid database name: 'a b'");
    assert_eq!(
        rig.fails(doc! { "stop": 1, "$db": "t" }),
        "13 shutdown may only be run against the admin database."
    );
    assert_eq!(
        rig.fails(with(insert(), doc! { "zz": 1 })),
        "40415 BSON field 'insert.zz' is an unknown field."
    );
    assert!(
        rig.fails(doc! { "stop": 1, "$db": "admin", "apiVersion": "1", "apiStrict": true })
            .starts_with("323")
    );
    assert!(
        rig.fails(doc! { "hello": 1, "$db": "admin", "writeConcern": { "w": 1 } })
            .starts_with("72 Command does not support writeConcern")
    );
    assert!(rig.fails(retryable(doc! { "hello": 1, "$db": "admin" })).starts_with("50889"));
    assert!(rig.fails(retryable(doc! { "shutdown": 1, "$db": "admin" })).starts_with("50768"));
}

#[test]
fn an_unmet_write_concern_keeps_the_result() {
    let r = rig().run(with(insert(), doc! { "writeConcern": { "w": 2 } }));
    assert_eq!(r.get("n").and_then(|v| v.as_i64()), Some(1));
    assert_eq!(r.get("ok").and_then(|v| v.as_f64()), Some(1.0));
    let e = r.get("writeConcernError").and_then(|v| v.as_doc()).unwrap();
    assert_eq!(e.get("code").and_then(|v| v.as_i64()), Some(100));
    assert!(!r.contains("topologyVersion"));
}

/// A driver that hears of it late, when it knows the next primary, would forget that one.
#[test]
fn a_write_that_a_step_down_left_waiting_names_the_topology() {
    let r = rig().run(with(insert(), doc! { "writeConcern": { "w": 3 } }));
    let counter = r.get("topologyVersion").and_then(|v| v.as_doc()?.get("counter")?.as_i64());
    assert_eq!((r.get("ok").and_then(|v| v.as_f64()), counter), (Some(1.0), Some(6)));
}

#[test]
fn a_refused_write_names_the_topology_and_is_retryable() {
    let rig = rig();
    rig.toy.primary.store(false, Relaxed);
    let r = rig.run(retryable(insert()));
    assert_eq!(r.get("code").and_then(|v| v.as_i64()), Some(10107));
    assert!(r.contains("topologyVersion"));
    assert_eq!(r.get("errorLabels").and_then(|v| v.as_array()), Some(&["RetryableWriteError".into()][..]));
}

#[test]
fn fail_command_fails_closes_and_blocks() {
    let rig = rig();
    rig.fail_point(doc! { "mode": { "times": 1 }, "data": { "failCommands": ["insert"], "errorCode": 91 } });
    let r = rig.run(retryable(insert()));
    assert_eq!(r.get("code").and_then(|v| v.as_i64()), Some(91));
    assert!(r.contains("errorLabels"));
    assert!(!r.contains("topologyVersion"), "a driver would take it for old news");
    assert_eq!(rig.run(insert()).get("ok").and_then(|v| v.as_f64()), Some(1.0));

    let data = doc! { "failCommands": ["insert"], "errorCode": 91, "errorLabels": [] };
    rig.fail_point(doc! { "mode": { "times": 1 }, "data": data });
    assert!(!rig.run(retryable(insert())).contains("errorLabels"), "an empty list replaces the labels");

    let data = doc! { "failCommands": ["insert"], "closeConnection": true };
    rig.fail_point(doc! { "mode": { "times": 1 }, "data": data });
    assert!(rig.outcome(&insert().to_raw()).close);

    let data = doc! { "failCommands": ["insert"], "blockConnection": true, "blockTimeMS": 500 };
    rig.fail_point(doc! { "mode": { "times": 1 }, "data": data });
    let before = rig.toy.instance.env.clock.mono();
    rig.run(insert());
    assert_eq!(rig.toy.instance.env.clock.mono() - before, Duration::from_millis(500));

    let data = doc! { "failCommands": ["insert"], "appName": "other", "errorCode": 8 };
    rig.fail_point(doc! { "mode": "alwaysOn", "data": data });
    assert_eq!(rig.run(insert()).get("ok").and_then(|v| v.as_f64()), Some(1.0));
}

#[test]
fn fail_command_attaches_a_write_concern_error_to_writes_only() {
    let rig = rig();
    let wce = doc! { "code": 91, "errmsg": "x" };
    let data = doc! { "failCommands": ["insert", "hello"], "writeConcernError": wce };
    rig.fail_point(doc! { "mode": { "times": 1 }, "data": data });
    assert!(!rig.run(doc! { "hello": 1, "$db": "t" }).contains("writeConcernError"));
    let r = rig.run(retryable(insert()));
    assert!(r.contains("writeConcernError") && r.contains("n"));
    assert_eq!(r.get("errorLabels").and_then(|v| v.as_array()), Some(&["RetryableWriteError".into()][..]));
}

#[test]
fn max_time_ms_and_kill_op_interrupt() {
    let rig = rig();
    let r = rig.fails(doc! { "sleep": 1, "maxTimeMS": 50, "$db": "t" });
    assert_eq!(r, "50 operation exceeded time limit");
    assert_eq!(rig.fails(doc! { "sleep": 1, "$db": "t" }), "0 ");

    let ctx = OpCtx::internal(rig.client.clone(), "x", "t");
    assert!(rig.toy.instance.clients.kill_op(ctx.op_id));
    assert_eq!(ctx.check_interrupt().unwrap_err().code, ErrorCode::Interrupted);
    drop(ctx);
    assert!(OpCtx::internal(rig.client.clone(), "x", "t").check_interrupt().is_ok());
}

#[test]
fn client_metadata_is_kept_once_and_checked() {
    let rig = rig();
    let good = doc! { "application": { "name": "app" }, "driver": { "name": "d", "version": "1" },
    "os": { "type": "Linux" } };
    assert_eq!(
        rig.client.set_metadata(Value::Document(&doc! { "driver": {} }.to_raw())).unwrap_err().code.0,
        183
    );
    let long = doc! { "application": { "name": "x".repeat(129) } };
    assert_eq!(rig.client.set_metadata(Value::Document(&long.to_raw())).unwrap_err().code.0, 184);
    let big = doc! { "x": "x".repeat(1100) };
    assert_eq!(rig.client.set_metadata(Value::Document(&big.to_raw())).unwrap_err().code.0, 185);
    rig.client.set_metadata(Value::Document(&good.to_raw())).unwrap();
    assert_eq!(rig.client.app_name(), Some("app"));
    assert_eq!(rig.client.set_metadata(Value::Document(&good.to_raw())).unwrap_err().code.0, 186);
}
