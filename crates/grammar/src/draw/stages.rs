//! Stages of pipelines, accumulators and window functions.

use super::kind::{F, K, may, need};
use super::{Gen, Group, values};
use pando_bson::{Bson, Document};

const LOOKUP: K = K::OneOf(&[
    K::Spec(&[
        need!("from", K::Coll),
        need!("localField", K::Path),
        need!("foreignField", K::Path),
        need!("as", K::Field),
    ]),
    K::Spec(&[
        need!("from", K::Coll),
        may!("let", K::Lets),
        need!("pipeline", K::Pipeline),
        need!("as", K::Field),
    ]),
    K::Spec(&[
        need!("from", K::Coll),
        need!("localField", K::Path),
        need!("foreignField", K::Path),
        may!("let", K::Lets),
        need!("pipeline", K::Pipeline),
        need!("as", K::Field),
    ]),
]);
const GRAPH: &[F] = &[
    need!("from", K::Coll),
    need!("startWith", K::Any),
    need!("connectFromField", K::Path),
    need!("connectToField", K::Path),
    need!("as", K::Field),
    may!("maxDepth", K::CInt),
    may!("depthField", K::Field),
    may!("restrictSearchWithMatch", K::Filter),
];
const SERIES: K = K::Word(&["R5", "R10", "R20", "R40", "R80", "1-2-5", "E6", "E12", "E24", "POWERSOF2", "x"]);
const BUCKET_AUTO: &[F] = &[
    need!("groupBy", K::Any),
    need!("buckets", K::CInt),
    may!("output", K::Outputs),
    may!("granularity", SERIES),
];
const BUCKET: &[F] = &[
    need!("groupBy", K::Num),
    need!("boundaries", K::OneOf(&[K::Tuple(&[K::N(0), K::N(5), K::N(100)]), K::List(&K::CNum)])),
    may!("default", K::CAny),
    may!("output", K::Outputs),
];
const DENSIFY: &[F] = &[
    need!("field", K::Path),
    may!("partitionByFields", K::List(&K::Path)),
    need!(
        "range",
        K::Spec(&[
            need!("step", K::CNum),
            may!("unit", K::Unit),
            need!(
                "bounds",
                K::OneOf(&[
                    K::Word(&["full", "partition"]),
                    K::Tuple(&[K::CNum, K::CNum]),
                    K::Tuple(&[K::CDate, K::CDate]),
                ]),
            ),
        ]),
    ),
];
const FILL: &[F] = &[
    may!("partitionBy", K::Any),
    may!("partitionByFields", K::List(&K::Field)),
    may!("sortBy", K::Sort),
    need!(
        "output",
        K::Map(&K::OneOf(&[
            K::Spec(&[need!("value", K::Any)]),
            K::Spec(&[need!("method", K::Word(&["locf", "linear"]))]),
        ])),
    ),
];
const GEO_NEAR: &[F] = &[
    need!("near", K::OneOf(&[K::Geometry, K::Tuple(&[K::CNum, K::CNum])])),
    need!("distanceField", K::Field),
    may!("spherical", K::CBool),
    may!("key", K::Word(&["g", "p", "x"])),
    may!("maxDistance", K::CNum),
    may!("minDistance", K::CNum),
    may!("query", K::Filter),
    may!("includeLocs", K::Field),
    may!("distanceMultiplier", K::CNum),
];
const INTO: K = K::OneOf(&[K::Scratch, K::Spec(&[need!("db", K::Db), need!("coll", K::Scratch)])]);
const MERGE: K = K::OneOf(&[
    INTO,
    K::Spec(&[
        need!("into", INTO),
        may!("on", K::OneOf(&[K::Path, K::List(&K::Path), K::Word(&["_id"])])),
        may!("let", K::Lets),
        may!(
            "whenMatched",
            K::OneOf(&[K::Word(&["replace", "keepExisting", "merge", "fail", "x"]), K::UpdatePipeline]),
        ),
        may!("whenNotMatched", K::Word(&["insert", "discard", "fail", "x"])),
    ]),
]);
const WINDOW_FIELDS: &[F] =
    &[may!("partitionBy", K::Any), may!("sortBy", K::Sort), need!("output", K::Windowed)];
