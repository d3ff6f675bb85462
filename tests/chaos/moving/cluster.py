"""A cluster of real processes: config servers and shards, each a set of three, and routers."""
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import types

import pymongo
from pymongo.errors import PyMongoError

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import failover  # noqa: E402
import secured  # noqa: E402
import wire  # noqa: E402

# Sets of a cluster fail often here: who has lost two primaries within a short time waits for this.
ELECTION_MS = 3000
PRIMARY_S = 60
READY_S = 60


class Server(failover.Member):
    """A member of one of the cluster's sets."""

    def __init__(self, a, name, kind, port, i):
        settings = types.SimpleNamespace(binary=a.pandod, mode="kill", port=port, unsynced=a.unsynced, secured=secured.Secured("none", ""))
        super().__init__(settings, i, a.home / name)
        self.set_name, self.kind, self.given = name, kind, a.set

    def start(self):
        command = [self.a.binary, self.kind, "--dbpath", str(self.home), "--port", str(self.port), "--replSet", self.set_name,
                   "--logpath", str(self.home / "log"), "--logappend", "--bind_ip", "127.0.0.1", "--nounixsocket",
                   "--setParameter", "orphanCleanupDelaySecs=1"]
        if self.a.unsynced:
            command += ["--setParameter", "enableTestCommands=1", "--setParameter", "unsyncedWritesInMemory=1"]
        for one in self.given:
            command += ["--setParameter", one]
        with open(self.home / "out", "ab") as out:
            self.proc = subprocess.Popen(command, stdout=out, stderr=out)


class Set:
    """Config servers, or a shard."""

    def __init__(self, a, name, kind, port):
        self.name, self.kind = name, kind
        self.members = [Server(a, name, kind, port, i) for i in range(failover.MEMBERS)]
        self.uri = f"{name}/{','.join(m.name for m in self.members)}"

    def initiate(self):
        more = {"configsvr": True} if self.kind == "--configsvr" else {}
        failover.start_set(self.members, self.name, settings={"electionTimeoutMillis": ELECTION_MS}, **more)

    def primary(self, seconds=PRIMARY_S):
        """Whoever is the writable primary, or None if nobody becomes it."""
        end = time.monotonic() + seconds
        while True:
            for m in self.members:
                if m.hello(.5).get("isWritablePrimary"):
                    return m
            if time.monotonic() > end:
                return None
            time.sleep(.05)

    def client(self, **more):
        """Of the set itself, past the routers."""
        at = ",".join(m.name for m in self.members)
        return pymongo.MongoClient(f"mongodb://{at}/?replicaSet={self.name}", serverSelectionTimeoutMS=20000, **more)


class Router:
    def __init__(self, a, i, configdb):
        self.a, self.i, self.configdb, self.proc = a, i, configdb, None
        self.home, self.port = a.home / f"router{i}", a.port + i
        self.name, self.set_name = f"127.0.0.1:{self.port}", f"router{i}"
        self.home.mkdir(parents=True)

    def start(self):
        command = [self.a.pandos, "--configdb", self.configdb, "--port", str(self.port), "--bind_ip", "127.0.0.1", "--nounixsocket",
                   "--logpath", str(self.home / "log"), "--logappend"]
        for one in self.a.set:
            command += ["--setParameter", one]
        with open(self.home / "out", "ab") as out:
            self.proc = subprocess.Popen(command, stdout=out, stderr=out)

    def kill(self, sig=signal.SIGKILL):
        os.kill(self.proc.pid, sig)
        self.proc.wait()

    def answers(self):
        try:
            c = wire.Conn(self.name, timeout=2)
            try:
                return c.command("admin", {"ping": 1}).get("ok") == 1
            finally:
                c.close()
        except (OSError, ValueError):
            return False


class Cluster:
    def __init__(self, a):
        self.a = a
        self.config = Set(a, "config", "--configsvr", a.port + 10)
        self.shards = [Set(a, f"shard{i}", "--shardsvr", a.port + 20 + 10 * i) for i in range(a.shards)]
        self.routers = [Router(a, i, self.config.uri) for i in range(2)]
        self.doomed = set()

    def start(self):
        threads = [threading.Thread(target=s.initiate, daemon=True) for s in [self.config, *self.shards]]
        for t in threads:
            t.start()
        for t in threads:
            t.join(3 * READY_S)
        if not all(s.primary(0) for s in [self.config, *self.shards]):
            raise SystemExit("a set has no primary")
        for r in self.routers:
            r.start()
        self.until(lambda: all(r.answers() for r in self.routers), "the routers do not answer")
        admin = self.client(0).admin
        for s in self.shards:
            admin.command("addShard", s.uri, name=s.name)
        admin.command("balancerStop")

    def until(self, fine, otherwise):
        end = time.monotonic() + READY_S
        while not fine():
            if time.monotonic() > end:
                raise SystemExit(otherwise)
            time.sleep(.1)

    def uri(self, *routers):
        return f"mongodb://{','.join(self.routers[i].name for i in routers)}/"

    def client(self, *routers, **more):
        options = {"serverSelectionTimeoutMS": 20000, "connectTimeoutMS": 3000} | more
        return pymongo.MongoClient(self.uri(*routers or (0, 1)), **options)

    def set_named(self, name):
        return next(s for s in [self.config, *self.shards] if s.name == name)

    def processes(self):
        return [m for s in [self.config, *self.shards] for m in s.members] + self.routers

    def dead(self):
        """Processes that ended though nobody had killed them."""
        return [p for p in self.processes() if p.proc and p not in self.doomed and p.proc.poll() is not None]

    def state(self):
        """What shards have under way, by name of the shard."""
        found = {}
        for s in self.shards:
            try:
                config = s.client(socketTimeoutMS=10000).config
                found[s.name] = {c: list(config[c].find()) for c in UNDERWAY}
            except PyMongoError as e:
                found[s.name] = {"error": str(e)[:300]}
        return found

    def end(self):
        for p in self.processes():
            if p.proc and p.proc.poll() is None:
                p.proc.kill()


# Documents of moves and definitions that have not ended.
UNDERWAY = ["system.sharding_ddl_coordinators", "migrationCoordinators", "migrationRecipients", "collection_critical_sections", "rangeDeletions"]
