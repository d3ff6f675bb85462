"""Six processes without a name: three voters that stay the donor and three hidden members that leave it, or two sets of three."""
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time
import types

import bson

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import failover  # noqa: E402
import secured  # noqa: E402
import wire  # noqa: E402

DONOR, RECIPIENT, TAG = "donor", "recipient", "leaves"
STAY, LEAVE = 3, 3
ELECTION_MS = 3000
READY_S = 60
# A member that rolls back is over it by then; it answers this code meanwhile (NotPrimaryOrSecondary).
ROLLBACK_S, NOT_READABLE = 10, 13436
# What may be forgotten is gone then.
GONE_MS = 500


def other(side):
    return RECIPIENT if side == DONOR else DONOR


class Conn(wire.Conn):
    """Documents are those of the bson package."""

    def command(self, db, cmd):
        body = struct.pack("<I", 0) + b"\0" + bson.encode({**cmd, "$db": db})
        self.send(wire.header(16 + len(body), wire.OP_MSG) + body)
        return bson.decode(self.recv()[3][5:])


class Server(failover.Member):
    def __init__(self, a, i, home):
        settings = types.SimpleNamespace(binary=a.pandod, mode="kill", port=a.port, unsynced=False, secured=secured.Secured("none", ""))
        super().__init__(settings, i, home)
        self.given, self.killed = a.set, False

    def start(self):
        command = [self.a.binary, "--serverless", "true", "--dbpath", str(self.home), "--port", str(self.port), "--logpath", str(self.home / "log"),
                   "--logappend", "--bind_ip", "127.0.0.1", "--nounixsocket", "--setParameter", "shardSplitGarbageCollectionDelayMS=500", "--setParameter", f"tenantMigrationGarbageCollectionDelayMS={GONE_MS}"]
        for one in self.given:
            command += ["--setParameter", one]
        with open(self.home / "out", "ab") as out:
            self.proc = subprocess.Popen(command, stdout=out, stderr=out)
        self.killed = False

    def kill(self, *given):
        self.killed = True
        super().kill(*given)

    def silence(self):
        """Not to be killed meanwhile."""
        self.killed = True
        os.kill(self.proc.pid, signal.SIGSTOP)

    def speak(self):
        os.kill(self.proc.pid, signal.SIGCONT)
        self.killed = False

    def ask(self, cmd, db="admin", timeout=5.0):
        """The reply, or the error of the network as one."""
        try:
            c = Conn(self.name, timeout=timeout)
            try:
                return c.command(db, cmd)
            finally:
                c.close()
        except (OSError, ValueError) as e:
            return {"ok": 0, "network": True, "errmsg": f"{type(e).__name__}: {e}"}

    def read(self, cmd, db="admin", timeout=5.0):
        """The same of a read on whatever member this is: one that rolls back meanwhile is asked again."""
        end = time.monotonic() + ROLLBACK_S
        while True:
            reply = self.ask({**cmd, "$readPreference": {"mode": "secondaryPreferred"}}, db, timeout)
            if reply.get("code") != NOT_READABLE or time.monotonic() > end:
                return reply
            time.sleep(.05)

    def hello(self, timeout=1.0):
        return self.ask({"hello": 1}, timeout=timeout)

    def all(self, db, coll, find=None, timeout=20.0, **more):
        """All documents of a collection, on whatever member this is."""
        cmd = {"find": coll, "filter": find or {}, "batchSize": 100_000, **more}
        reply = self.read(cmd, db, timeout)
        if reply.get("ok") != 1:
            raise LookupError(f"{db}.{coll} on {self.name}: {reply.get('code')} {reply.get('errmsg')}")
        return reply["cursor"]["firstBatch"]


class Six:
    """The set that splits."""

    # Tenants go from the donor to the recipient, and not back.
    there_and_back = False

    def __init__(self, a, home):
        self.members = [Server(a, i, home) for i in range(STAY + LEAVE)]
        self.of = {DONOR: self.members[:STAY], RECIPIENT: self.members[STAY:]}

    def start(self):
        self.start_members()
        leaves = {"votes": 0, "priority": 0, "hidden": True}
        config = [{"_id": m.i, "host": m.name, **({} if m.i < STAY else {**leaves, "tags": {TAG: f"r{m.i - STAY}"}})} for m in self.members]
        self.initiate(DONOR, config)
        self.until(lambda: self.in_place(self.members), "the set did not settle")

    def start_members(self):
        for m in self.members:
            m.start()
        self.until(lambda: all(m.hello().get("ok") for m in self.members), "the members do not answer")

    def initiate(self, name, config):
        settings = {"electionTimeoutMillis": ELECTION_MS}
        r = self.of[name][0].ask({"replSetInitiate": {"_id": name, "members": config, "settings": settings}}, timeout=30)
        if r.get("ok") != 1:
            raise SystemExit(f"replSetInitiate: {r}")

    @staticmethod
    def until(fine, otherwise, seconds=READY_S):
        end = time.monotonic() + seconds
        while not fine():
            if time.monotonic() > end:
                raise SystemExit(otherwise)
            time.sleep(.05)

    @staticmethod
    def in_place(members, name=DONOR):
        """One primary, and all others secondaries, of the set of that name."""
        told = [m.hello() for m in members]
        named = all(h.get("setName") == name for h in told)
        return named and sum(bool(h.get("isWritablePrimary")) for h in told) == 1 and all(h.get("isWritablePrimary") or h.get("secondary") for h in told)

    def primary(self, name, seconds=READY_S):
        end = time.monotonic() + seconds
        while True:
            for m in self.of[name]:
                h = m.hello(.5)
                if h.get("isWritablePrimary") and h.get("setName") == name:
                    return m
            if time.monotonic() > end:
                return None
            time.sleep(.01)

    def dead(self):
        """Those who ended though nobody killed them."""
        return [m for m in self.members if m.proc and not m.killed and m.proc.poll() is not None]

    def end(self):
        for m in self.members:
            if m.proc and m.proc.poll() is None:
                m.proc.kill()
                m.proc.wait()


class Two(Six):
    """Two sets that are there from the beginning."""

    there_and_back = True

    def start(self):
        self.start_members()
        for name, members in self.of.items():
            self.initiate(name, [{"_id": i, "host": m.name} for i, m in enumerate(members)])
        for name, members in self.of.items():
            self.until(lambda: self.in_place(members, name), f"the {name} did not settle")

    def connection(self, name):
        return f"{name}/{','.join(m.name for m in self.of[name])}"
