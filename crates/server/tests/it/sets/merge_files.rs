//! A set takes the tenants of another one in by their files, on real disks: every member, whatever happens to it in between.

use crate::sets::words::*;
use pando_base::Timestamp;
use pando_bson::{Binary, Bson, Document, doc};
use pando_server::Config;
use pando_testserver::{Client, Set, is, pause, run, spawn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn nameless(c: &mut Config) {
    (c.repl_set, c.serverless) = (None, true);
}
fn uuid(n: u8) -> Bson {
    Bson::Binary(Binary { subtype: 4, bytes: vec![n; 16] })
}
fn import() -> Bson {
    uuid(7)
}
fn merge() -> Bson {
    uuid(8)
}
/// A time before all that is taken in here.
fn since() -> Bson {
    Bson::Timestamp(Timestamp::new(1, 1))
}
fn take_in_of(donor: String, backup: i64) -> Document {
    let mut ask = doc! { "_takeInCollections": import(), "donor": donor, "backup": backup };
    ask.push("migration", merge());
    ask.push("since", doc! { "ts": since(), "t": 0_i64 });
    ask.push("$db", "admin");
    ask
}
/// The donor's only member; the recipient's are 0 to 2.
const DONOR: usize = 3;
const RECIPIENT: [usize; 3] = [0, 1, 2];

struct Two {
    set: Set,
    backup: i64,
}

/// Of collections of each kind and what else a donor has.
async fn fill(c: &mut Client) {
    for (db, name) in [("acme_app", "indexes"), ("zeta_app", "other"), ("plain", "nobodys")] {
        let doc = |i: i32| {
            doc! {
                "_id": i, "a": [i % 5, i], "u": format!("u{i}"), "text": format!("wort{}", i % 4),
                "place": [f64::from(i % 90), 2.0], "at": Bson::DateTime(i64::from(i)), "pad": "x".repeat(300)
            }
        };
        let mut insert = doc! { "insert": name, "$db": db };
        insert.push("documents", (0..600).map(|i| Bson::Document(doc(i))).collect::<Vec<_>>());
        c.ok(insert).await;
    }
    c.ok(doc! {
        "createIndexes": "indexes", "$db": "acme_app", "indexes": [
            { "key": { "u": 1 }, "name": "unique", "unique": true }, { "key": { "a": 1 }, "name": "multikey" },
            { "key": { "text": "text" }, "name": "text" }, { "key": { "place": "2dsphere" }, "name": "place" },
            { "key": { "missing": 1 }, "name": "sparse", "sparse": true },
            { "key": { "later": 1 }, "name": "ttl", "expireAfterSeconds": 3600 },
        ]
    })
    .await;
    c.ok(doc! { "delete": "indexes", "deletes": [{ "q": { "_id": { "$mod": [3, 0] } }, "limit": 0 }], "$db": "acme_app" })
        .await;
    c.ok(doc! { "create": "capped", "capped": true, "size": 8192, "max": 20, "$db": "acme_app" }).await;
    c.ok(doc! { "create": "clustered", "clusteredIndex": { "key": { "_id": 1 }, "unique": true }, "$db": "acme_app" }).await;
    c.ok(
        doc! { "create": "series", "timeseries": { "timeField": "t", "metaField": "m" }, "$db": "acme_app" },
    )
    .await;
    c.ok(doc! { "create": "view", "viewOn": "indexes", "pipeline": [{ "$match": { "_id": { "$lt": 10 } } }], "$db": "acme_app" })
        .await;
    for i in 0..50 {
        c.ok(doc! { "insert": "capped", "documents": [{ "_id": 100 - i }], "$db": "acme_app" }).await;
        c.ok(doc! { "insert": "clustered", "documents": [{ "_id": i }], "$db": "acme_app" }).await;
        let t = Bson::DateTime(1000 * i64::from(i));
        c.ok(doc! { "insert": "series", "documents": [{ "t": t, "m": i % 3, "v": i }], "$db": "acme_app" })
            .await;
    }
}

impl Two {
    async fn start() -> Two {
        let set = Set::started_with(4, nameless).await;
        let mut config = set.config(&[doc! {}, doc! {}, doc! {}]);
        config.set("_id", "recipient");
        config.set(
            "settings",
            doc! { "heartbeatIntervalMillis": 250, "electionTimeoutMillis": 5000, "catchUpTimeoutMillis": 0 },
        );
        set.connect(0).await.admin(doc! { "replSetInitiate": config }).await;
        let host = set.host(DONOR);
        let config = doc! { "_id": "donor", "members": [{ "_id": 0, "host": host }] };
        set.connect(DONOR).await.admin(doc! { "replSetInitiate": config }).await;
        set.until("the donor is primary", async |set| is(&set.hello(DONOR).await, "isWritablePrimary")).await;
        let two = Two { set, backup: 0 };
        two.settled().await;
        two.client().await.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "own_app", "writeConcern": { "w": 3 } }).await;
        fill(&mut two.set.connect(DONOR).await).await;
        two.with_backup().await
    }
    async fn with_backup(mut self) -> Two {
        let opened = self.set.connect(DONOR).await.admin(doc! { "_openBackup": 1 }).await;
        self.backup = number(&opened, "backup");
        // What comes behind the checkpoint is not in it.
        let late = doc! { "insert": "indexes", "documents": [{ "_id": "late" }], "$db": "acme_app" };
        self.set.connect(DONOR).await.ok(late).await;
        let gone = doc! { "delete": "indexes", "deletes": [{ "q": { "_id": "late" }, "limit": 1 }], "$db": "acme_app" };
        self.set.connect(DONOR).await.ok(gone).await;
        self
    }
    async fn settled(&self) {
        self.set
            .until("a recipient's primary and its followers", async |set| {
                let mut primaries = 0;
                for i in RECIPIENT.into_iter().filter(|i| set.runs(*i)) {
                    let hello = set.hello(i).await;
                    match (is(&hello, "isWritablePrimary"), is(&hello, "secondary")) {
                        (true, _) => primaries += 1,
                        (_, false) => return false,
                        _ => {}
                    }
                }
                primaries == 1
            })
            .await;
    }
    async fn primary(&self) -> usize {
        for _ in 0..6000 {
            for i in RECIPIENT.into_iter().filter(|i| self.set.runs(*i)) {
                if is(&self.set.hello(i).await, "isWritablePrimary") {
                    return i;
                }
            }
            pause(10).await;
        }
        panic!("no primary of the recipient");
    }
    async fn client(&self) -> Client {
        self.set.connect(self.primary().await).await
    }
    async fn take_in(&self, member: usize) -> Document {
        let donor = self.set.host(DONOR);
        self.set.connect(member).await.run(take_in_of(donor, self.backup)).await
    }
    async fn take_in_everywhere(&self) {
        for i in RECIPIENT {
            let taken = self.take_in(i).await;
            assert!(is(&taken, "ok"), "{taken:?}");
            let collections = taken.get("collections").and_then(Bson::as_array).unwrap();
            // `indexes`, `capped`, `clustered`, the buckets, `system.views`; `other`.
            assert_eq!(collections.len(), 6, "{collections:?}");
        }
    }
    async fn publish(&self, concern: Document) -> Document {
        let ask = doc! { "_importCollections": import(), "writeConcern": concern, "$db": "admin" };
        self.client().await.run(ask).await
    }
    async fn hash(&self, member: usize, db: &str) -> Option<Bson> {
        let hash = self.set.connect(member).await.run(anywhere(doc! { "dbHash": 1, "$db": db })).await;
        hash.get("md5").cloned()
    }
    /// All members have what the donor has of its tenants, and nothing else of it.
    async fn check_same(&self) {
        self.settled().await;
        let (donor, own) = (&self.set, self.primary().await);
        for db in ["acme_app", "zeta_app"] {
            let expected = self.hash(DONOR, db).await;
            for i in RECIPIENT {
                donor.until("the tenants' documents", async |_| self.hash(i, db).await == expected).await;
            }
        }
        let own = self.hash(own, "own_app").await;
        for i in RECIPIENT {
            self.set.until("its own documents", async |_| self.hash(i, "own_app").await == own).await;
            let mut c = self.set.connect(i).await;
            let mut there = self.set.connect(DONOR).await;
            for ask in [
                doc! { "listIndexes": "indexes", "$db": "acme_app" },
                doc! { "listIndexes": "clustered", "$db": "acme_app" },
                doc! { "find": "view", "$db": "acme_app" },
                doc! { "find": "series", "sort": { "t": 1 }, "$db": "acme_app" },
                doc! { "find": "capped", "$db": "acme_app" },
                doc! { "find": "indexes", "filter": { "$text": { "$search": "wort2" } }, "sort": { "_id": 1 }, "$db": "acme_app" },
                doc! { "find": "indexes", "filter": { "u": "u77" }, "hint": "unique", "$db": "acme_app" },
                doc! { "find": "indexes", "filter": { "a": 4 }, "hint": "multikey", "sort": { "_id": 1 }, "$db": "acme_app" },
            ] {
                assert_eq!(
                    c.all(anywhere(ask.clone())).await,
                    there.all(ask.clone()).await,
                    "member {i}: {ask:?}"
                );
            }
            for name in ["indexes", "capped", "clustered", "system.buckets.series"] {
                let sound = c.run(anywhere(doc! { "validate": name, "$db": "acme_app" })).await;
                assert!(is(&sound, "valid"), "member {i}: {sound:?}");
                let size = |d: &Document| (number(d, "n"), d.get("ok").cloned());
                let counted = anywhere(doc! { "count": name, "$db": "acme_app" });
                assert_eq!(
                    size(&c.run(counted.clone()).await),
                    size(&there.run(counted).await),
                    "member {i}: {name}"
                );
            }
            let nobodys = c.run(anywhere(doc! { "count": "nobodys", "$db": "plain" })).await;
            assert_eq!(number(&nobodys, "n"), 0);
        }
    }
    /// Once a majority stands behind the publication: every member forgets, and goes on with what it has.
    async fn forget(&self) {
        let upto = self.majority_time().await;
        self.forget_of(merge(), upto).await;
    }
    /// A time that a majority has.
    async fn majority_time(&self) -> Bson {
        let mut c = self.client().await;
        let note = doc! { "update": "c", "updates": [{ "q": { "_id": "end" }, "u": { "$inc": { "n": 1 } }, "upsert": true }], "$db": "own_app", "writeConcern": majority() };
        c.ok(note).await.get("operationTime").cloned().unwrap()
    }
    /// Every member has heard it, and says that it has nothing more.
    async fn forget_of(&self, whose: Bson, upto: Bson) {
        for i in RECIPIENT {
            self.set
                .until("nothing need be remembered", async |set| {
                    let ask = doc! { "_forgetImport": whose.clone(), "upto": upto.clone(), "$db": "admin" };
                    is(&set.connect(i).await.run(ask).await, "forgotten")
                })
                .await;
        }
    }
    async fn done(self) {
        self.set.shut_down().await;
    }
}

