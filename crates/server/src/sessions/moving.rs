//! What sessions have done in a range that moves away: entries of statements that a client may send again (SH-MIG-8, SYS-230).
//!
//! ```text
//!   table of sessions ─► chains of their entries ─┐
//!                                                 ├─► turns, told in order
//!   log, from what the table accounts for on ─────┘
//! ```
//! Once nobody writes in the range any more, a turn without entries says that all was told: whoever wrote before has an entry that can
//! be read. An entry of the collection that does not say where its document lies is told, too: what was carried out was carried out.

use super::LogicalSessions;
use super::restore::{done_of, prev_of, statements_of};
use pando_base::{Error, ErrorCode, OpTime, Result, SessionId, Timestamp, Uuid, limits};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_oplog::entry::{EntryView, INCOMPLETE_HISTORY_STMT, OpType};
use pando_oplog::session::lsid_doc;
use pando_routing::{KeyRange, ShardKey};
use std::collections::VecDeque;
use std::ops::Bound;
use std::time::Duration;

/// What a session has done under its newest number and is still to be told: a chain of entries, the newest first.
struct Chain {
    session: SessionId,
    number: i64,
    at: OpTime,
    /// More was carried out than the chain has.
    incomplete: bool,
}

/// Of one range, what is still to be told.
pub(crate) struct MovingHistory {
    uuid: Uuid,
    key: ShardKey,
    keys: KeyRange,
    left: VecDeque<Chain>,
    /// It did not fit into the last turn.
    ahead: Option<DocBuf>,
    /// Of the log.
    read_upto: Timestamp,
    last: History,
    told: u64,
}

/// What is told in one turn.
#[derive(Clone, Default)]
pub(crate) struct History {
    pub(crate) entries: Vec<DocBuf>,
    /// Not all of the log has been looked at yet.
    pub(crate) more: bool,
}

