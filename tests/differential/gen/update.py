"""Every update operator over every kind of field, positional paths, array filters, upserts, pipelines, replacements."""
from .data import BIN, D, DATE, FEW, INF, L, MAXKEY, MINKEY, NAN, NINF, OID, RE, SYM, TS, UNDEF

KINDS = {"missing": None, "int": 5, "long": L(7), "double": 2.5, "dec": D("1.5"), "str": "abc", "null": None, "arr": [1, 2, 3], "obj": {"x": 1, "y": {"z": 2}}, "bool": True,
         "date": DATE(1600000000123), "nan": NAN, "max": 2147483647, "lmax": L(2**63 - 1), "docs": [{"p": 1, "q": "a"}, {"p": 2, "q": "b"}], "empty": []}


def up(docs, u, q=None, multi=None, upsert=None, af=None, oplog=True, **kw):
    st = {"q": {} if q is None else q, "u": u}
    if multi is not None:
        st["multi"] = multi
    if upsert is not None:
        st["upsert"] = upsert
    if af is not None:
        st["arrayFilters"] = af
    top = {k: kw.pop(k) for k in ("let", "bypassDocumentValidation", "ordered") if k in kw}
    st.update(kw)
    c = {"docs": docs, "cmd": {"update": "w", "updates": [st], **top}}
    if oplog:
        c["oplog"] = True
    return c


def one(v, kind="x"):
    return [{"_id": 1, "before": 1, **({} if kind == "missing" else {"f": v}), "after": 2}]


def numeric(rnd):
    for op in ("$inc", "$mul"):
        for k, v in KINDS.items():
            for a in [1, -3, 0, L(2), 2.5, D("0.5"), NAN, INF, 2147483647, L(2**63 - 1), "x", None, [1], {}, True]:
                if isinstance(a, (int, float)) or rnd.random() < .45:
                    yield up(one(v, k), {op: {"f": a}})
        for d in [{}, {"f": 1, "g": 2}, {"f.x": 1}, {"f.0": 1}, {"f.x.y": 1}, {"_id": 1}, {"": 1}, {"f.": 1}, {"$f": 1}, {"f": 1, "f.x": 1}]:
            yield up(one({"x": 1}), {op: d})
            yield up(one([4, 5]), {op: d})
        yield up(one(1), {op: 5})
        yield up(one(1), {op: None})
    for op in ("$min", "$max"):
        for k, v in KINDS.items():
            for a in rnd.sample(FEW, 7):
                yield up(one(v, k), {op: {"f": a}})
        yield up(one(1), {op: {"f": 1.0}})
        yield up(one({"x": 3}), {op: {"f.x": 2, "f.z": 1}})
    for v in [5, L(5), 0, -1, 2.5, "x", None, D("5"), [1], L(2**40)]:
        for b in [{"and": 3}, {"or": 8}, {"xor": 5}, {"and": L(1)}, {"or": L(2**40)}, {"and": 6, "or": 1}]:
            yield up(one(v), {"$bit": {"f": b}})
    for b in [{"nand": 1}, {"and": 1.5}, {"and": "x"}, {}, 5, {"and": D("1")}, {"and": None}]:
        yield up(one(5), {"$bit": {"f": b}})
        yield up(one(5, "missing"), {"$bit": {"f": b}})
    yield up(one(5, "missing"), {"$bit": {"f": {"or": 4}}})
    yield up(one(5, "missing"), {"$bit": {"f": {"and": L(4)}}})


