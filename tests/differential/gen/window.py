"""Window functions, and the stages that fill gaps."""
from .agg import BYID, agg
from .data import D, DATE, L, NAN  # noqa: F401

COLL = "steps"


def windows(rnd):
    bounds = [None, {}, {"documents": ["unbounded", "unbounded"]}, {"documents": ["unbounded", "current"]}, {"documents": ["current", "unbounded"]}, {"documents": [-1, 1]}, {"documents": [-3, -1]}, {"documents": [1, 4]}, {"documents": [0, 0]}, {"documents": ["current", 2]}, {"documents": [-2, "current"]}, {"documents": [5, 9]}, {"documents": ["unbounded", -1]}]
    ranges = [{"range": [-2, 2]}, {"range": ["unbounded", "current"]}, {"range": ["current", "unbounded"]}, {"range": [0, 5]}, {"range": [-7, -1]}, {"range": [1.5, 4]}, {"range": ["current", "current"]}]
    times = [{"range": [-1, 1], "unit": "day"}, {"range": ["unbounded", "current"], "unit": "hour"}, {"range": [-36, 0], "unit": "hour"}, {"range": [-1, 0], "unit": "month"}, {"range": [0, 2], "unit": "week"}]
    accs = [{"$sum": "$v"}, {"$sum": 1}, {"$avg": "$v"}, {"$min": "$v"}, {"$max": "$m"}, {"$push": "$_id"}, {"$addToSet": "$p"}, {"$first": "$v"}, {"$last": "$m"}, {"$count": {}}, {"$firstN": {"input": "$v", "n": 2}}, {"$lastN": {"input": "$_id", "n": 2}}, {"$maxN": {"input": "$v", "n": 3}}, {"$minN": {"input": "$v", "n": 3}}, {"$top": {"output": "$_id", "sortBy": {"v": -1, "_id": 1}}}, {"$bottomN": {"output": ["$_id", "$v"], "n": 2, "sortBy": {"x": 1, "_id": 1}}}, {"$sum": "$m"}, {"$avg": "$m"}, {"$sum": {"$add": ["$x", 1]}}]
    for a in accs:
        for b in bounds:
            kw = {} if "$addToSet" in a else {}
            for part in [{}, {"partitionBy": "$p"}]:
                if rnd.random() < .62:
                    out = {**a, **({"window": b} if b is not None else {})}
                    tail = [{"$set": {"o": {"$sortArray": {"input": "$o", "sortBy": 1}}}}] if "$addToSet" in a else []
                    yield agg(COLL, {"$setWindowFields": {**part, "sortBy": {"_id": 1}, "output": {"o": out}}}, {"$project": {"o": 1}}, *tail, **kw)
        for b in ranges:
            if rnd.random() < .6 and "$addToSet" not in a and "$push" not in a:
                yield agg(COLL, {"$match": {"x": {"$type": "number"}}}, {"$setWindowFields": {"partitionBy": rnd.choice(["$p", None]), "sortBy": {"x": 1}, "output": {"o": {**a, "window": b}}}}, {"$project": {"o": 1, "x": 1}}, BYID)
        for b in times:
            if rnd.random() < .5 and "$addToSet" not in a and "$push" not in a:
                yield agg(COLL, {"$setWindowFields": {"sortBy": {"t": 1}, "output": {"o": {**a, "window": b}}}}, {"$project": {"o": 1}}, BYID)
    for op in ["$stdDevPop", "$stdDevSamp", "$covariancePop", "$covarianceSamp"]:
        for b in bounds:
            arg = ["$x", "$v"] if "cov" in op else "$v"
            out = {op: arg, **({"window": b} if b is not None else {})}
            yield agg(COLL, {"$setWindowFields": {"partitionBy": "$p", "sortBy": {"_id": 1}, "output": {"o": out}}}, {"$project": {"o": {"$round": ["$o", 6]}}}, BYID)
    for op in ["$rank", "$denseRank", "$documentNumber"]:
        for f in ["x", "v", "m", "p", "_id", "t", "gap"]:
            for d in (1, -1):
                yield agg(COLL, BYID, {"$setWindowFields": {"partitionBy": rnd.choice(["$p", "$missing", {"$mod": ["$_id", 3]}]), "sortBy": {f: d}, "output": {"o": {op: {}}}}}, {"$project": {"o": 1}}, *([BYID] if op != "$documentNumber" else [{"$group": {"_id": "$o", "n": {"$sum": 1}}}, BYID]))
    for by in [-3, -1, 0, 1, 2, 100, L(1), 2.0]:
        for d in [{}, {"default": "none"}, {"default": {"$add": [1, 2]}}, {"default": None}]:
            yield agg(COLL, {"$setWindowFields": {"partitionBy": "$p", "sortBy": {"_id": rnd.choice([1, -1])}, "output": {"o": {"$shift": {"output": rnd.choice(["$v", "$m", "$missing", {"$add": ["$_id", 1]}]), "by": by, **d}}}}}, {"$project": {"o": 1}})
    for a in [{"N": 2}, {"N": 5}, {"alpha": .5}, {"alpha": D("0.25")}, {"N": L(3)}, {"N": 4.0}]:
        for f in ["$v", "$m", "$gap", "$_id"]:
            yield agg(COLL, {"$setWindowFields": {"partitionBy": "$p", "sortBy": {"_id": 1}, "output": {"o": {"$expMovingAvg": {"input": f, **a}}}}}, {"$project": {"o": {"$cond": [{"$isNumber": "$o"}, {"$round": ["$o", 6]}, "$o"]}}})
    for b in bounds[2:]:
        yield agg(COLL, {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"o": {"$derivative": {"input": "$v"}, "window": b}}}}, {"$project": {"o": {"$round": ["$o", 6]}}})
        yield agg(COLL, {"$setWindowFields": {"sortBy": {"t": 1}, "output": {"o": {"$derivative": {"input": "$_id", "unit": rnd.choice(["hour", "day", "week", "second"])}, "window": b}}}}, {"$project": {"o": {"$round": ["$o", 6]}}})
        yield agg(COLL, {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"o": {"$integral": {"input": "$v"}, "window": b}}}}, {"$project": {"o": {"$round": ["$o", 4]}}})
        yield agg(COLL, {"$setWindowFields": {"partitionBy": "$p", "sortBy": {"t": 1}, "output": {"o": {"$integral": {"input": "$_id", "unit": rnd.choice(["hour", "day", "minute"])}, "window": b}}}}, {"$project": {"o": {"$round": ["$o", 4]}}})
    for fn in [{"$locf": "$gap"}, {"$locf": "$m"}, {"$locf": "$missing"}, {"$linearFill": "$gap"}, {"$linearFill": "$missing"}, {"$linearFill": "$m"}]:
        for s in [{"_id": 1}, {"_id": -1}, {"t": 1}]:
            for part in [{}, {"partitionBy": "$p"}]:
                yield agg(COLL, {"$setWindowFields": {**part, "sortBy": s, "output": {"o": fn}}}, {"$project": {"o": {"$cond": [{"$isNumber": "$o"}, {"$round": ["$o", 6]}, "$o"]}}})
    for out in ["a.b", "m", "_id", "n.x", "v.w", "z"]:
        yield agg(COLL, {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {out: {"$sum": "$_id", "window": {"documents": [-1, 0]}}}}})
    yield agg(COLL, {"$setWindowFields": {"partitionBy": {"$toUpper": "$p"}, "sortBy": {"x": -1, "_id": 1}, "output": {"a": {"$sum": 1, "window": {"documents": ["unbounded", "current"]}}, "b": {"$rank": {}} if False else {"$push": "$_id", "window": {"documents": [0, 1]}}, "c": {"$max": "$v"}}}}, {"$project": {"a": 1, "b": 1, "c": 1}})
    yield agg(COLL, {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"o": {"$sum": "$v", "window": {"documents": [-2, 0]}}}}}, {"$match": {"o": {"$gt": 20}}}, {"$group": {"_id": "$p", "n": {"$sum": "$o"}}}, BYID)
    yield agg("nosuch", {"$setWindowFields": {"output": {"o": {"$sum": 1}}}})
    S = {"sortBy": {"_id": 1}}
    for s in [5, {}, {"output": 5}, {"output": {}}, {"sortBy": 5, "output": {}}, {"partitionBy": [1], "output": {"a": {"$sum": 1}}}, {"partitionBy": "$arr", "output": {"a": {"$sum": 1}}}, {"x": 1, "output": {}}, {"output": {"a": 5}}, {"output": {"a": {}}}, {"output": {"a": {"$foo": 1}}}, {"output": {"a": {"$sum": 1, "$avg": 1}}}, {"output": {"a": {"$sum": 1, "window": 5}}}, {"output": {"a": {"$sum": 1, "window": {"documents": 5}}}}, {"output": {"a": {"$sum": 1, "window": {"documents": [1]}}}}, {"output": {"a": {"$sum": 1, "window": {"documents": [1, 0]}}}}, {"output": {"a": {"$sum": 1, "window": {"documents": ["x", 0]}}}}, {"output": {"a": {"$sum": 1, "window": {"documents": [1.5, 2]}}}}, {"output": {"a": {"$sum": 1, "window": {"documents": [0, 1]}}}}, {"output": {"a": {"$sum": 1, "window": {"range": [0, 1]}}}}, {"output": {"a": {"$sum": 1, "window": {"range": [0, 1], "documents": [0, 1]}}}},
              {"sortBy": {"_id": 1, "v": 1}, "output": {"a": {"$sum": 1, "window": {"range": [0, 1]}}}}, {"sortBy": {"_id": -1}, "output": {"a": {"$sum": 1, "window": {"range": [0, 1]}}}}, {**S, "output": {"a": {"$sum": 1, "window": {"range": ["x", 1]}}}}, {**S, "output": {"a": {"$sum": 1, "window": {"range": [1, 0]}}}}, {**S, "output": {"a": {"$sum": 1, "window": {"range": [0, 1], "unit": "foo"}}}}, {**S, "output": {"a": {"$sum": 1, "window": {"range": [0, 1], "unit": "day"}}}}, {"sortBy": {"t": 1}, "output": {"a": {"$sum": 1, "window": {"range": [0, 1]}}}}, {"sortBy": {"p": 1}, "output": {"a": {"$sum": 1, "window": {"range": [0, 1]}}}}, {**S, "output": {"a": {"$sum": 1, "window": {"documents": [0, 1], "unit": "day"}}}}, {**S, "output": {"a": {"$sum": 1, "window": {"foo": [0, 1]}}}}, {"sortBy": {"t": 1}, "output": {"a": {"$sum": 1, "window": {"range": [0, 1.5], "unit": "day"}}}}, {**S, "output": {"a": {"$sum": 1, "window": {"unit": "day"}}}}, {**S, "output": {"a": {"$sum": 1, "window": {"documents": ["current", -1]}}}},
              {**S, "output": {"a": {"$rank": 1}}}, {"output": {"a": {"$rank": {}}}}, {"sortBy": {"_id": 1, "v": 1}, "output": {"a": {"$rank": {}}}}, {**S, "output": {"a": {"$rank": {}, "window": {"documents": [0, 1]}}}}, {"output": {"a": {"$documentNumber": {}}}}, {**S, "output": {"a": {"$shift": 5}}}, {**S, "output": {"a": {"$shift": {}}}}, {**S, "output": {"a": {"$shift": {"output": "$v"}}}}, {**S, "output": {"a": {"$shift": {"output": "$v", "by": "x"}}}}, {**S, "output": {"a": {"$shift": {"output": "$v", "by": 1.5}}}}, {**S, "output": {"a": {"$shift": {"output": "$v", "by": 1, "default": "$v"}}}}, {"output": {"a": {"$shift": {"output": "$v", "by": 1}}}}, {**S, "output": {"a": {"$shift": {"output": "$v", "by": 1, "x": 1}}}}, {**S, "output": {"a": {"$shift": {"output": "$v", "by": 1}, "window": {}}}},
              {**S, "output": {"a": {"$expMovingAvg": 5}}}, {**S, "output": {"a": {"$expMovingAvg": {}}}}, {**S, "output": {"a": {"$expMovingAvg": {"input": "$v", "N": 0}}}}, {**S, "output": {"a": {"$expMovingAvg": {"input": "$v", "N": 1.5}}}}, {**S, "output": {"a": {"$expMovingAvg": {"input": "$v", "alpha": 1}}}}, {**S, "output": {"a": {"$expMovingAvg": {"input": "$v", "alpha": "x"}}}}, {**S, "output": {"a": {"$expMovingAvg": {"input": "$v", "alpha": .5, "N": 3}}}}, {"output": {"a": {"$expMovingAvg": {"input": "$v", "alpha": .5}}}}, {**S, "output": {"a": {"$expMovingAvg": {"input": "$v", "alpha": .5}, "window": {}}}},
              {**S, "output": {"a": {"$derivative": 5}}}, {**S, "output": {"a": {"$derivative": {}}}}, {**S, "output": {"a": {"$derivative": {"input": "$v"}}}}, {"output": {"a": {"$derivative": {"input": "$v"}, "window": {"documents": [0, 1]}}}}, {**S, "output": {"a": {"$derivative": {"input": "$v", "unit": "day"}, "window": {"documents": [0, 1]}}}}, {"sortBy": {"t": 1}, "output": {"a": {"$derivative": {"input": "$v"}, "window": {"documents": [0, 1]}}}}, {"sortBy": {"t": 1}, "output": {"a": {"$derivative": {"input": "$v", "unit": "month"}, "window": {"documents": [0, 1]}}}}, {**S, "output": {"a": {"$derivative": {"input": "$v", "x": 1}, "window": {"documents": [0, 1]}}}}, {"sortBy": {"_id": 1, "v": 1}, "output": {"a": {"$derivative": {"input": "$v"}, "window": {"documents": [0, 1]}}}}, {**S, "output": {"a": {"$derivative": {"input": "x"}, "window": {"documents": [0, 1]}}}}, {**S, "output": {"a": {"$derivative": {"input": "$v", "unit": 5}, "window": {"documents": [0, 1]}}}},
              {"output": {"a": {"$integral": {"input": "$v"}}}}, {"sortBy": {"t": 1}, "output": {"a": {"$integral": {"input": "$v"}}}}, {**S, "output": {"a": {"$integral": {"input": "$v", "unit": "hour"}}}}, {"output": {"a": {"$covariancePop": 5}}}, {"output": {"a": {"$covariancePop": ["$_id"]}}}, {"output": {"a": {"$linearFill": "$v"}}}, {"sortBy": {"_id": 1, "v": 1}, "output": {"a": {"$linearFill": "$v"}}}, {**S, "output": {"a": {"$linearFill": "$v", "window": {}}}}, {"sortBy": {"p": 1}, "output": {"a": {"$linearFill": "$v"}}}, {**S, "output": {"a": {"$linearFill": "$p"}}}, {**S, "output": {"a": {"$locf": "$v", "window": {}}}}, {"output": {"a": {"$mergeObjects": "$v"}}}, {"output": {"a": {"$count": 5}}}, {"output": {"$a": {"$count": {}}}}, {"output": {"a": {"$count": {}}, "a.b": {"$count": {}}}}, {"output": {"": {"$count": {}}}}, {"output": {"a": {"$firstN": {"input": "$v", "n": "$p"}}}}, {"output": {"a": {"$sum": ["$v", 1]}}}, {**S, "output": {"a": {"window": {"documents": [0, 1]}}}}, {"sortBy": {"v.x": "x"}, "output": {"a": {"$sum": 1}}}, {"partitionBy": "$$foo", "output": {}}, {**S, "output": {"a": {"$sum": 1, "window": {"documents": ["current", "unbounded"]}, "x": 1}}}]:
        yield agg(COLL, {"$setWindowFields": s}, {"$limit": 8}, {"$project": {"a": 1}})


