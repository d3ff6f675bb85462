//! COMPAT.md's table of the query language. What is in it is asked of the parsers themselves: a stage or operator that they
//! do not know is missing. `BLESS=1 cargo test -p pando-query --test compat` rewrites it.

use pando_bson::extjson::parse;
use pando_bson::{Bson, DocBuf, RawDoc};
use pando_query::QueryCtx;
use pando_query::expr::Expr;
use pando_query::matcher::Matcher;
use pando_query::stage::Pipeline;
use pando_query::update::UpdatePlan;
use pando_testkit::compat::check;
use std::fmt::Write;

const BEGIN: &str = "<!-- language: from the parsers -->\n";
const END: &str = "<!-- end of language -->\n";

const STAGES: &str = "$addFields $bucket $bucketAuto $changeStream $changeStreamSplitLargeEvent $collStats $count $currentOp \
    $densify $documents $facet $fill $geoNear $graphLookup $group $indexStats $limit $listLocalSessions \
    $listSampledQueries $listSessions $lookup $match $merge $out $planCacheStats $project $redact $replaceRoot \
    $replaceWith $sample $set $setWindowFields $skip $sort $sortByCount $unionWith $unset $unwind";
const EXPRESSIONS: &str = "$abs $acos $acosh $add $allElementsTrue $and $anyElementTrue $arrayElemAt \
    $arrayToObject $asin $asinh $atan $atan2 $atanh $avg $binarySize $bitAnd $bitNot $bitOr $bitXor $bsonSize $ceil $cmp \
    $concat $concatArrays $cond $const $convert $cos $cosh $dateAdd $dateDiff $dateFromParts $dateFromString \
    $dateSubtract $dateToParts $dateToString $dateTrunc $dayOfMonth $dayOfWeek $dayOfYear $degreesToRadians $divide $eq \
    $exp $filter $first $firstN $floor $function $getField $gt $gte $hour $ifNull $in $indexOfArray $indexOfBytes \
    $indexOfCP $isArray $isNumber $isoDayOfWeek $isoWeek $isoWeekYear $last $lastN $let $literal $ln $log $log10 $lt \
    $lte $ltrim $map $max $maxN $median $mergeObjects $meta $millisecond $min $minN $minute $mod $month $multiply $ne \
    $not $objectToArray $or $percentile $pow $radiansToDegrees $rand $range $reduce $regexFind $regexFindAll \
    $regexMatch $replaceAll $replaceOne $reverseArray $round $rtrim $second $setDifference $setEquals $setField \
    $setIntersection $setIsSubset $setUnion $sin $sinh $size $slice $sortArray $split $sqrt $stdDevPop $stdDevSamp \
    $strLenBytes $strLenCP $strcasecmp $substr $substrBytes $substrCP $subtract $sum $switch $tan $tanh $toBool $toDate \
    $toDecimal $toDouble $toHashedIndexKey $toInt $toLong $toLower $toObjectId $toString $toUpper $trim $trunc \
    $tsIncrement $tsSecond $type $unsetField $week $year $zip";
const ACCUMULATORS: &str = "$accumulator $addToSet $avg $bottom $bottomN $count $first $firstN $last $lastN $max $maxN $median \
    $mergeObjects $min $minN $percentile $push $stdDevPop $stdDevSamp $sum $top $topN";
const WINDOWS: &str = "$addToSet $avg $bottom $bottomN $count $covariancePop $covarianceSamp $denseRank $derivative \
    $documentNumber $expMovingAvg $first $firstN $integral $last $lastN $linearFill $locf $max $maxN $median $min $minN \
    $percentile $push $rank $shift $stdDevPop $stdDevSamp $sum $top $topN";

