//! Frames round trip; every lie is either an error reply or a closed connection, as MongoDB has it.

use pando_base::ErrorCode;
use pando_bson::{DocBuf, RawDoc, doc};
use pando_wire::*;

const PING_ID: i32 = 7;

fn ping() -> DocBuf {
    doc! { "ping": 1, "$db": "admin" }.to_raw()
}
fn body(doc: &RawDoc) -> Vec<u8> {
    let mut out = vec![0];
    out.extend_from_slice(doc.as_bytes());
    out
}
fn sequence(name: &str, docs: &[&RawDoc], size: Option<u32>) -> Vec<u8> {
    let payload: Vec<u8> = docs.iter().flat_map(|d| d.as_bytes()).copied().collect();
    let size = size.unwrap_or((4 + name.len() + 1 + payload.len()) as u32);
    let mut out = vec![1];
    out.extend_from_slice(&size.to_le_bytes());
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    out.extend_from_slice(&payload);
    out
}
fn message(op_code: i32, payload: &[u8]) -> Vec<u8> {
    let mut out = ((16 + payload.len()) as u32).to_le_bytes().to_vec();
    for n in [PING_ID, 0, op_code] {
        out.extend_from_slice(&n.to_le_bytes());
    }
    out.extend_from_slice(payload);
    out
}
fn msg(flag_bits: u32, sections: &[Vec<u8>]) -> Vec<u8> {
    let mut payload = flag_bits.to_le_bytes().to_vec();
    payload.extend(sections.concat());
    message(op::MSG, &payload)
}
fn query(ns: &str, bits: u32, wanted: i32, docs: &[u8]) -> Vec<u8> {
    let mut payload = bits.to_le_bytes().to_vec();
    payload.extend_from_slice(ns.as_bytes());
    payload.extend_from_slice(&[0; 5]);
    payload.extend_from_slice(&wanted.to_le_bytes());
    payload.extend_from_slice(docs);
    message(op::QUERY, &payload)
}
fn packed(c: Compressor, original: i32, claimed: i32, bytes: &[u8]) -> Vec<u8> {
    let mut payload = original.to_le_bytes().to_vec();
    payload.extend_from_slice(&claimed.to_le_bytes());
    payload.push(c as u8);
    payload.extend_from_slice(bytes);
    message(op::COMPRESSED, &payload)
}

/// The error code of an answered fault; `None` when the connection closes.
fn fault(input: &[u8]) -> Option<(i32, Style)> {
    match decode(input, Compressors::ALL, &mut Scratch::new()) {
        Ok(found) => panic!("decoded {found:?}"),
        Err(WireError::Close(_)) => None,
        Err(WireError::Reply(envelope, error)) => {
            assert_eq!((envelope.request_id, envelope.consumed), (PING_ID, input.len()));
            Some((error.code.0, envelope.style))
        }
    }
}

#[test]
fn body_and_sequences_come_back() {
    let (a, b) = (doc! { "_id": 1 }.to_raw(), doc! { "_id": 2 }.to_raw());
    let insert = doc! { "insert": "c", "$db": "d" }.to_raw();
    let mut wire = Vec::new();
    encode_msg(&mut wire, 41, 40, flags::EXHAUST_ALLOWED, &insert, &[("documents", &[&a, &b]), ("x", &[])]);
    let whole = wire.len();
    wire.extend_from_slice(b"the next message");
    let mut scratch = Scratch::new();
    for cut in 0..whole {
        assert!(matches!(decode(&wire[..cut], Compressors::NONE, &mut scratch), Ok(None)), "{cut}");
    }
    let (frame, envelope) = decode(&wire, Compressors::NONE, &mut scratch).unwrap().unwrap();
    assert_eq!((envelope.consumed, envelope.request_id), (whole, 41));
    assert!(envelope.wants_reply() && envelope.exhaust_allowed());
    let Frame::Msg(m) = frame else { panic!() };
    assert_eq!(m.body, &*insert);
    let docs = m.sequence("documents").unwrap();
    assert_eq!(docs.len(), 2);
    assert_eq!(docs.iter().map(|d| d.get("_id").unwrap().as_i64().unwrap()).collect::<Vec<_>>(), [1, 2]);
    assert!(m.sequence("x").unwrap().is_empty());
}

#[test]
fn checksum_is_made_and_checked() {
    let mut wire = Vec::new();
    encode_msg(&mut wire, PING_ID, 0, flags::CHECKSUM_PRESENT, &ping(), &[]);
    // Computed by another implementation over the same bytes.
    assert_eq!(wire[wire.len() - 4..], 0x0FB5_1B0B_u32.to_le_bytes());
    let mut scratch = Scratch::new();
    let (_, envelope) = decode(&wire, Compressors::NONE, &mut scratch).unwrap().unwrap();
    let mut reply = Vec::new();
    encode_reply(&mut reply, &envelope, 1, PING_ID, false, &ping(), &mut scratch);
    assert!(decode(&reply, Compressors::NONE, &mut scratch).unwrap().is_some());
    assert_eq!(reply[16], 1);
    for i in 16..wire.len() {
        let mut bad = wire.clone();
        bad[i] ^= 0x40;
        assert_eq!(fault(&bad), None, "byte {i}");
    }
    assert_eq!(fault(&msg(flags::CHECKSUM_PRESENT, &[])), Some((51252, Style::Msg)));
}

