"""Who uses the cluster while it changes: lists, a bank, counters, documents, and change streams. Each knows what it was told."""
import pathlib
import random
import sys
import threading
import time

import pymongo
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import drivers  # noqa: E402

# Lists: those of one bucket are in one chunk; a bucket has two at a time.
BUCKETS, BUCKET, PER_BUCKET = 6, 100_000, 2
KIND = 10_000_000
KINDS = ["ranged", "hashed", "plain"]
BRANCHES, ACCOUNTS, FORTUNE = 4, 5, 100
COUNTERS = 6
KEYS, KEYS_OF_CHUNK = 6000, 1000
MAJORITY = ReadConcern("majority")
CONCERNS = {"write_concern": drivers.MAJORITY, "read_concern": MAJORITY}


def prepare(cluster, ask):
    """The collections that are there all the time."""
    def done(db, command):
        outcome = ask.insist(db, command)
        if not outcome.done:
            raise SystemExit(f"{command} -> {outcome}")

    first = cluster.shards[0].name
    for db in ("lists", "load"):
        done("admin", {"enableSharding": db, "primaryShard": first})
    ranged = {"lists.ranged": ("_id", [BUCKET * i for i in range(1, BUCKETS)]),
              "load.bank": ("branch", list(range(1, BRANCHES))),
              "load.ranged": ("k", list(range(KEYS_OF_CHUNK, KEYS, KEYS_OF_CHUNK)))}
    for ns, (key, points) in ranged.items():
        done("admin", {"shardCollection": ns, "key": {key: 1}})
        for point in points:
            done("admin", {"split": ns, "middle": {key: point}})
    for ns, key in ("lists.hashed", "_id"), ("load.hashed", "k"), ("load.counters", "k"):
        done("admin", {"shardCollection": ns, "key": {key: "hashed"}, "numInitialChunks": 2 * len(cluster.shards)})
    for db in "lists", "load":
        done(db, {"create": "plain"})
    bank = ask.both.get_database("load", **CONCERNS).bank
    bank.insert_many({"_id": f"{b}-{i}", "branch": b, "account": i, "money": FORTUNE} for b in range(BRANCHES) for i in range(ACCOUNTS))


