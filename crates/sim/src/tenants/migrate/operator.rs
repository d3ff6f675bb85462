//! Whoever moves tenants: asks for a migration until a primary says how it ended, calls some off, tells all users, has it forgotten, and
//! waits until nothing is left of it.

use super::super::board::{Board, Moving};
use super::super::{Home, database, name};
use super::knowledge::{Knowledge, Migration, Plant, Said};
use super::{RECIPIENTS, SETS};
use crate::client::Client;
use crate::executor::lock;
use crate::set::asking::primary_of;
use crate::set::users::caller::{docs, is_done};
use pando_bson::{Binary, Bson, DocBuf, Document, RawDoc, doc};
use pando_env::Env;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Before it is asked again.
const PAUSE: Duration = Duration::from_millis(100);
/// Nobody answers for longer than a migration that stands still.
const REPLY_LIMIT: Duration = Duration::from_secs(25);
/// A primary that does not know yet that it is none may show what was there before: it is asked so many times.
const LOOKS: u32 = 20;

/// What is to be done.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) id: u8,
    /// Where something is in the way it is of the first one.
    pub(super) tenants: Vec<usize>,
    /// All that the set has, whatever that is: these tenants, and newcomers.
    pub(super) merges: bool,
    pub(super) from: Home,
    /// It is called off after this time.
    pub(super) abort_after: Option<Duration>,
    /// Something of a tenant is put where it goes.
    pub(super) in_its_way: bool,
    /// All users are told so long after the decision.
    pub(super) told_after: Duration,
}

#[derive(Clone)]
pub(super) struct Operator {
    pub(super) env: Env,
    /// Of the two sets.
    pub(super) addrs: [Vec<String>; 2],
    pub(super) knowledge: Arc<Mutex<Knowledge>>,
    pub(super) board: Arc<Mutex<Board>>,
}

fn uuid(n: u8) -> Bson {
    Bson::Binary(Binary { subtype: 4, bytes: vec![n; 16] })
}
fn code(reply: &RawDoc) -> i64 {
    reply.get("code").and_then(|v| v.as_i64()).unwrap_or(0)
}
fn is_ok(reply: &RawDoc) -> bool {
    reply.get("ok").is_some_and(|v| v.is_truthy())
}
fn of_migration(command: &str, id: u8) -> Document {
    let mut d = Document::new();
    d.push(command, 1);
    d.push("migrationId", uuid(id));
    d.push("$db", "admin");
    d
}
/// Where something is put that is in a tenant's way.
pub(super) fn plant_db(tenant: usize) -> String {
    format!("{}_plant", name(tenant))
}
pub(super) fn put_plant(tenant: usize, number: i64) -> Document {
    doc! {
        "insert": "c", "documents": [{ "_id": number }],
        "writeConcern": { "w": "majority", "wtimeout": 8000 }, "$db": plant_db(tenant)
    }
}

/// What a reply to `donorStartMigration` says, if anything final.
fn said(reply: &RawDoc) -> Option<Said> {
    let state = reply.get("state").and_then(|v| v.as_str());
    let why = || reply.get_path("abortReason.code").and_then(|v| v.as_i64()).unwrap_or(0);
    match (is_ok(reply), code(reply), state) {
        (true, _, Some("committed")) => Some(Said::Committed),
        (true, _, Some("aborted")) => Some(Said::Aborted(why())),
        (_, code @ (117 | 385), _) => Some(Said::Refused(code)),
        _ => None,
    }
}

impl Operator {
    /// A reply of a set's primary, whatever it says.
    async fn ask(&self, of: Home, body: &DocBuf) -> Option<DocBuf> {
        let (env, addrs) = (self.env.clone(), &self.addrs[of as usize]);
        let asking = async {
            let at = primary_of(&env, addrs).await;
            Client::connect(&env, &addrs[at]).await.ok()?.command(body).await.ok()
        };
        env.timeout(REPLY_LIMIT, asking).await?
    }
    /// Asks until `judge` finds an answer in the reply.
    pub(super) async fn insist<T>(
        &self,
        of: Home,
        body: Document,
        judge: impl Fn(&RawDoc) -> Option<T>,
    ) -> T {
        let body = body.to_raw();
        loop {
            if let Some(found) = self.ask(of, &body).await.and_then(|reply| judge(&reply)) {
                return found;
            }
            self.env.clock.sleep(PAUSE).await;
        }
    }
    fn problem(&self, text: String) {
        lock(&self.board).problems.push(text);
    }
    fn start(&self, plan: &Plan) -> Document {
        let to = plan.from.other() as usize;
        let mut d = doc! { "donorStartMigration": 1, "migrationId": uuid(plan.id) };
        d.push("recipientConnectionString", format!("{}/{}", SETS[to], self.addrs[to].join(",")));
        match plan.merges {
            true => d.push("protocol", "shard merge"),
            false => d.push("tenantId", name(plan.tenants[0])),
        }
        d.push("readPreference", doc! { "mode": "primary" });
        d.push("$db", "admin");
        d
    }

