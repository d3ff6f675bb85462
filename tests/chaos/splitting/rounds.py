"""What rounds have in common: servers, users, a verdict, and what is told of them."""
import argparse
import json
import os
import pathlib
import random
import shutil
import tempfile
import threading
import time
import traceback

from . import servers, users

TENANTS = 100
BEFORE_S, BEHIND_S = 2.5, 1.5


class Round:
    """Subclasses know the `users`, what goes `through`, and how it is `judge`d; `begun` and `decided` are when it began and ended."""

    def __init__(self, run, n, six):
        self.run, self.a, self.n, self.log = run, run.a, n, None
        self.rng, self.home = random.Random(f"{run.a.seed} {n}"), run.a.home / f"round{n}"
        self.home.mkdir()
        self.six, self.failures, self.aborted = six(self.a, self.home), [], 0
        self.names = [f"t{i:03}" for i in range(TENANTS)]
        self.log, self.lock = open(self.home / "progress.txt", "w"), threading.Lock()

    def tell(self, text):
        with self.lock:
            self.log.write(f"{users.clock()} {text}\n")
            self.log.flush()
        if self.a.verbose:
            self.run.tell(f"  {text}")

    def documents_of(self, tenant):
        """How many each tenant has from the beginning."""
        return self.a.documents

    def first_home(self, tenant):
        """The set that has it at the beginning."""
        return servers.DONOR

    def prepare(self, registers, lists):
        """The first documents of all tenants; some of which have a register, or a collection of lists."""
        conns = {side: servers.Conn(self.six.primary(side).name, timeout=60) for side in {self.first_home(t) for t in self.names}}
        for t in self.names:
            conn = conns[self.first_home(t)]
            more = [("register", [{"_id": 0, "v": 0}])] if t in registers else []
            for coll, docs in [("base", [{"_id": i, "pad": "x" * 200} for i in range(self.documents_of(t))]), *more]:
                reply = conn.command(users.db_of(t), {"insert": coll, "documents": docs})
                if reply.get("ok") != 1 or reply.get("writeErrors"):
                    raise SystemExit(f"the first documents of {t}: {reply}")
        for t in lists:
            conns[self.first_home(t)].command(users.db_of(t), {"create": "lists", "writeConcern": {"w": "majority"}})
        for conn in conns.values():
            conn.close()

    def whole(self):
        try:
            self.six.start()
            self.begin()
            self.users.start()
            time.sleep(BEFORE_S)
            self.through()
            self.failures += self.users.end()
            self.failures += self.judge()
            self.measure()
        except (Exception, SystemExit):  # noqa: BLE001 - the next round goes on, and this one has failed.
            self.failures.append(traceback.format_exc())
        if self.failures and self.a.linger:
            time.sleep(self.a.linger)
        self.six.end()

    def measure(self):
        """Gaps of users of moved tenants; latencies of the others before and meanwhile."""
        for u in self.users.all:
            if u.moves:
                ends = [e for _, e in u.done if e > self.begun - BEFORE_S]
                self.run.gaps.append(max((b - a for a, b in zip(ends, ends[1:])), default=0))
                continue
            for b, e in u.done:
                (self.run.before if e < self.begun else self.run.during if b < self.decided else []).append(e - b)


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p))] * 1000 if values else 0


class Run:
    """Rounds, one after the other."""

    def __init__(self, a, kind):
        self.a, self.kind, self.begun, self.took, self.gaps, self.before, self.during = a, kind, time.monotonic(), [], [], [], []
        self.kills = self.aborts = 0

    def tell(self, text):
        print(f"{time.monotonic() - self.begun:6.1f} {text}", flush=True)

    def one(self, n):
        r, gaps = self.kind(self, n), len(self.gaps)
        begun = time.monotonic()
        r.whole()
        self.kills, self.aborts = self.kills + r.kills.count, self.aborts + r.aborted
        done = sum(len(u.done) for u in r.users.all) if hasattr(r, "users") else 0
        self.tell(f"round {n}: {r.summary()}, {r.kills.count} killed, {r.aborted} called off, {done} operations, "
                  f"users waited {percentile(self.gaps[gaps:], .5):.0f} ms, at most {percentile(self.gaps[gaps:], 1):.0f} ms; "
                  f"{time.monotonic() - begun:.0f} s, load {os.getloadavg()[0]:.1f}: {'FAILED' if r.failures else 'ok'}")
        for f in r.failures:
            self.tell(f"  * {f}")
            r.log.write(f"FAILED {f}\n")
        r.log.close()
        if not r.failures and not self.a.keep:
            shutil.rmtree(r.home, ignore_errors=True)
        return not r.failures

    def whole(self):
        """(passed, failed)"""
        fine = [self.one(n) for n in range(self.a.first, self.a.first + self.a.n)]
        self.tell(f"{self.kills} killed, {self.aborts} called off; users of moved tenants without an answer: p50 {percentile(self.gaps, .5):.0f} ms, "
                  f"p99 {percentile(self.gaps, .99):.0f} ms, at most {percentile(self.gaps, 1):.0f} ms; users of others: p50 {percentile(self.before, .5):.1f} ms, "
                  f"p99 {percentile(self.before, .99):.1f} ms before, p50 {percentile(self.during, .5):.1f} ms, p99 {percentile(self.during, .99):.1f} ms meanwhile")
        if self.a.json:
            pathlib.Path(self.a.json).write_text(json.dumps({k: getattr(self, k) for k in ("took", "gaps", "before", "during")}))
        return sum(fine), len(fine) - sum(fine)


def arguments(doc):
    ap = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("pandod")
    ap.add_argument("-n", type=int, default=10, help="rounds")
    ap.add_argument("--first", type=int, default=0, help="number of the first round")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--checker", default="target/debug/check-history")
    ap.add_argument("--kills", action="store_true")
    ap.add_argument("--port", type=int, default=29300)
    ap.add_argument("--documents", type=int, default=5, help="that each tenant has from the beginning")
    ap.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of every process")
    ap.add_argument("--json", help="takes all times that were measured")
    ap.add_argument("--no-aborts", action="store_true", help="nothing is called off")
    ap.add_argument("--keep", action="store_true", help="rounds that pass are kept, too")
    ap.add_argument("--linger", type=float, default=0, help="seconds for which the servers of a failed round stay")
    ap.add_argument("--verbose", action="store_true")
    ap.add_argument("--dir")
    return ap


def main(ap, kind):
    a = ap.parse_args()
    a.pandod = os.path.abspath(a.pandod)
    a.home = pathlib.Path(a.dir or tempfile.mkdtemp(prefix="pando-tenants-"))
    a.home.mkdir(parents=True, exist_ok=True)
    passed, failed = Run(a, kind).whole()
    if failed:
        print(f"kept: {a.home} (of each failed round: progress.txt, histories, data and log of each process), seed {a.seed}", flush=True)
    elif not a.dir:
        shutil.rmtree(a.home, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0
