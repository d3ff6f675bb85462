#!/usr/bin/env python3
"""What encryption at rest costs: an encrypted server beside a plain one of the same build, in turns.

    encryption_bench.py BINARY [--turns 60] [--docs 100000] [--rounds 5] [--phases RE] [--md FILE]

Both are sets of one member with 0.05 GB of cache; w: 1 where nothing else is said; a turn is some hundred operations over one connection that stays, the two
servers alternate and change who begins, so that a busy machine hurts both alike. CPU is the server's of all threads, the log's writing included; latency is the
median of single calls, over all turns. Columns: the ratio encrypted / plain of the CPU's sum and of the median latency; then the plain server's figures.

  point operations   on documents that the cache of blocks has
  not cached         find_one by _id over all documents, when nearly each needs a block of 32 KiB from a file (the machine's memory has it)
  whole              loads by insert_many, an index build, scans, a sort that spills (100 MB of memory at most): once in each of `--rounds`

Only processes that it started are measured and ended. Needs pymongo.
"""
import argparse
import base64
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import time

import pymongo

from harness import document, process_cpu
from instructions import LETTERS, free_port

OPS = 200


class Server:
    def __init__(self, binary, home, docs, more):
        home.mkdir()
        port = free_port()
        self.docs, self.home = docs, home
        self.process = subprocess.Popen([binary, "--dbpath", str(home), "--port", str(port), "--replSet", "rs", "--nounixsocket", "--wiredTigerCacheSizeGB", "0.05",
                                         "--logpath", str(home.with_suffix(".log")), *more])
        self.client = pymongo.MongoClient("127.0.0.1", port, directConnection=True, serverSelectionTimeoutMS=60_000, w=1)
        self.client.admin.command("replSetInitiate", {"_id": "rs", "members": [{"_id": 0, "host": f"127.0.0.1:{port}"}]})
        while not self.client.admin.command("hello").get("isWritablePrimary"):
            time.sleep(0.05)
        self.coll, self.big = self.client.bench.docs, self.client.bench.big
        self.fill(self.coll, 5000)
        self.coll.create_index("k")
        self.keys = [d["k"] for d in self.coll.find({}, {"k": 1})]

    def fill(self, coll, docs):
        rnd = random.Random(5)
        noise = "".join(rnd.choices(LETTERS, k=1 << 15))
        for at in range(0, docs, 1000):
            coll.insert_many([document(i, rnd, noise[i % 30_000:i % 30_000 + 455]) for i in range(at, min(at + 1000, docs))])

    def cpu(self):
        return process_cpu(self.process.pid)

    def end(self):
        self.process.terminate()
        self.process.wait(120)


def load(s, _rnd, _i):
    s.client.drop_database("load")
    s.fill(s.client.load.docs, s.docs // 4)
    s.client.admin.command("fsync")


def index(s, _rnd, _i):
    s.big.create_index("who")
    s.big.drop_index("who_1")


def sort(s, _rnd, _i):
    for _ in s.big.aggregate([{"$sort": {"v": 1, "who": -1}}, {"$project": {"v": 1}}], allowDiskUse=True, batchSize=10_000):
        pass


def scan(s, _rnd, _i):
    for _ in s.big.find({}, batch_size=10_000):
        pass


POINT = {
    "ping": lambda s, rnd, i: s.client.admin.command("ping"),
    "insert_one": lambda s, rnd, i: s.coll.insert_one({"_id": 10 ** 8 + i, "k": i, "filler": "z" * 900}),
    "insert_one, j: true": lambda s, rnd, i: s.coll.with_options(write_concern=pymongo.WriteConcern(w=1, j=True)).insert_one({"_id": 10 ** 9 + i, "k": i, "filler": "z" * 900}),
    "find_one by _id": lambda s, rnd, i: s.coll.find_one({"_id": rnd.randrange(5000)}),
    "find_one by index": lambda s, rnd, i: s.coll.find_one({"k": rnd.choice(s.keys)}),
    "update_one $inc by _id": lambda s, rnd, i: s.coll.update_one({"_id": rnd.randrange(5000)}, {"$inc": {"n": 1}}),
    "delete_one by _id": lambda s, rnd, i: s.coll.delete_one({"_id": 10 ** 8 + i}),
}
COLD = {
    "find_one by _id, not cached": lambda s, rnd, i: s.big.find_one({"_id": rnd.randrange(s.docs)}),
    "update_one by _id, not cached": lambda s, rnd, i: s.big.update_one({"_id": rnd.randrange(s.docs)}, {"$inc": {"n": 1}}),
}
WHOLE = {"insert_many, with a checkpoint": load, "createIndex": index, "full scan": scan, "$sort that spills": sort}


def compare(name, op, servers, turns, n, out):
    cpu, lat, clock = [0.0, 0.0], [[], []], time.perf_counter
    for turn in range(turns + 1):
        for i in (0, 1) if turn % 2 else (1, 0):
            s, rnd = servers[i], random.Random(turn)
            before = s.cpu()
            for k in range(n):
                t = clock()
                op(s, rnd, turn * 1_000_000 + k)
                # the first turn warms up
                if turn:
                    lat[i].append(clock() - t)
            if n > 1:
                # what the log has yet to write for this turn
                time.sleep(0.12)
            if turn:
                cpu[i] += s.cpu() - before
    ops = turns * n
    (enc, plain), (le, lp) = cpu, (statistics.median(x) for x in lat)
    us = 1e6 / ops
    out(f"| {name} | {enc / plain:.2f} | {le / lp:.2f} | {plain * us:,.1f} | {lp * 1e6:,.0f} |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("binary")
    p.add_argument("--turns", type=int, default=60)
    p.add_argument("--docs", type=int, default=100_000)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--phases", default=".")
    p.add_argument("--md", type=pathlib.Path)
    a = p.parse_args()
    home, lines, servers = pathlib.Path(tempfile.mkdtemp(prefix="encryption-")), [], []

    def out(line):
        print(line, flush=True)
        lines.append(line)

    try:
        key = home / "key"
        key.write_text(base64.b64encode(os.urandom(32)).decode())
        key.chmod(0o600)
        for name, more in ("encrypted", ["--enableEncryption", "--encryptionKeyFile", str(key)]), ("plain", []):
            servers.append(Server(a.binary, home / name, a.docs, more))
        out("| phase | CPU, encrypted / plain | latency | plain, CPU us each | plain, median us |")
        out("|---|---|---|---|---|")
        wanted = re.compile(a.phases)
        for name, op in POINT.items():
            if wanted.search(name):
                compare(name, op, servers, a.turns, OPS, out)
        for s in servers:
            s.fill(s.big, a.docs)
            s.client.admin.command("fsync")
        for name, op in COLD.items():
            if wanted.search(name):
                compare(name, op, servers, a.turns, OPS, out)
        for name, op in WHOLE.items():
            if wanted.search(name):
                compare(name, op, servers, a.rounds, 1, out)
        sizes = [sum(f.stat().st_size for f in s.home.rglob("*") if f.is_file()) for s in servers]
        out(f"| bytes of the folder | {sizes[0] / sizes[1]:.3f} | | {sizes[1] / 2**20:,.0f} MiB | |")
    finally:
        for s in servers:
            s.end()
        shutil.rmtree(home, ignore_errors=True)
    if a.md:
        a.md.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
