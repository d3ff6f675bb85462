//! Which plan a query gets: index filters, and remembered plans that win, age and are given up.

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, World, run};

async fn fill(c: &mut Client, n: i32) {
    let docs = (0..n).map(|i| Bson::Document(doc! { "_id": i, "a": i % 10, "b": i % 7, "c": i })).collect();
    c.ok(doc! { "insert": "c", "documents": Bson::Array(docs) }).await;
    let indexes = vec![
        Bson::Document(doc! { "key": { "a": 1 }, "name": "a_1" }),
        Bson::Document(doc! { "key": { "b": 1 }, "name": "b_1" }),
    ];
    c.ok(doc! { "createIndexes": "c", "indexes": Bson::Array(indexes) }).await;
}

async fn planner(c: &mut Client, find: Document) -> Document {
    let reply = c.ok(doc! { "explain": find, "verbosity": "queryPlanner" }).await;
    reply.get("queryPlanner").and_then(Bson::as_doc).cloned().expect("a queryPlanner")
}

/// The index that a plan reads.
fn index_of(planner: &Document) -> String {
    let mut at = planner.get("winningPlan").and_then(Bson::as_doc);
    while let Some(stage) = at {
        if let Some(name) = stage.get("indexName").and_then(Bson::as_str) {
            return name.to_owned();
        }
        at = stage.get("inputStage").and_then(Bson::as_doc);
    }
    String::new()
}

async fn entries(c: &mut Client) -> Vec<Document> {
    let pipeline = vec![Bson::Document(doc! { "$planCacheStats": {} })];
    let reply = c.ok(doc! { "aggregate": "c", "pipeline": Bson::Array(pipeline), "cursor": {} }).await;
    let Some(Bson::Array(rows)) = reply.get("cursor").and_then(|c| c.as_doc()?.get("firstBatch")) else {
        panic!("{reply:?}")
    };
    rows.iter().filter_map(|r| r.as_doc().cloned()).collect()
}

#[test]
fn an_index_filter_rules_over_hints_and_survives_new_indexes() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        fill(&mut c, 50).await;
        let by_b = Bson::Array(vec![Bson::Document(doc! { "b": 1 })]);
        c.ok(doc! { "planCacheSetFilter": "c", "query": { "a": 1, "b": 1 }, "indexes": by_b }).await;
        c.ok(doc! { "createIndexes": "c", "indexes": vec![Bson::Document(doc! { "key": { "a": 1, "b": 1 }, "name": "ab" })] })
            .await;
        let hinted = doc! { "find": "c", "filter": { "b": 3, "a": 4 }, "hint": "a_1" };
        let p = planner(&mut c, hinted).await;
        assert_eq!((index_of(&p).as_str(), p.get("indexFilterSet")), ("b_1", Some(&Bson::Boolean(true))));
        let other = planner(&mut c, doc! { "find": "c", "filter": { "a": 4 } }).await;
        assert_eq!(other.get("indexFilterSet"), Some(&Bson::Boolean(false)));
        let listed = c.ok(doc! { "planCacheListFilters": "c" }).await;
        let filter = doc! { "query": { "a": 1, "b": 1 }, "sort": {}, "projection": {}, "indexes": vec![Bson::Document(doc! { "b": 1 })] };
        assert_eq!(listed.get("filters"), Some(&Bson::Array(vec![Bson::Document(filter)])));
        c.ok(doc! { "planCacheClearFilters": "c", "query": { "a": 0, "b": 0 } }).await;
        let free = planner(&mut c, doc! { "find": "c", "filter": { "a": 4, "b": 3 } }).await;
        assert_eq!(index_of(&free), "ab");
    });
}

#[test]
fn a_plan_is_remembered_at_once_used_after_a_second_win_and_forgotten_by_its_shape() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        fill(&mut c, 300).await;
        let find = doc! { "find": "c", "filter": { "a": 3, "b": 4 } };
        planner(&mut c, find.clone()).await;
        assert_eq!(entries(&mut c).await.len(), 0, "explain leaves nothing behind");
        for active in [false, true, true] {
            c.ok(find.clone()).await;
            let all = entries(&mut c).await;
            assert_eq!(all.len(), 1);
            assert_eq!(all[0].get("isActive"), Some(&Bson::Boolean(active)));
            let scores = all[0].get("candidatePlanScores");
            assert!(matches!(scores, Some(Bson::Array(s)) if s.len() == 2), "{scores:?}");
        }
        c.ok(doc! { "planCacheClear": "c", "query": { "a": 3 } }).await;
        assert_eq!(entries(&mut c).await.len(), 1, "another shape");
        c.ok(doc! { "planCacheClear": "c", "query": { "b": 1, "a": 1 } }).await;
        assert_eq!(entries(&mut c).await.len(), 0);
    });
}
