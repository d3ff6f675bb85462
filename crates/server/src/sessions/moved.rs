//! What sessions have done on another shard, for documents that are this shard's from now on, or on another set, for a tenant that is this
//! set's from now on (SH-MIG-8, SYS-230).
//!
//! A retry goes to whoever owns its document by then, and is not to be carried out there once more. So each statement that another
//! shard carried out leaves an entry here that changes nothing, under the session and number that it had:
//!
//! ```text
//!   {op: "n", lsid, txnNumber, stmtId, fromMigrate: true, o: {$sessionMigrateInfo: 1}, o2: <the other shard's entry>}
//! ```
//! All members learn from it what they learn from an entry of their own, and what a retried findAndModify returns lies in its `o2`.
//! Where the other shard did not know all any more, `stmtId` is -1 and a statement that is not known is refused (217).
//!
//! A transaction of a tenant leaves the same without `stmtId`, with `o2: {op: "c", o: {commitTransaction: 1}}`: its commit is answered here
//! when it is sent again, and nothing else is taken under its number.

use super::LogicalSessions;
use super::restore::{done_of, session_of, statements_of, transaction_of};
use pando_access::Interrupt;
use pando_base::{Error, ErrorCode, OpTime, Result, SessionId, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_oplog::entry::{EntryView, INCOMPLETE_HISTORY_STMT, Identity, MOVED_HISTORY, OpType, Session};
use pando_oplog::session::lsid_doc;
use pando_session::retryable::{Begin, Loan};
use pando_session::transaction::DurableState;
use std::time::Duration;

/// One statement, or several that left one entry, as another shard tells of it.
struct Told<'a> {
    session: SessionId,
    number: i64,
    stmts: Vec<i32>,
    /// `None`: it does not know what it was.
    entry: Option<EntryView<'a>>,
    /// Instead of statements, a transaction that has committed.
    is_transaction: bool,
}

impl<'a> Told<'a> {
    fn parse(doc: &'a RawDoc) -> Result<Told<'a>> {
        let wrong = || Error::bad_value(format!("no entry of a session's statement: {doc}"));
        let whole = EntryView::parse(doc)?;
        if whole.op == OpType::Command {
            let committed = transaction_of(&whole).is_some_and(|(.., how)| how == DurableState::Committed);
            let (session, number) = session_of(&whole).filter(|_| committed).ok_or_else(wrong)?;
            return Ok(Told { session, number, stmts: Vec::new(), entry: Some(whole), is_transaction: true });
        }
        let (session, number, stmts) = statements_of(&whole).ok_or_else(wrong)?;
        let entry = match stmts.contains(&INCOMPLETE_HISTORY_STMT) {
            true => None,
            false => Some(whole.moved_statement().unwrap_or(whole)),
        };
        if entry.is_some_and(|e| done_of(&e).is_none()) {
            return Err(wrong());
        }
        Ok(Told { session, number, stmts, entry, is_transaction: false })
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
            let (session, number) = (&some[0].session, some[0].number);
            let begin = || match some[0].is_transaction {
                true => Ok(self.retryable.check_out(session, self.env.clock.mono())),
                false => self.retryable.begin(session, number, self.env.clock.mono()),
            };
            let Some(mut loan) = self.borrow(interrupt, session, begin).await? else { continue };
            for (i, told) in some.iter().enumerate() {
                match told.is_transaction {
                    true => self.note_committed(&mut loan, told)?,
                    false => self.note_moved(&mut loan, told)?,
                }
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
    /// Nothing where the number is known here already, or a later one.
    fn note_committed(&self, loan: &mut Loan, told: &Told<'_>) -> Result<()> {
        let lsid = lsid_doc(&told.session);
        let session = Session { lsid: &lsid, txn_number: told.number, stmt_ids: &[], prev: OpTime::NULL };
        let mut o = DocBuilder::new();
        o.i32(MOVED_HISTORY, 1);
        let o = o.finish();
        let (ns, o2) = told.entry.map_or(("", Identity::None), |e| (e.ns, Identity::Doc(e.doc)));
        let write = || self.replication.write_moved_history(session, ns, None, &o, o2);
        loan.learn_committed(told.number, write).map(drop)
    }
    /// The session as `begin` gives it; `None` where it has gone on since.
    async fn borrow(
        &self,
        interrupt: &dyn Interrupt,
        session: &SessionId,
        begin: impl Fn() -> Result<Begin> + Send + Sync,
    ) -> Result<Option<Loan>> {
        let clock = &self.env.clock;
        let until = clock.mono() + Duration::from_millis(limits::MIGRATION_SESSION_AWAITED_MS);
        loop {
            interrupt.check()?;
            let text = match begin() {
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
                let text = format!("the session {} does not become free: {text}", lsid_doc(session));
                return Err(Error::new(ErrorCode::ExceededTimeLimit, text));
            }
        }
    }
}
