#!/usr/bin/env python3
"""Well-formed requests that ask for far too much, each with `maxTimeMS: 50`, against a live server.

    heavy.py URI [--pid PID] [--only RE] [--slack MS] [--growth MIB] [--limit-ms N] [--reference] [-v]

Passed means: an answer within 50 + 200 ms and the time that reading the request itself takes (10 ms per MB; --slack adds to it: a
debug build needs about 400), one of the codes the case names where it names some, memory that has grown by less than
--growth MiB (110: the usual budget of 100 MiB and a tenth) and what the request itself weighs while the request ran,
and a `ping` on another connection that never waited more than 200 ms.
The table of the slowest comes last. --reference judges nothing: for a look at MongoDB's own answers.

Not part of `cargo test`: it measures time. Best against an optimised build on a machine that is otherwise idle.
Standard library only. Ends with `N passed, N failed`.
"""
import argparse
import math
import pathlib
import random
import re
import sys
import threading
import time

sys.setrecursionlimit(20000)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import ejson  # noqa: E402
import wire  # noqa: E402
from ejson import DATE, INF, NAN, L  # noqa: E402

DB = "heavy"
MAX_TIME_MS = 50
LATE_MS = 200
ANSWER_MAX_S = 20
NEAR = {"type": "Point", "coordinates": [0.5, 0.5]}


# ------------------------------------------------------------ the data


def fill(c):
    rnd = random.Random(1)
    c.command(DB, {"dropDatabase": 1})

    def insert(coll, docs, part=1000):
        for i in range(0, len(docs), part):
            c.ok(DB, {"insert": coll}, [("documents", docs[i:i + part])])

    def index(coll, key, **more):
        c.ok(DB, {"createIndexes": coll, "indexes": [{"key": key, "name": "i_" + "_".join(key), **more}]})
    point = lambda: [rnd.uniform(-180, 180), rnd.uniform(-90, 90)]  # noqa: E731
    insert("small", [{"_id": i, "a": i, "s": "abc%d" % i, "l": [1, 2, 3], "d": DATE(i * 86400000)} for i in range(100)])
    insert("numbers", [{"_id": i, "a": i % 100, "b": (i * 7919) % 20000, "x": 1} for i in range(20000)])
    insert("big", [{"_id": i, "s": chr(97 + i % 26) * 1000000, "l": list(range(20000))} for i in range(150)], 10)
    insert("graph", [{"_id": i, "to": [(i * k + 1) % 20000 for k in range(1, 6)], "w": "x" * 200} for i in range(20000)])
    insert("strings", [{"_id": i, "s": "a" * 30 + "b", "w": "word%d " % i * 20} for i in range(50)])
    insert("sphere", [{"_id": i, "at": {"type": "Point", "coordinates": point()}} for i in range(2000)])
    insert("flat", [{"_id": i, "at": point()} for i in range(2000)])
    insert("text", [{"_id": i, "x": " ".join(rnd.choices(["red", "green", "blue", "cat", "dog"], k=20))} for i in range(2000)])
    insert("shapes", [{"_id": i, "at": {"type": "Polygon", "coordinates": [circle(20, 20 + i, 10, 20000)]}} for i in range(3)], 1)
    insert("words", [{"_id": i, "x": "abc def " * 100} for i in range(10)])
    insert("upd", [{"_id": i, "l": [], "m": [{"k": j} for j in range(1000)]} for i in range(20)])
    insert("upd", [{"_id": 100 + i, "l": list(range(100000))} for i in range(3)], 1)
    index("sphere", {"at": "2dsphere"})
    index("flat", {"at": "2d"})
    index("text", {"x": "text"})
    index("shapes", {"at": "2dsphere"})
    index("numbers", {"a": 1, "b": 1})
    c.ok(DB, {"create": "series", "timeseries": {"timeField": "t", "metaField": "m"}})
    insert("series", [{"t": DATE(1700000000000 + i * 1000), "m": i % 10, "v": i} for i in range(20000)])


def circle(x, y, r, n):
    ring = [[x + r * math.cos(i / n * 2 * math.pi), y + r * math.sin(i / n * 2 * math.pi)] for i in range(n)]
    return ring + [ring[0]]


# ------------------------------------------------------------ the requests


def find(coll, q, **more):
    return {"find": coll, "filter": q, **more}


def agg(coll, *stages, **more):
    return {"aggregate": coll, "pipeline": list(stages), "cursor": {}, **more}


def expr(e, coll="small"):
    return agg(coll, {"$project": {"x": e}})


def one(e):
    return agg("small", {"$limit": 1}, {"$project": {"x": e}})


def update(coll, q, u, **more):
    return {"update": coll, "updates": [{"q": q, "u": u, **more}]}


def nested(n, wrap, core):
    for _ in range(n):
        core = wrap(core)
    return core


def doubling(times, op, start):
    """A string or array that is put together with itself again and again."""
    return {"$reduce": {"input": {"$range": [0, times]}, "initialValue": start, "in": {op: ["$$value", "$$value"]}}}


def loops(depth, n, core):
    return nested(depth, lambda e: {"$map": {"input": {"$range": [0, n]}, "as": "v", "in": e}}, core)


def count_of(e):
    return {"$size": e}


