#!/usr/bin/env python3
"""Failovers under users who work through the drivers; what they saw is judged afterwards.

    cargo build -p pando-checkers && pip install pymongo
    drivers.py BINARY [-n FAILOVERS] [--checker target/debug/check-history] [--rust PATH] [--port P] [--workers W] [--dir D]

A set of three processes of BINARY with default settings. Each worker is a causally consistent session that goes on with
transactions over some lists (appends of unique elements, reads), retryable appends and majority reads on any member. Two change
streams watch, one of which is closed and opened again with its last token. With --rust (`cargo build --bin append` in
tests/drivers/rust) the same goes on through the Rust driver on the same lists. Meanwhile the primary is killed (SIGKILL) or
told to step down, N times in all.

In the end `check-history` judges: nothing lost, doubled, dirty; no cycle that snapshot isolation forbids; sessions see
their own writes and never less than before; each stream showed every change once and in order. Ends with `N passed, N failed`.
"""
import argparse
import collections
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import pymongo
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import ReadPreference
from pymongo.write_concern import WriteConcern

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import failover  # noqa: E402
import secured  # noqa: E402

# Lists in use at a time, and for how many seconds.
LISTS, SPAN_S = 4, 3
STREAM_S = 90
MAJORITY = WriteConcern("majority", wtimeout=20000)


class History:
    """Facts, a line each, in the form that check-history reads."""

    def __init__(self, path):
        self.file, self.lock, self.outcomes = open(path, "w"), threading.Lock(), collections.Counter()

    def line(self, text):
        with self.lock:
            self.file.write(text + "\n")

    def txn(self, session, outcome, ops):
        with self.lock:
            self.outcomes[outcome] += 1
            self.file.write(f"txn {session} {outcome} {' '.join(ops)}\n")


def some_list():
    return int(time.time() / SPAN_S) * LISTS + random.randrange(LISTS)


class Worker(threading.Thread):
    def __init__(self, uri, number, history, stop):
        super().__init__(daemon=True)
        self.number, self.history, self.stop, self.n = number, history, stop, 0
        self.client = pymongo.MongoClient(uri, serverSelectionTimeoutMS=20000, connectTimeoutMS=3000, socketTimeoutMS=20000)
        db = self.client.get_database("chaos", write_concern=MAJORITY, read_concern=ReadConcern("majority"))
        self.lists = db.lists

    def collection(self, at):
        """Where a list is."""
        return self.lists

    def some_lists(self):
        """Those of one transaction, and one at least."""
        return [some_list() for _ in range(random.randint(1, 4))]

    def run(self):
        with self.client.start_session(causal_consistency=True) as session:
            while not self.stop.is_set():
                random.choice([self.transaction, self.transaction, self.push, self.look])(session)
                time.sleep(random.random() * .02)

    def element(self):
        self.n += 1
        return self.number * 10_000_000 + self.n

    def read(self, session, at, lists):
        found = lists.find_one({"_id": at}, session=session) or {}
        return f"r:{at}:{','.join(map(str, found.get('l', [])))}"

    def append(self, session, at, ops):
        e = self.element()
        # Noted first: whatever happens, it may have been done.
        ops.append(f"a:{at}:{e}")
        self.collection(at).update_one({"_id": at}, {"$push": {"l": e}}, upsert=True, session=session)

    def transaction(self, session):
        ops = []

        def body(s):
            if ops:
                # The attempt before was given up: with_transaction begins anew only then.
                self.history.txn(self.number, "fail", list(ops))
                ops.clear()
            for at in self.some_lists():
                if random.random() < .5:
                    ops.append(self.read(s, at, self.collection(at)))
                else:
                    self.append(s, at, ops)

        try:
            session.with_transaction(body, ReadConcern("snapshot"), MAJORITY, ReadPreference.PRIMARY)
            outcome = "ok"
        except PyMongoError as e:
            unknown = e.has_error_label("UnknownTransactionCommitResult")
            outcome = "unknown" if unknown else "fail"
        self.history.txn(self.number, outcome, ops)

    def push(self, session):
        ops = []
        try:
            self.append(session, self.some_lists()[0], ops)
            outcome = "ok"
        except PyMongoError:
            outcome = "unknown"
        self.history.txn(self.number, outcome, ops)

    def look(self, session):
        at = self.some_lists()[0]
        near = self.collection(at).with_options(read_preference=ReadPreference.SECONDARY_PREFERRED)
        try:
            self.history.txn(self.number, "ok", [self.read(session, at, near)])
        except PyMongoError:
            pass


