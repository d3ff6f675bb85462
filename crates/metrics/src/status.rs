//! The view of `serverStatus`: dotted names become nested documents.

use crate::collect::{Is, Node, Tree, Value};
use pando_bson::DocBuilder;

impl Tree {
    pub fn append_to(&self, b: &mut DocBuilder) {
        append(&self.0, b);
    }
}

fn append(nodes: &[Node], b: &mut DocBuilder) {
    for n in nodes {
        match &n.is {
            Is::Branch(below) => b.doc(&n.name, |b| append(below, b)),
            Is::Leaf(leaf) => match &leaf.value {
                Value::Int(v) => b.i32(&n.name, *v),
                Value::Long(v) => b.i64(&n.name, *v),
                Value::Double(v) => b.f64(&n.name, *v),
                Value::Bool(v) => b.bool(&n.name, *v),
                Value::Date(v) => b.date(&n.name, *v),
                Value::Timestamp(v) => b.timestamp(&n.name, *v),
                Value::Text(v) => b.str(&n.name, v),
            },
        };
    }
}
