//! How far a majority is, and who knows.

use pando_bson::{Document, doc};
use pando_sim::rig::{Rig, words::*};

fn committed(status: &Document) -> i64 {
    let ts = at(status, "optimes.lastCommittedOpTime.ts");
    ts.map_or(0, |t| match t {
        pando_bson::Bson::Timestamp(t) => t.0 as i64,
        other => panic!("{other:?}"),
    })
}

#[test]
fn the_point_is_what_a_majority_has() {
    let rig = Rig::of(41, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    rig.isolate(p);
    let before = committed(&rig.status(p));
    for i in 2..6 {
        rig.ask(p, insert(i, doc! { "w": 1 }));
    }
    assert_eq!(committed(&rig.status(p)), before, "one of three has them");
    // Back before the election timeout: the same primary goes on.
    rig.heal();
    rig.until("the point to move", |rig| committed(&rig.status(p)) > before);
    rig.ok(p, insert(9, majority()));
    let done = committed(&rig.status(p));
    // By the source's answers and by heartbeats everybody hears of it.
    rig.until("everybody to know", |rig| (0..3).all(|i| committed(&rig.status(i)) >= done));
}

#[test]
fn the_point_moves_without_heartbeats() {
    let rig = Rig::of(42, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    // Long intervals between heartbeats: what moves the followers' point is the source's answers.
    let mut config = rig.next_config(p);
    let mut settings = config.get("settings").unwrap().as_doc().unwrap().clone();
    settings.set("heartbeatIntervalMillis", 60_000);
    config.set("settings", settings);
    rig.admin(p, doc! { "replSetReconfig": config });
    rig.wait_ms(3000);
    for i in 2..30 {
        rig.ok(p, insert(i, majority()));
        rig.wait_ms(1000);
        let done = committed(&rig.status(p));
        for s in rig.others(p) {
            assert!(committed(&rig.status(s)) >= done, "member {s} in round {i}");
        }
    }
    // Nor did anybody think that the primary is gone.
    assert!(rig.is_primary(p));
}
