#!/usr/bin/env python3
"""Whether a three-member set stays as it is under a load that goes on, with collections coming and going all the time.

    soak.py BINARY [--minutes N] [--every S] [--clients C] [--no-ddl] [--tolerance P] [--port P] [--dir D] [--set NAME=VALUE ...]

C client processes work on two collections (point reads, inserts, updates, deletes, small transactions), each beside a change stream of its
own. One more creates a collection, fills it with 200 documents, indexes it and drops it again, as fast as it can. All figures are taken every S
seconds: operations a second, and for each member resident memory, bytes on disk and open files.

The first third of the run is for warming up. After it, the median of the last third must be within P percent of the median of the middle third: not
fewer operations, not more memory, files or bytes on disk (bytes on disk and files breathe with merging: of those the lowest readings are compared).
Needs pymongo. Works with a mongod binary too. Ends with `N passed, N failed` (figures).
"""
import argparse
import multiprocessing as mp
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import pymongo
from pymongo.errors import PyMongoError

MEMBERS = 3
KEYS = 2000


def start(a, home, i):
    at = home / str(i)
    at.mkdir()
    cmd = [a.binary, "--dbpath", str(at), "--port", str(a.port + i), "--replSet", "soak", "--bind_ip", "127.0.0.1", "--logpath", str(home / f"{i}.log"),
           "--wiredTigerCacheSizeGB", "0.25", "--oplogSize", "64"]
    for setting in a.set:
        cmd += ["--setParameter", setting]
    return subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def connect(a, **more):
    return pymongo.MongoClient(f"mongodb://127.0.0.1:{a.port}/?replicaSet=soak", serverSelectionTimeoutMS=30000, **more)


def initiate(a):
    one = pymongo.MongoClient(f"mongodb://127.0.0.1:{a.port}/?directConnection=true", serverSelectionTimeoutMS=30000)
    members = [{"_id": i, "host": f"127.0.0.1:{a.port + i}"} for i in range(MEMBERS)]
    one.admin.command("replSetInitiate", {"_id": "soak", "members": members})
    one.close()
    client = connect(a)
    until = time.time() + 60
    while time.time() < until:
        states = [m["stateStr"] for m in client.admin.command("replSetGetStatus")["members"]]
        if sorted(states) == ["PRIMARY"] + ["SECONDARY"] * (MEMBERS - 1):
            break
        time.sleep(.3)
    db = client.soak
    for name in ("plain", "ranked"):
        db[name].insert_many({"_id": i, "n": 0, "k": random.randrange(1000), "pad": "x" * 300} for i in range(KEYS))
        db[name].create_index("k")
    return client


def crud(a, number, stop, done, wrong):
    random.seed(number)
    client = connect(a)
    db, n = client.soak, 0
    stream = db.plain.watch(max_await_time_ms=1)
    while not stop.is_set():
        try:
            what, key = random.random(), random.randrange(KEYS)
            c = db.plain if random.random() < .7 else db.ranked
            if what < .4:
                if c.find_one({"_id": key}) is None:
                    wrong.value += 1
            elif what < .75:
                c.update_one({"_id": key}, {"$inc": {"n": 1}, "$set": {"k": random.randrange(1000)}})
            elif what < .85:
                fresh = KEYS + number * 1_000_000_000 + n
                c.insert_one({"_id": fresh, "k": key, "pad": "y" * 300})
                if c.delete_one({"_id": fresh}).deleted_count != 1:
                    wrong.value += 1
            elif what < .95:
                list(c.find({"k": {"$gte": key % 1000}}).sort("k").limit(10))
            else:
                with client.start_session() as session:
                    def transfer(s):
                        db.plain.update_one({"_id": key}, {"$inc": {"n": 1}}, session=s)
                        db.ranked.update_one({"_id": key}, {"$inc": {"n": -1}}, session=s)
                    session.with_transaction(transfer)
            if n % 5 == 0:
                stream.try_next()
            n += 1
            done.value = n
        except PyMongoError as e:
            print(f"client {number}: {type(e).__name__}: {e}"[:300], flush=True)
            wrong.value += 1
            time.sleep(.2)


def ddl(a, stop, done, wrong):
    db, n = connect(a).soakddl, 0
    while not stop.is_set():
        try:
            c = db[f"c{n}"]
            c.insert_many([{"_id": i, "a": i, "b": str(i), "pad": "z" * 200} for i in range(200)])
            c.create_index("a")
            c.create_index([("b", 1), ("a", -1)])
            if c.count_documents({"a": {"$gte": 100}}) != 100:
                wrong.value += 1
            c.drop()
            n += 1
            done.value = n
        except PyMongoError as e:
            print(f"ddl: {type(e).__name__}: {e}"[:300], flush=True)
            wrong.value += 1
            time.sleep(.2)


