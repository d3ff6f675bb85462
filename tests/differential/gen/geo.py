"""Places: conditions, searches by distance, their indexes, and what is refused."""
from .data import D, DATE, INF, L, NAN


def point(x, y):
    return {"type": "Point", "coordinates": [x, y]}


def line(*at):
    return {"type": "LineString", "coordinates": [list(p) for p in at]}


def ring(x, y, w, h=None):
    h = w if h is None else h
    return [[x, y], [x + w, y], [x + w, y + h], [x, y + h], [x, y]]


def polygon(*rings):
    return {"type": "Polygon", "coordinates": list(rings)}


def multi(kind, coordinates):
    return {"type": "Multi" + kind, "coordinates": coordinates}


def several(*parts):
    return {"type": "GeometryCollection", "geometries": list(parts)}


STRICT = {"type": "name", "properties": {"name": "urn:x-mongodb:crs:strictwinding:EPSG:4326"}}
BIG = {**polygon(ring(-60, -60, 120)), "crs": STRICT}
INVERTED = {**polygon(list(reversed(ring(-5, -5, 20)))), "crs": STRICT}


def geo_points():
    """Points of all forms, on a lattice and beside it."""
    out = []
    for i in range(90):
        x, y = (i * 37 % 73) - 36, (i * 23 % 47) - 23
        loc = [[x, y], point(x, y), {"x": x, "y": y}, [x + 0.5, y + 0.25], point(x + 0.125, y - 0.375)][i % 5]
        out.append({"_id": i, "loc": loc, "k": i % 7, "tag": "abc"[i % 3]})
    odd = [[0, 0], point(0, 0), [180, 0], [-180, 0], [0, 90], [0, -90], point(180, 90), point(179.5, 10), point(-179.5, 10), [10, 10], [5, 5], [5, 0], point(2.5, 0), [1e-9, 0], point(10, 0)]
    return out + [{"_id": 90 + i, "loc": p, "k": i % 4} for i, p in enumerate(odd)]


def geo_far():
    """Points of which no two are equally far from any of the centres below."""
    seen, out = set(), []
    for d in geo_points():
        v = d["loc"]
        at = tuple(v["coordinates"]) if "type" in v else (v["x"], v["y"]) if "x" in v else tuple(v)
        if at not in seen and abs(at[0]) < 180 and abs(at[1]) < 90:
            seen.add(at)
            out.append(d)
    return out


def geo_shapes():
    """GeoJSON of every type."""
    shapes = [
        point(1, 1), point(4, 4), point(20, 20), line((0, 0), (5, 5)), line((0, 5), (5, 0)), line((-10, 0), (10, 0)), line((6, 6), (7, 9), (9, 9)), line((170, 5), (-170, 5)),
        polygon(ring(0, 0, 5)), polygon(ring(5, 0, 5)), polygon(ring(2, 2, 1)), polygon(ring(-3, -3, 20)), polygon(ring(0, 0, 9), ring(1, 1, 3)), polygon(ring(1, 1, 3)), polygon(ring(3, 3, 5)), polygon(ring(170, -5, 9)),
        polygon([[170, -5], [-170, -5], [-170, 5], [170, 5], [170, -5]]), polygon([[0, 80], [90, 80], [180, 80], [-90, 80], [0, 80]]), polygon(list(reversed(ring(0, 0, 5)))),
        multi("Point", [[1, 1], [30, 30]]), multi("Point", [[2, 2], [3, 3]]), multi("LineString", [[[0, 0], [1, 4]], [[30, 30], [31, 31]]]), multi("LineString", [[[1, 1], [4, 2]]]), multi("Polygon", [[ring(0, 0, 2)], [ring(30, 30, 5)]]), multi("Polygon", [[ring(0, 0, 5), ring(1, 1, 1)]]),
        several(point(1, 1), line((2, 2), (3, 3))), several(point(1, 1), polygon(ring(30, 30, 1))), several(polygon(ring(0, 0, 4)), multi("Point", [[1, 2]])),
        polygon(ring(0, 0, 40)), polygon(ring(-80, -40, 160, 80)), line((0, 0), (0, 60)), line((5, 5), (5, 0)), polygon([[0, 0], [5, 0], [0, 5], [0, 0]]), point(5, 5), point(2.5, 0), line((1, 0), (4, 0)), polygon(ring(0.001, 0.001, 0.002)),
    ]
    return [{"_id": i, "g": s, "k": i % 5} for i, s in enumerate(shapes)]


def geo_odd():
    """What is no place, or one in a strange form. No index could hold it."""
    values = [5, "x", None, [], {}, [1], ["a", "b"], [1, "b"], [200, 0], [1, 100], [1, 2, 3], {"x": 1}, {"a": 1, "b": 2, "c": 3}, {"type": "Point"}, {"type": "Point", "coordinates": [1]}, {"type": "Point", "coordinates": [200, 1]}, {"type": "point", "coordinates": [1, 2]},
              {"type": "X", "coordinates": [1, 2]}, line((1, 2)), polygon([[0, 0], [5, 0], [0, 5], [5, 5], [0, 0]]), [[1, 2], [3, 4]], [[1, 2], [300, 4]], [{"x": 1, "y": 2}], [point(1, 2)], [point(40, 2), point(3, 2)], [[]], [["a"]], BIG, NAN, [NAN, 1], [None, None], [L(1), D("2")], [1.5, L(2)], DATE(5),
              {"lng": 1, "lat": 2}, {"coordinates": [1, 2], "type": "Point"}, {"type": "Point", "coordinates": {"x": 1, "y": 2}}, several(), several(several(point(1, 1))), multi("Point", []), [[1, 2]], [[[1, 2]]], point(1, 2), [1, 2]]
    return [{"_id": i, "loc": v} for i, v in enumerate(values)] + [{"_id": 100}]


