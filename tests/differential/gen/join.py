"""Stages that read other collections, and those that run several pipelines."""
from .agg import BYID, agg
from .data import D, DATE, L, NAN, OID, RE, UNDEF  # noqa: F401


def lookup(**kw):
    return {"$lookup": {"from": "right", "as": "o", **kw}}


# arrays of matches in a fixed order, so that the plan does not show
SORTED = {"$set": {"o": {"$sortArray": {"input": "$o", "sortBy": {"_id": 1}}}}}
IDS = {"$project": {"_id": 1, "o": "$o._id"}}


def case(*stages, coll="left", also=("right", "right_x", "right_view", "chain"), **kw):
    return {**agg(coll, *stages, **kw), "also": list(also)}


def lookups(rnd):
    for right in ["right", "right_x", "right_view"]:
        for local, foreign in [("a", "x"), ("x", "a"), ("l", "x"), ("l", "k"), ("l.a", "x"), ("d.e", "n.m"), ("d", "n"), ("_id", "_id"), ("a", "_id"), ("missing", "x"), ("a", "missing"), ("l", "n.m"), ("l.0", "x"), ("a", "k.0"), ("s", "s"), ("d.e", "x"), ("l.a", "n.m"), ("z", "x"), ("z", "z"), ("l", "n")]:
            yield case(BYID, lookup(**{"from": right, "localField": local, "foreignField": foreign}), SORTED)
        for local, foreign in [("a", "x"), ("l", "x"), ("d.e", "n.m"), ("s", "s")]:
            j = lookup(**{"from": right, "localField": local, "foreignField": foreign})
            for u in ["$o", {"path": "$o", "preserveNullAndEmptyArrays": True}, {"path": "$o", "includeArrayIndex": "ix", "preserveNullAndEmptyArrays": True}]:
                yield case(BYID, j, SORTED, {"$unwind": u}, {"$project": {"o.s": 0}})
                yield case(BYID, j, {"$unwind": u}, {"$project": {"_id": 1, "o._id": 1}}, {"$sort": {"_id": 1, "o._id": 1}})
                yield case(BYID, j, {"$unwind": u}, {"$match": {"o.k": {"$gt": 3}}}, {"$project": {"_id": 1, "o._id": 1, "o.k": 1}}, {"$sort": {"_id": 1, "o._id": 1}})
                yield case(BYID, j, {"$unwind": u}, {"$match": {"$or": [{"o.x": 2}, {"a": 3}], "o.k": {"$lt": 9}}}, {"$project": {"_id": 1, "o._id": 1}}, {"$sort": {"_id": 1, "o._id": 1}})
                yield case(BYID, j, {"$unwind": u}, {"$group": {"_id": "$o.x", "n": {"$sum": 1}}}, unordered=True)
                yield case(BYID, j, {"$match": {"a": {"$gt": 1}}}, {"$unwind": u}, {"$count": "n"})
            yield case(BYID, j, {"$match": {"o.x": 2}}, IDS, {"$project": {"_id": 1}})
            yield case(BYID, j, {"$match": {"o": {"$size": 0}}}, IDS)
            yield case(BYID, j, {"$match": {"o": []}}, IDS)
            yield case(BYID, {"$match": {"a": {"$lt": 5}}}, j, {"$sort": {"o.k": 1, "_id": 1}}, {"$limit": 3}, SORTED)
            for p in [[], [{"$match": {"k": {"$gt": 4}}}], [{"$project": {"k": 1}}], [{"$sort": {"k": -1, "_id": 1}}, {"$limit": 2}], [{"$group": {"_id": None, "n": {"$sum": 1}}}], [{"$count": "c"}], [{"$skip": 1}], [{"$unwind": "$n"}, {"$sort": {"_id": 1}}], [{"$match": {"$expr": {"$gt": ["$k", "$$q"]}}}], [{"$addFields": {"q": "$$q"}}], [{"$match": {"$expr": {"$in": ["$k", {"$cond": [{"$isArray": "$$w"}, "$$w", []]}]}}}]]:
                kw = {"localField": local, "foreignField": foreign, "pipeline": p}
                if "$$" in str(p):
                    kw["let"] = {"q": "$a", "w": "$l"}
                yield case(BYID, lookup(**{"from": right, **kw}), {"$limit": 12}, SORTED)
        for p in [[{"$match": {"k": 3}}], [{"$match": {"$expr": {"$eq": ["$x", "$$q"]}}}], [{"$match": {"$expr": {"$eq": ["$$q", "$x"]}}}], [{"$match": {"$expr": {"$gt": ["$x", "$$q"]}}}], [{"$match": {"$expr": {"$lte": ["$k", "$$q"]}}}], [{"$match": {"$expr": {"$and": [{"$eq": ["$x", "$$q"]}, {"$lt": ["$k", 8]}]}}}], [{"$match": {"$expr": {"$eq": ["$n.m", "$$e"]}}}], [{"$match": {"$expr": {"$eq": ["$n", "$$r.d"]}}}], [{"$match": {"$expr": {"$or": [{"$eq": ["$x", "$$q"]}, {"$eq": ["$k", "$$q"]}]}}}], [{"$project": {"v": {"$add": ["$k", "$$q"]}}}, {"$sort": {"_id": 1}}, {"$limit": 3}], [{"$sort": {"_id": 1}}, {"$limit": 1}, {"$replaceWith": {"_id": "$_id", "r": "$$r"}}], [{"$group": {"_id": "$x", "n": {"$sum": "$k"}}}, {"$match": {"$expr": {"$eq": ["$_id", "$$q"]}}}], [{"$match": {"$expr": {"$eq": ["$$ROOT._id", "$$r._id"]}}}], [{"$match": {"$expr": {"$in": ["$x", "$$w"]}}}], [{"$match": {"x": "$$q"}}]]:
            yield case(BYID, {"$match": {"l": {"$type": "array"}}}, {"$limit": 9}, lookup(**{"from": right, "let": {"q": "$a", "e": "$d.e", "r": "$$ROOT", "w": "$l"}, "pipeline": p}), SORTED)
    # inside of each other, of facets, of unions
    inner = {"$lookup": {"from": "chain", "let": {"k": "$k"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$_id", "$$k"]}}}, {"$set": {"outer": "$$a"}}], "as": "c"}}
    yield case(BYID, {"$limit": 8}, lookup(let={"a": "$a"}, pipeline=[{"$match": {"$expr": {"$eq": ["$x", "$$a"]}}}, inner, {"$sort": {"_id": 1}}]))
    yield case(BYID, {"$limit": 8}, lookup(let={"a": "$a"}, pipeline=[{"$lookup": {"from": "chain", "let": {"a": "$k"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$_id", "$$a"]}}}], "as": "c"}}, {"$match": {"$expr": {"$eq": ["$x", "$$a"]}}}, {"$sort": {"_id": 1}}]))
    yield case(BYID, {"$limit": 3}, lookup(pipeline=[{"$facet": {"n": [{"$count": "n"}], "first": [BYID, {"$limit": 1}]}}]))
    yield case(BYID, {"$limit": 3}, lookup(pipeline=[{"$limit": 2}, {"$unionWith": "chain"}, {"$count": "n"}]))
    yield case(BYID, {"$limit": 3}, lookup(let={"v": "$a"}, pipeline=[{"$match": {"_id": {"$lt": 2}}}, {"$unionWith": {"coll": "chain", "pipeline": [{"$match": {"$expr": {"$eq": ["$_id", "$$v"]}}}]}}, {"$project": {"_id": 1}}]))
    yield case(BYID, {"$limit": 3}, {"$lookup": {"as": "o", "let": {"v": "$a"}, "pipeline": [{"$documents": [{"x": 1, "y": 2}, {"x": 3}]}, {"$set": {"v": "$$v"}}]}})
    yield case(BYID, {"$limit": 6}, {"$lookup": {"as": "o", "localField": "a", "foreignField": "x", "pipeline": [{"$documents": [{"x": 1, "y": 2}, {"x": 3}]}]}})
    yield case(BYID, {"$limit": 3}, {"$lookup": {"as": "o", "let": {"v": "$a"}, "pipeline": [{"$documents": [{"x": "$$v"}]}]}})
    for as_ in ["l", "d.e", "d", "n.e.w", "l.x", "a.b", "_id", "o"]:
        yield case(BYID, {"$limit": 10}, {"$lookup": {"from": "right", "localField": "a", "foreignField": "x", "as": as_}}, {"$project": {"s": 0}} if as_ not in ("l", "_id") else {"$project": {"d": 0}}, unordered=True)
    yield case(BYID, {"$limit": 4}, {"$lookup": {"from": "nosuch", "localField": "a", "foreignField": "x", "as": "o"}})
    yield case(BYID, {"$limit": 4}, {"$lookup": {"from": "nosuch", "pipeline": [{"$count": "n"}], "as": "o"}})
    yield case(BYID, {"$limit": 4}, {"$lookup": {"from": "left", "localField": "_id", "foreignField": "a", "as": "o"}}, SORTED, IDS)
    yield case({"$lookup": {"from": "right", "localField": "s", "foreignField": "s", "as": "o"}}, BYID, SORTED, IDS, collation={"locale": "en", "strength": 1})
    yield case({"$lookup": {"from": "right_x", "localField": "s", "foreignField": "s", "as": "o"}}, BYID, SORTED, IDS, collation={"locale": "en", "strength": 2})
    yield case({"$lookup": {"from": "right_view", "localField": "s", "foreignField": "s", "as": "o"}}, BYID, SORTED, IDS, collation={"locale": "en", "strength": 1})
    yield case(BYID, {"$limit": 3}, lookup(pipeline=[{"$match": {"$expr": {"$eq": ["$x", "$$v"]}}}, BYID]), let={"v": 2})
    yield case(BYID, {"$limit": 3}, lookup(let={"v": "$a"}, pipeline=[{"$match": {"$expr": {"$eq": ["$x", "$$v"]}}}, BYID]), let={"v": 2})
    yield case({"$limit": 1}, {"$set": {"u": {"$literal": UNDEF}}}, lookup(localField="u", foreignField="x"))
    for spec in [5, {}, {"from": "right"}, {"from": "right", "as": "o"}, {"from": 5, "as": "o"}, {"from": "right", "as": 5}, {"from": "right", "as": "o", "x": 1}, {"from": "right", "as": "o", "localField": "a"}, {"from": "right", "as": "o", "let": 5, "pipeline": []}, {"from": "right", "as": "o", "localField": "a", "foreignField": "b", "let": {}}, {"from": "right", "as": "", "localField": "a", "foreignField": "b"}, {"from": "right", "as": "o", "localField": "$a", "foreignField": "b"}, {"from": "right", "as": "o", "localField": "a", "foreignField": "$b"}, {"from": "right", "as": "o", "pipeline": 5}, {"from": "right", "as": "o", "pipeline": [5]}, {"from": "right", "as": "o", "pipeline": [{"$out": "x"}]}, {"from": "right", "as": "o", "pipeline": [{"$merge": "x"}]}, {"from": "right", "as": "o", "pipeline": [{"$match": {"$expr": "$$z"}}]}, {"as": "o", "pipeline": [{"$match": {}}]}, {"from": "", "as": "o", "pipeline": []},
                 {"from": {"db": "x", "coll": "y"}, "as": "o", "pipeline": []}, {"from": "right", "as": "o", "pipeline": [], "let": {"A": 1}}, {"from": "right", "as": "o.$x", "pipeline": []}, {"from": "right", "as": "o", "pipeline": [{"$foo": 1}]}, {"from": "right", "as": "o", "pipeline": [{}]}, {"from": "right", "as": "o", "pipeline": [{"$limit": 1, "$skip": 1}]}, {"from": "right", "as": "o", "foreignField": "b", "pipeline": []}, {"from": "right", "as": "o", "localField": "", "foreignField": "b"}, {"from": "right", "as": "o", "pipeline": [{"$limit": 0}]}, {"from": "right", "as": "o", "pipeline": [], "let": {"v": {"$foo": 1}}}, {"from": "right", "as": "o", "pipeline": [{"$lookup": {"from": "right", "as": "p"}}]}, {"from": "right", "as": "o", "localField": "a.", "foreignField": "b"}, {"from": "right", "as": "o", "localField": 5, "foreignField": "b"}, {"from": "right", "as": "o", "pipeline": [{"$match": {"$expr": {"$divide": ["$k", 0]}}}]}, {"from": "right", "as": "o", "pipeline": [{"$documents": 5}]}, {"as": "o", "pipeline": [{"$documents": 5}]}, {"as": "o", "pipeline": [{"$documents": [5]}]}]:
        yield case(BYID, {"$limit": 3}, {"$lookup": spec})
    deep = []
    for _ in range(21):
        deep = [{"$lookup": {"from": "right", "as": "o", "pipeline": deep}}]
    yield case(*deep)


def unions(rnd):
    for p in [[], [{"$match": {"k": {"$gt": 5}}}], [{"$project": {"k": 1}}], [{"$group": {"_id": "$x", "n": {"$sum": 1}}}, BYID], [{"$sort": {"k": -1, "_id": 1}}, {"$limit": 3}], [{"$unionWith": "chain"}], [{"$lookup": {"from": "chain", "localField": "k", "foreignField": "_id", "as": "c"}}, {"$limit": 3}]]:
        for coll in ["right", "right_x", "right_view", "nosuch", "left"]:
            u = {"$unionWith": {"coll": coll, "pipeline": p}} if p else {"$unionWith": coll}
            yield case(u, unordered=True)
            yield case({"$match": {"a": {"$lt": 3}}}, u, {"$match": {"_id": {"$lt": 9}}}, {"$project": {"_id": 1, "k": 1}}, unordered=True)
            yield case(u, {"$group": {"_id": None, "n": {"$sum": 1}, "k": {"$sum": "$k"}}})
            yield case(u, {"$sort": {"_id": -1, "k": 1}}, {"$limit": 5}, {"$project": {"_id": 1}})
    yield case({"$unionWith": {"pipeline": [{"$documents": [{"a": 1}, {"b": {"$add": [1, 2]}}]}]}}, {"$match": {"_id": {"$exists": False}}})
    yield case({"$limit": 1}, {"$unionWith": "right"}, {"$limit": 3}, {"$count": "n"})
    yield case({"$unionWith": "right"}, coll="nosuch", unordered=True)
    for spec in [5, {}, "", {"coll": "right"}, {"coll": "right", "pipeline": 5}, {"coll": "right", "x": 5}, {"coll": "right", "pipeline": [{"$out": "x"}]}, {"pipeline": [{"$match": {}}]}, {"pipeline": []}, {"coll": "right", "pipeline": [{"$foo": 1}]}, {"coll": 5}, {"coll": "right", "pipeline": [5]}, {"coll": "right", "pipeline": [{}]}, None, {"coll": "", "pipeline": []}]:
        yield case({"$limit": 1}, {"$unionWith": spec})


def facets(rnd):
    branches = {"n": [{"$count": "n"}], "top": [{"$sort": {"a": -1, "_id": 1}}, {"$limit": 3}, {"$project": {"a": 1}}], "by": [{"$group": {"_id": "$c", "n": {"$sum": 1}}}, BYID], "all": [], "none": [{"$match": {"a": -1}}], "buckets": [{"$bucket": {"groupBy": "$_id", "boundaries": [0, 50, 100, 200]}}], "auto": [{"$bucketAuto": {"groupBy": "$f", "buckets": 3}}], "skip": [{"$sort": {"_id": 1}}, {"$skip": 145}, {"$project": {"_id": 1}}], "one": [{"$sort": {"_id": 1}}, {"$limit": 1}], "count": [{"$sortByCount": "$c"}, {"$sort": {"count": -1, "_id": 1}}], "u": [{"$unwind": "$z"}, {"$group": {"_id": None, "s": {"$sum": "$z.k"}}}], "un": [{"$limit": 1}, {"$unionWith": {"coll": "chain", "pipeline": [{"$match": {"_id": 3}}]}}, {"$count": "x"}],
                "lk": [{"$sort": {"_id": 1}}, {"$limit": 2}, {"$lookup": {"from": "chain", "localField": "_id", "foreignField": "_id", "as": "c"}}, {"$project": {"c": 1}}]}
    names = list(branches)
    for b in names:
        yield case(BYID, {"$facet": {b: branches[b]}}, coll="nums", also=["chain"])
    for _ in range(60):
        pick = rnd.sample(names, rnd.randrange(1, 5))
        stages = [BYID] + rnd.choice([[], [{"$match": {"a": {"$gt": rnd.randrange(10)}}}], [{"$limit": rnd.randrange(1, 40)}]])
        tail = rnd.choice([[], [{"$project": {p: {"$size": "$" + p} for p in pick}}], [{"$unwind": "$" + pick[0]}]])
        yield case(*stages, {"$facet": {p: branches[p] for p in pick}}, *tail, coll="nums", also=["chain"])
    yield case({"$facet": {"a": [{"$count": "n"}], "b": []}}, coll="nosuch")
    for spec in [5, {}, {"a": 5}, {"a": [5]}, {"a": [{}]}, {"a": [{"$facet": {"b": []}}]}, {"a.b": []}, {"$a": []}, {"": []}, {"a": [{"$out": "x"}]}, {"a": [{"$merge": "x"}]}, {"a": [{"$collStats": {}}]}, {"a": [{"$foo": 1}]}, {"a": [{"$documents": []}]}, {"a": [{"$match": {"$foo": 1}}]}, {"a": [{"$indexStats": {}}]}, {"a": [{"$planCacheStats": {}}]}, {"a": [{"$currentOp": {}}]}, {"a": [{"$limit": 0}]}, [], None, "x"]:
        yield case({"$facet": spec}, coll="nums", also=[])


def graphs(rnd):
    norm = {"$set": {"o": {"$sortArray": {"input": "$o", "sortBy": {"_id": 1}}}}}
    base = {"from": "chain", "startWith": "$to", "connectFromField": "to", "connectToField": "_id", "as": "o"}
    for extra in [{}, {"maxDepth": 0}, {"maxDepth": 1}, {"maxDepth": L(2)}, {"maxDepth": 3.0}, {"depthField": "d"}, {"depthField": "p.q", "maxDepth": 2}, {"restrictSearchWithMatch": {"kind": "a"}}, {"restrictSearchWithMatch": {"$or": [{"kind": "b"}, {"_id": {"$gt": 10}}]}, "depthField": "d"}, {"connectFromField": "many"}, {"connectFromField": "docs.to"}, {"startWith": "$_id"}, {"startWith": "$many"}, {"startWith": ["$to", "$_id"]}, {"startWith": "$missing"}, {"startWith": None}, {"connectToField": "name", "connectFromField": "boss", "startWith": "$boss"}, {"connectToField": "many", "connectFromField": "_id", "startWith": "$_id"}, {"connectToField": "missing"}, {"connectToField": "docs.to", "connectFromField": "_id", "startWith": "$_id", "depthField": "d"}, {"as": "p.q"}, {"as": "to"}, {"from": "nosuch"}, {"from": "chain_view"}, {"from": "chain_view", "depthField": "d", "restrictSearchWithMatch": {"kind": "a"}}]:
        g = {**base, **extra}
        fix = [norm] if g["as"] == "o" else [{"$project": {"n": {"$size": "$" + g["as"]}}}]
        yield case({"$graphLookup": g}, *fix, BYID, coll="chain", also=["chain_view"])
        yield case({"$match": {"_id": {"$lt": 5}}}, {"$graphLookup": g}, *fix, BYID, {"$project": {"o.many": 0}}, coll="chain", also=["chain_view"])
        if g["as"] == "o":
            for u in ["$o", {"path": "$o", "preserveNullAndEmptyArrays": True}]:
                yield case({"$graphLookup": g}, {"$unwind": u}, {"$sort": {"_id": 1, "o._id": 1}}, {"$project": {"o._id": 1, "o.d": 1}}, coll="chain", also=["chain_view"])
    for spec in [5, {}, {"from": "chain", "x": 1}, {**base, "maxDepth": -1}, {**base, "maxDepth": 1.5}, {**base, "maxDepth": "x"}, {**base, "as": 5}, {**base, "depthField": 5}, {**base, "from": 5}, {**base, "restrictSearchWithMatch": 5}, {**base, "restrictSearchWithMatch": {"$foo": 1}}, {**base, "connectFromField": "$a"}, {**base, "depthField": "$d"}, {k: v for k, v in base.items() if k != "as"}, {k: v for k, v in base.items() if k != "startWith"}, {**base, "startWith": {"$foo": 1}}, {**base, "from": {"db": "x", "coll": "y"}}, {**base, "from": ""}]:
        yield case({"$graphLookup": spec}, coll="chain", also=[])


def redacts(rnd):
    for e in ["$$KEEP", "$$PRUNE", "$$DESCEND", 5, "x", {"$literal": "keep"}, "$c", {"$foo": 1}, {"$cond": [{"$gt": ["$_id", 5]}, "$$KEEP", "$$PRUNE"]}, {"$cond": [{"$eq": ["$p", 1]}, "$$PRUNE", "$$DESCEND"]}, {"$cond": [{"$eq": ["$q", "x"]}, "$$KEEP", "$$DESCEND"]}, {"$cond": [{"$gt": [{"$size": {"$ifNull": ["$w", []]}}, 0]}, "$$PRUNE", "$$DESCEND"]}, {"$cond": [{"$eq": ["$$ROOT._id", 7]}, "$$KEEP", "$$DESCEND"]}, {"$cond": [{"$eq": ["$$CURRENT.p", 3]}, "$$PRUNE", "$$DESCEND"]}, {"$switch": {"branches": [{"case": {"$eq": ["$c", 1]}, "then": "$$PRUNE"}, {"case": {"$isArray": "$b"}, "then": "$$KEEP"}], "default": "$$DESCEND"}}, {"$cond": [{"$in": ["red", {"$ifNull": ["$g", []]}]}, "$$KEEP", "$$DESCEND"]}, {"$let": {"vars": {"v": "$p"}, "in": {"$cond": [{"$gt": ["$$v", 2]}, "$$PRUNE", "$$DESCEND"]}}}]:
        yield agg("arrays", BYID, {"$redact": e})
        yield agg("mixed", BYID, {"$match": {"_id": {"$lt": 60}}}, {"$redact": e})


def autos(rnd):
    for by in ["$_id", "$a", "$b", "$f", "$d", "$c", "$z", "$missing", {"$mod": ["$_id", 10]}, {"$toLower": "$c"}]:
        for n in [1, 2, 3, 7, 40, 150, 1000]:
            yield agg("nums", BYID, {"$bucketAuto": {"groupBy": by, "buckets": n}})
        yield agg("nums", BYID, {"$bucketAuto": {"groupBy": by, "buckets": 4, "output": {"ids": {"$push": "$_id"}, "s": {"$sum": "$a"}, "hi": {"$max": "$f"}}}})
    for g in ["R5", "R10", "R20", "R40", "R80", "1-2-5", "E6", "E12", "E24", "E48", "E96", "E192", "POWERSOF2"]:
        for by in ["$_id", {"$abs": "$f"}, {"$multiply": ["$_id", 0.013]}, {"$multiply": ["$_id", 977]}, {"$divide": [{"$add": ["$_id", 1]}, 7000]}, {"$max": [{"$subtract": ["$_id", 100]}, 0]}]:
            yield agg("nums", {"$bucketAuto": {"groupBy": by, "buckets": rnd.choice([2, 3, 5, 9]), "granularity": g}})
    for by in ["$f", "$b", "$c", "$a", "$d", "$missing"]:
        yield agg("nums", {"$match": {"_id": {"$gt": 0}}}, {"$bucketAuto": {"groupBy": by, "buckets": 3, "granularity": "R5"}})
    yield agg("nums", {"$match": {"_id": -1}}, {"$bucketAuto": {"groupBy": "$a", "buckets": 3}})
    yield agg("mixed", {"$match": {"_id": {"$lt": 90}}}, {"$bucketAuto": {"groupBy": "$a", "buckets": 5}}, {"$project": {"count": 1}})
    for spec in [5, {}, {"groupBy": "$_id"}, {"groupBy": 5, "buckets": 2}, {"groupBy": "x", "buckets": 2}, {"groupBy": "$_id", "buckets": 0}, {"groupBy": "$_id", "buckets": -3}, {"groupBy": "$_id", "buckets": "x"}, {"groupBy": "$_id", "buckets": 2.5}, {"groupBy": "$_id", "buckets": 2.0}, {"groupBy": "$_id", "buckets": 2, "x": 1}, {"groupBy": "$_id", "buckets": 2, "output": 5}, {"groupBy": "$_id", "buckets": 2, "output": {}}, {"groupBy": "$_id", "buckets": 2, "granularity": 5}, {"groupBy": "$_id", "buckets": 2, "granularity": "R6"}, {"groupBy": "$_id", "buckets": L(2**31)}, {"groupBy": "$_id", "buckets": 2, "output": {"a.b": {"$sum": 1}}}, {"groupBy": "$_id", "buckets": 2, "output": {"a": 5}}, {"groupBy": "$_id", "buckets": 2, "output": {"$a": {"$sum": 1}}}, {"groupBy": "$_id", "buckets": 2, "output": {"a": {"$foo": 1}}}, {"groupBy": {"$foo": 1}, "buckets": 2}]:
        yield agg("nums", {"$bucketAuto": spec})


TOPICS = {"agg.lookup": lookups, "agg.union": unions, "agg.facet": facets, "agg.graph": graphs, "agg.redact": redacts, "agg.bucketauto": autos}


def admin(rnd):
    for s in [5, {"x": 1}, None, []]:
        yield case({"$planCacheStats": s}, coll="nums", also=[])
        yield case({"$listSessions": s if s != {"x": 1} else {"y": 1}}, coll="nums", also=[])
    yield case({"$planCacheStats": {}}, coll="nums", also=[])
    yield case({"$planCacheStats": {}}, coll="nosuch", also=[])
    yield case({"$match": {}}, {"$planCacheStats": {}}, coll="nums", also=[])
    yield case({"$match": {}}, {"$listSessions": {}}, coll="nums", also=[])
    yield case({"$listSessions": {}}, coll="nums", also=[])
    yield case({"$facet": {"a": [{"$planCacheStats": {}}]}}, coll="nums", also=[])
    for s in [{"$planCacheStats": {}}, {"$listSessions": {}}]:
        yield {"setup": "nums", "cmd": {"aggregate": 1, "pipeline": [s], "cursor": {}}}
    # filters that move towards the input
    for st in [[{"$addFields": {"x": "$a"}}], [{"$project": {"a": 1, "b": 1, "z.k": 1}}], [{"$project": {"b": 0}}], [{"$unset": "z.k"}], [{"$unwind": "$z"}], [{"$sort": {"a": 1, "_id": -1}}], [{"$addFields": {"a": 5}}], [{"$addFields": {"z.n": "$b"}}], [{"$project": {"a": "$b", "c": 1}}], [{"$unwind": {"path": "$c", "includeArrayIndex": "a"}}], [{"$lookup": {"from": "chain", "localField": "a", "foreignField": "_id", "as": "z"}}], [{"$limit": 60}], [{"$skip": 20}], [{"$replaceWith": {"a": "$b", "_id": "$_id"}}], [{"$sort": {"_id": 1}}, {"$limit": 50}]]:
        for m in [{"a": 5}, {"a": {"$gt": 3}, "c": "cat"}, {"$or": [{"a": 1}, {"x": 2}]}, {"$and": [{"a": {"$lt": 8}}, {"z.k": {"$gte": 1}}]}, {"z.k": 2}, {"c": {"$in": ["ant", "bee"]}, "$expr": {"$gt": ["$a", 2]}}, {"$nor": [{"a": 3}, {"c": "dog"}]}, {"x": {"$exists": False}, "b": None}]:
            yield case(BYID, *st, {"$match": m}, {"$sort": {"_id": 1}}, {"$project": {"d": 0, "f": 0}}, coll="nums", also=["chain"])


TOPICS["agg.admin"] = admin
