"""Collections: create, collMod, rename, drop, views, capped, validators, clustered; their errors; generic command errors."""
from .data import D, L

LC = [{"listCollections": 1, "filter": {"name": "w"}}]


def create(rnd):
    opts = [{}, {"capped": True, "size": 100}, {"capped": True, "size": 5000, "max": 3}, {"capped": True}, {"capped": True, "size": 0}, {"capped": True, "size": -1}, {"capped": False, "size": 100}, {"size": 100}, {"max": 3}, {"capped": "x"}, {"capped": True, "size": "x"}, {"capped": True, "size": 4096.5}, {"capped": True, "size": L(2**50)}, {"capped": True, "size": 100, "max": L(2**31)}, {"capped": True, "size": 100, "max": -1},
            {"validator": {"a": {"$gt": 1}}}, {"validator": {"$jsonSchema": {"required": ["a"]}}}, {"validator": 5}, {"validator": {"$foo": 1}}, {"validator": {"a": {"$foo": 1}}}, {"validator": {}}, {"validator": {"$near": [1, 2]}}, {"validator": {"$text": {"$search": "x"}}}, {"validator": {"$where": "1"}}, {"validator": {"$expr": {"$eq": ["$a", "$b"]}}}, {"validationLevel": "off"}, {"validationLevel": "x"}, {"validationAction": "warn"}, {"validationAction": "x"}, {"validator": {"a": 1}, "validationLevel": "moderate", "validationAction": "warn"},
            {"collation": {"locale": "en"}}, {"collation": {"locale": "xx"}}, {"collation": {"locale": "simple"}}, {"viewOn": "src"}, {"viewOn": "src", "pipeline": []}, {"viewOn": "src", "pipeline": [{"$match": {"a": 1}}]}, {"viewOn": "src", "pipeline": [{"$out": "x"}]}, {"viewOn": "src", "pipeline": [{"$foo": 1}]}, {"viewOn": "src", "pipeline": 5}, {"viewOn": ""}, {"viewOn": 5}, {"pipeline": []}, {"viewOn": "w"}, {"viewOn": "src", "capped": True, "size": 100}, {"viewOn": "src", "collation": {"locale": "fr"}}, {"viewOn": "src", "validator": {}},
            {"clusteredIndex": {"key": {"_id": 1}, "unique": True}}, {"clusteredIndex": {"key": {"_id": 1}, "unique": True, "name": "cl"}}, {"clusteredIndex": {"key": {"a": 1}, "unique": True}}, {"clusteredIndex": {"key": {"_id": 1}, "unique": False}}, {"clusteredIndex": {"key": {"_id": 1}}}, {"clusteredIndex": {"key": {"_id": -1}, "unique": True}}, {"clusteredIndex": 5}, {"clusteredIndex": True}, {"clusteredIndex": {"key": {"_id": 1}, "unique": True}, "capped": True, "size": 100}, {"clusteredIndex": {"key": {"_id": 1}, "unique": True}, "expireAfterSeconds": 10}, {"expireAfterSeconds": 10},
            {"autoIndexId": False}, {"autoIndexId": True}, {"idIndex": {"key": {"_id": 1}, "name": "_id_"}}, {"idIndex": {"key": {"a": 1}, "name": "x"}}, {"storageEngine": {}}, {"storageEngine": {"wiredTiger": {}}}, {"indexOptionDefaults": {}}, {"indexOptionDefaults": {"storageEngine": {}}}, {"foo": 1}, {"flags": 1}, {"comment": "x"}, {"writeConcern": {"w": 1}}, {"changeStreamPreAndPostImages": {"enabled": True}}, {"changeStreamPreAndPostImages": {"enabled": False}}, {"changeStreamPreAndPostImages": {}}, {"changeStreamPreAndPostImages": {"enabled": True}, "viewOn": "src"}, {"temp": True}]
    for o in opts:
        yield {"before": [{"drop": "w2"}], "cmd": {"create": "w", **o}, "then": LC + [{"listIndexes": "w"}]}
    for n in ["", "$x", "a$b", ".x", "x.", "a..b", "system.foo", "system.views", "x" * 250, "x" * 252, "x" * 300, 5, None, "a b", "a\u0000b"]:
        yield {"cmd": {"create": n}, "then": [{"drop": n}]}
    yield {"docs": [{"_id": 1}], "cmd": {"create": "w"}}
    yield {"docs": [{"_id": 1}], "cmd": {"create": "w", "capped": True, "size": 100}}
    yield {"docs": [], "pre": [{"create": "w", "capped": True, "size": 100}], "cmd": {"create": "w", "capped": True, "size": 100}}
    yield {"docs": [], "pre": [{"create": "w", "collation": {"locale": "fr"}}], "cmd": {"create": "w", "collation": {"locale": "fr"}}, "then": LC}


