"""Sort, projection, skip, limit, batches and collation of `find`."""
from .data import D, L, NAN, RE
from .match import find


def sort(rnd):
    for s, paths in {"mixed": ["a", "n.x", "r.v", "r", "n", "a.x", "a.0", "missing"], "arrays": ["t", "e.p", "e.q", "g", "m.a.b", "m.a.b.c", "e.w", "t.0", "e.0.p"], "nums": ["a", "b", "c", "d", "f", "z", "z.k"], "strs": ["s"]}.items():
        for p in paths:
            for d in (1, -1):
                yield find(s, {}, sort={p: d, "_id": rnd.choice([1, -1])}, projection={"_id": 1})
    for _ in range(50):
        keys = rnd.sample(["a", "b", "c", "d", "z.k"], rnd.randrange(1, 4))
        srt = {k: rnd.choice([1, -1]) for k in keys}
        srt["_id"] = rnd.choice([1, -1])
        kw = {}
        if rnd.random() < .5:
            kw["limit"] = rnd.randrange(1, 40)
        if rnd.random() < .4:
            kw["skip"] = rnd.randrange(60)
        yield find("nums", rnd.choice([{}, {"a": {"$gt": 4}}, {"c": "cat"}]), sort=srt, projection={"_id": 1}, **kw)
    for _ in range(25):
        yield find("arrays", {}, sort={rnd.choice(["t", "e.p"]): rnd.choice([1, -1]), rnd.choice(["g", "e.q"]): rnd.choice([1, -1]), "_id": 1}, projection={"_id": 1}, limit=rnd.randrange(5, 60))
    for bad in [{"a": 0}, {"a": 2}, {"a": "x"}, {"a": 1.0}, {"a": L(-1)}, {"a": D("1")}, {"a": {"$meta": "textScore"}}, {"a": {"$meta": "foo"}}, {"a": {"$meta": "randVal"}, "_id": 1}, {"": 1}, {"a.": 1}, {".a": 1}, {"$a": 1}, {"a.$b": 1}, {"a": {"x": 1}}, {"$natural": 1}, {"$natural": -1},
                {"$natural": 1, "a": 1}, {"$natural": 2}, 5, None, "a", [], {"a": [1]}, {"a": None}, {"a": True}, {"a": NAN}, {"a": 1.5}, {"a": -1.5}, {("k%d" % i): 1 for i in range(33)}, {("k%d" % i): 1 for i in range(32)}, {"a": 1, "a.b": 1, "_id": 1}]:
        yield find("nums", {"a": {"$lt": 3}}, sort=bad, projection={"_id": 1})
    for kw in [{"skip": 0}, {"skip": 5, "limit": 3}, {"limit": 0}, {"limit": -3}, {"skip": -1}, {"limit": 1.0}, {"limit": 2.5}, {"limit": "x"}, {"skip": None}, {"limit": L(2**62)}, {"skip": L(2**62)}, {"batchSize": -1}, {"batchSize": 0}, {"batchSize": "x"}, {"limit": -3, "singleBatch": True}, {"limit": 3, "singleBatch": True},
               {"batchSize": 4, "singleBatch": True}, {"batchSize": 4}, {"batchSize": 4, "limit": 3}, {"batchSize": 4, "limit": 4}, {"batchSize": 4, "limit": 5}, {"batchSize": 1}, {"ntoreturn": 3}, {"limit": 3, "batchSize": 0}, {"batchSize": 150}, {"batchSize": 151}, {"batchSize": 149}, {}, {"limit": 101}, {"limit": 102}, {"skip": 49}, {"skip": 48},
               {"singleBatch": 1}, {"singleBatch": True}, {"tailable": True}, {"awaitData": True}, {"noCursorTimeout": True, "limit": 1}, {"allowPartialResults": True, "limit": 1}, {"returnKey": True, "limit": 2}, {"showRecordId": True, "limit": 0, "skip": 1000}, {"comment": {"x": 1}, "limit": 1}, {"maxTimeMS": 0, "limit": 1}, {"maxTimeMS": -1}, {"maxTimeMS": "x"},
               {"maxTimeMS": 1.5}, {"maxTimeMS": L(2**40)}, {"max": {"_id": 5}}, {"max": {"_id": 5}, "hint": {"_id": 1}}, {"min": {"_id": 140}, "hint": {"_id": 1}}, {"min": {"_id": 5}, "max": {"_id": 9}, "hint": "_id_"}, {"min": {"_id": 9}, "max": {"_id": 5}, "hint": "_id_"}, {"min": {"a": 1}, "hint": "_id_"}, {"hint": {"$natural": -1}, "limit": 5},
               {"hint": {"$natural": 1}, "limit": 5}, {"hint": "nope"}, {"hint": {"a": 1}}, {"hint": {"_id": -1}}, {"hint": 5}, {"hint": {"$natural": 1}, "sort": {"$natural": -1}, "limit": 3}, {"hint": {}}, {"hint": {"$natural": 2}}, {"readConcern": {"level": "majority"}, "limit": 1}, {"readConcern": {"level": "nope"}}, {"readConcern": {"level": "linearizable"}, "limit": 1}, {"readConcern": 5},
               {"foo": 1}, {"filter": 5}, {"filter": None}, {"projection": None}, {"collation": {"locale": "simple"}, "limit": 1}, {"collation": {}}, {"collation": {"locale": "xx"}}, {"collation": {"locale": "en", "strength": 9}}, {"collation": 5}, {"let": 5}, {"let": {}}, {"allowDiskUse": True, "limit": 1}, {"allowDiskUse": "x"}, {"oplogReplay": True, "limit": 1}]:
        yield {"setup": "nums", "cmd": {"find": "nums", "filter": {}, "projection": {"_id": 1}, **kw}, "raw": True}


