"""What must be true when all is quiet, a method for each."""
import collections
import subprocess
import time

import failover
import pymongo
from pymongo import ReadPreference
from pymongo.errors import PyMongoError

from . import users
from .cluster import UNDERWAY

QUIET_S = 90
EQUAL_S = 60
FIRST = 5


class Verdict:
    def __init__(self, run, moves, definitions):
        self.run, self.cluster, self.users = run, run.cluster, run.users
        self.moves, self.definitions = moves, definitions
        self.client = self.cluster.client(0, 1, socketTimeoutMS=60000)

    def checks(self):
        return [self.nobody_fell, self.all_is_quiet, self.users_were_told_the_truth, self.enough_happened, self.cleaned_up, self.metadata_is_consistent,
                self.each_document_is_on_one_shard, self.clerks, self.counters, self.bank, self.shards_have_definitions, self.members_are_equal,
                self.change_streams, self.history]

    def judge(self):
        """(how many hold, how many do not)"""
        passed = failed = 0
        for check in self.checks():
            try:
                wrong = list(check())
            except (PyMongoError, SystemExit, OSError, LookupError) as e:
                wrong = [f"{type(e).__name__}: {e}"]
            passed, failed = passed + (not wrong), failed + bool(wrong)
            name = check.__name__.replace("_", " ")
            self.run.tell(f"{'FAILED' if wrong else 'ok'}: {name}")
            for w in wrong[:FIRST]:
                self.run.tell(f"  * {w}")
            if wrong[FIRST:]:
                self.run.tell(f"  * ... {len(wrong)} in all")
        return passed, failed

    def nobody_fell(self):
        for p in self.cluster.dead():
            yield f"{p.set_name} {p.name} ended by itself with {p.proc.returncode}: {p.home}"
        yield from self.run.kills.late
        for s in [self.cluster.config, *self.cluster.shards]:
            failover.settle(s.members)

    def all_is_quiet(self):
        """Nothing has to be done any more, within QUIET_S."""
        end = time.monotonic() + QUIET_S
        while True:
            left = [f"{shard} has {doc} in {coll}" for shard, of in self.cluster.state().items() for coll, docs in of.items() for doc in (docs if coll in UNDERWAY else [docs])]
            if not left or time.monotonic() > end:
                return left
            time.sleep(.5)

    def users_were_told_the_truth(self):
        for u in self.users.others:
            yield from u.wrong[:FIRST]
            if not u.count:
                yield f"{type(u).__name__} {u.number} has done nothing: {u.failures}"

    def enough_happened(self):
        """Where little is carried out little is proved."""
        for c in self.moves, self.definitions:
            if c.ended != c.total:
                yield f"{c.ended} of {c.total} {c.name_}s have ended"
        if self.moves.done * 2 < self.moves.total:
            yield f"{self.moves.done} of {self.moves.total} moves were carried out"

    def sharded(self):
        return sorted(d["_id"] for d in self.client.config.collections.find({"_id": {"$not": {"$regex": "^config\\."}}}))

    def cleaned_up(self):
        for s in self.cluster.shards:
            for ns in self.sharded():
                # A shard that has no part of it says so.
                answer = s.client(socketTimeoutMS=60000).admin.command("cleanupOrphaned", ns, check=False)
                if not answer.get("ok"):
                    yield f"cleanupOrphaned {ns} on {s.name}: {answer}"

    def metadata_is_consistent(self):
        for i in range(len(self.cluster.routers)):
            answer = self.cluster.client(i).admin.command("checkMetadataConsistency", 1)
            yield from (f"through router {i}: {d}" for d in answer["cursor"]["firstBatch"])

    def databases(self):
        return ["lists", "load", *self.definitions.dbs]

    def each_document_is_on_one_shard(self):
        self.placed = {}
        direct = {s.name: s.client() for s in self.cluster.shards}
        names = {db: {n for c in [self.client, *direct.values()] for n in c[db].list_collection_names() if not n.startswith("system.")} for db in self.databases()}
        for db, coll in ((db, coll) for db, of in sorted(names.items()) for coll in sorted(of)):
            at = collections.defaultdict(list)
            for shard, client in direct.items():
                for doc in client[db][coll].find({}, {"_id": 1}):
                    at[doc["_id"]].append(shard)
            self.placed[f"{db}.{coll}"] = at
            yield from (f"{db}.{coll} {i} is on {shards}" for i, shards in at.items() if len(shards) != 1)
            for i in range(len(self.cluster.routers)):
                seen = collections.Counter(d["_id"] for d in self.cluster.client(i)[db][coll].find({}, {"_id": 1}))
                yield from (f"{db}.{coll} {d} is seen {n} times through router {i}" for d, n in seen.items() if n != 1)
                yield from (f"{db}.{coll} {d} is on {at[d]} and not seen through router {i}" for d in at if d not in seen)
                yield from (f"{db}.{coll} {d} is seen through router {i} and on no shard" for d in seen if d not in at)

    def clerks(self):
        for clerk in self.users.of(users.Clerk):
            there = {kind: {d["_id"] for d in self.client.load[kind].find({}, {"_id": 1})} for kind in users.KINDS}
            for name, (kind, k, state) in clerk.known.items():
                if (state == "there") > (name in there[kind]):
                    yield f"load.{kind} {{_id: {name}, k: {k}}} was acknowledged and is lost"
                if (state == "gone") and name in there[kind]:
                    yield f"load.{kind} {{_id: {name}, k: {k}}} was deleted and is there"

    def counters(self):
        for user in self.users.of(users.Counter):
            for (coll, name), (least, most) in user.bounds.items():
                found = list(self.client.load[coll].find({"_id": name}))
                value = sum(d["n"] for d in found)
                if not least <= value <= most:
                    yield f"load.{coll} {name} is {value}, which is not from {least} to {most}: {found}"

    def bank(self):
        docs = list(self.client.load.bank.find())
        moved = collections.Counter()
        known, maybe = {}, {}
        for teller in self.users.of(users.Teller):
            known |= teller.made
            maybe |= teller.maybe
        there = {d["_id"] for d in docs if "account" not in d}
        yield from (f"transfer {name} was acknowledged and is lost" for name in known if name not in there)
        yield from (f"transfer {name} was given up and is there" for name in there if name not in known | maybe)
        for name in there & set(known | maybe):
            branch, giver, taker, amount = (known | maybe)[name]
            moved[f"{branch}-{giver}"] -= amount
            moved[f"{branch}-{taker}"] += amount
        for d in docs:
            if "account" in d and d["money"] != users.FORTUNE + moved[d["_id"]]:
                yield f"account {d['_id']} has {d['money']} instead of {users.FORTUNE + moved[d['_id']]}"

    def shards_have_definitions(self):
        """Of what comes and goes, on each shard that owns a part."""
        for db, colls in self.definitions.dbs.items():
            for name, coll in colls.items():
                entry = self.client.config.collections.find_one({"_id": f"{db}.{name}"})
                owners = self.client.config.chunks.distinct("shard", {"uuid": entry["uuid"]}) if entry else [self.client.config.databases.find_one({"_id": db})["primary"]]
                for owner in owners:
                    of = self.cluster.set_named(owner).client()[db]
                    options = next(iter(of.list_collections(filter={"name": name})), {}).get("options")
                    if options is None or options.get("validator", {}) != coll.validator:
                        yield f"{db}.{name} on {owner} has options {options} instead of validator {coll.validator}"
                    elif set(of[name].index_information()) != coll.indexes:
                        yield f"{db}.{name} on {owner} has indexes {sorted(of[name].index_information())} instead of {sorted(coll.indexes)}"
            wrong = self.definitions.look_at(db)
            if wrong:
                yield wrong

    def members_are_equal(self):
        for s in self.cluster.shards:
            end = time.monotonic() + EQUAL_S
            for db in self.databases():
                while True:
                    hashes = {m.name: self.hash_of(m, db) for m in s.members}
                    if len({h["md5"] for h in hashes.values()}) == 1:
                        break
                    if time.monotonic() > end:
                        yield f"{db} of {s.name} is not the same on all members: { {m: h['collections'] for m, h in hashes.items()} }"
                        break
                    time.sleep(.5)

    @staticmethod
    def hash_of(member, db):
        client = pymongo.MongoClient(member.name, directConnection=True, serverSelectionTimeoutMS=5000)
        return client.get_database(db, read_preference=ReadPreference.SECONDARY_PREFERRED).command("dbHash")

    def change_streams(self):
        return self.users.finish(self.cluster)

    def history(self):
        path = self.cluster.a.home / "history.txt"
        judged = subprocess.run([self.cluster.a.checker, str(path)], capture_output=True, text=True)
        lines = judged.stdout.splitlines() + judged.stderr.splitlines()
        self.run.tell(lines[0] if lines else "check-history said nothing")
        return lines[1:] if judged.returncode else []