#[test]
fn tenants_come_by_their_files_to_every_member() {
    run(async {
        let two = Two::start().await;
        // Its own clients write meanwhile.
        let ended = Arc::new(AtomicBool::new(false));
        let (until, mut own) = (ended.clone(), two.client().await);
        let writer = spawn(async move {
            let mut n = 0;
            while !until.load(Ordering::Acquire) {
                n += 1;
                own.ok(doc! { "insert": "c", "documents": [{ "_id": n + 100 }], "$db": "own_app" }).await;
            }
            n
        });
        two.take_in_everywhere().await;
        ended.store(true, Ordering::Release);
        assert!(writer.await.unwrap() > 10);
        let mut c = two.client().await;
        let seen = c.ok(doc! { "listDatabases": 1, "nameOnly": true, "$db": "admin" }).await;
        assert!(!format!("{seen:?}").contains("acme_app"), "{seen:?}");
        // Again, and another one under way or without files.
        assert!(is(&two.take_in(0).await, "ok"));
        let published = two.publish(majority()).await;
        assert_eq!(number(&published, "n"), 6, "{published:?}");
        two.check_same().await;
        two.forget().await;
        two.check_same().await;
        // From here on they are collections like any others.
        let write = doc! { "insert": "indexes", "documents": [{ "_id": 9000, "u": "new" }], "$db": "acme_app", "writeConcern": { "w": 3 } };
        c.ok(write.clone()).await;
        let twice =
            doc! { "insert": "indexes", "documents": [{ "_id": 9001, "u": "u77" }], "$db": "acme_app" };
        assert!(format!("{:?}", c.run(twice).await).contains("11000"));
        two.set
            .connect(DONOR)
            .await
            .ok(doc! { "insert": "indexes", "documents": [{ "_id": 9000, "u": "new" }], "$db": "acme_app" })
            .await;
        two.check_same().await;
        two.done().await;
    });
}

