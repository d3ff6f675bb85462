"""Time series: measurements in buckets, read as documents; what may be written and what not."""
from .data import DATE, L

T0 = 1704067200000


def measurements():
    out = []
    for i in range(120):
        d = {"_id": i, "t": DATE(T0 + (i * 7919 % 120) * 97_000), "m": {"sensor": i % 4, "site": "ab"[i % 2]}, "x": (i * 31) % 17, "s": "word%d" % (i % 5)}
        if i % 6 == 0:
            d["o"] = {"p": i, "q": [i, i % 3]}
        if i % 9 == 0:
            d["y"] = None
        if i % 10 == 3:
            del d["x"]
        if i % 15 == 7:
            d["x"] = "text"
        out.append(d)
    return out


def plain():
    return [{"_id": i, "t": DATE(T0 + i * 3_600_000 * 5), "v": i % 7, "w": [i, {"z": i % 3}]} for i in range(60)]


SETS = {"series": measurements, "hourly": plain}
OPTIONS = {"series": {"timeseries": {"timeField": "t", "metaField": "m"}}, "hourly": {"timeseries": {"timeField": "t", "granularity": "hours"}}}
BYID = {"_id": 1}
# the columns of a bucket have no order of their own
ROW = {"$replaceWith": {"_id": "$_id", "t": "$t", "m": "$m", "x": "$x", "s": "$s", "o": "$o", "y": "$y", "v": "$v", "w": "$w"}}


def filters(rnd):
    at = lambda: DATE(T0 + rnd.randrange(120) * 97_000)
    leaf = [lambda: {"x": rnd.randrange(17)}, lambda: {"x": {"$gt": rnd.randrange(17)}}, lambda: {"m.sensor": rnd.randrange(4)}, lambda: {"m.site": "a"}, lambda: {"m": {"sensor": 1, "site": "b"}}, lambda: {"t": {"$gte": at()}}, lambda: {"t": {"$lt": at()}}, lambda: {"t": at()}, lambda: {"s": {"$in": ["word1", "word3"]}}, lambda: {"o.p": {"$gte": rnd.randrange(120)}}, lambda: {"y": None}, lambda: {"y": {"$exists": True}}, lambda: {"x": {"$exists": False}}, lambda: {"x": "text"}, lambda: {"x": {"$type": "string"}}, lambda: {"_id": {"$lt": rnd.randrange(120)}}, lambda: {"o.q": rnd.randrange(3)}, lambda: {"$expr": {"$gt": ["$x", "$_id"]}}, lambda: {"m.sensor": {"$ne": 2}}, lambda: {"t": {"$gte": at(), "$lt": at()}}]
    return {"$or": [rnd.choice(leaf)(), rnd.choice(leaf)()]} if rnd.random() < .2 else {"$and": [rnd.choice(leaf)() for _ in range(rnd.randrange(1, 4))]}


