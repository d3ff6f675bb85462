//! Drops in two phases, as a set does them.

use crate::sets::words::*;
use pando_bson::{Bson, doc};
use pando_testserver::{Set, is, pause, run, spawn};

#[test]
fn a_database_goes_once_a_majority_has_dropped_its_collections() {
    run(async {
        let (set, p, s, mut c) = held_back().await;
        // A wait that ends too soon: the collections are gone, the database's own entry is not written.
        let wait = doc! { "w": "majority", "wtimeout": 300 };
        let late = c.run(doc! { "dropDatabase": 1, "writeConcern": wait }).await;
        assert_eq!(code(&late), 64, "{late:?}");
        assert!(
            text(&late).starts_with("dropDatabase test failed waiting for 1 collection drop(s)"),
            "{late:?}"
        );
        c.ok(insert(1, doc! { "w": 1 })).await;
        let mut other = set.connect(p).await;
        let dropping = spawn(async move { other.run(doc! { "dropDatabase": 1 }).await });
        set.until("its collections are gone", async |set| count(&mut set.connect(p).await).await == 0).await;
        pause(100).await;
        let refused = c.run(doc! { "create": "z" }).await;
        assert_eq!(
            (code(&refused), text(&refused)),
            (215, "Cannot create collection test.z - database is in the process of being dropped.")
        );
        let failed = c.run(insert(2, doc! { "w": 1 })).await;
        let errors = at(&failed, "writeErrors").and_then(Bson::as_array).expect("an error");
        assert_eq!(errors[0].as_doc().map(code), Some(215), "{failed:?}");
        let again = c.run(doc! { "dropDatabase": 1 }).await;
        assert_eq!(
            (code(&again), text(&again)),
            (215, "The database is currently being dropped. Database: test")
        );
        assert!(!dropping.is_finished());
        for i in &s {
            set.fail_point(*i, "stopReplProducer", false).await;
        }
        let done = dropping.await.unwrap();
        assert!(is(&done, "ok"), "{done:?}");
        let entry = doc! { "find": "oplog.rs", "filter": { "o.dropDatabase": 1 }, "$db": "local" };
        assert_eq!(c.all(entry).await.len(), 1);
        c.ok(doc! { "create": "z" }).await;
        set.shut_down().await;
    });
}

#[test]
fn a_drop_of_a_database_that_is_interrupted_says_how_far_it_is_and_can_be_asked_for_again() {
    run(async {
        let (set, _, s, mut c) = held_back().await;
        let late = c.run(doc! { "dropDatabase": 1, "maxTimeMS": 300 }).await;
        assert_eq!(code(&late), 50, "{late:?}");
        assert!(
            text(&late).starts_with("dropDatabase test failed waiting for 1 collection drop(s)")
                && text(&late).ends_with(":: caused by :: operation exceeded time limit"),
            "{late:?}"
        );
        assert_eq!(count(&mut c).await, 0);
        c.ok(doc! { "create": "z", "writeConcern": { "w": 1 } }).await;
        for i in &s {
            set.fail_point(*i, "stopReplProducer", false).await;
        }
        c.ok(doc! { "dropDatabase": 1 }).await;
        let entry = doc! { "find": "oplog.rs", "filter": { "o.dropDatabase": 1 }, "$db": "local" };
        assert_eq!(c.all(entry).await.len(), 1);
        set.shut_down().await;
    });
}

#[test]
fn a_drop_that_no_majority_has_is_rolled_back_with_its_data() {
    run(async {
        let mut set = Set::of(3).await;
        let p = set.primary().await;
        let s = set.secondaries().await;
        let mut c = set.connect(p).await;
        for id in 0..50 {
            c.ok(insert(id, doc! { "w": 1 })).await;
        }
        let index = doc! { "key": { "a": 1 }, "name": "a" };
        c.ok(doc! { "createIndexes": "c", "indexes": [index] }).await;
        c.ok(insert(50, doc! { "w": 3, "wtimeout": 30_000 })).await;
        let before = c.run(doc! { "dbHash": 1 }).await;
        let rbid = number(&c.admin(doc! { "replSetGetRBID": 1 }).await, "rbid");
        // Nobody can fetch what follows; the primary has not noticed yet.
        set.stop(s[0]).await;
        set.stop(s[1]).await;
        c.ok(doc! { "drop": "c", "writeConcern": { "w": 1 } }).await;
        // The tables are brought up to date: what is not committed is kept.
        c.admin(doc! { "fsync": 1 }).await;
        let status = c.admin(doc! { "serverStatus": 1 }).await;
        assert!(number(&status, "storageEngine.dropPendingIdents") >= 3, "{status:?}");
        set.stop(p).await;
        set.restart(s[0]).await;
        set.restart(s[1]).await;
        let heir = set.primary().await;
        let mut c = set.connect(heir).await;
        c.ok(doc! { "insert": "d", "documents": [{ "_id": 1 }], "writeConcern": majority() }).await;
        set.restart(p).await;
        set.until("the old primary has rolled back", async |set| {
            let mut c = set.connect(p).await;
            let found = c.run(anywhere(doc! { "count": "d" })).await;
            is(&found, "ok") && number(&found, "n") == 1
        })
        .await;
        let mut c = set.connect(p).await;
        assert!(number(&c.admin(doc! { "replSetGetRBID": 1 }).await, "rbid") > rbid);
        assert_eq!(count(&mut c).await, 51);
        let after = c.run(anywhere(doc! { "dbHash": 1, "collections": ["c"] })).await;
        assert_eq!(at(&after, "collections.c"), at(&before, "collections.c"), "{after:?}");
        let found = c.run(anywhere(doc! { "validate": "c" })).await;
        assert!(is(&found, "valid") && number(&found, "nIndexes") == 2, "{found:?}");
        set.shut_down().await;
    });
}
