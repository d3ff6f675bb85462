//! What sessions have done in what moves away, a range or a tenant: entries of statements that a client may send again (SH-MIG-8, SYS-230).
//!
//! ```text
//!   table of sessions ─► chains of their entries, and ends of transactions ─┐
//!                                                                           ├─► turns, told in order
//!   log, from what the table accounts for on ───────────────────────────────┘
//! ```
//! Once nobody writes there any more, a turn without entries says that all was told: whoever wrote before has an entry that can
//! be read. An entry of the collection that does not say where its document lies is told, too: what was carried out was carried out.
//! Of a tenant all is told up to a time: later entries are told as such, by whoever follows the log.

use super::LogicalSessions;
use super::restore::{done_of, prev_of, statements_of, transaction_of};
use pando_access::TransactionHistory;
use pando_base::{Error, ErrorCode, Millis, OpTime, Result, SessionId, TenantScope, Timestamp, Uuid, limits};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_oplog::entry::{EntryView, INCOMPLETE_HISTORY_STMT, OpType};
use pando_oplog::session::lsid_doc;
use pando_routing::{KeyRange, ShardKey};
use pando_session::transaction::DurableState;
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

/// A range of a collection.
pub(crate) struct MovingRange {
    pub(crate) uuid: Uuid,
    pub(crate) key: ShardKey,
    pub(crate) keys: KeyRange,
}

