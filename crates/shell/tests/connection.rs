//! Real sockets: framing, streams, compression, limits.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod rig;

use pando_bson::{DocBuf, Document, RawDoc, doc};
use pando_shell::admission::{Admission, Sources};
use pando_wire::{Compressor, Compressors, Scratch};
use rig::{message, ok, ping, rig};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

#[test]
fn requests_are_answered_one_by_one_pipelined_and_in_crumbs() {
    let rig = rig(10);
    let mut peer = rig.connect();
    assert!(ok(&peer.run(ping())));
    let mut two = message(7, 0, ping());
    two.extend(message(8, 0, doc! { "echo": 1, "$db": "t" }));
    peer.send(&two);
    assert_eq!(peer.receive().unwrap().1, 7);
    assert_eq!(peer.receive().unwrap().1, 8);
    peer.0.set_nodelay(true).unwrap();
    for b in message(9, 0, ping()) {
        peer.send(&[b]);
    }
    assert_eq!(peer.receive().unwrap().1, 9);
}

#[test]
fn large_messages_and_sequences_arrive_whole() {
    let rig = rig(10);
    let mut peer = rig.connect();
    let big = "x".repeat(10_000_000);
    let r = peer.run(doc! { "echo": big.as_str(), "$db": "t" });
    assert!(r.get("bytes").and_then(|v| v.as_i64()).unwrap() > 10_000_000);

    let item: DocBuf = doc! { "a": 1 }.to_raw();
    let items: Vec<&RawDoc> = (0..1000).map(|_| &*item).collect();
    let mut out = Vec::new();
    let body = doc! { "echo": 1, "$db": "t" }.to_raw();
    pando_wire::encode_msg(
        &mut out,
        1,
        0,
        0,
        &body,
        &[("a", &items), ("b", &items[..2]), ("c", &items[..1])],
    );
    peer.send(&out);
    let r = peer.reply();
    let n = |name| r.get(name).and_then(|v| v.as_i64());
    assert_eq!((n("a"), n("b"), n("c")), (Some(1000), Some(2), Some(1)));
}

#[test]
fn more_to_come_gets_no_reply_and_exhaust_gets_a_chain() {
    let rig = rig(10);
    let mut peer = rig.connect();
    peer.send(&message(1, 2, ping()));
    peer.send(&message(2, 0, ping()));
    assert_eq!(peer.receive().unwrap().1, 2, "only the second request is answered");

    peer.send(&message(5, 1 << 16, doc! { "count": 3, "$db": "t" }));
    let mut to = 5;
    for n in [3, 2, 1] {
        let (id, response_to, _, body) = peer.receive().unwrap();
        assert_eq!(response_to, to);
        let flags = u32::from_le_bytes(body[..4].try_into().unwrap());
        assert_eq!(flags & 2 != 0, n > 1, "only the last reply ends the stream");
        assert_eq!(RawDoc::trusted(&body[5..]).get("n").and_then(|v| v.as_i64()), Some(n));
        to = id;
    }
    let r = peer.run(doc! { "count": 3, "$db": "t" });
    assert_eq!(r.get("n").and_then(|v| v.as_i64()), Some(3));
    assert!(ok(&peer.run(ping())), "without the flag there is one reply");
}

#[test]
fn compression_is_negotiated_and_answered_in_kind() {
    let rig = rig(10);
    let mut peer = rig.connect();
    let r = peer.run(doc! { "hello": 1, "compression": ["zlib", "lz9", "snappy"], "$db": "t" });
    assert_eq!(r.get("compression").and_then(|v| v.as_array()), Some(&["zlib".into(), "snappy".into()][..]));
    let mut scratch = Scratch::new();
    for c in [Compressor::Zlib, Compressor::Snappy] {
        let mut out = message(3, 0, doc! { "echo": "y".repeat(5000).as_str(), "$db": "t" });
        pando_wire::compress(&mut out, 0, c, &mut scratch);
        peer.send(&out);
        let (_, to, op, body) = peer.receive().unwrap();
        assert_eq!((to, op), (3, 2012));
        assert_eq!(body[8], c as u8);
        let counts = rig.instance.metrics.compression.of(c.name()).unwrap();
        let (packed, plain) = (counts.decompressor_bytes_in.get(), counts.decompressor_bytes_out.get());
        assert_eq!(packed as usize, out.len() - pando_wire::COMPRESSED_HEAD_BYTES);
        assert!((5000..5200).contains(&plain), "{plain}");
        let (plain, packed) = (counts.compressor_bytes_in.get(), counts.compressor_bytes_out.get());
        assert_eq!(packed as usize, body.len() - 9, "{body:?}");
        assert!(plain > 20, "the reply before it was compressed: {plain}");
    }
    let network = &rig.instance.metrics.network;
    assert!(
        network.bytes_in.get() > network.physical_bytes_in.get() + 8000,
        "requests are counted as they were"
    );
    assert!(Compressors::ALL.contains(Compressor::Zstd));
    let mut out = message(3, 0, ping());
    pando_wire::compress(&mut out, 0, Compressor::Zstd, &mut scratch);
    peer.send(&out);
    assert!(peer.is_closed(), "zstd was not agreed on");
}

#[test]
fn checksums_are_answered_with_checksums() {
    let rig = rig(10);
    let mut peer = rig.connect();
    peer.send(&message(1, 1, ping()));
    let (_, _, _, body) = peer.receive().unwrap();
    assert_eq!(body[0] & 1, 1);
    let doc = RawDoc::trusted(&body[5..]);
    assert_eq!(5 + doc.byte_len() + 4, body.len());
}

