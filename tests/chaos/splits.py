#!/usr/bin/env python3
"""Sets of real processes split, under load and under kill -9.

    cargo build -p pandod -p pando-checkers && pip install pymongo
    splits.py PANDOD [-n ROUNDS] [--seed S] [--checker target/debug/check-history] [--kills] [--port P] [--first ROUND]
              [--set NAME=VALUE ...] [--json FILE] [--dir D]

Each round is a set of three voters and three hidden members with --serverless, with 100 tenants. Users of tenants that will move and of
tenants that stay insert, count, append to lists in transactions, compare and set registers, all of it retried like a driver does, and
two change streams watch. Then 20 tenants are split off (`commitShardSplit`), asked for until a primary says how it ended. Some rounds
call it off (`abortShardSplit`): then all goes on at the donor, and another split follows. With --kills, at random moments the donor's
primary, another one of its members, one or two of those that leave, the new set's first primary or all are killed and started again, or
the donor's primary stands still until another one is elected. Behind the decision members of the donor are asked for moved tenants' data by
reads that wait for nothing: they may refuse, and must not tell what was before.
A user who is told that its tenant has moved (321) sends the same to the new set; one who is told that the split was called off (325) sends
it to the donor again.

At the end of a round every acknowledged write is there once, at its tenant's owner; the donor's log has nothing of a moved tenant behind
`blockTimestamp`; lists (`check-history`), registers, counters and streams are sound as those of one database; both sets are whole, members
are equal, the recipients know of no split. Then the split is forgotten, and what the donor has left of moved tenants is nothing that the
new set does not have. Told is how long users of moved tenants were without an acknowledged operation, and latencies of the others before
the split and during it. S plans what is done; when things happen is up to the machine. Ports from P to P + 5. Ends with
`N passed, M failed` (rounds); what failed is kept.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from splitting import servers, splitter, users, verdict  # noqa: E402

TENANTS, MOVING = 100, 20
BEFORE_S, BEHIND_S, MOVED_S = 2.5, 1.5, 60
# What is called off is called off within this time: the configuration is split within a tenth of a second, unless a recipient is down.
ABORTS, ABORTED_WITHIN_S, ABORTED_WITHIN_DOWN_S = .3, .1, .8
# Some splits are forgotten while users are at work and servers die.
FORGOTTEN_EARLY = .3
# Some members of the donor start anew once the split is committed.
LATE_KILLS = .5


class Round:
    def __init__(self, run, n):
        self.run, self.a, self.n = run, run.a, n
        self.rng, self.home = random.Random(f"{run.a.seed} {n}"), run.a.home / f"round{n}"
        self.home.mkdir()
        self.six = servers.Six(self.a, self.home)
        self.kills, self.forgotten, self.state, self.failures = splitter.Kills(self.six, self.rng, self.tell), False, None, []
        names = [f"t{i:03}" for i in range(TENANTS)]
        self.moving = self.rng.sample(names, MOVING)
        self.staying = [t for t in names if t not in self.moving]
        self.log, self.lock, self.aborted = open(self.home / "progress.txt", "w"), threading.Lock(), 0

    def tell(self, text):
        with self.lock:
            self.log.write(f"{users.clock()} {text}\n")
            self.log.flush()
        if self.a.verbose:
            self.run.tell(f"  {text}")

    def prepare(self):
        p = self.six.primary(servers.DONOR)
        registers = {self.moving[7], self.staying[7]}
        conn = servers.Conn(p.name, timeout=60)
        for t in self.moving + self.staying:
            more = [("register", [{"_id": 0, "v": 0}])] if t in registers else []
            for coll, docs in [("base", [{"_id": i, "pad": "x" * 200} for i in range(self.a.documents)]), *more]:
                reply = conn.command(users.db_of(t), {"insert": coll, "documents": docs})
                if reply.get("ok") != 1 or reply.get("writeErrors"):
                    raise SystemExit(f"the first documents of {t}: {reply}")
        for t in self.moving[:3] + self.staying[:1]:
            conn.command(users.db_of(t), {"create": "lists", "writeConcern": {"w": "majority"}})
        conn.close()

    def new_split(self):
        self.split = splitter.Split(self.six, self.moving, self.tell)
        return self.split

    def call_off(self, split):
        """Calls off a split that is under way, at some moment; how that ended."""
        told = []

        def run():
            time.sleep(self.rng.random() * (ABORTED_WITHIN_DOWN_S if self.a.kills else ABORTED_WITHIN_S))
            told.append(split.abort())
            self.tell(f"abortShardSplit: {told[0]}")

        t = threading.Thread(target=run, daemon=True)
        t.start()
        return t, told

    def carry_out(self):
        """Splits; True where it was called off and must be done once more."""
        split, aborts = self.new_split(), self.rng.random() < ABORTS and not self.aborted and not self.a.no_aborts
        if aborts and self.a.kills:
            self.kills.strike("recipient", 0)
            time.sleep(.1)
        off = self.call_off(split) if aborts else None
        split.commit()
        self.tell(f"the split was {split.outcome} in {split.seconds:.2f} s{', behind ' + ', '.join(split.passed) if split.passed else ''}")
        if off:
            off[0].join(splitter.HANG_S)
            if off[1] != [split.outcome]:
                self.failures.append(f"abortShardSplit says {off[1]}, commitShardSplit says {split.outcome}")
        if split.outcome == "aborted" and not aborts:
            self.failures.append(f"the split was aborted: {split.reason}")
        if split.outcome not in ("committed", "aborted"):
            self.failures.append(f"commitShardSplit {split.outcome}")
        return split.outcome == "aborted"

    def next_one(self):
        """Behind a split that was called off."""
        self.aborted += 1
        time.sleep(BEHIND_S)
        wrong = self.split.forget()
        if wrong:
            self.failures.append(wrong)

    def through(self):
        """From the first kill to the end of users' work."""
        for what, part in splitter.kills_of_a_round(self.rng) if self.a.kills else []:
            self.kills.strike(what, max(0, part) * splitter.usual(self.run.took))
        self.begun = time.monotonic()
        while self.carry_out() and self.aborted < 3:
            self.next_one()
            self.begun = time.monotonic()
        self.decided = time.monotonic()
        if self.split.outcome != "committed":
            return
        end = time.monotonic() + MOVED_S
        while not self.users.moved():
            if time.monotonic() > end:
                self.failures.append(f"{[str(u) for u in self.users.all if u.moves and u.at() == servers.DONOR]} were not told that their tenants moved")
                break
            time.sleep(.1)
        if not self.a.kills and not self.aborted:
            self.run.took.append(self.split.seconds)
        if self.a.kills and self.rng.random() < LATE_KILLS:
            self.kills.strike(self.rng.choice(splitter.LATE_VICTIMS), self.rng.random() * BEHIND_S / 3)
        if self.rng.random() < FORGOTTEN_EARLY and self.users.moved():
            self.forget_early()
        time.sleep(BEHIND_S)
        self.kills.end()

    def forget_early(self):
        time.sleep(self.rng.random())
        self.state = self.six.primary(servers.DONOR).all("config", "tenantSplitDonors", {"_id": self.split.id})[0]
        self.users.end_latecomers()
        wrong = self.split.forget()
        self.forgotten = not wrong
        self.tell(f"forgetShardSplit: {wrong or 'ok'}")
        if wrong:
            self.failures.append(wrong)

    def whole(self):
        try:
            self.six.start()
            self.prepare()
            self.users = users.Users(self.six, self.home, f"{self.a.seed} {self.n}", self.moving, self.staying)
            self.users.start()
            time.sleep(BEFORE_S)
            self.through()
            self.failures += self.users.end()
            if self.split.outcome == "committed":
                self.failures += verdict.Verdict(self).judge()
            self.measure()
        except (Exception, SystemExit):  # noqa: BLE001 - the next round goes on, and this one has failed.
            self.failures.append(traceback.format_exc())
        if self.failures and self.a.linger:
            time.sleep(self.a.linger)
        self.six.end()

    def measure(self):
        """Gaps of users of moved tenants; latencies of the others before the split and during it."""
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
    def __init__(self, a):
        self.a, self.begun, self.took, self.gaps, self.before, self.during = a, time.monotonic(), [], [], [], []
        self.kills = self.aborts = 0

    def tell(self, text):
        print(f"{time.monotonic() - self.begun:6.1f} {text}", flush=True)

    def one(self, n):
        r, gaps = Round(self, n), len(self.gaps)
        begun = time.monotonic()
        r.whole()
        self.kills, self.aborts = self.kills + r.kills.count, self.aborts + r.aborted
        done = sum(len(u.done) for u in r.users.all) if hasattr(r, "users") else 0
        split = f"{r.split.outcome[:40]} in {r.split.seconds:.2f} s" if hasattr(r, "split") else "none"
        self.tell(f"round {n}: split {split}, {r.kills.count} killed, {r.aborted} called off, {done} operations, "
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
        self.tell(f"{self.kills} killed, {self.aborts} splits called off; users of moved tenants without an answer: p50 {percentile(self.gaps, .5):.0f} ms, "
                  f"p99 {percentile(self.gaps, .99):.0f} ms, at most {percentile(self.gaps, 1):.0f} ms; users of others: p50 {percentile(self.before, .5):.1f} ms, "
                  f"p99 {percentile(self.before, .99):.1f} ms before, p50 {percentile(self.during, .5):.1f} ms, p99 {percentile(self.during, .99):.1f} ms during a split")
        if self.a.json:
            pathlib.Path(self.a.json).write_text(json.dumps({k: getattr(self, k) for k in ("took", "gaps", "before", "during")}))
        return sum(fine), len(fine) - sum(fine)


def arguments():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
    ap.add_argument("--no-aborts", action="store_true", help="no split is called off")
    ap.add_argument("--keep", action="store_true", help="rounds that pass are kept, too")
    ap.add_argument("--linger", type=float, default=0, help="seconds for which the servers of a failed round stay")
    ap.add_argument("--verbose", action="store_true")
    ap.add_argument("--dir")
    a = ap.parse_args()
    a.pandod = os.path.abspath(a.pandod)
    a.home = pathlib.Path(a.dir or tempfile.mkdtemp(prefix="pando-splits-"))
    a.home.mkdir(parents=True, exist_ok=True)
    return a


def main():
    a = arguments()
    passed, failed = Run(a).whole()
    if failed:
        print(f"kept: {a.home} (of each failed round: progress.txt, histories, data and log of each process), seed {a.seed}", flush=True)
    elif not a.dir:
        shutil.rmtree(a.home, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
