"""Arguments of collection commands by every type and at their ends: what is refused, with which code, and which of two mistakes is told."""
from .data import D, L
from ejson import BIN, DATE, INF, MAXKEY, MINKEY, NAN, NINF, OID, RE, TS, UNDEF

LC = [{"listCollections": 1, "filter": {"name": "w"}}]
VALUES = [None, UNDEF, True, False, 0, 1, -1, 2, L(2**31), L(2**63 - 1), L(-(2**63)), 0.5, 1.5, -0.0, NAN, INF, NINF, D("1.5"), D("0.5"), D("NaN"), D("1E+40"), "", "x", "$a", "off", {}, {"a": 1}, [], [1], [{}], MINKEY, MAXKEY, RE("a", "i"), DATE(0), TS(1, 1), OID(1), BIN(b"ab")]
CLUSTERED = {"key": {"_id": 1}, "unique": True}
UUID = BIN(bytes(range(16)), 4)


def put(base, path, v):
    """`base` with the value at a dotted path."""
    head, _, rest = path.partition(".")
    return {**base, head: put(base.get(head, {}), rest, v) if rest else v}


def create(rnd):
    base = {"create": "w"}
    series = {**base, "timeseries": {"timeField": "t"}}
    encrypted = {**base, "encryptedFields": {"fields": []}}
    sweeps = [(base, f) for f in ("capped", "size", "max", "autoIndexId", "idIndex", "temp", "flags", "uuid", "v", "foo", "validator", "validationLevel", "validationAction", "viewOn", "pipeline", "collation", "storageEngine", "indexOptionDefaults", "clusteredIndex", "expireAfterSeconds", "changeStreamPreAndPostImages", "timeseries")]
    sweeps += [({**base, "capped": True, "size": 4096}, "max"), ({**base, "capped": True}, "size")]
    sweeps += [({**base, "clusteredIndex": CLUSTERED}, f) for f in ("clusteredIndex.key", "clusteredIndex.unique", "clusteredIndex.v", "clusteredIndex.foo", "expireAfterSeconds", "size", "max")]
    sweeps += [(series, f) for f in ("timeseries.timeField", "timeseries.metaField", "timeseries.granularity", "timeseries.foo", "capped", "autoIndexId", "clusteredIndex", "flags", "expireAfterSeconds")]
    sweeps += [({**base, "collation": {"locale": "en"}}, "collation." + f) for f in ("locale", "strength", "caseLevel", "caseFirst", "alternate", "maxVariable", "normalization", "version", "foo")]
    sweeps += [(base, "changeStreamPreAndPostImages.enabled"), (base, "indexOptionDefaults.storageEngine"), (base, "storageEngine.wiredTiger"), (base, "storageEngine.wiredTiger.configString"), (base, "storageEngine.foo"), (encrypted, "encryptedFields.foo"), (encrypted, "encryptedFields.escCollection")]
    sweeps += [({**base, "idIndex": {"key": {"_id": 1}, "name": "_id_"}}, "idIndex." + f) for f in ("key", "unique", "sparse", "hidden", "foo")]
    for b, f in sweeps:
        for v in VALUES:
            if f == "encryptedFields.escCollection" and (v is None or v == UNDEF or isinstance(v, str)):
                continue  # an encrypted collection would be made
            if f in ("clusteredIndex.key", "storageEngine.wiredTiger.configString") and rnd.random() < .5:
                continue
            if f == "storageEngine.wiredTiger.configString" and isinstance(v, str) and v:
                continue  # the text has a time in it
            yield {"cmd": put(b, f, v), "then": LC}
    for more in ({"capped": True, "size": 100}, {"autoIndexId": True}, {"autoIndexId": False}, {"idIndex": {"key": {"_id": 1}, "name": "_id_"}}, {"validator": {"a": 1}}, {"clusteredIndex": True}, {"clusteredIndex": CLUSTERED}, {"changeStreamPreAndPostImages": {"enabled": True}}, {"size": 100}, {"max": 5}, {"flags": 1}, {"expireAfterSeconds": 5}, {"collation": {"locale": "fr"}}):
        for b in (series, {**base, "viewOn": "src"}, {**base, "viewOn": "src", "pipeline": []}, {**base, "clusteredIndex": CLUSTERED}, {**base, "clusteredIndex": CLUSTERED, "expireAfterSeconds": 5}, {**base, "capped": True, "size": 4096}):
            yield {"cmd": {**b, **more}, "then": LC}
    for config in ({"fields": [{"path": "a", "keyId": UUID, "bsonType": "string"}] * 2}, {"fields": [{"path": "a", "keyId": UUID, "bsonType": "x"}]}, {"fields": [{"path": "a", "keyId": UUID, "bsonType": "double", "queries": {"queryType": "equality"}}]}, {"fields": [{"path": "a", "keyId": 5}]}, {"fields": [5]}, {"fields": [{"path": "a", "keyId": UUID, "queries": 5}]}, {"fields": [{"foo": 1}]}, {"fields": 5}):
        yield {"cmd": {**base, "encryptedFields": config}}
    for more in ({"capped": True, "size": 100}, {"viewOn": "src"}, {"validationAction": "warn"}, {"validationLevel": "off"}):
        yield {"cmd": {**encrypted, **more}}
    for v in ({"$sampleRate": 0.5}, {"$expr": {"$rand": {}}}, {"$where": "1"}, {"a": {"$near": [1, 1]}}):
        yield {"cmd": {**base, "validator": v}}
    for on, p in (("src", [{"$lookup": {"from": "w", "as": "y", "pipeline": []}}]), ("src", [{"$unionWith": "w"}]), ("src", [{"$graphLookup": {"from": "w", "startWith": 1, "connectFromField": "a", "connectToField": "b", "as": "c"}}]), ("src", [{"$changeStream": {}}]), ("src", [{"$currentOp": {}}]), ("src", [5]), ("$a", []), (".a", [])):
        yield {"cmd": {**base, "viewOn": on, "pipeline": p}, "then": LC}
    for name in ("system.views", "system.js", "system.profile", "system.foo"):
        yield {"cmd": {"create": name, "viewOn": "src"}}
    wrong = [("capped", "x"), ("size", 0), ("max", 5), ("validator", {"$foo": 1}), ("validationLevel", "x"), ("viewOn", ""), ("pipeline", 5), ("storageEngine", {"foo": {}}), ("timeseries", {}), ("timeseries", {"timeField": "a.b"}), ("clusteredIndex", {"key": {"a": 1}, "unique": True}), ("expireAfterSeconds", -1), ("changeStreamPreAndPostImages", 5), ("idIndex", {"key": {"a": 1}, "name": "x"}), ("flags", "x"), ("temp", True), ("foo", 1), ("writeConcern", 5), ("readConcern", {"level": "majority"}), ("maxTimeMS", "x")]
    for f, v in wrong:
        for g, w in wrong:
            if f != g and rnd.random() < .5:
                if {f, g} not in ({"writeConcern", "readConcern"}, {"storageEngine", "validator"}):
                    yield {"cmd": {**base, f: v, g: w}}


