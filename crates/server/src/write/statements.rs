//! Carrying out one update or delete statement.
//!
//! A statement for one document finds it, changes it and commits in one unit, which runs again after a write
//! conflict. A statement for many reads its candidates from one snapshot, so that it never meets its own
//! writes, and changes them in small units; each candidate is looked at again in its unit's own snapshot, because
//! others may have changed it since.

use super::Writes;
use super::find_one::{Found, Lookup, Target, Told};
use super::writes::Retry;
use crate::object_id::new_object_id;
use crate::read::Reads;
use pando_access::Series;
use pando_access::{Collection, Missing, UpdateForm, WriteAcquisition, WriteOp, WriteUnit};
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, limits};
use pando_bson::{Bson, DocBuf, RawDoc, Value};
use pando_command::OpCtx;
use pando_query::QueryCtx;
use pando_query::ctx::TextIndex;
use pando_query::facts::MetaField;
use pando_query::matcher::{Matcher, Place};
use pando_query::plan::{Hint, check_one_order};
use pando_query::source::{Owned, RecordId};
use pando_query::update::{LogForm, UpdatePlan};
use pando_request::{DeleteStatement, UpdateStatement};
use pando_session::retryable::{Done, Kind};
use std::sync::Arc;

/// Mistakes in a filter are mistakes also where there is no collection.
pub(crate) fn check_filter(ns: &Namespace, filter: &RawDoc, hint: Option<&Hint>, q: &QueryCtx) -> Result<()> {
    let q = QueryCtx { text_index: TextIndex::NoCollection(ns.as_str().into()), ..q.clone() };
    check_one_order(&Matcher::parse(filter, &q)?, hint, None)
}

/// findAndModify: failures of the plan itself get MongoDB's prefix; what its parser or planner refuses does not.
pub(crate) fn in_plan(e: Error) -> Error {
    match e.code {
        ErrorCode::FailedToParse | ErrorCode::CommandNotSupportedOnView => e,
        _ if e.code.ends_command() || e.message.starts_with("error processing query") => e,
        _ if e.message.starts_with("geoNear expression not allowed") => e,
        _ => e.context("Plan executor error during findAndModify"),
    }
}

/// A statement for many that was cut off has done part of what it says. Whoever is told that the tenant is elsewhere would do that once more
/// there.
fn cut_off(e: Error, done: bool) -> Error {
    match done && e.code.is_of_tenant() {
        true => Error::new(
            ErrorCode::Interrupted,
            format!(
                "a write of many documents was cut off, and part of it is done :: caused by :: {}",
                e.message
            ),
        ),
        false => e,
    }
}

/// What an update statement did.
#[derive(Debug, Default)]
pub(crate) struct Updated {
    pub(crate) matched: u64,
    pub(crate) modified: u64,
    pub(crate) upserted: Option<Bson>,
}

/// A parsed update against one collection.
struct Job<'a> {
    ctx: &'a OpCtx,
    coll: &'a WriteAcquisition,
    lookup: Lookup<'a>,
    plan: UpdatePlan,
}

/// The evaluation context of an update: that of its command, with its constants.
pub(crate) fn update_ctx(
    reads: &Reads,
    ctx: &OpCtx,
    coll: Option<&Collection>,
    s: &UpdateStatement<'_>,
) -> Result<QueryCtx> {
    if s.collation.is_some() && !matches!(s.update, Value::Null) {
        // Constants are evaluated before the collation of an update is looked at; a removal has the two in the other order.
        reads.query_ctx(ctx, coll, None, s.let_vars)?;
    }
    let q = reads.query_ctx(ctx, coll, s.collation, s.let_vars)?;
    if let Some(filters) = s.array_filters {
        UpdatePlan::check_array_filters(filters, &q)?;
    }
    match s.constants {
        Some(constants) if matches!(s.update, Value::Array(_)) => q.with_constants(constants),
        _ => Ok(q),
    }
}

