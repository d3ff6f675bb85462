#!/usr/bin/env python3
"""The same operations on sharded collections and on one that is not: they have to answer the same. usage: crud.py URI"""
import random
import sys

import pymongo
from bson import SON
from pymongo import DeleteMany, DeleteOne, InsertOne, MongoClient, ReplaceOne, UpdateMany, UpdateOne

client = MongoClient(sys.argv[1], serverSelectionTimeoutMS=5000)
db = client.cluster_crud
passed, failed = 0, []


def check(name, fn):
    global passed
    try:
        r = fn()
        assert r is None or r, f"gave {r!r}"
        passed += 1
    except Exception as e:  # noqa: BLE001
        failed.append(name)
        print("FAILED", name, type(e).__name__, str(e)[:600])


def outcome(fn):
    try:
        return fn()
    except pymongo.errors.BulkWriteError as e:
        d = e.details
        errors = [(w["index"], w["code"]) for w in d["writeErrors"]]
        return ("bulk", errors, d["nInserted"], d["nMatched"], d["nModified"], d["nRemoved"], d["nUpserted"])
    except pymongo.errors.OperationFailure as e:
        return ("error", e.code)


def same(name, op, ordered=False, fails=False):
    """`op` on the plain collection and on each sharded one. Where nothing says in which order, documents are sorted."""

    def arranged(r):
        return r if ordered or not isinstance(r, list) else sorted(r, key=repr)

    expected = arranged(outcome(lambda: op(db.plain)))
    if not fails and isinstance(expected, tuple) and expected[0] == "error":
        check(f"{name} on plain", lambda: op(db.plain))
    for coll in SHARDED:
        def compare(coll=coll):
            got = arranged(outcome(lambda: op(db[coll])))
            assert got == expected, f"{got!r}\n   instead of {expected!r}"

        check(f"{name} on {coll}", compare)


SHARDED = ["ranged", "hashed", "compound"]
KEYS = {"ranged": {"k": 1}, "hashed": {"k": "hashed"}, "compound": SON([("g", 1), ("k", 1)])}


def shards_of(coll):
    stats = db.command("collStats", coll)
    return {name: s["count"] for name, s in stats.get("shards", {}).items()}


def move(coll, find, to):
    """Where the servers cannot move chunks the collections stay on the shard that they are on."""
    try:
        client.admin.command("moveChunk", f"{db.name}.{coll}", find=find, to=to, _waitForDelete=True)
    except pymongo.errors.OperationFailure as e:
        if e.code != 115:
            raise


def prepare():
    client.drop_database(db.name)
    client.admin.command("enableSharding", db.name, primaryShard="sa")
    for coll, key in KEYS.items():
        client.admin.command("shardCollection", f"{db.name}.{coll}", key=key)
    for at in (100, 200, 300):
        client.admin.command("split", f"{db.name}.ranged", middle={"k": at})
    for at in (100, 300):
        move("ranged", {"k": at}, "sb")
    client.admin.command("split", f"{db.name}.compound", middle=SON([("g", 3), ("k", 0)]))
    move("compound", SON([("g", 5), ("k", 5)]), "sb")
    db.create_collection("plain")


def document(i):
    r = random.Random(i)
    doc = {"_id": i, "k": i % 400, "g": i % 7, "n": r.randrange(50), "s": r.choice(["a", "B", "b", "C", "é"])}
    if i % 5 == 0:
        doc["l"] = [r.randrange(9) for _ in range(r.randrange(4))]
    if i % 11 == 0:
        doc["o"] = {"p": i % 3, "q": {"r": i % 2}}
    return doc


ALL = [document(i) for i in range(1000)]