def fills(rnd):
    for part in [{}, {"partitionByFields": ["p"]}, {"partitionBy": {"q": "$p"}}, {"partitionByFields": []}]:
        for s in [{"sortBy": {"_id": 1}}, {"sortBy": {"_id": -1}}, {"sortBy": {"t": 1}}]:
            for o in [{"gap": {"method": "linear"}}, {"gap": {"method": "locf"}}, {"gap": {"value": 0}}, {"m": {"method": "locf"}, "gap": {"value": "$_id"}}, {"gap": {"method": "linear"}, "w": {"value": {"$add": ["$_id", 1]}}}, {"m.k": {"value": 5}}, {"missing": {"method": "locf"}}]:
                yield agg(COLL, {"$fill": {**part, **s, "output": o}}, {"$project": {"gap": {"$cond": [{"$isNumber": "$gap"}, {"$round": ["$gap", 6]}, "$gap"]}, "m": 1, "w": 1, "missing": 1}}, BYID)
    yield agg(COLL, {"$fill": {"output": {"gap": {"value": 1}}}}, BYID, {"$project": {"gap": 1}})
    for s in [5, {}, {"output": {}}, {"output": 5}, {"output": {"a": 5}}, {"output": {"a": {}}}, {"output": {"a": {"value": 1, "method": "locf"}}}, {"output": {"a": {"method": "foo"}}}, {"output": {"a": {"method": "linear"}}}, {"output": {"a": {"x": 1}}}, {"x": 1, "output": {"a": {"value": 1}}}, {"partitionByFields": 5, "output": {"a": {"value": 1}}}, {"partitionByFields": [5], "output": {"a": {"value": 1}}}, {"partitionBy": 5, "output": {"a": {"value": 1}}}, {"sortBy": 5, "output": {"a": {"value": 1}}}, {"sortBy": {"_id": 1, "v": 1}, "output": {"a": {"method": "linear"}}}, {"output": {"a": {"method": 5}}}, {"output": {"$a": {"value": 1}}}, {"partitionBy": {"a": "$p"}, "partitionByFields": ["p"], "output": {"a": {"value": 1}}}, {"sortBy": {"p": 1}, "output": {"gap": {"method": "linear"}}}, {"sortBy": {"_id": 1}, "output": {"p": {"method": "linear"}}}]:
        yield agg(COLL, {"$fill": s}, {"$limit": 5}, {"$project": {"a": 1, "gap": 1}})


