//! The host of workflows in virtual time: calls at once, silence, step-downs, joins and conflicts, with a store and
//! other nodes that the test plays itself.

use pando_base::panics::poisoned;
use pando_base::{Error, ErrorCode, Millis, Namespace, OpTime, Result, Timestamp, limits};
use pando_bson::{Bson, DocBuf, RawDoc, doc};
use pando_env::{BoxFuture, Env};
use pando_repl::services::{End, Guard, Hands, Host, ReplicaSetAware, Service, Store, drive};
use pando_sim::{FaultyDisk, NetOptions, ProcessId, World};
use pando_workflows::{
    Action, Actions, Event, Home, Level, LocalWrite, Outcome, Query, Resource, Retry, Running, Section, Slot,
    Target, Workflow,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

const HOSTS: [&str; 3] = ["a:1", "b:1", "c:1"];
/// A question that the node answers itself, in place of the first host.
const ITSELF: i64 = 9;
const LIMIT: Duration = Duration::from_secs(1000);

/// Locks a database, asks three nodes at once, and adds up what they say.
struct Asks {
    state: DocBuf,
    heard: BTreeMap<Slot, i64>,
    drawn: Option<u64>,
}

fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    Ok(Box::new(Asks { state: state.to_buf(), heard: BTreeMap::new(), drawn: None }))
}
fn options(state: &RawDoc) -> DocBuf {
    let mut b = pando_bson::DocBuilder::new();
    if let Some(e) = state.elem("question") {
        b.elem(e);
    }
    b.finish()
}
fn start(question: i32) -> DocBuf {
    doc! { "_id": 1, "question": question }.to_raw()
}

impl Workflow for Asks {
    fn step(&mut self, _: Millis, event: Event, out: &mut Actions) {
        match event {
            Event::Begin => out.checkpoint(),
            Event::Durable => out.lock(0, Resource::Database("d".into()), Level::Exclusive),
            Event::Locked { .. } => {
                let asks_itself = self.state.get("question").and_then(|v| v.as_i64()) == Some(ITSELF);
                for (i, host) in HOSTS.iter().enumerate() {
                    let to = match asks_itself && i == 0 {
                        true => Target::Own,
                        false => Target::Host((*host).into()),
                    };
                    out.call(i as Slot, to, doc! { "ask": 1 }.to_raw(), Retry::Transient);
                }
            }
            Event::Answer { slot, reply: Ok(reply) } => {
                self.heard.insert(slot, reply.get("n").and_then(|v| v.as_i64()).unwrap_or(0));
                if self.heard.len() == HOSTS.len() {
                    out.draw(0);
                }
            }
            Event::Answer { reply: Err(why), .. } => out.done(Err(why)),
            Event::Random { number, .. } => {
                self.drawn = Some(number);
                let sum: i64 = self.heard.values().sum();
                out.done(Ok(doc! { "sum": sum }.to_raw()));
            }
            Event::Abort(why) => out.done(Err(why)),
            _ => {}
        }
    }
    fn document(&self) -> Option<DocBuf> {
        Some(self.state.clone())
    }
    fn check(&self) {
        assert!(self.heard.len() <= HOSTS.len());
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(poisoned)
}

type Script = Box<dyn Fn(&str, usize) -> Said + Send + Sync>;
enum Said {
    After(u64, i64),
    Never,
    Error(ErrorCode),
}

/// The node's data, and what the other nodes say.
struct Node {
    env: Env,
    docs: Mutex<BTreeMap<String, DocBuf>>,
    calls: Mutex<Vec<(u128, String)>>,
    script: Script,
    locks: Arc<AtomicUsize>,
    primary: Mutex<bool>,
}

struct Lent(Arc<AtomicUsize>);
impl Drop for Lent {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl Node {
    fn check_primary(&self) -> Result<()> {
        match *lock(&self.primary) {
            true => Ok(()),
            false => Err(Error::new(ErrorCode::NotWritablePrimary, "not primary")),
        }
    }
    fn asked(&self, host: &str) -> Vec<u128> {
        let calls = lock(&self.calls);
        calls.iter().filter(|(_, of)| of == host).map(|(at, _)| *at).collect()
    }
    fn locked(&self) -> usize {
        self.locks.load(SeqCst)
    }
}

impl Store for Node {
    fn load(&self, _: &Namespace) -> Result<Vec<DocBuf>> {
        Ok(lock(&self.docs).values().cloned().collect())
    }
    fn first_of_term_committed(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { self.check_primary() })
    }
    fn write<'a>(&'a self, write: &'a LocalWrite) -> BoxFuture<'a, Result<Option<OpTime>>> {
        Box::pin(async move {
            self.check_primary()?;
            let mut docs = lock(&self.docs);
            match write {
                LocalWrite::Put { doc, .. } => drop(docs.insert("1".into(), doc.clone())),
                LocalWrite::Remove { .. } => drop(docs.remove("1")),
                other => panic!("not here: {other:?}"),
            }
            Ok(Some(OpTime::new(Timestamp::new(1, 1), 1)))
        })
    }
    fn await_majority(&self, _: Option<OpTime>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { self.check_primary() })
    }
    fn read(&self, _: &Query) -> Result<Vec<Namespace>> {
        Ok(Vec::new())
    }
    fn lock<'a>(&'a self, _: &'a Resource, _: Level) -> BoxFuture<'a, Result<Guard>> {
        self.locks.fetch_add(1, SeqCst);
        let guard: Guard = Box::new(Lent(self.locks.clone()));
        Box::pin(async move { Ok(guard) })
    }
    fn enter<'a>(&'a self, _: &'a Section) -> BoxFuture<'a, Result<Guard>> {
        Box::pin(async { Ok(Box::new(()) as Guard) })
    }
    fn call<'a>(&'a self, _: &'static str, to: &'a Target, _: &'a DocBuf) -> BoxFuture<'a, Result<DocBuf>> {
        let host = match to {
            Target::Host(host) => host.as_str(),
            Target::Own => "own",
            other => panic!("nobody knows {other:?}"),
        };
        let before = self.asked(host).len();
        lock(&self.calls).push((self.env.clock.mono().as_millis(), host.to_owned()));
        Box::pin(async move {
            match (self.script)(host, before) {
                Said::After(ms, n) => {
                    self.env.clock.sleep(Duration::from_millis(ms)).await;
                    Ok(doc! { "n": n }.to_raw())
                }
                Said::Never => std::future::pending().await,
                Said::Error(code) => Err(Error::new(code, "scripted")),
            }
        })
    }
}

