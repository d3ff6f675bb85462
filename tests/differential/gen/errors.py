"""What every operator says of arguments of the wrong type, too few or too many of them, and fields it does not know."""
from .data import DATE, NAN

UNARY = "$abs $acos $acosh $allElementsTrue $anyElementTrue $arrayToObject $asin $asinh $atan $atanh $binarySize $bsonSize $ceil $cos $cosh $dayOfMonth $dayOfWeek $dayOfYear $degreesToRadians $exp $floor $hour $isArray $isNumber $isoDayOfWeek $isoWeek $isoWeekYear $ln $log10 $millisecond $minute $month $not $objectToArray $radiansToDegrees $reverseArray $second $sin $sinh $size $sqrt $strLenBytes $strLenCP $tan $tanh $toBool $toDate $toDecimal $toDouble $toInt $toLong $toLower $toObjectId $toString $toUpper $tsIncrement $tsSecond $type $week $year"
BINARY = "$add $arrayElemAt $atan2 $cmp $concat $concatArrays $divide $eq $gt $gte $ifNull $in $indexOfArray $indexOfBytes $indexOfCP $log $lt $lte $mod $multiply $ne $pow $range $round $setDifference $setIntersection $setUnion $slice $split $strcasecmp $subtract $trunc"
NAMED = "$convert $dateAdd $dateDiff $dateFromParts $dateFromString $dateSubtract $dateToParts $dateToString $dateTrunc $filter $firstN $getField $lastN $let $ltrim $map $maxN $minN $reduce $regexFind $regexFindAll $regexMatch $replaceAll $replaceOne $rtrim $setField $sortArray $switch $trim $unsetField $zip $cond"
ARGS = ["x", 5, None, NAN, True, {"foo": 1}, [], ["x"], [1, 2, 3, 4], "$missing", ["$missing", "$missing"], ["x", 1], [1, "x"], [[1], [2]], [DATE(0), 5]]
FIELDS = ["x", 5, None, [], [1], {"foo": 1}, {"input": "$missing"}, {"input": 5, "foo": 1}, {"input": None, "date": None}, {"date": "x"}, True]
ACCUMULATORS = "$addToSet $avg $bottom $bottomN $count $first $firstN $last $lastN $max $maxN $min $minN $push $stdDevPop $stdDevSamp $sum $top $topN"
WINDOWS = "$covariancePop $covarianceSamp $denseRank $derivative $documentNumber $integral $linearFill $locf $rank $shift"
GROUPED = ["x", 5, None, {"foo": 1}, [], [1, 2], {"n": "x", "input": 1}, {"n": -1, "input": 1}, {"n": 1}, {"input": 1}, {"sortBy": 1, "output": 1}, {"$add": 1, "$foo": 1}]
UPDATES = "$addToSet $bit $inc $max $min $mul $pull $pullAll $push $rename $unset"
CHANGES = ["x", 5, None, {"foo": 1}, [], [1, "x"], {"$each": 1}, {"$each": [1], "$foo": 1}, {"$each": [1], "$slice": "x"}, {"$each": [1], "$position": "x"}, {"$each": [1], "$sort": "x"}, {"and": "x"}, {"xor": 5, "foo": 1}]
FILTERS = "$all $bitsAllClear $bitsAnySet $elemMatch $exists $in $mod $nin $not $regex $size $type"
DOCS = [{"_id": 1, "a": 1, "l": [1, 2], "s": "x"}]


def pipeline(*stages):
    return {"docs": DOCS, "cmd": {"aggregate": "w", "pipeline": list(stages), "cursor": {}}, "after": False}


def expressions(rnd):
    for ops, args in [(UNARY, ARGS), (BINARY, ARGS), (NAMED, FIELDS)]:
        for op in ops.split():
            for v in args:
                yield pipeline({"$project": {"_id": 0, "x": {op: v}}})


