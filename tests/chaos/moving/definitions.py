"""Definitions of collections that come and go, with what must be in each of them afterwards."""
import threading
import time

from pymongo.errors import DuplicateKeyError, PyMongoError
from pymongo.write_concern import WriteConcern

from . import asking
from .changes import Changes

DATABASES, NAMES = ["d0", "d1", "d2"], ["a", "b", "c"]
FILL = 15
LOOKS, BETWEEN_S = 5, 1
VALIDATOR = {"s": {"$exists": True}}
MAJORITY = WriteConcern("majority", wtimeout=20000)


class Coll:
    """One collection as it must be."""

    def __init__(self, serial):
        # `serial` is in each document: two collections that had one name are told apart by it.
        self.serial, self.key, self.docs, self.n = serial, None, set(), 0
        self.indexes, self.validator = {"_id_"}, {}

    def document(self):
        self.n += 1
        return {"_id": f"{self.serial}-{self.n}", "s": self.serial, "k": self.n * 37 % 1000, "g": self.n % 7}


class Scribe(threading.Thread):
    """Inserts into a collection while it is defined, until `end`."""

    def __init__(self, put, coll):
        super().__init__(daemon=True)
        self.put, self.coll, self.over, self.wrong = put, coll, threading.Event(), None
        self.start()

    def run(self):
        try:
            while not self.over.wait(.02):
                self.put(self.coll)
        except PyMongoError as e:
            self.wrong = f"a document could not be inserted: {e}"

    def end(self):
        self.over.set()
        self.join()
        return self.wrong


