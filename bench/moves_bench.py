#!/usr/bin/env python3
"""What moving data between shards costs: how fast a range moves, how long it keeps writers waiting, what its deletion takes from clients, what
a second shard costs for each operation, and what clients notice of a shard that comes and goes.

    moves_bench.py --pandod target/release/pandod --pandos target/release/pandos [--turns 20] [--mb 64] [--seconds 2] [--phases RE]

All servers share one core and the clients have another, as in router_bench.py. Every shard has one member. The phases are `migration`,
`blocked writes`, `range deletion`, `two shards` and `new shard`. `--turns` migrations keep writers waiting, and a quarter as many are timed;
`--mb` is what moves at once (an eighth of it for the writers, half of it lies in the cluster that gets a new shard); clients are watched at rest
for `--seconds` at a time. `--turns 2 --mb 4 --seconds 0.5` is a quick look.
"""
import argparse
import array
import contextlib
import functools
import multiprocessing
import os
import pathlib
import queue
import random
import re
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time

import bson
import pymongo
from bson.raw_bson import RawBSONDocument

import router_bench
from harness import document
from initial_sync_bench import reconfig
from router_bench import LETTERS, clients_of

PATIENCE_S = 300
# A write that is due this long behind a migration still counts as the migration's: its router has to learn of the new owner.
AFTERMATH_S = 0.2
# Documents of 1 KiB that are read and inserted at once by a plain copy.
COPIED_AT_ONCE = 4000
# Documents that clients use while others are deleted.
HOT = 10_000
OPS_A_SECOND = 1000
# What a migration may keep a write waiting.
WAIT_BAR_MS = 50
CLIENTS = 4
# The second half of the keys begins here.
HALF = 10 ** 9
# This process keeps its clients; each client that is a process of its own makes its own.
client = functools.cache(router_bench.client)
KEPT_AT_ONE = pymongo.WriteConcern(w=1)


class Cluster(router_bench.Cluster):
    """One whose balancer stands still unless it is wanted."""

    def __init__(self, home, a, shards, chunk_mb=1024, balancer="off"):
        try:
            super().__init__(home, a.pandod, a.pandos, shards, 1)
        except BaseException:
            self.end()
            raise
        self.pandod = a.pandod
        self.client = client(self.routers[0].port)
        self.admin = self.client.admin
        self.client.config.settings.update_one({"_id": "chunksize"}, {"$set": {"value": chunk_mb}}, upsert=True)
        self.admin.command("balancerStart" if balancer == "on" else "balancerStop")

    def fill(self, ids, key=1):
        self.admin.command("enableSharding", "bench", primaryShard="s0")
        self.admin.command("shardCollection", "bench.docs", key={"_id": key})
        rnd, ids = random.Random(5), list(ids)
        noise = "".join(rnd.choices(LETTERS, k=1 << 15))
        for low in range(0, len(ids), 1000):
            self.client.bench.docs.insert_many([document(i, rnd, noise[i % 30_000:i % 30_000 + 455]) for i in ids[low:low + 1000]])
        self.flush()

    def flush(self):
        """Everything lies in the shards' tables."""
        for shard in self.shards:
            client(shard.port).admin.command("fsync")

    def deletes_after(self, seconds):
        for shard in self.shards:
            clean_after(shard, seconds)

    def move(self, to, low=bson.MinKey(), high=bson.MaxKey()):
        """Seconds that it took to move what lies from `low` to `high`."""
        begun = time.perf_counter()
        self.admin.command("moveRange", "bench.docs", min={"_id": low}, max={"_id": high}, toShard=f"s{to}")
        return time.perf_counter() - begun

    def settle(self):
        """No shard has anything left to do for an earlier migration."""
        for shard in self.shards:
            for left in "rangeDeletions", "migrationCoordinators", "migrationRecipients":
                emptied(client(shard.port).config[left])

    def shard_cpu(self):
        return sum(s.cpu() for s in self.shards)


@contextlib.contextmanager
def running(*args, **kwargs):
    cluster = Cluster(*args, **kwargs)
    try:
        yield cluster
    finally:
        cluster.end()