def filters(rnd):
    wide = [rnd.randrange(1 << 30) for _ in range(500000)]
    yield "$in 500,000", find("numbers", {"a": {"$in": wide}})
    yield "$nin 500,000", find("numbers", {"x": {"$nin": wide}, "b": -1})
    yield "$in 300,000 strings unindexed", find("numbers", {"x": {"$in": ["s%d" % i for i in wide[:300000]]}})
    yield "$in 300,000 with a collation", find("numbers", {"x": {"$in": ["s%d" % i for i in wide[:300000]]}}, collation={"locale": "de", "strength": 1})
    yield "$in 20,000 patterns", find("strings", {"s": {"$in": [ejson.RE("a+b%dc" % i) for i in range(20000)]}})
    yield "$or of 100,000", find("numbers", {"$or": [{"a": i, "b": i} for i in range(100000)]})
    yield "$or of 100,000 unindexed", find("numbers", {"$or": [{"x": i} for i in range(2, 100000)]})
    yield "$and of 100,000", find("numbers", {"$and": [{"b": {"$ne": i}} for i in range(100000)]})
    yield "$and of $ors", find("numbers", {"$and": [{"$or": [{"a": i}, {"b": i}, {"x": i}]} for i in range(2000)]})
    yield "$and of indexed $ors", find("numbers", {"$and": [{"$or": [{"a": i}, {"a": i + 1, "b": i}]} for i in range(200)]})
    yield "$nor of 100,000", find("numbers", {"$nor": [{"b": i} for i in range(100000)]})
    yield "$all of 100,000", find("big", {"l": {"$all": list(range(100000))}})
    yield "$elemMatch of many", find("big", {"l": {"$elemMatch": {"$nin": list(range(-1, -5000, -1)), "$gt": 1e9}}})
    yield "many $ins multiplied", find("numbers", {"a": {"$in": list(range(5000))}, "b": {"$in": list(range(5000))}}, sort={"a": 1})
    yield "a word of a million letters", find("small", {"s": "a" * 1000000})
    yield "regex 1 MB", find("strings", {"s": ejson.RE("a" * 1000000)})
    yield "regex 32 KB of alternatives", find("strings", {"s": ejson.RE("|".join("ab%dc" % i for i in range(4000)))})
    yield "regex (a+)+$", find("strings", {"s": ejson.RE("^(a+)+$")})
    yield "regex (a|aa)*c", find("strings", {"s": ejson.RE("^(a|aa)*c")})
    yield "regex with a back reference", find("strings", {"s": ejson.RE("^(a*)*\\1c")})
    yield "regex (.*)* over 1 MB", find("big", {"s": ejson.RE("(.*)*(.*)*(.*)*x1")})
    yield "regex counted", find("strings", {"s": ejson.RE("((a{1,100}){1,100}){1,100}c")})
    yield "regex counted thousands", find("strings", {"s": ejson.RE("((a{1000}){1000}){1000}")})
    yield "regex nested 5000", find("strings", {"s": ejson.RE("(" * 5000 + "a" + ")" * 5000)})
    yield "regex looking behind 1 MB", find("big", {"s": ejson.RE("(?<=a.*b)c")})
    yield "regex possessive over 1 MB", find("big", {"s": ejson.RE("a++b|z++y")})
    yield "regex looking ahead from each letter", find("big", {"s": ejson.RE("(?=.*[A-Z])[a-z]")})
    yield "regex looking ahead within a repeat", find("big", {"s": ejson.RE("(?:[a-z](?=.*[A-Z]))+")})
    yield "regex that is not there", find("big", {"s": ejson.RE("^(?!.*[a-z]$)")})
    yield "regex with a back reference over 1 MB", find("big", {"s": ejson.RE("([a-z]*)\\1[a-z]\\1[A-Z]?$")})
    yield "regex atomic", find("big", {"s": ejson.RE("(?>[a-z]+)[a-z]")})
    yield "regex unicode classes", find("big", {"s": ejson.RE("(*UTF)(\\p{L}\\p{N}?)+!")})
    yield "$jsonSchema 60 deep", find("small", {"$jsonSchema": nested(60, lambda s: {"properties": {"a": s}}, {"minimum": 5})})
    yield "$jsonSchema wide", find("numbers", {"$jsonSchema": {"properties": {"f%d" % i: {"minimum": 1} for i in range(50000)}}})
    yield "$jsonSchema anyOf", find("big", {"$jsonSchema": {"properties": {"l": {"items": {"anyOf": [{"enum": [-i]} for i in range(5000)]}}}}})
    yield "$jsonSchema uniqueItems", find("big", {"$jsonSchema": {"properties": {"l": {"uniqueItems": True}}}})
    yield "filter 500 deep", find("small", nested(200, lambda q: {"$and": [q]}, {"a": 1}))
    yield "filter 150 deep", find("small", nested(70, lambda q: {"$nor": [q, {"b": 1}]}, {"a": 1}))
    yield "dotted path of 100,000", find("small", {".".join("a" * 100000): 1})
    yield "$where for ever", find("small", {"$where": "while(true){}"})
    yield "sort of big documents", find("big", {}, sort={"s": 1})
    yield "sort without disk", find("big", {}, sort={"s": 1}, allowDiskUse=False)
    yield "sort by 32 fields", find("numbers", {}, sort={"f%d" % i: 1 for i in range(32)})
    yield "sort of 1 MB strings by collation", find("big", {}, sort={"s": 1}, collation={"locale": "en", "strength": 2})
    yield "collation over 1 MB strings", find("big", {"s": "b" * 1000000}, collation={"locale": "fr", "strength": 1, "numericOrdering": True})
    yield "projection of 100,000", find("small", {}, projection={"f%d" % i: 1 for i in range(100000)})
    yield "projection $slice", find("big", {}, projection={"l": {"$slice": [-2147483648, 2147483647]}})
    yield "distinct of 1 MB strings", {"distinct": "big", "key": "s", "query": {}}
    yield "distinct of many", {"distinct": "big", "key": "l", "query": {}}
    yield "distinct by collation", {"distinct": "big", "key": "s", "query": {}, "collation": {"locale": "de", "strength": 3}}
    yield "filter with loops", find("numbers", {"$expr": {"$gt": [{"$sum": loops(2, 2000, "$a")}, 1e300]}})
    yield "projection with loops", find("numbers", {}, projection={"x": {"$sum": loops(2, 2000, "$a")}})
    yield "let with loops", find("numbers", {"$expr": {"$eq": ["$a", "$$v"]}}, let={"v": {"$sum": loops(3, 1000, 1)}})
    yield "$elemMatch projection", find("big", {}, projection={"l": {"$elemMatch": {"$in": list(range(-200000, 0))}}})
    yield "find min max of 1 MB", find("numbers", {}, hint={"a": 1, "b": 1}, min={"a": 1, "b": 1}, max={"a": 1, "b": "x" * 1000000})
    yield "$mod of everything", find("numbers", {"$and": [{"b": {"$mod": [20011 + i, 20010]}} for i in range(50000)]})
    yield "$bitsAllSet of many", find("numbers", {"$or": [{"b": {"$bitsAllSet": list(range(20, 63))}} for _ in range(5000)]})
    yield "$type of many", find("numbers", {"$nor": [{"b": {"$type": ["int", "double", "long"]}} for _ in range(50000)]})
    yield "explain of many candidates", {"explain": find("numbers", {"$or": [{"a": i, "b": {"$gt": i}} for i in range(20000)]}), "verbosity": "allPlansExecution"}
    yield "validate", {"validate": "big", "full": True}
    yield "dbHash", {"dbHash": 1}
    yield "count by $expr", {"count": "small", "query": {"$expr": {"$gt": [{"$size": {"$range": [0, 10000000]}}, 1]}}}


