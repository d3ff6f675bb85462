//! Calls to a set that changes.

#![allow(clippy::unwrap_used)]

use pando_base::{ErrorCode, Timestamp};
use pando_bson::{Document, doc};
use pando_fleet::{Fleet, Monitors, Registry, SetMonitor, ShardEntry};
use pando_monitor::{Mode, ReadPreference};
use pando_routing::ShardId;
use pando_rpc::{Options, Pool, Retry};
use pando_testserver::{Set, World, pause, run};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);

fn fleet(world: &World) -> Fleet {
    let env = world.env();
    let pool = Pool::new(env.clone(), Options::default());
    let monitors = Monitors::new(env.clone(), Options::default(), pool.clone());
    Fleet { env, monitors, pool }
}

async fn call(
    fleet: &Fleet,
    set: &SetMonitor,
    mode: Mode,
    command: Document,
    retry: Retry,
) -> Result<(String, Document), ErrorCode> {
    let command = command.to_raw();
    let done = fleet.call(set, &ReadPreference::of(mode), &command, &[], retry, LIMIT).await;
    done.map(|a| (a.host, Document::from(&*a.reply))).map_err(|f| f.code())
}

#[test]
fn one_host_leads_to_the_primary_and_to_secondaries() {
    run(async {
        let (world, set) = (World::new(), Set::of(3).await);
        let fleet = fleet(&world);
        let primary = set.primary().await;
        let secondary = set.host(set.secondaries().await[0]);
        let monitor = fleet.monitors.of("rs", [secondary.as_str()]);
        let ping = || doc! { "ping": 1, "$db": "admin" };
        let (host, _) = call(&fleet, &monitor, Mode::Primary, ping(), Retry::Idempotent).await.unwrap();
        assert_eq!(host, set.host(primary));
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..50 {
            seen.insert(call(&fleet, &monitor, Mode::Secondary, ping(), Retry::Idempotent).await.unwrap().0);
        }
        assert!(!seen.contains(&set.host(primary)) && seen.len() == 2, "{seen:?}");
        // The same monitor for the same set, whoever names it.
        assert_eq!(fleet.monitors.of("rs", ["127.0.0.1:1"]).look().members.len(), 3);
        // It ends with the last who has it, although its members' answers are being waited for.
        assert_eq!(fleet.monitors.watched(), 1);
        drop(monitor);
        pause(200).await;
        assert_eq!(fleet.monitors.watched(), 0);
        set.shut_down().await;
    });
}

#[test]
fn a_new_primary_is_found_when_the_old_one_steps_down_or_dies() {
    run(async {
        let (world, mut set) = (World::new(), Set::of(3).await);
        let fleet = fleet(&world);
        let monitor = fleet.monitors.of("rs", [set.host(0).as_str()]);
        let insert = |n: i32| doc! { "insert": "c", "documents": [{ "_id": n }], "$db": "d" };
        for round in 0..2 {
            let old = set.primary().await;
            call(&fleet, &monitor, Mode::Primary, insert(round * 2), Retry::NotIdempotent).await.unwrap();
            if round == 1 {
                let down = doc! { "replSetStepDown": 20, "secondaryCatchUpPeriodSecs": 10, "$db": "admin" };
                call(&fleet, &monitor, Mode::Primary, down, Retry::Never).await.unwrap();
            } else {
                set.stop(old).await;
            }
            // Sent to the old primary first, perhaps: not begun there, so it may be sent again.
            let again = insert(round * 2 + 1);
            let (host, reply) =
                call(&fleet, &monitor, Mode::Primary, again, Retry::NotIdempotent).await.unwrap();
            assert_eq!(reply.get("n").and_then(|v| v.as_i64()), Some(1));
            assert_ne!(host, set.host(old));
        }
        set.shut_down().await;
    });
}

#[test]
fn a_set_that_nobody_reaches_is_told_within_the_limit() {
    run(async {
        let world = World::new();
        let fleet = fleet(&world);
        let monitor = fleet.monitors.of("gone", ["127.0.0.1:1"]);
        let ping = doc! { "ping": 1, "$db": "admin" }.to_raw();
        let limit = Duration::from_millis(300);
        let failed =
            fleet.call(&monitor, &ReadPreference::default(), &ping, &[], Retry::Idempotent, limit).await;
        assert_eq!(failed.unwrap_err().code(), ErrorCode::FailedToSatisfyReadPreference);
        // Nobody holds the monitor any more; what it did ends.
        drop(monitor);
        pause(20).await;
    });
}

#[test]
fn the_registry_changes_as_a_whole_and_monitors_stay() {
    run(async {
        let world = World::new();
        let fleet = fleet(&world);
        let registry = Registry::new(fleet.monitors.clone());
        let entry = |id: &str, host: &str| {
            ShardEntry::parse(&doc! { "_id": id, "host": host, "state": 1, "tags": ["z"] }.to_raw()).unwrap()
        };
        registry.install(
            vec![entry("a", "sa/127.0.0.1:1,127.0.0.1:2"), entry("b", "sb/127.0.0.1:3")],
            Timestamp::new(5, 1),
        );
        let first = registry.shards();
        assert_eq!(first.of_host("127.0.0.1:2").unwrap().entry.id, ShardId::new("a"));
        assert_eq!(first.of_set("sb").unwrap().entry.id, ShardId::new("b"));
        assert_eq!(first.expect(&ShardId::new("x")).err().unwrap().code, ErrorCode::ShardNotFound);
        // What was read before does not come back.
        registry.install(Vec::new(), Timestamp::new(4, 1));
        assert_eq!(registry.shards().len(), 2);
        registry.install(vec![entry("a", "sa/127.0.0.1:2")], Timestamp::new(6, 1));
        assert!(
            registry.shards().of_set("sb").is_none() && registry.shards().of_host("127.0.0.1:1").is_none()
        );
        assert_eq!(registry.shards().get(&ShardId::new("a")).unwrap().monitor.look().members.len(), 2);
        assert!(ShardEntry::parse(&doc! { "_id": "a", "host": "no set" }.to_raw()).is_err());
    });
}
