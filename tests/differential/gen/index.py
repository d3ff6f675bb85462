"""Queries answered with and without an index must agree; unique, sparse, partial, multikey rules; index errors."""
from . import match
from .data import ALL, BIN, D, DATE, FEW, INDEXES, L, MAXKEY, MINKEY, NAN, OID, RE, SYM, UNDEF


def leaf(rnd, base, path):
    if base == "nums":
        pool = {"a": [1, 3, D("3"), 7, NAN, None], "b": [3, 4.5, None, L(8)], "c": ["cat", "bee", "zzz", "Eel"], "d": [DATE(1590000000000), DATE(1600000000000)], "f": [0.5, -3.0], "z.k": [1, 3, None], "z.l": ["p", "q"]}.get(path, [1])
    elif base == "arrays":
        pool = [1, 2, 3, 5, "red", "x", None, [], [1, 2], {"p": 1}, {"c": 1}]
    elif base == "strs":
        pool = ["apple", "b", "cote", "", None, RE("^ap"), RE("^foo", "i"), RE("an")]
    else:
        pool = FEW if rnd.random() < .5 else ALL
    v = rnd.choice(pool)
    return rnd.choice([lambda: v, lambda: {rnd.choice(["$gt", "$gte", "$lt", "$lte"]): v}, lambda: {"$in": [rnd.choice(pool) for _ in range(3)]}, lambda: {"$ne": v}, lambda: {"$exists": rnd.random() < .6},
                       lambda: {"$gte": v, "$lt": rnd.choice(pool)}, lambda: {"$nin": [rnd.choice(pool)]}, lambda: {"$not": {"$gt": v}}, lambda: {"$type": rnd.choice(["number", "string", "array", "null", "object"])},
                       lambda: {"$elemMatch": {"$gte": v}}, lambda: {"$all": [v]}, lambda: {"$eq": v}, lambda: {"$mod": [3, 1]}, lambda: {"$size": 2}])()


def fix(f):
    """Regular expressions may not be operands of range operators; leave those out."""
    return "$regularExpression" not in str([v for v in f.values() if isinstance(v, dict) and "$regularExpression" not in v and "$in" not in v and "$nin" not in v and "$all" not in v])


def hinted(rnd):
    for name, (base, key, opt) in INDEXES.items():
        keys = [k for k in key if not k.startswith("$") and not k.endswith("$**")] or ({"nums": ["a", "z.k", "c"], "mixed": ["a", "n.x", "s"], "arrays": ["m.a.b", "m.a.b.c"]}[base])
        sortable = "hashed" not in key.values() and not any("$**" in k for k in key)
        n = 0
        for _ in range(400):
            if n >= 34:
                break
            f = {}
            for k in rnd.sample(keys, rnd.randrange(1, len(keys) + 1)):
                f[k] = leaf(rnd, base, k)
            if not fix(f):
                continue
            if rnd.random() < .2:
                f = {"$or": [f, {rnd.choice(keys): leaf(rnd, base, keys[0])}]}
                if not fix({"x": f["$or"][1]}) or "$regularExpression" in str(f["$or"][1]):
                    continue
            if "partialFilterExpression" in opt:
                f.update({"s": {"$gt": rnd.choice([3, 5])}} if base == "mixed" else {"a": {"$gte": rnd.choice([5, 8])}})
            if opt.get("sparse") and "$or" not in f and rnd.random() < .5:
                f[keys[0]] = rnd.choice([{"$gt": 0}, {"$exists": True}, 1])
            if "wild" in name:
                f = {k: f[k] for k in list(f)[:1]}
            n += 1
            kw = {}
            q = {"setup": name, "cmd": {"find": name, "filter": f}, "unordered": True}
            if rnd.random() < .25:
                yield q
                continue
            if sortable and rnd.random() < .4:
                d = rnd.choice([1, -1])
                kw["sort"] = {k: v * d for k, v in key.items()}
                kw["projection"] = {k: 1 for k in key} | {"_id": 0} if rnd.random() < .3 else {"_id": 1}
                if rnd.random() < .4 and "_id" in kw["projection"] and kw["projection"]["_id"] == 1:
                    kw["sort"].setdefault("_id", 1)
                    yield {"setup": name, "cmd": {"find": name, "filter": f, "hint": "ix", **kw}}
                    continue
            elif rnd.random() < .3:
                kw["projection"] = {k: 1 for k in keys} | {"_id": 0}
            yield {"setup": name, "cmd": {"find": name, "filter": f, "hint": "ix", **kw}, "unordered": True}
        if sortable:
            for d in (1, -1):
                s = {k: v * d for k, v in key.items()}
                yield {"setup": name, "cmd": {"find": name, "filter": {}, "sort": s | {"_id": 1}, "projection": {"_id": 1}}}
                yield {"setup": name, "cmd": {"find": name, "filter": {}, "hint": "ix", "sort": s, "projection": {**{k: 1 for k in keys}, "_id": 0}}, "unordered": True}
            yield {"setup": name, "cmd": {"count": name, "query": {keys[0]: {"$gt": 2}}, "hint": "ix"}}
            yield {"setup": name, "cmd": {"find": name, "filter": {}, "hint": "ix", "min": {k: 2 for k in key}, "max": {k: 4 for k in key}, "projection": {"_id": 1}}, "unordered": True}
            yield {"setup": name, "cmd": {"find": name, "filter": {}, "hint": "ix", "returnKey": True, "limit": 200}, "unordered": True}
        yield {"setup": name, "cmd": {"find": name, "filter": {}, "hint": "ix", "projection": {"_id": 1}}, "unordered": True}
        yield {"setup": name, "cmd": {"find": name, "filter": {}, "hint": key, "projection": {"_id": 1}}, "unordered": True}
        yield {"setup": name, "cmd": {"listIndexes": name}}


