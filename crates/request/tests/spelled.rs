//! What is read and spelled again is the same command.

#![allow(clippy::unwrap_used)]

use pando_base::{Result, Timestamp};
use pando_bson::shape::{Field, Shape};
use pando_bson::{Binary, Bson, DocBuf, DocBuilder, Document, ObjectId, RawDoc, doc};
use pando_command::Request;
use pando_command::request::Sequence;
use pando_request::declare::Arguments;
use pando_request::declare::table::ARGUMENTS;
use pando_request::*;

fn request<'a>(body: &'a RawDoc, sequences: &'a [Sequence<'a>]) -> Request<'a> {
    let (invoked_as, name) = (body.first().unwrap().name(), "test");
    Request { name, invoked_as, db: "d", body, sequences, exhaust_allowed: false, legacy: false }
}

/// The command's own element, and what `spell` writes behind it.
fn again(body: &RawDoc, spell: impl FnOnce(&mut DocBuilder)) -> DocBuf {
    let mut b = DocBuilder::new();
    b.elem(body.first().unwrap());
    spell(&mut b);
    b.finish()
}

/// Reads `command`, spells it, and compares: every argument is there with its value, whatever its place.
fn check(command: Document, read_and_spell: impl Fn(&RawDoc) -> Result<DocBuf>) {
    let body = command.to_raw();
    let spelled = read_and_spell(&body).unwrap();
    for (name, value) in command.iter() {
        let now = spelled.get(name).map(Bson::from);
        assert_eq!(now.as_ref(), Some(value), "{name} of {body}, spelled {spelled}");
    }
    assert_eq!(spelled.iter().count(), command.len(), "{spelled} says more than {body}");
    assert_eq!(read_and_spell(&spelled).unwrap(), spelled, "spelled twice");
}

fn uuid() -> Bson {
    Bson::Binary(Binary { subtype: 4, bytes: vec![7; 16] })
}
fn constants() -> Document {
    doc! { "localNow": Bson::DateTime(5), "clusterTime": Timestamp::new(1, 2) }
}
/// Encryption that a client has dealt with.
fn harmless_encryption() -> Document {
    doc! { "schema": {}, "crudProcessed": true }
}
fn may_write(_: &pando_base::Namespace) -> Result<()> {
    Ok(())
}

fn find(body: &RawDoc) -> Result<DocBuf> {
    let args = FindArgs::parse(request(body, &[]).args("FindCommandRequest"), false)?;
    Ok(again(body, |b| args.spell(b)))
}

#[test]
fn a_find_keeps_every_argument() {
    let options = doc! { "find": "c", "filter": { "a": 1 }, "sort": { "a": -1 }, "projection": { "a": 1 },
    "hint": "a_1", "skip": 3i64, "limit": 4i64, "batchSize": 5i64, "singleBatch": true, "min": { "a": 1 },
    "max": { "a": 2 }, "returnKey": true, "showRecordId": true, "noCursorTimeout": true,
    "allowPartialResults": true, "readOnce": true, "collation": { "locale": "fr" }, "allowDiskUse": false,
    "let": { "v": 1 }, "term": 7i64, "collectionUUID": uuid(), "oplogReplay": true, "options": { "x": 1 },
    "runtimeConstants": constants(), "includeQueryStatsMetrics": true, "querySettings": {} };
    check(options, find);
    check(doc! { "find": "c", "hint": { "a": 1, "b": -1 } }, find);
    check(doc! { "find": "c", "hint": { "$natural": -1 }, "allowDiskUse": true }, find);
    check(doc! { "find": "c", "tailable": true, "awaitData": true, "batchSize": 0i64 }, find);
    let at = doc! { "$recordId": 5i64 };
    let resumed =
        doc! { "find": "c", "hint": { "$natural": 1 }, "$_requestResumeToken": true, "$_resumeAfter": at };
    check(resumed, find);
}

#[test]
fn what_is_true_unsaid_may_go() {
    let body = doc! { "find": "c", "skip": 0, "limit": 0, "singleBatch": false, "sort": {} }.to_raw();
    assert_eq!(find(&body).unwrap(), doc! { "find": "c" }.to_raw());
}