const UNPACK: &[F] = &[
    may!("include", K::List(&K::Field)),
    may!("exclude", K::List(&K::Field)),
    need!("timeField", K::Field),
    may!("metaField", K::Field),
    need!("bucketMaxSpanSeconds", K::CInt),
];
const BOUND: K = K::OneOf(&[K::CInt, K::CInt, K::CNum, K::Word(&["unbounded", "current", "current"])]);
const WINDOW: K = K::OneOf(&[
    K::Spec(&[need!("documents", K::Tuple(&[BOUND, BOUND]))]),
    K::Spec(&[need!("documents", K::Tuple(&[K::Word(&["unbounded"]), K::Word(&["current"])]))]),
    K::Spec(&[need!("range", K::Tuple(&[BOUND, BOUND])), may!("unit", K::Unit)]),
]);
const KEYED: &[F] = &[need!("sortBy", K::Sort), need!("output", K::Any)];
const KEYED_N: &[F] = &[need!("sortBy", K::Sort), need!("output", K::Any), need!("n", K::Int)];
const INPUT_N: &[F] = &[need!("input", K::Any), need!("n", K::Int)];
const APPROXIMATE: K = K::Word(&["approximate"]);
const SCRIPT: &[F] = &[
    need!("init", K::Word(&["function() { return 0; }", "function(x) { return x; }"])),
    may!("initArgs", K::List(&K::Any)),
    need!("accumulate", K::Word(&["function(s, x) { return s + 1; }", "function(s) { throw 'x'; }"])),
    need!("accumulateArgs", K::List(&K::Any)),
    need!("merge", K::Word(&["function(a, b) { return a + b; }"])),
    may!("finalize", K::Word(&["function(s) { return s; }"])),
    need!("lang", K::Word(&["js"])),
];

const UNWIND: K = K::OneOf(&[
    K::Dollar,
    K::Spec(&[
        need!("path", K::Dollar),
        may!("includeArrayIndex", K::Field),
        may!("preserveNullAndEmptyArrays", K::CBool),
    ]),
]);
const REDACT: K = K::OneOf(&[
    K::Word(&["$$KEEP", "$$PRUNE", "$$DESCEND"]),
    K::Spec(&[need!(
        "$cond",
        K::Tuple(&[K::Bool, K::Word(&["$$DESCEND", "$$KEEP"]), K::Word(&["$$PRUNE", "$$KEEP"])]),
    )]),
]);
const COLL_STATS: K = K::Spec(&[
    may!("count", K::Empty),
    may!("latencyStats", K::Spec(&[may!("histograms", K::CBool)])),
    may!("storageStats", K::Spec(&[may!("scale", K::CInt)])),
    may!("queryExecStats", K::Empty),
]);
const CURRENT_OP: K = K::Spec(&[
    may!("allUsers", K::CBool),
    may!("idleConnections", K::CBool),
    may!("idleSessions", K::CBool),
    may!("idleCursors", K::CBool),
    may!("localOps", K::CBool),
    may!("backtrace", K::CBool),
]);
const CHANGE_STREAM: K = K::Spec(&[
    may!("fullDocument", K::Word(&["default", "updateLookup", "whenAvailable", "required", "x"])),
    may!("fullDocumentBeforeChange", K::Word(&["off", "whenAvailable", "required", "x"])),
    may!("resumeAfter", K::CObj),
    may!("startAfter", K::CObj),
    may!("startAtOperationTime", K::CTs),
    may!("allChangesForCluster", K::CBool),
    may!("showExpandedEvents", K::CBool),
]);

/// What a stage takes.
fn kind_of(name: &str) -> K {
    match name {
        "$addFields" | "$set" => K::Computed,
        "$project" => K::Projection,
        "$match" => K::Filter,
        "$limit" | "$skip" => K::CInt,
        "$sort" => K::Sort,
        "$sample" => K::Spec(&[need!("size", K::CInt)]),
        "$unset" => K::OneOf(&[K::Path, K::List(&K::Path)]),
        "$unwind" => UNWIND,
        "$count" => K::Field,
        "$sortByCount" => K::Any,
        "$group" => K::Grouped,
        "$bucket" => K::Spec(BUCKET),
        "$bucketAuto" => K::Spec(BUCKET_AUTO),
        "$facet" => K::Map(&K::Pipeline),
        "$lookup" => LOOKUP,
        "$graphLookup" => K::Spec(GRAPH),
        "$unionWith" => {
            K::OneOf(&[K::Coll, K::Spec(&[need!("coll", K::Coll), may!("pipeline", K::Pipeline)])])
        }
        "$redact" => REDACT,
        "$replaceRoot" => K::Spec(&[need!("newRoot", K::Obj)]),
        "$replaceWith" => K::Obj,
        "$setWindowFields" => K::Spec(WINDOW_FIELDS),
        "$densify" => K::Spec(DENSIFY),
        "$fill" => K::Spec(FILL),
        "$geoNear" => K::Spec(GEO_NEAR),
        "$_internalUnpackBucket" => K::Spec(UNPACK),
        "$documents" => K::OneOf(&[K::List(&K::Computed), K::Arr]),
        "$out" => INTO,
        "$merge" => MERGE,
        "$collStats" => COLL_STATS,
        "$currentOp" => CURRENT_OP,
        "$listLocalSessions" | "$listSessions" => {
            K::OneOf(&[K::Empty, K::Spec(&[may!("allUsers", K::CBool), may!("users", K::CArr)])])
        }
        "$changeStream" => CHANGE_STREAM,
        _ => K::Empty,
    }
}

/// Stages that stand first, or last, or elsewhere than in a query.
const SPECIAL: &[&str] = &[
    "$changeStream",
    "$collStats",
    "$indexStats",
    "$currentOp",
    "$documents",
    "$listLocalSessions",
    "$listSessions",
    "$planCacheStats",
    "$changeStreamSplitLargeEvent",
    "$out",
    "$merge",
    "$_internalUnpackBucket",
    "$geoNear",
];

