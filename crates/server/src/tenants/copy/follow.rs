//! What the donor's log says of a tenant, carried out here: each entry once, in its order.
//!
//! Entries about documents go together into transactions of this set's own, each with the note of how far the donor's log is carried out
//! then. A definition cannot be part of one: it stands between two, may be carried out again, and is noted behind. Of a transaction that
//! makes collections, these come first, empty, and all the rest together.

use super::progress::Progress;
use super::{Copier, documents_at, timestamp_at};
use crate::sessions::moving::history_of;
use pando_access::Uninterrupted;
use pando_base::{Result, Timestamp, limits};
use pando_bson::DocBuf;
use pando_oplog::entry::{EntryView, OpType};
use pando_session::transaction::DurableState;
use std::time::Duration;

/// What the donor tells in one turn.
struct Helping {
    entries: Vec<Entry>,
    /// Everything of the tenant up to there is told.
    upto: Timestamp,
}

/// One entry of its log; of a large transaction, the parts in which it was told.
struct Entry(Vec<DocBuf>);

impl Copier<'_> {
    /// Fetches one helping of entries behind what was carried out, or behind `start` where nothing was, and carries it out. Returns how far
    /// that is now, as a time of the donor's; the caller may hand it in as the next `start`. What was carried out is in this set's log; the
    /// caller waits for a majority. Where there is nothing yet the donor waits for `wait`.
    ///
    /// # Errors
    /// 136 where the donor's log does not go back so far any more, 96 where what is here is not what was there: nothing can be followed then.
    pub(crate) async fn follow(&self, start: Timestamp, wait: Duration) -> Result<Timestamp> {
        let mut progress = Progress::read(&self.roles.internal, self.id, start).await?;
        let Helping { entries, upto } = self.fetch(progress.upto, wait).await?;
        self.note_sessions(&entries).await?;
        let mut together = Together::default();
        for entry in &entries {
            let views = entry.views()?;
            let at = views.first().map_or(upto, |e| e.ts);
            for definition in definitions(&views) {
                // Whatever stands before it comes first.
                progress = self.carry_out(progress, &mut together).await?;
                self.before_write().await;
                // As before every build on a primary, which may have begun its office just now.
                self.roles.index_builds.make_entries().await?;
                let _defines = self.defines()?;
                self.roles.maintenance.define_told(&definition?, &Uninterrupted).await?;
            }
            together.add(&views, at)?;
            let is_definition = views.iter().any(|e| e.op == OpType::Command && e.inner().is_none());
            if is_definition || together.is_full() {
                progress = self.carry_out(progress, &mut together).await?;
            }
        }
        progress = self.carry_out(progress, &mut together).await?;
        let is_far =
            |noted: Timestamp| upto.secs().saturating_sub(noted.secs()) >= limits::TENANT_PROGRESS_NOTED_SECS;
        if upto > progress.upto && progress.noted().is_none_or(is_far) {
            together.at = Some(upto);
            self.carry_out(progress, &mut together).await?;
        }
        Ok(upto)
    }

    async fn fetch(&self, after: Timestamp, wait: Duration) -> Result<Helping> {
        let mut helping = Helping { entries: Vec::new(), upto: after };
        // Of a transaction that does not fit into one answer.
        let mut parts: Vec<DocBuf> = Vec::new();
        let mut skip = 0;
        loop {
            let reply = self
                .ask_soon("_tenantEntries", |b| {
                    self.append_whose(b);
                    b.timestamp("after", helping.upto);
                    b.i64("skip", skip).i64("waitMS", wait.as_millis() as i64);
                })
                .await?;
            let mut told = documents_at(&reply, "entries");
            let partial = reply.get("partial").and_then(|v| v.as_i64());
            helping.upto = timestamp_at(&reply, "upto")?;
            if !parts.is_empty() && !told.is_empty() {
                parts.push(told.remove(0));
            }
            if let Some(n) = partial {
                parts.extend(told.pop());
                helping.entries.extend(told.into_iter().map(|doc| Entry(vec![doc])));
                skip = n;
                continue;
            }
            if !parts.is_empty() {
                helping.entries.push(Entry(std::mem::take(&mut parts)));
            }
            helping.entries.extend(told.into_iter().map(|doc| Entry(vec![doc])));
            return Ok(helping);
        }
    }

    /// What sessions have done with these entries is known here before they are carried out: a primary that ends in between leaves too
    /// much, which nobody asks for, never too little.
    async fn note_sessions(&self, entries: &[Entry]) -> Result<()> {
        let mut told = Vec::new();
        for entry in entries {
            if let Some(first) = entry.0.first() {
                told.extend(history_of(first)?);
            }
        }
        if !told.is_empty() {
            self.before_write().await;
        }
        self.roles.sessions.take_moved(&Uninterrupted, &told).await
    }

    /// Carries out what has come together, and notes it. Nothing where there is nothing to note.
    async fn carry_out(&self, progress: Progress, together: &mut Together<'_>) -> Result<Progress> {
        let Together { operations, at, .. } = std::mem::take(together);
        let Some(at) = at else { return Ok(progress) };
        self.before_write().await;
        let (roles, session) = (self.roles, progress.session());
        let used = roles.sessions.retryable.state_of(&session).map_or(0, |(number, ..)| number);
        let (change, next) = progress.step(at, used);
        let id = (session, next.number());
        if operations.is_empty() {
            roles.internal.write_together(&Uninterrupted, id, &[change]).await?;
            return Ok(next);
        }
        let done = roles.internal.carry_out(&Uninterrupted, id, &operations, &change).await?;
        let now = roles.env.clock.mono();
        roles.sessions.retryable.learn(session, next.number(), DurableState::Committed, done, now);
        Ok(next)
    }
}

