//! From those who count to a tree of dotted names.

use pando_base::Timestamp;
use std::borrow::Cow;

/// Tells its metrics with their values of this moment, in the order in which they are shown.
pub trait Source: Send + Sync {
    fn collect(&self, to: &mut Collector<'_>);
}

/// What happens to a figure over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Only grows.
    Counter,
    Gauge,
    /// No figure: a word of a few possible ones.
    Text,
}

/// A value and the BSON type that shows it.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    Int(i32),
    Long(i64),
    Double(f64),
    Bool(bool),
    /// Milliseconds since the epoch.
    Date(i64),
    Timestamp(Timestamp),
    Text(Cow<'static, str>),
}

macro_rules! from {
    ($($from:ty => $value:expr;)+) => {
        $(impl From<$from> for Value {
            fn from(v: $from) -> Value {
                $value(v)
            }
        })+
    };
}
from! {
    i32 => Value::Int;
    i64 => Value::Long;
    u64 => |v| Value::Long(v as i64);
    usize => |v| Value::Long(v as i64);
    f64 => Value::Double;
    bool => Value::Bool;
    Timestamp => Value::Timestamp;
    &'static str => |v| Value::Text(Cow::Borrowed(v));
}

/// One metric as it is now.
#[derive(Clone, PartialEq, Debug)]
pub struct Leaf {
    pub kind: Kind,
    pub value: Value,
    pub unit: &'static str,
    pub help: &'static str,
}

#[derive(Clone, Debug)]
pub(crate) enum Is {
    Leaf(Leaf),
    Branch(Vec<Node>),
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: Cow<'static, str>,
    /// The name is a value of this label.
    pub(crate) label: Option<&'static str>,
    pub(crate) is: Is,
}

/// Metrics by their names, in the order in which they were told.
#[derive(Clone, Debug, Default)]
pub struct Tree(pub(crate) Vec<Node>);

impl Tree {
    pub fn collector(&mut self) -> Collector<'_> {
        Collector(&mut self.0)
    }
    /// Sorts what is below a path ("" = the top) by name, for a place where several crates tell something.
    pub fn sort(&mut self, path: &str) {
        let mut nodes = &mut self.0;
        for name in path.split('.').filter(|s| !s.is_empty()) {
            let found = nodes.iter_mut().find(|n| n.name == name);
            let Some(Node { is: Is::Branch(below), .. }) = found else { return };
            nodes = below;
        }
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
    }
    /// The metric of a path of names (labels stand in it as their values).
    pub fn get(&self, path: &[&str]) -> Option<&Leaf> {
        let (last, above) = path.split_last()?;
        let mut nodes = &self.0;
        for name in above {
            nodes = nodes.iter().find_map(|n| match &n.is {
                Is::Branch(below) if n.name == *name => Some(below),
                _ => None,
            })?;
        }
        nodes.iter().find_map(|n| match &n.is {
            Is::Leaf(leaf) if n.name == *last => Some(leaf),
            _ => None,
        })
    }
    /// Every metric with the names of its path.
    pub fn for_each(&self, mut each: impl FnMut(&[&str], &Leaf)) {
        fn walk<'n>(nodes: &'n [Node], path: &mut Vec<&'n str>, each: &mut impl FnMut(&[&str], &Leaf)) {
            for n in nodes {
                path.push(&n.name);
                match &n.is {
                    Is::Leaf(leaf) => each(path, leaf),
                    Is::Branch(below) => walk(below, path, each),
                }
                path.pop();
            }
        }
        walk(&self.0, &mut Vec::new(), &mut each);
    }
    /// What is wrong with the metrics themselves: a name told twice, no help, no unit.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        self.for_each(|path, leaf| {
            let name = path.join(".");
            if leaf.help.is_empty() {
                problems.push(format!("{name} has no help"));
            }
            if leaf.unit.is_empty() {
                problems.push(format!("{name} has no unit"));
            }
            if !seen.insert(path.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()) {
                problems.push(format!("{name} is told twice"));
            }
        });
        problems
    }
}

