#!/usr/bin/env python3
"""Tenants of real processes migrate from one set to another one, under load and under kill -9.

    cargo build -p pandod -p pando-checkers && pip install pymongo
    migrations.py PANDOD [-n ROUNDS] [--seed S] [--checker target/debug/check-history] [--kills] [--port P] [--first ROUND]
                  [--set NAME=VALUE ...] [--json FILE] [--dir D] [--merges]

Each round is two sets of three with --serverless, the first of which has 100 tenants. Up to 20 of them go to the other set, by a migration each
(`donorStartMigration`), one after the other and several at a time. Some are called off (`donorAbortMigration`), and most of those go later; some
go back again at the end. Users are those of `splits.py`: they insert, count, append to lists in transactions, compare and set registers, and
go to the other set when they are told that their tenant has moved (321). Change streams of tenants that move begin anew there. Bystanders ask each
member of the set that a tenant leaves for data by reads that wait for nothing, and each member of the set that it comes to, too early: they may
be refused or kept waiting, and must not be told what was before, or a part. They write there, too: into documents that must not be there yet.
With --kills members of both sets are killed and started again or stand still for a while, at random moments, several in a round. In some of
these rounds tenants may be blocked for five seconds at most, so migrations are aborted by that as well; they are tried again.

With --merges a part of the tenants is at the second set from the beginning, and all others go there in one merge (protocol `shard merge`), called off or
not, and after it all of them may go to the first set in another one. What is no tenant's stays at both sets.

At the end every migration is decided and forgotten, no member knows of any, and every acknowledged write is there once, at its tenant's owner;
nothing of a tenant is on any member of the other set; the giver's log has nothing of a moved tenant behind `blockTimestamp`; lists
(`check-history`), registers, counters and streams are sound; collections are valid, members are equal. S plans what is done; when things happen
is up to the machine. Ports from P to P + 5. Ends with `N passed, M failed` (rounds); what failed is kept.
"""
import argparse
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from splitting import rounds, servers, splitter  # noqa: E402
from splitting.rounds import BEHIND_S  # noqa: E402
from splitting.servers import DONOR, RECIPIENT, other  # noqa: E402
from migrating import merging, migration, users, verdict  # noqa: E402

MOST, MOVED_S, FORGOTTEN_S = 20, 90, 30
# Migrations of a round begin within this time.
BEGIN_WITHIN_S = 3.0
DOCUMENTS = [5, 5, 300, 3000]
ABORTS, ABORTED_WITHIN_S, AGAIN = .3, .6, .7
BACK, BACK_MOST = .6, 5
ATTEMPTS = 6
# Most servers wait for a new primary of the other set with tenants blocked, some as briefly as is usual.
PATIENT, PATIENT_MS = .7, 60_000
# 262, 50: the time was over. 133: no primary was found for long.
MAY_ABORT = {50, 262, 133}


