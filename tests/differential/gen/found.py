"""What the grammar fuzzer has found, each with its kin."""

D = [{"_id": 1, "a": [1], "e": 5, "b": [1, 2], "s": "x", "m": -4, "z": []}]
ONE = [{"_id": 1, "a": 1}]
BAD = {"$switch": {"branches": [{}]}}
NUL = "a\0b"
DECIMAL = lambda text: {"$numberDecimal": text}  # noqa: E731
DATE = lambda ms: {"$date": {"$numberLong": str(ms)}}  # noqa: E731


def case(docs, *stages, before=(), **more):
    c = {"docs": docs, "before": list(before)} if before else {"docs": docs}
    return {**c, "cmd": {"aggregate": "w", "pipeline": list(stages), "cursor": {}, **more}, "after": False}


def project(e, docs=D):
    return case(docs, {"$project": {"x": e}})


def ordered(rnd):
    """Accumulators that sort: equal keys, arrays, and paths into arrays."""
    ties = [{"_id": i, "k": k} for i, k in enumerate((1, 1, 2, 2, 2, 1))]
    arrays = [{"_id": 1, "o": {"x": 4}}, {"_id": 2, "o": [{"x": 1}, {"x": 2}]}, {"_id": 3, "o": {"x": 12}}, {"_id": 4, "o": {"x": [3, 5]}}, {"_id": 5, "o": {"x": []}}, {"_id": 6}]
    nested = [{"_id": 1, "aa": [[1, 2], [3]]}, {"_id": 3, "l": -7}, {"_id": 5, "aa": [1, 2]}, {"_id": 7, "aa": {"0": 5}}, {"_id": 8, "aa": []}]
    first = {"$sort": {"_id": 1}}
    for name, n in (("$top", None), ("$bottom", None), ("$topN", 2), ("$bottomN", 2), ("$bottomN", 3)):
        acc = lambda by: {name: {**({"n": n} if n else {}), "sortBy": by, "output": "$_id"}}  # noqa: B023,E731
        for by in ({}, {"k": 1}, {"k": -1}, {"nope": 1}):
            yield case(ties, first, {"$group": {"_id": 1, "x": acc(by)}})
            yield case(ties, first, {"$bucketAuto": {"groupBy": "$nope", "buckets": 1, "output": {"x": acc(by)}}})
        for window in (["unbounded", "current"], ["unbounded", "unbounded"], [-2, 2], ["current", 2], ["current", "unbounded"], [-3, 0]):
            yield case(ties, {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"x": {**acc({"k": 1}), "window": {"documents": window}}}}})
    for name in ("$topN", "$bottomN"):
        for way in (1, -1):
            for docs, paths in ((arrays, ("o.x", "o")), (nested, ("aa", "aa.0", "aa.1"))):
                for path in paths:
                    if (path, docs) == ("aa", nested):
                        continue  # a name that is a number ends there
                    for by in ({path: way}, {path: way, "_id": 1}):
                        yield case(docs, first, {"$group": {"_id": 1, "x": {name: {"n": 9, "sortBy": by, "output": "$_id"}}}})
    yield case([{"_id": 1, "a": [{"x": 1, "y": 1}, {"x": 2, "y": 0}]}], {"$group": {"_id": 1, "x": {"$top": {"sortBy": {"a.x": 1, "a.y": 1}, "output": 1}}}})


