use super::*;
use crate::ctx::QueryCtx;
use crate::matcher::Matcher;
use crate::plan::{Hint, Query, distinct_plan};
use crate::projection::Projection;
use crate::sort::SortPattern;
use crate::sort::tests::MemSpill;
use crate::testing::mem::MemSource;
use pando_bson::{Bson, Document, RawDoc, bson_array, doc};
use std::sync::Arc;

fn query(filter: Document) -> Query {
    let ctx = QueryCtx::default();
    Query::new("t.c", Arc::new(Matcher::parse(&filter.to_raw(), &ctx).unwrap()), ctx)
}
fn sorted_by(mut q: Query, spec: Document) -> Query {
    q.sort = Some(Arc::new(SortPattern::parse(&spec.to_raw()).unwrap()));
    q
}
fn projected(mut q: Query, spec: Document) -> Query {
    q.projection = Some(Arc::new(Projection::parse(&spec.to_raw(), &q.ctx).unwrap()));
    q
}
fn index(key: Document) -> Document {
    let name: Vec<String> = key.iter().map(|(k, _)| k.to_owned()).collect();
    doc! { "name": name.join("_"), "key": key }
}

/// All rows; puts the executor away at every `save_every`-th yield.
fn drain(ex: &mut Executor, src: &mut MemSource, steps: u32, save_every: u32) -> Vec<Document> {
    let mut out = Vec::new();
    let mut yields = 0;
    let mut quota = Quota::new(steps);
    loop {
        match ex.next(src, &mut quota).unwrap() {
            Step::Row(row) => out.push(Document::from(RawDoc::trusted(&row.doc))),
            Step::Eof => return out,
            Step::NeedYield => {
                yields += 1;
                quota = Quota::new(steps);
                if save_every > 0 && yields % save_every == 0 {
                    ex.save();
                }
            }
        }
    }
}
fn ids(rows: &[Document]) -> Vec<i64> {
    rows.iter().map(|d| d.get("_id").and_then(Bson::as_i64).unwrap()).collect()
}
fn stage(ex: &Executor, src: &MemSource) -> String {
    crate::plan::explain::one_line(ex.plan().unwrap(), &src.info)
}

fn numbers(n: i32) -> Vec<Document> {
    (0..n).map(|i| doc! { "_id": i, "a": (i * 7 % 10), "b": (i % 4), "c": [i, (i + 1)] }).collect()
}

#[test]
fn results_do_not_depend_on_where_the_run_is_interrupted() {
    let indexes = [index(doc! { "a": 1, "b": -1 }), index(doc! { "c": 1 })];
    let queries = || {
        [
            query(doc! { "a": { "$gt": 3 } }),
            query(doc! { "c": { "$gte": 10, "$lt": 30 } }),
            sorted_by(query(doc! { "a": { "$in": [1, 4, 7] } }), doc! { "b": 1, "_id": 1 }),
            sorted_by(query(doc! { "a": { "$in": [1, 4, 7] } }), doc! { "b": -1 }),
            query(doc! { "$or": [{ "a": 2 }, { "c": 5 }] }),
            query(doc! { "b": { "$ne": 2 } }),
            sorted_by(query(doc! {}), doc! { "a": -1, "_id": 1 }),
        ]
    };
    let mut src = MemSource::new(&numbers(60), &indexes);
    for (i, q) in queries().into_iter().enumerate() {
        let whole = {
            let mut ex = Executor::new(q, &src, Resources::default()).unwrap();
            drain(&mut ex, &mut src, 1_000_000, 0)
        };
        assert!(!whole.is_empty());
        for (steps, save) in [(1, 0), (1, 1), (3, 1), (5, 2)] {
            let q = queries().into_iter().nth(i).unwrap();
            let mut ex = Executor::new(q, &src, Resources::default()).unwrap();
            assert_eq!(drain(&mut ex, &mut src, steps, save), whole, "query {i}, {steps} steps");
        }
    }
}

#[test]
fn large_sorts_go_to_disk_and_come_back_in_order() {
    let mut src = MemSource::new(&numbers(500), &[]);
    let resources = |spill| Resources { spill };
    let q = || {
        let mut q = sorted_by(query(doc! {}), doc! { "b": 1, "_id": -1 });
        q.ctx.memory.sort = 4_000;
        q
    };
    let spill = Arc::new(MemSpill::default());
    let mut ex = Executor::new(q(), &src, resources(Some(spill.clone()))).unwrap();
    let got = ids(&drain(&mut ex, &mut src, 50, 3));
    let mut wanted: Vec<i64> = (0..500).collect();
    wanted.sort_by_key(|i| (i % 4, -i));
    assert_eq!(got, wanted);
    assert!(*spill.0.lock().unwrap() > 5 && ex.stats().used_disk());
    let mut ex = Executor::new(q(), &src, resources(None)).unwrap();
    let e = ex.next(&mut src, &mut Quota::new(10_000)).unwrap_err();
    assert_eq!(e.code.0, 292);
}

