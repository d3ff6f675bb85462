"""What must be true at the end of a round, a method for each."""
import bisect
import re
import subprocess
import time

from . import users
from .servers import DONOR, RECIPIENT, Six

EQUAL_S, QUIET_S = 60, 60
FIRST = 5


class Verdict:
    def __init__(self, rnd):
        self.round, self.six, self.users = rnd, rnd.six, rnd.users
        self.moving, self.staying = rnd.moving, rnd.staying

    def checks(self):
        return [self.nobody_fell, self.sets_are_whole, self.users_were_told_the_truth, self.nobody_was_told_what_was_before, self.blockers_tell_the_same, self.recipients_know_of_no_split,
                self.nothing_was_written_behind_the_block, self.streams, self.documents, self.counters, self.registers, self.other_data, self.history,
                self.it_is_forgotten, self.donor_has_nothing_more, self.members_are_equal]

    def judge(self):
        """What is wrong."""
        failures = []
        for check in self.checks():
            try:
                wrong = list(check())
            except (SystemExit, OSError, LookupError, TypeError) as e:
                wrong = [f"{type(e).__name__}: {e}"]
            name = check.__name__.replace("_", " ")
            failures += [f"{name}: {w}" for w in wrong[:FIRST]]
            if wrong[FIRST:]:
                failures.append(f"{name}: {len(wrong)} in all")
        return failures

    def nobody_fell(self):
        for m in self.six.dead():
            yield f"member {m.i} ended by itself with {m.proc.returncode}"
        yield from self.round.kills.late

    def sets_are_whole(self):
        for name, members in self.six.of.items():
            Six.until(lambda: Six.in_place(members, name), f"the {name} is not whole: {[m.hello() for m in members]}", QUIET_S)
            config = self.six.primary(name).ask({"replSetGetConfig": 1})["config"]
            hosts = [m["host"] for m in config["members"]]
            if hosts != [m.name for m in members] or config["_id"] != name:
                yield f"the configuration of the {name} is {config}"
            if any(m["votes"] != 1 or m["hidden"] for m in config["members"]):
                yield f"a member of the {name} does not vote: {config}"

    def users_were_told_the_truth(self):
        for u in self.users.all:
            yield from u.wrong[:FIRST]
            if len(u.done) < 10:
                yield f"{u} has done {len(u.done)} things"
            if u.at() != self.side_of(u.tenants[0]):
                yield f"{u} is at the {u.at()}"

    def nobody_was_told_what_was_before(self):
        for u in self.users.latecomers:
            if u.wrong:
                yield f"{u.stale} times: {u.wrong[0]}"

    def blockers_tell_the_same(self):
        """On every member of the donor, as soon as it knows."""
        def told(m, tenant):
            return m.read({"find": "base"}, users.db_of(tenant)).get("code", 0)

        for m in self.six.of[DONOR]:
            end, left = time.monotonic() + 10, [] if self.round.forgotten else self.moving
            while left and time.monotonic() < end:
                left = [t for t in left if told(m, t) != 321]
            yield from (f"member {m.i} answers {told(m, t)} for {t}, which has moved" for t in left)
            yield from (f"member {m.i} answers {told(m, t)} for {t}, which stayed" for t in self.staying if told(m, t))
        for m in self.six.of[RECIPIENT]:
            yield from (f"recipient {m.i} answers {told(m, t)} for {t}" for t in self.moving if told(m, t))

    def recipients_know_of_no_split(self):
        for m in self.six.of[RECIPIENT]:
            yield from (f"recipient {m.i} has {d}" for d in m.all("config", "tenantSplitDonors"))

    def state(self):
        return self.round.state or self.six.primary(DONOR).all("config", "tenantSplitDonors", {"_id": self.round.split.id})[0]

    def nothing_was_written_behind_the_block(self):
        state = self.state()
        if state["state"] != "committed":
            yield f"the document says {state}"
        ours = re.compile(f"^({'|'.join(self.moving)})_")
        for m in self.six.of[DONOR]:
            for entry in m.all("local", "oplog.rs", {"ts": {"$gt": state["blockTimestamp"]}}):
                inner = [entry, *(entry["o"].get("applyOps") or [])] if isinstance(entry.get("o"), dict) else [entry]
                if any(ours.match(e.get("ns", "")) for e in inner):
                    yield f"member {m.i} has {entry} behind {state['blockTimestamp']}"

    def owner(self, tenant):
        return self.six.primary(self.side_of(tenant))

    def side_of(self, tenant):
        return RECIPIENT if tenant in self.moving else DONOR

    def documents(self):
        for u in [*self.users.keepers, *self.users.driven]:
            coll = "docs" if u in self.users.keepers else "driven"
            there = [d["_id"] for d in self.owner(u.tenants[0]).all(u.db, coll)]
            there = [i for i in there if i.startswith(f"{u.number}-")]
            yield from (f"{u}: {i} was acknowledged and is lost" for i in set(u.ids) - set(there))
            yield from (f"{u}: {i} is there and was never acknowledged" for i in set(there) - set(u.ids))
            if len(set(there)) != len(there):
                yield f"{u}: something is there twice"

    def counters(self):
        for u in self.users.keepers:
            found = {d["_id"]: d["n"] for d in self.owner(u.tenants[0]).all(u.db, "counters")}
            for i, count in (u.number, u.count), (u.number + users.OTHER, u.others):
                if found.get(i, 0) != count:
                    yield f"{u}: counter {i} is {found.get(i, 0)} instead of {count}"

    def registers(self):
        """Values are unique, so they form a chain; no command may see less of it than one that had returned when it was called."""
        for tenant in {u.tenants[0] for u in self.users.registers}:
            seen = [s for u in self.users.registers if u.tenants[0] == tenant for s in u.seen]
            end = self.owner(tenant).all(users.db_of(tenant), "register")[0]["v"]
            yield from (f"{tenant}: {w}" for w in judge_register(seen, end))

    def other_data(self):
        """What was there from the beginning, of all tenants."""
        for tenant in self.moving + self.staying:
            found = self.owner(tenant).all(users.db_of(tenant), "base")
            if sorted(d["_id"] for d in found) != list(range(self.round.documents_of(tenant))):
                yield f"{tenant} has {str(found)[:500]}"

    def streams(self):
        for s in self.users.streams:
            tenant = s.tenant
            p = self.owner(tenant)
            reply = p.ask({"insert": "lists", "documents": [{"_id": "end"}], "writeConcern": {"w": "majority"}}, users.db_of(tenant), 20)
            if reply.get("ok") != 1:
                yield f"the end of the lists of {tenant} was not written: {reply}"
        for s in self.users.streams:
            s.join(30)
            yield from s.trouble
            if not s.complete and not s.trouble:
                yield f"the change stream of {s.tenant} at the {s.side} did not reach the end"

    def history(self):
        for name, (history, tenants) in self.users.groups.items():
            for t in tenants:
                for doc in self.owner(t).all(users.db_of(t), "lists", {"_id": {"$ne": "end"}}):
                    history.line(f"end {doc['_id']} {','.join(map(str, doc['l']))}")
            history.file.close()
            judged = subprocess.run([self.round.a.checker, history.file.name], capture_output=True, text=True)
            lines = judged.stdout.splitlines() + judged.stderr.splitlines()
            self.round.tell(f"{name}: {lines[0] if lines else 'check-history said nothing'}")
            if judged.returncode:
                yield from (f"{name}: {line}" for line in lines[1:])

    def it_is_forgotten(self):
        wrong = None if self.round.forgotten else self.round.split.forget()
        if wrong:
            yield wrong

    def donor_has_nothing_more(self):
        """What is left of tenants that have moved, which can be read now, is what the new set has of them, or older."""
        for u in self.users.keepers + self.users.driven:
            if u.moves:
                coll = "docs" if u in self.users.keepers else "driven"
                left = {d["_id"] for d in self.left(u.tenants[0], coll)}
                yield from (f"{u}: {i} is only at the donor" for i in left - set(u.ids))
        for name, (history, tenants) in self.users.groups.items():
            for t in tenants if tenants[0] in self.moving else []:
                new = {d["_id"]: d.get("l") for d in self.owner(t).all(users.db_of(t), "lists")}
                for doc in self.left(t, "lists"):
                    if new.get(doc["_id"], [])[:len(doc["l"])] != doc["l"]:
                        yield f"list {doc['_id']} of {t} is {doc['l']} at the donor and {new.get(doc['_id'])} at the new set"

    def left(self, tenant, coll):
        return self.six.primary(DONOR).all(users.db_of(tenant), coll)

    def members_are_equal(self):
        for name, members in self.six.of.items():
            for tenant in self.tenants_at(name):
                end = time.monotonic() + EQUAL_S
                while True:
                    hashes = [hash_of(m, users.db_of(tenant)) for m in members]
                    if len({str(h) for h in hashes}) == 1 and hashes[0]:
                        break
                    if time.monotonic() > end:
                        yield f"{tenant} of the {name} is not the same on all members: {hashes}"
                        break
                    time.sleep(.2)

    def tenants_at(self, _):
        """Whose data a set has: of those that have moved the donor has what was there before."""
        return self.moving + self.staying


def hash_of(member, db):
    return member.ask({"dbHash": 1, "$readPreference": {"mode": "secondaryPreferred"}}, db, 20).get("collections")


def judge_register(seen, end):
    """What is wrong with it, if each successful set names the value before."""
    after = {}
    for _, _, kind, value, before in seen:
        if kind == "set":
            if before in after:
                yield f"{before} was replaced by {after[before]} and by {value}"
            after[before] = value
    at, places = 0, {0: 0}
    while at in after and len(places) <= len(after):
        at = after[at]
        places[at] = len(places)
    if at != end or len(places) != len(after) + 1:
        yield f"the chain of {len(after)} values ends with {at} after {len(places) - 1}, and {end} is there"
    returned = sorted((r, places.get(v, -1), v) for _, r, _, v, _ in seen)
    best, most = [], -1
    for _, place, _ in returned:
        most = max(most, place)
        best.append(most)
    times = [r for r, _, _ in returned]
    for called, _, kind, value, _ in seen:
        i = bisect.bisect_left(times, called)
        least = best[i - 1] if i else -1
        place = places.get(value, -1)
        if place < least or (kind == "set" and place == least and i):
            yield f"a {kind} of {value} (number {place}) came after number {least} had been told"
