//! What must hold after every start: the data is what the model allows, the log tells the same story, and
//! `validate` finds nothing.

use super::builder::{self, INDEXES};
use super::client::{COLLECTIONS, DB};
use super::model::Row;
use crate::client::Client;
use pando_bson::{DocBuf, DocBuilder, RawDoc, doc};
use pando_oplog::{EntryView, diff};
use std::collections::BTreeMap;
use std::io;

pub(super) type Found = BTreeMap<(String, i64), Row>;

/// All documents of a query, over as many batches as it takes.
async fn find_all(
    c: &mut Client,
    db: &str,
    coll: &str,
    hint: Option<&str>,
) -> io::Result<Result<Vec<DocBuf>, String>> {
    let mut b = DocBuilder::new();
    b.str("find", coll).i32("batchSize", 100);
    if let Some(index) = hint {
        b.str("hint", index);
    }
    b.str("$db", db);
    let mut reply = c.command(&b.finish()).await?;
    let mut out = Vec::new();
    loop {
        let Some(cursor) = reply.get("cursor").and_then(|v| v.as_doc()) else {
            return Ok(Err(format!("find on {db}.{coll} failed: {reply}")));
        };
        let batch = cursor.get("firstBatch").or(cursor.get("nextBatch")).and_then(|v| v.as_array());
        out.extend(batch.into_iter().flatten().filter_map(|e| e.value().as_doc()).map(|d| d.to_buf()));
        let id = cursor.get("id").and_then(|v| v.as_i64()).unwrap_or(0);
        if id == 0 {
            return Ok(Ok(out));
        }
        let more = doc! { "getMore": id, "collection": coll, "batchSize": 500, "$db": db };
        reply = c.command(&more.to_raw()).await?;
    }
}

/// Runs every check; returns the data and what is wrong.
pub(super) async fn run(c: &mut Client) -> io::Result<(Found, Vec<String>)> {
    let (mut problems, mut found, mut documents) = (Vec::new(), Found::new(), BTreeMap::new());
    wait_for_builds(c, &mut problems).await?;
    let names = collections(c).await?;
    for coll in names.iter().map(|n| &**n) {
        let docs = match find_all(c, DB, coll, None).await? {
            Ok(docs) => docs,
            Err(e) => {
                problems.push(e);
                continue;
            }
        };
        let count = docs.len();
        for d in docs {
            if builder::number(coll).is_some() {
                let id = d.get("_id").and_then(|v| v.as_i64()).unwrap_or(-1);
                documents.insert((format!("{DB}.{coll}"), id), d);
                continue;
            }
            match Row::read(&d) {
                Ok((id, row)) => {
                    if found.insert((coll.to_owned(), id), row).is_some() {
                        problems.push(format!("{coll} holds _id {id} twice"));
                    }
                    documents.insert((format!("{DB}.{coll}"), id), d);
                }
                Err(e) => problems.push(e),
            }
        }
        validate(c, coll, &mut problems).await?;
        let indexes = indexes(c, coll, count, &mut problems).await?;
        if let Some(n) = builder::number(coll) {
            let ids = indexes.iter().filter_map(|i| builder::index_id(n, i));
            found.extend(ids.map(|id| ((INDEXES.to_owned(), id), Row::default())));
        }
    }
    match find_all(c, "local", "oplog.rs", None).await? {
        Ok(entries) => replay(&entries, &documents, &mut problems),
        Err(e) => problems.push(e),
    }
    Ok((found, problems))
}

/// Index builds that the last process left are taken up again and end.
async fn wait_for_builds(c: &mut Client, problems: &mut Vec<String>) -> io::Result<()> {
    const ATTEMPTS: usize = 20_000;
    for _ in 0..ATTEMPTS {
        let reply = c.command(&doc! { "serverStatus": 1, "$db": "admin" }.to_raw()).await?;
        if reply.get_path("activeIndexBuilds.total").and_then(|v| v.as_i64()) == Some(0) {
            return Ok(());
        }
    }
    problems.push("an index build does not end".into());
    Ok(())
}

async fn collections(c: &mut Client) -> io::Result<Vec<String>> {
    let ask = doc! { "listCollections": 1, "nameOnly": true, "cursor": { "batchSize": 1000 }, "$db": DB };
    let reply = c.command(&ask.to_raw()).await?;
    let batch = reply.get_path("cursor.firstBatch").and_then(|v| v.as_array());
    let name = |d: &RawDoc| d.get("name").and_then(|n| n.as_str().map(str::to_owned));
    Ok(batch.into_iter().flatten().filter_map(|e| e.value().as_doc().and_then(name)).collect())
}

