#!/usr/bin/env python3
"""What the table of commands says a user must be allowed, asked of a real server.

    privileges.py MONGOD

Starts MONGOD as a replica set of one with access control, reads crates/command/src/table.rs, and for every row that the
server has: nobody at all may run what is `open`; any login runs what needs a `login`; what names actions is refused (13) to
a user without them and not refused to a user with exactly those; what is `internal` is refused to root. Prints every row
that is otherwise, and exits with 1 then.
"""
import os, re, shutil, subprocess, sys, tempfile, time
import pymongo
from pymongo.errors import OperationFailure, PyMongoError

ROW = re.compile(r'^    "([^"]+)" \[([^\]]*)\] \(([^)]*)\) (?:v1|-) \[([^\]]*)\] \(([^)]*)\) "', re.M)
PORT = 28790
# Commands that would end the server or the session, or wait.
NOT_HERE = {"shutdown", "logout", "replSetStepDown", "fsync", "fsyncUnlock", "rotateCertificates", "logRotate", "sleep",
            "saslStart", "saslContinue", "authenticate", "getnonce", "replSetResizeOplog", "setFeatureCompatibilityVersion",
            "waitForFailPoint", "configureFailPoint",
            # These end a debug build's process in other ways than by an answer.
            "testDeprecationInVersion2", "testRemoval", "testVersion2", "testVersions1And2"}
# What is wrong with the arguments was told first: nothing is known of privileges then.
OF_ARGUMENTS = {2, 9, 14, 73, 13111, 40414, 40415, 72}
DOCS = {"find": {"find": "c"}, "insert": {"insert": "c", "documents": [{}]},
        "delete": {"delete": "c", "deletes": [{"q": {}, "limit": 1}]}, "count": {"count": "c"},
        "distinct": {"distinct": "c", "key": "a"}, "collMod": {"collMod": "c"},
        "createIndexes": {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]},
        "dropIndexes": {"dropIndexes": "c", "index": "b_1"}, "drop": {"drop": "none"},
        "dropDatabase": {"dropDatabase": 1}, "getParameter": {"getParameter": 1, "quiet": 1},
        "setParameter": {"setParameter": 1, "quiet": False}, "getLog": {"getLog": "global"},
        "getClusterParameter": {"getClusterParameter": "changeStreamOptions"},
        "setClusterParameter": {"setClusterParameter": {"changeStreamOptions": {"preAndPostImages": {"expireAfterSeconds": 100}}}},
        "dropConnections": {"dropConnections": 1, "hostAndPort": ["localhost:1"]},
        "setDefaultRWConcern": {"setDefaultRWConcern": 1, "defaultReadConcern": {"level": "local"}},
        "setUserWriteBlockMode": {"setUserWriteBlockMode": 1, "global": False},
        "splitVector": {"splitVector": "d.c", "keyPattern": {"_id": 1}, "maxChunkSizeBytes": 1024},
        "dataSize": {"dataSize": "d.c"}, "filemd5": {"filemd5": 1, "root": "c"},
        "validateDBMetadata": {"validateDBMetadata": 1, "apiParameters": {"version": "1"}},
        "dropRole": {"dropRole": "none"}, "dropUser": {"dropUser": "none"},
        "planCacheSetFilter": {"planCacheSetFilter": "c", "query": {"a": 1}, "indexes": [{"a": 1}]},
        "setIndexCommitQuorum": {"setIndexCommitQuorum": "c", "indexNames": ["a_1"], "commitQuorum": 1},
        "startSession": {"startSession": 1}, "endSessions": {"endSessions": []}, "refreshSessions": {"refreshSessions": []},
        "appendOplogNote": {"appendOplogNote": 1, "data": {"a": 1}}, "replSetMaintenance": {"replSetMaintenance": False},
        "replSetReconfig": {"replSetReconfig": {"_id": "rs", "version": 0}}, "killAllSessions": {"killAllSessions": []},
        "setFreeMonitoring": {"setFreeMonitoring": 1, "action": "disable"}, "compact": {"compact": "c", "force": True},
        "convertToCapped": {"convertToCapped": "capped", "size": 4096}, "getDefaultRWConcern": {"getDefaultRWConcern": 1}}


