//! Entries that were recorded while a dump was made, applied once its documents are loaded. They may be about documents
//! that are newer already: an insert replaces, and what is not there is passed over.

use crate::client::Client;
use crate::form::Place;
use pando_bson::{Bson, DocBuf, Document, RawDoc, doc};
use pando_oplog::diff;
use pando_oplog::entry::{EntryView, OpType};
use std::collections::BTreeMap;

/// Indexes that are still to be made.
type Indexes = BTreeMap<Place, Vec<Document>>;

#[derive(Default)]
pub(crate) struct Replay {
    entries: Vec<DocBuf>,
}

impl Replay {
    pub(crate) fn keep(&mut self, entries: Vec<DocBuf>) {
        self.entries.extend(entries);
    }
    /// Returns how many there were.
    pub(crate) async fn run(self, client: &mut Client, indexes: &mut Indexes) -> Result<usize, String> {
        for entry in &self.entries {
            let parsed =
                EntryView::parse(entry).map_err(|e| format!("an entry of the oplog is damaged: {e}"))?;
            apply(client, indexes, &parsed).await?;
        }
        Ok(self.entries.len())
    }
}

async fn apply(client: &mut Client, indexes: &mut Indexes, e: &EntryView<'_>) -> Result<(), String> {
    let Some((db, coll)) = e.ns.split_once('.') else { return Ok(()) };
    // What a load leaves alone: state of the server itself.
    let own = db == "config" || db == "local" || (db == "admin" && coll.starts_with("system."));
    if own && !e.ns.ends_with(".$cmd") {
        return Ok(());
    }
    let id = || e.document_id().map(|id| Bson::from(id.value()));
    match e.op {
        OpType::Noop => Ok(()),
        OpType::Insert => match id() {
            Some(id) => replace(client, db, coll, id, Document::from(e.o)).await,
            None => Ok(()),
        },
        OpType::Delete => match id() {
            Some(id) => {
                let statement = doc! { "q": { "_id": id }, "limit": 1 };
                let delete = doc! { "delete": coll, "deletes": [statement] };
                client.write(db, delete).await.map(drop)
            }
            None => Ok(()),
        },
        OpType::Update => match id() {
            Some(id) => update(client, db, coll, id, e).await,
            None => Ok(()),
        },
        OpType::Command => command(client, indexes, db, e).await,
    }
}

async fn replace(client: &mut Client, db: &str, coll: &str, id: Bson, new: Document) -> Result<(), String> {
    let statement = doc! { "q": { "_id": id }, "u": new, "upsert": true };
    let update = doc! { "update": coll, "updates": [statement], "bypassDocumentValidation": true };
    client.write(db, update).await.map(drop)
}

async fn update(
    client: &mut Client,
    db: &str,
    coll: &str,
    id: Bson,
    e: &EntryView<'_>,
) -> Result<(), String> {
    let Some(change) = e.diff() else { return replace(client, db, coll, id, Document::from(e.o)).await };
    let find = doc! { "find": coll, "filter": { "_id": id.clone() }, "limit": 1 };
    let (found, _) = client.open(db, find).await?;
    // Deleted by a later entry.
    let Some(old) = found.first() else { return Ok(()) };
    let new =
        diff::apply(old, change).map_err(|e| format!("{db}.{coll}: an update cannot be applied: {e}"))?;
    replace(client, db, coll, id, Document::from(&*new)).await
}

async fn command(
    client: &mut Client,
    indexes: &mut Indexes,
    db: &str,
    e: &EntryView<'_>,
) -> Result<(), String> {
    let Some(first) = e.command() else { return Ok(()) };
    let name = first.name();
    let coll = first.value().as_str().unwrap_or_default().to_owned();
    let place = Place::new(db, &coll);
    match name {
        "applyOps" => apply_inner(client, indexes, e).await,
        "create" => {
            let mut create = Document::from(e.o);
            create.remove("idIndex");
            indexes.entry(place).or_default();
            tolerate(client, db, create, &[48]).await
        }
        "drop" => {
            indexes.remove(&place);
            tolerate(client, db, doc! { "drop": coll }, &[26]).await
        }
        "dropDatabase" => {
            indexes.retain(|p, _| p.db != db);
            tolerate(client, db, doc! { "dropDatabase": 1 }, &[]).await
        }
        "renameCollection" => rename(client, indexes, &coll, e).await,
        "createIndexes" => {
            let mut spec = Document::from(e.o);
            spec.remove("createIndexes");
            add_index(indexes, place, spec);
            Ok(())
        }
        "commitIndexBuild" => {
            for spec in e.o.get("indexes").and_then(|v| v.as_array()).into_iter().flatten() {
                if let Some(spec) = spec.value().as_doc() {
                    add_index(indexes, place.clone(), Document::from(spec));
                }
            }
            Ok(())
        }
        "dropIndexes" | "deleteIndexes" => {
            let gone = e.o.get("index").and_then(|v| v.as_str()).unwrap_or_default();
            if let Some(specs) = indexes.get_mut(&place) {
                specs.retain(|s| s.get("name").and_then(Bson::as_str) != Some(gone));
            }
            Ok(())
        }
        "collMod" => tolerate(client, db, Document::from(e.o), &[26, 27]).await,
        "startIndexBuild" | "abortIndexBuild" | "startTransaction" => Ok(()),
        other => Err(format!(
            "the oplog holds '{other}', which cannot be replayed: load the dump without --oplog-replay"
        )),
    }
}

/// The operations of a transaction, or of several writes at once.
async fn apply_inner(client: &mut Client, indexes: &mut Indexes, e: &EntryView<'_>) -> Result<(), String> {
    let inner: Vec<DocBuf> = match e.o.get("applyOps").and_then(|v| v.as_array()) {
        Some(list) => list.iter().filter_map(|e| e.value().as_doc().map(RawDoc::to_buf)).collect(),
        None => Vec::new(),
    };
    for one in &inner {
        let parsed = EntryView::parse(one).map_err(|e| format!("an entry is damaged: {e}"))?;
        Box::pin(apply(client, indexes, &parsed)).await?;
    }
    Ok(())
}

/// The collection that `from` names in full, with the indexes that are still to be made for it.
async fn rename(
    client: &mut Client,
    indexes: &mut Indexes,
    from: &str,
    e: &EntryView<'_>,
) -> Result<(), String> {
    let to = e.o.get("to").and_then(|v| v.as_str()).unwrap_or_default().to_owned();
    if let (Some((a, b)), Some((x, y))) = (from.split_once('.'), to.split_once('.'))
        && let Some(specs) = indexes.remove(&Place::new(a, b))
    {
        indexes.insert(Place::new(x, y), specs);
    }
    let rename = doc! { "renameCollection": from, "to": to, "dropTarget": true };
    tolerate(client, "admin", rename, &[26]).await
}

fn add_index(indexes: &mut Indexes, place: Place, spec: Document) {
    let specs = indexes.entry(place).or_default();
    let name = spec.get("name").cloned();
    specs.retain(|s| s.get("name").cloned() != name);
    specs.push(spec);
}

/// Runs a command; these codes say that there is nothing to do.
async fn tolerate(client: &mut Client, db: &str, command: Document, codes: &[i32]) -> Result<(), String> {
    match client.try_run(db, command).await {
        Err(f) if !codes.contains(&f.code().0) => Err(format!("the oplog cannot be replayed: {f}")),
        _ => Ok(()),
    }
}
