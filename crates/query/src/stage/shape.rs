//! How `$project`, `$addFields`, `$set` and `$unset` reshape one document.
//!
//! A specification is a tree of path components. One walk over the document's bytes copies, drops, computes or
//! descends; what the document does not have is added behind, in the specification's order. Through arrays a
//! path applies to every element.

use crate::ctx::QueryCtx;
use crate::expr::{Expr, FieldPath, Held, ParseCtx, Scope, Val};
use crate::names::{NamedList, PathSet};
use crate::projection::{is_operation, positional_path};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{ArrayBuilder, AsName, DocBuf, DocBuilder, Elem, RawDoc, Value};
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Include,
    Exclude,
    /// Keep everything, set some.
    Add,
}

/// A compiled specification.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    mode: Mode,
    root: Node,
}

#[derive(Clone, Debug, Default)]
struct Node {
    /// In the order of the specification.
    children: NamedList<Child>,
    /// Some expression below adds a field that may not be there.
    computes: bool,
}

#[derive(Clone, Debug)]
enum Child {
    Keep,
    Drop,
    Compute(Expr),
    Nested(Node),
}

impl Node {
    fn find(&self, name: &[u8]) -> Option<usize> {
        self.children.find(name)
    }
    fn settle(&mut self) -> bool {
        let mut computes = false;
        for (_, child) in self.children.iter_mut() {
            computes |= match child {
                Child::Compute(_) => true,
                Child::Nested(node) => node.settle(),
                Child::Keep | Child::Drop => false,
            };
        }
        self.computes = computes;
        computes
    }
    fn expressions<'e>(&'e mut self, out: &mut Vec<&'e mut Expr>) {
        for (_, child) in self.children.iter_mut() {
            match child {
                Child::Compute(e) => out.push(e),
                Child::Nested(node) => node.expressions(out),
                _ => {}
            }
        }
    }

    /// Puts a child at a path, of which `name` is what is written there; codes 31249 and 31250 when it meets another.
    fn insert(&mut self, path: &str, name: &str, child: Child) -> Result<()> {
        let (parent, last) = match path.rsplit_once('.') {
            Some((above, last)) => (self.descend(above, name)?, last),
            None => (self, path),
        };
        if parent.find(last.as_bytes()).is_some() {
            return Err(Error::location(31250, format!("Path collision at {name}")));
        }
        parent.children.push(last, child);
        Ok(())
    }

    /// The node at a path, made where there is none; 31249 when a leaf is in the way of `name`.
    fn descend(&mut self, path: &str, name: &str) -> Result<&mut Node> {
        let mut at = self;
        for part in path.split('.') {
            let index = match at.find(part.as_bytes()) {
                Some(i) => i,
                None => {
                    at.children.push(part, Child::Nested(Node::default()));
                    at.children.len() - 1
                }
            };
            at = match &mut at.children[index].1 {
                Child::Nested(node) => node,
                _ => {
                    let rest = name.split_once('.').map_or("", |(_, rest)| rest);
                    let text = format!("Path collision at {name} remaining portion {rest}");
                    return Err(Error::location(31249, text));
                }
            };
        }
        Ok(at)
    }

    /// Makes room for an object of fields at a path, before any of them is looked at.
    fn enter(&mut self, path: &str, name: &str) -> Result<()> {
        let parent = match path.rsplit_once('.') {
            Some((above, _)) => self.descend(above, name)?,
            None => &mut *self,
        };
        let last = path.rsplit('.').next().unwrap_or(path);
        match parent.find(last.as_bytes()).map(|i| &parent.children[i].1) {
            Some(Child::Nested(_)) => Ok(()),
            Some(_) => Err(Error::location(31250, format!("Path collision at {name}"))),
            None => {
                parent.children.push(last, Child::Nested(Node::default()));
                Ok(())
            }
        }
    }
}

