//! What stages read beside and write is counted as a real server counts it.

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, World, run};

/// Some counters of `serverStatus`, and how often `top` counts each collection of this test as having been commanded.
async fn counted(c: &mut Client) -> Vec<i64> {
    let status = c.admin(doc! { "serverStatus": 1 }).await;
    let number = |path: &str| {
        let found = path
            .split('.')
            .try_fold(Bson::Document(status.clone()), |at, name| at.as_doc()?.get(name).cloned());
        found.and_then(|n| n.as_i64()).unwrap_or_else(|| panic!("no {path}"))
    };
    let mut out: Vec<i64> = [
        "opcounters.insert",
        "opcounters.update",
        "opcounters.delete",
        "metrics.queryExecutor.scanned",
        "metrics.queryExecutor.scannedObjects",
        "metrics.queryExecutor.collectionScans.total",
        "metrics.document.inserted",
        "metrics.document.updated",
    ]
    .map(number)
    .to_vec();
    let top = c.admin(doc! { "top": 1 }).await;
    let totals = top.get("totals").and_then(Bson::as_doc).expect("totals");
    for coll in ["test.figures", "test.beside"] {
        let count = |d: &Document| d.get("commands")?.as_doc()?.get("count")?.as_i64();
        out.push(totals.get(coll).and_then(Bson::as_doc).and_then(count).unwrap_or(0));
    }
    out
}

#[test]
fn what_stages_read_and_write_is_counted() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        for (coll, n) in [("figures", 10), ("beside", 5), ("indexed", 7), ("target", 3)] {
            let docs = (0..n).map(|i| Bson::Document(doc! { "_id": i, "x": i })).collect();
            c.ok(doc! { "insert": coll, "documents": Bson::Array(docs) }).await;
        }
        c.ok(doc! { "createIndexes": "indexed", "indexes": [{ "key": { "x": 1 }, "name": "x_1" }] }).await;
        let aggregate = |stage: Document| doc! { "aggregate": "figures", "pipeline": [stage], "cursor": {} };
        let modify = |how: &str, v: Bson| {
            let mut d = doc! { "findAndModify": "indexed", "query": { "_id": 1 } };
            d.push(how, v);
            d
        };
        let uncorrelated =
            doc! { "from": "beside", "pipeline": [{ "$match": { "x": { "$gte": 0 } } }], "as": "l" };
        let by_index = doc! { "from": "indexed", "localField": "x", "foreignField": "x", "as": "l" };
        let merge = |matched: &str| doc! { "$merge": { "into": "target", "whenMatched": matched } };
        // insert, update, delete; keys, documents, scans; inserted, updated; commands on figures and beside: as 6.0.5 counts.
        let told = [
            (aggregate(doc! { "$match": {} }), [0, 0, 0, 0, 10, 1, 0, 0, 1, 0]),
            (aggregate(doc! { "$unionWith": "beside" }), [0, 0, 0, 0, 15, 2, 0, 0, 1, 1]),
            (aggregate(doc! { "$lookup": uncorrelated }), [0, 0, 0, 0, 15, 2, 0, 0, 1, 1]),
            (aggregate(doc! { "$lookup": by_index }), [0, 0, 0, 7, 17, 1, 0, 0, 1, 0]),
            (aggregate(doc! { "$out": "out" }), [10, 0, 0, 0, 10, 1, 10, 0, 1, 0]),
            (
                aggregate(doc! { "$merge": { "into": "new", "whenMatched": "fail" } }),
                [10, 0, 0, 0, 10, 1, 10, 0, 1, 0],
            ),
            (modify("update", Bson::Document(doc! { "$set": { "q": 1 } })), [0, 0, 0, 0, 0, 0, 0, 1, 0, 0]),
            (modify("remove", Bson::Boolean(true)), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ];
        for (command, expected) in told {
            let before = counted(&mut c).await;
            c.run(command.clone()).await;
            let after = counted(&mut c).await;
            let mut grown: Vec<i64> = after.iter().zip(&before).map(|(a, b)| a - b).collect();
            if command.contains("findAndModify") {
                // What a point lookup examines is told elsewhere.
                grown[3..6].fill(0);
            }
            assert_eq!(grown, expected, "{command:?}");
        }
        let before = counted(&mut c).await;
        c.ok(aggregate(merge("replace"))).await;
        let after = counted(&mut c).await;
        assert_eq!(
            (after[0] - before[0], after[1] - before[1]),
            (0, 10),
            "each document of a $merge is an update"
        );
        server.shut_down().await;
    });
}
