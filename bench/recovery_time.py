#!/usr/bin/env python3
"""How long a start takes after kill -9: by the size of the data, and by the work since the last checkpoint.

    recovery_time.py BINARY [--gb 0.1,1,5] [--work 0,20000,100000] [--port P] [--dir D] [--md FILE]

For each size: a fresh one-member set is loaded with 1 KiB documents and brought to a checkpoint (`fsync`); then, for each
amount of work, so many $inc updates by _id are written (w: 1), the process is killed, started again, and the time until
it takes writes is measured. Recovery replays the log from the checkpoint: it should grow with the work and not with the
data. Needs pymongo.
"""
import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time

import pymongo

import harness

DOC_BYTES = 1000
START_S = 300


class Server:
    def __init__(self, binary, home, port):
        self.cmd = [binary, "--dbpath", str(home), "--port", str(port), "--replSet", "recovery", "--bind_ip", "127.0.0.1", "--nounixsocket",
                    "--logpath", str(home / "log"), "--logappend", "--wiredTigerCacheSizeGB", "0.5", "--syncdelay", "3600"]
        self.uri = f"mongodb://127.0.0.1:{port}/?directConnection=true"

    def start(self):
        """Seconds until it takes writes (or, before it is initiated, answers)."""
        t0 = time.perf_counter()
        self.proc = subprocess.Popen(self.cmd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while time.perf_counter() - t0 < START_S:
            try:
                c = pymongo.MongoClient(self.uri, serverSelectionTimeoutMS=200, connectTimeoutMS=200)
                hello = c.admin.command("hello")
                if hello["isWritablePrimary"] or not hello.get("setName"):
                    return time.perf_counter() - t0
            except pymongo.errors.PyMongoError:
                pass
            time.sleep(0.005)
        raise SystemExit("recovery_time: the server does not come up")

    def kill(self):
        self.proc.send_signal(signal.SIGKILL)
        self.proc.wait()

    def coll(self):
        return pymongo.MongoClient(self.uri, w=1).bench.docs


def load(coll, n):
    rnd = random.Random(1)
    noise = "%0455x" % rnd.getrandbits(1820)
    for at in range(0, n, 1000):
        coll.insert_many([harness.document(i, rnd, noise) for i in range(at, min(n, at + 1000))])


def update(coll, n, docs):
    rnd = random.Random(n)
    for at in range(0, n, 1000):
        coll.bulk_write([pymongo.UpdateOne({"_id": rnd.randrange(docs)}, {"$inc": {"n": 1}}) for _ in range(at, min(n, at + 1000))])


def total(coll):
    return next(coll.aggregate([{"$group": {"_id": None, "n": {"$sum": "$n"}}}]))["n"]


def measure(a, home, gb, rows):
    docs = int(gb * 1e9 / DOC_BYTES)
    server = Server(a.binary, home, a.port)
    home.mkdir(parents=True)
    server.start()
    host = f"127.0.0.1:{a.port}"
    pymongo.MongoClient(server.uri).admin.command("replSetInitiate", {"_id": "recovery", "members": [{"_id": 0, "host": host}]})
    while not pymongo.MongoClient(server.uri).admin.command("hello")["isWritablePrimary"]:
        time.sleep(0.05)
    done = 0
    try:
        load(server.coll(), docs)
        for work in a.work:
            server.coll().database.client.admin.command("fsync")
            update(server.coll(), work, docs)
            # So that everything acknowledged is on disk when the process dies.
            server.coll().with_options(write_concern=pymongo.WriteConcern(w=1, j=True)).update_one({"_id": 0}, {"$inc": {"n": 0}})
            done += work
            server.kill()
            took = server.start()
            found = total(server.coll()) if gb <= 1 else None
            if found not in (None, done):
                raise SystemExit(f"recovery_time: {done} updates were acknowledged, {found} are there")
            rows.append((gb, work, took))
            print(f"{gb} GB, {work:,} updates since the checkpoint: {took:.2f} s", flush=True)
    finally:
        server.kill()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("binary")
    ap.add_argument("--gb", type=lambda s: [float(x) for x in s.split(",")], default=[0.1, 1, 5])
    ap.add_argument("--work", type=lambda s: [int(x) for x in s.split(",")], default=[0, 20_000, 100_000])
    ap.add_argument("--port", type=int, default=28700)
    ap.add_argument("--dir")
    ap.add_argument("--md")
    a = ap.parse_args()
    a.binary = os.path.abspath(a.binary)
    home, rows = pathlib.Path(a.dir or tempfile.mkdtemp(prefix="pando-recovery-")), []
    try:
        for gb in a.gb:
            measure(a, home / str(gb), gb, rows)
            shutil.rmtree(home / str(gb))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    lines = ["| data, GB | " + " | ".join(f"{w:,} updates" for w in a.work) + " |", "|---" * (len(a.work) + 1) + "|"]
    for gb in a.gb:
        lines.append(f"| {gb:g} | " + " | ".join(f"{t:.2f} s" for g, _, t in rows if g == gb) + " |")
    print("\n" + "\n".join(lines))
    if a.md:
        pathlib.Path(a.md).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
