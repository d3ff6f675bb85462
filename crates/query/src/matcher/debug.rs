//! The filter as the planner's error messages show it: one condition per line, children indented.

use super::node::{Leaf, Node, Pred};
use std::fmt::Write;

impl Node {
    /// MongoDB's multi-line form of a filter.
    pub fn debug_tree(&self) -> String {
        let mut out = String::new();
        self.write_debug(&mut out, 0);
        out
    }

    fn write_debug(&self, out: &mut String, level: usize) {
        let indent = "    ".repeat(level);
        // Writing to a string cannot fail.
        let _ = match self {
            Node::And(v) | Node::Or(v) | Node::Nor(v) => {
                let name = match self {
                    Node::And(_) => "$and",
                    Node::Or(_) => "$or",
                    _ => "$nor",
                };
                let _ = writeln!(out, "{indent}{name}");
                v.iter().for_each(|n| n.write_debug(out, level + 1));
                Ok(())
            }
            Node::Not(n) => {
                let _ = writeln!(out, "{indent}$not");
                n.write_debug(out, level + 1);
                Ok(())
            }
            Node::Leaf(Leaf { path, pred: Pred::Near(n), .. }) => {
                writeln!(out, "{indent}{}", n.debug_text(path.dotted()))
            }
            Node::Leaf(Leaf { pred: Pred::Geo(g), .. }) => writeln!(out, "{indent}GEO raw = {}", g.source),
            Node::Leaf(l) => writeln!(out, "{indent}{} {}", l.path.dotted(), pred_text(&l.pred)),
            Node::ElemMatchObject(m) => {
                let _ = writeln!(out, "{indent}{} $elemMatch (obj)", m.path.dotted());
                m.scope.root.write_debug(out, level + 1);
                Ok(())
            }
            Node::ElemMatchValue(m) => {
                let _ = writeln!(out, "{indent}{} $elemMatch (value)", m.path.dotted());
                m.all.iter().for_each(|n| n.write_debug(out, level + 1));
                Ok(())
            }
            Node::Expr(e) => match e.source.first() {
                Some(v) => writeln!(out, "{indent}{} {}", e.keyword, v.value()),
                None => Ok(()),
            },
            Node::JsonSchema(s) => writeln!(out, "{indent}$jsonSchema {}", s.source()),
            Node::SampleRate(s) => writeln!(out, "{indent}$sampleRate: {}", s.rate),
            Node::Text(t) => writeln!(out, "{indent}{}", t.debug()),
            Node::AlwaysTrue => writeln!(out, "{indent}$alwaysTrue: 1"),
            Node::AlwaysFalse => writeln!(out, "{indent}$alwaysFalse: 1"),
        };
    }
}

fn pred_text(p: &Pred) -> String {
    match p {
        Pred::Cmp(c) => format!("{} {}", c.op.name(), c.rhs.value()),
        Pred::In(list) => {
            let mut out = String::from("$in [ ");
            for v in list.values() {
                let _ = write!(out, "{} ", v.value());
            }
            for r in &list.regexes {
                let _ = write!(out, "/{}/{} ", r.pattern, r.options);
            }
            out + "]"
        }
        Pred::Regex(r) => format!("regex /{}/{}", r.pattern, r.options),
        Pred::Exists => "exists".into(),
        Pred::Type(set) => {
            let codes: Vec<String> = set
                .iter()
                .enumerate()
                .map(|(i, t)| format!("{i}: {}", super::type_set::code_of(t)))
                .collect();
            format!("$type: {{ {} }}", codes.join(", "))
        }
        Pred::Size(n) => format!("$size : {n}"),
        Pred::Mod(m) => format!("mod {} % x == {}", m.divisor, m.remainder),
        Pred::Implied(c) => format!("$_internalExpr {} {}", c.op.name(), c.rhs.value()),
        Pred::Geo(g) => g.source.to_string(),
        Pred::Bucket(t) => t.spec().to_string(),
        Pred::Near(n) => n.source.to_string(),
        Pred::Bits(b) => format!("{}: {:?}", b.op.name(), b.positions),
    }
}
