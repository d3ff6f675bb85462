#!/usr/bin/env python3
"""Time series of two servers side by side, each a set of one member.

    time_series_bench.py --a NAME=BINARY --b NAME=BINARY [--port P] [--hours N] [--sources N] [--batch N] [--rounds N] [--phases RE] [--cache GB] [--json FILE]
                         [--md FILE]

Measurements of `--sources` sources come every ten seconds of `--hours` hours, in the order of time, in batches of `--batch`. Both
have the index of sources and times that newer servers make by themselves. Both servers' first answers are compared.
"""
import argparse
import datetime
import random
import sys
import time

import bson
import pymongo

import set_pair

DB = "series"
START = datetime.datetime(2024, 1, 1)
STEP_S = 10
SERIES = {"timeField": "t", "metaField": "m", "granularity": "seconds"}


def measurements(hours, sources):
    rnd = random.Random(7)
    seq = 0
    for at in range(0, hours * 3600, STEP_S):
        t = START + datetime.timedelta(seconds=at)
        for s in range(sources):
            yield {
                "t": t, "m": {"host": s, "zone": s % 5}, "cpu": round(rnd.random() * 100, 2), "load": rnd.randrange(1000),
                "seq": seq, "temp": round(s + rnd.random() / 4, 2),
            }
            seq += 1


def batches(a):
    out = []
    for d in measurements(a.hours, a.sources):
        out.append(d)
        if len(out) == a.batch:
            yield out
            out = []
    if out:
        yield out


def fresh(target, name):
    db = pymongo.MongoClient(target.set.uri, w=1)[DB]
    db[name].drop()
    db.create_collection(name, timeseries=SERIES)
    db[name].create_index([("m", 1), ("t", 1)], name="m_1_t_1")
    return db[name]


def inserting(make, a):
    """Batches made beforehand, so that only the server and the driver are measured."""
    def run(target, _):
        coll = fresh(target, "filling")
        work = make()
        c0, lat, n = target.set.cpu(), [], 0
        begun = time.perf_counter()
        for batch in work:
            t = time.perf_counter()
            coll.insert_many(batch, ordered=a.ordered)
            lat.append(time.perf_counter() - t)
            n += len(batch)
        dt = time.perf_counter() - begun
        return {"ops_s": n / dt, "cpu_us": (target.set.cpu() - c0) / n * 1e6, "lat": lat}
    return run


def shapes(a):
    """Pipelines by name: a list of them, run one after the other."""
    rnd = random.Random(5)
    end = START + datetime.timedelta(hours=a.hours)

    def window():
        first = START + datetime.timedelta(seconds=rnd.randrange(max(1, a.hours - 1) * 3600))
        return {"$gte": first, "$lt": first + datetime.timedelta(hours=1)}
    hour = {"$dateTrunc": {"date": "$t", "unit": "hour"}}
    per_hour = {"$group": {"_id": hour, "n": {"$sum": 1}, "cpu": {"$avg": "$cpu"}, "load": {"$max": "$load"}}}
    by_source = [{"host": s, "zone": s % 5} for s in range(a.sources)]
    return {
        "range by source and time": [[{"$match": {"m": rnd.choice(by_source), "t": window()}}] for _ in range(20)],
        "range by a field of the source and time": [[{"$match": {"m.host": rnd.randrange(a.sources), "t": window()}}] for _ in range(20)],
        "range by time": [[{"$match": {"t": window()}}, {"$project": {"_id": 0, "t": 1, "m": 1, "cpu": 1}}] for _ in range(5)],
        "group per hour": [[per_hour, {"$sort": {"_id": 1}}]],
        "group per hour of one source": [[{"$match": {"m": rnd.choice(by_source)}}, per_hour, {"$sort": {"_id": 1}}] for _ in range(5)],
        "group per source": [[{"$group": {"_id": "$m.host", "n": {"$sum": 1}, "top": {"$max": "$cpu"}}}, {"$sort": {"_id": 1}}]],
        "count": [[{"$count": "n"}]],
        "condition on a value": [[{"$match": {"cpu": {"$gt": 99.5}, "t": {"$lt": end}}}, {"$project": {"_id": 0, "cpu": 1, "m": 1}}]],
        "value range, few buckets": [[{"$match": {"seq": {"$gte": n, "$lt": n + 40}}}, {"$project": {"_id": 0, "seq": 1, "m": 1}}] for n in (1000, 20000, 90000)],
        "value range, few buckets, by an index": [[{"$match": {"temp": {"$gte": v, "$lt": v + 0.3}}}, {"$project": {"_id": 0, "temp": 1, "m": 1}}] for v in (3, 17, 40)],
        "last of one source": [[{"$match": {"m": m}}, {"$sort": {"t": -1}}, {"$limit": 1}] for m in by_source[:20]],
        "sort by time, limit": [[{"$sort": {"t": way}}, {"$limit": 20}, {"$project": {"_id": 0, "t": 1}}] for way in (1, -1)],
        "sort by source and time": [[{"$sort": {"m": 1, "t": 1}}, {"$project": {"_id": 0, "t": 1, "m": 1, "load": 1}}]],
        "sort by time": [[{"$match": {"t": window()}}, {"$sort": {"t": 1}}, {"$project": {"_id": 0, "t": 1}}] for _ in range(5)],
        "least and greatest per source": [[{"$group": {"_id": "$m", "low": {"$min": "$cpu"}, "high": {"$max": "$cpu"}}}, {"$sort": {"_id": 1}}]],
    }