def collmod(rnd):
    pre = [{"create": "w"}, {"createIndexes": "w", "indexes": [{"key": {"d": 1}, "name": "ttl", "expireAfterSeconds": 50}]}]
    for f in ("index", "validator", "validationLevel", "validationAction", "viewOn", "pipeline", "cappedSize", "cappedMax", "changeStreamPreAndPostImages", "expireAfterSeconds", "dryRun", "timeseries", "isTimeseriesNamespace", "foo", "index.name", "index.keyPattern", "index.expireAfterSeconds", "index.hidden", "index.unique", "index.prepareUnique", "index.foo", "timeseries.granularity", "timeseries.foo"):
        for v in VALUES:
            base = {"collMod": "w", "index": {"name": "ttl"}} if f.startswith("index.") else {"collMod": "w"}
            if rnd.random() < .6:
                yield {"pre": pre, "cmd": put(base, f, v), "then": LC + [{"listIndexes": "w"}]}
            if rnd.random() < .3:
                yield {"before": [{"drop": "nosuch"}], "cmd": put({**base, "collMod": "nosuch"}, f, v)}


def others(rnd):
    for v in VALUES:
        yield {"db": "df_other", "cmd": {"dropDatabase": v}}
        for f in ("w", "j", "wtimeout", "fsync", "provenance", "foo"):
            if f != "wtimeout" or v not in (1, 2, D("1.5"), 1.5):  # how long the write takes is nobody's promise
                yield {"docs": [], "pre": [{"create": "w"}], "cmd": {"drop": "w", "writeConcern": {f: v}}}
        yield {"docs": [], "pre": [{"create": "w"}], "cmd": {"drop": "w", "writeConcern": v}}
        for f in ("provenance", "level", "afterOpTime"):
            yield {"docs": [], "pre": [{"create": "w"}], "cmd": {"drop": "w", "readConcern": {f: v}}}
        for f in ("mayBypassWriteBlocking", "databaseVersion", "apiVersion", "help", "collectionUUID", "maxTimeMS", "foo", ""):
            if f != "maxTimeMS" or v not in (1, 2, D("1.5"), 1.5):
                yield {"docs": [], "pre": [{"create": "w"}], "cmd": {"drop": "w", f: v}}
        for f in ("nameOnly", "authorizedCollections", "filter", "includePendingDrops", "foo"):
            yield {"cmd": {"listCollections": 1, f: v} if f == "filter" else {"listCollections": 1, "filter": {"name": "nosuch"}, f: v}} if f != "filter" or v not in (None, UNDEF, {}) else {"cmd": {"listCollections": 1, "filter": {"a": 1}}}
        for f in ("nameOnly", "authorizedDatabases", "foo"):
            yield {"db": "admin", "cmd": {"listDatabases": 1, "filter": {"name": "nosuch"}, f: v}}
        for f in ("renameCollection", "to", "dropTarget", "stayTemp", "foo"):
            base = {"renameCollection": "df.w", "to": "df.w2"}
            yield {"db": "admin", "before": [{"drop": "w2"}], "pre": [{"create": "w"}], "cmd": {**base, f: v}}
    for f in ({"$where": "1"}, {"$text": {"$search": "x"}}, {"name": {"$near": [1, 1]}}):
        yield {"cmd": {"listCollections": 1, "filter": f}}
        yield {"db": "admin", "cmd": {"listDatabases": 1, "filter": f}}
    yield {"db": "admin", "before": [{"$db": "df2", "dropDatabase": 1}], "pre": [{"create": "w"}], "cmd": {"renameCollection": "df.w", "to": "df2.w", "dropTarget": UUID}}
    yield {"db": "admin", "before": [{"$db": "df2", "dropDatabase": 1}], "cmd": {"renameCollection": "df.nosuch", "to": "df2.w"}}


