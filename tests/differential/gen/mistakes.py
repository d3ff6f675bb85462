"""Stages with a mistake in every place, alone and beside another: what is looked at first, and what counts as not given."""

DOCS = [{"_id": 1, "a": [1, [2], {"b": 9, "c": 1}, {"c": 2}, []], "s": "abc", "n": 1}, {"_id": 2, "a": {"b": 1}, "s": "xyz", "n": 2}, {"_id": 3, "a": [], "n": 3}]
UNDEFINED, LONG, DATE = {"$undefined": True}, lambda n: {"$numberLong": str(n)}, lambda ms: {"$date": {"$numberLong": str(ms)}}
DECIMAL = lambda text: {"$numberDecimal": text}


def case(*pipeline, **extra):
    return {"docs": DOCS, "cmd": {"aggregate": "w", "pipeline": list(pipeline), "cursor": {}, **extra}, "after": False}


def densify(rnd):
    bounds = [1, 5.0, DATE(-1), DATE(1000), {"$timestamp": {"t": 1, "i": 1}}, "a", None, {}, True, [], {"$minKey": 1}, {"$maxKey": 1}, {"$numberDouble": "NaN"}]
    for unit in ({}, {"unit": "day"}):
        for low in bounds:
            for high in bounds:
                yield case({"$densify": {"field": "x", "range": {"step": 1, **unit, "bounds": [low, high]}}})
    for docs in ([{"_id": 1, "x": 0}], [{"_id": 1, "x": 5}], [{"_id": 1, "x": 1}], [{"_id": 1, "x": 0}, {"_id": 2, "x": 5}], [{"_id": 1}]):
        for ends in ([1, 1], [1, 2]):
            stage = {"$densify": {"field": "x", "range": {"step": 1, "bounds": ends}}}
            yield {"docs": docs, "cmd": {"aggregate": "w", "pipeline": [stage], "cursor": {}}, "after": False}
    for step in (1.7976931348623157e308, 9.223372036854775e18, 9.223372036854776e18, DECIMAL("9223372036854775808"), DECIMAL("1E-6176"), DECIMAL("1.0000"), 0.5, LONG(2**63 - 1)):
        yield case({"$densify": {"field": "x", "range": {"step": step, "unit": "month", "bounds": "full"}}})
        yield case({"$densify": {"field": "x", "range": {"step": step, "unit": "", "bounds": []}}})
    whole = {"field": "x", "range": {"step": 1, "bounds": "full"}}
    for nothing in (UNDEFINED, None):
        for name in ("field", "range", "partitionByFields"):
            yield case({"$densify": {**whole, name: nothing}})
        for name in ("step", "unit", "bounds"):
            yield case({"$densify": {"field": "x", "range": {"step": 1, "bounds": "full", name: nothing}}})
        for names in ([nothing], [nothing, "b"], [nothing, 1], [nothing, ""]):
            yield case({"$densify": {**whole, "partitionByFields": names}})
            yield case({"$fill": {"partitionByFields": names, "output": {"x": {"method": "locf"}}}})
        for name in ("sortBy", "partitionBy", "partitionByFields", "output"):
            yield case({"$fill": {"output": {"x": {"value": 1}}, name: nothing}})
        for name in ("into", "whenMatched", "whenNotMatched", "let", "on", "targetCollectionVersion"):
            yield case({"$facet": {"x": [{"$merge": {"into": "x", name: nothing}}]}})
        for name in ("coll", "pipeline"):
            yield case({"$unionWith": {"coll": "nope", "pipeline": [], name: nothing}})
        for stages in ([nothing], [nothing, {"$limit": -1}], [nothing, 1], [{"$nope": 1}, 1]):
            yield case({"$unionWith": {"coll": "nope", "pipeline": stages}})
            yield case({"$lookup": {"from": "nope", "pipeline": stages, "as": "x"}})
        for name in ("near", "distanceField"):
            yield case({"$geoNear": {"near": [1, 1], "distanceField": "d", name: nothing}})


