#!/usr/bin/env python3
"""What a real server answers to statements of transactions, in whatever order.

    answers.py record URI      asks it, and writes answers.jsonl beside this script
    answers.py run URI         asks another server and says what differs

A script is a list of steps; each names its command, the session (a small number) and the transaction number. Half of the
scripts are made by chance from starts, statements, commits, aborts and retryable writes with two numbers; the rest are
told. The Rust test `a_real_server_answers_the_same_to_statements_in_any_order` replays the file. Sessions are new ones in
every run. Collection `c` of database `tx` holds three documents before each script.
"""
import json
import os
import pathlib
import random
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "lib"))
import ejson  # noqa: E402
import wire  # noqa: E402

FILE = HERE / "answers.jsonl"
DB = "tx"
FIND = {"find": "c", "sort": {"_id": 1}}


def ins(i):
    return {"insert": "c", "documents": [{"_id": i}]}


def upd(i, n=1):
    return {"update": "c", "updates": [{"q": {"_id": i}, "u": {"$set": {"n": n}}}]}


def step(cmd, s=1, n=1, db=DB, start=False, plain=False, alone=False):
    """`plain`: a retryable write; `alone`: no session at all."""
    out = {"cmd": cmd, "db": db}
    if not alone:
        out.update({"s": s, "n": n})
    if start:
        out["start"] = True
    if plain:
        out["plain"] = True
    return out


def commit(s=1, n=1, **kw):
    return step({"commitTransaction": 1, **kw}, s, n, "admin")


def abort(s=1, n=1):
    return step({"abortTransaction": 1}, s, n, "admin")


def by_chance():
    rnd = random.Random("transactions")
    for _ in range(300):
        steps, i = [], 10
        for _ in range(rnd.randint(2, 6)):
            n, kind = rnd.choice([1, 1, 2, 2, 3]), rnd.randrange(6)
            i += 1
            steps.append([step(ins(i), n=n, start=True), step(FIND, n=n), step(upd(1, i), n=n), commit(n=n), abort(n=n), step(ins(i), n=n, plain=True)][kind])
        yield steps