def projection(rnd):
    pool = ["a", "n", "n.x", "r", "r.v", "r.k", "s", "_id", "missing", "n.y", "a.x", "r.v.x"]
    for _ in range(70):
        v = rnd.choice([0, 1])
        spec = {p: rnd.choice([v, bool(v), v * 2.5, L(v), D(str(v))]) for p in rnd.sample(pool, rnd.randrange(1, 4))}
        if "_id" in spec and rnd.random() < .5:
            spec["_id"] = 1 - v
        yield find("mixed", {"s": {"$in": [1, 2, 3]}, "_id": {"$gte": rnd.randrange(0, 60)}}, projection=spec, limit=12)
    pool = ["t", "g", "e", "e.p", "e.q", "e.w", "m", "m.a", "m.a.b", "m.a.b.c", "_id", "t.0", "e.0.p"]
    for _ in range(70):
        v = rnd.choice([0, 1])
        yield find("arrays", {"_id": {"$gte": rnd.randrange(0, 50)}}, projection={p: v for p in rnd.sample(pool, rnd.randrange(1, 4))}, limit=8)
    specs = [{}, {"_id": 0}, {"_id": 1}, {"a": 1, "b": 0}, {"a": 0, "b": 1}, {"_id": 0, "t": 1}, {"_id": 1, "t": 0}, {"e": {"p": 1}}, {"e": {"p": 1, "q": 1}}, {"e": {"p": 0}}, {"m": {"a": {"b": 1}}}, {"e": {}}, {"e": 1, "e.p": 1}, {"e.p": 1, "e": 1}, {"e.p": 1, "e.p.x": 1}, {"e.p": 0, "e": 0}, {"": 1},
             {"a.": 1}, {".a": 1}, {"$a": 1}, {"a.$b": 1}, {"a": "$t"}, {"a": "lit"}, {"a": {"$literal": 1}}, {"a": "$e.p"}, {"x": {"$add": ["$_id", 1]}}, {"x": {"$size": "$t"}}, {"x": {"$foo": 1}}, {"x": ["$_id", 1, "$missing"]}, {"x": {"y": "$_id"}}, {"t": 1, "x": "$_id"}, {"t": 0, "x": "$_id"}, {"_id": "$t"}, {"_id": 0, "x": "$_id"}, {"e.x": "$_id"},
             {"x.y.z": "$_id"}, {"e": {"x": "$_id"}}, {"t": None}, {"t": "1"}, {"t": []}, {"t": [1]}, {"t": NAN}, {"t": RE("a")}, {"t": {"$eq": 1}}, 5, None, "t", [], {"x": "$$ROOT._id"}, {"x": "$$NOPE"}, {"x": "$$REMOVE", "t": 1}, {"x": {"$cond": [{"$gt": ["$_id", 3]}, "big", "$$REMOVE"]}}, {"_id": 0}, {"_id": False, "t": True},
             {"t": -1}, {"t": 0.0}, {"t": -0.0}, {"e": {"p": 1, "x": "$_id"}}, {"e": {"p": 0, "x": "$_id"}}, {"e.p": 1, "e": {"q": 1}}, {"m": {"a.b": 1}}, {"m.a": {"b": 1}}, {"x": {"$map": {"input": "$t", "in": {"$add": ["$$this", 1]}}}}]
    for sp in specs:
        yield {"setup": "arrays", "cmd": {"find": "arrays", "filter": {"_id": {"$lt": 9}, "t": {"$type": "array"}} if "map" in str(sp) or "size" in str(sp) else {"_id": {"$lt": 9}}, "projection": sp}}