class Lists(drivers.Worker):
    """Appends to lists and reads of them; a transaction stays within one chunk, or within what is not sharded."""

    def __init__(self, uri, number, history, stop):
        super().__init__(uri, number, history, stop)
        self.db = self.client.get_database("lists", **CONCERNS)

    def collection(self, at):
        return self.db[KINDS[at // KIND]]

    def some_lists(self):
        kind, span = random.randrange(len(KINDS)), int(time.time() / drivers.SPAN_S) % (BUCKET // PER_BUCKET) * PER_BUCKET
        base = kind * KIND + random.randrange(BUCKETS) * BUCKET + span
        if KINDS[kind] == "hashed":
            return [base + random.randrange(PER_BUCKET)] * random.randint(1, 2)
        return [base + random.randrange(PER_BUCKET) for _ in range(random.randint(1, 3))]


class Stream(drivers.Stream):
    """Watches all lists."""

    def __init__(self, *given):
        super().__init__(*given)
        self.others = []

    def what(self, client):
        return client.lists

    def note(self, change):
        # A database that moves must not look as if anything was dropped, made or written.
        if change["operationType"] in ("insert", "update"):
            super().note(change)
        else:
            self.others.append(f"{change['operationType']} of {change.get('ns')} at {change.get('clusterTime')}")


class User(threading.Thread):
    """One who goes on until told to stop. `wrong` are answers that must not be."""

    def __init__(self, uri, number, stop):
        super().__init__(daemon=True)
        self.number, self.stop, self.wrong, self.count, self.failures = number, stop, [], 0, {}
        self.client = pymongo.MongoClient(uri, serverSelectionTimeoutMS=20000, connectTimeoutMS=3000, socketTimeoutMS=30000)
        self.db = self.client.get_database("load", **CONCERNS)
        self.random = random.Random(number)

    def run(self):
        while not self.stop.is_set():
            try:
                self.act()
                self.count += 1
            except PyMongoError as e:
                code = getattr(e, "code", None) or type(e).__name__
                self.failures[code] = self.failures.get(code, 0) + 1
            time.sleep(self.random.random() * .03)


class Teller(User):
    """Transfers within a branch, whose documents are in one chunk, and audits of it."""

    def __init__(self, *given):
        super().__init__(*given)
        self.made, self.maybe, self.failed, self.n = {}, {}, set(), 0

    def act(self):
        branch = self.random.randrange(BRANCHES)
        with self.client.start_session() as session:
            if self.random.random() < .3:
                total = session.with_transaction(lambda s: self.total(s, branch), read_concern=ReadConcern("snapshot"))
                if total != ACCOUNTS * FORTUNE:
                    self.wrong.append(f"branch {branch} had {total} at {time.time():.1f}")
                return
            self.n += 1
            name, amount = f"t{self.number}-{self.n}", self.random.randint(1, 9)
            giver, taker = self.random.sample(range(ACCOUNTS), 2)
            transfer = (branch, giver, taker, amount)
            try:
                session.with_transaction(lambda s: self.transfer(s, name, transfer), ReadConcern("snapshot"), drivers.MAJORITY)
                self.made[name] = transfer
            except PyMongoError as e:
                if e.has_error_label("UnknownTransactionCommitResult"):
                    self.maybe[name] = transfer
                else:
                    self.failed.add(name)
                raise

    def total(self, session, branch):
        return sum(d["money"] for d in self.db.bank.find({"branch": branch, "account": {"$exists": True}}, session=session))

    def transfer(self, session, name, transfer):
        branch, giver, taker, amount = transfer
        for account, change in (giver, -amount), (taker, amount):
            done = self.db.bank.update_one({"_id": f"{branch}-{account}", "branch": branch}, {"$inc": {"money": change}}, session=session)
            if done.matched_count != 1:
                self.wrong.append(f"account {branch}-{account} was not there at {time.time():.1f}")
        self.db.bank.insert_one({"_id": name, "branch": branch, "amount": amount}, session=session)


class Counter(User):
    """Registers that nobody else writes: retryable increments, and reads in between. Of each the least and the most that it may hold."""

    def __init__(self, *given):
        super().__init__(*given)
        self.bounds = {(coll, f"c{self.number}-{i}"): [0, 0] for coll in ("counters", "plain") for i in range(COUNTERS)}
        self.session = self.client.start_session(causal_consistency=True)

    def act(self):
        key = self.random.choice(list(self.bounds))
        coll, which = self.db[key[0]], {"_id": key[1], "k": hash_of(key[1])}
        bounds = self.bounds[key]
        if self.random.random() < .3:
            self.judge(key, (coll.find_one(which, session=self.session) or {}).get("n", 0))
            return
        bounds[1] += 1
        if self.random.random() < .5:
            after = coll.find_one_and_update(which, {"$inc": {"n": 1}}, upsert=True, return_document=True, session=self.session)["n"]
            bounds[0] += 1
            self.judge(key, after)
            return
        done = coll.update_one(which, {"$inc": {"n": 1}}, upsert=True, session=self.session)
        bounds[0] += 1
        if done.matched_count + (done.upserted_id is not None) != 1:
            self.wrong.append(f"{key}: an update answered {done.raw_result} at {time.time():.1f}")

    def judge(self, key, found):
        least, most = self.bounds[key]
        if not least <= found <= most:
            self.wrong.append(f"{key} was {found}, which is not from {least} to {most}, at {time.time():.1f}")
        # Increments that nobody was told of are seen some time, and stay.
        self.bounds[key][0] = max(least, found)


def hash_of(name):
    return sum(ord(c) * 31 ** i for i, c in enumerate(name)) % 1_000_003


class Clerk(User):
    """Inserts documents and deletes some of them."""

    def __init__(self, *given):
        super().__init__(*given)
        self.n, self.known = 0, {}

    def act(self):
        coll = self.db[self.random.choice(KINDS)]
        if self.known and self.random.random() < .25:
            name, where = self.random.choice(list(self.known.items()))
            if where[2] == "there":
                where[2] = "unknown"
                deleted = self.db[where[0]].delete_one({"_id": name, "k": where[1]}).deleted_count
                if deleted != 1:
                    self.wrong.append(f"{where[0]} {name}: {deleted} were deleted at {time.time():.1f}")
                where[2] = "gone"
            return
        self.n += 1
        where = [coll.name, self.random.randrange(KEYS), "unknown"]
        name = f"d{self.number}-{self.n}"
        self.known[name] = where
        coll.insert_one({"_id": name, "k": where[1], "pad": "x" * 100})
        where[2] = "there"


class Users:
    """All of them, half through one router and half through both."""

    def __init__(self, cluster, home):
        self.stop, self.history = threading.Event(), drivers.History(home / "history.txt")
        uri = lambda i: cluster.uri(i % 2) if i % 3 == 0 else cluster.uri(i % 2, 1 - i % 2)  # noqa: E731
        self.streams = [Stream(cluster.uri(n, 1 - n), n, self.history, n == 1) for n in range(2)]
        self.lists = [Lists(uri(i), i + 1, self.history, self.stop) for i in range(3)]
        kinds = [Teller, Teller, Counter, Counter, Clerk, Clerk]
        self.others = [kind(uri(i), i + 1, self.stop) for i, kind in enumerate(kinds)]

    def of(self, kind):
        return [u for u in self.others if isinstance(u, kind)]

    def start(self):
        for s in self.streams:
            s.start()
            if not s.opened.wait(30):
                raise SystemExit("a change stream was not opened")
        for u in self.lists + self.others:
            u.start()

    def figures(self):
        told = ", ".join(f"{n} {k}" for k, n in sorted(self.history.outcomes.items()))
        return f"lists: {told}; " + ", ".join(f"{type(u).__name__.lower()} {u.count}" for u in self.others)

    def end(self):
        """Who of them does not end."""
        self.stop.set()
        for u in self.lists + self.others:
            u.join(150)
        return [f"{type(u).__name__} {u.number} did not end" for u in self.lists + self.others if u.is_alive()]

    def finish(self, cluster):
        """Tells the streams that this was all, and writes down what is there in the end; what is wrong."""
        lists = cluster.client().get_database("lists", **CONCERNS)
        lists.hashed.insert_one({"_id": "end"})
        for s in self.streams:
            s.join(drivers.STREAM_S)
        for kind in KINDS:
            for doc in lists[kind].find({"_id": {"$ne": "end"}}):
                self.history.line(f"end {doc['_id']} {','.join(map(str, doc['l']))}")
        self.history.file.close()
        late = [f"change stream {s.number} did not reach the end" for s in self.streams if not s.complete]
        return late + [f"change stream {s.number} showed {o}" for s in self.streams for o in s.others[:5]]