def reads(rnd):
    for _ in range(190):
        order = {"$sort": rnd.choice([BYID, {"t": 1, "_id": 1}, {"x": -1, "_id": 1}, {"m.sensor": 1, "t": -1, "_id": 1}])}
        tail = rnd.choice([[], [{"$project": {"x": 1, "t": 1}}], [{"$unset": ["m", "t"]}], [{"$limit": 5}], [{"$skip": 3}]])
        yield {"setup": "series", "cmd": {"aggregate": "series", "pipeline": [{"$match": filters(rnd)}, order, *tail, ROW], "cursor": {}}}
    for _ in range(30):
        yield {"setup": "series", "cmd": {"find": "series", "filter": filters(rnd), "sort": BYID, "projection": rnd.choice([{"_id": 0, "x": 1}, {"_id": 1}, {"_id": 0, "t": 1}, {"_id": 0, "o.p": 1}])}}
    for _ in range(40):
        yield {"setup": "series", "cmd": {"count": "series", "query": filters(rnd)}}
        yield {"setup": "series", "cmd": {"distinct": "series", "key": rnd.choice(["x", "m.sensor", "s", "m.site"]), "query": filters(rnd)}}
    groups = [{"_id": "$m.sensor", "n": {"$sum": 1}, "top": {"$max": "$x"}}, {"_id": {"$dateTrunc": {"date": "$t", "unit": "hour"}}, "a": {"$sum": "$x"}}, {"_id": None, "first": {"$min": "$t"}, "last": {"$max": "$t"}}, {"_id": "$s", "ids": {"$sum": "$_id"}}]
    for _ in range(70):
        yield {"setup": "series", "cmd": {"aggregate": "series", "pipeline": [{"$match": filters(rnd)}, {"$group": rnd.choice(groups)}, {"$sort": {"_id": 1}}], "cursor": {}}}
    for f in [{}, {"v": 3}, {"t": {"$gt": DATE(T0 + 10 ** 9)}}, {"w.z": 2}, {"w": 5}]:
        yield {"setup": "hourly", "cmd": {"aggregate": "hourly", "pipeline": [{"$match": f}, {"$sort": BYID}, ROW], "cursor": {}}}
        yield {"setup": "hourly", "cmd": {"aggregate": "hourly", "pipeline": [{"$match": f}, {"$unwind": "$w"}, {"$sort": {"t": 1, "w": 1}}, {"$limit": 9}, ROW], "cursor": {}}}
        yield {"setup": "hourly", "cmd": {"aggregate": "hourly", "pipeline": [{"$match": f}, {"$count": "n"}], "cursor": {}}}


def unpack(rnd):
    bucket = {"_id": 1, "control": {"version": 1, "min": {"t": DATE(0)}, "max": {"t": DATE(5)}}, "meta": {"a": 1}, "data": {"t": {"0": DATE(1), "1": DATE(5)}, "_id": {"0": 1, "1": 2}, "x": {"1": 7}, "y": {"0": [1], "1": {"k": 2}}}}
    for spec in [{"timeField": "t"}, {"timeField": "t", "metaField": "m"}, {"timeField": "t", "metaField": "m", "bucketMaxSpanSeconds": 3600}, {"timeField": "t", "exclude": ["x"], "bucketMaxSpanSeconds": 3600}, {"timeField": "t", "include": ["x", "t"], "bucketMaxSpanSeconds": 3600}, {"timeField": "t", "metaField": "m", "include": ["y"], "bucketMaxSpanSeconds": 3600}, {"timeField": "t", "metaField": "m", "exclude": ["m", "t"], "bucketMaxSpanSeconds": 3600}]:
        yield {"docs": [bucket], "cmd": {"aggregate": "w", "pipeline": [{"$_internalUnpackBucket": {"exclude": [], "bucketMaxSpanSeconds": 3600, **spec} if "include" not in spec else spec}, {"$sort": BYID}], "cursor": {}}, "after": False}