def resident(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * 4096 / 2**20


def on_disk(path):
    total = 0
    for root, _, files in os.walk(path):
        for f in files:
            try:
                total += os.stat(os.path.join(root, f)).st_blocks * 512
            except OSError:
                pass
    return total / 2**20


def judge(rows, tolerance):
    """(name, middle, last, fine) for each figure."""
    third = len(rows) // 3
    middle, last = rows[third:2 * third], rows[2 * third:]
    out = []
    for name in rows[0]:
        if name in ("t", "ddl"):
            continue
        lowest = name.startswith(("disk", "files"))
        of = min if lowest else statistics.median
        was, now = of([r[name] for r in middle]), of([r[name] for r in last])
        change = (now - was) / max(was, 1) * 100
        fine = change >= -tolerance if name == "ops" else change <= tolerance
        out.append((name, was, now, change, fine))
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("binary")
    p.add_argument("--minutes", type=float, default=60)
    p.add_argument("--every", type=float, default=15)
    p.add_argument("--clients", type=int, default=4)
    p.add_argument("--no-ddl", action="store_true")
    p.add_argument("--tolerance", type=float, default=5)
    p.add_argument("--port", type=int, default=28700)
    p.add_argument("--dir")
    p.add_argument("--set", action="append", default=[])
    a = p.parse_args()
    home = pathlib.Path(a.dir or tempfile.mkdtemp(prefix="soak"))
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    members = [start(a, home, i) for i in range(MEMBERS)]
    stop, procs, rows = mp.Event(), [], []
    counts = [mp.Value("q", 0) for _ in range(a.clients + 1)]
    wrong = mp.Value("q", 0)
    try:
        initiate(a)
        procs = [mp.Process(target=crud, args=(a, i, stop, counts[i], wrong)) for i in range(a.clients)]
        if not a.no_ddl:
            procs.append(mp.Process(target=ddl, args=(a, stop, counts[-1], wrong)))
        for q in procs:
            q.start()
        begun = before = time.time()
        were, ddls = sum(c.value for c in counts[:-1]), counts[-1].value
        print(f"{'s':>6} {'ops/s':>7} {'ddl/s':>6}  " + "  ".join(f"{i}: MiB  disk files" for i in range(MEMBERS)), flush=True)
        while time.time() - begun < a.minutes * 60:
            time.sleep(a.every)
            now, n, d = time.time(), sum(c.value for c in counts[:-1]), counts[-1].value
            row = {"t": now - begun, "ops": (n - were) / (now - before), "ddl": (d - ddls) / (now - before)}
            for i, m in enumerate(members):
                if m.poll() is not None:
                    raise SystemExit(f"member {i} ended with {m.returncode}; its log: {home}/{i}.log")
                row[f"memory{i}"] = resident(m.pid)
                row[f"disk{i}"] = on_disk(home / str(i))
                row[f"files{i}"] = len(os.listdir(f"/proc/{m.pid}/fd"))
            rows.append(row)
            (were, ddls, before) = (n, d, now)
            print(f"{row['t']:6.0f} {row['ops']:7.0f} {row['ddl']:6.1f}  " + "  ".join(
                f"{row[f'memory{i}']:6.0f} {row[f'disk{i}']:5.0f} {row[f'files{i}']:5.0f}" for i in range(MEMBERS)), flush=True)
    finally:
        stop.set()
        for q in procs:
            q.join(10)
            q.kill()
        for m in members:
            m.terminate()
        for m in members:
            try:
                m.wait(30)
            except subprocess.TimeoutExpired:
                m.kill()
    verdicts = judge(rows, a.tolerance) if len(rows) >= 6 else []
    for name, was, now, change, fine in verdicts:
        print(f"{'ok  ' if fine else 'FAIL'} {name:10} middle third {was:9.1f}  last third {now:9.1f}  {change:+.1f} %")
    print(f"{'ok  ' if wrong.value == 0 else 'FAIL'} wrong answers or errors: {wrong.value}; {sum(c.value for c in counts[:-1])} operations, {counts[-1].value} collections")
    failed = sum(not v[-1] for v in verdicts) + (wrong.value > 0)
    print(f"{len(verdicts) + 1 - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
