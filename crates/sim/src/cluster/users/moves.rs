//! Who moves ranges between the shards, of collections that all others write to, define and drop meanwhile, and whole databases.
//!
//! A move is sent once, or again when nobody has heard of it. What comes of it concerns nobody else: every other user's rules hold
//! as if nothing had moved. In the middle of many a move somebody breaks.

use super::definitions::Spaces;
use super::pages::all;
use crate::cluster::shape::{KEYS, SHARDS};
use crate::executor::lock;
use crate::set::users::caller::{Caller, Place, is_done};
use pando_bson::{Bson, DocBuf, Document, RawDoc, Value, doc};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Those that are there from the beginning.
const COLLECTIONS: [&str; 7] =
    ["m.ranged", "m.hashed", "d.acked", "d.lateOnes", "d.lists", "d.late", "d.registers"];
/// Of so many moves one is a database's.
const DATABASE_ONE_IN: u64 = 12;
/// Of so many moves somebody breaks in the middle of one.
const HIT_ONE_IN: u64 = 3;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub moved: usize,
    pub databases: usize,
    pub unknown: usize,
    /// Of codes.
    pub refused: BTreeMap<i64, usize>,
}

pub(crate) async fn run(place: Place, spaces: Arc<Mutex<Spaces>>, counts: Arc<Mutex<Counts>>) {
    let mut c = Caller::new(place);
    while !c.stopped() {
        let ns = match c.below(4) {
            0 => lock(&spaces).somewhere(c.below(u64::MAX)).map(|(ns, _)| ns),
            _ => Some(COLLECTIONS[c.below(COLLECTIONS.len() as u64) as usize].to_owned()),
        };
        if let Some(ns) = ns {
            let is_database = c.below(DATABASE_ONE_IN) == 0;
            let command = match is_database {
                true => a_database(&c, &ns),
                false => a_move(&mut c, &ns).await,
            };
            if let Some(command) = command
                && send(&mut c, &command, &spaces, &counts).await
            {
                let mut counts = lock(&counts);
                *(if is_database { &mut counts.databases } else { &mut counts.moved }) += 1;
            }
        }
        c.pause().await;
    }
}

/// Its database, to some shard.
fn a_database(c: &Caller, ns: &str) -> Option<DocBuf> {
    let (db, _) = ns.split_once('.')?;
    let to = SHARDS[c.below(SHARDS.len() as u64) as usize];
    Some(doc! { "movePrimary": db, "to": to, "$db": "admin" }.to_raw())
}

/// Whether it was done.
async fn send(c: &mut Caller, command: &DocBuf, spaces: &Mutex<Spaces>, counts: &Mutex<Counts>) -> bool {
    for _ in 0..2 {
        if c.below(HIT_ONE_IN) == 0 {
            let within = c.below(2_000_000);
            lock(spaces).hit_within(c.now(), within);
        }
        match c.ask_primary(command).await {
            Some(reply) if is_done(&reply) => return true,
            Some(reply) => {
                let code = reply.get("code").and_then(|v| v.as_i64()).unwrap_or(0);
                *lock(counts).refused.entry(code).or_default() += 1;
                return false;
            }
            None => lock(counts).unknown += 1,
        }
    }
    false
}

/// Some range of some chunk, to the other shard.
async fn a_move(c: &mut Caller, ns: &str) -> Option<DocBuf> {
    let who = c.anyone();
    let find = |coll: &str, filter: Document| {
        let mut body = doc! { "find": coll, "batchSize": 10_000, "maxTimeMS": 8000 };
        body.push("filter", filter);
        body.push("readConcern", doc! { "level": "majority" });
        body.push("$db", "config");
        body.to_raw()
    };
    let collection = all(c, who, &find("collections", doc! { "_id": ns }), "collections", "config").await?;
    let collection = collection.first()?;
    let mut of = Document::new();
    of.push("uuid", Bson::from(collection.get("uuid")?));
    let chunks = all(c, who, &find("chunks", of), "chunks", "config").await?;
    if chunks.is_empty() {
        return None;
    }
    let chunk = chunks.get(c.below(chunks.len() as u64) as usize)?;
    let owner = chunk.get("shard")?.as_str()?;
    let (min, max) = (chunk.get("min")?.as_doc()?, chunk.get("max")?.as_doc()?);
    let to = SHARDS.iter().find(|shard| **shard != owner)?;
    let mut body = doc! { "moveRange": ns, "toShard": *to, "waitForDelete": c.below(4) == 0 };
    body.push("min", bound(c, min, max).unwrap_or_else(|| Bson::from(Value::Document(min))));
    let from = body.get("min").cloned();
    let end = match from.as_ref().and_then(Bson::as_doc) {
        Some(from) => bound(c, &from.to_raw(), max),
        None => None,
    };
    body.push("max", end.unwrap_or_else(|| Bson::from(Value::Document(max))));
    body.push("$db", "admin");
    Some(body.to_raw())
}

/// Now and then something between two bounds of a key.
fn bound(c: &Caller, min: &RawDoc, max: &RawDoc) -> Option<Bson> {
    if c.below(2) == 0 {
        return None;
    }
    let (first, last) = (min.first()?, max.first()?);
    let hashed = |v: &Value<'_>| v.as_i64().is_some_and(|n| n.unsigned_abs() > 1 << 40);
    let least = if hashed(&first.value()) || hashed(&last.value()) { i64::MIN / 2 } else { 0 };
    let least = first.value().as_i64().unwrap_or(least);
    let most = last.value().as_i64().unwrap_or(if least < 0 { i64::MAX / 2 } else { KEYS });
    let width = u64::try_from(most.checked_sub(least)?).ok().filter(|n| *n > 1)?;
    let mut key = Document::new();
    key.push(first.name(), least + 1 + c.below(width - 1) as i64);
    min.iter().skip(1).for_each(|more| key.push(more.name(), c.below(KEYS as u64) as i64));
    Some(Bson::from(key))
}
