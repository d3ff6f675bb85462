"""BSON bytes <-> a tree of plain Python values, with nothing but the standard library.

The tree is what `json.loads` gives for MongoDB Extended JSON v2, written as short as
it stays exact, and it is also the form in which the golden files are stored:

    BSON                     tree / file
    int32                    5                       (a bare integer is always int32)
    double, finite           2.5, 1.0, -0.0          (a bare number with '.' or 'e')
    double, not finite       {"$numberDouble": "NaN"}
    int64                    {"$numberLong": "5"}    (always spelled out)
    decimal128               {"$numberDecimal": "1.50"}
    everything else          canonical Extended JSON v2

Any parser of Extended JSON v2 that keeps `1` and `1.0` apart reads these files.
Documents are dicts (insertion order is field order); duplicate names cannot be kept.
"""
import base64
import math
import struct

L = lambda n: {"$numberLong": str(n)}  # noqa: E731
D = lambda s: {"$numberDecimal": str(s)}  # noqa: E731
NAN = {"$numberDouble": "NaN"}
INF = {"$numberDouble": "Infinity"}
NINF = {"$numberDouble": "-Infinity"}
MINKEY, MAXKEY, UNDEF = {"$minKey": 1}, {"$maxKey": 1}, {"$undefined": True}
OID = lambda n: {"$oid": "%024x" % n if isinstance(n, int) else n}  # noqa: E731
DATE = lambda ms: {"$date": {"$numberLong": str(ms)}}  # noqa: E731
TS = lambda t, i: {"$timestamp": {"t": t, "i": i}}  # noqa: E731
RE = lambda p, o="": {"$regularExpression": {"pattern": p, "options": o}}  # noqa: E731
SYM = lambda s: {"$symbol": s}  # noqa: E731
CODE = lambda s: {"$code": s}  # noqa: E731
CODEW = lambda s, d: {"$code": s, "$scope": d}  # noqa: E731


def BIN(data, sub=0):
    return {"$binary": {"base64": base64.b64encode(data).decode(), "subType": "%02x" % sub}}


class Raw(bytes):
    """A ready-made BSON document, put into its parent as it is (for malformed input)."""


# ---------------------------------------------------------------- decimal128 (BID)

BIAS = 6176


def dec_to_bytes(s):
    t = s.strip().lower()
    neg = t.startswith("-")
    t = t.lstrip("+-")
    sign = (1 << 127) if neg else 0
    if t in ("nan",):
        v = sign | (0x7C << 120)
    elif t in ("inf", "infinity"):
        v = sign | (0x78 << 120)
    else:
        mant, _, exp = t.partition("e")
        whole, _, frac = mant.partition(".")
        e = int(exp or 0) - len(frac)
        c = int(whole + frac or "0")
        while c and c % 10 == 0 and (c >= 10**34 or e < -BIAS):
            c //= 10
            e += 1
        if c == 0:
            e = max(-BIAS, min(6111, e))
        while e > 6111 and c and c * 10 < 10**34:
            c *= 10
            e -= 1
        if c >= 10**34 or not -BIAS <= e <= 6111:
            raise ValueError("not a decimal128: " + s)
        v = sign | ((e + BIAS) << 113) | c
    return v.to_bytes(16, "little")


def dec_to_str(b):
    v = int.from_bytes(b, "little")
    sign = "-" if v >> 127 else ""
    comb = (v >> 122) & 0x1F
    if comb == 0x1F:
        return "NaN"
    if comb == 0x1E:
        return sign + "Infinity"
    if (v >> 125) & 3 == 3:  # the large-coefficient form is never canonical: reads as zero
        e, c = ((v >> 111) & 0x3FFF) - BIAS, 0
    else:
        e, c = ((v >> 113) & 0x3FFF) - BIAS, v & ((1 << 113) - 1)
        if c >= 10**34:
            c = 0
    d = str(c)
    sci = e + len(d) - 1
    if e > 0 or sci < -6:
        m = d[0] + ("." + d[1:] if len(d) > 1 else "")
        return f"{sign}{m}E{sci:+d}"
    if e == 0:
        return sign + d
    d = d.rjust(-e + 1, "0")
    return sign + d[:e] + "." + d[e:]


# ---------------------------------------------------------------- encode


def _cstr(s):
    b = s.encode("utf-8", "surrogatepass")
    if b"\0" in b:
        raise ValueError("NUL in a name")
    return b + b"\0"


def _str(s):
    b = s.encode("utf-8", "surrogatepass") + b"\0"
    return struct.pack("<i", len(b)) + b