def windows(rnd):
    pairs = [[1, 0], [1, DECIMAL("0E+6111")], ["unbounded", "unbounded"], ["unbounded", 1], ["current", "current"], ["current", -1], [LONG(2**31), 1], [1, LONG(2**31)], [0, 1.5], [1.0, 2.0], [DECIMAL("0E+6111"), -1], [1, -2147483649.0], [1, DECIMAL("1E+40")], ["a", 1], [1, DATE(3)]]
    for kind in ("documents", "range"):
        for sort in ({}, {"sortBy": {"n": 1}}, {"sortBy": {"n": 1, "s": 1}}, {"sortBy": {"n": -1}}):
            for ends in pairs:
                yield case({"$setWindowFields": {**sort, "output": {"x": {"$sum": 1, "window": {kind: ends}}}}})
    for window in ({"range": [1, 0], "unit": "a"}, {"range": [0, LONG(2**40)], "unit": "day"}, {"range": ["unbounded", "unbounded"], "unit": "day"}, {"range": [0, 1.5], "unit": "a"}):
        for sort in ({}, {"sortBy": {"n": 1}}):
            yield case({"$setWindowFields": {**sort, "output": {"x": {"$sum": 1, "window": window}}}})
    for function in ({"$sum": 1}, {"$first": "$nope"}, {"$push": "$n"}):
        for path in ("a.b", "a.b.c", "a.c", "s.x", "a.0", "zz.y"):
            yield case({"$setWindowFields": {"sortBy": {"_id": 1}, "output": {path: function}}})
    for value in ("$n", "$s", "$nope"):
        for by in ("n", "s", "a"):
            for unit in ({}, {"unit": "second"}):
                for window in ({}, {"window": {"documents": [-1, 0]}}, {"window": {"documents": [5, 6]}}):
                    yield case({"$setWindowFields": {"sortBy": {by: 1}, "output": {"x": {"$integral": {"input": value, **unit}, **window}}}})


def shapes(rnd):
    for spec in ({"$slice": 1}, {"$add": "$$this"}, {"$substr": 1}, {"$let": 1}, {"$nope": 1}, {"$elemMatch": 1}, {"$meta": "x"}, "$$this", "$a..b", ["$$this"], [], "a", {"c": "$$this"}, {"c": {"$slice": 1}}):
        for others in ({"z": 0, "b": spec}, {"b": spec, "z": 0}, {"_id": 0, "b": spec}, {"b": 0, "_id": spec}):
            yield case({"$project": others})
            yield {"docs": DOCS, "cmd": {"find": "w", "projection": others}, "after": False}
    for path in ("a.$", "$", "a.$.b", "a.$b", "a.$id"):
        for spec in (path, ["x", path]):
            yield case({"$unset": spec})
        for spec in (0, 1, "x", {"b": 1}):
            yield case({"$project": {path: spec}})
    wrong = {"$add": "$$this"}
    for spec in ({"t": {"$a": 0, "a": 1}}, {"t": {"a": 1, "$a": 0}}, {"t": {"a": {"$a": 1, "b": 1}}}, {"t": {"a": 1, "$a": 0}, "": 1}, {"t": {"$a": 1}, "": 1}, {"t": wrong, "x.": 1}, {"t": wrong, "x": {}}, {"t": wrong, "x": 1, "x.y": 1}, {"t": wrong, "x": {"a.b": 1}}, {"t": {"a.b": 1, "$a": 1}}, {"t": {"a": 1, "b": wrong}, "u": {"v.w": 1}}, {"t": "$$this", "": 1}, {"t": {"x": wrong, "$x": 1}}):
        yield case({"$set": spec})


