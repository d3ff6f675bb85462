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
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from splitting import rounds, servers, splitter, users, verdict  # noqa: E402
from splitting.rounds import BEHIND_S  # noqa: E402

MOVING, MOVED_S = 20, 60
# What is called off is called off within this time: the configuration is split within a tenth of a second, unless a recipient is down.
ABORTS, ABORTED_WITHIN_S, ABORTED_WITHIN_DOWN_S = .3, .1, .8
# Some splits are forgotten while users are at work and servers die.
FORGOTTEN_EARLY = .3
# Some members of the donor start anew once the split is committed.
LATE_KILLS = .5


class Round(rounds.Round):
    def __init__(self, run, n):
        super().__init__(run, n, servers.Six)
        self.kills, self.forgotten, self.state = splitter.Kills(self.six, self.rng, self.tell), False, None
        self.moving = self.rng.sample(self.names, MOVING)
        self.staying = [t for t in self.names if t not in self.moving]

    def begin(self):
        self.prepare({self.moving[7], self.staying[7]}, self.moving[:3] + self.staying[:1])
        self.users = users.Users(self.six, self.home, f"{self.a.seed} {self.n}", self.moving, self.staying)

    def judge(self):
        return verdict.Verdict(self).judge() if self.split.outcome == "committed" else []

    def summary(self):
        return f"split {self.split.outcome[:40]} in {self.split.seconds:.2f} s" if hasattr(self, "split") else "split none"

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


if __name__ == "__main__":
    sys.exit(rounds.main(rounds.arguments(__doc__), Round))