    /// Notes that a migration begins.
    pub(super) fn begin(&self, plan: &Plan) {
        let mut knowledge = lock(&self.knowledge);
        knowledge.migrations.push(Migration {
            id: plan.id,
            tenants: plan.tenants.clone(),
            merges: plan.merges,
            from: plan.from,
            begun: self.env.clock.mono(),
            said: None,
            why: String::new(),
            called_off: false,
            in_its_way: false,
            forgotten: false,
            over: None,
        });
        let mut board = lock(&self.board);
        for tenant in &plan.tenants {
            board.tenants[*tenant].moving.get_or_insert(Moving { from: plan.from, committed: None });
        }
    }
    /// One migration, from its command until nothing is left of it.
    pub(super) async fn run(self, plan: Plan) {
        let planted = plan.in_its_way && self.plant(&plan).await;
        let how = self.insist(plan.from, self.start(&plan), said).await;
        self.note(plan.id, how, "donorStartMigration");
        if how == Said::Committed {
            if planted {
                self.problem(format!("migration {} went over what was there: {plan:?}", plan.id));
            }
            self.env.clock.sleep(plan.told_after).await;
            self.announce(&plan);
            self.until_quiet(&plan).await;
        }
        if !matches!(how, Said::Refused(_)) {
            self.look_at_document(&plan, how).await;
            self.forget(plan.from, plan.id).await;
        }
        self.until_gone(&plan, how).await;
        self.end(&plan);
        if planted {
            self.uproot(plan.tenants[0], plan.from.other()).await;
        }
    }
    /// Everybody is told; of one that was asked for beside another one, of those whom that has left.
    fn announce(&self, plan: &Plan) {
        let mut board = lock(&self.board);
        for tenant in &plan.tenants {
            if board.announced(*tenant).home == plan.from {
                board.announce(*tenant);
            }
        }
    }
    fn end(&self, plan: &Plan) {
        let mut knowledge = lock(&self.knowledge);
        if let Some(migration) = knowledge.migration(plan.id) {
            migration.over = Some(self.env.clock.mono());
        }
        for tenant in plan.tenants.iter().filter(|tenant| !knowledge.is_moving(**tenant)) {
            lock(&self.board).tenants[*tenant].moving = None;
        }
    }
    /// Something of the tenant is where it goes, on a majority.
    async fn plant(&self, plan: &Plan) -> bool {
        let (number, tenant) = (-i64::from(plan.id), plan.tenants[0]);
        lock(&self.knowledge).plants.insert(tenant, Plant::Unsure);
        let to = plan.from.other();
        let there = |reply: &RawDoc| (is_done(reply) || code_within(reply) == 11000).then_some(());
        self.insist(to, put_plant(tenant, number), there).await;
        let mut knowledge = lock(&self.knowledge);
        knowledge.plants.insert(tenant, Plant::There(to, number));
        if let Some(migration) = knowledge.migration(plan.id) {
            migration.in_its_way = true;
        }
        true
    }
    /// Takes it away again, once it was seen to be there.
    async fn uproot(&self, tenant: usize, home: Home) {
        let Some(Plant::There(_, number)) = lock(&self.knowledge).plants.get(&tenant).copied() else {
            return;
        };
        let find = doc! {
            "find": "c", "filter": { "_id": number }, "readConcern": { "level": "linearizable" },
            "maxTimeMS": 8000, "$db": plant_db(tenant)
        };
        if self.insist(home, find, docs).await.is_empty() {
            self.problem(format!("what was at {home:?} in the way of tenant {tenant} is gone"));
        }
        lock(&self.knowledge).plants_kept += 1;
        lock(&self.knowledge).plants.insert(tenant, Plant::Unsure);
        let drop = doc! {
            "dropDatabase": 1, "writeConcern": { "w": "majority", "wtimeout": 8000 }, "$db": plant_db(tenant)
        };
        self.insist(home, drop, |reply| is_done(reply).then_some(())).await;
        lock(&self.knowledge).plants.remove(&tenant);
    }
    /// Returns when nothing that was sent to the donor before the announcement may be carried out there any more.
    async fn until_quiet(&self, plan: &Plan) {
        let announced = self.env.clock.mono();
        let is_quiet =
            |tenant: &usize| lock(&self.board).is_quiet(*tenant, plan.from, announced, self.env.clock.mono());
        while !plan.tenants.iter().all(is_quiet) {
            self.env.clock.sleep(PAUSE).await;
        }
    }
    fn note(&self, id: u8, how: Said, command: &str) {
        let mut knowledge = lock(&self.knowledge);
        let refusable = knowledge.may_be_refused(id);
        if matches!(how, Said::Refused(_)) && !refusable {
            self.problem(format!("migration {id} was refused beside no other: {how:?}"));
        }
        let Some(migration) = knowledge.migration(id) else { return };
        let before = *migration.said.get_or_insert(how);
        let committed = |said| said == Said::Committed;
        if committed(before) != committed(how) {
            let text = format!("{command} says that migration {id} is {how:?}; it was {before:?} before");
            self.problem(text);
        }
        if committed(how) {
            let (now, mut board) = (self.env.clock.mono(), lock(&self.board));
            for tenant in &migration.tenants {
                if let Some(moving) = &mut board.tenants[*tenant].moving {
                    moving.committed.get_or_insert(now);
                }
            }
        }
    }
    /// What the document says is what the command said.
    async fn look_at_document(&self, plan: &Plan, how: Said) {
        let find = doc! {
            "find": "tenantMigrationDonors", "filter": { "_id": uuid(plan.id) },
            "readConcern": { "level": "linearizable" }, "maxTimeMS": 8000, "$db": "config"
        };
        let found = self.insist(plan.from, find, docs).await;
        let state = found.first().and_then(|d| d.get("state").and_then(|v| v.as_str().map(str::to_owned)));
        let why = found.first().and_then(|d| d.get_path("abortReason.errmsg")?.as_str().map(str::to_owned));
        if let (Some(migration), Some(why)) = (lock(&self.knowledge).migration(plan.id), why) {
            migration.why = why;
        }
        let expected = if how == Said::Committed { "committed" } else { "aborted" };
        if state.as_deref() != Some(expected) {
            let text =
                format!("migration {} was told to be {expected}; its document says {state:?}", plan.id);
            self.problem(text);
        }
    }
    /// Calls a migration off; what the reply says of it is noted, too.
    pub(super) async fn call_off(self, id: u8, after: Duration) {
        self.env.clock.sleep(after).await;
        let from = match lock(&self.knowledge).migration(id) {
            Some(migration) if !migration.forgotten && migration.over.is_none() => {
                migration.called_off = true;
                migration.from
            }
            _ => return,
        };
        let body = of_migration("donorAbortMigration", id).to_raw();
        loop {
            // Somebody may have had it forgotten meanwhile, or it was refused, or has not begun yet.
            let over = lock(&self.knowledge).migration(id).is_none_or(|m| m.forgotten || m.over.is_some());
            if over {
                return;
            }
            match self.ask(from, &body).await {
                Some(reply) if is_ok(&reply) => {
                    return self.note(id, Said::Aborted(0), "donorAbortMigration");
                }
                Some(reply) if code(&reply) == 321 => {
                    return self.note(id, Said::Committed, "donorAbortMigration");
                }
                _ => self.env.clock.sleep(PAUSE).await,
            }
        }
    }
    /// Its documents go soon, and the tenant's blockers with them.
    async fn forget(&self, from: Home, id: u8) {
        if let Some(migration) = lock(&self.knowledge).migration(id) {
            migration.forgotten = true;
            // From then on the donor takes whatever is written there.
            let mut board = lock(&self.board);
            let committed = migration.said == Some(Said::Committed);
            for tenant in migration.tenants.iter().filter(|_| committed) {
                if let Some(moving) = &mut board.tenants[*tenant].moving {
                    moving.committed = None;
                }
            }
        }
        // 327: somebody had asked before, and nobody heard the answer.
        let done = |reply: &RawDoc| (is_ok(reply) || code(reply) == 327).then_some(());
        self.insist(from, of_migration("donorForgetMigration", id), done).await;
    }
    /// Returns when no primary has a document of it any more. Nothing of the tenant is where it is not.
    async fn until_gone(&self, plan: &Plan, how: Said) {
        for (of, coll) in [(plan.from, "tenantMigrationDonors"), (plan.from.other(), RECIPIENTS)] {
            let mut find = Document::new();
            find.push("find", coll);
            find.push("filter", doc! { "_id": uuid(plan.id) });
            find.push("readConcern", doc! { "level": "linearizable" });
            find.push("maxTimeMS", 8000);
            find.push("$db", "config");
            self.insist(of, find, |reply| docs(reply).filter(Vec::is_empty)).await;
        }
        let without = match how {
            Said::Committed => plan.from,
            Said::Aborted(_) => plan.from.other(),
            Said::Refused(_) => return,
        };
        for tenant in &plan.tenants {
            self.until_nothing_of(*tenant, plan.id, without).await;
        }
    }
    /// Returns when the set that does not have a tenant has nothing of it.
    async fn until_nothing_of(&self, tenant: usize, id: u8, without: Home) {
        // Another one of the same tenant may be under way.
        let alone = |k: &Knowledge| k.under_way().filter(|m| m.tenants.contains(&tenant)).count() == 1;
        let is_owner = lock(&self.board).announced(tenant).home == without;
        if is_owner || !alone(&lock(&self.knowledge)) {
            return;
        }
        let find = doc! {
            "find": "lists", "maxTimeMS": 8000, "readConcern": { "level": "linearizable" }, "$db": database(tenant)
        };
        for look in 0.. {
            let found = self
                .insist(without, find.clone(), |reply| docs(reply).or((code(reply) == 321).then(Vec::new)))
                .await;
            if found.is_empty() || !alone(&lock(&self.knowledge)) {
                return;
            }
            if look == LOOKS {
                self.problem(format!("migration {id} is over, and {without:?} has {found:?}"));
                return;
            }
            self.env.clock.sleep(PAUSE).await;
        }
    }
}

/// Of a reply to one write.
fn code_within(reply: &RawDoc) -> i64 {
    super::super::users::caller::code_of(reply)
}
