"""`$expr` over indexed fields: what an index may narrow must not change the answer."""
from .agg import BYID, agg
from .data import D, DATE, L, NAN


def exprs(rnd):
    sets = {"nums_ab": ["$a", "$b"], "nums_abc": ["$a", "$c"], "nums_partial": ["$b", "$a"], "nums_zk": ["$z.k", "$z.l"], "nums_f": ["$f"], "nums_hash": ["$c"], "nums_wild": ["$a", "$z.k"], "mixed_a": ["$a"], "mixed_ad": ["$a"], "mixed_nx": ["$n.x"], "mixed_sparse": ["$a"], "mixed_rv": ["$r.v", "$s"], "arrays_t": ["$t"], "arrays_ep": ["$e.p"], "arrays_mabc": ["$m.a.b.c"]}
    consts = [0, 1, 3, L(5), 2.5, D("3"), NAN, "cat", "abc", "", None, True, DATE(1600000000123), {"x": 1}, [1, 2], [], {"$literal": "$x"}, -1]
    ops = ["$eq", "$gt", "$gte", "$lt", "$lte", "$ne"]
    for s, fields in sets.items():
        for f in fields:
            for op in ops:
                for c in rnd.sample(consts, 5):
                    e = {op: [f, c]} if rnd.random() < .7 else {op: [c, f]}
                    yield agg(s, {"$match": {"$expr": e}}, BYID, {"$project": {"_id": 1}})
        for _ in range(14):
            a, b = rnd.choice(fields), rnd.choice(fields)
            e = rnd.choice([
                {"$and": [{"$gt": [a, rnd.randrange(6)]}, {"$lt": [b, rnd.choice([9, "m", 20.5])]}]},
                {"$and": [{"$gte": [a, rnd.choice(consts[:6])]}, {"$lte": [a, rnd.choice(consts[:8])]}]},
                {"$or": [{"$eq": [a, 3]}, {"$eq": [b, "cat"]}]},
                {"$not": [{"$eq": [a, rnd.randrange(5)]}]},
                {"$eq": [a, b]},
                {"$eq": [a, {"$add": [1, 2]}]},
            ])
            q = rnd.choice([{"$expr": e}, {"$expr": e, "_id": {"$gt": 5}}, {"$or": [{"$expr": e}, {"_id": 3}]}, {"$nor": [{"$expr": e}]}])
            yield {"setup": s, "cmd": {"find": s, "filter": q, "sort": {"_id": 1}, "projection": {"_id": 1}}}
            yield {"setup": s, "cmd": {"count": s, "query": q}}


TOPICS = {"match.exprindex": exprs}