def answers(coll, pipelines):
    return [list(coll.aggregate(p)) for p in pipelines]


def shape(pipelines, a):
    def run(target, _):
        coll = pymongo.MongoClient(target.set.uri)[DB].ready
        answers(coll, pipelines)
        c0, lat = target.set.cpu(), []
        begun = time.perf_counter()
        for _ in range(a.times):
            for p in pipelines:
                t = time.perf_counter()
                list(coll.aggregate(p))
                lat.append(time.perf_counter() - t)
        n = a.times * len(pipelines)
        return {"ops_s": n / (time.perf_counter() - begun), "cpu_us": (target.set.cpu() - c0) / n * 1e6, "lat": lat}
    return run


def _plain(v):
    # A sum of doubles depends on the order of the scan; a measurement's fields have no order.
    if isinstance(v, float):
        return round(v, 6)
    if isinstance(v, dict):
        return {k: _plain(x) for k, x in sorted(v.items())}
    return [_plain(x) for x in v] if isinstance(v, list) else v


def same_answers(targets, all_shapes):
    for name, pipelines in all_shapes.items():
        found = []
        for t in targets:
            rows = answers(pymongo.MongoClient(t.set.uri)[DB].ready, pipelines)
            found.append([sorted(bson.encode(_plain(d)) for d in r) for r in rows])
        if any(f != found[0] for f in found):
            raise RuntimeError(f"{name}: the answers differ")


def main():
    ap = set_pair.arguments(argparse.ArgumentParser(usage=__doc__))
    ap.add_argument("--hours", type=int, default=12)
    ap.add_argument("--sources", type=int, default=50)
    ap.add_argument("--batch", type=int, default=1000)
    ap.add_argument("--times", type=int, default=3)
    ap.add_argument("--ordered", action="store_true")
    a = ap.parse_args()
    with set_pair.Pair((a.a, a.b), a.port, a.cache, count=1) as pair:
        everything = shapes(a)
        for t in pair.targets:
            coll = fresh(t, "ready")
            for i, batch in enumerate(batches(a)):
                for j, d in enumerate(batch):
                    d["_id"] = i * a.batch + j
                coll.insert_many(batch, ordered=False)
            coll.create_index([("temp", 1)], name="temp_1")
            t.set.settle()
        same_answers(pair.targets, everything)
        one_source = [[{"t": START + datetime.timedelta(seconds=i * 1000 + j), "m": i % 7, "cpu": j} for j in range(a.batch)] for i in range(60)]
        phases = [
            (f"insert, batches of {a.batch} over {a.sources} sources", inserting(lambda: [[dict(d) for d in b] for b in batches(a)], a)),
            (f"insert, batches of {a.batch} of one source", inserting(lambda: [[dict(d) for d in b] for b in one_source], a)),
        ]
        pair.run(phases + [(name, shape(p, a)) for name, p in everything.items()], a.rounds, a.phases)
        pair.report(a)


if __name__ == "__main__":
    sys.exit(main())