#[test]
fn count_distinct_and_get_more_keep_every_argument() {
    let count = |body: &RawDoc| -> Result<DocBuf> {
        let args = CountArgs::parse(&request(body, &[]))?;
        Ok(again(body, |b| args.spell(b)))
    };
    check(
        doc! { "count": "c", "query": { "a": 1 }, "limit": 2i64, "skip": 3i64, "hint": "a_1",
        "collation": { "locale": "fr" }, "collectionUUID": uuid(), "fields": { "a": 1 }, "queryOptions": {} },
        count,
    );
    check(
        doc! { "distinct": "c", "key": "a.b", "query": { "a": 1 }, "collation": { "locale": "fr" },
        "collectionUUID": uuid(), "querySettings": {} },
        |body| {
            let args = DistinctArgs::parse(&request(body, &[]))?;
            Ok(again(body, |b| args.spell(b)))
        },
    );
    check(
        doc! { "getMore": 5i64, "collection": "c", "batchSize": 2i64, "term": 3i64,
        "lastKnownCommittedOpTime": { "ts": Timestamp::new(4, 5), "t": 6i64 } },
        |body| {
            let args = GetMoreArgs::parse(&request(body, &[]))?;
            Ok(again(body, |b| args.spell(b)))
        },
    );
}

#[test]
fn an_aggregate_keeps_every_argument() {
    let aggregate = |body: &RawDoc| -> Result<DocBuf> {
        let args = AggregateArgs::parse(&request(body, &[]))?;
        Ok(again(body, |b| args.spell(b)))
    };
    check(
        doc! { "aggregate": "c", "pipeline": [{ "$match": { "a": 1 } }, { "$limit": 5 }],
        "cursor": { "batchSize": 0i64 }, "explain": true, "allowDiskUse": false, "collation": { "locale": "fr" },
        "let": { "v": 1 }, "hint": { "a": 1 }, "fromMongos": true, "needsMerge": false,
        "bypassDocumentValidation": true, "collectionUUID": uuid(), "isMapReduceCommand": false,
        "runtimeConstants": constants(), "querySettings": {} },
        aggregate,
    );
    check(doc! { "aggregate": 1, "pipeline": [], "cursor": {} }, aggregate);
}

fn insert(body: &RawDoc) -> Result<DocBuf> {
    let args = InsertArgs::parse(&request(body, &[]), may_write)?;
    Ok(again(body, |b| args.spell(b)))
}
fn update(body: &RawDoc) -> Result<DocBuf> {
    let args = UpdateArgs::parse(&request(body, &[]), may_write)?;
    Ok(again(body, |b| args.spell(b)))
}

#[test]
fn writes_keep_every_argument_and_every_statement() {
    let id = ObjectId([3; 12]);
    check(
        doc! { "insert": "c", "ordered": false, "bypassDocumentValidation": true, "collectionUUID": uuid(),
        "isTimeseriesNamespace": true, "encryptionInformation": harmless_encryption(),
        "documents": [{ "_id": id, "a": 1 }, { "a": [1, 2] }, {}] },
        insert,
    );
    check(
        doc! { "update": "c", "ordered": false, "let": { "v": 1 }, "legacyRuntimeConstants": constants(),
        "updates": [
            { "q": { "a": 1 }, "u": { "$set": { "b": 1 } }, "multi": true, "upsert": true,
              "collation": { "locale": "fr" }, "arrayFilters": [{ "x": 1 }], "hint": "a_1" },
            { "q": {}, "u": [{ "$set": { "b": 1 } }], "c": { "new": { "z": 1 } }, "upsert": true,
              "upsertSupplied": true, "hint": { "a": 1 }, "sampleId": uuid() },
            { "q": {}, "u": { "whole": 1 } },
        ] },
        update,
    );
    check(
        doc! { "delete": "c", "let": { "v": 1 }, "deletes": [
            { "q": { "a": 1 }, "limit": 0, "collation": { "locale": "fr" }, "hint": "a_1", "sampleId": uuid() },
            { "q": {}, "limit": 1 },
        ] },
        |body| {
            let args = DeleteArgs::parse(&request(body, &[]), may_write)?;
            Ok(again(body, |b| args.spell(b)))
        },
    );
    check(
        doc! { "findAndModify": "c", "query": { "a": 1 }, "sort": { "b": 1 }, "update": { "$set": { "b": 1 } },
        "new": true, "fields": { "b": 1 }, "upsert": true, "bypassDocumentValidation": true,
        "collation": { "locale": "fr" }, "arrayFilters": [{ "x": 1 }], "hint": "a_1", "let": { "v": 1 },
        "collectionUUID": uuid(), "sampleId": uuid() },
        |body| {
            let args = FindAndModifyArgs::parse(&request(body, &[]))?;
            Ok(again(body, |b| args.spell(b)))
        },
    );
}