impl Gen {
    pub(super) fn pipeline(&mut self, depth: u32) -> Bson {
        let n = if depth == 0 { self.rng.below(2) } else { self.rng.pick(&[0, 1, 1, 2, 2, 3, 4]) };
        let mut list = Vec::new();
        for _ in 0..n {
            list.push(Bson::Document(self.stage(depth.saturating_sub(1))));
        }
        if self.is_wild() {
            list.push(values::any(&mut self.rng, 1));
        }
        Bson::Array(list)
    }

    pub(super) fn stage(&mut self, depth: u32) -> Document {
        let name = loop {
            let name = self.names.stages[self.rng.below(self.names.stages.len())];
            let heavy = depth == 0 && matches!(name, "$lookup" | "$facet" | "$unionWith" | "$graphLookup");
            if !heavy && (!SPECIAL.contains(&name) || self.rng.once_in(12)) {
                break name;
            }
        };
        self.stage_named(name, depth)
    }

    pub(super) fn stage_named(&mut self, name: &'static str, depth: u32) -> Document {
        self.drawn.push((Group::Stage, name));
        let before = self.vars.len();
        let v = self.value(kind_of(name), depth.min(3));
        self.vars.truncate(before);
        Document::from(vec![(name.to_owned(), v)])
    }

    /// `{field: expression}`.
    pub(super) fn computed(&mut self, depth: u32) -> Bson {
        let mut d = Document::new();
        for _ in 0..self.rng.pick(&[1, 1, 1, 2, 3]) {
            let name = self.field().replace('\0', "");
            if !d.contains(&name) {
                let v = self.expression(K::Any, depth + 1);
                d.push(name, v);
            }
        }
        Bson::Document(d)
    }

    /// `{_id, field: {$accumulator}}`.
    pub(super) fn accumulated(&mut self, depth: u32) -> Bson {
        let id = match self.rng.below(4) {
            0 => Bson::Null,
            _ => self.expression(K::Any, depth.min(1)),
        };
        self.outputs(Document::from(vec![("_id".to_owned(), id)]), depth)
    }

    /// `{field: {$accumulator}}`, after what is there.
    pub(super) fn outputs(&mut self, mut d: Document, depth: u32) -> Bson {
        for name in ["x", "y", "z"].into_iter().take(self.rng.below(4)) {
            let mut op = self.names.accumulators[self.rng.below(self.names.accumulators.len())];
            if op == "$accumulator" && !self.rng.once_in(4) {
                op = "$sum";
            }
            self.drawn.push((Group::Accumulator, op));
            let v = self.collected(op, depth);
            d.push(name, Bson::Document(vec![(op.to_owned(), v)].into()));
        }
        Bson::Document(d)
    }

    /// What an accumulator or a window function takes.
    fn collected(&mut self, op: &str, depth: u32) -> Bson {
        let kind = match op {
            "$accumulator" => K::Spec(SCRIPT),
            "$bottom" | "$top" => K::Spec(KEYED),
            "$bottomN" | "$topN" => K::Spec(KEYED_N),
            "$firstN" | "$lastN" | "$maxN" | "$minN" => K::Spec(INPUT_N),
            "$count" | "$denseRank" | "$documentNumber" | "$rank" => K::Empty,
            "$median" => K::Spec(&[need!("input", K::Num), need!("method", APPROXIMATE)]),
            "$percentile" => K::Spec(&[
                need!("input", K::Num),
                need!("p", K::List(&K::CNum)),
                need!("method", APPROXIMATE),
            ]),
            "$mergeObjects" => K::Obj,
            "$avg" | "$stdDevPop" | "$stdDevSamp" | "$sum" | "$linearFill" => K::Num,
            "$covariancePop" | "$covarianceSamp" => K::Tuple(&[K::Num, K::Num]),
            "$derivative" | "$integral" => K::Spec(&[need!("input", K::Num), may!("unit", K::Unit)]),
            "$expMovingAvg" => K::OneOf(&[
                K::Spec(&[need!("input", K::Num), need!("N", K::CInt)]),
                K::Spec(&[need!("input", K::Num), need!("alpha", K::CNum)]),
            ]),
            "$shift" => K::Spec(&[need!("output", K::Any), need!("by", K::CInt), may!("default", K::Any)]),
            _ => K::Any,
        };
        self.value(kind, depth)
    }

    pub(super) fn windowed(&mut self, depth: u32) -> Bson {
        let mut d = Document::new();
        for _ in 0..self.rng.pick(&[1, 1, 2]) {
            let op = self.names.windows[self.rng.below(self.names.windows.len())];
            self.drawn.push((Group::Window, op));
            let v = self.collected(op, depth);
            let mut function = Document::from(vec![(op.to_owned(), v)]);
            if self.rng.percent(60) {
                let v = self.value(WINDOW, 0);
                function.push("window", v);
            }
            let name = self.field().replace('\0', "");
            if !d.contains(&name) {
                d.push(name, function);
            }
        }
        Bson::Document(d)
    }
}
