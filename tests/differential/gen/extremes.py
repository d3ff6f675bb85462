"""Numbers at the ends of their types, and what is wrong in constants beside what only a document tells."""
from .data import D, DATE, INF, L, NAN, NINF, TS

DECIMALS = [D(x) for x in ["0", "-0", "0E-6176", "0E+6111", "1", "-1", "0.5", "2.5", "1.5", "0.1", "NaN", "Infinity", "-Infinity", "1E+3", "1E+34", "1E+33",
                           "9.999999999999999999999999999999999E+6144", "1E+6111", "1E-40", "123456789012345678901234567890.1234"]]
DOUBLES = [0.0, -0.0, 0.5, 2.5, 1e308, -1e308, 1e100, 123456.789, 9007199254740992.0, 9.223372036854775807e18, 1e-310, NAN, INF, NINF]
lit = lambda v: {"$literal": v}  # noqa: E731


def e(x, doc=None):
    """An expression over one document that is made on the spot."""
    made = {"$documents": [{k: lit(v) for k, v in (doc or {"z": 1}).items()}]}
    return {"setup": "values", "cmd": {"aggregate": 1, "pipeline": [made, {"$project": {"r": x}}], "cursor": {}}}


def decimals(rnd):
    for op in ["$ceil", "$floor", "$ln", "$log10", "$exp", "$sin", "$cos", "$tan", "$asin", "$acos", "$atan", "$tanh", "$asinh", "$acosh", "$atanh", "$degreesToRadians", "$radiansToDegrees"]:
        for v in DECIMALS:
            yield e({op: "$a"}, {"a": v})
    for op in ["$add", "$sum", "$avg"]:
        for v in DECIMALS:
            yield e({op: ["$a"]}, {"a": v})
    for a in DECIMALS[:12]:
        for b in [D("2"), D("10"), 2, 0.5, D("3"), D("1.000"), D("NaN")]:
            yield e({"$log": ["$a", "$b"]}, {"a": a, "b": b})
    for a, b in [(D("-0"), 1), (D("-0"), 3), (D("0"), D("-NaN")), (D("-9E+6144"), 2147483647), (D("-2"), 3)]:
        yield e({"$pow": ["$a", "$b"]}, {"a": a, "b": b})
    for a, b in [(1, D("0")), (D("1"), 0), (D("1"), -0.0), (1.5, D("0E+10")), (5, 0), (5.5, 0.0)]:
        yield e({"$mod": ["$a", "$b"]}, {"a": a, "b": b})
    for v in ["1E-310", "1E-400", "4E-324", "1E+400", "0E-6176", "1E-300"]:
        yield e({"$toDouble": "$a"}, {"a": D(v)})


def strings(rnd):
    dates = [DATE(253402300799999), DATE(253402300800000), DATE(-62167219200000), DATE(-62167219200001), DATE(9223372036854775807)]
    for v in DOUBLES + dates + [TS(1, 2), TS(4294967295, 1), TS(25920000, 77)]:
        for x in [{"$toLower": "$a"}, {"$toUpper": "$a"}, {"$substr": ["$a", 0, -1]}, {"$strcasecmp": ["$a", "x"]}]:
            yield e(x, {"a": v})
        if not isinstance(v, dict) or "$timestamp" not in v:
            yield e({"$toString": "$a"}, {"a": v})


def places(rnd):
    wrong = [1e308, 9.3e18, L(2147483648), L(2147483647), 2147483648.0, 1.5, D("1.5"), D("1E+10"), D("NaN"), NAN, INF, D("Infinity"), "x", True, 101, -21]
    for p in wrong:
        for op in ["$round", "$trunc"]:
            yield e({op: [1.25, "$p"]}, {"p": p})
        for op in ["$firstN", "$minN"]:
            yield e({op: {"input": [1, 2], "n": "$p"}}, {"p": p})
    for v in [None, 5, "", "x", "X", [], {}, 1.5]:
        yield e({"$map": {"input": [1], "as": v, "in": 1}})
        yield e({"$filter": {"input": [1], "as": v, "cond": 1}})


