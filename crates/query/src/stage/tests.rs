use super::*;
use crate::ctx::QueryCtx;
use crate::projection::Projection;
use crate::sort::{SpillFile, SpillSpace};
use crate::stage::spec::Spec;
use pando_base::{ErrorCode, Result, patience};
use pando_bson::{Bson, Document, bson_array, doc};
use pando_bson::{DocBuf, RawDoc};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

fn array(stages: Vec<Bson>) -> DocBuf {
    let mut d = Document::new();
    d.push("p", Bson::Array(stages));
    let raw = d.to_raw();
    raw.get("p").and_then(|v| v.as_array()).expect("an array").to_buf()
}

fn pipeline(stages: Vec<Bson>) -> Result<Pipeline> {
    Pipeline::parse(&array(stages), &QueryCtx::default())
}

/// Pulls everything, yielding before every third row.
struct Rows(std::vec::IntoIter<DocBuf>, usize);
impl Input for Rows {
    fn next(&mut self) -> Result<Step> {
        self.1 += 1;
        if self.1.is_multiple_of(3) {
            return Ok(Step::NeedYield);
        }
        Ok(self.0.next().map_or(Step::Eof, |d| Step::Row(d.into())))
    }
}

fn drain(mut runner: Runner, docs: &[Document]) -> Result<Vec<Document>> {
    let raw: Vec<DocBuf> = docs.iter().map(Document::to_raw).collect();
    let mut input = Rows(raw.into_iter(), 0);
    let mut out = Vec::new();
    loop {
        match runner.next(&mut input)? {
            Step::Row(row) => out.push(Document::from(row.doc())),
            Step::NeedYield => {}
            Step::Eof => return Ok(out),
        }
    }
}

fn run(stages: Vec<Bson>, docs: &[Document]) -> Vec<Document> {
    drain(pipeline(stages).expect("parses").start(&RunEnv::default()).expect("starts"), docs).expect("runs")
}

fn refused(stages: Vec<Bson>) -> String {
    match pipeline(stages) {
        Ok(_) => "accepted".to_owned(),
        Err(e) => format!("{} {}", e.code.0, e.message),
    }
}

fn sample_docs() -> Vec<Document> {
    vec![
        doc! { "_id": 1, "g": "x", "v": 5, "l": [1, 2] },
        doc! { "_id": 2, "g": "y", "v": 2.5, "l": [] },
        doc! { "_id": 3, "g": "x", "v": 7, "d": { "p": 1, "q": 2 } },
        doc! { "_id": 4, "v": 1, "l": 9 },
    ]
}

#[test]
fn groups_collect_their_documents() {
    let got = run(
        bson_array!({ "$group": { "_id": "$g", "s": { "$sum": "$v" }, "n": { "$count": {} }, "first": { "$first": "$_id" }, "all": { "$push": "$v" } } }),
        &sample_docs(),
    );
    assert_eq!(
        got,
        [
            doc! { "_id": "x", "s": 12, "n": 2, "first": 1, "all": [5, 7] },
            doc! { "_id": "y", "s": 2.5, "n": 1, "first": 2, "all": [2.5] },
            doc! { "_id": Bson::Null, "s": 1, "n": 1, "first": 4, "all": [1] },
        ]
    );
}

#[test]
fn equal_numbers_of_any_type_are_one_group_and_the_first_is_shown() {
    let docs = [
        doc! { "g": 1 },
        doc! { "g": 1.0 },
        doc! { "g": 1i64 },
        doc! { "g": { "a": 2 } },
        doc! { "g": { "a": 2.0 } },
    ];
    let got = run(bson_array!({ "$group": { "_id": "$g", "n": { "$sum": 1 } } }), &docs);
    assert_eq!(got, [doc! { "_id": 1, "n": 3 }, doc! { "_id": { "a": 2 }, "n": 2 }]);
}

