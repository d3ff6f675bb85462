//! Every stage there is can be cloned, compared, and written down for another server.

use super::{Pipeline, names, registry};
use crate::ctx::QueryCtx;
use pando_bson::{DocBuf, extjson};

/// Of each stage, pipelines that have it; all different.
const SAMPLES: &[(&str, &[&str])] = &[
    (
        "$addFields",
        &[
            r#"{"$addFields":{"a.b":{"$add":["$c",{"$numberLong":"1"}]},"d":{"e":"$$NOW"}}}"#,
            r#"{"$addFields":{"a":1}}"#,
        ],
    ),
    (
        "$set",
        &[
            r#"{"$set":{"a":{"$map":{"input":"$l","as":"x","in":{"$regexMatch":{"input":"$$x","regex":"a.b"}}}}}}"#,
        ],
    ),
    (
        "$bucketAuto",
        &[
            r#"{"$bucketAuto":{"groupBy":"$a","buckets":3}}"#,
            r#"{"$bucketAuto":{"groupBy":"$a","buckets":3,"output":{"n":{"$sum":"$v"}},"granularity":"R5"}}"#,
        ],
    ),
    (
        "$bucket",
        &[r#"{"$bucket":{"groupBy":"$a","boundaries":[0,5,{"$numberDouble":"7.5"}],"default":"more"}}"#],
    ),
    ("$count", &[r#"{"$count":"n"}"#]),
    (
        "$densify",
        &[
            r#"{"$densify":{"field":"t.u","partitionByFields":["a"],"range":{"step":2,"bounds":"partition"}}}"#,
            r#"{"$densify":{"field":"t","range":{"step":1,"unit":"hour","bounds":"full"}}}"#,
        ],
    ),
    (
        "$facet",
        &[
            r#"{"$facet":{"x":[{"$match":{"a":1}},{"$unwind":"$l"}],"y":[{"$sort":{"a":1}},{"$limit":2}]}}"#,
            r#"{"$facet":{"x":[]}}"#,
        ],
    ),
    (
        "$fill",
        &[
            r#"{"$fill":{"sortBy":{"t":1},"output":{"v":{"method":"linear"},"w":{"value":"$z"},"u":{"method":"locf"}}}}"#,
        ],
    ),
    (
        "$geoNear",
        &[
            r#"{"$geoNear":{"near":[1,2],"distanceField":"d.e","key":"p","query":{"a":1},"maxDistance":3}}"#,
            r#"{"$geoNear":{"near":{"type":"Point","coordinates":[1,2]},"spherical":true,"distanceField":"d","includeLocs":"l"}}"#,
        ],
    ),
    (
        "$graphLookup",
        &[
            r#"{"$graphLookup":{"from":"o","startWith":"$a","connectFromField":"b","connectToField":"c","as":"d","maxDepth":2,"depthField":"n","restrictSearchWithMatch":{"x":1}}}"#,
        ],
    ),
    (
        "$group",
        &[
            r#"{"$group":{"_id":"$a"}}"#,
            r#"{"$group":{"_id":{"x":"$a","y":{"$toUpper":"$b"}},"s":{"$sum":"$v"},"t":{"$topN":{"n":2,"sortBy":{"v":-1},"output":"$b"}},"m":{"$median":{"input":"$v","method":"approximate"}}}}"#,
        ],
    ),
    ("$limit", &[r#"{"$limit":5}"#, r#"{"$limit":{"$numberLong":"6"}}"#]),
    (
        "$lookup",
        &[
            r#"{"$lookup":{"from":"o","localField":"a","foreignField":"b","as":"j"}}"#,
            r#"{"$lookup":{"from":"o","let":{"w":"$a"},"pipeline":[{"$match":{"$expr":{"$eq":["$b","$$w"]}}}],"as":"j"}}"#,
            r#"{"$lookup":{"from":"o","localField":"a","foreignField":"b","as":"j"}},{"$unwind":"$j"}"#,
            r#"{"$lookup":{"from":"o","localField":"a","foreignField":"b","as":"j"}},{"$unwind":{"path":"$j","includeArrayIndex":"i"}}"#,
            r#"{"$lookup":{"from":"o","localField":"a","foreignField":"b","as":"j"}},{"$unwind":"$j"},{"$match":{"j.c":{"$gt":1},"z":3,"j":{"$ne":2}}}"#,
        ],
    ),
    (
        "$match",
        &[
            r#"{"$match":{"a":{"$in":[1,null]},"$or":[{"b":1},{"c":{"$regularExpression":{"pattern":"^x","options":"i"}}}]}}"#,
            r#"{"$match":{"$expr":{"$gt":["$a","$b"]}}}"#,
            r#"{"$project":{"z":"$a"}},{"$match":{"z":1}}"#,
        ],
    ),
    (
        "$merge",
        &[
            r#"{"$match":{"a":1}},{"$merge":{"into":{"db":"d","coll":"c"},"on":["a","b"],"let":{"x":"$v"},"whenMatched":[{"$set":{"y":"$$x"}}],"whenNotMatched":"discard"}}"#,
        ],
    ),
    ("$out", &[r#"{"$out":"c"}"#, r#"{"$out":{"db":"d","coll":"c"}}"#]),
    ("$project", &[r#"{"$project":{"a":1,"b.c":"$d","_id":0}}"#, r#"{"$project":{"a":0,"b":{"c":0}}}"#]),
    ("$redact", &[r#"{"$redact":{"$cond":[{"$eq":["$l",1]},"$$PRUNE","$$DESCEND"]}}"#]),
    ("$replaceRoot", &[r#"{"$replaceRoot":{"newRoot":{"$mergeObjects":["$$ROOT",{"x":1}]}}}"#]),
    ("$replaceWith", &[r#"{"$replaceWith":"$a"}"#]),
    ("$sample", &[r#"{"$sample":{"size":3}}"#]),
    (
        "$setWindowFields",
        &[
            r#"{"$setWindowFields":{"partitionBy":"$a","sortBy":{"t":1},"output":{"x":{"$sum":"$v","window":{"documents":[-1,0]}},"y":{"$rank":{}},"z":{"$shift":{"output":"$v","by":-1}},"w.v":{"$push":"$v"}}}}"#,
            r#"{"$setWindowFields":{"partitionBy":{"$mod":["$a",2]},"sortBy":{"t":1},"output":{"x":{"$derivative":{"input":"$v"},"window":{"range":[-1,1]}},"c":{"$covariancePop":["$v","$w"]}}}}"#,
            r#"{"$setWindowFields":{"sortBy":{"t":1},"output":{"x":{"$integral":{"input":"$v"}},"e":{"$expMovingAvg":{"input":"$v","N":2}},"s":{"$stdDevPop":"$v","window":{"documents":[-1,1]}},"m":{"$max":"$v"},"f":{"$first":"$v"}}}}"#,
        ],
    ),
    ("$skip", &[r#"{"$skip":5}"#, r#"{"$sort":{"a":1}},{"$skip":5},{"$limit":2}"#]),
    (
        "$sort",
        &[
            r#"{"$sort":{"a.b":1,"c":-1}}"#,
            r#"{"$sort":{"a":1}},{"$limit":7}"#,
            r#"{"$sort":{"a":1}},{"$project":{"k":{"$meta":"sortKey"}}}"#,
            r#"{"$lookup":{"from":"o","localField":"a","foreignField":"b","as":"j"}},{"$sort":{"a":-1}},{"$limit":1}"#,
        ],
    ),
    ("$sortByCount", &[r#"{"$sortByCount":"$a"}"#]),
    (
        "$unionWith",
        &[r#"{"$unionWith":"o"}"#, r#"{"$unionWith":{"coll":"o","pipeline":[{"$match":{"a":1}}]}}"#],
    ),
    ("$unset", &[r#"{"$unset":["a","b.c"]}"#, r#"{"$unset":"a"}"#]),
    (
        "$unwind",
        &[
            r#"{"$unwind":"$a.b"}"#,
            r#"{"$unwind":{"path":"$a","preserveNullAndEmptyArrays":true,"includeArrayIndex":"i"}}"#,
            r#"{"$unwind":"$a"},{"$group":{"_id":"$a"}}"#,
        ],
    ),
    (
        "$_internalUnpackBucket",
        &[
            r#"{"$_internalUnpackBucket":{"timeField":"t","metaField":"m","bucketMaxSpanSeconds":3600}}"#,
            r#"{"$_internalUnpackBucket":{"timeField":"t","metaField":"m","bucketMaxSpanSeconds":3600}},{"$match":{"m.a":1,"x":{"$gt":2},"t":{"$gt":{"$date":{"$numberLong":"7200000"}}}}},{"$sort":{"m.b":1}},{"$group":{"_id":"$m","n":{"$max":"$x"}}}"#,
            r#"{"$_internalUnpackBucket":{"timeField":"t","metaField":"m","bucketMaxSpanSeconds":3600}},{"$geoNear":{"near":[1,2],"distanceField":"d","key":"m.p"}}"#,
            r#"{"$_internalUnpackBucket":{"timeField":"t","bucketMaxSpanSeconds":3600}},{"$geoNear":{"near":{"type":"Point","coordinates":[1,2]},"spherical":true,"maxDistance":9,"distanceField":"d","key":"p"}}"#,
        ],
    ),
    (
        "$changeStream",
        &[r#"{"$changeStream":{"fullDocument":"updateLookup"}},{"$match":{"operationType":"insert"}}"#],
    ),
    ("$changeStreamSplitLargeEvent", &[r#"{"$changeStream":{}},{"$changeStreamSplitLargeEvent":{}}"#]),
    ("$collStats", &[r#"{"$collStats":{"count":{}}}"#, r#"{"$collStats":{"storageStats":{"scale":1024}}}"#]),
    ("$currentOp", &[r#"{"$currentOp":{"allUsers":true}},{"$match":{"a":1}}"#]),
    ("$documents", &[r#"{"$documents":[{"a":1},{"b":{"$add":[1,1]}}]}"#]),
    ("$indexStats", &[r#"{"$indexStats":{}}"#]),
    ("$listLocalSessions", &[r#"{"$listLocalSessions":{"allUsers":true}}"#]),
    ("$listSessions", &[r#"{"$listSessions":{}}"#]),
    ("$planCacheStats", &[r#"{"$planCacheStats":{}}"#]),
    // Stages that only another server may name.
    (
        "$_internalComputeGeoNearDistance",
        &[
            r#"{"$_internalComputeGeoNearDistance":{"$near":[1,2],"key":"p","distanceField":"d","distanceMultiplier":{"$numberDouble":"1.0"},"includeLocs":"l","keepsAll":true}}"#,
        ],
    ),
    ("$_internalDensify", &[r#"{"$_internalDensify":{"field":"t","range":{"step":1,"bounds":"full"}}}"#]),
    (
        "$_internalSetWindowFields",
        &[
            r#"{"$_internalSetWindowFields":{"sortBy":{"t":1},"output":{"x":{"$locf":"$v"},"y":{"$linearFill":"$v"}}}}"#,
        ],
    ),
];

fn array(text: &str) -> DocBuf {
    let holder =
        extjson::parse(&format!("{{\"p\":[{text}]}}")).unwrap_or_else(|e| panic!("{e}: {text}")).to_raw();
    holder.get("p").and_then(|v| v.as_array()).unwrap().to_buf()
}

#[test]
fn every_stage_is_cloned_compared_and_written_down() {
    let ctx = QueryCtx::default();
    let (users, servers) = (names().collect::<Vec<_>>(), registry::forwarded_names().collect::<Vec<_>>());
    for name in users.iter().chain(&servers) {
        let found = SAMPLES.iter().find(|(n, _)| n == name);
        let samples = found.unwrap_or_else(|| panic!("no sample of {name}")).1;
        let mut before: Vec<Pipeline> = Vec::new();
        for text in samples {
            assert!(text.contains(&format!("\"{name}\"")), "{name} is not in {text}");
            let parsed = match users.contains(name) {
                true => Pipeline::parse(&array(text), &ctx),
                false => Pipeline::parse_forwarded(&array(text), &ctx),
            };
            let parsed = parsed.unwrap_or_else(|e| panic!("{text}: {e}"));
            assert!(parsed.clone() == parsed, "{text}");
            let spelled = parsed.spelled();
            let again =
                Pipeline::parse_forwarded(&spelled, &ctx).unwrap_or_else(|e| panic!("{spelled}: {e}"));
            assert!(again == parsed, "{text}: {parsed:?} became {again:?}");
            assert_eq!(again.spelled(), spelled);
            assert!(before.iter().all(|other| *other != parsed), "{text} equals another one");
            before.push(parsed);
        }
    }
}

#[test]
fn what_only_servers_say_users_may_not() {
    let ctx = QueryCtx::default();
    let refused =
        |text: &str| Pipeline::parse(&array(text), &ctx).map(drop).map_err(|e| e.code.0).unwrap_err();
    for name in registry::forwarded_names() {
        assert_eq!(refused(&format!("{{\"{name}\":{{}}}}")), 40324);
    }
    assert_eq!(refused(r#"{"$group":{"_id":1,"$doingMerge":true}}"#), 17030);
    assert_eq!(refused(r#"{"$group":{"_id":1,"$willBeMerged":true}}"#), 40234);
    assert_eq!(refused(r#"{"$sample":{"size":1,"$_internalOutputSortKeyMetadata":true}}"#), 28748);
}

#[test]
fn a_pipeline_tells_what_it_depends_on() {
    let text = r#"{"$match":{"a":1}},{"$lookup":{"from":"o","let":{"own":"$b.c"},"pipeline":[{"$match":{"$expr":{"$eq":["$x","$$own"]}}},{"$addFields":{"n":"$$NOW"}}],"as":"j"}},{"$group":{"_id":"$d","n":{"$sum":"$j.n"}}},{"$facet":{"f":[{"$unionWith":"p"}]}},{"$merge":"q"}"#;
    let d = Pipeline::parse(&array(text), &QueryCtx::default()).unwrap().dependencies();
    assert_eq!(d.fields.unwrap(), ["a", "b.c", "d", "j.n"]);
    assert_eq!(d.variables.into_iter().collect::<Vec<_>>(), ["NOW"]);
    assert_eq!(d.collections.into_iter().collect::<Vec<_>>(), ["o", "p"]);
    assert_eq!(d.writes.unwrap().coll, "q");
}
