//! Calls from node to node against a real server, on the simulated network.

use pando_base::ErrorCode;
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value, doc};
use pando_env::Env;
use pando_rpc::{Bounds, Connection, Gossip, HostConnections, Kind, Options, Pool, Retry};
use pando_sim::{FaultyDisk, NetOptions, Node, World};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(100);

fn up(seed: u64) -> (World, Node, Env, pando_sim::ProcessId) {
    let world = World::new(seed, NetOptions::default());
    let mut node = Node::new(&world, FaultyDisk::new(seed), false);
    node.boot();
    world.sim.run_for(Duration::from_millis(500));
    let process = world.sim.start_process();
    let env = world.env(process, std::sync::Arc::new(FaultyDisk::new(seed)));
    (world, node, env, process)
}

#[test]
fn a_call_returns_the_reply_and_command_errors_leave_the_connection_usable() {
    let (world, node, env, process) = up(1);
    let addr = node.addr();
    let work = async move {
        let mut c = Connection::connect(&env, &addr, &Options::default()).await.unwrap();
        assert_eq!((c.peer.set_name.as_deref(), c.peer.is_primary), (Some("rs0"), true));
        let bad = c.call(&doc! { "nonsense": 1, "$db": "admin" }.to_raw(), LIMIT).await.unwrap_err();
        assert_eq!((bad.kind, bad.code()), (Kind::Command, ErrorCode::CommandNotFound));
        assert!(c.is_usable());
        let insert = doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "d" }.to_raw();
        let reply = c.call(&insert, LIMIT).await.unwrap();
        assert_eq!(reply.get("n").and_then(|v| v.as_i64()), Some(1));
    };
    world.sim.block_on(process, PATIENCE, work).unwrap();
}

#[test]
fn refused_reset_and_silent_peers_are_told_apart() {
    let (world, node, env, process) = up(2);
    let addr = node.addr();
    let sim = world.sim.clone();
    let (one, two, at) = (env.clone(), env.clone(), addr.clone());
    let connected = async move { Connection::connect(&one, &at, &Options::default()).await.unwrap() };
    let mut c = sim.block_on(process, PATIENCE, connected).unwrap();
    node.kill();
    let ping = doc! { "ping": 1, "$db": "admin" }.to_raw();
    let cut = async move { (c.call(&ping, LIMIT).await.unwrap_err().kind, c.is_usable()) };
    assert_eq!(sim.block_on(process, PATIENCE, cut).unwrap(), (Kind::Reset, false));
    let refused = async move {
        Connection::connect(&two, &addr, &Options::default()).await.map(drop).unwrap_err().kind
    };
    assert_eq!(sim.block_on(process, PATIENCE, refused).unwrap(), Kind::Refused);
    let silent = async move {
        let listener = env.net.listen("127.0.0.1:9".into()).await.unwrap();
        let options = Options { connect_limit: Duration::from_millis(50), ..Options::default() };
        let kind = Connection::connect(&env, "127.0.0.1:9", &options).await.map(drop).unwrap_err().kind;
        drop(listener);
        kind
    };
    assert_eq!(sim.block_on(process, PATIENCE, silent).unwrap(), Kind::TimedOut);
}

#[test]
fn a_pool_survives_a_restart_of_its_peer() {
    let (world, mut node, env, process) = up(3);
    let addr = node.addr();
    let pool = Pool::new(env, Options::default());
    let ask = |pool: Pool, addr: String| async move {
        let ping = doc! { "ping": 1, "$db": "admin" }.to_raw();
        pool.call(&addr, &ping, Retry::Idempotent, LIMIT).await.is_ok()
    };
    assert!(world.sim.block_on(process, PATIENCE, ask(pool.clone(), addr.clone())).unwrap());
    node.kill();
    node.boot();
    world.sim.run_for(Duration::from_millis(500));
    assert!(world.sim.block_on(process, PATIENCE, ask(pool, addr)).unwrap());
}

