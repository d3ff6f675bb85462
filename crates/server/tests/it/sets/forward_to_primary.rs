//! Writing aggregations that a driver sends where its reads go.

use crate::sets::words::*;
use pando_base::Timestamp;
use pando_bson::{Binary, Bson, Document, doc};
use pando_testserver::{Set, run};

fn clock_of(reply: &Document) -> Timestamp {
    let time = reply.get("$clusterTime").and_then(Bson::as_doc).and_then(|t| t.get("clusterTime"));
    match time {
        Some(Bson::Timestamp(ts)) => *ts,
        other => panic!("{other:?} in {reply:?}"),
    }
}

fn on_secondaries(mut command: Document) -> Document {
    command.push("$readPreference", doc! { "mode": "secondary" });
    command
}

#[test]
fn a_secondary_has_the_primary_write_what_an_aggregation_says() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        let (mut primary, mut secondary) = (set.connect(p).await, set.connect((p + 1) % 3).await);
        primary.ok(insert(1, doc! { "w": 3 })).await;
        primary.ok(insert(2, doc! { "w": 3 })).await;
        let out = |stage: Document| {
            let mut d = Document::new();
            d.push("aggregate", "c");
            d.push("pipeline", Bson::Array(vec![Bson::Document(stage)]));
            d.push("cursor", doc! {});
            d.push("writeConcern", doc! { "w": 3 });
            on_secondaries(d)
        };
        secondary.ok(out(doc! { "$out": "copy" })).await;
        secondary.ok(out(doc! { "$merge": { "into": "merged" } })).await;
        for name in ["copy", "merged"] {
            let n = secondary.ok(on_secondaries(doc! { "count": name })).await;
            assert_eq!(number(&n, "n"), 2, "{name}: {n:?}");
        }
        let (code, text) = secondary.err(out(doc! { "$merge": { "into": "merged", "on": "k" } })).await;
        assert_eq!(code, 51183, "what the primary says: {text}");
        set.shut_down().await;
    });
}

fn merge() -> Document {
    let stage = Bson::Array(vec![Bson::Document(doc! { "$merge": { "into": "merged" } })]);
    on_secondaries(doc! { "aggregate": "c", "pipeline": stage, "cursor": {} })
}

#[test]
fn labels_and_details_of_the_primarys_failure_reach_the_client() {
    run(async {
        let set = Set::of(2).await;
        let p = set.primary().await;
        let (mut primary, mut secondary) = (set.connect(p).await, set.connect(1 - p).await);
        primary
            .ok(doc! { "create": "merged", "validator": { "a": { "$lt": 5 } }, "writeConcern": { "w": 2 } })
            .await;
        primary
            .ok(doc! { "insert": "c", "documents": [{ "_id": 1, "a": 9 }], "writeConcern": { "w": 2 } })
            .await;
        let failed = secondary.run(merge()).await;
        assert_eq!(number(&failed, "code"), 121, "{failed:?}");
        let info = failed.get("errInfo").and_then(Bson::as_doc);
        assert_eq!(info.and_then(|i| i.get("failingDocumentId")), Some(&Bson::Int32(1)), "{failed:?}");

        let label = doc! {
            "configureFailPoint": "failCommand", "mode": "alwaysOn",
            "data": { "failCommands": ["aggregate"], "failInternalCommands": true, "errorCode": 8, "errorLabels": ["Odd"] }
        };
        primary.admin(label).await;
        let failed = secondary.run(merge()).await;
        assert_eq!(failed.get("errorLabels"), Some(&Bson::Array(vec!["Odd".into()])), "{failed:?}");
        primary.admin(doc! { "configureFailPoint": "failCommand", "mode": "off" }).await;
        set.shut_down().await;
    });
}

#[test]
fn the_cluster_time_goes_to_the_primary_and_comes_back_even_with_a_failure() {
    run(async {
        let set = Set::of(2).await;
        let p = set.primary().await;
        let (mut primary, mut secondary) = (set.connect(p).await, set.connect(1 - p).await);
        let now = clock_of(&primary.ok(insert(1, doc! { "w": 2 })).await);
        let told = |secs: u32| {
            let zeros = Bson::Binary(Binary { subtype: 0, bytes: vec![0; 20] });
            let signature = doc! { "hash": zeros, "keyId": 0_i64 };
            let time = doc! { "clusterTime": Timestamp::new(now.secs() + secs, 1), "signature": signature };
            doc! { "ping": 1, "$db": "admin", "$clusterTime": time }
        };
        assert!(clock_of(&secondary.ok(told(200)).await).secs() >= now.secs() + 200);
        let before = clock_of(&primary.ok(doc! { "ping": 1 }).await);
        assert!(before.secs() < now.secs() + 200, "nothing else takes it there: {before}");
        secondary.ok(merge()).await;
        let there = clock_of(&primary.ok(doc! { "ping": 1 }).await);
        assert!(there.secs() >= now.secs() + 200, "{there}");

        primary.ok(told(400)).await;
        let mut bad = merge();
        bad.set(
            "pipeline",
            Bson::Array(vec![Bson::Document(doc! { "$merge": { "into": "merged", "on": "k" } })]),
        );
        let failed = secondary.run(bad).await;
        assert_eq!(number(&failed, "code"), 51183);
        assert!(clock_of(&failed).secs() >= now.secs() + 400, "{failed:?}");
        set.shut_down().await;
    });
}
