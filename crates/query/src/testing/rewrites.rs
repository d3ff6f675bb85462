//! What the optimiser moves, renames and leaves out does not change results: every pipeline gives what its stages give one
//! by one, without an index.

use super::mem::MemSource;
use super::pipelines::Rows;
use crate::collation::Collation;
use crate::ctx::QueryCtx;
use crate::exec::{Executor, Quota, Resources};
use crate::source::Source;
use crate::stage::{Collections, Opened, Pipeline, Row, RunEnv, Step, Target};
use pando_base::Result;
use pando_bson::extjson::{parse, to_canonical};
use pando_bson::{Bson, DocBuf, Document, doc};
use std::sync::Arc;

struct Other(MemSource);

impl Collections for Other {
    fn resolve(&self, ns: &str) -> Result<Target> {
        Ok(Target { ns: ns.to_owned(), view: None, collation: None })
    }
    fn open(&self, _: &str) -> Result<Opened> {
        Ok(Opened::Here(Box::new(self.0.clone())))
    }
}

const SCALARS: &[&str] = &[
    "null",
    "0",
    "1",
    "1.0",
    "2",
    "5",
    "\"a\"",
    "\"A\"",
    "\"ab\"",
    "true",
    "{\"x\":1}",
    "{\"x\":null}",
    "{}",
];
const ARRAYS: &[&str] =
    &["[]", "[1]", "[1,null]", "[[1]]", "[{\"x\":1},{\"x\":2}]", "[{\"x\":1},{}]", "{\"x\":[1,2]}", "[0,5]"];

/// Scalars or nothing in `k` and `c`, anything in `v`, an object in `o`.
fn documents() -> Vec<Document> {
    let all: Vec<&str> = SCALARS.iter().chain(ARRAYS).copied().collect();
    (0..120usize)
        .map(|i| {
            let mut text = format!("{{\"_id\":{i}");
            let mut field = |name: &str, pool: &[&str], n: usize| {
                // One past the end: nothing.
                if let Some(v) = pool.get(n % (pool.len() + 1)) {
                    text.push_str(&format!(",\"{name}\":{v}"));
                }
            };
            field("k", SCALARS, i * 7 + i / 14);
            field("c", SCALARS, i * 5 + i / 9);
            field("v", &all, i * 11 + i / 22);
            if let Some(p) = SCALARS.get((i * 3) % (SCALARS.len() + 1)) {
                text.push_str(&format!(",\"o\":{{\"p\":{p},\"q\":{}}}", i % 3));
            }
            text.push('}');
            parse(&text).unwrap()
        })
        .collect()
}

const CONDITIONS: &[&str] = &[
    r#"{"P":1}"#,
    r#"{"P":null}"#,
    r#"{"P":{"$ne":null}}"#,
    r#"{"P":{"$gt":0}}"#,
    r#"{"P":{"$in":[null,"a"]}}"#,
    r#"{"P":{"$nin":[1,"A"]}}"#,
    r#"{"P":{"$exists":true}}"#,
    r#"{"P":{"$exists":false}}"#,
    r#"{"P":{"$type":"null"}}"#,
    r#"{"P":{"$type":"int"}}"#,
    r#"{"P":{"$not":{"$gt":0}}}"#,
    r#"{"P":{"$gte":null}}"#,
    r#"{"P":{"$gt":{"$minKey":1}}}"#,
    r#"{"P":{"$lte":{"$maxKey":1}}}"#,
    r#"{"P":{"$regularExpression":{"pattern":"^a","options":""}}}"#,
    r#"{"P":{"$lt":5,"$gt":-1}}"#,
    r#"{"P":{"$size":2}}"#,
    r#"{"P":{"$elemMatch":{"$gt":0}}}"#,
    r#"{"P":{"$mod":[2,1]}}"#,
    r#"{"P":{"x":1}}"#,
    r#"{"P":[]}"#,
    r#"{"P.x":1}"#,
    r#"{"P.x":null}"#,
    r#"{"P.x":{"$exists":false}}"#,
    r#"{"P.0":1}"#,
    r#"{"$or":[{"P":1},{"P":null}]}"#,
    r#"{"$nor":[{"P":1},{"P.x":1}]}"#,
    r#"{"$and":[{"P":{"$gte":0}},{"_id":{"$ne":7}}]}"#,
    r#"{"P":1,"c":{"$ne":"a"}}"#,
];

