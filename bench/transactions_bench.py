#!/usr/bin/env python3
"""Transactions and retryable writes of two servers side by side, each a set of three members.

    transactions_bench.py --a NAME=BINARY --b NAME=BINARY [--port P] [--clients 1,8,32] [--ops N] [--rounds N] [--phases RE]
                          [--accounts N] [--cache GB] [--json FILE] [--md FILE]

  transfer         a transaction of two updates ($inc by _id: from one account, to another), committed at w: majority (the default)
                   or at w: 1; a conflict is retried until it commits, and counts once. The sum of all accounts is checked at the end
  retryable        insert_one and update_one with retryWrites (pymongo's default), at w: 1
  read             a transaction of two reads

CPU is that of all members together, until every member has everything. --b may be left out.
"""
import argparse
import multiprocessing as mp
import random
import sys

import pymongo
from pymongo.errors import PyMongoError
from pymongo.write_concern import WriteConcern

import harness
import set_pair

DB = "bank"
BALANCE = 1_000_000


def transfers(uri, concern, accounts, seed, n):
    client = pymongo.MongoClient(uri)
    coll, rnd = client[DB].accounts, random.Random(seed)
    session = client.start_session()
    options = {"write_concern": WriteConcern(**concern)}
    coll.find_one({"_id": 0})

    def one(pair):
        while True:
            try:
                with session.start_transaction(**options):
                    coll.update_one({"_id": pair[0]}, {"$inc": {"n": -1}}, session=session)
                    coll.update_one({"_id": pair[1]}, {"$inc": {"n": 1}}, session=session)
                return
            except PyMongoError as e:
                if not e.has_error_label("TransientTransactionError"):
                    raise
    return [rnd.sample(range(accounts), 2) for _ in range(n)], one


def reads(uri, _, accounts, seed, n):
    client = pymongo.MongoClient(uri)
    coll, rnd = client[DB].accounts, random.Random(seed)
    session = client.start_session()
    coll.find_one({"_id": 0})

    def one(pair):
        with session.start_transaction():
            for i in pair:
                coll.find_one({"_id": i}, session=session)
    return [rnd.sample(range(accounts), 2) for _ in range(n)], one


def retryable(kind):
    def make(uri, concern, accounts, seed, n):
        coll = pymongo.MongoClient(uri, retryWrites=True)[DB].get_collection("accounts" if kind == "update" else "log", write_concern=WriteConcern(**concern))
        rnd = random.Random(seed)
        coll.find_one({"_id": 0})
        if kind == "update":
            return [rnd.randrange(accounts) for _ in range(n)], lambda i: coll.update_one({"_id": i}, {"$inc": {"seen": 1}})
        return [{"_id": seed * 10_000_000 + i, "from": i, "to": i + 1, "text": "x" * 100} for i in range(n)], coll.insert_one
    return make


def phase(make, concern, clients, a):
    def run(target, _):
        n = max(10, a.ops // clients)
        target.seed += 1
        argses = [(target.set.uri, concern, a.accounts, 1 + target.seed * 100 + i, n) for i in range(clients)]
        return harness.timed(target, make, argses)
    return run


def load(target, a):
    coll = pymongo.MongoClient(target.set.uri)[DB].accounts
    coll.insert_many([{"_id": i, "n": BALANCE, "owner": f"user {i:09}"} for i in range(a.accounts)])
    target.set.settle()


def check(target, a):
    """No transfer may have made or lost anything."""
    coll = pymongo.MongoClient(target.set.uri)[DB].accounts
    total = next(coll.aggregate([{"$group": {"_id": None, "n": {"$sum": "$n"}}}]))["n"]
    if total != a.accounts * BALANCE:
        raise RuntimeError(f"{target.name}: the accounts hold {total}, not {a.accounts * BALANCE}")


def main():
    ap = set_pair.arguments(argparse.ArgumentParser(usage=__doc__))
    ap.add_argument("--clients", default="1,8,32")
    ap.add_argument("--ops", type=int, default=3_000)
    ap.add_argument("--accounts", type=int, default=10_000)
    a = ap.parse_args()
    mp.set_start_method("fork")
    phases = []
    for c in (int(x) for x in a.clients.split(",")):
        s = "s" * (c > 1)
        phases.append((f"transfer w:majority, {c} client{s}", phase(transfers, {"w": "majority"}, c, a)))
        phases.append((f"transfer w:1, {c} client{s}", phase(transfers, {"w": 1}, c, a)))
        phases.append((f"transaction of two reads, {c} client{s}", phase(reads, None, c, a)))
        phases.append((f"retryable insert_one w:1, {c} client{s}", phase(retryable("insert"), {"w": 1}, c, a)))
        phases.append((f"retryable update_one w:1, {c} client{s}", phase(retryable("update"), {"w": 1}, c, a)))
    with set_pair.Pair((a.a, a.b), a.port, a.cache) as pair:
        for t in pair.targets:
            load(t, a)
        pair.run(phases, a.rounds, a.phases)
        for t in pair.targets:
            check(t, a)
        pair.report(a)


if __name__ == "__main__":
    sys.exit(main())
