#!/usr/bin/env python3
"""kill -9 under load, again and again: nothing acknowledged with j: true may be lost.

    kill9.py BINARY [-n CYCLES] [--port P] [--writers W] [--seed S] [--big N] [--dir D] [--keep] [--encrypted] [-- ARG ...]

One data directory lives through all cycles. Each cycle starts BINARY as a one-member replica set, lets W writers run
inserts (single and batched), updates ($inc, $set, $push, replacement), upserts, findAndModify and deletes at j: true,
plus unordered writes without waiting, plus now and then an index build, a new collection or a drop, plus index
builds, drops of indexes and of whole collections on collections of N documents that are being written to; kills the
process at a random moment (with checkpoints every 60, 1 or 0.05 seconds); starts it again and checks:

  data    every acknowledged write is there, every acknowledged delete stayed, and what was in flight at the
          kill is either fully there or not at all
  builds  an index build that the kill cut off ends within a minute; an acknowledged index is there and an
          acknowledged drop of one stayed
  valid   `validate {full: true}` finds every collection valid
  index   every index gives the same documents as a collection scan
  oplog   replaying local.oplog.rs (inserts, `$v: 2` diffs, replacements, deletes, drops, transactions' applyOps)
          from the beginning of a collection gives exactly the collection, and timestamps ascend without repeats
  rerun   the next cycle's writes go on from there

With --encrypted the folder is encrypted, some starts bring another master key or
another data key, and no file that a kill leaves may hold what the documents are padded with.

Extra arguments after `--` go to the server. Works with a mongod binary too. Standard library only.
Ends with `N passed, N failed` (cycles).
"""
import argparse
import base64
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import wire  # noqa: E402
from ejson import L  # noqa: E402

DB = "crash"
BIG = "crashbig"
J = {"w": 1, "j": True}


def dumps(x):
    return json.dumps(x, separators=(",", ":"), ensure_ascii=False)


# ------------------------------------------------------------ the server process


class Keys:
    """Encryption at rest: the options of each start."""

    def __init__(self, home, seed):
        self.home, self.rnd, self.number = home, random.Random(seed), 0
        self.make()

    def make(self):
        path = self.home / f"key{self.number}"
        path.write_text(base64.b64encode(self.rnd.randbytes(32)).decode())
        path.chmod(0o600)
        return path

    def options(self):
        path, more = self.home / f"key{self.number}", []
        if self.rnd.random() < 1 / 3:
            self.number += 1
            path, more = self.make(), ["--encryptionReplacedKeyFile", str(path)]
        if self.rnd.random() < 1 / 3:
            more.append("--encryptionNewDataKey")
        return ["--enableEncryption", "--encryptionKeyFile", str(path), *more]

    @staticmethod
    def readable(data, word):
        """Files that hold the word."""
        return [str(p.relative_to(data)) for p in sorted(data.rglob("*")) if p.is_file() and word in p.read_bytes()]


class Server:
    def __init__(self, binary, port, home, extra, keys=None):
        self.binary, self.port, self.home, self.extra, self.keys = binary, port, home, extra, keys
        self.uri = f"mongodb://127.0.0.1:{port}"
        self.proc = None
        os.makedirs(home / "data", exist_ok=True)

    def start(self, syncdelay=60):
        t0 = time.monotonic()
        self.log = open(self.home / "server.log", "ab")
        keys = self.keys.options() if self.keys else []
        self.proc = subprocess.Popen([self.binary, *keys, "--dbpath", str(self.home / "data"), "--port", str(self.port), "--bind_ip", "127.0.0.1", "--replSet", "rs",
                                      "--setParameter", f"syncdelay={syncdelay}", *self.extra],
                                     stdout=self.log, stderr=subprocess.STDOUT)
        while time.monotonic() - t0 < 180:
            if self.proc.poll() is not None:
                raise RuntimeError(f"server ended with {self.proc.returncode} at start; see {self.home}/server.log")
            try:
                c = wire.Conn(self.uri, timeout=20)
                h = c.command("admin", {"hello": 1})
                if h.get("isWritablePrimary"):
                    c.close()
                    return time.monotonic() - t0
                if "setName" not in h:
                    c.command("admin", {"replSetInitiate": {"_id": "rs", "members": [{"_id": 0, "host": f"127.0.0.1:{self.port}"}]}})
                c.close()
            except (OSError, ValueError):
                pass
            time.sleep(0.05)
        raise RuntimeError("server not writable after 180 s")

    def kill(self):
        self.proc.send_signal(signal.SIGKILL)
        self.proc.wait()
        self.log.close()


