#!/usr/bin/env python3
"""Two MongoDB-wire servers side by side: throughput, latency, and CPU that the SERVER spends per operation.

    server_bench.py --a NAME=URI,PID --b NAME=URI,PID [--docs N] [--scale F] [--repeat N] [--clients 1,8,32]
                    [--rounds N] [--phases RE] [--w W] [--j] [--json FILE] [--md FILE]

Every phase runs on one server, then on the other, `--rounds` times over with the order swapped each round, so that a
busy machine hurts both alike; the table gives the median. Clients are processes with pymongo. A Python client costs
50 to 100 us a call, so with one client ops/s says more about Python than about the server: read the CPU column
(user + system time of the server process between start and end of the phase). --b may be left out to measure one
server alone.
"""
import argparse
import json
import os
import random
import re
import statistics
import sys
import time

import bson
import pymongo
from bson.raw_bson import RawBSONDocument
from pymongo.write_concern import WriteConcern

from harness import clients as run_clients, document, process_cpu

DB, COLL = "bench", "docs"
ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


class Target:
    def __init__(self, spec):
        self.name, _, rest = spec.partition("=")
        uri, _, pid = rest.rpartition(",")
        if not pid.isdigit():
            sys.exit("server_bench: --a and --b are NAME=URI,PID")
        self.uri, self.pid = uri, int(pid)
        hosts = [h for h, _ in pymongo.uri_parser.parse_uri(uri)["nodelist"]]
        if set(hosts) - {"127.0.0.1", "localhost", "::1"}:
            sys.exit("server_bench: only servers on this machine")
        self.results = {}

    def cpu(self):
        return process_cpu(self.pid)

    def rss(self):
        with open(f"/proc/{self.pid}/status") as f:
            return next(int(ln.split()[1]) for ln in f if ln.startswith("VmRSS")) / 1024


def collection(uri, a, raw=False):
    c = pymongo.MongoClient(uri, serverSelectionTimeoutMS=10_000)
    wc = WriteConcern(w=int(a.w) if a.w.isdigit() else a.w, j=True if a.j else None)
    coll = c[DB].get_collection(COLL, write_concern=wc)
    if raw:
        coll = coll.with_options(codec_options=coll.codec_options.with_options(document_class=RawBSONDocument))
    return coll


def documents(n, start, seed):
    rnd = random.Random(seed)
    filler = "".join(rnd.choices(ALPHABET, k=1 << 15))
    for i in range(start, start + n):
        o = rnd.randrange(len(filler) - 460)
        yield document(i, rnd, filler[o:o + 455])


# ------------------------------------------------------------ client processes


def op_of(kind, coll, raw, a, seed, n):
    """(list of arguments, function of one argument) for one client of a point-operation phase."""
    rnd = random.Random(seed)
    if kind == "ping":
        db = coll.database.client.admin
        return [None] * n, lambda _: db.command("ping")
    if kind == "insert_one":
        return list(documents(n, 100_000_000 + seed * 1_000_000, seed)), coll.insert_one
    ids = [rnd.randrange(a.docs) for _ in range(n)]
    if kind == "find_one by _id":
        return ids, lambda i: coll.find_one({"_id": i})
    if kind == "update_one $inc by _id":
        return ids, lambda i: coll.update_one({"_id": i}, {"$inc": {"n": 1}})
    if kind == "find_one by index":
        keys = [d["k"] for d in coll.find({"_id": {"$in": ids[:2000]}}, {"k": 1})]
        return [keys[i % len(keys)] for i in range(n)], lambda k: coll.find_one({"k": k})
    if kind == "range of 100 by _id":
        return [i % (a.docs - 100) for i in ids], lambda i: list(raw.find({"_id": {"$gte": i, "$lt": i + 100}}))
    raise ValueError(kind)


def client(a, uri, kind, seed, n):
    coll, raw = collection(uri, a), collection(uri, a, raw=True)
    calls = op_of(kind, coll, raw, a, seed, n)
    coll.find_one({"_id": 0})
    return calls


