//! Default write concerns and the configurations that decide them.

use crate::sets::words::*;
use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Set, is, run};

async fn defaults(set: &Set, i: usize) -> Document {
    set.connect(i).await.admin(doc! { "getDefaultRWConcern": 1 }).await
}
fn w(defaults: &Document) -> Option<&Bson> {
    at(defaults, "defaultWriteConcern.w")
}
fn bare(id: i32) -> Document {
    doc! { "insert": "c", "documents": [{ "_id": id }], "maxTimeMS": 1500 }
}

#[test]
fn with_an_arbiter_bare_writes_wait_for_nobody() {
    run(async {
        let set = Set::with(&[doc! {}, doc! { "priority": 0 }, doc! { "arbiterOnly": true }]).await;
        let p = set.primary().await;
        assert_eq!(w(&defaults(&set, p).await), None);
        set.fail_point(1, "stopReplProducer", true).await;
        set.connect(p).await.ok(bare(1)).await;
        // The arbiter holds no data, is in hello, votes, and follows the commit point.
        let hello = set.hello(2).await;
        assert!(is(&hello, "arbiterOnly") && !is(&hello, "secondary"), "{hello:?}");
        assert_eq!(at(&hello, "arbiters").and_then(Bson::as_array).map(|a| a.len()), Some(1));
        let mut arbiter = set.connect(2).await;
        let refused = arbiter.run(anywhere(doc! { "find": "c" })).await;
        assert_eq!(code(&refused), 13436, "{refused:?}");
        assert_eq!(code(&arbiter.run(doc! { "replSetStepUp": 1, "$db": "admin" }).await), 125);
        let status = arbiter.admin(doc! { "replSetGetStatus": 1 }).await;
        assert_eq!(number(&status, "myState"), 7);
        let slow = set.connect(p).await.run(insert(2, doc! { "w": "majority", "wtimeout": 300 })).await;
        assert_eq!(at(&slow, "writeConcernError.code").and_then(Bson::as_i64), Some(64), "{slow:?}");
        let many = set.connect(p).await.run(insert(3, doc! { "w": 3, "wtimeout": 300 })).await;
        assert_eq!(at(&many, "writeConcernError.code").and_then(Bson::as_i64), Some(100), "{many:?}");
        set.fail_point(1, "stopReplProducer", false).await;
        set.connect(p).await.ok(insert(4, majority())).await;
        set.until("the arbiter hears of the commit point", async |set| {
            let status = set.connect(2).await.admin(doc! { "replSetGetStatus": 1 }).await;
            number(&status, "optimes.lastCommittedOpTime.t") >= 1
        })
        .await;
        set.shut_down().await;
    });
}

#[test]
fn a_configuration_that_changes_the_implicit_default_needs_an_explicit_one_first() {
    run(async {
        let set = Set::started(4).await;
        let config = set.config(&[doc! {}, doc! {}, doc! {}]);
        set.connect(0).await.admin(doc! { "replSetInitiate": config }).await;
        set.until("a primary", async |set| is(&set.hello(0).await, "isWritablePrimary")).await;
        let found = defaults(&set, 0).await;
        assert_eq!(w(&found), Some(&Bson::from("majority")));
        assert_eq!(found.get("defaultWriteConcernSource"), Some(&Bson::from("implicit")));
        let with_arbiter = async |force: bool| {
            let mut next = set.current(0).await;
            next.set("version", number(&next, "version") + 1);
            let Some(Bson::Array(mut members)) = next.remove("members") else { panic!("no members") };
            members.push(doc! { "_id": 3, "host": set.host(3), "arbiterOnly": true }.into());
            next.push("members", members);
            set.connect(0).await.run(doc! { "replSetReconfig": next, "force": force, "$db": "admin" }).await
        };
        for force in [false, true] {
            let refused = with_arbiter(force).await;
            assert_eq!(code(&refused), 103, "{refused:?}");
            assert!(text(&refused).contains("would change the implicit default write concern"));
        }
        let set_default = doc! { "setDefaultRWConcern": 1, "defaultWriteConcern": { "w": 1 } };
        set.connect(0).await.admin(set_default).await;
        set.until("the new member's place", async |_| is(&with_arbiter(false).await, "ok")).await;
        set.until("an arbiter", async |set| is(&set.hello(3).await, "arbiterOnly")).await;
        set.shut_down().await;
    });
}

