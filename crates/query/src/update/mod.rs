//! Updates: operators, replacements and pipelines, applied to raw documents.
//!
//! [`UpdatePlan::parse`] checks the update once; [`UpdatePlan::apply`] turns one document into its successor
//! and says how the log tells it. Three styles:
//!
//! * **operators** (`{$set: ..}`): a tree of paths with modifiers at its leaves ([`tree`]), applied in one walk
//!   over the old bytes ([`apply`]) that never builds document trees. Logged as `$v: 2` diff ([`log`]).
//! * **replacement**: the new document with the old `_id`. Logged whole.
//! * **pipeline**: stages over one document. Logged as computed diff when that is shorter.
//!
//! [`UpdatePlan::upsert`] makes the document to insert when nothing matched. Operators live in [`ops`], one file
//! each, with one row each in its table.

mod apply;
mod array_filters;
mod encode;
mod log;
mod modifier;
mod ops;
mod path;
mod pipeline;
mod tree;
mod upsert;

use crate::ctx::QueryCtx;
use crate::doc_size::check_size;
use crate::matcher::MatchDetails;
use crate::stage::Transform;
use apply::{Applier, dollar_prefixed};
use array_filters::ArrayFilters;
use modifier::{Apply, Arg, Modifier, value_depth};
use ops::{OPERATORS, RenameFrom, RenameTo};
use pando_base::limits::BSON_STORED_DEPTH_MAX;
use pando_base::{Error, ErrorCode, Result, Timestamp, patience};
use pando_bson::compare::values_equal;
use pando_bson::{DocBuf, DocBuilder, Elem, ElementType, ObjectId, RawDoc, Value};
use path::{Part, parse as parse_path};
use std::cell::Cell;
use std::sync::Arc;
use tree::{Node, ObjectNode};

/// A parsed update. Shared by all documents of one statement.
#[derive(Debug)]
pub struct UpdatePlan {
    kind: Kind,
    ctx: QueryCtx,
}

#[derive(Debug)]
enum Kind {
    Operators(Operators),
    Replacement(DocBuf),
    Pipeline(Vec<Transform>),
}

#[derive(Debug)]
struct Operators {
    root: Node,
    filters: ArrayFilters,
    needs_position: bool,
    /// No result can be nested too deep unless this says so.
    check_depth: bool,
}

/// What applying an update to one document gave.
#[derive(Debug)]
pub struct UpdateOutcome {
    /// Nothing changed; the other fields are then empty.
    pub noop: bool,
    pub new_doc: DocBuf,
    pub log: LogForm,
}

/// The `o` of an update's log entry.
#[derive(Debug, PartialEq)]
pub enum LogForm {
    /// `o` is the new document.
    Replacement,
    /// `o` is `{$v: 2, diff: <this>}`.
    Delta(DocBuf),
}

impl UpdateOutcome {
    fn unchanged() -> UpdateOutcome {
        UpdateOutcome { noop: true, new_doc: DocBuf::new(), log: LogForm::Replacement }
    }
}

impl UpdatePlan {
    /// Array filters by themselves: mistakes in them come before those of the update, which may have no use for them.
    pub fn check_array_filters(filters: &RawDoc, ctx: &QueryCtx) -> Result<()> {
        ArrayFilters::parse(filter_docs(filters), ctx).map(drop)
    }

    /// Parses the `u` of an update statement: a document or a pipeline array. `array_filters` is the statement's
    /// `arrayFilters` array, if any.
    pub fn parse(update: Value<'_>, array_filters: Option<&RawDoc>, ctx: &QueryCtx) -> Result<UpdatePlan> {
        let doc = match update {
            Value::Document(doc) => doc,
            Value::Array(stages) => {
                if array_filters.is_some_and(|f| !filter_docs(f).is_empty()) {
                    return Err(Error::failed_to_parse(
                        "arrayFilters may not be specified for pipeline-style updates",
                    ));
                }
                let stages = pipeline::parse(stages, ctx)?;
                return Ok(UpdatePlan { kind: Kind::Pipeline(stages), ctx: ctx.clone() });
            }
            _ => {
                return Err(Error::failed_to_parse("Update argument must be either an object or an array"));
            }
        };
        let operators = doc.first().is_some_and(|e| e.name_bytes().first() == Some(&b'$'));
        let kind = if operators {
            parse_operators(doc, array_filters, ctx)?
        } else {
            Kind::Replacement(doc.to_buf())
        };
        Ok(UpdatePlan { kind, ctx: ctx.clone() })
    }

