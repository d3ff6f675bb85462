#!/usr/bin/env python3
"""What somebody without a login can learn from a server with --auth, and whether it can keep others from working.

    strangers.py BINARY [--only NAME] [--tries N] [--lies N] [--idle N] [--port P] [-v]

Starts BINARY with --auth and fills its memory with a marker: in documents, in users' passwords, in results of sorts. Then

  canary   N messages for each codec that claim to be longer than they are, and N that are cut: no reply may hold the marker
  logout   every command of `listCommands` without a login, after a logout, and with the fields by which members speak for users:
           whatever does not say 13 has to be of the list of open commands (those that say so before a login)
  flood    N idle connections, a tenth of them sending one byte a second, beside a storm of connections that come and go:
           a ping of a user who is logged in takes less than 100 ms (99 of 100), and an idle connection at most 64 KiB
  timing   N logins each of a user that is not there and of one with a wrong password, from addresses of their own: the challenge
           has the same shape and is the same for a name each time, and the means of both steps (of their middle halves) differ by less than 5 %

Standard library only. Ends with `N passed, N failed`.
"""
import argparse
import base64
import hashlib
import os
import pathlib
import random
import resource
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import ejson  # noqa: E402
import hostile  # noqa: E402
import secured  # noqa: E402
import wire  # noqa: E402

MARKER = b"CANARY-in-the-heap-"
USER, PASSWORD = "root", "CANARY-in-the-heap-password"
PING_MS, IDLE_BYTES, TIMING = 100, 64 << 10, .05


class Server:
    def __init__(self, a):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="strangers-"))
        self.at = f"127.0.0.1:{a.port}"
        cmd = [a.binary, "--dbpath", str(self.home), "--port", str(a.port), "--bind_ip", "127.0.0.1", "--nounixsocket", "--auth", "--quiet",
               "--logpath", str(self.home / "log")]
        self.proc = subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.admin = secured.listening(lambda: wire.Conn(self.at), self.proc, self.home / "log")
        self.admin.ok("admin", {"createUser": USER, "pwd": PASSWORD, "roles": ["root"]})
        self.admin.log_in(USER, PASSWORD)
        self.fill()

    def fill(self):
        text = MARKER.decode() * 400
        for n in range(20):
            self.admin.ok("secret", {"insert": "docs", "documents": [{"k": random.random(), "text": text} for _ in range(100)]})
            self.admin.ok("admin", {"createUser": f"user{n}", "pwd": f"{MARKER.decode()}{n}", "roles": []})
        self.admin.cursor("secret", {"find": "docs", "sort": {"k": 1}, "batchSize": 100})

    def resident(self):
        with open(f"/proc/{self.proc.pid}/statm") as f:
            return int(f.read().split()[1]) * 4096

    def end(self):
        self.proc.kill()
        shutil.rmtree(self.home, ignore_errors=True)


def unpacked(codec, reply):
    """What can be read of a packed reply here: zlib, and what other codecs leave as it is."""
    try:
        return zlib.decompress(reply[9:]) if codec == 2 else reply
    except zlib.error:
        return reply


def canary(server, a):
    rnd, seen, replies = random.Random(1), 0, 0
    real = struct.pack("<I", 0) + b"\0" + ejson.encode({"ping": 1, "$db": "admin", "x": "y" * 200})
    packers = {1: hostile.snappy, 2: lambda d, claim=None: zlib.compress(d), 3: hostile.zstd}
    for codec, pack in packers.items():
        conn = None
        for n in range(a.lies):
            claim = len(real) + rnd.choice([1, 16, 1000, 65_536, 1 << 20])
            body = real if n % 3 else real[:rnd.randrange(5, len(real))]
            if n % 4 == 0:
                # An honest one: what its reply is packed from must not be what the last one left.
                body, claim = real, len(real)
            # A message within another, every tenth.
            packed = hostile.compressed(codec, pack(body, claim if n % 2 else None), claim, 2012 if n % 10 == 5 else wire.OP_MSG)
            try:
                if conn is None:
                    conn = wire.Conn(server.at, timeout=5)
                    conn.ok("admin", {"hello": 1, "compression": ["snappy", "zlib", "zstd"]})
                conn.send(packed)
                _, _, _, reply = conn.recv()
                replies += 1
                seen += MARKER in reply or MARKER in unpacked(codec, reply)
            except (OSError, ValueError):
                if conn:
                    conn.close()
                conn = None
    return seen == 0, f"{3 * a.lies} lies, {replies} replies, {seen} with the marker"


def open_to_all(server, fields, prepare=lambda conn: None):
    """The commands that say something else than 13."""
    names = sorted(server.admin.ok("admin", {"listCommands": 1})["commands"])
    answered = []
    for name in names:
        if name in ("shutdown", "saslStart", "saslContinue", "authenticate"):
            continue
        conn = wire.Conn(server.at, timeout=10)
        try:
            prepare(conn)
            r = conn.command("admin", {name: 1, **fields})
            if r.get("code") != 13:
                answered.append(name)
        except OSError:
            answered.append(name)
        conn.close()
    return answered


def logout(server, _):
    def was_logged_in(conn):
        conn.log_in(USER, PASSWORD)
        conn.ok("admin", {"logout": 1})
    plain = open_to_all(server, {})
    wrong = []
    for what, fields, prepare in [
        ("after a logout", {}, was_logged_in),
        ("as somebody else", {"$audit": {"$impersonatedUsers": [{"user": USER, "db": "admin"}], "$impersonatedRoles": [{"role": "root", "db": "admin"}]}}, lambda c: None),
        ("as a member", {"internalClient": {"minWireVersion": 0, "maxWireVersion": 21}, "$replData": 1}, lambda c: None),
    ]:
        more = set(open_to_all(server, fields, prepare)) - set(plain)
        if more:
            wrong.append(f"{what}: {sorted(more)}")
    return not wrong, f"{len(plain)} open commands {plain}; {wrong or 'the same after a logout and with foreign names'}"