#[test]
fn a_bulk_write_keeps_every_operation() {
    check(
        doc! { "bulkWrite": 1, "ordered": false, "let": { "v": 1 }, "errorsOnly": true,
        "cursor": { "batchSize": 3i64 },
        "nsInfo": [
            { "ns": "d.a", "collectionUUID": uuid() },
            { "ns": "d.b", "isTimeseriesNamespace": true },
        ],
        "ops": [
            { "insert": 1, "document": { "_id": 1 } },
            { "update": 0, "filter": { "a": 1 }, "updateMods": { "$set": { "b": 1 } }, "multi": true },
            { "update": 0, "filter": {}, "updateMods": [{ "$set": { "b": 1 } }], "constants": { "new": {} },
              "upsert": true, "upsertSupplied": true },
            { "delete": 1, "filter": { "a": 1 }, "multi": true, "hint": "a_1" },
        ] },
        |body| {
            let args = BulkWriteArgs::parse(&request(body, &[]), may_write)?;
            Ok(again(body, |b| args.spell(b)))
        },
    );
}

#[test]
fn definitions_keep_every_argument() {
    check(
        doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }], "commitQuorum": "majority",
        "ignoreUnknownIndexOptions": true, "isTimeseriesNamespace": true, "collectionUUID": uuid() },
        |body| {
            let args = CreateIndexesArgs::parse(&request(body, &[]))?;
            Ok(again(body, |b| args.spell(b)))
        },
    );
}

/// Documents that came beside the body are spelled within it: they are the same documents.
#[test]
fn sequences_become_arrays() {
    let (one, two) = (doc! { "_id": 1 }.to_raw(), doc! { "_id": 2, "a": "b" }.to_raw());
    let bytes = [one.as_bytes(), two.as_bytes()].concat();
    let beside = [Sequence { name: "documents", bytes: &bytes }];
    let body = doc! { "insert": "c" }.to_raw();
    let args = InsertArgs::parse(&request(&body, &beside), may_write).unwrap();
    let spelled = again(&body, |b| args.spell(b));
    assert_eq!(spelled, doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2, "a": "b" }] }.to_raw());
}

/// Which names may be written is the role's word, told when nothing else is wrong.
#[test]
fn a_name_that_may_not_be_written_is_refused_behind_all_other_mistakes() {
    let no = |_: &pando_base::Namespace| Err(pando_base::Error::bad_value("not there"));
    let told = |body: Document| match UpdateArgs::parse(&request(&body.to_raw(), &[]), no) {
        Err(told) => (told.code.0, told.message.to_string()),
        Ok(_) => panic!("it was read"),
    };
    let fine = doc! { "q": {}, "u": {} };
    assert_eq!(told(doc! { "update": "c", "updates": [fine] }), (2, "not there".to_owned()));
    assert!(told(doc! { "update": "c", "updates": [{ "q": 1 }], "ordered": 1 }).1.contains("updates.q"));
    assert_eq!(told(doc! { "update": "c", "ordered": 1, "updates": [] }).0, 14);
    assert_eq!(told(doc! { "update": "c", "updates": [] }).0, 16);
}