def big_hint(rnd):
    """The whole comparison matrix once more through an index on a field of every type."""
    for op in ["$eq", "$gt", "$gte", "$lt", "$lte", "$ne"]:
        for v in ALL:
            if "$regularExpression" in str(v) and op not in ("$eq", "$ne"):
                continue
            if op == "$ne" and "$regularExpression" in str(v):
                continue
            if rnd.random() < .45:
                yield {"setup": rnd.choice(["mixed_a", "mixed_ad"]), "cmd": {"find": "", "filter": {"a": {op: v}}, "hint": "ix"}, "unordered": True}
    for v in FEW:
        yield {"setup": "mixed_rv", "cmd": {"find": "", "filter": {"r.v": v}, "hint": "ix"}, "unordered": True}
        yield {"setup": "mixed_nx", "cmd": {"find": "", "filter": {"n.x": {"$in": [v, rnd.choice(FEW)]}}, "hint": "ix"}, "unordered": True}
        yield {"setup": "mixed_wild", "cmd": {"find": "", "filter": {"a": v}, "hint": "ix"}, "unordered": True}


def named(fn):
    def g(rnd):
        for c in fn(rnd):
            c["cmd"]["find"] = c["setup"]
            yield c
    return g


def ix(_key, _name="i", **opt):
    return {"createIndexes": "w", "indexes": [{"key": _key, "name": _name, **opt}]}


