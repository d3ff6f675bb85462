"""Filters of `find`, `count` and `distinct`: every match operator over every kind of value."""
from .data import ALL, ARRAYS, BIN, D, DATE, DOCS, FEW, INF, L, MAXKEY, MINKEY, NAN, NUMBERS, OID, RE, STRINGS, SYM, TS, UNDEF

CMP = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]
PATHS = {"mixed": ["a", "n.x", "n", "r.v", "r", "r.0.v", "r.k", "a.x", "a.0", "a.0.x", "missing"],
         "arrays": ["t", "t.0", "t.1", "g", "e.p", "e.q", "e.w", "e", "e.0.p", "e.1", "m.a.b", "m.a.b.c", "m.a", "m.a.b.0", "m.a.b.0.c"]}
TYPES = ["double", "string", "object", "array", "binData", "undefined", "objectId", "bool", "date", "null", "regex", "dbPointer",
         "javascript", "symbol", "javascriptWithScope", "int", "timestamp", "long", "decimal", "minKey", "maxKey", "number"]


def find(setup, flt, **kw):
    return {"setup": setup, "cmd": {"find": setup, "filter": flt, **kw}}


def compare(rnd):
    for v in ALL:
        yield find("mixed", {"a": v})
        for op in CMP:
            yield find("mixed", {"a": {op: v}})
    for p in PATHS["mixed"][1:]:
        for v in FEW:
            yield find("mixed", {p: {rnd.choice(CMP): v}})
            yield find("mixed", {p: v})
    for p in PATHS["arrays"]:
        for v in [1, 2, 5, "red", "x", None, [1, 2], [], {"p": 1}, {"c": 1}, [3, 4], 3.0, D("2")]:
            yield find("arrays", {p: v})
            yield find("arrays", {p: {rnd.choice(CMP[1:]): v}})
    for _ in range(60):
        lo, hi = rnd.choice(NUMBERS), rnd.choice(NUMBERS)
        yield find("mixed", {"a": {rnd.choice(["$gt", "$gte"]): lo, rnd.choice(["$lt", "$lte"]): hi}})
        yield find("arrays", {"t": {rnd.choice(["$gt", "$gte"]): rnd.randrange(10), rnd.choice(["$lt", "$lte"]): rnd.randrange(10)}})


def in_nin(rnd):
    for _ in range(110):
        vals = [rnd.choice(ALL) for _ in range(rnd.randrange(5))]
        yield find("mixed", {rnd.choice(["a", "a", "n.x", "r.v", "missing"]): {rnd.choice(["$in", "$nin"]): vals}})
    for _ in range(50):
        p = rnd.choice(PATHS["arrays"])
        vals = [rnd.choice([1, 2, 3, 5, "red", "x", "y", None, [1, 2], [], {"c": 1}, RE("^gr"), RE("E", "i")]) for _ in range(rnd.randrange(1, 4))]
        yield find("arrays", {p: {rnd.choice(["$in", "$nin"]): vals}})
    for bad in [{"$in": 5}, {"$in": {"x": 1}}, {"$in": [{"$regex": "a"}]}, {"$nin": None}, {"$in": [{"$gt": 1}]}, {"$nin": [{"$x": 1}]}, {"$in": "a"}]:
        yield find("mixed", {"a": bad})


def element(rnd):
    for s in PATHS:
        for p in PATHS[s]:
            for v in [True, False, 0, 1, None, "", 2.5]:
                if v in (True, False) or rnd.random() < .4:
                    yield find(s, {p: {"$exists": v}})
    for t in TYPES:
        yield find("mixed", {"a": {"$type": t}})
        yield find("mixed", {rnd.choice(["n.x", "r.v"]): {"$type": t}})
        yield find("mixed", {"a": {"$not": {"$type": t}}})
    for t in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, -1, 127, 1.0, L(2), D("16"), 0, 20, 255, -2, 1.5, "Double", "nope",
              None, True, {}, [], [1, "string"], ["array", "null"], ["number", "nope"], [[1]], D("1.5"), NAN]:
        yield find("mixed", {"a": {"$type": t}})
    for p in PATHS["arrays"]:
        for t in ["array", "object", "int", "string", ["null", "object"]]:
            yield find("arrays", {p: {"$type": t}})