def geo_nested():
    """Places inside of arrays and documents."""
    out = []
    for i in range(40):
        at = lambda j: [(i * 7 + j * 11) % 41 - 20, (i * 5 + j * 3) % 31 - 15]  # noqa: E731
        d = {"_id": i, "k": i % 3, "tags": [["a", "b"], ["b"], "c", []][i % 4]}
        if i % 4 == 0:
            d["p"] = {"loc": at(0)}
        elif i % 4 == 1:
            d["p"] = [{"loc": at(0), "n": 1}, {"loc": point(*at(1)), "n": 2}]
        elif i % 4 == 2:
            d["p"] = [{"loc": at(0), "n": 2}, {"n": 3}]
        out.append(d)
    return out


def geo_flat():
    """Pairs for a plane; several in one document."""
    out = [{"_id": i, "at": [(i * 31 % 97) - 48.5, (i * 17 % 89) - 44.25], "k": i % 6} for i in range(120)]
    out += [{"_id": 200 + i, "at": [[i, i], [-i, i * 2]], "k": i} for i in range(6)]
    out += [{"_id": 300, "at": []}, {"_id": 301}, {"_id": 302, "at": {"x": 3, "y": 4}, "k": 2}, {"_id": 303, "at": [180, 180]}, {"_id": 304, "at": [-180, -180]}, {"_id": 305, "at": [[7, 8]], "k": [1, 2]}]
    return out


SETS = {"geo_points": geo_points, "geo_far": geo_far, "geo_shapes": geo_shapes, "geo_odd": geo_odd, "geo_nested": geo_nested, "geo_flat": geo_flat}
INDEXES = {
    "geo_points_s": ("geo_points", {"loc": "2dsphere"}, {}),
    "geo_points_sk": ("geo_points", {"loc": "2dsphere", "k": 1}, {}),
    "geo_points_ks": ("geo_points", {"k": 1, "loc": "2dsphere"}, {}),
    "geo_points_v2": ("geo_points", {"loc": "2dsphere"}, {"2dsphereIndexVersion": 2, "finestIndexedLevel": 20, "coarsestIndexedLevel": 4}),
    "geo_points_part": ("geo_points", {"loc": "2dsphere"}, {"partialFilterExpression": {"k": {"$gte": 2}}}),
    "geo_far_s": ("geo_far", {"loc": "2dsphere"}, {}),
    "geo_far_sk": ("geo_far", {"loc": "2dsphere", "k": 1}, {}),
    "geo_far_ks": ("geo_far", {"k": 1, "loc": "2dsphere"}, {}),
    "geo_far_v2": ("geo_far", {"loc": "2dsphere"}, {"2dsphereIndexVersion": 2, "finestIndexedLevel": 20, "coarsestIndexedLevel": 4}),
    "geo_far_part": ("geo_far", {"loc": "2dsphere"}, {"partialFilterExpression": {"k": {"$gte": 2}}}),
    "geo_shapes_s": ("geo_shapes", {"g": "2dsphere"}, {}),
    "geo_shapes_sk": ("geo_shapes", {"g": "2dsphere", "k": -1}, {}),
    "geo_nested_s": ("geo_nested", {"p.loc": "2dsphere", "tags": 1}, {}),
    "geo_flat_d": ("geo_flat", {"at": "2d"}, {}),
    "geo_flat_dk": ("geo_flat", {"at": "2d", "k": 1}, {"bits": 10, "min": -200, "max": 200}),
}
SPHERE = ["geo_points", "geo_points_s", "geo_points_sk", "geo_points_ks", "geo_points_v2"]
REGIONS = [polygon(ring(0, 0, 5)), polygon(ring(-20, -20, 40)), polygon(ring(-20, -10, 30, 15), ring(-5, -5, 8)), polygon([[0, 0], [10, 0], [0, 10], [0, 0]]), polygon(ring(-80, -40, 160, 80)), polygon([[170, -20], [-170, -20], [-170, 20], [170, 20], [170, -20]]), polygon([[0, 80], [90, 80], [180, 80], [-90, 80], [0, 80]]), BIG, INVERTED,
           multi("Polygon", [[ring(0, 0, 5)], [ring(-30, -20, 10)]]), several(polygon(ring(0, 0, 6)), point(10, 10)), polygon(list(reversed(ring(0, 0, 5)))), polygon([[-30, 0], [0, -3], [30, 0], [0, 3], [-30, 0]])]
