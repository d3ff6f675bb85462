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

#[test]
fn a_set_keeps_its_id_and_does_not_take_repaired_data() {
    let rig = Rig::of(79, 3);
    let p = rig.primary();
    let ask = |change: &dyn Fn(&mut pando_bson::Document)| {
        let mut config = rig.next_config(p);
        change(&mut config);
        let told = rig.ask(p, doc! { "replSetReconfig": config, "$db": "admin" });
        (code(&told), told.get("errmsg").and_then(Bson::as_str).unwrap_or_default().to_owned())
    };
    let id = at(&rig.admin(p, doc! { "replSetGetConfig": 1 }), "config.settings.replicaSetId").cloned();
    let other = |config: &mut pando_bson::Document| {
        let settings = doc! { "replicaSetId": pando_bson::ObjectId([7; 12]) };
        config.set("settings", settings);
    };
    let (code, text) = ask(&other);
    assert_eq!(code, 103, "{text}");
    assert!(text.starts_with("New and old configurations differ in replica set ID; old was "), "{text}");
    let (code, text) = ask(&|config| config.push("repaired", true));
    assert_eq!((code, &*text), (93, "Replicated data has been repaired"));
    let (code, text) = ask(&|config| config.push("repaired", 5));
    assert_eq!((code, &*text), (93, "Field 'repaired' should be a boolean value, but found: int"));
    assert_eq!(ask(&|config| config.push("repaired", false)).1, "");
    // Without the setting it stays.
    assert_eq!(ask(&|config| config.set("settings", doc! { "chainingAllowed": true })).1, "");
    let now = at(&rig.admin(p, doc! { "replSetGetConfig": 1 }), "config.settings.replicaSetId").cloned();
    assert!(now.is_some() && now == id, "{now:?}");
}