def logical_tree(rnd, leaf, depth):
    if depth == 0 or rnd.random() < .35:
        return leaf()
    k = rnd.choice(["$and", "$or", "$nor", "$not", "implicit"])
    if k == "$not":
        d = leaf()
        (p, c), = d.items()
        return {p: {"$not": c}} if isinstance(c, dict) and next(iter(c), "").startswith("$") and "$regularExpression" not in c else d
    subs = [logical_tree(rnd, leaf, depth - 1) for _ in range(rnd.randrange(1, 4))]
    if k == "implicit":
        out = {}
        for s in subs:
            out.update(s)
        return out
    return {k: subs}


def leaf_of(rnd, which):
    def mixed():
        p = rnd.choice(PATHS["mixed"])
        return {p: rnd.choice([lambda: {rnd.choice(CMP): rnd.choice(ALL)}, lambda: {"$in": rnd.sample(FEW, 3)}, lambda: {"$exists": rnd.random() < .5},
                               lambda: {"$type": rnd.choice(TYPES)}, lambda: {"$gt": rnd.choice(NUMBERS), "$lt": rnd.choice(NUMBERS)},
                               lambda: {"$mod": [2, 1]}, lambda: {"$size": rnd.randrange(3)}])()}

    def arr():
        p = rnd.choice(["t", "g", "e.p", "e.q", "m.a.b", "e"])
        return {p: rnd.choice([lambda: {"$eq": rnd.choice([1, 3, "red", "x", None])}, lambda: {"$gte": rnd.randrange(6)}, lambda: {"$lt": rnd.randrange(6)},
                               lambda: {"$all": [rnd.choice([1, 2, "red", "blue"])]}, lambda: {"$elemMatch": {"$gt": rnd.randrange(5)}},
                               lambda: {"$elemMatch": {"p": rnd.randrange(5)}}, lambda: {"$size": rnd.randrange(4)}, lambda: {"$ne": rnd.choice([1, "x", []])}])()}
    return {"mixed": mixed, "arrays": arr}[which]


def logical(rnd):
    for s in ("mixed", "arrays"):
        leaf = leaf_of(rnd, s)
        for _ in range(170):
            yield find(s, logical_tree(rnd, leaf, 3))
    for bad in [{"$and": []}, {"$or": []}, {"$nor": []}, {"$and": {}}, {"$or": 5}, {"$and": [1]}, {"$or": [{}]}, {"$and": [{}]}, {"$nor": [{}]},
                {"a": {"$not": 5}}, {"a": {"$not": {}}}, {"a": {"$not": {"x": 1}}}, {"a": {"$not": RE("^a")}}, {"a": {"$not": {"$regex": "^a"}}}, {"$not": {"a": 1}},
                {"a": {"$not": {"$not": {"$gt": 2}}}}, {"a": {"$not": [1]}}, {"$foo": 1}, {"a": {"$foo": 1}}, {"a": {"$gt": 1, "x": 2}}, {"a": {"x": 2, "$gt": 1}},
                {"$alwaysTrue": 1}, {"$alwaysFalse": 1}, {"$alwaysTrue": 2}, {"$comment": "hi", "a": 1}, {"a": {"$comment": "x", "$gt": 5}}, {"$sampleRate": 0}, {"$sampleRate": 1.0},
                {"$sampleRate": 2}, {"$sampleRate": "x"}, {"a": {"$and": []}}, {"a": {"$or": [1]}}, {"": 1}, {"a.": 1}, {".a": 1}, {"a..b": 1}, {"$": 1}]:
        yield find("mixed", bad)


def mod(rnd):
    for m in [[2, 0], [2, 1], [3, -1], [3, L(1)], [2.7, 1.2], [D("2"), D("0")], [-2, 1], [L(2**40), 1], [1, 0], [2, 0.5], [4, 4],
              [0, 1], [0.5, 0], [2], [2, 1, 0], [], 5, ["a", 1], [2, "a"], [None, 0], [2, None], [NAN, 0], [2, NAN], [INF, 1], [2, INF], [D("NaN"), 0], [1e300, 0], [2, 1e300],
              [L(-2**63), -1], [-1, 0], [D("1E+400"), 0], {}, None, [True, 1], [2, True]]:
        yield find("mixed", {"a": {"$mod": m}})
        yield find("arrays", {"t": {"$mod": m}})


