//! What observers of writes are told of transactions and rollbacks, on every member.

use crate::sets::prepared::{abort, commit, prepare, prepared_at, put, within};
use crate::sets::words::*;
use pando_access::observer::{OpObserver, Origin, RolledBack, TxnAborted, TxnCommitted, TxnPrepared};
use pando_bson::doc;
use pando_testserver::{Set, is, run};
use std::sync::{Arc, Mutex};

/// Writes down what it is told.
#[derive(Default)]
struct Scribe(Mutex<Vec<String>>);

impl Scribe {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
    /// What was told of a session's transaction.
    fn of(&self, session: u8) -> Vec<String> {
        let prefix = format!("{session}: ");
        self.lines().iter().filter_map(|l| l.strip_prefix(&prefix).map(str::to_owned)).collect()
    }
}

impl OpObserver for Scribe {
    fn watches_transactions(&self) -> bool {
        true
    }
    fn prepared(&self, e: &TxnPrepared<'_>) {
        self.note(format!("{}: prepared {:?} {}", e.id.0.id[0], e.origin, e.writes.operations));
    }
    fn committed(&self, e: &TxnCommitted<'_>) {
        assert!(e.prepare.is_none_or(|at| at <= e.commit && e.commit <= e.at.ts), "{e:?}");
        let was = if e.prepare.is_some() { "prepared, " } else { "" };
        self.note(format!("{}: {was}committed {:?} {}", e.id.0.id[0], e.origin, e.writes.operations));
    }
    fn aborted(&self, e: &TxnAborted<'_>) {
        assert_eq!(e.prepare.is_some(), e.at.is_some(), "{e:?}");
        let was = if e.prepare.is_some() { "prepared, " } else { "" };
        self.note(format!("{}: {was}aborted {:?} {}", e.id.0.id[0], e.origin, e.writes.operations));
    }
    fn rolled_back(&self, e: &RolledBack<'_>) {
        let ids: usize = e.ids.values().map(|of_ns| of_ns.len()).sum();
        let namespaces = Vec::from_iter(e.namespaces.iter().map(String::as_str)).join(",");
        self.note(format!(
            "rolled back {namespaces} {ids} of {} sessions, config: {}, identity: {}",
            e.sessions.len(),
            e.config,
            e.shard_identity
        ));
        assert!(!e.to.is_null() && !e.ids_incomplete);
    }
}

fn watched(set: &Set, n: usize) -> Vec<Arc<Scribe>> {
    let scribe = |i| {
        let scribe = Arc::new(Scribe::default());
        set.server(i).access.maintenance().add_observer(scribe.clone());
        scribe
    };
    (0..n).map(scribe).collect()
}

/// A transaction of two documents that exist.
async fn open(c: &mut pando_testserver::Client, session: u8) {
    c.ok(within(put(1, 10 * i32::from(session)), session, true)).await;
    c.ok(within(put(2, 10 * i32::from(session)), session, false)).await;
}

#[test]
fn each_event_of_a_transaction_is_told_once_on_every_member() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        for id in 1..3 {
            c.ok(insert(id, doc! { "w": 3, "wtimeout": 30_000 })).await;
        }
        let scribes = watched(&set, 3);
        // Prepared and committed, prepared and aborted, committed at once, given up.
        open(&mut c, 1).await;
        let at = prepared_at(&c.ok(prepare(1)).await);
        c.ok(commit(1, at)).await;
        open(&mut c, 2).await;
        c.ok(prepare(2)).await;
        c.ok(abort(2)).await;
        open(&mut c, 3).await;
        let all = doc! { "w": 3, "wtimeout": 30_000 };
        c.ok(within(doc! { "commitTransaction": 1, "$db": "admin", "writeConcern": all }, 3, false)).await;
        open(&mut c, 4).await;
        c.ok(within(doc! { "abortTransaction": 1, "$db": "admin" }, 4, false)).await;
        let story = |origin: &str| {
            [
                vec![format!("prepared {origin} 2"), format!("prepared, committed {origin} 2")],
                vec![format!("prepared {origin} 2"), format!("prepared, aborted {origin} 2")],
                vec![format!("committed {origin} 2")],
            ]
        };
        for (i, scribe) in scribes.iter().enumerate() {
            let origin = if i == p { Origin::Command } else { Origin::Entry };
            let told = [1, 2, 3].map(|session| scribe.of(session));
            assert_eq!(told, story(&format!("{origin:?}")), "on member {i}");
            let given_up: &[&str] = if i == p { &["aborted Command 2"] } else { &[] };
            assert_eq!(scribe.of(4), given_up, "on member {i}");
        }
        set.shut_down().await;
    });
}