#[test]
fn the_legacy_handshake_is_served_and_other_legacy_commands_are_not() {
    let rig = rig(10);
    let mut peer = rig.connect();
    let query = |d: Document| {
        let mut body = vec![0; 4];
        body.extend(b"admin.$cmd\0");
        body.extend([0; 4]);
        body.extend((-1i32).to_le_bytes());
        body.extend(d.to_raw().as_bytes());
        let mut out = Vec::new();
        for n in [16 + body.len() as i32, 4, 0, 2004] {
            out.extend(n.to_le_bytes());
        }
        out.extend(body);
        out
    };
    peer.send(&query(doc! { "hello": 1 }));
    let (_, to, op, body) = peer.receive().unwrap();
    assert_eq!((to, op), (4, 1));
    assert_eq!(RawDoc::trusted(&body[20..]).get("ok").and_then(|v| v.as_f64()), Some(1.0));
    peer.send(&query(doc! { "ping": 1 }));
    let (_, _, _, body) = peer.receive().unwrap();
    assert_eq!(RawDoc::trusted(&body[20..]).get("code").and_then(|v| v.as_i64()), Some(352));
}

#[test]
fn connections_are_counted_limited_and_the_unix_socket_serves_too() {
    let rig = rig(3);
    let (mut a, mut b) = (rig.connect(), rig.connect());
    assert!(ok(&a.run(ping())) && ok(&b.run(ping())));
    let path = rig.dir.join(format!("mongodb-{}.sock", rig.port));
    let mut unix = std::os::unix::net::UnixStream::connect(path).unwrap();
    unix.write_all(&message(1, 0, ping())).unwrap();
    let mut head = [0; 16];
    unix.read_exact(&mut head).unwrap();
    let counts = &rig.instance.metrics.connections;
    assert_eq!(counts.current.get(), 3);
    // One too many is told so, and then closed.
    let mut refused = rig.connect();
    let answer = refused.run(doc! { "hello": 1, "$db": "admin" });
    assert_eq!(answer.get("code").and_then(|v| v.as_i64()), Some(6), "{answer:?}");
    assert!(refused.is_closed());
    // So is one that says to be a member and is at no member's address.
    let stranger = doc! { "hello": 1, "internalClient": {}, "$db": "admin" };
    assert!(!ok(&rig.connect().run(stranger)));
    assert_eq!((counts.rejected.get(), counts.current.get()), (2, 3));
    // A member's has a reserve.
    rig.members.store(true, std::sync::atomic::Ordering::SeqCst);
    let mut member = rig.connect();
    assert!(ok(&member.run(doc! { "hello": 1, "internalClient": {}, "$db": "admin" })));
    assert!(ok(&member.run(ping())));
    assert!(!ok(&rig.connect().run(doc! { "hello": 1, "$db": "admin" })), "only who says so");
    drop(member);
    drop(a);
    let until = Instant::now() + Duration::from_secs(5);
    while counts.current.get() != 2 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!((counts.current.get(), counts.total_created.get()), (2, 4));
    assert!(ok(&rig.connect().run(ping())));
    assert!(rig.rt.metrics().num_workers() >= 4);
}

#[test]
fn an_operation_whose_client_left_is_interrupted() {
    let rig = rig(10);
    let mut peer = rig.connect();
    peer.send(&message(1, 0, doc! { "linger": 1, "$db": "t" }));
    // A request behind it must not look like a departure.
    peer.send(&message(2, 0, ping()));
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(rig.instance.metrics.asserts.msg.get(), 0);
    drop(peer);
    let mut peer = rig.connect();
    peer.send(&message(1, 0, doc! { "linger": 1, "$db": "t" }));
    std::thread::sleep(Duration::from_millis(50));
    drop(peer);
    let until = Instant::now() + Duration::from_secs(5);
    while rig.instance.metrics.asserts.msg.get() == 0 {
        assert!(Instant::now() < until, "still running");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn only_who_is_listed_connects_and_who_is_exempt_finds_room() {
    let sources = |text: &str| Sources::parse("net.x", &[text.to_owned()]).unwrap();
    let elsewhere = rig::admitting(Admission::new(10, Sources::default(), Some(sources("10.0.0.0/8"))));
    assert!(elsewhere.connect().is_closed());
    let counts = &elsewhere.instance.metrics.connections;
    assert_eq!((counts.not_allowed.get(), counts.total_created.get()), (1, 0));
    // The Unix socket has no address.
    let path = elsewhere.dir.join(format!("mongodb-{}.sock", elsewhere.port));
    assert!(std::os::unix::net::UnixStream::connect(path).is_ok());

    let exempt = rig::admitting(Admission::new(0, sources("127.0.0.1"), None));
    let mut peer = exempt.connect();
    assert!(ok(&peer.run(ping())));
    assert_eq!(exempt.instance.metrics.connections.limit_exempt.get(), 1);
}

#[test]
fn connections_that_come_too_fast_are_closed() {
    let rig = rig(100);
    let params = &rig.instance.params;
    params.set_at_startup("connectionRatePerAddress", "1").unwrap();
    params.set_at_startup("connectionBurstPerAddress", "3").unwrap();
    let mut held: Vec<_> = (0..3).map(|_| rig.connect()).collect();
    assert!(held.iter_mut().all(|peer| ok(&peer.run(ping()))));
    assert!(rig.connect().is_closed());
    rig.members.store(true, std::sync::atomic::Ordering::SeqCst);
    assert!(ok(&rig.connect().run(ping())), "members are not bounded");
    assert_eq!(rig.instance.metrics.connections.too_fast.get(), 1);
}