def proj_array(rnd):
    sl = [0, 1, 2, -1, -2, 10, -10, [0, 1], [1, 2], [-2, 1], [-10, 2], [10, 1], [1, 10], [1, 0], [1, -1], [1], [1, 2, 3], "x", None, 1.7, L(2), D("1"), [L(0), 2.0], [0, "x"], ["x", 1], NAN, {}, [], L(2**40), [None, 1], {"x": 1}]
    for v in sl:
        yield find("arrays", {"_id": {"$lt": 12}}, projection={"t": {"$slice": v}})
        yield find("arrays", {"_id": {"$lt": 12}}, projection={"e.w": {"$slice": v}, "_id": 1})
    for sp in [{"t": {"$slice": 1}, "g": 1}, {"t": {"$slice": 1}, "g": 0}, {"e": {"$slice": 1}, "e.p": 1}, {"e.p": {"$slice": 1}}, {"m.a.b": {"$slice": -1}}, {"t": {"$slice": 1}, "_id": 0}, {"t": {"$slice": 1}, "e": {"$elemMatch": {"p": 1}}}, {"t": {"$slice": ["$t", 2]}}, {"x": {"$slice": ["$t", 1, 1]}}, {"e": {"w": {"$slice": 1}}}]:
        yield find("arrays", {"_id": {"$lt": 12}}, projection=sp)
    em = [{"p": 1}, {"p": {"$gt": 2}}, {"q": "x", "p": {"$lt": 4}}, {}, {"$gt": 3}, {"$or": [{"p": 1}, {"p": 2}]}, {"$and": [{"p": {"$gte": 1}}, {"q": None}]}, {"$nor": [{"p": 1}]}, {"w": {"$size": 2}}, {"p": {"$in": [2, 3]}}, {"$eq": 5}, {"$in": [1, 3, 5]}, {"$exists": True}, {"q": {"$not": {"$eq": "x"}}}, {"p": None}, {"w": 3}, {"$elemMatch": {"$gt": 2}}, 5, None, {"$where": "1"}, {"$foo": 1}, {"p": {"$foo": 1}}, {"$expr": True}, {"$not": {"$gt": 3}}]
    for e in em:
        for p in ["e", "t"]:
            yield find("arrays", {}, projection={p: {"$elemMatch": e}}, limit=20)
    for sp in [{"e": {"$elemMatch": {"p": 1}}, "t": 1}, {"e": {"$elemMatch": {"p": 1}}, "t": 0}, {"e.w": {"$elemMatch": {"$gt": 1}}}, {"e": {"$elemMatch": {"p": 1}}, "e.p": 1}, {"_id": 0, "e": {"$elemMatch": {"q": "y"}}}, {"m": {"a": {"$elemMatch": {"p": 1}}}}, {"e": {"$elemMatch": {"p": 1}, "$slice": 1}}]:
        yield find("arrays", {}, projection=sp, limit=20)
    # positional
    pos = [({"t": 3}, {"t.$": 1}), ({"t": {"$gt": 3}}, {"t.$": 1}), ({"e.p": 2}, {"e.$": 1}), ({"e": {"$elemMatch": {"p": {"$gt": 1}, "q": "x"}}}, {"e.$": 1}), ({"t": {"$elemMatch": {"$gt": 3, "$lt": 8}}}, {"t.$": 1}), ({"t": 3, "g": "red"}, {"t.$": 1}), ({"g": "red", "t": 3}, {"g.$": 1}),
           ({"t": 3}, {"g.$": 1}), ({}, {"t.$": 1}), ({"_id": 3}, {"t.$": 1}), ({"e.w": 2}, {"e.w.$": 1}), ({"e.w": 2}, {"e.$": 1}), ({"t": {"$size": 2}}, {"t.$": 1}), ({"t": {"$in": [2, 3]}}, {"t.$": 1, "g": 1}), ({"t": 3}, {"t.$": 0}), ({"t": 3}, {"t.$": 1, "e.$": 1}), ({"t": 3}, {"t.$": 1, "g": 0}), ({"t": 3}, {"t.$.x": 1}),
           ({"$or": [{"t": 3}, {"g": "red"}]}, {"t.$": 1}), ({"$and": [{"t": 3}, {"t": {"$gt": 4}}]}, {"t.$": 1}), ({"t": {"$ne": 3}}, {"t.$": 1}), ({"t": {"$all": [3, 5]}}, {"t.$": 1}), ({"m.a.b": 2}, {"m.a.b.$": 1}), ({"m.a.b.c": 2}, {"m.a.b.$": 1}), ({"t": 3}, {"$": 1}), ({"t": 3}, {"t.$": 1, "t": 1}), ({"t": 3}, {"_id": 0, "t.$": 1}), ({"e.p": {"$exists": True}}, {"e.$": 1}),
           ({"t": {"$not": {"$lt": 3}}}, {"t.$": 1}), ({"$nor": [{"t": 3}]}, {"t.$": 1}), ({"e.p": 2, "e.q": "x"}, {"e.$": 1}), ({"t": 3}, {"t.$": 1, "e": {"$slice": 1}}), ({"t": 3}, {"t.$": 1, "e": {"$elemMatch": {"p": 1}}}), ({"t.0": 3}, {"t.$": 1}), ({"t": [1, 2]}, {"t.$": 1}), ({"t": 3}, {"t.$": 5}), ({"t": 3}, {"t.$": "x"}), ({"t": {"$type": "int"}}, {"t.$": 1})]
    for q, p in pos:
        yield find("arrays", q, projection=p)
    for m in ["recordId", "indexKey", "sortKey", "textScore", "nope", 5]:
        yield find("arrays", {"_id": {"$lt": 3}}, projection={"x": {"$meta": m}})
    yield find("arrays", {"_id": {"$lt": 5}}, projection={"x": {"$meta": "sortKey"}}, sort={"g": 1, "_id": -1})


