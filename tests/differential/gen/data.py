"""Values and data sets that the generators draw from. All of it is fixed, none of it random in time."""
import random

from . import sys  # noqa: F401  (path set-up)
from ejson import BIN, CODE, CODEW, D, DATE, INF, L, MAXKEY, MINKEY, NAN, NINF, OID, RE, SYM, TS, UNDEF

MISSING = object()

NUMBERS = [0, -0.0, 1, L(1), 1.0, D("1"), D("1.00"), 2, 2.5, D("2.5"), -1, L(-7), 3.999, 4.0, L(2**53 + 1), float(2**53),
           float(2**53 + 2), L(2**63 - 1), L(-2**63), 9223372036854775808.0, 2147483647, -2147483648, 0.1, D("0.1"), 1e300,
           D("1E+400"), D("-1E-400"), 5e-324, NAN, D("NaN"), INF, D("Infinity"), NINF, D("-Infinity"), D("0E+3"), D("-0")]
STRINGS = ["", "a", "A", "ab", "abc", "b", "a\u0000b", "é", "日本", "1", "a.b", "$x", "zebra", "\U0001f600"]
DOCS = [{}, {"x": 1}, {"x": 1, "y": 2}, {"y": 2, "x": 1}, {"x": None}, {"x": [1, 2]}, {"x": {"z": 1}}, {"x": 2.0}, {"0": "zero"}]
ARRAYS = [[], [1], [1, 2], [2, 1], [1, 2, 3], [None], [[]], [[1, 2]], [[1, 2], 3], [1, [2, [3]]], ["a", 1], [{"x": 1}],
          [{"x": 1}, {"x": 5}], [{"y": 1}], [NAN], [{}], [2.5, "b", None], [[{"x": 1}]]]
OTHERS = [None, UNDEF, True, False, MINKEY, MAXKEY, OID(1), OID("5f" + "0" * 22), DATE(0), DATE(-1), DATE(1600000000123),
          TS(0, 1), TS(1600000000, 5), RE("^a"), RE("^a", "i"), BIN(b""), BIN(b"abc"), BIN(b"abd", 0x80), BIN(bytes(16), 4),
          CODE("function(){}"), CODEW("f", {"x": 1}), SYM("a"), SYM("zebra")]
ALL = NUMBERS + STRINGS + DOCS + ARRAYS + OTHERS

# the fewer values used where every pair is formed
FEW = [0, 1, L(3), 2.5, D("7.25"), NAN, "abc", "", {"x": 1}, {}, [1, 2], [], ["a", {"x": 1}], None, True, DATE(1600000000123),
       OID(1), TS(5, 1), BIN(b"ab"), RE("b"), MINKEY, MAXKEY]


def mixed():
    """One document for each value, the value under `a`; `n.x` and `r[]` carry other values of the list."""
    out = []
    k = len(ALL)
    for i, v in enumerate(ALL):
        d = {"_id": i, "a": v}
        if i % 3:
            d["n"] = {"x": ALL[(i * 7 + 3) % k]}
        if i % 4 == 1:
            d["r"] = [{"v": ALL[(i * 5 + j) % k], "k": j} for j in range(i % 5)]
        d["s"] = i % 10
        out.append(d)
    out.append({"_id": k, "s": 1})
    out.append({"_id": k + 1, "n": [{"x": 1}, {"x": "abc"}, 7], "s": 2})
    out.append({"_id": k + 2, "n": [], "s": 3})
    return out


