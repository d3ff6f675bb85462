//! Whoever splits the set: asks for a split until a primary says how it ended, calls some off, tells all users what has moved, and has
//! the split forgotten.

use super::super::board::Board;
use super::super::name;
use super::knowledge::{Knowledge, Said, Split};
use super::shape::{OTHER_RECIPIENT, OTHER_TAG, RECIPIENT, TAG};
use crate::client::Client;
use crate::executor::lock;
use crate::set::asking::primary_of;
use crate::set::users::caller::docs;
use pando_base::Timestamp;
use pando_bson::{Binary, Bson, DocBuf, Document, RawDoc, Value, doc};
use pando_env::Env;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Before it is asked again.
const PAUSE: Duration = Duration::from_millis(100);
/// Commands that users sent before they were told have been answered, or given up, by then.
const USERS_KNOW: Duration = Duration::from_secs(11);
/// Nobody answers for longer than a split that stands still.
const REPLY_LIMIT: Duration = Duration::from_secs(25);

/// What is to be done.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) id: u8,
    pub(super) tenants: Vec<usize>,
    /// It is called off after this time.
    pub(super) abort_after: Option<Duration>,
    /// It names the members by their other tag.
    pub(super) other_tag: bool,
    /// All users are told so long after the decision.
    pub(super) told_after: Duration,
    /// Somebody has it forgotten, at once after an abort.
    pub(super) forgets: bool,
}

#[derive(Clone)]
pub(super) struct Operator {
    pub(super) env: Env,
    /// Of those that stay.
    pub(super) addrs: Vec<String>,
    pub(super) knowledge: Arc<Mutex<Knowledge>>,
    pub(super) board: Arc<Mutex<Board>>,
}

pub(super) fn uuid(n: u8) -> Bson {
    Bson::Binary(Binary { subtype: 4, bytes: vec![n; 16] })
}
pub(super) fn code(reply: &RawDoc) -> i64 {
    reply.get("code").and_then(|v| v.as_i64()).unwrap_or(0)
}

fn commit(plan: &Plan) -> Document {
    let (set, tag) = if plan.other_tag { (OTHER_RECIPIENT, OTHER_TAG) } else { (RECIPIENT, TAG) };
    let mut d = doc! { "commitShardSplit": 1, "migrationId": uuid(plan.id) };
    d.push("recipientSetName", set);
    d.push("recipientTagName", tag);
    d.push("tenantIds", plan.tenants.iter().map(|t| Bson::from(name(*t))).collect::<Vec<_>>());
    d.push("$db", "admin");
    d
}
fn of_split(command: &str, id: u8) -> Document {
    let mut d = Document::new();
    d.push(command, 1);
    d.push("migrationId", uuid(id));
    d.push("$db", "admin");
    d
}

/// What a reply to `commitShardSplit` says, if anything final.
fn said(reply: &RawDoc) -> Option<Said> {
    let state = reply.get("state").and_then(|v| v.as_str());
    match (reply.get("ok").is_some_and(|v| v.is_truthy()), code(reply), state) {
        (true, _, Some("committed")) => Some(Said::Committed),
        (_, 125, _) => Some(Said::Aborted),
        (_, code @ (117 | 385), _) => Some(Said::Refused(code)),
        _ => None,
    }
}

impl Operator {
    /// A reply of the primary, whatever it says.
    async fn ask(&self, body: &DocBuf) -> Option<DocBuf> {
        let env = self.env.clone();
        let asking = async {
            let at = primary_of(&env, &self.addrs).await;
            Client::connect(&env, &self.addrs[at]).await.ok()?.command(body).await.ok()
        };
        env.timeout(REPLY_LIMIT, asking).await?
    }
    /// Asks until `judge` finds an answer in the reply.
    async fn insist<T>(&self, body: Document, judge: impl Fn(&RawDoc) -> Option<T>) -> T {
        let body = body.to_raw();
        loop {
            if let Some(found) = self.ask(&body).await.and_then(|reply| judge(&reply)) {
                return found;
            }
            self.env.clock.sleep(PAUSE).await;
        }
    }