def writes(rnd):
    make = {"create": "w", "timeseries": {"timeField": "t", "metaField": "m"}}
    d = lambda i, s, m, **kw: {"_id": i, "t": DATE(T0 + s * 1000), "m": m, **kw}
    some = {"insert": "w", "documents": [d(1, 0, {"a": 1}, x=1), d(2, 70, {"a": 1}, x=2), d(3, 4000, {"a": 2}, x=3), d(4, 10, 5, x="s"), d(5, 20, {"b": 2, "a": 1})]}
    look = [{"aggregate": "w", "pipeline": [{"$sort": BYID}, ROW], "cursor": {}}]
    for c in [{"insert": "w", "documents": [{"_id": 9}, d(8, 1, 1)], "ordered": False}, {"insert": "w", "documents": [d(7, 5, {"a": 1}), d(8, 8, {"a": 1})]}, {"insert": "w", "documents": [d(7, 5, {"a": 1}), {"t": 5, "_id": 9}, d(10, 8, {"a": 1})], "ordered": False}]:
        yield {"docs": [], "pre": [make, some], "cmd": c, "then": look, "after": False}
    qs = [{"m.a": 1}, {"m": 5}, {"x": 1}, {}, {"m.a": {"$gt": 1}}, {"$or": [{"m.a": 2}, {"m": 5}]}, {"$and": [{"m.a": 1}, {"x": 1}]}, {"t": DATE(T0)}, {"m": {"a": 1}}, {"m.b": {"$exists": True}}]
    for q in qs:
        for limit in (0, 1):
            yield {"docs": [], "pre": [make, some], "cmd": {"delete": "w", "deletes": [{"q": q, "limit": limit}]}, "then": look, "after": False}
        for u in [{"$set": {"m.a": 9}}, {"$set": {"m": 1}}, {"$set": {"x": 5}}, {"$unset": {"m.b": 1}}, {"$inc": {"m.a": 1}}, [{"$set": {"m": 5}}], {"m": 5}]:
            if (q in ({"m": 5}, {"$or": [{"m.a": 2}, {"m": 5}]}, {}) and "$inc" in u) or (q == {} and "m.a" in str(u)):
                continue
            for kw in [{"multi": True}, {}, {"multi": True, "upsert": True}]:
                if rnd.random() < .5 or kw == {"multi": True}:
                    yield {"docs": [], "pre": [make, some], "cmd": {"update": "w", "updates": [{"q": q, "u": u, **kw}]}, "then": look, "after": False}
    for c in [{"drop": "w"}, {"validate": "w"}, {"create": "w"}, make, {"listCollections": 1, "filter": {"name": "w"}}, {"listCollections": 1, "filter": {"name": "w"}, "nameOnly": True}]:
        yield {"docs": [], "pre": [make, some], "cmd": c, "after": False}


def definitions(rnd):
    lists = [{"listCollections": 1, "filter": {"name": {"$in": ["w", "system.buckets.w"]}}}]
    for o in [{"timeField": "t", "granularity": "x"}, {"timeField": "t", "granularity": "minutes"}, {"timeField": "t", "granularity": "hours", "metaField": "m"}, {"timeField": "t.a"}, {"timeField": "t", "metaField": "t"}, {"timeField": "t", "metaField": "_id"}, {}, {"timeField": "t", "bucketMaxSpanSeconds": 5}, {"timeField": "t", "bucketMaxSpanSeconds": 3600}, {"timeField": "t", "bucketMaxSpanSeconds": 86400, "granularity": "minutes"}, {"timeField": "t", "x": 1}, {"timeField": "t", "metaField": "m.x"}, {"timeField": "$t"}, {"timeField": 5}, {"timeField": "t", "metaField": 5}, {"timeField": "t", "granularity": 5}]:
        yield {"docs": [], "cmd": {"create": "w", "timeseries": o}, "after": False}
    for o in [{"capped": True, "size": 1000}, {"viewOn": "x"}, {"clusteredIndex": {"key": {"_id": 1}, "unique": True}}, {"collation": {"locale": "fr"}}, {"validator": {"a": 1}}, {"expireAfterSeconds": L(100)}, {"expireAfterSeconds": -1}, {"validationLevel": "off"}]:
        yield {"docs": [], "cmd": {"create": "w", "timeseries": {"timeField": "t"}, **o}, "after": False}