def sets(rnd):
    paths = ["f", "f.x", "f.0", "f.3", "f.x.y", "f.y.z", "f.0.p", "f.5.p", "new", "new.a.b", "new.0", "f.00", "f.-1", "f.x.0"]
    vals = [1, L(1), "s", None, [1], {"k": 1}, {"a.b": 1}, {"$k": 1}, {"a": {"$k": 1}}, NAN, DATE(5), UNDEF]
    for k, v in KINDS.items():
        for p in paths:
            if rnd.random() < .55:
                yield up(one(v, k), {"$set": {p: rnd.choice(vals)}})
            if rnd.random() < .35:
                yield up(one(v, k), {"$unset": {p: rnd.choice(["", 1, None])}})
    for s in [{}, {"b": 1, "a": 2, "c": 3}, {"n.b": 1, "n.a": 2}, {"10": 1, "9": 2, "a": 3}, {"n.10": 1, "n.9": 2}, {"f": 1, "f.x": 2}, {"f.x": 2, "f": 1}, {"f.x": 1, "f.y": 2}, {"f.x.a": 1, "f.x.b": 2}, {"_id": 1}, {"_id": 2}, {"_id.x": 1}, {"_id": 1.0}, {"": 1}, {"a.": 1}, {".a": 1}, {"a..b": 1},
              {"$x": 1}, {"a.$x": 1}, {"a.$": 1}, {"a.$[]": 1}, {"a.$[i]": 1}, {"f.$.x": 1}, {"before": 1}, {"before": 1.0}, {"before": L(1)}, {"f": 1}, {"f": 1.0}, {"f": D("1")}, {"f": {"y": 1, "x": 2}}, {"f": {"x": 2, "y": 1}}, {"after": "x" * 300}, {"f.1500010": 1}, {"f.1500000000": 1}, {"f.20": 1}]:
        for base in (1, {"x": 2, "y": 1}, [1, 2]):
            yield up(one(base), {"$set": s})
    for u in [{"$set": 5}, {"$set": None}, {"$set": [1]}, {"$foo": {"a": 1}}, {"$set": {"a": 1}, "b": 2}, {"b": 2, "$set": {"a": 1}}, {"$set": {"a": 1}, "$inc": {"a": 1}}, {"$set": {"a.b": 1}, "$inc": {"a": 1}}, {"$set": {"a": 1}, "$unset": {"a.b": 1}}, {"$set": {"a.b": 1}, "$unset": {"a.c": 1}}, {"$set": {"f": 1}, "$inc": {"g": 2}, "$push": {"h": 3}, "$unset": {"before": 1}},
              {"$unset": {"before": 1, "nope": 1}}, {"$unset": {"_id": 1}}, {"$unset": {"nope": 1}}, {"$unset": 5}, {"$setOnInsert": {"z": 1}}, {"$setOnInsert": {}}, {}, {"$set": {"a": 1, "z": 1}, "$setOnInsert": {"b": 1}}, {"$unset": {"f.x": 1, "f.y": 1}}, {"$unset": {"f.0": 1}}, {"$unset": {"f.x.y.z": 1}}]:
        for base in (1, {"x": 2, "y": 1}, [1, 2]):
            yield up(one(base), u)
    ren = [{"f": "g"}, {"f": "f"}, {"f": "before"}, {"f": "f.x"}, {"f.x": "f"}, {"f.x": "g"}, {"f.x": "f.y"}, {"f": "a.b"}, {"f.x": "a.b.c"}, {"nope": "g"}, {"nope": "before"}, {"f": 5}, {"f": ""}, {"f": "g."}, {"f": "$g"}, {"f.0": "g"}, {"f": "after.x"}, {"before": "f.0"}, {"_id": "g"}, {"f": "_id"}, {"f": "g", "before": "g"}, {"f": "g", "g": "h"}, {"f": "g", "after": "h"}, {"f.x": "before.y"}, {"f.$": "g"}, {"f": "g.$"}, {"f": None}, {"f.x.y": "g"}]
    for r in ren:
        for base in (1, {"x": 2, "y": 1}, [{"x": 1}]):
            yield up(one(base), {"$rename": r})
    for cd in [{"f": True}, {"f": False}, {"f": {"$type": "date"}}, {"f": {"$type": "timestamp"}}, {"f": {"$type": "x"}}, {"f": {}}, {"f": 1}, {"f": "date"}, {"f.x": True, "g": {"$type": "timestamp"}}, {"f": {"$type": "date", "x": 1}}, {"f": {"$foo": "date"}}]:
        yield up(one({"y": 1}), {"$currentDate": cd}, oplog=False)
        yield up(one(5), {"$currentDate": cd}, oplog=False)
    for a, b in [({"a": {"b": 1, "c": [1, 2, {"d": 1}]}}, {"$set": {"a.c.2.d": 2}}), ({"a": {"b": {"c": {"d": 1, "e": 2}}}}, {"$set": {"a.b.c.d": 5, "a.b.x": 1}, "$unset": {"a.b.c.e": 1}}), ({"a": [{"b": [1, 2, 3]}, {"b": [4]}]}, {"$set": {"a.0.b.1": 9, "a.1.b.0": 8}}), ({"a": [1, 2, 3, 4]}, {"$set": {"a.1": 9, "a.5": 7}}),
                 ({"a": {"x": 1}}, {"$set": {"a": {"x": 1, "y": 2}}}), ({"a": {"x": 1, "y": 2, "z": 3}}, {"$set": {"a.y": {"q": 1}}}), ({"a": {"x": 1}}, {"$unset": {"a.x": 1}, "$set": {"a.y": 1}}), ({"u": 1, "i": 2, "d": 3, "sa": {"x": 1}}, {"$set": {"u": 2, "i": 3, "sa.x": 2, "sb": 1}, "$unset": {"d": 1}}), ({"a": [1, 2, 3]}, {"$set": {"a": [1, 2, 4]}})]:
        yield up([{"_id": 1, **a}], b)