def arrays():
    """Arrays of scalars, of documents and of arrays, for array operators and dotted paths."""
    rnd = random.Random(7)
    out = []
    for i in range(60):
        d = {"_id": i}
        if i % 7:
            d["t"] = [rnd.randrange(0, 12) for _ in range(rnd.randrange(0, 6))]
        if i % 5:
            d["g"] = rnd.sample(["red", "green", "blue", "grey", "black"], rnd.randrange(0, 4))
        if i % 3:
            d["e"] = [{"p": rnd.randrange(6), "q": rnd.choice(["x", "y", "z", None]),
                       **({"w": [rnd.randrange(5) for _ in range(rnd.randrange(3))]} if rnd.random() < .5 else {})}
                      for _ in range(rnd.randrange(0, 4))]
        if i % 11 == 3:
            d["t"] = [[1, 2], [3, 4], 5]
        if i % 11 == 4:
            d["e"] = {"p": i % 6, "q": "x"}
        if i % 11 == 5:
            d["e"] = [[{"p": 1}], {"p": [2, 3]}, 4, None]
        if i % 13 == 6:
            d["t"] = rnd.choice([3, "red", None, {"0": 5}])
        d["m"] = {"a": {"b": rnd.choice([1, [1, 2], [{"c": 1}, {"c": 2}], {"c": 3}, None, []])}}
        out.append(d)
    return out


def nums():
    """Plain scalar fields with many ties, for sort, compound indexes and grouping."""
    rnd = random.Random(11)
    out = []
    for i in range(150):
        d = {"_id": i, "a": rnd.randrange(12), "b": rnd.choice([rnd.randrange(30), float(rnd.randrange(60)) / 2, L(rnd.randrange(30))]),
             "c": rnd.choice(["ant", "bee", "cat", "dog", "Eel", "fly"]), "d": DATE(1577836800000 + rnd.randrange(900) * 43200000),
             "f": round(rnd.uniform(-10, 10), 3)}
        if i % 9 == 0:
            d["b"] = None
        if i % 10 == 1:
            del d["b"]
        if i % 25 == 7:
            d["a"] = D("3")
        if i % 30 == 11:
            d["a"] = NAN
        if i % 4 == 0:
            d["z"] = {"k": rnd.randrange(5), "l": rnd.choice("pqr")}
        out.append(d)
    return out


def strs():
    words = ["apple", "Apple", "APPLE", "äpfel", "Äpfel", "apples", "banana", "Banana", "cote", "coté", "côte", "côté", "item1", "item2",
             "item10", "Item10", "naïve", "naive", "résumé", "resume", "a-b", "ab", "a b", "", "ß", "ss", "línea\nsegunda", "one\ntwo",
             "x.y*z", "(paren)", "foo123", "FOO", "foobar", "straße", "İstanbul", "istanbul", "日本語", "\u0000nul", "e\u0301", "é"]
    return [{"_id": i, "s": w, "n": i % 7} for i, w in enumerate(words)] + [
        {"_id": 100, "s": ["apple", "Banana"], "n": 1}, {"_id": 101, "s": RE("^foo", "i"), "n": 2}, {"_id": 102, "s": 5, "n": 3},
        {"_id": 103, "s": SYM("foobar"), "n": 4}, {"_id": 104, "n": 5}, {"_id": 105, "s": None, "n": 6}]


def people():
    rnd = random.Random(23)
    first, last = ["Ada", "Bob", "Cyd", "Dan", "Eve", "Fay", "Gus", "Hal"], ["Moss", "Nash", "Orr", "Pike", "Quinn"]
    out = []
    for i in range(80):
        out.append({"_id": i, "name": {"first": rnd.choice(first), "last": rnd.choice(last)}, "age": rnd.choice([rnd.randrange(18, 80), None, 33.5]),
                    "city": rnd.choice(["Oslo", "Rome", "Lima", "Kyiv", None]), "joined": DATE(1262304000000 + rnd.randrange(4000) * 86400000),
                    "tags": rnd.sample(["a", "b", "c", "d", "e"], rnd.randrange(4)),
                    "orders": [{"sku": rnd.choice(["s1", "s2", "s3"]), "qty": rnd.randrange(1, 9), "price": D("%d.%02d" % (rnd.randrange(90), rnd.randrange(100)))}
                               for _ in range(rnd.randrange(4))],
                    "balance": rnd.choice([L(rnd.randrange(10**10)), rnd.randrange(1000), round(rnd.uniform(0, 1000), 2), D("%d.5" % rnd.randrange(1000))])})
    return out