OTHERS = [point(0, 0), point(5, 5), point(2.5, 0), [10, 10], {"x": 0, "y": 0}, line((0, 0), (5, 5)), line((-40, 0), (40, 0)), line((0, -30), (0, 30)), multi("Point", [[0, 0], [10, 0], [5, 5]]), multi("LineString", [[[0, 0], [10, 10]], [[-20, 3], [20, -3]]]), several(point(0, 0), line((5, 0), (5, 5))), line((1, 0), (4, 0)), point(1, 1), line((0, 5), (5, 5))]
FLAT = [{"$box": [[0, 0], [5, 5]]}, {"$box": [[20, 10], [-20, -10]]}, {"$center": [[0, 0], 10]}, {"$center": [[5, 5], 0]}, {"$center": [[-10, 3], 22.5]}, {"$polygon": [[0, 0], [10, 0], [10, 10], [0, 10]]}, {"$polygon": [[-20, -10], [20, -10], [0, 20]]}, {"$polygon": {"a": [0, 0], "b": [5, 0], "c": [5, 5]}}, {"$box": [[-180, -180], [180, 180]]}, {"$polygon": [[0, 0], [20, 0], [5, 5], [0, 20]]}, {"$center": [[0, 0], INF]}]
CAPS = [[[0, 0], 0.1], [[0, 0], 0.5], [[10, 10], 0.01], [[179, 0], 0.2], [[0, 89], 0.3], [[0, 0], 1.5], [[0, 0], 2], [[0, 0], 4], [[5, 5], 0], [[-30, -20], 0.25], [[0, -90], 1]]
KEYS = [{}, {}, {}, {"k": 3}, {"k": {"$gt": 2}}, {"k": {"$in": [1, 4]}}, {"tag": "a"}]


def find(s, flt, **kw):
    return {"setup": s, "cmd": {"find": s, "filter": flt, **kw}, "unordered": True}


def near(s, flt, **kw):
    return {"setup": s, "cmd": {"find": s, "filter": flt, **kw}}


def within(rnd):
    for spec in [{"$geometry": r} for r in REGIONS] + FLAT + [{"$centerSphere": c} for c in CAPS]:
        for s in SPHERE:
            yield find(s, {"loc": {"$geoWithin": spec}, **rnd.choice(KEYS)})
        yield find("geo_points_part", {"loc": {"$geoWithin": spec}, "k": {"$gte": rnd.choice([1, 2, 3])}})
        yield find("geo_odd", {"loc": {"$geoWithin": spec}})
        yield find("geo_points", {"loc": {"$not": {"$geoWithin": spec}}})
        for s in ["geo_nested", "geo_nested_s"]:
            yield find(s, {"p.loc": {"$geoWithin": spec}, **rnd.choice([{}, {}, {"tags": "b"}, {"k": 1}])})
        for s in ["geo_flat", "geo_flat_d", "geo_flat_dk"]:
            yield find(s, {"at": {rnd.choice(["$geoWithin", "$within"]): spec}, **rnd.choice([{}, {}, {"k": 3}, {"k": {"$lt": 3}}])})
        yield find("geo_points_s", {"$or": [{"loc": {"$geoWithin": spec}}, {"k": 5}]})
        yield {"setup": "geo_points_s", "cmd": {"count": "geo_points_s", "query": {"loc": {"$geoWithin": spec}}}}
        yield find("geo_nested", {"p": {"$elemMatch": {"loc": {"$geoWithin": spec}, "n": 2}}})


def shapes(rnd):
    for s in ["geo_shapes", "geo_shapes_s", "geo_shapes_sk"]:
        more = {} if s != "geo_shapes_sk" else {"k": {"$gte": 1}}
        for r in REGIONS + [d["g"] for d in geo_shapes()]:
            yield find(s, {"g": {"$geoIntersects": {"$geometry": r}}, **more})
            if r["type"] not in ("Point", "LineString", "MultiPoint", "MultiLineString"):
                yield find(s, {"g": {"$geoWithin": {"$geometry": r}}, **more})
        for r in OTHERS:
            yield find(s, {"g": {"$geoIntersects": {"$geometry": r}}, **more})
        for c in CAPS:
            yield find(s, {"g": {"$geoWithin": {"$centerSphere": c}}})
            yield find(s, {"g": {"$geoIntersects": {"$centerSphere": c}}})
    for r in REGIONS + OTHERS:
        yield find(rnd.choice(SPHERE), {"loc": {"$geoIntersects": {"$geometry": r}}})
        yield find("geo_odd", {"loc": {"$geoIntersects": {"$geometry": r}}})


PLACES = [(0.371, 0.213), (10.117, 9.871), (-30.3, 5.51), (179.2, 1.17), (3.3, 88.7), (2.513, 2.581), (-100.7, -60.3)]


