//! Who watches a database over all shards, through any router, and begins again where a stream broke: every change is shown once, in
//! the order of cluster times, and whatever was acknowledged is shown at last (INV-30 over shards).

use super::documents::{COLLECTIONS, DB};
use crate::executor::lock;
use crate::set::users::caller::{Caller, Place, is_done};
use pando_base::Timestamp;
use pando_bson::{Bson, Document, RawDoc, Value, doc};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

#[derive(Default)]
pub(crate) struct Stream {
    /// Before everything that users have written.
    pub(crate) from: Timestamp,
    token: Option<Document>,
    last: Timestamp,
    /// Document, kind of change, and when.
    seen: BTreeSet<(i64, String, Timestamp)>,
    /// Documents whose insertion, or deletion, was shown.
    once: BTreeSet<(i64, String)>,
    pub(crate) broken: usize,
    pub(crate) problems: Vec<String>,
}

/// Goes on after users have been told to stop: what they wrote last is to be shown, too.
pub(crate) async fn run(place: Place, stream: Arc<Mutex<Stream>>) {
    let mut c = Caller::new(place);
    loop {
        let at = c.anyone();
        follow(&mut c, at, &stream).await;
        lock(&stream).broken += 1;
        c.pause().await;
    }
}

/// Until it breaks.
async fn follow(c: &mut Caller, at: usize, stream: &Mutex<Stream>) -> Option<()> {
    let mut stage = Document::new();
    {
        let stream = lock(stream);
        match &stream.token {
            Some(token) => stage.push("resumeAfter", token.clone()),
            None => stage.push("startAtOperationTime", stream.from),
        }
    }
    let mut body = doc! { "aggregate": 1, "cursor": { "batchSize": 20 } };
    body.push("pipeline", vec![Bson::from(doc! { "$changeStream": stage })]);
    body.push("$db", DB);
    let mut reply = c.ask(at, &body.to_raw()).await.filter(|r| is_done(r))?;
    loop {
        lock(stream).hear(&reply)?;
        let id = reply.get_path("cursor.id").and_then(|v| v.as_i64()).filter(|id| *id != 0)?;
        let mut body = doc! { "getMore": id, "collection": "$cmd.aggregate", "maxTimeMS": 1000 };
        body.push("$db", DB);
        reply = c.ask(at, &body.to_raw()).await.filter(|r| is_done(r))?;
    }
}

impl Stream {
    pub(crate) fn events(&self) -> usize {
        self.seen.len()
    }
    pub(crate) fn has_shown_insertion(&self, id: i64) -> bool {
        self.once.contains(&(id, "insert".to_owned()))
    }
    fn hear(&mut self, reply: &RawDoc) -> Option<()> {
        let cursor = reply.get("cursor")?.as_doc()?;
        let batch = cursor.get("firstBatch").or(cursor.get("nextBatch"))?.as_array()?;
        for event in batch.iter().filter_map(|e| e.value().as_doc()) {
            self.note(event);
        }
        if let Some(token) = cursor.get("postBatchResumeToken").and_then(|v| v.as_doc()) {
            self.token = Some(Document::from(token));
        }
        Some(())
    }
    fn note(&mut self, event: &RawDoc) {
        self.token = event.get("_id").and_then(|v| v.as_doc()).map(Document::from);
        let Some(Value::Timestamp(at)) = event.get("clusterTime") else {
            return self.problems.push(format!("a change without a time: {event}"));
        };
        if at < self.last {
            self.problems.push(format!("a change of before {}: {event}", self.last));
        }
        self.last = at;
        let text = |name: &str| event.get_path(name).and_then(|v| v.as_str());
        let (kind, id) = (text("operationType"), event.get_path("documentKey._id").and_then(|v| v.as_i64()));
        let known = text("ns.coll").is_some_and(|coll| COLLECTIONS.contains(&coll));
        let (Some(kind), Some(id), true) = (kind, id, known) else {
            return self.problems.push(format!("an unexpected change: {event}"));
        };
        let mut new = self.seen.insert((id, kind.to_owned(), at));
        if kind != "update" {
            new &= self.once.insert((id, kind.to_owned()));
        }
        if !new {
            self.problems.push(format!("a change is shown twice: {event}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::DocBuf;

    #[test]
    fn doubled_and_disordered_changes_are_found() {
        let event = |id: i64, kind: &str, secs: u32| -> DocBuf {
            let mut e =
                doc! { "_id": { "_data": "x" }, "operationType": kind, "ns": { "db": DB, "coll": "plain" } };
            e.push("documentKey", doc! { "_id": id });
            e.push("clusterTime", Timestamp::new(secs, 1));
            e.to_raw()
        };
        let wrong = |events: &[DocBuf]| {
            let mut stream = Stream::default();
            events.iter().for_each(|e| stream.note(e));
            stream.problems.len()
        };
        let (a, b) = (event(1, "insert", 5), event(1, "update", 6));
        assert_eq!(wrong(&[a.clone(), b.clone(), event(1, "update", 7), event(2, "insert", 7)]), 0);
        assert_eq!(wrong(&[b.clone(), a.clone()]), 1, "out of order");
        assert_eq!(wrong(&[b.clone(), b]), 1, "twice");
        assert_eq!(wrong(&[a, event(1, "insert", 6)]), 1, "inserted twice");
    }
}
