//! `$merge`: the results change a collection, one by one.

use super::{Rows, Writing, insert_rows, while_running};
use crate::object_id::new_object_id;
use crate::write::Writes;
use crate::write::writes::Retry;
use pando_access::{Access, Collection, Named, WriteOp, is_a_view};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{DocBuf, DocBuilder, ElementType, RawDoc, Value};
use pando_command::{OpCtx, Request};
use pando_query::QueryCtx;
use pando_query::stage::{Merge, Row, WhenMatched, WhenNotMatched};
use pando_request::UpdateStatement;

/// 51183 unless an index makes the `on` fields unique.
pub(super) fn check_unique(access: &Access, into: &Namespace, m: &Merge, q: &QueryCtx) -> Result<()> {
    let Some(on) = m.on.as_ref() else { return Ok(()) };
    let coll = access.definitions().collection(into).cloned();
    // The index on `_id` is there with the collection, but for a clustered one, and has the collection's collation.
    let by_id = |c: &Collection| {
        c.options.clustered.is_none() && c.info.collation.as_deref() == q.collation.as_deref()
    };
    if *on == ["_id"] && coll.as_deref().is_none_or(by_id) {
        return Ok(());
    }
    let covers = |c: &Collection| {
        let info = &c.info.indexes;
        c.ready_indexes().iter().zip(info).any(|(i, info)| {
            i.spec.unique
                && i.spec.partial.is_none()
                && info.collation.as_deref() == q.collation.as_deref()
                && info.fields.len() == on.len()
                && info.fields.iter().all(|f| on.contains(&f.path))
        })
    };
    if coll.is_some_and(|c| covers(&c)) {
        return Ok(());
    }
    Err(Error::location(51183, "Cannot find index to verify that join fields will be unique"))
}

/// A `$merge` being carried out.
pub(super) struct MergeJob<'a> {
    pub(super) writes: &'a Writes,
    pub(super) ctx: &'a OpCtx,
    pub(super) req: &'a Request<'a>,
    pub(super) into: &'a Namespace,
    pub(super) spec: &'a Merge,
    pub(super) w: &'a Writing<'a>,
    pub(super) q: QueryCtx,
}

