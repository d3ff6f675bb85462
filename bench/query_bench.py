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
}


def load(target, docs):
    rnd = random.Random(7)
    db = pymongo.MongoClient(target.set.uri, w=1)[DB]
    for at in range(0, docs, 1000):
        db.docs.insert_many([{"_id": i, "k": rnd.randrange(1 << 30), "g": i % 100, "v": rnd.random(), "who": f"user {i:09}",
                              "tags": [f"tag{rnd.randrange(50)}" for _ in range(5)], "text": "x" * 300} for i in range(at, min(docs, at + 1000))])
    db.people.insert_many([{"_id": i, "number": i, "name": f"name {i}"} for i in range(1000)])
    db.docs.create_index("k")
    db.people.create_index("number")
    target.set.settle()


def run_all(db, pipeline, **options):
    return list(db.docs.aggregate(pipeline, **options))


def shape(pipeline, a):
    def run(target, _):
        db = pymongo.MongoClient(target.set.uri)[DB]
        run_all(db, pipeline)
        c0, lat = target.set.cpu(), []
        begun = time.perf_counter()
        for _ in range(a.times):
            t = time.perf_counter()
            run_all(db, pipeline)
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
    for name, pipeline in SHAPES.items():
        answers = [run_all(pymongo.MongoClient(t.set.uri)[DB], pipeline) for t in targets]
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
        pair.run([(name, shape(p, a)) for name, p in SHAPES.items()] + large(a), a.rounds, a.phases)
        pair.report(a)


if __name__ == "__main__":
    sys.exit(main())