def reads():
    same("insert 1000", lambda c: len(c.insert_many(ALL).inserted_ids))
    for coll in SHARDED:
        check(f"{coll} is on both shards", lambda coll=coll: all(shards_of(coll).get(s) for s in ("sa", "sb")))
        check(f"{coll} is counted", lambda coll=coll: sum(shards_of(coll).values()) == 1000)
    same("find all", lambda c: list(c.find()))
    same("find all in small batches", lambda c: list(c.find(batch_size=7)))
    same("point", lambda c: list(c.find({"k": 150})))
    same("whole compound key", lambda c: list(c.find({"k": 150, "g": 3})))
    same("range", lambda c: list(c.find({"k": {"$gte": 90, "$lt": 210}})))
    same("$in", lambda c: list(c.find({"k": {"$in": [5, 105, 205, 305]}, "g": {"$lt": 5}})))
    same("$or", lambda c: list(c.find({"$or": [{"k": 5}, {"g": 6, "n": {"$gt": 40}}]})))
    same("nothing", lambda c: list(c.find({"k": -1})))
    same("contradiction", lambda c: list(c.find({"$and": [{"k": 1}, {"k": 2}]})))
    same("sort", lambda c: list(c.find().sort([("n", 1), ("_id", -1)])), ordered=True)
    same("sort, skip, limit", lambda c: list(c.find().sort([("n", -1), ("_id", 1)]).skip(33).limit(55)), ordered=True)
    same("sort by what is projected away", lambda c: list(c.find({}, {"s": 1, "_id": 0}).sort([("n", 1), ("_id", 1)])), ordered=True)
    same("sort of arrays", lambda c: list(c.find({"l": {"$exists": True}}).sort([("l", 1), ("_id", 1)])), ordered=True)
    same("sort by collation", lambda c: list(c.find().sort([("s", 1), ("_id", 1)]).collation({"locale": "en", "strength": 2})), ordered=True)
    same("sort in batches", lambda c: list(c.find(batch_size=13).sort([("s", 1), ("_id", 1)])), ordered=True)
    same("limit", lambda c: len(list(c.find().limit(17))))
    same("skip", lambda c: len(list(c.find().skip(990))))
    same("skip and limit of a point", lambda c: list(c.find({"k": 7}).sort("_id", 1).skip(1).limit(1)), ordered=True)
    same("projection", lambda c: list(c.find({"g": 2}, {"o.q": 1, "l": {"$slice": 1}})))
    same("find_one by _id", lambda c: c.find_one({"_id": 777}))
    same("count", lambda c: c.count_documents({"n": {"$gt": 25}}))
    same("count with skip and limit", lambda c: c.count_documents({}, skip=10, limit=500))
    same("estimated count", lambda c: c.estimated_document_count())
    same("count command", lambda c: db.command("count", c.name, query={"g": 1}, skip=3, limit=40)["n"])
    same("distinct", lambda c: sorted(c.distinct("n", {"k": {"$lt": 250}})))
    same("distinct of arrays", lambda c: sorted(c.distinct("l")))
    same("regex", lambda c: list(c.find({"s": {"$regex": "^b", "$options": "i"}})))
    same("$expr", lambda c: list(c.find({"$expr": {"$gt": ["$n", "$k"]}})))
    for coll in ["plain", *SHARDED]:
        db[coll].create_index([("p", "2dsphere")])
    same("places", lambda c: c.update_many({}, [{"$set": {"p": [{"$divide": ["$k", 10]}, {"$divide": ["$n", 10]}]}}]).modified_count)
    same("near", lambda c: [round(d["p"][0], 1) for d in c.find({"p": {"$nearSphere": {"$geometry": {"type": "Point", "coordinates": [12.34, 2.1]}}}}).limit(40)], ordered=True)
    same("$geoNear", lambda c: [round(d["d"], 3) for d in c.aggregate([{"$geoNear": {"near": {"type": "Point", "coordinates": [12.34, 2.1]}, "distanceField": "d"}}, {"$limit": 30}])], ordered=True)
    same("places away", lambda c: c.update_many({}, {"$unset": {"p": 1}}).modified_count)
    for coll in ["plain", *SHARDED]:
        db[coll].drop_index("p_2dsphere")
    same("bad query", lambda c: list(c.find({"k": {"$nope": 1}})), fails=True)
    same("bad sort", lambda c: list(c.find().sort("k", 5)), fails=True)
    same("exhausting getMore of a killed cursor", killed)


def killed(c):
    cursor = c.find(batch_size=5)
    next(cursor)
    id, name = cursor.cursor_id, c.name
    done = db.command("killCursors", name, cursors=[id])
    again = outcome(lambda: db.command("getMore", id, collection=name))
    return (done["cursorsKilled"] == [id], again)