#[test]
fn covered_queries_read_no_documents() {
    let mut src = MemSource::new(&numbers(30), &[index(doc! { "a": 1, "b": -1 })]);
    let q = projected(query(doc! { "a": 7 }), doc! { "b": 1, "a": 1, "_id": 0 });
    let mut ex = Executor::new(q, &src, Resources::default()).unwrap();
    let rows = drain(&mut ex, &mut src, 100, 0);
    assert_eq!(rows, [doc! { "a": 7, "b": 3 }, doc! { "a": 7, "b": 1 }, doc! { "a": 7, "b": 1 }]);
    assert_eq!(src.fetches, 0);
    let stats = ex.stats();
    assert_eq!((stats.total_keys_examined(), stats.total_docs_examined()), (3, 0));
}

#[test]
fn gaps_between_bounds_are_skipped() {
    let docs: Vec<Document> = (0..1000).map(|i| doc! { "_id": i, "a": (i / 100), "b": (i % 100) }).collect();
    let mut src = MemSource::new(&docs, &[index(doc! { "a": 1, "b": 1 })]);
    for back in [false, true] {
        let mut q = query(doc! { "a": { "$gt": 2, "$lt": 6 }, "b": { "$in": [5, 50, 99] } });
        if back {
            q = sorted_by(q, doc! { "a": -1, "b": -1 });
        }
        let mut ex = Executor::new(q, &src, Resources::default()).unwrap();
        let mut got = ids(&drain(&mut ex, &mut src, 100, 1));
        if back {
            got.reverse();
        }
        assert_eq!(got, [305, 350, 399, 405, 450, 499, 505, 550, 599]);
        assert!(ex.stats().total_keys_examined() < 30, "{}", ex.stats().total_keys_examined());
    }
}

#[test]
fn a_document_with_an_array_comes_once() {
    let docs = [doc! { "_id": 1, "a": [1, 2, 3] }, doc! { "_id": 2, "a": 2 }];
    let mut src = MemSource::new(&docs, &[index(doc! { "a": 1 })]);
    let mut ex = Executor::new(query(doc! { "a": { "$gte": 1 } }), &src, Resources::default()).unwrap();
    assert_eq!(ids(&drain(&mut ex, &mut src, 1, 1)), [1, 2]);
    assert_eq!(ex.stats().inputs[0].dups_dropped, 2);
}

#[test]
fn rows_found_before_a_save_are_checked_again() {
    let docs = numbers(40);
    let mut src = MemSource::new(&docs, &[index(doc! { "a": 1, "b": 1 })]);
    // Sorted from index keys, then fetched.
    let q = sorted_by(query(doc! { "a": { "$gt": 5 } }), doc! { "b": 1 });
    let mut ex = Executor::new(q, &src, Resources::default()).unwrap();
    assert!(matches!(ex.next(&mut src, &mut Quota::new(1000)).unwrap(), Step::Row(_)));
    ex.save();
    let changed: Vec<Document> =
        docs.iter().map(|d| doc! { "_id": d.get("_id").unwrap().clone(), "a": 0 }).collect();
    let mut newer = MemSource::new(&changed, &[index(doc! { "a": 1, "b": 1 })]);
    assert!(matches!(ex.next(&mut newer, &mut Quota::new(1000)).unwrap(), Step::Eof));
}

#[test]
fn the_better_plan_wins_and_is_remembered() {
    let docs: Vec<Document> = (0..400).map(|i| doc! { "_id": i, "a": (i % 2), "b": i }).collect();
    let mut src = MemSource::new(&docs, &[index(doc! { "a": 1 }), index(doc! { "b": 1 })]);
    for round in 0..3 {
        let q = query(doc! { "a": 1, "b": { "$gt": (390 + 2 * round) } });
        let mut ex = Executor::new(q, &src, Resources::default()).unwrap();
        assert_eq!(ids(&drain(&mut ex, &mut src, 10, 0)).len(), 5 - round as usize);
        assert!(stage(&ex, &src).contains("IXSCAN(b;"), "{}", stage(&ex, &src));
        assert_eq!(ex.trial().is_some(), round < 2, "two wins are needed");
        assert_eq!(src.info.plan_cache.len(), 1);
        assert_eq!(ex.replanned(), None);
    }
    // The same shape, for which the remembered plan is a bad one: tried again.
    let q = query(doc! { "a": 1, "b": { "$gt": (-1) } });
    let mut ex = Executor::new(q, &src, Resources::default()).unwrap();
    assert_eq!(ids(&drain(&mut ex, &mut src, 10, 0)).len(), 200);
    assert!(ex.replanned().is_some_and(|why| why.contains("to take 8 works but it took at least 80 works")));
    assert!(!src.info.plan_cache.all()[0].active);
}

