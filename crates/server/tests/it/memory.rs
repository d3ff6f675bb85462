//! How much memory the parts of an operation may take: parameters that count from the next operation on.

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, World, run};

async fn set(c: &mut Client, name: &str, n: i64) {
    let mut command = doc! { "setParameter": 1 };
    command.push(name, n);
    c.admin(command).await;
}

/// The code and text of what an aggregation without a disk comes to; 0 when nothing is wrong.
async fn told(c: &mut Client, stages: &[Document]) -> (i64, String) {
    let mut aggregate =
        doc! { "aggregate": "c", "cursor": { "batchSize": 1_000_000 }, "allowDiskUse": false };
    aggregate.push("pipeline", Bson::Array(stages.iter().cloned().map(Bson::Document).collect()));
    let reply = c.run(aggregate).await;
    let text = reply.get("errmsg").and_then(Bson::as_str).unwrap_or_default().to_owned();
    (reply.get("code").and_then(Bson::as_i64).unwrap_or(0), text)
}

#[test]
fn each_part_of_a_pipeline_heeds_its_parameter() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        for coll in ["c", "other"] {
            let docs =
                (0..300).map(|i| Bson::Document(doc! { "_id": i, "x": i, "s": "y".repeat(1000) })).collect();
            c.ok(doc! { "insert": coll, "documents": Bson::Array(docs) }).await;
        }
        let sort = || doc! { "$sort": { "s": 1 } };
        let collected = |how: Document| {
            let group = doc! { "_id": Bson::Null, "a": how };
            vec![doc! { "$unionWith": "other" }, doc! { "$group": group }, doc! { "$project": { "_id": 1 } }]
        };
        let windows =
            |of: Document| doc! { "$setWindowFields": { "sortBy": { "x": 1 }, "output": { "w": of } } };
        let all = doc! { "$sum": "$x", "window": { "documents": ["unbounded", "unbounded"] } };
        let sorted = "internalQueryMaxBlockingSortMemoryUsageBytes";
        let top_n = "internalQueryTopNAccumulatorBytes";
        let cases = [
            (sorted, vec![sort()], 292),
            (sorted, vec![doc! { "$unionWith": "other" }, sort()], 292),
            (sorted, vec![doc! { "$unionWith": { "coll": "other", "pipeline": [sort()] } }], 292),
            (sorted, vec![doc! { "$facet": { "a": [sort()] } }], 292),
            (sorted, vec![doc! { "$lookup": { "from": "other", "pipeline": [sort()], "as": "l" } }], 292),
            (sorted, vec![windows(doc! { "$sum": "$x" })], 292),
            ("internalDocumentSourceGroupMaxMemoryBytes", collected(doc! { "$push": "$s" }), 292),
            ("internalDocumentSourceSetWindowFieldsMaxMemoryBytes", vec![windows(all)], 5_643_011),
            (
                "internalQueryFacetMaxOutputDocSizeBytes",
                vec![doc! { "$facet": { "a": [{ "$limit": 100 }] } }],
                4_031_700,
            ),
            ("internalQueryMaxPushBytes", collected(doc! { "$push": "$s" }), 146),
            (
                "internalQueryMaxAddToSetBytes",
                collected(doc! { "$addToSet": { "$concat": ["$s", { "$toString": "$x" }] } }),
                146,
            ),
            (top_n, collected(doc! { "$firstN": { "n": 100, "input": "$s" } }), 146),
            (top_n, collected(doc! { "$topN": { "n": 100, "sortBy": { "x": 1 }, "output": "$s" } }), 146),
            (top_n, collected(doc! { "$maxN": { "n": 100, "input": "$x" } }), 146),
            (
                "internalQueryMaxRangeBytes",
                vec![doc! { "$project": { "r": { "$range": ["$x", 100_000] } } }],
                146,
            ),
            (
                "internalDocumentSourceDensifyMaxMemoryBytes",
                vec![doc! { "$densify": { "field": "x", "partitionByFields": ["s", "_id"],
                "range": { "step": 1, "bounds": "full" } } }],
                6_007_200,
            ),
            (
                "internalQueryMaxAllowedDensifyDocs",
                vec![doc! { "$densify": { "field": "x", "range": { "step": 1, "bounds": [0, 20_000] } } }],
                5_897_900,
            ),
        ];
        for (name, stages, code) in cases {
            let mut get = doc! { "getParameter": 1 };
            get.push(name, 1);
            let was = c.admin(get).await.get(name).and_then(Bson::as_i64).expect("a number");
            let spacious = told(&mut c, &stages).await;
            assert_eq!(spacious.0, 0, "{name}: {spacious:?}");
            let narrow = if name == top_n { 1_000 } else { 10_000 };
            set(&mut c, name, narrow).await;
            let (narrowed, text) = told(&mut c, &stages).await;
            assert_eq!(narrowed, code, "{name}: {text} for {stages:?}");
            let tells = !matches!(
                name,
                "internalDocumentSourceGroupMaxMemoryBytes"
                    | "internalDocumentSourceSetWindowFieldsMaxMemoryBytes"
            );
            assert!(!tells || text.contains(&format!("{narrow}")), "{name}: {text}");
            set(&mut c, name, was).await;
        }
        server.shut_down().await;
    });
}

#[test]
fn a_lookup_s_document_and_what_it_keeps_are_bounded_by_parameters() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }] }).await;
        for i in 0..20 {
            c.ok(doc! { "insert": "other", "documents": [{ "_id": i, "x": 1, "s": "y".repeat(1 << 20) }] })
                .await;
        }
        let join = [
            doc! { "$lookup": { "from": "other", "pipeline": [], "as": "l" } },
            doc! { "$project": { "n": { "$size": "$l" } } },
        ];
        assert_eq!(told(&mut c, &join).await.0, 0);
        let name = "internalLookupStageIntermediateDocumentMaxSizeBytes";
        let least = 16_793_600;
        let mut low = doc! { "setParameter": 1 };
        low.push(name, least - 1);
        low.push("$db", "admin");
        let (code, text) = c.err(low).await;
        assert_eq!(code, 2);
        assert!(text.ends_with("16793599 is not greater than or equal to 16793600"), "{text}");
        set(&mut c, name, least).await;
        let (code, text) = told(&mut c, &join).await;
        assert_eq!(code, 4568, "{text}");
        assert!(text.contains("exceeds 16793600 bytes"), "{text}");
        // What may not be kept is read again.
        set(&mut c, name, 100 << 20).await;
        set(&mut c, "internalDocumentSourceLookupCacheSizeBytes", 0).await;
        assert_eq!(told(&mut c, &join).await.0, 0);
        server.shut_down().await;
    });
}