#[test]
fn faults_close_or_answer_as_mongodb_does() {
    let one = doc! { "a": 1 }.to_raw();
    let ping = ping();
    let b = || body(&ping);
    let close: &[(&str, Vec<u8>)] = &[
        ("length 15", [15i32, 1, 0, 2013].iter().flat_map(|n| n.to_le_bytes()).collect()),
        ("length -1", [-1i32, 1, 0, 2013].iter().flat_map(|n| n.to_le_bytes()).collect()),
        ("length over 48 MB", [48_000_001i32, 1, 0, 2013].iter().flat_map(|n| n.to_le_bytes()).collect()),
        ("no flags", message(op::MSG, &[])),
        ("unknown required flag", msg(4, &[b()])),
        ("unknown opcode", message(9999, &b())),
        ("OP_INSERT", message(2002, &b())),
        ("OP_REPLY", message(op::REPLY, &b())),
        ("short OP_QUERY", message(op::QUERY, &[0; 4])),
    ];
    for (name, wire) in close {
        assert_eq!(fault(wire), None, "{name}");
    }
    let answered: &[(&str, Vec<u8>, i32)] = &[
        ("no sections", msg(0, &[]), 40587),
        ("only a sequence", msg(0, &[sequence("x", &[&one], None)]), 40587),
        ("two bodies", msg(0, &[b(), b()]), 40430),
        ("sequence twice", msg(0, &[b(), sequence("x", &[&one], None), sequence("x", &[], None)]), 40431),
        ("sequence also in body", msg(0, &[b(), sequence("ping", &[&one], None)]), 40433),
        ("size beyond the end", msg(0, &[b(), sequence("x", &[&one], Some(1000))]), 15),
        ("size below itself", msg(0, &[b(), sequence("x", &[&one], Some(3))]), 15),
        ("size cuts a document", msg(0, &[b(), sequence("x", &[&one], Some(10))]), 22),
        ("kind 2", msg(0, &[b(), vec![2]]), 13),
        ("kind 5", msg(0, &[b(), vec![5]]), 40432),
        ("body longer than the message", msg(0, &[vec![0, 99, 0, 0, 0, 0]]), 22),
        (
            "too many sequences",
            msg(0, &[b(), (0..9).flat_map(|i| sequence(&i.to_string(), &[], None)).collect()]),
            233,
        ),
    ];
    for (name, wire, code) in answered {
        assert_eq!(fault(wire), Some((*code, Style::Msg)), "{name}");
    }
    let mut flags_above = msg(1 << 17 | 1 << 31, &[b()]);
    assert!(decode(&flags_above, Compressors::NONE, &mut Scratch::new()).is_ok());
    flags_above.clear();
}