#[test]
fn projections_keep_drop_and_compute() {
    let p = |spec: Document| {
        let mut stages = Vec::new();
        stages.push(Bson::Document(doc! { "$project": spec }));
        run(stages, &sample_docs()[2..3]).remove(0)
    };
    assert_eq!(p(doc! { "v": 1 }), doc! { "_id": 3, "v": 7 });
    assert_eq!(p(doc! { "v": 1, "_id": 0 }), doc! { "v": 7 });
    assert_eq!(p(doc! { "v": 0, "d.p": 0 }), doc! { "_id": 3, "g": "x", "d": { "q": 2 } });
    assert_eq!(
        p(doc! { "d": { "q": 1 }, "n": { "$add": ["$v", 1] } }),
        doc! { "_id": 3, "d": { "q": 2 }, "n": 8 }
    );
    assert_eq!(p(doc! { "d.q": "$v", "d.p": 1 }), doc! { "_id": 3, "d": { "p": 1, "q": 7 } });
    assert_eq!(p(doc! { "_id": "$v" }), doc! { "_id": 7 });
}

#[test]
fn added_fields_replace_in_place_or_go_to_the_end() {
    let docs = [doc! { "a": 1, "b": { "c": 1 }, "l": [{ "x": 1 }, 2] }];
    let got =
        run(bson_array!({ "$set": { "a": "$b.c", "n": 5, "b.d": 2, "l.y": 3, "gone": "$$REMOVE" } }), &docs);
    assert_eq!(
        got,
        [doc! { "a": 1, "b": { "c": 1, "d": 2 }, "l": [{ "x": 1, "y": 3 }, { "y": 3 }], "n": 5 }]
    );
    let got = run(bson_array!({ "$unset": ["a", "b.c"] }), &docs);
    assert_eq!(got, [doc! { "b": {}, "l": [{ "x": 1 }, 2] }]);
}

#[test]
fn unwinding_gives_a_document_per_element() {
    let got = run(bson_array!({ "$unwind": "$l" }, { "$project": { "l": 1 } }), &sample_docs());
    assert_eq!(got, [doc! { "_id": 1, "l": 1 }, doc! { "_id": 1, "l": 2 }, doc! { "_id": 4, "l": 9 }]);
    let got = run(
        bson_array!({ "$unwind": { "path": "$l", "includeArrayIndex": "i", "preserveNullAndEmptyArrays": true } }, { "$project": { "l": 1, "i": 1 } }),
        &sample_docs(),
    );
    let want = [
        doc! { "_id": 1, "l": 1, "i": 0i64 },
        doc! { "_id": 1, "l": 2, "i": 1i64 },
        doc! { "_id": 2, "i": Bson::Null },
        doc! { "_id": 3, "i": Bson::Null },
        doc! { "_id": 4, "l": 9, "i": Bson::Null },
    ];
    assert_eq!(got, want);
}

#[test]
fn unwinding_copies_only_what_is_looked_at_behind_it() {
    let kept = |stages: Vec<Bson>| {
        let p = pipeline(stages).expect("parses");
        let keep = p.stages.iter().find_map(|s| match &s.spec {
            Spec::Unwind(unwind) => Some(unwind.keep.clone()),
            _ => None,
        });
        let keep = keep.expect("an $unwind");
        keep.map(|names| names.into_iter().collect::<Vec<_>>().join(" "))
    };
    let by_element = bson_array!({ "$unwind": "$l" }, { "$group": { "_id": "$l", "n": { "$sum": "$d.p" } } });
    assert_eq!(kept(by_element.clone()).as_deref(), Some("d l"));
    assert_eq!(
        kept(bson_array!({ "$unwind": "$l" }, { "$match": { "v": 1 } }, { "$count": "n" })).as_deref(),
        Some("l")
    );
    assert_eq!(kept(bson_array!({ "$unwind": "$l" }, { "$sort": { "l": 1 } })), None);
    assert_eq!(
        kept(bson_array!({ "$unwind": "$l" }, { "$group": { "_id": "$l", "all": { "$push": "$$ROOT" } } })),
        None
    );
    let docs = [
        doc! { "_id": 1, "l": [1, 2], "d": { "p": 3 }, "other": "x" },
        doc! { "_id": 2, "l": 1, "d": { "p": 4 } },
    ];
    let mut got = run(by_element, &docs);
    got.sort_by_key(|d| d.get("_id").map(|v| format!("{v:?}")));
    assert_eq!(got, [doc! { "_id": 1, "n": 7 }, doc! { "_id": 2, "n": 3 }]);
}