def regex(rnd):
    pats = ["^a", "a$", "apple", "(?i)APPLE", "^.{5}$", "\\d+", "[0-9]{2}", "é", "^$", ".", "o.*o", "foo|bar", "\\bab\\b", "^item\\d$", "x\\.y", "\\(", "(?<!i)tem", "a(?=p)", "(a)\\1",
            "\\p{L}+", "[[:alpha:]]+", "\\x61", "^\\s", "two$", "^two", "one.two", "\\u00e9", "\\Qx.y\\E", "^(?:a|b)", "İ", "ß", "ss", "[é]", "\\w+", "^\\W", "a b", "a # c", "日."]
    for p in pats:
        for o in ["", "i", "m", "s", "x", "ims"]:
            if o in ("", "i") or rnd.random() < .3:
                yield find("strs", {"s": rnd.choice([RE(p, o), {"$regex": p, "$options": o}, {"$regex": RE(p, o)}])})
    for q in [{"$regex": "^app"}, {"$not": RE("^app")}, {"$ne": RE("^foo", "i")}, {"$eq": RE("^foo", "i")}, {"$in": [RE("^app"), "cote"]}, {"$nin": [RE("p")]}, {"$regex": RE("^foo", "i"), "$options": ""},
              {"$regex": "[", "$options": ""}, {"$regex": "(", "$options": "i"}, {"$regex": "a", "$options": "z"}, {"$regex": "a", "$options": "g"}, {"$regex": 5}, {"$options": "i"}, {"$regex": "a", "$options": 5},
              {"$regex": "a", "$options": "u"}, {"$options": "i", "$regex": "APPLE"}, {"$regex": RE("a", "i"), "$options": "m"}, {"$gt": RE("^a")}, {"$elemMatch": {"$regex": "^B"}}, {"$all": [RE("^a"), RE("na$")]},
              {"$regex": "a\u0000b"}, {"$regex": "*"}, {"$regex": "a**"}, {"$regex": "a++"}, {"$regex": "(?P<n>a)p"}, {"$regex": "^" + "a?" * 20 + "a" * 20}, {"$regex": ""}, {"$regex": "(" * 200 + ")" * 200}]:
        yield find("strs", {"s": q})


def array_ops(rnd):
    for v in [0, 1, 2, 3, 1.0, L(2), D("1"), -1, 1.5, "1", None, NAN, [], {"$gt": 1}, L(2**40), D("1.1")]:
        yield find("arrays", {"t": {"$size": v}})
        yield find("mixed", {"a": {"$size": v}})
    for _ in range(90):
        p = rnd.choice(["t", "g", "e.p", "e.q", "e.w", "m.a.b"])
        vals = [rnd.choice([1, 2, 3, 5, 7, "red", "blue", "x", None, [1, 2], [], 4.0]) for _ in range(rnd.randrange(1, 3))]
        yield find("arrays", {p: {"$all": vals}})
    for q in [{"$all": []}, {"$all": 5}, {"$all": [{"$elemMatch": {"p": 1}}, {"$elemMatch": {"q": "x"}}]}, {"$all": [{"$elemMatch": {"p": 1}}, 5]}, {"$all": [5, {"$elemMatch": {"p": 1}}]}, {"$all": [{"$gt": 1}]},
              {"$all": [[1, 2]]}, {"$all": [None]}, {"$elemMatch": 5}, {"$elemMatch": {}}, {"$elemMatch": {"$gt": 1, "p": 2}}, {"$elemMatch": {"p": {"$gt": 1}, "q": "x"}}, {"$elemMatch": {"$in": [1, 2]}},
              {"$elemMatch": {"$not": {"$gt": 3}}}, {"$elemMatch": {"$elemMatch": {"p": 1}}}, {"$elemMatch": {"$elemMatch": {"$gt": 1}}}, {"$elemMatch": {"$and": [{"p": 1}, {"q": "x"}]}}, {"$elemMatch": {"$or": [{"p": 1}, {"q": "y"}]}},
              {"$elemMatch": {"$nor": [{"p": 1}]}}, {"$elemMatch": {"w": {"$size": 1}}}, {"$elemMatch": {"w": {"$elemMatch": {"$gte": 3}}}}, {"$elemMatch": {"$exists": True}}, {"$elemMatch": {"p": {"$exists": False}}}, {"$elemMatch": {"$type": "object"}},
              {"$elemMatch": {"$size": 2}}, {"$elemMatch": {"0": {"$gt": 1}}}, {"$elemMatch": {"$eq": None}}, {"$elemMatch": {"p": None}}, {"$elemMatch": {"$where": "1"}}, {"$elemMatch": {"$expr": True}}]:
        for p in ["e", "t", "m.a.b"]:
            yield find("arrays", {p: q})
    for _ in range(60):
        yield find("arrays", {"e": {"$elemMatch": {"p": {rnd.choice(CMP): rnd.randrange(6)}, "q": rnd.choice(["x", "y", None, {"$ne": "z"}, {"$in": ["x", None]}])}}})
        yield find("arrays", {"t": {"$elemMatch": {"$gte": rnd.randrange(8), "$lt": rnd.randrange(4, 12)}}})