def changes(rnd):
    make = {"create": "w", "timeseries": {"timeField": "t", "metaField": "m"}}
    look = [{"listCollections": 1, "filter": {"name": {"$in": ["w", "system.buckets.w"]}}}]
    mods = [{"timeseries": {"granularity": g}} for g in ("seconds", "minutes", "hours", "x", 5)]
    mods += [{"timeseries": {}}, {"timeseries": {"a": 1}}, {"timeseries": 1}, {"expireAfterSeconds": 100}, {"expireAfterSeconds": "off"}, {"expireAfterSeconds": "x"}, {"expireAfterSeconds": -1}, {"expireAfterSeconds": L(2 ** 40)}, {"validator": {}}, {"validationLevel": "off"}, {"validationAction": "warn"}, {"viewOn": "x"}, {"pipeline": []}, {"changeStreamPreAndPostImages": {"enabled": True}}, {"index": {"name": "nope", "hidden": True}}, {"dryRun": True}, {"a": 1}]
    for m in mods:
        yield {"docs": [], "pre": [make], "cmd": {"collMod": "w", **m}, "then": look, "after": False}
    for first in ("minutes", "hours"):
        for then in ("seconds", "minutes", "hours"):
            yield {"docs": [], "pre": [make, {"collMod": "w", "timeseries": {"granularity": first}}], "cmd": {"collMod": "w", "timeseries": {"granularity": then}}, "then": look, "after": False}
    # Measurements before and after a change.
    d = lambda i, s: {"_id": i, "t": DATE(T0 + s * 1000), "m": i % 2}
    for g in ("minutes", "hours"):
        wide = {"collMod": "w", "timeseries": {"granularity": g}}
        for f in [{"t": {"$gte": DATE(T0 + 5000_000)}}, {"t": {"$lt": DATE(T0 + 5000_000)}}, {"m": 1, "t": DATE(T0 + 9000_000)}, {"t": {"$in": [DATE(T0), DATE(T0 + 100_000_000)]}}]:
            yield {"docs": [], "pre": [make, {"insert": "w", "documents": [d(1, 0), d(2, 4000), d(3, 9000)]}, wide, {"insert": "w", "documents": [d(4, 4500), d(5, 9000), d(6, 100_000)]}], "cmd": {"aggregate": "w", "pipeline": [{"$match": f}, {"$sort": BYID}, ROW], "cursor": {}}, "after": False}
    for other in [{"create": "w"}, {"create": "w", "viewOn": "p", "pipeline": []}]:
        yield {"docs": [], "pre": [other], "cmd": {"collMod": "w", "timeseries": {"granularity": "hours"}}, "after": False}


def indexes(rnd):
    make = {"create": "w", "timeseries": {"timeField": "t"}}
    meta = {"create": "w", "timeseries": {"timeField": "t", "metaField": "m"}}
    for i in [{"key": {"t": 1}}, {"key": {"t": -1}}, {"key": {"t": 1}, "hidden": True}, {"key": {"t": 1}, "sparse": True}]:
        yield {"docs": [], "pre": [make], "cmd": {"createIndexes": "w", "indexes": [{**i, "name": "i"}]}, "then": [{"listIndexes": "w"}, {"listIndexes": "system.buckets.w"}], "after": False}
    for i in [{"key": {"x": "text"}}, {"key": {"t": 1}, "expireAfterSeconds": 10}, {"key": {"x": 1}, "sparse": True}, {"key": {"m": 1}, "unique": True}, {"key": {"t": 1}, "unique": True}]:
        yield {"docs": [], "pre": [meta], "cmd": {"createIndexes": "w", "indexes": [{**i, "name": "i"}]}, "after": False}
    some = {"insert": "w", "documents": [{"_id": i, "t": DATE(T0 + i * 1000_000), "x": i} for i in range(9)]}
    index = {"createIndexes": "w", "indexes": [{"key": {"t": 1}, "name": "i"}]}
    for hint in ["i", {"t": 1}, {"t": -1}, {"x": 1}, "j", {"$natural": 1}]:
        for cmd in [{"find": "w", "filter": {"t": {"$gt": DATE(T0 + 3000_000)}}, "sort": BYID, "projection": {"_id": 1}}, {"aggregate": "w", "pipeline": [{"$match": {"t": {"$lt": DATE(T0 + 3000_000)}}}, {"$count": "n"}], "cursor": {}}]:
            yield {"docs": [], "pre": [make, some, index], "cmd": {**cmd, "hint": hint}, "after": False}
    for c in [{"dropIndexes": "w", "index": {"t": 1}}, {"dropIndexes": "w", "index": "i"}, {"dropIndexes": "w", "index": {"x": 1}}, {"drop": "system.buckets.w"}, {"convertToCapped": "w", "size": 1000}, {"findAndModify": "w", "query": {}, "remove": True}, {"renameCollection": "df.w", "to": "df.w2"}]:
        yield {"docs": [], "pre": [make, some, index], "cmd": c, "then": [{"listCollections": 1, "filter": {"name": {"$in": ["w", "system.buckets.w"]}}, "nameOnly": True}], "after": False}


