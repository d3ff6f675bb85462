//! Pipelines that end in `$out` or `$merge`: their results are written instead of returned.
//!
//! `$out` fills a temporary collection with the target's options and indexes and renames it over the target, so that
//! readers see the old contents or the new. `$merge` writes result by result, a batch at a time; a batch is tried to
//! its end and its first error ends the command, as an unordered write would.

use crate::Server;
use crate::aggregation::Aggregation;
use crate::cursors::body::CursorBody;
use crate::cursors::pipeline::{ERROR_CONTEXT, PipelineCursor, Turn};
use crate::write::writes::Retry;
use pando_access::{Collection, CollectionOptions, Missing, Named, WriteAcquisition, WriteOp};
use pando_base::{Error, ErrorCode, Namespace, Result, limits};
use pando_bson::{DocBuf, DocBuilder, ElementType, RawDoc, Value};
use pando_command::{OpCtx, ReadLevel, Request};
use pando_query::QueryCtx;
use pando_query::stage::{Into, Merge, Row, Sink, WhenMatched, WhenNotMatched};
use pando_request::UpdateStatement;
use std::sync::Arc;

/// What the command says beside the pipeline.
pub(crate) struct Writing<'a> {
    pub(crate) sink: Sink,
    pub(crate) collation: Option<&'a RawDoc>,
    pub(crate) bypass_validation: bool,
    /// Variables of the command, which a pipeline of `whenMatched` sees.
    pub(crate) let_vars: Option<&'a RawDoc>,
}

/// Results that wait to be written together.
struct Rows<'a> {
    server: &'a Server,
    ctx: &'a OpCtx,
    cursor: PipelineCursor,
    turn: Turn,
}

impl Rows<'_> {
    /// Empty at the end. Errors have their context already.
    async fn next_batch(&mut self) -> Result<Vec<Row>> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while rows.len() < limits::INSERT_UNIT_DOCS_MAX && bytes < limits::INSERT_UNIT_BYTES_MAX {
            let Some(row) = self.cursor.next(&self.server.crud.reads, self.ctx, &mut self.turn).await? else {
                break;
            };
            bytes += row.bytes().len();
            rows.push(row);
        }
        if !rows.is_empty() {
            self.server.before_write(self.ctx).await?;
        }
        Ok(rows)
    }
}

fn while_running(e: Error) -> Error {
    e.context(ERROR_CONTEXT)
}

impl Server {
    /// Runs `agg` and writes what comes out of it.
    pub(crate) async fn write_aggregation(
        &self,
        ctx: &OpCtx,
        req: &Request<'_>,
        agg: Aggregation,
        w: Writing<'_>,
    ) -> Result<()> {
        let rc = &ctx.read_concern;
        w.sink.check_level(rc.level() == ReadLevel::Linearizable, &rc.shell_text())?;
        if self.replication.member.is_replicated() && !self.replication.member.is_primary() {
            return Err(Error::new(ErrorCode::NotWritablePrimary, "not primary"));
        }
        let into = match &w.sink {
            Sink::Out(into) => out_target(into, req.db)?,
            Sink::Merge(m) => merge_target(&m.into, req.db)?,
        };
        if let Sink::Merge(m) = &w.sink {
            self.check_unique(&into, m, agg.ctx())?;
        }
        let q = agg.ctx().clone();
        let (body, source) = self.crud.aggregations.open(ctx, agg)?;
        let cursor = match body {
            CursorBody::Pipeline(p) => *p,
            CursorBody::Query(q) => PipelineCursor::passing_on(q.into_scan())?,
            CursorBody::List(_) | CursorBody::Oplog(_) | CursorBody::ChangeStream(_) => {
                return Err(Error::internal("an aggregation is a plan or a pipeline"));
            }
        };
        self.before_write(ctx).await?;
        let turn = cursor.begin(&self.crud.reads, ctx, source)?;
        let mut rows = Rows { server: self, ctx, cursor, turn };
        match &w.sink {
            Sink::Out(_) => self.write_out(ctx, &into, &mut rows, w.bypass_validation).await?,
            Sink::Merge(m) => {
                let job = MergeJob { server: self, ctx, req, into: &into, spec: m, w: &w, q };
                job.run(&mut rows).await?;
            }
        }
        rows.cursor.end(&self.crud.reads, ctx, false);
        Ok(())
    }