impl Writes {
    /// Updates documents, or sources of a time series.
    pub(crate) async fn update(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        series: Option<&Series>,
        s: &UpdateStatement<'_>,
        retry: &mut Retry,
    ) -> Result<Updated> {
        match series {
            Some(series) => self.update_measurements(ctx, series, s, retry).await,
            None => self.update_statement(ctx, ns, s, retry).await,
        }
    }

    /// Deletes documents, or the measurements of some sources of a time series. Returns how many.
    pub(crate) async fn delete(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        series: Option<&Series>,
        s: &DeleteStatement<'_>,
        retry: &mut Retry,
    ) -> Result<u64> {
        match series {
            Some(series) => self.delete_measurements(ctx, series, s, retry).await,
            None => self.delete_statement(ctx, ns, s, retry).await,
        }
    }

    pub(crate) async fn update_statement(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        s: &UpdateStatement<'_>,
        retry: &mut Retry,
    ) -> Result<Updated> {
        if s.multi && retry.is_retryable() {
            return Err(Error::new(
                ErrorCode::InvalidOptions,
                "Cannot use (or request) retryable writes with multi=true",
            ));
        }
        let missing = if s.upsert { Missing::Create } else { Missing::Nothing };
        let Some(coll) = self.reads.access.write(ctx, ns, missing).await? else {
            // Mistakes are mistakes also where there is nothing to update.
            let q = update_ctx(&self.reads, ctx, None, s)?;
            s.plan(&q)?;
            check_filter(ns, s.filter, s.hint.as_ref(), &q)?;
            return Ok(Updated::default());
        };
        let q = update_ctx(&self.reads, ctx, Some(coll.collection()), s)?;
        let plan = s.plan(&q)?;
        let lookup = Lookup::new(s.place(), s.filter, s.hint.clone(), None, q, coll.collection())?;
        let lookup = lookup.saying_collation();
        let job = Job { ctx, coll: &coll, lookup, plan };
        if s.multi {
            return self.update_many(&job, s, retry).await;
        }
        self.update_one(&job, s, retry).await.map(|(done, _)| done)
    }

    /// findAndModify: one document, chosen by `sort`.
    pub(crate) async fn find_and_update(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        s: &UpdateStatement<'_>,
        sort: Option<&RawDoc>,
        shown: &[MetaField],
        retry: &mut Retry,
    ) -> Result<(Updated, Images)> {
        let missing = if s.upsert { Missing::Create } else { Missing::Nothing };
        let Some(coll) = self.reads.access.write(ctx, ns, missing).await? else {
            let q = update_ctx(&self.reads, ctx, None, s)?;
            s.plan(&q)?;
            check_filter(ns, s.filter, s.hint.as_ref(), &q)?;
            return Ok(Default::default());
        };
        let q = update_ctx(&self.reads, ctx, Some(coll.collection()), s)?;
        let plan = s.plan(&q)?;
        let lookup = Lookup::new(s.place(), s.filter, s.hint.clone(), sort, q, coll.collection())?;
        let lookup = lookup.saying_collation().tell(shown)?;
        let job = Job { ctx, coll: &coll, lookup, plan };
        self.update_one(&job, s, retry).await.map_err(in_plan)
    }