#[test]
fn sorting_skipping_limiting_and_counting() {
    let docs = sample_docs();
    let ids = |stages| -> Vec<i64> {
        run(stages, &docs).iter().filter_map(|d| d.get("_id").and_then(Bson::as_i64)).collect()
    };
    assert_eq!(ids(bson_array!({ "$sort": { "v": -1 } })), [3, 1, 2, 4]);
    assert_eq!(ids(bson_array!({ "$sort": { "v": 1 } }, { "$skip": 1 }, { "$limit": 2 })), [2, 1]);
    assert_eq!(
        ids(bson_array!({ "$match": { "v": { "$gt": 2 } } }, { "$sort": { "_id": -1 } }, { "$limit": 1 })),
        [3]
    );
    assert_eq!(run(bson_array!({ "$count": "n" }), &docs), [doc! { "n": 4 }]);
    assert_eq!(run(bson_array!({ "$match": { "v": 99 } }, { "$count": "n" }), &docs), []);
    let got = run(bson_array!({ "$sortByCount": "$g" }), &docs);
    assert_eq!(got[0], doc! { "_id": "x", "count": 2 });
    assert_eq!(ids(bson_array!({ "$sample": { "size": 2 } })).len(), 2);
}

#[test]
fn new_roots_must_be_objects() {
    let docs = [doc! { "a": { "x": 1 } }];
    assert_eq!(run(bson_array!({ "$replaceWith": "$a" }), &docs), [doc! { "x": 1 }]);
    let runner = pipeline(bson_array!({ "$replaceRoot": { "newRoot": "$a.x" } })).expect("parses");
    let e = drain(runner.start(&RunEnv::default()).expect("starts"), &docs).expect_err("refused");
    assert_eq!(
        &*e.message,
        "PlanExecutor error during aggregation :: caused by :: 'newRoot' expression  must evaluate to an object, but \
         resulting value was: 1. Type of resulting value: 'int'. Input document: {a: {x: 1}}"
    );
}

#[test]
fn buckets_are_half_open() {
    let got = run(
        bson_array!({ "$bucket": { "groupBy": "$v", "boundaries": [0, 2, 6], "default": "rest" } }),
        &sample_docs(),
    );
    assert_eq!(
        got,
        [doc! { "_id": 0, "count": 1 }, doc! { "_id": 2, "count": 2 }, doc! { "_id": "rest", "count": 1 }]
    );
}

#[test]
fn stages_are_refused_with_mongodbs_codes_and_texts() {
    let cases: Vec<(Vec<Bson>, &str)> = vec![
        (bson_array!({ "$nope": 1 }), "40324 Unrecognized pipeline stage name: '$nope'"),
        (bson_array!({ "$lookup": {} }), "9 must specify 'pipeline' when 'from' is empty"),
        (bson_array!({}), "40323 A pipeline stage specification object must contain exactly one field."),
        (bson_array!(5), "14 Each element of the 'pipeline' array must be an object"),
        (bson_array!({ "$limit": 0 }), "15958 the limit must be positive"),
        (bson_array!({ "$match": 5 }), "15959 the match filter must be an expression in an object"),
        (
            bson_array!({ "$project": {} }),
            "51272 Invalid $project :: caused by :: projection specification must have at least one field",
        ),
        (
            bson_array!({ "$project": { "a": 1, "b": 0 } }),
            "31254 Invalid $project :: caused by :: Cannot do exclusion on field b in inclusion projection",
        ),
        (
            bson_array!({ "$project": { "a": { "$nope": 1 } } }),
            "31325 Invalid $project :: caused by :: Unknown expression $nope",
        ),
        (
            bson_array!({ "$project": { "a": { "$divide": [1, 0] } } }),
            "2 Failed to optimize pipeline :: caused by :: can't $divide by zero",
        ),
        (bson_array!({ "$group": {} }), "15955 a group specification must include an _id"),
        (
            bson_array!({ "$group": { "_id": 1, "a": { "$nope": 1 } } }),
            "15952 unknown group operator '$nope'",
        ),
        (
            bson_array!({ "$match": {} }, { "$indexStats": {} }),
            "40602 $indexStats is only valid as the first stage in a pipeline",
        ),
    ];
    for (stages, text) in cases {
        assert_eq!(refused(stages.clone()), text, "{stages:?}");
    }
}

#[test]
fn a_group_tells_missing_from_null_among_several_keys_only() {
    let docs = [doc! { "_id": 1, "a": 1, "b": (Bson::Null) }, doc! { "_id": 2, "a": 1 }];
    let groups = |id: Document| run(bson_array!({ "$group": { "_id": id } }), &docs);
    assert_eq!(groups(doc! { "x": "$b" }), [doc! { "_id": { "x": (Bson::Null) } }]);
    let two = groups(doc! { "x": "$a", "y": "$b" });
    assert!(two.len() == 2 && two.contains(&doc! { "_id": { "x": 1 } }), "{two:?}");
}