    pub fn is_replacement(&self) -> bool {
        matches!(self.kind, Kind::Replacement(_))
    }
    pub fn is_pipeline(&self) -> bool {
        matches!(self.kind, Kind::Pipeline(_))
    }
    /// A `$` is in some path: `apply` wants the array position that the query matched.
    pub fn needs_position(&self) -> bool {
        matches!(&self.kind, Kind::Operators(o) if o.needs_position)
    }

    /// The successor of a stored document. `details` come from [`crate::matcher::Matcher::matches_position`] and are only looked at
    /// when [`UpdatePlan::needs_position`].
    pub fn apply(&self, doc: &RawDoc, details: Option<MatchDetails>) -> Result<UpdateOutcome> {
        let position = details.and_then(|d| d.array_index);
        let outcome = match &self.kind {
            Kind::Operators(o) => o.apply(doc, position, false, &self.ctx)?,
            Kind::Replacement(new) => self.replace(doc, new, Target::Stored)?,
            Kind::Pipeline(stages) => pipeline::apply(stages, doc, Target::Stored, &self.ctx)?,
        };
        // Conditions on elements that were given up look like answers.
        patience::check()?;
        if !outcome.noop {
            check_size(&outcome.new_doc)?;
        }
        Ok(outcome)
    }

    /// The document to insert when no document matched `filter`. `new_id` is asked when neither the query nor the
    /// update gives an `_id`.
    pub fn upsert(&self, filter: &RawDoc, new_id: impl FnOnce() -> ObjectId) -> Result<DocBuf> {
        let only_id = self.is_replacement();
        let seed = upsert::seed(filter, only_id)?;
        let outcome = match &self.kind {
            Kind::Operators(o) => {
                if o.makes_array_of_id() && seed.elem("_id").is_none() {
                    return Err(array_as_id());
                }
                o.apply(&seed, None, true, &self.ctx)?
            }
            Kind::Replacement(new) => self.replace(&seed, new, Target::Upsert)?,
            Kind::Pipeline(stages) => pipeline::apply(stages, &seed, Target::Upsert, &self.ctx)?,
        };
        let new = if outcome.noop { seed } else { outcome.new_doc };
        finish_upsert(new, new_id)
    }

    /// The same when the client supplies the document: it only has to agree with the filter's `_id`.
    pub fn upsert_supplied(
        &self,
        filter: &RawDoc,
        new: &RawDoc,
        new_id: impl FnOnce() -> ObjectId,
    ) -> Result<DocBuf> {
        let new = keep_id(&upsert::seed(filter, false)?, new, Target::Upsert)?;
        finish_upsert(new, new_id)
    }

    fn replace(&self, old: &RawDoc, new: &RawDoc, target: Target) -> Result<UpdateOutcome> {
        if old.as_bytes() == new.as_bytes() {
            return Ok(UpdateOutcome::unchanged());
        }
        if target == Target::Stored {
            check_new_id(new)?;
            // What an upsert inserts may have such names, as what an insert does.
            if let Some(e) = new.iter().find(|e| e.name_bytes().starts_with(b"$")) {
                return Err(dollar_prefixed(e.name()));
            }
        }
        let replaced = self.fill_timestamps(keep_id(old, new, target)?);
        check_depth(&replaced)?;
        Ok(UpdateOutcome { noop: false, new_doc: replaced, log: LogForm::Replacement })
    }