def bitwise(rnd):
    masks = [0, 1, 5, 20, 54, L(2**40), 6.0, D("6"), [], [0], [0, 2], [1, 4], [63], [64], [200], [L(40)], BIN(b"\x05"), BIN(b"\x00\x10"), BIN(b""), -1, 1.5, "a", None, ["a"], [-1], [1.5],
             {}, D("NaN"), 1e300, [0.0], L(2**63 - 1)]
    for op in ["$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear"]:
        for m in masks:
            yield find("bits", {"a": {op: m}})


def expr(rnd):
    for e in [True, False, 1, 0, None, "$a", {"$gt": ["$a", 5]}, {"$eq": ["$a", "$s"]}, {"$lt": ["$n.x", "$a"]}, {"$and": []}, {"$and": ["$s", {"$gt": ["$s", 2]}]}, {"$or": [{"$eq": ["$s", 1]}, {"$eq": ["$s", 2]}]},
              {"$not": ["$s"]}, {"$in": ["$s", [1, 2]]}, {"$eq": [{"$type": "$a"}, "missing"]}, {"$eq": [{"$type": "$a"}, "double"]}, {"$isArray": "$a"}, {"$gt": [{"$size": "$a"}, 1]}, {"$foo": 1}, {"$gt": [1]},
              {"$eq": ["$$x", 1]}, {"$eq": ["$$ROOT.s", 3]}, {"$cond": [{"$gt": ["$s", 4]}, True, False]}, {"$gt": ["$a", None]}, {"$lt": ["$missing", None]}, {"$eq": ["$missing", None]}, {"$lte": ["$a", {"$literal": {"x": 1}}]},
              {"$ne": ["$a", "$$REMOVE"]}, {"$eq": ["$a", []]}, {"$eq": [{"$mod": ["$s", 3]}, 1]}, {"$regexMatch": {"input": "$a", "regex": "a"}}, {"$eq": [{"$add": ["$s", 1]}, 4]}]:
        yield find("mixed", {"$expr": e})
    for v in FEW:
        for op in CMP:
            yield find("mixed", {"$expr": {op: ["$a", {"$literal": v}]}})
    yield {"setup": "nums", "cmd": {"find": "nums", "filter": {"$expr": {"$gt": ["$a", "$$lim"]}}, "let": {"lim": 8}}}
    yield {"setup": "nums", "cmd": {"find": "nums", "filter": {"$expr": {"$gt": ["$a", "$$lim"]}}, "let": {"Lim": 8}}}
    yield {"setup": "nums", "cmd": {"find": "nums", "filter": {"$expr": {"$gt": ["$a", "$$lim"]}}, "let": {"lim": {"$add": [3, 4]}}}}
    yield {"setup": "nums", "cmd": {"find": "nums", "filter": {"a": {"$expr": {"$gt": ["$a", 1]}}}}}


