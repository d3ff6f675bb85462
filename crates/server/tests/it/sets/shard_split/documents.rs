//! State documents, whoever writes them: blockers follow what is stored, and only steps that a split makes are taken.

use super::*;
use pando_testserver::run;

/// Is in no set at the beginning.
const COPIES: usize = 6;

fn state(id: u8, name: &str) -> Document {
    let mut d = doc! { "_id": uuid(id), "recipientSetName": RECIPIENT, "recipientTagName": TAG };
    d.push("tenantIds", vec![Bson::from("acme")]);
    d.push("state", name);
    d
}
fn insert_state(state: Document) -> Document {
    let mut d = doc! { "insert": "tenantSplitDonors", "$db": "config", "writeConcern": { "w": 1 } };
    d.push("documents", vec![Bson::from(state)]);
    d
}
fn replace_state(state: Document) -> Document {
    let mut statement = Document::new();
    statement.push("q", doc! { "_id": state.get("_id").expect("an id").clone() });
    statement.push("u", state);
    let mut d = doc! { "update": "tenantSplitDonors", "$db": "config", "writeConcern": { "w": 1 } };
    d.push("updates", vec![Bson::from(statement)]);
    d
}
fn error(reply: &Document) -> i64 {
    let first = reply.get("writeErrors").and_then(Bson::as_array).and_then(|all| all.first());
    first.and_then(Bson::as_doc).map_or(code(reply), code)
}
async fn time(c: &mut Client) -> Bson {
    let reply = c.ok(doc! { "ping": 1 }).await;
    at(&reply, "operationTime").expect("a time").clone()
}

#[test]
fn only_steps_of_a_split_are_taken_and_blockers_go_with_the_collection_of_their_documents() {
    run(async {
        let d = Donor::start().await;
        let mut c = d.client().await;
        c.ok(put("acme_db", 1)).await;
        let now = time(&mut c).await;
        let blocking = || {
            let mut d = state(1, "blocking");
            d.push("blockTimestamp", now.clone());
            d
        };
        assert_eq!(error(&c.run(insert_state(doc! { "_id": 1 })).await), 2, "no state");
        assert_eq!(error(&c.run(insert_state(blocking())).await), 20, "not at once");
        let mut nobodys = state(9, "uninitialized");
        nobodys.remove("recipientTagName");
        assert_eq!(error(&c.run(insert_state(nobodys)).await), 2, "no primary could go on with it");
        c.ok(insert_state(state(1, "uninitialized"))).await;
        assert_eq!(error(&c.run(replace_state(blocking())).await), 20, "not over a step");
        c.ok(replace_state(state(1, "aborting index builds"))).await;
        c.ok(put("acme_db", 2)).await;
        c.ok(replace_state(blocking())).await;
        assert_eq!(error(&c.run(replace_state(state(1, "aborting index builds"))).await), 20, "not back");
        assert_eq!(code(&c.run(briefly(put("acme_db", 3))).await), 50);
        let mut delete = doc! { "delete": "tenantSplitDonors", "$db": "config" };
        delete.push("deletes", vec![Bson::from(doc! { "q": {}, "limit": 0 })]);
        assert_eq!(error(&c.run(delete).await), 20, "not before its time");
        c.ok(doc! { "drop": "tenantSplitDonors", "$db": "config" }).await;
        c.ok(put("acme_db", 4)).await;
        d.done().await;
    });
}

#[test]
fn a_rollback_takes_blockers_back_and_a_first_copy_brings_them() {
    run(async {
        let d = Donor::beside(1).await;
        let p = d.primary().await;
        let mut c = d.set.connect(p).await;
        c.ok(put("acme_db", 1)).await;
        without_catching_up(&d.set, p).await;
        let rest: Vec<usize> = (0..6).filter(|i| *i != p).collect();
        for i in &rest {
            d.set.fail_point(*i, "stopReplProducer", true).await;
        }
        // What it says alone: the tenant is blocked.
        c.ok(insert_state(state(1, "uninitialized"))).await;
        c.ok(replace_state(state(1, "aborting index builds"))).await;
        let mut blocking = state(1, "blocking");
        blocking.push("blockTimestamp", time(&mut c).await);
        c.ok(replace_state(blocking)).await;
        assert_eq!(code(&c.run(briefly(put("acme_db", 2))).await), 50);
        c.admin(doc! { "replSetStepDown": 60, "secondaryCatchUpPeriodSecs": 0, "force": true }).await;
        let next = rest[0];
        d.set
            .until("a successor", async |set| {
                let stood = set.connect(next).await.run(doc! { "replSetStepUp": 1, "$db": "admin" }).await;
                is(&stood, "ok") || is(&set.hello(next).await, "isWritablePrimary")
            })
            .await;
        d.set.until("it writes", async |set| is(&set.hello(next).await, "isWritablePrimary")).await;
        let mut new = d.set.connect(next).await;
        let alone =
            doc! { "insert": "c", "documents": [{ "_id": 3 }], "writeConcern": { "w": 1 }, "$db": "acme_db" };
        new.ok(alone).await;
        for i in &rest {
            d.set.fail_point(*i, "stopReplProducer", false).await;
        }
        new.ok(put("acme_db", 4)).await;
        let behind = time(&mut new).await;
        d.set
            .until("the rollback", async |set| {
                let mut look = anywhere(briefly(look("acme_db")));
                let mut concern = Document::new();
                concern.push("afterClusterTime", behind.clone());
                look.push("readConcern", concern);
                is(&set.hello(p).await, "secondary") && code(&set.connect(p).await.run(look).await) == 0
            })
            .await;
        assert!(d.state(p, 1).await.is_none());

        assert_eq!(d.split(2, &["acme"]).await.get("state"), Some(&"committed".into()));
        let mut config = d.set.current(d.primary().await).await;
        let version = number(&config, "version");
        config.set("version", version + 1);
        config.remove("recipientConfig").expect("it is split");
        let mut members = at(&config, "members").and_then(Bson::as_array).expect("members").to_vec();
        members.push(doc! { "_id": 9, "host": d.set.host(COPIES), "votes": 0, "priority": 0 }.into());
        config.set("members", members);
        let p = d.primary().await;
        d.set.connect(p).await.ok(doc! { "replSetReconfig": config, "$db": "admin" }).await;
        d.until_told(COPIES, "acme_db", 321).await;
        d.until_told(COPIES, "other_db", 0).await;
        d.done().await;
    });
}
