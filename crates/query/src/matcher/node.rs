//! The tree of a filter, and its form in explain output.

use super::bits::BitTest;
use super::bucket::BucketTest;
use super::compare::{CmpOp, Comparison};
use super::in_list::InList;
use super::modulo::Modulo;
use super::path::Path;
use super::regexp::RegexPred;
use super::text::TextNode;
use super::type_set::TypeSet;
use crate::ctx::Random;
use crate::geo::{GeoQuery, NearQuery};
use crate::jsonschema::Schema;
use pando_bson::{DocBuf, DocBuilder};
use std::fmt;
use std::sync::Arc;

/// A filter or a part of one.
#[derive(Clone, Debug)]
pub enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Nor(Vec<Node>),
    Not(Box<Node>),
    Leaf(Leaf),
    /// An array at the path holds a document (or array) that matches.
    ElemMatchObject(ElemMatchObject),
    /// An array at the path holds a value for which all of these hold; their paths are empty.
    ElemMatchValue(ElemMatchValue),
    /// An aggregation expression or a script over the whole document.
    Expr(ExprNode),
    JsonSchema(Arc<Schema>),
    SampleRate(SampleRate),
    Text(Arc<TextNode>),
    AlwaysTrue,
    AlwaysFalse,
}

/// A predicate on a path.
#[derive(Clone, Debug)]
pub struct Leaf {
    pub path: Path,
    /// Where the first component is remembered during a walk.
    pub(crate) slot: u8,
    pub pred: Pred,
}

#[derive(Clone, Debug)]
pub enum Pred {
    Cmp(Comparison),
    In(InList),
    Regex(RegexPred),
    Exists,
    Type(TypeSet),
    Size(i64),
    Mod(Modulo),
    Bits(BitTest),
    /// `$geoWithin`, `$geoIntersects`.
    Geo(Arc<GeoQuery>),
    /// `$near`: an order rather than a condition; it holds for every document.
    Near(Arc<NearQuery>),
    /// Of a bucket's `control`: whether its measurements may meet a condition.
    Bucket(Arc<BucketTest>),
    /// Implied by an `$expr` beside it: holds by itself for every document, and bounds an index scan.
    Implied(Comparison),
}

#[derive(Clone, Debug)]
pub struct ElemMatchObject {
    pub path: Path,
    pub(crate) slot: u8,
    pub scope: Box<Scope>,
}

#[derive(Clone, Debug)]
pub struct ElemMatchValue {
    pub path: Path,
    pub(crate) slot: u8,
    pub all: Vec<Node>,
}

/// A tree over one document, with the top-level names it asks for.
#[derive(Clone, Debug)]
pub struct Scope {
    pub root: Node,
    pub(crate) names: Vec<Box<str>>,
}

#[derive(Clone)]
pub struct ExprNode {
    /// `$expr` or `$where`.
    pub(crate) keyword: &'static str,
    /// As written, wrapped: `{"": <expression>}`.
    pub source: DocBuf,
    pub(crate) eval: Arc<dyn ExprTest>,
}

/// A compiled expression or script used as a condition.
pub(crate) trait ExprTest: Send + Sync {
    fn holds(&self, doc: &pando_bson::RawDoc) -> pando_base::Result<bool>;
    fn runs_scripts(&self) -> bool;
    /// Adds the paths of the document that the value depends on.
    fn dependencies(&self, _paths: &mut std::collections::BTreeSet<String>) {}
    /// `source` as explain shows it, when that is not as written.
    fn spelled(&self, _source: &pando_bson::RawDoc) -> Option<DocBuf> {
        None
    }
}

impl fmt::Debug for ExprNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExprNode({})", &*self.source)
    }
}

#[derive(Clone)]
pub struct SampleRate {
    pub rate: f64,
    pub(crate) random: Arc<dyn Random>,
}

impl fmt::Debug for SampleRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SampleRate({})", self.rate)
    }
}