SPECS = [
    {"key": 1, "foo": 1}, {"v": 3, "foo": 1}, {"name": 1, "foo": 1}, {"key": 1}, {"_id": 1}, {"_id": 1, "key": {"a": 1}, "name": "a"}, {"_id": 1, "key": {"_id": 1}, "name": "_id_"},
    {"key": {"$**": 1}, "wildcardProjection": {"x": None}, "v": 2147483648.0}, {"wildcardProjection": {"x": None}}, {"wildcardProjection": {}, "key": {"a": 1}}, {"wildcardProjection": {}, "key": {"$**": 1}},
    {"wildcardProjection": {"a": 1, "b": 0}, "key": {"$**": 1}}, {"wildcardProjection": {}, "v": 3}, {"v": 3, "wildcardProjection": {}}, {"wildcardProjection": 1, "key": 1}, {"wildcardProjection": {}, "weights": {}},
    {"weights": {}, "wildcardProjection": {}}, {"key": {"a.$**": 1}, "wildcardProjection": {}, "v": 3}, {"key": {"$**": 1}, "wildcardProjection": 1, "v": 3}, {"wildcardProjection": 1, "key": []},
    {"weights": {}, "v": 3}, {"weights": {}, "v": 1.5}, {"weights": {}}, {"weights": 1}, {"weights": None}, {"weights": {}, "key": {"a": 1}}, {"weights": 1, "key": {"a": 1}, "name": "x"}, {"weights": {}, "foo": 1},
    {"weights": {}, "key": {"a": 1}, "name": "x"}, {"weights": [], "key": {"a": "text"}, "name": "x"}, {"weights": "x", "key": {"a": "text"}, "name": "x"}, {"weights": "$**", "key": {"a": "text"}, "name": "x"},
    {"weights": {}, "key": {"a": 1}, "name": "n", "v": 1, "collation": {"locale": "en"}}, {"unique": True, "prepareUnique": True}, {"key": {"a": 1}, "name": "n", "v": 1, "collation": {"locale": "en"}, "unique": True, "prepareUnique": True},
    {"key": {"s": 1}, "name": "a", "unique": True, "prepareUnique": True, "wildcardProjection": {}}, {"originalSpec": {}, "collation": {}}, {"originalSpec": {"a": 1}}, {"originalSpec": {"a": 1}, "key": {"a": 1}, "name": "o"},
    {"dropDups": "x", "v": 3}, {"clustered": "x", "foo": 3}, {"clustered": 1, "sparse": 3}, {"clustered": 1, "_id": 3}, {"clustered": True, "key": {"a": 1}, "name": "n", "weights": {}},
    {"clustered": True, "unique": True, "key": {"_id": 1}, "name": "n", "expireAfterSeconds": 5}, {"clustered": True, "unique": True, "key": {"_id": 1}, "name": "n", "ns": 1}, {"clustered": True, "unique": True, "key": {"_id": 1}, "name": "n", "v": 2},
    {"partialFilterExpression": {"a..b": {"$bitsAllClear": [INF]}, "$expr": "$p"}}, {"partialFilterExpression": {"$expr": "$p", "a": {"$size": "x"}}}, {"partialFilterExpression": {"$or": [{"a": {"$size": "x"}}, {"$expr": 1}]}},
    {"partialFilterExpression": {"$or": [{"$expr": 1}, {"a": {"$size": "x"}}]}}, {"partialFilterExpression": {"a": {"$elemMatch": "a"}, "$jsonSchema": 1}},
] + [{"v": D(v)} for v in ["-1E-6176", "1E-100", "0", "0.5", "2", "3", "-0", "2.0000000000000000001", "NaN", "1E+40"]] + [{"v": D("2.0"), "key": {"a": 1}, "name": "a"}]

