//! A tenant's data on its way from one set to another: what the donor tells, and what the recipient makes of it (SV-MIG).

mod all_kinds;
mod killed;
mod sessions;
mod snapshot;

use crate::sets::words::*;
use pando_base::Timestamp;
use pando_bson::{Bson, Document, doc};
use pando_server::Config;
use pando_testserver::{Client, Set, is, pause};

const HANG: &str = "hangInTenantCopy";

fn nameless(c: &mut Config) {
    (c.repl_set, c.serverless) = (None, true);
    // What expires goes on the donor only, and is told: here by no blocker but by this.
    c.params.set_at_startup("ttlMonitorEnabled", "0").expect("a known parameter");
    c.params.set_at_startup("ttlMonitorSleepSecs", "1").expect("a known parameter");
}

async fn set_of(n: usize, name: &str) -> Set {
    let set = Set::started_with(n, nameless).await;
    let mut config = set.config(&vec![doc! {}; n]);
    config.set("_id", name);
    config.set("settings", doc! { "heartbeatIntervalMillis": 250, "catchUpTimeoutMillis": 5000 });
    set.connect(0).await.admin(doc! { "replSetInitiate": config }).await;
    set.settled().await;
    set
}

/// The set that tenant `a` leaves, and the one that takes it over.
struct Pair {
    donor: Set,
    recipient: Set,
}

impl Pair {
    async fn of(donors: usize, recipients: usize) -> Pair {
        Pair { donor: set_of(donors, "donor").await, recipient: set_of(recipients, "recipient").await }
    }
    async fn from(&self) -> Client {
        self.donor.connect(self.donor.primary().await).await
    }
    async fn to(&self) -> Client {
        self.recipient.connect(self.recipient.primary().await).await
    }
    fn step(&self, action: &str) -> Document {
        let hosts: Vec<String> = (0..self.donor.members.len()).map(|i| self.donor.host(i)).collect();
        let mut d = doc! { "_tenantCopy": action, "migrationId": uuid(9), "tenantId": "a", "$db": "admin" };
        d.push("donor", format!("donor/{}", hosts.join(",")));
        d
    }
    fn follow(&self, start: Timestamp) -> Document {
        let mut d = self.step("follow");
        d.push("start", start);
        d
    }
    /// A copy from the beginning: the time of it.
    async fn copy(&self) -> Timestamp {
        let mut c = self.to().await;
        c.ok(self.step("clear")).await;
        time(&c.ok(self.step("copy")).await, "at")
    }
    /// A time of the donor's that is behind all that has been acknowledged.
    async fn now(&self) -> Timestamp {
        let mut c = self.from().await;
        let note = doc! { "appendOplogNote": 1, "data": doc! { "now": 1 }, "writeConcern": majority(), "$db": "admin" };
        time(&c.ok(note).await, "operationTime")
    }
    /// Follows until all that has been acknowledged is here.
    async fn catch_up(&self, start: Timestamp) -> Timestamp {
        let (until, mut at) = (self.now().await, start);
        let mut c = self.to().await;
        while at < until {
            at = time(&c.ok(self.follow(at)).await, "at");
        }
        at
    }
    async fn same(&self) {
        let (donor, recipient) =
            (of_tenant(&mut self.from().await).await, of_tenant(&mut self.to().await).await);
        assert_eq!(donor.len(), recipient.len(), "{donor:#?}\n{recipient:#?}");
        for (there, here) in donor.iter().zip(&recipient) {
            assert_eq!(there, here);
        }
    }
    /// Members of the recipient that follow have what its primary has.
    async fn followers_have_the_same(&self) {
        let mut p = self.to().await;
        let upto =
            doc! { "insert": "c", "documents": [{ "n": 1 }], "writeConcern": { "w": 3 }, "$db": "z_db" };
        p.ok(upto).await;
        let wanted = of_tenant(&mut p).await;
        for i in self.recipient.secondaries().await {
            assert_eq!(of_tenant(&mut self.recipient.connect(i).await).await, wanted, "member {i}");
        }
    }
    async fn done(self) {
        self.donor.shut_down().await;
        self.recipient.shut_down().await;
    }
}

fn time(reply: &Document, name: &str) -> Timestamp {
    match reply.get(name) {
        Some(Bson::Timestamp(at)) => *at,
        other => panic!("no time {name}: {other:?} of {reply:?}"),
    }
}

async fn databases(c: &mut Client) -> Vec<String> {
    let reply = c.ok(anywhere(doc! { "listDatabases": 1, "nameOnly": true, "$db": "admin" })).await;
    let all = reply.get("databases").and_then(Bson::as_array).expect("databases").to_vec();
    let name = |d: &Bson| d.as_doc()?.get("name")?.as_str().map(str::to_owned);
    all.iter().filter_map(name).collect()
}

/// Everything that can be told of tenant `a`: definitions with their UUIDs, indexes, hashes of all documents.
async fn of_tenant(c: &mut Client) -> Vec<Document> {
    let mut all = Vec::new();
    for db in databases(c).await.into_iter().filter(|db| db.starts_with("a_")) {
        let mut listed = c.all(anywhere(doc! { "listCollections": 1, "$db": &*db })).await;
        listed.sort_by_key(|d| d.get("name").and_then(Bson::as_str).unwrap_or_default().to_owned());
        for coll in &listed {
            let name = coll.get("name").and_then(Bson::as_str).unwrap_or_default();
            if coll.get("type").and_then(Bson::as_str) == Some("collection") {
                let mut indexes = c.all(anywhere(doc! { "listIndexes": name, "$db": &*db })).await;
                indexes.sort_by_key(|d| d.get("name").and_then(Bson::as_str).unwrap_or_default().to_owned());
                all.extend(indexes);
            }
        }
        all.extend(listed);
        let mut hash = c.ok(anywhere(doc! { "dbHash": 1, "$db": &*db })).await;
        for name in ["timeMillis", "operationTime", "$clusterTime", "host"] {
            hash.remove(name);
        }
        all.push(hash);
    }
    all
}
