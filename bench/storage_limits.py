#!/usr/bin/env python3
"""What storage does at its limits: data larger than memory, thousands of collections, a small oplog.

    storage_limits.py BINARY big   [--gb 5] [--cache-gb 0.25] [--limit-mb 0] [--seconds 20]
    storage_limits.py BINARY many  [--mb 200] [--counts 1,100,5000]
    storage_limits.py BINARY oplog [--oplog-mb 64] [--mb 600]

`big` loads documents of 1 KiB (random _id order, one secondary index), then reads, scans and writes; with --limit-mb
the server runs in a memory control group (cgroup v1, root) of that size, page cache included, so reads come from the
disk. `many` spreads the same bytes over more and more collections and tells how much was written to the disk for
each byte inserted. `oplog` writes ten times the oplog's size and watches its files; a cursor that was left behind
must fail with CappedPositionLost. BINARY may be a mongod. Standard library only; figures are printed as lines.
"""
import argparse
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "lib"))
import wire  # noqa: E402

CGROUP = "/sys/fs/cgroup/memory/pando-limits"
DB = "limits"


class Server:
    def __init__(self, binary, port, args, limit_mb=0):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="limits-", dir=os.environ.get("LIMITS_DIR")))
        (self.home / "data").mkdir()
        self.binary, self.port, self.args, self.limit_mb = binary, port, args, limit_mb
        self.uri = f"mongodb://127.0.0.1:{port}"
        self.peak = self.peak_anon = 0
        self.start()
        threading.Thread(target=self.watch, daemon=True).start()

    def start(self):
        into_group = None
        if self.limit_mb:
            os.makedirs(CGROUP, exist_ok=True)
            pathlib.Path(CGROUP, "memory.limit_in_bytes").write_text(f"{self.limit_mb}M")

            def into_group():
                pathlib.Path(CGROUP, "cgroup.procs").write_text(str(os.getpid()))
        log = open(self.home / "log", "ab")
        self.proc = subprocess.Popen([self.binary, "--dbpath", str(self.home / "data"), "--port", str(self.port), "--replSet", "rs", "--nounixsocket", *self.args],
                                     stdout=log, stderr=log, preexec_fn=into_group)
        t0 = time.monotonic()
        while True:
            try:
                c = wire.Conn(self.uri, timeout=600)
                h = c.command("admin", {"hello": 1})
                if h.get("isWritablePrimary"):
                    break
                if "setName" not in h:
                    c.command("admin", {"replSetInitiate": {"_id": "rs", "members": [{"_id": 0, "host": f"127.0.0.1:{self.port}"}]}})
            except OSError:
                if self.proc.poll() is not None:
                    raise RuntimeError(f"the server ended: see {self.home}/log") from None
            time.sleep(0.05)
        self.ready_s = time.monotonic() - t0
        self.conn = c

    def status(self):
        out = {}
        for line in open(f"/proc/{self.proc.pid}/status"):
            k, _, v = line.partition(":")
            if k in ("VmRSS", "RssAnon", "VmHWM"):
                out[k] = int(v.split()[0]) / 1024
        return out

    def watch(self):
        while self.proc.poll() is None:
            try:
                s = self.status()
                self.peak = max(self.peak, s["VmRSS"])
                self.peak_anon = max(self.peak_anon, s["RssAnon"])
            except (OSError, KeyError):
                pass
            time.sleep(0.1)

    def io(self):
        d = dict(line.split(": ") for line in open(f"/proc/{self.proc.pid}/io").read().splitlines())
        return int(d["read_bytes"]), int(d["write_bytes"])

    def cpu(self):
        f = open(f"/proc/{self.proc.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(f[11]) + int(f[12])) / os.sysconf("SC_CLK_TCK")

    def figures(self):
        """Server's own account of its memory and files, in MB where it is bytes."""
        p = self.conn.ok("admin", {"serverStatus": 1})["wiredTiger"].get("pandodb", {})
        flat = {k: int(v["$numberLong"]) for k, v in p.items() if "$numberLong" in v}
        return {k: round(v / 1e6) if "Bytes" in k else v for k, v in flat.items()}

    def files(self):
        return sum(len(f) for _, _, f in os.walk(self.home / "data"))

    def disk_mb(self):
        total = 0
        for d, _, fs in os.walk(self.home / "data"):
            for f in fs:
                try:
                    total += os.stat(os.path.join(d, f)).st_blocks * 512
                except OSError:
                    pass
        return total / 1e6

    def stop(self):
        self.proc.send_signal(signal.SIGTERM)
        self.proc.wait(600)

    def remove(self):
        if self.proc.poll() is None:
            self.stop()
        shutil.rmtree(self.home, ignore_errors=True)


def scrambled(i):
    return (i * 0x9E3779B1) & 0xFFFFFFFF


NOISE = os.urandom(1 << 20)


def doc(i, size=1024):
    """BSON of {_id: long, k: int, n: int, p: binary}."""
    pad = size - 54
    at = (i * 7919) % (len(NOISE) - pad)
    body = b"\x12_id\0" + struct.pack("<q", scrambled(i)) + b"\x10k\0" + struct.pack("<i", i % 100003) + b"\x10n\0" + struct.pack("<i", i % 7) + b"\x05p\0" + struct.pack("<i", pad) + b"\0" + NOISE[at:at + pad]
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def insert_message(coll, docs):
    import ejson
    b = struct.pack("<I", 0) + b"\0" + ejson.encode({"insert": coll, "ordered": False, "$db": DB})
    s = b"documents\0" + b"".join(docs)
    b += b"\1" + struct.pack("<i", len(s) + 4) + s
    return wire.header(16 + len(b), wire.OP_MSG) + b


def insert(c, coll, docs):
    c.send(insert_message(coll, docs))
    r = c.recv_doc()
    if r.get("ok") != 1 or r.get("writeErrors"):
        raise RuntimeError(str(r)[:400])


def in_threads(n, seconds, uri, work):
    """(operations per second, p50 ms, p99 ms) of `work(connection, random)` in n threads."""
    times, lock, stop = [], threading.Lock(), time.monotonic() + seconds

    def run(seed):
        rnd, c, mine = random.Random(seed), wire.Conn(uri, timeout=600), []
        while time.monotonic() < stop:
            t = time.monotonic()
            work(c, rnd)
            mine.append(time.monotonic() - t)
        with lock:
            times.extend(mine)
    ts = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for t in ts:
        t.start()
    for t in ts:
        t.join()
    times.sort()
    return len(times) / seconds, times[len(times) // 2] * 1e3, times[int(len(times) * .99)] * 1e3


def measured(srv, name, ops, f):
    r0, w0, c0, t0 = *srv.io(), srv.cpu(), time.monotonic()
    srv.peak = srv.peak_anon = 0
    out = f()
    r1, w1, c1, dt = *srv.io(), srv.cpu(), time.monotonic() - t0
    time.sleep(0.2)
    n = ops(out)
    print(f"{name}: {dt:.1f} s, {n / dt:.0f}/s, server cpu {1e6 * (c1 - c0) / max(n, 1):.1f} us each, disk read {(r1 - r0) / 1e6:.0f} MB written {(w1 - w0) / 1e6:.0f} MB, RSS peak {srv.peak:.0f} MB (anonymous {srv.peak_anon:.0f})", flush=True)
    f = srv.figures()
    print("  " + ", ".join(f"{k} {f[k]}" for k in ("cachedBytes", "pinnedBytes", "memtableBytes", "logRecentBytes", "roomWaits", "refusedUnits", "checkpoints") if k in f), flush=True)
    return out


def big(a):
    srv = Server(a.binary, a.port, ["--wiredTigerCacheSizeGB", str(a.cache_gb), "--oplogSize", "990"], a.limit_mb)
    n = int(a.gb * 1e9 / 1024)
    c = srv.conn
    c.ok(DB, {"createIndexes": "big", "indexes": [{"key": {"k": 1}, "name": "k"}]})

    def load():
        longest = 0
        for at in range(0, n, 1000):
            docs = [doc(i) for i in range(at, min(n, at + 1000))]
            t = time.monotonic()
            insert(c, "big", docs)
            longest = max(longest, time.monotonic() - t)
        print(f"  longest insert of 1000: {longest:.2f} s")
    _, w0 = srv.io()
    measured(srv, f"load {a.gb} GB", lambda _: n, load)
    c.ok("admin", {"fsync": 1})
    _, w1 = srv.io()
    print(f"  written per byte inserted: {(w1 - w0) / (n * 1024):.2f}; on disk {srv.disk_mb():.0f} MB in {srv.files()} files")

    def rate(r):
        print(f"  {r[0]:.0f}/s with 4 clients, p50 {r[1]:.2f} ms, p99 {r[2]:.2f} ms")
        return r[0] * a.seconds
    read = lambda c, rnd: c.ok(DB, {"find": "big", "filter": {"_id": {"$numberLong": str(scrambled(rnd.randrange(n)))}}, "limit": 1, "singleBatch": True})  # noqa: E731
    measured(srv, "random reads by _id", rate, lambda: in_threads(4, a.seconds, srv.uri, read))
    by_k = lambda c, rnd: c.ok(DB, {"find": "big", "filter": {"k": rnd.randrange(100003)}, "limit": 10, "singleBatch": True})  # noqa: E731
    measured(srv, "10 documents by the index", rate, lambda: in_threads(4, a.seconds, srv.uri, by_k))
    scan = lambda: c.cursor(DB, {"aggregate": "big", "pipeline": [{"$group": {"_id": None, "n": {"$sum": 1}, "s": {"$sum": "$n"}}}], "cursor": {}})  # noqa: E731
    got = measured(srv, "scan of everything", lambda r: r[0]["n"], scan)
    if got[0]["n"] != n:
        raise RuntimeError(f"{got[0]['n']} documents of {n}")
    upd = lambda c, rnd: c.ok(DB, {"update": "big", "updates": [{"q": {"_id": {"$numberLong": str(scrambled(rnd.randrange(n)))}}, "u": {"$inc": {"n": 1}, "$set": {"k": rnd.randrange(100003)}}}]})  # noqa: E731
    measured(srv, "random updates by _id", rate, lambda: in_threads(4, a.seconds, srv.uri, upd))
    print(f"  {srv.figures()}")
    srv.stop()
    srv.start()
    print(f"start after a clean stop: {srv.ready_s:.2f} s, RSS {srv.status()['VmRSS']:.0f} MB")
    srv.remove()


def many(a):
    for count in (int(x) for x in a.counts.split(",")):
        srv = Server(a.binary, a.port, ["--oplogSize", "990"])
        c = srv.conn
        t0 = time.monotonic()
        for i in range(count):
            c.ok(DB, {"create": f"c{i}"})
        created, (_, w0), t1 = time.monotonic() - t0, srv.io(), time.monotonic()
        total = int(a.mb * 1e6 / 1024)
        at = 0
        order = random.Random(1)
        while at < total:
            docs = [doc(i) for i in range(at, at + 10)]
            insert(c, f"c{order.randrange(count)}", docs)
            at += 10
        dt = time.monotonic() - t1
        c.ok("admin", {"fsync": 1})
        _, w1 = srv.io()
        rss = srv.peak
        files, disk = srv.files(), srv.disk_mb()
        srv.proc.kill()
        srv.proc.wait()
        srv.start()
        print(f"{count} collections: created in {created:.1f} s, {total} documents in {dt:.1f} s, written per byte inserted {(w1 - w0) / (total * 1024):.2f}, {files} files, {disk:.0f} MB on disk, RSS peak {rss:.0f} MB, start after kill -9 {srv.ready_s:.2f} s", flush=True)
        srv.remove()


def size_of(folder):
    total = 0
    for f in folder.iterdir() if folder.is_dir() else ():
        try:
            total += f.stat().st_size
        except FileNotFoundError:
            pass
    return total


def oplog(a):
    srv = Server(a.binary, a.port, ["--oplogSize", str(a.oplog_mb), "--setParameter", "syncdelay=1"])
    c, tail, slow = srv.conn, wire.Conn(srv.uri, timeout=60), wire.Conn(srv.uri, timeout=60)
    insert(c, "c", [doc(i) for i in range(100)])
    # A reader that keeps up, and one that stands still.
    keeps = tail.ok("local", {"find": "oplog.rs", "filter": {}, "tailable": True, "awaitData": True, "batchSize": 50})["cursor"]
    stands = slow.ok("local", {"find": "oplog.rs", "filter": {}, "tailable": True, "awaitData": True, "batchSize": 5})["cursor"]
    total, at, most, seen = int(a.mb * 1e6 / 1024), 100, 0, 0
    while at < total:
        insert(c, "c", [doc(i) for i in range(at, at + 500)])
        at += 500
        while True:
            r = tail.ok("local", {"getMore": keeps["id"], "collection": "oplog.rs", "batchSize": 1000, "maxTimeMS": 1})["cursor"]
            seen += len(r["nextBatch"])
            if not r["nextBatch"]:
                break
        most = max(most, size_of(srv.home / "data" / "journal"))
    first = c.ok("local", {"find": "oplog.rs", "filter": {}, "limit": 1})["cursor"]["firstBatch"][0]
    r = slow.command("local", {"getMore": stands["id"], "collection": "oplog.rs"})
    print(f"{a.mb} MB through an oplog of {a.oplog_mb} MB: files at most {most / 1e6:.0f} MB, a reader that kept up saw {seen} entries, first entry now {first.get('o', {}).get('_id')}")
    print(f"a reader that fell behind: code {r.get('code')} {r.get('codeName')}: {r.get('errmsg')}")
    srv.remove()
    if r.get("code") != 136 or (most and most > (a.oplog_mb + 16) * 1.25e6) or seen < total - 1000:
        raise SystemExit("FAILED")


def main():
    ap = argparse.ArgumentParser(usage=__doc__)
    ap.add_argument("binary")
    ap.add_argument("what", choices=["big", "many", "oplog"])
    ap.add_argument("--port", type=int, default=31399)
    ap.add_argument("--gb", type=float, default=5)
    ap.add_argument("--cache-gb", type=float, default=0.25)
    ap.add_argument("--limit-mb", type=int, default=0)
    ap.add_argument("--seconds", type=int, default=20)
    ap.add_argument("--mb", type=int, default=None)
    ap.add_argument("--counts", default="1,100,5000")
    ap.add_argument("--oplog-mb", type=int, default=64)
    a = ap.parse_args()
    a.mb = a.mb or {"many": 200, "oplog": 600}.get(a.what)
    {"big": big, "many": many, "oplog": oplog}[a.what](a)


if __name__ == "__main__":
    main()
