//! Who watches the whole cluster through a change stream, on any member, and resumes it after every error as drivers do. In
//! the end what it was shown is exactly what was committed, once and in the order of the log; and the lists, put together
//! from their changes, are the lists that are there (INV-31..35). Where no member's log reaches back far enough it begins
//! anew, and knows what it missed.

use super::caller::{Caller, Place, docs, is_done};
use crate::client::Client;
use crate::executor::lock;
use crate::set::agreement::applied;
use crate::set::story::{Change, Expected, of_document};
use pando_base::Timestamp;
use pando_bson::{Bson, DocBuf, Document, RawDoc, Value, doc};
use pando_checkers::history::History;
use pando_checkers::stream;
use pando_env::Env;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Members that say in a row that their log does not reach back, before the stream begins anew.
const LOST_IN_A_ROW: u32 = 6;
const HISTORY_LOST: i64 = 286;
const FATAL: i64 = 280;
/// Lists that are put together; elements are only appended.
const LISTS: [&str; 2] = ["lists", "appends"];
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(crate) struct Watched {
    changes: Vec<Change>,
    /// Not shown: from the first on, before the second.
    missed: Vec<(Timestamp, Timestamp)>,
    /// Where the stream stands.
    at: Timestamp,
    /// To be read up to here.
    goal: Option<Timestamp>,
    reached: bool,
    pub(crate) resumed: usize,
    /// Which of [`LISTS`], its `_id`, what was appended.
    lists: BTreeMap<(usize, i64), Vec<u64>>,
    end: BTreeMap<(usize, i64), Vec<u64>>,
    problems: Vec<String>,
}

impl Watched {
    pub(crate) fn events(&self) -> usize {
        self.changes.len()
    }
    pub(crate) fn begun_anew(&self) -> usize {
        self.missed.len()
    }
    fn is_missed(&self, at: Timestamp) -> bool {
        self.missed.iter().any(|(from, to)| *from <= at && at < *to)
    }

    fn event(&mut self, event: &RawDoc) {
        let text = |path: &str| event.get_path(path).and_then(|v| v.as_str()).unwrap_or_default();
        let ns = |of: &str| match (text(&format!("{of}.db")), text(&format!("{of}.coll"))) {
            (db, "") => db.to_owned(),
            (db, coll) => format!("{db}.{coll}"),
        };
        let kind = text("operationType");
        let what = match kind {
            "insert" | "update" | "replace" | "delete" => {
                let key = event.get("documentKey").and_then(|v| v.as_doc());
                of_document(kind, &ns("ns"), key.and_then(|k| k.elem("_id")))
            }
            "rename" => format!("rename {} {}", ns("ns"), ns("to")),
            _ => format!("{kind} {}", ns("ns")),
        };
        match event.get("clusterTime") {
            Some(Value::Timestamp(at)) => self.changes.push((at, what)),
            _ => self.problems.push(format!("an event without clusterTime: {event}")),
        }
        if text("ns.db") == "d"
            && let Some(list) = LISTS.iter().position(|l| *l == text("ns.coll"))
        {
            self.list(list, event);
        }
    }
    fn list(&mut self, list: usize, event: &RawDoc) {
        let Some(id) = event.get_path("documentKey._id").and_then(|v| v.as_i64()) else { return };
        let known = self.lists.entry((list, id)).or_default();
        let whole = event.get_path("fullDocument.l").filter(|_| event.get("updateDescription").is_none());
        if let Some(all) = whole.and_then(|v| v.as_array()) {
            known.extend(elements(all).skip(known.len()));
        }
        let fields = event.get_path("updateDescription.updatedFields").and_then(|v| v.as_doc());
        for e in fields.into_iter().flatten() {
            match e.value() {
                Value::Array(all) => known.extend(elements(all).skip(known.len())),
                v => known.extend(v.as_i64().map(|n| n as u64)),
            }
        }
    }
}

fn elements(list: &RawDoc) -> impl Iterator<Item = u64> + '_ {
    list.iter().filter_map(|e| Some(e.value().as_i64()? as u64))
}

pub(crate) async fn run(place: Place, watched: Arc<Mutex<Watched>>) {
    let env = place.env.clone();
    let c = Caller::new(place);
    let mut w = Watcher { c, watched, token: None, anew: false, cursor: None, lost: 0, text: String::new() };
    while !lock(&w.watched).reached {
        let at_once = match w.cursor {
            Some((at, id)) => w.more(at, id).await,
            None => w.open().await,
        };
        if at_once.is_none() {
            w.cursor = None;
        }
        let hurry = lock(&w.watched).goal.is_some();
        match at_once {
            Some(true) => {}
            _ if hurry => env.clock.sleep(PAUSE).await,
            _ => w.c.pause().await,
        }
    }
}

struct Watcher {
    c: Caller,
    watched: Arc<Mutex<Watched>>,
    /// The stream goes on behind it.
    token: Option<DocBuf>,
    /// Nobody knows any more what follows the token.
    anew: bool,
    /// Whose cursor, and which.
    cursor: Option<(usize, i64)>,
    /// Members in a row that do not know what follows.
    lost: u32,
    /// The last token's text: tokens sort as the events follow.
    text: String,
}

