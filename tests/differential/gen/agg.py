"""Aggregation: the stages a first server has, alone and combined, with their errors."""
from .data import D, DATE, L, NAN, OID, RE
from .match import find  # noqa: F401


def agg(setup, *stages, unordered=False, **kw):
    c = {"setup": setup, "cmd": {"aggregate": setup, "pipeline": list(stages), "cursor": {}, **kw}}
    if unordered:
        c["unordered"] = True
    return c


BYID = {"$sort": {"_id": 1}}


def group(rnd):
    ids = [None, "$a", "$c", {"a": "$a", "c": "$c"}, "$z.k", "$z", {"$gt": ["$f", 0]}, "$b", "$missing", {"x": "$missing"}, {"$mod": ["$_id", 7]}, 5, {}, "$$ROOT.c", {"k": {"l": "$z.l"}}, {"$toUpper": "$c"}, ["$a", "$c"]]
    accs = [{"n": {"$sum": 1}}, {"s": {"$sum": "$b"}}, {"s": {"$sum": "$_id"}}, {"v": {"$avg": "$_id"}}, {"v": {"$avg": "$b"}}, {"m": {"$min": "$b"}}, {"m": {"$max": "$b"}}, {"m": {"$min": "$c"}, "x": {"$max": "$f"}}, {"f": {"$first": "$_id"}, "l": {"$last": "$_id"}}, {"p": {"$push": "$_id"}}, {"p": {"$push": {"i": "$_id", "z": "$z"}}}, {"c": {"$count": {}}}, {"m": {"$mergeObjects": "$z"}},
            {"s": {"$sum": "$c"}}, {"s": {"$sum": ["$_id", 1]}}, {"s": {"$sum": {"$multiply": ["$_id", 2]}}}, {"f": {"$first": "$missing"}, "p": {"$push": "$missing"}}, {"d": {"$max": "$d"}}]
    for i in ids:
        for a in rnd.sample(accs, 8):
            yield agg("nums", BYID, {"$group": {"_id": i, **a}}, unordered=True)
    for a in accs:
        yield agg("nums", BYID, {"$group": {"_id": None, **a}})
    sets = [{"u": {"$addToSet": "$a"}}, {"u": {"$addToSet": "$z.l"}}, {"u": {"$addToSet": "$b"}}]
    for a in sets:
        (k, _), = a.items()
        yield agg("nums", BYID, {"$group": {"_id": "$c", **a}}, {"$unwind": "$u"}, {"$project": {"u": 1}}, unordered=True)
    # deviations within rounding
    for op in ("$stdDevPop", "$stdDevSamp"):
        yield agg("nums", {"$group": {"_id": "$c", "s": {op: "$_id"}}}, {"$project": {"s": {"$round": ["$s", 6]}}}, unordered=True)
    yield agg("nums", {"$match": {"f": {"$gt": 1e9}}}, {"$group": {"_id": None, "n": {"$sum": 1}, "a": {"$avg": "$x"}}})
    yield agg("people", BYID, {"$group": {"_id": "$city", "total": {"$sum": "$balance"}, "ages": {"$push": "$age"}}}, unordered=True)
    yield agg("people", BYID, {"$unwind": "$orders"}, {"$group": {"_id": "$orders.sku", "q": {"$sum": "$orders.qty"}, "rev": {"$sum": {"$multiply": ["$orders.qty", "$orders.price"]}}, "avg": {"$avg": "$orders.price"}}}, unordered=True)
    yield agg("people", BYID, {"$group": {"_id": "$name.last", "n": {"$sum": 1}, "first": {"$first": "$name.first"}, "maxAge": {"$max": "$age"}, "minAge": {"$min": "$age"}}}, BYID)
    for v in ["mixed", "arrays"]:
        for f in ["$a", "$n.x", "$r.v", "$t", "$e.p", "$m.a.b"]:
            for op in ["$sum", "$avg", "$min", "$max", "$first", "$last"]:
                yield agg(v, BYID, {"$match": {"_id": {"$lt": 95}}}, {"$group": {"_id": None, "x": {op: f}}})
            yield agg(v, BYID, {"$group": {"_id": f, "n": {"$sum": 1}}}, unordered=True)
    for sp, op in [(3, "$firstN"), (2, "$lastN"), (3, "$maxN"), (3, "$minN")]:
        yield agg("nums", BYID, {"$group": {"_id": "$c", "x": {op: {"input": "$b", "n": sp}}}}, unordered=True)
    for op in ["$top", "$bottom"]:
        yield agg("nums", {"$group": {"_id": "$c", "x": {op: {"output": ["$_id", "$b"], "sortBy": {"b": -1, "_id": 1}}}}}, unordered=True)
        yield agg("nums", {"$group": {"_id": "$c", "x": {op + "N": {"output": "$_id", "n": 3, "sortBy": {"a": 1, "_id": 1}}}}}, unordered=True)
    for g in [{}, 5, None, {"n": {"$sum": 1}}, {"_id": None, "n": 5}, {"_id": None, "n": {}}, {"_id": None, "n": {"$foo": 1}}, {"_id": None, "n": {"$sum": 1, "$avg": 1}}, {"_id": None, "a.b": {"$sum": 1}}, {"_id": None, "$n": {"$sum": 1}}, {"_id": None, "n": "$a"}, {"_id": "$$NOPE"}, {"_id": {"$foo": 1}}, {"_id": {"a.b": 1}}, {"_id": {"a": 1, "$add": 1}}, {"_id": None, "c": {"$count": 1}}, {"_id": None, "c": {"$count": {"x": 1}}}, {"_id": None, "m": {"$mergeObjects": "$a"}}, {"_id": "$"}, {"_id": "$a."}, {"_id": "$a..b"}, {"_id": None, "x": {"$firstN": {"input": "$a"}}}, {"_id": None, "x": {"$firstN": {"input": "$a", "n": 0}}}, {"_id": None, "x": {"$sum": [1, 2]}}, {"_id": None, "": {"$sum": 1}}]:
        yield agg("nums", {"$group": g})


