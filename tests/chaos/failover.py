#!/usr/bin/env python3
"""How long a real three-member set is without a primary, and whether it loses anything.

    failover.py BINARY [--mode kill|stop|stepdown|cut|all-down] [-n ROUNDS] [--port P] [--writers W] [--dir D] [--json FILE]
                [--auth none|keyfile|x509]

Three processes of BINARY form a set with default settings. W writers insert at w: "majority" all the time and note
what was acknowledged. Each round does one thing to the primary, once all members are in their places:

  kill      SIGKILL; the process is started again afterwards
  stop      SIGSTOP: connections stay open and nobody answers; SIGCONT once there is another primary
  stepdown  replSetStepDown
  cut       the primary's network goes silent (each member has a network namespace of its own; needs root and `ip`)
  all-down  SIGKILL of all three at once
  random    SIGKILL of one, two or all members, whoever they are; they come back after up to two seconds

and measures until another member says it is a writable primary, and until a write is acknowledged. In the end every
acknowledged document must be on every member, and dbHash must agree. With --unsynced (pandod only) a killed process
loses all it had not synced; then half of the writers write at w: 1 with j: true, and what they were told is on disk must be
in the collection or, rolled back by a new primary, in a rollback file. With --auth members log in to each other with a
key or with certificates, and the writers with a password. Standard library only; runs a mongod as well.
Ends with `N passed, N failed` (rounds; a lost document fails the last one).
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import secured  # noqa: E402
import wire  # noqa: E402

MEMBERS = 3
SETTLE_S = 60
FAILOVER_S = 60
COOLDOWN_S = 11


class Member:
    def __init__(self, a, i, home):
        self.i, self.home, self.a = i, home / str(i), a
        self.host = f"10.77.0.{i + 1}" if a.mode == "cut" else "127.0.0.1"
        self.port = a.port if a.mode == "cut" else a.port + i
        self.name, self.proc = f"{self.host}:{self.port}", None
        self.home.mkdir(parents=True)

    def start(self):
        cmd = [self.a.binary, "--dbpath", str(self.home), "--port", str(self.port), "--replSet", "chaos",
               "--logpath", str(self.home / "log"), "--logappend", "--bind_ip", f"127.0.0.1,{self.host}",
               *self.a.secured.flags()]
        if self.a.unsynced:
            cmd += ["--setParameter", "enableTestCommands=1", "--setParameter", "unsyncedWritesInMemory=1"]
        if self.a.mode == "cut":
            cmd = ["ip", "netns", "exec", f"pando{self.i}"] + cmd
        self.proc = subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def pid(self):
        """Of the server, not of `ip netns exec` (which becomes it)."""
        return self.proc.pid

    def kill(self, sig=signal.SIGKILL):
        os.kill(self.pid(), sig)
        if sig == signal.SIGKILL:
            self.proc.wait()

    def connect(self, timeout):
        """Logged in, where that is asked for."""
        return self.a.secured.log_in(wire.Conn(self.name, timeout=timeout))

    def ask(self, doc, db="admin", timeout=1.0):
        c = self.connect(timeout)
        try:
            return c.command(db, doc)
        finally:
            c.close()

    def hello(self, timeout=1.0):
        try:
            c = wire.Conn(self.name, timeout=timeout)
            try:
                return c.command("admin", {"hello": 1})
            finally:
                c.close()
        except (OSError, ValueError):
            return {}


class Net:
    """A bridge and a namespace per member: what goes silent is the kernel's own network."""

    def __init__(self, on):
        self.on = on
        if on:
            self.down()
            self.ip("link add pando-br type bridge", "link set pando-br up", "addr add 10.77.0.254/24 dev pando-br")
            for i in range(MEMBERS):
                self.ip(f"netns add pando{i}", f"link add pv{i} type veth peer name eth0 netns pando{i}",
                        f"link set pv{i} master pando-br up", f"-n pando{i} addr add 10.77.0.{i + 1}/24 dev eth0",
                        f"-n pando{i} link set eth0 up", f"-n pando{i} link set lo up")

    def ip(self, *lines):
        for line in lines:
            subprocess.run(["ip", *line.split()], check=True)

    def cut(self, i, on):
        # Off the bridge: frames vanish, no error reaches anybody.
        self.ip(f"link set pv{i} nomaster" if on else f"link set pv{i} master pando-br")

    def down(self):
        for i in range(MEMBERS):
            subprocess.run(["ip", "netns", "del", f"pando{i}"], stderr=subprocess.DEVNULL)
            subprocess.run(["ip", "link", "del", f"pv{i}"], stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "link", "del", "pando-br"], stderr=subprocess.DEVNULL)