class Stream(threading.Thread):
    """Watches from before the first change until it sees the last; `again`: opened anew with its token now and then."""

    def __init__(self, uri, number, history, again):
        super().__init__(daemon=True)
        self.number, self.history, self.again, self.complete = number, history, again, False
        self.watched = self.what(pymongo.MongoClient(uri, serverSelectionTimeoutMS=20000))
        self.lengths, self.opened = collections.Counter(), threading.Event()

    def what(self, client):
        """What is watched: nothing but lists may change there."""
        return client.chaos.lists

    def run(self):
        token, end = None, None
        while not self.complete:
            try:
                with self.watched.watch(resume_after=token, max_await_time_ms=200) as changes:
                    self.opened.set()
                    until = time.time() + (random.uniform(1, 6) if self.again else 1e9)
                    while time.time() < until and not self.complete:
                        change = changes.try_next()
                        token = changes.resume_token
                        if change:
                            self.note(change)
            except PyMongoError as e:
                # Only the first opening has no token to go on from.
                end = end or time.time() + STREAM_S
                if token is None or time.time() > end:
                    print(f"change stream {self.number}: {e}", flush=True)
                    return
            else:
                end = None

    def note(self, change):
        at = change["documentKey"]["_id"]
        if at == "end":
            self.complete = True
            return
        if change["operationType"] == "insert":
            new = change["fullDocument"]["l"]
        else:
            fields = change["updateDescription"]["updatedFields"]
            new = fields["l"][self.lengths[at]:] if "l" in fields else [v for _, v in sorted(fields.items())]
        self.lengths[at] += len(new)
        for e in new:
            self.history.line(f"event {self.number} {at} {e}")


def await_file(path):
    """Until the program that writes it has begun."""
    give_up = time.monotonic() + 30
    while not path.stat().st_size and time.monotonic() < give_up:
        time.sleep(.02)


def fail_over(members):
    """Seconds until another primary, or None."""
    primary = failover.settle(members)
    time.sleep(random.uniform(.2, 1))
    kill = random.random() < .7
    t0 = time.time()
    if kill:
        primary.kill()
    else:
        primary.ask({"replSetStepDown": 2, "secondaryCatchUpPeriodSecs": 2}, timeout=30)
    found = None
    while found is None and time.time() - t0 < failover.FAILOVER_S:
        if any(m.hello(.3).get("isWritablePrimary") for m in members if m is not primary):
            found = time.time() - t0
        time.sleep(.005)
    if kill:
        time.sleep(random.random())
        primary.start()
    return found


def finish(uri, members, streams, rust, history):
    """Tells the streams that this was all, and notes what is there in the end."""
    failover.settle(members)
    client = pymongo.MongoClient(uri)
    lists = client.get_database("chaos", write_concern=MAJORITY).lists
    lists.insert_one({"_id": "end"})
    for s in streams:
        s.join(STREAM_S)
    if rust:
        rust.wait(STREAM_S)
    for doc in lists.find({"_id": {"$ne": "end"}}):
        history.line(f"end {doc['_id']} {','.join(map(str, doc['l']))}")
    history.file.close()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("binary")
    ap.add_argument("-n", type=int, default=20)
    ap.add_argument("--checker", default="target/debug/check-history")
    ap.add_argument("--rust", help="the program append of tests/drivers/rust")
    ap.add_argument("--port", type=int, default=28310)
    ap.add_argument("--workers", type=int, default=4)
    ap.add_argument("--dir")
    a = ap.parse_args()
    a.binary, a.mode, a.unsynced = os.path.abspath(a.binary), "kill", False
    home = pathlib.Path(a.dir or tempfile.mkdtemp(prefix="pando-drivers-"))
    a.secured = secured.Secured("none", home / "secrets")
    members = [failover.Member(a, i, home) for i in range(failover.MEMBERS)]
    uri = f"mongodb://{','.join(m.name for m in members)}/?replicaSet=chaos"
    failed, took, stop, rust, judged = 0, [], threading.Event(), None, None
    try:
        failover.start_set(members, "chaos")
        history = History(home / "history.txt")
        streams = [Stream(uri, n, history, n == 1) for n in range(2)]
        workers = [Worker(uri, n + 1, history, stop) for n in range(a.workers)]
        for s in streams:
            s.start()
            s.opened.wait(30)
        if a.rust:
            facts = open(home / "rust.txt", "w")
            rust = subprocess.Popen([a.rust, uri, str(a.workers)], stdin=subprocess.PIPE, stdout=facts)
            await_file(home / "rust.txt")
        for w in workers:
            w.start()
        for n in range(a.n):
            found = fail_over(members)
            failed += found is None
            took += [found] if found else []
            told = dict(history.outcomes)
            print(f"failover {n}: {'no primary' if found is None else f'{found * 1000:.0f} ms'}; {told}", flush=True)
        stop.set()
        for w in workers:
            w.join(60)
        if rust:
            rust.stdin.close()
            time.sleep(3)
        finish(uri, members, streams, rust, history)
        late = [s.number for s in streams if not s.complete]
        if late or (rust and rust.returncode):
            print(f"change streams {late} did not reach the end; the Rust program ended with {rust and rust.returncode}")
            failed += 1
        whole = home / "whole.txt"
        whole.write_text("".join(p.read_text() for p in [home / "history.txt", home / "rust.txt"] if p.exists()))
        judged = subprocess.run([a.checker, str(whole)])
        failed += judged.returncode != 0
    finally:
        stop.set()
        for m in members:
            if m.proc and m.proc.poll() is None:
                m.proc.kill()
        if rust and rust.poll() is None:
            rust.kill()
        if not a.dir and not failed and judged:
            shutil.rmtree(home, ignore_errors=True)
        elif failed:
            print(f"kept: {home}")
    if took:
        took.sort()
        print(f"to a writable primary: median {took[len(took) // 2] * 1000:.0f} ms, max {took[-1] * 1000:.0f} ms")
    print(f"{a.n - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