SERIES = [
    {"key": 1}, {"key": {}, "name": 1}, {"key": []}, {"key": None}, {"partialFilterExpression": 1, "key": 1}, {"partialFilterExpression": 1, "collation": {}}, {"unique": True, "key": 1}, {"key": 1, "unique": True},
    {"unique": True, "collation": {}, "partialFilterExpression": {"a": 1}}, {"sparse": True, "collation": {}, "partialFilterExpression": {"a": 1}}, {"foo": 1, "collation": {}, "partialFilterExpression": {"a": 1}},
    {"partialFilterExpression": {"a": 1}, "unique": True, "collation": {}}, {"collation": {}}, {"key": {"a": 1}, "name": "n", "partialFilterExpression": {"m": 1}, "collation": {"locale": "en"}},
    {"sparse": False, "key": {"a": 1}, "name": "z"}, {"sparse": True, "key": 1}, {"sparse": True, "key": {}}, {"sparse": True, "key": {"a": "text"}}, {"expireAfterSeconds": True, "key": 1},
    {"key": {"a": "text"}, "unique": True}, {"key": {"a": 1}, "name": "o", "originalSpec": {}},
] + [{"partialFilterExpression": f} for f in [{"$where": "a"}, {"$text": {"$search": "a"}}, {"a": {"$near": [0, 0]}}, {"$expr": 1}, {"$expr": {"$eq": ["$m", 1]}}, {"$expr": {"$eq": ["$a", 1]}}, {"$expr": {"$foo": 1}}, {"$jsonSchema": 1}, {"a": {"$foo": 1}}, {"m": {"$foo": 1}}, {"$and": []}, {"$and": 1}, {"$foo": 1}, {"$comment": "a"}, [], {"a": {"$size": 1}}, {"$alwaysTrue": 1}]]