def into_buckets(rnd):
    """Conditions, sorts and groups that may be asked of buckets."""
    at = lambda: DATE(T0 + rnd.randrange(-10, 130) * 97_000 + rnd.randrange(2) * 500)
    op = lambda: rnd.choice(["$gt", "$gte", "$lt", "$lte", "$eq"])
    expr = lambda: {op(): ["$t", at()] if rnd.random() < .6 else [at(), "$t"]}
    leaf = [lambda: {"t": {op(): at()}}, lambda: {"t": {op(): at(), "$ne": at()}}, lambda: {"t": {"$in": [at(), at(), at()]}}, lambda: {"t": {"$nin": [at()]}}, lambda: {"t": {"$not": {op(): at()}}}, lambda: {"$nor": [{"t": {op(): at()}}, {"m.sensor": 1}]}, lambda: {"$expr": expr()}, lambda: {"$expr": {"$and": [expr(), expr()]}}, lambda: {"$expr": {"$or": [expr(), expr()]}}, lambda: {"m.sensor": {"$in": [1, 3]}}, lambda: {"m": {"$exists": rnd.choice([True, False])}}, lambda: {"m.nothing": None}, lambda: {"m.site": {"$regex": "^a"}}, lambda: {"t": {"$type": "date"}}, lambda: {"t": {"$gt": 5}}, lambda: {"t": None}, lambda: {"m.sensor": {"$mod": [2, 1]}}, lambda: {"$or": [{"m.sensor": 1}, {"t": {op(): at()}}]}, lambda: {"$or": [{"m.sensor": 1}, {"m.site": "b"}]}, lambda: {"$and": [{"t": {op(): at()}}, {"$or": [{"x": 3}, {"m.sensor": 0}]}]}, lambda: {"$comment": "c"}]
    for _ in range(260):
        f = {"$and": [rnd.choice(leaf)() for _ in range(rnd.randrange(1, 4))]}
        yield {"setup": "series", "cmd": {"aggregate": "series", "pipeline": [{"$match": f}, {"$sort": BYID}, {"$replaceWith": {"_id": "$_id", "x": "$x"}}], "cursor": {}}}
    tails = [[{"$group": {"_id": "$m.sensor", "n": {"$sum": 1}}}, {"$sort": BYID}], [{"$count": "n"}], [{"$sort": {"m": -1}}, {"$group": {"_id": None, "all": {"$push": "$m.sensor"}}}], [{"$sort": {"m.sensor": 1}}, {"$limit": 7}, {"$project": {"_id": 0, "m.sensor": 1}}], [{"$project": {"m": 1}}, {"$match": {"m.site": "a"}}, {"$sort": BYID}, {"$replaceWith": {"_id": "$_id", "m": "$m"}}], [{"$addFields": {"k": "$x"}}, {"$match": {"m.sensor": 2, "t": {"$gt": at()}}}, {"$sort": BYID}, {"$project": {"k": 1}}], [{"$match": {"t": {"$lte": at()}}}, {"$unwind": "$o.q"}, {"$group": {"_id": "$o.q", "n": {"$sum": 1}}}, {"$sort": BYID}], [{"$set": {"m": 5}}, {"$match": {"m": 5}}, {"$count": "n"}], [{"$unset": "m"}, {"$match": {"m": None}}, {"$count": "n"}], [{"$lookup": {"from": "series", "localField": "m.sensor", "foreignField": "_id", "as": "l"}}, {"$match": {"m.sensor": 1}}, {"$sort": BYID}, {"$project": {"l._id": 1}}]]
    for tail in tails:
        for _ in range(6):
            yield {"setup": "series", "cmd": {"aggregate": "series", "pipeline": [{"$match": rnd.choice(leaf)()}, *tail], "cursor": {}}}


TOPICS = {"ts.reads": reads, "ts.unpack": unpack, "ts.writes": writes, "ts.definitions": definitions, "ts.changes": changes, "ts.indexes": indexes, "ts.into_buckets": into_buckets}