/// Paths as `$project` and `$addFields` take them.
fn check_path(path: &str) -> Result<()> {
    if positional_path(path)?.is_some() {
        return Err(Error::location(31324, "Cannot use positional projection in aggregation projection"));
    }
    FieldPath::parse(path).map(|_| ())
}

/// A field of a `$project`, by its own name and its path from the root.
fn check_place(name: &str, path: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::location(40352, "FieldPath cannot be constructed with empty string"));
    }
    check_path(path)
}

/// What the fields of a `$project` say before the kind of projection is known.
#[derive(Default)]
struct Draft {
    root: Node,
    /// The first field (other than `_id`) of each kind, for messages.
    included: Option<String>,
    excluded: Option<String>,
    computed: bool,
    /// Some field is a `$meta`.
    metas: bool,
    id: Option<bool>,
    /// Nothing may be computed.
    plain_only: bool,
}

impl Shape {
    /// The field under the first name of this path comes out as it went in.
    pub(crate) fn leaves_alone(&self, path: &str) -> bool {
        let name = path.split('.').next().unwrap_or(path);
        let child = self.root.find(name.as_bytes()).map(|i| &self.root.children[i].1);
        match self.mode {
            Mode::Include => matches!(child, Some(Child::Keep)),
            Mode::Exclude | Mode::Add => child.is_none(),
        }
    }
    /// The field that the first name of this path renames.
    pub(crate) fn renames(&self, path: &str) -> Option<String> {
        let (name, rest) = path.split_once('.').map_or((path, None), |(n, r)| (n, Some(r)));
        let child = self.root.find(name.as_bytes()).map(|i| &self.root.children[i].1)?;
        match child {
            Child::Compute(Expr::Field(from)) => from.renamed(rest),
            _ => None,
        }
    }
    /// `$project`.
    pub(crate) fn project(spec: &RawDoc, p: &mut ParseCtx<'_>) -> Result<Shape> {
        if spec.is_empty() {
            return Err(Error::location(51272, "projection specification must have at least one field"));
        }
        let mut draft = Draft::default();
        for e in spec {
            draft.field("", e, p)?;
        }
        let Draft { mut root, included, excluded, computed, metas, id, plain_only: _ } = draft;
        let mode = if included.is_some() || computed || (excluded.is_none() && (metas || id == Some(true))) {
            Mode::Include
        } else {
            Mode::Exclude
        };
        match (mode, id, root.find(b"_id")) {
            (Mode::Include, None, None) => root.children.push_front("_id", Child::Keep),
            (Mode::Exclude, Some(true), Some(i)) => {
                root.children.remove(i);
            }
            _ => {}
        }
        root.settle();
        Ok(Shape { mode, root })
    }

    pub(crate) fn is_inclusion(&self) -> bool {
        self.mode == Mode::Include
    }
    /// Itself, if it keeps named fields.
    pub(crate) fn take_inclusion(&mut self) -> Option<Shape> {
        let empty = Shape { mode: Mode::Include, root: Node::default() };
        (self.mode == Mode::Include).then(|| std::mem::replace(self, empty))
    }
    /// Some field is made by an expression.
    pub(crate) fn computes(&self) -> bool {
        self.root.computes
    }

    /// `$addFields`, `$set`.
    pub(crate) fn add_fields(spec: &RawDoc, p: &mut ParseCtx<'_>) -> Result<Shape> {
        // All that is written is looked at before any expression is parsed.
        let mut added = Added { spec, seen: PathSet::default(), leaves: Vec::new() };
        for e in spec {
            added.field("", e)?;
        }
        let mut root = Node::default();
        for (path, v) in added.leaves {
            root.insert(&path, &path, Child::Compute(p.parse(v)?))?;
        }
        root.settle();
        Ok(Shape { mode: Mode::Add, root })
    }

