//! What insert, update and delete have in common: where they may write, retried statements, the shape of the
//! reply.

use super::Writes;
use crate::replication::Replication;
use pando_access::{SessionRef, WriteOp};
use pando_base::{Error, ErrorCode, OpTime, Result, Timestamp, limits};
use pando_bson::{ArrayBuilder, Bson, DocBuf, DocBuilder, RawDoc};
use pando_command::args::safe_i64;
use pando_command::{OpCtx, Reply};
use pando_oplog::entry::ImageKind;
use pando_repl::state::election_id;
use pando_session::retryable::{Begin, Image, Loan};

/// A write command's retryable-write side: the session's record and the statement numbers.
pub(crate) struct Retry {
    loan: Option<Loan>,
    lsid: DocBuf,
    txn_number: i64,
    ids: StmtIds,
    /// A findAndModify: what its retry will return.
    pub(crate) image: Option<ImageKind>,
    pub(crate) retried: Vec<i32>,
}

enum StmtIds {
    /// From the first number on.
    From(i32),
    Listed(Vec<i32>),
}

impl Retry {
    /// Takes the session's record if the command is a retryable write.
    pub(crate) async fn begin(writes: &Writes, ctx: &OpCtx, body: &RawDoc) -> Result<Retry> {
        let mut retry = Retry {
            loan: None,
            lsid: DocBuf::new(),
            txn_number: 0,
            ids: StmtIds::From(0),
            image: None,
            retried: Vec::new(),
        };
        let (Some(lsid), Some(txn_number), false) = (&ctx.lsid, ctx.txn_number, ctx.in_txn()) else {
            return Ok(retry);
        };
        retry.ids = statement_ids(body)?;
        retry.txn_number = txn_number;
        retry.lsid = crate::transaction::lsid_doc(lsid);
        loop {
            let decided = writes.reads.storage.prepare_changes();
            let seen = decided.version();
            let begun = match writes.retryable.begin(lsid, txn_number, ctx.started) {
                // What is prepared on the session is decided first.
                Err(e) if e.code == ErrorCode::PreparedTransactionInProgress => {
                    ctx.interruptible(decided.changed(seen)).await?;
                    continue;
                }
                begun => begun?,
            };
            match begun {
                Begin::Yours(loan) => {
                    // What a retry returns is read from the log, where units that began before may still be open.
                    let last = loan.last_op().ts;
                    if !last.is_zero() && last > writes.reads.storage.log().visible() {
                        ctx.interruptible(writes.reads.storage.log().wait_applied(last)).await?;
                    }
                    retry.loan = Some(loan);
                    return Ok(retry);
                }
                Begin::Wait(changed) => ctx.interruptible(changed).await?,
            }
        }
    }
    /// What a statement that is carried out now leaves for its retry.
    pub(crate) fn kept_image(&self) -> Option<Image> {
        self.image.map(Image::in_log)
    }
    pub(crate) fn is_retryable(&self) -> bool {
        self.loan.is_some()
    }
    pub(crate) fn stmt_id(&self, index: usize) -> i32 {
        match &self.ids {
            StmtIds::From(first) => first.saturating_add(index as i32),
            StmtIds::Listed(all) => all.get(index).copied().unwrap_or(-1),
        }
    }
    /// The outcome of statement `index` if an earlier try carried it out.
    pub(crate) fn done(&mut self, index: usize) -> Result<Option<pando_session::retryable::Done>> {
        let stmt = self.stmt_id(index);
        let Some(loan) = &self.loan else { return Ok(None) };
        let Some(done) = loan.done(stmt)?.cloned() else { return Ok(None) };
        self.retried.push(stmt);
        Ok(Some(done))
    }
    pub(crate) fn note(&mut self, index: usize, done: pando_session::retryable::Done) {
        let stmt = self.stmt_id(index);
        if let Some(loan) = &mut self.loan {
            loan.note(stmt, done);
        }
    }
    /// For the write path: the session part of log entries.
    pub(crate) fn session(&self) -> Option<SessionRef<'_>> {
        let loan = self.loan.as_ref()?;
        Some(SessionRef { lsid: &self.lsid, txn_number: self.txn_number, prev: loan.last_op() })
    }
    pub(crate) fn op(&self, bypass_validation: bool) -> WriteOp<'_> {
        WriteOp { session: self.session(), bypass_validation, image: self.image, ..WriteOp::default() }
    }
}