class Pool:
    """A connection to each member, logged in beforehand, as a driver keeps them."""

    def __init__(self, members):
        self.members, self.conns, self.filled, self.asked = members, {}, 0.0, None

    def get(self, at):
        i = at % MEMBERS
        if i not in self.conns:
            self.conns[i] = self.members[i].connect(0.5)
        return self.conns[i]

    def leads(self, at):
        """Asked when another one is tried, not before each write."""
        if self.asked == at:
            return True
        try:
            conn = self.get(at)
            conn.sock.settimeout(0.5)
            leads = conn.command("admin", {"hello": 1}).get("isWritablePrimary")
            conn.sock.settimeout(15)
        except (OSError, ValueError, RuntimeError):
            self.drop(at)
            return False
        self.asked = at if leads else None
        return leads

    def drop(self, at):
        conn = self.conns.pop(at % MEMBERS, None)
        self.asked = None
        if conn:
            conn.close()

    def fill(self):
        """Now and then opens those that are missing."""
        if time.monotonic() < self.filled + 1:
            return
        self.filled = time.monotonic()
        for i, m in enumerate(self.members):
            if i not in self.conns:
                try:
                    self.conns[i] = m.connect(0.5)
                    self.conns[i].sock.settimeout(15)
                except (OSError, ValueError, RuntimeError):
                    pass


class Writers:
    """Insert at w: majority until told to stop; `acked` holds what was acknowledged, `on_disk` what was at w: 1, j: true."""

    def __init__(self, members, count, journaled):
        self.members, self.stop, self.lock = members, threading.Event(), threading.Lock()
        self.acked, self.on_disk, self.unknown, self.last = [], [], [], 0.0
        self.journaled = journaled
        self.threads = [threading.Thread(target=self.run, args=(w,), daemon=True) for w in range(count)]
        for t in self.threads:
            t.start()

    def run(self, w):
        n, at = 0, 0
        conns = Pool(self.members)
        journaled = self.journaled and w % 2 == 1
        concern = {"w": 1, "j": True} if journaled else {"w": "majority", "wtimeout": 15000}
        told = self.on_disk if journaled else self.acked
        while not self.stop.is_set():
            if not conns.leads(at):
                at += 1
                time.sleep(0.005)
                continue
            key = f"{w}-{n}"
            n += 1
            try:
                r = conns.get(at).command("chaos", {"insert": "c", "documents": [{"_id": key, "w": w}],
                                                    "writeConcern": concern})
                good = r.get("ok") == 1 and not r.get("writeErrors") and not r.get("writeConcernError")
                with self.lock:
                    (told if good else self.unknown).append(key)
                    if good and not journaled:
                        self.last = time.time()
                if r.get("ok") != 1:
                    conns.asked, at = None, at + 1
            except (OSError, ValueError, RuntimeError):
                with self.lock:
                    self.unknown.append(key)
                conns.drop(at)
                at += 1
            conns.fill()

    def end(self):
        self.stop.set()
        for t in self.threads:
            t.join(20)


def states(members):
    out = []
    for m in members:
        h = m.hello()
        out.append("P" if h.get("isWritablePrimary") else "S" if h.get("secondary") else "-")
    return out


def start_set(members, name, **more):
    """`more` stands in the configuration."""
    for m in members:
        m.start()
    give_up = time.monotonic() + 60
    while not all(m.hello() for m in members):
        if time.monotonic() > give_up:
            raise SystemExit("the members do not answer within a minute")
        time.sleep(0.1)
    config = {"_id": name, "members": [{"_id": m.i, "host": m.name} for m in members], **more}
    # Until there is a user, whoever comes from this host may do this.
    r = wire.Conn(members[0].name, timeout=30).command("admin", {"replSetInitiate": config})
    if r.get("ok") != 1:
        raise SystemExit(f"replSetInitiate: {r}")
    primary = settle(members)
    if primary.a.secured.asks_for_logins:
        primary.a.secured.create_user(wire.Conn(primary.name, timeout=30))