/// The peer may have carried it out before it cut the connection.
#[test]
fn what_must_not_be_done_twice_is_not_sent_again_when_a_connection_is_cut() {
    let (world, node, env, process) = up(8);
    let addr = node.addr();
    let pool = Pool::new(env, Options::default());
    let server = node.server().unwrap().clone();
    let cut_once = doc! {
        "mode": { "times": 1 },
        "data": { "failCommands": ["insert"], "closeConnection": true, "failInternalCommands": true }
    }
    .to_raw();
    let work = async move {
        let ping = doc! { "ping": 1, "$db": "admin" }.to_raw();
        let insert = doc! { "insert": "c", "documents": [{ "a": 1 }], "$db": "d" }.to_raw();
        let mut told = Vec::new();
        for retry in [Retry::Never, Retry::NotIdempotent, Retry::Idempotent] {
            // It leaves an idle connection.
            pool.call(&addr, &ping, Retry::Idempotent, LIMIT).await.unwrap();
            server.instance.fail_points.configure("failCommand", &cut_once).unwrap();
            told.push(pool.call(&addr, &insert, retry, LIMIT).await.map(drop).map_err(|f| f.kind));
        }
        assert_eq!(told, [Err(Kind::Reset), Err(Kind::Reset), Ok(())]);
        // Nothing is wrong with a connection that has been idle.
        pool.call(&addr, &insert, Retry::NotIdempotent, LIMIT).await.unwrap();
    };
    world.sim.block_on(process, PATIENCE, work).unwrap();
}

#[test]
fn documents_beside_the_body_arrive_as_arguments_and_too_many_are_not_sent() {
    let (world, node, env, process) = up(4);
    let addr = node.addr();
    let work = async move {
        let mut c = Connection::connect(&env, &addr, &Options::default()).await.unwrap();
        let docs: Vec<DocBuf> =
            (0..1000).map(|i| doc! { "_id": i, "pad": "x".repeat(1000) }.to_raw()).collect();
        let all: Vec<&RawDoc> = docs.iter().map(|d| &**d).collect();
        assert_eq!(c.peer.fitting(&all), 1000);
        let insert = doc! { "insert": "c", "$db": "d" }.to_raw();
        let reply = c.call_with(&insert, &[("documents", &all)], LIMIT).await.unwrap();
        assert_eq!(reply.get("n").and_then(|v| v.as_i64()), Some(1000));
        let find = doc! { "find": "c", "filter": { "_id": 999 }, "$db": "d" }.to_raw();
        let found = c.call(&find, LIMIT).await.unwrap();
        let batch = found.get("cursor").unwrap().as_doc().unwrap().get("firstBatch").unwrap();
        let first = batch.as_array().unwrap().iter().next().unwrap();
        assert_eq!(first.value().as_doc().unwrap().as_bytes(), docs[999].as_bytes());

        let huge = doc! { "pad": "x".repeat(10_000_000) }.to_raw();
        let five: Vec<&RawDoc> = vec![&huge; 5];
        assert_eq!(c.peer.fitting(&five), 4);
        let refused = c.call_with(&insert, &[("documents", &five)], LIMIT).await.unwrap_err();
        assert_eq!((refused.kind, refused.code()), (Kind::NotSent, ErrorCode::BSONObjectTooLarge));
        let four = c.call_with(&insert, &[("documents", &five[..4])], LIMIT).await.unwrap();
        assert_eq!(four.get("n").and_then(|v| v.as_i64()), Some(4), "the connection is as good as before");
    };
    world.sim.block_on(process, PATIENCE, work).unwrap();
}

fn of(pool: &Pool) -> HostConnections {
    pool.connections().into_iter().map(|(_, n)| n).next().unwrap_or_default()
}

