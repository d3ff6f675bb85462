//! The Rust driver against a server: CRUD, bulk, cursors, indexes, aggregation, errors, sessions.
//! Usage: `cargo run --manifest-path tests/drivers/rust/Cargo.toml -- [URI]`

use futures_util::TryStreamExt;
use mongodb::bson::{Bson, DateTime, Decimal128, Document, doc, oid::ObjectId};
use mongodb::error::{Error, ErrorKind, WriteFailure};
use mongodb::options::{
    FindOneAndUpdateOptions, IndexOptions, ReturnDocument, UpdateModifications, WriteConcern,
};
use mongodb::{Client, Collection, IndexModel};
use std::process::ExitCode;

type Outcome = Result<bool, Error>;

struct Tally {
    passed: u32,
    failed: u32,
}

impl Tally {
    fn note(&mut self, name: &str, outcome: Outcome) {
        match outcome {
            Ok(true) => {
                self.passed += 1;
                println!("ok     {name}");
            }
            other => {
                self.failed += 1;
                println!("FAILED {name}: {other:?}");
            }
        }
    }
}

fn code_of(e: &Error) -> Option<i32> {
    match &*e.kind {
        ErrorKind::Command(c) => Some(c.code),
        ErrorKind::Write(WriteFailure::WriteError(w)) => Some(w.code),
        ErrorKind::InsertMany(m) => Some(m.write_errors.as_ref()?.first()?.code),
        _ => None,
    }
}

fn refused<T>(r: Result<T, Error>, code: i32) -> Outcome {
    match r {
        Ok(_) => Ok(false),
        Err(e) if code_of(&e) == Some(code) => Ok(true),
        Err(e) => Err(e),
    }
}

fn all_types() -> Result<Document, Error> {
    let dec: Decimal128 = "1.50".parse().map_err(Error::custom)?;
    Ok(doc! {
        "_id": 1, "s": "text", "i": 5, "l": 1i64 << 40, "d": 2.5, "dec": dec, "t": DateTime::from_millis(1_704_164_645_678),
        "o": ObjectId::new(), "n": Bson::Null, "a": [1, [2, { "x": 3 }]], "e": { "f": { "g": true } },
    })
}

async fn crud(c: &Collection<Document>) -> Outcome {
    let sent = all_types()?;
    c.insert_one(sent.clone()).await?;
    let many: Vec<Document> = (0..3000).map(|k| doc! { "k": k, "g": k % 7 }).collect();
    let inserted = c.insert_many(many).await?.inserted_ids.len();
    let one = c.update_one(doc! { "_id": 1 }, doc! { "$set": { "e.f.h": 7 }, "$inc": { "i": 2 } }).await?;
    let many = c.update_many(doc! { "g": 3 }, doc! { "$set": { "hit": true } }).await?;
    let up = c.update_one(doc! { "_id": "up" }, doc! { "$set": { "z": 1 } }).upsert(true).await?;
    let replaced = c.replace_one(doc! { "_id": "up" }, doc! { "w": 1 }).await?;
    let options = FindOneAndUpdateOptions::builder().return_document(ReturnDocument::After).build();
    let after = c
        .find_one_and_update(doc! { "_id": "up" }, doc! { "$inc": { "w": 4 } })
        .with_options(options)
        .await?;
    let gone = c.find_one_and_delete(doc! { "_id": "up" }).await?;
    let mut expected = sent;
    expected.insert("i", 7);
    expected.insert("e", doc! { "f": { "g": true, "h": 7 } });
    Ok(inserted == 3000
        && one.modified_count == 1
        && many.modified_count == (0..3000).filter(|k| k % 7 == 3).count() as u64
        && up.upserted_id == Some("up".into())
        && replaced.modified_count == 1
        && after == Some(doc! { "_id": "up", "w": 5 })
        && gone == after
        && c.find_one(doc! { "_id": 1 }).await? == Some(expected))
}

async fn cursors(c: &Collection<Document>) -> Outcome {
    let sorted: Vec<Document> = c
        .find(doc! { "k": { "$exists": true } })
        .projection(doc! { "k": 1, "_id": 0 })
        .sort(doc! { "k": -1 })
        .batch_size(97)
        .await?
        .try_collect()
        .await?;
    let page: Vec<Document> = c
        .find(doc! { "k": { "$lt": 100 } })
        .sort(doc! { "k": 1 })
        .skip(10)
        .limit(5)
        .await?
        .try_collect()
        .await?;
    let first = c.find(doc! {}).batch_size(2).await?.try_next().await?;
    let in_order = sorted.iter().enumerate().all(|(i, d)| d.get_i32("k").ok() == Some(2999 - i as i32));
    Ok(sorted.len() == 3000
        && in_order
        && page.iter().map(|d| d.get_i32("k").ok()).eq((10..15).map(Some))
        && first.is_some()
        && c.count_documents(doc! { "k": { "$gte": 2000 } }).await? == 1000
        && c.estimated_document_count().await? == 3001)
}

