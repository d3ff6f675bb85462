//! Members that differ: hidden, delayed, without priority or vote, with tags; and what members show and share.

use crate::sets::words::*;
use pando_bson::{Bson, Document, doc};
use pando_testserver::{Set, is, run};
use std::time::{Duration, Instant};

fn names(found: Option<&Bson>) -> Vec<&str> {
    found.and_then(Bson::as_array).into_iter().flatten().filter_map(Bson::as_str).collect()
}
fn keys(found: &Document) -> Vec<String> {
    found.iter().map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn hidden_delayed_and_voteless_members_are_what_they_are() {
    run(async {
        let set = Set::with(&[
            doc! {},
            doc! { "priority": 0, "hidden": true, "tags": { "rack": "a" } },
            doc! { "priority": 0, "secondaryDelaySecs": 3 },
            doc! { "priority": 0, "votes": 0, "tags": { "rack": "b" } },
        ])
        .await;
        let p = set.primary().await;
        assert_eq!(p, 0, "nobody else has a priority");
        let hello = set.hello(0).await;
        assert_eq!(names(hello.get("hosts")), [set.host(0)]);
        assert_eq!(names(hello.get("passives")), [set.host(2), set.host(3)]);
        let hidden = set.hello(1).await;
        assert!(is(&hidden, "hidden") && is(&hidden, "passive") && is(&hidden, "secondary"), "{hidden:?}");
        assert_eq!(number(&set.hello(2).await, "secondaryDelaySecs"), 3);
        for i in 1..4 {
            let refused = set.connect(i).await.run(doc! { "replSetStepUp": 1, "$db": "admin" }).await;
            assert_eq!(code(&refused), 125, "{refused:?}");
        }
        let status = set.connect(0).await.admin(doc! { "replSetGetStatus": 1 }).await;
        assert_eq!(number(&status, "votingMembersCount"), 3);
        assert_eq!(number(&status, "majorityVoteCount"), 2);
        // The delayed one counts by what it holds: late.
        let mut c = set.connect(0).await;
        let begun = Instant::now();
        c.ok(insert(1, doc! { "w": 3, "wtimeout": 30_000 })).await;
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        assert_eq!(count(&mut set.connect(2).await).await, 0);
        c.ok(insert(2, doc! { "w": 4, "wtimeout": 30_000 })).await;
        assert!(begun.elapsed() >= Duration::from_millis(2500), "{:?}", begun.elapsed());
        assert_eq!(count(&mut set.connect(2).await).await, 2);
        set.shut_down().await;
    });
}

#[test]
fn a_mode_is_met_by_enough_different_tags() {
    run(async {
        let set = Set::started(3).await;
        let mut config = set.config(&[
            doc! { "tags": { "dc": "east" } },
            doc! { "tags": { "dc": "east" }, "priority": 0 },
            doc! { "tags": { "dc": "west" }, "priority": 0 },
        ]);
        let modes = doc! { "everywhere": { "dc": 2 } };
        config.set("settings", doc! { "heartbeatIntervalMillis": 250, "getLastErrorModes": modes });
        set.connect(0).await.admin(doc! { "replSetInitiate": config }).await;
        set.settled().await;
        let mut c = set.connect(0).await;
        let everywhere = |ms: i32| doc! { "w": "everywhere", "wtimeout": ms };
        c.ok(insert(1, everywhere(30_000))).await;
        set.fail_point(2, "stopReplProducer", true).await;
        let slow = c.run(insert(2, everywhere(500))).await;
        assert_eq!(at(&slow, "writeConcernError.code").and_then(Bson::as_i64), Some(64), "{slow:?}");
        assert_eq!(at(&slow, "writeConcernError.errInfo.wtimeout"), Some(&Bson::Boolean(true)));
        let two = c.ok(insert(3, doc! { "w": 2, "wtimeout": 30_000 })).await;
        assert!(!two.contains("writeConcernError"), "two members of one place are two: {two:?}");
        let unknown = c.run(insert(4, doc! { "w": "nowhere" })).await;
        assert_eq!(at(&unknown, "writeConcernError.code").and_then(Bson::as_i64), Some(79), "{unknown:?}");
        set.fail_point(2, "stopReplProducer", false).await;
        c.ok(insert(5, everywhere(30_000))).await;
        set.shut_down().await;
    });
}

#[test]
fn more_than_fifty_members_are_refused() {
    run(async {
        let set = Set::of(1).await;
        let mut next = set.current(0).await;
        let Some(Bson::Array(mut members)) = next.remove("members") else { panic!("no members") };
        for i in 1..51 {
            let host = format!("127.0.0.1:{}", 40_000 + i);
            members.push(doc! { "_id": i, "host": host, "votes": 0, "priority": 0 }.into());
        }
        next.push("members", members);
        next.set("version", number(&next, "version") + 1);
        let refused = set.reconfig(next, false).await;
        assert_eq!(code(&refused), 103, "{refused:?}");
        let words =
            "Replica set configuration contains 51 members, but must have at least 1 and no more than  50";
        assert_eq!(text(&refused), words);
        set.shut_down().await;
    });
}

#[test]
fn admin_and_config_are_replicated_and_local_is_not() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        for db in ["local", "config", "admin"] {
            let mut command = insert(1, doc! { "w": if db == "local" { 1 } else { 3 }, "wtimeout": 30_000 });
            command.push("$db", db);
            c.ok(command).await;
        }
        for i in 0..3 {
            let mut c = set.connect(i).await;
            for (db, there) in [("admin", true), ("config", true), ("local", i == p)] {
                let reply = c.ok(anywhere(doc! { "count": "c", "$db": db })).await;
                assert_eq!(number(&reply, "n"), i64::from(there), "{db} on {i}");
            }
        }
        set.shut_down().await;
    });
}

