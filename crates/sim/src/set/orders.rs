//! What an operator does: asks a primary to step down, changes the configuration.

use super::{hello, primary_within};
use crate::client::Client;
use pando_bson::{Bson, DocBuf, Document, doc};
use pando_env::Env;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    StepDown,
    /// This member shall be primary, if it can: its priority goes up, the others' go back to 1.
    Prefer(usize),
}

const PATIENCE: Duration = Duration::from_secs(20);

/// Whether it succeeds is up to the set.
pub(super) async fn give(env: Env, addrs: Vec<String>, who: usize, order: Order) {
    let trying = async {
        match order {
            Order::StepDown => step_down(&env, &addrs, who).await,
            Order::Prefer(who) => prefer(&env, &addrs, who).await,
        }
    };
    env.timeout(PATIENCE, trying).await;
}

async fn step_down(env: &Env, addrs: &[String], who: usize) -> Option<()> {
    let at = primary_within(env, addrs, PATIENCE).await.unwrap_or(who);
    let force = env.rng.next_u64() % 3 == 0;
    let body = doc! { "replSetStepDown": 5, "secondaryCatchUpPeriodSecs": 2, "force": force, "$db": "admin" };
    Client::connect(env, &addrs[at]).await.ok()?.command(&body.to_raw()).await.ok().map(drop)
}

async fn prefer(env: &Env, addrs: &[String], who: usize) -> Option<()> {
    let at = primary_within(env, addrs, PATIENCE).await?;
    hello(env, &addrs[at]).await?;
    let mut c = Client::connect(env, &addrs[at]).await.ok()?;
    let ask = doc! { "replSetGetConfig": 1, "$db": "admin" }.to_raw();
    let reply = c.command(&ask).await.ok()?;
    let next = next_config(&reply, who)?;
    let mut body = Document::new();
    body.push("replSetReconfig", next);
    body.push("maxTimeMS", 10_000);
    body.push("$db", "admin");
    c.command(&body.to_raw()).await.ok().map(drop)
}

fn next_config(reply: &DocBuf, who: usize) -> Option<Document> {
    let config = reply.get("config").and_then(|v| v.as_doc())?;
    let version = config.get("version").and_then(|v| v.as_i64())?;
    let members = config.get("members").and_then(|v| v.as_array())?;
    let members: Vec<Bson> = members
        .iter()
        .enumerate()
        .filter_map(|(i, m)| {
            let m = m.value().as_doc()?;
            let priority = if i == who { 2 } else { 1 };
            let (id, host) = (m.get("_id")?.as_i64()? as i32, m.get("host")?.as_str()?.to_owned());
            Some(doc! { "_id": id, "host": host, "priority": priority }.into())
        })
        .collect();
    let mut next = doc! { "_id": "rs0", "version": version + 1 };
    next.push("members", members);
    Some(next)
}
