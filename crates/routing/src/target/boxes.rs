//! A condition as boxes of shard key values.

use super::point::inner_value;
use crate::shard_key::{KeyField, ShardKey};
use pando_base::limits;
use pando_bson::{ElementType, Value, hashed};
use pando_query::matcher::{CmpOp, Matcher, Node, Operand, Pred};
use pando_query::plan::bounds::{FieldTraits, bounds_of};
use pando_query::plan::compares_strings;
use pando_query::plan::interval::{Interval, IntervalList};

/// Values of each field of the shard key, in its order.
#[derive(Clone, PartialEq, Debug)]
pub struct KeyBox(pub Vec<IntervalList>);

impl KeyBox {
    fn everything(key: &ShardKey) -> KeyBox {
        KeyBox(key.fields().iter().map(|_| IntervalList::everything()).collect())
    }
    pub fn is_everything(&self) -> bool {
        self.0.iter().all(IntervalList::is_everything)
    }
    fn intersect(&self, other: &KeyBox) -> Option<KeyBox> {
        let fields: Vec<IntervalList> = self.0.iter().zip(&other.0).map(|(a, b)| both(a, b)).collect();
        fields.iter().all(|f| !f.0.is_empty()).then_some(KeyBox(fields))
    }
    /// The only field in which two boxes differ.
    fn differs_in(&self, other: &KeyBox) -> Option<usize> {
        let mut fields = self.0.iter().zip(&other.0).enumerate().filter(|(_, (a, b))| a != b);
        let (first, more) = (fields.next(), fields.next());
        more.is_none().then_some(first.map_or(0, |(i, _)| i))
    }
}

fn both(a: &IntervalList, b: &IntervalList) -> IntervalList {
    if a.is_everything() {
        return b.clone();
    }
    if b.is_everything() { a.clone() } else { a.intersect(b, None) }
}

/// Every matching document's key lies in one of these.
pub(super) fn boxes_of(key: &ShardKey, matcher: &Matcher) -> Vec<KeyBox> {
    let maker = Maker { key, collated: matcher.collation().is_some() };
    maker.boxes(matcher.root())
}

struct Maker<'a> {
    key: &'a ShardKey,
    /// Strings of the query equal others than themselves, which lie anywhere: keys are compared byte by byte.
    collated: bool,
}

impl Maker<'_> {
    fn boxes(&self, node: &Node) -> Vec<KeyBox> {
        match node {
            Node::AlwaysFalse => Vec::new(),
            Node::And(all) => self.conjunction(all),
            Node::Or(any) => self.disjunction(any),
            one => self.condition(one),
        }
    }

    fn conjunction(&self, all: &[Node]) -> Vec<KeyBox> {
        let mut out = vec![KeyBox::everything(self.key)];
        for node in all {
            let boxes = self.boxes(node);
            if boxes.iter().any(KeyBox::is_everything) {
                continue;
            }
            if boxes.len().saturating_mul(out.len()) > limits::TARGETING_BOXES_MAX {
                // Fewer conditions hold more documents, never fewer.
                if boxes.len() < out.len() {
                    out = boxes;
                }
                continue;
            }
            out = out.iter().flat_map(|a| boxes.iter().filter_map(move |b| a.intersect(b))).collect();
        }
        out
    }

    fn disjunction(&self, any: &[Node]) -> Vec<KeyBox> {
        let mut out: Vec<KeyBox> = Vec::new();
        for node in any {
            for one in self.boxes(node) {
                if one.is_everything() {
                    return vec![one];
                }
                // Points of one field become one list, which is brought in order at the end.
                match out.last_mut().and_then(|last| last.differs_in(&one).map(|i| (last, i))) {
                    Some((last, i)) => last.0[i].0.extend_from_slice(&one.0[i].0),
                    None => out.push(one),
                }
            }
            if out.len() > limits::TARGETING_BOXES_MAX {
                return vec![KeyBox::everything(self.key)];
            }
        }
        for one in &mut out {
            one.0.iter_mut().for_each(|list| *list = std::mem::take(list).normalize(None));
        }
        out
    }

    /// A condition on one path, if that has to do with the key.
    fn condition(&self, node: &Node) -> Vec<KeyBox> {
        let mut out = KeyBox::everything(self.key);
        let Some(path) = path_of(node) else { return vec![out] };
        if self.collated && compares_strings(node) {
            return vec![out];
        }
        for (field, list) in self.key.fields().iter().zip(&mut out.0) {
            if *field.path == *path {
                let traits = FieldTraits {
                    // No document of a sharded collection has an array there.
                    multikey: false,
                    sparse: false,
                    hashed: field.hashed,
                    collated: false,
                    order: None,
                    geo: None,
                };
                if let Some((bounds, _)) = bounds_of(node, traits) {
                    *list = bounds;
                }
            } else if let Some(one) = inside(node, path, field) {
                *list = one;
            }
        }
        if out.0.iter().any(|list| list.0.is_empty()) { Vec::new() } else { vec![out] }
    }
}

fn path_of(node: &Node) -> Option<&str> {
    match node {
        Node::Leaf(l) => Some(l.path.dotted()),
        Node::ElemMatchValue(m) => Some(m.path.dotted()),
        Node::Not(inner) => match &**inner {
            Node::Leaf(l) => Some(l.path.dotted()),
            _ => None,
        },
        _ => None,
    }
}

/// An equality of a document that the key's field lies in tells the field's value.
fn inside(node: &Node, path: &str, field: &KeyField) -> Option<IntervalList> {
    let Node::Leaf(l) = node else { return None };
    let Pred::Cmp(c) = &l.pred else { return None };
    let rest = field.path.strip_prefix(path)?.strip_prefix('.')?;
    let doc = c.rhs.value();
    let doc = doc.as_doc().filter(|_| c.op == CmpOp::Eq && c.rhs.ty() == ElementType::Document)?;
    let value = inner_value(doc, rest)?;
    let value = if field.hashed { Value::Int64(hashed::hashed_key(value)) } else { value };
    Some(IntervalList::one(Interval::point(Operand::from(value))))
}