def folding(rnd):
    consts = {"$add": [3, 4], "$multiply": [3, 4], "$concat": ["x", "y"], "$concatArrays": [[1], [2]], "$setUnion": [[1], [2]], "$setIntersection": [[1, 2], [2]], "$max": [3, 4], "$min": [3, 4], "$sum": [3, 4], "$and": [1, 2], "$or": [0, None], "$ifNull": [None, 4]}
    for op, (k, m) in consts.items():
        for args in [["$a", k, m], [k, "$a", m], [k, m, "$a"], ["$a", k, lit({"x": 1})], [lit("s"), "$a"], ["$a", None, k], [None, "$a"], [k, {op: ["$a", m]}, k], [k, {op: [m, "$a"]}, "$b"], ["$a", k, "$$REMOVE"], ["$a", 0], [{"$divide": [1, 0]}, "$a", 0]]:
            for doc in [{"a": 1}, {"a": "s"}, {"a": [2, 3]}, {"a": None}, {"b": 1}]:
                if rnd.random() < .5:
                    yield e({op: args}, doc)
    for a in [0.5, 0.6, 1.5, 2.5, -0.5, -1.5, D("0.5"), D("1.5"), D("2.5")]:
        for args in [["$a", "$d"], ["$a", DATE(0)], [a, "$d", a], [1, "$a", DATE(0)]]:
            yield e({"$add": args}, {"a": a, "d": DATE(0)})
    for pair in [[1, 1.0], [D("1"), 1], [L(1), 1.0], [0, D("0E+6111")], [NAN, D("NaN")]]:
        for op in ["$max", "$min"]:
            yield e({op: ["$a", "$b"]}, {"a": pair[0], "b": pair[1]})
            yield e({op: "$a"}, {"a": pair})


def updates(rnd):
    one = [{"_id": 1, "a": 1}]
    fail = {"$divide": [1, 0]}
    for q in [{}, {"_id": 9}]:
        for u in [[{"$set": {"x": fail}}], [{"$replaceWith": {"$toInt": "x"}}], {"$set": {"$k": 1}}, {"$set": {"$a.b": 1}}, {"$setOnInsert": {"$k": 1}}, {"$set": {"$ref": "c"}}, {"$set": {"$ref": 1}}, {"$set": {"$id": 1}}, {"$inc": {"$db": 1}}, {"$push": {"$k": 1}}]:
            for upsert in [False, True]:
                yield {"docs": one, "cmd": {"update": "w", "updates": [{"q": q, "u": u, "upsert": upsert}]}}
    for op in ["$inc", "$mul"]:
        for a, b in [(0, 0), (0.0, -8), (0.0, -0.0), (-0.0, 0.0), (-0.0, 1), (NAN, 1), (INF, 1), (D("0"), D("0E+6111")), (D("-0"), 0), (D("0"), -1), (D("NaN"), 1), (D("1"), 0), (D("1.0"), D("1")), (L(0), 1), (1.5, 1), (D("Infinity"), 2)]:
            yield {"docs": [{"_id": 1, "a": a}], "cmd": {"update": "w", "updates": [{"q": {}, "u": {op: {"a": b}}}]}}


def filters(rnd):
    docs = [{"_id": 1, "a": [{"$ref": "c", "$id": 1}, 2], "s": "abc"}, {"_id": 2, "a": [{"x": 1}], "s": "ABC"}, {"_id": 3, "a": 0.3, "s": "x"}, {"_id": 4, "a": D("0.3")}, {"_id": 5, "a": 1}]
    def f(q):
        return {"docs": docs, "cmd": {"find": "w", "filter": q}, "after": False}
    for em in [{"$ref": "c", "$id": 1}, {"$id": 1}, {"$ref": "c"}, {"$ref": "c", "x": 1}, {"$db": "x"}, {"$k": 1}]:
        yield f({"a": {"$elemMatch": em}})
        yield f({"a": {"$all": [em]}})
        yield f({"a": {"$all": [{"$elemMatch": em}]}})
    for o in ["ii", "imim", "ss", "xx"]:
        yield f({"s": {"$regex": "A", "$options": o}})
    for n in [D("0.1"), 0.1, D("Infinity"), INF, NAN, D("NaN"), D("0"), -1, NINF]:
        yield f({"$jsonSchema": {"properties": {"a": {"multipleOf": n}}}})
    near = {"a": {"$near": [1, 2]}}
    text = {"$text": {"$search": "x"}}
    for q in [{**text, **near}, {"$and": [text, near]}, {**text, "$or": [near]}]:
        yield f(q)


