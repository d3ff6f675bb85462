#!/usr/bin/env python3
"""Replica sets of `pandod`, and clusters with `pandos`, by the launchers people use for MongoDB: mlaunch, mongo-orchestration and
mongodb-runner.

    launchers.py BINARY [--router PANDOS] [--port P] [--runner COMMAND] [--only PART]
                                            # pip install 'mtools[mlaunch]==1.7.2' mongo-orchestration==0.11.2 pymongo
                                            # npm i mongodb-runner@6.11, then --runner node_modules/.bin/mongodb-runner

BINARY is reached through a link named `mongod`, in a folder of its own: mlaunch looks for processes of that name. The router is the
`pandos` beside it where no other is named, by a link named `mongos`. Each launcher starts three members, has them write and read,
stops them, and (mlaunch) starts them again on the same data; mlaunch does the same with a cluster of two shards. PART is one of
`mlaunch`, `sharded`, `orchestration`, `runner`. Uses ports P (31320) to P+30. Ends with `N passed, N failed`.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

import psutil
import pymongo

CHECKS = {"passed": 0, "failed": 0}
STEP_S = 120


def check(name, fn):
    try:
        ok, why = fn(), ""
    except Exception as e:  # noqa: BLE001
        ok, why = False, f"{type(e).__name__}: {str(e)[:300]}"
    CHECKS["passed" if ok else "failed"] += 1
    print(f"{'ok  ' if ok else 'FAIL'} {name} {why}", flush=True)


def until(holds, seconds=60):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def tool(*args):
    end = time.monotonic() + STEP_S
    while True:
        r = subprocess.run([pathlib.Path(sys.executable).parent / args[0], *args[1:]], capture_output=True, text=True, timeout=STEP_S, check=False)
        # mlaunch gives up, before it does anything, where a process that ended is still in the kernel's table.
        if "ZombieProcess" not in r.stderr or time.monotonic() > end:
            break
        time.sleep(0.5)
    if r.returncode:
        raise RuntimeError(r.stdout[-300:] + r.stderr[-300:])
    return r.stdout


def gone(home):
    """mlaunch says `down` as soon as nobody listens any more; the folder is free once the process is gone."""
    return not any(str(home) in " ".join(p.info["cmdline"] or []) and "--port" in p.info["cmdline"] for p in psutil.process_iter(["cmdline"]))


def states(client):
    return sorted(m["stateStr"] for m in client.admin.command("replSetGetStatus")["members"])


def mlaunch(bins, home, port):
    at = ["--dir", str(home / "ml")]
    uri = f"mongodb://localhost:{port}/?replicaSet=ml"
    full = ["PRIMARY", "SECONDARY", "SECONDARY"]
    check("mlaunch init", lambda: "initialized" in tool("mlaunch", "init", "--replicaset", "--nodes", "3", "--name", "ml", "--port", str(port), "--binarypath", str(bins), *at))
    client = pymongo.MongoClient(uri, serverSelectionTimeoutMS=30_000)
    check("mlaunch: a majority write", lambda: client.t.c.with_options(write_concern=pymongo.WriteConcern("majority")).insert_one({"_id": 1}).acknowledged)
    check("mlaunch: a primary and two secondaries", lambda: until(lambda: states(client) == full))
    check("mlaunch list", lambda: tool("mlaunch", "list", *at).count("running") == 3)
    check("mlaunch stop", lambda: "3 processes" in tool("mlaunch", "stop", *at))
    check("mlaunch list after stop", lambda: until(lambda: tool("mlaunch", "list", *at).count("down") == 3 and gone(home / "ml")))
    check("mlaunch start", lambda: tool("mlaunch", "start", *at).count("launching") == 3)
    check("mlaunch: the data is there", lambda: pymongo.MongoClient(uri, serverSelectionTimeoutMS=30_000).t.c.find_one() == {"_id": 1})
    check("mlaunch kill", lambda: "3 processes" in tool("mlaunch", "kill", *at))


def sharded(bins, home, port):
    at = ["--dir", str(home / "sh")]
    init = ["mlaunch", "init", "--sharded", "2", "--replicaset", "--nodes", "1", "--config", "1", "--mongos", "1", "--port", str(port)]
    client = pymongo.MongoClient(f"mongodb://localhost:{port}/", serverSelectionTimeoutMS=30_000)
    t = client.t.c

    def parts():
        shards = [pymongo.MongoClient("localhost", port + i, directConnection=True) for i in (1, 2)]
        return [c.t.c.count_documents({}) for c in shards]

    check("mlaunch init --sharded", lambda: "adding shards" in tool(*init, "--hostname", "localhost", "--binarypath", str(bins), *at))
    check("sharded: it is a router", lambda: client.admin.command("hello")["msg"] == "isdbgrid")
    check("sharded: two shards", lambda: len(client.admin.command("listShards")["shards"]) == 2)
    check("sharded: a hashed collection", lambda: client.admin.command("shardCollection", "t.c", key={"_id": "hashed"})["ok"] == 1)
    check("sharded: writes", lambda: len(t.insert_many([{"_id": i} for i in range(100)]).inserted_ids) == 100)
    check("sharded: both shards have a part", lambda: all(parts()) and sum(parts()) == 100)
    check("sharded: mlaunch list", lambda: tool("mlaunch", "list", *at).count("running") == 4)
    check("sharded: mlaunch stop", lambda: "4 processes" in tool("mlaunch", "stop", *at))
    check("sharded: mlaunch list after stop", lambda: until(lambda: tool("mlaunch", "list", *at).count("down") == 4 and gone(home / "sh")))
    check("sharded: mlaunch start", lambda: tool("mlaunch", "start", *at).count("launching") == 4)
    check("sharded: the data is there", lambda: t.count_documents({}) == 100 and all(parts()))
    check("sharded: mlaunch kill", lambda: "4 processes" in tool("mlaunch", "kill", *at))


def orchestration(bins, home, port):
    base = f"http://127.0.0.1:{port}/v1"

    def ask(method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        with urllib.request.urlopen(urllib.request.Request(base + path, data, method=method), timeout=STEP_S) as r:
            text = r.read()
            return json.loads(text) if text else r.status

    (home / "releases").write_text(json.dumps({"releases": {"pando": str(bins)}, "last_release": "pando"}))
    cmd = [pathlib.Path(sys.executable).parent / "mongo-orchestration", "--no-fork", "-f", str(home / "releases"), "-e", "pando", "-b", "127.0.0.1", "-p", str(port), "start"]
    service = subprocess.Popen(cmd, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def answers():
        try:
            return bool(ask("GET", "/releases"))
        except OSError:
            return False

    member = lambda i, **rs: {"procParams": {"port": port + 1 + i}, "rsParams": rs}  # noqa: E731
    wanted = {"id": "mo", "members": [member(0, priority=99, tags={"dc": "ny"}), member(1, priority=1.1), member(2, arbiterOnly=True)]}
    id_of = lambda i: ask("GET", f"/replica_sets/mo/members/{i}")["server_id"]  # noqa: E731
    act = lambda i, action: bool(ask("POST", f"/servers/{id_of(i)}", {"action": action}))  # noqa: E731
    try:
        check("mongo-orchestration answers", lambda: until(answers))
        check("mongo-orchestration: a set with an arbiter", lambda: [m["state"] for m in ask("POST", "/replica_sets", wanted)["members"]] == [1, 2, 7])
        client = pymongo.MongoClient(f"mongodb://localhost:{port + 1}/?replicaSet=mo", serverSelectionTimeoutMS=30_000)
        check("mongo-orchestration: a write", lambda: client.t.c.insert_one({"_id": 1}).acknowledged)
        for action in ("stop", "start", "restart"):
            check(f"mongo-orchestration: {action} of a secondary", lambda action=action: act(1, action))
        check("mongo-orchestration: a hidden member more", lambda: bool(ask("POST", "/replica_sets/mo/members", member(3, priority=0, hidden=True))))
        check("mongo-orchestration: it is hidden", lambda: len(ask("GET", "/replica_sets/mo/hidden")["hidden"]) == 1)
        check("mongo-orchestration: and goes", lambda: ask("DELETE", "/replica_sets/mo/members/3") == 204)
        check("mongo-orchestration: step-down", lambda: until(lambda: states(client) == ["ARBITER", "PRIMARY", "SECONDARY"]) and act(0, "stepdown"))
        check("mongo-orchestration: the end", lambda: ask("DELETE", "/replica_sets/mo") == 204)
        orchestrated_cluster(ask, port + 5)
    finally:
        service.terminate()
        service.wait(30)


def orchestrated_cluster(ask, port):
    member = lambda i: {"members": [{"procParams": {"port": port + i}}]}  # noqa: E731
    wanted = {
        "id": "cl",
        "configsvrs": [member(1)],
        "routers": [{"port": port}],
        "shards": [{"id": f"sh{i}", "shardParams": member(1 + i)} for i in (1, 2)],
    }
    client = pymongo.MongoClient(f"mongodb://localhost:{port}/", serverSelectionTimeoutMS=30_000)
    check("mongo-orchestration: a cluster", lambda: sorted(s["id"] for s in ask("POST", "/sharded_clusters", wanted)["shards"]) == ["sh1", "sh2"])
    check("mongo-orchestration: its shards", lambda: len(client.admin.command("listShards")["shards"]) == 2)
    check("mongo-orchestration: a write by the router", lambda: client.t.c.insert_one({"_id": 1}).acknowledged)
    check("mongo-orchestration: the cluster's end", lambda: ask("DELETE", "/sharded_clusters/cl") == 204)


def runner(command, bins, home):
    """`mongodb-runner`, which chooses ports by itself."""
    (home / "runner").mkdir()
    where = ["--runnerDir", str(home / "runner"), "--id", "one"]
    told = {}

    def run(*args):
        r = subprocess.run([command, *args, *where], capture_output=True, text=True, timeout=STEP_S, check=False)
        if r.returncode:
            raise RuntimeError(r.stdout[-300:] + r.stderr[-300:])
        return r.stdout

    def start(topology, *more):
        out = run("start", "-t", topology, "--binDir", str(bins), "--tmpDir", str(home), *more)
        told["uri"] = next(w for w in out.split() if w.startswith("mongodb://"))
        return True

    client = lambda: pymongo.MongoClient(told["uri"], serverSelectionTimeoutMS=30_000)  # noqa: E731
    for topology, more in (("standalone", []), ("replset", ["--secondaries", "2"]), ("sharded", ["--shards", "2", "--secondaries", "1"])):
        check(f"mongodb-runner: {topology}", lambda: start(topology, *more))
        check(f"mongodb-runner: {topology}: a write", lambda: client().t.c.insert_one({"_id": 1}).acknowledged)
        if topology == "sharded":
            check("mongodb-runner: sharded: two shards, a hashed collection", lambda: len(client().admin.command("listShards")["shards"]) == 2 and client().admin.command("shardCollection", "t.h", key={"_id": "hashed"})["ok"] == 1)
        check(f"mongodb-runner: {topology}: the end", lambda: run("stop") is not None and until(lambda: gone(home)))


def main():
    ap = argparse.ArgumentParser(usage=__doc__)
    ap.add_argument("binary")
    ap.add_argument("--router", type=pathlib.Path)
    ap.add_argument("--port", type=int, default=31320)
    ap.add_argument("--runner", help="mongodb-runner's command, to try it as well")
    ap.add_argument("--only", choices=["mlaunch", "sharded", "orchestration", "runner"])
    a = ap.parse_args()
    home = pathlib.Path(tempfile.mkdtemp(prefix="launchers"))
    bins = home / "bin"
    bins.mkdir()
    os.symlink(os.path.abspath(a.binary), bins / "mongod")
    os.symlink(os.path.abspath(a.router or pathlib.Path(a.binary).with_name("pandos")), bins / "mongos")
    try:
        for part, offset in ((mlaunch, 0), (sharded, 10), (orchestration, 20)):
            if a.only in (None, part.__name__):
                part(bins, home, a.port + offset)
        if a.runner and a.only in (None, "runner"):
            runner(a.runner, bins, home)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(f"{CHECKS['passed']} passed, {CHECKS['failed']} failed")
    return 1 if CHECKS["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
