//! The view of the log: chosen metrics as fields of one line.

use crate::collect::{Is, Node, Value};
use crate::registry::Registry;
use pando_env::log::Attrs;

impl Registry {
    /// One field for each section that is named, with what stands in it.
    pub fn append_sections(&self, sections: &[&str], line: &mut Attrs) {
        for section in sections {
            let tree = self.section(section);
            line.object(section, |line| append(&tree.0, line));
        }
    }
}

fn append(nodes: &[Node], line: &mut Attrs) {
    for n in nodes {
        match &n.is {
            Is::Branch(below) => line.object(&n.name, |line| append(below, line)),
            Is::Leaf(leaf) => match &leaf.value {
                Value::Int(v) => line.i64(&n.name, i64::from(*v)),
                Value::Long(v) | Value::Date(v) => line.i64(&n.name, *v),
                Value::Double(v) => line.f64(&n.name, *v),
                Value::Bool(v) => line.bool(&n.name, *v),
                Value::Timestamp(v) => line.i64(&n.name, i64::from(v.secs())),
                Value::Text(v) => line.str(&n.name, v),
            },
        };
    }
}
