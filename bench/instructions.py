#!/usr/bin/env python3
"""Instructions that two builds of the server execute per operation, counted by valgrind's callgrind, and their ratio.

    instructions.py --a NEW/pandod --b BASE/pandod [--a-login] [--ops 4000] [--docs 5000] [--phases RE] [--keep FOLDER]

A count does not change with what else the machine does, so it tells a difference of 1 % where timings of one client differ
by 10 % from run to run. It is no substitute for them: system calls and caches are not in it. One client, one connection;
what background threads do in the meantime is counted, too. Both binaries have to be built with
RUSTFLAGS='--cfg rustix_use_libc': without it the server reads what the kernel left beside its arguments in a way that
valgrind does not know, and ends at once. --keep leaves callgrind's files, for `callgrind_annotate`. With --a-login the first one asks for logins (--auth), and the client has
logged in: with one build as both, what that costs.
"""
import argparse
import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile

import pymongo

from harness import document

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Loaded:
    """A server of documents with an index, and one connection to it."""

    def __init__(self, port, docs, login=False):
        self.docs = docs
        self.client = pymongo.MongoClient("127.0.0.1", port, directConnection=True, serverSelectionTimeoutMS=120_000)
        if login:
            # By the localhost exception.
            self.client.admin.command("createUser", "root", pwd="of the bench", roles=["root"])
            self.client = pymongo.MongoClient("127.0.0.1", port, directConnection=True, serverSelectionTimeoutMS=120_000,
                                              username="root", password="of the bench")
        self.coll = self.client.bench.docs
        rnd = random.Random(5)
        noise = "".join(rnd.choices(LETTERS, k=1 << 15))
        self.coll.insert_many([document(i, rnd, noise[i % 30_000:i % 30_000 + 455]) for i in range(docs)])
        self.coll.create_index("k")
        # Both servers read from where data comes to lie, wherever their next checkpoint would have been.
        self.client.admin.command("fsync")
        self.keys = [d["k"] for d in self.coll.find({}, {"k": 1})]

    def run(self, name, n, seed):
        op, rnd = PHASES[name], random.Random(seed)
        for i in range(n):
            op(self, rnd, seed * 1_000_000 + i)


class Counted(Loaded):
    """A server under callgrind, which counts only while a phase runs."""

    def __init__(self, binary, home, docs, login):
        self.home, self.dumps = home, 0
        (home / "data").mkdir(parents=True)
        port = free_port()
        # %p is the process: dumps are numbered behind it
        self.process = subprocess.Popen(
            ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={home}/counts.%p", binary,
             "--dbpath", str(home / "data"), "--port", str(port), *(["--auth"] if login else [])], stdout=open(home / "log", "w"), stderr=subprocess.STDOUT)
        super().__init__(port, docs, login)

    def control(self, *words):
        subprocess.run(["callgrind_control", *words, str(self.process.pid)], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    def count(self, name, n):
        """Instructions per operation of the phase `name`, of `n` operations after a few that warm it up."""
        self.run(name, n // 10 + 1, 1)
        self.control("-z")
        self.control("-i", "on")
        self.run(name, n, 2)
        self.control("-i", "off")
        self.control("-d", re.sub(r"\W+", "_", name))
        self.dumps += 1
        text = (self.home / f"counts.{self.process.pid}.{self.dumps}").read_text()
        return int(re.search(r"^totals: (\d+)", text, re.M)[1]) / n

    def end(self):
        self.process.terminate()
        self.process.wait(120)


def find_range(s, rnd, _):
    low = rnd.randrange(s.docs - 100)
    list(s.coll.find({"_id": {"$gte": low, "$lt": low + 100}}))


PHASES = {
    "ping": lambda s, rnd, i: s.client.admin.command("ping"),
    "insert_one": lambda s, rnd, i: s.coll.insert_one({"_id": 10 ** 8 + i, "k": i, "filler": "z" * 900}),
    "find_one by _id": lambda s, rnd, i: s.coll.find_one({"_id": rnd.randrange(s.docs)}),
    "find_one by index": lambda s, rnd, i: s.coll.find_one({"k": rnd.choice(s.keys)}),
    "update_one $inc by _id": lambda s, rnd, i: s.coll.update_one({"_id": rnd.randrange(s.docs)}, {"$inc": {"n": 1}}),
    "delete_one by _id": lambda s, rnd, i: s.coll.delete_one({"_id": 10 ** 8 + i}),
    "range of 100 by _id": find_range,
    "insert_many of 100": lambda s, rnd, i: s.coll.insert_many([{"_id": 2 * 10 ** 8 + i * 100 + n, "k": n, "filler": "z" * 900} for n in range(100)]),
    "delete_many of 100": lambda s, rnd, i: s.coll.delete_many({"_id": {"$gte": 2 * 10 ** 8 + i * 100, "$lt": 2 * 10 ** 8 + i * 100 + 100}}),
    "scan of all": lambda s, rnd, i: s.coll.count_documents({"filler": "none"}),
    "group of all": lambda s, rnd, i: list(s.coll.aggregate([{"$group": {"_id": None, "n": {"$sum": "$k"}}}])),
    "count by index": lambda s, rnd, i: s.coll.count_documents({"k": {"$gte": rnd.choice(s.keys)}}, limit=10),
}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--a", required=True)
    p.add_argument("--b", required=True)
    p.add_argument("--a-login", action="store_true")
    p.add_argument("--ops", type=int, default=4000)
    p.add_argument("--docs", type=int, default=5000)
    p.add_argument("--phases", default=".")
    p.add_argument("--keep", type=pathlib.Path)
    a = p.parse_args()
    for tool in "valgrind", "callgrind_control":
        if not shutil.which(tool):
            sys.exit(f"instructions: {tool} is not installed (Debian: valgrind)")
    home = a.keep or pathlib.Path(tempfile.mkdtemp(prefix="instructions-"))
    servers = []
    try:
        for name, binary, login in ("a", a.a, a.a_login), ("b", a.b, False):
            servers.append(Counted(binary, home / name, a.docs, login))
        print(f"{'phase':26} {'a':>10} {'b':>10}  a / b")
        for phase in PHASES:
            if re.search(a.phases, phase):
                x, y = (s.count(phase, a.ops) for s in servers)
                print(f"{phase:26} {x:10,.0f} {y:10,.0f}  {x / y:.3f}", flush=True)
    finally:
        for s in servers:
            s.end()
        if not a.keep:
            shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