#[test]
fn the_status_has_a_real_servers_fields() {
    run(async {
        let set = Set::of(3).await;
        let s = set.primary().await;
        set.connect(s).await.ok(insert(1, doc! { "w": 3, "wtimeout": 30_000 })).await;
        // Everybody is asked in the second election.
        set.until("a step-down", async |set| {
            is(&set.connect(s).await.run(doc! { "replSetStepDown": 60, "$db": "admin" }).await, "ok")
        })
        .await;
        let p = set.primary().await;
        set.connect(p).await.ok(insert(2, doc! { "w": 3, "wtimeout": 30_000 })).await;
        let common = "set date myState term syncSourceHost syncSourceId heartbeatIntervalMillis majorityVoteCount \
                      writeMajorityCount votingMembersCount writableVotingMembersCount optimes \
                      lastStableRecoveryTimestamp members";
        let me = "_id name health state stateStr uptime optime optimeDate lastAppliedWallTime lastDurableWallTime \
                  syncSourceHost syncSourceId infoMessage configVersion configTerm self lastHeartbeatMessage";
        let other = "_id name health state stateStr uptime optime optimeDurable optimeDate optimeDurableDate \
                     lastAppliedWallTime lastDurableWallTime lastHeartbeat lastHeartbeatRecv pingMs \
                     lastHeartbeatMessage syncSourceHost syncSourceId infoMessage configVersion configTerm";
        for (i, extra, office) in [(p, "electionCandidateMetrics", 1), (s, "electionParticipantMetrics", 2)] {
            let status = set.connect(i).await.admin(doc! { "replSetGetStatus": 1 }).await;
            let found = keys(&status);
            for name in common.split_whitespace().chain([extra]) {
                assert!(found.iter().any(|k| k == name), "{name} is missing of {i}: {found:?}");
            }
            assert_eq!(number(&status, "myState"), office);
            let members = status.get("members").and_then(Bson::as_array).unwrap();
            for (j, m) in members.iter().enumerate() {
                let m = m.as_doc().unwrap();
                let expected = if i == j { me } else { other };
                let found = keys(m);
                for name in expected.split_whitespace() {
                    assert!(found.iter().any(|k| k == name), "{name} is missing of member {j}: {found:?}");
                }
                assert_eq!(number(m, "state"), if j == p { 1 } else { 2 });
                assert_eq!(m.get("name").and_then(Bson::as_str), Some(&*set.host(j)));
                assert_eq!(found.iter().any(|k| k == "electionTime"), j == p);
            }
            let applied = at(&status, "optimes.appliedOpTime").unwrap();
            assert_eq!(members[i].as_doc().unwrap().get("optime"), Some(applied));
        }
        set.shut_down().await;
    });
}

