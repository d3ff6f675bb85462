//! What each set must be once everything has healed: all its members follow one primary and have one content.

use super::users::Users;
use crate::client::Client;
use crate::executor::lock;
use crate::set::agreement;
use crate::set::asking::{connected, hello, primary_of};
use crate::set::users::caller::docs;
use pando_bson::{DocBuf, Document, RawDoc, doc};
use pando_env::Env;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(super) const PAUSE: Duration = Duration::from_millis(200);

/// What is asked, and who is.
pub(super) struct Parts {
    pub(super) env: Env,
    pub(super) addrs: Vec<String>,
    pub(super) users: Users,
    /// How far it is, for whoever looks for what holds it up.
    pub(super) stage: Arc<Mutex<String>>,
}

pub(super) fn text<'a>(doc: &'a RawDoc, name: &str) -> &'a str {
    doc.get(name).and_then(|v| v.as_str()).unwrap_or_default()
}

impl Parts {
    pub(super) fn at(&self, stage: String) {
        *lock(&self.stage) = stage;
    }
    /// The members of a set, its primary first.
    pub(super) async fn set(&self, name: &str, who: std::ops::Range<usize>) -> Vec<String> {
        self.at(format!("a primary of {name}"));
        let mut addrs = self.addrs[who].to_vec();
        let at = primary_of(&self.env, &addrs).await;
        addrs.swap(0, at);
        addrs
    }
    /// Returns when every member of a set follows or leads, and the configuration has these members and no other.
    pub(super) async fn members(&self, set: &str, addrs: &[String]) {
        for addr in addrs {
            loop {
                let said = hello(&self.env, addr).await;
                let here = |h: &DocBuf| {
                    let is = |field: &str| h.get(field).is_some_and(|v| v.is_truthy());
                    (is("isWritablePrimary") || is("secondary")) && text(h, "setName") == set
                };
                let count = self.count(addr).await;
                if said.as_ref().is_some_and(here) && count == Some(addrs.len()) {
                    break;
                }
                self.at(format!("{addr} is no member of {set} with {} members: {said:?}", addrs.len()));
                self.env.clock.sleep(PAUSE).await;
            }
        }
    }
    /// How many members the configuration of a member has.
    async fn count(&self, addr: &str) -> Option<usize> {
        let mut c = Client::connect(&self.env, addr).await.ok()?;
        let reply = c.command(&doc! { "replSetGetConfig": 1, "$db": "admin" }.to_raw()).await.ok()?;
        Some(reply.get_path("config.members")?.as_array()?.iter().count())
    }
    pub(super) async fn primaries(&self, set: &str, addrs: &[String]) -> Option<String> {
        let mut found = Vec::new();
        for addr in addrs {
            let said = hello(&self.env, addr).await;
            if said.is_some_and(|h| h.get("isWritablePrimary").is_some_and(|v| v.is_truthy())) {
                found.push(addr);
            }
        }
        (found.len() > 1).then(|| format!("{set} has the primaries {found:?}"))
    }
    /// Returns when no member has a document in a collection of `config`.
    pub(super) async fn nothing_left(&self, coll: &str, addrs: &[String]) {
        for addr in addrs {
            loop {
                let found = documents(&self.env, addr, coll).await;
                if found.as_ref().is_some_and(Vec::is_empty) {
                    break;
                }
                self.at(format!("{addr} has {coll}: {found:?}"));
                self.env.clock.sleep(PAUSE).await;
            }
        }
    }
    /// All members have the same data.
    pub(super) async fn same(&self, set: &str, addrs: Vec<String>) -> Vec<String> {
        self.at(format!("the data of {set}"));
        let agreed = agreement::run(self.env.clone(), addrs, self.stage.clone()).await;
        agreed.err().into_iter().flatten().map(|p| format!("{set}: {p}")).collect()
    }
}

/// All documents that a member has in a collection of `config`.
pub(super) async fn documents(env: &Env, addr: &str, coll: &str) -> Option<Vec<DocBuf>> {
    let mut c = connected(env, addr).await;
    let mut find = Document::new();
    find.push("find", coll);
    find.push("$readPreference", doc! { "mode": "nearest" });
    find.push("$db", "config");
    let reply = c.command(&find.to_raw()).await.ok()?;
    docs(&reply)
}
