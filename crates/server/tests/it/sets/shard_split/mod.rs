//! A set of three voters and three hidden members that splits (SV-SPLIT, SV-MTAB).

mod access;
mod commands;
mod configuration;
mod documents;
mod failures;
mod moves;

use crate::sets::words::*;
use pando_bson::{Bson, Document, doc};
use pando_server::Config;
use pando_testserver::{Client, JoinHandle, Set, is, pause, spawn};

pub(super) const DONOR: &str = "donor";
pub(super) const RECIPIENT: &str = "recipient";
pub(super) const TAG: &str = "leaves";

fn nameless(c: &mut Config) {
    (c.repl_set, c.serverless) = (None, true);
}

/// Six members: 0 to 2 stay, 3 to 5 may leave.
pub(super) struct Donor {
    pub(super) set: Set,
}

impl Donor {
    pub(super) async fn start() -> Donor {
        Donor::beside(0).await
    }
    /// The same, with servers that are in no set yet.
    pub(super) async fn beside(others: usize) -> Donor {
        let set = Set::started_with(6 + others, nameless).await;
        let leaves = |n: i32| {
            let mut m = doc! { "votes": 0, "priority": 0, "hidden": true };
            m.push("tags", doc! { "leaves": format!("r{n}") });
            m
        };
        let mut config = set.config(&[doc! {}, doc! {}, doc! {}, leaves(0), leaves(1), leaves(2)]);
        config.set("_id", DONOR);
        config.set("settings", doc! { "heartbeatIntervalMillis": 250, "electionTimeoutMillis": 5000 });
        set.connect(0).await.admin(doc! { "replSetInitiate": config }).await;
        let d = Donor { set };
        d.primary().await;
        d.set
            .until("all have copied", async |set| {
                for i in 0..6 {
                    let hello = set.hello(i).await;
                    if !is(&hello, "secondary") && !is(&hello, "isWritablePrimary") {
                        return false;
                    }
                }
                true
            })
            .await;
        d
    }
    /// The primary among those that stay.
    pub(super) async fn primary(&self) -> usize {
        self.primary_of(&[0, 1, 2], DONOR).await
    }
    /// The primary of the new set.
    pub(super) async fn new_primary(&self) -> usize {
        self.primary_of(&[3, 4, 5], RECIPIENT).await
    }
    async fn primary_of(&self, members: &[usize], name: &str) -> usize {
        for _ in 0..6000 {
            for i in members {
                if !self.set.runs(*i) {
                    continue;
                }
                let hello = self.set.hello(*i).await;
                if is(&hello, "isWritablePrimary") && hello.get("setName") == Some(&name.into()) {
                    return *i;
                }
            }
            pause(10).await;
        }
        panic!("no primary of {name}");
    }
    pub(super) async fn client(&self) -> Client {
        self.set.connect(self.primary().await).await
    }
    /// A command of a split, at whoever is primary, again until it is answered by one.
    pub(super) async fn ask(&self, command: Document) -> Document {
        loop {
            let mut c = self.client().await;
            let reply = c.try_run(command.clone()).await;
            match reply {
                Some(reply) if !is_of_office(&reply) => return reply,
                _ => pause(20).await,
            }
        }
    }
    pub(super) async fn split(&self, id: u8, tenants: &[&str]) -> Document {
        self.ask(split(id, tenants)).await
    }
    /// Begins a split that stands still before its `n`-th step; the command is on its way.
    pub(super) async fn held(&self, n: usize) -> (usize, JoinHandle<Document>) {
        let p = self.primary().await;
        self.set.hang_at(p, n).await;
        let before = self.set.entered(p);
        let mut c = self.set.connect(p).await;
        let task = spawn(async move { c.try_run(split(1, &["acme"])).await.unwrap_or_default() });
        assert!(self.set.hangs(p, before, &task).await, "{:?}", task.await);
        (p, task)
    }
    pub(super) async fn go_on(&self, member: usize) {
        self.set.fail_point(member, "hangBeforeWorkflowAction", false).await;
    }
    /// What the document of a split says on a member.
    pub(super) async fn state(&self, member: usize, id: u8) -> Option<Document> {
        let find = doc! { "find": "tenantSplitDonors", "filter": { "_id": uuid(id) }, "$db": "config" };
        self.set.connect(member).await.all(anywhere(find)).await.pop()
    }
    /// Returns when a read of that database on a member ends with that code.
    pub(super) async fn until_told(&self, member: usize, db: &str, expected: i64) {
        let mut told = Document::new();
        for _ in 0..3000 {
            told = self.set.connect(member).await.run(anywhere(look(db))).await;
            if code(&told) == expected {
                return;
            }
            pause(20).await;
        }
        panic!("member {member} does not answer with {expected}: {told:?}");
    }
    pub(super) async fn done(self) {
        self.set.shut_down().await;
    }
}

fn is_of_office(reply: &Document) -> bool {
    matches!(code(reply), 91 | 189 | 10107 | 11600 | 11602 | 13435 | 13436)
}

pub(super) fn split(id: u8, tenants: &[&str]) -> Document {
    let mut d = doc! { "commitShardSplit": 1, "migrationId": uuid(id) };
    d.push("recipientSetName", RECIPIENT);
    d.push("recipientTagName", TAG);
    d.push("tenantIds", tenants.iter().map(|t| Bson::from(*t)).collect::<Vec<_>>());
    d.push("$db", "admin");
    d
}
pub(super) fn of_split(command: &str, id: u8) -> Document {
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