#[test]
fn only_the_handshake_is_left_of_op_query() {
    let hello = doc! { "isMaster": 1 }.to_raw();
    let mut scratch = Scratch::new();
    let wire = query("admin.$cmd", 0, -1, hello.as_bytes());
    let (frame, envelope) = decode(&wire, Compressors::NONE, &mut scratch).unwrap().unwrap();
    let Frame::Query(q) = frame else { panic!() };
    assert_eq!((q.db, q.command), ("admin", &*hello));
    assert_eq!(envelope.style, Style::Reply);
    let mut reply = Vec::new();
    encode_reply(&mut reply, &envelope, 99, PING_ID, false, &doc! { "ok": 1.0 }.to_raw(), &mut scratch);
    let header = Header::read(&reply).unwrap();
    assert_eq!((header.op_code, header.response_to, header.length), (op::REPLY, PING_ID, reply.len()));
    assert_eq!(reply[16..36], [8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    assert!(RawDoc::validate(&reply[36..]).is_ok());

    let wrapped = doc! { "$query": { "isMaster": 1 }, "$readPreference": { "mode": "primary" } }.to_raw();
    let wire = query("admin.$cmd", 0, -1, wrapped.as_bytes());
    let (Frame::Query(q), _) = decode(&wire, Compressors::NONE, &mut scratch).unwrap().unwrap() else {
        panic!()
    };
    assert_eq!(q.command, &*hello);

    for (wire, code, style) in [
        (query("d.c", 0, -1, hello.as_bytes()), 5_739_101, Style::QueryFailure),
        (message(op::GET_MORE, &[0; 30]), 5_739_101, Style::QueryFailure),
        (query("d.$cmd", 0, 5, hello.as_bytes()), 16979, Style::Reply),
        (query("d.$cmd", 0, i32::MIN, hello.as_bytes()), 16979, Style::Reply),
        (query("d.$cmd", 64, -1, hello.as_bytes()), 18527, Style::Reply),
        (query("d.$cmd", 0, -1, &[hello.as_bytes(), b"zz"].concat()), 22, Style::Reply),
        (query("d.$cmd", 0, -1, &hello.as_bytes()[..9]), 22, Style::Reply),
    ] {
        assert_eq!(fault(&wire), Some((code, style)));
    }
    let failure = encode_error_body(Style::QueryFailure, &OpQuery::unsupported("ping"));
    assert_eq!(
        failure.get("code").unwrap().as_i64(),
        Some(i64::from(ErrorCode::UnsupportedOpQueryCommand.0))
    );
    assert!(failure.get("$err").is_some() && failure.get("errmsg").is_none());
}

fn compressed(c: Compressor, big: usize) -> (Vec<u8>, DocBuf, Vec<u8>) {
    let doc = doc! { "ping": 1, "x": "abc".repeat(big), "$db": "admin" }.to_raw();
    let mut wire = Vec::new();
    encode_msg(&mut wire, PING_ID, 0, 0, &doc, &[]);
    let plain = wire[16..].to_vec();
    compress(&mut wire, 0, c, &mut Scratch::new());
    (wire, doc, plain)
}

#[test]
fn compressed_messages_round_trip_and_replies_follow_suit() {
    for c in Compressor::ALL {
        // Small, and one so repetitive that zstd takes the streaming road.
        for big in [1, 20_000, 1_000_000] {
            let (wire, doc, plain) = compressed(c, big);
            assert_eq!(Header::read(&wire).unwrap().op_code, op::COMPRESSED);
            assert!(big == 1 || wire.len() < plain.len() / 2);
            let mut scratch = Scratch::new();
            let (frame, envelope) = decode(&wire, Compressors::NONE.with(c), &mut scratch).unwrap().unwrap();
            let Frame::Msg(m) = frame else { panic!() };
            assert_eq!(m.body, &*doc);
            assert_eq!((envelope.compressor, envelope.consumed), (Some(c), wire.len()));
            let mut reply = b"earlier bytes".to_vec();
            encode_reply(&mut reply, &envelope, 3, PING_ID, true, &doc, &mut Scratch::new());
            let mut other = Scratch::new();
            let (frame, _) = decode(&reply[13..], Compressors::ALL, &mut other).unwrap().unwrap();
            let Frame::Msg(m) = frame else { panic!() };
            assert_eq!((m.body, m.flags), (&*doc, flags::MORE_TO_COME));
        }
    }
}

#[test]
fn compression_lies_close_the_connection() {
    for c in Compressor::ALL {
        let (wire, _, plain) = compressed(c, 100);
        let bytes = &wire[25..];
        let honest = plain.len() as i32;
        assert!(decode(&wire, Compressors::NONE, &mut Scratch::new()).is_err(), "not negotiated");
        for claimed in [honest + 1, honest - 1, 0, -1, i32::MAX, i32::MIN, 40_000_000, 48_000_000] {
            assert_eq!(fault(&packed(c, op::MSG, claimed, bytes)), None, "{c:?} {claimed}");
        }
        assert_eq!(fault(&packed(c, op::MSG, honest, &plain)), None, "not compressed at all");
        assert_eq!(fault(&packed(c, op::MSG, honest, b"")), None);
        assert_eq!(fault(&packed(c, op::COMPRESSED, honest, bytes)), None, "nested");
        for cut in 0..bytes.len() {
            assert_eq!(fault(&packed(c, op::MSG, honest, &bytes[..cut])), None, "{c:?} cut {cut}");
        }
    }
    let mut unknown = packed(Compressor::Zlib, op::MSG, 5, b"12345");
    for id in [0u8, 4, 9, 255] {
        unknown[24] = id;
        assert_eq!(fault(&unknown), None);
    }
}

/// Deterministic mutations of good messages: never a panic, never a frame that reads beyond itself.
#[test]
fn mutated_messages_are_decoded_or_refused() {
    let mut seed = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let inner = doc! { "a": [1, { "b": "x" }], "d": 1.5 }.to_raw();
    let mut bases = vec![
        msg(0, &[body(&ping()), sequence("documents", &[&inner, &inner], None)]),
        query("admin.$cmd", 0, -1, doc! { "isMaster": 1 }.to_raw().as_bytes()),
    ];
    bases.extend(Compressor::ALL.map(|c| compressed(c, 20).0));
    let mut scratch = Scratch::new();
    let (mut good, mut bad) = (0, 0);
    for round in 0..60_000 {
        let mut wire = bases[round % bases.len()].clone();
        for _ in 0..=next() % 3 {
            let at = (next() as usize) % wire.len();
            wire[at] = match next() % 4 {
                0 => next() as u8,
                1 => wire[at].wrapping_add(1),
                2 => 0xFF,
                _ => wire[at] ^ 1 << (next() % 8),
            };
        }
        match decode(&wire, Compressors::ALL, &mut scratch) {
            Ok(Some((Frame::Msg(m), _))) => {
                good += m.body.count();
                for s in &m.sequences {
                    assert_eq!(s.iter().count(), s.len());
                }
            }
            Ok(_) => good += 1,
            Err(_) => bad += 1,
        }
    }
    assert!(good > 1000 && bad > 1000, "{good} {bad}");
}
