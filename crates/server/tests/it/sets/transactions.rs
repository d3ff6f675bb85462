//! Transactions on a set of three: failovers, secondaries, rollback.

use crate::sets::words::*;
use pando_bson::{Binary, Bson, Document, doc};
use pando_testserver::{Set, is, pause, run, spawn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

fn bare(id: i32) -> Document {
    doc! { "insert": "c", "documents": [{ "_id": id }] }
}
fn commit(session: u8, number: i64, concern: Document) -> Document {
    within(doc! { "commitTransaction": 1, "$db": "admin", "writeConcern": concern }, session, number, false)
}
fn has_label(reply: &Document, label: &str) -> bool {
    let labels = reply.get("errorLabels").and_then(Bson::as_array);
    labels.is_some_and(|l| l.iter().any(|l| l.as_str() == Some(label)))
}

#[test]
fn a_step_down_ends_open_transactions_at_once_and_their_clients_are_told_to_try_again() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        c.ok(insert(0, majority())).await;
        c.ok(within(bare(1), 1, 1, true)).await;
        c.ok(within(doc! { "find": "c" }, 2, 1, true)).await;
        let from = Instant::now();
        let down = set.connect(p).await.admin(doc! { "replSetStepDown": 30 }).await;
        assert!(is(&down, "ok"), "{down:?}");
        assert!(from.elapsed() < Duration::from_secs(8), "{:?}", from.elapsed());
        for session in [1, 2] {
            let refused = c.run(within(doc! { "find": "c" }, session, 1, false)).await;
            assert!(has_label(&refused, "TransientTransactionError"), "{refused:?}");
        }
        let heir = set.primary().await;
        let mut c = set.connect(heir).await;
        let unknown = c.run(commit(1, 1, majority())).await;
        assert_eq!(code(&unknown), 251, "{unknown:?}");
        c.ok(within(bare(1), 1, 2, true)).await;
        c.ok(commit(1, 2, majority())).await;
        assert_eq!(count(&mut c).await, 2);
        set.shut_down().await;
    });
}

#[test]
fn no_position_goes_back_when_a_primary_steps_down() {
    run(async {
        let set = Set::of(3).await;
        for turn in 0..4 {
            let p = set.primary().await;
            let mut c = set.connect(p).await;
            // The positions of its data path stay behind: it writes its log itself.
            for id in 0..20 {
                c.ok(insert(turn * 100 + id, majority())).await;
            }
            // They end with the role, which takes its time.
            for session in 0..40 {
                c.ok(within(bare(1000 + i32::from(session)), session, i64::from(turn), true)).await;
            }
            let server = set.server(p).clone();
            let before = server.replication.majority_read_point();
            let looking = std::thread::spawn(move || {
                while server.replication.member.is_primary() {
                    std::hint::spin_loop();
                }
                server.replication.majority_read_point()
            });
            let down = doc! { "replSetStepDown": 10, "secondaryCatchUpPeriodSecs": 8 };
            assert!(is(&c.admin(down).await, "ok"));
            assert!(looking.join().unwrap() >= before, "before: {before:?}");
            // It may stand again.
            c.admin(doc! { "replSetFreeze": 0 }).await;
        }
        set.shut_down().await;
    });
}

#[test]
fn a_commit_can_be_told_again_to_the_next_primary() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        c.ok(insert(0, majority())).await;
        c.ok(within(bare(1), 1, 1, true)).await;
        c.ok(commit(1, 1, majority())).await;
        assert!(is(&set.connect(p).await.admin(doc! { "replSetStepDown": 30 }).await, "ok"));
        let heir = set.primary().await;
        let mut c = set.connect(heir).await;
        c.ok(commit(1, 1, majority())).await;
        assert_eq!(code(&c.run(within(bare(2), 1, 1, false)).await), 256);
        assert_eq!(count(&mut c).await, 2);
        set.shut_down().await;
    });
}

