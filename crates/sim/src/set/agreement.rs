//! What must hold once everything has healed: no member is newly added, every secondary reaches the end of the primary's
//! log, holds the same data under the same hashes, has a log that is a part of the primary's, and `validate` finds
//! nothing.

use crate::client::Client;
use crate::executor::lock;
use crate::set::asking::{connected, is_growing};
use pando_base::{OpTime, Timestamp};
use pando_bson::{DocBuf, DocBuilder, Document, RawDoc, Value, doc};
use pando_env::Env;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(20);

fn anywhere(mut body: Document, db: &str) -> DocBuf {
    body.push("$readPreference", doc! { "mode": "secondaryPreferred" });
    body.push("$db", db);
    body.to_raw()
}

async fn ask(c: &mut Client, body: Document, db: &str) -> Result<DocBuf, String> {
    let body = anywhere(body, db);
    let reply = c.command(&body).await.map_err(|e| format!("{body}: {e}"))?;
    match reply.get("ok").is_some_and(|v| v.is_truthy()) {
        true => Ok(reply),
        false => Err(format!("{body}: {reply}")),
    }
}

fn batch(reply: &RawDoc) -> Vec<DocBuf> {
    let cursor = reply.get("cursor").and_then(|v| v.as_doc());
    let batch = cursor.and_then(|c| c.get("firstBatch").or(c.get("nextBatch"))).and_then(|v| v.as_array());
    batch.into_iter().flatten().filter_map(|e| e.value().as_doc()).map(RawDoc::to_buf).collect()
}

/// Position of the last entry that was applied.
pub(super) async fn applied(c: &mut Client) -> Option<OpTime> {
    let status = ask(c, doc! { "replSetGetStatus": 1 }, "admin").await.ok()?;
    let state = status.get("myState").and_then(|v| v.as_i64());
    let ts = timestamp(status.get_path("optimes.appliedOpTime.ts")?)?;
    let at = OpTime::new(ts, status.get_path("optimes.appliedOpTime.t")?.as_i64()?);
    matches!(state, Some(1 | 2)).then_some(at)
}

fn timestamp(v: Value<'_>) -> Option<Timestamp> {
    match v {
        Value::Timestamp(ts) => Some(ts),
        _ => None,
    }
}

/// Entries of the log by timestamp.
async fn log_of(c: &mut Client) -> Result<BTreeMap<Timestamp, DocBuf>, String> {
    let mut reply = ask(c, doc! { "find": "oplog.rs", "batchSize": 1000 }, "local").await?;
    let mut all = BTreeMap::new();
    loop {
        for entry in batch(&reply) {
            let ts = entry.get("ts").and_then(timestamp);
            all.insert(ts.unwrap_or_default(), entry);
        }
        let id = reply.get_path("cursor.id").and_then(|v| v.as_i64()).unwrap_or(0);
        if id == 0 {
            return Ok(all);
        }
        reply = ask(c, doc! { "getMore": id, "collection": "oplog.rs" }, "local").await?;
    }
}

/// Hash and size of every collection, by name.
async fn data_of(c: &mut Client) -> Result<BTreeMap<String, String>, String> {
    let reply = ask(c, doc! { "listDatabases": 1 }, "admin").await?;
    let list = reply.get("databases").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
    let names: Vec<String> = list
        .iter()
        .filter_map(|e| Some(e.value().as_doc()?.get("name")?.as_str()?.to_owned()))
        .filter(|n| n != "local")
        .collect();
    let mut all = BTreeMap::new();
    for db in names {
        let hash = ask(c, doc! { "dbHash": 1 }, &db).await?;
        for e in hash.get("collections").and_then(|v| v.as_doc()).into_iter().flatten() {
            let uuid = hash.get("uuids").and_then(|v| v.as_doc()).and_then(|u| u.get(e.name()));
            let uuid = uuid.map(|u| u.to_string()).unwrap_or_default();
            let count = ask(c, doc! { "count": e.name() }, &db).await?;
            let n = count.get("n").and_then(|v| v.as_i64()).unwrap_or(-1);
            let mut indexes: Vec<String> = batch(&ask(c, doc! { "listIndexes": e.name() }, &db).await?)
                .iter()
                .map(|d| d.to_string())
                .collect();
            indexes.sort();
            let text = format!("{} {uuid} {n} documents, indexes {indexes:?}", e.value());
            all.insert(format!("{db}.{}", e.name()), text);
        }
    }
    Ok(all)
}