def settle(members):
    end = time.time() + SETTLE_S
    while time.time() < end:
        s = states(members)
        if sorted(s) == ["P", "S", "S"]:
            return members[s.index("P")]
        time.sleep(0.05)
    raise SystemExit(f"failover: the set did not settle: {states(members)}")


def one_round(a, members, net, writers):
    """(seconds to another writable primary, seconds to an acknowledged write)"""
    primary = settle(members)
    time.sleep(a.rest)
    if a.mode == "random":
        return kill_some(members, writers)
    if a.mode == "kill":
        # Two primaries lost within ten seconds: the second is replaced after the election timeout.
        time.sleep(max(0, a.last_kill + COOLDOWN_S - time.time()))
        a.last_kill = time.time()
    t0 = time.time()
    if a.mode == "kill":
        primary.kill()
    elif a.mode == "stop":
        primary.kill(signal.SIGSTOP)
    elif a.mode == "cut":
        net.cut(primary.i, True)
    elif a.mode == "all-down":
        for m in members:
            m.kill()
        t0 = time.time()
        for m in members:
            m.start()
    else:
        r = primary.ask({"replSetStepDown": 2, "secondaryCatchUpPeriodSecs": 2}, timeout=30)
        if r.get("ok") != 1:
            print(f"the step-down was refused: {r.get('errmsg')}")
            return None, 0
    others = members if a.mode == "all-down" else [m for m in members if m is not primary]
    found = None
    while found is None and time.time() - t0 < FAILOVER_S:
        for m in others:
            if m.hello(0.3).get("isWritablePrimary"):
                found = time.time() - t0
                break
        time.sleep(0.002)
    while writers.last < t0 + (found or 0) and time.time() - t0 < FAILOVER_S:
        time.sleep(0.005)
    wrote = time.time() - t0
    if a.mode == "kill":
        primary.start()
    elif a.mode == "stop":
        primary.kill(signal.SIGCONT)
    elif a.mode == "cut":
        net.cut(primary.i, False)
    return found, wrote


def kill_some(members, writers):
    """Kills members at random moments, and starts them again; (seconds from the last start to a primary, to a write)"""
    doomed = random.sample(members, random.choice([1, 1, 2, 3]))
    together = random.random() < .5
    for m in doomed:
        time.sleep(0 if together else random.random() * .5)
        m.kill()
    for m in doomed:
        time.sleep(random.choice([0, 0, random.random()]))
        m.start()
    t0, found = time.time(), None
    while found is None and time.time() - t0 < FAILOVER_S:
        if any(m.hello(0.3).get("isWritablePrimary") for m in members):
            found = time.time() - t0
    while writers.last < t0 and time.time() - t0 < FAILOVER_S:
        time.sleep(0.005)
    return found, time.time() - t0


def rolled_back(members):
    """What the members' rollback files hold, as one run of bytes: keys are found in it as they are."""
    return b"".join(f.read_bytes() for m in members for f in m.home.glob("rollback/**/*.bson"))


def stamp(ts):
    """(seconds, increment)"""
    return ts["$timestamp"]["t"], ts["$timestamp"]["i"]