def expressions(rnd):
    yield "$range 10^9", expr({"$range": [0, 1000000000]}), (146, 50)
    yield "$range 2 * 10^9", expr(count_of({"$range": [0, 2000000000]})), (146, 50)
    yield "$range 3,000,000 often", one({"$sum": loops(1, 1000, count_of({"$range": [0, 3000000]}))})
    yield "$concat doubling", one({"$strLenBytes": doubling(40, "$concat", "0123456789")})
    yield "$concatArrays doubling", one(count_of(doubling(40, "$concatArrays", [1, 2, 3])))
    yield "$setUnion doubling", one(count_of(doubling(40, "$setUnion", [1, 2, 3])))
    yield "$mergeObjects doubling", one({"$reduce": {"input": {"$range": [0, 30]}, "initialValue": {"a": 1}, "in": {"a": "$$value", "b": "$$value"}}})
    yield "an array of arrays doubling", one({"$reduce": {"input": {"$range": [0, 40]}, "initialValue": [1], "in": ["$$value", "$$value"]}})
    yield "$map six deep", one(loops(6, 1000, "$a"))
    yield "$map in $map of sums", one(loops(2, 3000, {"$add": ["$a", 1]}))
    yield "$filter in $filter", one({"$filter": {"input": {"$range": [0, 10000]}, "as": "i", "cond": {"$gt": [{"$size": {"$filter": {"input": {"$range": [0, 10000]}, "as": "j", "cond": {"$eq": ["$$i", "$$j"]}}}}, 5]}}})
    yield "$reduce 10^6", one({"$reduce": {"input": {"$range": [0, 1000000]}, "initialValue": 0, "in": {"$add": ["$$value", {"$pow": ["$$this", 2]}]}}})
    yield "$reduce growing an array", one(count_of({"$reduce": {"input": {"$range": [0, 1000000]}, "initialValue": [], "in": {"$concatArrays": ["$$value", ["$$this"]]}}}))
    yield "$reduce growing a string", one({"$strLenBytes": {"$reduce": {"input": {"$range": [0, 1000000]}, "initialValue": "", "in": {"$concat": ["$$value", "x"]}}}})
    yield "$reduce growing a set", one(count_of({"$reduce": {"input": {"$range": [0, 100000]}, "initialValue": [], "in": {"$setUnion": ["$$value", ["$$this"]]}}}))
    yield "$setUnion of big arrays", one(count_of({"$setUnion": [{"$range": [0, 1000000]}, {"$range": [500000, 1500000]}]}))
    yield "$setIntersection of big arrays", one(count_of({"$setIntersection": [{"$range": [0, 1000000]}, {"$range": [500000, 1500000]}]}))
    yield "$setDifference of big arrays", one(count_of({"$setDifference": [{"$range": [0, 1000000]}, {"$range": [500000, 1500000]}]}))
    yield "$setIsSubset of big arrays", one({"$setIsSubset": [{"$range": [0, 1000000]}, {"$range": [0, 1500000]}]})
    yield "$zip of long arrays", one(count_of({"$zip": {"inputs": [{"$range": [0, 1000000]}] * 20}}))
    yield "$zip longest", one(count_of({"$zip": {"inputs": [{"$range": [0, 1000000]}] + [[1]] * 50, "useLongestLength": True}}))
    yield "$split into a million", expr(count_of({"$split": ["$s", "a"]}), "big")
    yield "$split of nothing found", expr(count_of({"$split": ["$s", "a" * 500000 + "b"]}), "big")
    yield "$indexOfBytes of half", expr({"$indexOfBytes": ["$s", "a" * 500000 + "b"]}, "big")
    yield "$indexOfCP of half", expr({"$indexOfCP": ["$s", "a" * 500000 + "b"]}, "big")
    yield "$replaceAll growing", expr({"$strLenBytes": {"$replaceAll": {"input": "$s", "find": "a", "replacement": "b" * 100000}}}, "big")
    yield "$replaceAll of half", expr({"$replaceAll": {"input": "$s", "find": "a" * 500000 + "b", "replacement": ""}}, "big")
    yield "$replaceAll doubling", one({"$strLenBytes": {"$reduce": {"input": {"$range": [0, 40]}, "initialValue": "a", "in": {"$replaceAll": {"input": "$$value", "find": "a", "replacement": "aa"}}}}})
    yield "$regexFindAll of every letter", expr(count_of({"$regexFindAll": {"input": "$s", "regex": "a"}}), "big")
    yield "$regexFindAll of nothing", expr(count_of({"$regexFindAll": {"input": "$s", "regex": ""}}), "big")
    yield "$regexMatch backtracking", expr({"$regexMatch": {"input": "$s", "regex": "(a+)+(a+)+$"}}, "strings")
    yield "$trim of half", expr({"$trim": {"input": "$s", "chars": "".join(map(chr, range(0x4E00, 0x4E00 + 20000)))}}, "big")
    yield "$substrCP of 1 MB", one({"$sum": {"$map": {"input": {"$range": [0, 1000000]}, "in": {"$strLenCP": {"$substrCP": ["x" * 1000000, 500000, 100000]}}}}})
    yield "$sortArray of a million", one(count_of({"$sortArray": {"input": {"$range": [1000000, 0, -1]}, "sortBy": 1}}))
    yield "$reverseArray often", one({"$sum": {"$map": {"input": {"$range": [0, 1000]}, "in": {"$size": {"$reverseArray": [{"$range": [0, 1000000]}]}}}}})
    yield "$in of a million", one({"$filter": {"input": {"$range": [0, 1000000]}, "cond": {"$in": [{"$add": ["$$this", 5000000]}, {"$range": [0, 1000000]}]}}})
    yield "$indexOfArray", expr({"$filter": {"input": "$l", "cond": {"$gt": [{"$indexOfArray": ["$l", {"$multiply": ["$$this", -1]}]}, 5]}}}, "big")
    yield "$arrayToObject of a million", one({"$bsonSize": {"$arrayToObject": {"$map": {"input": {"$range": [0, 1000000]}, "in": {"k": {"$toString": "$$this"}, "v": 1}}}}})
    yield "$objectToArray of many", one(count_of({"$objectToArray": {"$arrayToObject": {"$map": {"input": {"$range": [0, 300000]}, "in": [{"$toString": "$$this"}, 1]}}}}))
    yield "$firstN of a million", one(count_of({"$maxN": {"n": 1000000, "input": {"$range": [0, 1000000]}}}))
    yield "$let doubling", one({"$size": {"$let": {"vars": {"x": doubling(40, "$concatArrays", [1])}, "in": "$$x"}}})
    yield "nested $let 100", one(nested(60, lambda e: {"$let": {"vars": {"x": e}, "in": {"$concatArrays": ["$$x", "$$x"]}}}, {"$literal": [1]}))
    yield "$cond 150 deep", one(nested(60, lambda e: {"$cond": [e, e, 1]}, "$a") if False else nested(90, lambda e: {"$not": [e]}, "$a"))
    yield "$add of 200,000", one({"$add": ["$a"] * 200000})
    yield "$concat of 100,000", one({"$strLenBytes": {"$concat": ["$s"] * 100000}})
    yield "$switch of 50,000", expr({"$switch": {"branches": [{"case": {"$eq": ["$a", -i]}, "then": i} for i in range(1, 50000)], "default": 0}})
    yield "$dateFromString often", one(count_of({"$map": {"input": {"$range": [0, 1000000]}, "in": {"$dateFromString": {"dateString": "2020-01-01T00:00:00", "timezone": "Europe/Berlin"}}}}))
    yield "$pow of decimals", one(count_of({"$map": {"input": {"$range": [0, 1000000]}, "in": {"$pow": [{"$toDecimal": "1.23456789"}, "$$this"]}}}))
    yield "$exp of decimals", one(count_of({"$map": {"input": {"$range": [0, 1000000]}, "in": {"$ln": {"$toDecimal": {"$add": ["$$this", 1.5]}}}}}))
    yield "$function for ever", one({"$function": {"body": "function(){while(true){}}", "args": [], "lang": "js"}})
    yield "$percentile of a million", one({"$percentile": {"input": {"$range": [0, 1000000]}, "p": [0.5] * 1000, "method": "approximate"}})


