//! A role with four commands behind real sockets.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use pando_base::{Result, Timestamp};
use pando_bson::{Document, RawDoc, doc};
use pando_command::cluster_time::Signature;
use pando_command::concern::{Provenance, W};
use pando_command::{
    CommandRow, Flags, Handler, Instance, Next, Node, OpCtx, Params, Registry, Reply, ReplyTimes, Request,
    Roles, TopologyVersion, WriteConcern, WriteConcernError,
};
use pando_env::{BoxFuture, Log};
use pando_shell::admission::Admission;
use pando_shell::connection::Service;
use pando_shell::listener::{self, Stop};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

pub struct Toy {
    /// Everybody is at a member's address.
    members: Arc<AtomicBool>,
    instance: Arc<Instance>,
    registry: Registry<Toy>,
}

impl Node for Toy {
    fn roles(&self) -> Roles {
        Roles::MEMBER
    }
    fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }
    fn is_member_address(&self, _: &str) -> bool {
        self.members.load(SeqCst)
    }
    fn admit(&self, _: &OpCtx, _: Flags) -> Result<()> {
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
        _: &'a WriteConcern,
    ) -> BoxFuture<'a, Option<WriteConcernError>> {
        Box::pin(async { None })
    }
    fn reply_times(&self, _: &OpCtx) -> Option<ReplyTimes> {
        let t = Timestamp::new(9, 1);
        Some(ReplyTimes { cluster_time: t, signature: Signature::default(), operation_time: t })
    }
    fn topology_version(&self) -> Option<TopologyVersion> {
        None
    }
}

/// Streams `n` replies when the client allows it.
async fn count(_: &Toy, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let n = req.first().value().as_i64().unwrap_or(0);
    let mut reply = Reply::new();
    reply.body.i64("n", n);
    if req.exhaust_allowed && n > 1 {
        reply.next = Some(Next::With(doc! { "count": n - 1, "$db": "t" }.to_raw()));
    }
    Ok(reply)
}

/// Waits for ever, unless interrupted; then leaves a mark.
async fn linger(ctx: &OpCtx) -> Result<Reply> {
    let ended = ctx.interruptible(std::future::pending::<()>()).await;
    ctx.instance().metrics.asserts.msg.inc();
    ended.map(|()| Reply::new())
}

async fn echo(_: &Toy, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut reply = Reply::new();
    reply.body.i64("bytes", req.body.byte_len() as i64);
    for s in req.sequences {
        reply.body.i64(s.name, s.docs().count() as i64);
    }
    Ok(reply)
}

async fn hello(_: &Toy, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut reply = Reply::new();
    if let Some(list) = req.body.get("compression").and_then(|v| v.as_array()) {
        let agreed = ctx.client.negotiate_compression(list.iter().filter_map(|e| e.value().as_str()));
        reply.body.array("compression", |a| {
            for c in agreed {
                a.str(c.name());
            }
        });
    }
    Ok(reply)
}

const ROWS: &[CommandRow] = &[row("count"), row("echo"), row("hello"), row("linger"), row("ping")];

const fn row(name: &'static str) -> CommandRow {
    CommandRow { api_v1: true, ..CommandRow::new(name, Flags::NONE) }
}

const HANDLERS: &[(&str, Handler<Toy>)] = &[
    ("count", |s, c, r| Box::pin(count(s, c, r))),
    ("echo", |s, c, r| Box::pin(echo(s, c, r))),
    ("hello", |s, c, r| Box::pin(hello(s, c, r))),
    ("linger", |_, c, _| Box::pin(linger(c))),
    ("ping", |_, _, _| Box::pin(async { Ok(Reply::new()) })),
];

pub struct Rig {
    pub members: Arc<AtomicBool>,
    pub rt: tokio::runtime::Runtime,
    pub instance: Arc<Instance>,
    pub port: u16,
    pub stop: Stop,
    pub dir: std::path::PathBuf,
}

pub fn rig(max_connections: usize) -> Rig {
    admitting(Admission::bounded(max_connections))
}

pub fn admitting(admission: Admission) -> Rig {
    use std::sync::atomic::{AtomicU32, Ordering};
    static N: AtomicU32 = AtomicU32::new(0);
    let n = N.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("pando-conn-{}-{n}", std::process::id()));
    let rt = pando_env_tokio::runtime().unwrap();
    let stop = Stop::new();
    let members = Arc::new(AtomicBool::new(false));
    let (instance, port) = rt.block_on(async {
        let env = pando_env_tokio::env(&dir, Log::none(), pando_env_tokio::RealNet::default()).unwrap();
        let instance = Instance::new(env.clone(), Params::new());
        let registry = Registry::new(Roles::D, ROWS, HANDLERS, &[]);
        let toy = Toy { members: members.clone(), instance: instance.clone(), registry };
        let service = Service::new(Arc::new(toy), |toy| &toy.registry);
        let hosts = ["127.0.0.1".to_owned()];
        let bound = listener::bind(&env, &hosts, 0, dir.to_str()).await.unwrap();
        let port = bound.port();
        bound.serve(&service, admission, &stop);
        (instance, port)
    });
    Rig { members: members.clone(), rt, instance, port, stop, dir }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.stop();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

pub struct Peer(pub TcpStream);

impl Rig {
    pub fn connect(&self) -> Peer {
        let s = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        s.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        Peer(s)
    }
}

pub fn message(id: i32, flags: u32, d: Document) -> Vec<u8> {
    let mut out = Vec::new();
    pando_wire::encode_msg(&mut out, id, 0, flags, &d.to_raw(), &[]);
    out
}

impl Peer {
    pub fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }
    /// (request id, response to, opcode, body behind the header)
    pub fn receive(&mut self) -> std::io::Result<(i32, i32, i32, Vec<u8>)> {
        let mut head = [0; 16];
        self.0.read_exact(&mut head)?;
        let at = |i: usize| i32::from_le_bytes(head[i..i + 4].try_into().unwrap());
        let mut body = vec![0; at(0) as usize - 16];
        self.0.read_exact(&mut body)?;
        Ok((at(4), at(8), at(12), body))
    }
    pub fn reply(&mut self) -> Document {
        let (_, _, op, body) = self.receive().unwrap();
        assert_eq!(op, 2013);
        Document::from(RawDoc::trusted(&body[5..]))
    }
    pub fn run(&mut self, d: Document) -> Document {
        self.send(&message(1, 0, d));
        self.reply()
    }
    pub fn is_closed(&mut self) -> bool {
        match self.0.read(&mut [0; 1]) {
            Ok(n) => n == 0,
            Err(e) => e.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

pub fn ping() -> Document {
    doc! { "ping": 1, "$db": "t" }
}
pub fn ok(d: &Document) -> bool {
    d.get("ok").and_then(|v| v.as_f64()) == Some(1.0)
}
