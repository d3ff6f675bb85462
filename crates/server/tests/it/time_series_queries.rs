//! Queries of time series through the whole server: what is asked of buckets never changes what comes out.

#![allow(clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Running, World, run};

const HOUR: i64 = 3_600_000;

fn at(ms: i64) -> Bson {
    Bson::DateTime(1_700_000_000_000 - 1_700_000_000_000 % HOUR + ms)
}

async fn started() -> (World, Running, Client) {
    let world = World::new();
    let server = world.start_set().await;
    let mut c = server.connect().await;
    c.ok(doc! { "create": "ts", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    (world, server, c)
}

async fn insert(c: &mut Client, docs: Vec<Document>) {
    let docs: Vec<Bson> = docs.into_iter().map(Bson::Document).collect();
    c.ok(doc! { "insert": "ts", "documents": docs }).await;
}

async fn index(c: &mut Client, key: Document, name: &str) {
    c.ok(doc! { "createIndexes": "ts", "indexes": [{ "key": key, "name": name }] }).await;
}

async fn ids(c: &mut Client, filter: &Document) -> Vec<i64> {
    let all = c.all(doc! { "find": "ts", "filter": filter.clone(), "projection": { "_id": 1 } }).await;
    let mut ids: Vec<i64> = all.iter().map(|d| d.get("_id").and_then(Bson::as_i64).unwrap()).collect();
    ids.sort_unstable();
    ids
}

/// What the filter finds among measurements that are all unpacked.
async fn ids_of_all(c: &mut Client, filter: &Document) -> Vec<i64> {
    let stages = vec![
        Bson::Document(doc! { "$limit": 1_000_000 }),
        Bson::Document(doc! { "$match": filter.clone() }),
        Bson::Document(doc! { "$sort": { "_id": 1 } }),
    ];
    let all = c.all(doc! { "aggregate": "ts", "cursor": {}, "pipeline": stages }).await;
    all.iter().map(|d| d.get("_id").and_then(Bson::as_i64).unwrap()).collect()
}

/// Buckets and keys that were looked at, and the plan.
async fn examined(c: &mut Client, filter: &Document) -> (i64, i64, String) {
    let find = doc! { "find": "ts", "filter": filter.clone() };
    let told = c.ok(doc! { "explain": find, "verbosity": "executionStats" }).await;
    let stages = told.get("stages").and_then(Bson::as_array).unwrap();
    let cursor = stages[0].as_doc().and_then(|s| s.get("$cursor")?.as_doc()).unwrap();
    let stats = cursor.get("executionStats").and_then(Bson::as_doc).unwrap();
    let of = |name: &str| stats.get(name).and_then(Bson::as_i64).unwrap();
    (of("totalDocsExamined"), of("totalKeysExamined"), format!("{:?}", cursor.get("queryPlanner")))
}

#[test]
fn an_index_on_measured_values_leads_to_few_buckets() {
    run(async {
        let (_world, server, mut c) = started().await;
        // Forty buckets, each with values of its own.
        let docs =
            (0..400).map(|i| doc! { "_id": i, "t": at(i % 10), "m": i / 10, "x": i, "o": { "p": i % 7 } });
        insert(&mut c, docs.collect()).await;
        index(&mut c, doc! { "x": 1 }, "x").await;
        index(&mut c, doc! { "o.p": -1 }, "p").await;
        for (filter, found, docs) in [
            (doc! { "x": 55 }, 1, 1),
            (doc! { "x": { "$lt": 12 } }, 12, 2),
            (doc! { "x": { "$gte": 388.0 } }, 12, 2),
            (doc! { "x": { "$gt": 100, "$lte": 110 } }, 10, 2),
            (doc! { "x": { "$in": [100, 105] } }, 2, 1),
            (doc! { "$expr": { "$eq": [397, "$x"] } }, 1, 1),
            (doc! { "x": "a" }, 0, 0),
        ] {
            assert_eq!(ids(&mut c, &filter).await.len(), found, "{filter:?}");
            let (n, _, plan) = examined(&mut c, &filter).await;
            assert!(n <= docs && plan.contains("IXSCAN"), "{filter:?}: {n} {plan}");
        }
        // One array among them, hidden between numbers and a boolean: the index may not answer any more.
        insert(
            &mut c,
            vec![
                doc! { "_id": 500, "t": at(0), "m": 77, "x": 1000 },
                doc! { "_id": 501, "t": at(0), "m": 77, "x": [5, 3000] },
                doc! { "_id": 502, "t": at(0), "m": 77, "x": true },
            ],
        )
        .await;
        assert_eq!(ids(&mut c, &doc! { "x": { "$lt": 6 } }).await, [0, 1, 2, 3, 4, 5, 501]);
        assert_eq!(ids(&mut c, &doc! { "x": 3000 }).await, [501]);
        server.shut_down().await;
    });
}

/// A small generator of numbers, so that every run asks the same.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
    fn value(&mut self, kinds: usize) -> Bson {
        match self.below(kinds) {
            0..4 => Bson::Int32(self.below(60) as i32),
            4 => Bson::Double(self.below(120) as f64 / 2.0),
            5 => Bson::String(["a", "b", ""][self.below(3)].to_owned()),
            6 => Bson::Document(doc! { "y": self.below(9) as i32 }),
            7 => Bson::Boolean(true),
            8 => Bson::Null,
            _ => Bson::Array(vec![self.value(4), self.value(8)]),
        }
    }
    fn filter(&mut self) -> Document {
        let op = ["$eq", "$gt", "$gte", "$lt", "$lte"][self.below(5)];
        let path = ["x", "x", "x.y"][self.below(3)];
        let (mut inner, mut d) = (Document::new(), Document::new());
        inner.push(op, self.value(8));
        d.push(path, Bson::Document(inner));
        if self.below(3) == 0 {
            d.push("m", self.below(9) as i32);
        }
        match self.below(4) {
            0 => {
                let both = vec![Bson::Document(d), Bson::Document(self.filter())];
                doc! { "$or": both }
            }
            _ => d,
        }
    }
}

#[test]
fn with_and_without_indexes_the_same_measurements_are_found() {
    run(async {
        // Columns of numbers only; of scalars and documents; of anything.
        for kinds in [5, 9, 11] {
            let (_world, server, mut c) = started().await;
            let mut r = Random(kinds as u64);
            index(&mut c, doc! { "x": 1 }, "up").await;
            index(&mut c, doc! { "x.y": -1 }, "down").await;
            index(&mut c, doc! { "m": 1, "x": -1 }, "with_source").await;
            let docs = (0..300).map(|i| {
                let mut d = doc! { "_id": i, "t": at(r.below(40) as i64 * HOUR / 8), "m": r.below(9) as i32 };
                if r.below(5) > 0 {
                    d.push("x", r.value(kinds));
                }
                d
            });
            insert(&mut c, docs.collect()).await;
            for _ in 0..150 {
                let filter = r.filter();
                assert_eq!(
                    ids(&mut c, &filter).await,
                    ids_of_all(&mut c, &filter).await,
                    "{kinds} {filter:?}"
                );
            }
            server.shut_down().await;
        }
    });
}

/// The values of `fields` in the order of the rows.
async fn rows(c: &mut Client, pipeline: Vec<Document>) -> Vec<Document> {
    let stages: Vec<Bson> = pipeline.into_iter().map(Bson::Document).collect();
    c.all(doc! { "aggregate": "ts", "cursor": {}, "pipeline": stages }).await
}

async fn sorts_as_it_goes(c: &mut Client, pipeline: Vec<Document>) -> bool {
    let stages: Vec<Bson> = pipeline.into_iter().map(Bson::Document).collect();
    let aggregate = doc! { "aggregate": "ts", "cursor": {}, "pipeline": stages };
    let told = c.ok(doc! { "explain": aggregate, "verbosity": "queryPlanner" }).await;
    format!("{told:?}").contains("$_internalBoundedSort")
}

#[test]
fn a_sort_by_time_gives_rows_as_buckets_come() {
    run(async {
        let (_world, server, mut c) = started().await;
        let mut r = Random(3);
        // Before 1970, in the last second that an `_id` can tell, behind it, and around now.
        let eras = [-5_000_000_000_000, 0, 4_294_967_295_000, 9_000_000_000_000];
        for (at, era) in [0, 0, 0, 0, 1, 2, 3, 4].into_iter().enumerate() {
            let start = if era == 0 { 1_700_000_000_000 } else { eras[era - 1] };
            let docs = (0..60).map(|i| {
                let t = start + r.below(60) as i64 * HOUR / 9 - 1000 * (r.below(3) as i64);
                doc! { "_id": (at * 1000 + i) as i32, "t": Bson::DateTime(t), "m": r.below(4) as i32, "x": r.below(9) as i32 }
            });
            insert(&mut c, docs.collect()).await;
        }
        let sorts = [
            (doc! { "t": 1 }, true),
            (doc! { "t": -1 }, true),
            (doc! { "m": 1, "t": 1 }, true),
            (doc! { "m": -1, "t": -1 }, true),
            (doc! { "m": 1, "t": -1 }, false),
            (doc! { "t": 1, "x": -1 }, true),
            (doc! { "x": 1, "t": 1 }, false),
        ];
        let filters = [
            doc! {},
            doc! { "x": { "$gt": 3 } },
            doc! { "m": 2 },
            doc! { "t": { "$gte": Bson::DateTime(1_700_000_000_000) } },
        ];
        for (sort, merges) in &sorts {
            for filter in &filters {
                let mut total = sort.clone();
                total.push("_id", 1);
                let wanted = rows(
                    &mut c,
                    vec![
                        doc! { "$limit": 1_000_000 },
                        doc! { "$match": filter.clone() },
                        doc! { "$sort": total.clone() },
                    ],
                )
                .await;
                let matching = doc! { "$match": filter.clone() };
                let with_ids = rows(&mut c, vec![matching.clone(), doc! { "$sort": total }]).await;
                assert_eq!(with_ids, wanted, "{sort:?} {filter:?}");
                let pipeline = || vec![matching.clone(), doc! { "$sort": sort.clone() }];
                let keys = |rows: &[Document]| -> Vec<Vec<Option<Bson>>> {
                    let names: Vec<&str> = sort.iter().map(|(k, _)| k).collect();
                    rows.iter().map(|d| names.iter().map(|n| d.get(n).cloned()).collect()).collect()
                };
                let found = rows(&mut c, pipeline()).await;
                assert_eq!(keys(&found), keys(&wanted), "{sort:?} {filter:?}");
                let mut few = pipeline();
                few.push(doc! { "$limit": 7 });
                assert_eq!(keys(&rows(&mut c, few).await), keys(&wanted)[..7.min(wanted.len())], "{sort:?}");
                if filter.is_empty() {
                    assert_eq!(sorts_as_it_goes(&mut c, pipeline()).await, *merges, "{sort:?}");
                }
            }
        }
        server.shut_down().await;
    });
}

#[test]
fn the_last_measurements_of_a_source_are_found_in_its_last_bucket() {
    run(async {
        let (_world, server, mut c) = started().await;
        let docs = (0..400).map(|i| doc! { "_id": i, "t": at(i / 4 * HOUR), "m": i % 4 });
        insert(&mut c, docs.collect()).await;
        for (filter, sort) in [
            (doc! { "m": 1 }, doc! { "t": -1 }),
            (doc! {}, doc! { "t": -1 }),
            (doc! { "m": 1 }, doc! { "t": 1 }),
            (doc! {}, doc! { "m": 1, "t": 1 }),
        ] {
            let pipeline = vec![
                Bson::Document(doc! { "$match": filter }),
                Bson::Document(doc! { "$sort": sort.clone() }),
                Bson::Document(doc! { "$limit": 1 }),
            ];
            let aggregate = doc! { "aggregate": "ts", "cursor": {}, "pipeline": pipeline };
            let told = c.ok(doc! { "explain": aggregate, "verbosity": "executionStats" }).await;
            let stages = told.get("stages").and_then(Bson::as_array).unwrap();
            let unpacked =
                stages[1].as_doc().and_then(|s| s.get("nReturned").and_then(Bson::as_i64)).unwrap();
            assert!(unpacked <= 10, "{sort:?}: {told:?}");
        }
        server.shut_down().await;
    });
}

#[test]
fn a_partial_index_on_measurements_serves_queries_that_stay_within_it() {
    run(async {
        let (_world, server, mut c) = started().await;
        let docs =
            (0..400).map(|i| doc! { "_id": i, "t": at(i % 10), "m": i / 10, "x": i, "y": i % 3, "s": "a" });
        insert(&mut c, docs.collect()).await;
        let create = |key: Document, name: &str, filter: Document| {
            let index = doc! { "key": key, "name": name, "partialFilterExpression": filter };
            doc! { "createIndexes": "ts", "indexes": [Bson::Document(index)] }
        };
        c.ok(create(doc! { "x": 1 }, "high", doc! { "x": { "$gte": 300 } })).await;
        c.ok(create(doc! { "y": 1 }, "by_source", doc! { "m": { "$lt": 5 }, "s": "a" })).await;
        assert_eq!(c.err(create(doc! { "z": 1 }, "z", doc! { "x": { "$type": "int" } })).await.0, 5_916_301);
        for (filter, found, docs) in [
            (doc! { "x": { "$gt": 350, "$lt": 360 } }, 9, 1),
            (doc! { "x": 399 }, 1, 1),
            (doc! { "x": { "$gt": 290, "$lt": 310 } }, 19, 40),
            (doc! { "y": 1, "m": 3, "s": "a" }, 3, 1),
        ] {
            assert_eq!(ids(&mut c, &filter).await, ids_of_all(&mut c, &filter).await);
            assert_eq!(ids(&mut c, &filter).await.len(), found, "{filter:?}");
            let (n, ..) = examined(&mut c, &filter).await;
            assert!(n <= docs, "{filter:?}: {n}");
        }
        let listed = c.all(doc! { "listIndexes": "ts" }).await;
        let high = listed.iter().find(|i| i.get("name") == Some(&Bson::String("high".to_owned()))).unwrap();
        let asked = Bson::Document(doc! { "x": { "$gte": 300 } });
        assert_eq!(high.get("partialFilterExpression"), Some(&asked));
        assert_eq!(high.get("originalSpec"), None);
        // Asked for again, it is the same; and it follows what is inserted and deleted.
        c.ok(create(doc! { "x": 1 }, "high", doc! { "x": { "$gte": 300 } })).await;
        insert(&mut c, vec![doc! { "_id": 900, "t": at(5), "m": 1, "x": 355 }]).await;
        let within = doc! { "x": { "$gt": 354, "$lt": 356 } };
        assert_eq!(ids(&mut c, &within).await, [355, 900]);
        c.ok(doc! { "delete": "ts", "deletes": [{ "q": { "_id": 900 }, "limit": 0 }] }).await;
        assert_eq!(ids(&mut c, &within).await, [355]);
        server.shut_down().await;
    });
}

#[test]
fn places_below_a_measured_field_are_found_by_their_index() {
    run(async {
        let (_world, server, mut c) = started().await;
        let docs = (0..100).map(|i| {
            let point = doc! { "type": "Point", "coordinates": [i as f64 / 2.0, 0.0] };
            let places = match i % 3 {
                0 => Bson::Array(vec![Bson::Document(doc! { "at": point })]),
                _ => Bson::Document(doc! { "at": point }),
            };
            let mut d = doc! { "_id": i, "t": at(0), "m": i / 5 };
            d.push("pos", places);
            d
        });
        insert(&mut c, docs.collect()).await;
        let region = doc! { "$centerSphere": [[10.0, 0.0], 0.03] };
        let filter = doc! { "pos.at": { "$geoWithin": region } };
        let wanted = ids_of_all(&mut c, &filter).await;
        assert!(wanted.len() > 4 && wanted.len() < 20, "{wanted:?}");
        assert_eq!(ids(&mut c, &filter).await, wanted);
        index(&mut c, doc! { "pos.at": "2dsphere" }, "places").await;
        assert_eq!(ids(&mut c, &filter).await, wanted);
        let (n, _, plan) = examined(&mut c, &filter).await;
        assert!(n < 10 && plan.contains("2dsphere_bucket"), "{n} {plan}");
        server.shut_down().await;
    });
}

/// Of equal numbers of several types any may be given.
fn of_one_type(rows: Vec<Document>) -> String {
    format!("{rows:?}").replace(".0)", ")").replace("Double(", "Int32(")
}

#[test]
fn least_and_greatest_values_of_sources_are_those_of_their_measurements() {
    run(async {
        for kinds in [4, 6, 9, 11] {
            let (_world, server, mut c) = started().await;
            let mut r = Random(kinds as u64 + 40);
            let docs = (0..200).map(|i| {
                let mut d = doc! { "_id": i, "t": at(r.below(40) as i64 * HOUR / 8), "m": { "a": r.below(9) as i32 } };
                if r.below(5) > 0 {
                    d.push("x", r.value(kinds));
                }
                d
            });
            insert(&mut c, docs.collect()).await;
            for by in [Bson::String("$m.a".to_owned()), Bson::String("$m".to_owned()), Bson::Null] {
                let group = doc! { "$group": {
                    "_id": by,
                    "low": { "$min": "$x" }, "high": { "$max": "$x" }, "below": { "$min": "$x.y" }, "id": { "$max": "$_id" },
                } };
                let sort = doc! { "$sort": { "_id": 1 } };
                let all = rows(&mut c, vec![doc! { "$limit": 1_000_000 }, group.clone(), sort.clone()]).await;
                let found = rows(&mut c, vec![group, sort]).await;
                assert_eq!(of_one_type(found), of_one_type(all), "{kinds}");
            }
            // The least time is that of a measurement.
            let group = doc! { "$group": { "_id": "$m", "first": { "$min": "$t" } } };
            let sort = doc! { "$sort": { "_id": 1 } };
            let all = rows(&mut c, vec![doc! { "$limit": 1_000_000 }, group.clone(), sort.clone()]).await;
            assert_eq!(rows(&mut c, vec![group, sort]).await, all);
            server.shut_down().await;
        }
    });
}
