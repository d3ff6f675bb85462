#!/usr/bin/env python3
"""pymongo against a server: CRUD, bulk, cursors, indexes, aggregation, errors, sessions. usage: smoke.py URI

Through a router some things are as a sharded cluster does them, and there are checks of collections that are sharded."""
import datetime
import sys
import threading
import time

import pymongo
from bson import Decimal128, Int64, ObjectId, Regex
from pymongo import ASCENDING, DESCENDING, DeleteOne, InsertOne, MongoClient, ReplaceOne, ReturnDocument, UpdateOne

client = MongoClient(sys.argv[1] if len(sys.argv) > 1 else "mongodb://127.0.0.1:27017", serverSelectionTimeoutMS=5000)
db = client.smoke_py
client.drop_database(db.name)
passed, failed = 0, 0


def check(name, fn):
    global passed, failed
    try:
        r = fn()
        assert r is None or r, f"gave {r!r}"
        passed += 1
        print("ok    ", name)
    except Exception as e:  # noqa: BLE001
        failed += 1
        print("FAILED", name, type(e).__name__, str(e)[:300])


def raises(exc, fn, code=None):
    try:
        fn()
    except exc as e:
        return code is None or getattr(e, "code", None) == code
    return False


ROUTED = client.admin.command("hello").get("msg") == "isdbgrid"
c = db.things
now = datetime.datetime(2024, 1, 2, 3, 4, 5, 678000)
doc = {"_id": 1, "s": "text", "i": 5, "l": Int64(2**40), "d": 2.5, "dec": Decimal128("1.50"), "t": now, "b": b"\0\1", "o": ObjectId(), "r": Regex("^a", "i"), "n": None, "a": [1, [2, {"x": 3}]], "e": {"f": {"g": True}}}
check("hello", lambda: client.admin.command("hello")["isWritablePrimary"])
check("version", lambda: client.server_info()["versionArray"][0] >= 6)
check("insert_one and find_one, every type back as sent", lambda: (c.insert_one(doc), c.find_one({"_id": 1}) == doc)[1])
check("insert_many 5,000", lambda: len(c.insert_many([{"k": i, "g": i % 7, "s": f"name {i:05}"} for i in range(5000)]).inserted_ids) == 5000)
check("count_documents", lambda: c.count_documents({"k": {"$gte": 4000}}) == 1000)
check("estimated_document_count", lambda: c.estimated_document_count() == 5001)
check("cursor over many batches", lambda: [d["k"] for d in c.find({"k": {"$exists": True}}, {"k": 1}).sort("k", 1).batch_size(77)] == list(range(5000)))
check("skip, limit, sort descending", lambda: [d["k"] for d in c.find({"k": {"$lt": 100}}).sort("k", -1).skip(10).limit(5)] == [89, 88, 87, 86, 85])
check("cursor closed early", lambda: (c.find({}, batch_size=10).__enter__().next() is not None))
check("projection", lambda: c.find_one({"_id": 1}, {"e.f": 1, "_id": 0}) == {"e": {"f": {"g": True}}})
check("dotted path and array query", lambda: c.count_documents({"e.f.g": True, "a": 1}) == 1)
check("update_one", lambda: c.update_one({"_id": 1}, {"$set": {"e.f.h": 7}, "$inc": {"i": 2}, "$push": {"a": {"$each": [8, 9], "$slice": -3}}}).modified_count == 1)
check("... what it left", lambda: (lambda d: d["e"]["f"] == {"g": True, "h": 7} and d["i"] == 7 and d["a"] == [[2, {"x": 3}], 8, 9])(c.find_one({"_id": 1})))
check("update_many", lambda: c.update_many({"g": 3}, {"$set": {"hit": True}}).modified_count == len(range(3, 5000, 7)))
check("upsert", lambda: c.update_one({"_id": "up", "q": 4}, {"$setOnInsert": {"z": 1}}, upsert=True).upserted_id == "up")
check("replace_one", lambda: c.replace_one({"_id": "up"}, {"w": 1}).modified_count == 1 and c.find_one({"_id": "up"}) == {"_id": "up", "w": 1})
check("find_one_and_update", lambda: c.find_one_and_update({"_id": "up"}, {"$inc": {"w": 5}}, return_document=ReturnDocument.AFTER)["w"] == 6)
check("find_one_and_delete", lambda: c.find_one_and_delete({"_id": "up"})["w"] == 6 and c.find_one({"_id": "up"}) is None)
check("arrayFilters", lambda: (db.af.insert_one({"_id": 1, "x": [{"p": 1}, {"p": 5}]}), db.af.update_one({"_id": 1}, {"$set": {"x.$[e].q": "big"}}, array_filters=[{"e.p": {"$gt": 2}}]), db.af.find_one()["x"] == [{"p": 1}, {"p": 5, "q": "big"}])[2])
check("pipeline update", lambda: (db.af.update_one({"_id": 1}, [{"$set": {"n": {"$size": "$x"}}}]), db.af.find_one()["n"] == 2)[1])
check("bulk_write ordered", lambda: (lambda r: (r.inserted_count, r.modified_count, r.deleted_count, r.upserted_count) == (1, 2, 1, 1))(db.bw.bulk_write([InsertOne({"_id": 1}), UpdateOne({"_id": 1}, {"$set": {"a": 1}}), ReplaceOne({"_id": 1}, {"b": 2}), UpdateOne({"_id": 2}, {"$set": {"c": 1}}, upsert=True), DeleteOne({"_id": 1})])))
check("bulk_write unordered goes on after an error", lambda: raises(pymongo.errors.BulkWriteError, lambda: db.bw.insert_many([{"_id": 5}, {"_id": 5}, {"_id": 6}], ordered=False)) and db.bw.count_documents({"_id": {"$in": [5, 6]}}) == 2)
check("duplicate key", lambda: raises(pymongo.errors.DuplicateKeyError, lambda: c.insert_one({"_id": 1}), 11000))
check("create_index", lambda: c.create_index([("g", ASCENDING), ("k", DESCENDING)]) == "g_1_k_-1")
check("unique index", lambda: (c.create_index("s", unique=True), raises(pymongo.errors.DuplicateKeyError, lambda: c.insert_one({"s": "name 00005"})))[1])
check("partial, sparse, TTL, hashed, wildcard index", lambda: (c.create_index("p", partialFilterExpression={"k": {"$gt": 5}}), c.create_index("sp", sparse=True), c.create_index("at", expireAfterSeconds=3600), c.create_index([("h", "hashed")]), c.create_index("w.$**"), len(list(c.list_indexes())) == 8)[-1])
check("index is used", lambda: "IXSCAN" in str(c.find({"g": 3, "k": {"$gt": 100}}).explain()["queryPlanner"]["winningPlan"]))
check("same answer with and without the index", lambda: sorted(d["k"] for d in c.find({"g": 3})) == sorted(d["k"] for d in c.find({"g": 3}).hint([("$natural", 1)])))
check("drop_index", lambda: (c.drop_index("h_hashed"), "h_hashed" not in c.index_information())[1])
check("distinct", lambda: sorted(x for x in c.distinct("g") if x is not None) == [0, 1, 2, 3, 4, 5, 6])
check("aggregate: match, group, sort, limit", lambda: [(r["_id"], r["n"]) for r in c.aggregate([{"$match": {"k": {"$lt": 700}}}, {"$group": {"_id": "$g", "n": {"$sum": 1}, "avg": {"$avg": "$k"}}}, {"$sort": {"_id": 1}}, {"$limit": 2}])] == [(0, 100), (1, 100)])
check("aggregate: unwind, project, addFields, count", lambda: list(db.af.aggregate([{"$unwind": "$x"}, {"$addFields": {"twice": {"$multiply": ["$x.p", 2]}}}, {"$match": {"twice": {"$gt": 5}}}, {"$count": "n"}])) == [{"n": 1}])
check("aggregate over several batches", lambda: sum(1 for _ in c.aggregate([{"$match": {}}], batchSize=50)) == 5001)
check("collation", lambda: (db.col.insert_many([{"_id": w} for w in ["b", "A", "a"]]), [d["_id"] for d in db.col.find().collation({"locale": "en"}).sort("_id", 1)] == ["a", "A", "b"])[1])
check("validator", lambda: (db.create_collection("val", validator={"$jsonSchema": {"required": ["x"]}}), raises(pymongo.errors.WriteError, lambda: db.val.insert_one({}), 121))[1])
check("view", lambda: (db.create_collection("vw", viewOn="things", pipeline=[{"$match": {"k": {"$lt": 3}}}]), db.vw.count_documents({}) == 3)[1])
check("capped and tailable", lambda: (db.create_collection("cap", capped=True, size=10000, max=3), db.cap.insert_many([{"_id": i} for i in range(5)]), [d["_id"] for d in db.cap.find(cursor_type=pymongo.CursorType.TAILABLE)] == [2, 3, 4])[2])


