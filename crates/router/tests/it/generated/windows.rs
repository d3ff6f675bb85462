//! Accumulators, in groups and in windows.

use crate::generated::chance::Chance;
use pando_bson::{Bson, Document, doc};

/// What is to be done with the field `v` behind, so that it does not depend on who came first.
pub(crate) enum Then {
    Nothing,
    /// It is an array whose order nobody has said.
    Sort,
    /// Its last digits depend on the order of additions.
    Round,
}

impl Then {
    pub(crate) fn stage(self) -> Option<Document> {
        match self {
            Then::Nothing => None,
            Then::Sort => Some(doc! { "$set": { "v": { "$sortArray": { "input": "$v", "sortBy": 1 } } } }),
            Then::Round => Some(doc! { "$set": { "v": { "$round": ["$v", 6] } } }),
        }
    }
}

/// Of a group over rows that are sorted if `sorted`.
pub(crate) fn accumulator(c: &mut Chance, sorted: bool) -> (Document, Then) {
    let by = c.one(&[doc! { "n": -1, "_id": 1 }, doc! { "f": 1, "_id": 1 }, doc! { "x": 1, "_id": -1 }]);
    let n = c.below(4) + 1;
    match c.below(if sorted { 22 } else { 16 }) {
        0 => (doc! { "$sum": c.one(&["$n", "$f", "$x"]) }, Then::Nothing),
        1 => (doc! { "$avg": c.one(&["$n", "$f", "$x"]) }, Then::Nothing),
        2 => (doc! { "$min": c.one(&["$n", "$x", "$s", "$a"]) }, Then::Nothing),
        3 => (doc! { "$max": c.one(&["$f", "$x", "$d", "$a"]) }, Then::Nothing),
        4 => (doc! { "$count": {} }, Then::Nothing),
        5 => (doc! { "$addToSet": c.one(&["$g", "$x", "$s"]) }, Then::Sort),
        // Not of a field that may be missing: one set tells null from an index that covers the plan, as MongoDB does, and a shard fetches.
        6 => (doc! { "$push": c.one(&["$k", "$_id"]) }, Then::Sort),
        7 => (doc! { "$stdDevPop": c.one(&["$f", "$n"]) }, Then::Round),
        8 => (doc! { "$stdDevSamp": c.one(&["$f", "$n"]) }, Then::Round),
        9 => (doc! { "$maxN": { "input": "$n", "n": n } }, Then::Nothing),
        10 => (doc! { "$minN": { "input": "$f", "n": n } }, Then::Nothing),
        11 => (doc! { "$top": { "sortBy": by, "output": "$_id" } }, Then::Nothing),
        12 => (doc! { "$bottom": { "sortBy": by, "output": ["$_id", "$s"] } }, Then::Nothing),
        13 => (doc! { "$topN": { "sortBy": by, "output": "$_id", "n": n } }, Then::Nothing),
        14 => (doc! { "$bottomN": { "sortBy": by, "output": "$n", "n": n } }, Then::Nothing),
        15 => {
            let spec = doc! { "init": "function() { return 0; }", "accumulate": "function(s, n) { return s + n; }",
            "accumulateArgs": ["$n"], "merge": "function(a, b) { return a + b; }", "lang": "js" };
            (doc! { "$accumulator": spec }, Then::Nothing)
        }
        16 => (doc! { "$first": "$_id" }, Then::Nothing),
        17 => (doc! { "$last": "$x" }, Then::Nothing),
        18 => (doc! { "$firstN": { "input": "$_id", "n": n } }, Then::Nothing),
        19 => (doc! { "$lastN": { "input": "$s", "n": n } }, Then::Nothing),
        20 => (doc! { "$mergeObjects": "$d" }, Then::Nothing),
        _ => (doc! { "$push": "$_id" }, Then::Nothing),
    }
}

/// Of `$setWindowFields`: the sort, the output, and what is to be done behind.
pub(crate) fn window(c: &mut Chance) -> (Document, Document, Then) {
    let total = doc! { "n": 1, "_id": 1 };
    let (low, high) = (-c.below(4), c.below(3));
    let documents = c.one(&[
        doc! { "documents": [low, high] },
        doc! { "documents": ["unbounded", "current"] },
        doc! { "documents": ["unbounded", "unbounded"] },
    ]);
    let range = doc! { "range": [low * 2, high * 3] };
    let within = |function: Document, window: &Document| {
        let mut d = function;
        d.push("window", window.clone());
        d
    };
    let single = doc! { "n": 1 };
    match c.below(18) {
        0 => (total, within(doc! { "$sum": "$f" }, &documents), Then::Nothing),
        1 => (total, within(doc! { "$avg": "$n" }, &documents), Then::Nothing),
        2 => (total, within(doc! { "$push": "$_id" }, &documents), Then::Nothing),
        3 => (total, within(doc! { "$stdDevPop": "$f" }, &documents), Then::Round),
        4 => (total, within(doc! { "$covariancePop": ["$n", "$f"] }, &documents), Then::Round),
        5 => (total, within(doc! { "$min": "$x" }, &documents), Then::Nothing),
        6 => (total, within(doc! { "$last": "$s" }, &documents), Then::Nothing),
        7 => (
            total,
            within(
                doc! { "$topN": { "n": 2, "sortBy": { "f": 1, "_id": 1 }, "output": "$_id" } },
                &documents,
            ),
            Then::Nothing,
        ),
        8 => (total, within(doc! { "$addToSet": "$g" }, &documents), Then::Sort),
        9 => (single, within(doc! { "$sum": "$f" }, &range), Then::Nothing),
        10 => (single, within(doc! { "$max": "$k" }, &range), Then::Nothing),
        11 => (single, doc! { "$rank": {} }, Then::Nothing),
        12 => (single, doc! { "$denseRank": {} }, Then::Nothing),
        13 => (total, doc! { "$documentNumber": {} }, Then::Nothing),
        14 => (
            total,
            doc! { "$shift": { "output": "$_id", "by": c.one(&[-1, 2]), "default": "none" } },
            Then::Nothing,
        ),
        15 => (total, doc! { "$expMovingAvg": { "input": "$f", "N": 3 } }, Then::Nothing),
        16 => (total, doc! { "$locf": "$x" }, Then::Nothing),
        _ => (
            doc! { "_id": 1 },
            within(doc! { "$derivative": { "input": "$f" } }, &doc! { "range": [-20, 0] }),
            Then::Round,
        ),
    }
}

/// Empty slots in a series.
pub(crate) fn gaps(c: &mut Chance) -> Vec<Document> {
    match c.below(3) {
        0 => vec![
            doc! { "$densify": { "field": "n", "partitionByFields": ["g"], "range": { "step": 7, "bounds": [0, 50] } } },
            doc! { "$group": { "_id": "$g", "n": { "$sum": 1 }, "sum": { "$sum": "$n" } } },
            doc! { "$sort": { "_id": 1 } },
        ],
        1 => vec![
            doc! { "$densify": { "field": "at", "range": { "step": 100, "unit": "hour", "bounds": "full" } } },
            doc! { "$group": { "_id": Bson::Null, "n": { "$sum": 1 }, "last": { "$max": "$at" } } },
        ],
        _ => vec![
            doc! { "$fill": { "partitionBy": { "g": "$g" }, "sortBy": { "n": 1, "_id": 1 }, "output": { "x": { "method": "locf" }, "y": { "value": 3 } } } },
            doc! { "$project": { "x": 1, "y": 1 } },
            doc! { "$sort": { "_id": 1 } },
        ],
    }
}
