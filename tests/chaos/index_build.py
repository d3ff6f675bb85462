#!/usr/bin/env python3
"""How long a large index build holds replication up: every member builds beside its applier, so it should not.

    index_build.py BINARY [--docs N] [--members M] [--port P] [--dir D] [--max-lag S] [--set NAME=VALUE ...]

Fills a collection with N small documents, waits until all members hold them, and builds an index with the default commit quorum. Before and during
the build a writer inserts a document every 20 ms that all members must acknowledge: how long the slowest took is how far a member that builds was
behind. At the end the index must hold every document on every member. Needs pymongo. Works with a mongod binary too. Ends with `N passed, N failed`.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import pymongo
from pymongo.write_concern import WriteConcern


def start(a, home, i):
    at = home / str(i)
    at.mkdir()
    cmd = [a.binary, "--dbpath", str(at), "--port", str(a.port + i), "--replSet", "builds", "--bind_ip", "127.0.0.1", "--logpath", str(home / f"{i}.log"),
           "--wiredTigerCacheSizeGB", "0.5", "--oplogSize", "4096"]
    for setting in a.set:
        cmd += ["--setParameter", setting]
    return subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def initiate(a):
    one = pymongo.MongoClient(f"mongodb://127.0.0.1:{a.port}/?directConnection=true", serverSelectionTimeoutMS=30000)
    members = [{"_id": i, "host": f"127.0.0.1:{a.port + i}", "priority": 2 if i == 0 else 1} for i in range(a.members)]
    one.admin.command("replSetInitiate", {"_id": "builds", "members": members})
    one.close()
    client = pymongo.MongoClient(f"mongodb://127.0.0.1:{a.port}/?replicaSet=builds", serverSelectionTimeoutMS=30000)
    until = time.time() + 60
    while time.time() < until:
        states = [m["stateStr"] for m in client.admin.command("replSetGetStatus")["members"]]
        if sorted(states) == ["PRIMARY"] + ["SECONDARY"] * (a.members - 1):
            return client
        time.sleep(.3)
    sys.exit("the set did not come up")


def fill(client, a):
    c, per = client.builds.c, 5000
    for at in range(0, a.docs, per):
        c.insert_many([{"_id": i, "k": (i * 2654435761) % 1_000_000_007, "s": f"value {i % 9973}"} for i in range(at, min(at + per, a.docs))], ordered=False)
        if at % 500_000 == 0:
            print(f"  {at} documents", flush=True)
    client.builds.get_collection("mark", write_concern=WriteConcern(w=a.members)).insert_one({})


class Writer(threading.Thread):
    def __init__(self, client, members):
        super().__init__(daemon=True)
        self.c = client.builds.get_collection("c", write_concern=WriteConcern(w=members))
        self.took, self.stop, self.n = [], threading.Event(), 0

    def run(self):
        while not self.stop.is_set():
            began = time.monotonic()
            self.c.insert_one({"_id": f"w{self.n}", "k": -self.n})
            self.took.append((began, time.monotonic() - began))
            self.n += 1
            time.sleep(.02)


def figures(took):
    took = sorted(t for _, t in took)
    return f"{len(took)} writes, median {took[len(took) // 2] * 1000:.0f} ms, 99% {took[int(len(took) * .99)] * 1000:.0f} ms, slowest {took[-1] * 1000:.0f} ms"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("binary")
    p.add_argument("--docs", type=int, default=2_000_000)
    p.add_argument("--members", type=int, default=2)
    p.add_argument("--port", type=int, default=29400)
    p.add_argument("--dir")
    p.add_argument("--max-lag", type=float, default=1.0)
    p.add_argument("--set", action="append", default=[])
    a = p.parse_args()
    home = pathlib.Path(tempfile.mkdtemp(prefix="pando-builds-", dir=a.dir))
    servers = [start(a, home, i) for i in range(a.members)]
    passed, failed = 0, 0
    try:
        client = initiate(a)
        began = time.monotonic()
        fill(client, a)
        print(f"{a.docs} documents on {a.members} members in {time.monotonic() - began:.0f} s", flush=True)
        writer = Writer(client, a.members)
        writer.start()
        time.sleep(10)
        began = time.monotonic()
        client.builds.c.create_index("k")
        ended = time.monotonic()
        time.sleep(3)
        writer.stop.set()
        writer.join()
        before = [t for t in writer.took if t[0] < began]
        during = [t for t in writer.took if t[0] + t[1] >= began and t[0] <= ended]
        print(f"the index took {ended - began:.1f} s")
        print(f"before: {figures(before)}\nduring: {figures(during)}")
        slowest = max(t for _, t in during)
        passed, failed = passed + (slowest < a.max_lag), failed + (slowest >= a.max_lag)
        for i in range(a.members):
            one = pymongo.MongoClient(f"mongodb://127.0.0.1:{a.port + i}/?directConnection=true")
            n = next(one.builds.c.aggregate([{"$match": {"k": {"$gte": -10_000_000}}}, {"$count": "n"}], hint="k_1"))["n"]
            right = n == a.docs + writer.n
            print(f"member {i}: {n} entries in the index of {a.docs + writer.n}")
            passed, failed = passed + right, failed + (not right)
    finally:
        for s in servers:
            s.terminate()
        for s in servers:
            s.wait(60)
        shutil.rmtree(home, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