#[test]
fn a_secondary_shows_each_transaction_whole_or_not_at_all() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        let s = set.secondaries().await;
        let mut c = set.connect(p).await;
        let accounts: Vec<Bson> = (0..10).map(|i| doc! { "_id": i, "n": 100 }.into()).collect();
        let mut first = doc! { "insert": "bank", "writeConcern": { "w": 3, "wtimeout": 30_000 } };
        first.push("documents", accounts);
        c.ok(first).await;
        let stop = Arc::new(AtomicBool::new(false));
        let mut reader = set.connect(s[0]).await;
        let stopped = stop.clone();
        let reading = spawn(async move {
            let mut reads = 0;
            while !stopped.load(Relaxed) {
                let all = reader.all(anywhere(doc! { "find": "bank" })).await;
                let total: i64 = all.iter().map(|d| number(d, "n")).sum();
                assert_eq!((all.len(), total), (10, 1000), "{all:?}");
                reads += 1;
            }
            reads
        });
        for i in 0..60i64 {
            let (from, to) = (i % 10, (i * 7 + 3) % 10);
            let add = |id: i64, n: i64| {
                doc! { "update": "bank", "updates": [{ "q": { "_id": id }, "u": { "$inc": { "n": n } } }] }
            };
            c.ok(within(add(from, -5), 1, i + 1, true)).await;
            c.ok(within(add(to, 5), 1, i + 1, false)).await;
            c.ok(commit(1, i + 1, doc! { "w": 1 })).await;
        }
        // One over several entries: nothing of it before the last.
        let pad = "x".repeat(6 << 20);
        for id in 0..6 {
            let big = doc! { "insert": "big", "documents": [{ "_id": id, "pad": pad.clone() }] };
            c.ok(within(big, 2, 1, id == 0)).await;
        }
        let mut watcher = set.connect(s[1]).await;
        let stopped = stop.clone();
        let watching = spawn(async move {
            while !stopped.load(Relaxed) {
                let n = number(&watcher.run(anywhere(doc! { "count": "big", "query": {} })).await, "n");
                assert!(n == 0 || n == 6, "{n}");
            }
        });
        c.ok(commit(2, 1, doc! { "w": 3, "wtimeout": 60_000 })).await;
        pause(100).await;
        stop.store(true, Relaxed);
        assert!(reading.await.unwrap() > 5);
        watching.await.unwrap();
        let hash = async |i: usize| {
            set.connect(i).await.run(anywhere(doc! { "dbHash": 1 })).await.get("md5").cloned()
        };
        set.until("one content", async |_| {
            hash(p).await == hash(s[0]).await && hash(p).await == hash(s[1]).await
        })
        .await;
        set.shut_down().await;
    });
}

#[test]
fn a_commit_that_only_read_waits_until_what_it_read_is_committed() {
    run(async {
        let (set, _, s, mut c) = held_back().await;
        c.ok(insert(1, doc! { "w": 1 })).await;
        c.ok(within(doc! { "find": "c" }, 1, 1, true)).await;
        let waits = c.run(commit(1, 1, doc! { "w": "majority", "wtimeout": 300 })).await;
        assert!(waits.get("writeConcernError").is_some(), "{waits:?}");
        // Who does not ask does not wait.
        c.ok(within(doc! { "find": "c" }, 1, 2, true)).await;
        let quick = c.run(commit(1, 2, doc! { "w": 1 })).await;
        assert!(is(&quick, "ok") && quick.get("writeConcernError").is_none(), "{quick:?}");
        // An unknown transaction: without a majority nobody is told to begin anew.
        let unknown = c.run(commit(2, 1, doc! { "w": "majority", "wtimeout": 300 })).await;
        assert_eq!(
            (code(&unknown), has_label(&unknown, "TransientTransactionError")),
            (251, false),
            "{unknown:?}"
        );
        for i in &s {
            set.fail_point(*i, "stopReplProducer", false).await;
        }
        c.ok(within(doc! { "find": "c" }, 1, 3, true)).await;
        c.ok(commit(1, 3, majority())).await;
        let unknown = c.run(commit(2, 1, majority())).await;
        assert_eq!((code(&unknown), has_label(&unknown, "TransientTransactionError")), (251, true));
        set.shut_down().await;
    });
}

