"""Rounds in which all that a set has goes to the other one in one merge: what they have besides those in which tenants migrate one by one."""
import time

from splitting import servers, users as splitting_users
from splitting.rounds import BEHIND_S
from splitting.servers import DONOR, RECIPIENT, other
from splitting.splitter import HANG_S

from . import migration, users, verdict

MOVING = [3, 10, 40, 90]
DOCUMENTS = [5, 5, 300]
ABORTS, ABORTED_WITHIN_S, AGAIN, BACK = .3, 1.5, .8, .6
ATTEMPTS = 6
# No tenant's, at each of the sets.
PLAIN = "plain"


class MergeUsers(users.MigrationUsers):
    """Some tenants are at the second set from the beginning, and their users go there first."""

    def hire(self, moving, staying):
        super().hire(moving, staying)
        self.streams = [users.MovedStream(self.six, t, DONOR if t in moving else RECIPIENT) for t in sorted(self.groups)]
        for u in [*self.lists, *self.keepers, *self.registers, *self.driven]:
            if u.tenants[0] in staying:
                u.caller.at = RECIPIENT
                if isinstance(u, splitting_users.Driven):
                    u.side = RECIPIENT


class MergeVerdict(verdict.Verdict):
    def checks(self):
        return [*super().checks(), self.what_is_no_tenants_stays]

    def what_is_no_tenants_stays(self):
        for name, members in self.six.of.items():
            for m in members:
                found = [d["_id"] for d in m.all(PLAIN, "c")]
                if found != [name]:
                    yield f"member {m.i} of the {name} has {found} of no tenant"


class Merging:
    """Comes before a round of migrations."""

    users_of_round, verdict_of_round = MergeUsers, MergeVerdict

    def __init__(self, run, n):
        super().__init__(run, n)
        self.moving = self.rng.sample(self.names, self.rng.choice(MOVING))
        self.staying = [t for t in self.names if t not in self.moving]
        self.documents = {t: self.rng.choice(DOCUMENTS) for t in self.moving}
        self.owner = {t: self.first_home(t) for t in self.names}

    def first_home(self, tenant):
        return DONOR if tenant in self.moving else RECIPIENT

    def prepare(self, registers, lists):
        super().prepare(registers, lists)
        for side in (DONOR, RECIPIENT):
            conn = servers.Conn(self.six.primary(side).name, timeout=60)
            conn.command(PLAIN, {"insert": "c", "documents": [{"_id": side}], "writeConcern": {"w": "majority"}})
            conn.close()

    def merge(self, giver, after):
        """One merge to its end; `after` is when it is called off. Whether it is over with."""
        m = migration.Merge(self.six, giver, self.tell)
        tenants = [t for t in self.names if self.owner[t] == giver]
        watches = [self.users.watch(t, giver, m.id) for t in tenants]
        self.tell(f"the {giver} begins to be merged with {len(tenants)} tenants: {m.id.hex()}")
        off = self.call_off(m, after) if after is not None else None
        m.commit()
        behind = f", behind {', '.join(m.passed)}" if m.passed else ""
        self.tell(f"the {giver} is merged: {m.outcome} in {m.seconds:.2f} s{behind} {m.reason if m.outcome == 'aborted' else ''}")
        if off:
            off[0].join(HANG_S)
            if off[1] != [m.outcome]:
                self.fail(f"merge of the {giver}: donorAbortMigration says {off[1]}, donorStartMigration says {m.outcome}")
        if m.outcome == "committed":
            self.has_merged(m, tenants)
        elif m.outcome == "aborted":
            self.stays(m, watches, off)
        else:
            for t in tenants:
                self.users.unwatch(t)
            self.fail(f"merge of the {giver}: donorStartMigration {m.outcome}")
        return m.outcome != "aborted"

    def has_merged(self, m, tenants):
        self.committed += 1
        self.seconds.append(m.seconds)
        for t in tenants:
            self.until_all_know(t, m.side)
        time.sleep(self.rng.random())
        self.check_log(m)
        for t in tenants:
            self.users.unwatch(t)
            self.owner[t] = other(m.side)
        self.forget(m)

    def until_merged(self, giver):
        aborts = self.rng.random() * ABORTED_WITHIN_S if self.rng.random() < ABORTS and not self.a.no_aborts else None
        again = self.rng.random() < AGAIN
        for n in range(ATTEMPTS):
            after = aborts if n == 0 else None
            if self.merge(giver, after) or after is not None and not again:
                return
        self.fail(f"the merge of the {giver} was aborted {ATTEMPTS} times")

    def through(self):
        self.begun = time.monotonic()
        self.strike(4, 4)
        self.until_merged(DONOR)
        if RECIPIENT in self.owner.values() and DONOR not in self.owner.values() and self.rng.random() < BACK:
            left = migration.until_gone(self.six)
            if left:
                self.fail(f"not gone: {str(left)[:1000]}")
            else:
                self.strike(3, 4)
                self.until_merged(RECIPIENT)
        self.decided = time.monotonic()
        self.run.took += self.seconds
        time.sleep(BEHIND_S)
        self.kills.end()

    def summary(self):
        return f"{len(self.moving)} tenants, {self.committed} merges committed in {[round(s, 2) for s in self.seconds]} s, {self.unplanned} aborted by themselves"