#[test]
fn tailable_scans_go_on_after_the_end() {
    let mut src = MemSource::new(&numbers(3), &[]).capped();
    let mut q = query(doc! {});
    q.tailable = true;
    let mut ex = Executor::new(q, &src, Resources::default()).unwrap();
    assert_eq!(drain(&mut ex, &mut src, 100, 0).len(), 3);
    assert!(matches!(ex.next(&mut src, &mut Quota::new(5)).unwrap(), Step::Eof));
    ex.save();
    let mut longer = MemSource::new(&numbers(5), &[]).capped();
    assert_eq!(ids(&drain(&mut ex, &mut longer, 100, 0)), [3, 4]);
    ex.save();
    let mut emptied = MemSource::new(&[], &[]).capped();
    assert_eq!(ex.next(&mut emptied, &mut Quota::new(5)).unwrap_err().code.0, 136);
}

#[test]
fn return_key_and_hints_use_the_index_named() {
    let mut src = MemSource::new(&numbers(3), &[index(doc! { "a": 1 })]);
    let mut q = query(doc! {});
    q.hint = Some(Hint::Name("a".into()));
    q.return_key = true;
    let mut ex = Executor::new(q, &src, Resources::default()).unwrap();
    assert_eq!(drain(&mut ex, &mut src, 100, 0), [doc! { "a": 0 }, doc! { "a": 4 }, doc! { "a": 7 }]);
}

/// The distinct values at `a` of what a run gives, one array level flattened.
fn values(rows: &[Document]) -> Vec<Bson> {
    let mut out: Vec<Bson> = Vec::new();
    for d in rows {
        match d.get("a") {
            Some(Bson::Array(items)) => out.extend(items.iter().cloned()),
            Some(v) => out.push(v.clone()),
            None => {}
        }
    }
    out.sort_by(pando_bson::cmp_bson);
    out.dedup_by(|a, b| pando_bson::cmp_bson(a, b).is_eq());
    out
}

#[test]
fn distinct_steps_from_value_to_value() {
    let mut docs: Vec<Document> = (0..300).map(|i| doc! { "_id": i, "a": (i % 5), "b": (i % 3) }).collect();
    let mut src = MemSource::new(&docs, &[index(doc! { "a": 1 }), index(doc! { "b": 1, "a": -1 })]);
    for (filter, field) in [(doc! {}, "a"), (doc! { "b": 1 }, "b_a"), (doc! { "a": { "$gt": 2 } }, "a")] {
        let q = query(filter.clone());
        let plan = distinct_plan(&q, "a", &src.info).unwrap();
        let mut ex = Executor::with_plan(q, plan, Resources::default());
        let rows = drain(&mut ex, &mut src, 2, 1);
        let mut ex_all = Executor::new(query(filter), &src, Resources::default()).unwrap();
        assert_eq!(values(&rows), values(&drain(&mut ex_all, &mut src, 100, 0)));
        assert!(ex.stats().keys_examined < 10 && stage(&ex, &src).contains(field));
    }
    assert!(distinct_plan(&query(doc! { "b": 1, "c": 2 }), "a", &src.info).is_none());
    docs.extend([
        doc! { "_id": 300, "a": [9, [8, 7], Bson::Null] },
        doc! { "_id": 301, "a": [] },
        doc! { "_id": 302 },
        doc! { "_id": 303, "a": Bson::Null },
    ]);
    let mut src = MemSource::new(&docs, &[index(doc! { "a": 1 })]);
    let q = query(doc! {});
    let plan = distinct_plan(&q, "a", &src.info).unwrap();
    let mut ex = Executor::with_plan(q, plan, Resources::default());
    let mut wanted = bson_array![Bson::Null, 0, 1, 2, 3, 4, 9];
    wanted.push(Bson::Array(bson_array![8, 7]));
    assert_eq!(values(&drain(&mut ex, &mut src, 3, 1)), wanted);
    assert!(distinct_plan(&query(doc! { "a": { "$gt": 2 } }), "a", &src.info).is_none());
}