class Definitions(Changes):
    def __init__(self, run, count):
        super().__init__(run, "definition", count)
        self.sharded_renames = run.a.sharded_renames
        self.dbs, self.serial = {db: {} for db in DATABASES}, 0

    def one(self, i):
        self.pause()
        db = self.rng.choice(DATABASES)
        name, other = self.rng.sample(NAMES, 2)
        coll = self.dbs[db].get(name)
        if coll is None:
            act = self.create
        else:
            act = self.rng.choices(*zip(*self.possible(db, coll, other)))[0]
        return act(db, name, other) or self.look_at(db)

    def possible(self, db, coll, other):
        """What may be done with a collection that is there, and how often."""
        acts = [(self.drop, 2), (self.create_indexes, 2), (self.coll_mod, 2), (self.drop_database, 1)]
        acts += [(self.refine, 4)] if coll.key and len(coll.key) == 1 else []
        acts += [(self.shard, 6)] if not coll.key else []
        target = self.dbs[db].get(other)
        acts += [(self.rename, 4)] if self.sharded_renames or not (coll.key or target and target.key) else []
        return acts

    def define(self, kind, db, command, on, was_done=lambda: False):
        """Asks for a definition; what is wrong. `on` is the database it is sent to."""
        first, known = self.rng.randrange(2), self.primary_shard(db)
        victims = [known or self.rng.choice(self.cluster.shards).name, self.rng.choice(self.cluster.shards).name, "config",
                   self.rng.choice(self.cluster.routers).set_name]
        outcome = self.carry_out(kind, f"{db} {command}", victims, lambda: self.ask.insist(on, command, first, was_done=was_done))
        return None if outcome.done else str(outcome)

    def put(self, db, name, coll):
        """One more document, acknowledged in the end."""
        doc, end = coll.document(), time.monotonic() + asking.HANG_S
        while True:
            try:
                self.ask.both[db].get_collection(name, write_concern=MAJORITY).insert_one(doc)
            except DuplicateKeyError:
                # An attempt whose answer was lost.
                pass
            except PyMongoError:
                if time.monotonic() > end:
                    raise
                time.sleep(asking.PAUSE_S)
                continue
            coll.docs.add(doc["_id"])
            return

    def described(self, db, name):
        return self.ask.look(lambda c: next(iter(c[db].list_collections(filter={"name": name})), None))

    def create(self, db, name, _):
        options = {"validator": VALIDATOR} if self.rng.random() < .5 else {}
        self.serial += 1
        why = self.define("create", db, {"create": name, **options}, db, lambda: self.described(db, name) is not None)
        coll = Coll(self.serial)
        coll.validator = options.get("validator", {})
        self.dbs[db][name] = coll
        for _ in range(FILL):
            self.put(db, name, coll)
        return why

    def beside_a_scribe(self, db, name, coll, define):
        scribe = Scribe(lambda c: self.put(db, name, c), coll)
        why = define()
        return scribe.end() or why

    def shard(self, db, name, _):
        coll = self.dbs[db][name]
        kind = self.rng.choice([1, "hashed"])
        why = self.index(db, name, coll, {"k": kind})
        command = {"shardCollection": f"{db}.{name}", "key": {"k": kind}}
        why = why or self.beside_a_scribe(db, name, coll, lambda: self.define("shard", db, command, "admin"))
        coll.key = {"k": kind}
        if kind == 1 and not why:
            split = self.ask.insist("admin", {"split": f"{db}.{name}", "middle": {"k": 500}}, passes=asking.PASSES)
            # Its first attempt may have been carried out, or a chunk moved at the same time.
            self.tell(f"definition {self.ended}: split {db}.{name}: {split}")
        return why

    def index(self, db, name, coll, key):
        spec = {"key": key, "name": "_".join(f"{f}_{d}" for f, d in key.items())}
        coll.indexes.add(spec["name"])
        done = self.ask.insist(db, {"createIndexes": name, "indexes": [spec]})
        return None if done.done else f"index {spec}: {done}"

    def refine(self, db, name, _):
        coll = self.dbs[db][name]
        key = coll.key | {"g": 1}
        why = self.index(db, name, coll, key)
        command = {"refineCollectionShardKey": f"{db}.{name}", "key": key}
        why = why or self.beside_a_scribe(db, name, coll, lambda: self.define("refine", db, command, "admin"))
        coll.key = key
        return why

    def create_indexes(self, db, name, _):
        coll = self.dbs[db][name]
        key = {self.rng.choice("gxyz"): 1}
        spec = {"key": key, "name": f"of_{next(iter(key))}"}
        coll.indexes.add(spec["name"])
        return self.beside_a_scribe(db, name, coll, lambda: self.define("createIndexes", db, {"createIndexes": name, "indexes": [spec]}, db))

    def coll_mod(self, db, name, _):
        coll = self.dbs[db][name]
        coll.validator = {} if coll.validator else VALIDATOR
        return self.beside_a_scribe(db, name, coll, lambda: self.define("collMod", db, {"collMod": name, "validator": coll.validator}, db))

    def drop(self, db, name, _):
        del self.dbs[db][name]
        return self.define("drop", db, {"drop": name}, db)

    def drop_database(self, db, *_):
        self.dbs[db] = {}
        return self.define("dropDatabase", db, {"dropDatabase": 1}, db)

    def rename(self, db, name, other):
        """An attempt whose answer was lost is looked up by what the documents say."""
        coll, target = self.dbs[db].pop(name), self.dbs[db].get(other)
        command = {"renameCollection": f"{db}.{name}", "to": f"{db}.{other}", **({"dropTarget": True} if target else {})}

        def is_done():
            found = self.ask.look(lambda c: c[db][other].find_one())
            return found is not None and found["s"] == coll.serial

        why = self.define("rename", db, command, "admin", is_done)
        self.dbs[db][other] = coll
        return why

    def look_at(self, db):
        """What is not as it must be, also when it is looked at again."""
        for _ in range(LOOKS):
            wrong = self.compare(db)
            if not wrong:
                return None
            self.tell(f"definition {self.ended}: looked at {db}: {wrong}")
            time.sleep(BETWEEN_S)
        return wrong

    def compare(self, db):
        through = self.rng.randrange(2)
        client = self.ask.clients[through]
        try:
            there = {c["name"]: c for c in client[db].list_collections() if not c["name"].startswith("system.")}
            if set(there) != set(self.dbs[db]):
                return f"router {through} lists {sorted(there)} in {db} instead of {sorted(self.dbs[db])}; its primary shard is {self.primary_shard(db)}"
            for name, coll in self.dbs[db].items():
                wrong = self.compare_one(client, db, name, coll, there[name])
                if wrong:
                    return f"{db}.{name} through router {through}: {wrong}"
        except PyMongoError as e:
            return f"{type(e).__name__}: {e}"
        return None

    def compare_one(self, client, db, name, coll, there):
        ids = [d["_id"] for d in client[db][name].find({}, {"_id": 1})]
        if len(ids) != len(set(ids)) or set(ids) != coll.docs:
            lost, more = sorted(coll.docs - set(ids)), sorted(set(ids) - coll.docs)
            return f"{len(ids)} documents instead of {len(coll.docs)}: {len(lost)} are not there {lost[:3]}, {len(more)} are too many {more[:3]}"
        entry = client.config.collections.find_one({"_id": f"{db}.{name}"})
        # Lists tell what the primary shard has, which is as it was where others own all of it; shards are asked in the end.
        listed = entry is None or client.config.chunks.find_one({"uuid": entry["uuid"], "shard": client.config.databases.find_one({"_id": db})["primary"]})
        if listed and there["options"].get("validator", {}) != coll.validator:
            return f"options {there['options']} instead of validator {coll.validator}"
        indexes = set(client[db][name].index_information())
        if indexes != coll.indexes:
            return f"indexes {sorted(indexes)} instead of {sorted(coll.indexes)}"
        if (entry and dict(entry["key"])) != coll.key:
            return f"is sharded by {entry and entry['key']} instead of {coll.key}"
        return None