class Round(rounds.Round):
    users_of_round, verdict_of_round = users.MigrationUsers, verdict.Verdict

    def __init__(self, run, n):
        super().__init__(run, n, self.two)
        self.kills = splitter.Kills(self.six, self.rng, self.tell)
        self.moving = self.rng.sample(self.names, self.rng.choice([1, 3, 6, 10, self.rng.randint(1, MOST), MOST]))
        self.staying = [t for t in self.names if t not in self.moving]
        self.documents = {t: self.rng.choice(DOCUMENTS) for t in self.moving}
        self.owner = dict.fromkeys(self.names, DONOR)
        self.committed = self.unplanned = 0
        self.seconds = []

    def two(self, a, home):
        patient = ["tenantMigrationBlockingStateTimeoutMS=" + str(PATIENT_MS)] if self.rng.random() < PATIENT else []
        return servers.Two(argparse.Namespace(**{**vars(a), "set": patient + a.set}), home)

    def documents_of(self, tenant):
        return self.documents.get(tenant, self.a.documents)

    def begin(self):
        self.users = self.users_of_round(self.six, self.home, f"{self.a.seed} {self.n}", self.moving, self.staying, self.documents_of)
        self.prepare({u.tenants[0] for u in self.users.registers}, self.users.groups)

    def fail(self, text):
        self.failures.append(text)
        self.tell(f"FAULT: {text}")

    def call_off(self, m, after):
        told = []

        def run():
            time.sleep(after)
            told.append(m.abort())
            self.tell(f"donorAbortMigration of {m.tenant}: {told[0]}")

        t = threading.Thread(target=run, daemon=True)
        t.start()
        return t, told

    def attempt(self, tenant, after):
        """One migration to its end; `after` is when it is called off. Whether it is over with."""
        giver = self.owner[tenant]
        m = migration.Migration(self.six, giver, tenant, self.tell)
        watch = self.users.watch(tenant, giver, m.id)
        self.tell(f"{tenant} begins to go from the {giver}: {m.id.hex()}")
        off = self.call_off(m, after) if after is not None else None
        m.commit()
        behind = f", behind {', '.join(m.passed)}" if m.passed else ""
        self.tell(f"{tenant} from the {giver}: {m.outcome} in {m.seconds:.2f} s{behind} {m.reason if m.outcome == 'aborted' else ''}")
        if off:
            off[0].join(splitter.HANG_S)
            if off[1] != [m.outcome]:
                self.fail(f"{tenant}: donorAbortMigration says {off[1]}, donorStartMigration says {m.outcome}")
        if m.outcome == "committed":
            self.has_moved(m)
        elif m.outcome == "aborted":
            self.stays(m, [watch], off)
        else:
            self.users.unwatch(tenant)
            self.fail(f"{tenant}: donorStartMigration {m.outcome}")
        return m.outcome != "aborted"

    def has_moved(self, m):
        self.committed += 1
        self.seconds.append(m.seconds)
        self.until_all_know(m.tenant, m.side)
        time.sleep(self.rng.random())
        self.check_log(m)
        self.users.unwatch(m.tenant)
        self.owner[m.tenant] = other(m.side)
        self.forget(m)

    def until_all_know(self, tenant, giver):
        end = time.monotonic() + MOVED_S
        while self.users.late(tenant, giver):
            if time.monotonic() > end:
                self.fail(f"{self.users.late(tenant, giver)} were not told that {tenant} has moved")
                break
            time.sleep(.05)

    def stays(self, m, watches, off):
        self.aborted += bool(off)
        self.unplanned += not off
        for watch in watches:
            self.users.unwatch(watch.tenant)
            if watch.shown:
                self.fail(f"{watch.tenant} stayed, and the other set has told {watch.shown}")
        if not off and not (self.a.kills and m.code in MAY_ABORT):
            self.fail(f"{m.tenant} was aborted: {m.reason}")
        self.forget(m)

    def check_log(self, m):
        """The giver has written nothing of the tenant behind blockTimestamp."""
        try:
            state = m.state()
            ours = {"$regex": m.ours()}
            find = {"ts": {"$gt": state["blockTimestamp"]}, "$or": [{"ns": ours}, {"o.applyOps.ns": ours}]}
            for entry in self.six.primary(m.side).all("local", "oplog.rs", find):
                self.fail(f"the {m.side} has {entry} behind {state['blockTimestamp']}")
        except (LookupError, AttributeError) as e:
            self.tell(f"the log behind {m.tenant} was not looked at: {e}")

    def forget(self, m):
        begun = time.monotonic()
        wrong = m.forget()
        took = time.monotonic() - begun
        self.tell(f"donorForgetMigration of {m.tenant}: {wrong or 'ok'} in {took:.2f} s")
        if wrong:
            self.fail(f"{m.tenant}: {wrong}")
        if took > FORGOTTEN_S:
            self.fail(f"{m.tenant}: donorForgetMigration took {took:.1f} s")

    def move(self, tenant, begins, aborts, again):
        time.sleep(begins)
        for n in range(ATTEMPTS):
            after = aborts if n == 0 else None
            try:
                if self.attempt(tenant, after) or after is not None and not again:
                    return
            except Exception as e:  # noqa: BLE001 - it is told, and others go on.
                self.fail(f"{tenant}: {type(e).__name__}: {e}")
                return
        self.fail(f"{tenant} was aborted {ATTEMPTS} times")

    def all_of(self, tenants, within):
        """Moves these tenants, as the round's random numbers have it."""
        plans = []
        for t in tenants:
            aborts = self.rng.random() * ABORTED_WITHIN_S if self.rng.random() < ABORTS and not self.a.no_aborts else None
            plans.append((t, self.rng.random() * within, aborts, self.rng.random() < AGAIN))
        threads = [threading.Thread(target=self.move, args=p, daemon=True) for p in plans]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def strike(self, most, within):
        for what, after in migration.kills_of_a_round(self.rng, most, within) if self.a.kills else []:
            self.kills.strike(what, after)

    def go_back(self, tenants):
        """A set does not give and take at a time: what has moved is forgotten before."""
        left = migration.until_gone(self.six)
        if left:
            self.fail(f"not gone: {str(left)[:1000]}")
            return
        self.strike(2, 2)
        self.all_of(tenants, .5)

    def through(self):
        self.begun = time.monotonic()
        within = self.rng.choice([.1, BEGIN_WITHIN_S])
        self.strike(4, within + 2)
        self.all_of(self.moving, within)
        moved = [t for t in self.moving if self.owner[t] == RECIPIENT]
        if moved and self.rng.random() < BACK:
            self.go_back(self.rng.sample(moved, self.rng.randint(1, min(BACK_MOST, len(moved)))))
        self.decided = time.monotonic()
        self.run.took += self.seconds
        time.sleep(BEHIND_S)
        self.kills.end()

    def judge(self):
        met = {}
        for b in self.users.latecomers:
            for code, n in b.met.items():
                met[f"{b.side} {code}"] = met.get(f"{b.side} {code}", 0) + n
        self.tell(f"bystanders were told {met}; {sum(len(t) for b in self.users.latecomers for t in b.taken.values())} of their writes were taken")
        return self.verdict_of_round(self).judge()

    def summary(self):
        seconds = f"{rounds.percentile(self.seconds, .5) / 1000:.2f} s, at most {rounds.percentile(self.seconds, 1) / 1000:.2f} s"
        return f"{len(self.moving)} tenants, {self.committed} migrations committed in {seconds}, {self.unplanned} aborted by themselves"


class MergeRound(merging.Merging, Round):
    pass


if __name__ == "__main__":
    ap = rounds.arguments(__doc__)
    ap.add_argument("--merges", action="store_true", help="all tenants of a set go in one merge")
    sys.exit(rounds.main(ap, lambda run, n: (MergeRound if run.a.merges else Round)(run, n)))
