"""Aggregation expressions, one operator at a time over operands of many kinds (constants, through $literal, and fields)."""
from .data import BIN, CODE, D, DATE, FEW, INF, L, MAXKEY, MINKEY, NAN, NINF, OID, RE, TS

NUMS = [0, 1, -3, 7, L(5), L(2**62), 2.5, -0.5, D("1.5"), D("-2"), NAN, INF, 2147483647, L(2**63 - 1), L(-2**63), 1e300, -2147483648]
DATES = [DATE(0), DATE(1600000000123), DATE(-86400001), DATE(951782400000), DATE(1577836799999), DATE(1609459200000)]
lit = lambda v: {"$literal": v}  # noqa: E731


def e(x, **kw):
    return {"setup": "values", "cmd": {"aggregate": "values", "pipeline": [{"$project": {"_id": 0, "r": x}}], "cursor": {}, **kw}}


def arith(rnd):
    for op in ["$add", "$subtract", "$multiply", "$divide", "$mod", "$pow"]:
        for a in NUMS:
            for b in NUMS:
                if rnd.random() < .2:
                    yield e({op: [lit(a), lit(b)]})
        for a, b in [(None, 1), (1, None), ("$missing", 1), ("a", 1), (1, "a"), ([1], 2), (DATE(1000), 5), (5, DATE(1000)), (DATE(1000), DATE(400)), (DATE(1000), 2.6), (True, 1), ({"x": 1}, 1), (DATE(1000), L(2**62)), (DATE(0), NAN), (DATE(0), D("2.5"))]:
            yield e({op: [a if isinstance(a, str) and a.startswith("$") else lit(a), lit(b)]})
        yield e({op: 5})
        yield e({op: []})
        yield e({op: [1]})
        yield e({op: [1, 2, 3]})
    for op in ["$abs", "$ceil", "$floor", "$exp", "$ln", "$log10", "$sqrt", "$trunc", "$round"]:
        for v in NUMS + [None, "a", [4], D("12.345"), D("0"), 4, 2.4999, -2.5, 3.5, D("2.5")]:
            yield e({op: lit(v)} if not isinstance(v, list) else {op: v})
        yield e({op: "$missing"})
        yield e({op: [1, 2, 3]})
    for op in ["$round", "$trunc"]:
        for v in [2.345, -2.5, 1234.5, D("2.345"), 12345, L(15), 0.5, 1.5, D("1E+10")]:
            for p in [0, 1, 2, -1, -2, 20, -20, 100, 101, 1.5, None, "x", L(1)]:
                if rnd.random() < .5:
                    yield e({op: [lit(v), lit(p)]})
    for a, b in [(8, 2), (100, 10), (0, 2), (-1, 2), (8, 1), (8, 0), (D("8"), D("2")), ("a", 2), (None, 2), (2.5, 3)]:
        yield e({"$log": [lit(a), lit(b)]})
    for op in ["$sin", "$cos", "$tan", "$asin", "$acos", "$atan", "$sinh", "$cosh", "$tanh", "$degreesToRadians", "$radiansToDegrees", "$asinh", "$atanh", "$acosh"]:
        for v in [0, 1, 0.5, -0.5, None, "a", INF, NAN, 2]:
            yield e({"$round": [{op: lit(v)}, 9]})
    yield e({"$round": [{"$atan2": [1, 2]}, 9]})
    for op in ["$sum", "$avg", "$min", "$max"]:
        for a in [[1, 2, 3], [1, 2.5, "x", None], [], 5, "$arr", "$missing", ["$arr", 5], [L(2**62), L(2**62)], [2147483647, 1], [D("1.5"), 2], [[1, 2]], "$nest", ["$i", "$d", "$n"], [NAN, 1]]:
            yield e({op: a})


