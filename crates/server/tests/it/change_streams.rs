//! What a change stream shows, and where it can go on.

#![allow(clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Running, World, run};

fn watch(coll: Bson, spec: Document) -> Document {
    watch_through(coll, spec, Vec::new())
}
fn watch_through(coll: Bson, spec: Document, stages: Vec<Document>) -> Document {
    let mut pipeline = vec![Bson::Document(doc! { "$changeStream": spec })];
    pipeline.extend(stages.into_iter().map(Bson::Document));
    doc! { "aggregate": coll, "pipeline": Bson::Array(pipeline), "cursor": {} }
}

struct Stream {
    id: i64,
    coll: String,
    token: Document,
    batch: Vec<Document>,
}

impl Stream {
    fn of(reply: &Document) -> Stream {
        let cursor = reply.get("cursor").and_then(Bson::as_doc).expect("a cursor");
        let docs = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"));
        let Some(Bson::Array(docs)) = docs else { panic!("no batch: {cursor:?}") };
        let ns = cursor.get("ns").and_then(Bson::as_str).unwrap();
        Stream {
            id: cursor.get("id").and_then(Bson::as_i64).unwrap(),
            coll: ns.split_once('.').unwrap().1.to_owned(),
            token: cursor.get("postBatchResumeToken").and_then(Bson::as_doc).unwrap().clone(),
            batch: docs.iter().filter_map(|d| d.as_doc().cloned()).collect(),
        }
    }
    async fn open(c: &mut Client, command: Document) -> Stream {
        Stream::of(&c.ok(command).await)
    }
    async fn more(&mut self, c: &mut Client, max_time_ms: i64) {
        let next = doc! { "getMore": self.id, "collection": self.coll.clone(), "maxTimeMS": max_time_ms };
        *self = Stream::of(&c.ok(next).await);
    }
    /// All events there are, up to `n`.
    async fn events(&mut self, c: &mut Client, n: usize) -> Vec<Document> {
        let mut all = std::mem::take(&mut self.batch);
        while all.len() < n && self.id != 0 {
            self.more(c, 5_000).await;
            assert!(!self.batch.is_empty(), "only {all:?}");
            all.append(&mut self.batch);
        }
        all
    }
}

/// An event without what differs from run to run.
fn bare(event: &Document) -> Document {
    let mut out = Document::new();
    for (name, value) in event.iter() {
        if !matches!(name, "_id" | "clusterTime" | "wallTime" | "collectionUUID" | "lsid" | "txnNumber") {
            out.push(name, value.clone());
        }
    }
    out
}
fn kind(event: &Document) -> &str {
    event.get("operationType").and_then(Bson::as_str).unwrap()
}
fn token(event: &Document) -> Document {
    event.get("_id").and_then(Bson::as_doc).unwrap().clone()
}
fn number_in(d: &Document, section: &str, name: &str) -> i64 {
    d.get(section).and_then(Bson::as_doc).and_then(|s| s.get(name)?.as_i64()).unwrap()
}
async fn one_member(world: &World) -> (Running, Client) {
    let server = world.start_set().await;
    let c = server.connect().await;
    (server, c)
}
/// The command as part of a transaction.
fn within(mut command: Document, first: bool) -> Document {
    let id = Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![7; 16] });
    command.push("lsid", doc! { "id": id });
    command.push("txnNumber", 1_i64);
    command.push("autocommit", false);
    if first {
        command.push("startTransaction", true);
    }
    command
}
fn commit() -> Document {
    let mut commit = within(doc! { "commitTransaction": 1 }, false);
    commit.push("$db", "admin");
    commit
}
async fn insert(c: &mut Client, id: i32) {
    c.ok(doc! { "insert": "c", "documents": [{ "_id": id }] }).await;
}

