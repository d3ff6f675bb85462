//! Compressed buckets of another server, stored as a restored dump stores them: queries, deletes and inserts.

#![allow(clippy::unwrap_used)]

use pando_bson::{Bson, Document, RawDoc, doc};
use pando_testserver::{Client, Running, World, run};

/// As in the tests of columns: name, bucket, measurements.
const RECORDED: &str = include_str!("../../../bson/src/column/recorded.txt");
/// The first measurement's time in all of them.
const FIRST: i64 = 1_709_251_200_000;

fn documents(hex: &str) -> Vec<Document> {
    let digit = |b: u8| (b as char).to_digit(16).unwrap() as u8;
    let bytes: Vec<u8> = hex.as_bytes().chunks(2).map(|p| digit(p[0]) << 4 | digit(p[1])).collect();
    let (mut out, mut rest) = (Vec::new(), &bytes[..]);
    while !rest.is_empty() {
        let doc = RawDoc::validate_prefix(rest).unwrap();
        out.push(Document::from(doc));
        rest = &rest[doc.byte_len()..];
    }
    out
}

struct Recorded {
    name: &'static str,
    bucket: Document,
    rows: Vec<Document>,
}

fn recorded() -> Vec<Recorded> {
    let one = |line: &'static str| {
        let parts: Vec<&str> = line.split('\t').collect();
        Recorded { name: parts[0], bucket: documents(parts[1]).remove(0), rows: documents(parts[2]) }
    };
    RECORDED.lines().map(one).collect()
}