def collmod(rnd):
    pre = [{"createIndexes": "w", "indexes": [{"key": {"a": 1}, "name": "i"}, {"key": {"d": 1}, "name": "ttl", "expireAfterSeconds": 50}, {"key": {"h": 1}, "name": "hid", "hidden": True}]}]
    docs = [{"_id": 1, "a": 1}, {"_id": 2, "a": 1}]
    for m in [{}, {"index": {"name": "i", "hidden": True}}, {"index": {"keyPattern": {"a": 1}, "hidden": True}}, {"index": {"name": "hid", "hidden": False}}, {"index": {"name": "hid", "hidden": True}}, {"index": {"name": "nope", "hidden": True}}, {"index": {"name": "_id_", "hidden": True}}, {"index": {"name": "ttl", "expireAfterSeconds": 60}}, {"index": {"name": "i", "expireAfterSeconds": 60}}, {"index": {"name": "ttl", "expireAfterSeconds": "x"}}, {"index": {"name": "ttl", "expireAfterSeconds": -5}}, {"index": {"name": "ttl"}}, {"index": {"expireAfterSeconds": 6}},
              {"index": 5}, {"index": {"name": "i", "foo": 1}}, {"index": {"name": "i", "keyPattern": {"a": 1}, "hidden": True}}, {"index": {"keyPattern": {"zz": 1}, "hidden": True}}, {"index": {"name": "i", "unique": True}}, {"index": {"name": "i", "prepareUnique": True}}, {"validator": {"a": {"$gt": 0}}}, {"validator": {}}, {"validator": 5}, {"validator": {"$foo": 1}}, {"validationLevel": "moderate"}, {"validationLevel": "x"}, {"validationAction": "warn"}, {"validationAction": "x"}, {"viewOn": "x", "pipeline": []}, {"pipeline": []}, {"foo": 1}, {"cappedSize": 1000}, {"cappedMax": 5}, {"expireAfterSeconds": 5}, {"changeStreamPreAndPostImages": {"enabled": True}}, {"dryRun": True}, {"index": {"name": "hid", "hidden": False, "expireAfterSeconds": 4}}, {"index": {"name": "ttl", "hidden": True, "expireAfterSeconds": 4}}]:
        yield {"docs": docs, "pre": pre, "cmd": {"collMod": "w", **m}, "then": LC + [{"listIndexes": "w"}]}
    yield {"cmd": {"collMod": "nosuch", "validator": {}}}
    yield {"cmd": {"collMod": 5}}
    yield {"docs": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}], "pre": pre + [{"collMod": "w", "index": {"name": "i", "prepareUnique": True}}], "cmd": {"collMod": "w", "index": {"name": "i", "unique": True}}, "then": [{"listIndexes": "w"}]}
    yield {"docs": docs, "pre": pre + [{"collMod": "w", "index": {"name": "i", "prepareUnique": True}}], "cmd": {"collMod": "w", "index": {"name": "i", "unique": True}}, "then": [{"listIndexes": "w"}]}
    yield {"docs": docs, "pre": pre + [{"collMod": "w", "index": {"name": "i", "prepareUnique": True}}], "cmd": {"insert": "w", "documents": [{"_id": 5, "a": 1}]}}
    for cap in [{"cappedSize": 5000}, {"cappedMax": 2}, {"cappedMax": -1}, {"cappedSize": 0}, {"cappedSize": "x"}, {"cappedSize": L(2**52)}]:
        yield {"pre": [{"create": "w", "capped": True, "size": 1000, "max": 10}], "cmd": {"collMod": "w", **cap}, "then": LC}


