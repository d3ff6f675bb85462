//! `$merge` and `$out` of what lies on several shards: this router writes what it has merged.
//!
//! `$merge` writes result by result, a batch at a time; a batch is tried to its end, and its first error ends the command.
//! `$out` fills a collection of another name on the primary shard and renames it over the target.

use super::out;
use super::run::Asked;
use crate::Router;
use crate::cursors::{RouterCursor, Wanted};
use crate::write::execute::Writes;
use crate::write::new_id::{for_insert, with_id};
use crate::write::targeting::{Goes, of_document, of_update};
use pando_base::{Error, ErrorCode, Namespace, Result, limits};
use pando_bson::{DocBuf, DocBuilder, ElementType, RawDoc, Value};
use pando_command::{OpCtx, Request};
use pando_query::QueryCtx;
use pando_query::collation::Collation;
use pando_query::stage::{Merge, Sink, WhenMatched, WhenNotMatched};
use pando_request::{UpdateStatement, WriteArgs};
use std::borrow::Cow;
use std::sync::Arc;

/// What stands before mistakes that are met while results are made.
const ERROR_CONTEXT: &str = "PlanExecutor error during aggregation";

/// Everything around the results.
pub(super) struct Writing<'a> {
    pub(super) router: &'a Router,
    pub(super) ctx: &'a OpCtx,
    pub(super) req: &'a Request<'a>,
    pub(super) asked: &'a Asked<'a>,
    pub(super) q: &'a QueryCtx,
}