# ------------------------------------------------------------ writers

FIELDS = ["a", "b", "c"]


class Model:
    """What one writer knows of its own documents: `must` is acknowledged, `may` is what an unanswered write would leave."""

    def __init__(self):
        self.must = {}      # _id -> document, or None when deleted
        self.may = {}       # _id -> [documents or None]: outcomes allowed besides `must`
        self.acked = 0


def step(rnd, w, m, n):
    """One write: (command, [(id, state before, state after)]) with full predicted documents."""
    live = [k for k, v in m.must.items() if v is not None]
    k = rnd.random()
    coll = f"w{w % 3}"
    if k < .35 or len(live) < 5:
        doc = {"_id": f"{w}-{n}", "w": w, "n": n, "a": rnd.randrange(100), "pad": "x" * rnd.randrange(200), "t": [n]}
        return {"insert": coll, "documents": [doc]}, [(doc["_id"], doc)]
    if k < .45:
        docs = [{"_id": f"{w}-{n}-{i}", "w": w, "n": n, "a": rnd.randrange(100), "t": []} for i in range(rnd.randrange(2, 30))]
        return {"insert": coll, "documents": docs}, [(d["_id"], d) for d in docs]
    i = rnd.choice(live)
    old = m.must[i]
    if k < .60:
        new = {**old, "a": old.get("a", 0) + 3}
        u = {"$inc": {"a": 3}}
    elif k < .70:
        new = {**old, "b": {**(old.get("b") or {}), "x": n}}
        u = {"$set": {"b.x": n}}
    elif k < .80:
        new = {**old, "t": (old.get("t") or []) + [n]}
        u = {"$push": {"t": n}}
    elif k < .85:
        new = {"_id": i, "w": w, "n": n, "a": -n, "t": [1]}
        u = {kk: v for kk, v in new.items() if kk != "_id"}
    elif k < .92:
        new = {**old, "f": n}
        return {"findAndModify": coll, "query": {"_id": i}, "update": {"$set": {"f": n}}}, [(i, new)]
    else:
        return {"delete": coll, "deletes": [{"q": {"_id": i}, "limit": 1}]}, [(i, None)]
    return {"update": coll, "updates": [{"q": {"_id": i}, "u": u}]}, [(i, new)]


def writer(uri, w, seed, m, stop, errors):
    rnd = random.Random(seed)
    try:
        c = wire.Conn(uri, timeout=20)
        n = int(time.time() * 1000) % 10**9
        while not stop.is_set():
            n += 1
            cmd, effects = step(rnd, w, m, n)
            for i, after in effects:
                m.may.setdefault(i, []).append(after)
            r = c.command(DB, {**cmd, "writeConcern": J})
            if r.get("ok") != 1 or r.get("writeErrors") or r.get("writeConcernError"):
                raise RuntimeError(f"write refused: {dumps(r)[:300]}")
            hit = r.get("n", 1) if "findAndModify" not in cmd else 1
            if hit != len(effects):
                raise RuntimeError(f"{dumps(cmd)[:200]} touched {hit} of {len(effects)}")
            for i, after in effects:
                m.must[i] = after
                m.may.pop(i, None)
                m.acked += 1
    except OSError:
        pass  # the kill
    except Exception as e:  # noqa: BLE001
        errors.append(f"writer {w}: {e}")


def noise(uri, seed, stop, errors):
    """Writes nobody waits for, and DDL: they must only leave a consistent store."""
    rnd = random.Random(seed)
    try:
        c = wire.Conn(uri, timeout=20)
        while not stop.is_set():
            k = rnd.randrange(30)
            if k == 0:
                c.command(DB, {"createIndexes": f"w{rnd.randrange(3)}", "indexes": [{"key": {rnd.choice(["a", "n", "b.x", "t"]): rnd.choice([1, -1])}, "name": f"ix{rnd.randrange(4)}"}]})
            elif k == 1:
                c.command(DB, {"dropIndexes": f"w{rnd.randrange(3)}", "index": f"ix{rnd.randrange(4)}"})
            elif k == 2:
                c.command(DB, {"drop": "noise"})
            elif k == 3:
                c.command(DB, {"create": "noisecap", "capped": True, "size": 20000})
            elif k < 12:
                c.command(DB, {"insert": "noise", "ordered": False, "documents": [{"k": rnd.randrange(50), "v": rnd.random()} for _ in range(50)]})
            elif k < 20:
                c.command(DB, {"update": "noise", "ordered": False, "updates": [{"q": {"k": rnd.randrange(50)}, "u": {"$inc": {"z": 1}, "$set": {f"s{rnd.randrange(3)}": rnd.random()}}, "multi": True}, {"q": {"k": 1000 + rnd.randrange(5)}, "u": {"$inc": {"u": 1}}, "upsert": True}]})
            elif k < 26:
                c.command(DB, {"insert": "noisecap", "documents": [{"v": "y" * rnd.randrange(300)}]})
            else:
                c.command(DB, {"delete": "noise", "deletes": [{"q": {"k": rnd.randrange(50)}, "limit": 0}]})
    except OSError:
        pass
    except Exception as e:  # noqa: BLE001
        errors.append(f"noise: {e}")