#[test]
fn a_transaction_that_was_rolled_back_is_unknown_to_everybody() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        without_catching_up(&set, p).await;
        let mut c = set.connect(p).await;
        c.ok(insert(0, doc! { "w": 3, "wtimeout": 30_000 })).await;
        c.ok(within(bare(1), 1, 1, true)).await;
        c.ok(commit(1, 1, doc! { "w": 3, "wtimeout": 30_000 })).await;
        let rest: Vec<usize> = (0..3).filter(|i| *i != p).collect();
        for i in &rest {
            set.fail_point(*i, "stopReplProducer", true).await;
        }
        c.ok(within(bare(2), 1, 2, true)).await;
        c.ok(within(doc! { "insert": "alone", "documents": [{ "_id": 1 }] }, 1, 2, false)).await;
        c.ok(within(doc! { "delete": "c", "deletes": [{ "q": { "_id": 0 }, "limit": 1 }] }, 1, 2, false))
            .await;
        c.ok(commit(1, 2, doc! { "w": 1 })).await;
        c.admin(doc! { "replSetStepDown": 60, "secondaryCatchUpPeriodSecs": 0, "force": true }).await;
        set.until("a successor", async |set| {
            let stood = set.connect(rest[0]).await.run(doc! { "replSetStepUp": 1, "$db": "admin" }).await;
            is(&stood, "ok") || is(&set.hello(rest[0]).await, "isWritablePrimary")
        })
        .await;
        set.until("it writes", async |set| is(&set.hello(rest[0]).await, "isWritablePrimary")).await;
        set.connect(rest[0]).await.ok(insert(3, doc! { "w": 1 })).await;
        for i in &rest {
            set.fail_point(*i, "stopReplProducer", false).await;
        }
        let hash = async |i: usize| {
            set.connect(i).await.run(anywhere(doc! { "dbHash": 1 })).await.get("md5").cloned()
        };
        set.until("one history", async |set| {
            is(&set.hello(p).await, "secondary") && hash(p).await == hash(rest[0]).await
        })
        .await;
        assert_eq!(count(&mut set.connect(p).await).await, 3, "0, 1 and 3");
        set.until("it is primary again", async |set| {
            set.connect(p).await.run(doc! { "replSetFreeze": 0, "$db": "admin" }).await;
            let stood = set.connect(p).await.run(doc! { "replSetStepUp": 1, "$db": "admin" }).await;
            is(&stood, "ok") || is(&set.hello(p).await, "isWritablePrimary")
        })
        .await;
        set.until("it writes again", async |set| is(&set.hello(p).await, "isWritablePrimary")).await;
        let mut c = set.connect(p).await;
        let gone = c.run(commit(1, 2, majority())).await;
        assert_eq!(code(&gone), 251, "{gone:?}");
        c.ok(commit(1, 1, majority())).await;
        set.shut_down().await;
    });
}