def stages(rnd):
    for s in [{"$match": {"a": 3}}, {"$match": {}}, {"$match": {"$expr": {"$gt": ["$a", 9]}}}, {"$match": 5}, {"$match": {"$foo": 1}}, {"$match": {"$where": "1"}}, {"$match": {"$text": {"$search": "x"}}}, {"$limit": 3}, {"$limit": 0}, {"$limit": -1}, {"$limit": "x"}, {"$limit": 2.0}, {"$limit": 2.5}, {"$limit": L(3)}, {"$skip": 145}, {"$skip": 0}, {"$skip": -1}, {"$skip": "x"}, {"$skip": 1.5}, {"$skip": L(2**62)}, {"$count": "n"}, {"$count": ""}, {"$count": "$n"}, {"$count": "a.b"}, {"$count": 5},
              {"$count": "_id"}, {"$sort": {"f": 1}}, {"$sort": {}}, {"$sort": 5}, {"$sort": {"a": 0}}, {"$sort": {"a": "x"}}, {"$sort": {"$a": 1}}, {"$sort": {"a": {"$meta": "textScore"}}}, {"$sort": {"a.": 1}}, {"$sortByCount": 5}, {"$sortByCount": {}}, {"$sortByCount": "a"}, {"$sortByCount": {"x": "$a"}}, {"$unset": "a"}, {"$unset": ["a", "z.k"]}, {"$unset": []}, {"$unset": 5}, {"$unset": ["a", 5]}, {"$unset": ""}, {"$unset": "$a"}, {"$unset": ["a", "a.b"]}, {"$unset": "_id"}, {}, {"$foo": 1}, {"$match": {}, "$limit": 1}, {"$sample": {"size": 0}}, {"$sample": {"size": -1}}, {"$sample": {}}, {"$sample": 5}, {"$indexStats": 5}, {"$collStats": 5}, {"$collStats": {"foo": {}}}, {"$collStats": {"count": {}}, "x": 1}, {"$documents": [{"a": 1}]}, {"$out": 5}, {"$merge": 5}, {"$currentOp": {}}, {"$listSessions": 5}]:
        yield agg("nums", s, {"$limit": 30} if "$limit" not in s else {"$skip": 0})
    for e in ["$c", "$a", {"$gt": ["$f", 0]}, {"$toUpper": "$c"}, "$z.l"]:
        yield agg("nums", {"$sortByCount": e}, unordered=True)
    for _ in range(60):
        st = []
        for _ in range(rnd.randrange(2, 6)):
            st.append(rnd.choice([lambda: {"$match": rnd.choice([{"a": {"$gt": rnd.randrange(8)}}, {"c": rnd.choice(["cat", "dog"])}, {"b": {"$ne": None}}, {"z.k": {"$exists": True}}, {"x": {"$lt": 9}}])}, lambda: {"$sort": {rnd.choice(["a", "b", "c", "f"]): rnd.choice([1, -1]), "_id": 1}}, lambda: {"$limit": rnd.randrange(5, 60)}, lambda: {"$skip": rnd.randrange(10)},
                                  lambda: {"$addFields": {"x": rnd.choice(["$a", {"$add": ["$_id", 1]}, "$z.k", {"$concat": ["$c", "!"]}])}}, lambda: {"$project": rnd.choice([{"a": 1, "b": 1, "x": 1, "c": 1, "f": 1}, {"z": 0}, {"d": 0, "f": 0}])}, lambda: {"$set": {"a": rnd.choice(["$b", 5, {"$ifNull": ["$b", 0]}])}}, lambda: {"$unset": rnd.choice(["b", "z.k"])}])())
        if not any("$sort" in s for s in st[:1]):
            st.insert(0, {"$sort": {"_id": rnd.choice([1, -1])}})
        yield agg("nums", *st)
    for p in ["$t", "$g", "$e", "$m.a.b", "$e.w", "$missing", "$t.0"]:
        for o in [{}, {"preserveNullAndEmptyArrays": True}, {"includeArrayIndex": "ix"}, {"includeArrayIndex": "k.ix", "preserveNullAndEmptyArrays": True}]:
            yield agg("arrays", BYID, {"$limit": 16}, {"$unwind": p if not o else {"path": p, **o}}, {"$project": {"m": 0}} if "m." not in p else {"$project": {"m": 1, "k": 1, "ix": 1}})
    for u in [5, None, "t", "$", "", {}, {"path": 5}, {"path": "t"}, {"path": "$t", "foo": 1}, {"path": "$t", "preserveNullAndEmptyArrays": 1}, {"path": "$t", "includeArrayIndex": "$x"}, {"path": "$t", "includeArrayIndex": ""}, {"path": "$t", "includeArrayIndex": 5}, {"path": "$t", "includeArrayIndex": "t.x"}, {"path": "$t", "includeArrayIndex": "_id"}, {"path": "$t..x"}, "$t.", "$$ROOT"]:
        yield agg("arrays", BYID, {"$limit": 5}, {"$unwind": u}, {"$project": {"t": 1, "_id": 1}})
    yield agg("people", {"$unwind": "$orders"}, {"$unwind": "$tags"}, {"$sort": {"_id": 1, "orders.sku": 1, "orders.qty": 1, "orders.price": 1, "tags": 1}}, {"$project": {"orders": 1, "tags": 1}})
    yield agg("mixed", {"$unwind": "$a"}, {"$sort": {"_id": 1}}, {"$project": {"a": 1}})
    yield agg("mixed", {"$unwind": {"path": "$a", "preserveNullAndEmptyArrays": True}}, {"$count": "n"})
    for r in ["$z", "$c", {"q": "$a"}, {"$mergeObjects": [{"k": 0, "l": 0}, "$z"]}, {"$literal": {"x": 1}}, "$missing", 5, "$$ROOT", {"$ifNull": ["$z", {"none": True}]}]:
        yield agg("nums", BYID, {"$limit": 6}, {"$replaceRoot": {"newRoot": r}})
        yield agg("nums", BYID, {"$match": {"z": {"$exists": True}}}, {"$limit": 6}, {"$replaceWith": r})
    for kw in [{"allowDiskUse": True}, {"explain": "x"}, {"hint": "_id_"}, {"hint": "nope"}, {"cursor": {"batchSize": 0}}, {"cursor": {"batchSize": 3}}, {"let": {"v": 5}}, {"collation": {"locale": "en", "strength": 1}}, {"maxTimeMS": -1}, {"bypassDocumentValidation": True}, {"comment": "x"}, {"readConcern": {"level": "majority"}}, {"readConcern": {"level": "available"}}, {"writeConcern": {"w": 1}}, {"fromMongos": True}, {"needsMerge": True}, {"exchange": {}}, {"isMapReduceCommand": True}, {"cursor": {"batchSize": "x"}}]:
        c = agg("nums", BYID, {"$limit": 12})
        c["cmd"].update(kw)
        yield {**c, "raw": True}
    yield agg("nums", {"$match": {"$expr": {"$eq": ["$a", "$$v"]}}}, BYID, let={"v": 5})
    yield agg("nums", {"$match": {"c": "EEL"}}, BYID, collation={"locale": "en", "strength": 1})
    yield {"setup": "nums", "cmd": {"aggregate": "nums", "pipeline": [BYID], "cursor": {}}, "raw": True}
    yield {"setup": "nums", "cmd": {"aggregate": "nosuch", "pipeline": [{"$group": {"_id": None, "n": {"$sum": 1}}}], "cursor": {}}}
    yield {"setup": "nums", "cmd": {"aggregate": "nosuch", "pipeline": [{"$count": "n"}], "cursor": {}}}


