//! Which fields of a document `find` returns.
//!
//! A specification (`{a: 1, "b.c": 1, d: {$slice: 2}, "e.$": 1, f: {$add: [1, "$x"]}}`) becomes a tree of
//! [`Node`]s, one per path component ([`parse`]). Applying it is one walk over the document's bytes: included
//! elements are copied as they are, excluded ones skipped, the rest rewritten in place; what the
//! document does not have (computed fields, `$elemMatch` results) is added at the end ([`apply`]).
//!
//! Inclusion or exclusion is the specification's choice as a whole: `{a: 1}` includes, `{a: 0}` excludes, `_id`
//! may differ from the rest, `$slice` and `$meta` go with either.

mod apply;
mod computed;
mod meta;
mod parse;
mod slice;

pub use computed::Computed;
pub use parse::{check_path, is_operation, positional_path};
pub use slice::Slice;

use crate::ctx::QueryCtx;
use crate::expr::Scope;
use crate::facts::{Facts, MetaField};
use crate::matcher;
use crate::names::NamedList;
use crate::reply_depth::check_reply_depth;
use crate::source::RecordId;
use crate::stage::shape::Shape;
use pando_base::Result;
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A parsed projection.
#[derive(Clone, Debug)]
pub struct Projection {
    spec: DocBuf,
    mode: Mode,
    root: Folder,
    positional: bool,
    metas: Vec<MetaField>,
    simple: bool,
    stage: Option<Arc<OfStage>>,
}

/// A `$project` with computed fields, which shapes documents its own way.
#[derive(Debug)]
struct OfStage {
    shape: Shape,
    ctx: QueryCtx,
    /// Dotted paths that it reads; `None` for the whole document.
    reads: Option<Vec<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Inclusion,
    Exclusion,
}

/// What happens to the field at one path.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Include,
    Exclude,
    Slice(Slice),
    /// Keep the array element that the filter matched.
    Positional,
    /// The first array element that matches.
    ElemMatch(Arc<matcher::Node>),
    Computed(Arc<Computed>),
    Meta(MetaField),
    Folder(Folder),
}

/// The children of a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folder {
    pub(crate) children: NamedList<Node>,
    /// Something below adds fields that the document may not have.
    pub(crate) adds: bool,
}

/// What a projection may need to know about a row beyond the document.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowMeta<'a> {
    /// Position of the array element that satisfied the filter ([`matcher::MatchDetails`]).
    pub array_index: Option<u32>,
    pub record_id: Option<&'a RecordId>,
    pub facts: Option<&'a Facts>,
    /// The sort key's values, as an array.
    pub sort_key: Option<&'a RawDoc>,
    /// The index key, as a document.
    pub index_key: Option<&'a RawDoc>,
}

impl Projection {
    /// Parses the `projection` (or `fields`) of a command; `{}` keeps everything.
    pub fn parse(spec: &RawDoc, ctx: &QueryCtx) -> Result<Projection> {
        parse::parse(spec, ctx)
    }
    /// A stage's, which is shown as `spec`.
    pub(crate) fn of_stage(spec: DocBuf, shape: Shape, ctx: &QueryCtx) -> Projection {
        let mut paths = BTreeSet::new();
        let complete = shape.needs(&mut paths) == Some(true);
        let reads = complete.then(|| paths.into_iter().collect());
        Projection {
            spec,
            mode: Mode::Inclusion,
            root: Folder::default(),
            positional: false,
            metas: Vec::new(),
            simple: false,
            stage: Some(Arc::new(OfStage { shape, ctx: ctx.clone(), reads })),
        }
    }
    /// The same, with another specification to show.
    pub fn shown_as(self, spec: DocBuf) -> Projection {
        Projection { spec, ..self }
    }
    /// As written.
    pub fn spec(&self) -> &RawDoc {
        &self.spec
    }
    /// Returns every document unchanged.
    pub fn is_identity(&self) -> bool {
        self.mode == Mode::Exclusion && self.root.children.is_empty()
    }
    /// Needs [`RowMeta::array_index`].
    pub fn needs_array_index(&self) -> bool {
        self.positional
    }
    /// The `$meta` values it returns.
    pub fn metas(&self) -> &[MetaField] {
        &self.metas
    }
    /// The fields that show what a row is sorted by.
    pub fn sort_key_names(&self) -> Vec<String> {
        let shows = |node: &Node| matches!(node, Node::Meta(MetaField::SortKey));
        let named = self.root.children.iter().filter(|(_, node)| shows(node));
        named.map(|(name, _)| name.to_string()).collect()
    }
    pub fn is_inclusion(&self) -> bool {
        self.mode == Mode::Inclusion
    }
    /// Only plain inclusions or only plain exclusions of top-level fields (explain's PROJECTION_SIMPLE).
    pub fn is_simple(&self) -> bool {
        self.simple
    }
    /// The dotted paths that a plain inclusion returns (`_id` among them unless excluded); `None` when the whole
    /// document, or anything but plain values of these paths, is needed.
    pub fn only_fields(&self) -> Option<Vec<String>> {
        if let Some(stage) = &self.stage {
            return stage.reads.clone();
        }
        if self.mode == Mode::Exclusion {
            return None;
        }
        let mut out = Vec::new();
        self.root.collect_plain(String::new(), &mut out).then_some(out)
    }
    /// As [`Projection::only_fields`], when these come out as they went in.
    pub fn kept_fields(&self) -> Option<Vec<String>> {
        if self.stage.is_some() { None } else { self.only_fields() }
    }
    /// The projected document. 15 when what it computes nests too deep for a reply.
    pub fn apply(&self, doc: &RawDoc, row: &RowMeta<'_>) -> Result<DocBuf> {
        if let Some(stage) = &self.stage {
            let out = stage.shape.apply(&Scope::new(doc, &stage.ctx).with_facts(row.facts))?;
            check_reply_depth(&out)?;
            return Ok(out);
        }
        if self.is_identity() {
            return Ok(doc.to_buf());
        }
        let mut out = DocBuilder::with_capacity(doc.byte_len().min(1024));
        self.apply_into(doc, row, &mut out)?;
        let out = out.finish();
        if self.root.adds {
            check_reply_depth(&out)?;
        }
        Ok(out)
    }
    /// Appends the projected fields to `out`.
    pub fn apply_into(&self, doc: &RawDoc, row: &RowMeta<'_>, out: &mut DocBuilder) -> Result<()> {
        apply::Walk { mode: self.mode, root: doc, row, reduced: false }.document(&self.root, doc, out)
    }
}

impl Folder {
    fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        self.children.things_mut().try_for_each(|node| match node {
            Node::Computed(value) => Arc::get_mut(value).map_or(Ok(()), |v| v.optimize(ctx)),
            Node::Folder(folder) => folder.optimize(ctx),
            _ => Ok(()),
        })
    }
    fn collect_plain(&self, prefix: String, out: &mut Vec<String>) -> bool {
        self.children.iter().all(|(name, node)| {
            let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
            match node {
                Node::Include => out.push(path),
                Node::Exclude => return path == "_id",
                Node::Folder(f) => return f.collect_plain(path, out),
                _ => return false,
            }
            true
        })
    }
    pub(crate) fn child(&self, name: &[u8]) -> Option<(&str, &Node)> {
        let (name, node) = &self.children[self.children.find(name)?];
        Some((name, node))
    }
}

#[cfg(test)]
mod tests;