def push(rnd):
    for k, v in KINDS.items():
        for a in [1, None, [4, 5], {"x": 1}, {"$each": [4, 5]}, {"$each": []}]:
            yield up(one(v, k), {"$push": {"f": a}})
        for a in [1, {"x": 1}, [1], {"$each": [1, 9, 9, 2.0]}]:
            yield up(one(v, k), {"$addToSet": {"f": a}})
        for a in [1, -1]:
            yield up(one(v, k), {"$pop": {"f": a}})
    for _ in range(150):
        n = rnd.randrange(5)
        arr = [rnd.randrange(9) for _ in range(n)] if rnd.random() < .5 else [{"p": rnd.randrange(5), "q": rnd.choice("abc"), **({"r": {"s": rnd.randrange(3)}} if rnd.random() < .5 else {})} for _ in range(n)]
        ints = not arr or isinstance(arr[0], int)
        each = [rnd.choice([rnd.randrange(12), float(rnd.randrange(5))]) if ints else {"p": rnd.randrange(5), "q": rnd.choice("abc")} for _ in range(rnd.randrange(4))]
        m = {"$each": each}
        if rnd.random() < .5:
            m["$position"] = rnd.choice([0, 1, 2, -1, -2, 10, -10, L(1), 1.0])
        if rnd.random() < .5:
            m["$slice"] = rnd.choice([0, 1, 3, -1, -2, 10, -10, 2.0, L(2)])
        if rnd.random() < .5:
            m["$sort"] = rnd.choice([1, -1]) if ints else rnd.choice([{"p": 1}, {"p": -1}, {"q": 1, "p": -1}, {"r.s": 1, "p": 1}])
        items = list(m.items())
        rnd.shuffle(items)
        yield up(one(arr), {"$push": {"f": dict(items)}})
    for m in [{"$each": 5}, {"$each": [1], "$slice": 1.5}, {"$each": [1], "$slice": "x"}, {"$each": [1], "$position": "x"}, {"$each": [1], "$position": 1.5}, {"$each": [1], "$sort": 0}, {"$each": [1], "$sort": {}}, {"$each": [1], "$sort": {"a": 2}}, {"$each": [1], "$sort": "a"}, {"$each": [1], "$foo": 1}, {"$slice": 1}, {"$slice": 1, "x": 1}, {"x": 1, "$each": [1]}, {"$each": [1], "x": 1},
              {"$each": [5, 1], "$sort": {"": 1}}, {"$each": [1], "$sort": {"a.": 1}}, {"$each": [1], "$sort": {"$a": 1}}, {"$each": [{"$x": 1}]}, {"$each": [[3, 4]]}, {"$each": [3], "$sort": True}, {"$each": ["a", None, {"x": 1}, 2.5, [1]], "$sort": 1}, {"$each": ["a", None, {"x": 1}, 2.5, [1]], "$sort": -1}, {"$each": [1], "$slice": None}, {"$position": 1}]:
        yield up(one([3, 1, 2]), {"$push": {"f": m}})
        yield up(one([3, 1, 2]), {"$addToSet": {"f": m}})
    for v, a in [([1, 2], 2.0), ([1, 2], D("2")), ([{"a": 1, "b": 2}], {"b": 2, "a": 1}), ([{"a": 1}], {"a": 1.0}), ([None], None), ([NAN], NAN), ([NAN], D("NaN")), ([[1]], [1]), ([], {"$each": [1, 1, 1.0]}), ([1], {"$each": [2, 1], "$slice": 1}), (["a"], "A"), ([DATE(1)], DATE(1)), ([0.0], -0.0), ([True], 1), ([SYM("a")], "a"), ([BIN(b"a")], BIN(b"a", 2))]:
        yield up(one(v), {"$addToSet": {"f": a}})
    for a in [0, 2, "x", 1.0, -1.0, L(1), 1.5, None, True, D("1")]:
        yield up(one([1, 2]), {"$pop": {"f": a}})
    for d in [{}, {"f.x": 1}, {"f.0": 1}, {"f.0.x": 1}, {"new.x": 1}, {"_id": 1}, {"f.$": 1}, {"f": 1, "g": 1}]:
        for op in ("$push", "$addToSet", "$pop"):
            yield up(one([[1], [2]]), {op: d})
            yield up(one({"x": [1]}), {op: d})
    yield up(one([1]), {"$pushAll": {"f": [1]}})


def pull(rnd):
    arrs = [[1, 2, 3, 2, 1], [1, 2.0, L(2), D("2"), "2"], [{"p": 1, "q": "a"}, {"p": 2, "q": "b"}, {"p": 3}], [[1, 2], [2, 3], 5], [None, 1, None], ["abc", "b", "xa"], [], [{"p": [1, 2]}, {"p": [3]}], [NAN, 1], [{"p": {"z": 1}}, {"p": {"z": 2}}]]
    conds = [1, 2, None, "b", {"p": 1}, {"p": 1, "q": "a"}, {"q": "a", "p": 1}, {"p": {"$gt": 1}}, {"$gt": 1}, {"$gte": 2, "$lt": 3}, {"$in": [1, "b"]}, {"$ne": 1}, {"$nin": [1, 2]}, {"$exists": True}, {"$type": "string"}, RE("a"), {"$regex": "^a"}, [1, 2], [], {"$elemMatch": {"$gte": 3}}, {"p": {"$elemMatch": {"$gt": 1}}}, {"$size": 2}, {"$not": {"$gt": 1}},
             {"$or": [{"p": 1}, {"p": 2}]}, {"$and": [{"p": 1}]}, {"p": {"$exists": False}}, {"p.z": 1}, NAN, {}, {"$eq": 2}, {"$all": [2, 3]}, {"p": [1, 2]}, {"p": {"z": 1}}, {"$mod": [2, 0]}, {"$expr": True}, {"$foo": 1}, {"p": {"$foo": 1}}, {"q": None}, {"p": {"$in": [1, 3]}, "q": {"$exists": False}}, {"$nor": [{"p": 1}]}, {"$where": "1"}]
    for a in arrs:
        for c in conds:
            if rnd.random() < .62:
                yield up(one(a), {"$pull": {"f": c}})
    for k, v in KINDS.items():
        yield up(one(v, k), {"$pull": {"f": 1}})
        yield up(one(v, k), {"$pullAll": {"f": [1, 2]}})
    for c in [[1, 2], [], 5, [{"p": 1, "q": "a"}], [{"q": "a", "p": 1}], [[1, 2]], [2.0], [None], [RE("a")], None, {"x": 1}, [NAN], ["abc", 1]]:
        for a in rnd.sample(arrs, 4):
            yield up(one(a), {"$pullAll": {"f": c}})
    for p in ["f.x", "f.0", "f.0.p", "f.$[].p", "nope.x", "_id"]:
        for a in ([{"p": [1, 2]}, {"p": [2]}], {"x": [1, 2, 2]}, [[1, 2], [2]]):
            yield up(one(a), {"$pull": {p: 2}})
            yield up(one(a), {"$pullAll": {p: [2]}})


