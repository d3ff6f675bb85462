//! `_tenantEntries {tenantId | all, after, skip?, waitMS?}`: what the log says of a tenant behind a time, as far as a majority has it. Nothing is
//! remembered between two questions, so any primary of the set answers the next one.
//!
//! ```text
//!   {entries: [<entry>, …], upto}             everything of the tenant from `after` to `upto`, each entry as it is in the log
//!   {entries: [<entry>], upto, partial: n}    of the transaction that comes behind `upto` the next operations; n of them are told
//!                                             by now, and `{after: upto, skip: n}` asks for the rest
//! ```
//! Of a transaction only the tenant's operations are told, as one `applyOps` at the place where it committed, however many entries it has.

use super::prelude::*;
use super::{Args, tenants_of};
use pando_access::TransactionHistory;
use pando_base::{TenantScope, Timestamp, limits};
use pando_bson::ArrayBuilder;
use pando_oplog::entry::{EntryView, OpType};
use pando_storage::OpLog;
use std::ops::Bound;
use std::time::Duration;

/// What is told.
struct Told {
    entries: Vec<DocBuf>,
    bytes: usize,
    upto: Timestamp,
    partial: Option<usize>,
}

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    tenants_of(server, &req)?;
    let args = Args::parse(&req)?;
    let (whose, after) = (args.whose(&req)?, args.after(&req)?);
    await_news(server, ctx, after, args.max_time_ms).await?;
    let log = server.storage.log();
    let looking = Looking { log, whose, until: server.replication.committed() };
    let told = looking.from(after, args.skip)?;
    // Looked at behind the reading: what has lost its front meanwhile was not read to its end.
    if log.first() > after {
        let text = format!("the log begins at {}, and entries behind {after} were asked for", log.first());
        return Err(Error::new(ErrorCode::CappedPositionLost, text));
    }
    let mut r = Reply::new();
    r.body.array("entries", |list| told.entries.iter().for_each(|entry| _ = list.raw_doc(entry)));
    r.body.timestamp("upto", told.upto);
    if let Some(partial) = told.partial {
        r.body.i64("partial", partial as i64);
    }
    Ok(r)
}

/// Until a majority has something behind that time.
async fn await_news(server: &Server, ctx: &OpCtx, after: Timestamp, ms: u64) -> Result<()> {
    let clock = &server.instance.env.clock;
    let until = clock.mono() + Duration::from_millis(ms.min(limits::TENANT_ENTRIES_WAIT_MS_MAX));
    while server.replication.committed() <= after && clock.mono() < until {
        ctx.interruptible(clock.sleep(Duration::from_millis(limits::MIGRATION_POLL_MS))).await?;
    }
    Ok(())
}

/// A walk over the log up to what a majority has.
struct Looking<'a> {
    log: &'a OpLog,
    whose: TenantScope<'a>,
    until: Timestamp,
}

impl Looking<'_> {
    fn from(&self, after: Timestamp, skip: usize) -> Result<Told> {
        let mut told = Told { entries: Vec::new(), bytes: 0, upto: after, partial: None };
        let mut log = self.log.read(Bound::Excluded(after), false);
        for looked_at in 0..limits::TENANT_ENTRIES_LOOKED_AT {
            let Some((ts, entry)) = log.next()?.filter(|(ts, _)| *ts <= self.until) else {
                told.upto = self.until.max(told.upto);
                break;
            };
            let e = EntryView::parse(RawDoc::trusted(&entry))?;
            let skip = if looked_at == 0 { skip } else { 0 };
            match ends_transaction(&e) {
                true => {
                    if !self.tell_transaction(&mut told, &e, skip)? {
                        break;
                    }
                }
                false if self.whose.owns_ns(e.ns) => {
                    told.bytes += e.doc.byte_len();
                    told.entries.push(e.doc.to_buf());
                }
                false => {}
            }
            told.upto = ts;
            if told.bytes >= limits::TENANT_ENTRIES_BYTES_MAX {
                break;
            }
        }
        Ok(told)
    }
    /// `false`: not all of it is told yet, or nothing, because others were told before and it does not fit.
    fn tell_transaction(&self, told: &mut Told, last: &EntryView<'_>, skip: usize) -> Result<bool> {
        let mut ops = Operations { left: skip, list: ArrayBuilder::new(), told: 0, bytes: 0, is_full: false };
        let room = limits::TENANT_ENTRIES_BYTES_MAX.saturating_sub(told.bytes);
        for ts in earlier_entries(self.log, last)? {
            let found = self.log.first_from(ts)?.filter(|(at, _)| *at == ts).ok_or_else(lost)?;
            self.take(&mut ops, &EntryView::parse(RawDoc::trusted(&found.1))?, room)?;
            if ops.is_full {
                break;
            }
        }
        self.take(&mut ops, last, room)?;
        if ops.is_full && !told.entries.is_empty() {
            return Ok(false);
        }
        if ops.told > 0 {
            told.bytes += ops.bytes;
            let (is_full, n) = (ops.is_full, ops.told);
            told.entries.push(as_one(last, &ops.list.finish()));
            told.partial = is_full.then_some(skip + n);
        }
        Ok(told.partial.is_none())
    }
    fn take(&self, ops: &mut Operations, entry: &EntryView<'_>, room: usize) -> Result<()> {
        for op in entry.inner().into_iter().flatten() {
            let op = op?;
            if ops.is_full || !self.whose.owns_ns(op.ns) {
                continue;
            }
            if ops.left > 0 {
                ops.left -= 1;
                continue;
            }
            if ops.told > 0 && ops.bytes + op.doc.byte_len() > room {
                ops.is_full = true;
                continue;
            }
            ops.bytes += op.doc.byte_len();
            ops.told += 1;
            ops.list.raw_doc(op.doc);
        }
        Ok(())
    }
}

/// Operations of a transaction on their way into an answer.
struct Operations {
    /// To be passed over.
    left: usize,
    list: ArrayBuilder,
    told: usize,
    bytes: usize,
    /// There are more.
    is_full: bool,
}

fn lost() -> Error {
    Error::new(ErrorCode::CappedPositionLost, "the log has lost the beginning of a transaction")
}

/// Whether an entry makes a transaction's operations take place.
fn ends_transaction(e: &EntryView<'_>) -> bool {
    let is_set = |name: &str| e.o.get(name).is_some_and(|v| v.is_truthy());
    match e.command().filter(|_| e.op == OpType::Command).map_or("", |c| c.name()) {
        "applyOps" => !is_set("partialTxn") && !is_set("prepare"),
        "commitTransaction" => true,
        _ => false,
    }
}

/// Where the entries of a transaction before its last one are, oldest first.
fn earlier_entries(log: &OpLog, last: &EntryView<'_>) -> Result<Vec<Timestamp>> {
    let mut history = TransactionHistory::before(log, last.doc);
    let mut all = Vec::new();
    while let Some(entry) = history.next().map_err(|_| lost())? {
        all.push(EntryView::parse(RawDoc::trusted(&entry))?.ts);
    }
    all.reverse();
    Ok(all)
}

fn as_one(last: &EntryView<'_>, ops: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::with_capacity(ops.byte_len() + 256);
    if let (Some(lsid), Some(number)) = (last.lsid, last.txn_number) {
        b.raw_doc("lsid", lsid).i64("txnNumber", number);
    }
    b.str("op", OpType::Command.as_str()).str("ns", "admin.$cmd");
    b.doc("o", |o| _ = o.raw_array("applyOps", ops));
    b.timestamp("ts", last.ts).i64("t", last.term).date("wall", last.wall);
    b.finish()
}
