//! A pipeline in two parts gives what it gives in one: over any documents, however they lie on shards.

use super::mem::MemSource;
use crate::collation::Collation;
use crate::ctx::{QueryCtx, Random, SeededRandom, Variables};
use crate::stage::{
    Asked, Collections, Input, MergeHost, Merged, Opened, Pipeline, Row, RunEnv, Split, Step, Target,
};
use pando_base::Result;
use pando_bson::extjson::{parse, to_canonical};
use pando_bson::{Bson, DocBuf, Document};
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

/// Stages that pipelines are drawn from. All of them take any document.
const STAGES: &[&str] = &[
    r#"{"$match":{"k":{"$gte":1}}}"#,
    r#"{"$match":{"n":{"$lt":12}}}"#,
    r#"{"$match":{"$expr":{"$gt":["$n","$k"]}}}"#,
    r#"{"$match":{"_id":{"$ne":3}}}"#,
    r#"{"$project":{"k":1,"n":1,"l":1,"z":{"$ifNull":["$k","none"]}}}"#,
    r#"{"$project":{"l":0}}"#,
    r#"{"$addFields":{"k":"$s","y":{"$concat":["x","y"]}}}"#,
    r#"{"$unset":["k","o.p"]}"#,
    r#"{"$replaceRoot":{"newRoot":{"$mergeObjects":[{"_id":"$_id","n":"$n","l":"$l"},"$o"]}}}"#,
    r#"{"$redact":{"$cond":[{"$eq":["$q",1]},"$$PRUNE","$$DESCEND"]}}"#,
    r#"{"$unwind":"$l"}"#,
    r#"{"$unwind":{"path":"$l","preserveNullAndEmptyArrays":true,"includeArrayIndex":"i"}}"#,
    r#"{"$sort":{"k":1}}"#,
    r#"{"$sort":{"s":-1,"n":1}}"#,
    r#"{"$sort":{"l":1,"_id":-1}}"#,
    r#"{"$sort":{"s":1,"l":-1}},{"$addFields":{"key":{"$meta":"sortKey"}}}"#,
    r#"{"$limit":3}"#,
    r#"{"$limit":7}"#,
    r#"{"$skip":2}"#,
    r#"{"$skip":5}"#,
    r#"{"$group":{"_id":"$k","sum":{"$sum":"$d"},"avg":{"$avg":"$n"},"first":{"$first":"$n"},"last":{"$last":"$s"}}}"#,
    r#"{"$group":{"_id":{"a":"$k","b":"$s"},"all":{"$push":"$n"},"set":{"$addToSet":"$k"},"min":{"$min":"$s"},"max":{"$max":"$l"}}}"#,
    r#"{"$group":{"_id":null,"top":{"$topN":{"n":3,"sortBy":{"d":-1},"output":"$_id"}},"bottom":{"$bottom":{"sortBy":{"n":1},"output":"$n"}},"o":{"$mergeObjects":"$o"}}}"#,
    r#"{"$group":{"_id":"$s","f":{"$firstN":{"n":2,"input":"$n"}},"l":{"$lastN":{"n":2,"input":"$n"}},"x":{"$maxN":{"n":2,"input":"$d"}},"i":{"$minN":{"n":2,"input":"$d"}}}}"#,
    r#"{"$group":{"_id":"$k","p":{"$percentile":{"input":"$n","p":[0.5,0.9],"method":"approximate"}},"s":{"$stdDevPop":"$d"},"t":{"$stdDevSamp":"$n"},"c":{"$count":{}}}}"#,
    r#"{"$count":"n"}"#,
    r#"{"$sortByCount":"$k"}"#,
    r#"{"$bucket":{"groupBy":"$n","boundaries":[0,5,10],"default":"more","output":{"n":{"$sum":1},"l":{"$push":"$k"}}}}"#,
    r#"{"$bucketAuto":{"groupBy":"$n","buckets":3,"output":{"n":{"$sum":1},"d":{"$sum":"$d"}}}}"#,
    r#"{"$facet":{"a":[{"$match":{"k":1}},{"$count":"c"}],"b":[{"$sort":{"n":-1}},{"$limit":2}]}}"#,
    r#"{"$lookup":{"from":"other","localField":"k","foreignField":"k","as":"j"}}"#,
    r#"{"$lookup":{"from":"other","localField":"k","foreignField":"k","as":"j"}},{"$unwind":"$j"},{"$match":{"j.n":{"$gt":3}}}"#,
    r#"{"$lookup":{"from":"other","let":{"w":"$n"},"pipeline":[{"$match":{"$expr":{"$lt":["$n","$$w"]}}},{"$sort":{"n":1}},{"$limit":2},{"$project":{"n":1}}],"as":"j"}}"#,
    r#"{"$graphLookup":{"from":"other","startWith":"$n","connectFromField":"k","connectToField":"n","as":"g","maxDepth":1}}"#,
    r#"{"$unionWith":{"coll":"other","pipeline":[{"$match":{"k":2}},{"$project":{"n":1,"k":1}}]}}"#,
    r#"{"$setWindowFields":{"partitionBy":"$k","sortBy":{"n":1},"output":{"r":{"$rank":{}},"w":{"$sum":"$d","window":{"documents":[-1,0]}}}}}"#,
    r#"{"$setWindowFields":{"partitionBy":{"$type":"$k"},"sortBy":{"n":1},"output":{"r":{"$documentNumber":{}},"x":{"$shift":{"output":"$n","by":1}}}}}"#,
    r#"{"$fill":{"partitionByFields":["s"],"sortBy":{"n":1},"output":{"k":{"method":"locf"},"s":{"value":"gap"}}}}"#,
];