def positional(rnd):
    docs = [{"_id": 1, "t": [1, 5, 9], "e": [{"p": 1, "q": "a"}, {"p": 5, "q": "b"}, {"p": 5, "q": "c"}], "n": {"m": [3, 5]}}]
    qs = [{"t": 5}, {"t": {"$gt": 3}}, {"e.p": 5}, {"e": {"$elemMatch": {"p": 5, "q": "c"}}}, {"_id": 1, "t": 9}, {"t": 9, "e.p": 5}, {"e.p": 5, "t": 1}, {"t": {"$elemMatch": {"$gt": 4}}}, {"e.p": {"$gt": 1}, "e.q": "c"}, {"n.m": 5}, {"t": {"$in": [9, 5]}}, {"$or": [{"t": 9}, {"e.p": 5}]}, {"$and": [{"t": 5}, {"t": 9}]}, {"t": {"$all": [5, 9]}}, {"t": {"$ne": 1}}, {"_id": 1},
          {"t": {"$size": 3}}, {"t.1": 5}, {"e.1.p": 5}, {"t": {"$not": {"$gt": 100}}}, {"$nor": [{"t": 4}]}, {"t": {"$exists": True}}, {"t": [1, 5, 9]}]
    us = [{"$set": {"t.$": 100}}, {"$set": {"e.$.q": "new"}}, {"$inc": {"t.$": 1}}, {"$unset": {"e.$.q": 1}}, {"$set": {"e.$": {"z": 1}}}, {"$set": {"n.m.$": 7}}, {"$push": {"e.$.r": 1}}, {"$unset": {"t.$": 1}}, {"$mul": {"e.$.p": 2}}, {"$set": {"t.$": 1, "e.$.p": 2}}]
    for q in qs:
        for u in us:
            if rnd.random() < .42:
                yield up(docs, u, q)
    for q, u in [({"t": 5}, {"$set": {"$": 1}}), ({"t": 5}, {"$set": {"$.x": 1}}), ({"t": 5}, {"$set": {"t.$.$": 1}}), ({"t": 5}, {"$set": {"_id.$": 1}}), ({"t": 77}, {"$set": {"t.$": 1}}), ({"t": 5}, {"$rename": {"t.$": "x"}}), ({"t": 5}, {"$set": {"t.$": 5}}), ({"t": 5}, {"$set": {"t.$": 5.0}}), ({"t": 5}, {"$set": {"t.$x": 5}})]:
        yield up(docs, u, q)
        yield up(docs, u, q, upsert=True, oplog=False)
    many = [{"_id": i, "t": [i, i + 1, 7]} for i in range(4)]
    yield up(many, {"$set": {"t.$": "z"}}, {"t": {"$gte": 2}}, multi=True)
    yield up(many, {"$inc": {"t.$": 10}}, {"t": 7}, multi=True)


def filters(rnd):
    doc = [{"_id": 1, "t": [1, 5, 9, 5], "e": [{"p": 1, "q": [1, 2]}, {"p": 5, "q": [3, 4]}, {"p": 7}], "nn": [[1, 2], [3]], "o": {"a": [2, 4]}, "s": 3}]
    for op, v in [("$set", 0), ("$inc", 1), ("$mul", 2), ("$min", 3), ("$max", 3), ("$unset", 1), ("$bit", {"or": 8}), ("$currentDate", True), ("$set", {"k": 1}), ("$push", 1), ("$pull", 1), ("$rename", "x")]:
        for p in ["t.$[]", "e.$[].p", "e.$[].q.$[]", "nn.$[].$[]", "o.a.$[]", "e.$[]", "s.$[]", "none.$[]", "e.$[].q", "nn.$[]", "e.$[].new"]:
            if op == "$set" or rnd.random() < .45:
                yield up(doc, {op: {p: v}}, oplog=op != "$currentDate")
    fl = [{"i": 5}, {"i": {"$gt": 4}}, {"i": {"$gte": 1, "$lt": 9}}, {"i.p": 5}, {"i.p": {"$gt": 1}}, {"$or": [{"i": 1}, {"i": 9}]}, {"i": {"$in": [1, 9]}}, {"i": {"$ne": 5}}, {"i": {"$type": "int"}}, {"i.q": {"$exists": True}}, {"i": {"$exists": True}}, {"$and": [{"i.p": 5}, {"i.q": 3}]}, {"i": {"$not": {"$gt": 4}}}, {"i": {"$elemMatch": {"$gt": 1}}}, {"i": {"p": 7}}, {"i": None}, {"i.p": {"$in": [1, 7]}}]
    for f in fl:
        for op, p, v in [("$set", "t.$[i]", 0), ("$set", "e.$[i].p", 0), ("$inc", "t.$[i]", 1), ("$unset", "e.$[i].q", 1), ("$set", "e.$[i]", "z"), ("$push", "nn.$[i]", 8), ("$set", "e.$[i].n.m", 1), ("$pull", "e.$[i].q", 3)]:
            if rnd.random() < .55:
                yield up(doc, {op: {p: v}}, af=[f])
    two = [({"e.$[i].q.$[j]": 0}, [{"i.p": {"$gt": 1}}, {"j": {"$gte": 3}}]), ({"nn.$[i].$[j]": 0}, [{"i": 1}, {"j": {"$gt": 1}}]), ({"t.$[i]": 0, "e.$[j].p": 1}, [{"i": 5}, {"j.p": 5}]), ({"t.$[i]": 0, "t.$[j]": 1}, [{"i": 5}, {"j": 9}]), ({"t.$[i]": 0, "t.$[j]": 1}, [{"i": 5}, {"j": 5}]), ({"t.$[i]": 0, "t.0": 1}, [{"i": 9}]), ({"t.$[i]": 0, "t.0": 1}, [{"i": 1}]), ({"t.$[]": 0, "t.0": 1}, []), ({"t.$[]": 0}, []),
           ({"e.$[i].p": 0, "e.$[i].q": 1}, [{"i.p": 5}]), ({"t.$[i]": 0}, []), ({"t.$[i]": 0}, None), ({"t.$[i]": 0}, [{"j": 1}]), ({"t.$[i]": 0}, [{"i": 1}, {"j": 1}]), ({"t.$[i]": 0}, [{"i": 1}, {"i": 2}]), ({"t.$[i]": 0}, [{"i": 1, "j": 2}]), ({"t.$[i]": 0}, [{}]), ({"t.$[i]": 0}, [5]), ({"t.$[i]": 0}, 5), ({"t.$[i]": 0}, {"i": 1}), ({"t.$[I]": 0}, [{"I": 1}]), ({"t.$[i1]": 0}, [{"i1": 1}]), ({"t.$[1i]": 0}, [{"1i": 1}]),
           ({"t.$[i_x]": 0}, [{"i_x": 1}]), ({"t.$[i]": 0}, [{"i": {"$foo": 1}}]), ({"t.$[i]": 0}, [{"$or": [{"i": 1}, {"j": 2}]}]), ({"t.$[i": 0}, [{"i": 1}]), ({"t.$i]": 0}, [{"i": 1}]), ({"t.$[i].x": 0}, [{"i": 5}]), ({"t.$[].x": 0}, []), ({"e.$[i].p.x": 0}, [{"i.p": 5}]), ({"_id.$[i]": 0}, [{"i": 5}]), ({"$[i]": 0}, [{"i": 5}]), ({"t.$[i]": 5}, [{"i": 5}]), ({"t.$[i]": 0}, [{"i": 777}]), ({"t": 0}, [{"i": 1}]), ({"t.$[i]": 0}, [{"i": {"$gt": 1}, "i.x": 1}]), ({"t.$[i]": 0}, [{"": 1}]), ({"t.$[i]": 0}, [{"i": 1, "$comment": "x"}]), ({"t.$[i]": 0}, [{"$expr": True}])]
    for s, f in two:
        yield up(doc, {"$set": s}, af=f)
        yield up(doc, {"$set": s}, q={"_id": 77}, af=f, upsert=True, oplog=False)
    yield up(doc, {"x": 1}, af=[{"i": 1}])
    yield up(doc, [{"$set": {"x": 1}}], af=[{"i": 1}])
    yield up(doc, {"$set": {"t.$[i]": 1, "e.$.p": 2}}, q={"e.p": 5}, af=[{"i": 9}])


