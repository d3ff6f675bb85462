//! Messages between members, asked as a member asks.

use pando_bson::{Bson, Document, doc};
use pando_sim::rig::{Rig, words::*};
use std::time::Duration;

fn beat(rig: &Rig, from: usize, to: usize, term: i64) -> Document {
    let config = rig.admin(to, doc! { "replSetGetConfig": 1 });
    let (version, config_term) = (number(&config, "config.version"), number(&config, "config.term"));
    rig.ask(to, doc! { "replSetHeartbeat": "rs0", "configVersion": version, "configTerm": config_term, "hbv": 1,
        "from": rig.nodes[from].addr(), "fromId": from as i32, "term": term, "primaryId": -1, "$db": "admin" })
}

#[test]
fn a_heartbeat_tells_state_positions_term_and_source() {
    let rig = Rig::of(51, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    let s = rig.others(p)[0];
    let term = number(&rig.status(p), "term");
    let of_primary = beat(&rig, s, p, term);
    assert_eq!(number(&of_primary, "state"), 1, "{of_primary:?}");
    let of_secondary = beat(&rig, p, s, term);
    assert_eq!(number(&of_secondary, "state"), 2);
    for reply in [&of_primary, &of_secondary] {
        assert_eq!(reply.get("set").and_then(Bson::as_str), Some("rs0"));
        for field in
            ["opTime.ts", "durableOpTime.ts", "wallTime", "durableWallTime", "v", "configTerm", "term"]
        {
            assert!(at(reply, field).is_some(), "{field} is missing: {reply:?}");
        }
        assert_eq!(number(reply, "primaryId"), p as i64);
        assert!(!reply.contains("config"), "the configurations are the same");
    }
    assert!(at(&of_primary, "electionTime").is_some());
    assert_eq!(at(&of_secondary, "syncingTo").and_then(Bson::as_str), Some(rig.nodes[p].addr().as_str()));
    // An older configuration gets the newer one.
    let old = rig.ask(
        p,
        doc! { "replSetHeartbeat": "rs0", "configVersion": -2, "hbv": 1, "from": "", "fromId": -1,
        "term": term, "$db": "admin" },
    );
    assert!(at(&old, "config.members").is_some(), "{old:?}");
    let wrong = rig.ask(
        p,
        doc! { "replSetHeartbeat": "other", "configVersion": 1, "hbv": 1, "from": "", "fromId": -1,
        "term": term, "$db": "admin" },
    );
    assert_eq!(code(&wrong), 108, "{wrong:?}");
}

#[test]
fn heartbeats_come_at_the_interval() {
    let rig = Rig::of(52, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    rig.wait_ms(5000);
    let count =
        || number(&rig.admin(p, doc! { "serverStatus": 1 }), "metrics.commands.replSetHeartbeat.total");
    let before = count();
    rig.wait(Duration::from_secs(20));
    let heard = count() - before;
    // Two members, every two seconds.
    assert!((18..=24).contains(&heard), "{heard} heartbeats in 20 s");
}

#[test]
fn a_higher_term_in_metadata_ends_an_office() {
    let rig = Rig::of(53, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    let term = number(&rig.status(p), "term");
    beat(&rig, rig.others(p)[0], p, term + 5);
    rig.until("the primary to step down", |rig| {
        !rig.is_primary(p) || number(&rig.status(p), "term") > term + 5
    });
    let next = rig.primary();
    assert!(number(&rig.status(next), "term") > term + 5);
    rig.ok(next, insert(2, majority()));
}

#[test]
fn positions_reach_the_primary_through_the_middle_and_strangers_are_refused() {
    let rig = Rig::of(54, 3);
    let [p, _, last] = rig.chain();
    rig.part(p, last);
    rig.ok(p, insert(1, w(3)));
    // Idle: signs of life go on through the middle, so the last one is not counted out.
    rig.wait(Duration::from_secs(40));
    assert!(rig.is_primary(p));
    rig.ok(p, insert(2, w(3)));
    rig.heal();
    let op = doc! { "ts": Bson::Timestamp(pando_base::Timestamp::new(1, 1)), "t": 1_i64 };
    let stranger = doc! { "memberId": 77, "cfgver": 1, "appliedOpTime": op.clone(), "durableOpTime": op };
    let refused = rig.ask(p, doc! { "replSetUpdatePosition": 1, "optimes": [stranger], "$db": "admin" });
    assert_eq!(code(&refused), 74, "{refused:?}");
}

#[test]
fn positions_are_told_twice_per_election_timeout_when_nothing_moves() {
    let rig = Rig::of(55, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    rig.wait(Duration::from_secs(5));
    let count =
        || number(&rig.admin(p, doc! { "serverStatus": 1 }), "metrics.commands.replSetUpdatePosition.total");
    let before = count();
    rig.wait(Duration::from_secs(60));
    let heard = count() - before;
    // Two members, every five seconds; the primary's own periodic entries add a few.
    assert!((20..=60).contains(&heard), "{heard} reports in 60 s");
}

#[test]
fn a_newer_configuration_travels_by_heartbeat() {
    let rig = Rig::of(56, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    let away = rig.others(p)[0];
    rig.isolate(away);
    let config = rig.next_config(p);
    let version = number(&config, "version");
    rig.admin(p, doc! { "replSetReconfig": config });
    let version_of =
        |rig: &Rig, i: usize| number(&rig.admin(i, doc! { "replSetGetConfig": 1 }), "config.version");
    assert!(version_of(&rig, away) < version);
    rig.heal();
    rig.until("the newer configuration", |rig| version_of(rig, away) == version);
}

#[test]
fn positions_are_gathered_unless_somebody_waits_for_them() {
    let rig = Rig::of(57, 3);
    let p = rig.primary();
    rig.ok(p, insert(0, w(3)));
    let count =
        || number(&rig.admin(p, doc! { "serverStatus": 1 }), "metrics.commands.replSetUpdatePosition.total");
    // Reports heard and time passed while forty writes go by.
    let forty = |from: i32, concern: Document| {
        rig.wait_ms(2000);
        let (before, begun) = (count(), rig.world.sim.now());
        (from..from + 40).for_each(|i| drop(rig.ok(p, insert(i, concern.clone()))));
        (count() - before, rig.world.sim.now() - begun)
    };
    let (unawaited, took) = forty(100, w(1));
    // Each of two members: one per ten milliseconds, and the first and the last.
    let most = 2 * (took.as_millis() as i64 / 10 + 2);
    assert!(unawaited <= most, "{unawaited} reports in {took:?}");
    let (awaited, took) = forty(200, w(3));
    assert!(awaited >= 80, "{awaited} reports");
    assert!(took < Duration::from_millis(40 * 10), "nobody gathers while a write waits: {took:?}");
}

/// Its disk takes for ever over one vote: it goes on asking the others how they are, and being asked.
#[test]
fn a_vote_that_waits_for_the_disk_holds_no_heartbeat() {
    let rig = Rig::of(57, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    let s = rig.others(p)[0];
    let server = rig.nodes[s].server().expect("a running member");
    let on = doc! { "configureFailPoint": "hangBeforeWritingVote", "mode": "alwaysOn" }.to_raw();
    server.instance.fail_points.configure("hangBeforeWritingVote", &on).unwrap();
    let config = rig.admin(s, doc! { "replSetGetConfig": 1 });
    let asked = rig.start(
        s,
        doc! { "replSetRequestVotes": 1, "setName": "rs0", "dryRun": false, "candidateIndex": p as i64,
        "term": number(&rig.status(s), "term") + 1, "configVersion": number(&config, "config.version"),
        "configTerm": number(&config, "config.term"),
        "lastAppliedOpTime": { "ts": pando_base::Timestamp::new(u32::MAX, 1), "t": 1i64 }, "$db": "admin" },
    );
    rig.wait_ms(30_000);
    assert!(asked.answer().is_none(), "{:?}", asked.answer());
    for i in 0..3 {
        let status = rig.status(i);
        for other in 0..3 {
            assert_eq!(
                number(&status, &format!("members.{other}.health")),
                1,
                "{other} as {i} sees it: {status:?}"
            );
        }
    }
    let off = doc! { "configureFailPoint": "hangBeforeWritingVote", "mode": "off" }.to_raw();
    server.instance.fail_points.configure("hangBeforeWritingVote", &off).unwrap();
    rig.until("the vote", |_| asked.answer().is_some());
    let p = rig.primary();
    rig.ok(p, insert(2, w(3)));
}
