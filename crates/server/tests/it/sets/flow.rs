//! Flow control: a primary waits for a majority that cannot follow.

use crate::sets::words::*;
use pando_bson::{Bson, Document, doc};
use pando_testserver::{Set, run};
use std::time::{Duration, Instant};

async fn flow(set: &Set, p: usize) -> Document {
    let status = set.connect(p).await.admin(doc! { "serverStatus": 1 }).await;
    at(&status, "flowControl").unwrap().as_doc().unwrap().clone()
}

#[test]
fn a_majority_that_stands_still_slows_the_primary_and_frees_it_again() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        let parameters = doc! {
            "setParameter": 1, "flowControlTargetLagSeconds": 2, "flowControlMinTicketsPerSecond": 5
        };
        c.admin(parameters).await;
        c.ok(insert(0, doc! { "w": 3, "wtimeout": 30_000 })).await;
        assert_eq!(number(&flow(&set, p).await, "targetRateLimit"), 1_000_000_000);
        for s in set.secondaries().await {
            set.fail_point(s, "stopReplProducer", true).await;
        }
        c.ok(insert(1, doc! { "w": 1 })).await;
        let mut id = 1;
        set.until("a slow primary", async |set| {
            let now = flow(set, p).await;
            now.get("isLagged") == Some(&Bson::Boolean(true)) && number(&now, "targetRateLimit") == 5
        })
        .await;
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(3) {
            id += 1;
            c.ok(insert(id, doc! { "w": 1 })).await;
        }
        assert!(id <= 40, "{id} writes in three seconds at 5 each");
        let now = flow(&set, p).await;
        assert!(number(&now, "timeAcquiringMicros") > 500_000, "{now:?}");
        assert!(number(&now, "isLaggedCount") >= 1 && number(&now, "isLaggedTimeMicros") > 1_000_000);
        for s in set.secondaries().await {
            set.fail_point(s, "stopReplProducer", false).await;
        }
        set.until("a free primary", async |set| number(&flow(set, p).await, "targetRateLimit") > 1000).await;
        // Switched off, nothing is counted.
        c.admin(doc! { "setParameter": 1, "enableFlowControl": false }).await;
        set.until("no limit", async |set| number(&flow(set, p).await, "targetRateLimit") == 1_000_000_000)
            .await;
        set.shut_down().await;
    });
}
