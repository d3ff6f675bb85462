#!/usr/bin/env python3
"""Who may run what: asks a server for each request of crates/server/tests/recorded/privileges.jsonl, as nobody, as a user without
roles, and as one user for each built-in role, whether it answers 13 (Unauthorized).

    privileges.py BINARY             compares pandod's decisions with the recorded ones of a real server
    privileges.py BINARY --record    writes what this server (a mongod 6.0.5) decides into the file

BINARY is started by the script as a set of one, with --auth, a keyfile and test commands."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

import pymongo
from bson import json_util
from pymongo.errors import OperationFailure, PyMongoError

FILE = pathlib.Path(__file__).parents[2] / "crates/server/tests/recorded/privileges.jsonl"
OF_TEST = ["read", "readWrite", "dbAdmin", "dbOwner", "userAdmin"]
OF_ADMIN = ["enableSharding", "read", "readWrite", "dbAdmin", "dbOwner", "userAdmin", "readAnyDatabase",
            "readWriteAnyDatabase", "userAdminAnyDatabase", "dbAdminAnyDatabase", "clusterAdmin", "clusterManager",
            "clusterMonitor", "hostManager", "backup", "restore", "root", "__queryableBackup", "__system"]
ROLES = [(r, "test") for r in OF_TEST] + [(r, "admin") for r in OF_ADMIN]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(binary, folder, port):
    key = folder / "key"
    key.write_text("a" * 60)
    key.chmod(0o600)
    (folder / "data").mkdir()
    log = open(folder / "log", "w")
    args = [binary, "--dbpath", str(folder / "data"), "--port", str(port), "--bind_ip", "127.0.0.1", "--replSet", "r",
            "--auth", "--keyFile", str(key), "--setParameter", "enableTestCommands=1"]
    return subprocess.Popen(args, stdout=log, stderr=log)


def client(port, user=None):
    who = {"username": user, "password": "x"} if user else {}
    return pymongo.MongoClient("127.0.0.1", port, directConnection=True, maxPoolSize=1, socketTimeoutMS=20_000, **who)


def prepare(port):
    first = client(port)
    first.admin.command("replSetInitiate", {"_id": "r", "members": [{"_id": 0, "host": f"127.0.0.1:{port}"}]})
    while not first.admin.command("hello")["isWritablePrimary"]:
        time.sleep(0.1)
    first.admin.command("createUser", "boss", pwd="x", roles=["root"])
    boss = client(port, "boss")
    boss.admin.command("grantRolesToUser", "boss", roles=["__system"])
    users = [("-", None), ("norole", "norole.")]
    boss.admin.command("createUser", "norole.", pwd="x", roles=[])
    for role, db in ROLES:
        boss.admin.command("createUser", f"{role}.{db}", pwd="x", roles=[{"role": role, "db": db}])
        users.append((f"{role}@{db}", f"{role}.{db}"))
    for name in "abcm":
        boss.test[name].insert_one({"_id": 100, "x": 1})
    boss.test.command("create", "v", viewOn="a", pipeline=[])
    boss.test.command("create", "s", timeseries={"timeField": "t"})
    return users


def is_allowed(c, request, user):
    command = json_util.loads(json.dumps(request["cmd"]), json_options=json_util.CANONICAL_JSON_OPTIONS)
    if request["id"].startswith("usersInfo self"):
        command["usersInfo"] = {"user": user or "nobody", "db": "admin"}
    try:
        reply = c[request["db"]].command(command)
        return all(e["code"] != 13 for e in reply.get("writeErrors", []))
    except OperationFailure as e:
        return e.code != 13
    except PyMongoError as e:
        print(f"{request['id']} as {user}: {e}")
        return True


def main():
    binary, record = sys.argv[1], "--record" in sys.argv[2:]
    requests = [json.loads(line) for line in FILE.read_text().splitlines()]
    allowed = {r["id"]: [] for r in requests}
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        process = start(binary, pathlib.Path(folder), port)
        try:
            time.sleep(2)
            for name, user in prepare(port):
                c = client(port, user)
                for r in requests:
                    if is_allowed(c, r, user):
                        allowed[r["id"]].append(name)
                print(name, file=sys.stderr)
        finally:
            process.kill()
    wrong = 0
    for r in requests:
        if record:
            r["allowed"] = allowed[r["id"]]
        elif allowed[r["id"]] != r.get("here", r["allowed"]):
            wrong += 1
            print(r["id"], sorted(set(allowed[r["id"]]) ^ set(r.get("here", r["allowed"]))))
    if record:
        FILE.write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in requests))
    print(f"{len(requests)} requests, {wrong} decided otherwise")
    sys.exit(wrong > 0)


main()