#[test]
fn the_find_plan_takes_the_leading_stages() {
    let mut p = pipeline(bson_array!(
        { "$match": { "a": 1 } }, { "$sort": { "b": 1 } }, { "$match": { "c": 2 } }, { "$skip": 2 }, { "$limit": 10 },
        { "$skip": 3 }, { "$group": { "_id": "$x.y", "s": { "$sum": "$z" } } }
    ))
    .expect("parses");
    let find = p.take_find();
    assert!(p.shown().len() == 1 && p.shown()[0].as_ref().is_some_and(|d| d.elem("$group").is_some()));
    assert_eq!(
        Document::from(find.matcher.expect("a filter").filter()),
        doc! { "$and": [{ "a": 1 }, { "c": 2 }] }
    );
    assert!(find.sort.is_some());
    assert_eq!((find.skip, find.limit), (5, Some(7)));
    assert_eq!(find.fields, Some(vec!["x.y".to_owned(), "z".to_owned()]));
    // What passes whole documents on needs whole documents.
    let mut p = pipeline(bson_array!({ "$match": { "a": 1 } }, { "$set": { "b": 1 } })).expect("parses");
    assert_eq!(p.take_find().fields, None);
    let mut p = pipeline(bson_array!({ "$unwind": "$l" }, { "$count": "n" })).expect("parses");
    assert_eq!(p.take_find().fields, Some(vec!["l".to_owned()]));
}

#[derive(Default)]
struct MemSpace(Arc<AtomicUsize>);
struct MemFile(Mutex<Vec<u8>>);
impl SpillSpace for MemSpace {
    fn create(&self) -> Result<Box<dyn SpillFile>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(MemFile(Mutex::default())))
    }
}
impl SpillFile for MemFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.get_mut().expect("not poisoned").extend_from_slice(bytes);
        Ok(())
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let all = self.0.lock().expect("not poisoned");
        let rest = &all[(offset as usize).min(all.len())..];
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }
    fn len(&self) -> u64 {
        self.0.lock().expect("not poisoned").len() as u64
    }
}

/// Documents that make many groups with a lot in them.
struct Many(u32);
impl Iterator for Many {
    type Item = Row;
    fn next(&mut self) -> Option<Row> {
        let i = self.0;
        self.0 += 1;
        (i < 6000).then(|| {
            let d = doc! { "g": (i % 1500) as i32, "v": 0.1, "pad": "x".repeat(30_000) };
            d.to_raw().into()
        })
    }
}

#[test]
fn a_group_that_does_not_fit_spills_and_loses_nothing() {
    let stages = bson_array!({ "$group": { "_id": "$g", "s": { "$sum": "$v" }, "a": { "$avg": "$v" }, "p": { "$push": "$pad" } } });
    let files = Arc::new(AtomicUsize::new(0));
    let env = RunEnv { spill: Some(Arc::new(MemSpace(files.clone()))), collections: None };
    let mut runner = pipeline(stages.clone()).expect("parses").start(&env).expect("starts");
    let mut input = Many(0);
    let mut groups = 0;
    while let Step::Row(row) = runner.next(&mut input).expect("runs") {
        let d = row.doc();
        assert_eq!(d.get("p").and_then(|v| v.as_array()).map(|a| a.count()), Some(4));
        assert_eq!(d.get("s").and_then(|v| v.as_f64()), Some(0.4));
        assert_eq!(d.get("a").and_then(|v| v.as_f64()), Some(0.1));
        groups += 1;
    }
    assert_eq!(groups, 1500);
    assert!(files.load(Ordering::Relaxed) > 0);
    // Without a place to spill to it fails.
    let mut runner = pipeline(stages).expect("parses").start(&RunEnv::default()).expect("starts");
    let e = runner.next(&mut Many(0)).expect_err("too much memory");
    assert_eq!(e.code.0, 292);
}

