#!/usr/bin/env python3
"""Disks that are full, fail to sync, or changed a bit: real processes on real files.

    disk.py BINARY [--port P] [--seed S] [--flips N] [--only NAME[,NAME]] [--dir D] [--keep]

  write       the disk becomes full under writers, checkpoints every 0.2 s
  sync        the disk of a new member is too small for the set's data
  rollback    no room for the files a rollback keeps
  fsync       fsync of each kind of file answers EIO once (a shim made with cc, LD_PRELOAD)
  flip        one bit of one file of each kind is another one when the process starts

Always: no wrong answer, no lost acknowledged write; whoever cannot go on ends and says what to do; with room (a sound disk,
an empty folder) it comes back. Full disks are small tmpfs mounts: needs root, or is run again under `unshare -rm` by itself.
Standard library only; every wait has an end. Ends with `N passed, N failed`.
"""
import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import wire  # noqa: E402

WAIT_S = 90
J = {"w": 1, "j": True}
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* EIO for files whose path contains what is written in $FAULT_TRIGGER. */
static int hit(int fd) {
    char want[256], link[64], path[4096];
    const char *trigger = getenv("FAULT_TRIGGER");
    int t = trigger ? open(trigger, O_RDONLY) : -1;
    if (t < 0) return 0;
    ssize_t n = read(t, want, sizeof want - 1);
    close(t);
    if (n <= 0) return 0;
    want[n] = 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t m = readlink(link, path, sizeof path - 1);
    if (m <= 0) return 0;
    path[m] = 0;
    if (!strstr(path, want)) return 0;
    errno = EIO;
    return 1;
}
int fsync(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    return hit(fd) ? -1 : real(fd);
}
int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    return hit(fd) ? -1 : real(fd);
}
"""


class Wrong(Exception):
    pass


def until(what, holds, seconds=WAIT_S):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            got = holds()
            if got:
                return got
        except (OSError, ValueError):
            pass
        time.sleep(0.05)
    raise Wrong(f"waited {seconds} s in vain for {what}")


class Node:
    def __init__(self, a, home, port, name="faults", data=None):
        self.a, self.home, self.port, self.set = a, home, port, name
        self.addr, self.proc = f"127.0.0.1:{port}", None
        self.data = data or home / "data"
        home.mkdir(parents=True, exist_ok=True)
        self.log = home / "log"

    def start(self, syncdelay=60, env=None):
        cmd = [self.a.binary, "--dbpath", str(self.data), "--port", str(self.port), "--replSet", self.set, "--bind_ip", "127.0.0.1",
               "--nounixsocket", "--logpath", str(self.log), "--logappend", "--setParameter", f"syncdelay={syncdelay}", "--oplogSize", "990",
               "--setParameter", "enableTestCommands=1"]
        self.data.mkdir(parents=True, exist_ok=True)
        self.mark = self.log.stat().st_size if self.log.exists() else 0
        self.proc = subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=open(self.home / "stderr", "ab"), env={**os.environ, **(env or {})})
        return self

    def ended(self):
        return self.proc is None or self.proc.poll() is not None

    def said(self):
        """Everything this process has logged."""
        with open(self.log, "rb") as f:
            f.seek(self.mark)
            return f.read().decode("utf-8", "replace")

    def stop(self):
        if not self.ended():
            self.proc.send_signal(signal.SIGTERM)
            try:
                self.proc.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
                raise Wrong("it does not end when told to") from None

    def kill(self):
        if not self.ended():
            self.proc.kill()
            self.proc.wait()

    def wait_end(self):
        until("the end of the process", self.ended)
        return self.said()

    def ask(self, doc, db="admin", timeout=20.0):
        c = wire.Conn(self.addr, timeout=timeout)
        try:
            return c.command(db, doc)
        finally:
            c.close()

    def hello(self):
        try:
            return self.ask({"hello": 1}, timeout=2)
        except (OSError, ValueError):
            return {}

    def is_in(self, field):
        if self.ended():
            raise Wrong(f"the process has ended: {self.said()[-600:]}")
        return self.hello().get(field)

    def initiate(self, members):
        for m in members:
            until("a listener", m.hello)
        config = {"_id": self.set, "members": [{"_id": i, "host": m.addr} for i, m in enumerate(members)],
                  "settings": {"catchUpTimeoutMillis": 0, "heartbeatIntervalMillis": 250}}
        r = self.ask({"replSetInitiate": config})
        if r["ok"] != 1:
            raise Wrong(f"replSetInitiate: {r}")
        until("a primary", lambda: any(m.is_in("isWritablePrimary") for m in members))
        until("secondaries", lambda: sum(bool(m.is_in("secondary")) for m in members) == len(members) - 1)

    def primary_again(self):
        until("a primary", lambda: self.is_in("isWritablePrimary"))


def document(i):
    pad = random.Random(i).getrandbits(8 * 1500).to_bytes(1500, "little").hex()
    return {"_id": i, "v": i * 7 % 1000, "pad": pad}


def batch(first, n=20):
    return [document(i) for i in range(first, first + n)]


def write_until(node, first, enough, concern=None):
    """Inserts batches; returns acknowledged `_id`s, those nobody knows of, and the error that ended it."""
    acked, unknown, at = [], [], first
    try:
        c = wire.Conn(node.addr, timeout=30)
    except OSError as e:
        return acked, unknown, str(e)
    while not enough(at - first):
        docs = batch(at)
        at += len(docs)
        ids = [d["_id"] for d in docs]
        try:
            r = c.command("t", {"insert": "c", "documents": docs, "writeConcern": concern or J})
        except (OSError, ValueError) as e:
            return acked, unknown + ids, f"connection: {e}"
        bad = {e["index"] for e in r.get("writeErrors", [])}
        if r["ok"] == 1 and not bad and "writeConcernError" not in r:
            acked += ids
            continue
        unknown += ids
        return acked, unknown, str({k: r.get(k) for k in ("codeName", "errmsg", "writeErrors", "writeConcernError") if r.get(k)})[:600]
    return acked, unknown, None


def check(node, acked, unknown=(), coll="c"):
    """Acknowledged documents are there, all that is there is as it was written, by every way."""
    c = wire.Conn(node.addr, timeout=60)
    try:
        pref = {"$readPreference": {"mode": "secondaryPreferred"}}
        found = {}
        for how in ({"hint": {"$natural": 1}}, {"hint": {"_id": 1}}, {"hint": {"v": 1}, "filter": {"v": {"$gte": 0}}}):
            docs = c.cursor("t", {"find": coll, **how, **pref})
            seen = {d["_id"]: d for d in docs}
            if len(seen) != len(docs):
                raise Wrong(f"documents come twice by {how}")
            for i, d in seen.items():
                if d != document(i):
                    raise Wrong(f"wrong document {i} by {how}: {str(d)[:200]}")
            if found and set(seen) != set(found):
                raise Wrong(f"{how} finds {len(seen)} documents, not {len(found)}")
            found = seen
        lost = [i for i in acked if i not in found]
        if lost:
            raise Wrong(f"{len(lost)} acknowledged documents are lost, {lost[:5]} first")
        invented = set(found) - set(acked) - set(unknown)
        if invented:
            raise Wrong(f"documents that nobody wrote: {sorted(invented)[:5]}")
        r = c.command("t", {"validate": coll, "full": True, "enforceFastCount": True, **pref})
        if not r.get("valid"):
            raise Wrong(f"not valid: {str(r)[:600]}")
    finally:
        c.close()


def tells(text, *words):
    missing = [w for w in words if w not in text]
    if missing:
        raise Wrong(f"it does not say {missing}: ...{text[-800:]}")


class Small:
    """A disk of so many megabytes."""

    def __init__(self, path, mb):
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mb}m", "tmpfs", str(path)], check=True)

    def resize(self, mb):
        subprocess.run(["mount", "-o", f"remount,size={mb}m", str(self.path)], check=True)

    def fill(self, leave_kb):
        s = os.statvfs(self.path)
        try:
            with open(self.path / "ballast", "wb", buffering=0) as f:
                f.write(b"x" * max(0, s.f_bavail * s.f_frsize - leave_kb * 1024))
        except OSError:
            pass  # The server was faster.

    def free(self):
        (self.path / "ballast").unlink()

    def close(self):
        subprocess.run(["umount", "-l", str(self.path)], check=False)


# ------------------------------------------------------------ a full disk


def index(node):
    r = node.ask({"createIndexes": "c", "indexes": [{"key": {"v": 1}, "name": "v"}]}, "t")
    if r["ok"] != 1:
        raise Wrong(f"createIndexes: {r}")


def full_while_writing(a, home, port):
    """Writers and checkpoints run into the end of the disk; with room the process starts and has everything."""
    for turn, ballast_kb in enumerate((None, 3000, 300)):
        disk = Small(home / f"small{turn}", 48)
        node = Node(a, home / str(turn), port, data=disk.path / "data")
        try:
            node.start(syncdelay=0.2).initiate([node])
            index(node)
            acked, unknown, _ = write_until(node, 0, lambda n: n >= 500)
            if ballast_kb is not None:
                disk.fill(ballast_kb)
            more, lost, why = write_until(node, 1000, lambda n: n > 40_000)
            acked, unknown = acked + more, unknown + lost
            if why is None:
                raise Wrong("120 MB were written to a disk of 48")
            time.sleep(2)
            if node.ended():
                tells(node.said(), "the disk is full, make room for the data directory")
            else:
                check(node, acked, unknown)
                tells(node.said() + why, "the disk is full")
                node.stop()
            disk.resize(400)
            node.start().primary_again()
            check(node, acked, unknown)
            again, _, why = write_until(node, 100_000, lambda n: n >= 200)
            if why:
                raise Wrong(f"no writes after there is room again: {why}")
            check(node, acked + again, unknown)
            node.stop()
        finally:
            node.kill()
            disk.close()


def full_while_syncing(a, home, port):
    """A new member's disk is too small: it says so, the set does not notice, and with room it becomes a member."""
    disk = Small(home / "small", 24)
    old, new = Node(a, home / "old", port), Node(a, home / "new", port + 1, data=disk.path / "data")
    try:
        old.start().initiate([old])
        index(old)
        acked, _, why = write_until(old, 0, lambda n: n >= 16_000, {"w": 1})
        if why:
            raise Wrong(why)
        new.start(syncdelay=1)
        until("a listener", new.hello)
        config = old.ask({"replSetGetConfig": 1})["config"]
        config["version"] += 1
        config["members"].append({"_id": 1, "host": new.addr, "votes": 0, "priority": 0})
        until("the reconfiguration", lambda: old.ask({"replSetReconfig": config})["ok"] == 1)
        until("the end, or a failed attempt", lambda: new.ended() or "the disk is full" in new.said())
        tells(new.said(), "the disk is full, make room for the data directory")
        if not new.ended():
            time.sleep(1)
            if new.hello().get("secondary"):
                raise Wrong("half a copy passes for a member's data")
            new.kill()
        more, _, why = write_until(old, 50_000, lambda n: n >= 200)
        if why:
            raise Wrong(f"the set cannot write: {why}")
        disk.resize(400)
        new.start()
        until("the copy", lambda: new.is_in("secondary"))
        until("the same data", lambda: new.ask({"dbHash": 1, "$readPreference": {"mode": "secondary"}}, "t").get("md5") == old.ask({"dbHash": 1}, "t").get("md5"))
        check(new, acked + more)
    finally:
        old.kill()
        new.kill()
        disk.close()


