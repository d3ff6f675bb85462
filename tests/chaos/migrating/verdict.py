"""What must be true at the end of a round of migrations, besides what is true of a split's users."""
import time

from splitting import users, verdict
from splitting.servers import other

from . import migration
from .users import MovedStream

FIRST = verdict.FIRST


class Verdict(verdict.Verdict):
    def checks(self):
        return [self.nobody_fell, self.sets_are_whole, self.users_were_told_the_truth, self.nobody_was_told_what_was_before, self.all_is_forgotten,
                self.streams, self.moved_streams, self.documents, self.counters, self.registers, self.other_data, self.early_writes, self.history,
                self.each_tenant_is_on_one_side, self.collections_are_valid, self.members_are_equal]

    def side_of(self, tenant):
        return self.round.owner[tenant]

    def tenants_at(self, name):
        return [t for t in self.moving + self.staying if self.side_of(t) == name]

    def all_is_forgotten(self):
        """Nobody knows of a migration any more."""
        yield from (f"member {i} has {d}" for i, d in migration.until_gone(self.six))

    def each_tenant_is_on_one_side(self):
        """On every member: the owner's all have it, and the others' have nothing of it."""
        for name, members in self.six.of.items():
            ours = {users.db_of(t) for t in self.tenants_at(name)}
            for m in members:
                end = time.monotonic() + verdict.QUIET_S
                while True:
                    reply = m.ask({"listDatabases": 1, "nameOnly": True, "$readPreference": {"mode": "secondaryPreferred"}}, timeout=20)
                    there = {d["name"] for d in reply.get("databases", []) if "_" in d["name"]}
                    if there == ours or time.monotonic() > end:
                        break
                    time.sleep(.2)
                yield from (f"member {m.i} of the {name} has {db}, which is at the {other(name)}" for db in sorted(there - ours))
                yield from (f"member {m.i} of the {name} has nothing of {db}" for db in sorted(ours - there))

    def lists_of(self, tenant):
        return {d["_id"]: d["l"] for d in self.owner(tenant).all(users.db_of(tenant), "lists", {"_id": {"$ne": "end"}})}

    def moved_streams(self):
        for s in self.users.streams:
            if isinstance(s, MovedStream):
                yield from s.judge(self.lists_of(s.tenant))
                if not any(s.parts):
                    yield f"the change stream of {s.tenant} has shown nothing"

    def early_writes(self):
        """What bystanders were told is written is there once; what they were refused may not be, unless nothing was said."""
        for tenant in {t for b in self.users.latecomers for t in b.maybe}:
            taken = set().union(*(b.taken.get(tenant, set()) for b in self.users.latecomers))
            maybe = set().union(*(b.maybe.get(tenant, set()) for b in self.users.latecomers))
            found = self.owner(tenant).all(users.db_of(tenant), "base", {"_id": 0})[0].get("early", [])
            yield from (f"{tenant}: {n} was acknowledged by the set that it came to, and is lost" for n in sorted(taken - set(found)))
            yield from (f"{tenant}: {n} is there, and nobody wrote it" for n in sorted(set(found) - maybe))
            if len(set(found)) != len(found):
                yield f"{tenant}: something is there twice: {found}"

    def collections_are_valid(self):
        for tenant in self.moving:
            for m in self.six.of[self.side_of(tenant)]:
                for coll in ("base", "docs", "counters", "lists", "register", "driven"):
                    reply = m.ask({"validate": coll, "full": True, "$readPreference": {"mode": "secondaryPreferred"}}, users.db_of(tenant), 60)
                    if reply.get("ok") == 1 and not reply.get("valid") or reply.get("ok") != 1 and reply.get("code") != 26:
                        yield f"member {m.i}, {coll} of {tenant}: {reply}"