struct Bench {
    world: World,
    process: ProcessId,
    node: Arc<Node>,
    host: Arc<Host>,
}

/// A primary in term 1.
fn bench(script: Script) -> Bench {
    let world = World::new(7, NetOptions::default());
    let process = world.sim.start_process();
    let env = world.env(process, Arc::new(FaultyDisk::new(7)));
    let node = Arc::new(Node {
        env: env.clone(),
        docs: Mutex::default(),
        calls: Mutex::default(),
        script,
        locks: Arc::default(),
        primary: Mutex::new(true),
    });
    let ns = Namespace::unchecked("config", "asks");
    let service = Service { name: "Asks", ns, restore, options };
    let host = Host::new(env, node.clone(), vec![service]);
    host.on_step_up_complete(1);
    Bench { world, process, node, host }
}

impl Bench {
    fn run<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> T {
        self.world.sim.block_on(self.process, LIMIT, task).expect("it ends")
    }
    fn result(&self, question: i32) -> Result<DocBuf> {
        let host = self.host.clone();
        self.run(async move { host.start("Asks", &start(question)).await?.result().await })
    }
    fn now_ms(&self) -> u128 {
        self.node.env.clock.mono().as_millis()
    }
}

fn sum(result: &DocBuf) -> Option<i64> {
    result.get("sum").and_then(|v| v.as_i64())
}

#[test]
fn calls_go_out_at_once_and_the_locks_go_back() {
    let b = bench(Box::new(|_, _| Said::After(1000, 2)));
    let from = b.now_ms();
    assert_eq!(sum(&b.result(1).unwrap()), Some(6));
    let took = b.now_ms() - from;
    assert!((1000..1100).contains(&took), "{took}");
    assert_eq!((b.node.locked(), lock(&b.node.docs).len()), (0, 0));
    assert_eq!(b.host.counts(), [("Asks", "running", 0)]);
}

#[test]
fn a_silent_node_is_asked_again_and_one_that_refuses_is_not() {
    let b = bench(Box::new(|host, before| match (host, before) {
        ("b:1", 0) => Said::Never,
        ("c:1", 0) => Said::Error(ErrorCode::NotWritablePrimary),
        _ => Said::After(1, 2),
    }));
    assert_eq!(sum(&b.result(1).unwrap()), Some(6));
    let b_asked = b.node.asked("b:1");
    assert_eq!((b_asked.len(), b.node.asked("a:1").len(), b.node.asked("c:1").len()), (2, 1, 2));
    let pause = u128::from(limits::WORKFLOW_CALL_MS_MAX + limits::WORKFLOW_RETRY_MS);
    assert!((pause..pause + 50).contains(&(b_asked[1] - b_asked[0])), "{b_asked:?}");

    let b = bench(Box::new(|host, _| match host {
        "b:1" => Said::Error(ErrorCode::BadValue),
        _ => Said::After(5000, 2),
    }));
    assert_eq!(b.result(1).unwrap_err().code, ErrorCode::BadValue);
    assert_eq!((b.node.asked("b:1").len(), b.node.locked()), (1, 0));
}