    /// Updates the first match, or inserts. Returns the document before and after too, for findAndModify.
    async fn update_one(
        &self,
        job: &Job<'_>,
        s: &UpdateStatement<'_>,
        retry: &mut Retry,
    ) -> Result<(Updated, Images)> {
        let stmt = [retry.stmt_id(s.index)];
        let stmt_ids: &[i32] = if retry.is_retryable() { &stmt } else { &[] };
        let mut races = 0;
        loop {
            let target = job.lookup.first(&self.reads, job.ctx, job.coll).await?;
            let op = retry.op(s.bypass_validation);
            let tried = match &target {
                None => None,
                Some(target) => {
                    let (tried, last) = self
                        .reads
                        .access
                        .in_unit(job.ctx, job.coll, |unit| {
                            let position = job.plan.needs_position();
                            let Some(found) = job.lookup.in_unit(target, job.coll, unit, position)? else {
                                return Ok(None);
                            };
                            let new = job.apply(unit, &op, &found, (stmt_ids, false))?;
                            job.ctx.before_commit(new.is_some() && op.session.is_some())?;
                            Ok(Some((new, found)))
                        })
                        .await?;
                    tried.map(|(new, found)| (new, found, last))
                }
            };
            if let Some((new, found, last)) = tried {
                let modified = u64::from(new.is_some());
                if modified == 1 && !last.is_null() {
                    job.ctx.set_last_op(last);
                    let image = retry.kept_image();
                    retry.note(s.index, Done { kind: Kind::Update, inserted_id: None, image, op_time: last });
                }
                let images = Images { old: Some(found.doc), new, told: found.told };
                return Ok((Updated { matched: 1, modified, upserted: None }, images));
            }
            if let Some(Target::Record(..)) = target {
                // It changed between finding and writing: look again.
                job.ctx.yield_now().await?;
                continue;
            }
            if !s.upsert {
                return Ok((Updated::default(), Images::default()));
            }
            match self.insert_upsert(job, s, retry, stmt_ids).await {
                Ok((id, doc)) => {
                    let images = Images { old: None, new: Some(doc), told: None };
                    return Ok((Updated { upserted: Some(id), ..Updated::default() }, images));
                }
                // Someone else inserted what we were about to: then it can be updated.
                Err(e)
                    if e.code == ErrorCode::DuplicateKey
                        && !job.ctx.in_txn()
                        && races < limits::UPSERT_RACES_MAX
                        && job.lookup.may_have_lost_a_race(&e) =>
                {
                    races += 1;
                    job.ctx.yield_now().await?;
                }
                Err(e) => return Err(e),
            }
        }
    }

    async fn insert_upsert(
        &self,
        job: &Job<'_>,
        s: &UpdateStatement<'_>,
        retry: &mut Retry,
        stmt_ids: &[i32],
    ) -> Result<(Bson, DocBuf)> {
        let new_id = || new_object_id(job.ctx.env());
        let doc = match s.supplied() {
            Some(new) => job.plan.upsert_supplied(s.filter, new, new_id)?,
            None => job.plan.upsert(s.filter, new_id)?,
        };
        // As for an insert: a condition for equality may hold what no _id can be.
        doc.elem("_id").map_or(Ok(()), pando_access::check_id)?;
        let op = retry.op(s.bypass_validation);
        job.ctx.before_commit(op.session.is_some())?;
        // A router sent it by what the query names; the update may have made another key of it.
        check_stays_here(job.ctx, job.coll, &doc, false)?;
        let last = self.reads.access.insert_final(job.ctx, &op, job.coll, &doc, stmt_ids).await?;
        let id = doc.get("_id").map_or(Bson::Null, Bson::from);
        if last.is_null() {
            return Ok((id, doc));
        }
        job.ctx.set_last_op(last);
        let done = Done { kind: Kind::Insert, inserted_id: Some(id.clone()), image: None, op_time: last };
        retry.note(s.index, done);
        Ok((id, doc))
    }

    async fn update_many(
        &self,
        job: &Job<'_>,
        s: &UpdateStatement<'_>,
        retry: &mut Retry,
    ) -> Result<Updated> {
        let op = retry.op(s.bypass_validation);
        let mut total = Updated::default();
        let mut candidates = job.lookup.all(&self.reads, job.ctx, job.coll).await?;
        loop {
            let batch = candidates.next_batch(job.ctx, job.coll, limits::MULTI_WRITE_UNIT_DOCS).await?;
            if batch.is_empty() {
                candidates.note(&self.reads, job.ctx, job.coll);
                break;
            }
            let (unit, last) = self
                .reads
                .access
                .in_unit(job.ctx, job.coll, |unit| job.update_batch(unit, &op, &batch))
                .await
                .map_err(|e| cut_off(e, total.modified > 0))?;
            total.matched += unit.matched;
            total.modified += unit.modified;
            if !last.is_null() {
                job.ctx.set_last_op(last);
            }
            if let Some(e) = unit.failed {
                return Err(e);
            }
            job.ctx.yield_now().await?;
            self.admission.before_write(job.ctx).await?;
        }
        if total.matched == 0 && s.upsert {
            let (id, _) = self.insert_upsert(job, s, retry, &[]).await?;
            total.upserted = Some(id);
        }
        Ok(total)
    }