def mistakes(rnd):
    """Which of two mistakes in a definition is told, on a collection, a time series and a view."""
    kinds = [{"create": "w"}, {"create": "w", "timeseries": {"timeField": "t", "metaField": "m"}}, {"create": "w", "viewOn": "src"}]
    listed = [{"listIndexes": "w"}]
    for kind, specs in zip(kinds, [SPECS, SERIES, [{"key": {"a": 1}}, {"key": {"a": 1}, "name": "*"}, {"key": {"_id": -1}, "name": "n"}, {"key": {"a": 1}, "name": "a", "expireAfterSeconds": -1}, {"key": {"a": 1}, "name": ""}]]):
        for spec in specs:
            yield {"pre": [kind], "cmd": {"createIndexes": "w", "indexes": [spec]}, "after": False, "then": listed if "key" in spec and kind is kinds[0] else []}
    for kind in kinds:
        for spec in [{"key": {"a": 1}, "name": "x", "unique": True}, {"key": {"a": 1}, "name": "x", "expireAfterSeconds": -1}, {"key": 1}, {"key": {"a": 1}, "name": ""}]:
            yield {"pre": [kind], "cmd": {"createIndexes": "w", "indexes": [spec], "commitQuorum": "nope"}, "after": False}
    for more in [{}, {"timeseries": {"granularity": "hours"}}, {"index": {"name": "zz", "hidden": True}}, {"validator": {"a": {"$within": {}}}}, {"validator": {"$foo": 1}, "validationLevel": "off"}, {"cappedSize": 1}, {"expireAfterSeconds": 100}]:
        yield {"pre": [kinds[1]], "cmd": {"collMod": "w", **more}, "after": False}
    for field in [{"bsonType": "a"}, {"bsonType": "a", "x": 1}, {"x": 1, "bsonType": "a"}, {"bsonType": "number"}, {"bsonType": 1}, {"bsonType": "double"}, {"bsonType": "a", "path": 1}, {"path": 1, "bsonType": "a"}]:
        yield {"cmd": {"create": "w", "encryptedFields": {"fields": [field]}}}
        yield {"cmd": {"create": "w", "encryptedFields": {"fields": [field], "foo": 1}}}
    for spec in [{"_id": 1}, {"v": 3, "foo": 1}, {"_id": 5, "key": {"_id": 1}, "name": "_id_"}]:
        yield {"cmd": {"create": "w", "idIndex": spec}, "then": listed}
    for stage in [{"$merge": "wv"}, {"$out": "wv"}]:
        for first in [{"$match": {"a": 1}}, {"$project": {"a": {"$divide": [1, {"$subtract": ["$_id", "$_id"]}]}}}, {"$project": {"a": 1}}]:
            yield {"docs": [{"_id": 1}], "before": [{"drop": "wv"}, {"create": "wv", "viewOn": "w"}], "cmd": {"aggregate": "w", "pipeline": [first, stage], "cursor": {}}}
    for scale in [L(9007199254740993), L(2147483648), L(-4294967295), L(-1), 1e10, 0, -1]:
        yield {"cmd": {"dbStats": 1, "scale": scale}, "shape": True}
    for name in ["stopRecordingTraffic", "startRecordingTraffic", "reapLogicalSessionCacheNow"]:
        yield {"cmd": {name: 1}}
        yield {"db": "admin", "cmd": {name: 1}}
    for more in [{"x": 1}, {"x": 1, "action": "disable"}, {"action": "disable", "x": 1}, {"action": "zzz", "x": 1}, {"x": 1, "action": 1}, {"action": None}, {"action": 1, "x": 1}]:
        yield {"db": "admin", "cmd": {"setFreeMonitoring": 1, **more}}
    for more in [{"changeStreamOptions": {"preAndPostImages": {"expireAfterSeconds": "off"}}}, {"foo": 1}, {}]:
        yield {"db": "admin", "cmd": {"setClusterParameter": more, "writeConcern": {"w": 1}}}
    for file in [{"$a": 1}, {"$in": 1}, {"$gt": 1}, {"a": 1}, {"a": {"$b": 1}}, None, 5]:
        yield {"cmd": {"filemd5": file}}