    /// `$unset`.
    pub(crate) fn unset<'a>(paths: impl IntoIterator<Item = &'a str>) -> Result<Shape> {
        let mut root = Node::default();
        for path in paths {
            check_path(path)?;
            root.insert(path, path, Child::Drop)?;
        }
        Ok(Shape { mode: Mode::Exclude, root })
    }

    pub(crate) fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        let mut all = Vec::new();
        self.root.expressions(&mut all);
        all.into_iter().try_for_each(|e| e.optimize(ctx))
    }

    /// The document paths that the output depends on; `None` when all of it is passed on.
    pub(crate) fn needs(&self, paths: &mut BTreeSet<String>) -> Option<bool> {
        let mut complete = true;
        collect_needs(&self.root, "", self.mode, paths, &mut complete);
        match self.mode {
            Mode::Include => Some(complete),
            _ if !complete => Some(false),
            _ => None,
        }
    }

    pub(crate) fn apply(&self, scope: &Scope<'_>) -> Result<DocBuf> {
        let mut b = DocBuilder::with_capacity(scope.root.byte_len() + 64);
        self.object(&self.root, Some(scope.root), scope, &mut b)?;
        Ok(b.finish())
    }

    fn object(&self, node: &Node, doc: Option<&RawDoc>, scope: &Scope<'_>, b: &mut DocBuilder) -> Result<()> {
        let mut done = vec![false; node.children.len()];
        for e in doc.into_iter().flatten() {
            let Some(i) = node.find(e.name_bytes()) else {
                if self.mode != Mode::Include {
                    b.elem(e);
                }
                continue;
            };
            if done[i] {
                continue;
            }
            match &node.children[i].1 {
                Child::Keep => {
                    done[i] = true;
                    b.elem(e);
                }
                Child::Drop => done[i] = true,
                Child::Compute(expr) => {
                    // An included field's place is taken only by what is included.
                    if self.mode != Mode::Include {
                        done[i] = true;
                        expr.eval(scope)?.put_to(b, e.name_bytes());
                    }
                }
                Child::Nested(inner) => {
                    done[i] = true;
                    self.nested(inner, e, scope, b)?;
                }
            }
        }
        for (i, (name, child)) in node.children.iter().enumerate() {
            match child {
                _ if done[i] => {}
                Child::Compute(expr) => expr.eval(scope)?.put_to(b, name),
                Child::Nested(inner) if inner.computes => self.fresh(inner, name, scope, b)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// A sub-document with only what the specification computes.
    fn fresh(&self, node: &Node, name: impl AsName, scope: &Scope<'_>, b: &mut DocBuilder) -> Result<()> {
        let mut result = Ok(());
        b.doc(name, |sub| result = self.object(node, None, scope, sub));
        result
    }

    fn nested(&self, node: &Node, e: Elem<'_>, scope: &Scope<'_>, b: &mut DocBuilder) -> Result<()> {
        let mut result = Ok(());
        match e.value() {
            Value::Document(d) => {
                b.doc(e.name_bytes(), |sub| result = self.object(node, Some(d), scope, sub));
            }
            Value::Array(a) => {
                b.array(e.name_bytes(), |sub| result = self.array(node, a, scope, sub));
            }
            _ if node.computes => return self.fresh(node, e.name_bytes(), scope, b),
            _ if self.mode == Mode::Include => {}
            _ => {
                b.elem(e);
            }
        }
        result
    }

    fn array(&self, node: &Node, array: &RawDoc, scope: &Scope<'_>, b: &mut ArrayBuilder) -> Result<()> {
        let (mut result, mut held) = (Ok(()), Held::default());
        for e in array {
            match e.value() {
                Value::Document(d) => {
                    b.doc(|sub| result = self.object(node, Some(d), scope, sub));
                }
                Value::Array(a) => {
                    b.array(|sub| result = self.array(node, a, scope, sub));
                }
                _ if node.computes => {
                    b.doc(|sub| result = self.object(node, None, scope, sub));
                }
                _ if self.mode == Mode::Include => {}
                v => {
                    b.value(v);
                }
            }
            // A large value in every element would be without a bound.
            result = result.and_then(|()| held.grow_to(b.byte_len(), 0));
            if result.is_err() {
                break;
            }
        }
        result
    }
}

fn collect_needs(node: &Node, prefix: &str, mode: Mode, paths: &mut BTreeSet<String>, complete: &mut bool) {
    for (name, child) in node.children.iter() {
        let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
        match child {
            Child::Keep => {
                paths.insert(path);
            }
            Child::Drop => {}
            Child::Compute(e) => *complete &= e.dependencies(paths),
            Child::Nested(inner) => {
                // A path that is only computed still has to know what is there already.
                if mode == Mode::Include && inner.computes {
                    paths.insert(path.clone());
                }
                collect_needs(inner, &path, mode, paths, complete);
            }
        }
    }
}

impl Draft {
    fn field(&mut self, prefix: &str, e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<()> {
        let name = e.path()?;
        let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
        let v = e.value();
        let is_empty = v.as_doc().is_some_and(RawDoc::is_empty);
        // A variable, a literal or nothing at all is looked at before its place.
        let places = matches!(v, Value::Document(_) | Value::Boolean(_)) || v.is_number();
        if places && !is_empty || path.ends_with(".$") {
            check_place(name, &path)?;
        }
        match v {
            v if v.is_number() || matches!(v, Value::Boolean(_)) => self.plain(path, name, v.is_truthy()),
            Value::Document(_) if is_empty => Err(Error::location(
                51270,
                "An empty sub-projection is not a valid value. Found empty object at path",
            )),
            Value::Document(d) if is_operation(d) => self.operation(path, name, d, p),
            Value::Document(d) => {
                self.root.enter(&path, name)?;
                d.iter().try_for_each(|inner| self.field(&path, inner, p))
            }
            v => {
                self.may_compute()?;
                let expr = p.parse(v)?;
                check_place(name, &path)?;
                self.compute(path, name, expr)?;
                if self.excluded.is_some() {
                    let text = format!("Cannot use an expression {name}: {v} in an exclusion projection");
                    return Err(Error::location(31310, text));
                }
                Ok(())
            }
        }
    }

    fn operation(&mut self, path: String, name: &str, d: &RawDoc, p: &mut ParseCtx<'_>) -> Result<()> {
        let operator = d.first().map_or("", |e| e.name());
        // It says nothing about the kind of projection.
        let meta = operator == "$meta";
        check_expression(operator)?;
        self.may_compute()?;
        if !meta {
            self.no_expression_in_exclusion()?;
        }
        let expr = p.operator(d)?;
        if !meta {
            return self.compute(path, name, expr);
        }
        self.metas = true;
        self.root.insert(&path, name, Child::Compute(expr))
    }

    fn plain(&mut self, path: String, name: &str, include: bool) -> Result<()> {
        if path == "_id" {
            self.id = Some(include);
            return self.root.insert(&path, name, if include { Child::Keep } else { Child::Drop });
        }
        // Two paths that collide are told of first.
        if include {
            self.root.insert(&path, name, Child::Keep)?;
            if self.excluded.is_some() {
                let text = format!("Cannot do inclusion on field {name} in exclusion projection");
                return Err(Error::location(31253, text));
            }
            self.included.get_or_insert(path);
        } else {
            self.root.insert(&path, name, Child::Drop)?;
            if self.included.is_some() || self.computed {
                let text = format!("Cannot do exclusion on field {name} in inclusion projection");
                return Err(Error::location(31254, text));
            }
            self.excluded.get_or_insert(path);
        }
        Ok(())
    }

    /// 51271 where only fields of the document itself may be named.
    fn may_compute(&self) -> Result<()> {
        let text = "Bad projection specification, cannot use computed fields when parsing a spec in kBanComputedFields mode";
        (!self.plain_only).then_some(()).ok_or_else(|| Error::location(51271, text))
    }

    fn no_expression_in_exclusion(&self) -> Result<()> {
        let text = "Cannot use expression other than $meta in exclusion projection";
        self.excluded.is_none().then_some(()).ok_or_else(|| Error::location(31252, text))
    }

    fn compute(&mut self, path: String, name: &str, expr: Expr) -> Result<()> {
        if path == "_id" || path.starts_with("_id.") {
            self.id = Some(true);
        }
        self.computed = true;
        self.root.insert(&path, name, Child::Compute(expr))
    }
}

/// Whether an index with a `wildcardProjection` may have this one: it may name fields of the document itself.
pub fn check_plain_projection(spec: &RawDoc) -> Result<()> {
    let ctx = QueryCtx::default();
    let mut draft = Draft { plain_only: true, ..Draft::default() };
    spec.iter().try_for_each(|e| draft.field("", e, &mut ParseCtx::new(&ctx)))
}

/// The operator of a `$project`; an unknown one has a number of its own there.
fn check_expression(name: &str) -> Result<()> {
    if name == "$elemMatch" {
        let text = "Cannot use $elemMatch in this context";
        return Err(Error::new(ErrorCode::InvalidPipelineOperator, text));
    }
    match Expr::is_operator(name) {
        true => Ok(()),
        false => Err(Error::location(31325, format!("Unknown expression {name}"))),
    }
}

/// What a `$addFields` adds: paths and their expressions, in the order in which they are written.
struct Added<'a> {
    spec: &'a RawDoc,
    seen: PathSet,
    leaves: Vec<(String, Value<'a>)>,
}

impl<'a> Added<'a> {
    fn field(&mut self, prefix: &str, e: Elem<'a>) -> Result<()> {
        let name = e.path()?;
        let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
        FieldPath::parse(&path)?;
        match e.value() {
            Value::Document(d) if d.is_empty() => {
                let text = format!("an empty object is not a valid value. Found empty object at path {path}");
                Err(Error::location(40180, text))
            }
            Value::Document(d) if !is_expression(d) => self.object(&path, d),
            v => self.leaf(path, v),
        }
    }

    fn object(&mut self, path: &str, d: &'a RawDoc) -> Result<()> {
        for inner in d {
            if inner.name_bytes().starts_with(b"$") {
                let text = format!(
                    "an expression specification must contain exactly one field, the name of the expression. Found {} \
                     fields in {d:#}, while parsing object {:#}",
                    d.count(),
                    self.spec
                );
                return Err(Error::location(40181, text));
            }
            if inner.name().contains('.') {
                let name = inner.name();
                let text = format!("cannot use dotted field name '{name}' in a sub object: {:#}", self.spec);
                return Err(Error::location(40183, text));
            }
            self.field(path, inner)?;
        }
        Ok(())
    }

    fn leaf(&mut self, path: String, v: Value<'a>) -> Result<()> {
        if let Some(other) = self.seen.conflict(&path) {
            let text = format!(
                "specification contains two conflicting paths. Cannot specify both '{path}' and '{other}': {:#}",
                self.spec
            );
            return Err(Error::location(40176, text));
        }
        self.seen.insert(&path);
        self.leaves.push((path, v));
        Ok(())
    }
}

/// One operator and nothing else.
fn is_expression(d: &RawDoc) -> bool {
    d.count() == 1 && d.first().is_some_and(|f| f.name_bytes().starts_with(b"$"))
}

/// The value must be an object to become the new root.
pub(crate) fn new_root(v: Val<'_>, label: &str, doc: &RawDoc) -> Result<DocBuf> {
    match v {
        Val::Doc(d) => Ok(d),
        v => match v.as_doc() {
            Some(d) => Ok(d.to_buf()),
            None => Err(Error::location(
                40228,
                format!(
                    "{label} must evaluate to an object, but resulting value was: {}. Type of resulting value: '{}'. Input \
                     document: {}",
                    crate::expr::shown(&v),
                    v.type_name(),
                    crate::expr::shown(&Val::Ref(Value::Document(doc)))
                ),
            )),
        },
    }
}