def point(node, name, on):
    r = node.ask({"configureFailPoint": name, "mode": "alwaysOn" if on else "off"})
    if r["ok"] != 1:
        raise Wrong(f"{name}: {r}")


def full_while_rolling_back(a, home, port):
    """What a rollback removes cannot be kept: nothing is changed until it can."""
    disks = [Small(home / f"small{i}", 200) for i in range(3)]
    nodes = [Node(a, home / str(i), port + i, data=disks[i].path / "data") for i in range(3)]
    try:
        for n in nodes:
            n.start(syncdelay=3600)
        nodes[0].initiate(nodes)
        p = next(n for n in nodes if n.is_in("isWritablePrimary"))
        rest = [n for n in nodes if n is not p]
        index(p)
        acked, _, why = write_until(p, 0, lambda n: n >= 400, {"w": 3, "wtimeout": 30_000})
        if why:
            raise Wrong(why)
        for n in rest:
            point(n, "stopReplProducer", True)
        alone, _, why = write_until(p, 5000, lambda n: n >= 2000)
        if why:
            raise Wrong(why)
        # The rollback begins as soon as a successor has written.
        disk = disks[nodes.index(p)]
        disk.fill(600)
        p.ask({"replSetStepDown": 60, "secondaryCatchUpPeriodSecs": 0, "force": True})
        until("a successor", lambda: rest[0].ask({"replSetStepUp": 1})["ok"] == 1 or rest[0].is_in("isWritablePrimary"))
        until("it writes", lambda: rest[0].is_in("isWritablePrimary"))
        beside, _, why = write_until(rest[0], 9000, lambda n: n >= 100, {"w": 1})
        if why:
            raise Wrong(why)
        for n in rest:
            point(n, "stopReplProducer", False)
        tells(p.wait_end(), "the disk is full, make room for the data directory", "rollback files cannot be written", "createRollbackDataFiles")
        disk.free()
        p.start()
        until("the rollback", lambda: p.is_in("secondary") and p.ask({"count": "c", "$readPreference": {"mode": "secondary"}}, "t")["n"] == len(acked + beside))
        check(p, acked + beside)
        kept = sum(f.stat().st_size for f in (p.data / "rollback").rglob("*.bson"))
        if kept < len(alone) * 3000:
            raise Wrong(f"{kept} bytes in rollback files of {len(alone)} documents")
    finally:
        for n in nodes:
            n.kill()
        for d in disks:
            d.close()


