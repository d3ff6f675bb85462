//! `--serverless`: a set whose members are told no name (SYS-303).

use crate::sets::words::*;
use pando_bson::{Bson, Document, doc};
use pando_server::Config;
use pando_testserver::{Set, is, pause, run};

fn nameless(c: &mut Config) {
    (c.repl_set, c.serverless) = (None, true);
}
fn name(hello: &Document) -> Option<&str> {
    hello.get("setName").and_then(Bson::as_str)
}

#[test]
fn members_learn_the_name_of_their_set_once_and_know_it_behind_a_restart() {
    run(async {
        let mut set = Set::started_with(3, nameless).await;
        let mut c = set.connect(0).await;
        // As of any set that was not initiated.
        let hello = set.hello(0).await;
        assert_eq!((name(&hello), is(&hello, "isreplicaset")), (None, true), "{hello:?}");
        assert_eq!(code(&c.run(doc! { "replSetGetStatus": 1, "$db": "admin" }).await), 94);
        let refused = c.run(doc! { "replSetInitiate": 1, "$db": "admin" }).await;
        let text = "A config must be provided when started in serverless mode.";
        assert_eq!((code(&refused), refused.get("errmsg")), (93, Some(&text.into())));
        let drop = c.run(doc! { "drop": "c", "$db": "db" }).await;
        assert_eq!(code(&drop), 10107, "{drop:?}");

        let named = |set: &Set, name: &str, version: i32| {
            let mut config = set.config(&[doc! {}, doc! {}, doc! {}]);
            config.set("_id", name);
            config.set("version", version);
            config
        };
        c.admin(doc! { "replSetInitiate": named(&set, "learnt", 1) }).await;
        set.settled().await;
        for i in 0..3 {
            assert_eq!(name(&set.hello(i).await), Some("learnt"));
        }
        // Once.
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        let other = named(&set, "other", 2);
        let refused = c.run(doc! { "replSetReconfig": other, "force": true, "$db": "admin" }).await;
        assert_eq!(code(&refused), 93, "{refused:?}");
        let mut insert = doc! { "insert": "c", "$db": "t1_db" };
        insert.push("documents", vec![Bson::from(doc! { "_id": 1 })]);
        insert.push("writeConcern", doc! { "w": 3 });
        c.ok(insert).await;

        for i in 0..3 {
            set.kill(i).await;
        }
        for i in 0..3 {
            set.restart(i).await;
        }
        set.settled().await;
        for i in 0..3 {
            assert_eq!(name(&set.hello(i).await), Some("learnt"));
        }
        set.shut_down().await;
    });
}

/// A member that comes later, and one that is asked by a set that it is no member of.
#[test]
fn a_member_that_is_added_learns_it_from_whoever_names_it() {
    run(async {
        let set = Set::started_with(2, nameless).await;
        let mut config = set.config(&[doc! {}]);
        config.set("_id", "learnt");
        set.connect(0).await.admin(doc! { "replSetInitiate": config }).await;
        set.until("a primary", async |set| is(&set.hello(0).await, "isWritablePrimary")).await;
        assert_eq!(name(&set.hello(1).await), None);
        let mut config = set.config(&[doc! {}, doc! { "priority": 0, "votes": 0 }]);
        config.set("_id", "learnt");
        config.set("version", 2);
        // A new primary puts its term into the configuration first (109).
        let mut reply = set.reconfig(config.clone(), false).await;
        while code(&reply) == 109 {
            pause(20).await;
            reply = set.reconfig(config.clone(), false).await;
        }
        assert_eq!(code(&reply), 0, "{reply:?}");
        set.until("it is a secondary", async |set| is(&set.hello(1).await, "secondary")).await;
        assert_eq!(name(&set.hello(1).await), Some("learnt"));
        set.shut_down().await;
    });
}

/// Two of three are gone, and the third one has started without what a majority wrote while it was away.
async fn back_alone(election_timeout: i32) -> (Set, usize, [usize; 2]) {
    let mut set = Set::started_with(3, nameless).await;
    let mut config = set.config(&[doc! {}, doc! {}, doc! {}]);
    config.set("_id", "learnt");
    config.set("settings", doc! { "electionTimeoutMillis": election_timeout });
    set.connect(0).await.admin(doc! { "replSetInitiate": config }).await;
    set.settled().await;
    let p = set.primary().await;
    let late = (p + 1) % 3;
    let others = [p, (p + 2) % 3];
    let written = |n: i32, w: Bson| {
        let mut update = doc! { "update": "c", "$db": "t1_db" };
        let change = doc! { "q": doc! { "_id": 1 }, "u": doc! { "$set": doc! { "n": n } }, "upsert": true };
        update.push("updates", vec![Bson::from(change)]);
        update.push("writeConcern", doc! { "w": w });
        update
    };
    let mut c = set.connect(p).await;
    c.ok(written(1, 3.into())).await;
    set.kill(late).await;
    c.ok(written(2, "majority".into())).await;
    for i in others {
        set.kill(i).await;
    }
    set.restart(late).await;
    (set, late, others)
}
fn weakest_read(max_ms: i32) -> Document {
    doc! { "find": "c", "$db": "t1_db", "$readPreference": doc! { "mode": "nearest" }, "maxTimeMS": max_ms }
}
fn n_of(reply: &Document) -> Option<i64> {
    let batch = at(reply, "cursor.firstBatch").and_then(Bson::as_array)?;
    batch.first()?.as_doc()?.get("n")?.as_i64()
}

#[test]
fn a_member_that_was_away_shows_tenants_once_it_has_what_its_set_had() {
    run(async {
        let (mut set, late, others) = back_alone(60_000).await;
        let mut c = set.connect(late).await;
        assert!(is(&set.hello(late).await, "secondary"));
        assert_eq!(code(&c.run(weakest_read(300)).await), 50);
        // What is no tenant's is read as everywhere.
        c.ok(doc! { "find": "c", "$db": "local", "$readPreference": doc! { "mode": "nearest" } }).await;
        for i in others {
            set.restart(i).await;
        }
        let first = loop {
            let reply = c.run(weakest_read(5_000)).await;
            if code(&reply) != 50 {
                break reply;
            }
        };
        assert_eq!(n_of(&first), Some(2), "{first:?}");
        set.shut_down().await;
    });
}

#[test]
fn a_member_that_hears_of_no_primary_reads_what_it_has() {
    run(async {
        let (set, late, _) = back_alone(1_000).await;
        let read = set.connect(late).await.run(weakest_read(20_000)).await;
        assert_eq!(n_of(&read), Some(1), "{read:?}");
        set.shut_down().await;
    });
}