def upsert(rnd):
    qs = [{}, {"_id": 5}, {"a": 1}, {"a": 1, "b": 2}, {"a": {"$eq": 1}}, {"a": {"$gt": 1}}, {"a": {"$in": [3]}}, {"a": {"$in": [3, 4]}}, {"a": {"$all": [3]}}, {"a": {"$all": [3, 4]}}, {"$and": [{"a": 1}, {"b": 2}]}, {"$or": [{"a": 1}]}, {"$or": [{"a": 1}, {"b": 2}]}, {"a.b": 1}, {"a.b.c": 1, "a.d": 2}, {"a": {"b": 1}, "a.b": 2}, {"a": RE("x")}, {"a": {"$regex": "x"}},
          {"a": None}, {"a": {"$ne": 1}}, {"a": {"$exists": True}}, {"a": {"$not": {"$gt": 1}}}, {"$nor": [{"a": 1}]}, {"_id": {"$gt": 5}}, {"_id": {"$eq": 9}}, {"_id": {"$in": [8]}}, {"$and": [{"_id": 4}, {"a": 1}]}, {"_id.x": 1}, {"_id": {"x": 1}}, {"a": {"$elemMatch": {"b": 1}}}, {"a": 1, "$comment": "x"}, {"a": [1, 2]}, {"a": {"$size": 2}}, {"$and": [{"a": 1}, {"a": 2}]},
          {"a": 1, "a.b": 2}, {"$expr": {"$eq": ["$a", 1]}}, {"a": {"$eq": [1]}}, {"a.0": 1}, {"a.0.b": 1}, {"a": {"$type": "int"}}, {"a": {"$mod": [2, 0]}}, {"a": {"$gt": 1, "$eq": 3}}, {"_id": None}, {"a": {"$all": [{"$elemMatch": {"b": 1}}]}}, {"a": {"$eq": 1, "$in": [1]}}, {"a.$b": 1}, {"$or": [{"$and": [{"a": 1}]}]}, {"a": UNDEF}, {"_id": RE("x")}, {"_id": [1]}]
    us = [{"$set": {"x": 1}}, {"$set": {"a": 7}}, {"$set": {"a.b": 9}}, {"$inc": {"a": 1}}, {"$setOnInsert": {"y": 1, "a": 2}}, {"$push": {"a": 1}}, {"$unset": {"a": 1}}, {"z": 1}, {}, {"_id": 5, "z": 1}, {"$set": {"_id": 9}}, {"$setOnInsert": {"_id": 12}}, [{"$set": {"x": 1}}], [{"$replaceWith": {"q": "$a"}}], {"$set": {}}, {"$rename": {"a": "b"}}, {"$set": {"b.c": 1}}, {"$min": {"m": 3}}, {"$addToSet": {"s": 1}}, {"$pull": {"s": 1}}, {"$currentDate": {"d": True}}, {"$bit": {"n": {"or": 3}}}]
    for q in qs:
        for u in us:
            if rnd.random() < .28:
                yield up([], u, q, upsert=True)
    for q in qs[:20]:
        yield up([{"_id": 5, "a": 1, "b": 2}], rnd.choice(us), q, upsert=True)
    yield up([], {"$set": {"x": 1}}, {"a": 1}, upsert=True, multi=True)
    yield up([], {"_id": 3, "x": 1}, {"_id": 4}, upsert=True)
    yield up([], {"_id": 3, "x": 1}, {}, upsert=True, upsertSupplied=True)
    yield up([{"_id": 4}], {"_id": 3, "x": 1}, {"_id": 4}, upsert=True)
    yield up([], {"x": TS(0, 0)}, {"_id": 4}, upsert=True, oplog=False)
    yield up([], {"$set": {"x": TS(0, 0)}}, {"_id": 4}, upsert=True, oplog=False)