def jsonschema(rnd):
    sch = [{"required": ["a"]}, {"required": ["n", "r"]}, {"required": []}, {"required": 5}, {"required": ["a", "a"]}, {"properties": {"a": {"type": "number"}}}, {"properties": {"a": {"bsonType": "int"}}}, {"properties": {"a": {"bsonType": ["string", "null"]}}},
           {"properties": {"a": {"type": ["string", "array"]}}}, {"properties": {"a": {"type": "integer"}}}, {"properties": {"a": {"bsonType": "nope"}}}, {"properties": {"a": {"minimum": 2}}}, {"properties": {"a": {"maximum": 2, "exclusiveMaximum": True}}},
           {"properties": {"a": {"minimum": 2, "exclusiveMinimum": True}}}, {"properties": {"a": {"exclusiveMinimum": True}}}, {"properties": {"a": {"multipleOf": 2}}}, {"properties": {"a": {"multipleOf": 0}}}, {"properties": {"a": {"minLength": 2}}}, {"properties": {"a": {"maxLength": 1}}},
           {"properties": {"a": {"minLength": -1}}}, {"properties": {"a": {"pattern": "^a"}}}, {"properties": {"a": {"pattern": "["}}}, {"properties": {"a": {"minItems": 2}}}, {"properties": {"a": {"maxItems": 1}}}, {"properties": {"a": {"uniqueItems": True}}},
           {"properties": {"a": {"items": {"type": "number"}}}}, {"properties": {"a": {"items": [{"type": "number"}, {"type": "string"}]}}}, {"properties": {"a": {"items": [{"type": "number"}], "additionalItems": False}}},
           {"properties": {"a": {"items": [{"type": "number"}], "additionalItems": {"type": "number"}}}}, {"properties": {"a": {"minProperties": 1, "type": "object"}}}, {"properties": {"a": {"maxProperties": 0}}}, {"properties": {"a": {"enum": [1, "a", [1, 2], {"x": 1}]}}},
           {"properties": {"a": {"enum": []}}}, {"properties": {"a": {"allOf": [{"minimum": 0}, {"maximum": 3}]}}}, {"properties": {"a": {"anyOf": [{"type": "string"}, {"minimum": 100}]}}}, {"properties": {"a": {"oneOf": [{"type": "number"}, {"minimum": 100}]}}},
           {"properties": {"a": {"not": {"type": "number"}}}}, {"additionalProperties": False, "properties": {"_id": {}, "a": {}, "s": {}}}, {"additionalProperties": {"type": "number"}, "properties": {"a": {}, "n": {}, "r": {}}}, {"patternProperties": {"^a": {"type": "string"}}},
           {"patternProperties": {"[": {}}}, {"dependencies": {"a": ["n"]}}, {"dependencies": {"n": {"required": ["r"]}}}, {"properties": {"n": {"type": "object", "required": ["x"]}}}, {"properties": {"n": {"properties": {"x": {"type": "string"}}}}},
           {"title": "t", "description": "d"}, {"title": 5}, {"foo": 1}, {"$ref": "x"}, {"default": 1}, {"format": "x"}, {"definitions": {}}, {"type": "object"}, {"type": "array"}, {"type": "nope"}, {"type": "object", "bsonType": "object"}, {"minProperties": 4}, {"maxProperties": 3}, {}, 5,
           {"properties": 5}, {"properties": {"a": 5}}, {"allOf": []}, {"not": 5}, {"properties": {"r": {"items": {"required": ["v"], "properties": {"v": {"type": "string"}}}}}}, {"properties": {"r": {"uniqueItems": True, "minItems": 2}}}]
    for s in sch:
        yield find("mixed", {"$jsonSchema": s})
    yield find("mixed", {"s": 3, "$jsonSchema": {"required": ["n"]}})
    yield find("mixed", {"a": {"$jsonSchema": {}}})
    yield find("mixed", {"$nor": [{"$jsonSchema": {"required": ["n"]}}]})


def distinct_count(rnd):
    for s, paths in {**PATHS, "nums": ["a", "b", "c", "z", "z.k"], "people": ["name", "name.first", "tags", "orders.sku", "orders.price", "city", "age"], "strs": ["s"]}.items():
        for p in paths + ["_id", "missing.x"]:
            yield {"setup": s, "cmd": {"distinct": s, "key": p}}
            yield {"setup": s, "cmd": {"distinct": s, "key": p, "query": {"_id": {"$lt": rnd.randrange(60)}}}}
    for kw in [{"key": 5}, {"key": ""}, {}, {"key": "a", "query": 5}, {"key": "a", "query": {"$x": 1}}, {"key": "a", "foo": 1}, {"key": "a\u0000b"}, {"key": "$a"}, {"key": "a.$"}, {"key": "a", "query": None}]:
        yield {"setup": "nums", "cmd": {"distinct": "nums", **kw}}
    for kw in [{}, {"query": {}}, {"query": {"a": 3}}, {"query": {"a": {"$gt": 5}}, "limit": 4}, {"limit": -4}, {"skip": 140}, {"skip": 10, "limit": 5}, {"skip": -1}, {"limit": "x"}, {"skip": 1.5}, {"limit": 0}, {"query": 5}, {"query": None}, {"foo": 1}, {"limit": L(-2**63)}, {"skip": 1000},
               {"query": {"c": RE("^e", "i")}}, {"hint": "_id_"}, {"hint": {"_id": 1}}, {"hint": "nope"}, {"hint": 5}, {"limit": 2.7}, {"fields": {}}, {"query": {"b": None}}, {"query": {"b": {"$exists": False}}}]:
        yield {"setup": "nums", "cmd": {"count": "nums", **kw}}
    yield {"setup": "nums", "cmd": {"count": "nosuch"}}
    yield {"setup": "nums", "cmd": {"distinct": "nosuch", "key": "a"}}
    yield {"setup": "nums", "cmd": {"find": "nosuch"}}


TOPICS = {"match.compare": compare, "match.in": in_nin, "match.element": element, "match.logical": logical, "match.mod": mod, "match.regex": regex,
          "match.array": array_ops, "match.bits": bitwise, "match.expr": expr, "match.schema": jsonschema, "match.distinct": distinct_count}
