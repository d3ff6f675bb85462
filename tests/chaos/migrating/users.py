"""Users of tenants that migrate, and bystanders, who ask the set that does not have the tenant any more, or does not have it yet."""
import random
import threading
import time

import pymongo
from pymongo.errors import PyMongoError

import drivers
from splitting import users
from splitting.callers import COMMITTED, error_of
from splitting.servers import DONOR, Conn, other
from splitting.users import db_of

# A token of the other set leads nowhere here.
NO_HISTORY = {136, 280, 286}
# What whoever asks the wrong set may be told: not here, not yet, not in time, and that a member comes or goes.
NOT_DONE = {20, 239, 321, 10107}
REFUSED = {20, 239, 50, 320, 321, 325, 6, 7, 91, 189, 211, 246, 11600, 11601, 11602, 10107, 13435, 13436}


class Watch:
    """A tenant that is on its way by a migration; `shown` is what the taker has told of it."""

    def __init__(self, tenant, giver, migration):
        self.tenant, self.giver, self.taker, self.migration, self.shown = tenant, giver, other(giver), migration, None


class Keeper(users.Keeper):
    """Knows what it had been told when its tenant moved."""

    def __init__(self, *given):
        super().__init__(*given)
        self.then = 0
        self.caller.on_redirect = self.moves_on

    def moves_on(self):
        self.then = self.count


class Bystander(threading.Thread):
    """Asks one member for tenants on their way. The giver, once it knows, may refuse and must not tell what was before; the taker may refuse, or have nothing,
    and must not tell a part, or take what it does not keep. What it was told is counted in `met`."""

    def __init__(self, all_users, member, side):
        super().__init__(daemon=True)
        self.users, self.member, self.side, self.conn, self.wrong, self.stale, self.n = all_users, member, side, None, [], 0, 0
        self.random, self.met = random.Random(f"{all_users.seed} by {member.i}"), {}
        # Of the taker: numbers that it has acknowledged, and those that may have been written.
        self.taken, self.maybe = {}, {}

    def run(self):
        while not self.users.stop.is_set():
            for watch in list(self.users.watched.values()):
                keepers = [k for k in self.users.keepers if k.tenants[0] == watch.tenant]
                for k in keepers[:1]:
                    if self.side == watch.giver and k.at() == watch.taker:
                        self.late(watch, k)
                    elif self.side == watch.taker:
                        self.random.choice([self.early, self.early, self.whole, self.causal, self.write])(watch, k)
            time.sleep(.01 + self.random.random() * .02)

    def ask(self, watch, db, cmd):
        """The reply, if there is one and it says something; `code` is what it is refused with."""
        self.code = None
        try:
            self.conn = self.conn or Conn(self.member.name, timeout=3)
            reply = self.conn.command(db, {**cmd, "$readPreference": {"mode": "secondaryPreferred"}, "maxTimeMS": 1000})
        except (OSError, ValueError):
            self.conn = None
            return None
        code = self.code = error_of(reply)
        self.met[code] = self.met.get(code, 0) + 1
        if code and code not in REFUSED:
            self.complain(watch, f"answers {cmd} with {reply}")
        return None if code else reply

    def complain(self, watch, text):
        if self.users.watched.get(watch.tenant) is watch:
            self.stale += 1
            self.wrong.append(f"member {self.member.i} of the {self.side} at {users.clock()} of {watch.tenant}, on its way from the {watch.giver}: {text}")

    def counter(self, watch, keeper, more):
        reply = self.ask(watch, keeper.db, {"find": "counters", "filter": {"_id": keeper.number}, **more})
        if reply is None:
            return None
        found = reply["cursor"]["firstBatch"]
        return found[0]["n"] if found else 0

    def late(self, watch, keeper):
        """Of a member that knows of the decision: one that lags behind may tell what was, to whoever asks for nothing more."""
        known = self.ask(watch, "config", {"find": "tenantMigrationDonors", "filter": {"_id": watch.migration, "state": "committed"}})
        if known is None or not known["cursor"]["firstBatch"]:
            return
        least = keeper.count
        found = self.counter(watch, keeper, {})
        if found is not None and found < least:
            self.complain(watch, f"counter {keeper.number} was read as {found} when the new set had {least}")

    def early(self, watch, keeper):
        least = keeper.count if keeper.at() == watch.giver else keeper.then
        found = self.counter(watch, keeper, {})
        if found:
            watch.shown = f"counter {keeper.number} as {found}"
        if found and found < least:
            self.complain(watch, f"counter {keeper.number} was read as {found}, and {least} was acknowledged before it moved")

    def whole(self, watch, keeper):
        reply = self.ask(watch, keeper.db, {"find": "base", "projection": {"_id": 1}, "batchSize": 100_000})
        found = reply and reply["cursor"]["firstBatch"]
        if found:
            watch.shown = f"{len(found)} documents"
        if found and len(found) != self.users.documents_of(watch.tenant):
            self.complain(watch, f"{len(found)} documents of {self.users.documents_of(watch.tenant)} were read")

    def causal(self, watch, keeper):
        """Whoever knows what the new set has told sees no less."""
        c = keeper.caller
        if keeper.at() != watch.taker or not c.operation_time:
            return
        # Noted later, never earlier, than the counter.
        least, after = keeper.count, c.operation_time
        found = self.counter(watch, keeper, {"readConcern": {"level": "majority", "afterClusterTime": after}, "$clusterTime": c.cluster_time})
        if found is not None and found < least:
            self.complain(watch, f"counter {keeper.number} was read as {found} behind {after}, when there was {least}")

    def write(self, watch, keeper):
        """Changes a document that is there, if the tenant is."""
        arrived = keeper.at() == watch.taker
        self.n += 1
        n = self.member.i * users.ELEMENTS + self.n
        change = {"q": {"_id": 0}, "u": {"$push": {"early": n}}}
        # Whatever becomes of it, it may have been done.
        self.maybe.setdefault(watch.tenant, set()).add(n)
        reply = self.ask(watch, keeper.db, {"update": "base", "updates": [change], "writeConcern": {"w": "majority"}})
        if reply is None:
            if self.code in NOT_DONE:
                self.maybe[watch.tenant].discard(n)
            return
        if reply["n"]:
            self.taken.setdefault(watch.tenant, set()).add(n)
            watch.shown = f"an update of {n}"
        elif arrived:
            self.complain(watch, "an update finds nothing of a tenant that has moved there")