/// Something that uses each operator, so that only an unknown one is refused.
const QUERY: &[(&str, &str)] = &[
    ("$all", r#"{"a":{"$all":[1]}}"#),
    ("$and", r#"{"$and":[{"a":1}]}"#),
    ("$bitsAllClear", r#"{"a":{"$bitsAllClear":1}}"#),
    ("$bitsAllSet", r#"{"a":{"$bitsAllSet":1}}"#),
    ("$bitsAnyClear", r#"{"a":{"$bitsAnyClear":1}}"#),
    ("$bitsAnySet", r#"{"a":{"$bitsAnySet":1}}"#),
    ("$comment", r#"{"$comment":"x"}"#),
    ("$elemMatch", r#"{"a":{"$elemMatch":{"b":1}}}"#),
    ("$eq", r#"{"a":{"$eq":1}}"#),
    ("$exists", r#"{"a":{"$exists":true}}"#),
    ("$expr", r#"{"$expr":true}"#),
    ("$geoIntersects", r#"{"a":{"$geoIntersects":{"$geometry":{"type":"Point","coordinates":[1,2]}}}}"#),
    ("$geoWithin", r#"{"a":{"$geoWithin":{"$center":[[1,2],3]}}}"#),
    ("$gt", r#"{"a":{"$gt":1}}"#),
    ("$gte", r#"{"a":{"$gte":1}}"#),
    ("$in", r#"{"a":{"$in":[1]}}"#),
    ("$jsonSchema", r#"{"$jsonSchema":{}}"#),
    ("$lt", r#"{"a":{"$lt":1}}"#),
    ("$lte", r#"{"a":{"$lte":1}}"#),
    ("$mod", r#"{"a":{"$mod":[2,1]}}"#),
    ("$ne", r#"{"a":{"$ne":1}}"#),
    ("$near", r#"{"a":{"$near":[1,2]}}"#),
    ("$nearSphere", r#"{"a":{"$nearSphere":[1,2]}}"#),
    ("$nin", r#"{"a":{"$nin":[1]}}"#),
    ("$nor", r#"{"$nor":[{"a":1}]}"#),
    ("$not", r#"{"a":{"$not":{"$gt":1}}}"#),
    ("$or", r#"{"$or":[{"a":1}]}"#),
    ("$regex", r#"{"a":{"$regex":"x"}}"#),
    ("$sampleRate", r#"{"$sampleRate":0.5}"#),
    ("$size", r#"{"a":{"$size":1}}"#),
    ("$text", r#"{"$text":{"$search":"x"}}"#),
    ("$type", r#"{"a":{"$type":2}}"#),
    ("$where", r#"{"$where":"true"}"#),
];
const UPDATE: &[(&str, &str)] = &[
    ("$addToSet", r#"{"$addToSet":{"a":1}}"#),
    ("$bit", r#"{"$bit":{"a":{"and":1}}}"#),
    ("$currentDate", r#"{"$currentDate":{"a":true}}"#),
    ("$each", r#"{"$push":{"a":{"$each":[1]}}}"#),
    ("$inc", r#"{"$inc":{"a":1}}"#),
    ("$max", r#"{"$max":{"a":1}}"#),
    ("$min", r#"{"$min":{"a":1}}"#),
    ("$mul", r#"{"$mul":{"a":1}}"#),
    ("$pop", r#"{"$pop":{"a":1}}"#),
    ("$position", r#"{"$push":{"a":{"$each":[1],"$position":0}}}"#),
    ("$pull", r#"{"$pull":{"a":1}}"#),
    ("$pullAll", r#"{"$pullAll":{"a":[1]}}"#),
    ("$push", r#"{"$push":{"a":1}}"#),
    ("$rename", r#"{"$rename":{"a":"b"}}"#),
    ("$set", r#"{"$set":{"a":1}}"#),
    ("$setOnInsert", r#"{"$setOnInsert":{"a":1}}"#),
    ("$slice", r#"{"$push":{"a":{"$each":[1],"$slice":1}}}"#),
    ("$sort", r#"{"$push":{"a":{"$each":[1],"$sort":1}}}"#),
    ("$unset", r#"{"$unset":{"a":1}}"#),
];
/// Index types, which the catalog knows. Its own tests (`index.types` of the differential corpus) show them.
const INDEXES: &[(&str, &str)] = &[
    ("single, compound, multikey", "done"),
    ("unique, sparse, partial, TTL, hidden", "done"),
    ("hashed, compound hashed", "done"),
    ("wildcard, compound wildcard", "done"),
    ("clustered", "done"),
    ("text", "done"),
    ("2d", "done"),
    ("2dsphere", "done"),
];
/// What is there with less than all of it.
const PARTIAL: &[(&str, &str)] = &[(
    "$listSessions",
    "partial: the sessions this node knows, not what the set has recorded in `config.system.sessions`",
)];

fn doc(text: &str) -> DocBuf {
    parse(text).expect("a document").to_raw()
}

fn pipeline(stage: &str) -> Result<(), pando_base::Error> {
    let holder = doc(&format!(r#"{{"p":[{stage}]}}"#));
    let stages = holder.get("p").and_then(|v| v.as_array()).expect("an array");
    Pipeline::parse(stages, &QueryCtx::default()).map(drop)
}

/// Refused for another reason than that nobody knows it.
fn known(answer: Result<(), pando_base::Error>, unknown: &[&str]) -> bool {
    answer.err().is_none_or(|e| !unknown.iter().any(|text| e.message.contains(text)))
}

fn stage_known(name: &str) -> bool {
    known(
        pipeline(&format!(r#"{{"{name}":{{}}}}"#)),
        &["Unrecognized pipeline stage", "is not supported by this server"],
    )
}

fn group_known(name: &str) -> bool {
    known(
        pipeline(&format!(r#"{{"$group":{{"_id":null,"x":{{"{name}":{{}}}}}}}}"#)),
        &["unknown group operator"],
    )
}

fn window_known(name: &str) -> bool {
    let stage =
        format!(r#"{{"$setWindowFields":{{"sortBy":{{"a":1}},"output":{{"x":{{"{name}":{{}}}}}}}}}}"#);
    known(pipeline(&stage), &["Unrecognized window function"])
}

fn query_known(sample: &str) -> bool {
    let parsed = Matcher::parse(&doc(sample), &QueryCtx::default());
    // Without an engine `$where` is refused, but known.
    parsed.err().is_none_or(|e| e.message.starts_with("no globalScriptEngine"))
}

fn update_known(sample: &str) -> bool {
    let update = Bson::Document(parse(sample).expect("a document"));
    let Bson::Document(update) = update else { return false };
    let raw = update.to_raw();
    let raw: &RawDoc = &raw;
    UpdatePlan::parse(pando_bson::Value::Document(raw), None, &QueryCtx::default()).is_ok()
}

fn row(out: &mut String, kind: &str, all: &[(&str, bool)]) {
    let names = |want: bool| {
        let partial = |n: &str| PARTIAL.iter().any(|(p, _)| *p == n);
        let names: Vec<String> = all
            .iter()
            .filter(|(n, known)| *known == want && !(want && partial(n)))
            .map(|(n, _)| format!("`{n}`"))
            .collect();
        names.join(" ")
    };
    let partial: Vec<String> = PARTIAL
        .iter()
        .filter(|(p, _)| all.iter().any(|(n, known)| n == p && *known))
        .map(|(n, why)| format!("`{n}` ({})", why.trim_start_matches("partial: ")))
        .collect();
    let _ = writeln!(out, "| {kind} | {} | {} | {} |", names(true), partial.join(", "), names(false));
}

fn table() -> String {
    let listed = |names: &'static str, known: &dyn Fn(&str) -> bool| -> Vec<(&'static str, bool)> {
        names.split_whitespace().map(|n| (n, known(n))).collect()
    };
    let sampled = |samples: &'static [(&'static str, &'static str)], known: &dyn Fn(&str) -> bool| {
        samples.iter().map(|(n, s)| (*n, known(s))).collect::<Vec<_>>()
    };
    let mut out = String::from("| | done | partial | missing |\n|---|---|---|---|\n");
    row(&mut out, "stages", &listed(STAGES, &stage_known));
    row(&mut out, "expression operators", &listed(EXPRESSIONS, &Expr::is_operator));
    row(&mut out, "accumulators", &listed(ACCUMULATORS, &group_known));
    row(&mut out, "window functions", &listed(WINDOWS, &window_known));
    row(&mut out, "query operators", &sampled(QUERY, &query_known));
    row(&mut out, "update operators", &sampled(UPDATE, &update_known));
    let indexes: Vec<(&str, bool)> = INDEXES.iter().map(|(n, state)| (*n, *state == "done")).collect();
    row(&mut out, "index types", &indexes);
    out
}

#[test]
fn compat_lists_what_the_parsers_know() {
    check(env!("CARGO_MANIFEST_DIR"), BEGIN, END, &table(), "the parsers");
}

#[test]
fn an_unknown_name_counts_as_missing() {
    assert!(!stage_known("$nope") && !group_known("$nope") && !window_known("$nope"));
    assert!(!query_known(r#"{"a":{"$nope":1}}"#) && !update_known(r#"{"$nope":{"a":1}}"#));
    assert!(stage_known("$lookup") && group_known("$sum") && window_known("$rank"));
}