#[test]
fn writes_become_events_in_their_order() {
    run(async {
        let world = World::new();
        let (server, mut c) = one_member(&world).await;
        c.ok(doc! { "create": "c" }).await;
        let mut s = Stream::open(&mut c, watch("c".into(), doc! { "fullDocument": "updateLookup" })).await;
        assert!(s.batch.is_empty() && s.id != 0);
        let old = doc! { "_id": 1, "a": 1, "f": "x".repeat(100), "l": [1, 2, 3] };
        c.ok(doc! { "insert": "c", "documents": [old.clone()] }).await;
        let set = doc! { "$set": { "a": 2, "n.0": true }, "$unset": { "f": 1 } };
        c.ok(doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": set }] }).await;
        c.ok(doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "b": 1 } }] }).await;
        c.ok(doc! { "insert": "other", "documents": [{ "_id": 1 }] }).await;
        c.ok(doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] }).await;
        c.ok(doc! { "drop": "c" }).await;
        let events = s.events(&mut c, 6).await;
        let (ns, key) = (doc! { "db": "test", "coll": "c" }, doc! { "_id": 1 });
        let seen: Vec<Document> = events.iter().map(bare).collect();
        let expected = [
            doc! { "operationType": "insert", "fullDocument": old, "ns": ns.clone(), "documentKey": key.clone() },
            doc! { "operationType": "update", "fullDocument": Bson::Null, "ns": ns.clone(), "documentKey": key.clone(),
            "updateDescription": {
                "updatedFields": { "a": 2, "n": { "0": true } }, "removedFields": ["f"], "truncatedArrays": []
            } },
            doc! { "operationType": "replace", "fullDocument": { "_id": 1, "b": 1 }, "ns": ns.clone(),
            "documentKey": key.clone() },
            doc! { "operationType": "delete", "ns": ns.clone(), "documentKey": key },
            doc! { "operationType": "drop", "ns": ns },
            doc! { "operationType": "invalidate" },
        ];
        assert_eq!(seen, expected);
        assert_eq!(s.id, 0, "an invalidated stream is over");
        server.shut_down().await;
    });
}

#[test]
fn a_stream_goes_on_behind_any_of_its_tokens() {
    run(async {
        let world = World::new();
        let (server, mut c) = one_member(&world).await;
        let mut s = Stream::open(&mut c, watch("c".into(), doc! {})).await;
        let begin = s.token.clone();
        for id in 0..5 {
            insert(&mut c, id).await;
        }
        let events = s.events(&mut c, 5).await;
        for (i, e) in events.iter().enumerate() {
            let resume = watch("c".into(), doc! { "resumeAfter": token(e) });
            let rest = Stream::open(&mut c, resume).await.events(&mut c, 4 - i).await;
            assert_eq!(rest, events[i + 1..], "after {i}");
        }
        let again = watch("c".into(), doc! { "startAfter": begin });
        assert_eq!(Stream::open(&mut c, again).await.events(&mut c, 5).await, events);
        let from = events[2].get("clusterTime").unwrap().clone();
        let at = watch("c".into(), doc! { "startAtOperationTime": from });
        assert_eq!(Stream::open(&mut c, at).await.events(&mut c, 3).await, events[2..]);
        // Entries that are nothing to the stream move its token on.
        c.ok(doc! { "insert": "other", "documents": [{}] }).await;
        s.more(&mut c, 200).await;
        assert!(s.batch.is_empty());
        insert(&mut c, 5).await;
        let resume = watch("c".into(), doc! { "resumeAfter": s.token.clone() });
        assert_eq!(Stream::open(&mut c, resume).await.events(&mut c, 1).await.len(), 1);
        // A token of another collection's event is not found.
        let mut other = Stream::open(&mut c, watch(1.into(), doc! {})).await;
        c.ok(doc! { "insert": "other", "documents": [{}] }).await;
        let foreign = token(&other.events(&mut c, 1).await[0]);
        insert(&mut c, 6).await;
        let (code, text) = c.err(watch("c".into(), doc! { "resumeAfter": foreign })).await;
        assert!(code == 280 && text.contains("the resume token was not found"), "{text}");
        server.shut_down().await;
    });
}