def rename_drop(rnd):
    docs = [{"_id": 1}]
    for f, t, kw in [("df.w", "df.w2", {}), ("df.w", "df.w", {}), ("df.w", "df.w3", {}), ("df.w", "df.w3", {"dropTarget": True}), ("df.nosuch", "df.w2", {}), ("df.w", "df", {}), ("df.w", "df.", {}), ("df.w", "df.$x", {}), ("df.w", "", {}), ("w", "df.w2", {}), ("df.w", 5, {}), ("df.w", "df.system.x", {}), ("df.w", "df2.w", {}), ("df.w", "df.w2", {"foo": 1}), ("df.w", "df.w2", {"dropTarget": "x"}), ("df.w", "df." + "x" * 252, {}), ("df.wv", "df.w2", {}), ("df.w", "df.wv", {})]:
        yield {"db": "admin", "before": [{"$db": "df2", "dropDatabase": 1}, {"drop": "w2"}, {"drop": "w3"}, {"drop": "wv"}, {"create": "wv", "viewOn": "src"}, {"insert": "w3", "documents": [{"_id": 7}]}], "docs": docs, "cmd": {"renameCollection": f, "to": t, **kw}}
    yield {"docs": docs, "cmd": {"renameCollection": "df.w", "to": "df.w2"}}
    yield {"docs": docs, "before": [{"drop": "w2"}], "pre": [{"createIndexes": "w", "indexes": [{"key": {"a": 1}, "name": "i"}]}], "cmd": {"drop": "w"}, "then": [{"drop": "w"}, {"listIndexes": "w"}]}
    yield {"docs": docs, "cmd": {"drop": "nosuch"}}
    yield {"docs": docs, "cmd": {"drop": 5}}
    yield {"docs": docs, "cmd": {"drop": ""}}
    yield {"docs": docs, "cmd": {"drop": "w", "foo": 1}}
    yield {"docs": docs, "cmd": {"drop": "w", "writeConcern": {"w": 1}}}
    yield {"db": "df_other", "docs": docs, "cmd": {"dropDatabase": 1}, "then": [{"ping": 1}]}
    yield {"db": "df_other", "cmd": {"dropDatabase": 2}}
    yield {"db": "df_other", "cmd": {"dropDatabase": 1, "foo": 1}}


