//! The shape of a query: what stays when its constants are taken away.

use super::Query;

/// A query without its constants: operators and paths, sort, projection, collation.
pub fn query_shape(q: &Query) -> String {
    shape_of(q, false)
}

/// The shape with what else decides which indexes are eligible: plans are remembered under this.
pub fn cache_key(q: &Query) -> String {
    shape_of(q, true)
}

fn shape_of(q: &Query, exact: bool) -> String {
    let mut out = String::new();
    shape(q.matcher.root(), exact, &mut out);
    if let Some(s) = &q.sort {
        out.push_str(&format!("|{}", &*s.spec));
    }
    if let Some(p) = &q.projection {
        out.push_str(&format!("@{}", p.spec()));
    }
    if let Some(c) = &q.ctx.collation {
        out.push_str(&format!("#{}", c.spec()));
    }
    out
}

fn shape(n: &crate::matcher::Node, exact: bool, out: &mut String) {
    use crate::matcher::{Node, Pred};
    let list = |name: &str, v: &[Node], out: &mut String| {
        out.push_str(name);
        out.push('[');
        for n in v {
            shape(n, exact, out);
            out.push(',');
        }
        out.push(']');
    };
    match n {
        Node::And(v) => list("an", v, out),
        Node::Or(v) => list("or", v, out),
        Node::Nor(v) => list("nr", v, out),
        Node::Not(n) => list("nt", std::slice::from_ref(n), out),
        Node::ElemMatchObject(m) => {
            list(&format!("eo{}", m.path.dotted()), std::slice::from_ref(&m.scope.root), out)
        }
        Node::ElemMatchValue(m) => list(&format!("ev{}", m.path.dotted()), &m.all, out),
        Node::Leaf(l) => {
            let op = match &l.pred {
                Pred::Cmp(c) => c.op.name(),
                Pred::In(list) if list.has_null() => "$in0",
                Pred::In(list) if !list.regexes.is_empty() => "$in/",
                Pred::In(_) => "$in",
                Pred::Regex(_) => "re",
                Pred::Exists => "ex",
                Pred::Type(_) => "ty",
                Pred::Size(_) => "sz",
                Pred::Mod(_) => "mo",
                Pred::Bits(b) => b.op.name(),
                Pred::Geo(_) => "ge",
                Pred::Bucket(_) => "bu",
                Pred::Near(_) => "ne",
                Pred::Implied(c) => c.op.name(),
            };
            // Constants that change which indexes are eligible belong to the shape.
            let kind = match &l.pred {
                Pred::Cmp(c) if exact => c.rhs.ty().name(),
                _ => "",
            };
            out.push_str(&format!("{op}{}:{kind}", l.path.dotted()));
        }
        Node::Expr(e) if e.keyword == "$where" => out.push_str("wh"),
        Node::Expr(_) => out.push_str("xp"),
        Node::Text(_) => out.push_str("te"),
        Node::JsonSchema(_) => out.push_str("js"),
        Node::SampleRate(_) => out.push_str("sr"),
        Node::AlwaysTrue => out.push_str("at"),
        Node::AlwaysFalse => out.push_str("af"),
    }
}