#[test]
fn after_an_invalidation_only_start_after_goes_on() {
    run(async {
        let world = World::new();
        let (server, mut c) = one_member(&world).await;
        insert(&mut c, 1).await;
        let mut s = Stream::open(&mut c, watch("c".into(), doc! {})).await;
        c.ok(doc! { "drop": "c" }).await;
        let end = token(&s.events(&mut c, 2).await[1]);
        assert_eq!(s.token, end);
        assert_eq!(c.err(watch("c".into(), doc! { "resumeAfter": end.clone() })).await.0, 260);
        insert(&mut c, 2).await;
        let mut s = Stream::open(&mut c, watch("c".into(), doc! { "startAfter": end })).await;
        assert_eq!(kind(&s.events(&mut c, 1).await[0]), "insert");
        server.shut_down().await;
    });
}

#[test]
fn databases_and_clusters_are_watched_as_a_whole() {
    run(async {
        let world = World::new();
        let (server, mut c) = one_member(&world).await;
        let mut db = Stream::open(&mut c, watch(1.into(), doc! { "showExpandedEvents": true })).await;
        let mut all = watch(1.into(), doc! { "allChangesForCluster": true });
        all.push("$db", "admin");
        let id = Stream::open(&mut c, all).await.id;
        insert(&mut c, 1).await;
        c.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "x": 1 }, "name": "x" }] }).await;
        c.ok(doc! { "collMod": "c", "index": { "name": "x", "hidden": true } }).await;
        c.ok(doc! { "insert": "far", "documents": [{ "_id": 1 }], "$db": "away" }).await;
        c.ok(doc! { "renameCollection": "test.c", "to": "test.d", "$db": "admin" }).await;
        c.ok(doc! { "dropDatabase": 1 }).await;
        let kinds: Vec<String> = db.events(&mut c, 8).await.iter().map(|e| kind(e).to_owned()).collect();
        let expected =
            ["create", "insert", "createIndexes", "modify", "rename", "drop", "dropDatabase", "invalidate"];
        assert_eq!(kinds, expected);
        let next = doc! { "getMore": id, "collection": "$cmd.aggregate", "$db": "admin" };
        let cluster = Stream::of(&c.ok(next).await);
        let kinds: Vec<&str> = cluster.batch.iter().map(kind).collect();
        assert_eq!(kinds, ["insert", "insert", "rename", "drop", "dropDatabase"]);
        assert_ne!(cluster.id, 0, "a cluster has no end");
        server.shut_down().await;
    });
}

#[test]
fn stages_choose_and_shape_events_but_leave_the_token() {
    run(async {
        let world = World::new();
        let (server, mut c) = one_member(&world).await;
        let stages =
            vec![doc! { "$match": { "documentKey._id": { "$gt": 2 } } }, doc! { "$project": { "ns": 0 } }];
        let mut s = Stream::open(&mut c, watch_through("c".into(), doc! {}, stages)).await;
        for id in 0..5 {
            insert(&mut c, id).await;
        }
        let events = s.events(&mut c, 2).await;
        assert!(events.iter().all(|e| e.get("ns").is_none() && e.get("fullDocument").is_some()));
        let id_gone = vec![doc! { "$project": { "_id": 0 } }];
        let s = Stream::open(&mut c, watch_through("c".into(), doc! {}, id_gone)).await;
        insert(&mut c, 9).await;
        let (code, text) = c.err(doc! { "getMore": s.id, "collection": "c" }).await;
        assert!(code == 280 && text.contains("was modified by the pipeline"), "{text}");
        let group = vec![doc! { "$group": { "_id": 1 } }];
        let (code, text) = c.err(watch_through("c".into(), doc! {}, group)).await;
        assert_eq!((code, &text[..]), (20, "$group is not permitted in a $changeStream pipeline"));
        server.shut_down().await;
    });
}

