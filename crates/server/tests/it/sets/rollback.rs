//! A rollback on real files.

use crate::sets::not_utf8::{named, string};
use crate::sets::words::*;
use pando_bson::{Bson, Document, RawDoc, doc};
use pando_testserver::{Set, is, run};

#[test]
fn a_primary_that_wrote_alone_rolls_back_to_its_successors_history() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        // No catching up: the successor shall not have what this one wrote last.
        without_catching_up(&set, p).await;
        let mut c = set.connect(p).await;
        c.ok(insert(1, doc! { "w": 3, "wtimeout": 30_000 })).await;
        let rest: Vec<usize> = (0..3).filter(|i| *i != p).collect();
        for i in &rest {
            set.fail_point(*i, "stopReplProducer", true).await;
        }
        let mut many: Vec<Bson> =
            (100..400).map(|i| doc! { "_id": i, "s": "x".repeat(500) }.into()).collect();
        let odd = named(b"n\xFF", string(b"\xFE"));
        many[299] = doc! { "_id": 399, "s": odd.clone() }.into();
        let mut bulk = doc! { "insert": "c", "writeConcern": { "w": 1 } };
        bulk.push("documents", many);
        c.ok(bulk).await;
        c.ok(doc! { "createIndexes": "alone", "indexes": [{ "key": { "a": 1 }, "name": "a" }],
        "writeConcern": { "w": 1 } })
            .await;
        assert_eq!(count(&mut c).await, 301);
        let forced = doc! { "replSetStepDown": 60, "secondaryCatchUpPeriodSecs": 0, "force": true };
        c.admin(forced).await;
        set.until("a successor", async |set| {
            let stood = set.connect(rest[0]).await.run(doc! { "replSetStepUp": 1, "$db": "admin" }).await;
            is(&stood, "ok") || is(&set.hello(rest[0]).await, "isWritablePrimary")
        })
        .await;
        set.until("it writes", async |set| is(&set.hello(rest[0]).await, "isWritablePrimary")).await;
        set.connect(rest[0]).await.ok(insert(2, doc! { "w": 1 })).await;
        for i in &rest {
            set.fail_point(*i, "stopReplProducer", false).await;
        }
        set.until("the rollback", async |set| {
            // It may begin between the two questions, and then it answers neither.
            let counted = set.connect(p).await.run(anywhere(doc! { "count": "c" })).await;
            is(&set.hello(p).await, "secondary") && counted.get("n").and_then(Bson::as_i64) == Some(2)
        })
        .await;
        let hash = async |i: usize| {
            set.connect(i).await.run(anywhere(doc! { "dbHash": 1 })).await.get("md5").cloned()
        };
        set.until("one history", async |_| hash(p).await == hash(rest[0]).await).await;
        let status = set.connect(p).await.admin(doc! { "serverStatus": 1 }).await;
        assert_eq!(number(&status, "metrics.repl.rollback.count"), 1);
        assert_eq!(number(&status, "metrics.repl.rollback.lastDocumentsInFiles"), 300);
        let folder = set.server(p).instance.env.disk.real_path().unwrap().join("rollback");
        let collection = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
        let file = std::fs::read_dir(collection).unwrap().next().unwrap().unwrap();
        assert!(file.metadata().unwrap().len() > 299 * 500);
        let bytes = std::fs::read(file.path()).unwrap();
        let (mut rest, mut kept) = (&bytes[..], Vec::new());
        while !rest.is_empty() {
            let doc = RawDoc::validate_prefix(rest).unwrap();
            kept.push(Document::from(doc));
            rest = &rest[doc.byte_len()..];
        }
        assert!(kept.contains(&doc! { "_id": 399, "s": odd }));
        set.shut_down().await;
    });
}