impl MergeJob<'_> {
    pub(super) async fn run(&self, rows: &mut Rows<'_>) -> Result<()> {
        loop {
            let batch = rows.next_batch().await?;
            if batch.is_empty() {
                return Ok(());
            }
            // A view is in the way of results only: without any there is no mistake.
            if let Some(Named::View(view)) = self.writes.reads.access.definitions().named(self.into) {
                return Err(while_running(is_a_view(view)));
            }
            let batch: Vec<Row> =
                batch.into_iter().map(|r| self.with_id(r)).collect::<Result<_>>().map_err(while_running)?;
            match self.spec.when_matched {
                WhenMatched::Fail => self.insert(&batch).await.map_err(while_running)?,
                _ => self.update(&batch).await.map_err(while_running)?,
            }
        }
    }

    fn on(&self) -> impl Iterator<Item = &str> {
        let named = self.spec.on.as_deref().unwrap_or_default();
        named.iter().map(String::as_str).chain(named.is_empty().then_some("_id"))
    }

    /// A result that is identified by `_id` and has none gets one.
    fn with_id(&self, row: Row) -> Result<Row> {
        let doc = row.doc();
        if doc.elem("_id").is_some() || !self.on().any(|f| f == "_id") {
            return Ok(row);
        }
        let mut b = DocBuilder::with_capacity(doc.byte_len() + 17);
        b.object_id("_id", new_object_id(self.ctx.env()));
        b.elems_of(doc);
        Ok(Row::from(b.finish()))
    }

    async fn insert(&self, batch: &[Row]) -> Result<()> {
        // Values of the `on` fields are checked as for the other modes.
        batch.iter().try_for_each(|row| self.filter(row.doc()).map(drop))?;
        let coll = self.writes.reads.access.write_or_create(self.ctx, self.into).await?;
        let op = WriteOp { bypass_validation: self.w.bypass_validation, ..WriteOp::default() };
        insert_rows(self.writes, self.ctx, &op, &coll, batch).await.map_err(|e| match e.code {
            ErrorCode::DuplicateKey => e.context(
                "$merge with whenMatched: fail found an existing document with the same values for the 'on' fields",
            ),
            _ => e,
        })
    }

    async fn update(&self, batch: &[Row]) -> Result<()> {
        // What is wrong with a result itself keeps all of its batch from being written.
        for row in batch {
            self.filter(row.doc())?;
            if matches!(self.spec.when_matched, WhenMatched::Pipeline(_)) {
                self.constants(row.doc())?;
            }
        }
        let mut first_error = None;
        let mut unmatched = false;
        for row in batch {
            match self.update_one(row.doc()).await {
                Ok(matched) => unmatched |= !matched,
                Err(e) if e.code.ends_command() => return Err(e),
                Err(e) => drop(first_error.get_or_insert(e)),
            }
        }
        if let Some(e) = first_error {
            return Err(match e.code {
                ErrorCode::DuplicateKey => e.context("$merge failed due to a DuplicateKey error"),
                ErrorCode::ImmutableField => e.context(
                    "$merge failed to update the matching document, did you attempt to modify the _id or the shard \
                     key?",
                ),
                _ => e,
            });
        }
        if unmatched && self.spec.when_not_matched == WhenNotMatched::Fail {
            return Err(Error::new(
                ErrorCode::MergeStageNoMatchingDocument,
                "$merge could not find a matching document in the target collection for at least one document in the \
                 source collection",
            ));
        }
        Ok(())
    }

    /// Whether there was a document to change (or one was inserted).
    async fn update_one(&self, doc: &RawDoc) -> Result<bool> {
        let filter = self.filter(doc)?;
        let mut wrapped = DocBuilder::new();
        let operator = match self.spec.when_matched {
            WhenMatched::Merge => Some("$set"),
            WhenMatched::KeepExisting => Some("$setOnInsert"),
            _ => None,
        };
        if let Some(operator) = operator {
            wrapped.raw_doc(operator, doc);
        }
        let wrapped = wrapped.finish();
        let (update, constants) = match &self.spec.when_matched {
            WhenMatched::Pipeline(stages) => (Value::Array(stages), Some(self.constants(doc)?)),
            _ if operator.is_some() => (Value::Document(&wrapped), None),
            _ => (Value::Document(doc), None),
        };
        let upsert = self.spec.when_not_matched == WhenNotMatched::Insert;
        let s = UpdateStatement {
            filter: &filter,
            update,
            collation: self.w.collation,
            constants: constants.as_deref(),
            let_vars: self.w.let_vars,
            upsert,
            upsert_supplied: upsert && constants.is_some(),
            bypass_validation: self.w.bypass_validation,
            ..UpdateStatement::default()
        };
        let mut retry = Retry::begin(self.writes, self.ctx, self.req.body).await?;
        let metrics = &self.writes.reads.instance.metrics;
        metrics.op_counters.update.inc();
        let done = self.writes.update_statement(self.ctx, self.into, &s, &mut retry).await?;
        metrics.documents.updated.add(done.modified);
        Ok(done.matched > 0 || done.upserted.is_some())
    }

    /// The `on` fields of a result as a filter.
    fn filter(&self, doc: &RawDoc) -> Result<DocBuf> {
        let mut b = DocBuilder::new();
        for path in self.on() {
            let v = path.split('.').try_fold(Value::Document(doc), |v, name| match v {
                Value::Document(d) => Ok(d.get(name).unwrap_or(Value::Undefined)),
                Value::Array(_) => Err(is_array(path)),
                _ => Ok(Value::Undefined),
            })?;
            match v {
                Value::Array(_) => return Err(is_array(path)),
                Value::Null | Value::Undefined => {
                    return Err(Error::location(
                        51132,
                        format!(
                            "$merge write error: 'on' field '{path}' cannot be missing, null, undefined or an array"
                        ),
                    ));
                }
                // As an operand these could be taken for operators or patterns.
                v if matches!(v.element_type(), ElementType::Document | ElementType::Regex) => {
                    b.doc(path, |d| {
                        d.value("$eq", v);
                    });
                }
                v => drop(b.value(path, v)),
            }
        }
        Ok(b.finish())
    }

    /// `new` and the variables of `let`, for one result.
    fn constants(&self, doc: &RawDoc) -> Result<DocBuf> {
        let mut b = DocBuilder::new();
        b.raw_doc("new", doc);
        for (name, expr) in &self.spec.let_vars {
            if let Some(v) = expr.eval_doc(doc, &self.q)?.value() {
                b.value(name, v);
            }
        }
        Ok(b.finish())
    }
}

fn is_array(path: &str) -> Error {
    Error::location(51185, format!("$merge write error: 'on' field '{path}' is an array"))
}
