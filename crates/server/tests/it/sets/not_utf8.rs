//! Strings and names that are not UTF-8 on their way through a set: the oplog, an initial sync, change streams, a restart.

use crate::sets::words::*;
use pando_bson::{Bson, DocBuilder, Document, Name, doc};
use pando_testserver::{Client, Set, is, run};

/// A string of any bytes.
pub(crate) fn string(bytes: &[u8]) -> Bson {
    let mut b = DocBuilder::new();
    b.string_bytes("", bytes);
    b.finish().first().map_or(Bson::Null, |e| Bson::from(e.value()))
}
/// A document with one field of any name.
pub(crate) fn named(name: &[u8], v: Bson) -> Document {
    Document::from(vec![(Name::from(name), v)])
}
fn with_id(id: Bson, mut d: Document) -> Bson {
    d.insert_at(0, "_id", id);
    Bson::Document(d)
}
async fn add(c: &mut Client, docs: Vec<Bson>) {
    let mut bulk = doc! { "insert": "c", "writeConcern": majority() };
    bulk.push("documents", docs);
    c.ok(bulk).await;
}
async fn update(c: &mut Client, id: Bson, u: Document) {
    let updates = vec![Bson::Document(doc! { "q": { "_id": id }, "u": u })];
    c.ok(doc! { "update": "c", "updates": updates, "writeConcern": majority() }).await;
}
async fn all(set: &Set, i: usize) -> Vec<Document> {
    set.connect(i).await.all(anywhere(doc! { "find": "c", "sort": { "_id": 1 } })).await
}

#[test]
fn members_hold_the_same_bytes() {
    run(async {
        let mut set = Set::started(2).await;
        let config = set.config(&[Document::new(), doc! { "votes": 0, "priority": 0 }]);
        let alone = doc! { "_id": config.get("_id").cloned().unwrap(), "version": 1,
        "members": [{ "_id": 0, "host": set.host(0) }], "settings": { "heartbeatIntervalMillis": 250 } };
        set.connect(0).await.admin(doc! { "replSetInitiate": alone }).await;
        set.until("it is primary", async |set| is(&set.hello(0).await, "isWritablePrimary")).await;
        let mut c = set.connect(0).await;
        let keys = ["s", "o.$**", "h"].map(|path| {
            let kind = if path == "h" { Bson::from("hashed") } else { Bson::Int32(1) };
            Bson::Document(doc! { "key": named(path.as_bytes(), kind), "name": path })
        });
        c.ok(doc! { "createIndexes": "c", "indexes": keys.to_vec() }).await;
        let long = "x".repeat(300);
        let first = vec![
            with_id(
                string(b"\xFF"),
                doc! { "s": string(b"a\xFE"), "h": string(b"\xC3"), "long": long.clone() },
            ),
            with_id(2.into(), doc! { "o": named(b"n\xFF", string(b"\xFD")), "long": long.clone() }),
            with_id(3.into(), named(b"\xFF\xFE", Bson::Array(vec![string(b"\xE2\x82"), "ok".into()]))),
        ];
        add(&mut c, first.clone()).await;
        // It is copied to a second member.
        let mut two = config.clone();
        two.set("version", 2);
        two.set("settings", doc! { "heartbeatIntervalMillis": 250 });
        assert!(is(&set.reconfig(two, true).await, "ok"));
        set.until("it is a secondary", async |set| is(&set.hello(1).await, "secondary")).await;
        let copied: Vec<Bson> = all(&set, 1).await.into_iter().map(Bson::Document).collect();
        assert_eq!(copied, [first[1].clone(), first[2].clone(), first[0].clone()]);

        // What comes then is in the log: differences, whole documents, removals.
        let watch = doc! { "aggregate": "c", "pipeline": [{ "$changeStream": {} }], "cursor": {} };
        let cursor = at(&c.ok(watch).await, "cursor.id").cloned().unwrap();
        update(
            &mut c,
            string(b"\xFF"),
            doc! { "$set": { "s": string(b"\xFC"), "t": named(b"\xFB", 1.into()) } },
        )
        .await;
        update(&mut c, 2.into(), doc! { "$set": { "o.x": string(b"\xFA") } }).await;
        update(&mut c, 3.into(), named(b"\xF9", string(b"\xF8"))).await;
        add(&mut c, vec![with_id(string(b"\xFE"), Document::new())]).await;
        let deletes = vec![Bson::Document(doc! { "q": { "_id": string(b"\xFE") }, "limit": 1 })];
        c.ok(doc! { "delete": "c", "deletes": deletes, "writeConcern": majority() }).await;
        let mut events = Vec::new();
        while events.len() < 5 {
            let more = doc! { "getMore": cursor.clone(), "collection": "c", "maxTimeMS": 10_000 };
            let reply = c.ok(more).await;
            events.extend(at(&reply, "cursor.nextBatch").and_then(Bson::as_array).unwrap().to_vec());
        }
        let event = |i: usize, path: &str| at(events[i].as_doc().unwrap(), path).cloned().unwrap();
        assert_eq!(event(0, "documentKey._id"), string(b"\xFF"));
        assert_eq!(event(0, "updateDescription.updatedFields.s"), string(b"\xFC"));
        assert_eq!(event(0, "updateDescription.updatedFields.t"), Bson::Document(named(b"\xFB", 1.into())));
        assert_eq!(
            event(1, "updateDescription.updatedFields"),
            Bson::Document(named(b"o.x", string(b"\xFA")))
        );
        let replaced = with_id(3.into(), named(b"\xF9", string(b"\xF8")));
        assert_eq!(event(2, "fullDocument"), replaced);
        assert_eq!(event(4, "documentKey._id"), string(b"\xFE"));

        let hash = async |set: &Set, i: usize| {
            set.connect(i).await.run(anywhere(doc! { "dbHash": 1 })).await.get("md5").cloned()
        };
        set.until("one content", async |set| hash(set, 0).await == hash(set, 1).await).await;
        let now = all(&set, 0).await;
        assert_eq!(now[1], *replaced.as_doc().unwrap());
        for i in [1, 0] {
            set.stop(i).await;
            set.restart(i).await;
        }
        set.settled().await;
        for i in 0..2 {
            assert_eq!(all(&set, i).await, now);
            let mut c = set.connect(i).await;
            for (filter, hint) in [(doc! { "s": string(b"\xFC") }, "s"), (doc! { "h": string(b"\xC3") }, "h")]
            {
                let found = c.all(anywhere(doc! { "find": "c", "filter": filter, "hint": hint })).await;
                assert_eq!(found.len(), 1, "{hint}");
            }
            let found = c
                .all(anywhere(doc! { "find": "c", "filter": { "o.x": string(b"\xFA") }, "hint": "o.$**" }))
                .await;
            assert_eq!(found.len(), 1);
            let valid = c.run(anywhere(doc! { "validate": "c", "full": true })).await;
            assert!(is(&valid, "valid"), "{valid:?}");
        }
        set.shut_down().await;
    });
}
