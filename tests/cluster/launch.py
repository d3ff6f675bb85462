#!/usr/bin/env python3
"""A cluster of one config server, two shards and routers.

    launch.py MONGOD PANDOS [FOLDER] [PORT] [--routers N] [--set NAME=VALUE ...]

Routers listen on PORT (29200) and the ports after it, servers on those behind. `--set` is a parameter of every process.
"""
import argparse
import os
import signal
import subprocess
import tempfile
import time

import pymongo

ap = argparse.ArgumentParser(usage=__doc__)
ap.add_argument("mongod")
ap.add_argument("pandos")
ap.add_argument("folder", nargs="?")
ap.add_argument("port", nargs="?", type=int, default=29200)
ap.add_argument("--routers", type=int, default=1)
ap.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
given = ap.parse_args()
mongod, pandos = given.mongod, given.pandos
folder = given.folder or tempfile.mkdtemp(prefix="cluster-")
port = given.port
parameters = [x for one in given.set for x in ("--setParameter", one)]
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
    start(name, mongod, kind, "--replSet", name, "--dbpath", path, "--port", str(at), "--bind_ip", "127.0.0.1", *parameters)


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
    first = port + given.routers
    server("c", "--configsvr", first)
    server("sa", "--shardsvr", first + 1)
    server("sb", "--shardsvr", first + 2)
    initiate("c", first, True)
    initiate("sa", first + 1, False)
    initiate("sb", first + 2, False)
    configdb = f"c/127.0.0.1:{first}"
    for i in range(given.routers):
        start(f"router{i}", pandos, "--configdb", configdb, "--port", str(port + i), "--bind_ip", "127.0.0.1", "--nounixsocket", *parameters)
        until(lambda: pymongo.MongoClient("127.0.0.1", port + i, serverSelectionTimeoutMS=2000).admin.command("ping"))
    client = pymongo.MongoClient("127.0.0.1", port, serverSelectionTimeoutMS=2000)
    for name, at in (("sa", first + 1), ("sb", first + 2)):
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
