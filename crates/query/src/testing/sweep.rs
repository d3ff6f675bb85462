//! No step of parsing, optimising, planning, explaining or running is worse than n log n in what a client chooses: each
//! shape of request is doubled three times, and may take a little more than eight times as long then.
//!
//! What is measured is the time that this thread was running, so that a busy machine does not show; the bound lies
//! between what n log n and n² take.

use super::mem::MemSource;
use super::pipelines::Rows;
use crate::ctx::QueryCtx;
use crate::exec::{Executor, Quota, Resources};
use crate::source::Source;
use crate::stage::{Collections, Opened, Pipeline, RunEnv, Step, Target};
use pando_base::Result;
use pando_base::limits::WORKER_STACK_BYTES;
use pando_bson::doc;
use pando_bson::extjson::parse;
use std::sync::Arc;

struct Same(MemSource);

impl Collections for Same {
    fn resolve(&self, ns: &str) -> Result<Target> {
        Ok(Target { ns: ns.to_owned(), view: None, collation: None })
    }
    fn open(&self, _: &str) -> Result<Opened> {
        Ok(Opened::Here(Box::new(self.0.clone())))
    }
}

/// Nanoseconds this thread has been running.
fn ran_for() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// `n` times what `f` makes, with commas between.
fn list(n: usize, f: impl Fn(usize) -> String) -> String {
    (0..n).map(f).collect::<Vec<_>>().join(",")
}

/// `"prefix0":value,"prefix1":value ..`
fn fields(n: usize, prefix: &str, suffix: &str, value: &str) -> String {
    list(n, |i| format!("\"{prefix}{i}{suffix}\":{value}"))
}

type Shape = fn(usize) -> String;