#[test]
fn connections_to_a_host_are_bounded_and_who_waits_is_served_in_order() {
    let (world, node, env, process) = up(5);
    let addr = node.addr();
    let bounds = Bounds { open: 2, waiting: 3 };
    let pool = Pool::with(env.clone(), Options::default(), bounds, Vec::new());
    let served: Arc<Mutex<Vec<i32>>> = Arc::default();
    let (p, order) = (pool.clone(), served.clone());
    let work = async move {
        let first = p.take(&addr, LIMIT).await.unwrap();
        let second = p.take(&addr, LIMIT).await.unwrap();
        for i in 0..3 {
            let (p, addr, order, env2) = (p.clone(), addr.clone(), order.clone(), env.clone());
            env.spawn("waits", async move {
                // The one in the middle does not wait for long.
                let limit = if i == 1 { Duration::from_millis(100) } else { LIMIT };
                let lease = match p.take(&addr, limit).await {
                    Ok(lease) => lease,
                    Err(f) => {
                        let code = ErrorCode::PooledConnectionAcquisitionExceededTimeLimit;
                        assert_eq!((f.kind, f.code()), (Kind::NotSent, code));
                        return order.lock().unwrap().push(-i);
                    }
                };
                order.lock().unwrap().push(i);
                env2.clock.sleep(Duration::from_millis(50)).await;
                drop(lease);
            });
            env.clock.sleep(Duration::from_millis(10)).await;
        }
        let full = of(&p);
        assert_eq!((full.in_use, full.available, full.waiting, full.created), (2, 0, 3, 2));
        let refused = p.take(&addr, LIMIT).await.err().unwrap();
        assert_eq!(refused.code(), ErrorCode::PooledConnectionAcquisitionRejected);
        env.clock.sleep(Duration::from_millis(200)).await;
        assert_eq!((of(&p).waiting, of(&p).refused), (2, 2));
        drop(first);
        env.clock.sleep(Duration::from_millis(200)).await;
        // One that broke makes room for a new one.
        let mut second = second;
        let silent = doc! { "ping": 1, "$db": "admin" }.to_raw();
        assert!(second.call(&silent, Duration::ZERO).await.is_err() && !second.is_usable());
        drop(second);
        let _fresh = p.take_new(&addr, LIMIT).await.unwrap();
        let end = of(&p);
        assert_eq!((end.in_use, end.available, end.waiting), (1, 1, 0));
        assert_eq!((end.created, end.refused, end.connecting), (3, 2, 0));
    };
    world.sim.block_on(process, PATIENCE, work).unwrap();
    assert_eq!(*served.lock().unwrap(), [-1, 0, 2]);
}

#[test]
fn who_gives_up_waiting_makes_way_for_the_next() {
    let (world, node, env, process) = up(6);
    let addr = node.addr();
    let pool = Pool::with(env.clone(), Options::default(), Bounds { open: 1, waiting: 3 }, Vec::new());
    let work = async move {
        let held = pool.take(&addr, LIMIT).await.unwrap();
        {
            let mut given_up = Box::pin(pool.take(&addr, LIMIT));
            assert!(env.timeout(Duration::from_millis(20), given_up.as_mut()).await.is_none());
            assert_eq!(of(&pool).waiting, 1);
        }
        assert_eq!((of(&pool).waiting, of(&pool).refused), (0, 0), "nobody was refused");
        let (p, a) = (pool.clone(), addr.clone());
        let next = async move { p.take(&a, LIMIT).await.is_ok() };
        let done: Arc<Mutex<Option<bool>>> = Arc::default();
        let to = done.clone();
        env.spawn("waits", async move {
            let ok = next.await;
            *to.lock().unwrap() = Some(ok);
        });
        env.clock.sleep(Duration::from_millis(20)).await;
        drop(held);
        env.clock.sleep(Duration::from_millis(20)).await;
        assert_eq!(*done.lock().unwrap(), Some(true));
        // Nobody listens there: what was to be connected takes no room.
        for _ in 0..3 {
            assert_eq!(
                pool.call("127.0.0.1:9", RawDoc::empty(), Retry::Idempotent, LIMIT).await.unwrap_err().kind,
                Kind::Refused
            );
        }
        let nobody = pool.connections().into_iter().find(|(host, _)| host == "127.0.0.1:9").unwrap().1;
        assert_eq!(nobody, HostConnections::default());
    };
    world.sim.block_on(process, PATIENCE, work).unwrap();
}