#[test]
fn a_decision_by_the_next_primary_is_told_once_on_the_one_before() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        for id in 1..3 {
            c.ok(insert(id, doc! { "w": 3, "wtimeout": 30_000 })).await;
        }
        let scribes = watched(&set, 3);
        open(&mut c, 1).await;
        let at = prepared_at(&c.ok(prepare(1)).await);
        set.until("prepared everywhere", async |_| scribes.iter().all(|s| !s.of(1).is_empty())).await;
        c.admin(doc! { "replSetStepDown": 60, "force": true }).await;
        set.until("a successor", async |set| set.primary().await != p).await;
        let next = set.primary().await;
        let mut c = set.connect(next).await;
        set.until("it commits", async |set| {
            let mut c = set.connect(next).await;
            code(&c.run(commit(1, at)).await) == 0
        })
        .await;
        c.ok(commit(1, at)).await;
        for (i, scribe) in scribes.iter().enumerate() {
            let origin = |here: usize| if i == here { Origin::Command } else { Origin::Entry };
            let story =
                [format!("prepared {:?} 2", origin(p)), format!("prepared, committed {:?} 2", origin(next))];
            assert_eq!(scribe.of(1), story, "on member {i}");
        }
        set.shut_down().await;
    });
}

#[test]
fn a_rollback_is_told_once_and_what_is_prepared_again_behind_it() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        without_catching_up(&set, p).await;
        let mut c = set.connect(p).await;
        for id in 1..3 {
            c.ok(insert(id, doc! { "w": 3, "wtimeout": 30_000 })).await;
        }
        let scribes = watched(&set, 3);
        open(&mut c, 1).await;
        c.ok(prepare(1)).await;
        set.until("prepared everywhere", async |_| scribes.iter().all(|s| !s.of(1).is_empty())).await;
        let rest: Vec<usize> = (0..3).filter(|i| *i != p).collect();
        for i in &rest {
            set.fail_point(*i, "stopReplProducer", true).await;
        }
        // What nobody else has: three documents, one of the server's own, and a retryable write.
        c.ok(
            doc! { "insert": "lone", "documents": [{ "_id": 7 }, { "_id": 8 }], "writeConcern": { "w": 1 } },
        )
        .await;
        let own = doc! { "insert": "settings", "documents": [{ "_id": "x" }], "writeConcern": { "w": 1 }, "$db": "config" };
        c.ok(own).await;
        let once = doc! { "insert": "lone", "documents": [{ "_id": 9 }], "writeConcern": { "w": 1 } };
        c.ok(of_session(once, 5, 1)).await;
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
        let tells = |s: &Scribe| s.lines().iter().filter(|l| l.starts_with("rolled back")).count();
        set.until("the rollback", async |_| tells(&scribes[p]) > 0).await;
        set.until("it follows", async |set| is(&set.hello(p).await, "secondary")).await;
        let lines = scribes[p].lines();
        let told: Vec<&String> = lines.iter().filter(|l| l.starts_with("rolled back")).collect();
        let [told] = told[..] else { panic!("{lines:?}") };
        assert!(told.contains("config.settings") && told.contains("test.lone"), "{told}");
        assert!(
            told.contains(" 4 of 1 sessions") && told.contains("config: true, identity: false"),
            "{told}"
        );
        assert_eq!(scribes[p].of(1), ["prepared Command 2", "prepared Replay 2"]);
        assert!(rest.iter().all(|i| tells(&scribes[*i]) == 0), "nobody else rolled back");
        set.shut_down().await;
    });
}
