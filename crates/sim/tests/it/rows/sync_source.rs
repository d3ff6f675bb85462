//! Choosing whom to follow, and leaving.

use crate::rows::initial_sync::with_a_stale_member;
use pando_bson::{Bson, Document, doc};
use pando_sim::rig::{Rig, words::*};
use std::time::Duration;

fn reconfig(rig: &Rig, p: usize, change: impl FnOnce(&mut Document)) {
    let mut config = rig.next_config(p);
    change(&mut config);
    rig.admin(p, doc! { "replSetReconfig": config });
}

#[test]
fn a_dead_source_is_replaced_without_a_restart() {
    let rig = Rig::of(61, 3);
    let [p, middle, last] = rig.chain();
    rig.nodes[middle].kill();
    rig.until("another source", |rig| rig.source_of(last) == Some(p));
    rig.ok(p, insert(1, w(2)));
    assert_eq!(ids(&rig.ok(last, find("local"))), [0, 1]);
    assert_eq!(rig.nodes[last].exit(), None);
}

#[test]
fn a_source_that_leaves_the_configuration_is_left() {
    let rig = Rig::of(62, 3);
    let [p, middle, last] = rig.chain();
    let gone = rig.nodes[middle].addr();
    reconfig(&rig, p, |config| {
        let members = config.get("members").unwrap().as_array().unwrap().to_vec();
        let kept: Vec<Bson> = members
            .into_iter()
            .filter(|m| m.as_doc().unwrap().get("host").and_then(Bson::as_str) != Some(&gone))
            .collect();
        config.set("members", kept);
    });
    rig.ok(p, insert(1, doc! { "w": 1 }));
    rig.until("another source", |rig| rig.source_of(last) == Some(p));
    rig.ok(p, insert(2, w(2)));
    assert_eq!(ids(&rig.ok(last, find("local"))), [0, 1, 2]);
}

#[test]
fn a_source_by_command_is_taken_once_and_bad_ones_are_refused() {
    let rig = Rig::of(63, 3);
    let [p, middle, last] = rig.chain();
    let ask = |i: usize, host: &str| rig.ask(i, doc! { "replSetSyncFrom": host, "$db": "admin" });
    let me = rig.nodes[last].addr();
    assert_eq!(code(&ask(last, &me)), 72, "itself");
    assert_eq!(code(&ask(last, "127.0.0.1:9")), 74, "a stranger");
    assert_eq!(code(&ask(p, &rig.nodes[middle].addr())), 95, "the primary follows nobody");
    // The command's choice holds until that source fails; after it the ordinary rules.
    rig.nodes[middle].kill();
    rig.until("the ordinary choice", |rig| rig.source_of(last) == Some(p));
}

#[test]
fn without_chaining_everybody_follows_the_primary() {
    let rig = Rig::of(64, 3);
    let [p, _, last] = rig.chain();
    reconfig(&rig, p, |config| {
        let mut settings = config.get("settings").unwrap().as_doc().unwrap().clone();
        settings.set("chainingAllowed", false);
        config.set("settings", settings);
    });
    rig.ok(p, insert(1, majority()));
    rig.until("the primary as source", |rig| rig.source_of(last) == Some(p));
    rig.ok(p, insert(2, w(3)));
}

#[test]
fn a_cut_off_middle_is_left_for_the_primary() {
    // Only the first can be primary.
    let follower = doc! { "priority": 0 };
    let rig = Rig::with(65, &[doc! {}, follower.clone(), follower], doc! {});
    let [p, middle, last] = rig.chain();
    rig.part(p, middle);
    for i in 1..4 {
        rig.ok(p, insert(i, doc! { "w": 1 }));
    }
    // Without a source of its own and not ahead, the middle is of no use; it finds its way through the last one.
    rig.until("the last to follow the primary", |rig| rig.source_of(last) == Some(p));
    rig.until("the middle to follow the last", |rig| rig.source_of(middle) == Some(last));
    rig.ok(p, insert(9, w(3)));
    rig.heal();
}