def unique(rnd):
    ins = lambda *ds: {"insert": "w", "documents": list(ds), "ordered": False}  # noqa: E731
    pairs = [(1, 1), (1, 1.0), (1, L(1)), (1, D("1.0")), (0.1, D("0.1")), (NAN, D("NaN")), (0.0, -0.0), (None, UNDEF), ("a", "A"), ("a", SYM("a")), ([1, 2], [2, 3]), ([1, 2], [3]), ([1, 1], [2]), ({"x": 1, "y": 2}, {"y": 2, "x": 1}), ({"x": 1}, {"x": 1.0}), ([], []), ([], None), ([[1]], [1]), ([[1]], [[1]]), (True, 1), (BIN(b"a"), BIN(b"a", 2)),
             (OID(1), OID(1)), (DATE(5), L(5)), (RE("a"), RE("a", "i")), (MINKEY, MINKEY), ("é", "e\u0301"), (L(2**53 + 1), float(2**53)), ("", None), ({}, []), (D("1E+3"), 1000)]
    for a, b in pairs:
        yield {"docs": [], "pre": [ix({"f": 1}, unique=True)], "cmd": ins({"_id": 1, "f": a}, {"_id": 2, "f": b})}
        if rnd.random() < .5:
            yield {"docs": [{"_id": 1, "f": a}, {"_id": 2, "f": b}], "cmd": ix({"f": rnd.choice([1, -1])}, unique=True)}
    for key, docs in [({"f": 1, "g": 1}, [{"_id": 1, "f": 1, "g": 1}, {"_id": 2, "f": 1, "g": 2}, {"_id": 3, "f": 1, "g": 1}, {"_id": 4, "f": 1}, {"_id": 5, "f": 1}]), ({"f.x": 1}, [{"_id": 1, "f": {"x": 1}}, {"_id": 2, "f": [{"x": 1}, {"x": 2}]}, {"_id": 3, "f": [{"x": 3}, {"x": 3}]}, {"_id": 4}, {"_id": 5, "f": 5}]), ({"f": -1}, [{"_id": 1, "f": "dup"}, {"_id": 2, "f": "dup"}]), ({"f": 1, "g": -1}, [{"_id": 1, "f": [1, 2], "g": 3}, {"_id": 2, "f": 2, "g": 3}, {"_id": 3, "f": [1], "g": [1]}])]:
        for opt in [{}, {"sparse": True}, {"partialFilterExpression": {"f": {"$gt": 0}}}]:
            yield {"docs": [], "pre": [ix(key, unique=True, **opt)], "cmd": ins(*docs)}
    for u, q in [({"$set": {"f": 2}}, {"_id": 1}), ({"$inc": {"f": 1}}, {"_id": 1}), ({"f": 2}, {"_id": 1}), ({"$unset": {"f": 1}}, {"_id": 1}), ({"$set": {"f": 1.0}}, {"_id": 1}), ({"$set": {"f": [2, 9]}}, {"_id": 1}), ({"$inc": {"f": 1}}, {}), ({"$set": {"f": 3}}, {"_id": 9})]:
        for sp in (False, True):
            yield {"docs": [{"_id": 1, "f": 1}, {"_id": 2, "f": 2}, {"_id": 3}], "pre": [ix({"f": 1}, unique=True, sparse=sp)], "cmd": {"update": "w", "updates": [{"q": q, "u": u, "multi": next(iter(u)).startswith("$"), "upsert": q == {"_id": 9}}]}}
    yield {"docs": [], "pre": [ix({"f": 1}, unique=True, collation={"locale": "en", "strength": 2})], "cmd": ins({"_id": 1, "f": "a"}, {"_id": 2, "f": "A"}, {"_id": 3, "f": "á"})}
    yield {"docs": [], "pre": [ix({"f": 1}), ix({"g": 1}, "i2")], "cmd": ins({"_id": 1, "f": [1, 2], "g": [1]}, {"_id": 2, "f": 1})}
    yield {"docs": [], "pre": [ix({"f": 1, "g": 1})], "cmd": ins({"_id": 1, "f": [1, 2], "g": [1]}, {"_id": 2, "f": [1], "g": 2}, {"_id": 3, "f": 1, "g": [2]})}
    yield {"docs": [], "pre": [ix({"f.x": 1, "f.y": 1})], "cmd": ins({"_id": 1, "f": [{"x": 1, "y": 2}]}, {"_id": 2, "f": [{"x": [1], "y": [2]}]}, {"_id": 3, "f": {"x": [1, 2], "y": 1}})}
    yield {"docs": [], "pre": [ix({"f": "hashed"})], "cmd": ins({"_id": 1, "f": 5}, {"_id": 2, "f": [5]}, {"_id": 3, "f": {"x": [1]}}, {"_id": 4})}
    yield {"docs": [{"_id": 1, "f": [1]}], "cmd": ix({"f": "hashed"})}
    yield {"docs": [{"_id": 1, "f": [1], "g": [2]}], "cmd": ix({"f": 1, "g": 1})}