fn statement_ids(body: &RawDoc) -> Result<StmtIds> {
    if let Some(list) = body.get("stmtIds").and_then(|v| v.as_array()) {
        let ids = list.iter().filter_map(|e| safe_i64(&e.value())).map(|n| n as i32).collect();
        return Ok(StmtIds::Listed(ids));
    }
    let first = body.get("stmtId").and_then(|v| safe_i64(&v)).unwrap_or(0);
    Ok(StmtIds::From(first as i32))
}

/// The counts and errors of a write command, collected statement by statement.
#[derive(Default)]
pub(crate) struct WriteTotals {
    pub(crate) n: i64,
    /// Only updates report it.
    pub(crate) n_modified: Option<i64>,
    pub(crate) upserted: Vec<(usize, Bson)>,
    pub(crate) errors: Vec<(usize, Error)>,
}

impl WriteTotals {
    /// The reply: `n, electionId, opTime, retriedStmtIds, upserted, writeErrors, nModified`.
    pub(crate) fn reply(&self, writes: &Writes, ctx: &OpCtx, retried: &[i32]) -> Reply {
        let mut r = Reply::with_capacity(256);
        let b = &mut r.body;
        if ctx.write_concern.as_ref().is_some_and(pando_command::WriteConcern::is_unacknowledged) {
            b.i32("n", 0);
            if self.n_modified.is_some() {
                b.i32("nModified", 0);
            }
            return r;
        }
        b.i32("n", self.n as i32);
        let replication = &writes.reads.replication;
        // A write that changed nothing stands where the log stands (R-WC-2).
        if ctx.last_op().is_none() && replication.member.is_replicated() {
            ctx.client.set_last_op(replication.last_applied());
        }
        if ctx.in_txn() {
            append_position(replication, OpTime::NULL, b);
            b.timestamp("opTime", Timestamp::ZERO);
        } else {
            append_position(replication, ctx.client.last_op(), b);
        }
        if !retried.is_empty() {
            writes.transactions.retried(retried.len());
            b.array("retriedStmtIds", |a| {
                for id in retried {
                    a.bson(&Bson::Int32(*id));
                }
            });
        }
        if !self.upserted.is_empty() {
            b.array("upserted", |a| {
                for (i, id) in &self.upserted {
                    a.doc(|d| {
                        d.i32("index", *i as i32);
                        d.bson("_id", id);
                    });
                }
            });
        }
        if !self.errors.is_empty() {
            ctx.client.instance.metrics.asserts.user.add(self.errors.len() as u64);
            b.array("writeErrors", |a| append_errors(a, &self.errors));
        }
        if let Some(n) = self.n_modified {
            b.i32("nModified", n as i32);
        }
        r
    }
}

/// `electionId` and `opTime` of a member's write reply.
pub(crate) fn append_position(replication: &Replication, last: OpTime, b: &mut DocBuilder) {
    if !replication.member.is_replicated() {
        return;
    }
    b.object_id("electionId", election_id(replication.member.term()));
    if !last.is_null() {
        b.doc("opTime", |d| {
            d.timestamp("ts", last.ts);
            d.i64("t", last.t);
        });
    }
}

fn append_errors(a: &mut ArrayBuilder, errors: &[(usize, Error)]) {
    let mut text_bytes = 0;
    for (n, (i, e)) in errors.iter().enumerate() {
        a.doc(|d| {
            d.i32("index", *i as i32);
            d.i32("code", e.code.0);
            // Past the budget only code and index are told: the reply must stay a document. One error fits, with
            // any key there can be.
            text_bytes += e.message.len() + e.extra.len();
            let within = n == 0 || text_bytes <= limits::WRITE_ERRORS_BYTES_MAX;
            d.str("errmsg", if within { &e.message } else { "" });
            if within && !e.extra.is_empty() {
                d.elems_of(RawDoc::trusted(&e.extra));
            }
        });
    }
}