def replacement(rnd):
    docs = [{"_id": 1, "a": 1, "b": {"c": 2}}, {"_id": 2, "a": 1, "b": 5}, {"_id": 3, "a": 9}]
    for r in [{}, {"x": 1}, {"a": 1, "b": {"c": 2}}, {"b": {"c": 2}, "a": 1}, {"_id": 1, "x": 1}, {"x": 1, "_id": 1}, {"_id": 7, "x": 1}, {"_id": 1.0, "x": 1}, {"a.b": 1}, {"a": {"$x": 1}}, {"x": TS(0, 0)}, {"x": {"y": TS(0, 0)}}, {"_id": L(1)}, {"": 1}, {"x": None}, {"a": 1, "$set": {"b": 1}}, {"$x": 1}, {"_id": None}, {"_id": [1]}, {"x": UNDEF}]:
        for q in [{"_id": 1}, {"a": 1}, {"a": 77}]:
            yield up(docs, r, q, oplog="y" not in str(r) and TS(0, 0) != r.get("x"))
        yield up(docs, r, {"a": 1}, multi=True)
    for kw in [{"multi": 1}, {"upsert": 1}, {"multi": "x"}, {"upsert": "x"}, {"foo": 1}, {"hint": "_id_"}, {"hint": {"_id": 1}}, {"hint": "nope"}, {"hint": 5}, {"hint": {"a": 1}}, {"collation": {"locale": "en"}}, {"collation": {}}, {"c": {"x": 1}}, {"sort": {"a": 1}}, {"arrayFilters": 5}]:
        yield up(docs, {"$set": {"n": 1}}, {"a": 1}, **kw)
    for u in [5, None, "x", [], [{}], [5], [{"$foo": 1}], [{"$match": {}}], [{"$group": {"_id": 1}}], [{"$set": {"a": 1}, "$unset": "b"}], [{"$sort": {"a": 1}}], [{"$limit": 1}]]:
        yield up(docs, u, {"a": 1})
    yield up(docs, {"$set": {"x": 1}}, {"a": 1}, multi=True)
    yield up(docs, {"$set": {"a": 1}}, {}, multi=True)
    yield up(docs, {"$inc": {"b": 1}}, {}, multi=True)
    yield up(docs, {"$set": {"b.c": 1}}, {}, multi=True)
    base = {"update": "w", "updates": [{"q": {"_id": 1}, "u": {"$set": {"x": 1}}}]}
    for cmd in [{"update": "w"}, {"update": "w", "updates": []}, {"update": "w", "updates": 5}, {"update": "w", "updates": [5]}, {"update": "w", "updates": [{}]}, {"update": "w", "updates": [{"q": {}}]}, {"update": "w", "updates": [{"u": {}}]}, {"update": "w", "updates": [{"q": 5, "u": {}}]}, {**base, "ordered": 5}, {**base, "ordered": "x"}, {**base, "foo": 1}, {**base, "update": 5}, {**base, "update": ""},
                {**base, "update": "a\u0000b"}, {**base, "update": "$x"}, {**base, "update": ".x"}, {**base, "writeConcern": {"w": 0}}, {**base, "writeConcern": {"w": "x"}}, {**base, "writeConcern": {"w": -1}}, {**base, "writeConcern": {"w": 51}}, {**base, "writeConcern": 5}, {**base, "writeConcern": {"foo": 1}}, {**base, "writeConcern": {"w": 1, "j": True}}, {**base, "writeConcern": {"w": "majority", "wtimeout": 1000}}, {**base, "writeConcern": {"w": 2, "wtimeout": 1}}, {**base, "bypassDocumentValidation": True}, {**base, "comment": "x"}, {**base, "let": {"v": 1}}, {**base, "maxTimeMS": 10000}]:
        if cmd.get("writeConcern") != {"w": 0}:
            yield {"docs": docs, "cmd": cmd}
    yield {"docs": docs, "cmd": {"update": "w", "updates": [{"q": {"_id": 1}, "u": {"$set": {"x": 1}}}, {"q": {"_id": 2}, "u": {"$foo": 1}}, {"q": {"_id": 3}, "u": {"$set": {"x": 3}}}]}, "oplog": True}
    yield {"docs": docs, "cmd": {"update": "w", "ordered": False, "updates": [{"q": {"_id": 1}, "u": {"$inc": {"b": 1}}}, {"q": {"_id": 2}, "u": {"$inc": {"b": 1}}}, {"q": {"_id": 3}, "u": {"_id": 4}}]}, "oplog": True}
    yield {"docs": docs, "cmd": {"update": "w", "ordered": True, "updates": [{"q": {"_id": 1}, "u": {"$inc": {"b": 1}}}, {"q": {"_id": 2}, "u": {"$inc": {"b": 1}}}]}, "oplog": True}
    yield {"docs": docs, "cmd": {"update": "w", "updates": [{"q": {"_id": i}, "u": {"$set": {"k": i}}, "upsert": True} for i in range(2, 7)]}, "oplog": True}
    yield {"docs": docs, "cmd": {"update": "w", "updates": [{"q": {"$expr": {"$eq": ["$a", "$$v"]}}, "u": [{"$set": {"k": "$$v"}}], "multi": True}], "let": {"v": 1}}, "oplog": True}
    yield {"docs": docs, "cmd": {"update": "w", "updates": [{"q": {"_id": 1}, "u": [{"$set": {"k": "$$z"}}], "c": {"z": 5}}]}, "oplog": True}


