#!/usr/bin/env python3
"""What a router costs: an operation through it beside the same one sent to its shard, what it takes to ask three shards, and what more
routers give.

    router_bench.py --pandod target/release/pandod --pandos target/release/pandos [--turns 40] [--phases RE]

Servers share one core and the client has another (two cores are enough). Through and direct take turns of some hundred operations over one
connection each. Added CPU is the router's own, from the kernel, and what the shard takes more; added latency is the difference of the medians.

What it costs to wake an idle core is charged to who wakes it. On a virtual machine this differs from host to host, from some microseconds to
more than the router itself takes, so the same is measured with the client on the servers' core as well, where no core is woken.
"""
import argparse
import contextlib
import glob
import multiprocessing
import os
import pathlib
import random
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

import pymongo

from harness import document

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
DOCS = 20_000


def free_port():
    """One that the kernel gives to no client meanwhile."""
    while True:
        port = random.randrange(20_000, 32_768)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


def client(port):
    return pymongo.MongoClient("127.0.0.1", port, directConnection=True, serverSelectionTimeoutMS=60_000, retryWrites=False)


class Process:
    def __init__(self, home, *command):
        home.mkdir(parents=True)
        self.port = free_port()
        with open(home / "log", "w") as log:
            command = ["taskset", "-c", "1", *command, "--port", str(self.port), "--bind_ip", "127.0.0.1"]
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def cpu(self):
        """Nanoseconds of all threads so far."""
        return sum(int(pathlib.Path(f).read_text().split()[0]) for f in glob.glob(f"/proc/{self.process.pid}/task/*/schedstat"))


class Cluster:
    """Config server, shards of one member, routers."""

    def __init__(self, home, pandod, pandos, shards, routers):
        self.processes, self.home = [], home
        config = self.server(pandod, "c", "--configsvr")
        self.shards = [self.server(pandod, f"s{i}", "--shardsvr") for i in range(shards)]
        db = f"c/127.0.0.1:{config.port}"
        self.routers = [self.start(f"r{i}", pandos, "--configdb", db) for i in range(routers)]
        admin = client(self.routers[0].port).admin
        for i, shard in enumerate(self.shards):
            admin.command("addShard", f"s{i}/127.0.0.1:{shard.port}")

    def start(self, name, *command):
        self.processes.append(Process(self.home / name, *command))
        return self.processes[-1]

    def server(self, pandod, name, role):
        (self.home / f"{name}.data").mkdir(parents=True)
        server = self.start(name, pandod, role, "--replSet", name, "--dbpath", str(self.home / f"{name}.data"))
        c = client(server.port)
        host = f"127.0.0.1:{server.port}"
        c.admin.command("replSetInitiate", {"_id": name, "members": [{"_id": 0, "host": host}]})
        while not c.admin.command("hello")["isWritablePrimary"]:
            time.sleep(0.05)
        return server

    def fill(self):
        c = client(self.routers[0].port)
        c.admin.command("shardCollection", "bench.docs", key={"_id": "hashed"})
        rnd = random.Random(5)
        noise = "".join(rnd.choices(LETTERS, k=1 << 15))
        for low in range(0, DOCS, 1000):
            c.bench.docs.insert_many([document(i, rnd, noise[i % 30_000:i % 30_000 + 455]) for i in range(low, low + 1000)])
        c.bench.docs.create_index("k")
        # Everything lies in the shards' tables.
        for shard in self.shards:
            client(shard.port).admin.command("fsync")

    def end(self):
        for p in self.processes:
            p.process.terminate()
        for p in self.processes:
            p.process.wait(60)


def find_range(c, rnd, _):
    low = rnd.randrange(DOCS - 100)
    return list(c.find({"_id": {"$in": list(range(low, low + 20))}}))


PHASES = {
    "ping": (300, lambda c, rnd, i: c.database.command("ping")),
    "find_one by _id": (300, lambda c, rnd, i: c.find_one({"_id": rnd.randrange(DOCS)})),
    "insert_one": (300, lambda c, rnd, i: c.insert_one({"_id": 10 ** 8 + i, "k": i, "filler": "z" * 900})),
    "update_one by _id": (300, lambda c, rnd, i: c.update_one({"_id": rnd.randrange(DOCS)}, {"$inc": {"n": 1}})),
    "delete_one by _id": (300, lambda c, rnd, i: c.delete_one({"_id": 10 ** 8 + i})),
    "find 20 by $in": (60, find_range),
    "insert_many of 100": (10, lambda c, rnd, i: c.insert_many([{"_id": 2 * 10 ** 8 + i * 100 + n, "k": n} for n in range(100)])),
}
SCATTERED = {
    "find by another field": (100, lambda c, rnd, i: list(c.find({"k": rnd.randrange(1 << 30)}))),
    "sorted 20 of all by index": (60, lambda c, rnd, i: list(c.find({"k": {"$gte": rnd.randrange(1 << 30)}}).sort("k", 1).limit(20))),
    "count of all": (2, lambda c, rnd, i: c.count_documents({"filler": "none"})),
    "group of all": (2, lambda c, rnd, i: list(c.aggregate([{"$group": {"_id": "$g", "n": {"$sum": "$k"}}}]))),
}


SEVERAL = {name: PHASES[name] for name in ("find_one by _id", "update_one by _id")}