async fn indexes(c: &Collection<Document>) -> Outcome {
    let compound = IndexModel::builder().keys(doc! { "g": 1, "k": -1 }).build();
    let unique = IndexModel::builder()
        .keys(doc! { "k": 1 })
        .options(IndexOptions::builder().unique(true).sparse(true).build())
        .build();
    let names = c.create_indexes([compound, unique]).await?.index_names;
    let duplicate = refused(c.insert_one(doc! { "k": 5 }).await, 11000)?;
    let found: Vec<Document> = c
        .find(doc! { "g": 2 })
        .hint(mongodb::options::Hint::Name("g_1_k_-1".into()))
        .await?
        .try_collect()
        .await?;
    let listed = c.list_index_names().await?;
    c.drop_index("k_1").await?;
    Ok(names == ["g_1_k_-1", "k_1"]
        && duplicate
        && found.len() == (0..3000).filter(|k| k % 7 == 2).count()
        && listed.len() == 3
        && c.list_index_names().await?.len() == 2)
}

async fn aggregation(c: &Collection<Document>, out: &Collection<Document>) -> Outcome {
    let groups: Vec<Document> = c
        .aggregate([
            doc! { "$match": { "k": { "$lt": 700 } } },
            doc! { "$group": { "_id": "$g", "n": { "$sum": 1 }, "top": { "$max": "$k" } } },
            doc! { "$sort": { "_id": 1 } },
        ])
        .batch_size(3)
        .await?
        .try_collect()
        .await?;
    let want: Vec<Document> = (0..7).map(|g| doc! { "_id": g, "n": 100, "top": 693 + g }).collect();
    let distinct = c.distinct("g", doc! { "g": { "$type": "int" } }).await?;
    c.aggregate([doc! { "$match": { "g": 1 } }, doc! { "$out": out.name() }]).await?;
    c.aggregate([doc! { "$match": { "g": { "$lte": 2 } } }, doc! { "$merge": { "into": out.name() } }])
        .await?;
    let copied = out.count_documents(doc! {}).await?;
    let pipeline =
        UpdateModifications::Pipeline(vec![doc! { "$set": { "twice": { "$multiply": ["$k", 2] } } }]);
    c.update_one(doc! { "k": 21 }, pipeline).await?;
    Ok(groups == want
        && distinct.len() == 7
        && copied == (0..3000).filter(|k| k % 7 <= 2).count() as u64
        && c.find_one(doc! { "twice": 42 }).await?.is_some())
}

async fn errors(c: &Collection<Document>) -> Outcome {
    let bad_operator = refused(c.find_one(doc! { "a": { "$nope": 1 } }).await, 2)?;
    let twice =
        c.insert_many([doc! { "_id": "x" }, doc! { "_id": "x" }, doc! { "_id": "y" }]).ordered(false).await;
    let unordered =
        refused(twice, 11000)? && c.count_documents(doc! { "_id": { "$in": ["x", "y"] } }).await? == 2;
    Ok(bad_operator && unordered)
}

async fn sessions(client: &Client, c: &Collection<Document>) -> Outcome {
    let mut session = client.start_session().causal_consistency(true).await?;
    c.insert_one(doc! { "_id": "in session" }).session(&mut session).await?;
    let found = c.find_one(doc! { "_id": "in session" }).session(&mut session).await?;
    let mut cursor = c.find(doc! { "k": { "$lt": 50 } }).batch_size(7).session(&mut session).await?;
    let mut n = 0;
    while cursor.next(&mut session).await.transpose()?.is_some() {
        n += 1;
    }
    let concern = WriteConcern::builder().w(mongodb::options::Acknowledgment::Majority).journal(true).build();
    c.update_one(doc! { "_id": "in session" }, doc! { "$set": { "j": 1 } }).write_concern(concern).await?;
    Ok(found.is_some() && n == 50)
}

