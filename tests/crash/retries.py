#!/usr/bin/env python3
"""kill -9, then retries: a retryable statement that was carried out is answered, not carried out again.

    retries.py BINARY [--port P] [--entries N] [--statements S] [--dir D]

Starts BINARY as a one-member replica set. Two sessions insert S documents each as one retryable write, ten sessions increment,
push, remove and change-and-return a document each, then N documents are inserted without sessions, while one session waits for an
open transaction. Checkpoints run every two seconds. The process is killed and started again, and every statement of the
sessions is sent once more: all must be answered as carried out, and change nothing. Works with a mongod binary too. Standard library only.
Ends with `N passed, N failed` (statements).
"""
import argparse
import pathlib
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import wire  # noqa: E402
from ejson import BIN, L  # noqa: E402
from kill9 import Server  # noqa: E402

DB = "retries"
BATCH = 10_000


def session(n):
    return {"id": BIN(bytes([n]) * 16, 4)}


def retryable(command, n, number=1):
    return {**command, "lsid": session(n), "txnNumber": L(number), "writeConcern": {"w": "majority", "j": True}}


def statements():
    """(session, command) that a second time would change something."""
    out = []
    for n in range(10, 20):
        q = {"_id": n}
        kinds = [
            {"update": "docs", "updates": [{"q": q, "u": {"$inc": {"n": 1}}}]},
            {"update": "docs", "updates": [{"q": q, "u": {"$push": {"t": 1}}}]},
            {"findAndModify": "docs", "query": q, "update": {"$inc": {"n": 1}}, "new": True},
            {"delete": "many", "deletes": [{"q": {"kind": n}, "limit": 1}]},
            {"update": "docs", "updates": [{"q": {"_id": f"up{n}"}, "u": {"$inc": {"n": 1}}, "upsert": True}]},
        ]
        out.append((n, kinds[n % len(kinds)]))
    return out


def state(c):
    docs = c.ok(DB, {"find": "docs", "sort": {"_id": 1}, "batchSize": 100})["cursor"]["firstBatch"]
    return docs, c.ok(DB, {"count": "many"})["n"], c.ok(DB, {"count": "large"})["n"]


def inserts(c, n, count):
    docs = [{"_id": f"{n}-{i}"} for i in range(count)]
    return c.command(DB, retryable({"insert": "large"}, n), [("documents", docs)])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("binary")
    p.add_argument("--port", type=int, default=29170)
    p.add_argument("--entries", type=int, default=600_000)
    p.add_argument("--statements", type=int, default=100_000)
    p.add_argument("--dir")
    a = p.parse_args()
    home = pathlib.Path(a.dir or tempfile.mkdtemp(prefix="retries-"))
    server = Server(a.binary, a.port, home, [])
    server.start(2)
    c = wire.Conn(server.uri, timeout=300)
    c.ok(DB, {"insert": "docs", "documents": [{"_id": n, "n": 0} for n in range(10, 20)]})
    c.ok(DB, {"insert": "many", "documents": [{"kind": n} for n in range(10, 20) for _ in range(3)]})
    c.ok(DB, {"insert": "busy", "documents": [{"_id": 1}]})
    first = {n: c.ok(DB, retryable(command, n)) for n, command in statements()}
    for n in (1, 2):
        assert inserts(c, n, a.statements)["n"] == a.statements
    # One session waits for another's transaction until the end.
    change = {"update": "busy", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]}
    c.ok(DB, {**change, "lsid": session(8), "txnNumber": L(1), "startTransaction": True, "autocommit": False})

    def wait():
        try:
            wire.Conn(server.uri, timeout=300).command(DB, retryable(change, 9))
        except (OSError, ValueError):
            pass

    threading.Thread(target=wait, daemon=True).start()
    t0 = time.monotonic()
    for at in range(0, a.entries, BATCH):
        docs = [{"_id": at + i} for i in range(min(BATCH, a.entries - at))]
        c.ok(DB, {"insert": "other", "writeConcern": {"w": 1, "j": True}}, [("documents", docs)])
    wrote = time.monotonic() - t0
    before = state(c)
    server.kill()
    ready = server.start(2)
    c = wire.Conn(server.uri, timeout=300)
    passed = failed = 0
    for n, command in statements():
        r = c.command(DB, retryable(command, n))
        told = r.get("retriedStmtIds") == [0] or r.get("retriedStmtId") == 0
        same = all(r.get(k) == first[n].get(k) for k in ("n", "nModified", "value", "upserted"))
        passed, failed = (passed + 1, failed) if told and same else (passed, failed + 1)
        if not (told and same):
            shown = {k: v for k, v in r.items() if k not in ("electionId", "opTime", "$clusterTime", "operationTime")}
            print(f"session {n}: {command} -> {shown}")
    for n in (1, 2):
        r = inserts(c, n, a.statements)
        good = r.get("n") == a.statements and len(r.get("retriedStmtIds", [])) == a.statements
        passed, failed = (passed + 1, failed) if good else (passed, failed + 1)
        if not good:
            told = {k: v for k, v in r.items() if k not in ("retriedStmtIds", "writeErrors")}
            print(f"session {n}: {len(r.get('retriedStmtIds', []))} of {a.statements} retried, {len(r.get('writeErrors', []))} errors {str(r.get('writeErrors', []))[:200]}, {told}")
    after = state(c)
    if after != before:
        failed += 1
        print(f"changed: {before} -> {after}")
    print(f"{a.entries} entries in {wrote:.1f} s, ready {ready:.1f} s after the kill")
    server.kill()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