def stages(rnd):
    yield "$push of everything", agg("big", {"$group": {"_id": None, "x": {"$push": "$$ROOT"}}})
    yield "$push of everything without disk", agg("big", {"$group": {"_id": None, "x": {"$push": "$$ROOT"}}}, allowDiskUse=False)
    yield "$addToSet of everything", agg("big", {"$group": {"_id": None, "x": {"$addToSet": "$s"}}})
    yield "$addToSet of many", agg("numbers", {"$group": {"_id": None, "x": {"$addToSet": {"a": "$b", "l": {"$range": [0, 300]}}}}})
    yield "$group of unwound", agg("big", {"$unwind": "$l"}, {"$group": {"_id": {"l": "$l", "i": "$_id"}, "s": {"$push": "$l"}}})
    yield "$mergeObjects of everything", agg("numbers", {"$group": {"_id": None, "x": {"$mergeObjects": {"$arrayToObject": [[["$s", 1]]]}}}})
    yield "$mergeObjects growing", agg("numbers", {"$group": {"_id": None, "x": {"$mergeObjects": {"$arrayToObject": [[{"k": {"$toString": "$_id"}, "v": "x" * 2000}]]}}}})
    yield "$topN of everything", agg("big", {"$group": {"_id": None, "x": {"$topN": {"n": 1000000, "sortBy": {"_id": 1}, "output": "$$ROOT"}}}})
    yield "$firstN of everything", agg("big", {"$group": {"_id": None, "x": {"$firstN": {"n": 1000000, "input": "$$ROOT"}}}})
    yield "$percentile of everything", agg("numbers", {"$group": {"_id": "$_id", "x": {"$percentile": {"input": "$b", "p": [0.5] * 10000, "method": "approximate"}}}})
    yield "$graphLookup everywhere", agg("graph", {"$graphLookup": {"from": "graph", "startWith": "$to", "connectFromField": "to", "connectToField": "_id", "as": "x"}}), (50,)
    yield "$graphLookup unindexed", agg("graph", {"$graphLookup": {"from": "graph", "startWith": "$to", "connectFromField": "to", "connectToField": "to", "as": "x"}}), (50,)
    yield "$graphLookup of big documents", agg("small", {"$graphLookup": {"from": "big", "startWith": {"$range": [0, 1000]}, "connectFromField": "l", "connectToField": "_id", "as": "x"}}), (50, 146)
    yield "$lookup of everything", agg("numbers", {"$lookup": {"from": "numbers", "pipeline": [], "as": "x"}}, {"$project": {"n": {"$size": "$x"}}})
    yield "$lookup of big documents", agg("small", {"$lookup": {"from": "big", "pipeline": [], "as": "x"}}, {"$project": {"n": {"$size": "$x"}}})
    yield "$lookup 15 deep", agg("small", nested(15, lambda p: {"$lookup": {"from": "small", "pipeline": [p], "as": "x"}}, {"$match": {"a": {"$gte": 0}}}))
    yield "$unionWith in $unionWith", agg("numbers", nested(15, lambda p: {"$unionWith": {"coll": "numbers", "pipeline": [p]}}, {"$match": {"a": -1}}), {"$count": "n"})
    yield "$unwind four times", agg("big", *[{"$project": {"l": 1, "m": "$l", "n": "$l"}}, {"$unwind": "$l"}, {"$unwind": "$m"}, {"$unwind": "$n"}, {"$count": "n"}])
    yield "$densify with a tiny step", agg("small", {"$densify": {"field": "a", "range": {"step": 1e-9, "bounds": "full"}}})
    yield "$densify with a step of 5e-324", agg("small", {"$densify": {"field": "a", "range": {"step": 5e-324, "bounds": "full"}}})
    yield "$densify by milliseconds", agg("small", {"$densify": {"field": "d", "range": {"step": 1, "unit": "millisecond", "bounds": "full"}}})
    yield "$densify far", agg("small", {"$densify": {"field": "a", "range": {"step": 1, "bounds": [0, 1e15]}}})
    yield "$densify of partitions", agg("numbers", {"$densify": {"field": "b", "partitionByFields": ["_id"], "range": {"step": 1, "bounds": "full"}}}, {"$count": "n"})
    yield "$fill of big documents", agg("big", {"$fill": {"sortBy": {"_id": -1}, "output": {"x": {"method": "linear"}}}})
    yield "$fill of many", agg("numbers", {"$fill": {"sortBy": {"b": 1}, "partitionByFields": ["a"], "output": {"y": {"method": "locf"}}}}, {"$count": "n"})
    yield "$bucketAuto of big documents", agg("big", {"$bucketAuto": {"groupBy": "$s", "buckets": 5, "output": {"x": {"$push": "$s"}}}})
    yield "$bucketAuto of 2^31", agg("numbers", {"$bucketAuto": {"groupBy": "$b", "buckets": 2147483647}}, {"$count": "n"})
    yield "$bucket of 200,000", agg("numbers", {"$bucket": {"groupBy": "$b", "boundaries": list(range(200000)), "default": "x"}}, {"$count": "n"})
    yield "$sortByCount of big strings", agg("big", {"$sortByCount": "$s"})
    yield "$facet of everything", agg("big", {"$facet": {"f%d" % i: [{"$match": {"_id": {"$gte": i}}}] for i in range(50)}})
    yield "$facet of products", agg("numbers", {"$facet": {"f%d" % i: [{"$group": {"_id": "$b", "x": {"$push": "$$ROOT"}}}] for i in range(100)}})
    yield "$setWindowFields pushing", agg("numbers", {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"x": {"$push": "$b", "window": {"documents": ["unbounded", "current"]}}}}}, {"$count": "n"})
    yield "$setWindowFields of big documents", agg("big", {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"x": {"$sum": 1}}}}, {"$count": "n"})
    yield "$setWindowFields sliding", agg("numbers", {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"x": {"$median": {"input": "$b", "method": "approximate"}, "window": {"documents": [-5000, 5000]}}}}}, {"$count": "n"})
    yield "$setWindowFields with 500 outputs", agg("numbers", {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"x%d" % i: {"$addToSet": "$b", "window": {"documents": [-500, 500]}} for i in range(500)}}}, {"$count": "n"})
    yield "$sort of big documents", agg("big", {"$sort": {"s": -1}}, {"$group": {"_id": None, "x": {"$last": "$s"}}})
    yield "$sample of everything", agg("big", {"$sample": {"size": 1000000}})
    yield "1000 stages", agg("numbers", *[{"$addFields": {"f%d" % i: {"$add": ["$b", i]}} for i in range(0, 1)}] * 1000)
    yield "$addFields doubling the document", agg("small", *[{"$project": {"a": "$$ROOT", "b": "$$ROOT"}}] * 60)
    yield "$replaceRoot doubling", agg("small", *[{"$replaceRoot": {"newRoot": {"l": {"$concatArrays": ["$l", "$l"]}}}}] * 60)
    yield "$redact for ever", agg("shapes", *[{"$redact": {"$cond": [{"$eq": [1, 1]}, "$$DESCEND", "$$PRUNE"]}}] * 20)
    yield "$documents growing", {"aggregate": 1, "pipeline": [{"$documents": {"$map": {"input": {"$range": [0, 3000000]}, "in": {"a": "$$this"}}}}, {"$count": "n"}], "cursor": {}}
    yield "$merge of many", agg("numbers", {"$unwind": {"path": "$x"}}, {"$addFields": {"p": "x" * 10000}}, {"$merge": {"into": "merged"}})
    yield "$out of many", agg("numbers", {"$addFields": {"p": "x" * 10000}}, {"$out": "outed"})
    yield "$bucketAuto of unwound", agg("big", {"$unwind": "$l"}, {"$bucketAuto": {"groupBy": "$l", "buckets": 10}})
    yield "$sort by collation", agg("big", {"$addFields": {"q": {"$concat": ["$s", "x"]}}}, {"$sort": {"q": 1}}, {"$count": "n"}, collation={"locale": "ja", "strength": 3})
    yield "$group by collation", agg("big", {"$group": {"_id": "$s", "n": {"$sum": 1}}}, collation={"locale": "en", "strength": 1})
    yield "$group by arrays", agg("big", {"$group": {"_id": "$l", "n": {"$sum": 1}}})
    yield "$sort of unwound", agg("big", {"$unwind": "$l"}, {"$sort": {"l": -1, "s": 1}}, {"$count": "n"})
    yield "$sort of unwound without disk", agg("big", {"$unwind": "$l"}, {"$project": {"l": 1}}, {"$sort": {"l": -1}}, {"$count": "n"}, allowDiskUse=False)
    yield "$percentile of unwound", agg("big", {"$unwind": "$l"}, {"$group": {"_id": None, "x": {"$percentile": {"input": "$l", "p": [0.5], "method": "approximate"}}}})
    yield "$addToSet of unwound", agg("big", {"$unwind": "$l"}, {"$group": {"_id": None, "x": {"$addToSet": {"a": "$l", "b": "$_id"}}}})
    yield "$setWindowFields of unwound", agg("big", {"$unwind": "$l"}, {"$setWindowFields": {"partitionBy": "$_id", "sortBy": {"l": 1}, "output": {"x": {"$sum": "$l", "window": {"documents": [-1000, 1000]}}}}}, {"$count": "n"})
    yield "$setWindowFields by range", agg("numbers", {"$setWindowFields": {"sortBy": {"b": 1}, "output": {"x": {"$max": "$a", "window": {"range": [-20000, 20000]}}}}}, {"$count": "n"})
    yield "$lookup of the same, 15 deep", agg("big", nested(15, lambda p: {"$lookup": {"from": "big", "pipeline": [p, {"$project": {"s": 1}}], "as": "x"}}, {"$match": {"_id": {"$lt": 15}}}))
    yield "$lookup without an index", agg("numbers", {"$lookup": {"from": "numbers", "localField": "b", "foreignField": "x", "as": "x"}}, {"$count": "n"})
    yield "$lookup by $expr", agg("numbers", {"$lookup": {"from": "numbers", "let": {"b": "$b"}, "pipeline": [{"$match": {"$expr": {"$gt": ["$x", "$$b"]}}}], "as": "x"}}, {"$count": "n"})
    yield "$lookup of arrays", agg("big", {"$lookup": {"from": "numbers", "localField": "l", "foreignField": "b", "as": "x"}}, {"$count": "n"})
    yield "$geoNear of everything", agg("sphere", {"$geoNear": {"near": NEAR, "distanceField": "d", "key": "at"}}, {"$lookup": {"from": "sphere", "pipeline": [], "as": "x"}}, {"$count": "n"})
    yield "$sample of everything", agg("big", {"$unwind": "$l"}, {"$sample": {"size": 1000000}}, {"$count": "n"})
    yield "$unionWith 15 times", agg("big", *[{"$unionWith": {"coll": "big", "pipeline": [{"$unwind": "$l"}]}}] * 15, {"$sort": {"l": 1}}, {"$count": "n"})
    yield "time series by $expr", agg("series", {"$match": {"$expr": {"$gt": [{"$sum": loops(2, 2000, "$v")}, 1e300]}}}, {"$count": "n"})
    yield "time series sorted", agg("series", {"$sort": {"v": -1, "t": 1}}, {"$group": {"_id": None, "x": {"$push": "$$ROOT"}}}, {"$project": {"n": {"$size": "$x"}}})
    yield "time series by window", agg("series", {"$setWindowFields": {"sortBy": {"t": 1}, "output": {"x": {"$push": "$v", "window": {"range": [-100, 100], "unit": "day"}}}}}, {"$count": "n"})
    yield "time series unpacked often", agg("series", {"$lookup": {"from": "series", "pipeline": [], "as": "x"}}, {"$count": "n"})
    yield "accumulator for ever", agg("small", {"$group": {"_id": 1, "x": {"$accumulator": {"init": "function(){return 0}", "accumulate": "function(s){while(true){}}", "accumulateArgs": [], "merge": "function(a,b){return a}", "lang": "js"}}}})
    yield "mapReduce for ever", {"mapReduce": "small", "map": ejson.CODE("function(){while(true){}}"), "reduce": ejson.CODE("function(k,v){return 1}"), "out": {"inline": 1}}


