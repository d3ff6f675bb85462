//! The table of retryable writes that were carried out: rebuilt at a start, kept up by what a secondary applies.

use super::LogicalSessions;
use pando_base::{Error, ErrorCode, OpTime, Result, SessionId, limits};
use pando_bson::{RawDoc, Value};
use pando_env::Component;
use pando_oplog::entry::{EntryView, INCOMPLETE_HISTORY_STMT, OpType};
use pando_oplog::session::lsid_of;
use pando_session::retryable::{Done, Image, Kind};
use pando_session::transaction::DurableState;
use std::ops::Bound;

impl LogicalSessions {
    /// Rebuilds the table of carried-out retryable writes from what was kept of it, and from all that the oplog says since.
    /// Without the former from as much of the oplog as sessions live; what is older is refused when it is asked for.
    pub(crate) fn restore_retryable_writes(&self) -> Result<()> {
        let now = self.env.clock.mono();
        let oldest = self.env.clock.wall_ms() - limits::RETRY_RESTORE_AGE_MS;
        let kept = self.kept()?;
        let known = kept.as_ref().map(|(kept, _)| kept.upto.ts);
        let mut cursor = self.storage.log().read(Bound::Unbounded, true);
        let mut read = 0u64;
        while let Some((_, bytes)) = cursor.next()?.filter(|(ts, _)| Some(*ts) > known) {
            let e = EntryView::parse(RawDoc::trusted(&bytes))?;
            if known.is_none() && e.wall < oldest {
                break;
            }
            read += 1;
            if let Some((id, number, outcome)) = transaction_of(&e) {
                self.retryable.learn(id, number, outcome, e.op_time(), now);
                continue;
            }
            let Some((id, txn_number, stmts)) = statements_of(&e) else { continue };
            if is_incomplete(&e, &stmts) {
                self.retryable.restore_incomplete(id, txn_number, e.op_time(), prev_of(&e), now);
                continue;
            }
            let Some(done) = done_of(&e) else { continue };
            self.retryable.restore(id, txn_number, &stmts, &done, prev_of(&e), now);
        }
        let sessions = kept.as_ref().map_or(0, |(kept, _)| kept.sessions.len());
        for (doc, upto) in kept.iter().flat_map(|(kept, upto)| kept.sessions.iter().map(move |d| (d, *upto)))
        {
            self.retryable.restore_record(doc, upto, now);
        }
        self.retryable.end_restore();
        self.env.log.info(Component::Recovery, 9100032, "What sessions have done is known again", |a| {
            a.u64("entriesRead", read).u64("sessionsKept", sessions as u64);
        });
        self.known.set();
        self.note_known()
    }
    /// Entries of retryable writes came from the primary: this node must know them should it become one.
    pub(crate) fn note_applied_statements(&self, entries: &[EntryView<'_>]) {
        let now = self.env.clock.mono();
        for e in entries {
            if let Some((id, number, outcome)) = transaction_of(e) {
                self.retryable.learn(id, number, outcome, e.op_time(), now);
            } else if let Some((id, txn_number, stmts)) = statements_of(e) {
                if is_incomplete(e, &stmts) {
                    self.retryable.applied_incomplete(id, txn_number, e.op_time(), now);
                } else if let Some(done) = done_of(e) {
                    self.retryable.applied(id, txn_number, &stmts, &done, now);
                }
            }
        }
    }
    /// After a start, a rollback or an initial sync: what the table of sessions calls prepared is made anew from the log.
    pub(crate) fn restore_prepared(&self) -> Result<()> {
        for at in self.retryable.prepared() {
            if !self.config.majority_reads {
                return Err(Error::new(
                    ErrorCode(51146),
                    "A prepared transaction cannot be recovered with 'enableMajorityReadConcern=false'; restart the \
                     node with majority read concern",
                ));
            }
            self.maintenance.restore_prepared(at.ts)?;
        }
        self.storage.hold_log(false);
        Ok(())
    }
}

/// The session's entry before this one.
pub(super) fn prev_of(e: &EntryView<'_>) -> OpTime {
    let prev = |name: &str| e.doc.get("prevOpTime").and_then(|v| v.as_doc()?.get(name));
    match (prev("ts"), prev("t").and_then(|t| t.as_i64())) {
        (Some(Value::Timestamp(ts)), Some(t)) if !ts.is_zero() => OpTime::new(ts, t),
        _ => OpTime::NULL,
    }
}

/// Another shard did more under this number than anybody knows.
fn is_incomplete(e: &EntryView<'_>, stmts: &[i32]) -> bool {
    e.is_moved_history() && stmts.contains(&INCOMPLETE_HISTORY_STMT)
}

/// What a document entry did, here or on another shard, for the table of carried-out statements.
pub(super) fn done_of(e: &EntryView<'_>) -> Option<Done> {
    let e = &e.moved_statement().unwrap_or(*e);
    let kind = match e.op {
        OpType::Insert => Kind::Insert,
        OpType::Update => Kind::Update,
        OpType::Delete => Kind::Delete,
        OpType::Command | OpType::Noop => return None,
    };
    // The `_id` of an inserted document is in the entry, for the few who will ask.
    Some(Done { kind, inserted_id: None, image: e.needs_image.map(Image::in_log), op_time: e.op_time() })
}

/// Session, number and outcome of an entry that belongs to a transaction, of this set or of the one that its tenant has come from.
pub(super) fn transaction_of(whole: &EntryView<'_>) -> Option<(SessionId, i64, DurableState)> {
    let e = &whole.moved_statement().unwrap_or(*whole);
    let first = e.command().filter(|_| e.op == OpType::Command)?;
    let is_set = |name: &str| e.o.get(name).is_some_and(|v| v.is_truthy());
    let outcome = match first.name() {
        "applyOps" if is_set("partialTxn") => DurableState::Partial,
        "applyOps" if is_set("prepare") => DurableState::Prepared,
        "applyOps" | "commitTransaction" => DurableState::Committed,
        "abortTransaction" => DurableState::Aborted,
        _ => return None,
    };
    let (id, number) = session_of(whole)?;
    Some((id, number, outcome))
}

/// Session and number of an entry.
pub(super) fn session_of(e: &EntryView<'_>) -> Option<(SessionId, i64)> {
    Some((lsid_of(e.lsid?)?, e.txn_number?))
}

/// Session, number and statements of an entry that belongs to a retryable write.
pub(super) fn statements_of(e: &EntryView<'_>) -> Option<(SessionId, i64, Vec<i32>)> {
    let (id, number) = session_of(e)?;
    let stmts = match e.stmt_id? {
        Value::Array(ids) => ids.iter().filter_map(|e| e.value().as_i64()).map(|n| n as i32).collect(),
        one => vec![one.as_i64()? as i32],
    };
    Some((id, number, stmts))
}