def nearest(rnd):
    for x, y in PLACES:
        for op in ["$near", "$nearSphere"]:
            for limits in [{}, {"$maxDistance": 1e6}, {"$minDistance": 5e5, "$maxDistance": 3e6}, {"$minDistance": 2e6}, {"$maxDistance": 0}]:
                spec = {op: {"$geometry": point(x, y), **limits}}
                for s in ["geo_far_s", "geo_far_sk", "geo_far_v2"]:
                    yield near(s, {"loc": spec, **rnd.choice(KEYS)}, **rnd.choice([{}, {}, {"limit": 5}, {"skip": 3, "limit": 4}, {"projection": {"k": 1}}]))
                yield near("geo_far_ks", {"loc": spec, "k": rnd.choice([2, {"$lt": 3}])})
                yield find("geo_shapes_s", {"g": spec})
                yield near("geo_nested_s", {"p.loc": spec, **rnd.choice([{}, {"tags": "b"}])})
        for limits in [{}, {"$maxDistance": 0.5}, {"$minDistance": 0.1, "$maxDistance": 0.7}, {"$maxDistance": 20}, {"$minDistance": 10}]:
            for op in ["$near", "$nearSphere", "$geoNear"]:
                for s in ["geo_flat_d", "geo_flat_dk"]:
                    yield near(s, {"at": {op: [x, y], **limits}, **rnd.choice([{}, {}, {"k": 2}, {"k": {"$gt": 3}}])}, **rnd.choice([{}, {}, {"limit": 7}]))
                yield near("geo_far_s", {"loc": {op: [x, y], **limits}})
                yield near("geo_far", {"loc": {op: [x, y], **limits}, "k": 1})
        yield near("geo_far_s", {"loc": {"$nearSphere": [x, y, 0.4]}})
        yield near("geo_far_s", {"loc": {"$near": point(x, y)}, "$and": [{"k": {"$gt": 1}}]})
        yield near("geo_far_part", {"loc": {"$near": point(x, y)}, "k": {"$gte": 3}})
        yield near("geo_far_part", {"loc": {"$near": point(x, y)}})
        yield near("geo_far_s", {"loc": {"$near": point(x, y)}}, sort={"_id": -1}, limit=6)
        yield {"setup": "geo_far_s", "cmd": {"count": "geo_far_s", "query": {"loc": {"$near": {"$geometry": point(x, y), "$maxDistance": 2e6}}}}}
        yield {"setup": "geo_far_s", "cmd": {"distinct": "geo_far_s", "key": "k", "query": {"loc": {"$near": {"$geometry": point(x, y), "$maxDistance": 2e6}}}}}


def agg(s, *stages):
    return {"setup": s, "cmd": {"aggregate": s, "pipeline": list(stages), "cursor": {}}}


def stage(rnd):
    tails = [[], [], [{"$limit": 4}], [{"$project": {"d": 1}}], [{"$match": {"d": {"$gt": 1}}}], [{"$sort": {"_id": 1}}], [{"$group": {"_id": "$k", "d": {"$min": "$d"}}}, {"$sort": {"d": 1}}], [{"$skip": 2}, {"$limit": 3}], [{"$count": "n"}], [{"$limit": 3}, {"$addFields": {"r": {"$floor": "$d"}}}]]
    for x, y in PLACES:
        for more in [{}, {"maxDistance": 1e6}, {"minDistance": 1e6, "distanceMultiplier": 0.001}, {"includeLocs": "d2.where"}, {"query": {"k": {"$gt": 2}}}, {"query": {"$or": [{"k": 1}, {"tag": "b"}]}}, {"spherical": True}, {"key": "loc"}]:
            yield agg("geo_far_s", {"$geoNear": {"near": point(x, y), "distanceField": "d", **more}}, *rnd.choice(tails))
            yield {**agg("geo_shapes_s", {"$geoNear": {"near": point(x, y), "distanceField": "d", **{k: "g" if k == "key" else v for k, v in more.items()}}}, {"$project": {"g": 0}}), "unordered": True}
        for more in [{}, {"maxDistance": 20}, {"minDistance": 3, "distanceMultiplier": 10}, {"includeLocs": "where"}, {"spherical": True}, {"spherical": True, "maxDistance": 0.3}, {"query": {"k": 2}}]:
            yield agg("geo_flat_d", {"$geoNear": {"near": [x, y], "distanceField": "dist.to", **more}}, *rnd.choice(tails[:4]))
            yield agg("geo_flat_dk", {"$geoNear": {"near": [x, y], "distanceField": "d", **more}}, *rnd.choice(tails))
        yield agg("geo_far_sk", {"$geoNear": {"near": [x, y], "distanceField": "k", "spherical": True, "includeLocs": "loc"}})
        yield agg("geo_nested_s", {"$geoNear": {"near": point(x, y), "distanceField": "p.d", "includeLocs": "p.l"}})
    P, good = point(0.3, 0.1), {"near": point(0.3, 0.1), "distanceField": "d"}
    for bad in [5, "x", [], {}, {"near": P}, {"distanceField": "d"}, {**good, "distanceField": ""}, {**good, "distanceField": 5}, {**good, "distanceField": "$d"}, {**good, "distanceField": "a..b"}, {**good, "distanceField": "a."}, {**good, "includeLocs": 5}, {**good, "includeLocs": ""}, {**good, "distanceMultiplier": -2}, {**good, "distanceMultiplier": "a"}, {**good, "distanceMultiplier": 0}, {**good, "maxDistance": -1}, {**good, "maxDistance": "a"}, {**good, "maxDistance": None}, {**good, "minDistance": -1}, {**good, "minDistance": "a"}, {**good, "query": 5}, {**good, "query": {"loc": {"$near": [0, 0]}}}, {**good, "query": {"$where": "1"}}, {**good, "query": {"x": {"$foo": 1}}},
                {**good, "key": "x"}, {**good, "key": ""}, {**good, "key": 5}, {**good, "limit": 1}, {**good, "num": 1}, {**good, "start": 1}, {**good, "uniqueDocs": True}, {**good, "foo": 1}, {**good, "near": 5}, {**good, "near": {}}, {**good, "near": [0]}, {**good, "near": "x"}, {**good, "near": None}, {**good, "near": line((0, 0), (1, 1))}, {**good, "near": [200, 0]}, {**good, "near": [200, 0], "spherical": True}, {**good, "near": point(200, 0)}, {**good, "near": {"x": 0, "y": 0}, "spherical": True}, {**good, "near": [0, 0]}, {**good, "near": {"$literal": P}}, {**good, "near": {"$const": [0, 0]}, "spherical": True}, {**good, "spherical": "a"}]:
        yield agg("geo_far_s", {"$geoNear": bad}, {"$limit": 3})
    for s in ["geo_far", "geo_flat_d", "geo_nested", "missing"]:
        yield agg(s, {"$geoNear": good})
    yield agg("geo_far_s", {"$match": {}}, {"$geoNear": good}, {"$limit": 2})
    for first in [{"$match": {"k": 1}}, {"$limit": 5}, {"$sort": {"k": 1}}, {"$geoNear": good}, {"$project": {"loc": 1}}]:
        yield agg("geo_far_s", first, {"$geoNear": good})
    yield agg("geo_far_s", {"$facet": {"a": [{"$geoNear": good}]}})
    yield agg("geo_far_s", {"$match": {"loc": {"$near": P}}})
    yield agg("geo_far_s", {"$match": {"$or": [{"loc": {"$near": P}}]}})
    yield agg("geo_far_s", {"$match": {"loc": {"$geoWithin": {"$centerSphere": [[0, 0], 0.2]}}}}, {"$sort": {"_id": 1}}, {"$project": {"k": 1}})
    for op in ["$lookup", "$unionWith"]:
        inner = [{"$geoNear": good}, {"$limit": 2}, {"$project": {"d": 1}}]
        spec = {"from": "geo_far_s", "as": "n", "pipeline": inner} if op == "$lookup" else {"coll": "geo_far_s", "pipeline": inner}
        yield agg("geo_far_s", {"$limit": 2}, {"$project": {"k": 1}}, {op: spec})