def windows(rnd):
    pool = [1, 2, 3, 2.5, D("1.5"), D("2"), L(4), -1, 0]
    ends = pool + [INF, NAN, D("Infinity"), None, "s"]
    for _ in range(30):
        from_ = pool if rnd.random() < .7 else ends
        docs = [{"_id": i, "a": rnd.choice(from_), "b": rnd.choice(from_)} for i in range(3)]
        for acc in ["$covariancePop", "$covarianceSamp"]:
            for w in [["unbounded", "current"], [-1, 0], [-1, 1]]:
                stage = {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"r": {acc: ["$a", "$b"], "window": {"documents": w}}}}}
                yield {"docs": docs, "cmd": {"aggregate": "w", "pipeline": [stage, {"$project": {"r": 1}}], "cursor": {}}, "after": False}


def settled(rnd):
    """Which of several arguments a null or an error comes from."""
    doc = {"nul": None, "s": "abc", "n": 2, "neg": -1, "a": [1, 2], "o": {"x": 1}, "t": DATE(1577836800000), "b": True, "nan": NAN, "f": 1.5}
    bad = {"$toInt": "$s"}
    vals = ["$nul", "$miss", "$s", "$n", "$neg", "$a", "$o", "$t", "$b", "$nan", "$f", bad, lit("day")]
    two = ["$add", "$subtract", "$multiply", "$divide", "$mod", "$pow", "$log", "$atan2", "$concat", "$split", "$strcasecmp", "$indexOfArray", "$indexOfBytes", "$indexOfCP", "$arrayElemAt", "$in",
           "$concatArrays", "$setDifference", "$setEquals", "$setIntersection", "$setIsSubset", "$setUnion", "$round", "$trunc", "$ifNull", "$slice", "$range", "$mergeObjects", "$max"]
    for op in two:
        for v in vals:
            yield e({op: [v, bad]}, doc)
            yield e({op: [bad, v]}, doc)
            yield e({op: [v, rnd.choice(vals)]}, doc)
    for op in ["$slice", "$range", "$indexOfArray", "$indexOfCP", "$indexOfBytes", "$substrCP"]:
        for v in vals:
            for w in ["$nul", "$s", "$n", bad]:
                yield e({op: [v, w, bad]}, doc)
                yield e({op: [v, w, rnd.choice(vals)]}, doc)
    named = {"$dateAdd": ["startDate", "unit", "amount", "timezone"], "$dateDiff": ["startDate", "endDate", "unit", "timezone", "startOfWeek"], "$dateTrunc": ["date", "unit", "binSize", "timezone", "startOfWeek"],
             "$dateToString": ["date", "format", "timezone", "onNull"], "$dateToParts": ["date", "timezone", "iso8601"], "$dateFromString": ["dateString", "format", "timezone", "onError", "onNull"],
             "$dateFromParts": ["year", "month", "day", "hour", "minute", "timezone"], "$trim": ["input", "chars"], "$regexMatch": ["input", "regex", "options"], "$regexFindAll": ["input", "regex", "options"],
             "$replaceOne": ["input", "find", "replacement"], "$replaceAll": ["input", "find", "replacement"], "$filter": ["input", "cond", "limit"], "$firstN": ["input", "n"], "$maxN": ["input", "n"], "$year": ["date", "timezone"]}
    for op, names in named.items():
        for _ in range(60):
            given = names[:rnd.randint(max(1, len(names) - 2), len(names))]
            yield e({op: {n: rnd.choice(vals) for n in given}}, doc)
    for x in [{"year": 1, "isoWeekYear": 1}, {"year": 1, "isoWeek": 1}, {"isoWeekYear": 1, "day": 1}, {"year": "$$nope", "isoWeek": 1}, {"month": 1}]:
        yield e({"$dateFromParts": x}, doc)