impl Watcher {
    /// `None` when it was not opened; else whether to go on at once.
    async fn open(&mut self) -> Option<bool> {
        let mut stage = doc! { "allChangesForCluster": true };
        match &self.token {
            _ if self.anew => {}
            None => stage.push("startAtOperationTime", Timestamp::new(1, 0)),
            Some(token) => {
                let how = ["resumeAfter", "startAfter"][self.c.below(2) as usize];
                stage.push(how, Document::from(&**token));
            }
        }
        if self.c.below(6) == 0 {
            stage.push("fullDocument", "updateLookup");
        }
        let mut body = doc! { "aggregate": 1 };
        let mut first = Document::new();
        first.push("$changeStream", stage);
        body.push("pipeline", vec![Bson::from(first)]);
        body.push("cursor", Document::new());
        body.push("$readPreference", doc! { "mode": "secondaryPreferred" });
        body.push("$db", "admin");
        let at = self.c.anyone();
        let reply = self.c.ask(at, &body.to_raw()).await?;
        let begins = self.accept(&reply, "firstBatch")?;
        if std::mem::take(&mut self.anew) {
            let mut w = lock(&self.watched);
            let gap = (w.at, begins);
            w.missed.push(gap);
            self.text.clear();
        }
        self.take(at, &reply, "firstBatch", usize::MAX)
    }

    async fn more(&mut self, at: usize, id: i64) -> Option<bool> {
        let size = if self.c.below(3) == 0 { 1 + self.c.below(6) as usize } else { 1000 };
        // Who waits makes members report at once: mostly it only looks.
        let wait = if self.c.below(6) == 0 { 2000 } else { 1 };
        let mut body = doc! { "getMore": id, "collection": "$cmd.aggregate", "batchSize": size as i64 };
        body.push("maxTimeMS", wait);
        body.push("$db", "admin");
        let reply = self.c.ask(at, &body.to_raw()).await?;
        self.accept(&reply, "nextBatch")?;
        self.take(at, &reply, "nextBatch", size)
    }

    /// Where the stream stood before the batch; `None` for an error, which is noted.
    fn accept(&mut self, reply: &RawDoc, batch: &str) -> Option<Timestamp> {
        if is_done(reply) {
            self.lost = 0;
            let token = reply.get_path("cursor.postBatchResumeToken").and_then(|v| v.as_doc())?;
            let first = reply.get_path(&format!("cursor.{batch}"))?.as_array()?.first();
            let first = first.and_then(|e| e.value().as_doc()?.get("_id")?.as_doc());
            return time_of(first.unwrap_or(token));
        }
        match reply.get("code").and_then(|v| v.as_i64()) {
            Some(HISTORY_LOST) => {
                self.lost += 1;
                self.anew |= self.lost >= LOST_IN_A_ROW;
            }
            Some(FATAL) => {
                let text = format!("change stream behind {:?}: {reply}", self.token);
                lock(&self.watched).problems.push(text);
            }
            _ => {}
        }
        None
    }

    fn take(&mut self, at: usize, reply: &RawDoc, batch: &str, size: usize) -> Option<bool> {
        let id = reply.get_path("cursor.id")?.as_i64()?;
        let events: Vec<&RawDoc> = reply
            .get_path(&format!("cursor.{batch}"))?
            .as_array()?
            .iter()
            .filter_map(|e| e.value().as_doc())
            .collect();
        // Now and then an application ends in the middle, and goes on behind the last event that it has seen.
        let leaves = events.len() > 1 && self.c.below(8) == 0;
        let keeps = if leaves { 1 + self.c.below(events.len() as u64 - 1) as usize } else { events.len() };
        for event in &events[..keeps] {
            lock(&self.watched).event(event);
            self.stand(event.get("_id")?.as_doc()?, true);
        }
        self.cursor = Some((at, id)).filter(|_| !leaves && id != 0);
        if !leaves {
            self.stand(reply.get_path("cursor.postBatchResumeToken")?.as_doc()?, false);
        }
        let mut w = lock(&self.watched);
        w.resumed += usize::from(batch == "firstBatch");
        w.reached = events.is_empty() && w.goal.is_some_and(|goal| w.at >= goal);
        if id == 0 {
            w.problems.push(format!("the change stream of the cluster ended: {reply}"));
        }
        Some(leaves || events.len() == size)
    }

    fn stand(&mut self, token: &RawDoc, is_event: bool) {
        let text = token.get("_data").and_then(|v| v.as_str()).unwrap_or_default();
        let mut w = lock(&self.watched);
        if text < self.text.as_str() || (is_event && text == self.text) {
            w.problems.push(format!("change stream: token {text} came behind {}", self.text));
        }
        w.at = time_of(token).unwrap_or(w.at);
        self.text = text.to_owned();
        self.token = Some(token.to_buf());
    }
}