#[test]
fn a_member_that_applies_slowly_answers_from_what_it_has() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        let s = set.secondaries().await[0];
        let mut c = set.connect(p).await;
        c.ok(insert(1, doc! { "w": 3, "wtimeout": 30_000 })).await;
        set.fail_point(s, "rsSyncApplyStop", true).await;
        let written = c.ok(insert(2, majority())).await;
        let time = at(&written, "operationTime").unwrap().clone();
        // Written there, not applied: it stays invisible, and reads do not wait for it.
        let mut reader = set.connect(s).await;
        let begun = Instant::now();
        assert_eq!(count(&mut reader).await, 1);
        assert!(begun.elapsed() < Duration::from_secs(1));
        // Unless they ask for it.
        let mut late = anywhere(doc! { "count": "c", "maxTimeMS": 300 });
        late.push("readConcern", doc! { "afterClusterTime": time.clone() });
        assert_eq!(code(&reader.run(late.clone()).await), 50);
        set.fail_point(s, "rsSyncApplyStop", false).await;
        late.set("maxTimeMS", 30_000);
        assert_eq!(number(&reader.ok(late).await, "n"), 2);
        set.shut_down().await;
    });
}

#[test]
fn a_member_counts_what_it_fetches_and_applies() {
    run(async {
        let set = Set::of(2).await;
        let (p, s) = (set.primary().await, set.secondaries().await[0]);
        let mut c = set.connect(p).await;
        let before = set.connect(s).await.admin(doc! { "serverStatus": 1 }).await;
        for i in 0..20 {
            c.ok(insert(i, doc! { "w": 2, "wtimeout": 30_000 })).await;
        }
        let mut delete = doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] };
        delete.push("writeConcern", doc! { "w": 2, "wtimeout": 30_000 });
        c.ok(delete).await;
        let mut read = doc! { "find": "c", "readConcern": { "level": "majority" } };
        read.push("$readPreference", doc! { "mode": "secondary" });
        set.connect(s).await.ok(read).await;
        let after = set.connect(s).await.admin(doc! { "serverStatus": 1 }).await;
        let grown = |path: &str| number(&after, path) - number(&before, path);
        // The two keys for cluster times, which the primary makes by itself, may be among them.
        let inserts = grown("opcountersRepl.insert");
        assert!((20..=22).contains(&inserts), "{inserts}");
        assert_eq!(grown("opcountersRepl.delete"), 20);
        for path in ["metrics.repl.apply.ops", "metrics.repl.network.ops"] {
            assert!(grown(path) >= 40, "{path}: {}", grown(path));
        }
        assert!(grown("metrics.repl.apply.batches.num") > 0 && grown("metrics.repl.network.bytes") > 4000);
        assert!(grown("metrics.repl.network.replSetUpdatePosition.num") > 0);
        assert_eq!(number(&after, "metrics.repl.buffer.count"), 0);
        assert_eq!(grown("readConcernCounters.nonTransactionOps.majority"), 1);
        set.shut_down().await;
    });
}

#[test]
fn a_set_of_one_that_grows_has_committed_what_it_acknowledged() {
    run(async {
        let set = Set::started(2).await;
        let mut c = set.connect(0).await;
        c.admin(doc! { "replSetInitiate": set.config(&[doc! {}]) }).await;
        set.until("it is primary", async |set| is(&set.hello(0).await, "isWritablePrimary")).await;
        let time = |found: Option<&Bson>| match found {
            Some(Bson::Timestamp(t)) => *t,
            other => panic!("no timestamp: {other:?}"),
        };
        // The core of the first one hears late of its disk; the second one copies nothing yet, so that nothing more is committed.
        set.fail_point(0, "skipTellingJournalFlush", true).await;
        set.fail_point(1, "initialSyncHangBeforeCopyingDatabases", true).await;
        let acknowledged = time(at(&c.ok(insert(1, majority())).await, "opTime.ts"));
        let mut two = set.config(&[doc! {}, doc! {}]);
        two.set("version", 2);
        assert!(is(&set.reconfig(two, true).await, "ok"));
        let status = c.admin(doc! { "replSetGetStatus": 1 }).await;
        let committed = time(at(&status, "optimes.lastCommittedOpTime.ts"));
        assert!(committed >= acknowledged, "{committed} < {acknowledged}");
        set.fail_point(0, "skipTellingJournalFlush", false).await;
        set.fail_point(1, "initialSyncHangBeforeCopyingDatabases", false).await;
        c.ok(insert(2, doc! { "w": 2, "wtimeout": 30_000 })).await;
        set.shut_down().await;
    });
}