#[test]
fn without_any_source_a_member_waits_and_recovers() {
    let rig = Rig::of(66, 3);
    let p = rig.primary();
    rig.ok(p, insert(0, w(3)));
    let s = rig.others(p)[0];
    rig.isolate(s);
    rig.wait(Duration::from_secs(40));
    assert_eq!(rig.source_of(s), None);
    rig.ok(p, insert(1, w(2)));
    rig.heal();
    rig.until("a source", |rig| rig.source_of(s).is_some());
    rig.ok(p, insert(2, w(3)));
}

#[test]
fn a_member_behind_every_oplog_is_recovering_and_serves_nothing() {
    let (rig, s) = with_a_stale_member(67, false);
    let p = rig.primary();
    rig.until("the member to find out", |rig| number(&rig.status(s), "myState") == 3);
    let refused = rig.ask(s, find("local"));
    assert_eq!(code(&refused), 13436, "{refused:?}");
    let status = rig.admin(s, doc! { "serverStatus": 1 });
    assert!(at(&status, "repl").is_some());
    rig.ok(p, insert(1000, w(2)));
}

/// The words of the log: one cut connection is taken up again, a source that cannot be reached is avoided.
#[test]
fn one_error_is_forgiven_and_more_end_with_another_source() {
    const RECREATED: i32 = 21274;
    const AVOIDED: i32 = 5_929_000;
    let rig = Rig::of(69, 3);
    let [p, middle, last] = rig.chain();
    let (a, b) = (rig.nodes[middle].machine(), rig.nodes[last].machine());
    // It follows, and not only means to.
    rig.wait_ms(1_000);
    rig.world.watch_lines(&[RECREATED, AVOIDED]);
    let mut lines = Vec::new();
    for i in 1..4 {
        rig.world.net.reset_connections(|x, y| x == a && y == b);
        rig.ok(p, insert(i, w(3)));
        // Good batches in between give the budget back.
        rig.wait_ms(12_000);
        lines.extend(rig.world.take_lines());
        assert_eq!(rig.source_of(last), Some(middle), "{lines:?}");
    }
    let of_last =
        |lines: &[pando_sim::world::Line], id| lines.iter().filter(|l| l.machine == b && l.id == id).count();
    assert_eq!((of_last(&lines, RECREATED), of_last(&lines, AVOIDED)), (3, 0), "{lines:?}");
    rig.nodes[middle].kill();
    rig.until("another source", |rig| rig.source_of(last) == Some(p));
    let lines = rig.world.take_lines();
    assert_eq!((of_last(&lines, RECREATED), of_last(&lines, AVOIDED)), (1, 1), "{lines:?}");
}

fn requests(rig: &Rig, i: usize) -> i64 {
    number(&rig.admin(i, doc! { "serverStatus": 1 }), "network.numRequests")
}

/// How many requests a primary gets while it writes so many batches for one follower, beside those of an idle while.
fn requests_for_batches(exhaust: bool) -> i64 {
    let rig = Rig::unnamed(90, 2);
    for node in &rig.nodes {
        let params = &node.server().unwrap().instance.params;
        params.set_at_startup("oplogFetcherUsesExhaust", if exhaust { "true" } else { "false" }).unwrap();
    }
    let rig = rig.initiated(&[doc! {}, doc! {}], doc! {});
    let p = rig.primary();
    rig.ok(p, insert(-1, w(2)));
    let follower = rig.others(p)[0];
    // A new primary's own writes are over.
    rig.wait_ms(5_000);
    let before = requests(&rig, p);
    for i in 0..100 {
        rig.ok(p, insert(i, doc! { "w": 1 }));
        rig.until("the follower", |rig| ids(&rig.ok(follower, find("local"))).len() == i as usize + 2);
    }
    requests(&rig, p) - before
}