def create(rnd):
    D2 = [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]
    li = [{"listIndexes": "w"}]
    keys = [{"a": 1}, {"a": -1}, {"a": 1.0}, {"a": L(1)}, {"a": D("1")}, {"a": 0}, {"a": 2}, {"a": -5}, {"a": 0.5}, {"a": "1"}, {"a": "x"}, {"a": None}, {"a": True}, {"a": {}}, {"a": []}, {}, {"": 1}, {"a.": 1}, {".a": 1}, {"a..b": 1}, {"$a": 1}, {"a.$b": 1}, {"a.$id": 1}, {"a": 1, "b": -1}, {"_id": 1}, {"_id": -1}, {"_id": 1, "a": 1}, {"_id": "hashed"}, {"a": "hashed"}, {"a": "hashed", "b": 1}, {"b": 1, "a": "hashed"},
            {"a": "hashed", "b": "hashed"}, {"$**": 1}, {"$**": -1}, {"a.$**": 1}, {"$**": "hashed"}, {"$**": 1, "a": 1}, {"a": 1, "$**": 1}, {"a.$**.b": 1}, {"$**.a": 1}, {"a": NAN}, {"a": 1e300}, {("k%d" % i): 1 for i in range(32)}, {("k%d" % i): 1 for i in range(33)}, 5, None, "a", [1]]
    for k in keys:
        yield {"docs": D2, "cmd": ix(k), "then": li}
    opts = [{"unique": True}, {"unique": 1}, {"unique": "x"}, {"unique": False}, {"sparse": True}, {"sparse": "x"}, {"hidden": True}, {"hidden": "x"}, {"expireAfterSeconds": 5}, {"expireAfterSeconds": 0}, {"expireAfterSeconds": -1}, {"expireAfterSeconds": "x"}, {"expireAfterSeconds": 2**31 - 1}, {"expireAfterSeconds": L(2**31)}, {"expireAfterSeconds": 1.5}, {"expireAfterSeconds": NAN}, {"background": True}, {"background": "x"},
            {"partialFilterExpression": {"a": 1}}, {"partialFilterExpression": {"a": {"$gt": 1}}}, {"partialFilterExpression": {"a": {"$ne": 1}}}, {"partialFilterExpression": {"a": {"$exists": True}}}, {"partialFilterExpression": {"a": {"$exists": False}}}, {"partialFilterExpression": {"$or": [{"a": 1}, {"b": 1}]}}, {"partialFilterExpression": {"$and": [{"a": 1}, {"b": 1}]}}, {"partialFilterExpression": {"a": {"$in": [1, 2]}}}, {"partialFilterExpression": {"a": {"$type": "int"}}},
            {"partialFilterExpression": {"a": RE("x")}}, {"partialFilterExpression": {"$nor": [{"a": 1}]}}, {"partialFilterExpression": 5}, {"partialFilterExpression": {}}, {"partialFilterExpression": {"a": {"$foo": 1}}}, {"partialFilterExpression": {"a": 1}, "sparse": True}, {"partialFilterExpression": {"$and": [{"$and": [{"a": 1}]}]}}, {"partialFilterExpression": {"a": {"$elemMatch": {"x": 1}}}}, {"collation": {"locale": "en"}}, {"collation": {"locale": "xx"}}, {"collation": {}}, {"collation": {"locale": "simple"}},
            {"v": 2}, {"v": 1}, {"v": 0}, {"v": 3}, {"v": "x"}, {"name": ""}, {"name": 5}, {"name": "*"}, {"name": "_id_"}, {"name": "a\u0000b"}, {"name": "x" * 200}, {"ns": "df.w"}, {"ns": "x.y"}, {"foo": 1}, {"wildcardProjection": {"a": 1}}, {"weights": {"a": 1}}, {"bits": 5}, {"storageEngine": {}}, {"dropDups": True}, {"clustered": True}, {"prepareUnique": True}, {"key": {"a": 1}, "unique": True, "sparse": True, "hidden": True}, {"2dsphereIndexVersion": 3}, {"default_language": "en"}]
    for o in opts:
        yield {"docs": D2, "cmd": ix({"a": 1}, **o), "then": li}
    for k, o in [({"$**": 1}, {"unique": True}), ({"$**": 1}, {"expireAfterSeconds": 5}), ({"$**": 1}, {"sparse": True}), ({"$**": 1}, {"wildcardProjection": {"a": 1}}), ({"$**": 1}, {"wildcardProjection": {"a": 0}}), ({"$**": 1}, {"wildcardProjection": {"a": 1, "b": 0}}), ({"$**": 1}, {"wildcardProjection": {}}), ({"$**": 1}, {"wildcardProjection": 5}), ({"$**": 1}, {"wildcardProjection": {"_id": 1, "a": 0}}), ({"a.$**": 1}, {"wildcardProjection": {"a": 1}}),
                 ({"$**": 1}, {"partialFilterExpression": {"a": 1}}), ({"a": "hashed"}, {"unique": True}), ({"a": "hashed"}, {"sparse": True}), ({"a": 1, "b": 1}, {"expireAfterSeconds": 5}), ({"_id": 1}, {"unique": True}), ({"_id": 1}, {"sparse": True}), ({"_id": 1}, {"hidden": True}), ({"_id": 1}, {"expireAfterSeconds": 1}), ({"_id": 1}, {"partialFilterExpression": {"a": 1}}), ({"_id": 1}, {"collation": {"locale": "en"}}), ({"_id": 1}, {"name": "other"})]:
        yield {"docs": D2, "cmd": ix(k, **o), "then": li}
    # a second index beside an existing one
    second = [({"a": 1}, "i", {}), ({"a": 1}, "j", {}), ({"b": 1}, "i", {}), ({"a": 1}, "i", {"unique": True}), ({"a": 1}, "j", {"unique": True}), ({"a": 1}, "j", {"sparse": True}), ({"a": 1}, "j", {"partialFilterExpression": {"a": {"$gt": 1}}}), ({"a": 1}, "j", {"collation": {"locale": "en"}}), ({"a": 1}, "i", {"collation": {"locale": "en"}}), ({"a": -1}, "i", {}), ({"a": -1}, "j", {}), ({"a": 1.0}, "i", {}), ({"a": L(1)}, "j", {}), ({"a": 1}, "i", {"expireAfterSeconds": 5}), ({"a": 1}, "i", {"hidden": True}), ({"a": 1}, "i", {"background": True}), ({"a": 5}, "i", {}), ({"a": 1}, "i", {"sparse": False})]
    for k, n, o in second:
        yield {"docs": D2, "pre": [ix({"a": 1})], "cmd": ix(k, n, **o), "then": li}
    for c in [{"indexes": []}, {}, {"indexes": 5}, {"indexes": [5]}, {"indexes": [{}]}, {"indexes": [{"key": {"a": 1}}]}, {"indexes": [{"name": "a"}]}, {"indexes": [{"key": {"a": 1}, "name": "x"}, {"key": {"b": 1}, "name": "y"}]}, {"indexes": [{"key": {"a": 1}, "name": "x"}, {"key": {"b": 1}, "name": "x"}]}, {"indexes": [{"key": {"a": 1}, "name": "x"}, {"key": {"a": 1}, "name": "x"}]}, {"indexes": [{"key": {"a": 1}, "name": "x"}, {"key": {"a": "bad"}, "name": "y"}]},
              {"indexes": [{"key": {"a": 1}, "name": "x"}], "foo": 1}, {"indexes": [{"key": {"a": 1}, "name": "x"}], "commitQuorum": "majority"}, {"indexes": [{"key": {"a": 1}, "name": "x"}], "commitQuorum": 1}, {"indexes": [{"key": {"a": 1}, "name": "x"}], "commitQuorum": 9}, {"indexes": [{"key": {"a": 1}, "name": "x"}], "writeConcern": {"w": 1}}, {"indexes": [{"key": {"a": 1}, "name": "x"}], "maxTimeMS": 10000}, {"indexes": [{"key": {"a": 1}, "name": "x"}], "ignoreUnknownIndexOptions": True}, {"indexes": [{"key": {"a": 1}, "name": "x", "foo": 1}], "ignoreUnknownIndexOptions": True}]:
        yield {"docs": D2, "cmd": {"createIndexes": "w", **c}, "then": li}
    yield {"docs": [], "cmd": ix({"a": 1}), "then": li}
    pre = [ix({"a": 1}), ix({"b": -1}, "j"), ix({"c": "hashed"}, "k")]
    for i in ["i", "j", "_id_", "*", "nope", {"a": 1}, {"b": -1}, {"b": 1}, {"_id": 1}, {"c": "hashed"}, {"a": 1.0}, ["i", "j"], ["i", "nope"], ["_id_"], [], [5], 5, None, {}, ["i", "i"], ["*"], {"a": 1, "b": 1}]:
        yield {"docs": D2, "pre": pre, "cmd": {"dropIndexes": "w", "index": i}, "then": li}
    for c in [{"dropIndexes": "w"}, {"dropIndexes": "w", "index": "i", "foo": 1}, {"dropIndexes": "nosuch", "index": "i"}, {"deleteIndexes": "w", "index": "i"}, {"listIndexes": "w"}, {"listIndexes": "nosuch"}, {"listIndexes": 5}, {"listIndexes": "w", "cursor": {"batchSize": 1}}, {"listIndexes": "w", "cursor": {"batchSize": -1}}, {"listIndexes": "w", "foo": 1}, {"reIndex": "w"}]:
        yield {"docs": D2, "pre": pre, "cmd": c, "then": li}


