#!/usr/bin/env python3
"""Replica sets of two servers side by side: write throughput, latency, CPU of ALL members per operation, replication.

    set_bench.py --a NAME=BINARY --b NAME=BINARY [--port P] [--clients 1,8,32] [--ops N] [--rounds N] [--phases RE]
                 [--docs N] [--cache GB] [--json FILE] [--md FILE]

Starts three members of each binary on this machine (A on P, P+1, P+2, B on P+10..P+12; and one single member each for the
one-node phases, P+5 and P+15), with a fresh folder and default settings except the cache size. Each phase runs on one set, then on the other, `--rounds`
times with the order swapped, so that a busy machine hurts both alike; the table gives medians. The idle CPU of both sets (heartbeats)
is measured first and taken off nothing: it is shown. Clients are processes that speak the wire through pymongo.

  writes           insert_one and update_one ($inc by _id) at w: 1, w: majority, j: true (w: 1), at each number of clients
  one node         the same at j: true against a set of one
  apply            a secondary is stopped (SIGSTOP), the primary takes N documents by insert_many at full speed, the secondary goes on: the rate of
                   the primary, and of the secondary's catch-up (documents per second from SIGCONT until it has applied the last)
  lag              insert_many at full speed for some seconds: the largest lag of the secondaries (milliseconds, by sampling their applied
                   optime against documents acknowledged), and how long they need after the last acknowledgement

--b may be left out. Needs pymongo; only processes that it started are measured and ended.
"""
import argparse
import json
import multiprocessing as mp
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pymongo
from pymongo.read_preferences import SecondaryPreferred
from pymongo.write_concern import WriteConcern

import harness

DB = "bench"
MEMBERS = 3
START_S = 90
CONCERNS = {"w:1": {"w": 1}, "w:majority": {"w": "majority"}, "j:true": {"w": 1, "j": True}}


class Member:
    def __init__(self, binary, home, port, name, cache):
        self.port, self.home = port, home
        home.mkdir(parents=True)
        cmd = [*shlex.split(binary), "--dbpath", str(home), "--port", str(port), "--replSet", name, "--bind_ip", "127.0.0.1", "--nounixsocket",
               "--logpath", str(home / "log"), "--wiredTigerCacheSizeGB", str(cache)]
        self.proc = subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def cpu(self):
        return harness.process_cpu(self.proc.pid)

    def rss(self):
        with open(f"/proc/{self.proc.pid}/status") as f:
            return next(int(ln.split()[1]) for ln in f if ln.startswith("VmRSS")) / 1024

    def client(self):
        return pymongo.MongoClient("127.0.0.1", self.port, directConnection=True, serverSelectionTimeoutMS=20_000, read_preference=SecondaryPreferred())


class Set:
    """Members of one binary, initiated and settled."""

    def __init__(self, binary, home, port, count, cache):
        self.name = f"bench{count}"
        self.members = [Member(binary, home / f"{count}-{i}", port + i, self.name, cache) for i in range(count)]
        self.uri = f"mongodb://127.0.0.1:{port}/?replicaSet={self.name}"
        config = {"_id": self.name, "members": [{"_id": i, "host": f"127.0.0.1:{m.port}", "priority": 2 if i == 0 else 1} for i, m in enumerate(self.members)]}
        try:
            self._settle(config)
        except BaseException:
            self.end()
            raise

    def _settle(self, config):
        count = len(self.members)
        for m in self.members:
            m.client().admin.command("ping")
        first = self.members[0].client()
        first.admin.command("replSetInitiate", config)
        end = time.monotonic() + START_S
        while True:
            states = sorted(m["stateStr"] for m in first.admin.command("replSetGetStatus")["members"])
            if states == ["PRIMARY"] + ["SECONDARY"] * (count - 1) and first.admin.command("hello")["isWritablePrimary"]:
                return
            if time.monotonic() > end:
                raise RuntimeError(f"{self.name}: {states}")
            time.sleep(0.1)

    def cpu(self):
        return sum(m.cpu() for m in self.members)

    def settle(self):
        """Until every member has everything: the next phase starts from rest."""
        pymongo.MongoClient(self.uri, w=len(self.members), wtimeoutMS=60_000)[DB].settle.insert_one({})

    def end(self):
        for m in self.members:
            m.proc.terminate()
        for m in self.members:
            try:
                m.proc.wait(30)
            except subprocess.TimeoutExpired:
                m.proc.kill()
                m.proc.wait()


