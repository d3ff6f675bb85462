//! Stages about a collection as the first ones of sub-pipelines.

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, World, run};

/// The results, or the error's code.
async fn aggregate(c: &mut Client, coll: &str, stages: Vec<Document>) -> Result<Vec<Document>, i64> {
    let stages = Bson::Array(stages.into_iter().map(Bson::Document).collect());
    let reply = c.run(doc! { "aggregate": coll, "pipeline": stages, "cursor": {} }).await;
    if let Some(code) = reply.get("code").and_then(Bson::as_i64) {
        return Err(code);
    }
    let batch =
        reply.get("cursor").and_then(|c| c.as_doc()?.get("firstBatch")?.as_array().map(<[Bson]>::to_vec));
    Ok(batch.expect("a batch").iter().filter_map(|d| d.as_doc().cloned()).collect())
}

fn lookup(from: &str, stage: Document) -> Document {
    doc! { "$lookup": { "from": from, "pipeline": vec![Bson::Document(stage)], "as": "j" } }
}

#[test]
fn counts_and_indexes_of_another_collection_can_be_joined() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let docs = |n: i32| Bson::Array((0..n).map(|i| Bson::Document(doc! { "_id": i })).collect());
        c.ok(doc! { "insert": "c", "documents": docs(5) }).await;
        c.ok(doc! { "insert": "o", "documents": docs(1) }).await;
        c.ok(doc! { "create": "v", "viewOn": "c", "pipeline": Vec::<Bson>::new() }).await;
        let count = || doc! { "$collStats": { "count": {} } };
        let field = |rows: &[Document], path: &str| rows[0].to_raw().get_path(path).map(|v| v.to_string());
        for from in ["c", "v"] {
            let rows =
                aggregate(&mut c, "o", vec![lookup(from, count()), doc! { "$unwind": "$j" }]).await.unwrap();
            assert_eq!(field(&rows, "j.count").as_deref(), Some("5"));
        }
        let rows =
            aggregate(&mut c, "o", vec![lookup("c", doc! { "$indexStats": {} }), doc! { "$unwind": "$j" }])
                .await
                .unwrap();
        assert_eq!(field(&rows, "j.name").as_deref(), Some("\"_id_\""));
        let union = doc! { "$unionWith": { "coll": "c", "pipeline": vec![Bson::Document(count())] } };
        assert_eq!(aggregate(&mut c, "o", vec![union]).await.unwrap().len(), 2);

        let mut equal = lookup("c", count());
        let Some(Bson::Document(spec)) = equal.get_mut("$lookup") else { unreachable!() };
        spec.push("localField", "_id");
        spec.push("foreignField", "_id");
        for (stage, code) in [
            (equal, 40602),
            (lookup("missing", count()), 26),
            (lookup("missing", doc! { "$planCacheStats": {} }), 50933),
            (lookup("c", doc! { "$currentOp": {} }), 73),
            (lookup("c", doc! { "$changeStream": {} }), 51047),
            (doc! { "$facet": { "x": vec![Bson::Document(doc! { "$listSessions": {} })] } }, 73),
        ] {
            assert_eq!(aggregate(&mut c, "o", vec![stage]).await.unwrap_err(), code);
        }
    });
}

/// Asked of a real server 6.0.5: a field that some elements of an array have stands for null in the others, one that is nowhere does not, and
/// undefined is none.
#[test]
fn a_graph_lookup_finds_by_null_what_has_the_field() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let array = |items: Vec<Bson>| Bson::Array(items);
        let docs = array(vec![
            doc! { "_id": 1, "m": Bson::Null }.into(),
            doc! { "_id": 2 }.into(),
            doc! { "_id": 3, "m": 1 }.into(),
            doc! { "_id": 5, "m": array(vec![1.into(), Bson::Null]) }.into(),
            doc! { "_id": 7, "ao": array(vec![doc! { "k": "a" }.into(), doc! { "v": 5 }.into()]) }.into(),
            doc! { "_id": 8, "ao": array(vec![doc! { "v": 5 }.into()]) }.into(),
            doc! { "_id": 10, "ao": doc! { "k": Bson::Null } }.into(),
            doc! { "_id": 20, "m": Bson::Undefined }.into(),
        ]);
        c.ok(doc! { "insert": "t", "documents": docs }).await;
        c.ok(doc! { "insert": "one", "documents": array(vec![doc! { "_id": 1 }.into()]) }).await;
        for (field, wanted) in [("m", vec![1, 5]), ("ao.k", vec![7, 10]), ("nowhere", vec![])] {
            let search = doc! { "from": "t", "startWith": Bson::Null, "connectFromField": "q", "connectToField": field, "as": "a" };
            let rows = aggregate(&mut c, "one", vec![doc! { "$graphLookup": search }]).await.unwrap();
            let found = rows[0].get("a").and_then(Bson::as_array).unwrap();
            let mut ids: Vec<i64> = found
                .iter()
                .map(|d| d.as_doc().unwrap().get("_id").and_then(Bson::as_i64).unwrap())
                .collect();
            ids.sort();
            assert_eq!(ids, wanted, "{field}");
        }
    });
}