/// Requests that grow in one stage.
#[rustfmt::skip]
const WIDE: &[(&str, Shape)] = &[
    ("project", |n| format!(r#"{{"$project":{{{}}}}}"#, fields(n, "v", "", "1"))),
    ("project without", |n| format!(r#"{{"$project":{{{}}}}}"#, fields(n, "v", "", "0"))),
    ("project computed", |n| format!(r#"{{"$project":{{{}}}}}"#, fields(n, "v", "", "\"$x\""))),
    ("project dotted", |n| format!(r#"{{"$project":{{{}}}}}"#, fields(n, "v", ".a", "\"$x\""))),
    ("project under one", |n| format!(r#"{{"$project":{{{}}}}}"#, fields(n, "v.", "", "1"))),
    ("addFields", |n| format!(r#"{{"$addFields":{{{}}}}}"#, fields(n, "v", "", "\"$x\""))),
    ("addFields dotted", |n| format!(r#"{{"$addFields":{{{}}}}}"#, fields(n, "v.", ".a", "\"$x\""))),
    ("addFields used", |n| format!(r#"{{"$addFields":{{{}}}}},{{"$match":{{{}}}}}"#, fields(n, "v", "", "\"$x\""), fields(n, "v", "", "{\"$ne\":7}"))),
    ("addFields not used", |n| format!(r#"{{"$addFields":{{{}}}}},{{"$match":{{{}}}}}"#, fields(n, "v", "", "\"$x\""), fields(n, "w", "", "{\"$ne\":7}"))),
    ("unset", |n| format!(r#"{{"$unset":[{}]}}"#, list(n, |i| format!("\"v{i}\"")))),
    ("group", |n| format!(r#"{{"$group":{{"_id":null,{}}}}}"#, fields(n, "v", "", "{\"$sum\":\"$x\"}"))),
    ("group by", |n| format!(r#"{{"$group":{{"_id":{{{}}}}}}},{{"$match":{{{}}}}}"#, fields(n, "v", "", "\"$x\""), fields(n, "_id.v", "", "{\"$ne\":7}"))),
    ("windows", |n| format!(r#"{{"$setWindowFields":{{"sortBy":{{"x":1}},"output":{{{}}}}}}}"#, fields(n, "v", "", "{\"$sum\":\"$x\"}"))),
    ("facet", |n| format!(r#"{{"$facet":{{{}}}}}"#, fields(n, "v", "", "[{\"$match\":{\"x\":1}}]"))),
    ("bucket", |n| format!(r#"{{"$bucket":{{"groupBy":"$x","boundaries":[{}]}}}}"#, list(n.max(2), |i| i.to_string()))),
    ("replaceRoot", |n| format!(r#"{{"$replaceRoot":{{"newRoot":{{{}}}}}}}"#, fields(n, "v", "", "\"$x\""))),
    ("fill", |n| format!(r#"{{"$fill":{{"output":{{{}}}}}}}"#, fields(n, "v", "", "{\"value\":1}"))),
    ("join variables", |n| format!(r#"{{"$lookup":{{"from":"c","let":{{{}}},"pipeline":[{{"$match":{{"$expr":{{"$and":[{}]}}}}}}],"as":"j"}}}}"#, fields(n, "v", "", "\"$x\""), list(n, |i| format!("{{\"$eq\":[\"$x\",\"$$v{i}\"]}}")))),
    ("match fields", |n| format!(r#"{{"$match":{{{}}}}}"#, fields(n, "v", "", "{\"$ne\":1}"))),
    ("match and", |n| format!(r#"{{"$match":{{"$and":[{}]}}}}"#, list(n, |i| format!("{{\"v{i}\":{{\"$ne\":1}}}}")))),
    ("match nor", |n| format!(r#"{{"$match":{{"$nor":[{}]}}}}"#, list(n, |i| format!("{{\"v{i}\":1}}")))),
    ("match or", |n| format!(r#"{{"$match":{{"$or":[{}]}}}}"#, list(n, |i| format!("{{\"v{i}\":1}}")))),
    ("match or of one field", |n| format!(r#"{{"$match":{{"$or":[{}]}}}}"#, list(n, |i| format!("{{\"k\":{i}}}")))),
    ("match or of ranges", |n| format!(r#"{{"$match":{{"$or":[{}]}}}}"#, list(n, |i| format!("{{\"k\":{{\"$gt\":{i},\"$lt\":{}}}}}", i + 2)))),
    ("match or of and", |n| format!(r#"{{"$match":{{"$or":[{}]}}}}"#, list(n, |i| format!("{{\"k\":{i},\"c\":{i}}}")))),
    ("match in", |n| format!(r#"{{"$match":{{"k":{{"$in":[{}]}}}}}}"#, list(n, |i| i.to_string()))),
    ("match nin", |n| format!(r#"{{"$match":{{"x":{{"$nin":[{}]}}}}}}"#, list(n, |i| format!("\"s{i}\"")))),
    ("match all", |n| format!(r#"{{"$match":{{"k":{{"$all":[{}]}}}}}}"#, list(n, |i| i.to_string()))),
    ("match expr or", |n| format!(r#"{{"$match":{{"$expr":{{"$or":[{}]}}}}}}"#, list(n, |i| format!("{{\"$eq\":[\"$k\",{i}]}}")))),
    ("match expr and", |n| format!(r#"{{"$match":{{"$expr":{{"$and":[{}]}}}}}}"#, list(n, |i| format!("{{\"$ne\":[\"$k\",{}]}}", i + 5)))),
    ("schema", |n| format!(r#"{{"$match":{{"$jsonSchema":{{"properties":{{{}}},"additionalProperties":true}}}}}}"#, fields(n, "v", "", "{\"type\":\"string\"}"))),
    ("schema required", |n| format!(r#"{{"$match":{{"$jsonSchema":{{"required":[{}]}}}}}}"#, list(n, |i| format!("\"v{i}\"")))),
    ("switch", |n| format!(r#"{{"$project":{{"r":{{"$switch":{{"branches":[{}],"default":1}}}}}}}}"#, list(n, |i| format!("{{\"case\":{{\"$eq\":[\"$x\",{}]}},\"then\":{i}}}", i + 5)))),
    ("switch with constants", |n| format!(r#"{{"$project":{{"r":{{"$switch":{{"branches":[{}],"default":1}}}}}}}}"#, list(n, |i| format!("{{\"case\":{},\"then\":{i}}}", if i % 2 == 0 { "0" } else { "\"$zz\"" })))),
    ("let", |n| format!(r#"{{"$project":{{"r":{{"$let":{{"vars":{{{}}},"in":{{"$add":[{}]}}}}}}}}}}"#, fields(n, "v", "", "\"$x\""), list(n, |i| format!("\"$$v{i}\"")))),
    ("add", |n| format!(r#"{{"$project":{{"r":{{"$add":[{}]}}}}}}"#, list(n, |i| if i % 2 == 0 { "\"$x\"".to_owned() } else { i.to_string() }))),
    ("add what is no number", |n| format!(r#"{{"$project":{{"r":{{"$add":["$x",{},null]}}}}}}"#, list(n, |i| i.to_string()))),
    ("concat", |n| format!(r#"{{"$project":{{"r":{{"$concat":[{}]}}}}}}"#, list(n, |i| if i % 2 == 0 { "\"$s\"" } else { "\"t\"" }.to_owned()))),
    ("union of sets", |n| format!(r#"{{"$project":{{"r":{{"$setUnion":[{}]}}}}}}"#, list(n, |i| if i % 2 == 0 { "\"$l\"".to_owned() } else { format!("[{i}]") }))),
    ("ifNull", |n| format!(r#"{{"$project":{{"r":{{"$ifNull":[{}]}}}}}}"#, list(n.max(2), |i| if i % 2 == 0 { "\"$zz\"" } else { "null" }.to_owned()))),
    ("object", |n| format!(r#"{{"$project":{{"r":{{"$mergeObjects":[{{{}}},"$zz"]}}}}}}"#, fields(n, "v", "", "\"$x\""))),
    ("setField", |n| format!(r#"{{"$project":{{"r":{{"$setField":{{"field":"a","input":{{{}}},"value":1}}}}}}}}"#, fields(n, "v", "", "\"$x\""))),
];

/// Requests of many stages: a list of `n`, or a list of half as many behind another.
#[rustfmt::skip]
const LONG: &[(&str, &str, &str)] = &[
    ("matches", r#"{"$match":{"vN":{"$ne":N}}}"#, ""),
    ("equal matches", r#"{"$match":{"k":1}}"#, ""),
    ("additions", r#"{"$addFields":{"vN":"$x"}}"#, ""),
    ("additions behind one another", r#"{"$addFields":{"x":{"$add":["$x",1]}}}"#, ""),
    ("matches behind additions", r#"{"$addFields":{"vN":"$x"}}"#, r#"{"$match":{"k":{"$ne":N}}}"#),
    ("matches behind renames", r#"{"$addFields":{"x":"$k","k":"$x"}}"#, r#"{"$match":{"k":{"$ne":N}}}"#),
    ("matches of their own behind sorts", r#"{"$sort":{"k":1}}"#, r#"{"$match":{"vN":{"$ne":N}}}"#),
    ("matches behind groups", r#"{"$group":{"_id":"$_id"}}"#, r#"{"$match":{"_id":{"$ne":-1}}}"#),
    ("projections", r#"{"$project":{"x":1,"k":1}}"#, ""),
    ("sorts", r#"{"$sort":{"k":1}}"#, ""),
    ("limits", r#"{"$limit":{"$numberLong":"50"}}"#, ""),
    ("limits behind skips", r#"{"$skip":{"$numberLong":"1"}}"#, r#"{"$limit":{"$numberLong":"50"}}"#),
    ("limits behind projections", r#"{"$project":{"x":1,"k":1}}"#, r#"{"$limit":{"$numberLong":"50"}}"#),
    ("unwinds", r#"{"$unwind":"$x"}"#, ""),
    ("joins", r#"{"$lookup":{"from":"c","localField":"k","foreignField":"k","as":"jN"}}"#, ""),
    ("sorts behind joins", r#"{"$lookup":{"from":"c","localField":"k","foreignField":"k","as":"jN"}}"#, r#"{"$sort":{"k":1}}"#),
    ("windows", r#"{"$setWindowFields":{"sortBy":{"x":1},"output":{"vN":{"$sum":"$x"}}}}"#, ""),
    ("windows and additions", r#"{"$setWindowFields":{"sortBy":{"x":1},"output":{"vN":{"$sum":"$x"}}}}"#, r#"{"$addFields":{"wN":"$x"}}"#),
    ("roots", r#"{"$replaceWith":{"x":"$x","k":"$k"}}"#, ""),
];

fn repeated(n: usize, front: &str, behind: &str) -> String {
    let of = |n: usize, text: &str| list(n, |i| text.replace('N', &i.to_string()));
    match behind {
        "" => of(n, front),
        _ => format!("{},{}", of(n / 2, front), of(n / 2, behind)),
    }
}

/// Stages are called through one another, as deep as a pipeline is long: on a stack as a server's workers have it.
fn on_a_workers_stack(f: impl FnOnce() + Send) {
    std::thread::scope(|s| {
        let thread = std::thread::Builder::new().stack_size(WORKER_STACK_BYTES).spawn_scoped(s, f).unwrap();
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

struct Sweep {
    source: MemSource,
    ctx: QueryCtx,
}

impl Sweep {
    fn new() -> Sweep {
        Sweep::over(true)
    }
    /// Without documents: a stage that adds a field makes every document longer for all that follow, so running takes n²
    /// by its nature.
    fn without_documents() -> Sweep {
        Sweep::over(false)
    }
    fn over(documents: bool) -> Sweep {
        let docs = [
            doc! { "_id": 1, "x": 1, "k": 1, "c": 1, "s": "s", "l": [1, 2] },
            doc! { "_id": 2, "x": 2, "k": 2, "c": 2, "s": "s", "l": [1, 2] },
        ];
        let index = |key, name: &str| doc! { "key": pando_bson::Bson::Document(key), "name": name };
        let indexes = [index(doc! { "k": 1 }, "k"), index(doc! { "k": 1, "c": 1 }, "kc")];
        let docs = if documents { &docs[..] } else { &[] };
        Sweep { source: MemSource::new(docs, &indexes), ctx: QueryCtx::default() }
    }

    /// All that a server does with a pipeline; nanoseconds.
    fn run(&self, text: &str) -> u64 {
        let holder =
            parse(&format!("{{\"p\":[{text}]}}")).unwrap_or_else(|e| panic!("{e}: {text:.200}")).to_raw();
        let began = ran_for();
        let mut p = Pipeline::parse(holder.get("p").and_then(|v| v.as_array()).unwrap(), &self.ctx)
            .unwrap_or_else(|e| panic!("{e}: {text:.200}"));
        p.explained();
        let mut src = self.source.clone();
        let query = p.take_find().into_query("t.c", src.collection(), &self.ctx, None).unwrap();
        let mut exec = Executor::new(query, &src, Resources::default()).unwrap();
        let env = RunEnv { spill: None, collections: Some(Arc::new(Same(self.source.clone()))) };
        let mut runner = p.start(&env).unwrap();
        let mut quota = Quota::new(1_000_000);
        loop {
            let mut rows = Rows { exec: &mut exec, src: &mut src, quota: &mut quota };
            match runner.next(&mut rows).unwrap_or_else(|e| panic!("{e}: {text:.200}")) {
                Step::Row(_) => {}
                Step::Eof => break,
                Step::NeedYield => {
                    exec.save();
                    runner.save();
                    quota = Quota::new(1_000_000);
                }
            }
        }
        ran_for() - began
    }

    /// How many times longer the request takes for each size; the best of a few, as other threads warm and cool caches.
    fn grows(&self, name: &str, shape: &dyn Fn(usize) -> String, sizes: &[usize]) -> f64 {
        let least = |text: &str, times: usize| (0..times).map(|_| self.run(text)).min().unwrap_or(0);
        let took: Vec<u64> = sizes.iter().map(|n| least(&shape(*n), 3)).collect();
        println!("{name:40} {:?} microseconds", took.iter().map(|t| t / 1000).collect::<Vec<_>>());
        // What takes no time at all is not worse for taking a little.
        let (first, last) = (took.first().copied().unwrap_or(0), took.last().copied().unwrap_or(0));
        last as f64 / first.max(FLOOR) as f64
    }
}

/// Nanoseconds that do not count.
const FLOOR: u64 = 200_000;
/// Each size is twice the one before, so the last is eight times the first.
const WIDE_SIZES: [usize; 4] = [250, 500, 1000, 2000];
const LONG_SIZES: [usize; 4] = [120, 240, 480, 960];
/// Eight times n log n takes about 10 times as long, eight times n² 64 times.
const MOST_GROWTH: f64 = 24.0;

#[test]
fn wide_stages_take_time_in_proportion() {
    let sweep = Sweep::new();
    let slow: Vec<String> = WIDE
        .iter()
        .map(|(name, shape)| (name, sweep.grows(name, shape, &WIDE_SIZES)))
        .filter(|(_, growth)| *growth > MOST_GROWTH)
        .map(|(name, growth)| format!("{name}: {growth:.0} times as long"))
        .collect();
    assert!(slow.is_empty(), "eight times as large: {slow:#?}");
}

#[test]
fn long_pipelines_take_time_in_proportion() {
    on_a_workers_stack(|| {
        let sweep = Sweep::without_documents();
        let slow: Vec<String> = LONG
            .iter()
            .map(|(name, a, b)| (name, sweep.grows(name, &|n| repeated(n, a, b), &LONG_SIZES)))
            .filter(|(_, growth)| *growth > MOST_GROWTH)
            .map(|(name, growth)| format!("{name}: {growth:.0} times as long"))
            .collect();
        assert!(slow.is_empty(), "eight times as long: {slow:#?}");
    });
}

/// Pipelines inside pipelines: each level once, not twice for each level above.
#[test]
fn nested_pipelines_take_time_in_proportion_to_their_levels() {
    let sweep = Sweep::new();
    let nested = |levels: usize, open: &str, close: &str| {
        format!("{}{}{}", open.repeat(levels), r#"{"$match":{"x":1}}"#, close.repeat(levels))
    };
    for (open, close) in [
        (r#"{"$lookup":{"from":"c","as":"j","pipeline":["#, "]}}"),
        (r#"{"$unionWith":{"coll":"c","pipeline":["#, "]}}"),
        (r#"{"$lookup":{"from":"c","as":"j","pipeline":[{"$facet":{"a":["#, "]}}]}}"),
    ] {
        // Every level joins two documents with two, so the answer itself doubles: no rows, then.
        let none = r#"{"$match":{"x":-1}},"#;
        let of = |levels| format!("{none}{}", nested(levels, open, close));
        let growth = sweep.grows(open, &of, &[4, 8]);
        assert!(growth < 6.0, "{open}: {growth:.1} times as long for twice as many levels");
    }
}