def one_turn(coll, op, rnd, n, at):
    took, clock = [], time.perf_counter
    for i in range(n):
        begun = clock()
        op(coll, rnd, at * 1_000_000 + i)
        took.append(clock() - begun)
    return took


def through(cluster, phases, turns):
    """Router and shard beside the shard alone."""
    for core, where in (0, "another core"), (1, "the servers' core"):
        print(f"client on {where}")
        os.sched_setaffinity(0, {core})
        on_this_core(cluster, phases, turns, core)
    os.sched_setaffinity(0, {0})


def on_this_core(cluster, phases, turns, core):
    router, shard = cluster.routers[0], cluster.shards[0]
    # At w: 1 the shard waits for nothing that is not the operation's own.
    concern = pymongo.WriteConcern(w=1)
    coll = {way: client(p.port).bench.get_collection("docs", write_concern=concern) for way, p in (("through", router), ("direct", shard))}
    print(f"{'operation':26} {'direct':>9} {'through':>9} {'added':>8}   {'CPU of router':>13} {'more of shard':>13}  (us)")
    for name, (n, op) in phases.items():
        took, cpu = {"through": [], "direct": []}, {"router": 0, "through": 0, "direct": 0}
        for turn in range(-2, turns):
            for k, way in enumerate(("through", "direct") if turn % 2 else ("direct", "through")):
                before = router.cpu(), shard.cpu()
                times = one_turn(coll[way], op, random.Random(turn), n, 10 + 2 * turn + k + 1000 * core)
                if turn >= 0:
                    took[way] += times
                    cpu[way] += shard.cpu() - before[1]
                    cpu["router"] += (router.cpu() - before[0]) if way == "through" else 0
        direct, routed = (statistics.median(took[way]) * 1e6 for way in ("direct", "through"))
        each = 1000 * n * turns
        print(f"{name:26} {direct:9.1f} {routed:9.1f} {routed - direct:8.1f}   {cpu['router'] / each:13.1f} {(cpu['through'] - cpu['direct']) / each:13.1f}", flush=True)


def scattered(cluster, phases, turns):
    """What all servers take together for an operation that every shard is asked for."""
    coll = client(cluster.routers[0].port).bench.docs
    print(f"\n{'over three shards':26} {'median':>9} {'p99':>9}   {'CPU of router':>13} {'of all shards':>13}  (us)")
    for name, (n, op) in phases.items():
        one_turn(coll, op, random.Random(1), n, 1)
        router, shards = cluster.routers[0].cpu(), sum(s.cpu() for s in cluster.shards)
        took = sorted(x for turn in range(turns) for x in one_turn(coll, op, random.Random(turn), n, 2 + turn))
        each = 1000 * len(took)
        router, shards = cluster.routers[0].cpu() - router, sum(s.cpu() for s in cluster.shards) - shards
        print(f"{name:26} {statistics.median(took) * 1e6:9.1f} {took[len(took) * 99 // 100] * 1e6:9.1f}   {router / each:13.1f} {shards / each:13.1f}", flush=True)


def clients_of(ports, op, seconds, out):
    """One client of each port, in a process of its own; how many operations each has done."""
    def work(i, port):
        coll, rnd, n = client(port).bench.docs, random.Random(i), 0
        op(coll, rnd, 0)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            op(coll, rnd, 10 ** 6 * (i + 1) + n)
            n += 1
        out[i] = n
    all = [multiprocessing.Process(target=work, args=(i, port)) for i, port in enumerate(ports)]
    for p in all:
        p.start()
    for p in all:
        p.join()


def several(cluster, phases, turns):
    """What four clients get done through one, two and four routers. All servers share one core, so more routers cannot do more: what is
    shown is that they cost no more and that nobody waits for another one."""
    print(f"\n{'four clients':26} {'routers':>7} {'operations/s':>12}   {'CPU of routers':>14} {'of the shard':>12}  (us)")
    for name, (_, op) in phases.items():
        for n in (1, 2, 4):
            ports, out = [cluster.routers[i % n].port for i in range(4)], multiprocessing.Array("q", 4)
            routers, shards = sum(r.cpu() for r in cluster.routers[:n]), sum(s.cpu() for s in cluster.shards)
            seconds = turns / 8
            clients_of(ports, op, seconds, out)
            routers, shards = sum(r.cpu() for r in cluster.routers[:n]) - routers, sum(s.cpu() for s in cluster.shards) - shards
            done = sum(out)
            print(f"{name:26} {n:7} {done / seconds:12.0f}   {routers / done / 1000:14.1f} {shards / done / 1000:12.1f}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--pandod", required=True)
    p.add_argument("--pandos", required=True)
    p.add_argument("--turns", type=int, default=40)
    p.add_argument("--phases", default=".")
    a = p.parse_args()
    os.sched_setaffinity(0, {0})
    wanted = lambda phases: {name: phase for name, phase in phases.items() if re.search(a.phases, name)}
    home = pathlib.Path(tempfile.mkdtemp(prefix="router-bench-"))
    try:
        for shards, routers, run, phases in (1, 1, through, PHASES), (3, 1, scattered, SCATTERED), (1, 4, several, SEVERAL):
            if not wanted(phases):
                continue
            cluster = Cluster(home / f"{shards}-{routers}", a.pandod, a.pandos, shards, routers)
            try:
                cluster.fill()
                run(cluster, wanted(phases), a.turns)
            finally:
                cluster.end()
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