#[test]
fn what_transactions_read_is_safe_when_their_commit_is_whatever_level_they_asked_for() {
    run(async {
        let (set, p, rest, mut c) = held_back().await;
        // Nobody else has it, and both levels show it.
        c.ok(insert(1, doc! { "w": 1 })).await;
        for (session, level) in [(1, "local"), (2, "majority")] {
            let mut read = within(doc! { "find": "c", "filter": { "_id": 1 } }, session, 1, true);
            read.push("readConcern", doc! { "level": level });
            assert_eq!(c.all(read).await.len(), 1, "{level}");
            c.ok(within(bare(10 + i32::from(session)), session, 1, false)).await;
            // So only a commit by a majority says that what was read stays.
            let told = c.run(commit(session, 1, doc! { "w": "majority", "wtimeout": 200 })).await;
            assert_eq!(number(&told, "writeConcernError.code"), 64, "{level}: {told:?}");
        }
        c.admin(doc! { "replSetStepDown": 60, "secondaryCatchUpPeriodSecs": 0, "force": true }).await;
        set.until("a successor without it", async |set| {
            let mut c = set.connect(rest[0]).await;
            c.run(doc! { "replSetStepUp": 1, "$db": "admin" }).await;
            // A new primary fetches what others have, as long as it may.
            c.run(doc! { "replSetAbortPrimaryCatchUp": 1, "$db": "admin" }).await;
            is(&set.hello(rest[0]).await, "isWritablePrimary")
        })
        .await;
        set.connect(rest[0]).await.ok(insert(3, doc! { "w": 1 })).await;
        for i in &rest {
            set.fail_point(*i, "stopReplProducer", false).await;
        }
        set.until("all of it is gone, at either level", async |set| {
            let counted = set.connect(p).await.run(anywhere(doc! { "count": "c" })).await;
            is(&set.hello(p).await, "secondary") && counted.get("n").and_then(Bson::as_i64) == Some(2)
        })
        .await;
        set.shut_down().await;
    });
}

#[test]
fn a_transaction_that_was_open_when_a_member_came_is_whole_on_it() {
    run(async {
        let set = Set::started(2).await;
        let config = set.config(&[doc! {}, doc! { "priority": 0, "votes": 0 }]);
        let alone = doc! { "_id": config.get("_id").cloned().unwrap(), "version": 1,
        "members": [{ "_id": 0, "host": set.host(0) }], "settings": { "heartbeatIntervalMillis": 250 } };
        set.connect(0).await.admin(doc! { "replSetInitiate": alone }).await;
        set.until("it is primary", async |set| is(&set.hello(0).await, "isWritablePrimary")).await;
        let mut c = set.connect(0).await;
        let many: Vec<Bson> = (0..500).map(|i| doc! { "_id": i, "n": 0 }.into()).collect();
        let mut bulk = doc! { "insert": "c" };
        bulk.push("documents", many);
        c.ok(bulk).await;
        c.ok(doc! { "insert": "e", "documents": [{ "_id": 0 }] }).await;
        let touch = |n: i32| doc! { "update": "c", "updates": [{ "q": { "_id": { "$mod": [10, n] } }, "u": { "$set": { "n": 7 } }, "multi": true }] };
        c.ok(within(touch(3), 1, 1, true)).await;
        set.fail_point(1, "initialSyncHangAfterDataCloning", true).await;
        let mut two = config.clone();
        two.set("version", 2);
        two.set("settings", doc! { "heartbeatIntervalMillis": 250 });
        assert!(is(&set.reconfig(two, true).await, "ok"));
        set.until("the copy is made", async |set| {
            let data = doc! { "waitForFailPoint": "initialSyncHangAfterDataCloning", "timesEntered": 1, "maxTimeMS": 200, "$db": "admin" };
            is(&set.connect(1).await.run(data).await, "ok")
        })
        .await;
        // Over several entries, the last of which comes while the new member waits.
        c.ok(within(touch(4), 1, 1, false)).await;
        let pad = "x".repeat(6 << 20);
        for id in 1..6 {
            c.ok(within(
                doc! { "insert": "e", "documents": [{ "_id": id, "pad": pad.clone() }] },
                1,
                1,
                false,
            ))
            .await;
        }
        c.ok(commit(1, 1, doc! { "w": 1 })).await;
        set.fail_point(1, "initialSyncHangAfterDataCloning", false).await;
        set.until("it is a secondary", async |set| is(&set.hello(1).await, "secondary")).await;
        let hash = async |i: usize| {
            set.connect(i).await.run(anywhere(doc! { "dbHash": 1 })).await.get("md5").cloned()
        };
        set.until("one content", async |_| hash(0).await == hash(1).await).await;
        let seven = doc! { "count": "c", "query": { "n": 7 } };
        assert_eq!(number(&set.connect(1).await.run(anywhere(seven)).await, "n"), 100);
        set.shut_down().await;
    });
}