async fn validate(
    c: &mut Client,
    data: &BTreeMap<String, String>,
    problems: &mut Vec<String>,
) -> Result<(), String> {
    for name in data.keys() {
        let Some((db, coll)) = name.split_once('.') else { continue };
        let mut b = DocBuilder::new();
        b.str("validate", coll).bool("full", true).bool("enforceFastCount", true).str("$db", db);
        b.doc("$readPreference", |p| {
            p.str("mode", "nearest");
        });
        let reply = c.command(&b.finish()).await.map_err(|e: io::Error| e.to_string())?;
        if reply.get("valid").and_then(|v| v.as_bool()) != Some(true) {
            problems.push(format!("validate {name}: {reply}"));
        }
    }
    Ok(())
}

fn compare(
    who: &str,
    mine: &BTreeMap<String, String>,
    theirs: &BTreeMap<String, String>,
    problems: &mut Vec<String>,
) {
    for (name, text) in mine {
        if theirs.get(name) != Some(text) {
            problems.push(format!("{who} has {name} {:?}, the primary {text}", theirs.get(name)));
        }
    }
    for name in theirs.keys().filter(|n| !mine.contains_key(*n)) {
        problems.push(format!("{who} has {name}, the primary has not"));
    }
}

/// Whoever prepared a transaction and did not come to decide it is gone by now: it is given up. True when nothing is left.
async fn give_up_undecided(c: &mut Client) -> Option<bool> {
    let idle = doc! { "currentOp": 1, "type": "idleSession" };
    let ops = ask(c, idle, "admin").await.ok()?;
    let mut left = 0;
    for op in ops.get("inprog")?.as_array()?.iter().filter_map(|e| e.value().as_doc()) {
        let number = op.get_path("transaction.parameters.txnNumber")?.as_i64()?;
        let mut abort = DocBuilder::new();
        let id = op.get("lsid")?.as_doc()?.elem("id")?;
        abort.i32("abortTransaction", 1).doc("lsid", |d| {
            d.elem(id);
        });
        abort.i64("txnNumber", number).bool("autocommit", false).str("$db", "admin");
        c.command(&abort.finish()).await.ok()?;
        left += 1;
    }
    Some(left == 0)
}

/// The primary's data, and an entry that is not older than any of it.
struct Seen {
    data: BTreeMap<String, String>,
    upto: OpTime,
}

impl Seen {
    async fn of(env: &Env, primary: &mut Client) -> Result<Seen, Vec<String>> {
        let data = data_of(primary).await.map_err(|e| vec![e])?;
        loop {
            // The newest entry; idle primaries write a no-op now and then, so take what is there once.
            match applied(primary).await {
                Some(upto) => return Ok(Seen { data, upto }),
                None => env.clock.sleep(PAUSE).await,
            }
        }
    }
}

/// A connection to the member once it has applied `goal`.
async fn caught_up(env: &Env, addr: &str, goal: OpTime, stage: &Mutex<String>) -> Client {
    loop {
        let mut c = connected(env, addr).await;
        let at = applied(&mut c).await;
        *lock(stage) = format!("{addr} has applied {at:?} of {goal}");
        if at.is_some_and(|at| at >= goal) {
            return c;
        }
        env.clock.sleep(PAUSE).await;
    }
}

/// A member that has the primary's data, or what differs. Without any user a primary still writes now and then (what it
/// knows of sessions), so it is asked again: a difference counts where the primary still has what it had before.
async fn compared(
    env: &Env,
    primary: &mut Client,
    seen: &mut Seen,
    addr: &str,
    stage: &Mutex<String>,
) -> Result<(Client, BTreeMap<String, String>, Vec<String>), Vec<String>> {
    loop {
        let mut c = caught_up(env, addr, seen.upto, stage).await;
        let theirs = data_of(&mut c).await.map_err(|e| vec![e])?;
        let mut problems = Vec::new();
        compare(addr, &seen.data, &theirs, &mut problems);
        if problems.is_empty() {
            return Ok((c, theirs, problems));
        }
        *lock(stage) = format!("the primary is asked again, for {problems:?}");
        let now = Seen::of(env, primary).await?;
        if now.data == seen.data {
            return Ok((c, theirs, problems));
        }
        *seen = now;
    }
}