def hashed(rnd):
    """Numbers at the ends of their types through a hashed index: keys and lookups must hash alike."""
    values = [D("1.7"), D("-2.51"), D("2.5"), D("3.5"), D("-2.5"), D("0.5"), D("-0.5"), D("1E+3"), D("9223372036854775807.5"), D("9223372036854775808"), D("-9223372036854775808.5"), D("9.999999999999999999999999999999999E+6144"), D("-9.999999999999999999999999999999999E+6144"), D("1E-6176"), D("-0"), D("NaN"), D("Infinity"), D("-Infinity"),
              float(2**63), -float(2**63), 9223372036854774784.0, 9223372036854777856.0, 1e300, -1e300, 5e-324, -0.0, 0.0, 0.5, 1.7, -2.51, NAN, L(2**63 - 1), L(-2**63), L(2**53 + 1), {"x": D("1.7")}, {"x": float(2**63), "y": {"z": D("-2.51")}}, {"x": [D("2.5"), {"y": D("-0")}]}, BIN(b"a", 5), MINKEY, MAXKEY, None, UNDEF, SYM("a"), "a", DATE(-1), OID(1), True, {}]
    docs = [{"_id": i, "f": v, "g": i % 3} for i, v in enumerate(values)]
    for key in ({"f": "hashed"}, {"g": 1, "f": "hashed"}):
        for v in values:
            f = {"f": v} if len(key) == 1 else {"g": {"$in": [0, 1, 2]}, "f": v}
            yield {"docs": docs, "pre": [ix(key)], "cmd": {"find": "w", "filter": f, "hint": "i", "projection": {"_id": 1}}, "unordered": True, "after": False}
    # built over documents that are there, and emptied again through it
    for v in values[:8] + values[18:20]:
        yield {"docs": docs, "pre": [ix({"f": "hashed"}), {"delete": "w", "deletes": [{"q": {"f": v}, "limit": 0, "hint": "i"}]}], "cmd": {"find": "w", "projection": {"_id": 1}, "sort": {"_id": 1}}, "after": False}


