//! From processes that were just started to a set with a primary.

use super::{CALL, Plan, Role, TICK, command, ground};
use crate::set::process::Process;
use pando_base::{ErrorCode, limits};
use pando_bson::{Bson, doc};
use pando_env::Env;
use pando_rpc::{Pool, Retry};
use std::time::Duration;

const LIMIT: Duration = Duration::from_millis(limits::SET_START_MS);

/// Until all of them answer. One that ends before it can be reached will not do better the next time.
pub(crate) async fn reach(env: &Env, pool: &Pool, processes: &mut [Process]) -> Result<(), String> {
    let until = env.clock.mono() + LIMIT;
    for process in processes {
        let host = process.host().to_owned();
        while pool.call(&host, &command(doc! { "ping": 1 }), Retry::Idempotent, CALL).await.is_err() {
            if let Some(how) = process.ended() {
                return Err(process.did_not_start(&how));
            }
            if env.clock.mono() > until {
                return Err(format!("{host} does not answer; its log is {}", process.log().display()));
            }
            env.clock.sleep(TICK).await;
        }
    }
    Ok(())
}

/// Makes a set of the members, unless they are one.
pub(crate) async fn initiate(pool: &Pool, plan: &Plan) -> Result<(), String> {
    let ask = command(doc! { "hello": 1 });
    let hello = pool.call(&plan.host(0), &ask, Retry::Idempotent, CALL).await.map_err(|f| f.to_string())?;
    let wanted = plan.hosts();
    if let Some(hosts) = hello.get("hosts").and_then(|v| v.as_array()) {
        let hosts: Vec<&str> = hosts.iter().filter_map(|e| e.value().as_str()).collect();
        if !wanted.iter().all(|w| hosts.contains(&w.as_str())) {
            return Err(ground::another_set(plan, &hosts));
        }
        return Ok(());
    }
    let members: Vec<Bson> = wanted
        .iter()
        .enumerate()
        .map(|(i, host)| Bson::Document(doc! { "_id": i as i32, "host": host.as_str() }))
        .collect();
    let mut config = doc! { "_id": plan.set.as_str(), "members": Bson::Array(members) };
    if plan.role == Role::Config {
        config.push("configsvr", true);
    }
    let ask = command(doc! { "replSetInitiate": config });
    match pool.call(&plan.host(0), &ask, Retry::NotIdempotent, LIMIT).await {
        Ok(_) => Ok(()),
        Err(f) if f.error.code == ErrorCode::AlreadyInitialized => Ok(()),
        Err(f) => Err(format!("the set {} cannot be initiated: {f}", plan.set)),
    }
}

/// Until a member of the set takes writes.
pub(crate) async fn wait_primary(env: &Env, pool: &Pool, plan: &Plan) -> Result<(), String> {
    let (until, ask) = (env.clock.mono() + LIMIT, command(doc! { "hello": 1 }));
    loop {
        for host in plan.hosts() {
            let hello = pool.call(&host, &ask, Retry::Idempotent, CALL).await;
            if hello.is_ok_and(|h| h.get("isWritablePrimary").is_some_and(|v| v.is_truthy())) {
                return Ok(());
            }
        }
        if env.clock.mono() > until {
            return Err(format!(
                "the set {} elects no primary; its logs are in {}",
                plan.set,
                plan.home.display()
            ));
        }
        env.clock.sleep(TICK).await;
    }
}
