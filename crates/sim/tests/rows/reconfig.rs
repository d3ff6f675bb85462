//! Changes of the configuration under way while members come and go.

use pando_bson::{Bson, doc};
use pando_sim::rig::{Rig, words::*};

fn version(rig: &Rig, i: usize) -> i64 {
    number(&rig.admin(i, doc! { "replSetGetConfig": 1 }), "config.version")
}

#[test]
fn an_error_after_the_installation_leaves_the_configuration_in_force() {
    let rig = Rig::of(71, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    let before = version(&rig, p);
    let config = rig.next_config(p);
    // Others are reached for the quorum check, but not for the configuration that follows it.
    let asked = rig.start(p, doc! { "replSetReconfig": config, "maxTimeMS": 3000, "$db": "admin" });
    rig.until("the installation", |rig| version(rig, p) == before + 1 || asked.answer().is_some());
    rig.isolate(p);
    rig.until("an answer", |_| asked.answer().is_some());
    let answer = asked.answer().unwrap();
    // Whether it was told of the others in time or not: it is in force.
    assert!(answer.get("ok").is_some_and(Bson::is_truthy) || code(&answer) == 50, "{answer:?}");
    assert_eq!(version(&rig, p), before + 1);
    rig.heal();
    rig.until("everybody to have it", |rig| (0..3).all(|i| version(rig, i) == before + 1));
}

#[test]
fn committed_writes_remain_through_changes_and_failovers() {
    let rig = Rig::of(72, 3);
    for round in 0..6 {
        let p = rig.primary();
        rig.ok(p, insert(round, majority()));
        let mut config = rig.next_config(p);
        let mut members = config.get("members").unwrap().as_array().unwrap().to_vec();
        // Voters come and go one at a time, never the primary.
        let other = rig.others(p)[(round % 2) as usize];
        if let Bson::Document(m) = &mut members[other] {
            let votes = 1 - m.get("votes").and_then(Bson::as_i64).unwrap_or(1) as i32;
            m.set("votes", votes);
            m.set("priority", votes);
        }
        config.set("members", members);
        let done = rig.ask(p, doc! { "replSetReconfig": config, "$db": "admin" });
        assert!(done.get("ok").is_some_and(Bson::is_truthy), "{done:?}");
        rig.wait_ms(12_000);
        rig.ask(p, doc! { "replSetStepDown": 5, "secondaryCatchUpPeriodSecs": 2, "$db": "admin" });
        rig.wait_ms(8_000);
    }
    let p = rig.primary();
    rig.ok(p, insert(99, majority()));
    assert_eq!(ids(&rig.ok(p, find("majority"))), [0, 1, 2, 3, 4, 5, 99]);
}