def inside(rnd):
    bad = {"$densify": {"field": 1}}
    for spec in ({"resumeAfter": {}}, {"fullDocument": "a"}, {"fullDocument": 1}, {"startAfter": {"_data": "zz"}}, {"nope": 1}, {"resumeAfter": None, "fullDocument": UNDEFINED}):
        stream = {"$changeStream": spec}
        for stages in ([stream], [stream, bad], [bad, stream], [{"$match": {}}, stream]):
            yield case({"$facet": {"a": stages}})
            yield case({"$lookup": {"from": "a", "pipeline": stages, "as": "x"}})
            yield case({"$unionWith": {"coll": "a", "pipeline": stages}})
            if stages[0] is not stream or len(stages) > 1:
                yield case(*stages)
    for name in ("$currentOp", "$listLocalSessions", "$listSessions", "$planCacheStats", "$indexStats", "$out", "$merge", "$changeStream"):
        stage = {name: "x" if name in ("$out", "$merge") else {}}
        for level in ("majority", "linearizable", "available"):
            for stages in ([bad, stage], [{"$facet": {"a": [stage]}}], [{"$lookup": {"from": "a", "pipeline": [bad, stage], "as": "x"}}], [{"$unionWith": {"coll": "a", "pipeline": [stage, bad]}}], [{"$nope": 1}, stage]):
                yield case(*stages, readConcern={"level": level})
    for stages in ([{"$documents": []}, {"$indexStats": {}}], [{"$documents": []}, {"$documents": []}], [{"$documents": []}, {"$out": "x"}, {"$match": {}}]):
        yield case(*stages)
    near = lambda query: {"$geoNear": {"near": [1, 1], "distanceField": "d", "query": query}}
    for query in ({"$center": [1]}, {"a": {"$nope": 1}}, {"$or": 1}, {"$where": "1"}, {"$expr": "$$this"}):
        yield case(near(query))
        yield case(near(query), {"$count": ""})
        yield case(near(query), {"$project": {"x": {"$arrayToObject": 1}}})
        yield case({"$addFields": {"z": 1}}, near(query))
        yield case({"$facet": {"x": [near(query)]}})
    for near in (None, 1, "a"):
        yield case({"$geoNear": {"near": near, "distanceField": "d"}})
        yield case({"$geoNear": {"near": near, "distanceField": "d"}}, {"$count": ""})


def graphs(rnd):
    for depth in (DECIMAL("-Infinity"), DECIMAL("NaN"), DECIMAL("Infinity"), DECIMAL("-1E+30"), DECIMAL("1E+30"), -1e30, 1e30, DECIMAL("-0.5"), 0.5, DECIMAL("1E-6176"), DECIMAL("-9223372036854775809")):
        yield case({"$graphLookup": {"from": "w", "maxDepth": depth}})
    for name in ("as", "connectFromField", "connectToField", "depthField"):
        for path in ("a.$", "a..b", "", "a.", 1):
            yield case({"$graphLookup": {"from": "w", name: path}})
            yield case({"$graphLookup": {"from": "w", name: path, "nope": 1}})
    for start in ({"$setEquals": [[], "a"]}, {"$setIsSubset": ["$a", 1]}, {"$indexOfArray": [1, "$a"]}):
        yield case({"$graphLookup": {"from": "w", "startWith": start, "connectFromField": "a", "connectToField": "s", "as": "x"}})
        yield case({"$project": {"x": start}})
    regex = lambda pattern: {"$regularExpression": {"pattern": pattern, "options": ""}}
    for start in (regex("^a"), [regex("z$"), 1], None, "$nope"):
        yield case({"$graphLookup": {"from": "w", "startWith": start, "connectFromField": "n", "connectToField": "s", "as": "x"}})
    chain = [{"_id": 1, "m": [1, 2]}, {"_id": 2, "m": 1}, {"_id": 3, "m": 2}]
    for depth in ("m", "m.b", "_id", "d.e"):
        graph = {"$graphLookup": {"from": "w", "startWith": 1, "connectFromField": "m", "connectToField": "m", "as": "x", "depthField": depth}}
        count = {"$project": {"x": {"$size": "$x"}}}
        yield {"docs": chain, "cmd": {"aggregate": "w", "pipeline": [graph, count], "cursor": {}}, "after": False}
    docs = [{"_id": 1, "m": UNDEFINED}, {"_id": 2, "m": None}, {"_id": 3}, {"_id": 4, "m": [UNDEFINED]}, {"_id": 5, "m": 1}]
    for start in (None, 1, [None, 1], [None, UNDEFINED]):
        for field in ("m", "_id"):
            graph = {"$graphLookup": {"from": "w", "startWith": start, "connectFromField": field, "connectToField": "m", "as": "x"}}
            count = {"$project": {"x": {"$size": "$x"}}}
            yield {"docs": docs, "cmd": {"aggregate": "w", "pipeline": [graph, count], "cursor": {}}, "after": False}