    /// `Timestamp(0, 0)` at the top level of a replacement means "now".
    fn fill_timestamps(&self, doc: DocBuf) -> DocBuf {
        let zero = |e: &Elem<'_>| matches!(e.value(), Value::Timestamp(Timestamp::ZERO)) && e.name() != "_id";
        if !doc.iter().any(|e| zero(&e)) {
            return doc;
        }
        let mut b = DocBuilder::with_capacity(doc.byte_len());
        for e in &*doc {
            match zero(&e) {
                true => {
                    b.value(e.name_bytes(), Value::Timestamp(self.ctx.vars.cluster_time.unwrap_or_default()))
                }
                false => b.elem(e),
            };
        }
        b.finish()
    }
}

fn finish_upsert(new: DocBuf, new_id: impl FnOnce() -> ObjectId) -> Result<DocBuf> {
    let new = upsert::with_id_first(new, new_id);
    upsert::check_id(&new)?;
    check_size(&new)?;
    Ok(new)
}

/// What an update starts from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Stored,
    /// The equalities of the query.
    Upsert,
}

/// `new` with an `_id` in front: its own when that equals the old one (code 66 otherwise), else the old one.
fn keep_id(old: &RawDoc, new: &RawDoc, target: Target) -> Result<DocBuf> {
    let (old_id, new_id) = (old.elem("_id"), new.elem("_id"));
    match target {
        Target::Stored => check_new_id(new)?,
        Target::Upsert if new_id.or(old_id).is_some_and(|e| e.ty == ElementType::Array) => {
            return Err(Error::new(
                ErrorCode::NotSingleValueField,
                "After applying the update to the document, the (immutable) field '_id' was found to be an array \
                 or array descendant.",
            ));
        }
        Target::Upsert => {}
    }
    let Some(old_id) = old_id else { return Ok(new.to_buf()) };
    let id = match new_id {
        None => old_id,
        Some(id) if !values_equal(id.value(), old_id.value()) => {
            return Err(Error::new(
                ErrorCode::ImmutableField,
                format!(
                    "After applying the update, the (immutable) field '_id' was found to have been altered to {id:#}"
                ),
            ));
        }
        Some(id) => id,
    };
    let mut b = DocBuilder::with_capacity(new.byte_len() + old_id.data().len() + 8);
    b.elem(id);
    for e in new {
        if e.name_bytes() != b"_id" {
            b.elem(e);
        }
    }
    Ok(b.finish())
}

/// An `_id` that may be stored, whatever it was before.
fn check_new_id(new: &RawDoc) -> Result<()> {
    upsert::check_id(new)?;
    new.elem("_id").map_or(Ok(()), upsert::check_id_names)
}

fn check_depth(doc: &RawDoc) -> Result<()> {
    if value_depth(Value::Document(doc)) > BSON_STORED_DEPTH_MAX {
        return Err(Error::new(
            ErrorCode::Overflow,
            format!("Document exceeds maximum nesting depth of {BSON_STORED_DEPTH_MAX}"),
        ));
    }
    Ok(())
}

fn array_as_id() -> Error {
    let text = "After applying the update to the document, the field '_id' was found to be an array or array descendant.";
    Error::new(ErrorCode::NotSingleValueField, text)
}

impl Operators {
    /// An operator would put elements into an `_id` that is not there.
    fn makes_array_of_id(&self) -> bool {
        let Node::Object(root) = &self.root else { return false };
        let at = root.find(b"_id").map(|at| &root.fields[at].1);
        matches!(at, Some(Node::Leaf(modifier)) if modifier.makes_array())
    }
    fn apply(
        &self,
        doc: &RawDoc,
        position: Option<u32>,
        insert: bool,
        ctx: &QueryCtx,
    ) -> Result<UpdateOutcome> {
        let Node::Object(root) = &self.root else {
            return Err(Error::internal("the root of an update is not an object"));
        };
        let position = position.map(|p| p.to_string());
        let cx = Apply { root: doc, ctx, insert, position: position.as_deref() };
        let applier = Applier { cx, filters: &self.filters, ambiguous: Cell::new(false) };
        let mut out = Vec::with_capacity(doc.byte_len() + 64);
        let log = applier.root(root, doc, &mut out)?;
        if log::is_same(&log) {
            return Ok(UpdateOutcome::unchanged());
        }
        let diff = log::diff(&log, &out);
        let new_doc = DocBuf::from_trusted(out);
        if self.check_depth {
            check_depth(&new_doc)?;
        }
        let log = if applier.ambiguous.get() { LogForm::Replacement } else { LogForm::Delta(diff) };
        Ok(UpdateOutcome { noop: false, new_doc, log })
    }
}

