#!/usr/bin/env python3
"""What tenants' clients notice of a tenant migration, what it costs the others, and how fast a tenant is copied.

    cargo build --release -p pandod && cargo build -p pando-checkers
    migration_bench.py target/release/pandod [--checker target/debug/check-history] [--rounds 5] [--mb 200] [--copies 3] [--port P]

First the rounds of `tests/chaos/migrations.py`, nobody killed and none called off: up to 20 of 100 tenants go from one set of three to another
one, and every round is judged as there. The wait of a user of a tenant that moves is the longest time between two of its acknowledged
operations, which includes its pause between them and its way to the other set.
Then, on sets of their own, a tenant of `--mb` megabytes (documents of 1 KiB, one secondary index) while one client writes to it and others to
other tenants: it goes there and back `--copies` times in all. Beside it, in turn, a client that copies the same from one set to the other
(find, insertMany of 1,000 at w: 1, the last one at w: majority, the index first), and an initial sync of a fourth member, which gets all.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import pymongo
from pymongo.errors import OperationFailure
from pymongo.write_concern import WriteConcern

CHAOS = pathlib.Path(__file__).resolve().parents[1] / "tests" / "chaos"
sys.path.insert(0, str(CHAOS))
from splitting import servers  # noqa: E402
from splitting.servers import DONOR, other  # noqa: E402
from migrating import migration  # noqa: E402
import harness  # noqa: E402

BATCH, SYNC_S, OTHERS = 1000, 600, 3
NOISE = "".join(chr(33 + i * 7919 % 90) for i in range(455))
MAJORITY = WriteConcern("majority", wtimeout=60_000)


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p))] * 1000


def table(told):
    yield from ("| | p50 | p99 | longest |", "|---|---|---|---|")
    for name, of in (("a migration, until it is committed", "took"), ("a client of a moved tenant without an answer", "gaps"),
                     ("operations of other tenants, before", "before"), ("operations of other tenants, during migrations", "during")):
        if told.get(of):
            yield f"| {name} | {percentile(told[of], .5):,.1f} ms | {percentile(told[of], .99):,.1f} ms | {percentile(told[of], 1):,.1f} ms |"


def under_load(a, home):
    found = pathlib.Path(home) / "found.json"
    run = subprocess.run([sys.executable, "-u", str(CHAOS / "migrations.py"), a.pandod, "-n", str(a.rounds), "--checker", a.checker, "--port", str(a.port),
                          "--no-aborts", "--json", str(found)])
    if found.exists():
        print("\n".join(table(json.loads(found.read_text()))), flush=True)
    return run.returncode


class Writer(threading.Thread):
    """Increments a counter of one tenant, again until it is acknowledged, wherever the tenant is."""

    def __init__(self, two, tenant, side):
        super().__init__(daemon=True)
        self.two, self.tenant, self.side, self.ended, self.done = two, tenant, side, False, []
        self.open()

    def open(self):
        self.coll = client(self.two, self.side).get_database(f"{self.tenant}_db", write_concern=MAJORITY).counters

    def run(self):
        n = 0
        while not self.ended:
            begun, n = time.monotonic(), n + 1
            while not self.ended:
                try:
                    self.coll.update_one({"_id": 0}, {"$set": {"n": n}}, upsert=True)
                    self.done.append((begun, time.monotonic()))
                    break
                except OperationFailure as e:
                    if e.code != 321:
                        raise
                    self.side = other(self.side)
                    self.open()
            time.sleep(.005)

    def end(self):
        self.ended = True
        self.join()
        ends = [e for _, e in self.done]
        return max((b - a for a, b in zip(ends, ends[1:])), default=0)


def client(two, side):
    return pymongo.MongoClient(f"mongodb://{','.join(m.name for m in two.of[side])}/?replicaSet={side}", serverSelectionTimeoutMS=60_000)


def load(two, mb):
    """Megabytes that it is."""
    rnd = random.Random(1)
    coll = client(two, DONOR).big_db.docs
    coll.create_index("k")
    n = mb * 1_000_000 // 1060
    for i in range(0, n, BATCH):
        coll.insert_many([harness.document(j, rnd, NOISE) for j in range(i, min(n, i + BATCH))])
    stats = coll.database.command("dbStats")
    return stats["dataSize"] / 1e6, n


def move(two, side):
    """(seconds, longest wait of its client, latencies of others before, meanwhile)"""
    writer, others = Writer(two, "big", side), [Writer(two, f"other{i}", DONOR) for i in range(OTHERS)]
    for w in [writer, *others]:
        w.start()
    time.sleep(3)
    begun = time.monotonic()
    m = migration.Migration(two, side, "big", print)
    m.commit()
    decided = time.monotonic()
    if m.outcome != "committed":
        raise SystemExit(f"{m.outcome}: {m.reason}")
    time.sleep(1)
    gap = writer.end()
    for w in others:
        w.end()
    wrong = m.forget() or migration.until_gone(two)
    if wrong:
        raise SystemExit(wrong)
    spans = [s for w in others for s in w.done]
    return m.seconds, gap, [e - b for b, e in spans if e < begun], [e - b for b, e in spans if e > begun and b < decided]


def plain_copy(two, side):
    source, target = client(two, side).big_db.docs, client(two, other(side)).get_database("plain_db", write_concern=WriteConcern(1)).docs
    begun, batch = time.monotonic(), []
    target.create_index("k")
    for doc in source.find(batch_size=BATCH):
        batch.append(doc)
        if len(batch) == BATCH:
            target.insert_many(batch, ordered=False)
            batch = []
    target.with_options(write_concern=MAJORITY).insert_many(batch or [{"_id": -1}])
    took = time.monotonic() - begun
    target.database.client.drop_database("plain_db")
    return took


def initial_sync(two, a, home, side, n):
    """Seconds until a fourth member has what that set has."""
    member = servers.Server(a, len(two.members) + n, home)
    member.start()
    servers.Six.until(lambda: member.hello().get("ok"), "it does not answer")
    primary = two.primary(side)
    config = primary.ask({"replSetGetConfig": 1})["config"]
    whole = {**config, "version": config["version"] + 1, "members": [*config["members"], {"_id": 10 + n, "host": member.name, "votes": 0, "priority": 0}]}
    begun = time.monotonic()
    reply = primary.ask({"replSetReconfig": whole}, timeout=60)
    if reply.get("ok") != 1:
        raise SystemExit(f"replSetReconfig: {reply}")
    servers.Six.until(lambda: member.hello().get("secondary"), "it does not become a secondary", SYNC_S)
    took = time.monotonic() - begun
    primary = two.primary(side)
    primary.ask({"replSetReconfig": {**config, "version": whole["version"] + 1}}, timeout=60)
    member.kill()
    return took


def copies(a, home):
    two, side = servers.Two(a, home), DONOR
    try:
        two.start()
        mb, n = load(two, a.mb)
        print(f"{n} documents, {mb:.0f} MB", flush=True)
        took = {"tenant migration": [], "a client's find and insertMany": [], "initial sync": []}
        gaps, before, during = [], [], []
        for i in range(a.copies):
            seconds, gap, b, d = move(two, side)
            side, gaps, before, during = other(side), gaps + [gap], before + b, during + d
            took["tenant migration"].append(seconds)
            took["a client's find and insertMany"].append(plain_copy(two, side))
            took["initial sync"].append(initial_sync(two, a, home, side, i))
            print({k: f"{v[-1]:.1f} s" for k, v in took.items()}, f"its client waited {gap * 1000:.0f} ms", flush=True)
        print("\n".join(["| copy | MB/s |", "|---|---|", *(f"| {k} | {mb / statistics.median(v):.0f} |" for k, v in took.items())]))
        print("\n".join(table({"gaps": gaps, "before": before, "during": during})))
    finally:
        two.end()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("pandod")
    ap.add_argument("--checker", default="target/debug/check-history")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--mb", type=int, default=200)
    ap.add_argument("--copies", type=int, default=3)
    ap.add_argument("--port", type=int, default=29400)
    ap.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    a = ap.parse_args()
    a.pandod = os.path.abspath(a.pandod)
    with tempfile.TemporaryDirectory(prefix="pando-migration-bench-") as home:
        failed = under_load(a, home) if a.rounds else 0
        if a.copies:
            copies(a, pathlib.Path(home))
    print(f"Load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, clients among them.")
    return failed


if __name__ == "__main__":
    sys.exit(main())