/// Takes what a [`Source`] tells, at one place of the tree.
pub struct Collector<'t>(&'t mut Vec<Node>);

impl Collector<'_> {
    /// Below a dotted path. A segment `{label=value}` is a value of a label.
    pub fn within(&mut self, path: &'static str, fill: impl FnOnce(&mut Collector<'_>)) -> &mut Self {
        match path.split_once('.') {
            Some((head, rest)) => self.segment(head, |to| {
                to.within(rest, fill);
            }),
            None if path.is_empty() => fill(self),
            None => self.segment(path, fill),
        }
        self
    }
    fn segment(&mut self, segment: &'static str, fill: impl FnOnce(&mut Collector<'_>)) {
        let inner = segment.strip_prefix('{').and_then(|s| s.strip_suffix('}'));
        match inner.and_then(|s| s.split_once('=')) {
            Some((label, value)) => self.labelled(label, value, fill),
            None => self.branch(None, Cow::Borrowed(segment), fill),
        }
    }
    /// Below a value of a label; the value is one segment whatever characters it has.
    pub fn labelled(
        &mut self,
        label: &'static str,
        value: impl Into<Cow<'static, str>>,
        fill: impl FnOnce(&mut Collector<'_>),
    ) {
        self.branch(Some(label), value.into(), fill);
    }
    fn branch(
        &mut self,
        label: Option<&'static str>,
        name: Cow<'static, str>,
        fill: impl FnOnce(&mut Collector<'_>),
    ) {
        // Whoever tells something here told it last.
        let known = self.0.iter().rposition(|n| n.name == name && matches!(n.is, Is::Branch(_)));
        let at = known.unwrap_or_else(|| {
            self.0.push(Node { name, label, is: Is::Branch(Vec::new()) });
            self.0.len() - 1
        });
        if let Some(Node { is: Is::Branch(below), .. }) = self.0.get_mut(at) {
            fill(&mut Collector(below));
        }
    }
    fn leaf(&mut self, name: &'static str, leaf: Leaf) -> &mut Self {
        match name.rsplit_once('.') {
            Some((path, name)) => {
                self.within(path, |to| to.push(None, name, leaf));
            }
            None => self.push(None, name, leaf),
        }
        self
    }
    fn push(&mut self, label: Option<&'static str>, name: &'static str, leaf: Leaf) {
        self.0.push(Node { name: Cow::Borrowed(name), label, is: Is::Leaf(leaf) });
    }
    pub fn counter(
        &mut self,
        name: &'static str,
        value: impl Into<Value>,
        unit: &'static str,
        help: &'static str,
    ) -> &mut Self {
        self.leaf(name, Leaf { kind: Kind::Counter, value: value.into(), unit, help })
    }
    /// A counter whose own name is the value of a label.
    pub fn labelled_counter(
        &mut self,
        label: &'static str,
        name: &'static str,
        value: impl Into<Value>,
        unit: &'static str,
        help: &'static str,
    ) -> &mut Self {
        self.push(Some(label), name, Leaf { kind: Kind::Counter, value: value.into(), unit, help });
        self
    }
    /// Also flags (unit `boolean`) and points in time (`date`, `timestamp`).
    pub fn gauge(
        &mut self,
        name: &'static str,
        value: impl Into<Value>,
        unit: &'static str,
        help: &'static str,
    ) -> &mut Self {
        self.leaf(name, Leaf { kind: Kind::Gauge, value: value.into(), unit, help })
    }
    pub fn text(
        &mut self,
        name: &'static str,
        value: impl Into<Cow<'static, str>>,
        help: &'static str,
    ) -> &mut Self {
        self.leaf(name, Leaf { kind: Kind::Text, value: Value::Text(value.into()), unit: "text", help })
    }
}
