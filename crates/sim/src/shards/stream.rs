//! A change stream over all shards: opened, an event, a second of silence, and an event of every document.

use super::caller::{at, batch, expect, number};
use super::machines::Run;
use super::reads::aggregate;
use super::writes::in_d;
use pando_bson::{Bson, Document, doc};
use std::time::Duration;

/// Simulated time in which everything that was written has been told.
const LIMIT: Duration = Duration::from_secs(60);
const SILENCE_MS: i64 = 1000;

impl Run {
    pub(super) fn watch(&mut self) -> Result<(), String> {
        let open = in_d(aggregate("ranged", vec![doc! { "$changeStream": Document::new() }]));
        let cursor = self.step("a change stream opens", 1, |run| {
            let reply = run.ok(&open)?;
            Ok(number(&reply, "cursor.id"))
        })?;
        self.step("a change stream, a second of silence", 1, |run| {
            expect("events", run.more(cursor)?.len(), 0)
        })?;
        self.step("a change stream, one event", 1, |run| {
            let mut one = doc! { "q": { "k": run.key_of(0) } };
            one.push("u", doc! { "$set": { "seen": 1 } });
            let mut body = doc! { "update": "ranged" };
            body.push("updates", vec![Bson::from(one)]);
            run.ok(&in_d(body))?;
            let events = run.events(cursor, 1)?;
            expect("the event's document", number(&events[0], "documentKey._id"), 0)
        })?;
        let n = self.ranged();
        self.step("a change stream, an event of every document", 1, |run| {
            expect("updated", run.update_all()?, n)?;
            let events = run.events(cursor, n as usize)?;
            let mut ids: Vec<i64> = events.iter().map(|e| number(e, "documentKey._id")).collect();
            ids.sort_unstable();
            expect("events", ids, (0..n).collect())?;
            let tokens = events.iter().map(|e| at(e, "_id._data").and_then(Bson::as_str));
            expect("in order", tokens.is_sorted(), true)
        })?;
        let mut end = doc! { "killCursors": "ranged" };
        end.push("cursors", vec![Bson::from(cursor)]);
        self.ok(&in_d(end))?;
        Ok(())
    }
    /// What the stream tells within a second.
    fn more(&mut self, cursor: i64) -> Result<Vec<Document>, String> {
        let body = doc! { "getMore": cursor, "collection": "ranged", "maxTimeMS": SILENCE_MS };
        Ok(batch(&self.ok(&in_d(body))?, "nextBatch"))
    }
    fn events(&mut self, cursor: i64, n: usize) -> Result<Vec<Document>, String> {
        let (mut out, end) = (Vec::new(), self.world.sim.now() + LIMIT);
        while out.len() < n {
            if self.world.sim.now() > end {
                return Err(format!("{} events of {n} within {LIMIT:?}", out.len()));
            }
            out.extend(self.more(cursor)?);
        }
        Ok(out)
    }
}