def views(rnd):
    docs = [{"_id": i, "a": i % 3, "b": [i, i + 1], "c": "x%d" % i} for i in range(8)]
    pre = [{"create": "wv", "viewOn": "w", "pipeline": [{"$match": {"a": {"$gt": 0}}}, {"$project": {"a": 1, "b": 1}}]}, {"create": "wvv", "viewOn": "wv", "pipeline": [{"$addFields": {"k": {"$add": ["$a", 10]}}}]}]
    before = [{"drop": "wv"}, {"drop": "wvv"}]
    cmds = [{"find": "wv"}, {"find": "wv", "filter": {"_id": {"$lt": 5}}, "sort": {"_id": -1}}, {"find": "wv", "limit": 2, "skip": 1}, {"find": "wv", "projection": {"b": {"$slice": [0, 1]}}}, {"find": "wv", "projection": {"b": {"$slice": 1}}}, {"find": "wv", "projection": {"c": 1}}, {"find": "wvv"}, {"find": "wvv", "filter": {"k": 11}}, {"find": "wv", "filter": {"b": 2}, "projection": {"b.$": 1}}, {"find": "wv", "hint": "_id_"}, {"find": "wv", "hint": {"$natural": 1}}, {"find": "wv", "sort": {"$natural": 1}}, {"find": "wv", "min": {"_id": 1}, "hint": "_id_"},
            {"find": "wv", "returnKey": True}, {"find": "wv", "showRecordId": True}, {"find": "wv", "collation": {"locale": "en"}}, {"count": "wv"}, {"count": "wvv", "query": {"k": 12}}, {"distinct": "wv", "key": "a"}, {"distinct": "wvv", "key": "b"}, {"aggregate": "wv", "pipeline": [{"$group": {"_id": "$a", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}], "cursor": {}}, {"aggregate": "wvv", "pipeline": [{"$match": {"_id": 4}}], "cursor": {}}, {"insert": "wv", "documents": [{"_id": 1}]}, {"update": "wv", "updates": [{"q": {}, "u": {"$set": {"x": 1}}}]}, {"delete": "wv", "deletes": [{"q": {}, "limit": 0}]}, {"findAndModify": "wv", "query": {}, "remove": True},
            {"createIndexes": "wv", "indexes": [{"key": {"a": 1}, "name": "i"}]}, {"dropIndexes": "wv", "index": "*"}, {"listIndexes": "wv"}, {"collMod": "wv", "pipeline": [{"$match": {"a": 2}}], "viewOn": "w"}, {"collMod": "wv", "pipeline": [{"$match": {"a": 2}}]}, {"collMod": "wv", "validator": {}}, {"collMod": "wv", "viewOn": "wvv", "pipeline": []}, {"create": "wv", "viewOn": "w"}, {"create": "wv"}, {"drop": "wv"}, {"validate": "wv"}, {"renameCollection": "df.wv", "to": "df.w9"}, {"find": "system.views", "sort": {"_id": 1}}, {"collStats": "wv"}]
    for c in cmds:
        yield {"before": before, "docs": docs, "pre": pre, "cmd": c, "then": [{"find": "wv", "projection": {"a": 1}}] if "collMod" in c or "drop" in c else []}
    yield {"before": before, "docs": docs, "pre": [{"create": "wv", "viewOn": "nosuch", "pipeline": []}], "cmd": {"find": "wv"}}
    yield {"before": before, "docs": docs, "pre": [{"create": "wv", "viewOn": "wvv", "pipeline": []}], "cmd": {"create": "wvv", "viewOn": "wv", "pipeline": []}}


def kinds(rnd):
    ins = [{"insert": "w", "documents": [{"_id": i, "x": "y" * 50}]} for i in range(8)]
    for o in [{"capped": True, "size": 100000, "max": 3}, {"capped": True, "size": 400}, {"capped": True, "size": 100000}]:
        yield {"pre": [{"create": "w", **o}] + ins, "cmd": {"find": "w", "sort": {"$natural": -1}}}
        yield {"pre": [{"create": "w", **o}] + ins, "cmd": {"delete": "w", "deletes": [{"q": {"_id": 6}, "limit": 1}]}}
        yield {"pre": [{"create": "w", **o}] + ins, "cmd": {"update": "w", "updates": [{"q": {"_id": 6}, "u": {"$set": {"x": "z" * 90}}}]}}
        yield {"pre": [{"create": "w", **o}] + ins, "cmd": {"update": "w", "updates": [{"q": {"_id": 60}, "u": {"$set": {"x": "z"}}, "upsert": True}]}}
        yield {"pre": [{"create": "w", **o}] + ins, "cmd": {"count": "w"}}
    cl = [{"create": "w", "clusteredIndex": {"key": {"_id": 1}, "unique": True}}]
    cdocs = [{"insert": "w", "documents": [{"_id": i, "a": i % 2} for i in (5, 1, 3, 2, 4)]}]
    for c in [{"find": "w"}, {"find": "w", "sort": {"_id": -1}}, {"find": "w", "filter": {"_id": {"$gt": 2, "$lte": 4}}}, {"find": "w", "hint": {"_id": 1}}, {"find": "w", "hint": "_id_"}, {"find": "w", "sort": {"$natural": -1}}, {"insert": "w", "documents": [{"_id": 3}]}, {"insert": "w", "documents": [{"_id": "s"}, {"_id": 2.5}]}, {"delete": "w", "deletes": [{"q": {"_id": 3}, "limit": 1}]}, {"update": "w", "updates": [{"q": {"_id": 3}, "u": {"$set": {"z": 1}}}]}, {"listIndexes": "w"}, {"createIndexes": "w", "indexes": [{"key": {"a": 1}, "name": "i"}]}, {"createIndexes": "w", "indexes": [{"key": {"_id": 1}, "name": "_id_"}]}, {"dropIndexes": "w", "index": "_id_"}, {"dropIndexes": "w", "index": "*"}, {"find": "w", "min": {"_id": 2}, "max": {"_id": 4}, "hint": {"_id": 1}}]:
        yield {"pre": cl + cdocs, "cmd": c}
    val = {"$jsonSchema": {"required": ["a"], "properties": {"a": {"bsonType": "int", "minimum": 3}, "b": {"type": "string"}}}}
    for v in [val, {"a": {"$gt": 3}}, {"$and": [{"a": {"$exists": True}}, {"b": {"$type": "string"}}]}, {"$or": [{"a": 4}, {"b": "x"}]}, {"a": {"$in": [4, 5]}}, {"$expr": {"$gt": ["$a", "$b"]}}, {"$nor": [{"a": 1}]}, {"a": {"$not": {"$gt": 5}}}, {"a": {"$mod": [2, 0]}}, {"c": {"$elemMatch": {"x": 1}}}, {"a": {"$ne": 1}}, {"c": {"$size": 2}}, {"b": {"$regex": "^x"}}]:
        for lv in [{}, {"validationLevel": "moderate"}, {"validationAction": "warn"}, {"validationLevel": "off"}]:
            if lv and rnd.random() < .6:
                continue
            docs = [{"_id": 1, "a": 1, "b": 5, "c": [{"x": 2}]}, {"_id": 2, "a": 4, "b": "x", "c": [{"x": 1}, 2]}]
            mod = [{"collMod": "w", "validator": v, **lv}]
            yield {"docs": docs, "pre": mod, "cmd": {"insert": "w", "documents": [{"_id": 3, "a": 1}, {"_id": 4, "a": 5, "b": "xx"}, {"_id": 5}], "ordered": False}}
            yield {"docs": docs, "pre": mod, "cmd": {"update": "w", "updates": [{"q": {}, "u": {"$set": {"b": 7}}, "multi": True}]}}
            yield {"docs": docs, "pre": mod, "cmd": {"update": "w", "updates": [{"q": {"_id": 2}, "u": {"$set": {"a": 1}}}], "bypassDocumentValidation": True}}
            yield {"docs": docs, "pre": mod, "cmd": {"findAndModify": "w", "query": {"_id": 2}, "update": {"$unset": {"a": 1}}}}
    for s in [{"properties": {"a": {"type": "string"}}}, {"additionalProperties": False, "properties": {"_id": {}}}, {"minProperties": 9}, {"properties": {"a": {"enum": [9]}}}, {"properties": {"c": {"minItems": 3}}}, {"properties": {"c": {"items": {"bsonType": "int"}}}}, {"anyOf": [{"required": ["q"]}, {"required": ["r"]}]}, {"not": {"required": ["a"]}}, {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"dependencies": {"a": ["q"]}}, {"patternProperties": {"^a": {"bsonType": "string"}}}, {"properties": {"a": {"description": "must be big", "minimum": 100}}, "title": "T"}, {"properties": {"b": {"maxLength": 2}}}, {"properties": {"a": {"multipleOf": 2}}}, {"properties": {"c": {"uniqueItems": True}}}, {"allOf": [{"required": ["zz"]}]}]:
        yield {"pre": [{"create": "w", "validator": {"$jsonSchema": s}}], "cmd": {"insert": "w", "documents": [{"_id": 3, "a": 1, "b": "long", "c": [1, 1]}]}}


def generic(rnd):
    cmds = [("df", {"nosuch": 1}), ("df", {"": 1}), ("df", {"FIND": "w"}), ("df", {"find": 5}), ("df", {"find": ""}), ("df", {"find": "a.$b"}), ("df", {"find": None}), ("df", {"ping": 1}), ("df", {"ping": 1, "foo": 1}), ("df", {"ping": 1, "comment": "x"}), ("df", {"ping": 1, "maxTimeMS": "x"}), ("df", {"ping": 1, "readConcern": {"level": "majority"}}), ("df", {"ping": 1, "writeConcern": {"w": 1}}), ("df", {"listDatabases": 1}), ("df", {"renameCollection": "df.a", "to": "df.b"}), ("df", {"replSetGetStatus": 1}), ("df", {"getLog": "global"}), ("df", {"shutdown": 1}),
            ("df", {"getParameter": 1}), ("admin", {"getParameter": 1}), ("admin", {"getParameter": 1, "nosuchParameter": 1}), ("admin", {"setParameter": 1}), ("admin", {"setParameter": 1, "nosuchParameter": 1}), ("admin", {"getLog": "nosuch"}), ("admin", {"getLog": 5}), ("df", {"getMore": L(123456), "collection": "w"}), ("df", {"getMore": 5, "collection": "w"}), ("df", {"getMore": L(5)}), ("df", {"getMore": L(5), "collection": ""}), ("df", {"getMore": L(5), "collection": "w", "batchSize": -1}), ("df", {"getMore": L(5), "collection": "w", "foo": 1}), ("df", {"killCursors": "w", "cursors": [L(5)]}), ("df", {"killCursors": "w", "cursors": []}), ("df", {"killCursors": "w", "cursors": 5}), ("df", {"killCursors": "w", "cursors": ["x"]}), ("df", {"killCursors": "w"}), ("df", {"killCursors": "", "cursors": [L(1)]}),
            ("df", {"aggregate": "w"}), ("df", {"aggregate": "w", "pipeline": []}), ("df", {"aggregate": "w", "pipeline": 5, "cursor": {}}), ("df", {"aggregate": 5, "pipeline": [], "cursor": {}}), ("df", {"aggregate": "", "pipeline": [], "cursor": {}}), ("df", {"aggregate": 1, "pipeline": [], "cursor": {}}), ("df", {"aggregate": 1, "pipeline": [{"$match": {}}], "cursor": {}}), ("df", {"aggregate": "w", "pipeline": [], "cursor": {"batchSize": -1}}), ("df", {"aggregate": "w", "pipeline": [], "cursor": {"foo": 1}}), ("df", {"aggregate": "w", "pipeline": [], "cursor": 5}), ("df", {"aggregate": "w", "pipeline": [5], "cursor": {}}), ("df", {"aggregate": "w", "pipeline": [], "cursor": {}, "foo": 1}),
            ("df", {"endSessions": []}), ("df", {"endSessions": 5}), ("df", {"refreshSessions": []}), ("df", {"startSession": 1, "foo": 1}), ("df", {"validate": "nosuch"}), ("df", {"validate": 5}), ("df", {"collStats": "nosuch"}), ("df", {"collStats": 5}), ("df", {"dbStats": 1, "scale": 0}), ("df", {"dbStats": 1, "scale": "x"}), ("df", {"connectionStatus": 1}), ("df", {"listCollections": 1, "filter": {"name": "nosuch"}}), ("df", {"listCollections": 1, "filter": 5}), ("df", {"listCollections": 1, "filter": {"$foo": 1}}), ("df", {"listCollections": 1, "nameOnly": "x"}), ("df", {"listCollections": 1, "foo": 1}), ("df", {"listCollections": 1, "cursor": {"batchSize": -1}}),
            ("", {"ping": 1}), ("a b", {"ping": 1}), ("a.b", {"ping": 1}), ("a$b", {"ping": 1}), ("a/b", {"ping": 1}), ("x" * 64, {"ping": 1}), ("x" * 63, {"ping": 1}), ("a b", {"insert": "w", "documents": [{"_id": 1}]}), ("a.b", {"insert": "w", "documents": [{"_id": 1}]}), ("x" * 64, {"insert": "w", "documents": [{"_id": 1}]}), ("a\"b", {"insert": "w", "documents": [{"_id": 1}]}), ("DF", {"insert": "w", "documents": [{"_id": 1}]}), ("$external", {"ping": 1}), ("admin", {"fsyncUnlock": 1}), ("admin", {"killOp": 1}), ("admin", {"killOp": 1, "op": 999999}), ("admin", {"killOp": 1, "op": "x"}), ("admin", {"configureFailPoint": "nosuch", "mode": "off"}), ("admin", {"configureFailPoint": "failCommand", "mode": "bad"}), ("admin", {"configureFailPoint": "failCommand"}), ("admin", {"configureFailPoint": "failCommand", "mode": {"times": "x"}}), ("admin", {"configureFailPoint": "failCommand", "mode": {"foo": 1}}),
            ("df", {"find": "w", "$readPreference": {"mode": "secondary"}}), ("df", {"find": "w", "$readPreference": {"mode": "x"}}), ("df", {"find": "w", "$readPreference": 5}), ("df", {"find": "w", "apiVersion": "1"}), ("df", {"find": "w", "apiVersion": "2"}), ("df", {"find": "w", "apiVersion": "1", "apiStrict": True}), ("df", {"find": "w", "apiStrict": True}), ("df", {"distinct": "w", "key": "a", "apiVersion": "1", "apiStrict": True}), ("df", {"find": "w", "apiVersion": 1}), ("df", {"find": "w", "apiVersion": "1", "apiDeprecationErrors": True}), ("df", {"ping": 1, "apiVersion": "1", "apiStrict": True}), ("df", {"buildInfo": 1, "apiVersion": "1", "apiStrict": True}), ("df", {"find": "w", "apiVersion": "1", "apiStrict": True, "tailable": True}), ("df", {"find": "w", "lsid": 5}), ("df", {"find": "w", "lsid": {"id": 5}}), ("df", {"find": "w", "txnNumber": L(1)}), ("df", {"find": "w", "readConcern": {"level": "snapshot"}}), ("df", {"find": "w", "readConcern": {"foo": 1}}), ("df", {"insert": "w", "documents": [{"_id": 1}], "readConcern": {"level": "majority"}}),
            ("df", {"explain": {"find": "nosuch"}, "verbosity": "x"}), ("df", {"explain": 5}), ("df", {"explain": {"ping": 1}}), ("df", {"explain": {"explain": {"find": "w"}}}), ("admin", {"fsync": 1, "foo": 1}), ("admin", {"ping": L(1)}), ("df", {"top": 1}), ("df", {"ping": {"x": 1}}), ("df", {"logRotate": 1}), ("df", {"currentOp": 1}), ("df", {"fsync": 1}), ("df", {"replSetInitiate": {}}), ("df", {"configureFailPoint": "failCommand", "mode": "off"})]
    for db, c in cmds:
        yield {"db": db, "cmd": c, "after": False}


TOPICS = {"ddl.create": create, "ddl.collmod": collmod, "ddl.rename": rename_drop, "ddl.views": views, "ddl.kinds": kinds, "cmd.generic": generic}
