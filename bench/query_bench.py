#!/usr/bin/env python3
"""Aggregations of two servers side by side, each a set of one member.

    query_bench.py --a NAME=BINARY --b NAME=BINARY [--port P] [--docs N] [--times N] [--rounds N] [--phases RE] [--cache GB] [--json FILE]
                   [--md FILE] [--groups N] [--sort-mb N]

Each phase runs one pipeline `--times` times on one client and reads all of its answer. Both servers' first answers are compared,
so a ratio stands for the same work. ops_s: pipelines per second, CPU per pipeline.

--groups N and --sort-mb N add the two that spill to disk ($group of N groups, $sort of N MB); largest resident memory in MiB is in
the table then. --b may be left out.
"""
import argparse
import random
import statistics
import sys
import threading
import time

import bson
import pymongo

import set_pair

DB = "query"
MEMORY_LOOK_S = 0.02

SHAPES = {
    "$match and $group": [{"$match": {"v": {"$lt": 0.5}}}, {"$group": {"_id": "$g", "n": {"$sum": 1}, "sum": {"$sum": "$v"}, "top": {"$max": "$k"}}}, {"$sort": {"_id": 1}}],
    "$lookup, indexed": [{"$match": {"_id": {"$lt": 2000}}}, {"$lookup": {"from": "people", "localField": "g", "foreignField": "number", "as": "who"}}, {"$project": {"who.name": 1}}],
    "$sort and $limit, index": [{"$sort": {"k": 1}}, {"$limit": 100}, {"$project": {"k": 1}}],
    "$sort and $limit, no index": [{"$sort": {"v": 1}}, {"$limit": 100}, {"$project": {"v": 1}}],
    "$unwind and $group": [{"$unwind": "$tags"}, {"$group": {"_id": "$tags", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}],
    "$facet": [{"$facet": {
        "byGroup": [{"$group": {"_id": "$g", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}],
        "top": [{"$sort": {"v": -1}}, {"$limit": 10}, {"$project": {"v": 1}}],
        "count": [{"$match": {"v": {"$gt": 0.9}}}, {"$count": "n"}]}}],
    "scan with a complex $expr": [{"$match": {"$expr": {"$and": [
        {"$gt": [{"$add": [{"$multiply": ["$v", 100]}, {"$mod": ["$k", 7]}]}, 95]},
        {"$eq": [{"$substrCP": ["$who", 0, 4]}, "user"]},
        {"$in": [{"$toInt": {"$floor": {"$multiply": ["$v", 10]}}}, [1, 9, 10]]}]}}}, {"$count": "n"}],
    "$lookup of many, indexed": [{"$match": {"_id": {"$lt": 20}}}, {"$lookup": {"from": "docs", "localField": "_id", "foreignField": "g", "as": "all"}},
                                 {"$project": {"n": {"$size": "$all"}, "sum": {"$sum": "$all.v"}}}, {"$sort": {"_id": 1}}],
    "$setWindowFields, running sum": [{"$match": {"g": {"$lt": 20}}}, {"$setWindowFields": {"partitionBy": "$g", "sortBy": {"k": 1}, "output": {
        "run": {"$sum": "$v", "window": {"documents": ["unbounded", "current"]}}}}}, {"$group": {"_id": "$g", "top": {"$max": "$run"}}}, {"$sort": {"_id": 1}}],
    "$geoWithin, a polygon": [{"$match": {"at": {"$geoWithin": {"$geometry": {
        "type": "Polygon", "coordinates": [[[5, 45], [15, 45], [15, 55], [5, 55], [5, 45]]]}}}}}, {"$count": "n"}],
    "$geoNear, the 50 nearest": [{"$geoNear": {"near": {"type": "Point", "coordinates": [8, 50]}, "distanceField": "d", "key": "at"}},
                                 {"$limit": 50}, {"$project": {"_id": 1}}],
    "$text, one word": [{"$match": {"$text": {"$search": "harbour"}}}, {"$count": "n"}],
    "$text, the best of two words": [{"$match": {"$text": {"$search": "castle winter"}}}, {"$sort": {"score": {"$meta": "textScore"}, "_id": 1}},
                                     {"$limit": 20}, {"$project": {"_id": 1}}],
}
# Where they run, when not on `docs`.
COLLECTION = {"$lookup of many, indexed": "people", **{name: "places" for name in SHAPES if name.startswith(("$geo", "$text"))}}
WORDS = ("quiet harbour market garden bakery river bridge museum station library castle tower school theatre square park coffee bread cheese "
         "flower music painting history travel mountain island forest winter summer morning evening").split()


def load(target, docs):
    rnd = random.Random(7)
    db = pymongo.MongoClient(target.set.uri, w=1)[DB]
    for at in range(0, docs, 1000):
        db.docs.insert_many([{"_id": i, "k": rnd.randrange(1 << 30), "g": i % 100, "v": rnd.random(), "who": f"user {i:09}",
                              "tags": [f"tag{rnd.randrange(50)}" for _ in range(5)], "text": "x" * 300} for i in range(at, min(docs, at + 1000))])
    db.people.insert_many([{"_id": i, "number": i, "name": f"name {i}"} for i in range(1000)])
    for at in range(0, docs // 4, 1000):
        db.places.insert_many([{"_id": i, "about": " ".join(rnd.choices(WORDS, k=30)),
                                "at": {"type": "Point", "coordinates": [rnd.uniform(-20, 40), rnd.uniform(35, 65)]}}
                               for i in range(at, min(docs // 4, at + 1000))])
    db.docs.create_index("k")
    db.docs.create_index("g")
    db.people.create_index("number")
    db.places.create_index([("at", "2dsphere")])
    db.places.create_index([("about", "text")])
    target.set.settle()


def run_all(db, name):
    return list(db[COLLECTION.get(name, "docs")].aggregate(SHAPES[name]))


def shape(name, a):
    def run(target, _):
        db = pymongo.MongoClient(target.set.uri)[DB]
        run_all(db, name)
        c0, lat = target.set.cpu(), []
        begun = time.perf_counter()
        for _ in range(a.times):
            t = time.perf_counter()
            run_all(db, name)
            lat.append(time.perf_counter() - t)
        return {"ops_s": a.times / (time.perf_counter() - begun), "cpu_us": (target.set.cpu() - c0) / a.times * 1e6, "lat": lat}
    return run


class Peak(threading.Thread):
    """The largest resident memory of a set's members, by looking often."""

    def __init__(self, target):
        super().__init__(daemon=True)
        self.target, self.most, self.over = target, 0.0, threading.Event()

    def run(self):
        while not self.over.wait(MEMORY_LOOK_S):
            self.most = max(self.most, *(m.rss() for m in self.target.set.members))


def spilling(prepare, pipeline, check):
    def run(target, rnd):
        db = pymongo.MongoClient(target.set.uri, w=1)[DB]
        if rnd == 0:
            prepare(db)
            target.set.settle()
        peak, c0, t0 = Peak(target), target.set.cpu(), time.perf_counter()
        peak.start()
        found = next(db.large.aggregate(pipeline, allowDiskUse=True))
        peak.over.set()
        peak.join()
        if not check(found):
            raise RuntimeError(f"{target.name}: {found}")
        dt = time.perf_counter() - t0
        return {"ops_s": 1 / dt, "cpu_us": (target.set.cpu() - c0) * 1e6, "seconds": dt, "peak_mib": peak.most}
    return run


def fill(count, make):
    def prepare(db):
        db.large.drop()
        for at in range(0, count, 5000):
            db.large.insert_many([make(i) for i in range(at, min(count, at + 5000))])
    return prepare


def large(a):
    out = []
    if a.groups:
        n = a.groups
        pipeline = [{"$group": {"_id": {"$mod": [{"$multiply": ["$_id", 7919]}, n]}, "n": {"$sum": 1}}}, {"$group": {"_id": None, "n": {"$sum": "$n"}, "groups": {"$sum": 1}}}]
        out.append((f"$group of {n:,} groups, spilling", spilling(fill(n, lambda i: {"_id": i}), pipeline, lambda d: d["n"] == n)))
    if a.sort_mb:
        rnd, count = random.Random(3), a.sort_mb * 1000
        pipeline = [{"$sort": {"k": 1}}, {"$group": {"_id": None, "n": {"$sum": 1}, "first": {"$first": "$k"}, "last": {"$last": "$k"}, "text": {"$max": "$text"}}}]
        out.append((f"$sort of {a.sort_mb:,} MB, spilling", spilling(fill(count, lambda i: {"_id": i, "k": rnd.random(), "text": "%0950d" % i}), pipeline, lambda d: d["n"] == count and d["first"] <= d["last"])))
    return out


def same_answers(targets):
    """Both must do the same work."""
    for name in SHAPES:
        answers = [run_all(pymongo.MongoClient(t.set.uri)[DB], name) for t in targets]
        rounded = [[bson.encode({"d": _rounded(d)}) for d in a] for a in answers]
        if any(r != rounded[0] for r in rounded):
            raise RuntimeError(f"{name}: the answers differ")


def _rounded(v):
    # A sum of doubles depends on the order of the scan.
    if isinstance(v, float):
        return round(v, 6)
    if isinstance(v, dict):
        return {k: _rounded(x) for k, x in v.items()}
    return [_rounded(x) for x in v] if isinstance(v, list) else v


def tell_ratios(pair):
    """Of the queries that fit into memory."""
    if len(pair.targets) == 2:
        ours, theirs = (t.results for t in pair.targets)
        ratios = [ours[name]["ops_s"] / theirs[name]["ops_s"] for name in pair.names if name in SHAPES]
        if ratios:
            print(f"throughput ratio: median {statistics.median(ratios):.2f}, least {min(ratios):.2f} of {len(ratios)}")


def main():
    ap = set_pair.arguments(argparse.ArgumentParser(usage=__doc__))
    ap.add_argument("--docs", type=int, default=100_000)
    ap.add_argument("--times", type=int, default=5)
    ap.add_argument("--groups", type=int, default=0)
    ap.add_argument("--sort-mb", type=int, default=0)
    a = ap.parse_args()
    with set_pair.Pair((a.a, a.b), a.port, a.cache, count=1) as pair:
        for t in pair.targets:
            load(t, a.docs)
        same_answers(pair.targets)
        pair.run([(name, shape(name, a)) for name in SHAPES] + large(a), a.rounds, a.phases)
        pair.report(a)
        tell_ratios(pair)


if __name__ == "__main__":
    sys.exit(main())