def compare(rnd):
    for op in ["$cmp", "$eq", "$gt", "$gte", "$lt", "$lte", "$ne"]:
        for a in FEW:
            for b in FEW:
                if rnd.random() < (.25 if op == "$cmp" else .05):
                    yield e({op: [lit(a), lit(b)]})
        yield e({op: ["$missing", None]})
        yield e({op: ["$missing", "$nope"]})
        yield e({op: [1]})
    for op in ["$and", "$or"]:
        for a in [[], [True], [1, 0], [None, 1], ["$missing", True], ["a", []], [0, 0], 5, [NAN], [{"$eq": [1, 1]}, "$b"]]:
            yield e({op: a})
    for a in [True, 0, None, "a", [True], [0], [], [1, 2], "$missing", [[]]]:
        yield e({"$not": a})
    for a in [[True, 1, 2], [0, 1, 2], {"if": "$b", "then": "y", "else": "n"}, {"if": 1, "then": 2}, {"if": 1, "then": 2, "else": 3, "foo": 4}, [1, 2], 5, ["$missing", 1, 2], {"then": 1, "else": 2}]:
        yield e({"$cond": a})
    for a in [["$missing", 1], ["$nil", "x"], ["$i", 1], ["$missing", "$nil"], ["$missing", "$nil", 3], [1], [], "x", ["$missing", "$missing"]]:
        yield e({"$ifNull": a})
    for a in [{"branches": [{"case": "$b", "then": 1}], "default": 2}, {"branches": [{"case": False, "then": 1}], "default": 2}, {"branches": [{"case": False, "then": 1}]}, {"branches": []}, {"branches": 5}, {"branches": [{"case": 1}]}, {"branches": [{"case": {"$gt": ["$i", 100]}, "then": "a"}, {"case": {"$gt": ["$i", 5]}, "then": "b"}]}, {"default": 1}, 5, {"branches": [{"case": 1, "then": 2, "x": 3}]}, {"branches": [{"case": 0, "then": 1}], "foo": 1}]:
        yield e({"$switch": a})


def strings(rnd):
    S = ["Hello", "", "héé日本", "a\u0000b", "  pad\t\n", "ABC abc"]
    for s in S + [None, 5, "$missing", DATE(1600000000123), [1]]:
        v = s if isinstance(s, str) and s.startswith("$") else lit(s)
        for op in ["$toLower", "$toUpper", "$strLenBytes", "$strLenCP", "$reverseArray", "$toString"]:
            yield e({op: v})
        for op in ["$trim", "$ltrim", "$rtrim"]:
            yield e({op: {"input": v}})
    for c in [["a", "b"], ["a", None], ["a", "$s"], ["a", "$missing"], ["a", 5], [], "x", [lit("é"), "日"]]:
        yield e({"$concat": c})
    for op in ["$substr", "$substrBytes", "$substrCP"]:
        for a in [["$s", 1, 2], ["$s", 0, -1], ["$s", -1, 2], ["$s", 10, 2], ["$u", 1, 2], ["$u", 2, 2], ["$u", 0, 1], ["$s", 1, 100], [None, 0, 1], ["$i", 0, 1], ["$t", 0, 4], ["$s", 1.5, 2], ["$s", "a", 1], ["$s", 1], ["$u", 1, -1], ["$missing", 0, 2]]:
            yield e({op: a})
    for a in [["$s", "l"], ["$s", "z"], ["$s", "l", 3], ["$s", "l", 0, 2], ["$u", "日"], [None, "a"], [5, "a"], ["$s", 5], ["$s", "l", -1], ["$s", "", 2], ["$s"], ["$s", "l", "x"], ["$s", "l", 3, 1]]:
        yield e({"$indexOfBytes": a})
        yield e({"$indexOfCP": a})
    for a in [["a,b,c", ","], ["abc", ""], ["abc", "x"], [None, ","], ["abc", None], [5, ","], ["a--b", "--"], ["", ","], ["$s", "l"], ["a"], ["$missing", ","]]:
        yield e({"$split": a})
    for a in [["a", "A"], ["a", "b"], ["B", "a"], [None, "a"], ["é", "É"], [5, 5], ["$missing", ""], ["a"]]:
        yield e({"$strcasecmp": a})
    for a in [{"input": "$s", "find": "l", "replacement": "L"}, {"input": "$s", "find": "z", "replacement": "L"}, {"input": None, "find": "l", "replacement": "L"}, {"input": 5, "find": "l", "replacement": "L"}, {"input": "$s", "find": "l"}, {"input": "$s", "find": "", "replacement": "-"}, {"input": "$s", "find": None, "replacement": "L"}, 5, {"input": "$s", "find": "l", "replacement": "L", "x": 1}]:
        yield e({"$replaceOne": a})
        yield e({"$replaceAll": a})
    for a in [{"input": "xxabcxx", "chars": "x"}, {"input": "  a ", "chars": ""}, {"input": "éaé", "chars": "é"}, {"input": "a", "chars": None}, {"input": "a", "chars": 5}, {"chars": "x"}, {"input": "a", "foo": 1}, 5]:
        yield e({rnd.choice(["$trim", "$ltrim", "$rtrim"]): a})
    for r in ["l+", "^h", "(l)(o)", "(?<x>l)", RE("^h", "i"), "[", "", "z", "日", "é", ".", None, 5, "$missing"]:
        for op in ["$regexMatch", "$regexFind", "$regexFindAll"]:
            yield e({op: {"input": rnd.choice(["$s", "$u"]), "regex": r}})
    for a in [{"input": "$s", "regex": "H", "options": "i"}, {"input": "$s", "regex": RE("h", "i"), "options": "m"}, {"input": "$s", "regex": "h", "options": "z"}, {"input": None, "regex": "a"}, {"input": 5, "regex": "a"}, {"regex": "a"}, {"input": "$s"}, 5, {"input": "$s", "regex": "h", "foo": 1}, {"input": "$s", "regex": "h", "options": 5}, {"input": "a\nb", "regex": "^b", "options": "m"}]:
        yield e({rnd.choice(["$regexMatch", "$regexFind", "$regexFindAll"]): a})