#[test]
fn an_explicit_default_holds_on_every_member_and_after_a_failover() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        for (concern, expected) in [(doc! { "w": 0 }, 2), (doc! { "w": "nosuch" }, 79)] {
            let refused = c
                .run(doc! { "setDefaultRWConcern": 1, "defaultWriteConcern": concern, "$db": "admin" })
                .await;
            assert_eq!(code(&refused), expected, "{refused:?}");
        }
        let wanted = doc! {
            "setDefaultRWConcern": 1, "defaultWriteConcern": { "w": 3, "wtimeout": 400 },
            "defaultReadConcern": { "level": "majority" }
        };
        c.admin(wanted).await;
        for i in 0..3 {
            set.until("everybody knows", async |set| {
                let found = defaults(set, i).await;
                w(&found) == Some(&Bson::Int32(3))
                    && found.get("defaultWriteConcernSource") == Some(&Bson::from("global"))
                    && at(&found, "defaultReadConcern.level") == Some(&Bson::from("majority"))
            })
            .await;
        }
        let unset = doc! { "setDefaultRWConcern": 1, "defaultWriteConcern": {}, "$db": "admin" };
        assert_eq!(code(&c.run(unset).await), 20);
        set.until("a step-down", async |set| {
            is(&set.connect(p).await.run(doc! { "replSetStepDown": 60, "$db": "admin" }).await, "ok")
        })
        .await;
        let heir = set.primary().await;
        assert_ne!(heir, p);
        let other = (0..3).find(|i| *i != p && *i != heir).unwrap();
        set.fail_point(other, "stopReplProducer", true).await;
        let slow = set.connect(heir).await.run(bare(1)).await;
        assert_eq!(at(&slow, "writeConcernError.code").and_then(Bson::as_i64), Some(64), "{slow:?}");
        let origin = at(&slow, "writeConcernError.errInfo.writeConcern.provenance");
        assert_eq!(origin, Some(&Bson::from("customDefault")));
        set.fail_point(other, "stopReplProducer", false).await;
        set.shut_down().await;
    });
}

#[test]
fn reads_that_name_no_concern_take_the_default_of_the_set() {
    run(async {
        let set = Set::with(&[doc! {}, doc! { "priority": 0, "votes": 0 }, doc! { "priority": 0 }]).await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        c.ok(insert(1, majority())).await;
        let default = doc! { "setDefaultRWConcern": 1, "defaultReadConcern": { "level": "majority" } };
        c.admin(default).await;
        for i in 1..3 {
            set.fail_point(i, "stopReplProducer", true).await;
        }
        c.ok(insert(2, doc! { "w": 1 })).await;
        let counted = async |c: &mut Client, command: Document| c.all(command).await.len();
        for read in [doc! { "find": "c" }, doc! { "aggregate": "c", "pipeline": [], "cursor": {} }] {
            assert_eq!(counted(&mut c, read.clone()).await, 1, "{read:?}");
            for (given, expected) in
                [(doc! { "level": "local" }, 2), (doc! {}, 1), (doc! { "level": "majority" }, 1)]
            {
                let mut read = read.clone();
                read.push("readConcern", given);
                assert_eq!(counted(&mut c, read.clone()).await, expected, "{read:?}");
            }
        }
        // What is only about this process goes on reading what is here.
        let ops = doc! { "aggregate": 1, "pipeline": [{ "$currentOp": {} }], "cursor": {}, "$db": "admin" };
        assert!(counted(&mut c, ops).await > 0);
        for i in 1..3 {
            set.fail_point(i, "stopReplProducer", false).await;
        }
        set.shut_down().await;
    });
}