def densifies(rnd):
    d0 = 1704067200000 - 1000 * 86400000
    for f, steps in [("v", [1, 3, 0.5, D("1.5"), L(4)]), ("x", [1, 2, 5]), ("_id", [1, 7])]:
        for step in steps:
            for part in [None, ["p"], ["p", "arr"], ["missing"], ["n.q"]]:
                for b in ["full", "partition", [2, 20], [-3, 4], [5, 6], [100, 110]]:
                    if b == "partition" and not part:
                        continue
                    if isinstance(b, list) and not isinstance(step, int):
                        continue
                    if rnd.random() < .55:
                        yield agg(COLL, {"$match": {f: {"$type": "number"}}} if rnd.random() < .8 else {"$match": {"_id": {"$lt": 12}}}, {"$densify": {"field": f, **({"partitionByFields": part} if part else {}), "range": {"step": step, "bounds": b}}}, {"$project": {"_id": 1, f: 1, "p": 1, "arr": 1, "missing": 1, "n": 1}}, unordered=True)
    for unit, step in [("day", 1), ("hour", 12), ("week", 1), ("month", 1), ("quarter", 1), ("year", 1), ("minute", 1440), ("second", 43200), ("millisecond", 86400000)]:
        for part in [None, ["p"]]:
            for b in ["full", "partition", [DATE(d0 + 86400000), DATE(d0 + 9 * 86400000)]]:
                if b == "partition" and not part:
                    continue
                yield agg(COLL, {"$match": {"_id": {"$lt": 14}}}, {"$densify": {"field": "t", **({"partitionByFields": part} if part else {}), "range": {"step": step, "unit": unit, "bounds": b}}}, {"$project": {"_id": 1, "t": 1, "p": 1}}, unordered=True)
    for f in ["missing", "gap"]:
        for b in ["full", [0, 6]]:
            yield agg(COLL, {"$densify": {"field": f, "range": {"step": 2, "bounds": b}}}, {"$project": {f: 1}}, unordered=True)
    yield agg("nosuch", {"$densify": {"field": "a", "range": {"step": 1, "bounds": "full"}}})
    yield agg("nosuch", {"$densify": {"field": "a", "range": {"step": 1, "bounds": [0, 3]}}})
    yield agg("nosuch", {"$densify": {"field": "a", "partitionByFields": ["b"], "range": {"step": 1, "bounds": [0, 3]}}})
    for s in [5, {}, {"field": "_id"}, {"field": 5, "range": {"step": 1, "bounds": "full"}}, {"field": "$_id", "range": {"step": 1, "bounds": "full"}}, {"field": "_id", "range": 5}, {"field": "_id", "range": {}}, {"field": "_id", "range": {"step": 1}}, {"field": "_id", "range": {"bounds": "full"}}, {"field": "_id", "range": {"step": 0, "bounds": "full"}}, {"field": "_id", "range": {"step": -1, "bounds": "full"}}, {"field": "_id", "range": {"step": "x", "bounds": "full"}}, {"field": "_id", "range": {"step": 1, "bounds": "foo"}}, {"field": "_id", "range": {"step": 1, "bounds": 5}}, {"field": "_id", "range": {"step": 1, "bounds": [1]}}, {"field": "_id", "range": {"step": 1, "bounds": [5, 1]}}, {"field": "_id", "range": {"step": 1, "bounds": ["a", "b"]}}, {"field": "_id", "range": {"step": 1, "bounds": "full", "unit": "day"}}, {"field": "t", "range": {"step": 1, "bounds": "full"}}, {"field": "t", "range": {"step": 1.5, "bounds": "full", "unit": "day"}}, {"field": "t", "range": {"step": 1, "bounds": "full", "unit": "foo"}}, {"field": "v", "range": {"step": 5, "bounds": "partition"}}, {"field": "v", "partitionByFields": 5, "range": {"step": 5, "bounds": "full"}}, {"field": "v", "partitionByFields": [5], "range": {"step": 5, "bounds": "full"}},
              {"field": "v", "partitionByFields": ["v"], "range": {"step": 5, "bounds": "full"}}, {"field": "v", "partitionByFields": ["$p"], "range": {"step": 5, "bounds": "full"}}, {"field": "v", "x": 1, "range": {"step": 5, "bounds": "full"}}, {"field": "v", "range": {"step": 5, "bounds": "full", "x": 1}}, {"field": "v", "range": {"step": 5, "bounds": [1.5, 9]}}, {"field": "v", "range": {"step": 1, "bounds": [1, 5], "unit": "day"}}, {"field": "", "range": {"step": 5, "bounds": "full"}}, {"field": "p", "range": {"step": 5, "bounds": "full"}}, {"field": "t", "range": {"step": 1, "bounds": [DATE(5), DATE(9)]}}, {"field": "v", "range": {"step": 1, "bounds": [1, DATE(9)]}}]:
        yield agg(COLL, {"$match": {"_id": {"$lt": 5}}}, {"$densify": s})


TOPICS = {"agg.window": windows, "agg.fill": fills, "agg.densify": densifies}