def tail():
    cur = db.cap.find(cursor_type=pymongo.CursorType.TAILABLE_AWAIT).max_await_time_ms(5000)
    assert [cur.next()["_id"] for _ in range(3)] == [2, 3, 4]
    threading.Timer(0.3, lambda: db.cap.insert_one({"_id": 99})).start()
    t = time.monotonic()
    got = cur.next()["_id"]
    return got == 99 and time.monotonic() - t < 3


def retried():
    # a client of its own: a hand-set txnNumber would disturb its pooled sessions
    with MongoClient(sys.argv[1] if len(sys.argv) > 1 else client.address[0], directConnection=True) as c2, c2.start_session() as s:
        cmd = {"update": "rw", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}, "upsert": True}], "txnNumber": Int64(1)}
        for _ in range(2):
            c2[db.name].command(dict(cmd), session=s)
    return db.rw.find_one({"_id": 1})["n"] == 1


def unacknowledged():
    c0 = db.get_collection("w0", write_concern=pymongo.WriteConcern(0))
    c0.insert_many([{"_id": i} for i in range(10)])
    c0.update_many({}, {"$set": {"x": 1}})
    c0.delete_one({"_id": 3})
    end = time.monotonic() + 10
    while db.w0.count_documents({"x": 1}) != 9 and time.monotonic() < end:
        time.sleep(0.1)
    return db.w0.count_documents({"x": 1}) == 9