/// It says so on every connection that it has, and whoever is at its address next knows none of them.
#[test]
fn connections_to_a_process_that_shuts_down_are_given_up() {
    let (world, node, env, process) = up(9);
    let addr = node.addr();
    let pool = Pool::new(env, Options::default());
    let server = node.server().unwrap().clone();
    let fail_once = move |code: i32| {
        let data = doc! { "failCommands": ["insert"], "errorCode": code, "failInternalCommands": true };
        let mut mode = doc! { "mode": { "times": 1 } };
        mode.push("data", data);
        server.instance.fail_points.configure("failCommand", &mode.to_raw()).unwrap();
    };
    let work = async move {
        let insert = doc! { "insert": "c", "documents": [{ "a": 1 }], "$db": "d" }.to_raw();
        let idle = async || {
            let both = (pool.take(&addr, LIMIT).await.unwrap(), pool.take(&addr, LIMIT).await.unwrap());
            drop(both);
            assert_eq!(of(&pool).available, 2);
        };
        for (code, left) in [(91, 0), (11600, 0), (10107, 2), (262, 2)] {
            idle().await;
            fail_once(code);
            let told = pool.call(&addr, &insert, Retry::Never, LIMIT).await.unwrap_err();
            assert_eq!((told.kind, told.code().0), (Kind::Command, code));
            let now = of(&pool);
            assert_eq!((now.available, now.in_use), (left, 0), "behind {code}");
            // By whoever holds a connection for more than one call, too: the others stay idle, that one does not come back.
            idle().await;
            fail_once(code);
            let mut lease = pool.take(&addr, LIMIT).await.unwrap();
            assert_eq!(lease.call(&insert, LIMIT).await.unwrap_err().code().0, code);
            assert_eq!(lease.is_usable(), left > 0, "behind {code}");
            drop(lease);
            assert_eq!(of(&pool).available, 1 + left / 2, "behind {code}");
        }
        // The next process is called on new ones.
        pool.call(&addr, &insert, Retry::NotIdempotent, LIMIT).await.unwrap();
    };
    world.sim.block_on(process, PATIENCE, work).unwrap();
}

/// What a peer has said of its clock.
#[derive(Default)]
struct Heard(Mutex<Vec<DocBuf>>);

impl Gossip for Heard {
    fn field(&self) -> &'static str {
        "$clusterTime"
    }
    fn tell(&self, request: &mut DocBuilder) {
        if let Some(last) = self.0.lock().expect("nobody panicked").last() {
            request.raw_doc("$clusterTime", last);
        }
    }
    fn hear(&self, said: &Value<'_>) {
        let said = said.as_doc().expect("a document");
        self.0.lock().expect("nobody panicked").push(said.to_buf());
    }
}

#[test]
fn a_pools_calls_hear_the_cluster_time_and_hand_it_on() {
    let (world, node, env, process) = up(7);
    let addr = node.addr();
    let heard = Arc::new(Heard::default());
    let pool = Pool::with(env, Options::default(), Bounds::default(), vec![heard.clone()]);
    let time = |doc: &RawDoc| match doc.get("clusterTime") {
        Some(Value::Timestamp(ts)) => ts,
        other => panic!("{other:?}"),
    };
    let work = async move {
        let ping = doc! { "ping": 1, "$db": "admin" }.to_raw();
        pool.call(&addr, &ping, Retry::Idempotent, LIMIT).await.unwrap();
        let first = heard.0.lock().unwrap().last().unwrap().clone();
        let mut ahead = DocBuilder::new();
        ahead.timestamp("clusterTime", pando_base::Timestamp::new(time(&first).secs() + 100, 1));
        ahead.value("signature", first.get("signature").unwrap());
        heard.0.lock().unwrap().push(ahead.finish());
        let nonsense = doc! { "nonsense": 1, "$db": "admin" }.to_raw();
        pool.call(&addr, &ping, Retry::Idempotent, LIMIT).await.unwrap();
        assert!(pool.call(&addr, &nonsense, Retry::Idempotent, LIMIT).await.is_err());
        let times: Vec<u32> = heard.0.lock().unwrap().iter().map(|t| time(t).secs()).collect();
        assert_eq!(times[1], times[0] + 100);
        assert!(times[2..].iter().all(|t| *t >= times[1]), "the server has taken it over: {times:?}");
    };
    world.sim.block_on(process, PATIENCE, work).unwrap();
}