def pipeline(rnd):
    docs = [{"_id": 1, "a": 5, "b": {"c": 2, "d": [1, 2, 3]}, "e": "str", "z": None}, {"_id": 2, "b": {"c": 9}}]
    ps = [[{"$set": {"x": "$a"}}], [{"$set": {"a": {"$add": ["$a", 1]}}}], [{"$set": {"b.c": 7, "b.new": 1}}], [{"$unset": "a"}], [{"$unset": ["a", "b.c"]}], [{"$replaceWith": {"n": "$b.c"}}], [{"$replaceRoot": {"newRoot": "$b"}}], [{"$replaceWith": "$b"}], [{"$replaceWith": "$e"}], [{"$project": {"a": 1}}], [{"$project": {"a": 0}}], [{"$project": {"_id": 0, "b": 1}}], [{"$addFields": {"b": {"q": 1}}}],
          [{"$set": {"b": {"$literal": {"q": 1}}}}], [{"$set": {"x": "$missing"}}], [{"$set": {"a": "$missing"}}], [{"$set": {"a": "$$REMOVE"}}], [{"$set": {"x": "$$NOW"}}], [{"$set": {"_id": 5}}], [{"$set": {"_id": 1, "k": 1}}], [{"$unset": "_id"}], [{"$set": {"x": {"$cond": [{"$gt": ["$a", 3]}, "hi", "lo"]}}}], [{"$set": {"x": 1}}, {"$set": {"y": {"$add": ["$x", 1]}}}, {"$unset": "a"}], [{"$set": {"b.d": {"$concatArrays": [{"$ifNull": ["$b.d", []]}, [9]]}}}],
          [{"$set": {"x": "$$ROOT"}}], [{"$set": {"b.d.0": 7}}], [{"$set": {"a": "$a"}}], [{"$set": {"x": {"$foo": 1}}}], [{"$set": {"x": {"$divide": ["$a", 0]}}}], [{"$set": {"": 1}}], [{"$set": {"a.": 1}}], [{"$set": {"$a": 1}}], [{"$set": 5}], [{"$set": {}}], [{"$unset": 5}], [{"$unset": []}], [{"$unset": [""]}], [{"$unset": ["$a"]}], [{"$replaceWith": 5}], [{"$replaceRoot": {}}], [{"$replaceRoot": {"newRoot": 5}}], [{"$project": {}}], [{"$project": {"a": 1, "b": 0}}],
          [{"$set": {"e": {"$toUpper": "$e"}}}], [{"$set": {"b": {"$mergeObjects": ["$b", {"m": 1}]}}}], [{"$set": {"b.d": {"$map": {"input": "$b.d", "in": {"$multiply": ["$$this", 2]}}}}}], [{"$set": {"x": {"$size": "$b.d"}}}], [{"$set": {"a": {"$toString": "$a"}}}], [{"$set": {"b": "flat"}}], [{"$set": {"a.x": 1}}], [{"$set": {"e.f.g": 1}}], [{"$set": {"z.y": 1}}], [{"$set": {"x": [1, "$a", {"y": "$a"}]}}], [{"$replaceWith": {"$mergeObjects": [{"def": 1}, "$$ROOT"]}}], [{"$set": {"a": 5.0}}], [{"$set": {"b": {"d": [1], "c": {"k": "$a"}}}}]]
    for p in ps:
        yield up(docs, p, {"_id": 1}, oplog="NOW" not in str(p))
        yield up(docs, p, {}, multi=True, oplog="NOW" not in str(p))
        yield up(docs, p, {"_id": 9, "a": 3}, upsert=True, oplog="NOW" not in str(p))


def diffs(rnd):
    """Replacements and pipeline updates of related documents: what the oplog entry says."""
    def val(d=0):
        k = rnd.randrange(9 if d < 3 else 5)
        if k < 3:
            return rnd.randrange(4)
        if k < 5:
            return rnd.choice(["s", "long string value %d" % rnd.randrange(3), None, 2.5])
        if k < 7:
            return {n: val(d + 1) for n in rnd.sample("pqrst", rnd.randrange(1, 4))}
        return [val(d + 1) for _ in range(rnd.randrange(5))]

    def mutate(v):
        if isinstance(v, dict) and v:
            out = {}
            for k, x in v.items():
                r = rnd.random()
                if r < .12:
                    continue
                out[k] = mutate(x) if r < .5 else x
            if rnd.random() < .3:
                out[rnd.choice("uvwpq")] = val(2)
            return out
        if isinstance(v, list):
            out = [mutate(x) if rnd.random() < .3 else x for x in v]
            r = rnd.random()
            return out[:-1] if r < .2 else out + [val(2)] if r < .5 else out
        return val(2)

    for i in range(180):
        a = {n: val() for n in rnd.sample("abcdefgh", 5)}
        if i % 2:
            a["pad"] = "x" * rnd.choice([20, 200])
        b = mutate(a)
        yield up([{"_id": 1, **a}], b if i % 3 == 0 else [{"$replaceWith": {"$literal": b}}], {"_id": 1})


