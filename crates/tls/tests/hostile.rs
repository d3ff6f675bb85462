//! Bytes that are no TLS, connections that say nothing, and streams that are cut: an error, no panic, and nobody waits.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod common;

use common::*;
use pando_base::{Millis, limits};
use pando_env::tls::TlsMode;
use pando_env::{BoxFuture, Clock, Env, Net, Stream};
use pando_tls::local::Wanted;
use std::sync::Arc;
use std::time::Duration;

/// A clock whose waits are short.
struct Hasty(Arc<dyn Clock>);

impl Clock for Hasty {
    fn mono(&self) -> Duration {
        self.0.mono() * 100
    }
    fn wall_ms(&self) -> Millis {
        self.0.wall_ms()
    }
    fn sleep(&self, d: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(d / 100)
    }
}

fn side(mode: TlsMode) -> Side {
    let mut ca = authority("CA");
    let files = Files::default();
    files.put("key.pem", ca.issue(&Wanted::server(&["localhost"])).unwrap().pem);
    files.put("ca.pem", ca.pem());
    let env = env();
    Side::within(Env { clock: Arc::new(Hasty(env.clock.clone())), ..env }, &files, settings(mode))
}

/// Sends `bytes` and hangs up, or stays; tells how the server's handshake ended.
async fn send(server: &Side, bytes: &[u8], stays: bool) -> std::io::Result<()> {
    let mut door = server.net.listen("127.0.0.1:0".to_owned()).await.unwrap();
    let mut client = env().net.connect(door.local_addr()).await.unwrap();
    let mut accepted = door.accept().await.unwrap();
    client.write_all(bytes).await.unwrap();
    if stays {
        let done = accepted.establish().await;
        drop(client);
        return done;
    }
    drop(client);
    accepted.establish().await
}

#[test]
fn garbage_ends_in_an_error() {
    run(async {
        let server = side(TlsMode::Require);
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        for round in 0..300 {
            let mut bytes = vec![0x16, 3, (round % 5) as u8];
            for _ in 0..(round * 7) % 900 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                bytes.push((seed >> 33) as u8);
            }
            assert!(send(&server, &bytes, false).await.is_err(), "round {round}");
        }
        for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 64], &[0xff; 64], &[0x80, 0x2e, 1, 0, 2]] {
            assert!(send(&server, bytes, false).await.is_err());
        }
    });
}

#[test]
fn a_handshake_that_does_not_come_is_not_waited_for() {
    run(async {
        let late = |done: std::io::Result<()>| done.unwrap_err().to_string().contains("not done in time");
        let server = side(TlsMode::Require);
        assert!(late(send(&server, &[], true).await), "nothing");
        assert!(late(send(&server, &[0x16], true).await), "a byte");
        assert!(
            late(send(&server, &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 9, 9, 9, 9, 9, 9], true).await),
            "half"
        );
        assert!(late(send(&side(TlsMode::Allow), &[0x16, 3, 1], true).await), "half where plain is allowed");
        assert_eq!(server.failed().0, 3);
    });
}

/// Both ends of a connection with TLS.
async fn pair(server: &Side) -> (Box<dyn Stream>, Box<dyn Stream>) {
    let mut door = server.net.listen("127.0.0.1:0".to_owned()).await.unwrap();
    let at = door.local_addr().replace("127.0.0.1", "localhost");
    let dialing = server.net.connect(at);
    let accepting = tokio::spawn(async move {
        let mut accepted = door.accept().await.unwrap();
        accepted.establish().await.unwrap();
        accepted
    });
    let dialed = dialing.await;
    let accepted = accepting.await.unwrap();
    (dialed.unwrap(), accepted)
}

#[test]
fn many_bytes_arrive_whole_both_ways() {
    run(async {
        let server = side(TlsMode::Require);
        let (mut a, mut b) = pair(&server).await;
        let sent: Vec<u8> = (0..3_000_000u32).map(|i| (i * 7 / 3) as u8).collect();
        for _ in 0..2 {
            let bytes = sent.clone();
            let writing = tokio::spawn(async move {
                a.write_all(&bytes).await.unwrap();
                a
            });
            let mut heard = Vec::new();
            while heard.len() < sent.len() {
                let before = heard.len();
                let n = b.read(&mut heard, 10_000).await.unwrap();
                assert!(n > 0 && n <= 10_000 && heard.len() == before + n);
            }
            assert!(heard == sent);
            a = b;
            b = writing.await.unwrap();
        }
    });
}

#[test]
fn a_peer_that_goes_is_noticed_and_one_that_has_spoken_is_not_taken_for_gone() {
    run(async {
        let server = side(TlsMode::Require);
        let env = env();
        let (mut a, mut b) = pair(&server).await;
        a.write_all(b"word").await.unwrap();
        let short = Duration::from_millis(200);
        assert!(env.timeout(short, b.closed()).await.is_none(), "it has said something");
        let mut heard = Vec::new();
        b.read(&mut heard, 100).await.unwrap();
        assert_eq!(heard, b"word");
        assert!(env.timeout(short, b.closed()).await.is_none(), "it is silent");
        drop(a);
        let patience = Duration::from_millis(limits::TLS_HANDSHAKE_MS);
        assert!(env.timeout(patience, b.closed()).await.is_some());
        assert_eq!(b.read(&mut heard, 100).await.unwrap_or(0), 0);
    });
}