#[test]
fn a_collection_with_images_shows_documents_before_and_after() {
    run(async {
        let world = World::new();
        let (server, mut c) = one_member(&world).await;
        c.ok(doc! { "create": "c", "changeStreamPreAndPostImages": { "enabled": true } }).await;
        c.ok(doc! { "create": "plain" }).await;
        let spec = doc! { "fullDocument": "required", "fullDocumentBeforeChange": "required" };
        let mut s = Stream::open(&mut c, watch("c".into(), spec.clone())).await;
        let (old, filler) = (doc! { "_id": 1, "a": 1, "f": "x".repeat(100) }, "x".repeat(100));
        c.ok(doc! { "insert": "c", "documents": [old.clone()] }).await;
        c.ok(doc! { "update": "c", "updates": [{ "q": {}, "u": { "$set": { "a": 2 } } }] }).await;
        // The document has moved on by the time the event is read.
        c.ok(doc! { "update": "c", "updates": [{ "q": {}, "u": { "b": 1 } }] }).await;
        c.ok(doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] }).await;
        let events = s.events(&mut c, 4).await;
        let full = |i: usize| events[i].get("fullDocument").and_then(Bson::as_doc);
        let before = |i: usize| events[i].get("fullDocumentBeforeChange").and_then(Bson::as_doc);
        let new = doc! { "_id": 1, "a": 2, "f": filler };
        assert_eq!((full(0), before(0)), (Some(&old), None));
        assert_eq!((full(1), before(1)), (Some(&new), Some(&old)));
        assert_eq!((full(2), before(2)), (Some(&doc! { "_id": 1, "b": 1 }), Some(&new)));
        assert_eq!((full(3), before(3)), (None, Some(&doc! { "_id": 1, "b": 1 })));
        // Clients do not see where the images are kept.
        let log = doc! { "find": "oplog.rs", "filter": { "pre": { "$exists": true } }, "$db": "local" };
        assert!(c.all(log).await.is_empty());
        // Without images: nothing, or the end.
        let maybe = doc! { "fullDocument": "whenAvailable", "fullDocumentBeforeChange": "whenAvailable" };
        let mut maybe = Stream::open(&mut c, watch("plain".into(), maybe)).await;
        let strict = Stream::open(&mut c, watch("plain".into(), spec)).await;
        c.ok(doc! { "insert": "plain", "documents": [old] }).await;
        c.ok(doc! { "update": "plain", "updates": [{ "q": {}, "u": { "$set": { "a": 2 } } }] }).await;
        let update = &maybe.events(&mut c, 2).await[1];
        assert_eq!(update.get("fullDocument"), Some(&Bson::Null));
        assert_eq!(update.get("fullDocumentBeforeChange"), Some(&Bson::Null));
        let (code, text) = c.err(doc! { "getMore": strict.id, "collection": "plain" }).await;
        assert!(code == 47 && text.contains("post-image was not found for event"), "{text}");
        server.shut_down().await;
    });
}

#[test]
fn a_transaction_is_shown_operation_by_operation() {
    run(async {
        let world = World::new();
        let (server, mut c) = one_member(&world).await;
        c.ok(doc! { "create": "c" }).await;
        c.ok(doc! { "create": "other" }).await;
        let mut s = Stream::open(&mut c, watch("c".into(), doc! {})).await;
        // Enough for several entries.
        for i in 0..5 {
            let large = doc! { "_id": i, "f": "x".repeat(5 << 20) };
            c.ok(within(doc! { "insert": "c", "documents": [large] }, i == 0)).await;
        }
        c.ok(within(doc! { "insert": "other", "documents": [{ "_id": 1 }] }, false)).await;
        c.ok(within(doc! { "delete": "c", "deletes": [{ "q": { "_id": 0 }, "limit": 1 }] }, false)).await;
        s.more(&mut c, 100).await;
        assert!(s.batch.is_empty(), "nothing before the commit");
        c.ok(commit()).await;
        let events = s.events(&mut c, 6).await;
        let kinds: Vec<&str> = events.iter().map(kind).collect();
        assert_eq!(kinds, ["insert", "insert", "insert", "insert", "insert", "delete"]);
        for e in &events {
            assert_eq!(e.get("clusterTime"), events[0].get("clusterTime"));
            assert_eq!(e.get("txnNumber"), Some(&Bson::Int64(1)));
            assert!(e.get("lsid").is_some());
        }
        // From the middle of it.
        let resume = watch("c".into(), doc! { "resumeAfter": token(&events[3]) });
        assert_eq!(Stream::open(&mut c, resume).await.events(&mut c, 2).await, events[4..]);
        server.shut_down().await;
    });
}