def texts(rnd):
    yield "a search for 200,000 words", find("text", {"$text": {"$search": " ".join("w%d" % i for i in range(200000))}})
    yield "a search for 50,000 phrases", find("text", {"$text": {"$search": " ".join('"red w%d"' % i for i in range(50000))}})
    yield "a search without 200,000 words", find("text", {"$text": {"$search": "red " + " ".join("-w%d" % i for i in range(200000))}})
    yield "a word of 5 MB", find("text", {"$text": {"$search": "a" * 5000000}})
    yield "a word of 2 MB to stem", find("text", {"$text": {"$search": "ationaliz" * 200000 + "ing"}})
    yield "a phrase of 4 MB", find("text", {"$text": {"$search": '"' + "red " * 1000000 + '"'}})
    yield "only marks", find("text", {"$text": {"$search": "\u0301" * 2000000}})
    for lang in ("german", "french", "spanish", "russian", "turkish", "finnish", "portuguese", "romanian", "hungarian"):
        yield "a word of 2 MB, " + lang, find("text", {"$text": {"$search": "eniertelisim" * 160000, "$language": lang}})
    yield "a text index of long strings", {"createIndexes": "big", "indexes": [{"key": {"s": "text"}, "name": "t"}]}
    yield "a text index with 100,000 weights", {"createIndexes": "words", "indexes": [{"key": {"x": "text"}, "weights": {"f%d" % i: 2 for i in range(100000)}, "name": "t"}]}