/// Stages, and the path that conditions behind them are on.
const BEFORE: &[(&str, &str)] = &[
    (r#"{"$group":{"_id":"$k","n":{"$sum":1}}}"#, "_id"),
    (r#"{"$group":{"_id":"$v","n":{"$sum":1}}}"#, "_id"),
    (r#"{"$group":{"_id":"$o.p","n":{"$sum":1}}}"#, "_id"),
    (r#"{"$group":{"_id":"$v.x","n":{"$sum":1}}}"#, "_id"),
    (r#"{"$group":{"_id":{"y":"$v"},"n":{"$sum":1}}}"#, "_id.y"),
    // No index covers this: from an index, what is missing comes as null (as in MongoDB).
    (r#"{"$group":{"_id":{"y":"$v","z":"$c"},"n":{"$sum":1}}}"#, "_id.z"),
    (r#"{"$group":{"_id":"$k","n":{"$sum":1}}}"#, "n"),
    (r#"{"$project":{"z":"$v","c":1}}"#, "z"),
    (r#"{"$project":{"z":"$v.x","c":1}}"#, "z"),
    (r#"{"$project":{"v":1,"c":1}}"#, "v"),
    (r#"{"$project":{"v":0}}"#, "v"),
    (r#"{"$addFields":{"z":"$v"}}"#, "z"),
    (r#"{"$addFields":{"v":"$k","k":"$v"}}"#, "v"),
    (r#"{"$addFields":{"v":"$nothing"}}"#, "v"),
    (r#"{"$addFields":{"o.z":"$v"}}"#, "o.z"),
    (r#"{"$addFields":{"z":"$o"}}"#, "z.p"),
    (r#"{"$addFields":{"z":"$$ROOT"}}"#, "z.k"),
    (
        r#"{"$setWindowFields":{"partitionBy":"$k","sortBy":{"_id":1},"output":{"r":{"$documentNumber":{}}}}}"#,
        "k",
    ),
    (
        r#"{"$setWindowFields":{"partitionBy":"$k","sortBy":{"_id":1},"output":{"k.r":{"$documentNumber":{}}}}}"#,
        "k",
    ),
    (
        r#"{"$setWindowFields":{"partitionBy":"$o.p","sortBy":{"_id":1},"output":{"r":{"$documentNumber":{}}}}}"#,
        "o.p",
    ),
    (r#"{"$lookup":{"from":"other","localField":"k","foreignField":"c","as":"j"}},{"$unwind":"$j"}"#, "j.v"),
    (r#"{"$lookup":{"from":"other","localField":"v","foreignField":"k","as":"j"}},{"$unwind":"$j"}"#, "j.v"),
    (r#"{"$lookup":{"from":"other","localField":"k","foreignField":"c","as":"j"}},{"$unwind":"$j"}"#, "j"),
    (
        r#"{"$lookup":{"from":"other","localField":"k","foreignField":"c","as":"j"}},{"$unwind":{"path":"$j","preserveNullAndEmptyArrays":true}}"#,
        "j.v",
    ),
    (
        r#"{"$lookup":{"from":"other","localField":"k","foreignField":"c","as":"j"}},{"$unwind":{"path":"$j","includeArrayIndex":"i"}}"#,
        "j.k",
    ),
    (
        r#"{"$lookup":{"from":"other","let":{"w":"$k"},"pipeline":[{"$match":{"$expr":{"$eq":["$c","$$w"]}}},{"$addFields":{"t":"$v"}}],"as":"j"}},{"$unwind":"$j"}"#,
        "j.t",
    ),
    (
        r#"{"$lookup":{"from":"other","localField":"k","foreignField":"k","pipeline":[{"$sort":{"_id":1}},{"$limit":{"$numberLong":"2"}}],"as":"j"}},{"$unwind":"$j"}"#,
        "j.v",
    ),
    (r#"{"$unwind":"$v"}"#, "v"),
    (r#"{"$unwind":{"path":"$v","includeArrayIndex":"i"}}"#, "k"),
    (r#"{"$sort":{"c":1}}"#, "v"),
];

const GROUPS: &[&str] = &[
    r#"{"$group":{"_id":"$k"}}"#,
    r#"{"$group":{"_id":"$v"}}"#,
    r#"{"$group":{"_id":"$v.x"}}"#,
    r#"{"$group":{"_id":"$o.p"}}"#,
    r#"{"$group":{"_id":"$k","f":{"$first":"$_id"}}}"#,
    r#"{"$group":{"_id":"$k","f":{"$last":"$_id"},"g":{"$last":"$c"}}}"#,
    r#"{"$group":{"_id":"$k","f":{"$first":"$_id"},"g":{"$last":"$_id"}}}"#,
    r#"{"$group":{"_id":"$k","f":{"$first":"$c"}}}"#,
    r#"{"$group":{"_id":"$k","f":{"$first":"$$ROOT"}}}"#,
    r#"{"$group":{"_id":"$v","f":{"$first":"$_id"}}}"#,
    r#"{"$group":{"_id":"$o.p","f":{"$last":"$v"}}}"#,
    r#"{"$group":{"_id":"$k","f":{"$first":"$_id"},"n":{"$sum":1}}}"#,
];

const IN_FRONT: &[&str] = &[
    "",
    r#"{"$sort":{"k":1,"c":-1,"_id":1}},"#,
    r#"{"$sort":{"k":-1,"c":1,"_id":-1}},"#,
    r#"{"$sort":{"v":1,"_id":1}},"#,
    r#"{"$sort":{"o.p":1,"_id":1}},"#,
    r#"{"$sort":{"c":1,"_id":1}},"#,
    r#"{"$match":{"k":{"$gt":0}}},{"$sort":{"k":1,"c":-1,"_id":1}},"#,
    r#"{"$match":{"k":{"$in":[1,null]}}},{"$sort":{"k":-1,"_id":1}},"#,
    r#"{"$match":{"c":1}},{"$sort":{"k":1,"_id":1}},"#,
    r#"{"$match":{"v":1}},"#,
    r#"{"$sort":{"k":1,"_id":1}},{"$limit":{"$numberLong":"40"}},"#,
];

fn stages(text: &str) -> Vec<Bson> {
    let holder = parse(&format!("{{\"p\":[{text}]}}")).unwrap_or_else(|e| panic!("{e}: {text}"));
    holder.get("p").and_then(Bson::as_array).unwrap().to_vec()
}

fn pipeline(stages: &[Bson], ctx: &QueryCtx) -> Pipeline {
    let holder = doc! { "p": Bson::Array(stages.to_vec()) }.to_raw();
    Pipeline::parse(holder.get("p").and_then(|v| v.as_array()).unwrap(), ctx).unwrap()
}

struct Bench {
    docs: Vec<Document>,
    plain: Arc<Other>,
    indexed: MemSource,
    other: Arc<Other>,
    ctx: QueryCtx,
}

impl Bench {
    fn new(ctx: QueryCtx) -> Bench {
        let docs = documents();
        let index = |key: Document, name: &str| doc! { "key": key, "name": name };
        let indexes = [
            index(doc! { "k": 1 }, "k"),
            index(doc! { "k": 1, "c": (-1), "_id": 1 }, "kc"),
            index(doc! { "c": 1, "k": 1, "_id": 1 }, "ck"),
            index(doc! { "k": (-1), "_id": 1 }, "kd"),
            index(doc! { "v": 1, "_id": 1 }, "v"),
            index(doc! { "o.p": 1, "_id": 1 }, "op"),
        ];
        let env = |indexes: &[Document]| Arc::new(Other(MemSource::new(&docs[..40], indexes)));
        let (plain, other) = (env(&[]), env(&indexes[..2]));
        Bench { indexed: MemSource::new(&docs, &indexes), plain, other, docs, ctx }
    }

    /// Every stage for itself, from one list of documents to the next.
    fn one_by_one(&self, stages: &[Bson]) -> Vec<DocBuf> {
        let mut docs: Vec<DocBuf> = self.docs.iter().map(Document::to_raw).collect();
        for stage in stages {
            let p = pipeline(std::slice::from_ref(stage), &self.ctx);
            let mut runner = p.start(&RunEnv { spill: None, collections: Some(self.plain.clone()) }).unwrap();
            let mut input = docs.into_iter().map(Row::from);
            let mut out = Vec::new();
            loop {
                match runner.next(&mut input).unwrap() {
                    Step::Row(row) => out.push(row.doc().to_buf()),
                    Step::NeedYield => {}
                    Step::Eof => break,
                }
            }
            docs = out;
        }
        docs
    }

    /// As a server runs it; also whether it stepped from value to value.
    fn optimised(&self, stages: &[Bson]) -> (Vec<DocBuf>, bool) {
        let mut p = pipeline(stages, &self.ctx);
        let mut src = self.indexed.clone();
        let query = p.take_find().into_query("t.c", src.collection(), &self.ctx, None).unwrap();
        let mut exec = Executor::new(query, &src, Resources::default()).unwrap();
        let mut runner = p.start(&RunEnv { spill: None, collections: Some(self.other.clone()) }).unwrap();
        let (mut out, mut quota) = (Vec::new(), Quota::new(50));
        loop {
            let mut rows = Rows { exec: &mut exec, src: &mut src, quota: &mut quota };
            match runner.next(&mut rows).unwrap() {
                Step::Row(row) => out.push(row.doc().to_buf()),
                Step::Eof => break,
                Step::NeedYield => {
                    exec.save();
                    runner.save();
                    quota = Quota::new(50);
                }
            }
        }
        let distinct = exec.plan().is_some_and(|p| p.any(&|n| n.stage_name() == "DISTINCT_SCAN"));
        (out, distinct)
    }

    /// The number of plans that stepped from value to value.
    fn compare(&self, text: &str) -> usize {
        let stages = stages(text);
        let (got, distinct) = self.optimised(&stages);
        let fold = self.ctx.collation.is_some();
        let (got, want) = (shown(got, fold), shown(self.one_by_one(&stages), fold));
        let differ = got.iter().zip(&want).find(|(g, w)| g != w);
        assert!(got == want, "{text}: {} and {} documents, {differ:?}", got.len(), want.len());
        usize::from(distinct)
    }
}

/// In some order, with one kind of number and, where a collation says so, of letters: equal ones may stand for each other.
fn shown(docs: Vec<DocBuf>, fold: bool) -> Vec<String> {
    fn plain(v: &Bson, fold: bool) -> Bson {
        match v {
            Bson::String(s) if fold => Bson::String(s.to_lowercase()),
            Bson::Document(d) => Bson::Document(Document::from(
                d.iter().map(|(k, v)| (k.to_owned(), plain(v, fold))).collect::<Vec<_>>(),
            )),
            Bson::Array(a) => Bson::Array(a.iter().map(|v| plain(v, fold)).collect()),
            v => v.as_f64().map_or_else(|| v.clone(), Bson::Double),
        }
    }
    let one = |d: DocBuf| match plain(&Bson::Document(Document::from(&*d)), fold) {
        Bson::Document(d) => to_canonical(&d.to_raw()),
        _ => String::new(),
    };
    let mut all: Vec<String> = docs.into_iter().map(one).collect();
    all.sort();
    all
}

fn moved_filters(ctx: QueryCtx) {
    let bench = Bench::new(ctx);
    for (stage, path) in BEFORE {
        for condition in CONDITIONS {
            let condition = condition.replace("\"P", &format!("\"{path}"));
            bench.compare(&format!("{stage},{{\"$match\":{condition}}}"));
        }
    }
}

#[test]
fn a_filter_gives_the_same_before_and_behind_other_stages() {
    moved_filters(QueryCtx::default());
}

#[test]
fn a_filter_gives_the_same_before_and_behind_other_stages_with_a_collation() {
    let spec = doc! { "locale": "en", "strength": 2 }.to_raw();
    moved_filters(QueryCtx::default().with_collation(Collation::parse(&spec).unwrap()));
}

#[test]
fn groups_are_the_same_whether_an_index_is_stepped_through_or_not() {
    let bench = Bench::new(QueryCtx::default());
    let mut stepped = 0;
    for group in GROUPS {
        for front in IN_FRONT {
            stepped += bench.compare(&format!("{front}{group}"));
        }
    }
    assert!(stepped >= 30, "{stepped} plans stepped from value to value");
}

#[test]
fn limits_meet_their_sorts_and_the_last_of_two_sorts_counts() {
    let bench = Bench::new(QueryCtx::default());
    for text in [
        r#"{"$sort":{"v":1,"_id":1}},{"$project":{"k":1}},{"$limit":{"$numberLong":"7"}}"#,
        r#"{"$sort":{"v":-1,"_id":1}},{"$addFields":{"z":"$k"}},{"$lookup":{"from":"other","localField":"k","foreignField":"c","as":"j"}},{"$limit":{"$numberLong":"7"}},{"$match":{"z":1}}"#,
        r#"{"$sort":{"v":-1}},{"$sort":{"k":1,"_id":1}},{"$limit":{"$numberLong":"9"}}"#,
        r#"{"$limit":{"$numberLong":"50"}},{"$project":{"k":1,"v":1}},{"$limit":{"$numberLong":"9"}},{"$sort":{"v":1}},{"$sort":{"k":1}}"#,
    ] {
        bench.compare(text);
    }
}
