//! What the donor's primary holds still.

use super::*;
use pando_testserver::run;

fn of(command: &str, more: Document) -> Document {
    let mut d = Document::new();
    d.push(command, 1);
    d.push("migrationId", uuid(9));
    for (name, value) in more.iter() {
        d.push(name, value.clone());
    }
    d.push("$db", "admin");
    d
}
fn begin() -> Document {
    of("_tenantSnapshot", doc! { "tenantId": "a" })
}
fn collections(reply: &Document) -> Vec<Document> {
    let list = reply.get("collections").and_then(Bson::as_array).expect("collections");
    list.iter().filter_map(|d| d.as_doc().cloned()).collect()
}
async fn documents(c: &mut Client, uuid: &Bson) -> Vec<i64> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let mut more = Document::new();
        more.push("uuid", uuid.clone());
        if let Some(after) = after {
            more.push("after", after);
        }
        let reply = c.ok(of("_tenantDocuments", more)).await;
        let docs = reply.get("docs").and_then(Bson::as_array).expect("documents");
        all.extend(docs.iter().filter_map(|d| d.as_doc().map(|d| number(d, "_id"))));
        after = reply.get("after").cloned();
        if after.is_none() {
            return all;
        }
    }
}

#[test]
fn what_is_dropped_and_changed_behind_it_is_there_as_it_was() {
    run(async {
        let donor = set_of(1, "donor").await;
        let mut c = donor.connect(0).await;
        let wide: Vec<Bson> = (0..30).map(|i| doc! { "_id": i, "pad": "x".repeat(400_000) }.into()).collect();
        let mut insert = doc! { "insert": "wide", "$db": "a_db" };
        insert.push("documents", wide);
        c.ok(insert).await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }], "$db": "a_db" }).await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "a_gone" }).await;
        let reply = c.ok(begin()).await;
        let told = collections(&reply);
        let names: Vec<&str> = told.iter().filter_map(|d| d.get("ns").and_then(Bson::as_str)).collect();
        assert_eq!(names, ["a_db.c", "a_db.wide", "a_gone.c"]);
        let uuids: Vec<Bson> = told.iter().filter_map(|d| d.get("uuid").cloned()).collect();

        c.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }], "$db": "a_db" }).await;
        c.ok(doc! { "drop": "wide", "$db": "a_db" }).await;
        c.ok(doc! { "create": "wide", "$db": "a_db" }).await;
        c.ok(doc! { "dropDatabase": 1, "$db": "a_gone" }).await;
        c.admin(doc! { "renameCollection": "a_db.c", "to": "a_db.d" }).await;
        // Far beyond what is kept for readers that have just begun, and on the disk.
        c.admin(doc! { "setParameter": 1, "minSnapshotHistoryWindowInSeconds": 0 }).await;
        for _ in 0..3 {
            c.ok(
                doc! { "insert": "c", "documents": [{ "n": 1 }], "writeConcern": majority(), "$db": "z_db" },
            )
            .await;
            pause(700).await;
            c.admin(doc! { "fsync": 1 }).await;
        }
        assert_eq!(documents(&mut c, &uuids[0]).await, [1, 2]);
        assert_eq!(documents(&mut c, &uuids[1]).await, (0..30).collect::<Vec<i64>>());
        assert_eq!(documents(&mut c, &uuids[2]).await, [1]);
        c.ok(of("_tenantSnapshotEnd", doc! {})).await;
        let mut gone = doc! {};
        gone.push("uuid", uuids[0].clone());
        assert_eq!(code(&c.run(of("_tenantDocuments", gone)).await), 94);
        donor.shut_down().await;
    });
}

#[test]
fn it_ends_with_the_office() {
    run(async {
        let donor = set_of(3, "donor").await;
        let p = donor.primary().await;
        let mut c = donor.connect(p).await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }], "writeConcern": majority(), "$db": "a_db" })
            .await;
        let uuid = collections(&c.ok(begin()).await)[0].get("uuid").cloned().expect("a UUID");
        assert_eq!(documents(&mut c, &uuid).await, [1]);
        let s = donor.secondaries().await[0];
        assert_eq!(code(&donor.connect(s).await.run(begin()).await), 10107);
        donor
            .until("a step-down", async |set| {
                is(&set.connect(p).await.run(doc! { "replSetStepDown": 30, "$db": "admin" }).await, "ok")
            })
            .await;
        let mut ask = doc! {};
        ask.push("uuid", uuid);
        let ask = of("_tenantDocuments", ask);
        assert_eq!(code(&donor.connect(p).await.run(ask.clone()).await), 10107);
        // Whoever is primary next holds nothing; not even where that is the same one.
        let heir = donor.primary().await;
        assert_eq!(code(&donor.connect(heir).await.run(ask).await), 94);
        donor.shut_down().await;
    });
}

#[test]
fn nothing_is_told_that_a_majority_does_not_have() {
    run(async {
        let donor = set_of(3, "donor").await;
        let p = donor.primary().await;
        let mut c = donor.connect(p).await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }], "writeConcern": { "w": 3 }, "$db": "a_db" })
            .await;
        let at = time(&c.ok(begin()).await, "at");
        for i in donor.secondaries().await {
            donor.fail_point(i, "stopReplProducer", true).await;
        }
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 2 }], "writeConcern": { "w": 1 }, "$db": "a_db" })
            .await;
        let mut ask = doc! { "_tenantEntries": 1, "tenantId": "a", "waitMS": 300, "$db": "admin" };
        ask.push("after", at);
        let told = c.ok(ask.clone()).await;
        assert_eq!(told.get("entries").and_then(Bson::as_array).map(<[Bson]>::len), Some(0), "{told:?}");
        let mut again = begin();
        again.push("maxTimeMS", 500);
        assert_eq!(code(&c.run(again).await), 50);
        for i in donor.secondaries().await {
            donor.fail_point(i, "stopReplProducer", false).await;
        }
        let mut n = 0;
        while n == 0 {
            n = c.ok(ask.clone()).await.get("entries").and_then(Bson::as_array).map_or(0, <[Bson]>::len);
        }
        assert_eq!(n, 1);
        // Behind a time that the log does not have.
        ask.set("after", Timestamp::new(1, 1));
        assert_eq!(code(&c.run(ask).await), 136);
        donor.shut_down().await;
    });
}

#[test]
fn only_sets_with_tenants_are_asked() {
    run(async {
        let set = Set::of(1).await;
        let mut c = set.connect(0).await;
        for command in
            [begin(), of("_tenantEntries", doc! { "tenantId": "a" }), of("_tenantSnapshotEnd", doc! {})]
        {
            assert_eq!(code(&c.run(command.clone()).await), 115, "{command:?}");
        }
        set.shut_down().await;
    });
}