/// An earlier merge may end, or its primary's word arrive, while this one waits for its publication.
#[test]
fn what_is_forgotten_for_an_earlier_merge_is_of_that_one() {
    run(async {
        let two = Two::start().await;
        two.take_in_everywhere().await;
        let now = two.majority_time().await;
        two.forget_of(uuid(9), now).await;
        two.forget_of("all".into(), since()).await;
        for i in RECIPIENT {
            assert_eq!(two.set.server(i).imports().unwrap().len(), 1, "member {i}");
        }
        let published = two.publish(majority()).await;
        assert_eq!(number(&published, "n"), 6, "{published:?}");
        two.check_same().await;
        two.forget().await;
        for i in RECIPIENT {
            assert!(two.set.server(i).imports().unwrap().is_empty(), "member {i}");
        }
        two.done().await;
    });
}

/// What an earlier attempt had brought, and was dropped again, is not in its way.
#[test]
fn a_member_that_lags_takes_in_when_it_has_what_was_before() {
    run(async {
        let two = Two::start().await;
        let p = two.primary().await;
        let late = (p + 1) % 3;
        let mut c = two.client().await;
        c.ok(doc! { "create": "indexes", "$db": "acme_app", "writeConcern": { "w": 3 } }).await;
        two.set.fail_point(late, "rsSyncApplyStop", true).await;
        c.ok(doc! { "dropDatabase": 1, "$db": "acme_app", "writeConcern": majority() }).await;
        let hello = two.set.hello(p).await;
        let last = hello.get("lastWrite").and_then(Bson::as_doc).and_then(|w| w.get("opTime")).cloned();
        let mut ask = take_in_of(two.set.host(DONOR), two.backup);
        ask.set("since", last.expect("a last write"));
        let mut asker = two.set.connect(late).await;
        let task = spawn(async move { asker.run(ask).await });
        pause(100).await;
        two.set.fail_point(late, "rsSyncApplyStop", false).await;
        let taken = task.await.expect("an answer");
        assert!(is(&taken, "ok"), "{taken:?}");
        two.done().await;
    });
}