def name(n, **kw):
    return {"type": "name", "properties": {"name": n}, **kw}


BAD_SHAPES = [5, [], {}, {"type": "X"}, {"type": 5, "coordinates": [0, 0]}, [0, 0], {"a": 1, "b": 2}, {"coordinates": [1, 2]}, {"type": "Point", "coordinates": [1]}, point(200, 2), point(0, 91), {"type": "Point", "coordinates": 5}, {"type": "Point"}, point("a", "b"), {"type": "Point", "coordinates": [1, 2, 3]}, point(NAN, 1),
              {**point(1, 2), "crs": name("x")}, {**point(1, 2), "crs": 5}, {**point(1, 2), "crs": {"type": 5}}, {**point(1, 2), "crs": {"type": "name"}}, {**point(1, 2), "crs": {"type": "name", "properties": 5}}, {**point(1, 2), "crs": name(5)}, {**point(1, 2), "crs": name("EPSG:4326")}, {**point(1, 2), "crs": name("urn:ogc:def:crs:OGC:1.3:CRS84")}, {**point(1, 2), "crs": STRICT}, {**line((0, 0), (1, 1)), "crs": STRICT},
              line((1, 2)), line((1, 2), (1, 2)), {"type": "LineString", "coordinates": []}, {"type": "LineString", "coordinates": 5}, {"type": "LineString", "coordinates": [[1, 2], [3]]}, {"type": "LineString", "coordinates": [[1, 2], 3]}, line((1, 2), (1, 2), (3, 4)), line((0, 0), (200, 0)), line((0, 90), (0, -90)), line((0, 0), (180, 0)),
              {"type": "Polygon", "coordinates": 5}, polygon(), polygon([]), polygon([[0, 0], [1, 1]]), polygon([[0, 0], [1, 1], [0, 0]]), polygon([[0, 0], [5, 0], [5, 5], [0, 1]]), polygon([[0, 0], [5, 0], [0, 5], [5, 5], [0, 0]]), polygon([[0, 0], [5, 0], [0, 0], [5, 5], [0, 0]]), polygon(ring(0, 0, 5), ring(10, 10, 1)), polygon(ring(0, 0, 5), ring(4, 4, 3)), polygon(ring(0, 0, 5), ring(0, 0, 5)), polygon(ring(0, 0, 9), ring(1, 1, 2), ring(2, 2, 2)), polygon(ring(0, 0, 9), ring(1, 1, 2), ring(5, 5, 2)), polygon(ring(0, 0, 9), ring(1, 1, 6), ring(2, 2, 2)), polygon(ring(0, 0, 5), [[0, 0], [2, 1], [1, 2], [0, 0]]), polygon([[0, 0], [0, 0], [5, 0], [5, 5], [0, 0]]), polygon(ring(0, 0, 5), [[0, 0]]), polygon(ring(0, 0, 5), 5), polygon(5), polygon([[0, 0], [5, 0], [0, 0], [0, 0]]), polygon([[0, 0], [90, 0], [180, 0], [-90, 0], [0, 0]]), polygon([[0, 0], [200, 0], [5, 5], [0, 0]]), polygon([[0, 0], [2, 2], [4, 4], [0, 0]]), polygon([[0, 0], [5, 0], [5, 5], [2, 0], [0, 5], [0, 0]]),
              {**polygon(ring(0, 0, 5), ring(1, 1, 1)), "crs": STRICT}, {**polygon(), "crs": STRICT}, {**polygon([[0, 0], [5, 0], [0, 5], [5, 5], [0, 0]]), "crs": STRICT}, {**polygon([[0, 0], [1, 1]]), "crs": STRICT}, {"type": "Polygon", "coordinates": 5, "crs": STRICT},
              multi("Point", []), multi("Point", 5), multi("Point", [5]), multi("Point", [[1, 2], [3]]), {**multi("Point", [[1, 2]]), "crs": STRICT}, multi("LineString", []), multi("LineString", 5), multi("LineString", [5]), multi("LineString", [[[1, 2]]]), {**multi("LineString", [[[1, 2], [3, 4]]]), "crs": STRICT}, multi("Polygon", []), multi("Polygon", 5), multi("Polygon", [5]), multi("Polygon", [[5]]), multi("Polygon", [[ring(0, 0, 5)], [[[0, 0], [1, 1]]]]), {**multi("Polygon", [[ring(0, 0, 5)]]), "crs": STRICT},
              {"type": "GeometryCollection"}, {"type": "GeometryCollection", "geometries": 5}, several(), several(5), several(point(1, 2)), several({"type": "X"}), several({}), several({"type": "Point", "coordinates": [1]}), several(several())]