/// The first field of every token.
fn time_of(token: &RawDoc) -> Option<Timestamp> {
    let digits = token.get("_data")?.as_str()?.get(2..18)?;
    Some(Timestamp(u64::from_str_radix(digits, 16).ok()?))
}

/// Waits until the stream has shown all that the primary `c` has applied, and reads the lists there.
pub(crate) async fn catch_up(
    env: &Env,
    c: &mut Client,
    watched: &Mutex<Watched>,
    stage: &Mutex<String>,
) -> Vec<String> {
    let goal = loop {
        match applied(c).await {
            Some(at) => break at.ts,
            None => env.clock.sleep(PAUSE).await,
        }
    };
    lock(watched).goal = Some(goal);
    while !lock(watched).reached {
        *lock(stage) = format!("the change stream stands at {} and goes to {goal}", lock(watched).at);
        env.clock.sleep(PAUSE).await;
    }
    for (which, name) in LISTS.iter().enumerate() {
        let body = doc! { "find": *name, "batchSize": 100_000, "$db": "d" }.to_raw();
        let Some(found) = c.command(&body).await.ok().as_deref().and_then(docs) else {
            return vec![format!("{name} cannot be read")];
        };
        for d in &found {
            let id = d.get("_id").and_then(|v| v.as_i64()).unwrap_or(-1);
            let list = d.get("l").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
            lock(watched).end.insert((which, id), elements(list).collect());
        }
    }
    Vec::new()
}

/// What was shown and not committed, or the other way round.
pub(crate) fn judge(w: &Watched, expected: &Expected) -> Vec<String> {
    let mut problems = w.problems.clone();
    problems.truncate(10);
    let Some(goal) = w.goal else { return problems };
    let judged = |(at, _): &&Change| *at <= goal && expected.is_known(*at) && !w.is_missed(*at);
    let there: Vec<&Change> = expected.changes.iter().filter(judged).collect();
    let shown: Vec<&Change> = w.changes.iter().filter(judged).collect();
    problems.extend(stream::differ(&there, &shown).map(|why| format!("change stream: {why}")));
    if w.missed.is_empty() {
        let number = |(which, id): &(usize, i64)| *id as u64 * 2 + *which as u64;
        let mut h = History::default();
        h.end.extend(w.end.iter().map(|(list, all)| (number(list), all.clone())));
        let shown = w.lists.iter().flat_map(|(list, all)| all.iter().map(move |e| (number(list), *e)));
        h.streams.insert(0, shown.collect());
        problems.extend(stream::check(&h));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u64) -> Timestamp {
        Timestamp(n)
    }
    fn changes(all: &[u64]) -> Vec<Change> {
        all.iter().map(|n| (at(*n), format!("insert d.a _id: {n}"))).collect()
    }
    fn wrong(shown: &[u64], missed: &[(u64, u64)]) -> Vec<String> {
        let missed = missed.iter().map(|(from, to)| (at(*from), at(*to))).collect();
        let w = Watched { changes: changes(shown), missed, goal: Some(at(4)), ..Watched::default() };
        let unseen = vec![(at(6), at(9))];
        judge(&w, &Expected { changes: changes(&[1, 2, 3, 4, 5]), unseen, ..Expected::default() })
    }

    #[test]
    fn dropped_doubled_undone_and_disordered_events_are_found() {
        assert!(wrong(&[1, 2, 3, 4], &[]).is_empty());
        assert!(wrong(&[1, 2, 3, 4, 5], &[]).is_empty(), "more than was asked for");
        assert!(wrong(&[1, 3, 4], &[])[0].contains("gap"));
        assert!(wrong(&[1, 2, 2, 3, 4], &[])[0].contains("twice"));
        assert!(wrong(&[1, 0, 2, 3, 4], &[])[0].contains("is not there"));
        assert!(wrong(&[1, 3, 2, 4], &[])[0].contains("order"));
        assert!(wrong(&[1, 4], &[(2, 4)]).is_empty(), "no log reached back");
        assert_eq!(wrong(&[1], &[(2, 4)]).len(), 1);
    }
    #[test]
    fn lists_are_put_together_from_their_changes() {
        let mut w = Watched { goal: Some(at(9)), ..Watched::default() };
        let mut event = |kind: &str, name: &str, rest: Document| {
            let mut e =
                doc! { "operationType": kind, "clusterTime": at(10), "ns": { "db": "d", "coll": "lists" } };
            e.push("documentKey", doc! { "_id": 7_i64 });
            e.push(name, rest);
            w.event(&e.to_raw());
        };
        event("insert", "fullDocument", doc! { "_id": 7_i64, "l": [1_i64] });
        event("update", "updateDescription", doc! { "updatedFields": { "l": [1_i64, 2_i64] } });
        event("update", "updateDescription", doc! { "updatedFields": { "l.2": 3_i64 } });
        w.end.insert((0, 7), vec![1, 2, 3]);
        assert_eq!(judge(&w, &Expected::default()), [""; 0]);
        w.end.insert((0, 7), vec![1, 2, 3, 4]);
        assert_eq!(judge(&w, &Expected::default()).len(), 1);
    }
}