class Indexes:
    """What is known of the indexes of the big collections: `must` is acknowledged, `may` was asked for at the kill."""

    def __init__(self):
        self.must = {}      # collection -> {name: key}
        self.may = {}       # collection -> outcomes allowed besides: a dict as in `must`, or None for no collection
        self.built = self.dropped = 0


def fill_big(c, name, n, rnd):
    for at in range(0, n, 1000):
        docs = [{"_id": i, "a": rnd.randrange(1000), "u": i, "t": [i % 7, i % 11], "s": {"x": f"k{i % 97}"}, "pad": "p" * rnd.randrange(100)} for i in range(at, min(n, at + 1000))]
        # An upsert may have been faster.
        r = c.command(BIG, {"insert": name, "documents": docs, "ordered": False, "writeConcern": J})
        if r.get("ok") != 1 or any(e["code"] != 11000 for e in r.get("writeErrors", [])):
            raise RuntimeError(f"insert refused: {dumps(r)[:300]}")


BIG_KEYS = [("a_1", {"a": 1}), ("t_1", {"t": 1}), ("sx_a", {"s.x": 1, "a": -1}), ("u_1", {"u": 1}), ("wild", {"$**": 1}), ("hash", {"a": "hashed"})]


def builder(uri, seed, ix, n, stop, errors):
    """Index builds and drops on big collections, one after the other; the kill usually cuts one off."""
    rnd = random.Random(seed)
    try:
        c = wire.Conn(uri, timeout=60)
        while not stop.is_set():
            name = f"b{rnd.randrange(2)}"
            if name not in ix.must:
                ix.may[name] = [{}]
                fill_big(c, name, n, rnd)
                ix.must[name] = {}
                ix.may.pop(name)
            have = ix.must[name]
            absent = [k for k in BIG_KEYS if k[0] not in have]
            k = rnd.random()
            if k < .72 and absent:
                new = dict(rnd.sample(absent, min(len(absent), rnd.choice([1, 1, 2]))))
                after = {**have, **new}
                cmd = {"createIndexes": name, "indexes": [{"key": key, "name": i, **({"unique": True} if i == "u_1" else {})} for i, key in new.items()]}
            elif k < .9 and have:
                gone = rnd.choice(sorted(have))
                after = {i: key for i, key in have.items() if i != gone}
                cmd = {"dropIndexes": name, "index": gone}
            elif k < .95 and have:
                after, cmd = {}, {"dropIndexes": name, "index": "*"}
            elif k > .97:
                after, cmd = None, {"drop": name}
            else:
                continue
            ix.may[name] = [after]
            c.ok(BIG, {**cmd, "writeConcern": J})
            ix.may.pop(name)
            if after is None:
                del ix.must[name]
            else:
                ix.built += len(after) > len(have)
                ix.dropped += len(after) < len(have)
                ix.must[name] = after
    except OSError:
        pass
    except Exception as e:  # noqa: BLE001
        errors.append(f"builder: {e}")