BAD_SPECS = [5, "x", [], {}, {"x": 1}, {"$box": 5}, {"$box": []}, {"$box": [[0, 0]]}, {"$box": [[0, 0], [1]]}, {"$box": [[0, 0], [1, "a"]]}, {"$box": [[0, 0], [3, 3], [5, 5]]}, {"$box": [[0, 0, 1], [3, 3]]}, {"$box": [{"x": 0, "y": 0}, {"x": 4, "y": 4}]}, {"$box": [[NAN, 0], [1, 1]]}, {"$box": "x"}, {"$center": 5}, {"$center": []}, {"$center": [[0, 0]]}, {"$center": [[0, 0], "a"]}, {"$center": [[0, 0], -1]}, {"$center": [[0, 0], 5, 6]}, {"$center": [[0], 5]}, {"$center": [[0, 0], NAN]}, {"$center": [5, 5]}, {"$center": {"c": [0, 0], "r": 9}}, {"$centerSphere": [[0, 0]]}, {"$centerSphere": [[0, 0], -1]}, {"$centerSphere": [[0, 0], "a"]}, {"$centerSphere": [[200, 0], 1]}, {"$centerSphere": [[0, 0], 1, 1]}, {"$centerSphere": [point(0, 0), 1]}, {"$centerSphere": [[0, 0], NAN]}, {"$centerSphere": {"c": [0, 0], "r": 1}},
             {"$polygon": 5}, {"$polygon": []}, {"$polygon": [[0, 0], [1, 1]]}, {"$polygon": [[0, 0], [1, 1], [2]]}, {"$polygon": [[0, 0], [5, 0], ["a", 5]]}, {"$polygon": [[0, 0], [5, 0, 1], [5, 5]]}, {"$uniqueDocs": 1}, {"$box": [[0, 0], [4, 4]], "$uniqueDocs": 1}, {"$box": [[0, 0], [4, 4]], "$center": [[0, 0], 1]}, {"$box": [[0, 0], [4, 4]], "x": 1}, {"$near": [0, 0]}, {"$geometry": point(0, 0), "$maxDistance": 5}]
NEARS = [5, "x", None, [], {}, [1], [0.3, 0.1], [0.3, 0.1, 5], [0, 0, -5], [0, 0, "a"], [0, 0, 1, 1], ["a", 0], {"x": 0.3, "y": 0.1}, {"x": 0.3, "y": 0.1, "z": 7}, point(0.3, 0.1), {"$geometry": point(0.3, 0.1)}, {"$geometry": point(0, 0), "$maxDistance": -1}, {"$geometry": point(0, 0), "$maxDistance": "a"}, {"$geometry": point(0, 0), "$minDistance": -1}, {"$geometry": point(0, 0), "$minDistance": "a"}, {"$geometry": point(0, 0), "$maxDistance": NAN}, {"$geometry": point(0, 0), "x": 1}, {"$geometry": line((0, 0), (1, 1))}, {"$geometry": [0, 0]}, {"$geometry": 5}, {"$geometry": point(200, 0)}, {"$geometry": {"type": "Point", "coordinates": [0]}}, {"$geometry": {"x": 1, "y": 1}}, {"$maxDistance": 5}, {"$box": [[0, 0], [1, 1]]}, [200, 0], [NAN, 0], {"$geometry": polygon(ring(0, 0, 5))}, {"$geometry": {**point(0, 0), "crs": STRICT}}, {"$geometry": {"type": "X", "coordinates": [1, 1]}}]