async fn validate(c: &mut Client, coll: &str, problems: &mut Vec<String>) -> io::Result<()> {
    let reply = c
        .command(&doc! { "validate": coll, "full": true, "enforceFastCount": true, "$db": DB }.to_raw())
        .await?;
    if reply.get("valid").and_then(|v| v.as_bool()) != Some(true) {
        problems.push(format!("validate {coll}: {reply}"));
    }
    Ok(())
}

/// Every index yields as many documents as the collection holds; returns their names.
async fn indexes(
    c: &mut Client,
    coll: &str,
    count: usize,
    problems: &mut Vec<String>,
) -> io::Result<Vec<String>> {
    let reply = c.command(&doc! { "listIndexes": coll, "$db": DB }.to_raw()).await?;
    let Some(batch) = reply.get_path("cursor.firstBatch").and_then(|v| v.as_array()) else {
        problems.push(format!("listIndexes {coll}: {reply}"));
        return Ok(Vec::new());
    };
    let names: Vec<String> = batch
        .iter()
        .filter_map(|e| {
            e.value().as_doc().and_then(|d| d.get("name")).and_then(|n| n.as_str().map(str::to_owned))
        })
        .collect();
    for name in &names {
        // A wildcard index holds no document as such; `validate` compares it with the documents.
        if name == "ix2" {
            continue;
        }
        match find_all(c, DB, coll, Some(name)).await? {
            Ok(docs) if docs.len() == count => {}
            Ok(docs) => {
                problems.push(format!("{coll}: {} documents through {name}, {count} without", docs.len()))
            }
            Err(e) => problems.push(e),
        }
    }
    Ok(names)
}

/// Applies the whole log to nothing and compares with the collections.
fn replay(entries: &[DocBuf], documents: &BTreeMap<(String, i64), DocBuf>, problems: &mut Vec<String>) {
    let mut state = BTreeMap::new();
    let mut last = pando_base::Timestamp::ZERO;
    for entry in entries {
        match EntryView::parse(entry) {
            Ok(view) => {
                if view.ts <= last {
                    problems.push(format!("log timestamps do not ascend: {last} then {}", view.ts));
                }
                last = view.ts;
            }
            Err(e) => problems.push(format!("log entry {entry}: {e}")),
        }
        if let Err(e) = apply(entry, &mut state) {
            problems.push(format!("log entry {entry}: {e}"));
        }
    }
    for (key, doc) in documents {
        if state.get(key) != Some(doc) {
            problems.push(format!("{key:?}: the log gives {:?}, the collection {doc:?}", state.get(key)));
        }
    }
    for key in state.keys().filter(|k| !documents.contains_key(*k)) {
        problems.push(format!("{key:?} is in the log but not in the collection"));
    }
}

/// One operation of an entry, or of the list within an `applyOps` entry.
struct Op<'a> {
    op: &'a str,
    ns: &'a str,
    o: &'a RawDoc,
    o2: &'a RawDoc,
}

impl<'a> Op<'a> {
    fn parse(doc: &'a RawDoc) -> Option<Op<'a>> {
        let text = |name| doc.get(name).and_then(|v| v.as_str());
        let object = |name| doc.get(name).and_then(|v| v.as_doc());
        Some(Op {
            op: text("op")?,
            ns: text("ns")?,
            o: object("o")?,
            o2: object("o2").unwrap_or(RawDoc::empty()),
        })
    }
    fn key(&self) -> Result<(String, i64), String> {
        let named = if self.op == "u" { self.o2 } else { self.o };
        let id = named.get("_id").and_then(|v| v.as_i64()).ok_or("no _id")?;
        Ok((self.ns.to_owned(), id))
    }
}

fn apply(entry: &RawDoc, state: &mut BTreeMap<(String, i64), DocBuf>) -> Result<(), String> {
    let op = Op::parse(entry).ok_or("a field is missing")?;
    if op.op == "c" {
        let inner = op.o.get("applyOps").and_then(|v| v.as_array());
        return inner
            .into_iter()
            .flatten()
            .filter_map(|e| e.value().as_doc())
            .try_for_each(|e| apply(e, state));
    }
    let coll = op.ns.strip_prefix(DB).and_then(|ns| ns.strip_prefix('.'));
    if !coll.is_some_and(|c| COLLECTIONS.contains(&c) || builder::number(c).is_some()) {
        return Ok(());
    }
    match op.op {
        "i" => {
            if state.insert(op.key()?, op.o.to_buf()).is_some() {
                return Err("insert of what is there".into());
            }
        }
        "d" => {
            state.remove(&op.key()?).ok_or("delete of what is not there")?;
        }
        "u" => {
            let slot = state.get_mut(&op.key()?).ok_or("update of what is not there")?;
            *slot = match op.o.get("diff").and_then(|v| v.as_doc()) {
                Some(d) => diff::apply(slot, d).map_err(|e| e.to_string())?,
                None => op.o.to_buf(),
            };
        }
        _ => {}
    }
    Ok(())
}