#[test]
fn members_that_are_killed_have_what_they_have_told() {
    run(async {
        let mut two = Two::start().await;
        two.take_in_everywhere().await;
        for i in RECIPIENT {
            two.set.abandon(i).await;
        }
        for i in RECIPIENT {
            two.set.restart(i).await;
        }
        two.settled().await;
        assert!(is(&two.publish(majority()).await, "ok"));
        two.check_same().await;
        for i in RECIPIENT {
            two.set.abandon(i).await;
        }
        for i in RECIPIENT {
            two.set.restart(i).await;
        }
        two.check_same().await;
        two.forget().await;
        for i in RECIPIENT {
            two.set.stop(i).await;
        }
        for i in RECIPIENT {
            two.set.restart(i).await;
        }
        two.check_same().await;
        two.done().await;
    });
}

/// The primary publishes alone and steps down; its successor, which has nothing of it, publishes what it has taken in itself.
#[test]
fn a_publication_that_nobody_else_has_is_rolled_back_and_comes_again() {
    run(async {
        let two = Two::start().await;
        two.take_in_everywhere().await;
        let old = two.primary().await;
        let rest: Vec<usize> = RECIPIENT.into_iter().filter(|i| *i != old).collect();
        for i in &rest {
            two.set.fail_point(*i, "stopReplProducer", true).await;
        }
        assert!(is(&two.publish(doc! { "w": 1 }).await, "ok"));
        let mut c = two.set.connect(old).await;
        let alone = doc! { "update": "indexes", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "u": "alone" } } }], "$db": "acme_app", "writeConcern": { "w": 1 } };
        c.ok(alone).await;
        c.ok(doc! { "drop": "clustered", "$db": "acme_app", "writeConcern": { "w": 1 } }).await;
        c.admin(doc! { "replSetStepDown": 60, "secondaryCatchUpPeriodSecs": 0, "force": true }).await;
        two.set
            .until("a successor", async |set| {
                let stood = set.connect(rest[0]).await.run(doc! { "replSetStepUp": 1, "$db": "admin" }).await;
                is(&stood, "ok") || is(&set.hello(rest[0]).await, "isWritablePrimary")
            })
            .await;
        two.set.until("it writes", async |set| is(&set.hello(rest[0]).await, "isWritablePrimary")).await;
        let published = two.publish(doc! { "w": 1 }).await;
        assert_eq!(number(&published, "n"), 6, "{published:?}");
        for i in &rest {
            two.set.fail_point(*i, "stopReplProducer", false).await;
        }
        two.check_same().await;
        let status = two.set.connect(old).await.admin(doc! { "serverStatus": 1 }).await;
        assert_eq!(number(&status, "metrics.repl.rollback.count"), 1);
        two.forget().await;
        two.check_same().await;
        two.done().await;
    });
}

