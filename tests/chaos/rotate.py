#!/usr/bin/env python3
"""Keys, certificates and the way members log in, replaced under load: no write may fail.

    rotate.py BINARY [--port P] [--writers W] [--rest S] [--dir D]

A set of three members with a keyfile. W writers insert at w: "majority" all the time (failover.py), and one adds what each step does to it: after each
step a secondary is stopped and started again, so that it has to log in anew in both directions, and the set has to settle.

  keys          a new key beside the old one, then before it, then alone; `rotateCertificates` reads the file
  mode          sendKeyFile, sendX509, x509 by `setParameter clusterAuthMode`, each on all members
  certificates  another authority trusted beside the first, certificates of the other one, then that one alone
  copy          a secondary loses its files and copies everything from another member

The primary stays who it is. In the end a key of before is refused, every acknowledged document must be on every member, and dbHash must agree. Standard
library and openssl. Ends with `N passed, N failed` (steps; a write that failed fails the last one). pandod only: a mongod reads a keyfile once.
"""
import argparse
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

import failover
import secured


class Secrets(secured.Secured):
    """A keyfile, and TLS beside it, until certificates take its place."""

    def __init__(self, home):
        super().__init__("x509", home)
        self.mode = "keyFile"

    def flags(self):
        keys = ["--keyFile", self.path("keyfile"), "--clusterAuthMode", self.mode]
        tls = super().flags()
        return keys + tls[tls.index("--tlsMode"):]


def on_all(members, command):
    for m in members:
        r = m.ask(command, timeout=20)
        if r.get("ok") != 1:
            raise RuntimeError(f"{m.name}: {command}: {r.get('errmsg')}")


def steps(s, members):
    """(what it does, how)"""
    old, new = s.keys[0], s.new_key()

    def keys(listed):
        s.write_keys(listed)
        on_all(members, {"rotateCertificates": 1})

    def mode(name):
        s.mode = name
        on_all(members, {"setParameter": 1, "clusterAuthMode": name})

    def trust_both():
        s.new_authority("other")
        on_all(members, {"rotateCertificates": 1})

    def by_other():
        s.new_certificate("other")
        on_all(members, {"rotateCertificates": 1})

    def other_alone():
        s.trust_only("other")
        on_all(members, {"rotateCertificates": 1})

    yield "a new key behind the old one", lambda: keys([old, new])
    yield "the new key first", lambda: keys([new, old])
    yield "the new key alone", lambda: keys([new])
    for name in ("sendKeyFile", "sendX509", "x509"):
        yield f"clusterAuthMode {name}", lambda name=name: mode(name)
    yield "another authority trusted", trust_both
    yield "certificates of the other authority", by_other
    yield "the first authority trusted no longer", other_alone


def start_again(members, n, empty=False):
    """Another secondary each time."""
    primary = failover.settle(members)
    m = [m for m in members if m is not primary][n % 2]
    m.kill(signal.SIGTERM)
    m.proc.wait(60)
    if empty:
        shutil.rmtree(m.home)
        m.home.mkdir()
    m.start()
    until = time.time() + failover.SETTLE_S
    while not m.hello().get("secondary"):
        if time.time() > until:
            raise RuntimeError(f"{m.name} does not come back: {(m.home / 'log').read_text()[-400:]}")
        time.sleep(.05)
    if failover.settle(members) is not primary:
        raise RuntimeError("there was an election")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("binary")
    ap.add_argument("--port", type=int, default=28350)
    ap.add_argument("--writers", type=int, default=4)
    ap.add_argument("--rest", type=float, default=1, help="seconds of load after each step")
    ap.add_argument("--dir")
    a = ap.parse_args()
    a.binary, a.mode, a.unsynced = os.path.abspath(a.binary), "rotate", False
    home = pathlib.Path(a.dir or tempfile.mkdtemp(prefix="pando-rotate-"))
    a.secured = s = Secrets(home / "secrets")
    members = [failover.Member(a, i, home) for i in range(failover.MEMBERS)]
    passed, failed = 0, 0
    try:
        failover.start_set(members, "chaos")
        writers = failover.Writers(members, a.writers, False)
        todo = list(steps(s, members)) + [("a member copies everything", lambda: None)]
        for n, (what, do) in enumerate(todo):
            before = len(writers.acked)
            try:
                do()
                start_again(members, n, empty=n == len(todo) - 1)
                time.sleep(a.rest)
                passed += 1
                print(f"ok     {what}: {len(writers.acked) - before} writes meanwhile, {len(writers.unknown)} failed so far", flush=True)
            except (RuntimeError, OSError) as e:
                failed += 1
                print(f"FAILED {what}: {str(e)[:600]}", flush=True)
        writers.end()
        if not failover.nothing_lost(members, writers) or writers.unknown:
            passed, failed = passed - 1, failed + 1
    finally:
        failover.end_all(members)
        if not a.dir and not failed:
            shutil.rmtree(home, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 0 if not failed else 1


if __name__ == "__main__":
    sys.exit(main())
