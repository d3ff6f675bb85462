//! From a specification to the tree, with MongoDB's checks in MongoDB's order.

use super::{Computed, Folder, Mode, Node, Projection, Slice};
use crate::ctx::QueryCtx;
use crate::expr::Expr;
use crate::facts::MetaField;
use crate::matcher::{Matcher, Place};
use pando_base::{Error, Result, limits, patience};
use pando_bson::{DocBuilder, Elem, RawDoc, Value};
use std::sync::Arc;

pub(super) fn parse(spec: &RawDoc, ctx: &QueryCtx) -> Result<Projection> {
    let mut p = Parser {
        ctx,
        mode: None,
        root: Folder::default(),
        id: None,
        elem_match: false,
        slice: false,
        positional: false,
        metas: Vec::new(),
        simple: true,
    };
    for e in spec {
        let path = e.path()?;
        p.field(path, e, path, 0)?;
    }
    // What can be known ahead is, once all of it is right.
    p.root.optimize(ctx)?;
    Ok(p.finish(spec))
}

struct Parser<'c> {
    ctx: &'c QueryCtx,
    mode: Option<Mode>,
    root: Folder,
    /// What was said of `_id` alone.
    id: Option<bool>,
    elem_match: bool,
    slice: bool,
    positional: bool,
    metas: Vec<MetaField>,
    simple: bool,
}