/// One that came too late, or was started again in the middle of the copy, copies the set's data; it is never without the documents.
#[test]
fn a_member_without_the_files_copies_the_set() {
    run(async {
        let two = Two::start().await;
        let late = (two.primary().await + 1) % 3;
        for i in RECIPIENT.into_iter().filter(|i| *i != late) {
            assert!(is(&two.take_in(i).await, "ok"));
        }
        assert!(is(&two.publish(majority()).await, "ok"));
        two.set
            .until("the late one is back with all documents", async |set| {
                let hello = set.hello(late).await;
                let n = set
                    .connect(late)
                    .await
                    .run(anywhere(doc! { "count": "indexes", "$db": "acme_app" }))
                    .await;
                match n.get("n").and_then(Bson::as_i64) {
                    // Before the entry there is no collection, behind it a whole one.
                    Some(n) if n != 0 => assert_eq!(n, 400, "{n} documents while {hello:?}"),
                    _ => {}
                }
                is(&hello, "secondary") && n.get("n").and_then(Bson::as_i64) == Some(400)
            })
            .await;
        two.check_same().await;
        // It has them from another member: nothing is named here, so it would copy files once more.
        let ask = take_in_of(two.set.host(DONOR), 4711);
        assert_eq!(two.set.connect(late).await.err(ask.clone()).await.0, 43);
        assert!(is(&two.set.connect(two.primary().await).await.run(ask).await, "ok"));
        two.forget().await;
        two.done().await;
    });
}

/// It was elected before it could notice: its drain fails, and what it lacks is copied behind its next start.
#[test]
fn a_leader_without_the_files_does_not_take_itself_for_drained() {
    run(async {
        let mut two = Two::start().await;
        let old = two.primary().await;
        let late = (old + 1) % 3;
        for i in RECIPIENT.into_iter().filter(|i| *i != late) {
            assert!(is(&two.take_in(i).await, "ok"));
        }
        two.set.fail_point(late, "rsSyncApplyStop", true).await;
        assert!(is(&two.publish(majority()).await, "ok"));
        let written = |set: &Set, i: usize| set.server(i).storage.log().last();
        two.set.until("it has written all", async |set| written(set, late) == written(set, old)).await;
        two.set
            .until("it leads, and ends", async |set| {
                if set.server(late).lifecycle.fatal_error().is_some() {
                    return true;
                }
                set.connect(late).await.try_run(doc! { "replSetStepUp": 1, "$db": "admin" }).await;
                false
            })
            .await;
        let why = two.set.server(late).lifecycle.fatal_error().unwrap();
        assert!(why.contains("taken in from another set"), "{why}");
        two.set.abandon(late).await;
        two.set.restart(late).await;
        two.check_same().await;
        two.forget().await;
        two.done().await;
    });
}

#[test]
fn what_cannot_be_taken_in_is_refused() {
    run(async {
        let two = Two::start().await;
        let mut c = two.client().await;
        let (code, _) = c.err(take_in_of(two.set.host(DONOR), 4711)).await;
        assert_eq!(code, 43, "such a backup is not there");
        assert_eq!(c.err(doc! { "_takeInCollections": import(), "$db": "admin" }).await.0, 40414);
        assert_eq!(c.err(doc! { "_takeInCollections": 1, "$db": "admin" }).await.0, 2);
        let (code, text) = c.err(doc! { "_importCollections": import(), "$db": "admin" }).await;
        assert_eq!(code, 327, "{text}");
        // A tenant that is here already.
        c.ok(doc! { "insert": "other", "documents": [{ "_id": 1 }], "$db": "zeta_app", "writeConcern": { "w": 3 } }).await;
        assert_eq!(code_of(two.take_in(two.primary().await).await), 48);
        two.done().await;
    });
    run(async {
        let set = Set::of(1).await;
        let mut c = set.connect(0).await;
        let (code, text) = c.err(doc! { "_importCollections": import(), "$db": "admin" }).await;
        assert_eq!(code, 115, "{text}");
        set.shut_down().await;
    });
}

fn code_of(reply: Document) -> i64 {
    code(&reply)
}
