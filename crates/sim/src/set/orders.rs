//! What an operator does: asks a primary to step down, changes the configuration.

use super::asking::{hello, primary_within};
use crate::client::Client;
use pando_bson::{Bson, Document, doc};
use pando_env::Env;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    StepDown,
    /// This member shall be primary, if it can: its priority goes up, the others' go back to 1.
    Prefer(usize),
    /// This member gets a vote, or loses it.
    TurnVote(usize),
    /// Anybody's vote, one after the other, as fast as the primary takes it.
    TurnVotes,
    /// This member shall stand for election, until it has won one.
    Lead(usize),
    /// Priorities, forced upon this member, primary or not. Who votes does not change: nobody asks a majority.
    Force(usize),
}

const PATIENCE: Duration = Duration::from_secs(20);
/// Before it is tried again.
const AGAIN: Duration = Duration::from_millis(100);
/// A forced configuration must not come late: what it was made of has been replaced by then.
const FORCE_WITHIN: Duration = Duration::from_secs(3);

/// Whether it succeeds is up to the set.
pub(crate) async fn give(env: Env, addrs: Vec<String>, who: usize, order: Order) {
    let trying = async {
        match order {
            Order::StepDown => step_down(&env, &addrs, who).await,
            Order::Prefer(who) => reconfigure(&env, &addrs, |c| prefer(c, &addrs[who])).await,
            Order::TurnVote(who) => reconfigure(&env, &addrs, |c| turn_vote(c, &addrs[who])).await,
            Order::TurnVotes => turn_votes(&env, &addrs).await,
            Order::Lead(who) => lead(&env, &addrs[who]).await,
            Order::Force(who) => force(&env, &addrs, who).await,
        }
    };
    env.timeout(PATIENCE, trying).await;
}

async fn step_down(env: &Env, addrs: &[String], who: usize) -> Option<()> {
    let at = primary_within(env, addrs, PATIENCE).await.unwrap_or(who);
    let force = env.rng.next_u64().is_multiple_of(3);
    let body = doc! { "replSetStepDown": 5, "secondaryCatchUpPeriodSecs": 2, "force": force, "$db": "admin" };
    Client::connect(env, &addrs[at]).await.ok()?.command(&body.to_raw()).await.ok().map(drop)
}

async fn lead(env: &Env, addr: &str) -> Option<()> {
    let ask = doc! { "replSetStepUp": 1, "$db": "admin" }.to_raw();
    loop {
        if let Ok(mut c) = Client::connect(env, addr).await
            && let Ok(reply) = c.command(&ask).await
            && reply.get("ok").is_some_and(|v| v.is_truthy())
        {
            return Some(());
        }
        env.clock.sleep(AGAIN).await;
    }
}

/// One after the other; ends when nobody waits for it any more.
async fn turn_votes(env: &Env, addrs: &[String]) -> Option<()> {
    loop {
        let who = (env.rng.next_u64() % addrs.len() as u64) as usize;
        let _ = reconfigure(env, addrs, |c| turn_vote(c, &addrs[who])).await;
        // So that each configuration is seen by a look.
        env.clock.sleep(AGAIN).await;
    }
}

/// The configuration that a member has, without its term.
pub(crate) async fn config_of(c: &mut Client) -> Option<Document> {
    let ask = doc! { "replSetGetConfig": 1, "$db": "admin" }.to_raw();
    let reply = c.command(&ask).await.ok()?;
    let mut config = Document::from(reply.get("config").and_then(|v| v.as_doc())?);
    config.remove("term");
    Some(config)
}
pub(crate) fn version(config: &Document) -> i64 {
    config.get("version").and_then(Bson::as_i64).unwrap_or(0)
}
pub(crate) fn members(config: &Document) -> Vec<Document> {
    let members = config.get("members").and_then(Bson::as_array).unwrap_or_default();
    members.iter().filter_map(|m| m.as_doc().cloned()).collect()
}
/// The same with these members, one version on.
pub(crate) fn next(config: &Document, members: Vec<Document>) -> Document {
    let mut next = config.clone();
    next.set("version", (version(config) + 1) as i32);
    next.set("members", members.into_iter().map(Bson::from).collect::<Vec<Bson>>());
    next
}
/// Why a primary has not taken it.
pub(crate) async fn install(c: &mut Client, config: Document) -> Result<(), String> {
    let mut body = Document::new();
    body.push("replSetReconfig", config);
    body.push("maxTimeMS", 10_000);
    body.push("$db", "admin");
    let reply = c.command(&body.to_raw()).await.map_err(|e| e.to_string())?;
    if reply.get("ok").is_some_and(|v| v.is_truthy()) { Ok(()) } else { Err(reply.to_string()) }
}

