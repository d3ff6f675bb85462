#!/usr/bin/env python3
"""Asks a real server (6.0) which plans it considers and writes plans.jsonl; the planner test compares.

    record_plans.py URI

Standard library only. Each line: indexes and documents of a collection, or one query against the collection
above it with the plans (the winner first, the others sorted), each as one line of text. Plans that intersect
indexes are left out: this server makes none.
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[3] / "tests" / "lib"))
import wire  # noqa: E402

PLAIN = [{"_id": i, "a": i, "b": i % 3, "c": i % 5} for i in range(20)]
NESTED = [{"_id": 1, "a": [{"b": 1, "c": 2}, {"b": 3, "c": 4}]}, {"_id": 2, "a": {"b": 1, "c": 1}}]
MIXED = [{"_id": 1, "a": 1, "b": [{"c": 1}]}, {"_id": 2, "a": 2}]
SCALARS = [{"_id": 1, "a": [1, 2]}, {"_id": 2, "a": 3}]
RE = {"$regularExpression": {"pattern": "x", "options": ""}}
PRE = {"$regularExpression": {"pattern": "^ab", "options": ""}}
MIN, MAX = {"$minKey": 1}, {"$maxKey": 1}
DATE = {"$date": {"$numberLong": "1577836800000"}}
OID = {"$oid": "5f5f5f5f5f5f5f5f5f5f5f5f"}
BIN = {"$binary": {"base64": "YWJj", "subType": "00"}}
NAN, INF = {"$numberDouble": "NaN"}, {"$numberDouble": "Infinity"}
TS = {"$timestamp": {"t": 1, "i": 1}}

ONE = [1, 3.0, None, [1, 2], [], {}, {"x": 1}, "abc", True, RE, PRE, MIN, MAX, NAN, INF, DATE, OID, BIN, TS]
FIELD = (
    [{"$eq": v} for v in ONE]
    + [{op: v} for op in ("$gt", "$gte", "$lt", "$lte") for v in ONE if v not in (RE, PRE)]
    + [{"$ne": v} for v in ONE if v not in (RE, PRE)]
    + [{"$in": v} for v in ([], [3, 1, 2], [1, None], [1, PRE, "z"], [[1, 2], 3], [RE])]
    + [{"$nin": v} for v in ([1, 3], [None, 1], [RE, 1], [[1]])]
    + [{"$not": v} for v in ({"$gt": 1}, {"$gt": 1, "$lt": 5}, RE, {"$in": [1, 2]}, {"$exists": True}, {"$size": 2})]
    + [{"$exists": True}, {"$exists": False}, {"$mod": [2, 1]}, {"$size": 2}, {"$bitsAllSet": 1}, {"$all": [1, 2]}]
    + [{"$type": t} for t in ("number", "string", "array", ["string", "int"], "int", "null", "object", "bool", "date")]
    + [{"$elemMatch": v} for v in ({"$gt": 1, "$lt": 4}, {"b": 1}, {"$in": [1, 2]})]
    + [{"$gt": 1, "$lt": 5}, {"$gte": 1, "$lte": 5, "$ne": 3}, {"$gt": "a", "$lt": 5}, {"$gt": 1, "$type": "int"}]
)


def one(filter_, **kw):
    return {"filter": filter_, **kw}


GROUPS = [
    ([{"a": 1}], {}, PLAIN, [one({"a": f}) for f in FIELD] + [one({"a": v}) for v in ("abc", RE, {"x": 1})]),
    ([{"a": 1}], {}, SCALARS, [one({"a": f}) for f in FIELD]),
    ([{"a": -1}], {"sparse": True}, PLAIN, [one({"a": f}) for f in FIELD[::3]] + [
        one({}, sort={"a": 1}), one({"a": {"$gt": 1}}, sort={"a": 1}), one({"a": {"$exists": True}}), one({}, hint={"a": -1}),
        one({"a": {"$ne": None}}), one({"a": None}), one({"a": {"$exists": False}})]),
    ([{"a": 1, "b": 1}], {}, PLAIN, [
        one({"a": 1, "b": 2}), one({"b": 2}), one({"a": {"$gt": 1}, "b": {"$in": [1, 2]}}), one({"a": 1}, sort={"b": 1}),
        one({"a": 1}, sort={"b": -1}), one({"a": {"$in": [1, 2]}}, sort={"b": 1}), one({"a": {"$gt": 1}}, sort={"b": 1}),
        one({"a": {"$gt": 1}}, sort={"a": 1, "b": 1}), one({"a": {"$gt": 1}}, sort={"a": -1, "b": -1}),
        one({"a": {"$gt": 1}}, sort={"a": 1, "b": -1}), one({}, sort={"a": 1}), one({}, sort={"a": -1}), one({}, sort={"b": 1}),
        one({"c": 1}, sort={"a": 1}), one({"a": 1, "b": 2}, sort={"b": 1, "a": 1}), one({"a": 1}, sort={"b": 1, "a": 1}),
        one({"a": 1}, sort={"a": 1, "c": 1}), one({"a": {"$in": [2, 1]}}, sort={"b": -1}), one({"a": {"$in": [1, 2]}}, sort={"a": 1}),
        one({"a": {"$in": [1, None]}}, sort={"b": 1}), one({"a": {"$in": [1, 2]}, "c": 1}, sort={"b": 1}),
        one({"a": {"$in": [1, PRE]}}, sort={"b": 1}), one({"a": 1, "c": {"$gt": 2}, "b": {"$lt": 4}})]
        + [one({"a": 1}, projection=p) for p in ({"a": 1, "_id": 0}, {"b": 1, "a": 1, "_id": 0}, {"c": 1, "_id": 0}, {"a": 1}, {"a": 0}, {"x.y": 1}, {"x": {"$add": [1, 2]}})]
        + [one({}, projection={"a": 1, "_id": 0}), one({}, projection={"a": 1, "_id": 0}, hint={"a": 1, "b": 1}),
           one({"a": 1, "b": RE}, projection={"b": 1, "_id": 0}), one({"a": 1}, sort={"b": 1}, projection={"b": 1, "_id": 0}, limit=5, skip=2),
           one({"a": {"$gt": 1}}, sort={"b": 1}, projection={"b": 1, "_id": 0}), one({"a": {"$gt": 1}}, sort={"c": 1}, limit=3),
           one({"a": {"$gt": 1}}, sort={"c": 1}, limit=3, skip=1, projection={"c": 1}), one({"a": {"$gt": 1}}, skip=1, limit=2),
           one({"a": {"$gt": 1}}, sort={"b": 1}, skip=1, limit=2), one({"a": 1}, returnKey=True), one({"a": 1, "c": 1}, returnKey=True),
           one({"$or": [{"a": 1}, {"a": 2, "b": 3}]}), one({"$or": [{"a": 1}, {"b": 2}]}), one({"$or": [{"a": 1, "c": 3}, {"a": {"$gt": 5}}]}),
           one({"$or": [{"a": 1}, {"a": {"$gt": 5}}], "c": 3}), one({"a": {"$gt": 1}, "$or": [{"b": 1}, {"c": 1}]}),
           one({"$or": [{"a": 1, "b": 1}, {"a": 2, "b": 2}]}, sort={"b": 1}), one({"$or": [{"a": 1}, {"a": {"$gt": 5}}]}, sort={"c": 1}),
           one({"$or": [{"a": 1}, {"a": {"$gt": 5}}]}, sort={"a": 1}), one({"$or": [{"a": 1}, {"a": 5}]}, sort={"b": 1})]),
    ([{"a": 1}, {"b": -1}], {}, PLAIN, [
        one({"b": {"$gt": 3}}), one({"b": {"$gt": 3}}, sort={"b": 1}), one({"$or": [{"a": 1}, {"b": 2}]}), one({"a": 5, "b": 7}),
        one({"a": 5}, sort={"b": 1}), one({"$or": [{"a": 1}, {"b": 2}], "c": 1}), one({"$or": [{"a": 1}, {"b": 2, "c": 3}]}),
        one({"$and": [{"$or": [{"a": 1}, {"b": 2}]}, {"$or": [{"a": 3}, {"b": 4}]}]}), one({"a": 1, "$or": [{"b": 1}, {"b": 2, "c": 3}]}),
        one({"$nor": [{"a": 1}]}), one({"a": {"$not": {"$gt": 3}}, "b": 1}), one({"a": 1, "b": 2}, hint={"b": -1}), one({"c": 1}, hint={"a": 1}),
        one({"a": 1}, hint={"$natural": -1}), one({"$or": [{"a": 1}, {"b": 1}]}, sort={"a": 1})]),
    ([{"a.b": 1, "a.c": 1}], {}, NESTED, [
        one({"a.b": 1, "a.c": 2}), one({"a": {"$elemMatch": {"b": 1, "c": 2}}}), one({"a.b": 1}, sort={"a.c": 1}), one({"a.b": {"$gt": 1}}),
        one({"a": {"$elemMatch": {"b": {"$gt": 1, "$lt": 3}}}}), one({}, sort={"a.b": 1}), one({"a.b": 1}, sort={"a.b": 1}),
        one({"a.b": 1}, projection={"a.b": 1, "_id": 0}), one({"a": {"$elemMatch": {"b": 1}}, "a.c": 3}), one({"a": {"$elemMatch": {"c": 1}}})]),
    ([{"a": 1, "b.c": 1}], {}, MIXED, [
        one({"a": 1, "b.c": 2}), one({"a": 1}, projection={"a": 1, "_id": 0}), one({"a": 1}, sort={"b.c": 1}),
        one({"a": 1, "b.c": {"$gt": 1}}, sort={"b.c": 1}), one({"a": {"$gt": 1, "$lt": 5}})]),
    ([{"a": 1}], {"partialFilterExpression": {"b": {"$gt": 5}}}, PLAIN, [
        one({"a": 1}), one({"a": 1, "b": 6}), one({"a": 1, "b": {"$gt": 5}}), one({"a": 1, "b": {"$gt": 4}}), one({"a": 1, "b": {"$gte": 6}}),
        one({"b": {"$gt": 6}}), one({"b": {"$gt": 6}}, hint={"a": 1}), one({}, hint={"a": 1}), one({"b": {"$gt": 6}}, sort={"a": 1}),
        one({"a": 1, "$or": [{"b": 6}, {"b": 7}]}), one({"a": 1, "b": {"$in": [6, 7]}}), one({"a": 1, "b": {"$exists": True}}),
        one({"$or": [{"a": 1, "b": 7}, {"a": 2, "b": 9}]}), one({"$or": [{"a": 1, "b": 7}, {"a": 2}]})]),
    ([{"a": 1}], {"partialFilterExpression": {"b": {"$exists": True}}}, PLAIN, [
        one({"a": 1}), one({"a": 1, "b": 6}), one({"a": 1, "b": None}), one({"a": 1, "b": {"$exists": True}}), one({"a": 1, "b": {"$type": "string"}}),
        one({"a": 1, "b": {"$in": [1, None]}}), one({"a": 1, "b": {"$ne": None}})]),
    ([{"a": "hashed"}], {}, PLAIN, [
        one({"a": 1}), one({"a": {"$in": [1, 2]}}), one({"a": {"$gt": 1}}), one({"a": None}), one({"a": 1}, projection={"a": 1, "_id": 0}),
        one({}, sort={"a": 1}), one({"a": {"$exists": True}}), one({"a": {"$exists": False}}), one({"a": {"$ne": 1}})]),
    ([{"$**": 1}], {}, PLAIN, [
        one({"a": 1}), one({"a": {"$gt": 1}, "b": 2}), one({"a": {"$exists": True}}), one({"a.b": 1}), one({"a": None}), one({"a": {"$ne": 1}}),
        one({}, sort={"a": 1}), one({"a": {"$gt": 1}}, sort={"a": 1}), one({"a": {"$gt": 1}}, projection={"a": 1, "_id": 0}), one({"a": {}}),
        one({"a": {"$in": [1, 2]}}), one({"$or": [{"a": 1}, {"b": 1}]}), one({"_id": 3, "a": 1}), one({"a": {"$ne": None}}), one({"a": {"$gt": MIN}})]),
    ([], {}, PLAIN, [
        one({"_id": 3}), one({"_id": {"$gt": 3}}), one({"_id": {"$in": [3, 4]}}), one({"_id": 3}, projection={"_id": 1}), one({"_id": 3}, sort={"a": 1}),
        one({"_id": None}), one({"_id": RE}), one({"_id": 3, "a": 1}), one({"_id": {"x": 1}}), one({"_id": 3}, limit=1, skip=1), one({"_id": 3}, hint={"_id": 1}),
        one({"_id": [1]}), one({"_id": 3}, projection={"a": 0}), one({}, hint={"$natural": -1}), one({}, sort={"$natural": -1}),
        one({"_id": {"$gt": 5}}, sort={"_id": -1}), one({"$alwaysFalse": 1}), one({"x": {"$in": []}})]),
]


def text(v):
    """Documents as the Rust side prints them: canonical extended JSON."""
    return json.dumps(v, ensure_ascii=False, separators=(",", ":"))


def line(stage):
    name, facts = stage["stage"], []
    if name == "SUBPLAN":
        return line(stage["inputStage"])
    if "indexName" in stage:
        facts.append(stage["indexName"])
        facts.append(", ".join(f"{k}: {' '.join(v)}" for k, v in stage["indexBounds"].items()))
    if stage.get("direction") == "backward":
        facts.append("backward")
    if "filter" in stage:
        facts.append("filter " + text(stage["filter"]))
    if "sortPattern" in stage:
        facts.append(text(stage["sortPattern"]))
    if name == "SORT" and "limitAmount" in stage:
        facts.append("limit")
    out = name + (f"({'; '.join(facts)})" if facts else "")
    if "inputStage" in stage:
        out += " <- " + line(stage["inputStage"])
    if "inputStages" in stage:
        out += " <- [" + " | ".join(line(s) for s in stage["inputStages"]) + "]"
    return out


def main(uri):
    c = wire.Conn(uri)
    db = "record_plans"
    with open(HERE / "plans.jsonl", "w", encoding="utf-8") as out:
        for keys, options, docs, queries in GROUPS:
            c.ok(db, {"dropDatabase": 1})
            c.ok(db, {"insert": "c", "documents": docs})
            indexes = [{"key": k, "name": "_".join(f"{p}_{d}" for p, d in k.items()), **options} for k in keys]
            if indexes:
                c.ok(db, {"createIndexes": "c", "indexes": indexes})
            out.write(text({"docs": docs, "indexes": indexes}) + "\n")
            for q in queries:
                r = c.command(db, {"explain": {"find": "c", **q}, "verbosity": "queryPlanner"})
                if r.get("ok") != 1:
                    print("refused:", q, r.get("errmsg"))
                    continue
                p = r["queryPlanner"]
                rejected = sorted(line(s) for s in p["rejectedPlans"])
                plans = [x for x in [line(p["winningPlan"])] + rejected if "AND_SORTED" not in x and "AND_HASH" not in x]
                out.write(text({"query": q, "plans": plans}) + "\n")
    c.ok(db, {"dropDatabase": 1})


main(sys.argv[1])