def expressions(rnd):
    for value in ([1], [], 1, ["$s", 1], [[1]], {"$literal": [1]}, {"a": "$n"}):
        yield case({"$project": {"x": {"$toHashedIndexKey": value}}})
    for n in ({"$add": [1, 1]}, {"$cond": [True, 1, "$a"]}, {"$rand": {}}, {"$toHashedIndexKey": 1}, {"$divide": [1, 0]}):
        yield case({"$bucketAuto": {"groupBy": "$s", "buckets": 1, "output": {"x": {"$firstN": {"input": "$n", "n": n}}}}})
    yield case({"$project": {"x": {"$setIntersection": [{"$toHashedIndexKey": 1}, "$nope"]}}})
    for name in ("$dateAdd", "$dateSubtract"):
        for ms, amount in ((2**63 - 1, 1), (2**63 - 2, 5), (5, 2**63 - 1), (0, -(2**63)), (0, 584942418), (0, 584942417)):
            for unit in ("millisecond", "second", "month", "year"):
                yield case({"$project": {"x": {name: {"startDate": DATE(ms), "unit": unit, "amount": LONG(amount)}}}})
    for n in (DECIMAL("1E-6176"), DECIMAL("1.0000000000000000001"), DECIMAL("0.5"), DECIMAL("1E+40"), 1.5, 1e300):
        yield case({"$group": {"_id": None, "x": {"$lastN": {"input": "$n", "n": n}}}}, {"$project": {"x": {"$size": "$x"}}})
        yield case({"$project": {"x": {"$lastN": {"input": [1, 2], "n": n}}}})
    for meta in ("textScore", "geoNearDistance", "geoNearPoint", "randVal", "searchScore", "recordId", "indexKey", "sortKey", "searchScoreDetails"):
        asked = {"$meta": meta}
        yield case({"$match": {"$expr": asked}})
        yield {"docs": DOCS, "cmd": {"find": "w", "filter": {"$expr": asked}}, "after": False}
        yield {"docs": DOCS, "cmd": {"count": "w", "query": {"$expr": asked}}, "after": False}
        yield case({"$match": {"$expr": asked}}, {"$skip": -1})
        yield case({"$project": {"x": asked}}, {"$skip": -1})
        yield case({"$group": {"_id": 1, "x": {"$maxN": {"input": "$n", "n": asked}}}})
        yield case({"$bucketAuto": {"groupBy": "$s", "buckets": 1, "output": {"x": {"$firstN": {"input": "$n", "n": asked}}}}})
        yield case({"$sort": {"x": asked}}, {"$sort": {"_id": 1}})
        yield case({"$sort": {"x": asked}}, {"$setWindowFields": {"partitionBy": "$_id", "output": {}}})


TOPICS = {
    "mistakes.densify": densify,
    "mistakes.windows": windows,
    "mistakes.shapes": shapes,
    "mistakes.inside": inside,
    "mistakes.graphs": graphs,
    "mistakes.expressions": expressions,
}