# ------------------------------------------------------------ a failed sync


def shim(home):
    source, lib = home / "shim.c", home / "shim.so"
    source.write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(lib), str(source), "-ldl"], check=True)
    return lib


def failed_fsync(a, home, port):
    """After a failed sync nobody knows what the disk holds: the process stops, the next one has all that was acknowledged."""
    if not shutil.which("cc"):
        print("      no cc: not run")
        return
    lib = shim(home)
    for turn, name in enumerate(("journal/oplog", "journal/local", "journal/checkpoint", "tables", "/journal")):
        trigger = home / f"trigger{turn}"
        node = Node(a, home / str(turn), port)
        try:
            node.start(syncdelay=0.3, env={"LD_PRELOAD": str(lib), "FAULT_TRIGGER": str(trigger)}).initiate([node])
            index(node)
            acked, unknown, why = write_until(node, 0, lambda n: n >= 400)
            if why:
                raise Wrong(why)
            trigger.write_text(name)
            more, lost, _ = write_until(node, 1000, lambda n: n >= 40_000)
            try:
                said = node.wait_end()
            except Wrong as e:
                raise Wrong(f"it goes on after a failed sync of {name}: {e}") from None
            tells(said, "Fatal assertion", "Input/output error")
            if node.proc.returncode == 0:
                raise Wrong("a clean exit")
            node.start().primary_again()
            check(node, acked + more, unknown + lost)
            node.stop()
        finally:
            node.kill()


