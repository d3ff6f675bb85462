//! What everybody asks the members: who takes writes, what `hello` says, whether somebody still has no data.

use crate::client::Client;
use pando_bson::{DocBuf, doc};
use pando_env::Env;
use std::time::Duration;

/// Before it is tried again.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) async fn connected(env: &Env, addr: &str) -> Client {
    loop {
        if let Ok(c) = Client::connect(env, addr).await {
            return c;
        }
        env.clock.sleep(PAUSE).await;
    }
}

/// What `hello` says at `addr`, if anything within a second.
pub(crate) async fn hello(env: &Env, addr: &str) -> Option<DocBuf> {
    let body = doc! { "hello": 1, "$db": "admin" }.to_raw();
    let asking = async { Client::connect(env, addr).await.ok()?.command(&body).await.ok() };
    env.timeout(Duration::from_secs(1), asking).await?
}

/// Does a member in the configuration of this one still count for nothing, because it has no data yet?
pub(crate) async fn is_growing(c: &mut Client) -> Option<bool> {
    // `replSetGetConfig` does not tell.
    let ask = doc! { "find": "system.replset", "$db": "local", "$readPreference": { "mode": "nearest" } };
    let reply = c.command(&ask.to_raw()).await.ok()?;
    let kept = reply.get_path("cursor.firstBatch")?.as_array()?.first()?.value().as_doc()?;
    let mut members = kept.get("members")?.as_array()?.iter().filter_map(|e| e.value().as_doc());
    Some(members.any(|m| m.get("newlyAdded").is_some()))
}

/// The member that takes writes.
pub(crate) async fn primary_of(env: &Env, addrs: &[String]) -> usize {
    loop {
        for (i, addr) in addrs.iter().enumerate() {
            let hello = hello(env, addr).await;
            if hello.is_some_and(|h| h.get("isWritablePrimary").is_some_and(|v| v.is_truthy())) {
                return i;
            }
        }
        env.clock.sleep(PAUSE).await;
    }
}

pub(crate) async fn primary_within(env: &Env, addrs: &[String], limit: Duration) -> Option<usize> {
    env.timeout(limit, primary_of(env, addrs)).await
}