def densified(rnd):
    """Sums of steps, what names a partition, types at the ends."""
    def fill(docs, step, bounds, *by):
        partition = {"partitionByFields": list(by)} if by else {}
        return {**case(docs, {"$densify": {"field": "v", **partition, "range": {"step": step, "bounds": bounds}}}, {"$limit": 60}), "unordered": True}
    for docs in ([{"_id": 1, "v": 0}, {"_id": 2, "v": 1}], [{"_id": 1, "v": 0}, {"_id": 2, "v": 0.55}, {"_id": 3, "v": 1.2}], [{"_id": 1, "v": 0}, {"_id": 2, "v": 0.7}, {"_id": 3, "v": 1.2}]):
        # A decimal beside a double that it is nearly the same as is another matter.
        for step in (0.1, DECIMAL("0.1")) if docs[-1]["v"] == 1 else (0.1,):
            yield fill(docs, step, "full")
            yield fill(docs, step, "partition", "p")
            yield fill(docs, step, "full", "_id")
    mixed = [{"_id": 1, "v": 1, "p": 1}, {"_id": 2, "v": 3, "p": 1.0}, {"_id": 3, "v": 5, "p": 2}, {"_id": 4, "v": 7, "p": DECIMAL("1")}, {"_id": 5, "v": 9, "p": 2.0}, {"_id": 6, "v": 13, "p": 5}]
    for bounds in ("full", "partition"):
        yield fill(mixed, 2, bounds, "p")
    for path in ("a.0", "a.b", "a.b.c"):
        yield fill([{"_id": 2, "v": 2}, {"_id": 3, "v": 3, "as": []}], 1, "full", path, "as")
        yield fill([{"_id": 2, "v": 2}, {"_id": 3, "v": 5}], 1, "full", path)
        yield fill([{"_id": 2, "v": 2, "a": {}}, {"_id": 3, "v": 3, "a": 1}, {"_id": 4, "v": 4, "a": []}, {"_id": 5, "v": 5, "a": {"b": 1}}], 1, "full", path, "as")
    yield fill([{"_id": 2, "v": 2}, {"_id": 3, "v": 5}], 1, "full", "a.b", "a.c")
    for docs in ([{"_id": 1, "v": -(2**31), "p": 1}, {"_id": 2, "v": -(2**31) + 8}], [{"_id": 1, "v": -(2**31), "p": 1}, {"_id": 2, "v": -(2**31) + 8}, {"_id": 3, "v": -(2**31) + 18, "p": 1}]):
        yield fill(docs, 1, "full", "p")
        yield fill(docs, 10000000, "full", "p")


def evaluated(rnd):
    """Which operands are looked at."""
    for args in ([["$d"], "$a", []], [[], [1], "$e"], [[1], [1], "$e"], ["$a", "$b", "$e"], ["$e", "$a"], ["$a", "$e"], ["$a", "$b", "$q"], ["$a", "$a", "$e"], ["$a", "$b", {"$add": ["$a", 1]}], ["$a", "$e", [2]], ["$e", "$a", [2]],
                 ["$a", "$e", [1]], ["$a", "$b", "$e", [1]], ["$b", "$q", [1]], ["$a", "$e", "$b", [1]]):
        yield project({"$setEquals": args})
    for input in ([], "$z", [1], "$q", None):
        for limit in ("$m", -1, 0, "$q", "x", 1.5, {"$add": ["$s", 1]}):
            yield project({"$filter": {"input": input, "cond": "$b", "limit": limit}})
    tiny = [DECIMAL(t) for t in ("1E-6176", "1E-400", "0", "1", "-1", "NaN", "Infinity")]
    for base in tiny:
        for n in (1, DECIMAL("1"), DECIMAL("1E-6176")):
            yield project({"$log": [n, base]})
    for n in tiny:
        yield project({"$log": [n, 2]})
        yield project({"$log": ["$e", n]})
    for e in ({"$acos": 10}, {"$toObjectId": 1}):
        for docs in (D, []):
            yield case(docs, {"$lookup": {"from": "other", "let": {"v": e}, "pipeline": [], "as": "x"}})
            yield case(docs, {"$lookup": {"from": "other", "let": {"v": e}, "pipeline": [], "as": "x"}}, {"$match": {"t": 1}})
    two = [{"_id": 1, "ao": [1]}, {"_id": 2}]
    failing = {"$minN": {"input": "$ao", "n": "$_id"}}
    for name in ("$first", "$last", "$push"):
        yield case(two, {"$group": {"_id": None, "x": {name: failing}}})
        yield case(two, {"$bucketAuto": {"groupBy": {"$cos": 1}, "buckets": 1, "output": {"x": {name: failing}}}})
    for by in ({"$let": {"vars": {}, "in": "a"}}, {"$concat": ["a"]}, {"$literal": "a"}):
        yield case([], {"$bucket": {"groupBy": by, "boundaries": [0, 5, 100]}})
    for s in ([], 1):
        for a in ([1], 1):
            docs = [{"_id": 1, "s": s, "a": [1]}, {"_id": 2, "s": 1, "a": a}]
            for by in ("$a", {"$concatArrays": ["$a"]}):
                yield case(docs, {"$setWindowFields": {"partitionBy": by, "sortBy": {"s": 1}, "output": {"x": {"$sum": 1}}}})
    wrong = {"coll": "other", "pipeline": [{"$project": {"t": {"$slice": [1, 1]}}}]}
    yield case(ONE, {"$unionWith": wrong}, {"$limit": 1})
    yield case(ONE, {"$unionWith": {"coll": "other", "pipeline": [{"$unionWith": wrong}]}}, {"$limit": 1})
    for stage in ({"$set": {"x": {"$add": ["$s", 1]}}}, {"$project": {"x": {"$add": ["$s", 1]}}}, {"$replaceWith": "$s"}):
        yield case(D, {"$unionWith": "other"}, stage, {"$skip": 2})
        yield case(D, stage, {"$skip": 2})
    for unit in ("minute", "hour", "second"):
        for amount in (0, 1):
            if (unit, amount) == ("second", 1) or amount == 0:
                yield project({"$dateAdd": {"startDate": DATE(-(2**63)), "unit": unit, "amount": amount}})