impl Parser<'_> {
    /// One entry: `path` from the root, `written` as it stands in the specification (for messages).
    fn field(&mut self, path: &str, e: Elem<'_>, written: &str, depth: usize) -> Result<()> {
        if depth > limits::BSON_DEPTH_MAX {
            return Err(Error::new(pando_base::ErrorCode::Overflow, "projection exceeds the nesting limit"));
        }
        let positional = positional_path(path)?.is_some();
        let is_empty = e.value().as_doc().is_some_and(RawDoc::is_empty);
        // A variable, a literal or nothing at all is looked at before its place.
        let places = matches!(e.value(), Value::Document(_) | Value::Boolean(_)) || e.value().is_number();
        if !positional && places && !is_empty && !is_sort_key(written, e.value()) {
            check_path(written)?;
        }
        match e.value() {
            Value::Document(_) if positional => Err(Error::location(
                31271,
                "positional projection cannot be used with an expression or sub object",
            )),
            v @ (Value::Boolean(_)
            | Value::Int32(_)
            | Value::Int64(_)
            | Value::Double(_)
            | Value::Decimal128(_)) => self.plain(path, v.is_truthy(), written),
            Value::Document(d) => self.object(path, d, e.value(), written, depth),
            _ if positional => {
                Err(Error::location(31308, "positional projection cannot be used with a literal"))
            }
            v => self.literal(path, v, written),
        }
    }

    fn plain(&mut self, path: &str, on: bool, written: &str) -> Result<()> {
        if let Some(array) = positional_path(path)? {
            if !on {
                return Err(Error::location(31395, "positional projection cannot be used with exclusion"));
            }
            if self.positional {
                let text = "Cannot specify more than one positional projection per query.";
                return Err(Error::location(31276, text));
            }
            if self.elem_match {
                return Err(Error::location(31256, "Cannot specify positional operator and $elemMatch."));
            }
            self.positional = true;
            let name = written.strip_suffix(".$").unwrap_or(written);
            self.add(array, name, Node::Positional)?;
            return self.decide(Mode::Inclusion, written);
        }
        if path == "_id" {
            self.id = Some(on);
            return self.add(path, written, if on { Node::Include } else { Node::Exclude });
        }
        let (node, mode) =
            if on { (Node::Include, Mode::Inclusion) } else { (Node::Exclude, Mode::Exclusion) };
        // Two paths that collide are told of first.
        self.add(path, written, node)?;
        self.decide(mode, written)
    }

    fn object(
        &mut self,
        path: &str,
        d: &RawDoc,
        whole: Value<'_>,
        written: &str,
        depth: usize,
    ) -> Result<()> {
        let Some(first) = d.first() else {
            let text = "An empty sub-projection is not a valid value. Found empty object at path";
            return Err(Error::location(51270, text));
        };
        if !is_operation(d) {
            self.enter(path, written)?;
            for e in d {
                let name = e.path()?;
                self.field(&format!("{path}.{name}"), e, name, depth + 1)?;
            }
            return Ok(());
        }
        match first.name() {
            "$slice" => self.slice(path, written, first.value(), whole),
            "$elemMatch" => self.elem_match(path, written, first),
            "$meta" => {
                let meta = MetaField::parse(first.value())?;
                self.metas.push(meta);
                self.add(path, written, Node::Meta(meta))
            }
            name if !Expr::is_operator(name) => {
                Err(Error::location(31325, format!("Unknown expression {name}")))
            }
            _ => self.computed(path, written, whole),
        }
    }

    fn slice(&mut self, path: &str, written: &str, arg: Value<'_>, whole: Value<'_>) -> Result<()> {
        let refused = match Slice::parse(arg) {
            Ok(s) => match self.add(path, written, Node::Slice(s)) {
                Ok(()) => {
                    self.slice = true;
                    return Ok(());
                }
                // A collision may still be an expression's place; MongoDB reports both.
                Err(e) => e,
            },
            Err(e) => e,
        };
        self.computed(path, written, whole).map_err(|e| {
            let text = format!(
                "Invalid $slice syntax. The given syntax {} did not match the find() syntax because :: {}: {} :: \
                 The given syntax did not match the expression $slice syntax. :: caused by :: {}",
                whole,
                refused.code.name(),
                refused.message,
                e.message,
            );
            Error::new(e.code, text)
        })
    }

    fn elem_match(&mut self, path: &str, written: &str, e: Elem<'_>) -> Result<()> {
        if self.positional {
            return Err(Error::location(31255, "Cannot specify positional operator and $elemMatch."));
        }
        if !matches!(e.value(), Value::Document(_)) {
            let text =
                format!("elemMatch: Invalid argument, object required, but got {}", e.value().type_name());
            return Err(Error::location(31274, text));
        }
        if path.contains('.') {
            return Err(Error::location(31275, "Cannot use $elemMatch projection on a nested field."));
        }
        let mut filter = DocBuilder::new();
        filter.doc(path, |b| {
            b.elem(e);
        });
        let matcher = Matcher::parse_in(Place::Elements, &filter.finish(), self.ctx)?;
        self.elem_match = true;
        self.add(path, written, Node::ElemMatch(Arc::new(matcher.root().clone())))
    }

    /// A value that is no operator has an error of its own, once it is known to be right by itself and to have a place.
    fn literal(&mut self, path: &str, v: Value<'_>, written: &str) -> Result<()> {
        let value = Computed::parse(v, self.ctx)?;
        check_path(written)?;
        if self.mode == Some(Mode::Exclusion) {
            self.add(path, written, Node::Computed(Arc::new(value)))?;
            let text = format!("Cannot use an expression {written}: {v} in an exclusion projection");
            return Err(Error::location(31310, text));
        }
        self.add_computed(path, written, value)
    }

    fn computed(&mut self, path: &str, written: &str, v: Value<'_>) -> Result<()> {
        if self.mode == Some(Mode::Exclusion) {
            let text = "Cannot use expression other than $meta in exclusion projection";
            return Err(Error::location(31252, text));
        }
        self.add_computed(path, written, Computed::parse(v, self.ctx)?)
    }

    fn add_computed(&mut self, path: &str, written: &str, value: Computed) -> Result<()> {
        self.metas.extend(&value.metas);
        self.mode = Some(Mode::Inclusion);
        self.add(path, written, Node::Computed(Arc::new(value)))
    }

    fn decide(&mut self, mode: Mode, written: &str) -> Result<()> {
        match (self.mode, mode) {
            (Some(Mode::Exclusion), Mode::Inclusion) => Err(Error::location(
                31253,
                format!("Cannot do inclusion on field {written} in exclusion projection"),
            )),
            (Some(Mode::Inclusion), Mode::Exclusion) => Err(Error::location(
                31254,
                format!("Cannot do exclusion on field {written} in inclusion projection"),
            )),
            _ => {
                self.mode = Some(mode);
                Ok(())
            }
        }
    }

    /// Puts a leaf into the tree; `written` is what stands in the specification for its place.
    fn add(&mut self, path: &str, written: &str, node: Node) -> Result<()> {
        if path != SORT_KEY || !matches!(node, Node::Meta(_)) {
            check_path(path)?;
        }
        patience::spend(1)?;
        self.simple &= matches!(node, Node::Include | Node::Exclude) && !path.contains('.');
        let adds = matches!(node, Node::Computed(_) | Node::ElemMatch(_) | Node::Meta(_));
        let (folder, last) = match path.rsplit_once('.') {
            Some((above, last)) => (self.descend(above, written, adds)?, last),
            None => (&mut self.root, path),
        };
        if folder.children.find(last.as_bytes()).is_some() {
            return Err(Error::location(31250, format!("Path collision at {written}")));
        }
        folder.adds |= adds;
        folder.children.push(last, node);
        Ok(())
    }

    /// The folder at a path, made where there is none; 31249 when a leaf is in the way of what is `written`.
    fn descend(&mut self, path: &str, written: &str, adds: bool) -> Result<&mut Folder> {
        let mut folder = &mut self.root;
        for part in path.split('.') {
            folder.adds |= adds;
            let at = match folder.children.find(part.as_bytes()) {
                Some(at) => at,
                None => {
                    folder.children.push(part, Node::Folder(Folder::default()));
                    folder.children.len() - 1
                }
            };
            folder = match &mut folder.children[at].1 {
                Node::Folder(f) => f,
                _ => {
                    let remaining = written.split_once('.').map_or("", |(_, r)| r);
                    let text = format!("Path collision at {written} remaining portion {remaining}");
                    return Err(Error::location(31249, text));
                }
            };
        }
        Ok(folder)
    }

    /// Makes room for an object of fields at a path, before any of them is looked at.
    fn enter(&mut self, path: &str, written: &str) -> Result<()> {
        self.simple = false;
        let (folder, last) = match path.rsplit_once('.') {
            Some((above, last)) => (self.descend(above, written, false)?, last),
            None => (&mut self.root, path),
        };
        match folder.children.find(last.as_bytes()).map(|at| &folder.children[at].1) {
            Some(Node::Folder(_)) => Ok(()),
            Some(_) => Err(Error::location(31250, format!("Path collision at {written}"))),
            None => {
                folder.children.push(last, Node::Folder(Folder::default()));
                Ok(())
            }
        }
    }

    fn finish(mut self, spec: &RawDoc) -> Projection {
        let only_elem_match = self.elem_match && !self.slice;
        let mode = self.mode.unwrap_or(match (self.id, only_elem_match) {
            (Some(true), _) | (_, true) => Mode::Inclusion,
            _ => Mode::Exclusion,
        });
        let id = self.root.children.find(b"_id");
        if mode == Mode::Inclusion && id.is_none() {
            self.root.children.push_front("_id", Node::Include);
        }
        if let Some(at) = id
            && mode == Mode::Exclusion
            && self.id == Some(true)
        {
            self.root.children.remove(at);
        }
        Projection {
            spec: spec.to_buf(),
            mode,
            root: self.root,
            positional: self.positional,
            metas: self.metas,
            simple: self.simple,
            stage: None,
        }
    }
}

