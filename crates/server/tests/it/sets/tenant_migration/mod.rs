//! Two sets with tenants, one of which gives tenants to the other one (SV-OUT-1).

mod commands;
mod copies;
mod failures;
mod merges;
mod moves;
mod streams;

use crate::sets::words::*;
use pando_bson::{Bson, Document, doc};
use pando_server::Config;
use pando_testserver::{Client, Set, is, pause};

pub(super) const SETS: [&str; 2] = ["donor", "recipient"];
pub(super) const DONOR: usize = 0;
pub(super) const RECIPIENT: usize = 1;

/// Members of each set.
const EACH: usize = 3;

fn serverless(c: &mut Config) {
    (c.repl_set, c.serverless) = (None, true);
}

/// Members 0 to 2 are the donor, 3 to 5 the recipient.
pub(super) struct Two {
    pub(super) set: Set,
}

impl Two {
    pub(super) async fn start() -> Two {
        let set = Set::started_with(2 * EACH, serverless).await;
        let two = Two { set };
        for of in [DONOR, RECIPIENT] {
            let members = (0..EACH).map(|i| {
                let mut m = doc! { "_id": i as i32 };
                m.push("host", two.set.host(of * EACH + i));
                Bson::from(m)
            });
            let mut config = doc! { "_id": SETS[of], "version": 1 };
            config.push("members", members.collect::<Vec<_>>());
            config.push("settings", doc! { "heartbeatIntervalMillis": 250, "electionTimeoutMillis": 3000 });
            two.set.connect(of * EACH).await.admin(doc! { "replSetInitiate": config }).await;
        }
        for of in [DONOR, RECIPIENT] {
            two.primary(of).await;
            for i in two.members(of) {
                two.forgets_soon(i).await;
            }
        }
        two.set
            .until("all have copied", async |set| {
                for i in 0..2 * EACH {
                    let hello = set.hello(i).await;
                    if !is(&hello, "secondary") && !is(&hello, "isWritablePrimary") {
                        return false;
                    }
                }
                true
            })
            .await;
        two
    }
    /// Documents that may be forgotten go at once, and a busy machine is given the time it needs.
    async fn forgets_soon(&self, i: usize) {
        let mut c = self.set.connect(i).await;
        c.admin(doc! { "setParameter": 1, "tenantMigrationGarbageCollectionDelayMS": 200 }).await;
        c.admin(doc! { "setParameter": 1, "tenantMigrationBlockingStateTimeoutMS": 60_000 }).await;
    }
    pub(super) async fn restart(&mut self, i: usize) {
        self.set.restart(i).await;
        self.forgets_soon(i).await;
    }
    pub(super) fn members(&self, of: usize) -> std::ops::Range<usize> {
        of * EACH..(of + 1) * EACH
    }
    pub(super) fn connection(&self, of: usize) -> String {
        let hosts: Vec<String> = self.members(of).map(|i| self.set.host(i)).collect();
        format!("{}/{}", SETS[of], hosts.join(","))
    }
    pub(super) async fn primary(&self, of: usize) -> usize {
        for _ in 0..6000 {
            for i in self.members(of).filter(|i| self.set.runs(*i)) {
                if is(&self.set.hello(i).await, "isWritablePrimary") {
                    return i;
                }
            }
            pause(10).await;
        }
        panic!("no primary of the {}", SETS[of]);
    }
    pub(super) async fn client(&self, of: usize) -> Client {
        self.set.connect(self.primary(of).await).await
    }
    /// At whoever is primary, again until it is answered by one.
    pub(super) async fn ask(&self, of: usize, command: Document) -> Document {
        loop {
            let mut c = self.client(of).await;
            match c.try_run(command.clone()).await {
                Some(reply) if !is_of_office(&reply) => return reply,
                _ => pause(20).await,
            }
        }
    }
    pub(super) fn start_command(&self, id: u8, tenant: &str) -> Document {
        let mut d = doc! { "donorStartMigration": 1, "migrationId": uuid(id) };
        d.push("recipientConnectionString", self.connection(RECIPIENT));
        d.push("tenantId", tenant);
        d.push("readPreference", doc! { "mode": "primary" });
        d.push("$db", "admin");
        d
    }
    pub(super) fn merge_command(&self, id: u8) -> Document {
        let mut d = doc! { "donorStartMigration": 1, "migrationId": uuid(id), "protocol": "shard merge" };
        d.push("recipientConnectionString", self.connection(RECIPIENT));
        d.push("readPreference", doc! { "mode": "primary" });
        d.push("$db", "admin");
        d
    }
    /// Moves a tenant, as somebody does who asks until it is decided.
    pub(super) async fn migrate(&self, id: u8, tenant: &str) -> Document {
        self.until_decided(self.start_command(id, tenant)).await
    }
    pub(super) async fn merge(&self, id: u8) -> Document {
        self.until_decided(self.merge_command(id)).await
    }
    async fn until_decided(&self, command: Document) -> Document {
        loop {
            let reply = self.ask(DONOR, command.clone()).await;
            let state = reply.get("state").and_then(Bson::as_str).unwrap_or_default();
            if !is(&reply, "ok") || matches!(state, "committed" | "aborted") {
                return reply;
            }
            pause(20).await;
        }
    }
    pub(super) async fn moved(&self, id: u8, tenant: &str) {
        let reply = self.migrate(id, tenant).await;
        assert_eq!(reply.get("state"), Some(&"committed".into()), "{reply:?}");
    }
    pub(super) async fn forget(&self, id: u8) {
        let reply = self.ask(DONOR, of_migration("donorForgetMigration", id)).await;
        assert!(is(&reply, "ok"), "{reply:?}");
    }
    /// What the documents of a migration say at a set's primary.
    pub(super) async fn state(&self, of: usize, id: u8) -> Option<Document> {
        let coll = ["tenantMigrationDonors", "tenantMigrationRecipients"][of];
        let find = doc! { "find": coll, "filter": { "_id": uuid(id) }, "$db": "config" };
        self.client(of).await.all(find).await.pop()
    }
    pub(super) async fn until_gone(&self, id: u8) {
        for _ in 0..3000 {
            if self.state(DONOR, id).await.is_none() && self.state(RECIPIENT, id).await.is_none() {
                return;
            }
            pause(20).await;
        }
        panic!("{:?} {:?}", self.state(DONOR, id).await, self.state(RECIPIENT, id).await);
    }
    pub(super) async fn databases(&self, of: usize) -> Vec<String> {
        let reply = self.client(of).await.admin(doc! { "listDatabases": 1, "nameOnly": true }).await;
        let list = reply.get("databases").and_then(Bson::as_array).expect("a list");
        let names = list.iter().filter_map(|d| d.as_doc()?.get("name")?.as_str().map(str::to_owned));
        names.filter(|name| name.contains('_')).collect()
    }
    pub(super) async fn ids(&self, of: usize, db: &str) -> Vec<i64> {
        let found = self.client(of).await.all(look(db)).await;
        let mut ids: Vec<i64> = found.iter().map(|d| number(d, "_id")).collect();
        ids.sort_unstable();
        ids
    }
    pub(super) async fn done(self) {
        self.set.shut_down().await;
    }
}

pub(super) fn is_of_office(reply: &Document) -> bool {
    matches!(code(reply), 91 | 189 | 10107 | 11600 | 11602 | 13435 | 13436)
}
pub(super) fn of_migration(command: &str, id: u8) -> Document {
    let mut d = Document::new();
    d.push(command, 1);
    d.push("migrationId", uuid(id));
    d.push("$db", "admin");
    d
}
pub(super) fn put(db: &str, id: i32) -> Document {
    doc! { "insert": "c", "documents": [{ "_id": id }], "writeConcern": majority(), "$db": db }
}
pub(super) fn look(db: &str) -> Document {
    doc! { "find": "c", "$db": db }
}
pub(super) fn briefly(mut command: Document) -> Document {
    command.push("maxTimeMS", 300);
    command
}