/// Where numbers, or nothing, are in `n` for certain.
const AT_FIRST: &[&str] = &[
    r#"{"$densify":{"field":"n","range":{"step":2,"bounds":[0,9]}}}"#,
    r#"{"$densify":{"field":"n","range":{"step":3,"bounds":"full"}}}"#,
];

struct Dice(SeededRandom);

impl Dice {
    fn below(&self, n: usize) -> usize {
        (self.0.next_u64() >> 33) as usize % n
    }
    fn one_of<'t>(&self, all: &[&'t str]) -> &'t str {
        all[self.below(all.len())]
    }
    fn document(&self, id: usize) -> Document {
        let mut text = format!("{{\"_id\":{id}");
        let mut field = |name: &str, pool: &[&str]| {
            let v = self.one_of(pool);
            if !v.is_empty() {
                text.push_str(&format!(",\"{name}\":{v}"));
            }
        };
        field("k", &["1", "2", "1.0", "3", "null", "", "\"a\"", "\"A\""]);
        field("s", &["\"x\"", "\"y\"", "\"X\"", "\"z\""]);
        field("n", &["0", "1", "2", "3", "5", "8", "13", "4", "7", "11"]);
        field("d", &["1", "0.5", "2.5", "{\"$numberLong\":\"4\"}", "-3", "\"none\"", ""]);
        field("l", &["[1,2]", "[]", "[\"a\",{\"x\":1}]", "7", "null", "", "[3]"]);
        field("o", &["{\"p\":1,\"q\":1}", "{\"p\":2}", "{}", "null", "{\"q\":2,\"k\":9}"]);
        text.push('}');
        parse(&text).unwrap()
    }
    fn pipeline(&self) -> String {
        let mut stages: Vec<&str> = Vec::new();
        if self.below(12) == 0 {
            stages.push(self.one_of(AT_FIRST));
        }
        (0..1 + self.below(4)).for_each(|_| stages.push(self.one_of(STAGES)));
        stages.join(",")
    }
}

struct Bench {
    other: Arc<Other>,
    ctx: QueryCtx,
}

impl Bench {
    fn parse(&self, text: &str) -> Pipeline {
        let holder = parse(&format!("{{\"p\":[{text}]}}")).unwrap_or_else(|e| panic!("{e}: {text}")).to_raw();
        Pipeline::parse(holder.get("p").and_then(|v| v.as_array()).unwrap(), &self.ctx)
            .unwrap_or_else(|e| panic!("{e}: {text}"))
    }
    fn run(&self, pipeline: Pipeline, mut input: impl Input) -> Result<Vec<Row>> {
        let mut runner = pipeline.start(&RunEnv { spill: None, collections: Some(self.other.clone()) })?;
        let mut out = Vec::new();
        loop {
            match runner.next(&mut input)? {
                Step::Row(row) => out.push(row),
                Step::NeedYield => {}
                Step::Eof => return Ok(out),
            }
        }
    }
    /// What the two parts give, as written for other servers or as they are.
    fn in_parts(&self, split: &Split, shards: &[Vec<DocBuf>], forwarded: bool) -> Result<Vec<Row>> {
        let sent = |part: &Pipeline| -> Result<Pipeline> {
            let got = Pipeline::parse_forwarded(&part.spelled(), &self.ctx)?;
            assert!(got == *part, "{part:?} became {got:?}");
            Ok(if forwarded { got } else { part.clone() })
        };
        let mut streams = Vec::new();
        for docs in shards {
            let rows = docs.iter().cloned().map(Row::from);
            streams.push(self.run(sent(&split.shards)?, rows)?.into_iter());
        }
        self.run(sent(&split.merger)?, Merged::new(streams, split.order.as_ref(), &self.ctx))
    }
}