/// A step of this node calls others, and hears of their offices.
#[test]
fn an_office_that_another_node_has_lost_ends_nothing_here() {
    let b = bench(Box::new(|host, before| match (host, before) {
        ("own", 0) => Said::Error(ErrorCode::NotWritablePrimary),
        ("own", 1) => Said::Error(ErrorCode::ShutdownInProgress),
        _ => Said::After(1, 2),
    }));
    assert_eq!(sum(&b.result(ITSELF as i32).unwrap()), Some(6));
    assert_eq!((b.node.asked("own").len(), b.node.asked("b:1").len(), b.node.locked()), (3, 1, 0));
}

#[test]
fn a_node_that_stays_silent_is_given_up_in_the_end() {
    let b = bench(Box::new(|host, _| match host {
        "b:1" => Said::Error(ErrorCode::HostUnreachable),
        _ => Said::After(1, 2),
    }));
    assert_eq!(b.result(1).unwrap_err().code, ErrorCode::HostUnreachable);
    assert_eq!(b.node.asked("b:1").len(), limits::WORKFLOW_TRIES_MAX as usize);
}

#[test]
fn who_asks_for_the_same_joins_and_who_asks_for_something_else_is_refused() {
    let b = bench(Box::new(|_, _| Said::After(1000, 2)));
    let host = b.host.clone();
    let (same, other) = b.run(async move {
        let first = host.start("Asks", &start(1)).await.expect("it starts");
        let same = host.start("Asks", &start(1)).await.expect("it joins");
        let other = host.start("Asks", &start(2)).await.map(drop);
        (Arc::ptr_eq(&first, &same), other)
    });
    assert!(same);
    assert_eq!(other.unwrap_err().code, ErrorCode::ConflictingOperationInProgress);
    // When it is over the key is free.
    assert_eq!(sum(&b.result(1).unwrap()), Some(6));
    assert_eq!(sum(&b.result(2).unwrap()), Some(6));
}

#[test]
fn a_step_down_ends_what_is_under_way_and_the_next_term_goes_on() {
    let b = bench(Box::new(|_, before| if before == 0 { Said::Never } else { Said::After(1, 2) }));
    let host = b.host.clone();
    let instance = b.run(async move { host.start("Asks", &start(1)).await.expect("it starts") });
    b.world.sim.run_for(Duration::from_secs(1));
    assert_eq!((b.node.locked(), b.node.asked("a:1").len()), (1, 1));
    *lock(&b.node.primary) = false;
    b.host.on_step_down();
    let said = b.run(async move { instance.result().await });
    assert_eq!(said.unwrap_err().code, ErrorCode::InterruptedDueToReplStateChange);
    assert_eq!((b.node.locked(), lock(&b.node.docs).len()), (0, 1));
    *lock(&b.node.primary) = true;
    b.host.on_step_up_complete(2);
    let host = b.host.clone();
    let id = doc! { "_id": Bson::Int32(1) }.to_raw();
    let result = b.run(async move {
        let found = host.find("Asks", &id).await.expect("it runs").expect("it was found");
        found.result().await
    });
    assert_eq!(sum(&result.unwrap()), Some(6));
    assert_eq!(b.node.asked("a:1").len(), 2);
}

/// Carries nothing out.
struct NoHands;
impl Hands for NoHands {
    fn carry_out(&self, _: Action) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(std::future::pending())
    }
    fn release(&self, _: &Resource) {}
    fn leave(&self, _: &Section) {}
    fn report(&self, _: OpTime) {}
    fn note(&self, _: &str) {}
    fn failed(&self, _: &Error) {}
}

/// Waits for a nudge, in a command.
struct Waits;
impl Workflow for Waits {
    fn step(&mut self, _: Millis, event: Event, out: &mut Actions) {
        match event {
            Event::Begin => out.await_nudge(0),
            Event::Abort(why) => out.done(Err(why)),
            _ => {}
        }
    }
    fn document(&self) -> Option<DocBuf> {
        None
    }
    fn check(&self) {}
}

#[test]
fn a_killed_command_is_told_to_its_workflow() {
    let b = bench(Box::new(|_, _| Said::Never));
    let env = b.node.env.clone();
    let end = b.run(async move {
        let killed = async {
            env.clock.sleep(Duration::from_secs(3)).await;
            Error::new(ErrorCode::Interrupted, "killed")
        };
        let workflow: Box<dyn Workflow> = Box::new(Waits);
        let running = Running::new(workflow, Home::Command);
        drive(&env, &NoHands, running, Box::pin(killed)).await
    });
    match end {
        End::Result(Err(e)) => assert_eq!(e.code, ErrorCode::Interrupted),
        other => panic!("{other:?}"),
    }
}
