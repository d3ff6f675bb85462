#!/usr/bin/env python3
"""A client that stays with its tenant while the tenant moves to another set.

    pip install pymongo
    cargo build --release -p pandod
    python3 examples/follow_a_tenant.py target/release/pandod

Starts six members of one set (`pandod --serverless true`): three that vote, and three hidden ones that may leave. Two tenants work in it,
`acme` and `zeta`; then `commitShardSplit` makes the hidden members a set of their own, which owns `acme`. The client of `acme` is told so by
one error, TenantMigrationCommitted (321), goes on at the new set, and asks the same write again there: what a driver numbers as a retryable
write is done once, on whichever side. No proxy is needed: a client has to know which sets there are, and which one has its tenant.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import pymongo
from bson.binary import Binary
from pymongo.errors import AutoReconnect, OperationFailure

COMMITTED, ABORTED = 321, 325
PORT = 28100


class TenantClient:
    """One tenant's database, wherever it is. `sets` are the sets that there are, by name; the first has all tenants at the beginning."""

    def __init__(self, tenant, sets):
        self.tenant, self.sets = tenant, sets
        self.home, self.moves = next(iter(sets)), 0

    def run(self, work):
        """Calls `work(database)`, again where its tenant is now."""
        while True:
            try:
                return work(self.sets[self.home][f"{self.tenant}_db"])
            except OperationFailure as e:
                if e.code == COMMITTED:
                    self.home = next(name for name in self.sets if name != self.home)
                    self.moves += 1
                elif e.code != ABORTED:
                    raise
            except AutoReconnect:
                time.sleep(.05)


def start(pandod, home):
    processes = []
    for n in range(6):
        folder = home / str(n)
        folder.mkdir()
        command = [pandod, "--serverless", "true", "--dbpath", folder, "--port", str(PORT + n), "--bind_ip", "127.0.0.1"]
        processes.append(subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL))
    return processes


def initiate():
    def member(n):
        m = {"_id": n, "host": f"127.0.0.1:{PORT + n}"}
        return m if n < 3 else m | {"votes": 0, "priority": 0, "hidden": True, "tags": {"leaves": f"node{n}"}}

    first = pymongo.MongoClient("127.0.0.1", PORT, directConnection=True)
    first.admin.command("replSetInitiate", {"_id": "everybody", "members": [member(n) for n in range(6)]})
    while not first.admin.command("hello")["isWritablePrimary"]:
        time.sleep(.05)


def connect(name, ports):
    hosts = [f"127.0.0.1:{PORT + n}" for n in ports]
    return pymongo.MongoClient(hosts, replicaSet=name, w="majority", serverSelectionTimeoutMS=60_000)


def work(client, done, counted):
    """Writes one document after another; tells how long the longest one took."""
    n, longest = 0, 0
    while not done.is_set():
        begun = time.perf_counter()
        client.run(lambda db, n=n: db.orders.insert_one({"_id": n}))
        n, longest = n + 1, max(longest, time.perf_counter() - begun)
    counted[client.tenant] = n, longest


def main(pandod):
    home = pathlib.Path(tempfile.mkdtemp(prefix="pando-tenants-"))
    processes = start(pandod, home)
    try:
        initiate()
        sets = {"everybody": connect("everybody", range(3)), "of-its-own": connect("of-its-own", range(3, 6))}
        clients = [TenantClient(tenant, sets) for tenant in ("acme", "zeta")]
        done, counted = threading.Event(), {}
        threads = [threading.Thread(target=work, args=(c, done, counted)) for c in clients]
        for t in threads:
            t.start()
        time.sleep(2)
        split = {
            "migrationId": Binary(uuid.uuid4().bytes, 4),
            "recipientSetName": "of-its-own",
            "recipientTagName": "leaves",
            "tenantIds": ["acme"],
        }
        print("the split:", sets["everybody"].admin.command("commitShardSplit", 1, **split)["state"])
        time.sleep(2)
        done.set()
        for t in threads:
            t.join()
        sound = True
        for c in clients:
            written, longest = counted[c.tenant]
            there = sets[c.home][f"{c.tenant}_db"].orders.count_documents({})
            sound &= there == written
            print(f"{c.tenant}: at {c.home}, {written} orders acknowledged, {there} there; the longest took {longest * 1000:.0f} ms")
        return 0 if sound and clients[0].moves == 1 and clients[1].moves == 0 else 1
    finally:
        for p in processes:
            p.kill()
            p.wait()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "target/release/pandod"))