def churn(uri, seed, n, stop, errors):
    """Changes of the big collections' documents while indexes are built on them."""
    rnd = random.Random(seed)
    try:
        c = wire.Conn(uri, timeout=60)
        while not stop.is_set():
            name, i, k = f"b{rnd.randrange(2)}", rnd.randrange(n), rnd.random()
            if k < .8:
                u = rnd.choice([{"$set": {"a": rnd.randrange(1000)}}, {"$push": {"t": rnd.randrange(30)}}, {"$set": {"s.x": rnd.random()}}, {"$pop": {"t": 1}}])
                c.command(BIG, {"update": name, "updates": [{"q": {"_id": i}, "u": u}]})
            elif k < .9:
                c.command(BIG, {"delete": name, "deletes": [{"q": {"_id": i}, "limit": 1}]})
            else:
                c.command(BIG, {"update": name, "updates": [{"q": {"_id": i}, "u": {"$set": {"a": 1, "u": i}}, "upsert": True}]})
    except OSError:
        pass
    except Exception as e:  # noqa: BLE001
        errors.append(f"churn: {e}")


# ------------------------------------------------------------ replay of the oplog


def apply_diff(old, diff):
    """`$v: 2` diff on a document."""
    out = dict(old)
    for k in diff.get("d", {}):
        out.pop(k, None)
    for k, v in diff.get("u", {}).items():
        out[k] = v
    for k, v in diff.get("i", {}).items():
        out.pop(k, None)
        out[k] = v
    for k, v in diff.items():
        if k[0] == "s" and len(k) > 1:
            f = k[1:]
            if isinstance(v, dict) and v.get("a") is True:
                out[f] = apply_array(out[f], v)
            else:
                out[f] = apply_diff(out[f], v)
    return out


def apply_array(old, diff):
    out = list(old)
    for k, v in diff.items():
        if k == "a":
            continue
        if k == "l":
            out = out[:v] + [None] * (v - len(out))
            continue
        i = int(k[1:])
        out += [None] * (i + 1 - len(out))
        if k[0] == "u":
            out[i] = v
        elif isinstance(v, dict) and v.get("a") is True:
            out[i] = apply_array(out[i], v)
        else:
            out[i] = apply_diff(out[i], v)
    return out


def replay(entries):
    """ns -> {_id text: document}, from oplog entries in order; and the list of complaints."""
    colls, bad, last = {}, [], (0, 0)

    def one(e):
        op, ns, o = e["op"], e["ns"], e["o"]
        c = colls.setdefault(ns, {})
        if op == "i":
            c[dumps(o["_id"])] = o
        elif op == "u":
            key = dumps(e["o2"]["_id"])
            if "diff" in o:
                if key not in c:
                    bad.append(f"update of a missing document {ns} {key}")
                else:
                    c[key] = apply_diff(c[key], o["diff"])
            else:
                c[key] = o
        elif op == "d":
            if c.pop(dumps(o["_id"]), None) is None:
                bad.append(f"delete of a missing document {ns} {dumps(o['_id'])}")
        elif op == "c":
            db = ns.split(".", 1)[0]
            if "applyOps" in o:
                for x in o["applyOps"]:
                    one(x)
            elif "drop" in o:
                colls.pop(f"{db}.{o['drop']}", None)
            elif "dropDatabase" in o:
                for k in [k for k in colls if k.startswith(db + ".")]:
                    del colls[k]
            elif "renameCollection" in o:
                colls[o["to"]] = colls.pop(o["renameCollection"], {})
    for e in entries:
        ts = (e["ts"]["$timestamp"]["t"], e["ts"]["$timestamp"]["i"])
        if ts <= last:
            bad.append(f"oplog timestamps out of order: {last} then {ts}")
        last = ts
        one(e)
    return colls, bad


# ------------------------------------------------------------ checks after the restart


def wait_for_builds(c, patience=60):
    """Index builds that the last process left behind are taken up again; returns whether there were any."""
    t0, seen = time.monotonic(), 0
    while True:
        n = int(c.ok("admin", {"serverStatus": 1})["activeIndexBuilds"]["total"])
        seen = max(seen, n)
        if n == 0:
            return seen
        if time.monotonic() - t0 > patience:
            raise RuntimeError(f"{n} index builds are still not ready after {patience} s")
        time.sleep(0.02)