def repeated(text, times):
    """An expression: `text`, doubled so many times."""
    return {"$reduce": {"input": {"$range": [0, times]}, "initialValue": text, "in": {"$concat": ["$$value", "$$value"]}}}


def long_keys(rnd):
    """Keys and _ids of 40 KB, 72 KB and 1 MB that share their beginnings, among short ones."""
    long = [repeated("0123456789", 12), repeated("abcdefghi", 13), repeated("0123456789abcdef", 16)]
    ends = ["", "a", "b", "ba", "\u0000", "\u0000b", "\u0001", "é", "a"]
    docs, n = [], 0
    for size in range(3):
        for end in ends:
            n += 1
            docs.append({"_id": n, "size": size, "end": end, "g": n % 4})
    short = [{"_id": 100 + i, "size": 3, "end": e, "g": i % 4} for i, e in enumerate(["", "0", "0123456789", "0123456789abcdef", "a", "abcdefghi", "abcdefghia", "z", None, 5])]
    docs += short
    value = {"$switch": {"branches": [{"case": {"$eq": ["$size", s]}, "then": {"$concat": [long[s], "$end"]}} for s in range(3)], "default": "$end"}}
    grow = {"update": "w", "updates": [{"q": {}, "u": [{"$set": {"f": value}}], "multi": True}]}
    show = {"_id": 1}
    finds = [{"sort": {"f": 1, "_id": 1}}, {"sort": {"f": -1, "_id": -1}}, {"filter": {"f": {"$gt": "0123456789"}}, "sort": {"f": 1, "_id": 1}}, {"filter": {"f": {"$gte": "abcdefghi", "$lt": "abcdefghib"}}, "sort": {"f": -1, "_id": 1}}, {"filter": {"f": {"$lte": "0123456789abcdef0"}}, "sort": {"f": 1, "_id": 1}},
             {"filter": {"f": {"$gt": "0" * 2 + "z"}}}, {"filter": {"f": {"$regex": "^0123456789abc"}}}, {"filter": {"f": {"$type": "string"}}, "sort": {"f": 1, "_id": 1}, "skip": 7, "limit": 9}, {"filter": {"f": "0123456789" * 4096 + "ba"}}, {"filter": {"f": {"$gte": "0123456789" * 4096 + "b"}}, "sort": {"f": 1, "_id": 1}}, {"filter": {"f": {"$in": ["abcdefghi" * 8192 + "a", "z"]}}}, {"filter": {"f": {"$lt": "abcdefghi" * 8192 + "b"}}, "sort": {"f": -1, "_id": -1}}]
    for i, pre in enumerate(([ix({"f": 1}), grow], [grow, ix({"f": -1, "_id": 1})], [grow, ix({"g": 1, "f": 1})], [ix({"f": "hashed"}), grow], [ix({"$**": 1}), grow], [grow, ix({"f": 1}, sparse=True)], [grow, ix({"f": 1}, partialFilterExpression={"g": {"$gte": 0}})], [ix({"f": 1}, collation={"locale": "en", "strength": 2}), grow])):
        for f in finds:
            # Cases with long texts of their own take room: some indexes are asked them.
            if i not in (0, 2, 3) and len(str(f)) > 10000:
                continue
            opt = pre[0] if "createIndexes" in pre[0] else pre[1]
            more = {"collation": {"locale": "en", "strength": 2}} if "collation" in opt["indexes"][0] else {}
            yield {"docs": docs, "pre": pre, "cmd": {"find": "w", "projection": show, **f, **more}, "after": False} | ({} if "sort" in f else {"unordered": True})
    # unique ones: the last end of each size comes twice
    counted = [{"$count": "n"}]
    yield {"docs": docs, "pre": [grow], "cmd": {"aggregate": "w", "pipeline": [{"$group": {"_id": "$f", "n": {"$sum": 1}, "ids": {"$push": "$_id"}}}, {"$match": {"n": 2}}, {"$project": {"_id": {"$strLenBytes": "$_id"}, "ids": {"$size": "$ids"}}}, {"$sort": {"_id": 1}}], "cursor": {}}, "after": False}
    for first in range(3):
        one = {"update": "w", "updates": [{"q": {"size": first, "end": {"$in": ["a", "b"]}}, "u": [{"$set": {"f": {"$concat": [long[first], {"$cond": [{"$lte": ["$_id", 20]}, "$end", "x"]}]}}}], "multi": True}]}
        yield {"docs": [d for d in docs if d["size"] == first], "pre": [ix({"f": 1}, unique=True, sparse=True), one], "cmd": {"aggregate": "w", "pipeline": [{"$match": {"f": {"$type": "string"}}}, *counted], "cursor": {}}, "after": False}
    # long _ids: made by an aggregation, then looked for, changed and deleted
    named = [{"$match": {"size": {"$lt": 3}, "_id": {"$nin": [9, 18, 27]}}}, {"$project": {"_id": value, "n": "$_id", "size": 1}}, {"$out": "w"}]
    out = {"aggregate": "w", "pipeline": named, "cursor": {}}
    for cmd in ({"find": "w", "projection": {"_id": 0, "n": 1}, "sort": {"_id": 1}}, {"find": "w", "projection": {"_id": 0, "n": 1}, "sort": {"_id": -1}}, {"find": "w", "filter": {"_id": {"$gt": "0123456789", "$lt": "abc"}}, "projection": {"_id": 0, "n": 1}, "sort": {"_id": 1}}, {"find": "w", "filter": {"_id": "abcdefghi" * 8192 + "ba"}, "projection": {"_id": 0, "n": 1}}):
        yield {"docs": docs, "pre": [out], "cmd": cmd, "after": False}
    look = [{"find": "w", "projection": {"_id": 0, "n": 1, "y": 1}, "sort": {"_id": 1}}]
    yield {"docs": docs, "pre": [out], "cmd": {"delete": "w", "deletes": [{"q": {"_id": "0123456789" * 4096 + "ba"}, "limit": 1}, {"q": {"_id": {"$gt": "b"}}, "limit": 1}, {"q": {"n": 20}, "limit": 1}]}, "then": look, "after": False}
    yield {"docs": docs, "pre": [out], "cmd": {"update": "w", "updates": [{"q": {"_id": "abcdefghi" * 8192 + "b"}, "u": {"$set": {"y": 1}}}, {"q": {"n": {"$gte": 19}}, "u": {"$set": {"y": 2}}, "multi": True}]}, "then": look, "after": False}


TOPICS = {"index.hint": hinted, "index.types": named(big_hint), "index.unique": unique, "index.create": create, "index.hashed": hashed, "index.long": long_keys}
