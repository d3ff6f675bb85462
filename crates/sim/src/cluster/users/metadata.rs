//! What the config servers' majority says of collections and chunks, at one time after the other: chunks tile (INV-52), no two of a
//! collection have one version, versions and generations only grow (INV-54).

use super::pages;
use crate::executor::lock;
use crate::set::users::caller::{Caller, Place, is_done};
use pando_base::{Timestamp, Uuid};
use pando_bson::{DocBuf, Document, RawDoc, Value, doc};
use pando_routing::{Chunk, ChunkMap, CollectionEntry, Placement};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

#[derive(Default)]
pub(crate) struct Seen {
    at: Timestamp,
    /// Of a collection by its name: its generation's time.
    generations: BTreeMap<String, Timestamp>,
    /// The newest version of a collection in a generation.
    versions: BTreeMap<(Uuid, Timestamp), Placement>,
    pub(crate) looks: usize,
    pub(crate) problems: Vec<String>,
}

pub(crate) async fn run(place: Place, seen: Arc<Mutex<Seen>>) {
    let mut c = Caller::new(place);
    while !c.stopped() {
        if let Some((at, collections, chunks)) = read(&mut c).await {
            lock(&seen).look(at, &collections, &chunks);
        }
        c.pause().await;
    }
}

fn find(coll: &str, concern: Document) -> DocBuf {
    let mut body = doc! { "find": coll, "batchSize": 10_000, "maxTimeMS": 8000 };
    body.push("readConcern", concern);
    body.push("$db", "config");
    body.to_raw()
}

/// Both collections at one time.
async fn read(c: &mut Caller) -> Option<(Timestamp, Vec<DocBuf>, Vec<DocBuf>)> {
    let first = find("collections", doc! { "level": "snapshot" });
    let (who, reply) = c.ask_primary_at(&first).await?;
    let Value::Timestamp(at) = reply.get_path("cursor.atClusterTime")? else { return None };
    let collections = crate::set::users::caller::docs(&reply).filter(|_| is_done(&reply))?;
    let mut concern = doc! { "level": "snapshot" };
    concern.push("atClusterTime", at);
    let chunks = pages::all(c, who, &find("chunks", concern), "chunks", "config").await?;
    Some((at, collections, chunks))
}

impl Seen {
    fn look(&mut self, at: Timestamp, collections: &[DocBuf], chunks: &[DocBuf]) {
        // A primary that has not noticed that it is none tells of the past.
        if at < self.at {
            return;
        }
        self.at = at;
        self.looks += 1;
        let mut problems = Vec::new();
        for doc in collections {
            match CollectionEntry::parse(doc) {
                Ok(entry) => self.look_at(&entry, chunks, &mut problems),
                Err(e) => problems.push(format!("{doc}: {e}")),
            }
        }
        self.problems.extend(problems.into_iter().map(|p| format!("metadata at {at}: {p}")));
    }
    fn look_at(&mut self, entry: &CollectionEntry, chunks: &[DocBuf], problems: &mut Vec<String>) {
        let (ns, at) = (&entry.ns, entry.generation.timestamp);
        let before = self.generations.entry(ns.clone()).or_insert(at);
        if at < *before {
            problems.push(format!("{ns} is of generation {at}, and was of {before}"));
        }
        *before = at;
        match chunks_of(entry, chunks) {
            Ok(newest) => {
                let known = self.versions.entry((entry.uuid, at)).or_insert(newest);
                if newest < *known {
                    problems.push(format!("{ns} is at {newest:?}, and was at {known:?}"));
                }
                *known = newest;
            }
            Err(e) => problems.push(format!("{ns}: {e}")),
        }
    }
}

/// Whether a document is a chunk of this collection.
pub(crate) fn is_of(chunk: &RawDoc, uuid: &Uuid) -> bool {
    matches!(chunk.get("uuid"), Some(Value::Binary { bytes, .. }) if bytes == uuid.0)
}

/// The newest version, if the chunks are in order.
fn chunks_of(entry: &CollectionEntry, chunks: &[DocBuf]) -> Result<Placement, String> {
    let own = chunks.iter().filter(|c| is_of(c, &entry.uuid));
    let own: Vec<Chunk> =
        own.map(|c| Chunk::parse(c)).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    let map = ChunkMap::new(&entry.key, &own).map_err(|e| format!("{e}: {own:?}"))?;
    let versions: BTreeSet<Placement> = own.iter().map(|c| c.placement).collect();
    match versions.len() == own.len() {
        true => Ok(map.placement()),
        false => Err(format!("two chunks have one version: {own:?}")),
    }
}
