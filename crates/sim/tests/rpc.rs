//! Calls from node to node against a real server, on the simulated network.

use pando_base::ErrorCode;
use pando_bson::doc;
use pando_env::Env;
use pando_rpc::{Connection, Kind, Options, Pool};
use pando_sim::{FaultyDisk, NetOptions, Node, World};
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
        pool.call(&addr, &ping, LIMIT).await.is_ok()
    };
    assert!(world.sim.block_on(process, PATIENCE, ask(pool.clone(), addr.clone())).unwrap());
    node.kill();
    node.boot();
    world.sim.run_for(Duration::from_millis(500));
    assert!(world.sim.block_on(process, PATIENCE, ask(pool, addr)).unwrap());
}
