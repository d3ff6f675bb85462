"""findAndModify: every kind of modification, with sort, fields, new, upsert and remove."""
from .data import D, L, RE

DOCS = [{"_id": i, "a": i % 3, "t": [i, 5, i + 2], "e": [{"p": i, "q": 1}, {"p": 5, "q": 2}], "n": {"x": i}} for i in range(5)]


def fam(rnd):
    qs = [{}, {"a": 1}, {"_id": 3}, {"_id": 77}, {"t": 5}, {"a": {"$gt": 0}}, {"e": {"$elemMatch": {"p": 5}}}, {"a": 77, "b": 3}]
    us = [{"$set": {"x": 1}}, {"$inc": {"a": 10}}, {"x": 9}, {"$push": {"t": 1}}, {"$set": {"t.$": "z"}}, {"$unset": {"n": 1}}, [{"$set": {"x": "$a"}}], {"$set": {"n.x": 0}}, {"$setOnInsert": {"k": 1}}, {"$set": {}}, {"_id": 3, "y": 1}, {"$set": {"_id": 99}}, {"$set": {"e.$[i].q": 7}}]
    fs = [None, {"a": 1}, {"_id": 0, "t": 1}, {"t": 0}, {"t": {"$slice": 1}}, {"e": {"$elemMatch": {"p": 5}}}, {"t.$": 1}, {"y": "$n.x"}, {"n": {"x": 1}}, {}, {"a": 1, "b": 0}]
    for q in qs:
        for u in us:
            for _ in range(2):
                kw = {}
                if rnd.random() < .5:
                    kw["new"] = rnd.random() < .7
                if rnd.random() < .4:
                    kw["sort"] = rnd.choice([{"_id": -1}, {"a": -1, "_id": 1}, {"n.x": -1}])
                if rnd.random() < .35:
                    kw["upsert"] = True
                f = rnd.choice(fs)
                if f is not None:
                    kw["fields"] = f
                if "$[i]" in str(u):
                    kw["arrayFilters"] = [{"i.p": 5}]
                yield {"docs": DOCS, "cmd": {"findAndModify": "w", "query": q, "update": u, **kw}, "oplog": True}
        for kw in [{}, {"sort": {"_id": -1}}, {"fields": {"a": 1}}, {"fields": {"t.$": 1}}]:
            yield {"docs": DOCS, "cmd": {"findAndModify": "w", "query": q, "remove": True, **kw}, "oplog": True}
    for kw in [{}, {"remove": True, "update": {"x": 1}}, {"remove": True, "new": True}, {"remove": True, "upsert": True}, {"update": 5}, {"update": {"$foo": 1}}, {"update": {"$set": {"x": 1}}, "query": 5}, {"update": {"$set": {"x": 1}}, "query": {"$foo": 1}}, {"update": {"$set": {"x": 1}}, "fields": 5}, {"update": {"$set": {"x": 1}}, "sort": 5}, {"update": {"$set": {"x": 1}}, "sort": {"a": 5}}, {"update": {"$set": {"x": 1}}, "foo": 1},
               {"update": {"$set": {"x": 1}}, "new": 5}, {"update": {"$set": {"x": 1}}, "new": "x"}, {"remove": "x"}, {"remove": 1}, {"remove": False}, {"update": {"$set": {"x": 1}}, "hint": "_id_"}, {"update": {"$set": {"x": 1}}, "hint": "nope"}, {"update": {"$set": {"x": 1}}, "collation": {"locale": "en"}}, {"update": [{"$match": {}}]}, {"update": {"$set": {"x": 1}}, "arrayFilters": [{"i": 1}]}, {"update": {"$set": {"x": 1}}, "multi": True},
               {"update": {"$set": {"x": 1}}, "let": {"v": 1}, "query": {"$expr": {"$eq": ["$a", "$$v"]}}}, {"update": {"$set": {"x": 1}}, "bypassDocumentValidation": True}, {"update": {"$set": {"x": 1}}, "query": None}, {"update": {"$set": {"x": 1}}, "sort": None, "fields": None}, {"update": {"$set": {"x": 1}}, "maxTimeMS": 5000}, {"update": {"$set": {"x": 1}}, "comment": 1}, {"update": {"_id": 9}, "query": {"_id": 1}}, {"update": {"$inc": {"t": 1}}, "query": {"_id": 1}}]:
        yield {"docs": DOCS, "cmd": {"findAndModify": "w", "query": {"a": 1}, **kw}}
        if rnd.random() < .3:
            yield {"docs": DOCS, "cmd": {"findandmodify": "w", "query": {"a": 2}, **kw}}
    yield {"docs": [], "cmd": {"findAndModify": "w", "query": {"_id": 5, "a.b": 2}, "update": {"$set": {"c": 1}}, "upsert": True, "new": True}, "oplog": True}
    yield {"docs": [], "cmd": {"findAndModify": "w", "query": {"a": 2}, "update": {"$set": {"c": 1}}, "upsert": True}, "oplog": True}
    yield {"docs": [], "cmd": {"findAndModify": "w", "query": {"a": 2}, "remove": True}}
    yield {"docs": DOCS, "pre": [{"createIndexes": "w", "indexes": [{"key": {"n.x": 1}, "name": "u", "unique": True}]}], "cmd": {"findAndModify": "w", "query": {"_id": 1}, "update": {"$set": {"n.x": 2}}}}


TOPICS = {"write.fam": fam}