def transferred():
    db.acc.insert_many([{"_id": "a", "n": 10}, {"_id": "b", "n": 0}])

    def move(s, n):
        db.acc.update_one({"_id": "a"}, {"$inc": {"n": -n}}, session=s)
        db.acc.update_one({"_id": "b"}, {"$inc": {"n": n}}, session=s)
        return db.acc.find_one({"_id": "a"}, session=s)["n"], db.acc.find_one({"_id": "a"})["n"]

    with client.start_session() as s:
        inside = s.with_transaction(lambda s: move(s, 4))
        s.start_transaction()
        move(s, 6)
        s.abort_transaction()
    return inside == (6, 10) and [d["n"] for d in db.acc.find().sort("_id")] == [6, 4]


def watched():
    with c.watch(full_document="updateLookup") as stream:
        c.insert_one({"_id": "cs"})
        c.update_one({"_id": "cs"}, {"$set": {"x": 1}})
        first, second = stream.next(), stream.next()
    with c.watch(resume_after=first["_id"]) as stream:
        again = stream.next()
    c.delete_one({"_id": "cs"})
    return first["operationType"] == "insert" and second["fullDocument"]["x"] == 1 and again["_id"] == second["_id"]


check("transactions: committed and aborted", transferred)
check("change stream, resumed", watched)
check("$lookup", lambda: [len(d["hits"]) for d in db.af.aggregate([{"$lookup": {"from": "things", "localField": "_id", "foreignField": "_id", "as": "hits"}}])] == [1])
check("awaitData wakes at an insert", tail)
check("rename", lambda: (db.bw.rename("bw2"), "bw2" in db.list_collection_names() and "bw" not in db.list_collection_names())[1])
check("list_databases, stats", lambda: "smoke_py" in client.list_database_names() and db.command("dbStats")["collections"] >= 6 and db.command("collStats", "things")["count"] == 5001)
check("validate", lambda: db.validate_collection("things", full=True)["valid"])
if ROUTED:
    check("an oplog is no router's", lambda: client.local["oplog.rs"].count_documents({}) == 0)
else:
    check("oplog tells of it", lambda: client.local["oplog.rs"].count_documents({"ns": "smoke_py.things", "op": "i"}) >= 5001)