/// Doubles as far as the order of addition does not show.
fn shown(rows: Vec<Row>) -> Vec<String> {
    fn rounded(v: Bson) -> Bson {
        match v {
            Bson::Double(d) => Bson::String(format!("{d:.9e}")),
            Bson::Document(d) => Bson::Document(
                d.into_fields().into_iter().map(|(k, v)| (k, rounded(v))).collect::<Vec<_>>().into(),
            ),
            Bson::Array(a) => Bson::Array(a.into_iter().map(rounded).collect()),
            v => v,
        }
    }
    rows.iter()
        .map(|row| match rounded(Bson::Document(Document::from(row.doc()))) {
            Bson::Document(d) => to_canonical(&d.to_raw()),
            _ => String::new(),
        })
        .collect()
}

fn compare(seeds: std::ops::Range<u64>, collation: Option<Arc<Collation>>) {
    let (mut parted, mut ordered) = (0, 0);
    for seed in seeds.clone() {
        let dice = Dice(SeededRandom::new(seed));
        let others: Vec<Document> = (0..12).map(|i| dice.document(100 + i)).collect();
        let vars = Arc::new(Variables { db: "d".to_owned(), ..Variables::default() });
        let ctx = QueryCtx { vars, ..QueryCtx::default() }.with_collation(collation.clone());
        let bench = Bench { other: Arc::new(Other(MemSource::new(&others, &[]))), ctx };
        let text = dice.pipeline();
        let pipeline = bench.parse(&text);
        let mut id = 0;
        let shards: Vec<Vec<DocBuf>> = (0..1 + dice.below(4))
            .map(|_| {
                (0..dice.below(12))
                    .map(|_| {
                        id += 1;
                        dice.document(id).to_raw()
                    })
                    .collect()
            })
            .collect();
        let sharded = dice.below(2) == 0;
        let split = pipeline.split(&|_| sharded).unwrap();
        parted += usize::from(!split.shards.is_empty() && !split.merger.is_empty());
        ordered += usize::from(split.order.is_some());
        let whole = bench.run(pipeline, shards.concat().into_iter().map(Row::from));
        let parts = bench.in_parts(&split, &shards, dice.below(2) == 0);
        match (whole, parts) {
            (Ok(whole), Ok(parts)) => {
                let (whole, parts) = (shown(whole), shown(parts));
                assert!(
                    whole == parts,
                    "seed {seed}: [{text}] over {shards:?}\n{split:#?}\n{whole:#?}\n{parts:#?}"
                );
            }
            (Err(whole), Err(parts)) => assert_eq!(whole.code.0, parts.code.0, "seed {seed}: [{text}]"),
            (whole, parts) => panic!("seed {seed}: [{text}]: {:?}, {:?}", whole.err(), parts.err()),
        }
    }
    let all = (seeds.end - seeds.start) as usize;
    assert!(parted > all / 2 && ordered > all / 10, "{parted} had two parts, {ordered} an order");
}

#[test]
fn two_parts_give_what_one_pipeline_gives() {
    compare(0..6000, None);
}

#[test]
fn two_parts_give_what_one_pipeline_gives_with_a_collation() {
    let spec = pando_bson::doc! { "locale": "en", "strength": 2 }.to_raw();
    compare(10_000..12_000, Collation::parse(&spec).unwrap());
}

/// The parts, whom the first is for and where the second may run; `u` is an unsharded collection, `s` a sharded one.
fn parts(text: &str) -> (String, String, Asked, MergeHost) {
    let vars = Arc::new(Variables { db: "d".to_owned(), ..Variables::default() });
    let ctx = QueryCtx { vars, ..QueryCtx::default() };
    let bench = Bench { other: Arc::new(Other(MemSource::new(&[], &[]))), ctx };
    let split = bench.parse(text).split(&|ns| ns == "d.s").unwrap();
    let names = |p: &Pipeline| -> String {
        let spelled = p.spelled();
        let names = spelled.iter().filter_map(|s| s.value().as_doc()?.first().map(|e| e.name().to_owned()));
        names.collect::<Vec<_>>().join(" ")
    };
    (names(&split.shards), names(&split.merger), split.asked, split.host)
}

