#!/usr/bin/env python3
"""A change stream that misses nothing while the set changes its primary.

    pando up --members 3                                  # in another terminal
    pip install pymongo
    python3 examples/watch_through_failover.py 'mongodb://127.0.0.1:27017/?replicaSet=rs0' [SECONDS]

One thread places orders all the time, another one watches them come. In the middle the primary is told to step down; neither
thread does anything about it: the driver sends writes again, and opens the stream again where it was. In the end every order
that was acknowledged was seen, once, in its order. Kill a member meanwhile, if you like.
"""
import sys
import threading
import time

import pymongo
from pymongo.errors import PyMongoError

uri = sys.argv[1] if len(sys.argv) > 1 else "mongodb://127.0.0.1:27017/?replicaSet=rs0"
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 10
client = pymongo.MongoClient(uri, w="majority", serverSelectionTimeoutMS=20000)
orders = client.failover_example.orders
orders.drop()
placed, seen, opened, done = [], [], threading.Event(), threading.Event()


def place():
    n = 0
    while not done.is_set():
        n += 1
        orders.insert_one({"_id": n, "item": "tea", "placed": time.time()})
        placed.append(n)
        time.sleep(.005)
    orders.insert_one({"_id": "that was all"})


def watch():
    with orders.watch([{"$match": {"operationType": "insert"}}]) as changes:
        opened.set()
        for change in changes:
            if change["documentKey"]["_id"] == "that was all":
                return
            seen.append(change["documentKey"]["_id"])


watcher, writer = threading.Thread(target=watch), threading.Thread(target=place)
watcher.start()
opened.wait()
writer.start()
time.sleep(seconds / 2)
before, primary = len(placed), client.primary
t = time.perf_counter()
try:
    client.admin.command("replSetStepDown", 15)
except PyMongoError as e:
    print("the set has no other member that could take over:", e)
while len(placed) < before + 2:
    time.sleep(.001)
print(f"primary {primary} stepped down; orders go on after {(time.perf_counter() - t) * 1000:.0f} ms at {client.primary}")
time.sleep(seconds / 2)
done.set()
writer.join()
watcher.join(60)
same = seen == placed
print(f"{len(placed)} orders acknowledged, {len(seen)} seen: " + ("all of them, once, in order" if same else "NOT THE SAME"))
sys.exit(0 if same else 1)