def clean_after(shard, seconds):
    client(shard.port).admin.command("setParameter", 1, orphanCleanupDelaySecs=seconds)


def until(done, pause=0.05):
    end = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > end:
            raise RuntimeError("waited in vain")
        time.sleep(pause)


def emptied(coll, pause=0.05):
    until(lambda: coll.find_one({}) is None, pause)


def part(ordered, of_hundred):
    return ordered[min(len(ordered) * of_hundred // 100, len(ordered) - 1)]


def ms_columns(values):
    """Median, p99 and the largest."""
    values = sorted(values)
    return " ".join(f"{1000 * v:9.2f}" for v in (part(values, 50), part(values, 99), values[-1]))


class Clients:
    """Clients in processes of their own, at work until they are ended. With a `rate` so many operations of all are due in a second, evenly,
    whether or not those before are done; otherwise one follows the other."""

    def __init__(self, port, ops, rate=None):
        self.stop, self.out, ready = multiprocessing.Event(), multiprocessing.Queue(), multiprocessing.Semaphore(0)
        # One moment for all of them, when they are up.
        self.begun = multiprocessing.Value("d")
        self.all = [multiprocessing.Process(target=self.work, args=(port, op, rate, i, len(ops), ready), daemon=True) for i, op in enumerate(ops)]
        for p in self.all:
            p.start()
        for _ in self.all:
            if not ready.acquire(timeout=60):
                raise RuntimeError("a client did not come up")
        self.begun.value = time.perf_counter()

    def work(self, port, op, rate, i, count, ready):
        # As drivers do by default: statements have numbers, which move along.
        c = pymongo.MongoClient("127.0.0.1", port, directConnection=True, retryWrites=True)
        coll, rnd, clock = c.bench.get_collection("docs", write_concern=KEPT_AT_ONE), random.Random(i), time.perf_counter
        noted, n = array.array("d"), 0
        coll.find_one({"_id": 0})
        ready.release()
        while not self.begun.value:
            time.sleep(0.01)
        try:
            while not self.stop.is_set():
                number = n * count + i
                due = self.begun.value + number / rate if rate else clock()
                if (early := due - clock()) > 0:
                    time.sleep(early)
                sent = clock()
                op(coll, rnd, number)
                done = clock()
                noted.extend((due, done - due, done - sent))
                n += 1
            self.out.put(noted.tobytes())
        except pymongo.errors.PyMongoError as e:
            self.out.put(repr(e))

    def end(self):
        """(when it was due, seconds from then until it was done, seconds from when it was sent) of each operation."""
        self.stop.set()
        noted = []
        for _ in self.all:
            given = self.out.get(timeout=PATIENCE_S)
            if isinstance(given, str):
                raise RuntimeError(f"a client failed: {given}")
            values = array.array("d", given)
            noted += zip(values[::3], values[1::3], values[2::3])
        for p in self.all:
            p.join()
        return sorted(noted)


def within(noted, window):
    return [x for x in noted if window[0] <= x[0] < window[1]]


# How fast a range moves.

def copied(source, target, ahead):
    """A plain copy by a client: raw batches of `find`, inserted as they are. With `ahead` the next ones are read meanwhile."""
    codec = bson.CodecOptions(document_class=RawBSONDocument)
    coll = client(target.port)["copy"].get_collection("docs", codec, write_concern=KEPT_AT_ONE)
    batches = client(source.port).bench.docs.find_raw_batches({}, batch_size=COPIED_AT_ONCE)
    if ahead:
        batches = read_ahead(batches)
    for batch in batches:
        coll.insert_many(bson.decode_all(batch, codec), ordered=False)
    # A migration ends when a majority has everything; so does this.
    coll.with_options(write_concern=pymongo.WriteConcern("majority")).insert_one({"_id": "the end"})


def read_ahead(batches):
    read = queue.Queue(4)

    def reader():
        try:
            for batch in batches:
                read.put(batch)
        finally:
            read.put(None)
    threading.Thread(target=reader, daemon=True).start()
    return iter(read.get, None)


def synced(source, member):
    """Initial sync of another member of the shard."""
    reconfig(client(source.port), member.port)
    until(lambda: hello(member).get("secondary"), 0.02)


def hello(member):
    try:
        return client(member.port).admin.command("hello")
    except pymongo.errors.PyMongoError:
        return {}


def new_member(cluster, turn):
    name = f"member{turn}"
    data = cluster.home / f"{name}.data"
    data.mkdir()
    member = cluster.start(name, cluster.pandod, "--shardsvr", "--replSet", f"s{turn % 2}", "--dbpath", str(data))
    client(member.port).admin.command("ping")
    return member


def one_way(way, cluster, turn, docs):
    """(seconds, nanoseconds of CPU of the servers that take part) of moving or copying everything from where it is in this turn, the first
    shard in even ones."""
    source, target = cluster.shards[turn % 2], cluster.shards[1 - turn % 2]
    member = new_member(cluster, turn) if way == "initial sync" else None
    servers = [source, member or target]
    cluster.flush()
    cpu, begun = sum(s.cpu() for s in servers), time.perf_counter()
    if way == "moveRange":
        cluster.move(1 - turn % 2)
    elif member:
        synced(source, member)
    else:
        copied(source, target, "ahead" in way)
    took = time.perf_counter() - begun, sum(s.cpu() for s in servers) - cpu
    arrived = client(servers[1].port)["bench" if member or way == "moveRange" else "copy"].docs.count_documents({"k": {"$exists": True}})
    assert arrived == docs, f"{way}: {arrived} of {docs} documents"
    if member:
        reconfig(client(source.port), None)
        member.process.terminate()
        member.process.wait(60)
    client(target.port).drop_database("copy")
    cluster.settle()
    return took


def migration(home, a):
    """One range of all documents, there and back, beside the same documents copied by others."""
    turns = max(1, a.turns // 4)
    rows = {way: [] for way in ("plain copy", "plain copy, read ahead", "initial sync", "moveRange")}
    with running(home, a, 2) as cluster:
        cluster.deletes_after(0)
        docs = a.mb * 1024
        cluster.fill(range(docs))
        mb = client(cluster.shards[0].port).bench.command("collStats", "docs")["size"] / 1e6
        # Moving comes last in each turn, since it takes the documents elsewhere. The first two, which get the servers warm, do not count.
        for turn in range(-2, turns):
            for way, took in rows.items():
                now = one_way(way, cluster, turn, docs)
                if turn >= 0:
                    took.append(now)
            left = client(cluster.shards[turn % 2].port).bench.docs.count_documents({})
            assert left == 0, f"{left} documents stayed"
    plain = statistics.median(s for s, _ in rows["plain copy"])
    print(f"\n{f'{mb:.0f} MB, {docs} documents':26} {'seconds':>9} {'MB/s':>9} {'of plain copy':>13}   {'CPU of servers':>14}  (ms a MB; medians of {turns})")
    for way, took in rows.items():
        seconds, cpu = (statistics.median(x[k] for x in took) for k in (0, 1))
        print(f"{way:26} {seconds:9.2f} {mb / seconds:9.1f} {plain / seconds:13.2f}   {cpu / 1e6 / mb:14.2f}", flush=True)


# How long writers wait.

# Keys of one range of those that move one after the other.
WIDTH = 10 ** 7


def write_in(docs, current):
    """Updates and inserts in the range that moves now."""
    def write(coll, rnd, n):
        low = current.value * WIDTH
        if n // CLIENTS % 2:
            coll.update_one({"_id": low + rnd.randrange(docs)}, {"$inc": {"n": 1}})
        else:
            coll.insert_one({"_id": low + docs + n, "k": n, "filler": "z" * 100})
    return write


def slices(window, length):
    """A time at rest in pieces as long as a migration."""
    n = max(1, int((window[1] - window[0]) / length))
    return [(window[0] + i * length, window[0] + (i + 1) * length) for i in range(n)]


def blocked_writes(home, a):
    """The longest write of each migration, where 1,000 writes a second are due in the range that moves: one range after the other, each of
    them once. Four processes share them, so that one that waits keeps no other one waiting."""
    with running(home, a, 2) as cluster:
        # Deletions come a second later, so that what is seen is the migration.
        cluster.deletes_after(1)
        docs, warm = max(1, a.mb // 8) * 1024, 2
        cluster.fill([turn * WIDTH + i for turn in range(warm + a.turns) for i in range(docs)])
        # The first ones are not counted.
        for turn in range(warm):
            cluster.move(1, turn * WIDTH, (turn + 1) * WIDTH)
            cluster.settle()
        current = multiprocessing.Value("q", warm, lock=False)
        writers = Clients(cluster.routers[0].port, [write_in(docs, current)] * CLIENTS, OPS_A_SECOND)
        time.sleep(0.5)
        rest = time.perf_counter(), time.perf_counter() + max(a.seconds, a.turns / 4)
        time.sleep(rest[1] - rest[0])
        windows = []
        for turn in range(warm, warm + a.turns):
            current.value = turn
            time.sleep(0.2)
            begun = time.perf_counter()
            cluster.move(1, turn * WIDTH, (turn + 1) * WIDTH)
            windows.append((begun, time.perf_counter() + AFTERMATH_S))
            time.sleep(AFTERMATH_S)
            cluster.settle()
            print(f"\r{turn - warm + 1} of {a.turns} ranges have moved", end="", file=sys.stderr, flush=True)
        noted = writers.end()
    length = statistics.median(high - low for low, high in windows)
    print(f"\n{f'{a.turns} migrations of {length - AFTERMATH_S:.2f} s':26} {'median':>9} {'p99':>9} {'longest':>9}   {'median':>9} {'p99':>9} {'longest':>9}  (ms since it was due; since it was sent)")
    moving = [within(noted, w) for w in windows]
    resting = [within(noted, w) for w in slices(rest, length)]
    for name, groups in ("at rest", resting), ("while it moves", moving):
        groups = [g for g in groups if g]
        for what, pick in (f"writes {name}", None), (f"longest {name}", max):
            due, sent = ([pick(x[k] for x in g) for g in groups] if pick else [x[k] for g in groups for x in g] for k in (1, 2))
            print(f"{what:26} {ms_columns(due)}   {ms_columns(sent)}", flush=True)
    waits = [(max(g, key=lambda x: x[1]), low, high) for g, (low, high) in zip(moving, windows) if g]
    long = [f"{wait * 1000:.0f} at {(due - low) * 1000:.0f} of {(high - AFTERMATH_S - low) * 1000:.0f}"
            for (due, wait, _), low, high in waits if wait * 1000 > WAIT_BAR_MS]
    print(f"{len(long)} of {len(waits)} kept a write waiting for more than {WAIT_BAR_MS} ms"
          f"{' (ms, when of how long a migration): ' if long else ''}{', '.join(long)}")


# What a deletion takes from clients.

def find_and_update(docs):
    def use(coll, rnd, n):
        # Each client does one and the other in turn.
        if n // CLIENTS % 2:
            coll.update_one({"_id": rnd.randrange(docs)}, {"$inc": {"n": 1}})
        else:
            coll.find_one({"_id": rnd.randrange(docs)})
    return use


def range_deletion(home, a):
    """Four clients, one operation behind the other, while their shard deletes a range that it has given away."""
    turns, docs = max(1, a.turns // 4), a.mb * 1024
    windows = {"at rest": [], "deletion under way": []}
    with running(home, a, 2) as cluster:
        cluster.deletes_after(0)
        cluster.fill(range(HOT + docs))
        shard = cluster.shards[0]

        def watch(name, wait):
            cpu, begun = shard.cpu(), time.perf_counter()
            wait()
            ended = time.perf_counter()
            windows[name].append((begun, ended, (shard.cpu() - cpu) / 1e9 / (ended - begun)))
        clients = Clients(cluster.routers[0].port, [find_and_update(HOT)] * CLIENTS)
        time.sleep(0.5)
        for _ in range(turns):
            watch("at rest", lambda: time.sleep(a.seconds))
            cluster.move(1, low=HOT)
            watch("deletion under way", lambda: emptied(client(shard.port).config.rangeDeletions))
            cluster.settle()
            cluster.move(0, low=HOT)
            cluster.settle()
        noted = clients.end()
    print(f"\n{f'{CLIENTS} clients, {docs} deleted':26} {'operations/s':>12} {'less':>7} {'median':>9} {'p99':>9} {'longest':>9}  (ms)   {'CPU of the shard':>16} {'seconds':>8}")
    rates = {}
    for name, all in windows.items():
        seen = [x for w in all for x in within(noted, w)]
        rates[name] = len(seen) / sum(w[1] - w[0] for w in all)
        less = 100 * (1 - rates[name] / rates["at rest"])
        cpu, seconds = (statistics.mean(x) for x in ([w[2] for w in all], [w[1] - w[0] for w in all]))
        print(f"{name:26} {rates[name]:12.0f} {less:6.1f}% {ms_columns(x[1] for x in seen)}         {100 * cpu:15.0f}% {seconds:8.2f}", flush=True)


# What a second shard costs.

def of_half(op):
    """Every second client uses the upper half of the keys. `clients_of` numbers operations from a million for each client on."""
    return lambda coll, rnd, n: op(coll, rnd, (n // 10 ** 6 + 1) % 2 * HALF, n)


HALVES = {
    "find_one by _id": lambda coll, rnd, low, n: coll.find_one({"_id": low + rnd.randrange(HOT)}),
    "update_one by _id": lambda coll, rnd, low, n: coll.update_one({"_id": low + rnd.randrange(HOT)}, {"$inc": {"n": 1}}),
    "find 20 by a range": lambda coll, rnd, low, n: list(coll.find({"_id": {"$gte": (at := low + rnd.randrange(HOT - 20)), "$lt": at + 20}})),
}


def spent_by(cluster, count, op, seconds):
    """Operations a second of so many clients, and what each took of the shards, of the router and of both (us)."""
    router, out = cluster.routers[0], multiprocessing.Array("q", count)
    cpu = cluster.shard_cpu(), router.cpu()
    clients_of([router.port] * count, op, seconds, out)
    done = sum(out)
    shards, routed = (cluster.shard_cpu() - cpu[0]) / done / 1000, (router.cpu() - cpu[1]) / done / 1000
    return done / seconds, shards, routed, shards + routed


def two_shards(home, a):
    """Clients on two halves of the keys, which lie on one shard or on two."""
    turns = max(1, a.turns // 4)
    with running(home / "one", a, 1) as one, running(home / "two", a, 2) as two:
        for cluster in one, two:
            cluster.deletes_after(0)
            cluster.fill([i + half for half in (0, HALF) for i in range(HOT)])
            cluster.admin.command("split", "bench.docs", middle={"_id": HALF})
        two.move(1, low=HALF)
        two.settle()
        two.flush()
        for cluster in one, two:
            cpu = cluster.shard_cpu(), cluster.routers[0].cpu()
            time.sleep(a.seconds)
            cpu = [(now - then) / 1e6 / a.seconds for then, now in zip(cpu, (cluster.shard_cpu(), cluster.routers[0].cpu()))]
            print(f"\nat rest with {len(cluster.shards)} shard(s): {cpu[0]:.1f} ms of CPU a second of the shards, {cpu[1]:.1f} of the router", end="")
        print(f"\n{'two halves of the keys':26} {'shards':>6} {'clients':>7} {'operations/s':>12}   {'CPU of shards':>13} {'of router':>9} {'of both':>8} {'ratio':>6} {'as busy':>7}  (us)")
        # Busy servers do more at once. The one with half of the clients is as busy as each of two.
        rows = (one, CLIENTS), (one, CLIENTS // 2), (two, CLIENTS)
        for name, op in HALVES.items():
            spent = {row: [] for row in rows}
            for turn in range(-1, turns):
                for row in rows if turn % 2 else rows[::-1]:
                    now = spent_by(*row, of_half(op), a.seconds)
                    if turn >= 0:
                        spent[row].append(now)
            medians = {row: [statistics.median(x[k] for x in all) for k in range(4)] for row, all in spent.items()}
            for (cluster, n), (rate, shards, routed, both) in medians.items():
                ratios = f"{both / medians[rows[0]][3]:6.2f} {both / medians[rows[1]][3]:7.2f}"
                print(f"{name:26} {len(cluster.shards):6} {n:7} {rate:12.0f}   {shards:13.1f} {routed:9.1f} {both:8.1f} {ratios}", flush=True)


# A shard that comes and goes.

def evened(cluster):
    """As the balancer sees it: no two shards are three chunks (of 1 MB) apart, and nothing is under way."""
    settled = all(client(s.port).config.rangeDeletions.find_one({}) is None for s in cluster.shards)
    held = [client(s.port).bench.docs.estimated_document_count() for s in cluster.shards]
    return settled and max(held) - min(held) < 3 * 1024


def drained(cluster, name):
    return cluster.admin.command("removeShard", name)["state"] == "completed"


def new_shard(home, a):
    """Four clients of which 1,000 operations a second are due, while the balancer fills a third shard, and empties it again."""
    with running(home, a, 2, chunk_mb=1, balancer="on") as cluster:
        cluster.deletes_after(0)
        docs = max(8, a.mb // 2) * 1024
        cluster.fill(range(docs), key="hashed")
        until(lambda: evened(cluster), 0.5)
        third = cluster.server(cluster.pandod, "s2", "--shardsvr")
        clean_after(third, 0)
        clients = Clients(cluster.routers[0].port, [find_and_update(docs)] * CLIENTS, OPS_A_SECOND)
        time.sleep(0.5)
        changes, windows = cluster.client.config.changelog, {}

        def watch(name, wait):
            moved, begun = changes.count_documents({"what": "moveChunk.commit"}), time.perf_counter()
            wait()
            windows[name] = begun, time.perf_counter(), changes.count_documents({"what": "moveChunk.commit"}) - moved

        def evens_out():
            cluster.admin.command("addShard", f"s2/127.0.0.1:{third.port}")
            cluster.shards.append(third)
            until(lambda: evened(cluster), 0.5)
        watch("idle", lambda: time.sleep(max(a.seconds, a.turns / 4)))
        watch("a shard comes", evens_out)
        held = client(third.port).bench.docs.count_documents({})
        watch("it is drained", lambda: until(lambda: drained(cluster, "s2"), 0.5))
        noted = clients.end()
    print(f"\n{f'{docs / 1024:.0f} MB, {held / 1024:.0f} on the new shard':26} {'seconds':>8} {'migrations':>10} {'operations/s':>12} {'median':>9} {'p99':>9} {'longest':>9}   {'median':>9} {'p99':>9} {'longest':>9}  (ms since it was due; since it was sent)")
    for name, (low, high, migrations) in windows.items():
        seen = within(noted, (low, high))
        print(f"{name:26} {high - low:8.1f} {migrations:10} {len(seen) / (high - low):12.0f} {ms_columns(x[1] for x in seen)}   {ms_columns(x[2] for x in seen)}", flush=True)


PHASES = {"migration": migration, "blocked writes": blocked_writes, "range deletion": range_deletion, "two shards": two_shards, "new shard": new_shard}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--pandod", required=True)
    p.add_argument("--pandos", required=True)
    p.add_argument("--turns", type=int, default=20)
    p.add_argument("--mb", type=int, default=64)
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--phases", default=".")
    a = p.parse_args()
    os.sched_setaffinity(0, {0})
    # Who ends this ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(f"load average at the start: {os.getloadavg()[0]:.1f}; pymongo {pymongo.version}", flush=True)
    home = pathlib.Path(tempfile.mkdtemp(prefix="moves-bench-"))
    try:
        for name, run in PHASES.items():
            if re.search(a.phases, name):
                run(home / name.replace(" ", "-"), a)
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
