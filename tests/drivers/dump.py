#!/usr/bin/env python3
"""The traffic of mongodump and mongorestore, through a driver's own calls: from one set into another while the first is written to.

    dump.py FROM_URI TO_URI [--seconds S]

Both are members of replica sets (FROM needs an oplog), of this server or of a real one: what one writes down the other must take. Either may be a router:
then nobody writes meanwhile, and there are neither an oplog nor UUIDs, as with the tools; a collection of the source is sharded. As the tools do it:
listDatabases, listCollections, listIndexes, finds with a hint on `_id` and without a timeout, buckets of time series as they lie, all into archives in
memory as raw BSON; the oplog's first and last entries, and what lies between (`--oplog`). Then create (also by applyOps with the UUIDs of before, as
`--preserveUUID` does it), unordered inserts that no validator looks at, createIndexes with definitions as they were listed, and applyOps for each entry
(`--oplogReplay`), transactions gathered first. In the end both must have the same documents, options and indexes.
Needs pymongo. Ends with `N passed, N failed` (collections).
"""
import argparse
import datetime
import random
import sys
import threading
import time

import bson
import pymongo
from bson.raw_bson import RawBSONDocument

PLAIN, OTHER = "dumped", "dumped_2"
RAW = bson.CodecOptions(document_class=RawBSONDocument)
BATCH = 500


def is_router(client):
    return client.admin.command("hello").get("msg") == "isdbgrid"


def fill(client):
    """Collections of every kind with something in them."""
    rnd = random.Random(7)
    for name in PLAIN, OTHER:
        client.drop_database(name)
    db = client[PLAIN]
    db.create_collection("collated", collation={"locale": "fr", "strength": 2})
    db.create_collection("checked", validator={"n": {"$gte": 0}}, validationLevel="moderate", validationAction="warn")
    db.create_collection("capped", capped=True, size=1 << 20, max=5000)
    db.create_collection("clustered", clusteredIndex={"key": {"_id": 1}, "unique": True})
    db.create_collection("series", timeseries={"timeField": "t", "metaField": "m", "granularity": "minutes"}, expireAfterSeconds=10**9)
    db.create_collection("images", changeStreamPreAndPostImages={"enabled": True})
    for name in "plain", "collated", "checked", "capped", "clustered", "images":
        db[name].insert_many([{"_id": i, "n": i, "s": f"text {i % 50}", "a": [i, str(i)], "d": rnd.random(), "dec": bson.Decimal128(str(i)),
                               "at": [rnd.uniform(-90, 90), rnd.uniform(-80, 80)], "when": datetime.datetime(2026, 1, 1) + datetime.timedelta(hours=i)}
                              for i in range(1500)])
    db.checked.insert_one({"_id": "odd", "n": -1})
    db.plain.insert_one({"_id": {"k": b"\0\1", "of": bson.Regex("a", "i")}, "long": "x" * 3_000_000, "min": bson.MinKey(), "code": bson.Code("x", {"y": 1})})
    start = datetime.datetime(2026, 1, 1)
    db.series.insert_many([{"t": start + datetime.timedelta(minutes=i), "m": {"of": i % 7}, "v": i * 0.5} for i in range(3000)])
    db.plain.create_index([("n", 1), ("s", -1)], unique=True, name="both")
    db.plain.create_index([("s", "text")], default_language="none", weights={"s": 3})
    db.plain.create_index([("at", "2d")], min=-200, max=200)
    db.plain.create_index("$**", wildcardProjection={"d": 0})
    db.plain.create_index([("d", "hashed")])
    db.collated.create_index("s", partialFilterExpression={"n": {"$gt": 100}}, collation={"locale": "simple"})
    db.checked.create_index("when", expireAfterSeconds=10**9, sparse=True, hidden=True)
    db.series.create_index([("m.of", 1), ("t", -1)])
    db.command("create", "view", viewOn="plain", pipeline=[{"$match": {"n": {"$lt": 10}}}], collation={"locale": "en", "strength": 1})
    db.command("create", "on_view", viewOn="view", pipeline=[{"$project": {"n": 1}}], collation={"locale": "en", "strength": 1})
    if is_router(client):
        client.admin.command("shardCollection", f"{OTHER}.spread", key={"_id": "hashed"})
        client[OTHER].spread.insert_many([{"_id": i, "n": i} for i in range(800)])
        client[OTHER].spread.create_index([("n", 1)], name="by n")
    client[OTHER].words.insert_many([{"_id": bson.ObjectId(), "w": w} for w in "the quick brown fox".split()])