    pub(crate) async fn delete_statement(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        s: &DeleteStatement<'_>,
        retry: &mut Retry,
    ) -> Result<u64> {
        if s.multi && retry.is_retryable() {
            return Err(Error::new(
                ErrorCode::InvalidOptions,
                "Cannot use (or request) retryable writes with limit=0",
            ));
        }
        let Some(coll) = self.reads.access.write(ctx, ns, Missing::Nothing).await? else {
            let q = self.reads.query_ctx(ctx, None, s.collation, s.let_vars)?;
            check_filter(ns, s.filter, s.hint.as_ref(), &q)?;
            return Ok(0);
        };
        let q = self.reads.query_ctx(ctx, Some(coll.collection()), s.collation, s.let_vars)?;
        let lookup = Lookup::new(Place::Query, s.filter, s.hint.clone(), None, q, coll.collection())?;
        if s.multi {
            return self.delete_many(ctx, &coll, &lookup).await;
        }
        Ok(u64::from(self.delete_one(ctx, &coll, &lookup, s.index, retry).await?.is_some()))
    }

    /// Deletes the first match and returns it.
    pub(crate) async fn delete_one(
        &self,
        ctx: &OpCtx,
        coll: &WriteAcquisition,
        lookup: &Lookup<'_>,
        index: usize,
        retry: &mut Retry,
    ) -> Result<Option<(Found, OpTime)>> {
        let stmt = [retry.stmt_id(index)];
        let stmt_ids: &[i32] = if retry.is_retryable() { &stmt } else { &[] };
        let deleted = loop {
            let Some(target) = lookup.first(&self.reads, ctx, coll).await? else { break None };
            let op = retry.op(false);
            let (found, last) = self
                .reads
                .access
                .in_unit(ctx, coll, |unit| {
                    let Some(found) = lookup.in_unit(&target, coll, unit, false)? else { return Ok(None) };
                    unit.delete(&op, coll, &found.rid, RawDoc::trusted(&found.doc), stmt_ids)?;
                    ctx.before_commit(op.session.is_some())?;
                    Ok(Some(found))
                })
                .await?;
            let deleted = found.map(|found| (found, last));
            if deleted.is_some() || matches!(target, Target::ById) {
                break deleted;
            }
            ctx.yield_now().await?;
        };
        if let Some((_, last)) = deleted.as_ref().filter(|(_, last)| !last.is_null()) {
            ctx.set_last_op(*last);
            let image = retry.kept_image();
            retry.note(index, Done { kind: Kind::Delete, inserted_id: None, image, op_time: *last });
        }
        Ok(deleted)
    }

    async fn delete_many(&self, ctx: &OpCtx, coll: &WriteAcquisition, lookup: &Lookup<'_>) -> Result<u64> {
        let mut candidates = lookup.all(&self.reads, ctx, coll).await?;
        let mut total = 0;
        loop {
            let batch = candidates.next_batch(ctx, coll, limits::MULTI_WRITE_UNIT_DOCS).await?;
            if batch.is_empty() {
                candidates.note(&self.reads, ctx, coll);
                return Ok(total);
            }
            let (n, last) = self
                .reads
                .access
                .in_unit(ctx, coll, |unit| {
                    let mut n = 0;
                    for rid in &batch {
                        let Some(found) = lookup.record_in_unit(rid, coll, unit, false)? else { continue };
                        unit.delete(&Default::default(), coll, rid, RawDoc::trusted(&found.doc), &[])?;
                        n += 1;
                    }
                    Ok(n)
                })
                .await
                .map_err(|e| cut_off(e, total > 0))?;
            total += n;
            if !last.is_null() {
                ctx.set_last_op(last);
            }
            ctx.yield_now().await?;
            self.admission.before_write(ctx).await?;
        }
    }
}