impl MovingHistory {
    /// Finds out where entries are. Whoever wrote before is in the table, or in the log behind what that accounts for.
    ///
    /// # Errors
    /// 24 while that is not known: a session has been in use since before this node knew what sessions have done.
    pub(crate) async fn begin(
        sessions: &LogicalSessions,
        uuid: Uuid,
        key: ShardKey,
        keys: KeyRange,
    ) -> Result<MovingHistory> {
        let clock = &sessions.env.clock;
        let until = clock.mono() + Duration::from_millis(limits::MIGRATION_LOCK_AWAITED_MS);
        let known = loop {
            // Each look makes what is lent from then on count; those in use come back.
            match sessions.settled()? {
                Some((_, known)) => break known,
                None if clock.mono() >= until => {
                    let text =
                        "what sessions have done is not known yet; try again when those in use have ended";
                    return Err(Error::new(ErrorCode::LockTimeout, text));
                }
                None => clock.sleep(Duration::from_millis(limits::MIGRATION_POLL_MS)).await,
            }
        };
        let read_upto = known.upto.ts;
        let chain = |(session, number, at, incomplete)| Chain { session, number, at, incomplete };
        let left = known.retryable_writes().map(chain).collect();
        Ok(MovingHistory { uuid, key, keys, left, ahead: None, read_upto, last: History::default(), told: 0 })
    }
    /// Entries of one turn; the same number once more tells the same once more.
    pub(crate) fn tell(&mut self, sessions: &LogicalSessions, number: u64) -> Result<History> {
        if number == self.told + 1 {
            self.last = self.next(sessions)?;
            self.told = number;
        } else if number != self.told || number == 0 {
            return Err(Error::bad_value(format!("histories {number} were asked for behind {}", self.told)));
        }
        Ok(self.last.clone())
    }
    fn next(&mut self, sessions: &LogicalSessions) -> Result<History> {
        let mut told = History { entries: Vec::from_iter(self.ahead.take()), more: true };
        let mut bytes: usize = told.entries.iter().map(|e| e.byte_len()).sum();
        let mut log = sessions.storage.log().read(Bound::Excluded(self.read_upto), false);
        for _ in 0..limits::MIGRATION_HISTORY_ENTRIES_LOOKED_AT {
            let entry = match self.left.pop_front() {
                Some(chain) => self.next_of(sessions, chain)?,
                None => match log.next()? {
                    Some((ts, entry)) => {
                        self.read_upto = ts;
                        self.of_range(RawDoc::trusted(&entry))?
                    }
                    None => {
                        told.more = false;
                        break;
                    }
                },
            };
            let Some(entry) = entry else { continue };
            bytes += entry.byte_len();
            if bytes > limits::MIGRATION_REPLY_BYTES_MAX && !told.entries.is_empty() {
                self.ahead = Some(entry);
                break;
            }
            told.entries.push(entry);
        }
        Ok(told)
    }
    /// One entry of a chain; the rest of it comes next.
    fn next_of(&mut self, sessions: &LogicalSessions, chain: Chain) -> Result<Option<DocBuf>> {
        let Chain { session, number, at, incomplete } = chain;
        let found = if at.is_null() { None } else { sessions.entry_at(at)? };
        let Some(entry) = found else {
            // The chain ends here; or the log has lost the rest, and nobody can say what that was.
            return Ok((incomplete || !at.is_null()).then(|| unknown(&session, number)));
        };
        let before = prev_of(&EntryView::parse(&entry)?);
        if !before.is_null() || incomplete {
            self.left.push_front(Chain { session, number, at: before, incomplete });
        }
        self.of_range(&entry)
    }
    /// The entry as it is told, if a session has done something in the range with it.
    fn of_range(&self, entry: &RawDoc) -> Result<Option<DocBuf>> {
        let whole = EntryView::parse(entry)?;
        let Some((session, number, stmts)) = statements_of(&whole) else { return Ok(None) };
        if whole.is_moved_history() && stmts.contains(&INCOMPLETE_HISTORY_STMT) {
            return Ok(Some(unknown(&session, number)));
        }
        let e = whole.moved_statement().unwrap_or(whole);
        let is_told = done_of(&e).is_some() && e.ui == Some(self.uuid) && self.may_hold(&e);
        Ok(is_told.then(|| told(&whole, &e, &session, number)))
    }
    fn may_hold(&self, e: &EntryView<'_>) -> bool {
        if e.o_is_array {
            return e.o.iter().any(|d| d.value().as_doc().is_none_or(|doc| self.may_be(doc)));
        }
        match e.op {
            // Its key may have been another one before: the retry asks by that.
            OpType::Update => e.o2.is_none_or(|id| self.may_be(id)) || self.may_change_key(e),
            OpType::Insert => self.may_be(e.o),
            OpType::Delete => self.may_be(e.o) || e.pre.is_some_and(|doc| self.may_be(doc)),
            OpType::Command | OpType::Noop => false,
        }
    }
    fn may_change_key(&self, e: &EntryView<'_>) -> bool {
        let Some(diff) = e.diff() else { return true };
        let begins = |path: &str, name: &str| path.split('.').next() == Some(name);
        let touches = |name: &str| self.key.fields().iter().any(|f| begins(&f.path, name));
        diff.iter().any(|section| match (section.name(), section.value().as_doc()) {
            ("u" | "i" | "d", Some(fields)) => fields.iter().any(|f| touches(f.name())),
            (name, _) => name.strip_prefix('s').is_some_and(touches),
        })
    }
    /// Whether a document, or its key, lies in the range, as far as that can be seen.
    fn may_be(&self, doc: &RawDoc) -> bool {
        let mut at = KeyBuilder::default();
        let is_whole = self.key.fields().iter().all(|f| doc.get_path(&f.path).is_some());
        !is_whole || self.key.key_of(doc, &mut at).is_err() || self.keys.holds(at.bytes())
    }
}

/// An entry without what only this set knows. What was inserted by a statement among many is not asked for again: `_id`s are enough.
fn told(whole: &EntryView<'_>, e: &EntryView<'_>, session: &SessionId, number: i64) -> DocBuf {
    let mut b = DocBuilder::with_capacity(e.doc.as_bytes().len() + 128);
    b.raw_doc("lsid", &lsid_doc(session)).i64("txnNumber", number);
    for field in e.doc.iter() {
        match field.name() {
            "lsid" | "txnNumber" | "stmtId" | "ts" | "t" | "v" | "wall" | "prevOpTime" | "rid" => {}
            "o" if e.o_is_array => {
                b.array("o", |list| {
                    for doc in e.o.iter().filter_map(|d| d.value().as_doc()) {
                        list.doc(|d| _ = doc.elem("_id").map(|id| d.elem(id)));
                    }
                });
            }
            _ => _ = b.elem(field),
        }
    }
    if let Some(stmts) = whole.stmt_id {
        b.value("stmtId", stmts);
    }
    b.timestamp("ts", whole.ts).i64("t", whole.term).date("wall", e.wall);
    b.finish()
}

/// More was carried out than is known.
fn unknown(session: &SessionId, number: i64) -> DocBuf {
    let mut b = DocBuilder::new();
    b.raw_doc("lsid", &lsid_doc(session)).i64("txnNumber", number);
    b.str("op", OpType::Noop.as_str()).str("ns", "").doc("o", |_| ()).i32("stmtId", INCOMPLETE_HISTORY_STMT);
    b.timestamp("ts", Timestamp::new(1, 1)).i64("t", -1);
    b.finish()
}
