#!/usr/bin/env python3
"""Ranges, databases and definitions move and change in a cluster of real processes, under load and under kill -9.

    cargo build -p pandod -p pandos -p pando-checkers && pip install pymongo
    moves.py PANDOD PANDOS [-n MOVES] [-d DEFINITIONS] [--seed S] [--checker target/debug/check-history] [--port P] [--shards N]
             [--sharded-renames] [--unsynced] [--set NAME=VALUE ...] [--dir D]

Config servers and N shards (2), each a set of three, and two routers. Users append to lists in transactions and retryable writes, transfer
money within branches, count by retryable increments, insert and delete; two change streams watch the lists. Meanwhile MOVES ranges and
databases move (`moveChunk`, `moveRange`, `movePrimary`), and beside them DEFINITIONS collections and databases are created, sharded, refined,
indexed, modified, renamed and dropped. At some moment of every other one, by chance, the primary of the donor, of the recipient, of the config
servers, or a router is killed and started again. S plans what is done and who is killed; when things happen is up to the machine.

Each move and each definition must end one way or the other; behind a definition both routers must show what it says. In the end nothing is
under way any more, `checkMetadataConsistency` finds nothing, `cleanupOrphaned` leaves nothing, every acknowledged write is there once,
on one shard, shards have what was defined, members are equal, streams showed each write once and in order, and `check-history` finds the lists sound.
With --unsynced a killed server loses what it had not synced. Ports from P to P + 20 + 10 N are used. Ends with `N passed, M failed`.
"""
import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from moving import asking, cluster, definitions, kills, migrations, users, verdict  # noqa: E402

# How often users' figures are told.
FIGURES_S = 15


class Run:
    """One run of the script."""

    def __init__(self, a):
        self.a, self.begun, self.lock = a, time.monotonic(), threading.Lock()
        self.log = open(a.home / "progress.txt", "w")
        self.cluster = cluster.Cluster(a)
        self.kills = kills.Kills(self.cluster, self.tell)
        self.users = None

    def tell(self, text):
        line = f"{time.monotonic() - self.begun:6.1f} {text}"
        with self.lock:
            print(line, flush=True)
            self.log.write(f"{time.strftime('%H:%M:%S')} {line}\n")
            self.log.flush()

    def asking(self):
        return asking.Asking(self.cluster)

    def changes(self):
        """All moves and definitions; (moves, definitions) when they have ended."""
        changes = migrations.Moves(self, self.a.n), definitions.Definitions(self, self.a.d)
        for c in changes:
            c.start()
        told = time.monotonic()
        while any(c.is_alive() for c in changes):
            time.sleep(.2)
            if time.monotonic() > told + FIGURES_S:
                told = time.monotonic()
                self.tell(self.users.figures())
        return changes

    def whole(self):
        """(passed, failed)"""
        self.cluster.start()
        users.prepare(self.cluster, self.asking())
        self.users = users.Users(self.cluster, self.a.home)
        self.users.start()
        self.tell("the cluster is in use")
        moves, defined = self.changes()
        stuck = self.users.end()
        self.tell(self.users.figures())
        for c in moves, defined:
            told = ", ".join(f"{n} {k}" for k, n in sorted(c.outcomes.items()))
            self.tell(f"{c.total} {c.name_}s, {c.struck} of them under a kill: {told}; {len(c.failures)} failed")
        for u in self.users.others:
            if u.failures:
                self.tell(f"{type(u).__name__.lower()} {u.number} met {u.failures}")
        failures = stuck + moves.failures + defined.failures
        passed, failed = verdict.Verdict(self, moves, defined).judge()
        for f in failures:
            self.tell(f"FAILED {f}")
        return passed + self.a.n + self.a.d - len(moves.failures) - len(defined.failures), failed + len(failures)


def arguments():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("pandod")
    ap.add_argument("pandos")
    ap.add_argument("-n", type=int, default=60, help="moves")
    ap.add_argument("-d", type=int, default=40, help="definitions")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--checker", default="target/debug/check-history")
    ap.add_argument("--port", type=int, default=28900)
    ap.add_argument("--shards", type=int, default=2)
    ap.add_argument("--sharded-renames", action="store_true", help="collections are renamed that are sharded, too")
    ap.add_argument("--unsynced", action="store_true", help="a killed server loses what it had not synced")
    ap.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of every process")
    ap.add_argument("--dir")
    a = ap.parse_args()
    a.pandod, a.pandos = os.path.abspath(a.pandod), os.path.abspath(a.pandos)
    a.home = pathlib.Path(a.dir or tempfile.mkdtemp(prefix="pando-moves-"))
    a.home.mkdir(parents=True, exist_ok=True)
    return a


def main():
    a = arguments()
    run, failed = Run(a), 1
    try:
        passed, failed = run.whole()
    finally:
        run.cluster.end()
        if failed:
            print(f"kept: {a.home} (progress.txt, history.txt, a log of each process), seed {a.seed}", flush=True)
        elif not a.dir:
            shutil.rmtree(a.home, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
