"""Moves: ranges by `moveChunk` and `moveRange`, databases by `movePrimary`."""
from bson import MinKey

from . import asking
from .changes import Changes

LOADED = ["lists.ranged", "lists.hashed", "load.bank", "load.ranged", "load.hashed", "load.counters"]
# A move that is asked for again and again for so long was refused.
REFUSED_S = 40
# What a move may meet: a recipient that has another primary, a transaction that is open where it goes to, values of unique indexes, an index that is
# being built.
PASSES = asking.PASSES | {50, 96}
MAY_BE = PASSES | {11000, 12587}
# What is being defined meanwhile may be gone, have another key, be sharded anew.
MAY_BE_DEFINED = MAY_BE | {2, 26, 59, 61, 72, 118, 127, 73}


class Moves(Changes):
    def __init__(self, run, count):
        super().__init__(run, "move", count)
        self.done = 0

    def one(self, i):
        self.pause()
        if self.rng.random() < .2:
            return self.database()
        if self.rng.random() < .25:
            defined = self.ask.look(lambda c: sorted(d["_id"] for d in c.config.collections.find({"_id": {"$regex": r"^d\d\."}})))
            if defined:
                return self.range(self.rng.choice(defined), MAY_BE_DEFINED)
        return self.range(self.rng.choice(LOADED), MAY_BE)

    def elsewhere(self, shard):
        return self.rng.choice([s.name for s in self.cluster.shards if s.name != shard])

    def victims(self, *shards):
        return [*shards, "config", self.rng.choice(self.cluster.routers).set_name]

    def judge(self, outcome, may_be, arrived):
        """What is wrong with an outcome, if anything."""
        if outcome.kind == "hangs" and outcome.code not in may_be:
            return f"hangs: {outcome}"
        if outcome.kind == "refused" and outcome.code not in may_be:
            return f"refused: {outcome}"
        if outcome.done:
            self.done += 1
            return None if arrived() else "was done, and is not where it was moved to"
        return None

    def range(self, ns, may_be):
        entry = self.ask.look(lambda c: c.config.collections.find_one({"_id": ns}))
        chunks = entry and self.ask.look(lambda c: list(c.config.chunks.find({"uuid": entry["uuid"]}).sort("min", 1)))
        if not chunks:
            self.tell(f"move {self.ended}: {ns} is not there any more")
            return None
        chunk = self.rng.choice(chunks)
        least, most, donor = chunk["min"], chunk["max"], chunk["shard"]
        to = self.elsewhere(donor)
        is_point = not any(isinstance(v, MinKey) for v in least.values()) and "hashed" not in entry["key"].values()
        forms = [{"moveChunk": ns, "bounds": [least, most], "to": to}, {"moveRange": ns, "min": least, "max": most, "toShard": to},
                 {"moveRange": ns, "min": least, "toShard": to}]
        forms += [{"moveChunk": ns, "find": least, "to": to}] if is_point else []
        command = self.rng.choice(forms)
        if self.rng.random() < .2:
            command |= {"waitForDelete" if "moveRange" in command else "_waitForDelete": True}
        first = self.rng.randrange(2)
        arrived = lambda: self.owner(ns, least) == to  # noqa: E731
        outcome = self.carry_out("range", f"{next(iter(command))} {ns} from {least} {donor} ─► {to}", self.victims(donor, to),
                                 lambda: self.ask.insist("admin", command, first, REFUSED_S, arrived, PASSES))
        defined = may_be is MAY_BE_DEFINED
        return self.judge(outcome, may_be, lambda: defined or arrived())

    def database(self):
        db = self.rng.choice(["lists", "load", "d0", "d1", "d2"])
        donor = self.primary_shard(db)
        if donor is None:
            self.tell(f"move {self.ended}: {db} is not there")
            return None
        to, first = self.elsewhere(donor), self.rng.randrange(2)
        arrived = lambda: self.primary_shard(db) == to  # noqa: E731
        outcome = self.carry_out("database", f"movePrimary {db} {donor} ─► {to}", self.victims(donor, to),
                                 lambda: self.ask.insist("admin", {"movePrimary": db, "to": to}, first, REFUSED_S, arrived, PASSES))
        defined = db.startswith("d")
        return self.judge(outcome, MAY_BE_DEFINED if defined else MAY_BE, lambda: defined or arrived())