PIPELINES = {
    "match": [{"$match": {"k": {"$gte": 90, "$lt": 110}}}],
    "group": [{"$group": {"_id": "$g", "n": {"$sum": "$n"}, "a": {"$avg": "$n"}, "c": {"$count": {}}, "lo": {"$min": "$k"}, "hi": {"$max": "$k"}}}],
    "group of one shard": [{"$match": {"k": 5}}, {"$group": {"_id": "$g", "n": {"$sum": 1}}}],
    "deviation": [{"$group": {"_id": "$g", "p": {"$stdDevPop": "$n"}}}, {"$project": {"p": {"$round": ["$p", 6]}}}],
    "sets": [{"$group": {"_id": "$g", "s": {"$addToSet": "$s"}}}, {"$project": {"s": {"$sortArray": {"input": "$s", "sortBy": 1}}}}],
    "top": [{"$group": {"_id": "$g", "t": {"$top": {"sortBy": {"n": -1, "_id": 1}, "output": ["$n", "$_id"]}}, "m": {"$maxN": {"n": 3, "input": "$n"}}}}],
    "first in order": [{"$sort": {"n": 1, "_id": 1}}, {"$group": {"_id": "$g", "f": {"$first": "$_id"}, "l": {"$last": "$_id"}}}],
    "count": [{"$match": {"n": {"$gt": 10}}}, {"$count": "x"}],
    "sortByCount": [{"$sortByCount": "$g"}, {"$sort": {"count": -1, "_id": 1}}],
    "unwind": [{"$unwind": "$l"}, {"$group": {"_id": "$l", "c": {"$sum": 1}}}],
    "bucket": [{"$bucket": {"groupBy": "$n", "boundaries": [0, 10, 30], "default": "x", "output": {"c": {"$sum": 1}, "k": {"$sum": "$k"}}}}],
    "facet": [{"$facet": {"a": [{"$count": "c"}], "b": [{"$sort": {"_id": -1}}, {"$limit": 2}]}}],
    "project": [{"$project": {"x": {"$add": ["$k", "$n"]}, "y": "$o.q"}}],
    "lookup": [{"$match": {"_id": {"$lt": 30}}}, {"$lookup": {"from": "other", "localField": "g", "foreignField": "_id", "as": "j"}}],
    "lookup with a pipeline": [{"$match": {"_id": {"$lt": 20}}}, {"$lookup": {"from": "other", "let": {"g": "$g"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$_id", "$$g"]}}}, {"$project": {"name": 1}}], "as": "j"}}],
    "lookup of a sharded one": [{"$match": {"_id": {"$lt": 20}}}, {"$lookup": {"from": "ranged", "localField": "_id", "foreignField": "k", "as": "j"}}, {"$project": {"c": {"$size": "$j"}}}],
    "group, then lookup": [{"$group": {"_id": "$g", "c": {"$sum": 1}}}, {"$lookup": {"from": "other", "localField": "_id", "foreignField": "_id", "as": "j"}}],
    "unionWith": [{"$match": {"g": 1}}, {"$unionWith": {"coll": "other", "pipeline": [{"$match": {"_id": {"$gt": 3}}}]}}],
    "graphLookup": [{"$match": {"_id": {"$lt": 9}}}, {"$graphLookup": {"from": "other", "startWith": "$g", "connectFromField": "next", "connectToField": "_id", "as": "g"}}, {"$project": {"c": {"$size": "$g"}}}],
    "replaceRoot": [{"$match": {"o": {"$exists": True}}}, {"$replaceRoot": {"newRoot": "$o"}}],
}
ORDERED = {
    "sort": [{"$sort": {"n": 1, "_id": -1}}],
    "sort, skip and limit": [{"$sort": {"n": -1, "_id": 1}}, {"$skip": 5}, {"$limit": 30}, {"$project": {"n": 1}}],
    "sort behind a group": [{"$group": {"_id": "$n", "c": {"$sum": 1}}}, {"$sort": {"_id": 1}}],
    "windows": [{"$setWindowFields": {"partitionBy": "$g", "sortBy": {"_id": 1}, "output": {"r": {"$sum": "$n", "window": {"documents": ["unbounded", "current"]}}}}}, {"$sort": {"_id": 1}}, {"$project": {"r": 1}}],
    "bucketAuto": [{"$bucketAuto": {"groupBy": "$n", "buckets": 4}}],
}


def pipelines():
    db.other.insert_many([{"_id": i, "name": f"name {i}", "next": i + 1} for i in range(7)])
    for name, pipeline in PIPELINES.items():
        same(f"aggregate {name}", lambda c, p=pipeline: list(c.aggregate(p)))
    for name, pipeline in ORDERED.items():
        same(f"aggregate {name}", lambda c, p=pipeline: list(c.aggregate(p)), ordered=True)
        same(f"aggregate {name} in batches", lambda c, p=pipeline: list(c.aggregate(p, batchSize=3)), ordered=True)
    same("aggregate sample", lambda c: len(list(c.aggregate([{"$sample": {"size": 20}}]))))
    same("aggregate with let", lambda c: list(c.aggregate([{"$match": {"$expr": {"$eq": ["$g", "$$v"]}}}], let={"v": 3})))
    same("aggregate of a bad stage", lambda c: list(c.aggregate([{"$nope": 1}])), fails=True)
    for coll in ["plain", *SHARDED]:
        db.command("create", f"view_{coll}", viewOn=coll, pipeline=[{"$match": {"g": {"$gte": 3}}}, {"$project": {"l": 0}}])
    same("a view", lambda c: list(db[f"view_{c.name}"].find({"n": {"$lt": 9}}, {"k": 1})))
    same("a view, sorted", lambda c: list(db[f"view_{c.name}"].find().sort([("n", 1), ("_id", 1)]).limit(9)), ordered=True)
    same("a view, counted", lambda c: db[f"view_{c.name}"].count_documents({"n": 4}))
    same("a view, grouped", lambda c: list(db[f"view_{c.name}"].aggregate([{"$group": {"_id": "$g", "c": {"$sum": 1}}}])))
    same("a view, distinct", lambda c: sorted(db[f"view_{c.name}"].distinct("n")))


def counts(r):
    return (r.matched_count, r.modified_count, r.upserted_id)


def whole(i):
    """A filter that names every shard key."""
    return {"k": i % 400, "g": i % 7, "_id": i}


def contents(c):
    return list(c.find())


def writes():
    same("update_one", lambda c: counts(c.update_one(whole(5), {"$set": {"n": 99}, "$inc": {"m": 2}})))
    same("update_one by _id", lambda c: counts(c.update_one({"_id": 6}, {"$inc": {"n": 1}})))
    same("update_one without a match", lambda c: counts(c.update_one(whole(5000), {"$inc": {"n": 1}})))
    same("update_many", lambda c: counts(c.update_many({"n": {"$lt": 10}}, {"$inc": {"n": 100}})))
    same("update_many by key", lambda c: counts(c.update_many({"k": 33}, {"$set": {"z": 1}})))
    same("pipeline update", lambda c: counts(c.update_many({"g": 4}, [{"$set": {"y": {"$add": ["$k", 1]}}}])))
    same("array filters", lambda c: counts(c.update_many({"l": {"$exists": True}}, {"$inc": {"l.$[e]": 10}}, array_filters=[{"e": {"$gt": 4}}])))
    same("replace_one", lambda c: counts(c.replace_one(whole(8), {"k": 8, "g": 1, "r": True})))
    same("upsert", lambda c: counts(c.update_one(whole(2001), {"$setOnInsert": {"u": 1}}, upsert=True)))
    same("upsert that replaces", lambda c: counts(c.replace_one(whole(2002), {"k": 2002 % 400, "g": 0, "w": 1}, upsert=True)))
    same("find_one_and_update", lambda c: c.find_one_and_update(whole(9), {"$inc": {"n": 1}}, return_document=True))
    same("find_one_and_delete", lambda c: c.find_one_and_delete(whole(10)))
    same("delete_one", lambda c: c.delete_one(whole(11)).deleted_count)
    same("delete_one by _id", lambda c: c.delete_one({"_id": 12}).deleted_count)
    same("delete_many", lambda c: c.delete_many({"n": {"$gt": 40, "$lt": 50}}).deleted_count)
    same("what is left", contents)
    same("duplicates in order", lambda c: c.insert_many([{"_id": 3000 + i, **{f: whole(i)[f] for f in "kg"}} for i in (1, 2)] + [{"_id": 3001, "k": 1, "g": 1}, {"_id": 3003, "k": 3, "g": 3}]))
    same("duplicates without order", lambda c: c.insert_many([{"_id": 3001, "k": 1, "g": 1}, {"_id": 3004, "k": 4, "g": 4}, {"_id": 3001, "k": 1, "g": 1}], ordered=False))
    same("bulk in order", lambda c: bulk(c, True))
    same("bulk without order", lambda c: bulk(c, False))
    same("what is left behind bulks", contents)
    same("unacknowledged", lambda c: c.with_options(write_concern=pymongo.WriteConcern(w=1)).insert_one({"_id": 4000, "k": 1, "g": 1}).inserted_id)
    same("bad update", lambda c: c.update_one(whole(5), {"$nope": 1}), fails=True)
    same("_id cannot change", lambda c: c.update_one(whole(5), {"$set": {"_id": 7}}), fails=True)
    same("large documents", large)


def bulk(c, ordered):
    base = 5000 if ordered else 6000
    ops = [InsertOne({"_id": base + i, "k": i * 9 % 400, "g": i % 7}) for i in range(60)]
    ops += [UpdateOne({"_id": base + i, "k": i * 9 % 400, "g": i % 7}, {"$set": {"b": i}}) for i in range(30)]
    ops += [UpdateMany({"b": {"$gt": 20}}, {"$inc": {"b": 1}}), DeleteOne({"_id": base, "k": 0, "g": 0})]
    ops += [ReplaceOne({"_id": base + 1, "k": 9, "g": 1}, {"k": 9, "g": 1, "x": 1}), DeleteMany({"b": {"$gt": 25}})]
    r = c.bulk_write(ops, ordered=ordered)
    return (r.inserted_count, r.matched_count, r.modified_count, r.deleted_count)


def large(c):
    c.insert_many([{"_id": 7000 + i, "k": i * 50, "g": i % 7, "s": "x" * 3_000_000} for i in range(8)])
    n = sum(len(d["s"]) for d in c.find({"_id": {"$gte": 7000, "$lt": 7100}}))
    return (n, c.delete_many({"_id": {"$gte": 7000, "$lt": 7100}}).deleted_count)


def definitions():
    same("create_index", lambda c: c.create_index([("n", 1), ("s", -1)]))
    same("list_indexes", lambda c: "n_1_s_-1" in c.index_information())
    same("drop_index", lambda c: c.drop_index("n_1_s_-1"))
    same("drop_index that is not there", lambda c: c.drop_index("nope"), fails=True)
    check("list_collection_names", lambda: set(SHARDED) <= set(db.list_collection_names()))
    check("list_database_names", lambda: db.name in client.list_database_names())
    check("dbStats", lambda: db.command("dbStats")["collections"] >= 4)
    check("collMod", lambda: db.command("collMod", "ranged", validator={"k": {"$exists": True}}))
    check("a validator works on all shards", lambda: outcome(lambda: db.ranged.insert_one({"_id": 9000}))[0:2] == ("error", 121))
    check("collMod back", lambda: db.command("collMod", "ranged", validator={}))
    check("a collection comes by itself", lambda: db.fresh.insert_one({"_id": 1}).inserted_id == 1 and db.fresh.count_documents({}) == 1)
    check("rename", lambda: (db.fresh.rename("renamed"), db.renamed.count_documents({}) == 1)[1])
    check("drop", lambda: (db.drop_collection("renamed"), db.renamed.count_documents({}) == 0)[1])
    check("drop of a sharded one", lambda: (db.drop_collection("hashed"), db.hashed.count_documents({}) == 0)[1])
    check("a database comes by itself", lambda: client.cluster_other.c.insert_one({}).inserted_id)
    check("drop_database", lambda: (client.drop_database("cluster_other"), "cluster_other" not in client.list_database_names())[1])
    check("explain", lambda: db.ranged.find({"k": 5}).explain()["queryPlanner"]["winningPlan"]["stage"] == "SINGLE_SHARD")
    check("explain of several", lambda: db.ranged.find().sort("n", 1).explain()["queryPlanner"]["winningPlan"]["stage"] == "SHARD_MERGE_SORT")


def without_key():
    """Writes of one document that do not say where it is: not as retryable writes."""
    once = MongoClient(sys.argv[1], retryWrites=False)[db.name]
    for coll in ("ranged", "compound"):
        c = once[coll]
        check(f"update_one without the key on {coll}", lambda c=c: counts(c.update_one({"s": "a"}, {"$set": {"one": 1}}))[:2] == (1, 1) and c.count_documents({"one": 1}) == 1)
        check(f"delete_one without the key on {coll}", lambda c=c: c.delete_one({"one": 1}).deleted_count == 1)
        check(f"upsert without the key on {coll}", lambda c=c: (c.update_one({"q": 77}, {"$set": {"k": 350, "g": 6}}, upsert=True), c.find_one({"k": 350, "g": 6, "q": 77}) is not None)[1])


def stale():
    """Another router would not tell this one: here the config servers and shards are changed through it, and it forgets nothing."""
    before = db.ranged.count_documents({})
    for to in ("sb", "sa", "sb"):
        move("ranged", {"k": 0}, to)
        check(f"counted after a move to {to}", lambda: db.ranged.count_documents({}) == before)
        check(f"written after a move to {to}", lambda: db.ranged.update_many({"k": {"$lt": 100}}, {"$inc": {"moved": 1}}).matched_count > 0)
    check("what was written three times", lambda: db.ranged.count_documents({"k": {"$lt": 100}, "moved": {"$ne": 3}}) == 0)


def transactions():
    c = db.ranged
    with client.start_session() as s:
        def one(s):
            c.insert_one({"_id": 9400, "k": 20}, session=s)
            c.update_one({"k": 20, "_id": 9400}, {"$set": {"t": 1}}, session=s)
            return c.find_one({"k": 20, "_id": 9400}, session=s)["t"]

        check("a transaction on one shard", lambda: s.with_transaction(one) == 1)

        def several(s):
            c.update_many({"k": {"$in": [30, 130, 230, 330]}}, {"$set": {"t": 2}}, session=s)
            return c.count_documents({"t": 2}, session=s)

        check("a transaction on two shards", lambda: s.with_transaction(several) > 2)
        check("... is there", lambda: c.count_documents({"t": 2}) > 2)

        def aborted():
            s.start_transaction()
            c.update_many({"k": {"$in": [30, 130]}}, {"$set": {"t": 3}}, session=s)
            s.abort_transaction()
            return c.count_documents({"t": 3}) == 0

        check("an aborted transaction leaves nothing", aborted)
    check("a causal read", causal)


def causal():
    with client.start_session(causal_consistency=True) as s:
        db.ranged.insert_one({"_id": 9500, "k": 350}, session=s)
        return s.operation_time is not None and db.ranged.find_one({"_id": 9500}, session=s) is not None


def bulk_write_command():
    info = [{"ns": f"{db.name}.{c}"} for c in ("ranged", "plain")]
    ops = [{"insert": i % 2, "document": {"_id": 9600 + i, "k": i * 40}} for i in range(10)]
    ops += [{"update": 0, "filter": {"k": 0, "_id": 9600}, "updateMods": {"$set": {"x": 1}}}, {"delete": 1, "filter": {"_id": 9601}, "multi": False}]
    ops += [{"insert": 0, "document": {"_id": 9600, "k": 0}}]
    r = client.admin.command("bulkWrite", 1, ops=ops, nsInfo=info)
    told = [(x["idx"], x["ok"]) for x in r["cursor"]["firstBatch"]]
    return told[-1] == (12, 0.0) and (r["nInserted"], r["nModified"], r["nDeleted"], r["nErrors"]) == (10, 1, 1, 1)


def main():
    prepare()
    reads()
    pipelines()
    writes()
    without_key()
    stale()
    transactions()
    check("bulkWrite", bulk_write_command)
    definitions()
    client.drop_database(db.name)
    print(f"{passed} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


main()