/// A value of a shape, another one for each `n`.
fn sample(shape: &Shape, n: i64) -> Bson {
    match shape {
        Shape::Bool | Shape::SafeBool | Shape::Any => Bson::Boolean(n % 2 == 0),
        Shape::Number | Shape::Long => Bson::Int64(n + 1),
        Shape::Integer(range) => Bson::Int64((n + 1).clamp(range.min, range.max)),
        Shape::Int => Bson::Int32(n as i32),
        Shape::String => Bson::String(format!("d.s{n}")),
        Shape::Word(words) => Bson::from(words[n as usize % words.len()]),
        Shape::Date => Bson::DateTime(n),
        Shape::Timestamp => Bson::Timestamp(Timestamp::new(1, n as u32)),
        Shape::ObjectId => Bson::ObjectId(ObjectId([n as u8; 12])),
        Shape::Object => doc! { "a": n }.into(),
        Shape::Uuid => uuid(),
        Shape::Digest => Bson::Binary(Binary { subtype: 0, bytes: vec![n as u8; 32] }),
        Shape::List(each) => Bson::Array(vec![sample(each, n), sample(each, n + 1)]),
        Shape::Fields(fields) => {
            let mut d = Document::new();
            fields.iter().for_each(|f| d.push(f.name, sample(&f.shape, n)));
            d.into()
        }
        Shape::Checked { like, .. } => sample(&like[n as usize % like.len()], n),
    }
}

/// What no shape tells: values that a function of the command looks into.
fn fitting(command: &str, field: &Field, n: i64) -> Bson {
    match (command, field.name) {
        ("mapReduce", "out") => doc! { "merge": format!("c{n}"), "db": "d", "nonAtomic": true }.into(),
        (_, "defaultReadConcern") => doc! { "level": "local" }.into(),
        (_, "defaultWriteConcern") => doc! { "w": "majority", "wtimeout": n }.into(),
        (_, "collation") => doc! { "locale": "fr", "strength": 2 }.into(),
        (_, "indexOptionDefaults") => doc! { "storageEngine": { "wiredTiger": {} } }.into(),
        (_, "encryptedFields") => doc! { "fields": [{ "keyId": uuid(), "path": "a" }] }.into(),
        (_, "privileges") => {
            let find = doc! { "resource": { "db": "a", "collection": "" }, "actions": ["find"] };
            Bson::Array(vec![find.into()])
        }
        (_, "roles") => Bson::Array(vec!["read".into(), doc! { "role": "r", "db": "a" }.into()]),
        // Spelled with all that it says.
        (_, "clusteredIndex") => doc! { "key": { "_id": 1 }, "unique": true, "name": "x", "v": 2 }.into(),
        _ => sample(&field.shape, n),
    }
}

/// Each command that is declared as a table, with every argument it may have, in many orders: nothing is lost.
#[test]
fn declared_commands_keep_every_argument() {
    for table in ARGUMENTS {
        for n in 0..24i64 {
            let mut fields: Vec<&Field> = table.fields.iter().collect();
            let by = n as usize % fields.len().max(1);
            fields.rotate_left(by);
            let mut command = Document::from(vec![(table.command.to_owned(), Bson::from("c"))]);
            for field in fields {
                command.push(field.name, fitting(table.command, field, n));
            }
            if table.keeps_others {
                command.push("somethingElse", n);
            }
            check(command, |body| (table.respell)(&request(body, &[])));
        }
    }
}

/// What a table says is what is read: unknown names and wrong types are told, and what must be there is missed.
#[test]
fn declared_commands_refuse_what_their_tables_do_not_have() {
    let read =
        |table: &Arguments, command: Document| (table.respell)(&request(&command.to_raw(), &[])).map(drop);
    for table in ARGUMENTS {
        let needed = || {
            let mut command = Document::from(vec![(table.command.to_owned(), Bson::from("c"))]);
            let required = table.fields.iter().filter(|f| f.required);
            for f in required {
                command.push(f.name, fitting(table.command, f, 1));
            }
            command
        };
        read(table, needed()).unwrap();
        let mut stranger = needed();
        stranger.push("stranger", 1);
        let told = read(table, stranger).map_err(|e| e.code.0);
        assert_eq!(told, if table.keeps_others { Ok(()) } else { Err(40415) }, "{}", table.command);
        for field in table.fields.iter().filter(|f| f.required) {
            let mut lacking = needed();
            lacking.remove(field.name);
            let told = read(table, lacking).unwrap_err();
            assert_eq!(told.code.0, 40414, "{}.{}", table.command, field.name);
        }
        for field in table.fields.iter().filter(|f| !matches!(f.shape, Shape::Any | Shape::Checked { .. })) {
            let mut wrong = needed();
            wrong.set(field.name, Bson::MinKey);
            let told = read(table, wrong).unwrap_err();
            assert_eq!(told.code.0, 14, "{}.{}: {}", table.command, field.name, told.message);
        }
    }
}