def told():
    for level in ["local", "majority", "snapshot", "available", "linearizable"]:
        yield [step({**FIND, "readConcern": {"level": level}}, start=True), step(FIND), commit()]
        yield [step(FIND, start=True), step({**FIND, "readConcern": {"level": level}}), step(FIND), commit()]
    yield [step({**FIND, "writeConcern": {"w": 1}}, start=True)]
    yield [step({**ins(9), "writeConcern": {"w": 1}}, start=True), step(FIND)]
    yield [step(ins(9), start=True), step({**ins(10), "writeConcern": {"w": 1}}), step(FIND), commit()]
    for w in [{"w": 1}, {"w": "majority"}, {"w": 1, "j": True}]:
        yield [step(ins(9), start=True), commit(writeConcern=w), commit(writeConcern=w), commit()]
    yield [step(ins(9), start=True), commit(readConcern={"level": "local"}), commit()]
    yield [step({"commitTransaction": 1}, db="admin", alone=True)]
    yield [step({"abortTransaction": 1}, db="admin", alone=True)]
    yield [step({"commitTransaction": 1}), step({"abortTransaction": 1})]
    yield [step({"commitTransaction": 1}, db="admin", start=True), step({"abortTransaction": 1}, db="admin", start=True)]
    yield [step(ins(9), start=True), commit(foo=1), commit()]
    # two sessions
    for first in [upd(1), ins(9), {"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}]}]:
        for end in [commit(), abort()]:
            for second in [upd(1, 2), ins(9), {"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}]}, {"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"n": 3}}}]:
                yield [step(FIND, 2, start=True), step(first, start=True), end, step(second, 2), commit(2), step(FIND, alone=True)]
    yield [step(FIND, start=True), step(upd(1, 5), alone=True), step(FIND), step(upd(2)), commit(), step(FIND, alone=True)]
    # mistakes within
    for wrong in [{"insert": "c", "documents": [{"_id": 8}, {"_id": 1}, {"_id": 9}]}, {"insert": "c", "documents": [{"_id": 1}, {"_id": 9}], "ordered": False}, {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"_id": 1}}}]}, {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$bad": 1}}, {"q": {"_id": 2}, "u": {"$set": {"x": 1}}}]},
                  {"find": "c", "filter": {"$bad": 1}}, {"find": "c", "bad": 1}, {"aggregate": "c", "pipeline": [{"$bad": 1}], "cursor": {}}, {"distinct": "c", "key": ""}, {"findAndModify": "c", "query": {"_id": 1}, "update": {"$bad": 1}}, {"getMore": ejson.L(77), "collection": "c"}, {"find": "c", "tailable": True}]:
        yield [step(ins(20), start=True), step(wrong), step(FIND), commit(), step(FIND, alone=True)]
        yield [step(wrong, start=True), step(FIND), commit()]
    for many in [{"update": "c", "updates": [{"q": {}, "u": {"$inc": {"n": 1}}, "multi": True}]}, {"delete": "c", "deletes": [{"q": {}, "limit": 0}]}, {"update": "c", "updates": [{"q": {"_id": 50}, "u": {"$set": {"a": 1}}, "upsert": True}]}, {"findAndModify": "c", "query": {"_id": 60}, "update": {"$set": {"a": 1}}, "upsert": True, "new": True}]:
        yield [step(many, start=True), step(many), step(FIND), step(FIND, alone=True), commit(), step(FIND, alone=True)]
        yield [step(many, start=True), step(FIND), abort(), step(FIND, alone=True)]
    # commands that are no statements, places that are none
    for name in ["count", "drop", "collStats", "listIndexes", "validate", "explain", "collMod", "listCollections", "listDatabases", "dbStats", "ping", "hello", "buildInfo", "serverStatus", "dropDatabase", "getParameter", "replSetGetStatus", "currentOp", "startSession", "dbHash", "connectionStatus"]:
        arg = FIND if name == "explain" else "c" if name in ("count", "drop", "collStats", "listIndexes", "validate", "collMod") else 1
        db = "admin" if name in ("listDatabases", "getParameter", "replSetGetStatus", "currentOp", "serverStatus") else DB
        yield [step({name: arg}, db=db, start=True), step(FIND, start=False), commit()]
        yield [step(ins(9), start=True), step({name: arg}, db=db), commit()]
    for db, coll in [("config", "x"), ("local", "x"), ("admin", "tx_c"), (DB, "system.views"), (DB, "system.js"), (DB, "system.profile")]:
        yield [step({"find": coll}, db=db, start=True), step(FIND), abort()]
        yield [step({"insert": coll, "documents": [{"_id": 1}]}, db=db, start=True), step(FIND), abort()]
    for stage in [{"$out": "o"}, {"$merge": "o"}, {"$collStats": {"count": {}}}, {"$indexStats": {}}]:
        yield [step({"aggregate": "c", "pipeline": [stage], "cursor": {}}, start=True), step(FIND), commit()]
    # definitions
    index = {"createIndexes": "made", "indexes": [{"key": {"x": 1}, "name": "x_1"}]}
    yield [step({"create": "made"}, start=True), step(index), step({"insert": "made", "documents": [{"_id": 1, "x": 1}]}), step({**index, "indexes": [{"key": {"y": 1}, "name": "y_1"}]}), commit()]
    yield [step(index, start=True), step(index), step({"find": "made"}), commit(), step({"find": "made", "hint": "x_1"}, alone=True)]
    yield [step({"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_1"}]}, start=True), step(FIND)]
    yield [step({"createIndexes": "c", "indexes": [{"key": {"_id": 1}, "name": "_id_"}]}, start=True), commit()]
    yield [step({"create": "c"}, start=True), step(FIND)]
    yield [step({"create": "v", "viewOn": "c", "pipeline": []}, start=True), step(FIND)]
    yield [step({"create": "made"}, start=True), step({"create": "made"}, alone=True), commit()]
    yield [step(FIND, start=True), step({"create": "made"}, alone=True), step({"find": "made"}), commit()]
    yield [step({"create": "made", "capped": True, "size": 4096}, alone=True), step({"insert": "made", "documents": [{"_id": 1}]}, start=True), commit()]
    # what a statement must say
    for extra in [{"txnNumber": ejson.L(1)}, {"autocommit": False}, {"startTransaction": True}]:
        yield [step({**FIND, **extra}, alone=True)]
    for extra in [{"startTransaction": False}, {"startTransaction": 1}, {"autocommit": True}, {"autocommit": 1}]:
        yield [step({**FIND, **extra}, plain=True), step({**ins(9), **extra}, plain=True)]
    yield [step(FIND, plain=True), step(FIND, n=-1, start=True)]


