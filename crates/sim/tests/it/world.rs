//! The simulated network and processes behave, and repeat.

use pando_env::Env;
use pando_sim::{FaultyDisk, NetOptions, World};
use std::sync::Arc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(100);

async fn echo(env: Env) {
    let listener = env.net.listen("127.0.0.1:27017".into()).await;
    let mut listener = listener.expect("the port is free");
    while let Ok(mut stream) = listener.accept().await {
        env.spawn("echo", async move {
            loop {
                let mut buf = Vec::new();
                match stream.read(&mut buf, 1000).await {
                    Ok(n) if n > 0 => {
                        if stream.write_all(&buf).await.is_err() {
                            return;
                        }
                    }
                    _ => return,
                }
            }
        });
    }
}

/// Sends and reads back `len` bytes; the error kind if the connection failed.
async fn ask(env: Env, len: usize) -> Result<usize, std::io::ErrorKind> {
    let mut stream = env.net.connect("127.0.0.1:27017".into()).await.map_err(|e| e.kind())?;
    let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
    let (mut back, mut reads) = (Vec::new(), 0);
    for chunk in bytes.chunks(5000) {
        stream.write_all(chunk).await.map_err(|e| e.kind())?;
        let want = back.len() + chunk.len();
        while back.len() < want {
            match stream.read(&mut back, 700).await.map_err(|e| e.kind())? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof),
                _ => reads += 1,
            }
        }
    }
    assert_eq!(back, bytes);
    Ok(reads)
}

fn world(seed: u64, break_ppm: u64) -> (World, Env, Env, pando_sim::ProcessId, pando_sim::ProcessId) {
    let world = World::new(seed, NetOptions { break_ppm, ..NetOptions::default() });
    let (server, client) = (world.sim.start_process(), world.sim.start_process());
    let disk = Arc::new(FaultyDisk::new(seed));
    let (a, b) = (world.env(server, disk.clone()), world.env(client, disk));
    world.sim.spawn(server, "echo", echo(a.clone()));
    world.sim.run_for(Duration::from_millis(1));
    (world, a, b, server, client)
}

#[test]
fn bytes_arrive_whole_in_pieces_and_repeatably() {
    let run = |seed| {
        let (world, _, env, _, client) = world(seed, 0);
        let reads = world.sim.block_on(client, LIMIT, ask(env, 50_000)).unwrap().unwrap();
        assert!(reads > 72, "700 bytes at most per read, often fewer: {reads}");
        (world.sim.trace(), world.sim.now(), reads)
    };
    assert_eq!(run(11), run(11));
    assert_ne!(run(11), run(12));
}

#[test]
fn a_killed_server_closes_its_connections_and_its_port() {
    let (world, _, env, server, client) = world(3, 0);
    let sim = world.sim.clone();
    let (waiting, connecting) = (env.clone(), env.clone());
    let result = Arc::new(std::sync::Mutex::new(None));
    let out = result.clone();
    sim.spawn(client, "asker", async move {
        let mut stream = waiting.net.connect("127.0.0.1:27017".into()).await.unwrap();
        let mut buf = Vec::new();
        *out.lock().unwrap() = Some(stream.read(&mut buf, 10).await.map_err(|e| e.kind()));
    });
    sim.run_for(Duration::from_millis(50));
    assert!(result.lock().unwrap().is_none());
    sim.kill(server);
    sim.run_for(Duration::from_millis(50));
    assert_eq!(*result.lock().unwrap(), Some(Ok(0)));
    let refused = sim.block_on(client, LIMIT, ask(connecting, 1)).unwrap();
    assert_eq!(refused, Err(std::io::ErrorKind::ConnectionRefused));
}

#[test]
fn broken_connections_are_errors_at_both_ends() {
    let failures = (0..40)
        .filter(|seed| {
            let (world, _, env, _, client) = world(*seed, 50_000);
            world.sim.block_on(client, LIMIT, ask(env, 30_000)).unwrap().is_err()
        })
        .count();
    assert!((5..40).contains(&failures), "{failures}");
}

#[test]
fn offloaded_work_happens_even_if_nobody_waits() {
    let (world, env, _, server, _) = world(9, 0);
    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = done.clone();
    let forget = env.clone();
    let wait = async move {
        let work =
            forget.tasks.offload(Box::new(move || flag.store(true, std::sync::atomic::Ordering::Relaxed)));
        drop(work);
        assert_eq!(forget.offload(|| 5).await, Some(5));
    };
    world.sim.block_on(server, LIMIT, wait).unwrap();
    world.sim.run_for(Duration::from_millis(10));
    assert!(done.load(std::sync::atomic::Ordering::Relaxed));
}