def client(user=None):
    auth = {"username": user, "password": "p", "authSource": "admin"} if user else {}
    return pymongo.MongoClient("127.0.0.1", PORT, directConnection=True, serverSelectionTimeoutMS=5000, **auth)


def code(c, name, db):
    """The error's code; 0 = it ran."""
    try:
        c[db].command(DOCS.get(name, {name: "c" if CURRENT.startswith("collection") else 1}))
        return 0
    except OperationFailure as e:
        return e.code or -1
    except PyMongoError:
        sys.exit(f"the server went away for {name}")


def main():
    global CURRENT
    mongod = sys.argv[1]
    table = os.path.join(os.path.dirname(__file__), "../../crates/command/src/table.rs")
    rows = [m for m in ROW.findall(open(table).read()) if m[0] not in NOT_HERE]
    folder = tempfile.mkdtemp()
    key = os.path.join(folder, "key")
    open(key, "w").write("c2VjcmV0c2VjcmV0")
    os.chmod(key, 0o600)
    server = subprocess.Popen([mongod, "--dbpath", folder, "--port", str(PORT), "--replSet", "rs", "--keyFile", key,
                               "--setParameter", "enableTestCommands=1"],
                              stdout=subprocess.DEVNULL)
    wrong = asked = 0
    try:
        nobody = client()
        for _ in range(100):
            try:
                nobody.admin.command("replSetInitiate", {"_id": "rs", "members": [{"_id": 0, "host": f"127.0.0.1:{PORT}"}]})
                break
            except PyMongoError:
                time.sleep(0.2)
        while not nobody.admin.command("hello")["isWritablePrimary"]:
            time.sleep(0.1)
        nobody.admin.command({"createUser": "root", "pwd": "p", "roles": ["root"]})
        root = client("root")
        root.d.c.insert_one({"a": 1})
        root.d.create_collection("capped")
        root.admin.command({"createRole": "exact", "privileges": [], "roles": []})
        root.admin.command({"createUser": "bare", "pwd": "p", "roles": []})
        root.admin.command({"createUser": "exact", "pwd": "p", "roles": ["exact"]})
        bare, exact = client("bare"), client("exact")
        commands = root.admin.command("listCommands")["commands"]
        for name, _, flags, _, needs in rows:
            CURRENT = needs
            db = "admin" if "ADMIN_ONLY" in flags else "d"
            if code(root, name, db) == 59:
                continue
            asked += 1
            kind, *actions = needs.split()
            told = []
            known = lambda c: c not in OF_ARGUMENTS and c != 13
            listed = commands.get(name, {}).get("requiresAuth")
            if listed is not None and listed == (needs == "open"):
                told.append(f"listCommands says requiresAuth: {listed}")
            if kind == "open":
                if code(nobody, name, db) == 13:
                    told.append("nobody is refused")
            elif known(code(nobody, name, db)):
                told.append(f"nobody is not refused: {code(nobody, name, db)}")
            if kind == "login" and code(bare, name, db) == 13:
                told.append("a login is refused")
            if kind == "internal" and known(code(root, name, db)):
                told.append(f"root is not refused: {code(root, name, db)}")
            if kind in ("collection", "database", "cluster"):
                if known(code(bare, name, db)):
                    told.append(f"a login is not refused: {code(bare, name, db)}")
                on = {"collection": {"db": db, "collection": "none" if name == "drop" else "capped" if name == "convertToCapped" else "c"},
                      "database": {"db": db, "collection": ""}, "cluster": {"cluster": True}}[kind]
                allowed = [{"resource": on, "actions": [a[0].lower() + a[1:] for a in actions]}]
                try:
                    root.admin.command({"updateRole": "exact", "privileges": allowed})
                    if code(exact, name, db) == 13:
                        told.append(f"{allowed} is not enough")
                except OperationFailure as e:
                    told.append(e.details["errmsg"])
            for t in told:
                wrong += 1
                print(f"{name} ({needs}): {t}")
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder)
    print(f"{asked} commands asked about, {wrong} otherwise than the table says")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