#[test]
fn stages_that_hold_rows_hold_what_is_looked_at_and_may_spill() {
    let run = |stages: Vec<Bson>, spill: bool| {
        let files = Arc::new(AtomicUsize::new(0));
        let space = MemSpace(files.clone());
        let spill = spill.then(|| Arc::new(space) as Arc<dyn SpillSpace>);
        let mut runner =
            pipeline(stages).expect("parses").start(&RunEnv { spill, collections: None }).expect("starts");
        let (mut input, mut rows) = (Many(0), Vec::new());
        loop {
            match runner.next(&mut input) {
                Ok(Step::Row(row)) => rows.push(row.into_bytes()),
                Ok(Step::NeedYield) => {}
                Ok(Step::Eof) => return Ok((rows, files.load(Ordering::Relaxed))),
                Err(e) => return Err(e.code.0),
            }
        }
    };
    let sum = doc! { "$setWindowFields": { "partitionBy": { "$mod": ["$g", 2] }, "output": { "n": { "$sum": 1 } } } };
    let last = doc! { "$group": { "_id": Bson::Null, "n": { "$last": "$n" } } };
    let (rows, files) = run(bson_array![sum.clone(), last], false).expect("has room");
    assert_eq!((rows.len(), files), (1, 0));
    assert_eq!(RawDoc::trusted(&rows[0]).get("n").and_then(|v| v.as_i64()), Some(3000));
    assert_eq!(run(bson_array![sum], false), Err(292));
    let sample = doc! { "$sample": { "size": 5000 } };
    assert_eq!(run(bson_array![sample.clone()], false), Err(292));
    let (rows, files) = run(bson_array![sample], true).expect("spills");
    assert!(rows.len() == 5000 && files > 0);
}

#[test]
fn each_stage_counts_the_rows_it_gave() {
    let stages = bson_array![{ "$unwind": "$l" }, { "$match": { "l": { "$gt": 1 } } }, { "$skip": 1 }];
    let mut runner = pipeline(stages).expect("parses").start(&RunEnv::default()).expect("starts");
    let mut input = sample_docs().iter().map(|d| Row::from(d.to_raw())).collect::<Vec<_>>().into_iter();
    while let Step::Row(_) = runner.next(&mut input).expect("runs") {}
    assert_eq!(runner.ran().iter().map(|s| s.returned).collect::<Vec<_>>(), [3, 2, 1]);
}

#[test]
fn stages_nest_no_deeper_together_than_values_can_be_walked() {
    let wrap =
        |levels: usize| (0..levels).fold(Bson::from("$r"), |inner, _| Bson::Document(doc! { "x": inner }));
    let pipeline = |n: usize, levels: usize| {
        let stage = || Bson::Document(doc! { "$set": { "r": wrap(levels) } });
        let mut d = Document::new();
        d.push("p", Bson::Array((0..n).map(|_| stage()).collect()));
        let raw = d.to_raw();
        let stages = raw.get("p").and_then(|v| v.as_array()).unwrap();
        Pipeline::parse(stages, &QueryCtx::default()).map(drop).map_err(|e| e.code.0)
    };
    assert_eq!(pipeline(900, 5), Ok(()));
    assert_eq!(pipeline(900, 100), Err(15));
}

#[test]
fn a_reply_nests_no_deeper_than_clients_read() {
    let nested = |n: usize| doc! { "$reduce": { "input": { "$range": [0, n as i32] }, "initialValue": 1, "in": { "a": "$$value" } } };
    let run = |stages: Vec<Bson>| {
        let mut runner = pipeline(stages).expect("parses").start(&RunEnv::default()).expect("starts");
        let mut input = std::iter::once(Row::from(doc! { "_id": 1 }.to_raw()));
        runner.next(&mut input).map(drop).map_err(|e| e.code.0)
    };
    let project = |n| Bson::Document(doc! { "$project": { "x": nested(n) } });
    assert_eq!(run(vec![project(199)]), Ok(()));
    assert_eq!(run(vec![project(200)]), Err(15));
    // On its way it may be deeper.
    let kind = Bson::Document(doc! { "$project": { "x": { "$type": "$x" } } });
    assert_eq!(run(vec![project(300), kind]), Ok(()));
    let projection = |n| {
        let p = Projection::parse(&doc! { "x": nested(n) }.to_raw(), &QueryCtx::default()).expect("parses");
        p.apply(&doc! { "_id": 1 }.to_raw(), &Default::default()).map(drop).map_err(|e| e.code.0)
    };
    assert_eq!((projection(199), projection(200)), (Ok(()), Err(15)));
}