    /// One split, from its command until it is forgotten or left alone.
    pub(super) async fn run(self, plan: Plan) {
        let how = self.insist(commit(&plan), said).await;
        self.note(plan.id, how, "commitShardSplit");
        if how == Said::Committed || how == Said::Aborted {
            self.look_at_document(&plan, how).await;
        }
        if how == Said::Committed {
            self.env.clock.sleep(plan.told_after).await;
            self.announce(&plan);
            self.env.clock.sleep(USERS_KNOW).await;
        }
        if plan.forgets && !matches!(how, Said::Refused(_)) {
            self.forget(plan.id).await;
        }
        if let Some(split) = lock(&self.knowledge).split(plan.id) {
            split.over = Some(self.env.clock.mono());
        }
    }
    /// Everybody goes to the new set from now on.
    fn announce(&self, plan: &Plan) {
        let mut board = lock(&self.board);
        plan.tenants.iter().for_each(|t| board.announce(*t));
    }
    fn problem(&self, text: String) {
        lock(&self.board).problems.push(text);
    }
    fn note(&self, id: u8, how: Said, command: &str) {
        let mut knowledge = lock(&self.knowledge);
        let refusable = knowledge.may_be_refused(id);
        if matches!(how, Said::Refused(_)) && !refusable {
            self.problem(format!("split {id} was refused beside no other: {how:?}"));
        }
        let Some(split) = knowledge.split(id) else { return };
        let (before, called_off) = (*split.said.get_or_insert(how), split.called_off);
        // A split that nobody has begun is aborted all the same when it is called off.
        let not_begun = |said: Said| matches!(said, Said::Aborted | Said::Refused(_));
        let fits = before == how || called_off && not_begun(before) && not_begun(how);
        if !fits {
            self.problem(format!("{command} says that split {id} is {how:?}; it was {before:?} before"));
        }
    }
    /// What the document says is what the command said.
    async fn look_at_document(&self, plan: &Plan, how: Said) {
        // Of a new primary's first moments a majority read may be older than what the last one has said.
        let find = doc! {
            "find": "tenantSplitDonors", "filter": { "_id": uuid(plan.id) }, "maxTimeMS": 8000,
            "readConcern": { "level": "linearizable" }, "$db": "config"
        };
        let found = self.insist(find, docs).await;
        let state = found.first().and_then(|d| d.get("state").and_then(|v| v.as_str().map(str::to_owned)));
        let block = found.first().and_then(|d| match d.get("blockTimestamp") {
            Some(Value::Timestamp(at)) => Some(at),
            _ => None,
        });
        let expected = if how == Said::Committed { "committed" } else { "aborted" };
        let mut knowledge = lock(&self.knowledge);
        let Some(split) = knowledge.split(plan.id) else { return };
        split.block = block.filter(|_| how == Said::Committed);
        if state.as_deref() != Some(expected) && !split.forgotten {
            let text = format!("split {} was told to be {expected}; its document says {state:?}", plan.id);
            self.problem(text);
        }
    }
    /// Calls a split off; what the reply says of it is noted, too.
    pub(super) async fn call_off(self, id: u8, after: Duration) {
        self.env.clock.sleep(after).await;
        if let Some(split) = lock(&self.knowledge).split(id) {
            if split.forgotten || split.over.is_some() {
                return;
            }
            split.called_off = true;
        }
        let how = self
            .insist(of_split("abortShardSplit", id), |reply| match code(reply) {
                0 if reply.get("ok").is_some_and(|v| v.is_truthy()) => Some(Said::Aborted),
                321 => Some(Said::Committed),
                _ => None,
            })
            .await;
        self.note(id, how, "abortShardSplit");
    }
    /// Its document goes soon, and the tenants' blockers with it.
    pub(super) async fn forget(&self, id: u8) {
        if let Some(split) = lock(&self.knowledge).split(id) {
            split.forgotten = true;
        }
        let done = |reply: &RawDoc| {
            let ok = reply.get("ok").is_some_and(|v| v.is_truthy());
            // 327: somebody had asked before, and nobody heard the answer.
            (ok || code(reply) == 327).then_some(())
        };
        self.insist(of_split("forgetShardSplit", id), done).await;
    }
}

/// When nothing of a tenant was written any more.
pub(super) fn block_of(splits: &[Split], tenant: usize) -> Option<Timestamp> {
    let moved = splits.iter().find(|s| s.said == Some(Said::Committed) && s.tenants.contains(&tenant));
    moved.and_then(|s| s.block)
}