NAMED = {
    "$trim": ["input", "chars"], "$replaceOne": ["input", "find", "replacement"], "$regexMatch": ["input", "regex", "options"], "$reduce": ["input", "initialValue", "in"], "$filter": ["input", "cond", "limit"],
    "$dateDiff": ["startDate", "endDate", "unit", "timezone", "startOfWeek"], "$dateTrunc": ["date", "unit", "binSize", "timezone", "startOfWeek"], "$dateToString": ["date", "format", "timezone", "onNull"],
    "$dateFromString": ["dateString", "format", "timezone", "onNull", "onError"], "$dateToParts": ["date", "timezone", "iso8601"], "$dateAdd": ["startDate", "unit", "amount", "timezone"], "$hour": ["date", "timezone"],
}


def told(rnd):
    """Which of two mistakes of a pipeline."""
    for op, names in NAMED.items():
        for a in names:
            yield project({op: {a: BAD}}, ONE)
            yield project({op: {a: BAD, "$x": 1}}, ONE)
            yield project({op: {"$x": 1, a: BAD}}, ONE)
            for b in names:
                if a < b:
                    for order in (names, names[::-1]):
                        yield project({op: {n: BAD if n == a else "$$nope" if n == b else "$x" for n in order}}, ONE)
    for field in ({"$convert": {"input": "a", "to": 1}}, {"$concat": ["a", "b"]}, {"$literal": "a"}, {"$let": {"vars": {}, "in": "a"}}, {"a": 1}, ["a"], {"$add": [1, 2]}, "$a", 1, {"$literal": 1}):
        yield project({"$getField": {"field": field, "input": "$$ROOT"}}, ONE)
        yield project({"$unsetField": {"field": field, "input": "$$ROOT"}}, ONE)
    for docs in ({"p": {"": 1}}, {"q": [], "r": 0}, {}, {"a": 1}, {"$x": 1}, {"a": {"$add": ["a", 1]}}, "$$x", {"a.b": 1}, {"a.$": 1}, {"a": 1, "a.b": 1}, {"a": {"$slice": 1}}, {"$literal": {"a": 1}}, 1, None):
        yield {"docs": ONE, "cmd": {"aggregate": 1, "pipeline": [{"$documents": docs}], "cursor": {}}, "after": False}
        yield case(ONE, {"$set": {}}, {"$documents": docs})
        yield case(ONE, {"$facet": {"n": [{"$documents": docs}]}})
    for stages in ([{"$unionWith": NUL}], [{"$unionWith": {"coll": NUL}}], [{"$lookup": {"from": NUL, "localField": "a", "foreignField": "b", "as": "c"}}],
                   [{"$graphLookup": {"from": NUL, "startWith": 1, "connectFromField": "a", "connectToField": "a", "as": "n"}}], [{"$facet": {"a": [{"$unionWith": NUL}]}}], [{"$match": 1}, {"$unionWith": NUL}],
                   [{"$foo": 1}, {"$unionWith": NUL}], [{"$unionWith": NUL}, {"$foo": 1}], [{"$unionWith": ".b"}], [{"$lookup": {"from": ".x", "localField": "a", "foreignField": "b", "as": "c"}}]):
        yield case(ONE, *stages)
    script = {"init": "a", "initArgs": ["$z"], "accumulate": "function(s, x) { return s + 1; }", "accumulateArgs": [None], "merge": "function(a, b) { return a + b; }", "lang": "js"}
    for buckets in ({}, {"buckets": -1}, {"buckets": 1}):
        yield case(ONE, {"$bucketAuto": {"groupBy": "$a", **buckets, "output": {"x": {"$accumulator": script}}}})
    for scale in (DECIMAL("NaN"), DECIMAL("-Infinity"), -1, 0.5, -3e9):
        yield case(ONE, {"$facet": {"n": [{"$collStats": {"storageStats": {"scale": scale}}}]}})
        yield case(ONE, {"$match": 1}, {"$collStats": {"storageStats": {"scale": scale}}})
    yield case(ONE, {"$changeStream": {}}, {"$collStats": {}})
    yield case(ONE, {"$changeStream": {}}, {"$indexStats": {}})
    never = {"$alwaysFalse": 1}
    for q in ({"$text": {"$search": "a"}, **never}, {"$and": [{"$text": {"$search": "a"}}, never]}, {"$text": {"$search": "a"}, "a": {"$in": []}}):
        yield case(ONE, {"$match": q})
        yield {"docs": ONE, "cmd": {"find": "w", "filter": q}, "after": False}
    uuid = {"$binary": {"base64": "BwcHBwcHBwcHBwcHBwcHBw==", "subType": "04"}}
    for stage in ({"$bucket": {"groupBy": -1, "boundaries": [0, 5]}}, {"$match": 1}, {"$limit": -1}, {"$project": {"x": {"$divide": [1, 0]}}}):
        for verbosity in ("queryPlanner", "executionStats"):
            yield {"docs": ONE, "cmd": {"explain": {"aggregate": "w", "pipeline": [stage], "cursor": {}, "collectionUUID": uuid}, "verbosity": verbosity}, "after": False}