def collation(rnd):
    cols = [{"locale": "en"}, {"locale": "en", "strength": 1}, {"locale": "en", "strength": 2}, {"locale": "en", "strength": 1, "caseLevel": True}, {"locale": "en", "caseFirst": "upper"}, {"locale": "en", "caseFirst": "lower"}, {"locale": "en", "numericOrdering": True}, {"locale": "fr", "backwards": True},
            {"locale": "fr_CA"}, {"locale": "en", "alternate": "shifted"}, {"locale": "en", "alternate": "shifted", "maxVariable": "space"}, {"locale": "de"}, {"locale": "de@collation=phonebook"}, {"locale": "sv"}, {"locale": "tr", "strength": 2}, {"locale": "simple"}, {"locale": "en", "normalization": True}, {"locale": "en", "strength": 3, "numericOrdering": True, "caseFirst": "upper"}]
    for c in cols:
        yield find("strs", {}, sort={"s": 1, "_id": 1}, projection={"_id": 1}, collation=c)
        yield find("strs", {}, sort={"s": -1, "_id": 1}, projection={"_id": 1}, collation=c)
        for q in ["apple", "resume", "cote", "ITEM10", "ss", "é", "ab", "istanbul"]:
            yield find("strs", {"s": rnd.choice([q, {"$gte": q}, {"$in": [q, "banana"]}, {"$ne": q}, {"$lt": q}])}, projection={"_id": 1}, collation=c)
        yield {"setup": "strs", "cmd": {"distinct": "strs", "key": "s", "collation": c}}
        yield {"setup": "strs", "cmd": {"aggregate": "strs", "pipeline": [{"$match": {"s": {"$type": "string"}}}, {"$sort": {"_id": 1}}, {"$group": {"_id": "$s", "n": {"$sum": 1}}}], "cursor": {}, "collation": c}, "unordered": True}
    for c in [{"locale": "en", "strength": 0}, {"locale": "en", "strength": 6}, {"locale": "en", "strength": "x"}, {"locale": "xx"}, {"locale": 5}, {"strength": 1}, {"locale": "en", "foo": 1}, {"locale": "en", "caseFirst": "x"}, {"locale": "en", "alternate": "x"}, {"locale": "en", "backwards": 1}, {"locale": "simple", "strength": 1}, {"locale": "en", "maxVariable": "x"}, {"locale": ""}, {"locale": "en_US"}, {"locale": "EN"}, {"locale": "en", "caseLevel": "x"}]:
        yield find("strs", {"s": "apple"}, projection={"_id": 1}, collation=c)


TOPICS = {"find.sort": sort, "find.projection": projection, "find.proj_array": proj_array, "find.collation": collation}
