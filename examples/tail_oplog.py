#!/usr/bin/env python3
"""Follows the oplog itself, as programs did before there were change streams (Meteor, search connectors).

    pando up                                              # in another terminal
    pip install pymongo
    python3 examples/tail_oplog.py [URI] [NAMESPACE]      # default: all of database tail_example, with writes of its own

Prints each operation as it is written. With no NAMESPACE it makes some writes, keeps a copy of the collection from the log alone,
and compares the two in the end.
"""
import sys
import threading
import time

import pymongo
from bson import Timestamp
from pymongo import CursorType

uri = sys.argv[1] if len(sys.argv) > 1 else "mongodb://127.0.0.1:27017"
namespace = sys.argv[2] if len(sys.argv) > 2 else None
client = pymongo.MongoClient(uri)
oplog, stock = client.local["oplog.rs"], client.tail_example.stock


def writes():
    stock.insert_many([{"_id": n, "left": 10} for n in range(5)])
    for n in range(20):
        stock.update_one({"_id": n % 5}, {"$inc": {"left": -1}, "$set": {"last": n}})
    with client.start_session() as session, session.start_transaction():
        stock.insert_one({"_id": "gift", "left": 1}, session=session)
        stock.delete_one({"_id": 4}, session=session)
    stock.insert_one({"_id": "end"})


def operations(entry):
    """An entry's operations: those of a transaction come in one entry."""
    return entry["o"]["applyOps"] if "applyOps" in entry["o"] else [entry]


def changed(doc, diff):
    """What `$v: 2` says about a flat document: u updated, i inserted, d deleted."""
    for kind in "ui":
        doc.update(diff.get(kind, {}))
    for field in diff.get("d", {}):
        doc.pop(field, None)


def apply(copy, op):
    if op["op"] == "i":
        copy[op["o"]["_id"]] = op["o"]
    elif op["op"] == "u":
        changed(copy[op["o2"]["_id"]], op["o"]["diff"])
    elif op["op"] == "d":
        del copy[op["o"]["_id"]]


if not namespace:
    stock.drop()
last = oplog.find().sort("$natural", -1).limit(1).next()["ts"]
if not namespace:
    threading.Thread(target=writes, daemon=True).start()
copy = {}
while True:
    query = {"ts": {"$gt": Timestamp(last.time, last.inc)}}
    for entry in oplog.find(query, cursor_type=CursorType.TAILABLE_AWAIT, oplog_replay=True):
        last = entry["ts"]
        for op in operations(entry):
            if op["op"] == "n" or op["ns"] != (namespace or stock.full_name):
                continue
            print(op["op"], op.get("o2", ""), op["o"], flush=True)
            if namespace:
                continue
            if op["op"] == "i" and op["o"]["_id"] == "end":
                there = {d["_id"]: d for d in stock.find({"_id": {"$ne": "end"}})}
                print("the copy from the log is the collection" if copy == there else f"they differ: {copy} {there}")
                sys.exit(copy != there)
            apply(copy, op)
    # A tailable cursor ends when its first read finds nothing.
    time.sleep(.1)
