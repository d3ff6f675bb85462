//! What the donor's log says of a tenant, carried out here: each entry once, in its order.
//!
//! Entries about documents go together into transactions of this set's own, each with the note of how far the donor's log is carried out
//! then. A definition cannot be part of one: it stands between two, may be carried out again, and is noted behind. Of a transaction that
//! makes collections, these come first, empty, and all the rest together.
//!
//! A transaction that does not fit into one of the donor's answers is carried out in the parts in which it is told, and how many of its
//! operations are carried out is noted with each: nobody reads the tenant here before all of it is. So no more than one answer is held in
//! memory, however large the transaction is.

use super::progress::{Part, Place, Progress};
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
    /// Of its log; of a transaction the tenant's operations, as one.
    entries: Vec<DocBuf>,
    /// Everything of the tenant up to there is told.
    upto: Timestamp,
    /// The last of them is a part of a transaction that comes behind `upto`: so many of its operations are told by now.
    partial: Option<usize>,
}

impl Copier<'_> {
    /// Fetches one helping of entries behind what was carried out, or behind `start` where nothing was, and carries it out. Returns how far
    /// that is now, as a time of the donor's; the caller may hand it in as the next `start`. What was carried out is in this set's log; the
    /// caller waits for a majority. Where there is nothing yet the donor waits for `wait`.
    ///
    /// # Errors
    /// 136 where the donor's log does not go back so far any more, 96 where what is here is not what was there: nothing can be followed then.
    pub(crate) async fn follow(&self, start: Timestamp, wait: Duration) -> Result<Timestamp> {
        let mut progress = Progress::read(&self.roles.internal, self.id, start).await?;
        let Helping { entries, upto, partial } = self.fetch(&progress.at, wait).await?;
        let Some(first) = entries.first() else { return self.nothing_told(progress, upto).await };
        progress.at.check_goes_on_with(EntryView::parse(first)?.ts)?;
        self.note_sessions(&entries).await?;
        let mut together = Together::default();
        for (i, entry) in entries.iter().enumerate() {
            let entry = EntryView::parse(entry)?;
            for definition in definitions(&entry) {
                // Whatever stands before it comes first.
                progress = self.carry_out(progress, &mut together).await?;
                self.before_write().await;
                // As before every build on a primary, which may have begun its office just now.
                self.roles.index_builds.make_entries().await?;
                self.roles.maintenance.define_told(&definition?, &Uninterrupted).await?;
            }
            let is_last = i + 1 == entries.len();
            let part = partial.filter(|_| is_last).map(|told| Part { of: entry.ts, told });
            together.add(&entry)?;
            together.at = Some(Place { upto: if part.is_some() { upto } else { entry.ts }, part });
            let is_definition = entry.op == OpType::Command && entry.inner().is_none();
            if is_definition || together.is_full() {
                progress = self.carry_out(progress, &mut together).await?;
            }
        }
        progress = self.carry_out(progress, &mut together).await?;
        self.nothing_told(progress, upto).await
    }
    /// There is nothing more of the tenant up to there; that is noted from time to time. A donor's primary that does not know yet how far its
    /// majority is may not tell the rest of a transaction that another one has begun to tell: there is nothing to be passed over then.
    async fn nothing_told(&self, progress: Progress, upto: Timestamp) -> Result<Timestamp> {
        if progress.at.part.is_some() {
            return Ok(progress.at.upto);
        }
        let is_far =
            |noted: Timestamp| upto.secs().saturating_sub(noted.secs()) >= limits::TENANT_PROGRESS_NOTED_SECS;
        if upto > progress.at.upto && progress.noted().is_none_or(is_far) {
            let at = Some(Place { upto, part: None });
            self.carry_out(progress, &mut Together { at, ..Together::default() }).await?;
        }
        Ok(upto)
    }

    async fn fetch(&self, after: &Place, wait: Duration) -> Result<Helping> {
        let skip = after.part.map_or(0, |part| part.told);
        let reply = self
            .ask_soon("_tenantEntries", |b| {
                self.append_whose(b);
                b.timestamp("after", after.upto);
                b.i64("skip", skip as i64).i64("waitMS", wait.as_millis() as i64);
            })
            .await?;
        let partial = reply.get("partial").and_then(|v| v.as_i64()).map(|n| n as usize);
        let upto = timestamp_at(&reply, "upto")?;
        Ok(Helping { entries: documents_at(&reply, "entries"), upto, partial })
    }

    /// What sessions have done with these entries is known here before they are carried out: a primary that ends in between leaves too
    /// much, which nobody asks for, never too little.
    async fn note_sessions(&self, entries: &[DocBuf]) -> Result<()> {
        let mut told = Vec::new();
        for entry in entries {
            told.extend(history_of(entry)?);
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
    at: Option<Place>,
}

impl<'a> Together<'a> {
    fn add(&mut self, entry: &EntryView<'a>) -> Result<()> {
        match entry.inner() {
            Some(inner) => {
                for op in inner {
                    self.push(op?);
                }
            }
            None => self.push(*entry),
        }
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

/// Definitions of an entry, alone or within a transaction.
fn definitions<'a>(entry: &EntryView<'a>) -> Vec<Result<EntryView<'a>>> {
    let is_one = |op: &Result<EntryView<'a>>| op.as_ref().map_or(true, |op| op.op == OpType::Command);
    match entry.inner() {
        Some(inner) => inner.filter(is_one).collect(),
        None if entry.op == OpType::Command => vec![Ok(*entry)],
        None => Vec::new(),
    }
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
        let entry = entry.to_raw();
        let entry = EntryView::parse(&entry).expect("an entry");
        assert_eq!(definitions(&entry).len(), 1);
        let mut together = Together::default();
        together.add(&entry).expect("operations");
        assert_eq!(together.operations.len(), 2);
    }
    #[test]
    fn a_definition_alone_brings_no_documents() {
        let entry = doc! { "op": "c", "ns": "a_b.$cmd", "o": { "drop": "c" }, "ts": Timestamp::new(5, 1) };
        let entry = entry.to_raw();
        let entry = EntryView::parse(&entry).expect("an entry");
        assert_eq!(definitions(&entry).len(), 1);
        let mut together = Together::default();
        together.add(&entry).expect("operations");
        assert!(together.operations.is_empty());
    }
}