def beside(rnd):
    """Views and time series beside the collection, and their collations."""
    made = [{"drop": n} for n in ("plain_view", "english_view", "ts")] + [
        {"create": "plain_view", "viewOn": "w", "pipeline": []}, {"create": "english_view", "viewOn": "w", "pipeline": [], "collation": {"locale": "en"}}, {"create": "ts", "timeseries": {"timeField": "t"}}]
    for view in ("plain_view", "english_view", "ts"):
        join = {"$lookup": {"from": view, "localField": "a", "foreignField": "b", "as": "c"}}
        deep = {"$lookup": {"from": "w", "as": "q", "pipeline": [{"$unionWith": view}]}}
        for stages in ([{"$out": view}], [{"$merge": view}], [{"$merge": {"into": {"db": "df", "coll": view}}}], [join], [deep], [{"$match": 1}, deep], [{"$project": {"x": {"$divide": [1, 0]}}}, deep], [{"$facet": {"a": [join]}}],
                       [{"$unionWith": view}]):
            for more in ({}, {"collation": {"locale": "en"}}):
                for docs in (ONE, []):
                    yield case(docs, *stages, before=made, **more)
    into = [{"drop": "m"}, {"create": "m"}, {"createIndexes": "m", "indexes": [{"key": {"k": 1}, "name": "k", "unique": True}]}]
    for matched in ("merge", "replace", "keepExisting", "fail", [{"$set": {"x": "$$new.v"}}]):
        for last in ({"_id": 2}, {"_id": 2, "k": [1]}, {"_id": 2, "k": 2}):
            c = case([{"_id": 1, "k": 1, "v": 5}, last], {"$sort": {"_id": 1}}, {"$merge": {"into": "m", "on": "k", "whenMatched": matched}}, before=into)
            yield {**c, "then": [{"find": "m", "sort": {"_id": 1}}]}
    for stats in ({"storageStats": {}}, {"count": {}}, {"latencyStats": {}, "storageStats": {}}, {"queryExecStats": {}}):
        c = case(ONE, {"$collStats": stats}, {"$project": {"storageStats.size": 1, "ns": 1}}, before=made)
        for name in ("ts", "plain_view"):
            yield {**c, "cmd": {**c["cmd"], "aggregate": name}}


def asked_of_sorts(rnd):
    """The sort key where nothing sorts."""
    keep, drop = {"$project": {"c": {"$meta": "sortKey"}}}, {"$project": {"n": {"$meta": "sortKey"}, "a": 0}}
    for asks in (keep, drop):
        yield case(ONE, asks)
        for other in ({"$match": {"a": 1}}, {"$set": {"x": 1}}, {"$unset": "x"}, {"$limit": 1}, {"$skip": 0}, {"$skip": 1}, {"$sort": {"_id": 1}}, {"$match": {"a": 5}}, {"$sample": {"size": 1}}):
            yield case(ONE, other, asks)
            yield case(ONE, asks, other)
            yield case(ONE, asks, {"$set": {"x": 1}}, other)
        yield case(ONE, {"$collStats": {}}, {"$project": {"c": {"$meta": "sortKey"}}})
        yield case(ONE, {"$lookup": {"from": "w", "localField": "a", "foreignField": "nope", "pipeline": [asks], "as": "a"}})


TOPICS = {"found.ordered": ordered, "found.densified": densified, "found.evaluated": evaluated, "found.told": told, "found.beside": beside, "found.sortkeys": asked_of_sorts}
