//! `$meta`: what is known of a row beside its document.

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, World, run};

fn array(items: Vec<Bson>) -> Bson {
    Bson::Array(items)
}

fn pair(x: i32, y: i32) -> Bson {
    array(vec![Bson::from(x), Bson::from(y)])
}

async fn places(c: &mut Client) {
    let docs = (0..3)
        .map(|i| Bson::Document(doc! { "_id": i, "s": "text", "at": pair(i, 0), "t": "red" }))
        .collect();
    c.ok(doc! { "insert": "c", "documents": array(docs) }).await;
    let index = |key: Document, name: &str| Bson::Document(doc! { "key": key, "name": name });
    let indexes = vec![index(doc! { "at": "2d" }, "at"), index(doc! { "t": "text" }, "t")];
    c.ok(doc! { "createIndexes": "c", "indexes": array(indexes) }).await;
}

fn shown(meta: &str) -> Document {
    doc! { "_id": 1, "d": { "$meta": meta } }
}

#[test]
fn rows_of_a_geo_search_tell_how_near_they_are() {
    run(async {
        let world = World::new();
        let server = world.start(|_| {}).await;
        let mut c = server.connect().await;
        places(&mut c).await;
        let near = doc! { "at": { "$near": pair(2, 0) } };
        let find =
            |meta: &str| doc! { "find": "c", "filter": near.clone(), "projection": shown(meta), "limit": 2 };
        let rows = c.all(find("geoNearDistance")).await;
        assert_eq!(rows[1], doc! { "_id": 1, "d": 1.0 });
        assert_eq!(c.all(find("geoNearPoint")).await[1], doc! { "_id": 1, "d": pair(1, 0) });
        let stage = doc! { "$geoNear": { "near": pair(0, 0), "key": "at", "distanceField": "x" } };
        let project = doc! { "$project": shown("geoNearDistance") };
        let stages = array(vec![Bson::Document(stage), Bson::Document(project)]);
        let rows = c.all(doc! { "aggregate": "c", "pipeline": stages, "cursor": {} }).await;
        assert_eq!(rows[2], doc! { "_id": 2, "d": 2.0 });
        let modify =
            doc! { "findAndModify": "c", "query": near, "remove": true, "fields": shown("geoNearDistance") };
        let done = c.ok(modify).await;
        assert_eq!(done.get("value"), Some(&Bson::Document(doc! { "_id": 2, "d": 0.0 })));
        server.shut_down().await;
    });
}

#[test]
fn nearness_is_refused_where_nothing_is_near_and_a_score_replaces_a_string() {
    run(async {
        let world = World::new();
        let server = world.start(|_| {}).await;
        let mut c = server.connect().await;
        places(&mut c).await;
        for meta in ["geoNearDistance", "geoNearPoint"] {
            assert_eq!(c.err(doc! { "find": "c", "projection": shown(meta) }).await.0, 40218, "{meta}");
            let stages = array(vec![Bson::Document(doc! { "$project": shown(meta) })]);
            assert_eq!(
                c.err(doc! { "aggregate": "c", "pipeline": stages, "cursor": {} }).await.0,
                40218,
                "{meta}"
            );
        }
        let sorted = doc! { "findAndModify": "c", "query": {}, "remove": true, "fields": shown("sortKey") };
        assert_eq!(c.err(sorted).await.0, 2);
        let below = doc! { "t": 0, "at": 0, "s.d": { "$meta": "textScore" } };
        let search = doc! { "$text": { "$search": "red" } };
        let rows = c.all(doc! { "find": "c", "filter": search, "projection": below, "limit": 1 }).await;
        assert!(matches!(rows[0].get("s"), Some(Bson::Document(d)) if d.get("d").is_some()), "{rows:?}");
        server.shut_down().await;
    });
}

#[test]
fn find_and_modify_shows_what_its_search_knew_of_the_document() {
    run(async {
        let world = World::new();
        let server = world.start(|_| {}).await;
        let mut c = server.connect().await;
        places(&mut c).await;
        let fields = doc! { "_id": 1, "score": { "$meta": "textScore" }, "key": { "$meta": "indexKey" }, "at": { "$meta": "recordId" } };
        let search = doc! { "$text": { "$search": "red" }, "_id": 1 };
        let change = doc! { "$set": { "t": "blue" } };
        let modify = doc! { "findAndModify": "c", "query": search, "update": change.clone(), "new": true, "fields": fields.clone() };
        let found = doc! { "_id": 1, "score": 1.1, "at": Bson::Null };
        assert_eq!(c.ok(modify).await.get("value"), Some(&Bson::Document(found)));
        let above = doc! { "_id": doc! { "$gt": 0 } };
        let modify = doc! { "findAndModify": "c", "query": above, "update": change, "fields": fields };
        let found = doc! { "_id": 1, "at": Bson::Null, "key": doc! { "_id": 1 } };
        let done = c.ok(modify).await;
        let Some(Bson::Document(value)) = done.get("value") else { panic!("{done:?}") };
        assert_eq!((value.get("key"), value.get("score")), (found.get("key"), None), "{done:?}");
        server.shut_down().await;
    });
}

#[test]
fn rows_can_be_sorted_by_distance_the_farthest_first() {
    run(async {
        let world = World::new();
        let server = world.start(|_| {}).await;
        let mut c = server.connect().await;
        places(&mut c).await;
        let by = doc! { "d": doc! { "$meta": "geoNearDistance" } };
        let near = doc! { "at": { "$near": pair(2, 0) } };
        let find = doc! { "find": "c", "filter": near, "sort": by.clone(), "projection": shown("sortKey") };
        let rows = c.all(find).await;
        assert_eq!(rows[0], doc! { "_id": 0, "d": array(vec![Bson::from(2.0)]) });
        let stage = doc! { "$geoNear": { "near": pair(2, 0), "key": "at", "distanceField": "x" } };
        let stages = array(vec![Bson::Document(stage), Bson::Document(doc! { "$sort": by.clone() })]);
        let rows = c.all(doc! { "aggregate": "c", "pipeline": stages, "cursor": {} }).await;
        assert_eq!(rows[0].get("x"), Some(&Bson::from(2.0)));
        assert_eq!(c.err(doc! { "find": "c", "sort": by }).await.0, 40218);
        server.shut_down().await;
    });
}

#[test]
fn a_sort_key_without_a_sort_is_empty_or_refused() {
    run(async {
        let world = World::new();
        let server = world.start(|_| {}).await;
        let mut c = server.connect().await;
        places(&mut c).await;
        let pipeline = |stages: Vec<Document>| {
            let stages = stages.into_iter().map(Bson::Document).collect();
            doc! { "aggregate": "c", "pipeline": array(stages), "cursor": {} }
        };
        let key = doc! { "k": doc! { "$meta": "sortKey" } };
        let rows = c.all(pipeline(vec![doc! { "$limit": 1 }, doc! { "$project": key.clone() }])).await;
        assert_eq!(rows, [doc! { "_id": 0, "k": array(Vec::new()) }]);
        assert_eq!(c.err(pipeline(vec![doc! { "$project": key.clone() }])).await.0, 2);
        let grouped = vec![doc! { "$group": doc! { "_id": "$s" } }, doc! { "$project": key }];
        assert_eq!(c.all(pipeline(grouped)).await, [doc! { "_id": "text" }]);
        server.shut_down().await;
    });
}
