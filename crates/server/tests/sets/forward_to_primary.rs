//! Writing aggregations that a driver sends where its reads go.

use crate::words::*;
use pando_bson::{Bson, Document, doc};
use pando_testserver::{Set, run};

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