def check_big(c, ix):
    """Collections and indexes of the big database are as acknowledged, and every index is whole."""
    bad = []
    names = {d["name"] for d in c.cursor(BIG, {"listCollections": 1})}
    for name in sorted(set(ix.must) | set(ix.may) | names):
        allowed = [ix.must.get(name)] + ix.may.get(name, [])
        if None in allowed:
            allowed.append({})  # the churn's upserts make it again
        if name not in names:
            if None not in allowed:
                bad.append(f"{BIG}.{name} is gone")
            ix.must.pop(name, None)
            continue
        have = {d["name"]: d["key"] for d in c.cursor(BIG, {"listIndexes": name}) if d["name"] != "_id_"}
        if not any(x is not None and sorted(have) == sorted(x) for x in allowed):
            bad.append(f"{BIG}.{name}: indexes {sorted(have)}, acknowledged or in flight {[x and sorted(x) for x in allowed]}")
        ix.must[name] = have
        r = c.command(BIG, {"validate": name, "full": True, "enforceFastCount": True})
        if r.get("ok") != 1 or r.get("valid") is not True:
            bad.append(f"validate {BIG}.{name}: {dumps({k: r.get(k) for k in ('ok', 'valid', 'errors', 'errmsg')})[:400]}")
        count = c.command(BIG, {"count": name}).get("n")
        for i in ["$natural", "_id_", *have]:
            hint = {"$natural": 1} if i == "$natural" else i
            q = {"u": {"$gte": 0}} if i == "wild" else {}
            got = c.cursor(BIG, {"aggregate": name, "pipeline": [{"$match": q}, {"$group": {"_id": None, "n": {"$sum": 1}, "h": {"$sum": "$u"}}}], "hint": hint, "cursor": {}})
            n = got[0]["n"] if got else 0
            if n != count:
                bad.append(f"{BIG}.{name}: {n} documents through {i}, count says {count}")
    ix.may.clear()
    return bad


def check(srv, models, ix, since):
    c = wire.Conn(srv.uri, timeout=120)
    resumed = wait_for_builds(c)
    bad = check_big(c, ix)
    colls = {d["name"]: d for d in c.cursor(DB, {"listCollections": 1})}
    data = {n: c.cursor(DB, {"find": n, "filter": {}}) for n in colls}
    by_id = {}
    for n, docs in data.items():
        ids = [dumps(d["_id"]) for d in docs]
        if len(set(ids)) != len(ids):
            bad.append(f"{n}: an _id occurs twice")
        by_id[n] = {dumps(d["_id"]): d for d in docs}
    for w, m in enumerate(models):
        have = by_id.get(f"w{w % 3}", {})
        for i in set(m.must) | set(m.may):
            got = have.get(dumps(i))
            allowed = [m.must.get(i)] + m.may.get(i, [])
            if not any(dumps(got) == dumps(x) for x in allowed):
                bad.append(f"w{w % 3} {i}: acknowledged {dumps(m.must.get(i))[:150]}, in flight {len(m.may.get(i, []))}, found {dumps(got)[:150]}")
            m.must[i] = got  # what is there now is the truth for the next cycle
        m.may.clear()
    known = {dumps(i) for m in models for i, d in m.must.items() if d is not None}
    for n in ("w0", "w1", "w2"):
        extra = [i for i in by_id.get(n, {}) if i not in known]
        if extra:
            bad.append(f"{n}: {len(extra)} documents nobody wrote, e.g. {extra[0]}")
    for n in sorted(colls):
        r = c.command(DB, {"validate": n, "full": True, "enforceFastCount": True})
        if r.get("ok") != 1 or r.get("valid") is not True:
            bad.append(f"validate {n}: {dumps({k: r.get(k) for k in ('ok', 'valid', 'errors', 'errmsg')})[:400]}")
        count = c.command(DB, {"count": n}).get("n")
        if count != len(data[n]):
            bad.append(f"{n}: count says {count}, a scan finds {len(data[n])}")
        for ix in c.cursor(DB, {"listIndexes": n}):
            seen = c.cursor(DB, {"find": n, "filter": {}, "hint": ix["name"]})
            if sorted(map(dumps, seen)) != sorted(map(dumps, data[n])):
                bad.append(f"{n}: index {ix['name']} gives {len(seen)} documents, a scan {len(data[n])}")
    entries = c.cursor("local", {"find": "oplog.rs", "filter": {"ts": {"$gte": since}, "ns": {"$in": [f"{DB}.{n}" for n in colls] + [f"{DB}.$cmd", "admin.$cmd"]}}, "sort": {"$natural": 1}})
    told, complaints = replay(entries)
    bad += complaints[:5]
    for n, docs in by_id.items():
        if colls[n].get("type") == "view" or n.startswith("system.") or colls[n]["options"].get("capped"):
            continue
        t = told.get(f"{DB}.{n}", {})
        diff = [i for i in set(t) | set(docs) if dumps(t.get(i)) != dumps(docs.get(i))]
        if diff:
            bad.append(f"{n}: oplog and data disagree on {len(diff)} documents, e.g. {diff[0]}: oplog {dumps(t.get(diff[0]))[:200]} data {dumps(docs.get(diff[0]))[:200]}")
    c.close()
    return bad, len(entries), sum(map(len, data.values())), resumed