class Users(threading.Thread):
    """Writes of every kind until told to stop."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.client, self.over, self.done, self.failed = client, threading.Event(), 0, None

    def run(self):
        try:
            while not self.over.is_set():
                self.write(self.done)
                self.done += 1
        except Exception as e:
            self.failed = e

    def write(self, i):
        db, rnd = self.client[PLAIN], random.Random(i)
        k = rnd.randrange(1500)
        db.plain.update_one({"_id": k}, {"$inc": {"d": 1}, "$push": {"a": i}, "$set": {f"f{i % 5}": {"deep": [i]}}})
        db.plain.insert_one({"_id": f"late {i}", "n": 10_000 + i, "s": "late"})
        db.plain.delete_one({"_id": f"late {i - 20}"})
        db.collated.replace_one({"_id": k}, {"s": "Été", "n": i}, upsert=True)
        db.clustered.update_many({"_id": {"$lt": 20}}, [{"$set": {"twice": {"$multiply": ["$n", 2]}, "i": i}}])
        db.capped.insert_one({"_id": 100_000 + i})
        db.series.insert_one({"t": datetime.datetime(2026, 6, 1) + datetime.timedelta(seconds=i), "m": {"of": i % 3}, "v": i})
        if i % 10 == 0:
            with self.client.start_session() as s, s.start_transaction():
                db.images.update_one({"_id": k}, {"$set": {"in": i}}, session=s)
                self.client[OTHER].words.insert_one({"w": i}, session=s)
        if i % 25 == 0:
            passing = self.client[OTHER][f"passing{i}"]
            passing.insert_many([{"_id": j, "of": i} for j in range(30)])
            passing.create_index("of")
            if i % 50 == 0:
                passing.drop()
        if i % 40 == 0:
            self.client[OTHER].command("collMod", "words", validator={"w": {"$exists": True}})


def first_and_last(client):
    """The times of the oplog's oldest and newest entries."""
    oplog = client.local["oplog.rs"]
    ends = [next(oplog.find({}, {"ts": 1}).sort("$natural", d).limit(-1)) for d in (1, -1)]
    return ends[0]["ts"], ends[1]["ts"]


def collections(client, database):
    """(name, type, options, UUID) of what is dumped: collections, views, and series by their own name with the UUID of their buckets."""
    listed = {c["name"]: c for c in client[database].list_collections()}
    uuid = {name: c["info"].get("uuid") for name, c in listed.items()}
    return sorted(((name, c["type"], c["options"], uuid.get(data_of(name, c["type"]))) for name, c in listed.items()
                   if not name.startswith("system.")), key=lambda c: c[0])


def data_of(name, kind):
    return f"system.buckets.{name}" if kind == "timeseries" else name


def dump(client):
    """An archive: for each collection its definition and its documents as bytes."""
    archive = []
    for database in client.list_database_names():
        if database not in (PLAIN, OTHER):
            continue
        for name, kind, options, uuid in collections(client, database):
            if kind == "view":
                archive.append((database, name, kind, options, uuid, [], []))
                continue
            indexes = [dict(i) for i in client[database].command("listIndexes", name)["cursor"]["firstBatch"]]
            data = client[database].get_collection(data_of(name, kind), codec_options=RAW)
            data.estimated_document_count()
            hint = None if "clusteredIndex" in options or kind == "timeseries" else {"_id": 1}
            cursor = data.find({}, no_cursor_timeout=True, hint=hint and list(hint.items()), batch_size=300)
            archive.append((database, name, kind, options, uuid, indexes, [bytes(d.raw) for d in cursor]))
    return archive


def dump_oplog(client, since, until):
    oldest, _ = first_and_last(client)
    if oldest > since:
        raise SystemExit("the oplog has been cut back meanwhile")
    oplog = client.local.get_collection("oplog.rs", codec_options=bson.CodecOptions(document_class=bson.SON))
    return list(oplog.find({"ts": {"$gte": since, "$lte": until}}, oplog_replay=True, no_cursor_timeout=True))


def restore(client, archive, keep_uuids):
    for database in PLAIN, OTHER:
        client.drop_database(database)
    # views last, and those on views behind them
    order = {"view": 1}
    for database, name, kind, options, uuid, indexes, documents in sorted(archive, key=lambda a: (order.get(a[2], 0), len(a[1]))):
        db = client[database]
        options = {k: v for k, v in options.items() if k != "uuid"}
        if keep_uuids and kind != "view":
            # with the `_id` index as it was, where there is one
            of_id = {"idIndex": i for i in indexes if i["name"] == "_id_" and not i.get("clustered")}
            client.admin.command("applyOps", [{"op": "c", "ns": f"{database}.$cmd", "ui": uuid, "o": {"create": name, **options, **of_id}}])
        else:
            db.command("create", name, **options)
        target = db.get_collection(data_of(name, kind), codec_options=RAW, write_concern=pymongo.WriteConcern("majority"))
        for at in range(0, len(documents), BATCH):
            ops = [pymongo.InsertOne(RawBSONDocument(d)) for d in documents[at:at + BATCH]]
            target.bulk_write(ops, ordered=False, bypass_document_validation=True)
        # without a word an index would take the collection's collation
        simple = {"collation": {"locale": "simple"}} if "collation" in options else {}
        wanted = [{**simple, **i} for i in indexes if i["name"] != "_id_" and not i.get("clustered")]
        if wanted:
            db.command("createIndexes", name, indexes=wanted)