def bits():
    vals = [0, 1, 2, 3, 20, 54, 255, L(2**40), L(-1), -8, 5.0, 5.5, D("6"), D("6.5"), NAN, L(-2**63), BIN(b"\x05"), BIN(b"\x00\x10\xff"), BIN(b""), "5",
            None, [20, 3], [], 1e300, 2.0**63]
    return [{"_id": i, "a": v} for i, v in enumerate(vals)] + [{"_id": 100}]


def values():
    """One document with a field of each kind, for expressions."""
    return [{"_id": 1, "i": 7, "l": L(9), "d": 2.5, "n": D("1.25"), "s": "Hello", "u": "héé日", "arr": [3, 1, 2], "objs": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "o": {"x": 1, "y": {"z": 2}}, "t": DATE(1600000000123), "b": True, "nil": None, "e": [], "nest": [[1, 2], [3]]}]


def left():
    """One side of joins: scalars, arrays, paths through arrays, and what is hard to compare."""
    out = [{"_id": i, "a": i % 7, "l": [i % 5, (i * 3) % 7], "d": {"e": i % 4}, "s": ["ab", "AB", "b", "é"][i % 4]} for i in range(20)]
    odd = [{"a": None, "l": [], "d": None}, {"l": None}, {"a": 2.0, "l": [[1, 2], 3], "d": {"e": [1, 2]}}, {"a": D("3"), "l": [{"a": 1}, {"a": [2, 3]}], "d": [{"e": 1}, {"e": 3}]}, {"a": "x", "l": [None], "d": {"e": None}}, {"a": {"m": 1}, "l": [[]], "d": {"m": 1}}, {"a": TS(1, 1)}, {"a": RE("^a"), "l": [RE("^a"), 1]}, {"a": NAN, "l": [{"a": 1}, {}]}, {"a": L(4), "l": [[[1]]], "d": {"e": [[1], 2]}}, {"a": [1, [2]], "l": {"a": [{"b": 1}]}}, {"z": True, "l": [{}, {"a": None}]}, {"z": DATE(5), "l": 3, "d": {"e": {"f": 1}}}, {"z": OID(1), "l": "x", "d": {"e": []}}]
    return out + [{"_id": 20 + i, **d} for i, d in enumerate(odd)]


def right():
    out = [{"_id": i, "x": i % 6, "k": (i * 7) % 11, "n": {"m": i % 5}, "s": ["AB", "ab", "B", "e"][i % 4]} for i in range(25)]
    odd = [{"x": None, "n": None}, {"k": 1}, {"x": [1, 2], "n": {"m": [1, 3]}}, {"x": [], "n": []}, {"x": [[1, 2]], "n": [{"m": 1}, {"m": 2}]}, {"x": True}, {"x": D("2"), "n": {"m": L(3)}}, {"x": RE("^a"), "n": {"m": {"f": 1}}}, {"x": "x", "n": {"m": None}}, {"x": {"m": 1}, "n": {"m": 1}}, {"x": NAN, "z": True}, {"x": [None, 3], "z": DATE(5)}, {"x": [{"m": 1}, 4], "z": OID(1)}, {"x": "abc", "k": [4, 9], "n": [{}, {"m": 3}]}, {"x": [[]], "n": [[{"m": 2}]]}]
    return out + [{"_id": 25 + i, **d} for i, d in enumerate(odd)]