def accumulators(rnd):
    for op in ACCUMULATORS.split():
        for v in GROUPED:
            yield pipeline({"$group": {"_id": None, "x": {op: v}}})
    for op in (ACCUMULATORS + " " + WINDOWS).split():
        for v in GROUPED:
            yield pipeline({"$setWindowFields": {"sortBy": {"a": 1}, "output": {"x": {op: v}}}})


def updates(rnd):
    for op in UPDATES.split():
        for v in CHANGES:
            for f in ["a", "l", "s"]:
                yield {"docs": DOCS, "cmd": {"update": "w", "updates": [{"q": {"_id": 1}, "u": {op: {f: v}}}]}}


def filters(rnd):
    for op in FILTERS.split():
        for v in ["x", 5, None, NAN, {"foo": 1}, [], ["x"], [1, "x"], [1, 2, 3], {"$type": "x"}, 1.5, -1]:
            yield {"docs": DOCS, "cmd": {"find": "w", "filter": {"a": {op: v}}}, "after": False}


STAGES = {
    "$lookup": [{"from": "w", "localField": "a", "foreignField": "a", "as": "x"}, {"from": "w", "let": {"v": "$a"}, "pipeline": [], "as": "x"}],
    "$graphLookup": [{"from": "w", "startWith": "$a", "connectFromField": "a", "connectToField": "s", "as": "x", "maxDepth": 1, "depthField": "d", "restrictSearchWithMatch": {}}],
    "$bucket": [{"groupBy": "$a", "boundaries": [0, 5], "default": "other", "output": {"n": {"$sum": 1}}}],
    "$bucketAuto": [{"groupBy": "$a", "buckets": 2, "granularity": "R5", "output": {"n": {"$sum": 1}}}],
    "$unwind": [{"path": "$l", "preserveNullAndEmptyArrays": True, "includeArrayIndex": "i"}],
    "$group": [{"_id": "$a", "n": {"$sum": 1}}],
    "$sort": [{"a": 1}],
    "$sample": [{"size": 1}],
    "$addFields": [{"x": 1}],
    "$project": [{"a": 1}],
    "$replaceRoot": [{"newRoot": {"a": 1}}],
    "$unionWith": [{"coll": "w", "pipeline": []}],
    "$facet": [{"x": []}],
    "$densify": [{"field": "a", "partitionByFields": ["s"], "range": {"step": 1, "bounds": "full"}}],
    "$fill": [{"sortBy": {"a": 1}, "partitionByFields": ["s"], "output": {"x": {"method": "locf"}}}],
    "$setWindowFields": [{"partitionBy": "$s", "sortBy": {"a": 1}, "output": {"x": {"$sum": "$a", "window": {"documents": [-1, 0]}}}}],
    "$geoNear": [{"near": [0, 0], "distanceField": "d", "key": "g", "spherical": True, "maxDistance": 1, "query": {}}],
}
OPTIONS = ["x", "$a", "", 5, -1, 1.5, None, NAN, True, {"foo": 1}, {"$foo": 1}, {}, [], [1], ["a", "$a"]]


def stages(rnd):
    for name, specs in STAGES.items():
        for v in OPTIONS:
            yield pipeline({name: v})
        for spec in specs:
            for field in spec:
                for v in OPTIONS:
                    yield pipeline({name: {**spec, field: v}})
                yield pipeline({name: {f: v for f, v in spec.items() if f != field}})
            yield pipeline({name: {**spec, "foo": 1}})
    for name in ["$limit", "$skip", "$count", "$sortByCount", "$replaceWith", "$redact", "$match", "$unset", "$set", "$collStats", "$indexStats", "$planCacheStats"]:
        # Both tell where they run.
        for v in OPTIONS if name not in ("$collStats", "$indexStats") else [v for v in OPTIONS if v != {}]:
            yield pipeline({name: v})


TOPICS = {"errors.stages": stages, "errors.expressions": expressions, "errors.accumulators": accumulators, "errors.updates": updates, "errors.filters": filters}