#[test]
fn batches_come_without_being_asked_for_unless_that_is_turned_off() {
    let (with, without) = (requests_for_batches(true), requests_for_batches(false));
    assert!(without - with > 80, "{with} requests with exhaust, {without} without");
}

/// The middle of a chain stands still: its follower goes to the primary once that is more than `maxSyncSourceLagSecs` ahead.
#[test]
fn a_source_that_falls_far_behind_is_left() {
    let rig = Rig::of(40, 3);
    let [p, middle, last] = rig.chain();
    // It answers, and its log does not move.
    super::initial_sync::hang(&rig, middle, "stopReplProducer", true);
    let mut left_after = None;
    for i in 1..60 {
        rig.ok(p, insert(i, doc! { "w": 1 }));
        rig.wait_ms(1_000);
        if rig.source_of(last) == Some(p) {
            left_after = Some(i);
            break;
        }
    }
    let after = left_after.expect("the follower stays with a source that stands still");
    assert!(after >= 30, "left after {after} s");
    rig.ok(p, insert(100, doc! { "w": 2, "wtimeout": 60_000 }));
    super::initial_sync::hang(&rig, middle, "stopReplProducer", false);
    rig.ok(p, insert(101, w(3)));
}

fn block(rig: &Rig, i: usize, commands: &[&str], on: bool) {
    let names: Vec<Bson> = commands.iter().map(|c| Bson::from(*c)).collect();
    let mut data = doc! { "blockConnection": true, "blockTimeMS": 6_000, "failInternalCommands": true };
    data.push("failCommands", names);
    let mut set = doc! { "configureFailPoint": "failCommand", "mode": if on { "alwaysOn" } else { "off" } };
    set.push("data", data);
    let server = rig.nodes[i].server().expect("a running member");
    server.instance.fail_points.configure("failCommand", &set.to_raw()).unwrap();
}

/// The source takes six seconds over each heartbeat, then over each batch.
#[test]
fn heartbeats_and_fetching_do_not_wait_for_each_other() {
    let rig = Rig::of(41, 3);
    let p = rig.primary();
    rig.ok(p, insert(0, w(3)));
    let term = number(&rig.status(p), "term");
    for i in 0..3 {
        block(&rig, i, &["replSetHeartbeat"], true);
    }
    rig.wait_ms(8_000);
    for i in 1..10 {
        let from = rig.world.sim.now();
        rig.ok(p, insert(i, w(3)));
        let took = rig.world.sim.now() - from;
        assert!(took < std::time::Duration::from_secs(1), "{took:?} behind a heartbeat");
        rig.wait_ms(500);
    }
    for i in 0..3 {
        block(&rig, i, &["find", "getMore"], true);
    }
    rig.wait_ms(20_000);
    for i in 0..3 {
        block(&rig, i, &[], false);
    }
    let status = rig.status(p);
    for other in 0..3 {
        assert_eq!(number(&status, &format!("members.{other}.health")), 1, "{status:?}");
    }
    assert_eq!((rig.primary(), number(&rig.status(p), "term")), (p, term));
}

#[test]
fn a_follower_applies_inserts_in_groups_and_counts_them() {
    let rig = Rig::of(42, 3);
    let p = rig.primary();
    let follower = rig.others(p)[0];
    rig.ok(p, insert(-1, w(3)));
    let counted = |name: &str| {
        let status = rig.admin(follower, doc! { "serverStatus": 1 });
        number(&status, &format!("metrics.repl.apply.{name}"))
    };
    let (ops, units) = (counted("ops"), counted("units"));
    let docs: Vec<Bson> = (0..400).map(|i| doc! { "_id": i }.into()).collect();
    let mut many = doc! { "insert": "c", "writeConcern": w(3) };
    many.push("documents", docs);
    rig.ok(p, many);
    let (ops, units) = (counted("ops") - ops, counted("units") - units);
    assert!(ops >= 400 && (1..100).contains(&units), "{ops} entries in {units} units");
}