#[test]
fn stages_go_where_they_have_to() {
    use Asked::{EachShard, Nobody, Owners};
    use MergeHost::{AnyShard, Anywhere, Primary, WithDisk};
    for (text, shards, merger, asked, host) in [
        (r#"{"$match":{"a":1}},{"$project":{"a":1}}"#, "$match $project", "", Owners, Anywhere),
        (r#"{"$sort":{"a":1}},{"$limit":3}"#, "$sort $limit", "$limit", Owners, Anywhere),
        (r#"{"$skip":2},{"$limit":3}"#, "$limit", "$skip $limit", Owners, Anywhere),
        (r#"{"$group":{"_id":"$a"}},{"$sort":{"_id":1}}"#, "$group", "$group $sort", Owners, WithDisk),
        (r#"{"$sort":{"a":1}},{"$group":{"_id":"$b"}}"#, "$sort $project", "$group", Owners, WithDisk),
        (
            r#"{"$unwind":"$a"},{"$bucketAuto":{"groupBy":"$a","buckets":2}}"#,
            "$project",
            "$unwind $bucketAuto",
            Owners,
            WithDisk,
        ),
        (
            r#"{"$facet":{"x":[{"$lookup":{"from":"u","localField":"a","foreignField":"b","as":"c"}}]}}"#,
            "",
            "$facet",
            Owners,
            Primary,
        ),
        (
            r#"{"$lookup":{"from":"u","localField":"a","foreignField":"b","as":"c"}}"#,
            "",
            "$lookup",
            Owners,
            Primary,
        ),
        (
            r#"{"$lookup":{"from":"s","localField":"a","foreignField":"b","as":"c"}},{"$unwind":"$c"},{"$match":{"c.d":1}}"#,
            "$lookup $unwind $match",
            "",
            Owners,
            Anywhere,
        ),
        (
            r#"{"$graphLookup":{"from":"u","startWith":"$a","connectFromField":"b","connectToField":"c","as":"d"}}"#,
            "",
            "$graphLookup",
            Owners,
            Primary,
        ),
        (r#"{"$unionWith":"s"}"#, "", "$unionWith", Owners, AnyShard),
        (r#"{"$match":{"a":1}},{"$out":"u"}"#, "$match", "$out", Owners, Primary),
        (r#"{"$match":{"a":1}},{"$merge":"s"}"#, "$match $merge", "", Owners, Anywhere),
        (r#"{"$match":{"a":1}},{"$merge":"u"}"#, "$match", "$merge", Owners, AnyShard),
        (r#"{"$sample":{"size":5}}"#, "$sample", "$limit", Owners, Anywhere),
        (
            r#"{"$geoNear":{"near":[1,2],"distanceField":"d"}},{"$limit":2}"#,
            "$geoNear $limit",
            "$limit",
            Owners,
            Anywhere,
        ),
        (
            r#"{"$densify":{"field":"a","range":{"step":1,"bounds":"full"}}}"#,
            "$sort",
            "$_internalDensify",
            Owners,
            Anywhere,
        ),
        (
            r#"{"$setWindowFields":{"partitionBy":"$a","output":{"b":{"$sum":1}}}}"#,
            "$sort",
            "$_internalSetWindowFields",
            Owners,
            WithDisk,
        ),
        (r#"{"$indexStats":{}},{"$match":{"name":"a"}}"#, "$indexStats $match", "", Owners, Anywhere),
        (
            r#"{"$collStats":{"count":{}}},{"$group":{"_id":null,"n":{"$sum":"$count"}}}"#,
            "$collStats $group",
            "$group",
            Owners,
            WithDisk,
        ),
        (r#"{"$changeStream":{}},{"$match":{"a":1}}"#, "$changeStream $match", "", EachShard, Anywhere),
        (r#"{"$currentOp":{}},{"$limit":1}"#, "$currentOp $limit", "$limit", EachShard, Anywhere),
        (r#"{"$currentOp":{"localOps":true}}"#, "", "$currentOp", Nobody, Anywhere),
        (r#"{"$documents":[{"a":1}]},{"$sort":{"a":1}}"#, "", "$documents $sort", Nobody, WithDisk),
    ] {
        assert_eq!(parts(text), (shards.to_owned(), merger.to_owned(), asked, host), "{text}");
    }
}

#[test]
fn a_sample_is_drawn_from_all_shards() {
    let bench = Bench { other: Arc::new(Other(MemSource::new(&[], &[]))), ctx: QueryCtx::default() };
    let split = bench.parse(r#"{"$sample":{"size":20}}"#).split(&|_| true).unwrap();
    let doc = |i: i32| pando_bson::doc! { "_id": i }.to_raw();
    let shards: Vec<Vec<DocBuf>> = (0..4).map(|s| (0..25).map(|i| doc(s * 25 + i)).collect()).collect();
    let rows = bench.in_parts(&split, &shards, true).unwrap();
    let mut ids: Vec<i64> = rows.iter().filter_map(|r| r.doc().get("_id")?.as_i64()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 20);
    for shard in 0..4 {
        assert!(ids.iter().any(|id| id / 25 == shard), "none from shard {shard}: {ids:?}");
    }
}
