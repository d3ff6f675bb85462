//! Every plan on a shard that owns a part of a collection gives what the same plan gives where there is nothing but that part.

use super::golden::query_of;
use super::mem::MemSource;
use super::plans::documents;
use crate::exec::{Executor, Quota, Resources, Step};
use crate::matcher::Matcher;
use crate::plan::{PlanNode, Query, explain, solutions};
use crate::source::{Owned, Source};
use pando_bson::extjson::parse;
use pando_bson::{Bson, DocBuilder, Document, RawDoc};
use std::sync::Arc;

/// Owns about half of all documents, by the values of some fields.
#[derive(Debug)]
struct Half(Vec<String>);

fn value_at<'a>(doc: &'a RawDoc, path: &str) -> Option<pando_bson::Value<'a>> {
    match path.split_once('.') {
        None => doc.get(path),
        Some((head, rest)) => value_at(doc.get(head)?.as_doc()?, rest),
    }
}

impl Owned for Half {
    fn fields(&self) -> &[String] {
        &self.0
    }
    fn owns(&self, doc: &RawDoc) -> bool {
        let sum: usize = self.0.iter().map(|f| value_at(doc, f).map_or(0, |v| v.to_string().len())).sum();
        let first = value_at(doc, &self.0[0]).and_then(|v| v.as_i64()).unwrap_or(0);
        (sum as i64 + first) % 2 == 0
    }
    fn is_pinned_by(&self, _: &Matcher) -> bool {
        false
    }
}

fn run(q: &Query, plan: PlanNode, src: &mut MemSource) -> Vec<String> {
    let mut ex = Executor::with_plan(q.clone(), plan, Resources::default());
    let mut rows = Vec::new();
    loop {
        match ex.next(src, &mut Quota::new(1000)).unwrap() {
            Step::Row(row) => rows.push(RawDoc::trusted(&row.doc).to_string()),
            Step::NeedYield => {}
            Step::Eof => break,
        }
    }
    rows.sort();
    rows
}

#[test]
fn plans_show_what_the_shard_owns() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/plans.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let (mut docs, mut indexes) = (Vec::new(), Vec::new());
    let (mut ran, mut by_keys) = (0, 0);
    for line in text.lines() {
        let case = parse(line).unwrap();
        let Some(query) = case.get("query").and_then(Bson::as_doc) else {
            (docs, indexes) = (documents(case.get("docs")), documents(case.get("indexes")));
            continue;
        };
        let mut cmd = DocBuilder::new();
        cmd.str("find", "c");
        cmd.document(query);
        let q = query_of(&cmd.finish()).unwrap();
        for fields in [vec!["_id"], vec!["a"], vec!["a", "b"]] {
            let owned: Arc<dyn Owned> = Arc::new(Half(fields.iter().map(|f| (*f).to_owned()).collect()));
            let part: Vec<Document> = docs.iter().filter(|d| owned.owns(&d.to_raw())).cloned().collect();
            let mut whole = MemSource::new(&docs, &indexes);
            let mut alone = MemSource::new(&part, &indexes);
            let filtered = Query { owned: Some(owned), ..q.clone() };
            let plain = solutions(&q, whole.collection()).unwrap();
            let plans = solutions(&filtered, whole.collection()).unwrap();
            assert_eq!(plain.len(), plans.len());
            for (plain, plan) in plain.into_iter().zip(plans) {
                let line = explain::one_line(&plan.root, whole.collection());
                assert_eq!(line.matches("SHARDING_FILTER").count(), usize::from(line != "EOF"), "{line}");
                by_keys += usize::from(plan.root.any(
                    &|n| matches!(n, PlanNode::ShardFilter { key_fields, .. } if !key_fields.is_empty()),
                ));
                let got = run(&filtered, plan.root, &mut whole);
                let wanted = run(&q, plain.root, &mut alone);
                // Which of equal rows are left out is not said.
                match q.limit.is_some() || q.skip > 0 {
                    true => assert_eq!(got.len(), wanted.len(), "{query:?} {line}"),
                    false => assert_eq!(got, wanted, "{query:?} {line}"),
                }
                ran += 1;
            }
        }
    }
    assert!(ran > 1400 && by_keys > 20, "{ran} {by_keys}");
}