def delete(rnd):
    docs = [{"_id": i, "a": i % 3, "t": [i, i + 1]} for i in range(6)]
    for q, lim in [({}, 0), ({}, 1), ({"a": 1}, 0), ({"a": 1}, 1), ({"t": 3}, 0), ({"_id": 4}, 1), ({"_id": 77}, 1), ({"a": {"$gt": 0}}, 0), ({"a": {"$foo": 1}}, 0), ({"$or": [{"a": 0}, {"_id": 1}]}, 0), ({"t": {"$elemMatch": {"$gt": 4}}}, 0)]:
        yield {"docs": docs, "cmd": {"delete": "w", "deletes": [{"q": q, "limit": lim}]}, "oplog": True}
    for d in [{"q": {}}, {"limit": 1}, {"q": {}, "limit": 2}, {"q": {}, "limit": -1}, {"q": {}, "limit": "x"}, {"q": {}, "limit": 1.0}, {"q": {}, "limit": 0.5}, {"q": 5, "limit": 1}, {"q": {}, "limit": 1, "foo": 1}, {"q": {}, "limit": 1, "hint": "_id_"}, {"q": {}, "limit": 1, "hint": "nope"}, {"q": {"a": 1}, "limit": 0, "collation": {"locale": "en"}}, {"q": {}, "limit": None}, {"q": {}, "limit": True}]:
        yield {"docs": docs, "cmd": {"delete": "w", "deletes": [d]}}
    for c in [{"deletes": []}, {}, {"deletes": 5}, {"deletes": [5]}, {"deletes": [{"q": {"a": 0}, "limit": 0}, {"q": {"$x": 1}, "limit": 1}, {"q": {"a": 1}, "limit": 0}]}, {"deletes": [{"q": {"a": 0}, "limit": 0}, {"q": {"$x": 1}, "limit": 1}, {"q": {"a": 1}, "limit": 0}], "ordered": False}, {"deletes": [{"q": {"$expr": {"$eq": ["$a", "$$v"]}}, "limit": 0}], "let": {"v": 2}}, {"deletes": [{"q": {}, "limit": 0}], "foo": 1}]:
        yield {"docs": docs, "cmd": {"delete": "w", **c}}
    yield {"docs": docs, "cmd": {"delete": "nosuch", "deletes": [{"q": {}, "limit": 0}]}}


def insert(rnd):
    docs = [{"_id": 1, "a": 1}]
    for d in [{"a": 1}, {"a": 1, "_id": 5}, {"_id": 1}, {"_id": 1.0}, {"_id": None}, {"_id": [1]}, {"_id": RE("x")}, {"_id": UNDEF}, {"_id": {"$x": 1}}, {"_id": {"a": {"$x": 1}}}, {"_id": {"x": 1}}, {"$x": 1}, {"a.b": 1}, {"a": {"$x": 1, "b.c": 2}}, {"": 1}, {"_id": TS(0, 0)}, {"x": TS(0, 0)}, {"x": {"y": TS(0, 0)}}, {"_id": NAN}, {"_id": MINKEY}, {"_id": "x" * 3000}, {"_id": D("1")}, {"_id": OID(7)}, {"_id": True}, {}, {"$set": {"a": 1}}, {"_id": DATE(5), "v": [1, {"b": None}]}, {"_id": BIN(b"abc")}]:
        yield {"docs": docs, "cmd": {"insert": "w", "documents": [d]}, "oplog": TS(0, 0) not in d.values()}
    for c in [{"documents": []}, {}, {"documents": 5}, {"documents": [5]}, {"documents": {"a": 1}}, {"documents": [{"_id": 5}, {"_id": 1}, {"_id": 6}]}, {"documents": [{"_id": 5}, {"_id": 1}, {"_id": 6}], "ordered": False}, {"documents": [{"_id": 5}, {"_id": 5}, {"_id": 5}, {"_id": 6}], "ordered": False}, {"documents": [{"_id": 5}], "foo": 1}, {"documents": [{"_id": 5}], "ordered": 1}, {"documents": [{"_id": 5}], "ordered": "x"}, {"documents": [{"_id": 5}, {"_id": [1]}], "ordered": False}, {"documents": [{"_id": 5}], "comment": {"a": 1}}, {"documents": [{"_id": 5}], "writeConcern": {"w": "nope"}}]:
        yield {"docs": docs, "cmd": {"insert": "w", **c}}
    deep = {"x": 1}
    for _ in range(150):
        deep = {"x": deep}
    yield {"docs": [], "cmd": {"insert": "w", "documents": [{"_id": 1, "d": deep}]}, "after": False}
    for n in ["", "$x", "a$b", ".x", "x.", "a..b", "system.foo", "x" * 250, "x" * 300, "a b", "a\u0000b", "é"]:
        yield {"docs": docs, "cmd": {"insert": n, "documents": [{"_id": 1}]}, "then": [{"drop": n}]}


TOPICS = {"update.numeric": numeric, "update.set": sets, "update.push": push, "update.pull": pull, "update.positional": positional, "update.filters": filters, "update.upsert": upsert,
          "update.replace": replacement, "update.pipeline": pipeline, "update.diff": diffs, "write.delete": delete, "write.insert": insert}