def free_port():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    p = s.getsockname()[1]
    s.close()
    return p


def main():
    argv = sys.argv[1:]
    extra = argv[argv.index("--") + 1:] if "--" in argv else []
    ap = argparse.ArgumentParser(usage=__doc__)
    ap.add_argument("binary")
    ap.add_argument("-n", type=int, default=20)
    ap.add_argument("--port", type=int, default=0)
    ap.add_argument("--writers", type=int, default=4)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--big", type=int, default=5000, help="documents of a collection on which indexes are built")
    ap.add_argument("--dir")
    ap.add_argument("--keep", action="store_true")
    ap.add_argument("--encrypted", action="store_true")
    ap.add_argument("--max-load", type=float, default=1.5, help="longest load before a kill, seconds")
    a = ap.parse_args(argv[:argv.index("--")] if "--" in argv else argv)
    home = pathlib.Path(a.dir or tempfile.mkdtemp(prefix="kill9-"))
    srv = Server(a.binary, a.port or free_port(), home, extra, Keys(home, a.seed) if a.encrypted else None)
    rnd = random.Random(a.seed)
    passed = failed = acked = resumed = in_flight = 0
    ix, since = Indexes(), {"$timestamp": {"t": 0, "i": 0}}
    models = [Model() for _ in range(a.writers)]
    t_start = time.monotonic()
    try:
        for cycle in range(1, a.n + 1):
            errors, bad = [], []
            stop = threading.Event()
            if srv.proc is None:
                srv.start()
            if cycle % 25 == 1 and cycle > 1:
                # keep the oplog replay short: a new database every 25 cycles
                c = wire.Conn(srv.uri, timeout=120)
                since = c.ok(DB, {"dropDatabase": 1, "writeConcern": J})["operationTime"]
                c.close()
                models = [Model() for _ in range(a.writers)]
            ts = [threading.Thread(target=writer, args=(srv.uri, w, rnd.random(), m, stop, errors)) for w, m in enumerate(models)]
            ts.append(threading.Thread(target=noise, args=(srv.uri, rnd.random(), stop, errors)))
            ts.append(threading.Thread(target=builder, args=(srv.uri, rnd.random(), ix, a.big, stop, errors)))
            ts.append(threading.Thread(target=churn, args=(srv.uri, rnd.random(), a.big, stop, errors)))
            for t in ts:
                t.start()
            time.sleep(rnd.choice([rnd.uniform(0.02, 0.2), rnd.uniform(0.1, a.max_load)]))
            srv.kill()
            stop.set()
            for t in ts:
                t.join()
            now = sum(m.acked for m in models)
            bad += errors
            if srv.keys:
                bad += [f"{name} can be read" for name in srv.keys.readable(home / "data", b"x" * 24)]
            in_flight += len(ix.may)
            back = srv.start(rnd.choice([60, 1, 0.05]))
            more, entries, docs, again = check(srv, models, ix, since)
            bad += more
            resumed += again
            acked = now
            if bad:
                failed += 1
            else:
                passed += 1
            if bad or cycle % 10 == 0 or cycle <= 3:
                print(f"cycle {cycle:3}: {acked} acknowledged writes, restart {back:.2f} s, {docs} documents, {entries} oplog entries, {again} builds resumed: {'ok' if not bad else 'FAILED'}", flush=True)
            for b in bad[:8]:
                print("    " + b)
            if bad and failed == 1:
                shutil.copytree(home / "data", home / f"failed-{cycle}", dirs_exist_ok=True)
                print(f"    data directory after the checks kept in {home}/failed-{cycle}")
    except (RuntimeError, KeyboardInterrupt) as e:
        failed += 1
        print(f"kill9: {e}")
    finally:
        if srv.proc and srv.proc.poll() is None:
            srv.kill()
    print(f"{ix.built} index builds and {ix.dropped} index drops acknowledged, {in_flight} DDL commands cut off, {resumed} builds seen resuming")
    print(f"{time.monotonic() - t_start:.0f} s, data in {home}" if a.keep or failed else f"{time.monotonic() - t_start:.0f} s")
    if not a.keep and not failed and not a.dir:
        shutil.rmtree(home)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
