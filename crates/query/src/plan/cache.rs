//! Remembered winners: which plan was best for a query shape.

use super::Query;
use pando_bson::DocBuf;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Remembered plan choices of one collection, by query shape. Dies with the collection's `CollectionInfo`, so
/// index changes need no invalidation.
#[derive(Debug, Default)]
pub struct PlanCache {
    entries: Mutex<BTreeMap<String, CachedPlan>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedPlan {
    /// [`super::Solution::signature`] of the winner.
    pub signature: String,
    /// Steps it took to win; taking many more means that the choice has grown bad.
    pub works: u64,
    /// The query it was chosen for, and the plan, as explain shows them.
    pub query: DocBuf,
    pub plan: DocBuf,
    /// `queryHash` and `planCacheKey`.
    pub hashes: (String, String),
    /// Unix milliseconds.
    pub created_ms: i64,
}

impl PlanCache {
    pub fn get(&self, shape: &str) -> Option<CachedPlan> {
        self.lock().get(shape).cloned()
    }
    pub fn put(&self, shape: String, plan: CachedPlan) {
        let mut entries = self.lock();
        if entries.len() >= pando_base::limits::PLAN_CACHE_ENTRIES_MAX && !entries.contains_key(&shape) {
            // Any entry will do: a lost one costs one more trial.
            entries.pop_first();
        }
        entries.insert(shape, plan);
    }
    /// All entries.
    pub fn all(&self) -> Vec<CachedPlan> {
        self.lock().values().cloned().collect()
    }
    pub fn remove(&self, shape: &str) {
        self.lock().remove(shape);
    }
    pub fn clear(&self) {
        self.lock().clear();
    }
    pub fn len(&self) -> usize {
        self.lock().len()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, CachedPlan>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A query without its constants: operators and paths, sort, projection, collation.
pub fn query_shape(q: &Query) -> String {
    let mut out = String::new();
    shape(q.matcher.root(), &mut out);
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

fn shape(n: &crate::matcher::Node, out: &mut String) {
    use crate::matcher::{Node, Pred};
    let list = |name: &str, v: &[Node], out: &mut String| {
        out.push_str(name);
        out.push('[');
        for n in v {
            shape(n, out);
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
                Pred::Near(_) => "ne",
                Pred::Implied(c) => c.op.name(),
            };
            // Constants that change which indexes are eligible belong to the shape.
            let kind = match &l.pred {
                Pred::Cmp(c) => c.rhs.ty().name(),
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
