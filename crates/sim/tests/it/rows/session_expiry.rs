//! What becomes of a session that nobody uses any more (SYS-275).

use pando_bson::{Binary, Bson, Document, doc};
use pando_sim::rig::{Rig, words::*};

/// MongoDB's half hour, a round of the refresh and one of the TTL index.
const LONG_MS: u64 = (30 + 5 + 2) * 60_000;

fn lsid(n: u8) -> Document {
    doc! { "id": Bson::Binary(Binary { subtype: 4, bytes: vec![n; 16] }) }
}
fn recorded(rig: &Rig, p: usize) -> Vec<u8> {
    let found = rig.ok(p, doc! { "find": "system.sessions", "$db": "config" });
    let Some(Bson::Array(docs)) = at(&found, "cursor.firstBatch") else { panic!("{found:?}") };
    let first_byte = |d: &Bson| match at(d.as_doc()?, "_id.id") {
        Some(Bson::Binary(b)) => b.bytes.first().copied(),
        _ => None,
    };
    docs.iter().filter_map(first_byte).collect()
}
fn open(rig: &Rig, p: usize, n: u8) -> i64 {
    let cursor = rig.ok(p, doc! { "find": "c", "batchSize": 1, "noCursorTimeout": true, "lsid": lsid(n) });
    number(&cursor, "cursor.id")
}

#[test]
fn a_session_that_rests_for_half_an_hour_is_over_with_all_it_held() {
    let rig = Rig::of(275, 1);
    let p = rig.primary();
    for i in 0..4 {
        rig.ok(p, insert(i, majority()));
    }
    let (idle, used) = (open(&rig, p, 1), open(&rig, p, 2));
    for _ in 0..6 {
        rig.wait_ms(LONG_MS / 6);
        rig.ok(p, doc! { "ping": 1, "lsid": lsid(2) });
    }
    assert_eq!(recorded(&rig, p), [2], "the index has forgotten the one that rested");
    let more = |id: i64, n: u8| {
        rig.ask(p, doc! { "getMore": id, "collection": "c", "batchSize": 1, "lsid": lsid(n) })
    };
    assert_eq!(code(&more(idle, 1)), 43, "its cursor is closed");
    assert_eq!(code(&more(used, 2)), 0, "the other's is not");
}
