"""What moves and definitions have in common: one after the other, some under a kill, each told and counted."""
import json
import random
import statistics
import threading
import time
import traceback

from pymongo.errors import PyMongoError

DOWN_S = 1.5
# Of an operation of which none has ended yet.
USUAL_S = .8


class Changes(threading.Thread):
    """`count` changes, planned by `seed`. `failures` are what went wrong."""

    def __init__(self, run, name, count):
        super().__init__(daemon=True)
        self.cluster, self.kills, self.ask, self.tell, self.seed = run.cluster, run.kills, run.asking(), run.tell, run.a.seed
        self.name_, self.total = name, count
        self.ended, self.struck, self.failures, self.took, self.outcomes = 0, 0, [], {}, {}

    def run(self):
        for i in range(self.total):
            self.rng = random.Random(f"{self.seed} {self.name_} {i}")
            try:
                why = self.one(i)
            except Exception:  # noqa: BLE001 - the others go on, and this one has failed.
                why = traceback.format_exc()
            self.ended += 1
            if why:
                self.failures.append(f"{self.name_} {i}: {why}")
                self.tell(f"FAILED {self.name_} {i}: {why}")

    def carry_out(self, kind, what, victims, act):
        """Does `act`, an operation of this kind, with a kill at some moment of every other one, by chance; its outcome."""
        struck, strike = self.rng.random() < .55, None
        who, after, down = self.rng.choice(victims), self.rng.random(), self.rng.random() * DOWN_S
        usual = statistics.median(self.took.get(kind, [USUAL_S]))
        if struck:
            self.struck += 1
            strike = self.kills.strike(who, after * usual, down)
        outcome = act()
        under = f", {who} killed after {after * usual:.2f} s" if struck else ""
        if not struck and outcome.done:
            self.took.setdefault(kind, []).append(outcome.seconds)
        self.outcomes[outcome.kind] = self.outcomes.get(outcome.kind, 0) + 1
        self.tell(f"{self.name_} {self.ended}: {what}{under}: {outcome}")
        if strike:
            strike.join()
        if outcome.kind == "hangs":
            self.write_down(what)
        return outcome

    def write_down(self, what):
        """What everybody was at when something hung."""
        told = {"what": what, "state": self.cluster.state(), "operations": {}}
        for i in range(len(self.cluster.routers)):
            try:
                told["operations"][i] = list(self.cluster.client(i, socketTimeoutMS=20000).admin.aggregate([{"$currentOp": {"allUsers": True, "idleCursors": False}}]))
            except PyMongoError as e:
                told["operations"][i] = str(e)
        path = self.cluster.a.home / f"hang-{self.name_}-{self.ended}.json"
        path.write_text(json.dumps(told, default=str, indent=1))
        self.tell(f"what was under way: {path}")

    def owner(self, ns, least):
        """Who has the chunk that begins there, or None."""
        def find(client):
            entry = client.config.collections.find_one({"_id": ns})
            chunk = entry and client.config.chunks.find_one({"uuid": entry["uuid"], "min": least})
            return chunk and chunk["shard"]

        return self.ask.look(find)

    def primary_shard(self, db):
        entry = self.ask.look(lambda c: c.config.databases.find_one({"_id": db}))
        return entry and entry["primary"]

    def pause(self):
        time.sleep(self.rng.random() * .3)
