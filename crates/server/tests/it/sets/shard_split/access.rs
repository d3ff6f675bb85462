//! What tenants may do while their split stands still at one of its steps.

use super::*;
use pando_testserver::run;

/// Steps before which a split is held: its document says `aborting index builds`; writes are blocked; it says `blocking`.
const BUILDS: usize = 3;
const BLOCKED: usize = 5;
const BLOCKING: usize = 6;
const DECIDED: usize = 8;

async fn now(c: &mut Client) -> Bson {
    let reply = c.ok(doc! { "ping": 1 }).await;
    at(&reply, "$clusterTime.clusterTime").expect("a time").clone()
}
fn after(mut command: Document, time: &Bson) -> Document {
    let mut concern = Document::new();
    concern.push("afterClusterTime", time.clone());
    command.push("readConcern", concern);
    command
}
fn linearizable(mut command: Document) -> Document {
    command.push("readConcern", doc! { "level": "linearizable" });
    command
}
fn index(db: &str) -> Document {
    doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }], "$db": db }
}

#[test]
fn index_builds_wait_from_the_first_state_on_and_nothing_else() {
    run(async {
        let d = Donor::start().await;
        let mut c = d.client().await;
        c.ok(put("acme_db", 1)).await;
        c.ok(put("other_db", 1)).await;
        let (p, task) = d.held(BUILDS).await;
        let ops = c.ok(doc! { "currentOp": 1, "desc": "shard split operation", "$db": "admin" }).await;
        let ops = at(&ops, "inprog").and_then(Bson::as_array).expect("operations").to_vec();
        let state = ops.first().and_then(|op| op.as_doc()?.get("state"));
        assert_eq!(state, Some(&"aborting index builds".into()), "{ops:?}");
        assert_eq!(code(&c.run(briefly(index("acme_db"))).await), 50);
        c.ok(index("other_db")).await;
        c.ok(put("acme_db", 2)).await;
        c.ok(look("acme_db")).await;
        let waits = {
            let mut c = d.client().await;
            spawn(async move { c.run(index("acme_db")).await })
        };
        pause(50).await;
        d.go_on(p).await;
        let reply = task.await.expect("it ends");
        assert_eq!(reply.get("state"), Some(&"committed".into()), "{reply:?}");
        assert_eq!(code(&waits.await.expect("it ends")), 321);
        d.done().await;
    });
}

#[test]
fn writes_wait_without_a_place_in_the_log_before_the_document_says_so() {
    run(async {
        let d = Donor::start().await;
        let mut c = d.client().await;
        c.ok(put("acme_db", 1)).await;
        c.ok(put("other_db", 0)).await;
        let (p, task) = d.held(BLOCKED).await;
        assert_eq!(code(&c.run(briefly(put("acme_db", 2))).await), 50);
        // A slot that is held would let nothing behind it reach a majority.
        let waits: Vec<_> = (10..20)
            .map(|id| {
                let set = d.set.host(p);
                let port = set.rsplit(':').next().and_then(|p| p.parse().ok()).expect("a port");
                spawn(async move { Client::connect(port).await.run(put("acme_db", id)).await })
            })
            .collect();
        pause(50).await;
        for id in 1..20 {
            c.ok(put("other_db", id)).await;
        }
        c.ok(look("acme_db")).await;
        d.go_on(p).await;
        assert_eq!(task.await.expect("it ends").get("state"), Some(&"committed".into()));
        for waits in waits {
            assert_eq!(code(&waits.await.expect("it ends")), 321);
        }
        let new = d.new_primary().await;
        let there = d.set.connect(new).await.all(look("acme_db")).await;
        assert_eq!(there.len(), 1, "{there:?}");
        d.done().await;
    });
}

#[test]
fn reads_of_the_time_of_blocking_wait_and_those_of_before_do_not() {
    run(async {
        let d = Donor::start().await;
        let mut c = d.client().await;
        c.ok(put("acme_db", 1)).await;
        c.ok(put("other_db", 1)).await;
        let before = now(&mut c).await;
        let (p, task) = d.held(BLOCKING).await;
        let behind = now(&mut c).await;
        c.ok(look("acme_db")).await;
        c.ok(after(look("acme_db"), &before)).await;
        c.ok(linearizable(look("acme_db"))).await;
        c.ok(after(look("other_db"), &behind)).await;
        assert_eq!(code(&c.run(briefly(after(look("acme_db"), &behind))).await), 50);
        let stream = doc! {
            "aggregate": "c", "pipeline": [{ "$changeStream": {} }], "cursor": {}, "$db": "acme_db"
        };
        assert_eq!(code(&c.run(briefly(stream)).await), 50);
        assert_eq!(code(&c.run(briefly(put("acme_db", 2))).await), 50);
        // On other members, too, as soon as they know.
        for i in (0..3).filter(|i| *i != p) {
            let mut c = d.set.connect(i).await;
            c.ok(anywhere(look("acme_db"))).await;
            c.ok(anywhere(after(look("acme_db"), &before))).await;
            c.ok(anywhere(after(look("other_db"), &behind))).await;
            assert_eq!(code(&c.run(briefly(anywhere(after(look("acme_db"), &behind)))).await), 50);
        }
        let waits = {
            let (mut c, command) = (d.client().await, after(look("acme_db"), &behind));
            spawn(async move { c.run(command).await })
        };
        pause(50).await;
        d.go_on(p).await;
        assert_eq!(task.await.expect("it ends").get("state"), Some(&"committed".into()));
        assert_eq!(code(&waits.await.expect("it ends")), 321);
        let status = c.ok(doc! { "serverStatus": 1, "$db": "admin" }).await;
        for (path, least) in [
            ("shardSplits.totalCommitted", 1),
            ("tenantMigrationAccessBlocker.numBlockedReads", 2),
            ("tenantMigrationAccessBlocker.numBlockedWrites", 1),
            ("tenantMigrationAccessBlocker.numTenantMigrationCommittedErrors", 1),
        ] {
            assert!(number(&status, path) >= least, "{path} {status:?}");
        }
        assert_eq!(code(&c.run(linearizable(look("acme_db"))).await), 321);
        d.done().await;
    });
}