/// The documents before and after, as findAndModify returns them.
#[derive(Default)]
pub(crate) struct Images {
    pub(crate) old: Option<bytes::Bytes>,
    pub(crate) new: Option<DocBuf>,
    /// What was known of the old one.
    pub(crate) told: Option<Arc<Told>>,
}

/// What one unit of a multi-document update did.
struct BatchDone {
    matched: u64,
    modified: u64,
    /// Why the document after those could not be updated. Those before it stay updated.
    failed: Option<Error>,
}

impl Job<'_> {
    fn update_batch(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, batch: &[RecordId]) -> Result<BatchDone> {
        let mut done = BatchDone { matched: 0, modified: 0, failed: None };
        for rid in batch {
            let mark = unit.mark();
            match self.update_record(unit, op, rid) {
                Ok(None) => {}
                Ok(Some(changed)) => {
                    done.matched += 1;
                    done.modified += u64::from(changed);
                }
                Err(e) if e.code == ErrorCode::WriteConflict => return Err(e),
                Err(e) => {
                    unit.back_to(mark);
                    done.failed = Some(e);
                    break;
                }
            }
        }
        Ok(done)
    }

    /// Whether the update changed the record; `None` when it is gone or does not match any more.
    fn update_record(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, rid: &RecordId) -> Result<Option<bool>> {
        let position = self.plan.needs_position();
        let Some(found) = self.lookup.record_in_unit(rid, self.coll, unit, position)? else {
            return Ok(None);
        };
        Ok(Some(self.apply(unit, op, &found, (&[], true))?.is_some()))
    }

    /// Applies the update inside `unit`; `None` when it changes nothing.
    fn apply(
        &self,
        unit: &mut WriteUnit,
        op: &WriteOp<'_>,
        found: &Found,
        (stmt_ids, multi): (&[i32], bool),
    ) -> Result<Option<DocBuf>> {
        let old = RawDoc::trusted(&found.doc);
        let outcome = self.plan.apply(old, found.details)?;
        if outcome.noop {
            return Ok(None);
        }
        let form = match &outcome.log {
            LogForm::Replacement => UpdateForm::Replacement,
            LogForm::Delta(diff) => UpdateForm::Diff(diff),
        };
        check_stays_here(self.ctx, self.coll, &outcome.new_doc, multi)?;
        unit.update(op, self.coll, &found.rid, old, &outcome.new_doc, form, stmt_ids)?;
        Ok(Some(outcome.new_doc))
    }
}

/// A document whose shard key changes may belong to another shard from then on. To move it there takes a transaction of both, so a command
/// without a transaction number, or for several documents, may not ask for it.
fn check_stays_here(ctx: &OpCtx, coll: &WriteAcquisition, new: &RawDoc, multi: bool) -> Result<()> {
    let Some(key) = coll.shard_key() else { return Ok(()) };
    if let Some(field) = key.array_in(new) {
        let text = format!(
            "After applying the update to the document, the field '{field}' was found to be an array or array descendant."
        );
        return Err(Error::new(ErrorCode::NotSingleValueField, text));
    }
    if coll.owned().is_none_or(|owned| owned.owns(new)) {
        return Ok(());
    }
    let (code, text) = if multi {
        (
            ErrorCode::InvalidOptions,
            "Multi-update operations are not allowed when updating the shard key field.",
        )
    } else if ctx.txn_number.is_none() {
        let text =
            "Must run update to shard key field in a multi-statement transaction or with retryWrites: true.";
        (ErrorCode::IllegalOperation, text)
    } else {
        let text = "The document's shard key belongs to another shard after this update; to move it there is not supported by \
                    this server";
        (ErrorCode::WouldChangeOwningShard, text)
    };
    Err(Error::new(code, text))
}