def errors(rnd):
    for s in BAD_SHAPES:
        for op in ["$geoWithin", "$geoIntersects"]:
            yield find("geo_points", {"loc": {op: {"$geometry": s}}})
    for s in BAD_SPECS:
        for op in ["$geoWithin", "$geoIntersects", "$within"]:
            yield find("geo_points", {"loc": {op: s}})
    for n in NEARS:
        for op in ["$near", "$nearSphere"]:
            for s in ["geo_points", "geo_far_s", "geo_flat_d"]:
                yield near(s, {("at" if s == "geo_flat_d" else "loc"): {op: n}}, limit=3)
    box = {"$geoWithin": {"$box": [[0, 0], [4, 4]]}}
    N = {"$near": point(0.3, 0.1)}
    for f in [{"loc": {**box, "$gt": 5}}, {"loc": {"$gt": 5, **box}}, {"loc": {"$elemMatch": box}}, {"loc": {"$not": N}}, {"loc": {"$elemMatch": N}}, {"loc": {"$elemMatch": {"x": N}}}, {"$or": [{"loc": N}]}, {"$or": [{"loc": N}, {"k": 1}]}, {"$nor": [{"loc": N}]}, {"$and": [{"loc": N}, {"loc": N}]}, {"$and": [{"loc": N}]}, {"$and": [{"$and": [{"loc": N}]}, {"k": 1}]}, {"loc": {"$all": [box]}}, {"loc": {"$in": [box]}}, {"loc": N, "b": N}, {"x": N},
              {"loc": {"$near": [0, 0], "$maxDistance": -5}}, {"loc": {"$near": [0, 0], "$maxDistance": "a"}}, {"loc": {"$near": [0, 0], "$minDistance": "a"}}, {"loc": {"$near": [0, 0], "$minDistance": -1}}, {"loc": {"$near": [0, 0], "x": 1}}, {"loc": {"$near": [0, 0], "$gt": 1}}, {"loc": {"$gt": 1, "$near": [0, 0]}}, {"loc": {"$maxDistance": 1, "$near": [0, 0]}}, {"loc": {"$near": {"$geometry": point(0, 0)}, "$maxDistance": 5}}, {"loc": {"$near": [0, 0], "$uniqueDocs": 1}}, {"loc": {"$maxDistance": 5}}, {"$geoWithin": {"$box": [[0, 0], [1, 1]]}}, {"$near": [0, 0]}, {"loc": {"$geoNear": point(0, 0), "$maxDistance": 1e6}}]:
        for s in ["geo_points", "geo_far_s"]:
            yield near(s, f, sort={"_id": 1}, limit=4)
    for kw in [{"sort": {"$natural": 1}}, {"hint": {"$natural": 1}}, {"hint": "_id_"}, {"hint": "ix"}]:
        yield near("geo_far_s", {"loc": N}, limit=3, **kw)
        yield near("geo_points_s", {"k": 3}, **kw)


