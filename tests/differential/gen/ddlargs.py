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


TOPICS = {"ddl.args.create": create, "ddl.args.collmod": collmod, "ddl.args.others": others}