/// Of a transaction of 6 MB, batches of 100 events: a stream makes a part of it at a time.
#[test]
fn a_stream_holds_little_of_a_large_transaction() {
    const DOCS: i32 = 1500;
    run(async {
        let world = World::new();
        let (server, mut c) = one_member(&world).await;
        c.ok(doc! { "create": "c" }).await;
        let mut s = Stream::open(&mut c, watch("c".into(), doc! {})).await;
        for from in (0..DOCS).step_by(500) {
            let docs = (from..from + 500).map(|i| doc! { "_id": i, "f": "x".repeat(4 << 10) });
            let docs = Bson::Array(docs.map(Bson::Document).collect());
            c.ok(within(doc! { "insert": "c", "documents": docs }, from == 0)).await;
        }
        c.ok(commit()).await;
        let (mut ids, mut held) = (Vec::new(), Vec::new());
        let mut middle = None;
        while ids.len() < DOCS as usize {
            let next = doc! { "getMore": s.id, "collection": "c", "batchSize": 100, "maxTimeMS": 5_000 };
            s = Stream::of(&c.ok(next).await);
            assert_eq!(s.batch.len(), 100);
            let id = |e: &Document| number_in(e, "documentKey", "_id");
            ids.extend(s.batch.iter().map(id));
            middle = Some(token(&s.batch[0]));
            let status = c.ok(doc! { "serverStatus": 1, "$db": "admin" }).await;
            let metrics = status.get("metrics").and_then(Bson::as_doc).unwrap();
            held.push(number_in(metrics, "changeStreams", "pendingBytes"));
        }
        assert!(ids.into_iter().eq(0..i64::from(DOCS)), "each once, in order");
        let most = (pando_base::limits::CHANGE_STREAM_PENDING_BYTES + (8 << 10)) as i64;
        assert!(held.iter().all(|h| *h < most) && held.iter().any(|h| *h > 0), "{held:?}");
        assert_eq!(held.last(), Some(&0));
        // Going on within it reads it again, up to that place.
        let mut resumed =
            Stream::open(&mut c, watch("c".into(), doc! { "resumeAfter": middle.unwrap() })).await;
        assert_eq!(resumed.events(&mut c, 99).await.len(), 99);
        server.shut_down().await;
    });
}

#[test]
fn an_event_that_is_too_large_is_refused() {
    run(async {
        let world = World::new();
        let (server, mut c) = one_member(&world).await;
        c.ok(doc! { "create": "c", "changeStreamPreAndPostImages": { "enabled": true } }).await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "f": "x".repeat(9 << 20) }] }).await;
        let s =
            Stream::open(&mut c, watch("c".into(), doc! { "fullDocumentBeforeChange": "required" })).await;
        let new = doc! { "f": "y".repeat(9 << 20) };
        c.ok(doc! { "update": "c", "updates": [{ "q": {}, "u": new }] }).await;
        assert_eq!(c.err(doc! { "getMore": s.id, "collection": "c" }).await.0, 10334);
        server.shut_down().await;
    });
}

/// A stream of an update whose event has 27 MB, in fragments.
fn in_fragments(spec: Document, stages: Vec<Document>) -> Document {
    let mut whole = doc! { "fullDocumentBeforeChange": "required", "fullDocument": "required" };
    spec.iter().for_each(|(name, v)| whole.push(name, v.clone()));
    watch_through("c".into(), whole, stages)
}
fn splits() -> Document {
    doc! { "$changeStreamSplitLargeEvent": {} }
}
async fn large_update(c: &mut Client) -> Stream {
    c.ok(doc! { "create": "c", "changeStreamPreAndPostImages": { "enabled": true } }).await;
    c.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "f": "x".repeat(9 << 20) }] }).await;
    let s = Stream::open(c, in_fragments(doc! {}, vec![splits()])).await;
    let set = doc! { "$set": { "f": "y".repeat(9 << 20) } };
    c.ok(doc! { "update": "c", "updates": [{ "q": {}, "u": set }] }).await;
    insert(c, 2).await;
    s
}
fn fields(event: &Document) -> Vec<&str> {
    event.iter().map(|(name, _)| name).collect()
}