#[test]
fn sessions_are_recorded_for_the_whole_set_and_end_there() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        let s = set.secondaries().await;
        let lsid = |n: u8| doc! { "id": uuid(n) };
        let mut c = set.connect(p).await;
        c.ok(insert(0, majority())).await;
        let recorded = async |set: &Set| {
            let all = doc! { "find": "system.sessions", "$db": "config" };
            let all = set.connect(p).await.all(all).await;
            let mut ids: Vec<u8> = all
                .iter()
                .filter_map(|d| match at(d, "_id.id") {
                    Some(Bson::Binary(b)) => Some(b.bytes[0]),
                    _ => None,
                })
                .collect();
            ids.sort_unstable();
            ids
        };
        c.ok(doc! { "find": "c", "lsid": lsid(1) }).await;
        // A secondary has the primary write.
        let mut elsewhere = set.connect(s[0]).await;
        elsewhere.ok(anywhere(doc! { "find": "c", "lsid": lsid(2) })).await;
        for i in [p, s[0]] {
            let told =
                set.connect(i).await.run(doc! { "refreshLogicalSessionCacheNow": 1, "$db": "admin" }).await;
            assert!(is(&told, "ok"), "{told:?}");
        }
        assert_eq!(recorded(&set).await, [1, 2]);
        let indexes = c.all(doc! { "listIndexes": "system.sessions", "$db": "config" }).await;
        let ttl =
            indexes.iter().find(|i| i.get("name").and_then(Bson::as_str) == Some("lsidTTLIndex")).unwrap();
        assert_eq!(number(ttl, "expireAfterSeconds"), 1800);
        elsewhere.ok(doc! { "endSessions": [lsid(2)] }).await;
        set.connect(s[0]).await.run(doc! { "refreshLogicalSessionCacheNow": 1, "$db": "admin" }).await;
        assert_eq!(recorded(&set).await, [1]);
        let status = c.admin(doc! { "serverStatus": 1 }).await;
        assert_eq!(number(&status, "logicalSessionRecordCache.lastSessionsCollectionJobEntriesRefreshed"), 1);
        set.shut_down().await;
    });
}

#[test]
fn a_time_that_a_client_has_seen_is_known_to_the_member_it_asks_next() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        let s = set.secondaries().await;
        let mut c = set.connect(p).await;
        let written = c.ok(insert(0, doc! { "w": 3, "wtimeout": 30_000 })).await;
        let Some(Bson::Timestamp(seen)) = at(&written, "$clusterTime.clusterTime") else {
            panic!("{written:?}")
        };
        // Ahead of every clock here.
        let ahead = pando_base::Timestamp::new(seen.secs() + 1000, 1);
        let mut ping = doc! { "ping": 1 };
        let mut told = doc! { "clusterTime": Bson::Timestamp(ahead) };
        let hash = Bson::Binary(Binary { subtype: 0, bytes: vec![0; 20] });
        told.push("signature", doc! { "hash": hash, "keyId": 0i64 });
        ping.push("$clusterTime", told);
        let time_of = |reply: &Document| match at(reply, "$clusterTime.clusterTime") {
            Some(Bson::Timestamp(t)) => *t,
            other => panic!("{other:?}"),
        };
        assert!(time_of(&c.ok(doc! { "ping": 1 }).await) < ahead);
        assert!(time_of(&set.connect(s[0]).await.ok(ping.clone()).await) >= ahead);
        assert!(time_of(&c.ok(ping).await) >= ahead);
        // The next write comes after everything that was seen.
        let next = c.ok(insert(1, majority())).await;
        assert!(matches!(at(&next, "operationTime"), Some(Bson::Timestamp(t)) if *t > ahead), "{next:?}");
        set.shut_down().await;
    });
}
