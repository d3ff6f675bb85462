//! How a member comes to office and loses it.

use crate::sets::words::*;
use pando_bson::{Bson, Document, doc};
use pando_testserver::{Set, is, pause, run};
use std::time::{Duration, Instant};

/// A set of three whose election timeout is short.
async fn impatient() -> Set {
    let set = Set::started(3).await;
    let mut config = set.config(&vec![Document::new(); 3]);
    config.set("settings", doc! { "heartbeatIntervalMillis": 250, "electionTimeoutMillis": 2000 });
    set.connect(0).await.admin(doc! { "replSetInitiate": config }).await;
    set.settled().await;
    set
}

#[test]
fn a_new_primary_fetches_what_others_have_before_it_takes_writes() {
    run(async {
        let (set, _, s, mut c) = held_back().await;
        for id in 1..=10 {
            c.ok(insert(id, doc! { "w": 1 })).await;
        }
        let forced = doc! { "replSetStepDown": 60, "secondaryCatchUpPeriodSecs": 0, "force": true };
        c.admin(forced).await;
        // The two who lack the entries are a majority; the third has them and is up.
        set.until("an election", async |set| {
            let asked = set.connect(s[0]).await.run(doc! { "replSetStepUp": 1, "$db": "admin" }).await;
            is(&asked, "ok")
        })
        .await;
        set.until("the office", async |set| {
            let status = set.connect(s[0]).await.admin(doc! { "replSetGetStatus": 1 }).await;
            number(&status, "myState") == 1
        })
        .await;
        pause(300).await;
        let hello = set.hello(s[0]).await;
        assert!(!is(&hello, "isWritablePrimary") && is(&hello, "secondary"), "{hello:?}");
        assert_eq!(code(&set.connect(s[0]).await.run(insert(99, doc! { "w": 1 })).await), 10107);
        for i in &s {
            set.fail_point(*i, "stopReplProducer", false).await;
        }
        assert_eq!(set.primary().await, s[0]);
        let mut c = set.connect(s[0]).await;
        assert_eq!(count(&mut c).await, 11, "nothing was left behind");
        let status = c.admin(doc! { "replSetGetStatus": 1 }).await;
        assert_eq!(number(&status, "electionCandidateMetrics.numCatchUpOps"), 10, "{status:?}");
        let metrics = c.admin(doc! { "serverStatus": 1 }).await;
        assert_eq!(number(&metrics, "electionMetrics.numCatchUpsSucceeded"), 1);
        assert_eq!(at(&metrics, "electionMetrics.averageCatchUpOps"), Some(&Bson::Double(10.0)));
        set.shut_down().await;
    });
}

#[test]
fn a_message_with_a_higher_term_ends_the_office() {
    run(async {
        let set = impatient().await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        let status = c.admin(doc! { "replSetGetStatus": 1 }).await;
        let term = number(&status, "term");
        let ask = doc! {
            "replSetHeartbeat": "rs", "configVersion": 1, "configTerm": term, "hbv": 1, "from": set.host((p + 1) % 3),
            "fromId": ((p + 1) % 3) as i64, "term": term + 1, "primaryId": (-1i64), "$db": "admin"
        };
        let answer = c.run(ask).await;
        assert!(is(&answer, "ok"), "{answer:?}");
        set.until("a later term", async |set| {
            let at = set.primary().await;
            let status = set.connect(at).await.admin(doc! { "replSetGetStatus": 1 }).await;
            number(&status, "term") > term + 1
        })
        .await;
        let metrics = set.connect(p).await.admin(doc! { "serverStatus": 1 }).await;
        assert_eq!(number(&metrics, "electionMetrics.numStepDownsCausedByHigherTerm"), 1);
        set.shut_down().await;
    });
}

#[test]
fn a_primary_without_a_majority_steps_down_and_a_forced_configuration_saves_it() {
    run(async {
        let mut set = impatient().await;
        let p = set.primary().await;
        set.connect(p).await.ok(insert(1, doc! { "w": 3, "wtimeout": 30_000 })).await;
        for s in set.secondaries().await {
            set.stop(s).await;
        }
        let begun = Instant::now();
        set.until("a secondary", async |set| is(&set.hello(p).await, "secondary")).await;
        assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
        let mut c = set.connect(p).await;
        assert_eq!(count(&mut c).await, 1, "it still answers");
        // Only by force, and alone in the new configuration.
        let mut next = set.current(p).await;
        let version = number(&next, "version");
        let Some(Bson::Array(members)) = next.remove("members") else { panic!("no members") };
        next.push("members", vec![members[p].clone()]);
        next.set("version", version + 1);
        let gently = doc! { "replSetReconfig": next.clone(), "$db": "admin" };
        assert_eq!(code(&c.run(gently).await), 10107);
        c.admin(doc! { "replSetReconfig": next, "force": true }).await;
        let forced = set.current(p).await;
        assert!(number(&forced, "version") > version + 9999, "{forced:?}");
        assert_eq!(set.primary().await, p);
        c.ok(insert(2, majority())).await;
        set.shut_down().await;
    });
}