/// What moves.
pub(crate) enum Moving {
    Range(MovingRange),
    /// All databases of one, or of several. Transactions are told, too: a commit that is sent again has to be answered.
    Tenants(TenantScope<'static>),
}

/// Of what moves, what is still to be told.
pub(crate) struct MovingHistory {
    what: Moving,
    left: VecDeque<Chain>,
    /// Sessions whose newest number is of a transaction that has committed: the number, and its last entry.
    committed: VecDeque<(SessionId, i64, OpTime)>,
    /// No later entry of the log is told here.
    until: Timestamp,
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
    pub(crate) async fn begin(sessions: &LogicalSessions, what: Moving) -> Result<MovingHistory> {
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
        let committed = match what {
            Moving::Range(_) => VecDeque::new(),
            Moving::Tenants(_) => known.committed().collect(),
        };
        let (until, ahead, last) = (Timestamp::MAX, None, History::default());
        Ok(MovingHistory { what, left, committed, until, ahead, read_upto, last, told: 0 })
    }
    /// What was begun before that time is told up to it.
    pub(crate) fn end_at(&mut self, until: Timestamp) {
        self.until = until;
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
        let from = self.read_upto;
        let mut log = sessions.storage.log().read(Bound::Excluded(from), false);
        for _ in 0..limits::MIGRATION_HISTORY_ENTRIES_LOOKED_AT {
            let entry = if let Some(chain) = self.left.pop_front() {
                self.next_of(sessions, chain)?
            } else if let Some(transaction) = self.committed.pop_front() {
                self.end_of(sessions, transaction)?
            } else if let Some((ts, entry)) = log.next()?.filter(|(ts, _)| *ts <= self.until) {
                self.read_upto = ts;
                self.of_what_moves(sessions, RawDoc::trusted(&entry))?
            } else {
                told.more = false;
                break;
            };
            let Some(entry) = entry else { continue };
            bytes += entry.byte_len();
            if bytes > limits::MIGRATION_REPLY_BYTES_MAX && !told.entries.is_empty() {
                self.ahead = Some(entry);
                break;
            }
            told.entries.push(entry);
        }
        // Looked at behind the reading: otherwise nobody would know what was lost.
        if matches!(self.what, Moving::Tenants(_)) && sessions.storage.log().first() > from {
            let text = "the log has lost what sessions have done since the tenant was looked at";
            return Err(Error::new(ErrorCode::CappedPositionLost, text));
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
        self.of_what_moves(sessions, &entry)
    }
    /// The end of a transaction, if it wrote there; where its entry is in the log no more nobody can say that it did not.
    fn end_of(
        &self,
        sessions: &LogicalSessions,
        (session, number, at): (SessionId, i64, OpTime),
    ) -> Result<Option<DocBuf>> {
        match (sessions.entry_at(at)?, &self.what) {
            (Some(entry), _) => self.of_what_moves(sessions, &entry),
            (None, Moving::Tenants(whose)) => {
                let somewhere = somewhere(whose);
                Ok(Some(committed(&session, number, &somewhere, at, i64::from(at.ts.secs()) * 1000)))
            }
            (None, Moving::Range(_)) => Ok(None),
        }
    }
    /// The entry as it is told, if a session has done something with it in what moves.
    fn of_what_moves(&self, sessions: &LogicalSessions, entry: &RawDoc) -> Result<Option<DocBuf>> {
        let whole = EntryView::parse(entry)?;
        let whose = match &self.what {
            Moving::Range(range) => {
                return statement(&whole, |e| e.ui == Some(range.uuid) && range.may_hold(e));
            }
            Moving::Tenants(whose) => whose,
        };
        if let Some((session, number, DurableState::Committed)) = transaction_of(&whole) {
            let wrote = wrote_in(sessions, &whole, whose)?;
            return Ok(wrote.map(|ns| committed(&session, number, &ns, whole.op_time(), whole.wall)));
        }
        statement(&whole, |e| whose.owns_ns(e.ns))
    }
}

/// What another set notes of an entry that it is given as it is in the log, before it carries it out: what a session has done with it.
pub(crate) fn history_of(entry: &RawDoc) -> Result<Option<DocBuf>> {
    let whole = EntryView::parse(entry)?;
    match transaction_of(&whole) {
        Some((session, number, DurableState::Committed)) => {
            let first = whole.inner().and_then(|mut all| all.next()).transpose()?;
            let ns = first.map_or(whole.ns, |e| e.ns);
            Ok(Some(committed(&session, number, ns, whole.op_time(), whole.wall)))
        }
        _ => statement(&whole, |_| true),
    }
}

/// The entry of a statement as it is told, if `counts` says so.
fn statement(whole: &EntryView<'_>, counts: impl Fn(&EntryView<'_>) -> bool) -> Result<Option<DocBuf>> {
    let Some((session, number, stmts)) = statements_of(whole) else { return Ok(None) };
    if whole.is_moved_history() && stmts.contains(&INCOMPLETE_HISTORY_STMT) {
        return Ok(Some(unknown(&session, number)));
    }
    let e = whole.moved_statement().unwrap_or(*whole);
    let is_told = done_of(&e).is_some() && counts(&e);
    Ok(is_told.then(|| told(whole, &e, &session, number)))
}

/// Where somebody has written, for all that is known.
fn somewhere(whose: &TenantScope<'_>) -> String {
    match whose {
        TenantScope::One(tenant) => format!("{tenant}_.$cmd"),
        TenantScope::Several(_) => "admin.$cmd".to_owned(),
    }
}
/// Where a transaction that has ended with this entry wrote first in a tenant's databases.
fn wrote_in(
    sessions: &LogicalSessions,
    last: &EntryView<'_>,
    whose: &TenantScope<'_>,
) -> Result<Option<String>> {
    let found = |e: &EntryView<'_>| -> Result<Option<String>> {
        // One that was committed elsewhere says so itself.
        if whose.owns_ns(e.ns) {
            return Ok(Some(e.ns.to_owned()));
        }
        for op in e.inner().into_iter().flatten() {
            let op = op?;
            if whose.owns_ns(op.ns) {
                return Ok(Some(op.ns.to_owned()));
            }
        }
        Ok(None)
    };
    if let Some(ns) = found(last)? {
        return Ok(Some(ns));
    }
    let mut earlier = TransactionHistory::before(sessions.storage.log(), last.doc);
    loop {
        match earlier.next() {
            Ok(Some(entry)) => {
                if let Some(ns) = found(&EntryView::parse(RawDoc::trusted(&entry))?)? {
                    return Ok(Some(ns));
                }
            }
            Ok(None) => return Ok(None),
            // The log has lost it: what it wrote nobody can say any more.
            Err(_) => return Ok(Some(somewhere(whose))),
        }
    }
}

impl MovingRange {
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

/// A transaction that has committed, as it is told: the operations are told elsewhere, or have been copied.
fn committed(session: &SessionId, number: i64, ns: &str, at: OpTime, wall: Millis) -> DocBuf {
    let mut b = DocBuilder::new();
    b.raw_doc("lsid", &lsid_doc(session)).i64("txnNumber", number);
    b.str("op", OpType::Command.as_str()).str("ns", ns).doc("o", |o| _ = o.i32("commitTransaction", 1));
    b.timestamp("ts", at.ts).i64("t", at.t).date("wall", wall);
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