def flood(server, a):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, a.idle + 2000), hard))
    before, stop, storms = server.resident(), threading.Event(), [0]
    idle = []
    for n in range(a.idle):
        s = socket.socket()
        s.bind((f"127.0.{n // 250 % 250}.{n % 250 + 1}", 0))
        s.connect(("127.0.0.1", a.port))
        idle.append(s)

    def storm():
        while not stop.is_set():
            try:
                socket.create_connection(("127.0.0.1", a.port), timeout=5).close()
                storms[0] += 1
            except OSError:
                pass

    def slow():
        message = wire.op_msg({"ping": 1, "$db": "admin"})
        at = 0
        while not stop.wait(1):
            for s in idle[::10]:
                try:
                    s.send(message[at:at + 1])
                except OSError:
                    pass
            at = min(at + 1, len(message) - 2)
    threads = [threading.Thread(target=t, daemon=True) for t in (storm, slow)]
    for t in threads:
        t.start()
    took = []
    until = time.time() + 20
    while time.time() < until:
        t0 = time.perf_counter()
        server.admin.ok("admin", {"ping": 1})
        took.append((time.perf_counter() - t0) * 1000)
        time.sleep(.02)
    stop.set()
    for t in threads:
        t.join()
    each = (server.resident() - before) / max(1, len(idle))
    for s in idle:
        s.close()
    took.sort()
    p99 = took[int(len(took) * .99)]
    text = (f"{a.idle} idle connections of {each / 1024:.1f} KiB, {storms[0]} that came and went; ping median {statistics.median(took):.1f} ms, "
            f"p99 {p99:.1f}, max {took[-1]:.1f}")
    return p99 < PING_MS and each < IDLE_BYTES, text


def attempt(a, n, user):
    """(milliseconds to the challenge, to the refusal, the challenge's salt and rounds)"""
    s = socket.socket()
    s.bind((f"127.{10 + n // 62_000}.{n // 250 % 250}.{n % 250 + 1}", 0))
    s.connect(("127.0.0.1", a.port))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    conn = wire.Conn.__new__(wire.Conn)
    conn.sock = s
    nonce = base64.b64encode(os.urandom(18)).decode()
    t0 = time.perf_counter()
    r = conn.ok("admin", {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": ejson.BIN(f"n,,n={user},r={nonce}".encode())})
    t1 = time.perf_counter()
    text = base64.b64decode(r["payload"]["$binary"]["base64"]).decode()
    asked = dict(part.split("=", 1) for part in text.split(","))
    proof = base64.b64encode(hashlib.sha256(nonce.encode()).digest()).decode()
    last = ejson.BIN(f"c=biws,r={asked['r']},p={proof}".encode())
    t2 = time.perf_counter()
    r = conn.command("admin", {"saslContinue": 1, "conversationId": 1, "payload": last})
    t3 = time.perf_counter()
    conn.close()
    return (t1 - t0) * 1e3, (t3 - t2) * 1e3, (asked["s"], asked["i"], len(asked["r"])), (r.get("code"), r.get("errmsg"))


def timing(server, a):
    steps = {"nobody": ([], []), "user1": ([], [])}
    shapes = {"nobody": set(), "user1": set()}
    refusals = set()
    for n in range(2 * a.tries):
        who = ("nobody", "user1")[n % 2]
        first, last, shape, refusal = attempt(a, n, who)
        steps[who][0].append(first)
        steps[who][1].append(last)
        shapes[who].add(shape)
        refusals.add(refusal)
    problems = []
    if any(len(s) != 1 for s in shapes.values()) or {len(x) for s in shapes.values() for x, *_ in s} != {40}:
        problems.append(f"challenges {shapes}")
    if len(refusals) != 1:
        problems.append(f"refusals {refusals}")
    text = []
    for i, what in enumerate(("challenge", "refusal")):
        # Of the middle half: what the machine does besides says nothing of the server.
        means = {who: statistics.fmean(sorted(s[i])[len(s[i]) // 4:len(s[i]) * 3 // 4]) for who, s in steps.items()}
        differs = abs(means["nobody"] - means["user1"]) / means["user1"]
        text.append(f"{what} {means['nobody'] * 1000:.0f} and {means['user1'] * 1000:.0f} us ({differs:.1%})")
        if differs >= TIMING:
            problems.append(f"the {what} tells by its time")
    return not problems, f"{a.tries} tries each: {', '.join(text)} {problems or ''}"


CHECKS = {"canary": canary, "logout": logout, "flood": flood, "timing": timing}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("binary")
    ap.add_argument("--only", choices=list(CHECKS))
    ap.add_argument("--tries", type=int, default=2000)
    ap.add_argument("--lies", type=int, default=10_000)
    ap.add_argument("--idle", type=int, default=5000)
    ap.add_argument("--port", type=int, default=28770)
    a = ap.parse_args()
    a.binary = os.path.abspath(a.binary)
    server, passed, failed = Server(a), 0, 0
    try:
        for name, check in CHECKS.items():
            if a.only in (None, name):
                good, text = check(server, a)
                passed, failed = passed + good, failed + (not good)
                print(f"{'ok    ' if good else 'FAILED'} {name}: {text}", flush=True)
        if server.proc.poll() is not None:
            failed += 1
            print("FAILED the server has ended")
    finally:
        server.end()
    print(f"{passed} passed, {failed} failed")
    return 0 if not failed else 1


if __name__ == "__main__":
    sys.exit(main())