    async fn write_out(
        &self,
        ctx: &OpCtx,
        into: &Namespace,
        rows: &mut Rows<'_>,
        bypass: bool,
    ) -> Result<()> {
        let old = self.out_original(into).map_err(while_running)?;
        let tmp = format!("tmp.agg_out.{}", self.maintenance.new_uuid());
        let tmp = Namespace::unchecked(into.db(), &tmp);
        let options = match &old {
            Some(c) => CollectionOptions { temp: true, ..c.options.clone() },
            None => CollectionOptions { temp: true, ..CollectionOptions::default() },
        };
        let created = self.access.create_collection(ctx, &tmp, options).await.map_err(while_running)?;
        ctx.wrote(created);
        let done = self.fill_and_rename(ctx, (&tmp, into), old.as_deref(), rows, bypass).await;
        if done.is_err() {
            // The temporary collection would go at the next start anyway: its own failure is not the command's.
            let _ = self.access.drop_temporary(ctx, &tmp).await;
        }
        done
    }

    /// The collection that is about to be replaced.
    fn out_original(&self, into: &Namespace) -> Result<Option<Arc<Collection>>> {
        match self.access.definitions().named(into) {
            None => Ok(None),
            Some(Named::View(_)) => Err(Error::new(
                ErrorCode::CommandNotSupportedOnView,
                format!("Namespace {into} is a view, not a collection"),
            )),
            Some(Named::Collection(c)) if c.is_capped() => Err(Error::location(
                17152,
                format!("namespace '{into}' is capped so it can't be used for $out"),
            )),
            Some(Named::Collection(c)) => Ok(Some(c.clone())),
        }
    }

    async fn fill_and_rename(
        &self,
        ctx: &OpCtx,
        (tmp, into): (&Namespace, &Namespace),
        old: Option<&Collection>,
        rows: &mut Rows<'_>,
        bypass: bool,
    ) -> Result<()> {
        let specs: Vec<DocBuf> = old.map(index_specs).unwrap_or_default();
        if !specs.is_empty() {
            let specs: Vec<&RawDoc> = specs.iter().map(|d| &**d).collect();
            self.access.create_own_indexes(ctx, tmp, &specs).await.map_err(while_running)?;
        }
        let op = WriteOp { bypass_validation: bypass, ..WriteOp::default() };
        loop {
            let batch = rows.next_batch().await?;
            if batch.is_empty() {
                break;
            }
            let Some(coll) = self.access.write(ctx, tmp, Missing::Nothing).await? else {
                return Err(Error::internal("the temporary collection of $out is gone"));
            };
            self.insert_rows(ctx, &op, &coll, &batch).await.map_err(while_running)?;
        }
        let now = self.out_original(into).map_err(while_running)?;
        let same = |a: &Collection, b: &Collection| {
            a.uuid == b.uuid && a.options == b.options && index_specs(a) == index_specs(b)
        };
        if !old.zip(now.as_deref()).map_or(old.is_none() && now.is_none(), |(a, b)| same(a, b)) {
            return Err(while_running(Error::new(
                ErrorCode::CommandFailed,
                format!(
                    "collection options or indexes of target collection {into} changed during processing"
                ),
            )));
        }
        let last = self.access.rename_collection(ctx, tmp, into, true).await;
        ctx.wrote(last.map_err(while_running)?);
        Ok(())
    }

    /// All of a batch are tried; the first error counts.
    async fn insert_rows(
        &self,
        ctx: &OpCtx,
        op: &WriteOp<'_>,
        coll: &WriteAcquisition,
        batch: &[Row],
    ) -> Result<()> {
        let docs: Vec<&RawDoc> = batch.iter().map(Row::doc).collect();
        let done = self.access.insert_many(ctx, op, coll, &docs, &[], false).await;
        ctx.wrote(done.last);
        self.instance.metrics.documents.inserted.add(done.n as u64);
        done.errors.into_iter().next().map_or(Ok(()), |(_, e)| Err(e))
    }

