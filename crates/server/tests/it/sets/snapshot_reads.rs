//! Reads of the data as of one time.

use crate::sets::words::*;
use pando_bson::{Bson, Document, doc};
use pando_testserver::run;

#[test]
fn a_snapshot_of_a_time_waits_until_a_majority_has_everything_up_to_it() {
    run(async {
        let (set, p, s, mut c) = held_back().await;
        let written = c.ok(insert(1, doc! { "w": 1 })).await;
        let field = |name: &str| written.get(name).unwrap().clone();
        let read = |limit: i32| {
            let mut concern = doc! { "level": "snapshot" };
            concern.push("atClusterTime", field("operationTime"));
            let mut find = anywhere(doc! { "find": "c", "maxTimeMS": limit });
            find.push("readConcern", concern);
            find.push("$clusterTime", field("$clusterTime"));
            find
        };
        for i in [p, s[0]] {
            let reply = set.connect(i).await.run(read(400)).await;
            assert_eq!(code(&reply), 50, "member {i}: {reply:?}");
        }
        for i in &s {
            set.fail_point(*i, "stopReplProducer", false).await;
        }
        for i in [p, s[0], s[1]] {
            let reply: Document = set.connect(i).await.ok(read(30_000)).await;
            let found = at(&reply, "cursor.firstBatch").and_then(Bson::as_array).map(<[Bson]>::len);
            assert_eq!(found, Some(2), "member {i}: {reply:?}");
        }
        set.shut_down().await;
    });
}
