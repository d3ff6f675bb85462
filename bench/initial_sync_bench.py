#!/usr/bin/env python3
"""Initial sync of one member from another, beside a real mongod's on the same data.

    initial_sync_bench.py --a NAME=BINARY --b NAME=BINARY [--port P] [--mb N] [--rounds N] [--cache GB] [--files] [--json FILE]

For each binary: a set of one is loaded with `--mb` megabytes (documents of about 1 KiB with two secondary indexes, and many small ones with one),
then, `--rounds` times, an empty second member joins without a vote and is timed from replSetReconfig until it is SECONDARY and holds
everything. CPU is that of the source and of the new member in that time, user and system. With `--files` the members of A
join once more by initialSyncMethod=fileCopyBased. At the end of each sync the dbHash of both members is compared.
The environment's OPLOG_MB makes the oplog larger, so that it still holds the load.
The two binaries take turns, so that a busy machine hurts both alike; only processes started here are measured and ended.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import tempfile
import time

import pymongo
from pymongo.read_preferences import SecondaryPreferred

import harness

PATIENCE_S = 900
# As a set at rest has it: small beside the data. Large, it holds the load itself.
OPLOG_MB = 50


def oplog_mb():
    return int(os.environ.get("OPLOG_MB", OPLOG_MB))


class Member:
    def __init__(self, binary, home, port, cache, extra=()):
        self.port, self.home = port, home
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        cmd = [binary, "--dbpath", str(home), "--port", str(port), "--replSet", "sync", "--bind_ip", "127.0.0.1", "--nounixsocket",
               "--logpath", str(home / "log"), "--wiredTigerCacheSizeGB", str(cache), "--oplogSize", str(oplog_mb()), *extra]
        self.proc = subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def cpu(self):
        return harness.process_cpu(self.proc.pid)

    def rss(self):
        with open(f"/proc/{self.proc.pid}/status") as f:
            return next(int(ln.split()[1]) for ln in f if ln.startswith("VmHWM")) / 1024

    def client(self):
        return pymongo.MongoClient("127.0.0.1", self.port, directConnection=True, serverSelectionTimeoutMS=20_000, read_preference=SecondaryPreferred())

    def end(self):
        self.proc.kill()
        self.proc.wait()


def load(client, mb):
    rng = random.Random(5)
    pad = "".join(rng.choice("abcdefghij klmnop") for _ in range(4000))
    big, small = client.bench.big, client.bench.small
    big.create_index("k")
    big.create_index([("group", 1), ("k", -1)])
    small.create_index("n")
    n = mb * 1000 * 9 // 10
    for i in range(0, n, 1000):
        at = rng.randrange(3000)
        big.insert_many([{"_id": j, "k": rng.randrange(1 << 30), "group": j % 97, "pad": pad[at:at + 930]} for j in range(i, i + 1000)])
    for i in range(0, mb * 1000, 1000):
        small.insert_many([{"_id": j, "n": rng.randrange(1 << 30), "s": pad[at:at + 40]} for j in range(i, i + 1000)])
    stats = client.bench.command("dbStats")
    return stats["dataSize"] / 1e6, int(stats["objects"])


def same(source, member):
    """All data equal; the new member has applied everything."""
    hashes = [c.bench.command("dbHash")["collections"] for c in (source, member)]
    counts = [c.bench.small.count_documents({"n": {"$gte": 0}}, hint="n_1") for c in (source, member)]
    return hashes[0] == hashes[1] and counts[0] == counts[1]


def reconfig(client, port):
    config = client.admin.command("replSetGetConfig")["config"]
    config["version"] += 1
    config["members"] = config["members"][:1]
    if port:
        config["members"].append({"_id": config["version"], "host": f"127.0.0.1:{port}", "votes": 0, "priority": 0})
    client.admin.command("replSetReconfig", config)


class Peer:
    def __init__(self, name, binary, home, port, args):
        self.name, self.binary, self.home, self.port, self.cache = name, binary, home, port, args.cache
        self.source = Member(binary, home / "source", port, args.cache)
        self.client = self.source.client()
        self.client.admin.command("replSetInitiate", {"_id": "sync", "members": [{"_id": 0, "host": f"127.0.0.1:{port}"}]})
        end = time.monotonic() + 60
        while not self.client.admin.command("hello")["isWritablePrimary"]:
            assert time.monotonic() < end, f"{name}: no primary"
            time.sleep(0.1)
        self.mb, self.docs = load(self.client, args.mb)
        self.client.admin.command("fsync")
        self.runs = {}

    def sync(self, method):
        extra = ["--setParameter", f"initialSyncMethod={method}"] if method != "logical" else []
        member = Member(self.binary, self.home / "new", self.port + 1, self.cache, extra)
        client = member.client()
        client.admin.command("ping")
        begin, cpu = time.monotonic(), [self.source.cpu(), member.cpu()]
        reconfig(self.client, self.port + 1)
        while True:
            assert time.monotonic() < begin + PATIENCE_S, f"{self.name}: not synced"
            try:
                if client.admin.command("hello").get("secondary"):
                    break
            except pymongo.errors.PyMongoError:
                pass
            time.sleep(0.02)
        took = time.monotonic() - begin
        run = {"s": took, "mb_s": self.mb / took, "source_cpu": self.source.cpu() - cpu[0], "member_cpu": member.cpu() - cpu[1], "rss": member.rss()}
        run["same"] = same(self.client, client)
        self.runs.setdefault(method, []).append(run)
        reconfig(self.client, None)
        client.close()
        member.end()
        print(f"{self.name} {method}: {took:.1f} s, {run['mb_s']:.0f} MB/s, CPU {run['source_cpu']:.1f} + {run['member_cpu']:.1f} s, "
              f"{run['rss']:.0f} MB, {'equal' if run['same'] else 'DIFFERENT'}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--a", required=True)
    p.add_argument("--b")
    p.add_argument("--port", type=int, default=27100)
    p.add_argument("--mb", type=int, default=500)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--cache", type=float, default=0.3)
    p.add_argument("--files", action="store_true")
    p.add_argument("--json")
    args = p.parse_args()
    home = pathlib.Path(tempfile.mkdtemp(prefix="initial-sync-"))
    peers = []
    try:
        for i, given in enumerate(filter(None, (args.a, args.b))):
            name, binary = given.split("=", 1)
            peers.append(Peer(name, binary, home / name, args.port + 10 * i, args))
            print(f"{name}: {peers[-1].docs} documents, {peers[-1].mb:.0f} MB, load {os.getloadavg()[0]:.1f}", flush=True)
        for _ in range(args.rounds):
            for peer in peers:
                peer.sync("logical")
            if args.files:
                peers[0].sync("fileCopyBased")
        median = {(peer.name, m): {k: statistics.median(r[k] for r in runs) for k in runs[0]} for peer in peers for m, runs in peer.runs.items()}
        for (name, method), m in median.items():
            line = f"{name} {method}: {m['mb_s']:.0f} MB/s, CPU {m['source_cpu'] + m['member_cpu']:.1f} s"
            if len(peers) > 1:
                of = median[(peers[1].name, "logical")]
                line += f"; throughput x{m['mb_s'] / of['mb_s']:.2f}, CPU x{(m['source_cpu'] + m['member_cpu']) / (of['source_cpu'] + of['member_cpu']):.2f}"
            print(line)
        if args.json:
            pathlib.Path(args.json).write_text(json.dumps({peer.name: peer.runs for peer in peers}, indent=1))
        assert all(r["same"] for peer in peers for runs in peer.runs.values() for r in runs), "members differ"
    finally:
        for peer in peers:
            peer.source.end()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
