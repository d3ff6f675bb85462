//! Bytes that lie. Alone in its process: it measures memory.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod rig;

use rig::{message, ok, ping, rig};
use std::time::{Duration, Instant};

#[test]
fn bad_bytes_close_the_connection_within_a_second_and_cost_no_memory() {
    let rig = rig(100);
    let started = Instant::now();
    let mut bad: Vec<Vec<u8>> = vec![
        vec![0xFF; 16],
        vec![0; 16],
        [&15i32.to_le_bytes()[..], &[0; 12]].concat(),
        [&48_000_001i32.to_le_bytes()[..], &[0; 12]].concat(),
        message(1, 1 << 7, ping()),
        // The first bytes of a TLS handshake, which look like the beginning of a message of 33 MB.
        [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[0xa5; 40]].concat(),
    ];
    let mut op = message(1, 0, ping());
    op[12..16].copy_from_slice(&9i32.to_le_bytes());
    bad.push(op);
    for bytes in &bad {
        let mut peer = rig.connect();
        peer.send(bytes);
        assert!(peer.is_closed());
    }
    // A document that lies about its length: an error, and the connection goes on.
    let mut lie = message(1, 0, ping());
    lie[21..25].copy_from_slice(&1_000_000i32.to_le_bytes());
    let mut peer = rig.connect();
    peer.send(&lie);
    assert!(!ok(&peer.reply()));
    assert!(ok(&peer.run(ping())));
    assert!(started.elapsed() < Duration::from_secs(5));

    // A claimed length of 48 MB with 20 bytes behind it must not be believed.
    let before = resident();
    let mut held = Vec::new();
    for _ in 0..50 {
        let mut peer = rig.connect();
        peer.send(&48_000_000i32.to_le_bytes());
        peer.send(&[0; 16]);
        held.push(peer);
    }
    std::thread::sleep(Duration::from_millis(100));
    let grown = resident().saturating_sub(before);
    assert!(grown < 50 * 64 * 1024, "{grown} bytes for 50 lies");
    assert!(ok(&rig.connect().run(ping())));
}

/// Resident bytes of this process.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    status.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
