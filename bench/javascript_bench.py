#!/usr/bin/env python3
"""JavaScript of two servers side by side, each a set of one member.

    javascript_bench.py --a NAME='BINARY OPTIONS' --b NAME=BINARY [--port P] [--docs N] [--times N] [--rounds N] [--phases RE] [--cache GB]
                        [--json FILE] [--md FILE]

pandod needs `--setParameter javascriptEnabled=true` among its options. Each phase runs one command `--times` times on one client
and reads all of its answer; both servers' first answers are compared, so a ratio stands for the same work. ops_s: commands per
second, CPU per command. The last phase reads one document by `$where`, again and again: what setting the engine up costs.
"""
import argparse
import random
import statistics
import sys
import time

import pymongo

import set_pair

DB = "script"
ADD = {"$function": {"body": "function(a, b) { return a * 2 + b; }", "args": ["$v", "$g"], "lang": "js"}}
WORDS = {"$function": {"body": "function(tags) { return tags.filter(t => t.endsWith('7')).join('+'); }", "args": ["$tags"], "lang": "js"}}
WHOLE = {"$function": {"body": "function(d) { return Object.keys(d).length; }", "args": ["$$ROOT"], "lang": "js"}}
MEAN = {"$accumulator": {
    "init": "function() { return {n: 0, sum: 0}; }", "accumulate": "function(s, v) { return {n: s.n + 1, sum: s.sum + v}; }",
    "accumulateArgs": ["$v"], "merge": "function(a, b) { return {n: a.n + b.n, sum: a.sum + b.sum}; }",
    "finalize": "function(s) { return s.sum / s.n; }", "lang": "js"}}


def find(where, **more):
    return {"find": "docs", "filter": {"$where": where, **more}, "projection": {"_id": 1}, "batchSize": 1_000_000}


def aggregate(*stages):
    return {"aggregate": "docs", "pipeline": list(stages), "cursor": {"batchSize": 1_000_000}}


SHAPES = {
    "$where, one field": find("this.v > 500 && this.v < 510"),
    "$where, strings and arrays": find("function() { return this.tags.indexOf('tag7') >= 0 && this.who.substr(-1) == '3'; }"),
    "$where, all of a document": find("Object.keys(this).length > 8"),
    "$function, two numbers": aggregate({"$project": {"x": ADD}}, {"$group": {"_id": None, "sum": {"$sum": "$x"}}}),
    "$function, an array": aggregate({"$project": {"x": WORDS}}, {"$match": {"x": "tag7"}}, {"$count": "n"}),
    "$function, $$ROOT": aggregate({"$project": {"x": WHOLE}}, {"$group": {"_id": "$x", "n": {"$sum": 1}}}),
    "$accumulator, 100 groups": aggregate({"$group": {"_id": "$g", "mean": MEAN}}, {"$sort": {"_id": 1}}),
    "mapReduce, 100 keys": {"mapReduce": "docs", "map": "function() { emit(this.g, this.v); }",
                            "reduce": "function(k, all) { return Array.sum(all); }", "out": {"inline": 1}},
    "$where, one document": find("this.v >= 0", _id=7),
}
MANY = {"$where, one document": 100}


def load(target, docs):
    rnd = random.Random(7)
    db = pymongo.MongoClient(target.set.uri, w=1)[DB]
    for at in range(0, docs, 1000):
        db.docs.insert_many([{"_id": i, "g": i % 100, "v": rnd.randrange(1000), "who": f"user {i:09}", "k": rnd.randrange(1 << 30),
                              "tags": [f"tag{rnd.randrange(50)}" for _ in range(5)], "text": "x" * 300, "at": {"x": 1, "y": [1, 2, 3]}}
                             for i in range(at, min(docs, at + 1000))])
    target.set.settle()


def answer(db, name):
    reply = db.command(SHAPES[name])
    return reply["cursor"]["firstBatch"] if "cursor" in reply else sorted(reply["results"], key=lambda r: r["_id"])


def shape(name, a):
    def run(target, _):
        db = pymongo.MongoClient(target.set.uri)[DB]
        answer(db, name)
        times, lat = a.times * MANY.get(name, 1), []
        c0, begun = target.set.cpu(), time.perf_counter()
        for _ in range(times):
            t = time.perf_counter()
            answer(db, name)
            lat.append(time.perf_counter() - t)
        return {"ops_s": times / (time.perf_counter() - begun), "cpu_us": (target.set.cpu() - c0) / times * 1e6, "lat": lat}
    return run


def same_answers(targets):
    """Both must do the same work."""
    for name in SHAPES:
        answers = [answer(pymongo.MongoClient(t.set.uri)[DB], name) for t in targets]
        if any(a != answers[0] for a in answers):
            raise RuntimeError(f"{name}: the answers differ: {[str(a)[:200] for a in answers]}")


def main():
    ap = set_pair.arguments(argparse.ArgumentParser(usage=__doc__))
    ap.add_argument("--docs", type=int, default=20_000)
    ap.add_argument("--times", type=int, default=5)
    a = ap.parse_args()
    with set_pair.Pair((a.a, a.b), a.port, a.cache, count=1) as pair:
        for t in pair.targets:
            load(t, a.docs)
        same_answers(pair.targets)
        pair.run([(name, shape(name, a)) for name in SHAPES], a.rounds, a.phases)
        pair.report(a)
        if len(pair.targets) == 2:
            ratios = [pair.targets[0].results[n]["ops_s"] / pair.targets[1].results[n]["ops_s"] for n in pair.names]
            print(f"throughput ratio: median {statistics.median(ratios):.2f}, least {min(ratios):.2f} of {len(ratios)}")


if __name__ == "__main__":
    sys.exit(main())