impl Writing<'_> {
    pub(super) async fn run(&self, sink: Sink, mut results: RouterCursor) -> Result<()> {
        let into = sink.target(self.asked.named.db())?;
        match sink {
            Sink::Merge(mut merge) => {
                self.find_out_on(&into, &mut merge).await?;
                while let Some(batch) = self.next_batch(&mut results).await? {
                    self.merge(&into, &merge, &batch).await?;
                }
                Ok(())
            }
            Sink::Out(_) => out::run(self, &into, &mut results).await,
        }
    }
    /// Nothing at the end.
    pub(super) async fn next_batch(&self, results: &mut RouterCursor) -> Result<Option<Vec<DocBuf>>> {
        let wanted = Wanted { docs_max: limits::INSERT_UNIT_DOCS_MAX as u64, ..Wanted::default() };
        let docs = match results.is_over() {
            true => Vec::new(),
            false => results.fill(self.router, self.ctx, wanted).await?,
        };
        Ok(Some(docs).filter(|d| !d.is_empty()))
    }
    fn write_args(&self) -> WriteArgs<'_> {
        WriteArgs {
            ordered: false,
            bypass_validation: self.asked.args.bypass_validation,
            ..WriteArgs::default()
        }
    }

    pub(super) async fn insert(&self, into: &Namespace, docs: &[DocBuf]) -> Result<()> {
        let args = self.write_args();
        let writes = Writes {
            ns: into.clone(),
            command: "insert",
            field: "documents",
            args: &args,
            docs: docs.iter().map(|doc| for_insert(self.router, self.ctx, doc)).collect(),
            numbers: Vec::new(),
        };
        let within = Request { db: into.db(), ..*self.req };
        let goes =
            |route: &pando_metadata_cache::Route, i: usize| of_document(route, &writes.docs[i]).map(Goes::To);
        let batch = writes.run(self.router, self.ctx, &within, goes).await?;
        first_error(batch.outcome.errors)
    }

    async fn merge(&self, into: &Namespace, merge: &Merge, batch: &[DocBuf]) -> Result<()> {
        let docs: Vec<Cow<'_, RawDoc>> = batch.iter().map(|doc| with_id(self.ctx, doc)).collect();
        if merge.when_matched == WhenMatched::Fail {
            let docs: Vec<DocBuf> = docs.iter().map(|doc| doc.to_buf()).collect();
            return self.insert(into, &docs).await;
        }
        let statements = docs.iter().map(|doc| self.statement(merge, doc)).collect::<Result<Vec<_>>>()?;
        let args = WriteArgs { let_vars: self.asked.args.let_vars, ..self.write_args() };
        let parsed = statements.iter().map(|s| UpdateStatement::parse(s)).collect::<Result<Vec<_>>>()?;
        let writes = Writes {
            ns: into.clone(),
            command: "update",
            field: "updates",
            args: &args,
            docs: statements.iter().map(|s| Cow::Borrowed(&**s)).collect(),
            numbers: Vec::new(),
        };
        let within = Request { db: into.db(), ..*self.req };
        let goes = |route: &pando_metadata_cache::Route, i: usize| {
            of_update(self.router, self.ctx, route, &parsed[i])
        };
        let done = writes.run(self.router, self.ctx, &within, goes).await?;
        let n = done.outcome.n;
        first_error(done.outcome.errors)?;
        if merge.when_not_matched == WhenNotMatched::Fail && n < batch.len() as i64 {
            return Err(Error::new(
                ErrorCode::MergeStageNoMatchingDocument,
                "$merge could not find a matching document in the target collection for at least one document in the \
                 source collection",
            ));
        }
        Ok(())
    }

    /// What one result does to the target, as an update.
    fn statement(&self, merge: &Merge, doc: &RawDoc) -> Result<DocBuf> {
        let upsert = merge.when_not_matched == WhenNotMatched::Insert;
        let mut b = DocBuilder::with_capacity(doc.byte_len() * 2);
        b.raw_doc("q", &filter(merge, doc).map_err(|e| e.context(ERROR_CONTEXT))?);
        match &merge.when_matched {
            WhenMatched::Merge => _ = b.doc("u", |u| _ = u.raw_doc("$set", doc)),
            WhenMatched::KeepExisting => _ = b.doc("u", |u| _ = u.raw_doc("$setOnInsert", doc)),
            WhenMatched::Replace | WhenMatched::Fail => _ = b.raw_doc("u", doc),
            WhenMatched::Pipeline(stages) => {
                b.raw_array("u", stages).raw_doc("c", &self.constants(merge, doc)?);
                b.bool("upsertSupplied", upsert);
            }
        }
        b.bool("upsert", upsert);
        if let Some(collation) = self.asked.args.collation {
            b.raw_doc("collation", collation);
        }
        Ok(b.finish())
    }
    /// `new` and the variables of `let`, for one result.
    fn constants(&self, merge: &Merge, doc: &RawDoc) -> Result<DocBuf> {
        let mut b = DocBuilder::new();
        b.raw_doc("new", doc);
        for (name, expr) in &merge.let_vars {
            if let Some(v) = expr.eval_doc(doc, self.q)?.value() {
                b.value(name, v);
            }
        }
        Ok(b.finish())
    }
    /// By what results are told apart where nobody says: by `_id`, and in a sharded target by its key as well. Whoever says by
    /// what has to name the key, and fields that an index makes unique.
    async fn find_out_on(&self, into: &Namespace, merge: &mut Merge) -> Result<()> {
        let route = self.router.catalog.route_if_any(into).await?;
        let table = route.and_then(|r| r.table);
        let key = table.iter().flat_map(|t| t.collection.key.fields()).map(|f| f.path.to_string());
        let Some(on) = merge.on.as_mut() else {
            if table.is_some() {
                let mut on: Vec<String> = key.collect();
                if !on.iter().any(|f| f == "_id") {
                    on.push("_id".to_owned());
                }
                merge.on = Some(on);
            }
            return Ok(());
        };
        if key.into_iter().all(|f| on.contains(&f)) && self.is_unique_by(into, on).await? {
            return Ok(());
        }
        Err(Error::location(51183, "Cannot find index to verify that join fields will be unique"))
    }
    async fn is_unique_by(&self, into: &Namespace, on: &[String]) -> Result<bool> {
        let indexes = out::listed(self, into, |b| _ = b.str("listIndexes", into.coll())).await?;
        if indexes.is_empty() {
            return Ok(on == ["_id"]);
        }
        for index in &indexes {
            if covers(index, on) && collation_of(index)? == self.q.collation {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether an index tells documents apart by just these fields.
fn covers(index: &RawDoc, on: &[String]) -> bool {
    let Some(key) = index.get("key").and_then(|v| v.as_doc()) else { return false };
    let is_unique = index.get("unique").is_some_and(|v| v.is_truthy())
        || index.get("name").and_then(|v| v.as_str()) == Some("_id_");
    let has_all = key.iter().count() == on.len() && key.iter().all(|e| on.iter().any(|f| f == e.name()));
    is_unique && has_all && index.elem("partialFilterExpression").is_none()
}

fn collation_of(index: &RawDoc) -> Result<Option<Arc<Collation>>> {
    let spec = index.get("collation").and_then(|v| v.as_doc());
    Ok(spec.map(Collation::stored).transpose()?.flatten())
}

fn on_fields(merge: &Merge) -> Vec<&str> {
    match merge.on.as_deref() {
        Some(named) if !named.is_empty() => named.iter().map(String::as_str).collect(),
        _ => vec!["_id"],
    }
}

/// The `on` fields of a result as a filter.
fn filter(merge: &Merge, doc: &RawDoc) -> Result<DocBuf> {
    let mut b = DocBuilder::new();
    for path in on_fields(merge) {
        match doc.get_path(path) {
            Some(Value::Array(_)) => {
                let text = format!("$merge write error: 'on' field '{path}' is an array");
                return Err(Error::location(51185, text));
            }
            None | Some(Value::Null | Value::Undefined) => {
                let text = format!(
                    "$merge write error: 'on' field '{path}' cannot be missing, null, undefined or an array"
                );
                return Err(Error::location(51132, text));
            }
            // As an operand these could be taken for operators or patterns.
            Some(v) if matches!(v.element_type(), ElementType::Document | ElementType::Regex) => {
                b.doc(path, |d| _ = d.value("$eq", v));
            }
            Some(v) => _ = b.value(path, v),
        }
    }
    Ok(b.finish())
}

fn first_error(errors: Vec<(usize, DocBuf)>) -> Result<()> {
    let Some((_, e)) = errors.into_iter().next() else { return Ok(()) };
    let code = e.get("code").and_then(|v| v.as_i64()).unwrap_or(0) as i32;
    let text = e.get("errmsg").and_then(|v| v.as_str()).unwrap_or_default().to_owned();
    Err(Error::location(code, text).context(ERROR_CONTEXT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_metadata_cache::testing::doc;
    use pando_query::stage::Pipeline;

    fn merge_of(text: &str) -> Merge {
        let holder = doc(&format!(r#"{{"p": [{{"$merge": {text}}}]}}"#));
        let list = holder.get("p").and_then(|v| v.as_array()).unwrap();
        match Pipeline::parse(list, &QueryCtx::default()).unwrap().take_sink() {
            Some(Sink::Merge(merge)) => *merge,
            _ => panic!("no $merge"),
        }
    }

    #[test]
    fn results_are_told_apart_by_the_fields_that_are_named() {
        let m = merge_of(r#"{"into": "t", "on": ["a.b", "_id"]}"#);
        let found = filter(&m, &doc(r#"{"_id": 1, "a": {"b": {"$x": 1}}}"#)).unwrap();
        assert_eq!(found.get("_id").and_then(|v| v.as_i64()), Some(1));
        assert!(found.get("a.b").and_then(|v| v.as_doc()).is_some_and(|d| d.elem("$eq").is_some()));
        assert_eq!(filter(&m, &doc(r#"{"_id": 1}"#)).unwrap_err().code.0, 51132);
        assert_eq!(filter(&m, &doc(r#"{"_id": [1], "a": {"b": 1}}"#)).unwrap_err().code.0, 51185);
    }
}