    /// 51183 unless an index makes the `on` fields unique.
    fn check_unique(&self, into: &Namespace, m: &Merge, q: &QueryCtx) -> Result<()> {
        let Some(on) = m.on.as_ref().filter(|on| **on != ["_id"]) else { return Ok(()) };
        let coll = self.access.definitions().collection(into).cloned();
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
}

fn index_specs(c: &Collection) -> Vec<DocBuf> {
    c.ready_indexes().iter().filter(|i| !i.spec.is_id_index()).map(|i| i.spec.doc.clone()).collect()
}

fn is_internal(db: &str) -> bool {
    matches!(db, "admin" | "config" | "local")
}

fn out_target(into: &Into, db: &str) -> Result<Namespace> {
    let db = into.db.as_deref().unwrap_or(db);
    if is_internal(db) {
        return Err(Error::location(31321, format!("Can't $out to internal database: {db}")));
    }
    if into.coll.starts_with("system.") {
        return Err(Error::location(17385, format!("Can't $out to special collection: {}", into.coll)));
    }
    Namespace::new(db, &into.coll).map_err(|_| {
        Error::new(ErrorCode::InvalidNamespace, format!("Invalid $out target namespace, {db}.{}", into.coll))
    })
}

fn merge_target(into: &Into, db: &str) -> Result<Namespace> {
    let db = into.db.as_deref().unwrap_or(db);
    if is_internal(db) {
        return Err(Error::location(31320, format!("Cannot $merge to internal database: {db}")));
    }
    if into.coll.starts_with("system.") {
        return Err(Error::location(31319, format!("Cannot $merge to special collection: {}", into.coll)));
    }
    Namespace::new(db, &into.coll).map_err(|_| {
        Error::new(
            ErrorCode::InvalidNamespace,
            format!("Invalid $merge target namespace, {db}.{}", into.coll),
        )
    })
}

/// A `$merge` being carried out.
struct MergeJob<'a> {
    server: &'a Server,
    ctx: &'a OpCtx,
    req: &'a Request<'a>,
    into: &'a Namespace,
    spec: &'a Merge,
    w: &'a Writing<'a>,
    q: QueryCtx,
}

impl MergeJob<'_> {
    async fn run(&self, rows: &mut Rows<'_>) -> Result<()> {
        if self.server.access.definitions().is_view(self.into) {
            return Err(while_running(Error::new(
                ErrorCode::CommandNotSupportedOnView,
                format!("Namespace {} is a view, not a collection", self.into),
            )));
        }
        loop {
            let batch = rows.next_batch().await?;
            if batch.is_empty() {
                return Ok(());
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
        b.object_id("_id", crate::object_id::new_object_id(&self.server.env));
        b.elems_of(doc);
        Ok(Row::from(b.finish()))
    }

    async fn insert(&self, batch: &[Row]) -> Result<()> {
        // Values of the `on` fields are checked as for the other modes.
        batch.iter().try_for_each(|row| self.filter(row.doc()).map(drop))?;
        let coll = self.server.access.write_or_create(self.ctx, self.into).await?;
        let op = WriteOp { bypass_validation: self.w.bypass_validation, ..WriteOp::default() };
        self.server.insert_rows(self.ctx, &op, &coll, batch).await.map_err(|e| match e.code {
            ErrorCode::DuplicateKey => e.context(
                "$merge with whenMatched: fail found an existing document with the same values for the 'on' fields",
            ),
            _ => e,
        })
    }

    async fn update(&self, batch: &[Row]) -> Result<()> {
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
        let mut retry = Retry::begin(self.server, self.ctx, self.req.body).await?;
        let done = self.server.update_statement(self.ctx, self.into, &s, &mut retry).await?;
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