def indexes(rnd):
    """What a document may hold, what a specification may say."""
    docs = [d["loc"] for d in geo_odd() if "loc" in d] + [[180, 90], [-180, -90], [180.0000001, 0], {"type": "Point", "coordinates": [1, 2], "crs": name("bad")}, BIG, several(point(1, 2))]
    for ix in [{"key": {"loc": "2d"}}, {"key": {"loc": "2dsphere"}}, {"key": {"loc": "2dsphere"}, "2dsphereIndexVersion": 1}, {"key": {"loc": "2dsphere"}, "2dsphereIndexVersion": 2}, {"key": {"loc": "2d"}, "bits": 8, "min": 0, "max": 10}]:
        for d in docs:
            if isinstance(d, list) and d and d[0] == 200 and "bits" in ix:
                continue
            yield {"docs": [], "before": [{"create": "w"}, {"createIndexes": "w", "indexes": [{"name": "ix", **ix}]}], "cmd": {"insert": "w", "documents": [{"_id": 1, "loc": d, "k": 1}]}}
    for d in [5, [1, "b"], [200, 0], {"type": "X"}, [1, 2]]:
        for kind in ["2d", "2dsphere"]:
            pre = [{"createIndexes": "w", "indexes": [{"name": "ix", "key": {"loc": kind}}]}]
            yield {"docs": [{"_id": 1, "loc": [3, 4]}], "pre": pre, "cmd": {"update": "w", "updates": [{"q": {"_id": 1}, "u": {"$set": {"loc": d}}}]}}
            yield {"docs": [{"_id": 1, "loc": [3, 4]}], "pre": pre, "cmd": {"findAndModify": "w", "query": {"_id": 1}, "update": {"$set": {"loc": d}}, "new": True}}
            yield {"docs": [{"_id": 1, "loc": d}], "cmd": {"createIndexes": "w", "indexes": [{"name": "ix", "key": {"loc": kind}}]}, "then": [{"listIndexes": "w"}]}
    for key, o in [({"loc": "2d"}, {"bits": 0}), ({"loc": "2d"}, {"bits": 33}), ({"loc": "2d"}, {"bits": 32}), ({"loc": "2d"}, {"bits": 1}), ({"loc": "2d"}, {"bits": -1}), ({"loc": "2d"}, {"bits": "a"}), ({"loc": "2d"}, {"bits": 5.5}), ({"loc": "2d"}, {"min": 5, "max": 5}), ({"loc": "2d"}, {"min": 5, "max": 1}), ({"loc": "2d"}, {"min": -500.5, "max": 500}), ({"loc": "2d"}, {"min": "a"}), ({"loc": "2d", "a": 1}, {}), ({"a": 1, "loc": "2d"}, {}), ({"loc": "2d", "b": "2d"}, {}), ({"loc": "2dsphere", "b": "2dsphere"}, {}), ({"loc": "2d", "b": "2dsphere"}, {}), ({"loc": "2d", "b": "hashed"}, {}), ({"loc": "2dsphere"}, {"2dsphereIndexVersion": 0}), ({"loc": "2dsphere"}, {"2dsphereIndexVersion": 4}), ({"loc": "2dsphere"}, {"2dsphereIndexVersion": "a"}), ({"loc": "2dsphere"}, {"2dsphereIndexVersion": 2.5}), ({"loc": "2dsphere"}, {"2dsphereIndexVersion": 1}), ({"loc": "2dsphere"}, {"2dsphereIndexVersion": 2.0}), ({"loc": "2dsphere"}, {"unique": True}), ({"loc": "2d"}, {"unique": True}), ({"loc": "2dsphere"}, {"sparse": True}), ({"loc": "2dsphere"}, {"sparse": False}), ({"loc": "2d"}, {"sparse": True}), ({"loc": "2dsphere"}, {"finestIndexedLevel": 20}), ({"loc": "2dsphere"}, {"finestIndexedLevel": 40}), ({"loc": "2dsphere"}, {"coarsestIndexedLevel": 10, "finestIndexedLevel": 5}), ({"loc": "2dsphere"}, {"coarsestIndexedLevel": -1}), ({"loc": "2dsphere"}, {"expireAfterSeconds": 5}), ({"loc": "2d"}, {"expireAfterSeconds": 5}), ({"loc": "2dsphere"}, {"collation": {"locale": "fr"}}), ({"loc": "2d"}, {"collation": {"locale": "fr"}}), ({"loc": "2dsphere", "a": -1}, {}), ({"a": 1, "loc": "2dsphere", "b": 1}, {}), ({"loc": "2d"}, {"2dsphereIndexVersion": 3}), ({"loc": "2dsphere"}, {"bits": 20}), ({"loc": "2dsphere"}, {"partialFilterExpression": {"a": 1}}), ({"a": 1}, {"bits": 5}), ({"a": 1}, {"2dsphereIndexVersion": 3}), ({"loc": "2dsphere"}, {"v": 1}), ({"loc": "2d", "a": 1, "b": -1}, {}), ({"loc.x": "2dsphere"}, {}), ({"$**": "2dsphere"}, {}), ({"a": 1}, {"partialFilterExpression": {"loc": {"$geoWithin": {"$box": [[0, 0], [1, 1]]}}}}), ({"a": 1}, {"partialFilterExpression": {"loc": {"$near": [0, 0]}}}), ({"_id": "2dsphere"}, {}), ({"loc": "2d"}, {"min": NAN}), ({"loc": "2d"}, {"max": INF}), ({"loc": "2D"}, {}), ({"loc": "2dsphere"}, {"hidden": True}), ({"loc": "2d"}, {"bits": 12, "min": L(0), "max": D("10")})]:
        c = {"docs": [], "before": [{"create": "w"}], "cmd": {"createIndexes": "w", "indexes": [{"key": key, "name": "ix", **o}]}, "then": [{"listIndexes": "w"}]}
        yield c
    for v in [{"loc": {"$not": {"$geoWithin": {"$box": [[0, 0], [9, 9]]}}}}, {"loc": {"$not": {"$geoIntersects": {"$geometry": polygon(ring(0, 0, 5))}}}}]:
        for d in [[1, 2], [[1, 2], [3, 4]], point(2, 2), 5]:
            yield {"docs": [], "before": [{"create": "w", "validator": v}], "cmd": {"insert": "w", "documents": [{"_id": 1, "loc": d}]}}
    for v in [{"loc": {"$geoWithin": {"$box": [[0, 0], [9, 9]]}}}, {"loc": {"$near": [0, 0]}}, {"loc": {"$geoIntersects": {"$geometry": polygon(ring(0, 0, 5))}}}, {"$and": [{"loc": {"$nearSphere": [0, 0]}}]}]:
        for d in [[1, 2], [20, 20], 5]:
            yield {"docs": [], "before": [{"create": "w", "validator": v}], "cmd": {"insert": "w", "documents": [{"_id": 1, "loc": d}]}}
        yield {"docs": [{"_id": i, "loc": [i * 4, i]} for i in range(4)], "cmd": {"delete": "w", "deletes": [{"q": v, "limit": 0}]}}
        yield {"docs": [{"_id": i, "loc": [i * 4, i]} for i in range(4)], "pre": [{"createIndexes": "w", "indexes": [{"name": "a", "key": {"loc": "2d"}}, {"name": "b", "key": {"loc": "2dsphere"}}]}], "cmd": {"update": "w", "updates": [{"q": v, "u": {"$set": {"hit": 1}}, "multi": True}]}}
        yield {"docs": [{"_id": i, "loc": [i * 4, i]} for i in range(4)], "pre": [{"createIndexes": "w", "indexes": [{"name": "b", "key": {"loc": "2d"}}]}], "cmd": {"findAndModify": "w", "query": v, "update": {"$set": {"hit": 1}}, "new": True}}
        yield {"docs": [{"_id": 1, "a": [{"loc": [1, 1]}, {"loc": [30, 30]}]}], "cmd": {"update": "w", "updates": [{"q": {"_id": 1}, "u": {"$pull": {"a": v}}}]}}
        yield {"docs": [{"_id": 1, "a": [{"loc": [1, 1]}, {"loc": [30, 30]}]}], "cmd": {"update": "w", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a.$[e].x": 1}}, "arrayFilters": [{"e.loc": next(iter(v.values()))}] if "$and" not in v else [{"e.x": 1}]}]}}


TOPICS = {"geo.within": within, "geo.shapes": shapes, "geo.near": nearest, "geo.stage": stage, "geo.errors": errors, "geo.index": indexes}