def chain():
    """A graph: chains, a ring, branches, dead ends."""
    out = [{"_id": i, "to": (i + 1) if i % 6 else None, "many": [(i * 2) % 25, (i * 5) % 25], "docs": [{"to": (i + 3) % 25}, {"to": "no"}], "kind": "abc"[i % 3], "name": "n%d" % i} for i in range(25)]
    for i in range(1, 25):
        out[i]["boss"] = "n%d" % (i // 2)
    out[7]["to"] = 1
    del out[12]["to"]
    return out


def steps():
    """A series with gaps, ties and odd values, for windows and densifying."""
    rnd = random.Random(31)
    out = []
    for i in range(24):
        d = {"_id": i, "p": "abc"[i * 7 % 3], "v": [i * 3 % 11, L(i), float(i) / 2, i][i % 4], "x": rnd.randrange(15), "t": DATE(1704067200000 - 1000 * 86400000 + i * 43200000 * (1 + i % 3)), "n": {"q": i % 2}}
        if i % 3:
            d["gap"] = [None, i * 2, float(i)][i % 3] if i % 6 else None
        if i % 5 == 0:
            d["m"] = ["x", 5, None, D("2.5"), [1]][i // 5]
        if i % 4 == 1:
            d["arr"] = i % 2
        if i == 17:
            d["arr"] = [1]
        if i == 20:
            del d["x"]
        out.append(d)
    return out


SETS = {"steps": steps, "left": left, "right": right, "chain": chain, "values": values, "mixed": mixed, "arrays": arrays, "nums": nums, "strs": strs, "people": people, "bits": bits}
INDEXES = {
    # name: (data set, key pattern, options)
    "mixed_a": ("mixed", {"a": 1}, {}),
    "mixed_ad": ("mixed", {"a": -1}, {}),
    "mixed_nx": ("mixed", {"n.x": 1}, {}),
    "mixed_rv": ("mixed", {"r.v": 1, "s": -1}, {}),
    "mixed_sparse": ("mixed", {"a": 1}, {"sparse": True}),
    "mixed_wild": ("mixed", {"$**": 1}, {}),
    "mixed_partial": ("mixed", {"a": 1}, {"partialFilterExpression": {"s": {"$gt": 3}}}),
    "arrays_t": ("arrays", {"t": 1}, {}),
    "arrays_ep": ("arrays", {"e.p": 1, "_id": -1}, {}),
    "arrays_eqp": ("arrays", {"e.q": -1, "e.p": 1}, {}),
    "arrays_mabc": ("arrays", {"m.a.b.c": 1}, {}),
    "arrays_g": ("arrays", {"g": -1}, {}),
    "arrays_wild": ("arrays", {"m.$**": 1}, {}),
    "nums_ab": ("nums", {"a": 1, "b": -1}, {}),
    "nums_abc": ("nums", {"a": -1, "b": 1, "c": 1}, {}),
    "nums_cda": ("nums", {"c": 1, "d": -1, "a": 1}, {}),
    "nums_hash": ("nums", {"c": "hashed"}, {}),
    "nums_hashc": ("nums", {"a": 1, "c": "hashed", "b": 1}, {}),
    "nums_partial": ("nums", {"b": 1}, {"partialFilterExpression": {"a": {"$gte": 5}}}),
    "nums_zk": ("nums", {"z.k": 1, "z.l": -1}, {"sparse": True}),
    "nums_wild": ("nums", {"$**": 1}, {"wildcardProjection": {"a": 1, "z": 1, "c": 1}}),
    "nums_f": ("nums", {"f": 1}, {"hidden": False}),
    "right_x": ("right", {"x": 1}, {}),
    "strs_s": ("strs", {"s": 1}, {}),
}


def setups():
    """name -> {"docs": name of the data set or documents, "indexes": [...]} as stored in golden/setups.json."""
    out = {n: {"docs": f()} for n, f in SETS.items()}
    from . import geo, text, timeseries

    out |= {n: {"docs": f()} for n, f in (text.SETS | geo.SETS).items()}
    out |= {n: {"docs": f(), "options": timeseries.OPTIONS[n]} for n, f in timeseries.SETS.items()}
    for n, (base, key, opt) in (INDEXES | text.INDEXES | geo.INDEXES).items():
        out[n] = {"same_docs_as": base, "indexes": [{"key": key, "name": "ix", **opt}]}
    out["right_view"] = {"docs": [], "options": {"viewOn": "right", "pipeline": [{"$match": {"_id": {"$lt": 35}}}, {"$set": {"v": 1}}]}, "on": "right"}
    out["chain_view"] = {"docs": [], "options": {"viewOn": "chain", "pipeline": [{"$match": {"kind": {"$ne": "c"}}}]}, "on": "chain"}
    return out


def deep_pick(rnd, pool=ALL):
    return rnd.choice(pool)
