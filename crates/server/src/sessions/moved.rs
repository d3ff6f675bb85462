//! What sessions have done on another shard, for documents that are this shard's from now on (SH-MIG-8, SYS-230).
//!
//! A retry goes to whoever owns its document by then, and is not to be carried out there once more. So each statement that another
//! shard carried out leaves an entry here that changes nothing, under the session and number that it had:
//!
//! ```text
//!   {op: "n", lsid, txnNumber, stmtId, fromMigrate: true, o: {$sessionMigrateInfo: 1}, o2: <the other shard's entry>}
//! ```
//! All members learn from it what they learn from an entry of their own, and what a retried findAndModify returns lies in its `o2`.
//! Where the other shard did not know all any more, `stmtId` is -1 and a statement that is not known is refused (217).

use super::LogicalSessions;
use super::restore::{done_of, statements_of};
use pando_access::Interrupt;
use pando_base::{Error, ErrorCode, Result, SessionId, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_oplog::entry::{EntryView, INCOMPLETE_HISTORY_STMT, Identity, MOVED_HISTORY, Session};
use pando_oplog::session::lsid_doc;
use pando_session::retryable::{Begin, Loan};
use std::time::Duration;

/// One statement, or several that left one entry, as another shard tells of it.
struct Told<'a> {
    session: SessionId,
    number: i64,
    stmts: Vec<i32>,
    /// `None`: it does not know what it was.
    entry: Option<EntryView<'a>>,
}

impl<'a> Told<'a> {
    fn parse(doc: &'a RawDoc) -> Result<Told<'a>> {
        let wrong = || Error::bad_value(format!("no entry of a session's statement: {doc}"));
        let whole = EntryView::parse(doc)?;
        let (session, number, stmts) = statements_of(&whole).ok_or_else(wrong)?;
        let entry = match stmts.contains(&INCOMPLETE_HISTORY_STMT) {
            true => None,
            false => Some(whole.moved_statement().unwrap_or(whole)),
        };
        if entry.is_some_and(|e| done_of(&e).is_none()) {
            return Err(wrong());
        }
        Ok(Told { session, number, stmts, entry })
    }
}

impl LogicalSessions {
    /// Notes what another shard's entries of sessions' statements say. A session is taken once for all of its entries that follow one
    /// another: it may have carried out many thousands.
    ///
    /// # Errors
    /// 2 for what is no such entry, 262 where an operation keeps a session to itself for too long, or this node's own.
    pub(crate) async fn take_moved(&self, interrupt: &dyn Interrupt, docs: &[DocBuf]) -> Result<()> {
        let told = docs.iter().map(|doc| Told::parse(doc)).collect::<Result<Vec<_>>>()?;
        for some in told.chunk_by(|a, b| a.session == b.session && a.number == b.number) {
            let Some(mut loan) = self.borrow(interrupt, &some[0]).await? else { continue };
            for (i, told) in some.iter().enumerate() {
                self.note_moved(&mut loan, told)?;
                if i % limits::MIGRATION_ENTRIES_BETWEEN_YIELDS == 0 {
                    self.env.tasks.yield_now().await;
                }
            }
        }
        Ok(())
    }
    fn note_moved(&self, loan: &mut Loan, told: &Told<'_>) -> Result<()> {
        let news: Vec<i32> = match told.entry {
            Some(_) => told.stmts.iter().copied().filter(|stmt| !loan.knows(*stmt)).collect(),
            None if loan.is_complete() => vec![INCOMPLETE_HISTORY_STMT],
            None => Vec::new(),
        };
        if news.is_empty() {
            return Ok(());
        }
        let lsid = lsid_doc(&told.session);
        let session = Session { lsid: &lsid, txn_number: told.number, stmt_ids: &news, prev: loan.last_op() };
        let mut o = DocBuilder::new();
        o.i32(MOVED_HISTORY, 1);
        let (ns, ui) = told.entry.map_or(("", None), |e| (e.ns, e.ui));
        let o2 = told.entry.map_or(Identity::None, |e| Identity::Doc(e.doc));
        let at = self.replication.write_moved_history(session, ns, ui, &o.finish(), o2)?;
        match told.entry.and_then(|e| done_of(&e)) {
            Some(done) => {
                let done = pando_session::retryable::Done { op_time: at, ..done };
                news.iter().for_each(|stmt| loan.note(*stmt, done.clone()));
            }
            None => loan.note_incomplete(at),
        }
        Ok(())
    }
    /// The session under this number; `None` where it has gone on since.
    async fn borrow(&self, interrupt: &dyn Interrupt, told: &Told<'_>) -> Result<Option<Loan>> {
        let clock = &self.env.clock;
        let until = clock.mono() + Duration::from_millis(limits::MIGRATION_SESSION_AWAITED_MS);
        loop {
            interrupt.check()?;
            let text = match self.retryable.begin(&told.session, told.number, clock.mono()) {
                Ok(Begin::Yours(loan)) => return Ok(Some(loan)),
                Ok(Begin::Wait(returned)) => {
                    let left = until.saturating_sub(clock.mono());
                    self.env.timeout(left, returned).await;
                    "an operation uses it".to_owned()
                }
                // Whatever is retried under this number is refused for the same reason.
                Err(e)
                    if matches!(
                        e.code,
                        ErrorCode::TransactionTooOld | ErrorCode::IncompleteTransactionHistory
                    ) =>
                {
                    return Ok(None);
                }
                Err(e) => {
                    clock.sleep(Duration::from_millis(limits::MIGRATION_POLL_MS)).await;
                    e.message.to_string()
                }
            };
            if clock.mono() >= until {
                let text = format!("the session {} does not become free: {text}", lsid_doc(&told.session));
                return Err(Error::new(ErrorCode::ExceededTimeLimit, text));
            }
        }
    }
}