async fn reconfigure(
    env: &Env,
    addrs: &[String],
    change: impl Fn(Vec<Document>) -> Option<Vec<Document>>,
) -> Option<()> {
    let at = primary_within(env, addrs, PATIENCE).await?;
    hello(env, &addrs[at]).await?;
    let mut c = Client::connect(env, &addrs[at]).await.ok()?;
    let config = config_of(&mut c).await?;
    let changed = change(members(&config))?;
    install(&mut c, next(&config, changed)).await.ok()
}

pub(crate) fn number(member: &Document, field: &str) -> f64 {
    member.get(field).and_then(Bson::as_f64).unwrap_or(1.0)
}
fn has(member: &Document, host: &str) -> bool {
    member.get("host").and_then(Bson::as_str) == Some(host)
}
/// Hidden members, delayed ones and arbiters cannot be elected whatever happens.
pub(crate) fn may_be_elected(member: &Document) -> bool {
    let set = |field: &str| member.get(field).is_some_and(Bson::is_truthy);
    !set("hidden") && !set("arbiterOnly") && !set("secondaryDelaySecs")
}
/// How many can lead.
pub(crate) fn electable(members: &[Document]) -> usize {
    members.iter().filter(|m| may_be_elected(m) && number(m, "votes") > 0.0).count()
}
/// The same, with a vote and a chance.
pub(crate) fn voting(mut member: Document) -> Document {
    member.set("votes", 1);
    member.set("priority", 1);
    member
}
fn prefer(mut members: Vec<Document>, host: &str) -> Option<Vec<Document>> {
    for m in members.iter_mut().filter(|m| may_be_elected(m) && number(m, "votes") > 0.0) {
        let priority = if has(m, host) { 2 } else { 1 };
        m.set("priority", priority);
    }
    Some(members)
}
fn turn_vote(mut members: Vec<Document>, host: &str) -> Option<Vec<Document>> {
    let can_lead = |m: &&Document| may_be_elected(m) && number(m, "votes") > 0.0;
    let (others, voters) = (
        members.iter().filter(can_lead).filter(|m| !has(m, host)).count(),
        members.iter().filter(|m| number(m, "votes") > 0.0).count(),
    );
    let m = members.iter_mut().find(|m| has(m, host))?;
    let votes = number(m, "votes") > 0.0;
    let delayed = m.get("secondaryDelaySecs").is_some_and(Bson::is_truthy);
    if m.get("arbiterOnly").is_some_and(Bson::is_truthy) || delayed || (votes && (others < 2 || voters < 3)) {
        return None;
    }
    m.set("votes", i32::from(!votes));
    m.set("priority", i32::from(!votes && may_be_elected(m)));
    Some(members)
}

/// Only while all members have the same configuration.
async fn force(env: &Env, addrs: &[String], who: usize) -> Option<()> {
    let began = env.clock.mono();
    let mut known: Option<Document> = None;
    for addr in addrs {
        let mut c = Client::connect(env, addr).await.ok()?;
        let config = config_of(&mut c).await?;
        if known.get_or_insert_with(|| config.clone()) != &config {
            return None;
        }
    }
    let config = known?;
    let mut c = Client::connect(env, &addrs[who]).await.ok()?;
    config_of(&mut c).await?;
    if env.clock.mono() - began > FORCE_WITHIN {
        return None;
    }
    let preferred = &addrs[(env.rng.next_u64() % addrs.len() as u64) as usize];
    let mut body = Document::new();
    body.push("replSetReconfig", next(&config, prefer(members(&config), preferred)?));
    body.push("force", true);
    body.push("$db", "admin");
    c.command(&body.to_raw()).await.ok().map(drop)
}