def check(members, writers):
    """Acknowledged documents that some member does not have, and members that differ."""
    primary = settle(members)
    hashes, lost, aside = {}, [], []
    goal = primary.ask({"find": "oplog.rs", "sort": {"$natural": -1}, "limit": 1}, db="local")["cursor"]["firstBatch"][0]["ts"]
    for m in members:
        end = time.time() + SETTLE_S
        while time.time() < end:
            r = m.ask({"replSetGetStatus": 1})
            if stamp(r["optimes"]["appliedOpTime"]["ts"]) >= stamp(goal):
                break
            time.sleep(0.1)
    time.sleep(1)
    for m in members:
        c = m.connect(60)
        r = c.ok("chaos", {"find": "c", "projection": {"_id": 1}, "batchSize": 100_000,
                           "$readPreference": {"mode": "secondaryPreferred"}})
        have, cur = {d["_id"] for d in r["cursor"]["firstBatch"]}, r["cursor"]["id"]
        while int(cur.get("$numberLong", 0) if isinstance(cur, dict) else cur):
            r = c.ok("chaos", {"getMore": cur, "collection": "c"})
            have |= {d["_id"] for d in r["cursor"]["nextBatch"]}
            cur = r["cursor"]["id"]
        lost += [(m.name, k) for k in writers.acked if k not in have]
        aside = [k for k in writers.on_disk if k not in have]
        hashes[m.name] = c.ok("chaos", {"dbHash": 1, "$readPreference": {"mode": "secondaryPreferred"}})["md5"]
        c.close()
    files = rolled_back(members)
    lost += [("rollback files", k) for k in aside if k.encode() + b"\0" not in files]
    if writers.on_disk:
        print(f"{len(writers.on_disk)} acknowledged at w: 1, j: true; {len(aside)} of them rolled back, into {len(files)} bytes of files")
    return lost, hashes


def nothing_lost(members, writers):
    """Whether every member has every acknowledged document, and all the same; tells the figures."""
    lost, hashes = check(members, writers)
    print(f"acknowledged {len(writers.acked)}, unknown {len(writers.unknown)}, lost {len(lost)} {lost[:5]}")
    if lost or len(set(hashes.values())) != 1:
        print(f"hashes {hashes}")
        return False
    return True


def end_all(members):
    for m in members:
        if m.proc and m.proc.poll() is None:
            m.proc.send_signal(signal.SIGCONT)
            m.proc.kill()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("binary")
    ap.add_argument("--mode", choices=["kill", "stop", "stepdown", "cut", "all-down", "random"], default="kill")
    ap.add_argument("-n", type=int, default=20)
    ap.add_argument("--port", type=int, default=28300)
    ap.add_argument("--writers", type=int, default=4)
    ap.set_defaults(last_kill=0)
    ap.add_argument("--rest", type=float, default=0.5, help="seconds of load before each round")
    ap.add_argument("--unsynced", action="store_true", help="a killed process loses what it had not synced")
    ap.add_argument("--auth", choices=secured.KINDS, default="none")
    ap.add_argument("--dir")
    ap.add_argument("--json")
    a = ap.parse_args()
    a.binary = os.path.abspath(a.binary)
    home = pathlib.Path(a.dir or tempfile.mkdtemp(prefix="pando-chaos-"))
    a.secured = secured.Secured(a.auth, home / "secrets")
    net = Net(a.mode == "cut")
    members = [Member(a, i, home) for i in range(MEMBERS)]
    passed, found, wrote, writers = 0, [], [], None
    try:
        start_set(members, "chaos")
        writers = Writers(members, a.writers, a.unsynced)
        for n in range(a.n):
            f, w = one_round(a, members, net, writers)
            if f is None:
                print(f"round {n}: no primary within {FAILOVER_S} s", flush=True)
                continue
            passed += 1
            found.append(f)
            wrote.append(w)
            print(f"round {n}: writable primary after {f * 1000:.0f} ms, a write acknowledged after {w * 1000:.0f} ms", flush=True)
        writers.end()
        if not nothing_lost(members, writers):
            passed = min(passed, a.n - 1)
    finally:
        end_all(members)
        net.down() if net.on else None
        if not a.dir and passed == a.n:
            shutil.rmtree(home, ignore_errors=True)
    if found:
        def line(name, xs):
            xs = sorted(xs)
            p99 = xs[min(len(xs) - 1, int(len(xs) * .99))]
            print(f"{name}: median {statistics.median(xs) * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms, max {xs[-1] * 1000:.0f} ms")
        line("to a writable primary", found)
        line("to an acknowledged write", wrote)
        if a.json:
            with open(a.json, "w") as f:
                json.dump({"mode": a.mode, "primary_s": found, "write_s": wrote, "acked": len(writers.acked)}, f)
    print(f"{passed} passed, {a.n - passed} failed")
    return 0 if passed == a.n else 1


if __name__ == "__main__":
    sys.exit(main())