def collations(rnd):
    """Every option, and locales that are none."""
    base = ["af", "bs_Cyrl", "de_AT", "en_US_POSIX", "fa_AF", "fr_CA", "sr_Latn", "zh_Hant", "en-US", "EN", "en_XX", "de_DE", "no", "root", "xx", "", "sr_Cyrl", "pt_BR", "zh_TW", "zh_Hans"]
    variants = ["de@collation=phonebook", "de_AT@collation=search", "en@collation=phonebook", "es@collation=traditional", "zh@collation=pinyin", "zh@collation=stroke", "zh_Hant@collation=pinyin",
                "af@collation=searchjl", "ko@collation=searchjl", "si@collation=dictionary", "sv@collation=standard", "sv@collation=x", "fr_CA@collation=emoji", "en@collation="]
    options = [{"strength": s} for s in [1, 2, 3, 4, 5, 0, 6, -1, 2.0, 2.5, "3", L(2), None, {"a": 1}]]
    options += [{"caseFirst": c, "strength": s} for c in ["upper", "lower", "off", "x"] for s in [1, 2, 3]] + [{"caseFirst": "upper", "strength": 1, "caseLevel": True}]
    options += [{"backwards": True, "strength": s} for s in [1, 2, 3]] + [{"backwards": False, "strength": 1}, {"backwards": 1}, {"backwards": None}]
    options += [{n: v} for n in ["caseLevel", "numericOrdering", "normalization"] for v in [True, 1, "x", None]]
    options += [{"alternate": v} for v in ["shifted", "non-ignorable", "x", 5]] + [{"maxVariable": v} for v in ["punct", "space", "x"]] + [{"version": v} for v in ["57.1", "58", 1]] + [{"x": 1}]
    specs = [{"locale": n} for n in base + variants] + [{"locale": "en", **o} for o in options] + [{"strength": 1}, {"locale": 5}, {"locale": "simple", "strength": 6}, {"locale": "simple", "backwards": True}]
    for spec in specs:
        for cmd in [{"find": "values", "limit": 1, "projection": {"_id": 1}}, {"count": "values"}, {"count": "nothing"}, {"aggregate": "values", "pipeline": [{"$limit": 1}, {"$project": {"_id": 1}}], "cursor": {}}, {"distinct": "values", "key": "nothing"}]:
            if rnd.random() < .6:
                yield {"setup": "values", "cmd": {**cmd, "collation": spec}}