#[test]
fn densify_passes_numbers_beyond_all_steps() {
    let decimal = |text: &str| Bson::Decimal128(text.parse().expect("a decimal"));
    for far in ["1E+40", "9E+6144", "Infinity"] {
        let got = run(
            bson_array!({ "$densify": { "field": "c", "range": { "step": 1, "bounds": [0, 3] } } }),
            &[doc! { "_id": 0, "c": decimal(far) }],
        );
        let expected =
            [doc! { "c": 0 }, doc! { "c": 1 }, doc! { "c": 2 }, doc! { "_id": 0, "c": decimal(far) }];
        assert_eq!(got, expected, "{far}");
    }
}

#[test]
fn fill_refuses_names_of_partitions_that_no_document_can_have() {
    let fill = |how: Document| bson_array!({ "$fill": { "partitionByFields": ["a\u{0}b"], "output": { "x": how } } });
    let refusal = refused(fill(doc! { "method": "locf" }));
    assert_eq!(refusal, "15998 FieldPath field names may not be empty strings.");
    // They are not looked at when nothing is computed from neighbours.
    assert_eq!(refused(fill(doc! { "value": 1 })), "accepted");
}

fn integers(n: i32) -> Bson {
    Bson::Array((0..n).map(Bson::Int32).collect())
}

/// A document of 200 KB put into each of 10,000 elements would take 2 GB.
#[test]
fn a_large_value_in_each_element_of_an_array_is_refused() {
    let doc = doc! { "_id": 1, "a": integers(10_000), "big": "x".repeat(200_000) };
    for stage in [
        doc! { "$addFields": { "a.b": "$big" } },
        doc! { "$project": { "a.b": "$big" } },
        doc! { "$project": { "a": { "b": "$big" } } },
        doc! { "$setWindowFields": { "output": { "a.b": { "$max": "$big" } } } },
        doc! { "$setWindowFields": { "output": { "a.b": { "$max": "$big" }, "a.c": { "$push": "$big" } } } },
        doc! { "$project": { "r": { "$map": { "input": "$a", "in": "$big" } } } },
        doc! { "$project": { "r": { "$map": { "input": "$a", "in": { "x": "$big" } } } } },
    ] {
        let shown = format!("{stage:?}");
        let parsed = pipeline(bson_array!(stage)).expect("parses");
        let runner = parsed.start(&RunEnv::default()).expect("starts");
        let e = drain(runner, std::slice::from_ref(&doc)).expect_err(&shown);
        assert_eq!(e.code, ErrorCode::ExceededMemoryLimit, "{shown}");
    }
}

/// Counts how often it is asked whether it goes on.
#[derive(Default)]
struct Asked(AtomicUsize);