def point_phase(kind, clients, ops):
    def run(t, a, rnd_no):
        n = max(20, int(ops * a.scale) // clients)
        if kind == "insert_one":
            collection(t.uri, a).delete_many({"_id": {"$gte": 100_000_000}})
        argses = [(a, t.uri, kind, 1 + i + 100 * rnd_no + 7 * clients, n) for i in range(clients)]
        lat, dt, cpu = run_clients(client, argses, t.cpu, t.cpu)
        return len(lat), dt, cpu, lat
    return run


# ------------------------------------------------------------ whole-collection phases


def timed(t, n, fn):
    c0, t0 = t.cpu(), time.perf_counter()
    fn()
    return n, time.perf_counter() - t0, t.cpu() - c0, None


def load(t, a, _):
    coll = collection(t.uri, a)
    coll.database.client.drop_database(DB)
    batches = [b for b in chunked(list(documents(a.docs, 0, 1)), 1000)]

    def go():
        for b in batches:
            coll.insert_many(b)
    return timed(t, a.docs, go)


def chunked(xs, n):
    return [xs[i:i + n] for i in range(0, len(xs), n)]


def full_scan(t, a, _):
    raw = collection(t.uri, a, raw=True)

    def go():
        for _ in range(a.repeat):
            got = sum(1 for _ in raw.find({}, batch_size=10_000))
            assert got >= a.docs, got
    n = raw.estimated_document_count()
    return timed(t, a.repeat * n, go)


def filter_scan(t, a, _):
    coll = collection(t.uri, a)
    n = coll.estimated_document_count()

    def go():
        for _ in range(a.repeat):
            assert coll.find_one({"v": {"$lt": -1.0}}) is None
    return timed(t, a.repeat * n, go)


def group(t, a, _):
    coll = collection(t.uri, a)
    n = coll.estimated_document_count()

    def go():
        for _ in range(a.repeat):
            rows = list(coll.aggregate([{"$group": {"_id": "$g", "n": {"$sum": 1}, "mean": {"$avg": "$v"}, "top": {"$max": "$k"}}}]))
            assert len(rows) == 100, len(rows)
    return timed(t, a.repeat * n, go)


def create_index(t, a, _):
    coll = collection(t.uri, a)
    n = coll.estimated_document_count()

    def go():
        for _ in range(a.repeat):
            coll.create_index("k")
            coll.drop_index("k_1")
    if "k_1" in coll.index_information():
        coll.drop_index("k_1")
    measured = timed(t, a.repeat * n, go)
    coll.create_index("k")
    return measured


# ------------------------------------------------------------ the run


def phases(a):
    clients = [int(x) for x in a.clients.split(",")]
    out = [("ping", point_phase("ping", 1, 10_000)), ("insert_many x1000, per document", load)]
    for kind, ops in [("insert_one", 20_000), ("find_one by _id", 30_000), ("update_one $inc by _id", 20_000)]:
        out += [(f"{kind}, {c} client{'s' * (c > 1)}", point_phase(kind, c, ops)) for c in clients]
    out += [("createIndex, per document", create_index)]
    out += [(f"find_one by index, {c} client{'s' * (c > 1)}", point_phase("find_one by index", c, 20_000)) for c in clients]
    out += [(f"range of 100 by _id, {c} client{'s' * (c > 1)}", point_phase("range of 100 by _id", c, 3_000)) for c in clients[:2]]
    out += [("full scan, per document", full_scan), ("filter scan, no match, per document", filter_scan), ("$group, per document", group)]
    return [(n, f) for n, f in out if re.search(a.phases, n) or (f is load and not a.keep)]


def summary(runs):
    med = statistics.median
    r = {"ops_s": med(n / dt for n, dt, _, _ in runs), "cpu_us": med(cpu / n * 1e6 for n, _, cpu, _ in runs), "n": runs[0][0]}
    lats = sorted(x for *_, lat in runs if lat for x in lat)
    if lats:
        r["p50_us"], r["p99_us"] = lats[len(lats) // 2] * 1e6, lats[int(len(lats) * .99)] * 1e6
    return r


def table(targets, names, a):
    out = []
    ta = targets[0]
    if len(targets) == 1:
        out += [f"| phase | ops/s | p50 us | p99 us | {ta.name} CPU us/op |", "|---|---|---|---|---|"]
        for n in names:
            r = ta.results[n]
            out.append(f"| {n} | {r['ops_s']:,.0f} | {r.get('p50_us', 0):,.0f} | {r.get('p99_us', 0):,.0f} | {r['cpu_us']:,.1f} |")
        return out + [f"| RSS after the run, MiB | | | | {ta.rss():.0f} |"]
    tb = targets[1]
    out += [f"| phase | {ta.name} CPU us/op | {tb.name} CPU us/op | **CPU ratio** | {ta.name} ops/s | {tb.name} ops/s | **throughput ratio** | p50 us, {ta.name} | p50 us, {tb.name} |", "|---|---|---|---|---|---|---|---|---|"]
    for n in names:
        x, y = ta.results[n], tb.results[n]
        out.append(f"| {n} | {x['cpu_us']:,.1f} | {y['cpu_us']:,.1f} | **{x['cpu_us'] / max(y['cpu_us'], 1e-9):.2f}** | {x['ops_s']:,.0f} | {y['ops_s']:,.0f} | **{x['ops_s'] / y['ops_s']:.2f}** | {x.get('p50_us', 0):,.0f} | {y.get('p50_us', 0):,.0f} |")
    return out + [f"| RSS after the run, MiB | {ta.rss():.0f} | {tb.rss():.0f} | **{ta.rss() / tb.rss():.2f}** | | | | | |"]


def main():
    ap = argparse.ArgumentParser(usage=__doc__)
    ap.add_argument("--a", required=True)
    ap.add_argument("--b")
    ap.add_argument("--docs", type=int, default=100_000)
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--repeat", type=int, default=3, help="passes over the collection in each phase that walks all of it")
    ap.add_argument("--clients", default="1,8,32")
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--phases", default=".")
    ap.add_argument("--w", default="1")
    ap.add_argument("--j", action="store_true")
    ap.add_argument("--keep", action="store_true", help="use the documents of an earlier run instead of loading them anew")
    ap.add_argument("--json")
    ap.add_argument("--md")
    a = ap.parse_args()
    targets = [Target(x) for x in (a.a, a.b) if x]
    for t in targets:
        c = pymongo.MongoClient(t.uri)
        print(f"# {t.name}: version {c.server_info()['version']}, process {t.pid}, w: {a.w}, j: {a.j}, RSS {t.rss():.0f} MiB", flush=True)
    names = []
    for name, fn in phases(a):
        runs = {t.name: [] for t in targets}
        rounds = 1 if fn is load else a.rounds
        for r in range(rounds):
            for t in (targets if r % 2 == 0 else targets[::-1]):
                try:
                    runs[t.name].append(fn(t, a, r))
                except Exception as e:  # noqa: BLE001  one server lacks something: say so, go on
                    print(f"{name}: {t.name}: {type(e).__name__}: {str(e)[:200]}", flush=True)
        if not all(runs[t.name] for t in targets):
            continue
        names.append(name)
        msg = f"{name:38}"
        for t in targets:
            t.results[name] = r = summary(runs[t.name])
            msg += f"  {t.name}: {r['ops_s']:>10,.0f} ops/s {r['cpu_us']:>8.1f} us CPU" + (f" p50 {r['p50_us']:>6.0f}" if "p50_us" in r else " " * 11)
        print(msg, flush=True)
    rows = table(targets, names, a)
    print("\n" + "\n".join(rows))
    print(f"\nload average at the end: {os.getloadavg()[0]:.1f}; {a.docs} documents of {len(bson.encode(next(documents(1, 0, 1))))} bytes; median of {a.rounds} rounds; pymongo {pymongo.version}")
    if a.md:
        with open(a.md, "w") as f:
            f.write("\n".join(rows) + "\n")
    if a.json:
        with open(a.json, "w") as f:
            json.dump({t.name: {"rss_mib": t.rss(), **t.results} for t in targets}, f, indent=1)


if __name__ == "__main__":
    main()