def _special(v):
    """(type byte, payload) for an Extended JSON wrapper, or None for a plain document."""
    k = next(iter(v))
    if not k.startswith("$"):
        return None
    x = v[k]
    if len(v) == 1:
        if k == "$numberInt":
            return 0x10, struct.pack("<i", int(x))
        if k == "$numberLong" and isinstance(x, str):
            return 0x12, struct.pack("<q", int(x))
        if k == "$numberDouble" and isinstance(x, str):
            return 0x01, struct.pack("<d", float(x))
        if k == "$numberDecimal" and isinstance(x, str):
            return 0x13, dec_to_bytes(x)
        if k == "$oid" and isinstance(x, str):
            return 0x07, bytes.fromhex(x)
        if k == "$date" and isinstance(x, dict) and list(x) == ["$numberLong"]:
            return 0x09, struct.pack("<q", int(x["$numberLong"]))
        if k == "$timestamp" and isinstance(x, dict):
            return 0x11, struct.pack("<II", x["i"], x["t"])
        if k == "$binary" and isinstance(x, dict) and "base64" in x:
            d, sub = base64.b64decode(x["base64"]), int(x["subType"], 16)
            if sub == 2:
                d = struct.pack("<i", len(d)) + d
            return 0x05, struct.pack("<iB", len(d), sub) + d
        if k == "$regularExpression":
            return 0x0B, _cstr(x["pattern"]) + _cstr(x["options"])
        if k == "$minKey" and x == 1:
            return 0xFF, b""
        if k == "$maxKey" and x == 1:
            return 0x7F, b""
        if k == "$undefined" and x is True:
            return 0x06, b""
        if k == "$symbol":
            return 0x0E, _str(x)
        if k == "$code":
            return 0x0D, _str(x)
        if k == "$dbPointer":
            return 0x0C, _str(x["$ref"]) + bytes.fromhex(x["$id"]["$oid"])
    elif list(v) == ["$code", "$scope"]:
        b = _str(x) + encode(v["$scope"])
        return 0x0F, struct.pack("<i", len(b) + 4) + b
    return None


def _elem(name, v):
    n = _cstr(name)
    if v is None:
        return b"\x0a" + n
    if v is True or v is False:
        return b"\x08" + n + (b"\1" if v else b"\0")
    if isinstance(v, int):
        return b"\x10" + n + struct.pack("<i", v)
    if isinstance(v, float):
        return b"\x01" + n + struct.pack("<d", v)
    if isinstance(v, str):
        return b"\x02" + n + _str(v)
    if isinstance(v, Raw):
        return b"\x03" + n + v
    if isinstance(v, dict):
        sp = _special(v) if v else None
        if sp:
            return bytes([sp[0]]) + n + sp[1]
        return b"\x03" + n + encode(v)
    if isinstance(v, (list, tuple)):
        return b"\x04" + n + encode_items((str(i), x) for i, x in enumerate(v))
    raise TypeError(repr(v))


def encode_items(items):
    b = b"".join(_elem(k, x) for k, x in items)
    return struct.pack("<i", len(b) + 5) + b + b"\0"


def encode(doc):
    if isinstance(doc, Raw):
        return bytes(doc)
    return encode_items(doc.items())


# ---------------------------------------------------------------- decode


def decode(b, pos=0):
    return _doc(b, pos, False)[0]


def _doc(b, p, arr):
    end = p + struct.unpack_from("<i", b, p)[0]
    p += 4
    out = [] if arr else {}
    while b[p]:
        t = b[p]
        z = b.index(0, p + 1)
        name = b[p + 1:z].decode("utf-8", "surrogateescape")
        v, p = _value(t, b, z + 1)
        if arr:
            out.append(v)
        else:
            out[name] = v
    return out, end


def _value(t, b, p):
    if t == 0x01:
        f = struct.unpack_from("<d", b, p)[0]
        v = f if math.isfinite(f) else {"$numberDouble": "NaN" if f != f else "Infinity" if f > 0 else "-Infinity"}
        return v, p + 8
    if t in (0x02, 0x0D, 0x0E):
        n = struct.unpack_from("<i", b, p)[0]
        s = b[p + 4:p + 3 + n].decode("utf-8", "surrogateescape")
        return (s if t == 2 else {"$code" if t == 0x0D else "$symbol": s}), p + 4 + n
    if t == 0x03:
        return _doc(b, p, False)
    if t == 0x04:
        return _doc(b, p, True)
    if t == 0x05:
        n, sub = struct.unpack_from("<iB", b, p)
        d = bytes(b[p + 5:p + 5 + n])
        return BIN(d[4:] if sub == 2 else d, sub), p + 5 + n
    if t == 0x06:
        return dict(UNDEF), p
    if t == 0x07:
        return {"$oid": bytes(b[p:p + 12]).hex()}, p + 12
    if t == 0x08:
        return b[p] != 0, p + 1
    if t == 0x09:
        return DATE(struct.unpack_from("<q", b, p)[0]), p + 8
    if t == 0x0A:
        return None, p
    if t == 0x0B:
        z = b.index(0, p)
        y = b.index(0, z + 1)
        return RE(b[p:z].decode("utf-8", "replace"), b[z + 1:y].decode("utf-8", "replace")), y + 1
    if t == 0x0C:
        n = struct.unpack_from("<i", b, p)[0]
        q = p + 4 + n
        return {"$dbPointer": {"$ref": b[p + 4:q - 1].decode(), "$id": OID(bytes(b[q:q + 12]).hex())}}, q + 12
    if t == 0x0F:
        total, n = struct.unpack_from("<ii", b, p)
        code = b[p + 8:p + 7 + n].decode("utf-8", "replace")
        return {"$code": code, "$scope": decode(b, p + 8 + n)}, p + total
    if t == 0x10:
        return struct.unpack_from("<i", b, p)[0], p + 4
    if t == 0x11:
        i, s = struct.unpack_from("<II", b, p)
        return TS(s, i), p + 8
    if t == 0x12:
        return L(struct.unpack_from("<q", b, p)[0]), p + 8
    if t == 0x13:
        return D(dec_to_str(b[p:p + 16])), p + 16
    if t == 0xFF:
        return dict(MINKEY), p
    if t == 0x7F:
        return dict(MAXKEY), p
    raise ValueError("BSON type 0x%02x" % t)