# ------------------------------------------------------------ a changed bit


def kind_of(path):
    """Files of one kind have names that differ in numbers."""
    return "".join("#" if c.isdigit() else c for c in str(path)).replace("##", "#").replace("##", "#").replace("##", "#")


def flipped_bits(a, home, port):
    """Refused by name, found when it is read, or without effect: never other data."""
    rng = random.Random(a.seed)
    node = Node(a, home / "sound", port)
    node.start(syncdelay=0.5).initiate([node])
    index(node)
    acked, _, why = write_until(node, 0, lambda n: n >= 3000)
    if why:
        raise Wrong(why)
    node.ask({"delete": "c", "deletes": [{"q": {"_id": {"$gte": 2900}}, "limit": 0}]}, "t")
    acked = [i for i in acked if i < 2900]
    time.sleep(2)
    more, _, why = write_until(node, 4000, lambda n: n >= 100)
    acked += more
    node.stop()
    kinds = {}
    for f in sorted(node.data.rglob("*")):
        rel = f.relative_to(node.data)
        if f.is_file() and f.stat().st_size and rel.name not in ("pandod.lock", "mongod.lock"):
            kinds.setdefault(kind_of(rel), []).append(rel)
    print("      kinds:", ", ".join(sorted(kinds)))
    tally = {"refused": 0, "found": 0, "without effect": 0}
    for kind, files in sorted(kinds.items()):
        for n in range(a.flips):
            rel = rng.choice(files)
            tally[one_flip(a, home, port, node.data, rel, rng, acked, f"{n}-{rel.name}")] += 1
    print("      flips:", tally)
    if not tally["refused"] + tally["found"]:
        raise Wrong("no flip was ever noticed")