fn parse_operators(doc: &RawDoc, array_filters: Option<&RawDoc>, ctx: &QueryCtx) -> Result<Kind> {
    let filters = array_filters.map(filter_docs).unwrap_or_default();
    let mut build = Build {
        filters: ArrayFilters::parse(filters, ctx)?,
        root: Node::Object(ObjectNode::default()),
        paths: Vec::new(),
        depth: 0,
    };
    for op in doc {
        build.operator(op, ctx)?;
    }
    for id in build.filters.ids() {
        let used = build.paths.iter().flatten().any(|p| matches!(p, Part::Filtered(name) if &**name == id));
        if !used {
            return Err(Error::failed_to_parse(format!(
                "The array filter for identifier '{id}' was not used in the update {doc:#}"
            )));
        }
    }
    build.root.seal();
    let operators = Operators {
        needs_position: build.root.has_positional(),
        check_depth: build.depth > BSON_STORED_DEPTH_MAX,
        root: build.root,
        filters: build.filters,
    };
    Ok(Kind::Operators(operators))
}

/// The command has seen to it that there are documents, beside nulls, which are passed over.
fn filter_docs(array: &RawDoc) -> Vec<&RawDoc> {
    array.iter().filter_map(|e| e.value().as_doc()).collect()
}

/// An operator tree in the making.
struct Build {
    filters: ArrayFilters,
    root: Node,
    paths: Vec<Vec<Part>>,
    depth: usize,
}

/// Every update operator.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    OPERATORS.iter().map(|(name, _)| *name).chain(["$rename"])
}

impl Build {
    fn operator(&mut self, op: Elem<'_>, ctx: &QueryCtx) -> Result<()> {
        let name = op.name();
        let parse = OPERATORS.iter().find(|(n, _)| *n == name).map(|(_, parse)| *parse);
        if parse.is_none() && name != "$rename" {
            return Err(Error::failed_to_parse(format!(
                "Unknown modifier: {name}. Expected a valid update modifier or pipeline-style update specified as an \
                 array"
            )));
        }
        let Value::Document(args) = op.value() else {
            return Err(Error::failed_to_parse(format!(
                "Modifiers operate on fields but we found type {} instead. For example: {{$mod: {{<field>: ...}}}} not \
                 {{{op:#}}}",
                op.ty.name()
            )));
        };
        for elem in args {
            match parse {
                Some(parse) => {
                    let path = elem.path()?;
                    let parts = parse_path(path)?;
                    let modifier = parse(&Arg { elem, ctx })?;
                    self.put(path, parts, modifier.into())?;
                }
                None => {
                    let path = elem.path()?;
                    self.put(path, parse_path(path)?, Arc::new(RenameFrom))?;
                    let to = RenameTo::parse(elem)?;
                    let target = to.target().to_owned();
                    self.put(&target, parse_path(&target)?, Arc::new(to))?;
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, path: &str, parts: Vec<Part>, modifier: Arc<dyn Modifier>) -> Result<()> {
        self.depth = self.depth.max(parts.len() + modifier.depth());
        tree::insert(&mut self.root, path, &parts, modifier)?;
        for part in &parts {
            if let Part::Filtered(id) = part
                && !id.is_empty()
                && !self.filters.contains(id)
            {
                return Err(Error::bad_value(format!(
                    "No array filter found for identifier '{id}' in path '{path}'"
                )));
            }
        }
        self.paths.push(parts);
        Ok(())
    }
}

/// `{_id: 1}` must be a legal `_id` value.
fn id_type_is_legal(ty: ElementType) -> bool {
    !matches!(ty, ElementType::Array | ElementType::Regex | ElementType::Undefined)
}

#[cfg(test)]
mod tests;