def mistakes(rnd):
    """Two mistakes in one statement."""
    docs = [{"_id": 1, "a": [1, 2], "n": 1}]
    bad_q, bad_u, used, unused = {"$and": []}, {"$nope": 1}, {"$set": {"a.$[e]": 1}}, [{"e": 1}]
    bad_f, pipe = [{"e": {"$bitsAllSet": [-1]}}], [{"$set": {"x": 1}}]
    statements = [{"q": q, "u": u, **more} for q in [{}, bad_q, {"$expr": "$a"}, {"$or": [{"$expr": 1}, {"a": 1}]}, {"$jsonSchema": {}}] for u in [bad_u, used, {"x": 1}, {"$set": {"x": 1}}, pipe, [bad_u]]
                  for more in [{}, {"arrayFilters": bad_f}, {"arrayFilters": unused}, {"arrayFilters": []}, {"c": {"x": 1}}, {"c": {"": 1}}, {"c": {"ROOT": 1}}, {"upsert": True}, {"multi": True}, {"collation": {"locale": "xx"}}, {"hint": "nope"}]]
    for s in statements:
        if rnd.random() < .7:
            yield {"docs": docs, "cmd": {"update": "w", "updates": [s]}}
    for op in [{"$jsonSchema": {}}, {"$jsonSchema": 5}, {"$text": {"$search": "x"}}, {"$expr": 1}, {"$sampleRate": 1.0}, {"$sampleRate": "x"}, {"$near": [1, 1]}, {"x": {"$near": [1, 1]}}, {"$or": [{"$jsonSchema": {}}]}, {"x": {"$elemMatch": {"$jsonSchema": {}}}}, {"$alwaysTrue": 1}, {"$nope": 1}]:
        yield {"docs": docs, "after": False, "cmd": {"find": "w", "projection": {"a": {"$elemMatch": op}}}}
        yield {"docs": docs, "after": False, "cmd": {"find": "w", "filter": {"a": {"$elemMatch": op}}}}
        yield {"docs": docs, "after": False, "cmd": {"aggregate": "w", "pipeline": [{"$limit": 3}, {"$match": {"a": {"$elemMatch": op}}}], "cursor": {}}}
        for u, f in [({"$pull": {"a": op}}, None), ({"$pull": {"a": {"$elemMatch": op}}}, None), (used, [{"e": {"$elemMatch": op}}]), (used, [op])]:
            yield {"docs": docs, "cmd": {"update": "w", "updates": [{"q": {}, "u": u, **({"arrayFilters": f} if f else {})}]}}
    for d in [{"q": {}, "limit": 2, "collation": "x"}, {"q": {}, "collation": "x", "limit": 2}, {"limit": 2, "x": 1}, {"x": 1, "limit": 2}, {"q": bad_q, "limit": 1, "hint": 5}, {"q": {}, "limit": "x"}, {"q": {}, "limit": 1.5}, {"q": {}, "limit": -1, "hint": 5}]:
        yield {"docs": docs, "cmd": {"delete": "w", "deletes": [d]}}
    for name, given in [("insert", "documents"), ("update", "updates"), ("delete", "deletes")]:
        for more in [{"writeConcern": {"j": "x"}}, {"txnNumber": 1.5}, {"maxTimeMS": -1}, {"x": 1}, {"readConcern": {"level": "available"}}, {"readConcern": {"level": "local"}}]:
            yield {"docs": docs, "cmd": {name: "w", given: [], **more}}
    for p in [{"a.b": {"$elemMatch": 5}}, {"a.b": {"$elemMatch": {"x": 1}}}]:
        yield {"docs": docs, "after": False, "cmd": {"find": "w", "projection": p}}


def slices(rnd):
    """Numbers of every kind, and what is none, as places and counts."""
    docs = [{"_id": 1, "a": [1, 2, 3, 4], "b": 1}]
    values = [D(x) for x in ["2", "2.5", "2.7", "3.5", "-2.7", "0.9", "0.5", "NaN", "Infinity", "-Infinity", "9.999999999999999999999999999999999E+6144", "-0", "1E+2"]]
    values += [2.7, -2.7, 1e300, -1e300, NAN, INF, L(1099511627776), L(-1099511627776), 0, "a", None, True, [1], [], [1, 2, 3], ["$a", 1], ["$a", 1, 2], [[1, 2], 1], {"a": 1}]
    pairs = [[a, b] for a in [1, -3, D("1.5"), D("NaN"), L(1099511627776), "a", None] for b in [2, 0, -1, 1e300, D("2.5"), D("0.5"), D("NaN"), L(1099511627776), "a", None]]
    for v in values + pairs:
        yield {"docs": docs, "after": False, "cmd": {"find": "w", "projection": {"a": {"$slice": v}}}}
    for v in values[:8]:
        yield {"docs": docs, "after": False, "cmd": {"find": "w", "projection": {"b": {"$slice": v}, "_id": 0}}}


TOPICS = {"extremes.slices": slices, "extremes.decimals": decimals, "extremes.strings": strings, "extremes.places": places, "extremes.folding": folding, "extremes.updates": updates, "extremes.filters": filters, "extremes.windows": windows,
          "extremes.settled": settled, "extremes.collations": collations, "extremes.mistakes": mistakes}