def one_flip(a, home, port, sound, rel, rng, acked, name):
    turn = Node(a, home / "flip", port)
    shutil.rmtree(turn.data, ignore_errors=True)
    shutil.copytree(sound, turn.data)
    path = turn.data / rel
    data = bytearray(path.read_bytes())
    at, bit = rng.randrange(len(data)), rng.randrange(8)
    data[at] ^= 1 << bit
    path.write_bytes(data)
    where = f"{rel} byte {at} bit {bit} of {len(data)}"
    try:
        turn.start()
        until("a primary, or the end", lambda: turn.ended() or turn.hello().get("isWritablePrimary"))
        if turn.ended():
            said = turn.said()
            if turn.proc.returncode == 0 or "panicked" in said:
                raise Wrong(f"{where}: ends with {turn.proc.returncode}: {said[-600:]}")
            if str(rel.name) not in said and str(rel.parent) not in said:
                raise Wrong(f"{where}: the refusal names no file: {said[-600:]}")
            tells(said, "backup")
            return "refused"
        try:
            check(turn, acked)
        except (KeyError, ValueError, OSError, RuntimeError, Wrong) as e:
            text = str(e) + turn.said()
            if "wrong document" in text or "lost" in str(e) or "twice" in str(e) or "nobody wrote" in str(e):
                raise Wrong(f"{where}: {e}") from None
            if "damage" not in text and "checksum" not in text.lower():
                raise Wrong(f"{where}: neither right nor called damaged: {str(e)[:300]} {turn.said()[-300:]}") from None
            return "found"
        return "without effect"
    except Wrong as e:
        raise (e if where in str(e) else Wrong(f"{where}: {e}")) from None
    finally:
        turn.kill()


SCENES = {"write": full_while_writing, "sync": full_while_syncing, "rollback": full_while_rolling_back, "fsync": failed_fsync, "flip": flipped_bits}


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("binary")
    p.add_argument("--port", type=int, default=28700)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--flips", type=int, default=4, help="of each kind of file")
    p.add_argument("--only", default=",".join(SCENES))
    p.add_argument("--dir")
    p.add_argument("--keep", action="store_true")
    a = p.parse_args()
    a.binary = str(pathlib.Path(a.binary).resolve())
    if os.geteuid() != 0:
        os.execvp("unshare", ["unshare", "-rm", sys.executable, *sys.argv])
    home = pathlib.Path(a.dir or tempfile.mkdtemp(prefix="pando-faults-"))
    passed, failed = 0, []
    for i, name in enumerate(a.only.split(",")):
        began = time.monotonic()
        place = home / name
        place.mkdir(parents=True, exist_ok=True)
        try:
            SCENES[name](a, place, a.port + 5 * i)
            passed += 1
            print(f"ok    {name} ({time.monotonic() - began:.0f} s)", flush=True)
        except (Wrong, OSError, ValueError, RuntimeError) as e:
            failed.append(name)
            print(f"FAIL  {name}: {e}", flush=True)
    if not a.keep and not failed:
        shutil.rmtree(home, ignore_errors=True)
    elif failed:
        print(f"files: {home}")
    print(f"{passed} passed, {len(failed)} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
