//! The oplog behind a backup, from a member that still has it.

use super::shown;
use pando_base::{Timestamp, limits};
use pando_bson::{RawDoc, Value, doc};
use pando_env::Env;
use pando_rpc::{Connection, LoginAs, Options};
use pando_storage::OpLog;
use std::ops::Bound;
use std::time::Duration;

const CALL: Duration = Duration::from_millis(limits::BACKUP_CALL_MS);

/// Adds the entries of `host` from the end of `log` through `until`.
pub(crate) async fn add(
    env: &Env,
    log: &OpLog,
    (host, login): (&str, LoginAs),
    until: Timestamp,
) -> Result<(), String> {
    let text = |e: pando_base::Error| e.to_string();
    let end = log.last();
    let last = log.read(Bound::Unbounded, true).next().map_err(text)?.map(|(_, entry)| entry);
    let options = Options { name: "pando restore", login, ..Options::default() };
    let connecting = Connection::connect(env, host, &options).await;
    let mut connection = connecting.map_err(|f| format!("{host} cannot be reached: {f}"))?;
    let find = doc! {
        "find": "oplog.rs", "filter": { "ts": { "$gte": end, "$lte": until } }, "$db": "local",
        "$readPreference": { "mode": "secondaryPreferred" }
    };
    log.follow().map_err(text)?;
    let mut command = find;
    let mut begun = false;
    loop {
        let reply = connection.call(&command.to_raw(), CALL).await;
        let reply = reply.map_err(|f| format!("{host} does not give its oplog: {f}"))?;
        let (id, entries) =
            batch(reply).ok_or_else(|| format!("{host} answers with something else than entries"))?;
        let mut entries = entries.into_iter();
        if !begun {
            begun = true;
            let first = entries.next();
            let place = |e: &RawDoc| Some((timestamp(e)?, e.get("t").and_then(|v| v.as_i64())));
            let theirs = first.and_then(|(_, e)| place(RawDoc::trusted(&e)));
            let meets = theirs.is_some() && theirs == last.as_ref().and_then(|e| place(RawDoc::trusted(e)));
            if !meets {
                return Err(format!(
                    "the oplog of {host} does not go on where the backup ends ({}): it no longer reaches back so far, or \
                     belongs to another set",
                    shown(end)
                ));
            }
        }
        log.append_foreign(entries.map(|(ts, e)| (ts, e.into()))).map_err(text)?;
        log.flush_once().map_err(text)?;
        if id == 0 {
            return Ok(());
        }
        command = doc! { "getMore": id, "collection": "oplog.rs", "$db": "local" };
    }
}

fn timestamp(entry: &RawDoc) -> Option<Timestamp> {
    match entry.get("ts")? {
        Value::Timestamp(ts) => Some(ts),
        _ => None,
    }
}

type Entries = Vec<(Timestamp, Vec<u8>)>;

fn batch(reply: &RawDoc) -> Option<(i64, Entries)> {
    let cursor = reply.get("cursor")?.as_doc()?;
    let list = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"))?.as_array()?;
    let mut entries = Vec::new();
    for e in list {
        let entry = e.value().as_doc()?;
        entries.push((timestamp(entry)?, entry.as_bytes().to_vec()));
    }
    Some((cursor.get("id")?.as_i64()?, entries))
}