check("session, causal reads", lambda: client.start_session().__enter__() is not None and (lambda s: c.find_one({"_id": 1}, session=s)["_id"] == 1)(client.start_session()))
check("retryable write runs once", retried)
check("write concerns", lambda: c.with_options(write_concern=pymongo.WriteConcern("majority", j=True)).update_one({"_id": 1}, {"$set": {"wc": 1}}).acknowledged and not c.with_options(write_concern=pymongo.WriteConcern(0)).insert_one({"s": "unacked"}).acknowledged)
check("unacknowledged writes arrive", unacknowledged)
check("maxTimeMS", lambda: raises(pymongo.errors.ExecutionTimeout, lambda: list(c.aggregate([{"$project": {"x": {"$reduce": {"input": {"$range": [0, 2000]}, "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}}}}, {"$match": {"x": -1}}], maxTimeMS=30)), 50))
check("unknown command", lambda: raises(pymongo.errors.OperationFailure, lambda: db.command("nope"), 59))
check("8 clients at once", lambda: (lambda ts: ([t.start() for t in ts], [t.join() for t in ts], db.par.count_documents({}) == 800)[2])([threading.Thread(target=lambda k=k: [db.par.insert_one({"k": k, "i": i}) for i in range(100)]) for k in range(8)]))


def part_of(ns, shard, key_value):
    """Puts the chunk with a key on a shard, where somebody can move it; elsewhere it stays."""
    try:
        client.admin.command("moveChunk", ns, find=key_value, to=shard)
    except pymongo.errors.OperationFailure:
        pass


def sharded():
    """What a cluster does with collections that are spread over its shards."""
    admin, h, r = client.admin, db.hashed, db.ranged
    shards = [s["_id"] for s in admin.command("listShards")["shards"]]
    n = 3000
    check("enableSharding, shardCollection", lambda: (admin.command("enableSharding", db.name), admin.command("shardCollection", f"{db.name}.hashed", key={"_id": "hashed"}), admin.command("shardCollection", f"{db.name}.ranged", key={"k": 1}))[-1]["ok"] == 1)
    check("split", lambda: admin.command("split", f"{db.name}.ranged", middle={"k": 1000})["ok"] == 1 and client.config.chunks.count_documents({"uuid": client.config.collections.find_one({"_id": f"{db.name}.ranged"})["uuid"]}) == 2)
    part_of(f"{db.name}.ranged", shards[-1], {"k": 2000})
    docs = [{"_id": i, "k": i, "g": i % 5, "s": f"name {i % 100:03}"} for i in range(n)]
    for coll in (h, r):
        name = coll.name
        check(f"{name}: insert_many", lambda: len(coll.insert_many(docs).inserted_ids) == n)
        check(f"{name}: find by key, by _id, by others", lambda: coll.find_one({"k": 17, "_id": 17})["g"] == 2 and coll.find_one({"_id": 2017})["k"] == 2017 and coll.count_documents({"g": 3}) == n / 5)
        check(f"{name}: sort, skip, limit over batches", lambda: [d["k"] for d in coll.find({}).sort([("s", 1), ("k", -1)]).skip(20).limit(500).batch_size(33)] == [d["k"] for d in sorted(docs, key=lambda d: (d["s"], -d["k"]))[20:520]])
        check(f"{name}: counts", lambda: coll.count_documents({}) == n and coll.estimated_document_count() == n)
        check(f"{name}: update_many, update_one, upsert", lambda: coll.update_many({"g": 1}, {"$set": {"x": 1}}).modified_count == n / 5 and coll.update_one({"k": 5, "_id": 5}, {"$inc": {"y": 2}}).modified_count == 1 and coll.update_one({"k": 9000, "_id": 9000}, {"$set": {"z": 1}}, upsert=True).upserted_id == 9000)
        check(f"{name}: find_one_and_update by the key", lambda: coll.find_one_and_update({"k": 9000, "_id": 9000}, {"$inc": {"z": 4}}, return_document=ReturnDocument.AFTER)["z"] == 5)
        check(f"{name}: delete_one, delete_many", lambda: coll.delete_one({"k": 9000, "_id": 9000}).deleted_count == 1 and coll.delete_many({"g": 4}).deleted_count == n / 5)
        check(f"{name}: bulk_write", lambda: (lambda b: (b.inserted_count, b.modified_count, b.deleted_count) == (100, 50, 100))(coll.bulk_write([InsertOne({"_id": 5000 + i, "k": 5000 + i}) for i in range(100)] + [UpdateOne({"_id": i * 5, "k": i * 5}, {"$set": {"b": 1}}) for i in range(50)] + [DeleteOne({"_id": 5000 + i, "k": 5000 + i}) for i in range(100)], ordered=True)))
        check(f"{name}: aggregate", lambda: [(d["_id"], d["n"]) for d in coll.aggregate([{"$group": {"_id": "$g", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}])] == [(g, n // 5) for g in range(4)])
        check(f"{name}: distinct", lambda: sorted(coll.distinct("g")) == [0, 1, 2, 3])
        check(f"{name}: $lookup, $out, $merge", lambda: (coll.aggregate([{"$match": {"k": {"$lt": 50}}}, {"$lookup": {"from": name, "localField": "g", "foreignField": "_id", "as": "l"}}, {"$out": "copied"}]), coll.aggregate([{"$match": {"k": {"$gte": 50, "$lt": 80}}}, {"$merge": {"into": "copied"}}]), db.copied.count_documents({}) == 64)[-1])
        check(f"{name}: create_index, explain", lambda: coll.create_index([("g", 1), ("s", 1)]) == "g_1_s_1" and "IXSCAN" in str(coll.find({"g": 2}).explain()["queryPlanner"]["winningPlan"]["shards"]))
        check(f"{name}: explain of one shard", lambda: coll.find({"k": 3, "_id": 3}).explain()["queryPlanner"]["winningPlan"]["stage"] == "SINGLE_SHARD")
        check(f"{name}: statistics", lambda: (lambda s: s["sharded"] and s["count"] == sum(x["count"] for x in s["shards"].values()) == n * 4 / 5)(db.command("collStats", name)))
        check(f"{name}: change stream", lambda: streamed(coll))
        check(f"{name}: transaction on one shard", lambda: one_shard(coll))
        check(f"{name}: snapshot session", lambda: snapshot(coll))
    check("a unique index has to begin with the key", lambda: raises(pymongo.errors.OperationFailure, lambda: r.create_index("s", unique=True), 67))
    check("config tells", lambda: {c["_id"] for c in client.config.collections.find({"_id": {"$regex": f"^{db.name}"}})} == {f"{db.name}.hashed", f"{db.name}.ranged"} and client.config.mongos.count_documents({"ping": {"$gt": datetime.datetime.utcnow() - datetime.timedelta(seconds=60)}}) >= 1)
    check("balancer", lambda: admin.command("balancerStatus")["mode"] in ("full", "off") and admin.command("balancerStop")["ok"] == 1 and admin.command("balancerStart")["ok"] == 1)
    check("zones", lambda: admin.command("addShardToZone", shards[0], zone="smoke")["ok"] == 1 and admin.command("removeShardFromZone", shards[0], zone="smoke")["ok"] == 1)


def streamed(coll):
    with coll.watch() as stream:
        coll.insert_many([{"_id": 7000 + i, "k": 7000 + i} for i in range(10)])
        seen = [stream.next() for _ in range(10)]
    coll.delete_many({"_id": {"$gte": 7000}})
    with coll.watch(resume_after=seen[3]["_id"]) as stream:
        again = [stream.next()["documentKey"]["_id"] for _ in range(6)]
    return [e["documentKey"]["_id"] for e in seen[4:]] == again


def one_shard(coll):
    def work(s):
        coll.update_one({"_id": 10, "k": 10}, {"$set": {"t": 1}}, session=s)
        return coll.find_one({"_id": 10, "k": 10}, session=s)["t"], coll.find_one({"_id": 10, "k": 10}).get("t")

    with client.start_session() as s:
        inside = s.with_transaction(work)
    return inside == (1, None) and coll.find_one_and_update({"_id": 10, "k": 10}, {"$unset": {"t": 1}})["t"] == 1


def snapshot(coll):
    with client.start_session(snapshot=True) as s:
        before = coll.count_documents({}, session=s)
        coll.insert_one({"_id": 8000, "k": 8000})
        same = coll.count_documents({}, session=s)
    coll.delete_one({"_id": 8000, "k": 8000})
    return before == same


if ROUTED:
    sharded()
check("drop", lambda: (client.drop_database("smoke_py"), "smoke_py" not in client.list_database_names())[1])
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