#[test]
fn a_forced_configuration_unseats_a_primary_without_priority() {
    run(async {
        // By a command on itself, and as it hears of it.
        for by_heartbeat in [false, true] {
            let set = impatient().await;
            let p = set.primary().await;
            let at_member = if by_heartbeat { set.secondaries().await[0] } else { p };
            let mut next = set.current(p).await;
            let Some(Bson::Array(members)) = next.remove("members") else { panic!("no members") };
            let mut changed = Vec::new();
            for (i, m) in members.into_iter().enumerate() {
                let Bson::Document(mut m) = m else { panic!("not a member") };
                m.set("priority", if i == p { 0.0 } else { 1.0 });
                changed.push(Bson::Document(m));
            }
            next.push("members", changed);
            next.set("version", number(&next, "version") + 1);
            let mut c = set.connect(at_member).await;
            c.admin(doc! { "replSetReconfig": next, "force": true }).await;
            set.until("another primary", async |set| {
                !is(&set.hello(p).await, "isWritablePrimary") && set.primary().await != p
            })
            .await;
            let hello = set.hello(p).await;
            assert!(is(&hello, "passive"), "{hello:?}");
            assert_eq!(
                code(&set.connect(p).await.run(doc! { "replSetStepUp": 1, "$db": "admin" }).await),
                125
            );
            set.shut_down().await;
        }
    });
}

async fn step_down(set: &Set, p: usize) {
    set.until("a step-down", async |set| {
        if !is(&set.hello(p).await, "isWritablePrimary") {
            return true;
        }
        is(
            &set.connect(p)
                .await
                .run(doc! { "replSetStepDown": 1, "secondaryCatchUpPeriodSecs": 1, "$db": "admin" })
                .await,
            "ok",
        )
    })
    .await;
}

/// Changes the members until the set takes it: new voters bring changes of their own.
async fn with_members(set: &Set, change: impl Fn(Vec<Bson>) -> Vec<Bson>) {
    set.until("another configuration", async |set| {
        let mut next = set.current(set.primary().await).await;
        let Some(Bson::Array(members)) = next.remove("members") else { panic!("no members") };
        next.push("members", change(members));
        next.set("version", number(&next, "version") + 1);
        is(&set.reconfig(next, false).await, "ok")
    })
    .await;
}
/// Inserts wherever the primary is, on a majority.
async fn commit(set: &Set, id: i32) {
    set.until("a committed write", async |set| {
        let reply = set.connect(set.primary().await).await.run(insert(id, majority())).await;
        is(&reply, "ok") && !reply.contains("writeConcernError")
    })
    .await;
}

#[test]
fn what_is_committed_outlives_configurations_and_failovers() {
    run(async {
        let set = Set::of(3).await;
        for round in 0..3 {
            let p = set.primary().await;
            let host = set.host((p + 1) % 3);
            let is_out =
                |m: &Bson| m.as_doc().and_then(|m| m.get("host")).and_then(Bson::as_str) == Some(&host);
            // A member leaves; a majority of the rest acknowledges; it comes back.
            with_members(&set, |all| all.into_iter().filter(|m| !is_out(m)).collect()).await;
            commit(&set, 2 * round).await;
            let back = doc! { "_id": 10 + round, "host": host.as_str() };
            with_members(&set, |mut all| {
                if !all.iter().any(is_out) {
                    all.push(back.clone().into());
                }
                all
            })
            .await;
            set.settled().await;
            commit(&set, 2 * round + 1).await;
            step_down(&set, p).await;
            set.settled().await;
            let at = set.primary().await;
            assert_eq!(count(&mut set.connect(at).await).await, i64::from(2 * round + 2), "round {round}");
        }
        set.shut_down().await;
    });
}

#[test]
fn a_new_primary_drops_what_unfinished_commands_left() {
    run(async {
        let set = impatient().await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        for part in 0..4 {
            let many: Vec<Bson> = (0..5000).map(|i| doc! { "_id": part * 5000 + i }.into()).collect();
            let mut bulk = doc! { "insert": "c", "writeConcern": { "w": 3, "wtimeout": 30_000 } };
            bulk.push("documents", many);
            c.ok(bulk).await;
        }
        let mut writer = set.connect(p).await;
        let out = doc! { "aggregate": "c", "pipeline": [{ "$out": "d" }], "cursor": {} };
        let writing = pando_testserver::spawn(async move { writer.run(out).await });
        // Held between two of its batches.
        let temporary = async |set: &Set, i: usize| {
            let mut c = set.connect(i).await;
            let all = c.all(anywhere(doc! { "listCollections": 1 })).await;
            all.iter().any(|d| at(d, "name").and_then(Bson::as_str).is_some_and(|n| n.starts_with("tmp.")))
        };
        set.until("a temporary collection", async |set| temporary(set, p).await).await;
        c.admin(doc! { "fsync": 1, "lock": true }).await;
        assert!(temporary(&set, p).await);
        let forced = doc! { "replSetStepDown": 60, "secondaryCatchUpPeriodSecs": 0, "force": true };
        c.admin(forced).await;
        assert!(!is(&writing.await.unwrap(), "ok"));
        let heir = set.primary().await;
        assert_ne!(heir, p);
        set.connect(p).await.admin(doc! { "fsyncUnlock": 1 }).await;
        for i in 0..3 {
            set.until("it is gone", async |set| !temporary(set, i).await).await;
        }
        set.shut_down().await;
    });
}