def geo(rnd):
    wild = [[rnd.uniform(-90, 90), rnd.uniform(-80, 80)] for _ in range(20000)]
    anywhere = [[rnd.uniform(-180, 180), rnd.uniform(-90, 90)] for _ in range(100000)]
    round_ = circle(0, 0, 40, 50000)

    def shape(op, kind, coordinates, coll="sphere"):
        return find(coll, {"at": {op: {"$geometry": {"type": kind, "coordinates": coordinates}}}})
    yield "a wild polygon of 20,000", shape("$geoWithin", "Polygon", [wild + [wild[0]]])
    yield "a polygon of 50,000", shape("$geoWithin", "Polygon", [round_])
    yield "a polygon of 300,000", shape("$geoWithin", "Polygon", [circle(0, 0, 40, 300000)])
    yield "polygons beside each other", shape("$geoIntersects", "Polygon", [circle(20.0001, 20, 10, 50000)], "shapes")
    yield "a polygon within another", shape("$geoWithin", "Polygon", [circle(20.0001, 20, 10.2, 50000)], "shapes")
    yield "a polygon with 5000 holes", shape("$geoWithin", "Polygon", [[[-60, -60], [60, -60], [60, 60], [-60, 60], [-60, -60]]] + [circle(-50 + i % 100, -50 + i // 100, .3, 8) for i in range(5000)])
    yield "20,000 polygons", shape("$geoIntersects", "MultiPolygon", [[[[i % 180, i // 180 * .7], [i % 180 + .1, i // 180 * .7], [i % 180, i // 180 * .7 + .1], [i % 180, i // 180 * .7]]] for i in range(20000)])
    yield "100,000 points", shape("$geoIntersects", "MultiPoint", anywhere)
    yield "100,000 points on polygons", shape("$geoIntersects", "MultiPoint", anywhere, "shapes")
    yield "a line of 100,000", shape("$geoIntersects", "LineString", anywhere)
    yield "a line of 100,000 through polygons", shape("$geoIntersects", "LineString", [[10 + i % 20 + i / 1e6, 10 + (i * 7) % 20] for i in range(100000)], "shapes")
    yield "20,000 lines", shape("$geoIntersects", "MultiLineString", [anywhere[5 * i:5 * i + 5] for i in range(20000)])
    yield "a fine line of 100,000", shape("$geoIntersects", "LineString", circle(0, 0, 1, 100000))
    yield "50,000 shapes", find("sphere", {"at": {"$geoIntersects": {"$geometry": {"type": "GeometryCollection", "geometries": [NEAR] * 50000}}}})
    yield "a flat polygon of 300,000", find("flat", {"at": {"$geoWithin": {"$polygon": [[rnd.uniform(-180, 180), rnd.uniform(-90, 90)] for _ in range(300000)]}}})
    yield "a huge circle", find("flat", {"at": {"$geoWithin": {"$center": [[1e308, 1e308], 1e308]}}})
    yield "an endless circle", find("flat", {"at": {"$geoWithin": {"$center": [[0, 0], INF]}}})
    yield "a huge sphere circle", find("sphere", {"at": {"$geoWithin": {"$centerSphere": [[0, 0], 1e300]}}})
    yield "a tiny sphere circle", find("sphere", {"at": {"$geoWithin": {"$centerSphere": [[0, 0], 5e-324]}}})
    yield "a huge box", find("flat", {"at": {"$geoWithin": {"$box": [[-1e308, -1e308], [1e308, 1e308]]}}})
    for n, q in [("NaN", {"$near": [NAN, 0]}), ("infinite", {"$near": [INF, 0]}), ("max NaN", {"$near": [0, 0], "$maxDistance": NAN}),
                 ("min 5e-324", {"$near": [0, 0], "$minDistance": 5e-324}), ("max 5e-324", {"$near": [0, 0], "$maxDistance": 5e-324}), ("min 1e308", {"$near": [0, 0], "$minDistance": 1e308})]:
        yield "$near " + n, find("flat", {"at": q})
    for n, q in [("max 5e-324", {"$maxDistance": 5e-324}), ("max 1e308", {"$maxDistance": 1e308}), ("min far", {"$minDistance": 2.0037e7})]:
        yield "$nearSphere " + n, find("sphere", {"at": {"$near": {"$geometry": NEAR, **q}}})
    yield "an insert of a wild polygon", {"insert": "shapes", "documents": [{"at": {"type": "Polygon", "coordinates": [wild + [wild[0]]]}}]}
    yield "an insert of a polygon of 100,000", {"insert": "shapes", "documents": [{"at": {"type": "Polygon", "coordinates": [circle(0, 50, 10, 100000)]}}]}
    yield "an insert of a line of 100,000", {"insert": "shapes", "documents": [{"at": {"type": "LineString", "coordinates": anywhere}}]}
    yield "an insert of 100,000 points", {"insert": "shapes", "documents": [{"at": {"type": "MultiPoint", "coordinates": anywhere}}]}


def writes(rnd):
    yield "$push of 10^6", update("upd", {"_id": 1}, {"$push": {"l": {"$each": list(range(1000000))}}})
    yield "$push sorted and sliced", update("upd", {"_id": 1}, {"$push": {"l": {"$each": [rnd.randrange(1 << 30) for _ in range(500000)], "$sort": 1, "$slice": -10}}})
    yield "$push of documents sorted", update("upd", {"_id": 2}, {"$push": {"l": {"$each": [{"a": {"b": rnd.randrange(1 << 30)}} for _ in range(200000)], "$sort": {"a.b": -1, "a.c": 1}, "$slice": 5}}})
    yield "$addToSet of 10^5", update("upd", {"_id": 3}, {"$addToSet": {"l": {"$each": [i * 3 for i in range(300000)]}}})
    yield "$addToSet to 10^5", update("upd", {"_id": 100}, {"$addToSet": {"l": {"$each": [-i for i in range(100000)]}}})
    yield "$pullAll 10^5 of 10^5", update("upd", {"_id": 101}, {"$pullAll": {"l": [-i for i in range(1, 100000)]}})
    yield "$pull $in 10^5 of 10^5", update("upd", {"_id": 102}, {"$pull": {"l": {"$in": [-i for i in range(1, 100000)]}}})
    yield "$set of 50,000 fields", update("upd", {"_id": 4}, {"$set": {"f%d" % i: i for i in range(50000)}})
    yield "$set far in an array", update("upd", {"_id": 5}, {"$set": {"l.1400000": 1}})
    yield "$set 190 deep", update("upd", {"_id": 6}, {"$set": {".".join("a" * 190): 1}})
    yield "arrayFilters with many", update("upd", {}, {"$set": {"m.$[x].y": 1}}, arrayFilters=[{"$or": [{"x.k": -i} for i in range(1, 20000)]}], multi=True)
    yield "$[] everywhere", update("upd", {"_id": 7}, {"$inc": {"m.$[].n%d" % i: 1 for i in range(500)}})
    yield "pipeline doubling", update("upd", {"_id": 8}, [{"$set": {"l": {"$concatArrays": ["$l", "$l", [1]]}}}] * 60)
    yield "pipeline $range", update("upd", {"_id": 9}, [{"$set": {"l": {"$range": [0, 1000000000]}}}])
    yield "pipeline looping", update("upd", {}, [{"$set": {"q": {"$sum": loops(3, 2000, "$a")}}}], multi=True)
    yield "regex update", update("strings", {"s": ejson.RE("^(a|aa)*c")}, {"$set": {"y": 1}}, multi=True)
    yield "bulkWrite of many", ("admin", {"bulkWrite": 1, "ops": [{"update": 0, "filter": {"b": -i}, "updateMods": {"$set": {"z": 1}}, "multi": True} for i in range(1, 20000)], "nsInfo": [{"ns": DB + ".numbers"}]})
    yield "updates of many", {"update": "numbers", "updates": [{"q": {"b": -i}, "u": {"$set": {"z": 1}}} for i in range(1, 50000)]}
    yield "deletes of many", {"delete": "numbers", "deletes": [{"q": {"b": -i}, "limit": 0} for i in range(1, 50000)]}
    yield "findAndModify looping", {"findAndModify": "small", "query": {"$expr": {"$gt": [{"$sum": loops(3, 2000, "$a")}, 1e300]}}, "update": {"$set": {"y": 1}}}
    yield "findAndModify by a regex", {"findAndModify": "strings", "query": {"s": ejson.RE("^(a+)+(a+)+c$")}, "remove": True}
    yield "delete by $expr", {"delete": "small", "deletes": [{"q": {"$expr": {"$gt": [{"$sum": loops(3, 2000, "$a")}, 1e300]}}, "limit": 0}]}
    yield "upsert with loops", update("small", {"_id": -1, "$expr": {"$gt": [{"$sum": loops(3, 1000, 1)}, 1e300]}}, {"$set": {"y": 1}}, upsert=True)
    yield "findAndModify sorted", {"findAndModify": "numbers", "query": {}, "sort": {"f": 1, "g": 1, "x": -1}, "update": [{"$set": {"z": {"$sum": loops(3, 1000, "$b")}}}]}
    yield "$push to 10^5, sorted", update("upd", {"_id": {"$gte": 100}}, {"$push": {"l": {"$each": list(range(-100000, 0)), "$sort": -1}}}, multi=True)
    yield "$pull of documents", update("upd", {}, {"$pull": {"m": {"$nor": [{"k": i} for i in range(20000)]}}}, multi=True)
    yield "$unset of 50,000 fields", update("upd", {"_id": 4}, {"$unset": {"f%d" % i: 1 for i in range(50000)}})
    yield "$rename of 20,000 fields", update("upd", {"_id": 4}, {"$rename": {"f%d" % i: "g%d" % i for i in range(20000)}})
    yield "an index of wild cards", {"createIndexes": "big", "indexes": [{"key": {"$**": 1}, "name": "w"}]}
    yield "a partial index that loops", {"createIndexes": "numbers", "indexes": [{"key": {"z": 1}, "name": "p", "partialFilterExpression": {"$and": [{"b": {"$gt": -i}} for i in range(20000)]}}]}
    yield "a unique index of duplicates", {"createIndexes": "numbers", "indexes": [{"key": {"x": 1}, "name": "u", "unique": True}]}
    yield "a spherical index of lines", {"createIndexes": "big", "indexes": [{"key": {"at": "2dsphere"}, "name": "s"}]}
    yield "an index of arrays", {"createIndexes": "big", "indexes": [{"key": {"l": 1}, "name": "l"}]}
    yield "an index by collation", {"createIndexes": "big", "indexes": [{"key": {"s": 1}, "name": "c", "collation": {"locale": "ja", "strength": 3}}]}
    yield "a validator that loops", {"create": "valid", "validator": {"$expr": {"$gt": [{"$sum": loops(3, 2000, "$a")}, 1e300]}}}, None
    yield "an insert that its validator holds up", {"insert": "valid", "documents": [{"a": 1}]}
    yield "time series of many sources", {"insert": "series", "documents": [{"t": DATE(1700000000000 + i * 86400000 * 30), "m": "m%d" % i, "v": 1} for i in range(20000)]}
    yield "time series far apart", {"insert": "series", "documents": [{"t": DATE((-1) ** i * 9000000000000 - i), "m": 1, "v": {"a": [i] * 10}} for i in range(5000)]}


GROUPS = {"filters": filters, "expressions": expressions, "stages": stages, "texts": texts, "geo": geo, "writes": writes}


# ------------------------------------------------------------ running them


def rss(pid):
    for ln in open(f"/proc/{pid}/status"):
        if ln.startswith("VmRSS"):
            return int(ln.split()[1]) * 1024
    return 0


class Watcher(threading.Thread):
    """Pings on a connection of its own, and looks at the memory, until it is told to end."""

    def __init__(self, uri, pid):
        super().__init__(daemon=True)
        self.conn, self.pid = wire.Conn(uri, timeout=ANSWER_MAX_S), pid
        self.slowest, self.most, self.ended = 0.0, 0, False

    def run(self):
        try:
            while not self.ended:
                t = time.monotonic()
                self.conn.command("admin", {"ping": 1})
                self.slowest = max(self.slowest, time.monotonic() - t)
                if self.pid:
                    self.most = max(self.most, rss(self.pid))
                time.sleep(.005)
        except OSError:
            self.slowest = math.inf

    def reset(self):
        self.slowest, self.most = 0.0, rss(self.pid) if self.pid else 0
        return self.most


def ask(conn, db, cmd, watcher):
    data = wire.op_msg({**cmd, "maxTimeMS": MAX_TIME_MS, "$db": db})
    before = watcher.reset()
    t = time.monotonic()
    conn.send(data)
    reply = conn.recv()
    secs = time.monotonic() - t
    return ejson.decode(reply[3], 5), secs, len(data), watcher.most - before


def outcome(r):
    failed = (r.get("writeErrors") or [r]) if not r.get("ok") or r.get("writeErrors") else None
    if failed:
        return failed[0].get("code"), failed[0].get("errmsg", "")
    if "cursor" in r and "firstBatch" in r["cursor"]:
        return "ok", "%d documents" % len(r["cursor"]["firstBatch"])
    return "ok", str({k: v for k, v in r.items() if k in ("n", "nModified", "numIndexesAfter")})


def judge(a, secs, size, grew, code, allowed, ping_s):
    late = secs * 1000 > MAX_TIME_MS + LATE_MS + a.slack + size / 1e5
    wrong = []
    if late:
        wrong.append("LATE")
    if allowed and code not in allowed:
        wrong.append("CODE, not one of %s" % (allowed,))
    if grew > (a.growth << 20) + 6 * size:
        wrong.append("MEMORY")
    if ping_s * 1000 > LATE_MS + a.slack:
        wrong.append("OTHERS WAITED %.0f ms" % (ping_s * 1000))
    return wrong


def run(a):
    conn = wire.Conn(a.uri, timeout=ANSWER_MAX_S)
    fill(conn)
    watcher = Watcher(a.uri, a.pid)
    watcher.start()
    passed, failed, rows = 0, 0, []
    for group, make in GROUPS.items():
        for case in make(random.Random("heavy/" + group)):
            name, cmd, allowed = (case + (None,))[:3]
            if a.only and not re.search(a.only, f"{group}: {name}"):
                continue
            db, cmd = cmd if isinstance(cmd, tuple) else (DB, cmd)
            try:
                reply, secs, size, grew = ask(conn, db, cmd, watcher)
            except OSError as e:
                print(f"{group}: {name}: no answer ({e})", flush=True)
                failed += 1
                conn = wire.Conn(a.uri, timeout=ANSWER_MAX_S)
                continue
            code, words = outcome(reply)
            wrong = [] if a.reference else judge(a, secs, size, grew, code, allowed, watcher.slowest)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            rows.append((secs, f"{group}: {name}"))
            if a.v or wrong:
                mark = " ".join(["  <<"] + wrong) if wrong else ""
                print(f"{group + ': ' + name:50} {secs * 1000:7.0f} ms {grew / 1048576:+7.1f} MiB  {code} {words[:90]}{mark}", flush=True)
    watcher.ended = True
    print("slowest:", "; ".join(f"{n} {s * 1000:.0f} ms" for s, n in sorted(rows, reverse=True)[:8]))
    conn.command(DB, {"dropDatabase": 1})
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    ap = argparse.ArgumentParser(usage=__doc__)
    ap.add_argument("uri")
    ap.add_argument("--pid", type=int)
    ap.add_argument("--only")
    ap.add_argument("--slack", type=float, default=0)
    ap.add_argument("--growth", type=int, default=110)
    ap.add_argument("--reference", action="store_true")
    ap.add_argument("-v", action="store_true")
    return run(ap.parse_args())


if __name__ == "__main__":
    sys.exit(main())
