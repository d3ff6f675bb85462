//! The real world keeps the promises of the traits.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use pando_env::sync::Notify;
use pando_env::{Env, Log};
use std::time::Duration;

fn with_env<F: Future<Output = ()>>(name: &str, test: impl FnOnce(Env, std::path::PathBuf) -> F) {
    let dir = std::env::temp_dir().join(format!("pando-env-{name}-{}", std::process::id()));
    let rt = pando_env_tokio::runtime().unwrap();
    rt.block_on(async {
        let env = pando_env_tokio::env(&dir, Log::none(), pando_env_tokio::RealNet::default()).unwrap();
        test(env, dir.clone()).await;
    });
    std::fs::remove_dir_all(&dir).unwrap();
}

async fn echo_once(env: Env, addr: String) -> (Vec<u8>, String) {
    let mut listener = env.net.listen(addr).await.unwrap();
    let at = listener.local_addr();
    let client = env.clone();
    let to = at.clone();
    env.spawn("client", async move {
        let mut s = client.net.connect(to).await.unwrap();
        s.write_all(b"hello there").await.unwrap();
    });
    let mut s = listener.accept().await.unwrap();
    let mut buf = Vec::new();
    while s.read(&mut buf, 5).await.unwrap() > 0 {}
    (buf, at)
}

#[test]
fn tcp_binds_a_free_port_and_carries_bytes_in_bounded_reads() {
    with_env("tcp", |env, _| async move {
        let (got, at) = echo_once(env, "127.0.0.1:0".to_owned()).await;
        assert_eq!(got, b"hello there");
        assert!(!at.ends_with(":0"));
    });
}

#[test]
fn unix_socket_replaces_a_dead_one_and_removes_its_file() {
    with_env("unix", |env, dir| async move {
        let path = dir.join("s.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "a dead server's file");
        let (got, _) = echo_once(env, path.to_str().unwrap().to_owned()).await;
        assert_eq!(got, b"hello there");
        assert!(!path.exists());
    });
}

#[test]
fn a_read_never_takes_more_than_asked() {
    with_env("bound", |env, _| async move {
        let mut listener = env.net.listen("127.0.0.1:0".to_owned()).await.unwrap();
        let mut c = env.net.connect(listener.local_addr()).await.unwrap();
        let mut s = listener.accept().await.unwrap();
        c.write_all(&[7; 100]).await.unwrap();
        let mut buf = Vec::with_capacity(1000);
        assert!(s.read(&mut buf, 10).await.unwrap() <= 10);
    });
}

#[test]
fn files_grow_cut_and_list() {
    with_env("disk", |env, _| async move {
        env.disk.create_dir_all("log").unwrap();
        let f = env.disk.open("log/b", true).unwrap();
        f.write_at(3, b"xyz").unwrap();
        f.sync().unwrap();
        assert_eq!(f.len().unwrap(), 6);
        f.truncate(4).unwrap();
        let mut buf = [9; 8];
        assert_eq!(f.read_at(0, &mut buf).unwrap(), 4);
        assert_eq!(&buf[..4], b"\0\0\0x");
        env.disk.open("log/a", true).unwrap();
        env.disk.rename("log/b", "log/c").unwrap();
        env.disk.sync_dir("log").unwrap();
        assert_eq!(env.disk.list("log").unwrap(), ["a", "c"]);
        assert!(env.disk.open("log/zz", false).is_err());
        assert!(env.disk.free_bytes().unwrap() > 0);
    });
}

#[test]
fn offloaded_work_returns_its_result_and_time_moves() {
    with_env("tasks", |env, _| async move {
        assert_eq!(env.offload(|| 42).await, Some(42));
        let before = env.clock.mono();
        env.clock.sleep(Duration::from_millis(5)).await;
        assert!(env.clock.mono() - before >= Duration::from_millis(5));
        let done = Notify::new();
        let seen = done.version();
        let task = done.clone();
        env.spawn("t", async move { task.bump() });
        assert!(env.timeout(Duration::from_secs(10), done.changed(seen)).await.is_some());
        assert_ne!(env.rng.next_u64(), env.rng.next_u64());
        assert!(env.timeout(Duration::from_millis(1), std::future::pending::<()>()).await.is_none());
    });
}