#[test]
fn a_large_event_comes_in_fragments_when_the_last_stage_says_so() {
    run(async {
        let world = World::new();
        let (server, mut c) = one_member(&world).await;
        let mut s = large_update(&mut c).await;
        let events = s.events(&mut c, 4).await;
        let large = ["fullDocument", "fullDocumentBeforeChange", "updateDescription"];
        let parts: Vec<_> = events[..3].iter().map(fields).collect();
        assert_eq!(parts[0][..2], ["_id", "splitEvent"]);
        assert!(parts[0].contains(&"operationType") && parts[0].contains(&"documentKey"));
        for (n, event) in events[..3].iter().enumerate() {
            let at = Bson::Document(doc! { "fragment": n as i32 + 1, "of": 3 });
            assert_eq!(event.get("splitEvent"), Some(&at));
            assert_eq!(parts[n].last(), Some(&large[n]), "{parts:?}");
        }
        assert_eq!(kind(&events[3]), "insert");
        assert!(events[3].get("splitEvent").is_none());
        server.shut_down().await;
    });
}

#[test]
fn a_stream_goes_on_with_the_next_fragment() {
    run(async {
        let world = World::new();
        let (server, mut c) = one_member(&world).await;
        let events = large_update(&mut c).await.events(&mut c, 4).await;
        for seen in 0..3 {
            let behind = doc! { "resumeAfter": token(&events[seen]) };
            let mut s = Stream::open(&mut c, in_fragments(behind.clone(), vec![splits()])).await;
            let rest = s.events(&mut c, 3 - seen).await;
            assert!(
                rest == events[seen + 1..],
                "behind {seen}: {:?}",
                rest.iter().map(fields).collect::<Vec<_>>()
            );
            let (code, text) = refused(&mut c, in_fragments(behind.clone(), vec![])).await;
            assert!(code == 280 && text.contains("must include"), "{text}");
            let small = doc! { "$project": { "fullDocumentBeforeChange": 0, "fullDocument": 0 } };
            let (code, text) = refused(&mut c, in_fragments(behind, vec![small, splits()])).await;
            assert!(code == 280 && text.contains("was not split"), "{text}");
        }
        server.shut_down().await;
    });
}
/// Why a stream ends, at its beginning or after it.
async fn refused(c: &mut Client, command: Document) -> (i64, String) {
    let mut reply = c.run(command).await;
    if reply.get("cursor").is_some() {
        reply = c.run(doc! { "getMore": Stream::of(&reply).id, "collection": "c" }).await;
    }
    let text = reply.get("errmsg").and_then(Bson::as_str).unwrap_or_default().to_owned();
    (reply.get("code").and_then(Bson::as_i64).unwrap_or(0), text)
}

#[test]
fn the_stage_that_splits_is_the_last_of_a_stream() {
    run(async {
        let world = World::new();
        let (server, mut c) = one_member(&world).await;
        let rest = doc! { "$match": { "operationType": "insert" } };
        for (stages, code) in [
            (vec![splits(), rest.clone()], 7_182_802),
            (vec![splits(), splits()], 7_182_802),
            (vec![rest, doc! { "$changeStreamSplitLargeEvent": { "a": 1 } }], 7_182_800),
        ] {
            assert_eq!(refused(&mut c, watch_through("c".into(), doc! {}, stages)).await.0, code);
        }
        let without =
            doc! { "aggregate": "c", "pipeline": [{ "$changeStreamSplitLargeEvent": {} }], "cursor": {} };
        assert_eq!(refused(&mut c, without).await.0, 20);
        server.shut_down().await;
    });
}