/// `a.b` of `a.b.$`; an error when `$` stands elsewhere in the path.
pub fn positional_path(path: &str) -> Result<Option<&str>> {
    let found = path.strip_suffix(".$");
    if found.unwrap_or(path).split('.').skip(1).any(|part| part == "$") {
        return Err(Error::location(
            31394,
            "As of 4.4, it's illegal to specify positional operator in the middle of a path.Positional \
             projection may only be used at the end, for example: a.b.$. If the query previously used a form like \
             a.b.$.d, remove the parts following the '$' and the results will be equivalent.",
        ));
    }
    Ok(found)
}

/// The one name with a dollar that may be projected: routers merge by it.
const SORT_KEY: &str = "$sortKey";

fn is_sort_key(path: &str, v: Value<'_>) -> bool {
    let meta = |d: &RawDoc| d.get("$meta").and_then(|v| v.as_str().map(str::to_owned));
    let wanted = |d: &RawDoc| matches!(meta(d).as_deref(), Some("sortKey" | "geoNearDistance"));
    path == SORT_KEY && matches!(v, Value::Document(d) if wanted(d))
}

/// A single field with an operator's name. Parts of references to other documents have names like it, and are fields.
pub fn is_operation(d: &RawDoc) -> bool {
    d.count() == 1 && d.first().is_some_and(|e| e.name_bytes().starts_with(b"$") && !is_reference(e.name()))
}

fn is_reference(name: &str) -> bool {
    matches!(name, "$id" | "$ref" | "$db")
}

fn dollar_name() -> Error {
    Error::location(
        16410,
        "FieldPath field names may not start with '$'. Consider using $getField or $setField.",
    )
}

/// MongoDB's rules for field paths.
pub fn check_path(path: &str) -> Result<()> {
    if path.is_empty() {
        return Err(Error::location(40352, "FieldPath cannot be constructed with empty string"));
    }
    if path.ends_with('.') {
        return Err(Error::location(40353, "FieldPath must not end with a '.'."));
    }
    for part in path.split('.') {
        if part.is_empty() {
            return Err(Error::location(15998, "FieldPath field names may not be empty strings."));
        }
        if part.starts_with('$') && !is_reference(part) {
            return Err(dollar_name());
        }
    }
    if path.split('.').count() > limits::BSON_DEPTH_MAX {
        return Err(Error::new(pando_base::ErrorCode::Overflow, "FieldPath is too long"));
    }
    Ok(())
}
