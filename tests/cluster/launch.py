#!/usr/bin/env python3
"""A cluster of one config server, two shards and a router. usage: launch.py MONGOD PANDOS [FOLDER] [PORT]"""
import os
import signal
import subprocess
import sys
import tempfile
import time

import pymongo

mongod, pandos = sys.argv[1:3]
folder = sys.argv[3] if len(sys.argv) > 3 else tempfile.mkdtemp(prefix="cluster-")
port = int(sys.argv[4]) if len(sys.argv) > 4 else 29200
running = []
STOPS = [signal.SIGINT, signal.SIGTERM]


def unblock():
    """Children are to hear the signals that this process waits for."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)


def start(name, *command):
    path = os.path.join(folder, name)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "out"), "wb") as out:
        running.append(subprocess.Popen(command, stdout=out, stderr=out, preexec_fn=unblock))


def server(name, kind, at):
    path = os.path.join(folder, name)
    start(name, mongod, kind, "--replSet", name, "--dbpath", path, "--port", str(at), "--bind_ip", "127.0.0.1")


def until(what, seconds=60):
    end = time.time() + seconds
    while True:
        try:
            if what():
                return
        except pymongo.errors.PyMongoError:
            if time.time() > end:
                raise
        time.sleep(0.1)


def initiate(name, at, config):
    client = pymongo.MongoClient("127.0.0.1", at, directConnection=True, serverSelectionTimeoutMS=2000)
    members = [{"_id": 0, "host": f"127.0.0.1:{at}"}]
    document = {"_id": name, "members": members, **({"configsvr": True} if config else {})}
    until(lambda: client.admin.command("replSetInitiate", document))
    until(lambda: client.admin.command("hello")["isWritablePrimary"])


def main():
    server("c", "--configsvr", port + 1)
    server("sa", "--shardsvr", port + 2)
    server("sb", "--shardsvr", port + 3)
    initiate("c", port + 1, True)
    initiate("sa", port + 2, False)
    initiate("sb", port + 3, False)
    configdb = f"c/127.0.0.1:{port + 1}"
    start("router", pandos, "--configdb", configdb, "--port", str(port), "--bind_ip", "127.0.0.1", "--nounixsocket")
    client = pymongo.MongoClient("127.0.0.1", port, serverSelectionTimeoutMS=2000)
    until(lambda: client.admin.command("ping"))
    for name, at in (("sa", port + 2), ("sb", port + 3)):
        client.admin.command("addShard", f"{name}/127.0.0.1:{at}")
    client.admin.command("balancerStop")
    print(f"mongodb://127.0.0.1:{port}", flush=True)
    signal.sigwait(STOPS)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        main()
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            process.wait()