async fn definitions(client: &Client) -> Outcome {
    let db = client.database("smoke_rust");
    db.create_collection("capped").capped(true).size(4096).max(3).await?;
    let capped = db.collection::<Document>("capped");
    capped.insert_many((0..5).map(|i| doc! { "_id": i })).await?;
    let kept: Vec<Document> = capped.find(doc! {}).await?.try_collect().await?;
    db.create_collection("seen")
        .view_on("things")
        .pipeline([doc! { "$match": { "k": { "$lt": 3 } } }])
        .await?;
    let through = db.collection::<Document>("seen").count_documents(doc! {}).await?;
    let names = db.list_collection_names().await?;
    let stats = db.run_command(doc! { "dbStats": 1 }).await?;
    db.drop().await?;
    Ok(kept.len() == 3
        && through == 2
        && names.iter().any(|n| n == "capped")
        && stats.contains_key("collections")
        && !client.list_database_names().await?.iter().any(|n| n == "smoke_rust"))
}

/// Through a router: a collection that lies on all shards.
async fn sharded(client: &Client) -> Outcome {
    let db = client.database("smoke_rust");
    let admin = client.database("admin");
    admin.run_command(doc! { "shardCollection": "smoke_rust.hashed", "key": { "_id": "hashed" } }).await?;
    let c = db.collection::<Document>("hashed");
    let inserted = c.insert_many((0..2000).map(|k| doc! { "_id": k, "g": k % 4 })).await?.inserted_ids.len();
    let sorted: Vec<Document> =
        c.find(doc! {}).sort(doc! { "g": 1, "_id": -1 }).skip(100).limit(700).batch_size(97).await?.try_collect().await?;
    let in_order = sorted.windows(2).all(|w| {
        let key = |d: &Document| (d.get_i32("g").unwrap_or(-1), -d.get_i32("_id").unwrap_or(1));
        key(&w[0]) < key(&w[1])
    });
    let updated = c.update_many(doc! { "g": 1 }, doc! { "$set": { "x": 1 } }).await?.modified_count;
    let groups: Vec<Document> = c
        .aggregate([doc! { "$group": { "_id": "$g", "n": { "$sum": 1 } } }, doc! { "$sort": { "_id": 1 } }])
        .await?
        .try_collect()
        .await?;
    let want: Vec<Document> = (0..4).map(|g| doc! { "_id": g, "n": 500 }).collect();
    let mut session = client.start_session().await?;
    session.start_transaction().await?;
    c.update_one(doc! { "_id": 4 }, doc! { "$set": { "t": 1 } }).session(&mut session).await?;
    let outside = c.find_one(doc! { "_id": 4, "t": 1 }).await?;
    session.commit_transaction().await?;
    let deleted = c.delete_many(doc! { "g": 3 }).await?.deleted_count;
    Ok(inserted == 2000
        && sorted.len() == 700
        && in_order
        && updated == 500
        && groups == want
        && outside.is_none()
        && c.find_one(doc! { "_id": 4, "t": 1 }).await?.is_some()
        && deleted == 500
        && c.count_documents(doc! {}).await? == 1500)
}

async fn parallel(c: &Collection<Document>) -> Outcome {
    let tasks: Vec<_> = (0..20)
        .map(|k| {
            let c = c.clone();
            tokio::spawn(async move { c.find_one(doc! { "k": k }).await })
        })
        .collect();
    let mut found = 0;
    for task in tasks {
        found += usize::from(task.await.map_err(Error::custom)??.is_some());
    }
    Ok(found == 20)
}

#[tokio::main]
async fn main() -> Result<ExitCode, Error> {
    let uri = std::env::args().nth(1).unwrap_or_else(|| "mongodb://127.0.0.1:27017".to_owned());
    let client = Client::with_uri_str(uri).await?;
    let db = client.database("smoke_rust");
    db.drop().await?;
    let c = db.collection::<Document>("things");
    let mut t = Tally { passed: 0, failed: 0 };
    let hello = db.run_command(doc! { "hello": 1 }).await?;
    t.note("hello", Ok(hello.get_bool("isWritablePrimary").unwrap_or(false)));
    t.note("insert, update, replace, upsert, findAndModify, every type", crud(&c).await);
    t.note("cursors, sort, skip, limit, counts", cursors(&c).await);
    t.note("indexes", indexes(&c).await);
    t.note(
        "aggregate, distinct, $out, $merge, pipeline update",
        aggregation(&c, &db.collection("copy")).await,
    );
    t.note("errors", errors(&c).await);
    t.note("sessions and write concerns", sessions(&client, &c).await);
    t.note("20 operations at once", parallel(&c).await);
    let deleted = c.delete_many(doc! { "g": 1 }).await?.deleted_count;
    t.note("delete", Ok(deleted == (0..3000).filter(|k| k % 7 == 1).count() as u64));
    if hello.get_str("msg") == Ok("isdbgrid") {
        t.note("a sharded collection", sharded(&client).await);
    }
    t.note("collections, views, capped, drop", definitions(&client).await);
    println!("{} passed, {} failed", t.passed, t.failed);
    Ok(if t.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