async fn restored(indexes: &[Document], wanted: fn(&str) -> bool) -> (World, Running, Client, Vec<Recorded>) {
    let world = World::new();
    let server = world.start_set().await;
    let mut c = server.connect().await;
    c.ok(doc! { "create": "ts", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    for key in indexes {
        let name = format!("{key:?}");
        c.ok(doc! { "createIndexes": "ts", "indexes": [{ "key": key.clone(), "name": name }] }).await;
    }
    let mut all = recorded();
    all.retain(|r| wanted(r.name));
    for r in &all {
        let docs = vec![Bson::Document(r.bucket.clone())];
        let reply = c.ok(doc! { "insert": "system.buckets.ts", "documents": docs }).await;
        assert_eq!(reply.get("writeErrors"), None, "{}", r.name);
    }
    (world, server, c, all)
}

async fn find(c: &mut Client, filter: Document) -> Vec<Document> {
    c.all(doc! { "find": "ts", "filter": filter, "projection": { "m": 0, "_id": 0 } }).await
}

fn n(reply: &Document) -> i64 {
    reply.get("n").and_then(Bson::as_i64).unwrap()
}

/// Fields in any order, as bytes.
fn sorted(d: &Document) -> Vec<(String, Vec<u8>)> {
    let raw = d.to_raw();
    let mut all: Vec<_> = raw.iter().map(|e| (e.name().to_owned(), e.data().to_vec())).collect();
    all.sort();
    all
}

#[test]
fn measurements_of_compressed_buckets_are_read() {
    run(async {
        let (_world, server, mut c, all) = restored(&[], |_| true).await;
        for r in &all {
            let found = find(&mut c, doc! { "m": r.name }).await;
            assert_eq!(found.len(), r.rows.len(), "{}", r.name);
            for (mut found, wanted) in found.into_iter().zip(&r.rows) {
                if wanted.get("t").is_none() {
                    found = found.into_fields().into_iter().filter(|(k, _)| k != "t").fold(
                        Document::new(),
                        |mut d, (k, v)| {
                            d.push(k, v);
                            d
                        },
                    );
                }
                assert_eq!(sorted(&found), sorted(wanted), "{}", r.name);
            }
        }
        // By value; sorted by time; counted.
        let last = doc! { "m": "int32 counter", "x": { "$gte": 30 } };
        let wanted = all[0].rows.iter().filter(|d| d.get("x").and_then(Bson::as_i64) >= Some(30)).count();
        assert_eq!((all[0].name, find(&mut c, last).await.len()), ("int32 counter", wanted));
        let sum = all.iter().map(|r| r.rows.len()).sum::<usize>() as i64;
        assert_eq!(n(&c.ok(doc! { "count": "ts" }).await), sum);
        let sort = doc! { "find": "ts", "sort": { "t": -1 }, "projection": { "t": 1, "_id": 0 } };
        let times: Vec<Bson> = c.all(sort).await.iter().map(|d| d.get("t").cloned().unwrap()).collect();
        let ms = |t: &Bson| if let Bson::DateTime(ms) = t { *ms } else { panic!("{t:?}") };
        assert!(times.len() as i64 == sum && times.windows(2).all(|w| ms(&w[0]) >= ms(&w[1])));
        server.shut_down().await;
    });
}

#[test]
fn measurements_are_deleted_from_compressed_buckets_and_new_ones_get_a_bucket_of_their_own() {
    run(async {
        let (_world, server, mut c, all) = restored(&[], |_| true).await;
        let delete = |q: Document| doc! { "delete": "ts", "deletes": [{ "q": q, "limit": 0 }] };
        let name = "int32 counter";
        let before = all[0].rows.len() as i64;
        assert_eq!(n(&c.ok(delete(doc! { "m": name, "x": { "$lt": 10 } })).await), 10);
        assert_eq!(find(&mut c, doc! { "m": name }).await.len() as i64, before - 10);
        // By source: the whole bucket, with the number of its measurements.
        let other = all.iter().find(|r| r.name == "doubles").or(all.get(5)).unwrap();
        assert_eq!(n(&c.ok(delete(doc! { "m": other.name })).await), other.rows.len() as i64);
        let third = all[2].name;
        let buckets = doc! { "find": "system.buckets.ts", "filter": { "meta": third } };
        assert_eq!(c.all(buckets.clone()).await.len(), 1);
        let row = doc! { "t": Bson::DateTime(FIRST + 5), "m": third, "x": 1 };
        c.ok(doc! { "insert": "ts", "documents": [Bson::Document(row)] }).await;
        assert_eq!(c.all(buckets).await.len(), 2);
        assert_eq!(find(&mut c, doc! { "m": third }).await.len(), all[2].rows.len() + 1);
        server.shut_down().await;
    });
}

#[test]
fn an_index_on_values_leads_to_compressed_buckets() {
    run(async {
        let (_world, server, mut c, all) =
            restored(&[doc! { "x": 1 }], |name| name.starts_with("int") || name.starts_with("short")).await;
        for filter in [doc! { "x": { "$lt": 3 } }, doc! { "x": { "$gt": 1_000_000 } }, doc! { "x": "on" }] {
            let found = find(&mut c, filter.clone()).await.len();
            let mut unpacked = 0;
            for r in &all {
                let mut inner = vec![Bson::Document(doc! { "m": r.name })];
                inner.push(Bson::Document(doc! { "$nor": [{ "$nor": [filter.clone()] }] }));
                unpacked += find(&mut c, doc! { "$and": inner }).await.len();
            }
            assert!(found == unpacked && found > 0, "{filter:?} {found} {unpacked}");
        }
        let row = doc! { "t": Bson::DateTime(FIRST), "m": "an array", "x": [1, 2] };
        let reply = c.ok(doc! { "insert": "ts", "documents": [Bson::Document(row)] }).await;
        assert!(format!("{reply:?}").contains("5930501"), "{reply:?}");
        server.shut_down().await;
    });
}

#[test]
fn a_damaged_bucket_is_an_error_that_says_so() {
    run(async {
        let (_world, server, mut c, all) = restored(&[], |_| true).await;
        let mut data = Document::new();
        data.push("t", Bson::Binary(pando_bson::Binary { subtype: 7, bytes: vec![0x09, 0, 1] }));
        let mut bucket = all[0].bucket.clone();
        for (name, v) in [("data", Bson::Document(data)), ("meta", Bson::Int32(77))] {
            *bucket.get_mut(name).unwrap() = v;
        }
        *bucket.get_mut("_id").unwrap() = Bson::ObjectId(pando_bson::ObjectId([0x65; 12]));
        c.ok(doc! { "insert": "system.buckets.ts", "documents": [Bson::Document(bucket)] }).await;
        assert_eq!(c.err(doc! { "find": "ts", "filter": { "m": 77 } }).await.0, 22);
        assert_eq!(find(&mut c, doc! { "m": "int32 counter" }).await.len(), all[0].rows.len());
        server.shut_down().await;
    });
}

#[test]
fn places_in_compressed_buckets_are_found_by_an_index() {
    run(async {
        let (_world, server, mut c, all) =
            restored(&[doc! { "x": "2dsphere" }], |name| name == "points").await;
        let points = &all[0];
        let region = doc! { "$centerSphere": [[8.05, 49.95], 0.0005] };
        let filter = doc! { "m": "points", "x": { "$geoWithin": region } };
        let found = find(&mut c, filter.clone()).await.len();
        assert!(found > 0 && found < points.rows.len(), "{found}");
        server.shut_down().await;
    });
}