class MovedStream(threading.Thread):
    """Watches the lists of a tenant that moves. It shows at each set, without gaps, what happens from its opening there on: `parts` are, for each
    opening, events (list, place in it, element). A token of one set must be refused at the other one, or nothing is missing behind it."""

    def __init__(self, six, tenant, side=DONOR):
        super().__init__(daemon=True)
        self.six, self.tenant, self.side, self.trouble, self.complete, self.opened = six, tenant, side, [], False, threading.Event()
        self.parts, self.lengths = [[]], {}
        self.connect()

    def connect(self):
        hosts = ",".join(m.name for m in self.six.of[self.side])
        client = pymongo.MongoClient(f"mongodb://{hosts}/?replicaSet={self.side}", serverSelectionTimeoutMS=20000)
        self.watched = client[db_of(self.tenant)].lists

    def run(self):
        token, since = None, time.monotonic()
        while not self.complete:
            try:
                with self.watched.watch(resume_after=token, max_await_time_ms=200) as changes:
                    self.opened.set()
                    while not self.complete:
                        change = changes.try_next()
                        token, since = changes.resume_token, time.monotonic()
                        if change:
                            self.note(change)
            except PyMongoError as e:
                code = getattr(e, "code", 0)
                if code == COMMITTED:
                    self.side = other(self.side)
                    self.connect()
                elif code in NO_HISTORY and token:
                    token, self.lengths = None, {}
                    self.parts.append([])
                elif time.monotonic() > since + drivers.STREAM_S:
                    self.trouble.append(f"the change stream of {self.tenant} at the {self.side}: {e}")
                    return
                time.sleep(.05)

    def note(self, change):
        at = change.get("documentKey", {}).get("_id")
        if at == "end":
            self.complete = True
            return
        if change["operationType"] == "insert":
            new = list(enumerate(change["fullDocument"]["l"]))
        elif change["operationType"] == "update":
            fields = change["updateDescription"]["updatedFields"]
            known = self.lengths.get(at, 0)
            new = list(enumerate(fields["l"]))[known:] if "l" in fields else [(int(name[2:]), e) for name, e in fields.items()]
        else:
            self.trouble.append(f"the change stream of {self.tenant} at the {self.side} shows {change}")
            return
        for i, e in new:
            self.lengths[at] = i + 1
            self.parts[-1].append((at, i, e))

    def judge(self, lists):
        """What is wrong with it, if that is what lists are in the end."""
        for n, part in enumerate(self.parts):
            nexts = {}
            for at, i, e in part:
                expected = nexts.get(at, i if n else 0)
                if i != expected:
                    yield f"the change stream of {self.tenant}, part {n}, shows place {i} of list {at} instead of {expected}"
                if lists.get(at, [])[i:i + 1] != [e]:
                    yield f"the change stream of {self.tenant}, part {n}, shows {e} at place {i} of list {at}, which is {lists.get(at)}"
                nexts[at] = i + 1
            if n == len(self.parts) - 1:
                yield from (f"the change stream of {self.tenant} ends with place {i} of list {at}, which is {lists.get(at)}"
                            for at, i in nexts.items() if i != len(lists.get(at, [])))


class MigrationUsers(users.Users):
    def __init__(self, six, home, seed, moving, staying, documents_of):
        self.documents_of, self.watched = documents_of, {}
        super().__init__(six, home, seed, moving, staying)

    def hire(self, moving, staying):
        def one(i):
            return moving[i % len(moving)]

        self.groups = {t: (drivers.History(self.home / f"history-{t}.txt"), [t]) for t in {one(0), one(1), staying[0]}}
        listed = sorted(self.groups) * 2
        self.lists = [users.Lists(self, i + 1, self.groups[t][0], t) for i, t in enumerate(listed)]
        self.streams = [users.Stream(self.six, staying[0], self.groups[staying[0]][0]), *(MovedStream(self.six, t) for t in sorted(self.groups) if t in moving)]
        self.keepers = [Keeper(self, i + 11, t) for i, t in enumerate([one(2), one(3), one(4), one(5), staying[3], staying[4]])]
        self.registers = [users.Register(self, i + 21, t) for i, t in enumerate([one(6), one(6), staying[7], staying[7]])]
        self.driven = [users.Driven(self, i + 31, t) for i, t in enumerate([one(7), one(3), staying[8]])]
        self.latecomers = [Bystander(self, m, side) for side, members in self.six.of.items() for m in members]

    def watch(self, tenant, giver, migration):
        self.watched[tenant] = Watch(tenant, giver, migration)
        return self.watched[tenant]

    def unwatch(self, tenant):
        self.watched.pop(tenant, None)

    def late(self, tenant, giver):
        """Who has not heard that the tenant has moved."""
        found = [str(u) for u in self.all if u.tenants[0] == tenant and u.at() == giver]
        return found + [f"the change stream of {tenant}" for s in self.streams if s.tenant == tenant and s.side == giver]