/// Entries about documents that are carried out in one transaction.
#[derive(Default)]
struct Together<'a> {
    operations: Vec<EntryView<'a>>,
    bytes: usize,
    /// How far that is.
    at: Option<Timestamp>,
}

impl<'a> Together<'a> {
    fn add(&mut self, views: &[EntryView<'a>], at: Timestamp) -> Result<()> {
        for view in views {
            match view.inner() {
                Some(inner) => {
                    for op in inner {
                        self.push(op?);
                    }
                }
                None => self.push(*view),
            }
        }
        self.at = Some(at);
        Ok(())
    }
    fn push(&mut self, e: EntryView<'a>) {
        if matches!(e.op, OpType::Insert | OpType::Update | OpType::Delete) {
            self.bytes += e.doc.byte_len();
            self.operations.push(e);
        }
    }
    fn is_full(&self) -> bool {
        self.operations.len() >= limits::TENANT_CARRIED_OUT_TOGETHER
            || self.bytes >= limits::TENANT_CARRIED_OUT_BYTES
    }
}

impl Entry {
    fn views(&self) -> Result<Vec<EntryView<'_>>> {
        self.0.iter().map(|doc| EntryView::parse(doc)).collect()
    }
}

/// Definitions of an entry, alone or within a transaction.
fn definitions<'a>(views: &[EntryView<'a>]) -> Vec<Result<EntryView<'a>>> {
    let mut all = Vec::new();
    for view in views {
        match view.inner() {
            Some(inner) => all.extend(inner.filter(|op| match op {
                Ok(op) => op.op == OpType::Command,
                Err(_) => true,
            })),
            None if view.op == OpType::Command => all.push(Ok(*view)),
            None => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    #[test]
    fn of_a_transaction_definitions_come_first_and_documents_together() {
        let op = |op: &str, o| doc! { "op": op, "ns": "a_b.c", "o": o };
        let ops = vec![
            op("c", doc! { "create": "c" }).into(),
            op("i", doc! { "_id": 1 }).into(),
            op("d", doc! { "_id": 1 }).into(),
        ];
        let mut o = doc! {};
        o.push("applyOps", pando_bson::Bson::Array(ops));
        let mut entry = op("c", o);
        entry.push("ts", Timestamp::new(5, 1));
        let entry = Entry(vec![entry.to_raw()]);
        let views = entry.views().expect("entries");
        assert_eq!(definitions(&views).len(), 1);
        let mut together = Together::default();
        together.add(&views, Timestamp::new(5, 1)).expect("operations");
        assert_eq!(together.operations.len(), 2);
        assert_eq!(together.at, Some(Timestamp::new(5, 1)));
    }
    #[test]
    fn a_definition_alone_brings_no_documents() {
        let entry = doc! { "op": "c", "ns": "a_b.$cmd", "o": { "drop": "c" }, "ts": Timestamp::new(5, 1) };
        let entry = Entry(vec![entry.to_raw()]);
        let views = entry.views().expect("entries");
        assert_eq!(definitions(&views).len(), 1);
        let mut together = Together::default();
        together.add(&views, Timestamp::new(5, 1)).expect("operations");
        assert!(together.operations.is_empty());
    }
}