/// Number of entries in the primary's log, or what is wrong.
pub(crate) async fn run(env: Env, addrs: Vec<String>, stage: Arc<Mutex<String>>) -> Result<u64, Vec<String>> {
    let mut primary = connected(&env, &addrs[0]).await;
    while give_up_undecided(&mut primary).await != Some(true) {
        "transactions are undecided".clone_into(&mut lock(&stage));
        env.clock.sleep(PAUSE).await;
    }
    while is_growing(&mut primary).await != Some(false) {
        "a member is newly added".clone_into(&mut lock(&stage));
        env.clock.sleep(PAUSE).await;
    }
    let mut problems = Vec::new();
    let story = log_of(&mut primary).await.map_err(|e| vec![e])?;
    let mut seen = Seen::of(&env, &mut primary).await?;
    for addr in &addrs[1..] {
        let (mut c, theirs, differ) = compared(&env, &mut primary, &mut seen, addr, &stage).await?;
        problems.extend(differ);
        validate(&mut c, &theirs, &mut problems).await.map_err(|e| vec![e])?;
        let told = log_of(&mut c).await.map_err(|e| vec![e])?;
        let first = told.keys().next().copied().unwrap_or_default();
        for (ts, entry) in story.iter().filter(|(ts, _)| **ts >= first) {
            if told.get(ts) != Some(entry) {
                problems.push(format!("{addr} has entry {:?} in place of {entry}", told.get(ts)));
            }
        }
    }
    if problems.is_empty() { Ok(story.len() as u64) } else { Err(problems) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::{Rig, words};

    /// What is said of these members while the first of them writes for a second and a half.
    fn judged(rig: &Rig, order: &[usize]) -> Result<u64, Vec<String>> {
        let addrs: Vec<String> = order.iter().map(|i| rig.nodes[*i].addr()).collect();
        let said: Arc<Mutex<Option<Result<u64, Vec<String>>>>> = Arc::default();
        let (env, asked, slot) = (rig.env().clone(), addrs.clone(), said.clone());
        rig.spawn(async move {
            let found = run(env, asked, Arc::default()).await;
            *lock(&slot) = Some(found);
        });
        let (env, first) = (rig.env().clone(), addrs[0].clone());
        rig.spawn(async move {
            let mut c = connected(&env, &first).await;
            for i in 100..250 {
                let mut insert = words::insert(i, words::w(1));
                insert.push("$db", "test");
                c.command(&insert.to_raw()).await.expect("a write");
                env.clock.sleep(Duration::from_millis(10)).await;
            }
        });
        rig.until("a judgement", |_| lock(&said).is_some());
        let found = lock(&said).take();
        found.expect("a judgement")
    }

    #[test]
    fn what_is_written_between_two_looks_is_no_difference() {
        for seed in 1..=5 {
            let rig = Rig::of(seed, 3);
            let p = rig.primary();
            rig.ok(p, words::insert(1, words::w(3)));
            let mut order = vec![p];
            order.extend(rig.others(p));
            let said = judged(&rig, &order);
            assert!(said.is_ok(), "seed {seed}: {said:?}");
        }
    }

    /// Two sets of one member each: what the second one has will never be what the first one has.
    #[test]
    fn a_difference_is_told_although_the_primary_writes() {
        let rig = Rig::unnamed(1, 2);
        for i in 0..2 {
            let mut config = rig.config(&[Document::new(), Document::new()], Document::new());
            let members = config.get("members").and_then(|m| m.as_array()).map(<[_]>::to_vec);
            config.set("members", members.map(|m| vec![m[i].clone()]).unwrap_or_default());
            rig.ok(i, doc! { "replSetInitiate": config, "$db": "admin" });
        }
        for i in 0..2 {
            rig.until("two primaries", |rig| rig.is_primary(i));
            rig.ok(i, words::insert(i as i32, words::w(1)));
        }
        let said = judged(&rig, &[0, 1]).expect_err("they differ");
        assert!(said.iter().any(|p| p.contains("has test.c")), "{said:?}");
    }
}