def orders(rnd):
    """What a definition is refused for first, and what a refused view leaves behind."""
    view, there = {"viewOn": "z"}, [{"$db": "df2", "dropDatabase": 1}, {"$db": "df2", "create": "y"}]
    names = [{"$db": "df2", "listCollections": 1, "nameOnly": True}]
    wrong = [{"clusteredIndex": CLUSTERED}, {"changeStreamPreAndPostImages": {"enabled": True}}, {"storageEngine": {"foo": {}}}, {"indexOptionDefaults": {"storageEngine": {"foo": {}}}}, {"collation": {"locale": "xx"}}, {"expireAfterSeconds": 3}, {"autoIndexId": False},
             {"pipeline": [{"$foo": 1}]}, {"viewOn": "a$b"}, {"viewOn": ".x"}, {"viewOn": ""}, {"viewOn": "q"}, {}]
    wrong += [{"validator": v} for v in ({"$text": {}}, {"a": {"$near": [1, 1]}}, {"$where": "1"}, {"$expr": {"$foo": 1}}, {"$bar": 1}, {"a": 1})]
    for more in wrong:
        for name in ("y", "q"):
            yield {"db": "df2", "before": there, "cmd": {"create": name, **view, **more}, "after": False, "then": names}
    for name in ("a$b", ".x", "system.foo", "system.views", "x" * 256):
        for more in ({"autoIndexId": False}, {"storageEngine": {"foo": {}}}, {"clusteredIndex": {"key": {}, "unique": False}}, {"clusteredIndex": True}, {"expireAfterSeconds": -3, "clusteredIndex": CLUSTERED}, {"collation": {"locale": "xx"}}, view, {**view, "pipeline": [{"$foo": 1}]}, {**view, "changeStreamPreAndPostImages": {"enabled": True}}, {"timeseries": {"timeField": "a.b"}}):
            if name != "system.views" or "timeseries" not in more:
                yield {"db": "df2", "before": there, "cmd": {"create": name, **more}, "after": False}
    for key in ({}, {"_id": 1}, {"a": 1}):
        for version in ({}, {"v": 1}):
            yield {"cmd": {"create": "w", "clusteredIndex": {"key": key, "unique": False, **version}}}
    for on in (False, True):
        for more in ({"capped": True, "size": 10}, {"capped": True}, {"capped": True, "max": 3}, {"capped": True, "size": 10, "max": 2}, {"size": 10}, {"max": 3}, {"expireAfterSeconds": 5}, {"expireAfterSeconds": -5}, {"capped": True, "expireAfterSeconds": 5}, {}):
            yield {"cmd": {"create": "w", "clusteredIndex": on, **more}, "after": False}
    yield {"pre": [{"create": "w", "timeseries": {"timeField": "t"}}], "cmd": {"createIndexes": "w", "indexes": [{"key": {"a": 1}, "name": "a"}], "isTimeseriesNamespace": True, "writeConcern": {"j": "x"}}, "after": False}
    kinds = [{"create": "w"}, {"create": "w", "viewOn": "src"}]
    for kind in kinds:
        for more in ({"dryRun": False}, {"dryRun": True}, {"isTimeseriesNamespace": False}, {"isTimeseriesNamespace": True}, {"dryRun": False, "viewOn": "src"}, {"index": {"unique": True}}, {"index": {"name": "a", "unique": True}}, {"index": {"name": "a", "keyPattern": {}, "unique": True}}, {"index": {"name": "a", "expireAfterSeconds": -2.5}}, {"index": {"keyPattern": {"a": 1}, "expireAfterSeconds": -2.5}}, {"index": {"name": "a", "expireAfterSeconds": 1e19}},
                     {"pipeline": [], "validator": {"u": {"$geoWithin": {}}}}, {"viewOn": "z", "validator": {"$text": {}}}, {"pipeline": [], "expireAfterSeconds": 10}, {"pipeline": [], "timeseries": {}}):
            yield {"pre": [kind], "cmd": {"collMod": "w", **more}, "after": False}
    for on in ("a$b", ".x", "a\0b", "", "w"):
        for more in ({}, {"pipeline": []}, {"pipeline": [{"$foo": 1}]}):
            yield {"pre": [kinds[1]], "cmd": {"collMod": "w", "viewOn": on, **more}, "after": False}
    for key in ({"_id": 1}, {"_id": -1}, {"a": 1}, {"_id": "hashed"}):
        for more in ({}, {"storageEngine": {}}, {"hidden": True}, {"clustered": True}, {"clustered": True, "unique": True}, {"v": 1}):
            yield {"docs": [], "cmd": {"createIndexes": "w", "indexes": [{"key": key, "name": "*", **more}]}, "after": False}
    for n in (-2, -1.5, 0.5, 1.5, 2, -1e300, D("0.5"), D("0.6"), D("1.4"), D("1.5"), D("-0.6"), D("-1.5"), D("1.0"), D("1E+40")):
        yield {"docs": [], "cmd": {"createIndexes": "w", "indexes": [{"key": {"_id": n}, "name": "a"}]}, "after": False, "then": [{"listIndexes": "w"}]}
    for n in (D("-1"), D("2"), D("-1E+40"), D("NaN"), D("1E-4000")):
        for field in ("a", "$**", "a.$**"):
            yield {"docs": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}], "cmd": {"createIndexes": "w", "indexes": [{"key": {field: n}, "name": "a"}]}, "after": False, "then": [{"listIndexes": "w"}] + ([{"find": "w", "hint": "a", "projection": {"_id": 1}}] if field == "a" else [])}
        for field in ("o.x", "t", "m"):
            yield {"pre": [{"create": "w", "timeseries": {"timeField": "t", "metaField": "m"}}], "cmd": {"createIndexes": "w", "indexes": [{"key": {field: n}, "name": "a", "unique": True}]}, "after": False}
    for unique in (True, False):
        yield {"before": [{"drop": "nosuch"}], "cmd": {"collMod": "nosuch", "index": {"name": "a", "unique": unique}}, "after": False}
    listed = [{"listIndexes": "w"}]
    for engine in ({"a": 1}, {"a": {}}, {"wiredTiger": {}}, {"wiredTiger": 1}, {}, {"wiredTiger": {"configString": 1}}, {"wiredTiger": {"foo": 1}}, {"a.b": "a"}, {"wiredTiger": {}, "b": {}}, 1):
        yield {"docs": [], "cmd": {"createIndexes": "w", "indexes": [{"key": {"p": 1}, "name": "a", "storageEngine": engine}]}, "after": False, "then": listed}
    for key in ({"_id": 1}, {"_id": -1}, {"_id": 1.0}):
        for more in ({"max": 1}, {"unique": True}, {"sparse": True}, {"hidden": True}, {"expireAfterSeconds": 1}, {"bits": 2}, {"v": 1}, {"partialFilterExpression": {"a": 1}}, {"background": True}, {"storageEngine": {}}, {"clustered": True}, {"bucketSize": 1}):
            yield {"docs": [], "cmd": {"createIndexes": "w", "indexes": [{"key": key, "name": "", **more}]}, "after": False}
    yield {"before": [{"drop": "w2"}], "cmd": {"createIndexes": "w2", "indexes": [{"key": {"_id": 1}, "name": "_id_"}]}, "after": False}
    for capped in ({"create": "w", "capped": True, "size": 1000}, {"create": "w"}):
        yield {"pre": [capped], "cmd": {"createIndexes": "w", "indexes": [{"key": {"g": 1}, "name": "a", "expireAfterSeconds": 1}]}, "after": False}
    for n in (D("NaN"), D("0"), D("Infinity"), NAN, 0.0):
        yield {"docs": [], "cmd": {"createIndexes": "w", "indexes": [{"key": {"a": n}, "name": "a"}]}, "after": False}
    numbers = [D("2.7"), D("-2.7"), D("-9.999999999999999999999999999999999E+6144"), D("2.5"), D("3"), 2.7, 3.0, 1e300, NAN, L(3), L(2**40), D("NaN"), -2.5, 1]
    for option in ("2dsphereIndexVersion", "textIndexVersion", "bits", "min", "max"):
        for n in numbers:
            yield {"docs": [], "cmd": {"createIndexes": "w", "indexes": [{"key": {"s": 1}, "name": "a", option: n}]}, "after": False, "then": listed}
    for kind, option in (("2dsphere", "2dsphereIndexVersion"), ("text", "textIndexVersion")):
        for n in numbers:
            yield {"docs": [], "cmd": {"createIndexes": "w", "indexes": [{"key": {"s": kind}, "name": "a", option: n}]}, "after": False, "then": listed}
    for more in ({}, {"cursor": 1}, {"foo": 1}):
        yield {"db": "admin", "cmd": {"getLog": 1, **more}}
        yield {"db": "admin", "cmd": {"logMessage": 1, **more}}
    for cursor in (1, None, "a", L(1)):
        for more in ({}, {"collection": "x"}, {"collection": ""}, {"collection": 1}, {"batchSize": -1}):
            if cursor != L(1) or more.get("collection") != "x":
                yield {"cmd": {"getMore": cursor, **more}}
    for source, to in (("local.x", "df2.y"), ("df.nosuch", "local.y"), ("df.nosuch", "df2.y"), ("df.system.foo", "df2.y"), ("df.nosuch", "df2.$y"), ("df.system.buckets.x", "df2.y"), ("df.nosuch", "df.nosuch")):
        for more in ({}, {"collectionUUID": UUID}, {"dropTarget": UUID}):
            yield {"db": "admin", "cmd": {"renameCollection": source, "to": to, **more}, "after": False}
    yield {"db": "admin", "pre": [{"create": "w"}], "cmd": {"renameCollection": "df.w", "to": "local.y"}, "after": False}
    for bounds in ([2, 2], [2, 3], [2, 4]):
        for docs in ([], [{"_id": 1}], [{"_id": 1, "b": 1}], [{"_id": 1, "b": 2}], [{"_id": 1, "b": 5}], [{"_id": 1, "m": 1}, {"_id": 2, "m": 2, "b": 3}], [{"_id": 1, "b": 1}, {"_id": 2, "b": 5}], [{"_id": 1, "m": 1, "b": 3}, {"_id": 2, "m": 2, "b": 4}]):
            for more in ({}, {"partitionByFields": ["m"]}):
                yield {"docs": docs, "cmd": {"aggregate": "w", "pipeline": [{"$densify": {"field": "b", "range": {"step": 1, "bounds": bounds}, **more}}], "cursor": {}}, "after": False}


TOPICS = {"ddl.args.orders": orders, "ddl.args.mistakes": mistakes, "ddl.args.create": create, "ddl.args.collmod": collmod, "ddl.args.others": others}
