#!/usr/bin/env python3
"""Change streams of two servers side by side, each a set of three members.

    change_stream_bench.py --a NAME=BINARY --b NAME=BINARY [--port P] [--streams 10,200] [--ops N] [--rate N] [--rounds N] [--phases RE]
                           [--cache GB] [--json FILE] [--md FILE]

  latency          a writer inserts at a fixed rate (w: 1) into one collection that all streams watch, at most as fast as it is answered; the time
                   from just before the insert to each stream's having the event (p50, p99). ops_s: events delivered, all streams together
  throughput       `--ops` documents by insert_many at full speed; until every stream has had every event. ops_s as above
  elsewhere        the same documents go into a collection that no stream watches, then one each into the watched ones: what it costs to
                   skip. ops_s: documents per second until the last stream has its event

Streams are opened on several client processes, through plain getMore commands on their own connections (a thread each), so that
the clients cost little. CPU is that of all members together, per document. --b may be left out.
"""
import argparse
import multiprocessing as mp
import sys
import threading
import time

import pymongo

import set_pair

DB = "streams"
PROCESSES = 4
UP_S, DONE_S = 120, 600


class Watch(threading.Thread):
    """One stream: counts its events, and notes how old each was when it carries a time."""

    def __init__(self, client, name, wanted):
        super().__init__(daemon=True)
        self.db, self.coll, self.wanted, self.got, self.ages = client[DB], name, wanted, 0, []
        self.session = client.start_session()
        reply = self.db.command("aggregate", name, pipeline=[{"$changeStream": {}}], cursor={}, session=self.session)
        self.cursor = reply["cursor"]["id"]

    def run(self):
        while self.got < self.wanted:
            reply = self.db.command("getMore", self.cursor, collection=self.coll, maxTimeMS=1000, session=self.session)
            now = time.time()
            batch = reply["cursor"]["nextBatch"]
            self.got += len(batch)
            self.ages.extend(now - e["fullDocument"]["at"] for e in batch if "at" in e["fullDocument"])
        self.db.command("killCursors", self.coll, cursors=[self.cursor], session=self.session)


def watch(uri, name, streams, wanted, ready, out):
    client = pymongo.MongoClient(uri, maxPoolSize=streams + 1)
    all_ = [Watch(client, name, wanted) for _ in range(streams)]
    for w in all_:
        w.start()
    ready.release()
    for w in all_:
        w.join()
    out.put([x for w in all_ for x in w.ages] if all(w.got == wanted for w in all_) else None)


def watched(target, streams, wanted, name, feed):
    """Opens the streams, feeds them, waits until each has had `wanted` events. Gives (ages, seconds, CPU seconds)."""
    ready, out = mp.Semaphore(0), mp.Queue()
    shares = [streams // PROCESSES + (i < streams % PROCESSES) for i in range(PROCESSES)]
    ps = [mp.Process(target=watch, args=(target.set.uri, name, n, wanted, ready, out)) for n in shares if n]
    for p in ps:
        p.start()
    for _ in ps:
        if not ready.acquire(timeout=UP_S):
            raise RuntimeError("a client did not come up")
    time.sleep(0.3)
    c0, t0 = target.set.cpu(), time.perf_counter()
    feed()
    parts = [out.get(timeout=DONE_S) for _ in ps]
    dt = time.perf_counter() - t0
    if None in parts:
        raise RuntimeError("a stream failed, or had more events than there were")
    ages = [x for part in parts for x in part]
    target.set.settle()
    cpu = target.set.cpu() - c0
    for p in ps:
        p.join()
    return ages, dt, cpu


def latency(streams, a):
    def run(target, rnd):
        name = f"latency{streams}"
        coll = pymongo.MongoClient(target.set.uri, w=1)[DB][name]
        n = max(20, a.rate * 4)

        def feed():
            begun = time.perf_counter()
            for i in range(n):
                time.sleep(max(0.0, begun + i / a.rate - time.perf_counter()))
                coll.insert_one({"at": time.time(), "i": i, "text": "x" * 200})
        ages, dt, cpu = watched(target, streams, n, name, feed)
        return {"ops_s": n * streams / dt, "cpu_us": cpu / n * 1e6, "lat": ages}
    return run


def many(coll, n):
    for at in range(0, n, 1000):
        coll.insert_many([{"i": i, "text": "x" * 200} for i in range(at, min(n, at + 1000))])


def throughput(streams, a):
    def run(target, rnd):
        name, n = f"throughput{streams}", a.ops * 10 // streams
        coll = pymongo.MongoClient(target.set.uri, w=1)[DB][name]
        _, dt, cpu = watched(target, streams, n, name, lambda: many(coll, n))
        return {"ops_s": n * streams / dt, "cpu_us": cpu / n * 1e6}
    return run


def elsewhere(streams, a):
    def run(target, rnd):
        db = pymongo.MongoClient(target.set.uri, w=1)[DB]
        name = f"quiet{streams}"

        def feed():
            many(db.elsewhere, a.ops)
            db[name].insert_one({"i": 0})
        _, dt, cpu = watched(target, streams, 1, name, feed)
        return {"ops_s": a.ops / dt, "cpu_us": cpu / a.ops * 1e6}
    return run


def main():
    ap = set_pair.arguments(argparse.ArgumentParser(usage=__doc__))
    ap.add_argument("--streams", default="10,200")
    ap.add_argument("--ops", type=int, default=20_000)
    ap.add_argument("--rate", type=int, default=50)
    a = ap.parse_args()
    mp.set_start_method("fork")
    phases = []
    for n in (int(x) for x in a.streams.split(",")):
        phases.append((f"latency, {n} streams", latency(n, a)))
        phases.append((f"throughput, {n} streams", throughput(n, a)))
        phases.append((f"writes elsewhere, {n} streams", elsewhere(n, a)))
    with set_pair.Pair((a.a, a.b), a.port, a.cache) as pair:
        for t in pair.targets:
            db = pymongo.MongoClient(t.set.uri)[DB]
            for name, _ in phases:
                db[name.split(",")[0]].insert_one({})
            t.set.settle()
        pair.run(phases, a.rounds, a.phases)
        pair.report(a)


if __name__ == "__main__":
    sys.exit(main())