def project(rnd):
    specs = [{"a": 1}, {"a": 0}, {"_id": 0}, {"_id": 0, "a": 1}, {"a": 1, "b": 0}, {"a": 0, "b": 1}, {"x": "$a"}, {"x": "$a", "a": 1}, {"x": "$a", "b": 0}, {"z": {"k": 1}}, {"z.k": 1}, {"z": {"k": 0}}, {"z": {"n": "$a"}}, {"z.n": "$a"}, {"z": {"k": 1, "n": "$a"}}, {"z": {"k": "$a", "n.m": 1}}, {"x": {"y": {"w": "$a"}}}, {"x": ["$a", "$c", 1]}, {"x": {"$literal": "$a"}}, {"x": "lit"}, {"x": 5}, {"x": True}, {"x": False}, {"x": None}, {"x": {}}, {"x": []}, {}, 5, {"": 1}, {"a.": 1}, {"$a": 1}, {"a.$": 1}, {"a.b": 1, "a": 1}, {"a": 1, "a.b": 1}, {"x": {"$add": ["$a", 1]}}, {"x": {"$foo": 1}}, {"x": {"$add": [1], "y": 1}}, {"x": {"y": 1, "$add": [1]}}, {"x": "$$ROOT.a"}, {"x": "$$CURRENT.a"}, {"x": "$$REMOVE", "a": 1},
             {"a": "$$REMOVE"}, {"_id": "$a"}, {"_id": {"x": "$a"}}, {"_id": 1, "x": "$_id"}, {"c": 1, "a": 1, "b": 1}, {"z": 1, "z.k": 0}, {"_id.x": 1}, {"_id": 0, "b": 0}, {"_id": 1, "b": 0}, {"x": {"$cond": [{"$gt": ["$a", 5]}, "$c", "$$REMOVE"]}}, {"x": "$z.k", "y": "$z.none"}, {"b": 1.5}, {"b": L(0)}, {"b": NAN}, {"b": D("0")}, {"x": OID(5)}, {"x": RE("a")}, {"a": {"$slice": 1}}, {"a": {"$elemMatch": {"x": 1}}}, {"x": {"$meta": "sortKey"}}, {"x": {"$meta": "nope"}}]
    for s in specs:
        yield agg("nums", BYID, {"$limit": 9}, {"$project": s})
        if rnd.random() < .6:
            yield agg("nums", BYID, {"$limit": 9}, {"$addFields": s})
        if rnd.random() < .3:
            yield agg("nums", BYID, {"$limit": 9}, {"$set": s})
    for s in [{"e": {"p": "$_id"}}, {"e.p": "$_id"}, {"e.new": 1}, {"e.w.x": 5}, {"t": {"x": 1}}, {"t.x": 1}, {"m.a.b": "$t"}, {"m.a": {"c": {"$literal": 1}}}, {"e": "$$REMOVE"}, {"e.p": "$$REMOVE"}, {"x": "$e.p"}, {"x": "$e.w"}, {"x": "$m.a.b.c"}, {"x": "$t.0"}, {"e": [1, "$_id"]}]:
        yield agg("arrays", BYID, {"$limit": 14}, {"$addFields": s})
        yield agg("arrays", BYID, {"$limit": 14}, {"$project": {k: v for k, v in s.items()}})
    for s in [{"e.p": 1}, {"e.w": 0}, {"e": {"p": 1, "q": 1}}, {"m.a.b": 0}, {"m": {"a": 1}}, {"t": 1, "e.p": 1}, {"e.0": 1}, {"m.a.b.c": 1}, {"m.a.b.c": 0}]:
        yield agg("arrays", BYID, {"$project": s})


TOPICS = {"agg.group": group, "agg.stages": stages, "agg.project": project}