def document(rnd, i):
    return harness.document(i, rnd, "%0455x" % rnd.getrandbits(1820))


# ------------------------------------------------------------ writes


def writer(uri, kind, concern, docs, seed, n):
    coll = pymongo.MongoClient(uri)[DB].get_collection("docs", write_concern=WriteConcern(**concern))
    rnd = random.Random(seed)
    coll.find_one({"_id": 0})
    if kind == "insert_one":
        return [document(rnd, seed * 10_000_000 + i) for i in range(n)], coll.insert_one
    return [rnd.randrange(docs) for _ in range(n)], lambda i: coll.update_one({"_id": i}, {"$inc": {"n": 1}})


def writes(kind, concern, clients):
    def run(target, a, rnd_no):
        n = max(10, a.ops // clients)
        target.seed += 1
        argses = [(target.set.uri, kind, CONCERNS[concern], a.docs, 1 + target.seed * 100 + i, n) for i in range(clients)]
        return harness.timed(target, writer, argses)
    return run


def load(target, a):
    rnd = random.Random(1)
    coll = pymongo.MongoClient(target.set.uri, w=1)[DB].docs
    coll.drop()
    for at in range(0, a.docs, 1000):
        coll.insert_many([document(rnd, i) for i in range(at, min(a.docs, at + 1000))])
    target.set.settle()


# ------------------------------------------------------------ replication


def bulk(uri, docs, clients):
    """insert_many at full speed; seconds it took. Documents are made before the clock starts."""
    ready, go, out = mp.Semaphore(0), mp.Event(), mp.Queue()

    def one(seed):
        coll = pymongo.MongoClient(uri, w=1)[DB].bulk
        rnd = random.Random(seed)
        batches = [[document(rnd, seed * 10_000_000 + i) for i in range(at, at + 1000)] for at in range(0, docs // clients, 1000)]
        ready.release()
        go.wait()
        for b in batches:
            coll.insert_many(b)
        out.put(len(batches) * 1000)
    ps = [mp.Process(target=one, args=(i,)) for i in range(clients)]
    for p in ps:
        p.start()
    for _ in ps:
        ready.acquire()
    return ps, go, out


def applied(member):
    return member.admin.command("replSetGetStatus")["optimes"]["appliedOpTime"]["ts"]


def wait_applied(member, ts, limit=300):
    end = time.monotonic() + limit
    while applied(member) < ts:
        if time.monotonic() > end:
            raise RuntimeError("a secondary does not catch up")
        time.sleep(0.005)


def apply_rate(target, a, _):
    pymongo.MongoClient(target.set.uri)[DB].bulk.drop()
    target.set.settle()
    slow = target.set.members[2]
    ps, go, out = bulk(target.set.uri, a.bulk, 2)
    os.kill(slow.proc.pid, signal.SIGSTOP)
    try:
        t0 = time.perf_counter()
        go.set()
        n = sum(out.get(timeout=900) for _ in ps)
        wrote = n / (time.perf_counter() - t0)
        ts = applied(target.set.members[0].client())
        time.sleep(1)
    finally:
        c0, t0 = slow.cpu(), time.perf_counter()
        os.kill(slow.proc.pid, signal.SIGCONT)
    for p in ps:
        p.join()
    wait_applied(slow.client(), ts)
    dt = time.perf_counter() - t0
    return {"ops_s": n / dt, "cpu_us": (slow.cpu() - c0) / n * 1e6, "primary_ops_s": wrote}


def lag(target, a, _):
    pymongo.MongoClient(target.set.uri)[DB].bulk.drop()
    target.set.settle()
    seconds = [m.client() for m in target.set.members[1:]]
    first = target.set.members[0].client()
    ps, go, out = bulk(target.set.uri, a.bulk, 2)
    c0, t0 = target.set.cpu(), time.perf_counter()
    go.set()
    worst, history = 0.0, []
    while any(p.is_alive() for p in ps) and out.qsize() < len(ps):
        history.append((time.perf_counter(), applied(first)))
        for s in seconds:
            at = applied(s)
            # When was the primary where this secondary is now?
            passed = next((t for t, ts in history if ts > at), None)
            worst = max(worst, time.perf_counter() - passed if passed else 0.0)
        time.sleep(0.02)
    n = sum(out.get(timeout=900) for _ in ps)
    dt = time.perf_counter() - t0
    ts = applied(first)
    for s in seconds:
        wait_applied(s, ts)
    rest = time.perf_counter() - t0 - dt
    for p in ps:
        p.join()
    return {"ops_s": n / dt, "cpu_us": (target.set.cpu() - c0) / n * 1e6, "lag_ms": worst * 1e3, "rest_ms": rest * 1e3}


# ------------------------------------------------------------ the run


class Target:
    def __init__(self, spec):
        self.name, _, self.binary = spec.partition("=")
        self.seed, self.results, self.set = 0, {}, None


def phases(a):
    clients = [int(x) for x in a.clients.split(",")]
    out = [(f"{kind} {concern}, {c} client{'s' * (c > 1)}", MEMBERS, writes(kind, concern, c)) for concern in CONCERNS for kind in ("insert_one", "update_one") for c in clients]
    out += [("secondary catches up, documents", MEMBERS, apply_rate), ("insert_many, lag of secondaries", MEMBERS, lag)]
    out += [(f"one node: {kind} j:true, {c} client{'s' * (c > 1)}", 1, writes(kind, "j:true", c)) for kind in ("insert_one", "update_one") for c in clients]
    return [p for p in out if re.search(a.phases, p[0])]


def table(targets, names):
    out = harness.pair_table(targets, names)
    if len(targets) == 1:
        return out
    ta, tb = targets
    for n in names:
        for k, what in (("primary_ops_s", "documents/s the primary wrote meanwhile"), ("lag_ms", "largest lag, ms"), ("rest_ms", "ms from the last acknowledgement until all members had everything")):
            if k in ta.results[n]:
                out.append(f"| {n}: {what} | {ta.results[n][k]:,.0f} | {tb.results[n][k]:,.0f} | | | | | | |")
    return out


def idle(targets, seconds=5):
    for t in targets:
        c0 = t.set.cpu()
        time.sleep(seconds)
        print(f"# {t.name}: idle set takes {(t.set.cpu() - c0) / seconds * 100:.1f} % of a core", flush=True)


def measure(targets, a, count, home, names):
    todo = [p for p in phases(a) if p[1] == count]
    if not todo:
        return
    try:
        for i, t in enumerate(targets):
            t.set = Set(t.binary, home / t.name, a.port + 10 * i + (0 if count == MEMBERS else 5), count, a.cache)
            load(t, a)
        idle(targets)
        for name, _, fn in todo:
            runs = {t.name: [] for t in targets}
            for r in range(a.rounds):
                for t in (targets if r % 2 == 0 else targets[::-1]):
                    runs[t.name].append(fn(t, a, r))
            names.append(name)
            print(f"{name:38}", flush=True)
            for t in targets:
                t.results[name] = harness.summary(runs[t.name])
                print(f"    {t.name:10} {harness.words(t.results[name])}", flush=True)
        for t in targets:
            print(f"# {t.name}: RSS of the members, MiB: {', '.join(f'{m.rss():.0f}' for m in t.set.members)}", flush=True)
    finally:
        for t in targets:
            if t.set:
                t.set.end()
                t.set = None


def main():
    ap = argparse.ArgumentParser(usage=__doc__)
    ap.add_argument("--a", required=True)
    ap.add_argument("--b")
    ap.add_argument("--port", type=int, default=31360)
    ap.add_argument("--clients", default="1,8,32")
    ap.add_argument("--ops", type=int, default=6_000)
    ap.add_argument("--docs", type=int, default=20_000)
    ap.add_argument("--bulk", type=int, default=100_000)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--phases", default=".")
    ap.add_argument("--cache", type=float, default=0.3)
    ap.add_argument("--json")
    ap.add_argument("--md")
    a = ap.parse_args()
    mp.set_start_method("fork")
    targets = [Target(x) for x in (a.a, a.b) if x]
    home, names = pathlib.Path(tempfile.mkdtemp(prefix="set_bench")), []
    try:
        for count in (MEMBERS, 1):
            measure(targets, a, count, home, names)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    rows = table(targets, names)
    print("\n" + "\n".join(rows))
    print(f"\nload average at the end: {os.getloadavg()[0]:.1f}; {a.ops} operations a phase, median of {a.rounds} rounds; pymongo {pymongo.version}")
    if a.md:
        pathlib.Path(a.md).write_text("\n".join(rows) + "\n")
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps({t.name: t.results for t in targets}, indent=1))


if __name__ == "__main__":
    sys.exit(main())
