#!/usr/bin/env python3
"""Whether a three-member set stays calm under trouble that is no death: nothing lost, and at most one election for each event.

    steady.py BINARY [--mode crowd|pauses|slow] [--on primary|secondary] [-n ROUNDS] [--port P] [--writers W] [--dir D]

Three processes of BINARY with default settings. W writers insert at w: "majority" all the time (failover.py). Each round does one thing:

  crowd     the member allows 60 connections (--maxConns) and 400 clients connect, again and again, for 8 seconds
  pauses    five times SIGSTOP for a second and SIGCONT for one
  slow      the disk takes 1 MiB a second and 200 ms for each fsync, for 12 seconds (a shim made with cc, LD_PRELOAD)

Told of each round: by how much the term grew, whether the primary is still who it was, how many writes were acknowledged meanwhile, and the longest
time between two of them. A round fails when the term grew by more than one, or when no write is acknowledged within 30 seconds after it.
In the end every acknowledged document must be on every member, and dbHash must agree. Standard library only. Ends with `N passed, N failed` (rounds; a lost
document fails the last one).
"""
import argparse
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import failover
import secured

CROWD, ROOM, CROWD_S = 400, 60, 8
PAUSES = 5
SLOW_S = 12
RECOVER_S = 30
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
/* While the file $SLOW_TRIGGER is there, regular files are written at 1 MiB a second and synced in 200 ms. */
static int is_slow(int fd) {
    const char *trigger = getenv("SLOW_TRIGGER");
    struct stat s;
    return trigger && access(trigger, F_OK) == 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
}
static ssize_t took(int fd, ssize_t n) {
    if (n > 0 && is_slow(fd)) usleep(n * 1000000.0 / (1 << 20));
    return n;
}
#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)
ssize_t write(int fd, const void *b, size_t n) { REAL(ssize_t, write, int, const void *, size_t); return took(fd, real(fd, b, n)); }
ssize_t pwrite(int fd, const void *b, size_t n, off_t o) { REAL(ssize_t, pwrite, int, const void *, size_t, off_t); return took(fd, real(fd, b, n, o)); }
ssize_t pwrite64(int fd, const void *b, size_t n, off_t o) { REAL(ssize_t, pwrite64, int, const void *, size_t, off_t); return took(fd, real(fd, b, n, o)); }
ssize_t writev(int fd, const struct iovec *v, int n) { REAL(ssize_t, writev, int, const struct iovec *, int); return took(fd, real(fd, v, n)); }
int fsync(int fd) { REAL(int, fsync, int); if (is_slow(fd)) usleep(200000); return real(fd); }
int fdatasync(int fd) { REAL(int, fdatasync, int); if (is_slow(fd)) usleep(200000); return real(fd); }
"""


class Member(failover.Member):
    """A member whose disk may be slow."""

    def start(self):
        command = [self.a.binary, "--dbpath", str(self.home), "--port", str(self.port), "--replSet", "chaos", "--logpath", str(self.home / "log"),
                   "--logappend", "--bind_ip", "127.0.0.1"]
        if self.a.mode == "crowd":
            command += ["--maxConns", str(ROOM)]
        env = dict(os.environ)
        if self.a.mode == "slow":
            env |= {"LD_PRELOAD": str(self.a.shim), "SLOW_TRIGGER": str(self.slow())}
        self.proc = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)

    def slow(self):
        return self.home.parent / f"slow{self.i}"


def crowd(member):
    """Clients that come again and again and hold what they get; how many connections were made."""
    host, port = member.name.split(":")
    end, made = time.time() + CROWD_S, []

    def come():
        while time.time() < end:
            try:
                with socket.create_connection((host, int(port)), 1) as s:
                    made.append(1)
                    s.settimeout(0.5)
                    while time.time() < end:
                        try:
                            if not s.recv(1):
                                break
                        except TimeoutError:
                            pass
            except OSError:
                pass
            time.sleep(0.01)

    threads = [threading.Thread(target=come, daemon=True) for _ in range(CROWD)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return f"{len(made)} connections"


def pauses(member):
    for _ in range(PAUSES):
        member.kill(signal.SIGSTOP)
        time.sleep(1)
        member.kill(signal.SIGCONT)
        time.sleep(1)
    return f"{PAUSES} pauses"


def slow(member):
    member.slow().touch()
    time.sleep(SLOW_S)
    member.slow().unlink()
    return f"{SLOW_S} s"


def term(members):
    """The highest term that any member tells of."""
    told = []
    for m in members:
        try:
            told.append(int(m.ask({"replSetGetStatus": 1}, timeout=5)["term"]["$numberLong"]))
        except (OSError, ValueError, KeyError):
            pass
    return max(told)


class Gaps(threading.Thread):
    """The longest time in which no write was acknowledged."""

    def __init__(self, writers):
        super().__init__(daemon=True)
        self.writers, self.longest, self.over = writers, 0.0, threading.Event()
        self.start()

    def run(self):
        count, since = len(self.writers.acked), time.time()
        while not self.over.is_set():
            if len(self.writers.acked) != count:
                count, since = len(self.writers.acked), time.time()
            self.longest = max(self.longest, time.time() - since)
            time.sleep(0.005)


def one_round(a, n, members, writers):
    """Whether the set stayed calm."""
    primary = failover.settle(members)
    who = primary if a.on == "primary" else next(m for m in members if m is not primary)
    before, acked, gaps = term(members), len(writers.acked), Gaps(writers)
    what = {"crowd": crowd, "pauses": pauses, "slow": slow}[a.mode](who)
    acked_in, healed = len(writers.acked) - acked, time.time()
    while writers.last < healed and time.time() - healed < RECOVER_S:
        time.sleep(0.01)
    gaps.over.set()
    same = failover.settle(members) is primary
    grew = term(members) - before
    fine = grew <= 1 and writers.last >= healed
    print(f"round {n}: {a.mode} on a {a.on}, {what}: term +{grew}, {'the same' if same else 'another'} primary, {acked_in} writes acknowledged, "
          f"{gaps.longest:.2f} s without one at most{'' if fine else '  FAILED'}", flush=True)
    return fine


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("binary")
    p.add_argument("--mode", choices=["crowd", "pauses", "slow"], default="pauses")
    p.add_argument("--on", choices=["primary", "secondary"], default="primary")
    p.add_argument("-n", type=int, default=5)
    p.add_argument("--port", type=int, default=28330)
    p.add_argument("--writers", type=int, default=4)
    p.add_argument("--dir")
    a = p.parse_args()
    a.binary = os.path.abspath(a.binary)
    home = pathlib.Path(a.dir or tempfile.mkdtemp(prefix="pando-steady-"))
    a.secured = secured.Secured("none", home / "secrets")
    if a.mode == "slow":
        source, a.shim = home / "shim.c", home / "shim.so"
        source.write_text(SHIM)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(a.shim), str(source), "-ldl"], check=True)
    members = [Member(a, i, home) for i in range(failover.MEMBERS)]
    passed = 0
    try:
        failover.start_set(members, "chaos")
        writers = failover.Writers(members, a.writers, False)
        time.sleep(2)
        for n in range(a.n):
            passed += one_round(a, n, members, writers)
            time.sleep(1)
        writers.end()
        if not failover.nothing_lost(members, writers):
            passed = min(passed, a.n - 1)
    finally:
        failover.end_all(members)
        if not a.dir and passed == a.n:
            shutil.rmtree(home, ignore_errors=True)
    print(f"{passed} passed, {a.n - passed} failed")
    return 0 if passed == a.n else 1


if __name__ == "__main__":
    sys.exit(main())