def arrays(rnd):
    A = ["$arr", "$e", "$nest", "$objs", "$missing", None, 5, [1, "a", None], "$s", lit([1, [2]]), "$o"]
    for op in ["$size", "$isArray", "$reverseArray", "$arrayToObject", "$objectToArray", "$first", "$last", "$allElementsTrue", "$anyElementTrue", "$isNumber"]:
        for a in A:
            yield e({op: a if not isinstance(a, list) else [a]})
    for a in A:
        for i in [0, 1, -1, 5, -5, 1.0, 1.5, None, "x", L(1)]:
            if rnd.random() < .35:
                yield e({"$arrayElemAt": [a, i]})
    for s in [["$arr", 2], ["$arr", -2], ["$arr", 1, 1], ["$arr", -2, 1], ["$arr", 5, 2], ["$arr", 0, 0], ["$arr", 0], [None, 1], ["$s", 1], ["$arr", "x"], ["$arr", 1.5], ["$arr", 1, -1], ["$arr"], ["$arr", None], ["$arr", 1, 2, 3], ["$arr", -10, 2]]:
        yield e({"$slice": s})
    for c in [["$arr", [9]], ["$arr", None], ["$arr", "$missing"], ["$arr", 5], [], ["$arr", "$nest"], "$arr", ["$arr"], "$nest"]:
        yield e({"$concatArrays": c})
    for i in [[1, "$arr"], [9, "$arr"], ["$missing", "$arr"], [1, 5], [1, None], [[1, 2], "$nest"], [1.0, "$arr"], [1], [None, [None]]]:
        yield e({"$in": i})
    for i in [["$arr", 2], ["$arr", 9], ["$arr", 1, 2], ["$arr", 2, 0, 2], [None, 1], [5, 1], ["$arr", 2, -1], ["$arr", 2, "x"], ["$arr"], ["$arr", 3, 0, 0]]:
        yield e({"$indexOfArray": i})
    for r in [[0, 5], [0, 10, 3], [5, 0], [5, 0, -2], [0, 5, 0], [0, 1.5], ["a", 5], [None, 5], [0], [0, 3, -1], [1, 1], [0, L(4)], [0, 2**31 - 1, 2**30], [0, 10000000000.0]]:
        yield e({"$range": r})
    for m in [{"input": "$arr", "in": {"$multiply": ["$$this", 2]}}, {"input": "$arr", "as": "x", "in": "$$x"}, {"input": "$missing", "in": 1}, {"input": 5, "in": 1}, {"input": "$objs", "as": "o", "in": "$$o.v"}, {"input": "$arr", "as": "X", "in": 1}, {"input": "$arr"}, {"in": 1}, {"input": "$arr", "in": "$$nope"}, {"input": "$arr", "as": "x", "in": "$$this"}, {"input": "$nest", "in": {"$map": {"input": "$$this", "in": {"$add": ["$$this", 1]}}}}, {"input": "$arr", "in": 1, "foo": 1}, 5, {"input": "$objs", "in": {"$mergeObjects": ["$$this", {"z": "$i"}]}}, {"input": "$arr", "as": "", "in": 1}, {"input": "$arr", "as": "a.b", "in": 1}]:
        yield e({"$map": m})
    for m in [{"input": "$arr", "cond": {"$gt": ["$$this", 1]}}, {"input": "$objs", "as": "o", "cond": {"$eq": ["$$o.k", "a"]}}, {"input": None, "cond": 1}, {"input": 5, "cond": 1}, {"input": "$arr"}, {"input": "$arr", "cond": 1, "limit": 2}, {"input": "$arr", "cond": 1, "limit": 0}, {"input": "$arr", "cond": 1, "limit": None}, {"input": "$arr", "cond": "$missing"}, 5, {"input": "$arr", "cond": 1, "foo": 1}, {"input": "$arr", "cond": 1, "limit": "x"}]:
        yield e({"$filter": m})
    for m in [{"input": "$arr", "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}, {"input": "$arr", "initialValue": [], "in": {"$concatArrays": ["$$value", ["$$this"]]}}, {"input": None, "initialValue": 0, "in": 1}, {"input": 5, "initialValue": 0, "in": 1}, {"input": "$arr", "in": 1}, {"input": "$e", "initialValue": 7, "in": "$$this"}, {"input": "$objs", "initialValue": {}, "in": {"$mergeObjects": ["$$value", {"last": "$$this.k"}]}}, 5, {"input": "$arr", "initialValue": 0, "in": 1, "x": 1}]:
        yield e({"$reduce": m})
    for m in [{"inputs": ["$arr", ["a", "b"]]}, {"inputs": ["$arr", ["a", "b"]], "useLongestLength": True}, {"inputs": ["$arr", ["a"]], "useLongestLength": True, "defaults": [0, "z"]}, {"inputs": ["$arr", None]}, {"inputs": ["$arr", 5]}, {"inputs": []}, {"inputs": ["$arr"], "defaults": [1]}, {"inputs": 5}, {}, {"inputs": ["$arr"], "foo": 1}]:
        yield e({"$zip": m})
    for op in ["$setUnion", "$setIntersection", "$setDifference", "$setEquals", "$setIsSubset"]:
        for a in [[[1, 2], [2, 3]], [[1, 1], [1]], [[1], [1.0]], [[], [1]], ["$arr", "$missing"], ["$arr", 5], [[[1]], [[1]]], [["a"], ["A"]], [[1, 2]], [[1, 2], [2], [2, 4]]]:
            x = e({op: a})
            if op in ("$setUnion", "$setIntersection"):
                x["cmd"]["pipeline"] = [{"$project": {"_id": 0, "r": {op: a}}}, {"$unwind": "$r"}]
                x["unordered"] = True
            yield x
    for a in [{"input": "$arr", "sortBy": 1}, {"input": "$arr", "sortBy": -1}, {"input": "$objs", "sortBy": {"v": -1}}, {"input": None, "sortBy": 1}, {"input": 5, "sortBy": 1}, {"input": "$arr", "sortBy": 0}, {"input": "$arr", "sortBy": {}}, {"input": lit([3, "a", None, 2.5, [1]]), "sortBy": 1}, {"input": "$arr"}]:
        yield e({"$sortArray": a})
    for op in ["$firstN", "$lastN", "$minN", "$maxN"]:
        for a in [{"input": "$arr", "n": 2}, {"input": "$arr", "n": 9}, {"input": "$arr", "n": 0}, {"input": 5, "n": 1}, {"input": "$arr", "n": "x"}, {"input": None, "n": 2}, {"n": 1}, {"input": lit([None, 3, "a"]), "n": 2}]:
            yield e({op: a})
    for a in [{"x": 1}, [["a", 1], ["b", 2]], [{"k": "a", "v": 1}], [["a"]], [[5, 1]], [{"k": "a"}], [{"k": "a", "v": 1}, {"k": "a", "v": 2}], [["a", 1], {"k": "b", "v": 2}], [], [["", 1]], [["a.b", 1]], [["$a", 1]], None]:
        yield e({"$arrayToObject": lit(a)})


def dates(rnd):
    parts = ["$year", "$month", "$dayOfMonth", "$dayOfWeek", "$dayOfYear", "$hour", "$minute", "$second", "$millisecond", "$week", "$isoWeek", "$isoWeekYear", "$isoDayOfWeek"]
    for p in parts:
        for d in DATES:
            yield e({p: lit(d)})
        for a in [None, "$missing", "x", 5, {"date": "$t"}, {"date": "$t", "timezone": "America/New_York"}, {"date": "$t", "timezone": "+05:30"}, {"date": "$t", "timezone": "-0330"}, {"date": "$t", "timezone": "Nope/Zone"}, {"date": "$t", "timezone": None}, {"timezone": "UTC"}, {"date": "$t", "foo": 1}, ["$t"], ["$t", "$t"], OID("5f" + "0" * 22), TS(1600000000, 1)]:
            if rnd.random() < .4:
                yield e({p: lit(a) if isinstance(a, dict) and ("$oid" in a or "$timestamp" in a) else a})
    for f in [None, "%Y-%m-%d", "%H:%M:%S.%L", "%d/%m/%Y %z %Z", "%j %U %u %w %V %G %%", "%q", "%", "é%Y", "", "%b %B", 5]:
        for d in rnd.sample(DATES, 3):
            x = {"date": lit(d)}
            if f is not None:
                x["format"] = f
            yield e({"$dateToString": x})
    for x in [{"date": None}, {"date": "$missing", "onNull": "none"}, {"date": "x"}, {"format": "%Y"}, {"date": "$t", "timezone": "Europe/Paris"}, {"date": "$t", "timezone": "+02"}, {"date": "$t", "foo": 1}, 5, {"date": "$t", "format": None}, {"date": "$t", "timezone": None}, {"date": "$t", "timezone": 5}, {"date": "$t", "format": "%H", "timezone": "Asia/Kathmandu"}]:
        yield e({"$dateToString": x})
        yield e({"$dateToParts": x})
    yield e({"$dateToParts": {"date": "$t", "iso8601": True}})
    for x in [{"year": 2020}, {"year": 2020, "month": 2, "day": 30}, {"year": 2020, "month": 13}, {"year": 2020, "month": 0}, {"year": 2020, "day": 400}, {"year": 2020, "hour": 25, "minute": 61, "second": 61, "millisecond": 1001}, {"year": 2020, "timezone": "America/New_York"}, {"isoWeekYear": 2020, "isoWeek": 53, "isoDayOfWeek": 7}, {"isoWeekYear": 2020, "month": 1}, {"year": None}, {"year": "x"}, {"month": 1}, {"year": 0}, {"year": 10000}, {"year": 2020, "foo": 1}, {"year": 2020.5}, 5, {"year": 2020, "day": 20000}, {"year": 1969, "month": -5}]:
        yield e({"$dateFromParts": x})
    for x in ["2020-01-02", "2020-01-02T03:04:05Z", "2020-01-02T03:04:05.678+02:00", "2020-01-02 03:04:05", "x", "", "2020-13-01", "2020-01-02T03:04", "Jan 2 2020", "20200102", "2020-01-02T03:04:05.123456Z", "2020-02-30"]:
        yield e({"$dateFromString": {"dateString": x}})
        yield e({"$toDate": x})
    for x in [{"dateString": "02/01/2020", "format": "%d/%m/%Y"}, {"dateString": "02/01/2020", "format": "%Y"}, {"dateString": None}, {"dateString": None, "onNull": 5}, {"dateString": "x", "onError": "bad"}, {"dateString": 5}, {"dateString": "2020-01-02", "timezone": "America/New_York"}, {"dateString": "2020-01-02T00:00:00Z", "timezone": "+01:00"}, {"format": "%Y"}, {"dateString": "2020-01-02", "foo": 1}, {"dateString": "2020 005", "format": "%Y %j"}, {"dateString": "2020-W05-3", "format": "%G-W%V-%u"}, {"dateString": "x", "format": "%q"}]:
        yield e({"$dateFromString": x})
    units = ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "nope"]
    for u in units:
        for n in [1, -1, 13, L(5)]:
            yield e({"$dateAdd": {"startDate": lit(rnd.choice(DATES)), "unit": u, "amount": n}})
            yield e({"$dateSubtract": {"startDate": lit(rnd.choice(DATES)), "unit": u, "amount": n}})
        yield e({"$dateDiff": {"startDate": lit(DATES[0]), "endDate": "$t", "unit": u}})
        yield e({"$dateDiff": {"startDate": "$t", "endDate": lit(DATES[3]), "unit": u, "timezone": "America/New_York"}})
        yield e({"$dateTrunc": {"date": "$t", "unit": u}})
        yield e({"$dateTrunc": {"date": "$t", "unit": u, "binSize": 3}})
        yield e({"$dateTrunc": {"date": "$t", "unit": u, "timezone": "Europe/Paris", "startOfWeek": "monday"}})
    for x in [{"startDate": "$t", "unit": "day", "amount": 1.5}, {"startDate": "$t", "unit": "day"}, {"startDate": "x", "unit": "day", "amount": 1}, {"startDate": None, "unit": "day", "amount": 1}, {"startDate": lit(DATE(1580428800000)), "unit": "month", "amount": 1}, {"startDate": "$t", "unit": "day", "amount": 1, "timezone": "Asia/Tokyo"}, {"startDate": "$t", "unit": "day", "amount": 1, "foo": 1}]:
        yield e({"$dateAdd": x})


def convert(rnd):
    vals = [0, 1, -5, L(7), L(2**40), 2.5, -0.0, NAN, INF, 1e20, D("3.7"), D("1E+30"), D("NaN"), "12", "-3", "2.5", "abc", "", " 1", "1e3", "0x1A", "true", "5f0000000000000000000000", "2020-01-02", True, False, None, DATE(1600000000123), OID("5f" + "0" * 22), [1], {"x": 1}, TS(1600000000, 1), RE("a"), BIN(b"ab"), MINKEY]
    for op in ["$toInt", "$toLong", "$toDouble", "$toDecimal", "$toString", "$toBool", "$toDate", "$toObjectId", "$type", "$isNumber"]:
        for v in vals:
            yield e({op: lit(v)})
        yield e({op: "$missing"})
    for c in [{"input": "12", "to": "int"}, {"input": "x", "to": "int"}, {"input": "x", "to": "int", "onError": "bad"}, {"input": None, "to": "int"}, {"input": None, "to": "int", "onNull": "nil"}, {"input": 5, "to": "nope"}, {"input": 5, "to": 2}, {"input": 5, "to": 1.0}, {"input": 5, "to": 99}, {"input": 5}, {"to": "int"}, {"input": 5, "to": None}, {"input": 5, "to": "int", "foo": 1}, 5, {"input": "$missing", "to": "string"}, {"input": 2.7, "to": "long"}, {"input": 5, "to": "missing"}, {"input": 5, "to": "array"}, {"input": "1", "to": "bool"}]:
        yield e({"$convert": c})


def objects(rnd):
    for a in [["$o", {"z": 1}], ["$o", None], ["$o", "$missing"], ["$o", 5], "$o", [], ["$o", {"x": "$i", "y": 9}], "$objs", [{"$mergeObjects": "$objs"}]]:
        yield e({"$mergeObjects": a})
    for a in ["$o", "$missing", None, 5, "$arr", {"a": 1, "b": "$i"}, {}]:
        yield e({"$objectToArray": a})
    for a in [{"field": "x", "input": "$o"}, "x", "i", {"field": "$s", "input": "$o"}, {"field": 5, "input": "$o"}, {"field": "x"}, {"field": "x", "input": None}, {"field": "x", "input": 5}, {"field": {"$const": "$x"}, "input": "$o"}, {"field": "nope", "input": "$o"}, 5]:
        yield e({"$getField": a})
    for a in [{"field": "x", "input": "$o", "value": 9}, {"field": "new", "input": "$o", "value": "$i"}, {"field": "x", "input": "$o", "value": "$$REMOVE"}, {"field": "x", "input": None, "value": 1}, {"field": "x", "input": 5, "value": 1}, {"field": 5, "input": "$o", "value": 1}, {"field": "x", "input": "$o"}]:
        yield e({"$setField": a})
    yield e({"$unsetField": {"field": "x", "input": "$o"}})
    for a in [{"vars": {"x": 1}, "in": "$$x"}, {"vars": {"x": "$i", "y": 2}, "in": {"$add": ["$$x", "$$y"]}}, {"vars": {}, "in": 5}, {"vars": {"X": 1}, "in": 1}, {"vars": 5, "in": 1}, {"in": 1}, {"vars": {"x": 1}}, {"vars": {"x": 1}, "in": "$$y"}, {"vars": {"x": {"$add": ["$i", 1]}}, "in": {"$let": {"vars": {"x": {"$multiply": ["$$x", 2]}}, "in": "$$x"}}}, {"vars": {"CURRENT": "$o"}, "in": "$x"}, {"vars": {"ROOT": 1}, "in": 1}, {"vars": {"a.b": 1}, "in": 1}, 5, {"vars": {"x": 1}, "in": 1, "foo": 1}]:
        yield e({"$let": a})
    for a in ["$o", "$o.y.z", "$objs.v", "$nest.0", "$$ROOT.i", "$$CURRENT.i", "$$REMOVE", "$$NOPE", "$", "$$", "$a.", "$.a", "$a..b", "$$ROOT", {"$literal": "$i"}, {"$literal": {"$add": [1, 2]}}, {"$const": 5}, {"a": "$i", "b": {"c": "$s"}}, ["$i", ["$s"]], {"a": {"$add": [1]}, "b": "$missing"}, ["$missing"], {"$add": [1, 2], "$sum": 1}, {"x": 1, "$add": 1}, {"$nope": 1}, {"a.b": 1}, {"$literal": None}, {"": 1}, 5, 2.5, "str", None, True, DATE(5), {"$meta": "textScore"}, {"$binarySize": "$s"}, {"$bsonSize": "$o"}, {"$bsonSize": None}, {"$bsonSize": 5}, {"$binarySize": 5}, {"$tsSecond": lit(TS(5, 6))}, {"$tsIncrement": lit(TS(5, 6))}, {"$tsSecond": 5}, {"$rand": 5}, {"$lt": [{"$rand": {}}, 1]}, {"$sampleRate": 1}, {"$toHashedIndexKey": "$i"}, {"$toHashedIndexKey": "$s"}, {"$accumulator": {}}, {"$function": {}}]:
        yield e(a)


TOPICS = {"expr.arith": arith, "expr.compare": compare, "expr.string": strings, "expr.array": arrays, "expr.date": dates, "expr.convert": convert, "expr.object": objects}