impl patience::Operation for Asked {
    fn check(&self) -> Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    fn now(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
    fn step_aside(&self, _: std::time::Duration) {}
    fn pause(&self, _: std::time::Duration) {}
}

/// Each of its elements makes `$a.b` walk the whole array: 4,000,000 steps.
#[test]
fn a_path_over_an_array_is_work_that_is_counted() {
    let stage = doc! { "$addFields": { "a.b": { "$ifNull": ["$a.b", 1] } } };
    let doc = doc! { "_id": 1, "a": integers(2_000) };
    let parsed = pipeline(bson_array!(stage)).expect("parses");
    let runner = parsed.start(&RunEnv::default()).expect("starts");
    let asked = Arc::new(Asked::default());
    patience::run_within(asked.clone(), || drain(runner, &[doc])).expect("runs");
    assert!(asked.0.load(Ordering::Relaxed) > 4_000_000 / pando_base::limits::PATIENCE_STEPS / 2);
}

#[test]
fn bounds_of_buckets_may_be_computed() {
    let sum = |a: i32, b: i32| Bson::from(doc! { "$add": [a, b] });
    let bounds = |low, high| Bson::Array(vec![low, high]);
    let stage = |bounds: Bson, default: Bson| bson_array!({ "$bucket": { "groupBy": "$v", "boundaries": bounds, "default": default } });
    assert_eq!(
        run(stage(bounds(sum(1, 1), sum(3, 3)), sum(8, 1)), &sample_docs()),
        [doc! { "_id": 2, "count": 2 }, doc! { "_id": 9, "count": 2 }]
    );
    assert!(refused(stage(bounds(5.into(), sum(1, 0)), 9.into())).starts_with("40194"));
    assert!(refused(stage(bounds(1.into(), 9.into()), sum(1, 1))).starts_with("40199"));
}

#[test]
fn a_list_of_directions_is_taken_for_an_object() {
    let top = |by: Bson| bson_array!({ "$group": { "_id": 1, "x": { "$top": { "sortBy": by, "output": "$_id" } } } });
    assert_eq!(run(top(bson_array!(1).into()), &sample_docs()), [doc! { "_id": 1, "x": 1 }]);
    assert_eq!(refused(top(bson_array!("a").into())), "15974 Illegal key in $sort specification: 0: \"a\"");
    assert!(refused(top(5.into())).starts_with("10065"));
}

#[test]
fn how_many_values_a_bucket_keeps_is_known_when_it_is_read() {
    let auto = |n: Bson| {
        let first = doc! { "$firstN": { "input": 1, "n": n } };
        let output = doc! { "x": first, "y": { "$min": { "$nope": 1 } } };
        bson_array!({ "$bucketAuto": { "groupBy": "$v", "buckets": 2, "output": output } })
    };
    assert_eq!(refused(auto(doc! { "$divide": [1, 0] }.into())), "2 can't $divide by zero");
    assert!(refused(auto("$v".into())).starts_with("4544714"));
    assert!(refused(auto(2.into())).starts_with("168"));
}

#[test]
fn a_definition_is_read_and_not_evaluated() {
    let half = || doc! { "$divide": [1, 0] };
    let within = |stage: Document| Bson::Array(vec![stage.into()]);
    for stage in [
        doc! { "$project": { "a": half() } },
        doc! { "$match": { "$expr": half() } },
        doc! { "$bucket": { "groupBy": half(), "boundaries": [0, 1] } },
        doc! { "$facet": { "f": within(doc! { "$group": { "_id": half() } }) } },
        doc! { "$unionWith": { "coll": "c", "pipeline": within(doc! { "$match": { "$expr": half() } }) } },
        doc! { "$project": { "a": { "$meta": "textScore" } } },
        doc! { "$geoNear": { "near": half(), "distanceField": "d" } },
    ] {
        let stages = array(vec![Bson::from(stage)]);
        assert!(Pipeline::check_definition(&stages).is_ok(), "{stages:?}");
        assert!(Pipeline::parse(&stages, &QueryCtx::default()).is_err(), "{stages:?}");
    }
    let wrong = array(bson_array!({ "$project": { "a": "$$nope" } }));
    assert_eq!(Pipeline::check_definition(&wrong).unwrap_err().code.0, 17276);
}

#[test]
fn facets_ask_for_distances_and_know_no_sort_keys() {
    let facet = |stages: Vec<Bson>| bson_array!({ "$facet": { "f": Bson::Array(stages) } });
    let asks = |meta: &str| Bson::from(doc! { "$project": { "m": { "$meta": meta } } });
    assert!(refused(facet(vec![asks("geoNearDistance")])).starts_with("40218"));
    let sorted = facet(vec![doc! { "$sort": { "_id": 1 } }.into(), asks("sortKey")]);
    assert_eq!(run(sorted, &[doc! { "_id": 1 }]), [doc! { "f": [{ "_id": 1 }] }]);
}

#[test]
fn a_wildcard_projection_computes_nothing() {
    let code = |spec: Document| check_plain_projection(&spec.to_raw()).map_err(|e| e.code.0);
    for fine in
        [doc! { "a": 1 }, doc! { "a": { "b.c": 0 } }, doc! { "_id": 1, "a": 0 }, doc! { "a": { "$ref": 1 } }]
    {
        assert_eq!(code(fine), Ok(()));
    }
    assert_eq!(code(doc! { "a": { "$elemMatch": Bson::Null } }), Err(168));
    assert_eq!(code(doc! { "a": { "$elemMatch": {} } }), Err(168));
    assert_eq!(code(doc! { "a": { "$slice": 1 } }), Err(51271));
    assert_eq!(code(doc! { "a": 0, "_id": "x" }), Err(51271));
    assert_eq!(code(doc! { "a": { "$nope": 1 } }), Err(31325));
    assert_eq!(code(doc! { "a": {} }), Err(51270));
    assert_eq!(code(doc! { "a": 1, "a.b": 1 }), Err(31249));
    assert_eq!(code(doc! { "a.$": 1 }), Err(31324));
    assert_eq!(code(doc! { "a..b": 1 }), Err(15998));
}