def scripts():
    for i, steps in enumerate([*by_chance(), *told()]):
        yield {"name": f"{'chance' if i < 300 else 'told'} {i}", "steps": steps}


class Asker:
    def __init__(self, uri):
        self.c = wire.Conn(uri, timeout=60)
        self.c.command(DB, {"dropDatabase": 1})
        self.c.command("admin", {"drop": "tx_c"})
        self.c.command(DB, {"create": "c"})

    def run(self, script):
        for coll in ["made", "o"]:
            self.c.command(DB, {"drop": coll})
        self.c.command(DB, {"delete": "c", "deletes": [{"q": {}, "limit": 0}]})
        self.c.ok(DB, {"insert": "c", "documents": [{"_id": i, "n": 0} for i in (1, 2, 3)], "writeConcern": {"w": "majority"}})
        ids = {n: {"$binary": {"base64": ejson_b64(os.urandom(16)), "subType": "04"}} for n in (1, 2)}
        answers = []
        for st in script["steps"]:
            cmd = dict(st["cmd"])
            if "s" in st:
                cmd["lsid"] = {"id": ids[st["s"]]}
                cmd["txnNumber"] = ejson.L(st["n"])
                if not st.get("plain"):
                    cmd["autocommit"] = False
                if st.get("start"):
                    cmd["startTransaction"] = True
            answers.append(essence(self.c.command(st["db"], cmd)))
        self.c.command("admin", {"killSessions": [{"id": i} for i in ids.values()]})
        return answers


def ejson_b64(b):
    import base64
    return base64.b64encode(b).decode()


def essence(r):
    """What is compared of a reply."""
    if r.get("ok") != 1:
        return {"err": r["code"], "labels": r.get("errorLabels", [])}
    out = {"ok": 1}
    for name in ("n", "nModified", "values", "numIndexesBefore", "numIndexesAfter", "value"):
        if name in r:
            out[name] = r[name]
    if "cursor" in r:
        out["docs"] = r["cursor"]["firstBatch"]
    if "writeErrors" in r:
        out["writeErrors"] = [[e["index"], e["code"]] for e in r["writeErrors"]]
    return out


def main():
    what, uri = sys.argv[1:3]
    a = Asker(uri)
    if what == "record":
        with open(FILE, "w", encoding="utf-8") as f:
            for script in scripts():
                for st, answer in zip(script["steps"], a.run(script)):
                    st["expect"] = answer
                f.write(json.dumps(script, separators=(",", ":")) + "\n")
        return
    wrong = 0
    for line in open(FILE, encoding="utf-8"):
        script = json.loads(line)
        for i, (st, got) in enumerate(zip(script["steps"], a.run(script))):
            if json.loads(json.dumps(got)) != st["expect"]:
                wrong += 1
                print(f"{script['name']} step {i}: {st['cmd']}\n  expected {st['expect']}\n  got      {got}")
                break
    print(f"{wrong} scripts differ")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
