//! Inserting what a command brings for one collection: as documents, or as measurements of a time series.

use super::Writes;
use super::writes::Retry;
use crate::transaction::write_failed;
use pando_access::Series;
use pando_base::{Error, Namespace, OpTime, Result, limits};
use pando_bson::RawDoc;
use pando_command::OpCtx;
use pando_session::retryable::{Done, Kind};

/// How documents are inserted.
pub(crate) struct Inserting<'a> {
    pub(crate) ordered: bool,
    pub(crate) bypass_validation: bool,
    pub(crate) series: Option<&'a Series>,
    /// Whether the collection is the one that the command means.
    pub(crate) checked: Result<()>,
}

/// What became of them.
#[derive(Default)]
pub(crate) struct Inserted {
    /// Now or by an earlier try.
    pub(crate) n: usize,
    /// By statement.
    pub(crate) errors: Vec<(usize, Error)>,
    pub(crate) last: OpTime,
}

impl Inserted {
    pub(crate) fn took(&mut self, n: usize, last: OpTime) {
        self.n += n;
        self.last = last.max(self.last);
    }
}

impl Writes {
    /// Inserts documents, the first of which is statement `first`. Fails for what ends the whole command.
    pub(crate) async fn insert(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        docs: &[&RawDoc],
        first: usize,
        how: &Inserting<'_>,
        retry: &mut Retry,
    ) -> Result<Inserted> {
        // Statements that an earlier try carried out are counted, not run.
        let mut todo: Vec<(usize, &RawDoc)> = Vec::with_capacity(docs.len());
        for (i, doc) in docs.iter().enumerate() {
            if retry.done(first + i)?.is_none() {
                todo.push((first + i, *doc));
            }
        }
        let before = docs.len() - todo.len();
        let mut out = match (&how.checked, how.series) {
            _ if todo.is_empty() => Inserted::default(),
            (Err(e), _) => self.refused(ctx, &todo, how, e)?,
            (Ok(()), Some(series)) => {
                self.insert_measurements(ctx, series, &todo, how.ordered, retry).await?
            }
            (Ok(()), None) => self.insert_pending(ctx, ns, &todo, how, retry).await?,
        };
        out.n += before;
        if !out.last.is_null() {
            ctx.set_last_op(out.last);
        }
        if let Some((_, e)) = out.errors.iter().find(|(_, e)| e.code.ends_batch_of(out.n > 0)) {
            return Err(e.clone());
        }
        if let Some((_, e)) = out.errors.first() {
            write_failed(ctx, e)?;
        }
        self.reads.instance.metrics.documents.inserted.add(out.n as u64);
        Ok(out)
    }

    async fn insert_pending(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        todo: &[(usize, &RawDoc)],
        how: &Inserting<'_>,
        retry: &mut Retry,
    ) -> Result<Inserted> {
        let coll = match self.reads.access.write_or_create(ctx, ns).await {
            Ok(coll) => coll,
            Err(e) => return self.refused(ctx, todo, how, &e),
        };
        let docs: Vec<&RawDoc> = todo.iter().map(|(_, doc)| *doc).collect();
        let op = retry.op(how.bypass_validation);
        let (fit, stopped) = before_commits(ctx, op.session.is_some(), &docs);
        let stmt_ids: Vec<i32> = match retry.is_retryable() {
            true => todo[..fit].iter().map(|(i, _)| retry.stmt_id(*i)).collect(),
            false => Vec::new(),
        };
        let done = self.reads.access.insert_many(ctx, &op, &coll, &docs[..fit], &stmt_ids, how.ordered).await;
        drop(coll);
        for (docs, op_time) in done.of_session {
            for (index, _) in &todo[docs] {
                retry.note(*index, Done { kind: Kind::Insert, inserted_id: None, image: None, op_time });
            }
        }
        if let Some(e) = stopped {
            if !done.last.is_null() {
                ctx.set_last_op(done.last);
            }
            return Err(e);
        }
        let errors = done.errors.into_iter().map(|(at, e)| (todo[at].0, e)).collect();
        Ok(Inserted { n: done.n, errors, last: done.last })
    }

    /// None of them can be inserted. What is wrong with one by itself comes first, but for measurements.
    fn refused(
        &self,
        ctx: &OpCtx,
        todo: &[(usize, &RawDoc)],
        how: &Inserting<'_>,
        e: &Error,
    ) -> Result<Inserted> {
        if e.code.ends_command() {
            return Err(e.clone());
        }
        let n = if how.ordered || ctx.in_txn() { 1 } else { todo.len() };
        let wrong = |doc: &RawDoc| match how.series {
            None => self.reads.access.fix_for_insert(doc).err(),
            Some(_) => None,
        };
        let errors =
            todo.iter().take(n).map(|(i, doc)| (*i, wrong(doc).unwrap_or_else(|| e.clone()))).collect();
        Ok(Inserted { errors, ..Inserted::default() })
    }
}

/// Asks `onPrimaryTransactionalWrite` about each group of documents that MongoDB commits together: how many documents
/// are before the group it refuses.
fn before_commits(ctx: &OpCtx, in_session: bool, docs: &[&RawDoc]) -> (usize, Option<Error>) {
    let mut at = 0;
    while in_session && at < docs.len() && ctx.instance().fail_points.on_transactional_write.is_active() {
        if let Err(e) = ctx.before_commit(in_session) {
            return (at, Some(e));
        }
        let (begin, mut bytes) = (at, 0);
        while at < docs.len()
            && at - begin < limits::INSERT_GROUP_DOCS_MAX
            && bytes < limits::INSERT_GROUP_BYTES_MAX
        {
            bytes += docs[at].byte_len();
            at += 1;
        }
    }
    (docs.len(), None)
}