def replay(client, entries, keep_uuids):
    """Entries as mongorestore sends them: no-ops left out, transactions when they commit, indexes built by command; new UUIDs unless the old are kept."""
    chains, sent = {}, 0
    fields = {"op", "ns", "o", "o2", "b", "ts", "t", "v", "wall"} | ({"ui"} if keep_uuids else set())

    def apply(ops):
        ops = [bson.SON((k, v) for k, v in op.items() if k in fields) for op in ops]
        if ops:
            client.admin.command("applyOps", ops)
        return len(ops)

    for e in entries:
        kind, o = e["op"], e["o"]
        if kind == "n" or not e["ns"].startswith((PLAIN, OTHER)) and "applyOps" not in o:
            continue
        if kind == "c" and "applyOps" in o and "txnNumber" in e:
            key = (bson.encode(e["lsid"]), e["txnNumber"])
            chains.setdefault(key, []).extend(o["applyOps"])
            if not o.get("partialTxn") and not o.get("prepare"):
                sent += apply([op for op in chains.pop(key) if op["ns"].startswith((PLAIN, OTHER))])
            continue
        if kind == "c" and ("createIndexes" in o or "commitIndexBuild" in o):
            build(client, e)
            continue
        if kind == "c" and "startIndexBuild" in o:
            continue
        sent += apply([e])
    return sent


def build(client, entry):
    o, database = entry["o"], entry["ns"].split(".")[0]
    if "createIndexes" in o:
        specs = [{k: v for k, v in o.items() if k != "createIndexes"}]
    else:
        specs = o["indexes"]
    client[database].command("createIndexes", o.get("createIndexes") or o["commitIndexBuild"], indexes=specs)


def state(client, with_uuids):
    """What is compared: for each collection its options, indexes and documents."""
    out = {}
    for database in PLAIN, OTHER:
        for name, kind, options, uuid in collections(client, database):
            db = client[database]
            indexes = [] if kind == "view" else db.command("listIndexes", name)["cursor"]["firstBatch"]
            # 6.3 and later make an index of their own over a series' meta field and time
            own = [(options["timeseries"].get("metaField"), 1), (options["timeseries"]["timeField"], 1)] if kind == "timeseries" else None
            indexes = sorted(bson.encode(i) for i in indexes if list(i["key"].items()) != own)
            find = db.get_collection(name if kind == "view" else data_of(name, kind), codec_options=RAW).find({})
            rows = sorted(bytes(d.raw) for d in find)
            out[f"{database}.{name}"] = (kind, options, uuid if with_uuids else None, indexes, rows)
    return out


def differs(a, b):
    """In what two states of a collection differ, or None."""
    if a is None or b is None:
        return "is on one side alone"
    for what, x, y in zip(("type", "options", "UUID", "indexes"), a, b):
        if x != y:
            decode = (lambda v: [bson.decode(i) for i in v]) if what == "indexes" else (lambda v: v)
            return f"{what}: {decode(x)} / {decode(y)}"
    if a[4] != b[4]:
        left, right = set(a[4]) - set(b[4]), set(b[4]) - set(a[4])
        example = [str(bson.decode(min(s)))[:300] for s in (left, right) if s]
        return f"documents: {len(a[4])} / {len(b[4])}, {len(left)} here alone, {len(right)} there alone: {example}"
    return None


def compare(source, target, keep_uuids):
    a, b = state(source, keep_uuids), state(target, keep_uuids)
    passed = failed = 0
    for name in sorted(a.keys() | b.keys()):
        wrong = differs(a.get(name), b.get(name))
        if wrong:
            failed += 1
            print(f"{name}: {wrong}")
        else:
            passed += 1
    return passed, failed


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("source")
    p.add_argument("target")
    p.add_argument("--seconds", type=float, default=4, help="of writes before the dump's end")
    a = p.parse_args()
    source, target = (pymongo.MongoClient(u, directConnection=True, serverSelectionTimeoutMS=10_000) for u in (a.source, a.target))
    passed = failed = 0
    if is_router(source) or is_router(target):
        fill(source)
        archive = dump(source)
        restore(target, archive, keep_uuids=False)
        passed, failed = compare(source, target, keep_uuids=False)
        print(f"{len(archive)} collections and {sum(len(c[6]) for c in archive)} documents in the archive\n{passed} passed, {failed} failed")
        return 1 if failed else 0
    for keep_uuids in False, True:
        fill(source)
        users = Users(source)
        _, since = first_and_last(source)
        users.start()
        time.sleep(a.seconds / 2)
        archive = dump(source)
        time.sleep(a.seconds / 2)
        users.over.set()
        users.join(30)
        if users.failed:
            raise users.failed
        _, until = first_and_last(source)
        entries = dump_oplog(source, since, until)
        restore(target, archive, keep_uuids)
        sent = replay(target, entries, keep_uuids)
        p_, f_ = compare(source, target, keep_uuids)
        print(f"{'with UUIDs' if keep_uuids else 'without UUIDs'}: {users.done} rounds of writes, {len(archive)} collections and "
              f"{sum(len(c[6]) for c in archive)} documents in the archive, {sent} of {len(entries)} entries replayed: {p_} collections alike, {f_} not", flush=True)
        passed, failed = passed + p_, failed + f_
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