impl Node {
    pub(crate) fn leaf(path: &str, pred: Pred) -> Node {
        Node::Leaf(Leaf { path: Path::new(path), slot: 0, pred })
    }
    pub fn is_trivially_true(&self) -> bool {
        matches!(self, Node::AlwaysTrue) || matches!(self, Node::And(all) if all.is_empty())
    }
    /// Children of logical nodes; empty for the rest.
    pub fn children(&self) -> &[Node] {
        match self {
            Node::And(v) | Node::Or(v) | Node::Nor(v) => v,
            Node::Not(n) => std::slice::from_ref(n),
            _ => &[],
        }
    }
    /// The path of a predicate.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Node::Leaf(l) => Some(&l.path),
            Node::ElemMatchObject(e) => Some(&e.path),
            Node::ElemMatchValue(e) => Some(&e.path),
            _ => None,
        }
    }

    /// As in explain's `parsedQuery`: `{a: {$eq: 1}}`.
    pub fn to_doc(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        self.write(&mut b);
        b.finish()
    }

    pub(crate) fn write(&self, b: &mut DocBuilder) {
        let list = |b: &mut DocBuilder, name: &str, nodes: &[Node]| {
            b.array(name, |a| {
                for n in nodes {
                    a.doc(|d| n.write(d));
                }
            });
        };
        match self {
            Node::And(v) if v.is_empty() => {}
            Node::And(v) => list(b, "$and", v),
            Node::Or(v) => list(b, "$or", v),
            Node::Nor(v) => list(b, "$nor", v),
            Node::Not(n) => match n.path() {
                Some(path) => {
                    b.doc(path.dotted(), |d| {
                        d.doc("$not", |d| n.write_operators(d));
                    });
                }
                None => list(b, "$nor", std::slice::from_ref(n)),
            },
            Node::Leaf(Leaf { pred: Pred::Geo(g), .. }) if g.rows => {
                b.elems_of(&g.source);
            }
            Node::Leaf(Leaf { pred: Pred::Bucket(t), .. }) => {
                b.elems_of(t.spec());
            }
            Node::Leaf(_) | Node::ElemMatchObject(_) | Node::ElemMatchValue(_) => {
                let path = self.path().map_or("", Path::dotted);
                b.doc(path, |d| self.write_operators(d));
            }
            Node::Expr(e) => {
                let spelled = e.eval.spelled(&e.source);
                if let Some(v) = spelled.as_deref().unwrap_or(&e.source).first() {
                    b.raw(v.ty, e.keyword, v.data());
                }
            }
            Node::JsonSchema(s) => {
                b.raw_doc("$jsonSchema", s.source());
            }
            Node::SampleRate(s) => {
                b.f64("$sampleRate", s.rate);
            }
            Node::Text(t) => t.write(b),
            Node::AlwaysTrue => {
                b.i32("$alwaysTrue", 1);
            }
            Node::AlwaysFalse => {
                b.i32("$alwaysFalse", 1);
            }
        }
    }

    /// The operators alone: `$gt: 1`.
    fn write_operators(&self, b: &mut DocBuilder) {
        match self {
            Node::Leaf(l) => l.pred.write(b),
            Node::ElemMatchObject(e) => {
                b.doc("$elemMatch", |d| e.scope.root.write(d));
            }
            Node::ElemMatchValue(e) => {
                b.doc("$elemMatch", |d| {
                    for n in &e.all {
                        n.write_operators(d);
                    }
                });
            }
            Node::Not(n) => {
                b.doc("$not", |d| n.write_operators(d));
            }
            other => other.write(b),
        }
    }
}

impl Pred {
    fn write(&self, b: &mut DocBuilder) {
        match self {
            Pred::Cmp(c) => {
                b.raw(c.rhs.ty(), c.op.name(), c.rhs.data());
            }
            Pred::In(list) => {
                b.array("$in", |a| {
                    for v in list.values() {
                        a.raw(v.ty(), v.data());
                    }
                    for r in &list.regexes {
                        a.value(pando_bson::Value::Regex { pattern: &r.pattern, options: &r.options });
                    }
                });
            }
            Pred::Regex(r) => {
                b.str("$regex", &r.pattern);
                if !r.options.is_empty() {
                    b.str("$options", &r.options);
                }
            }
            Pred::Bucket(t) => {
                b.elems_of(t.spec());
            }
            Pred::Implied(c) => {
                let name = format!("$_internalExpr{}", &c.op.name()[1..2].to_uppercase());
                b.raw(c.rhs.ty(), &(name + &c.op.name()[2..]), c.rhs.data());
            }
            Pred::Exists => {
                b.bool("$exists", true);
            }
            Pred::Type(set) => {
                b.array("$type", |a| set.write(a));
            }
            Pred::Size(n) => match i32::try_from(*n) {
                Ok(n) => {
                    b.i32("$size", n);
                }
                Err(_) => {
                    b.i64("$size", *n);
                }
            },
            Pred::Mod(m) => {
                b.array("$mod", |a| {
                    a.value(pando_bson::Value::Int64(m.divisor));
                    a.value(pando_bson::Value::Int64(m.remainder));
                });
            }
            Pred::Geo(g) => {
                b.elems_of(&g.source);
            }
            Pred::Near(n) => {
                b.elems_of(&n.source);
            }
            Pred::Bits(t) => {
                b.array(t.op.name(), |a| {
                    for p in &t.positions {
                        a.value(pando_bson::Value::Int32(*p as i32));
                    }
                });
            }
        }
    }

    /// The comparison of an equality.
    pub fn as_eq(&self) -> Option<&Comparison> {
        match self {
            Pred::Cmp(c) if c.op == CmpOp::Eq => Some(c),
            _ => None,
        }
    }
}