#[test]
fn cursors_are_read_to_their_end_and_streams_go_on_elsewhere() {
    run(async {
        let d = Donor::start().await;
        let mut c = d.client().await;
        for id in 0..5 {
            c.ok(put("acme_db", id)).await;
        }
        let first = c.ok(doc! { "find": "c", "batchSize": 2, "$db": "acme_db" }).await;
        let stream = doc! {
            "aggregate": "c", "pipeline": [{ "$changeStream": {} }], "cursor": {}, "$db": "acme_db"
        };
        let stream = c.ok(stream).await;
        assert_eq!(d.split(1, &["acme"]).await.get("state"), Some(&"committed".into()));
        let more = |reply: &Document| {
            let id = at(reply, "cursor.id").expect("a cursor").clone();
            let mut more = Document::new();
            more.push("getMore", id);
            more.push("collection", "c");
            more.push("$db", "acme_db");
            more
        };
        let rest = c.ok(more(&first)).await;
        assert_eq!(at(&rest, "cursor.nextBatch").and_then(Bson::as_array).map(<[Bson]>::len), Some(3));
        let gone = c.run(more(&stream)).await;
        assert_eq!(code(&gone), 367, "{gone:?}");
        let labels = gone.get("errorLabels").and_then(Bson::as_array).map(<[Bson]>::to_vec);
        assert!(labels.is_some_and(|l| l.contains(&"ResumableChangeStreamError".into())), "{gone:?}");
        d.done().await;
    });
}

#[test]
fn transactions_of_blocked_tenants_wait_when_they_commit() {
    run(async {
        let d = Donor::start().await;
        let mut c = d.client().await;
        c.ok(put("acme_db", 1)).await;
        c.ok(put("other_db", 1)).await;
        let begin = |db: &str, session: u8| {
            let insert = doc! { "insert": "c", "documents": [{ "_id": 100 }], "$db": db };
            within(insert, session, 1, true)
        };
        c.ok(begin("acme_db", 51)).await;
        c.ok(begin("other_db", 52)).await;
        let (p, task) = d.held(DECIDED).await;
        let waits = {
            let (mut c, command) = (d.client().await, commit(51, 1));
            spawn(async move { c.run(command).await })
        };
        c.ok(commit(52, 1)).await;
        pause(50).await;
        assert!(!waits.is_finished());
        d.go_on(p).await;
        assert_eq!(task.await.expect("it ends").get("state"), Some(&"committed".into()));
        let refused = waits.await.expect("it ends");
        assert_eq!(code(&refused), 321, "{refused:?}");
        let labels = refused.get("errorLabels").and_then(Bson::as_array).map(<[Bson]>::to_vec);
        assert!(labels.is_some_and(|l| l.contains(&"TransientTransactionError".into())), "{refused:?}");
        let new = d.new_primary().await;
        assert_eq!(d.set.connect(new).await.all(look("acme_db")).await.len(), 1, "nothing of it is there");
        d.done().await;
    });
}

/// Whoever is told that the tenant is elsewhere goes on there, behind what was done.
#[test]
fn a_batch_that_is_cut_off_says_what_it_has_done() {
    run(async {
        let d = Donor::start().await;
        let mut c = d.client().await;
        let docs: Vec<Bson> = (0..3000).map(|id| doc! { "_id": id, "n": 0 }.into()).collect();
        let mut insert = doc! { "insert": "c", "$db": "acme_db", "writeConcern": majority() };
        insert.push("documents", docs);
        c.ok(insert).await;
        let (p, task) = d.held(4).await;
        let batch = {
            let mut c = d.client().await;
            let one = |id: i32| Bson::from(doc! { "q": { "_id": id }, "u": { "$inc": { "n": 1 } } });
            let mut update = doc! { "update": "c", "$db": "acme_db", "writeConcern": { "w": 1 } };
            update.push("updates", (0..3000).map(one).collect::<Vec<_>>());
            spawn(async move { c.run(update).await })
        };
        pause(60).await;
        d.go_on(p).await;
        assert_eq!(task.await.expect("it ends").get("state"), Some(&"committed".into()));
        let reply = batch.await.expect("it ends");
        let new = d.new_primary().await;
        let mut c = d.set.connect(new).await;
        let done = number(&c.ok(doc! { "count": "c", "query": { "n": 1 }, "$db": "acme_db" }).await, "n");
        match code(&reply) {
            0 => assert_eq!(number(&reply, "n"), done, "{reply:?}"),
            321 => assert_eq!(done, 0, "{reply:?}"),
            _ => panic!("{reply:?}"),
        }
        if done < 3000 && code(&reply) == 0 {
            let errors = reply.get("writeErrors").and_then(Bson::as_array).expect("an error").to_vec();
            let first = errors[0].as_doc().expect("an error");
            assert_eq!((errors.len(), number(first, "index"), code(first)), (1, done, 321), "{reply:?}");
        }
        d.done().await;
    });
}
