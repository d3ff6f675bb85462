"""Users of tenants that move and of tenants that stay. Each knows what it was told."""
import datetime
import pathlib
import random
import sys
import threading
import time

import pymongo
from pymongo.errors import DuplicateKeyError, OperationFailure, PyMongoError

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import drivers  # noqa: E402

from .callers import ABORTED, COMMITTED, HANG_S, Caller, Hangs, Refused  # noqa: E402
from .servers import DONOR, RECIPIENT, Conn, other  # noqa: E402

PAUSE_S = .05
LISTS, SPAN_S = 3, 2
ELEMENTS = 1_000_000
# A keeper's second counter has this number more.
OTHER = 1000


def clock():
    """As servers write it into their logs, to the millisecond."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%H:%M:%S.%f")[:-3]


def db_of(tenant):
    return f"{tenant}_db"


class User(threading.Thread):
    """One who goes on until told to stop. `wrong` are answers that must not be, `done` the times of what was acknowledged."""

    def __init__(self, users, number, *tenants):
        super().__init__(daemon=True)
        self.users, self.number, self.tenants, self.db = users, number, tenants, db_of(tenants[0])
        self.random = random.Random(f"{users.seed} {number}")
        self.caller, self.wrong, self.done = Caller(users.six, self.random), [], []

    def __str__(self):
        return f"{type(self).__name__.lower()} {self.number} of {', '.join(self.tenants)}"

    @property
    def moves(self):
        return self.tenants[0] in self.users.moving

    def at(self):
        return self.caller.at

    def run(self):
        while not self.users.stop.is_set():
            begun = time.monotonic()
            try:
                if self.act():
                    self.done.append((begun, time.monotonic()))
            except (Refused, Hangs, PyMongoError) as e:
                self.complain(f"{type(e).__name__}: {e}")
            time.sleep(self.random.random() * PAUSE_S)

    def complain(self, text):
        self.wrong.append(f"{self} at {clock()}: {text}")


class Keeper(User):
    """Alone with its documents and its counter: what it is told is exact."""

    def __init__(self, *given):
        super().__init__(*given)
        self.ids, self.count, self.others, self.n = [], 0, 0, 0

    def act(self):
        return self.random.choice([self.insert, self.insert, self.update, self.update_both, self.modify, self.look])()

    def insert(self):
        ids = [f"{self.number}-{self.n + i}" for i in range(self.random.choice([1, 1, 3]))]
        self.n += len(ids)
        reply = self.caller.write(self.db, {"insert": "docs", "documents": [{"_id": i, "pad": "x" * 50} for i in ids]})
        if reply.get("n") != len(ids):
            self.complain(f"an insert of {ids} answered {reply}")
        self.ids += ids
        return True

    def update(self):
        change = {"q": {"_id": self.number}, "u": {"$inc": {"n": 1}}, "upsert": True}
        reply = self.caller.write(self.db, {"update": "counters", "updates": [change]})
        self.count += 1
        if reply.get("n") != 1:
            self.complain(f"increment {self.count} answered {reply}")
        return True

    def update_both(self):
        """Statements of one command, which may be cut off between them."""
        changes = [{"q": {"_id": i}, "u": {"$inc": {"n": 1}}, "upsert": True} for i in (self.number, self.number + OTHER)]
        reply = self.caller.write(self.db, {"update": "counters", "updates": changes})
        self.count, self.others = self.count + 1, self.others + 1
        if reply.get("n") != 2:
            self.complain(f"two increments answered {reply}")
        return True

    def modify(self):
        reply = self.caller.write(self.db, {"findAndModify": "counters", "query": {"_id": self.number}, "update": {"$inc": {"n": 1}}, "upsert": True, "new": True})
        self.count += 1
        self.judge((reply.get("value") or {}).get("n"), "became")
        return True

    def look(self):
        reply = self.caller.read(self.db, {"find": "counters", "filter": {"_id": self.number}}, anywhere=self.random.random() < .5)
        found = reply["cursor"]["firstBatch"]
        self.judge(found[0]["n"] if found else 0, "was read as")
        return True

    def judge(self, found, how):
        if found != self.count:
            self.complain(f"the counter {how} {found} instead of {self.count} at the {self.caller.at}")
            self.count = found if isinstance(found, int) and how == "became" else self.count


class Lists(User):
    """Appends to lists and reads of them, in transactions that may touch lists of all its tenants."""

    def __init__(self, users, number, history, *tenants):
        super().__init__(users, number, *tenants)
        self.history, self.n = history, 0

    def act(self):
        return self.random.choice([self.transaction, self.transaction, self.push, self.look])()

    def some_list(self):
        return int(time.time() / SPAN_S) % 1_000_000 * LISTS + self.random.randrange(LISTS)

    def db_of_list(self, at):
        return db_of(self.tenants[at % len(self.tenants)])

    def push_of(self, at, ops):
        self.n += 1
        e = self.number * ELEMENTS + self.n
        # Noted first: whatever happens, it may have been done.
        ops.append(f"a:{at}:{e}")
        return {"update": "lists", "updates": [{"q": {"_id": at}, "u": {"$push": {"l": e}}, "upsert": True}]}

    @staticmethod
    def told(at, reply):
        found = reply["cursor"]["firstBatch"]
        return f"r:{at}:{','.join(map(str, found[0]['l'] if found else []))}"

    def attempt(self, ops):
        """ok, fail or unknown"""
        c = self.caller
        c.begin()
        try:
            for at in [self.some_list() for _ in range(self.random.randint(1, 3))]:
                if self.random.random() < .4:
                    ops.append(self.told(at, c.in_transaction(self.db_of_list(at), {"find": "lists", "filter": {"_id": at}})))
                else:
                    c.in_transaction(self.db_of_list(at), self.push_of(at, ops))
            c.commit()
            return "ok"
        except (Refused, OSError) as e:
            if isinstance(e, Refused) and not e.transient:
                self.complain(f"a transaction ended with {e}")
            c.abort()
            return "fail"
        except Hangs as e:
            self.complain(str(e))
            return "unknown"

    def transaction(self):
        ops = []
        outcome = self.attempt(ops)
        self.history.txn(self.number, outcome, ops)
        return outcome == "ok"

    def push(self):
        at, ops = self.some_list(), []
        outcome = "unknown"
        try:
            self.caller.write(self.db_of_list(at), self.push_of(at, ops))
            outcome = "ok"
        finally:
            self.history.txn(self.number, outcome, ops)
        return True

    def look(self):
        at = self.some_list()
        reply = self.caller.read(self.db_of_list(at), {"find": "lists", "filter": {"_id": at}}, anywhere=self.random.random() < .5)
        self.history.txn(self.number, "ok", [self.told(at, reply)])
        return True


class Register(User):
    """Compares and sets, and reads what is linearizable; `seen` are (called, returned, kind, value, value before)."""

    def __init__(self, *given):
        super().__init__(*given)
        self.seen, self.n, self.known = [], 0, 0

    def act(self):
        called = time.monotonic()
        if self.random.random() < .4:
            reply = self.caller.read(self.db, {"find": "register", "filter": {"_id": 0}}, "linearizable")
            self.known = reply["cursor"]["firstBatch"][0]["v"]
            self.seen.append((called, time.monotonic(), "read", self.known, None))
            return True
        self.n += 1
        new = self.number * ELEMENTS + self.n
        reply = self.caller.write(self.db, {"findAndModify": "register", "query": {"_id": 0, "v": self.known}, "update": {"$set": {"v": new}}})
        before = reply.get("value")
        if before:
            self.seen.append((called, time.monotonic(), "set", new, before["v"]))
            self.known = new
        else:
            # Somebody else was first.
            self.known = self.caller.read(self.db, {"find": "register", "filter": {"_id": 0}})["cursor"]["firstBatch"][0]["v"]
        return True


class Latecomer(threading.Thread):
    """Asks one member of the donor for counters of tenants that have moved, by the weakest read: it may be refused, and must not be told what was before."""

    def __init__(self, users, member):
        super().__init__(daemon=True)
        self.users, self.member, self.conn, self.wrong, self.stale = users, member, None, [], 0

    def run(self):
        while not self.users.late_stop.is_set():
            for k in self.users.keepers:
                if k.moves and k.at() == RECIPIENT:
                    self.look(k, k.count)
            time.sleep(.01)

    def look(self, keeper, least):
        try:
            self.conn = self.conn or Conn(self.member.name, timeout=2)
            find = {"find": "counters", "filter": {"_id": keeper.number}, "$readPreference": {"mode": "secondaryPreferred"}, "maxTimeMS": 1000}
            reply = self.conn.command(keeper.db, find)
        except (OSError, ValueError):
            self.conn = None
            return
        found = reply["cursor"]["firstBatch"] if reply.get("ok") == 1 else None
        if found is not None and (found[0]["n"] if found else 0) < least and not self.users.late_stop.is_set():
            self.stale += 1
            self.wrong.append(f"member {self.member.i} of the donor at {clock()}: counter {keeper.number} was read as {found} when the new set had {least}")


class Driven(User):
    """Inserts through pymongo, as an application does."""

    def __init__(self, *given):
        super().__init__(*given)
        self.ids, self.n, self.client, self.side = [], 0, None, DONOR

    def at(self):
        return self.side

    def open(self):
        hosts = ",".join(m.name for m in self.users.six.of[self.side])
        self.client = pymongo.MongoClient(f"mongodb://{hosts}/?replicaSet={self.side}", serverSelectionTimeoutMS=60000, connectTimeoutMS=3000, socketTimeoutMS=30000)
        self.coll = self.client.get_database(self.db, write_concern=drivers.MAJORITY).driven

    def act(self):
        if self.client is None:
            self.open()
        self.n += 1
        name, end, tries = f"{self.number}-{self.n}", time.monotonic() + HANG_S, 0
        while time.monotonic() < end:
            tries += 1
            try:
                self.coll.insert_one({"_id": name})
            except DuplicateKeyError:
                if tries == 1:
                    raise
            except OperationFailure as e:
                if e.code == COMMITTED and (self.side == DONOR or self.users.six.there_and_back):
                    self.side = other(self.side)
                    self.open()
                elif e.code not in (ABORTED,) and not e.has_error_label("RetryableWriteError"):
                    raise
                continue
            except PyMongoError:
                continue
            self.ids.append(name)
            return True
        raise Hangs(f"an insert through the driver at the {self.side} was not done in {HANG_S} s")


class Stream(drivers.Stream):
    """Watches the lists of one tenant; goes on at the new set with its token."""

    def __init__(self, six, tenant, history):
        self.six, self.tenant, self.side, self.trouble = six, tenant, DONOR, []
        super().__init__(self.uri(), 0, history, False)

    def uri(self):
        return f"mongodb://{','.join(m.name for m in self.six.of[self.side])}/?replicaSet={self.side}"

    def what(self, client):
        return client[db_of(self.tenant)].lists

    def run(self):
        token, since = None, None
        while not self.complete:
            try:
                with self.watched.watch(resume_after=token, max_await_time_ms=200) as changes:
                    self.opened.set()
                    while not self.complete:
                        change = changes.try_next()
                        token, since = changes.resume_token, None
                        if change:
                            self.note(change)
            except PyMongoError as e:
                since = since or time.monotonic()
                if getattr(e, "code", 0) == COMMITTED and self.side == DONOR:
                    self.side = RECIPIENT
                    self.watched = self.what(pymongo.MongoClient(self.uri(), serverSelectionTimeoutMS=20000))
                elif time.monotonic() > since + drivers.STREAM_S or token is None:
                    self.trouble.append(f"the change stream of {self.tenant} at the {self.side}: {e}")
                    return
                time.sleep(.05)


class Users:
    def __init__(self, six, home, seed, moving, staying):
        self.six, self.seed, self.moving, self.stop, self.home = six, seed, set(moving), threading.Event(), home
        self.late_stop = threading.Event()
        self.hire(moving, staying)
        self.all = [*self.lists, *self.keepers, *self.registers, *self.driven]

    def hire(self, moving, staying):
        # What keeps the lists of each group of tenants.
        self.groups = {name: (drivers.History(self.home / f"history-{name}.txt"), tenants) for name, tenants in
                       (("moved", moving[:1]), ("moved-two", moving[1:3]), ("stayed", staying[:1]))}
        lists = [(history, tenants) for history, tenants in self.groups.values() for _ in range(2)]
        self.lists = [Lists(self, i + 1, history, *tenants) for i, (history, tenants) in enumerate(lists)]
        self.streams = [Stream(self.six, tenants[0], history) for name, (history, tenants) in self.groups.items() if len(tenants) == 1]
        self.keepers = [Keeper(self, i + 11, t) for i, t in enumerate([*moving[3:7], *staying[3:6]])]
        self.registers = [Register(self, i + 21, t) for i, t in enumerate([moving[7], moving[7], staying[7], staying[7]])]
        self.driven = [Driven(self, i + 31, t) for i, t in enumerate([moving[8], staying[8]])]
        # Once the split is forgotten, what the donor has left may be read.
        self.latecomers = [Latecomer(self, m) for m in self.six.of[DONOR]]

    def start(self):
        for s in self.streams:
            s.start()
            if not s.opened.wait(30):
                raise SystemExit(f"a change stream was not opened: {s.trouble}")
        for u in self.all + self.latecomers:
            u.start()

    def moved(self):
        """Whether every user of a tenant that moves has gone to the new set, and its change stream."""
        return all(u.at() == RECIPIENT for u in self.all if u.moves) and all(s.side == RECIPIENT for s in self.streams if s.tenant in self.moving)

    def end_latecomers(self):
        self.late_stop.set()
        for u in self.latecomers:
            u.join(5)

    def end(self):
        self.stop.set()
        self.end_latecomers()
        for u in self.all:
            u.join(2 * HANG_S)
        return [f"{u} did not end" for u in self.all if u.is_alive()]
