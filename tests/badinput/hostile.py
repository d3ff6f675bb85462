#!/usr/bin/env python3
"""Over a thousand malformed messages against a live server.

    hostile.py URI [--pid PID] [--reference] [--only CLASS] [-v]

Each message goes over a connection of its own. Passed means: an error reply or a closed
connection within a second (for a message that promises more bytes than it has: within a
second of our closing our half), and the server still answers `ping` on another connection.
Classes marked `strict` hold messages that no server may accept; in the others (random
damage) any reply will do. With --pid the server's memory is watched: 500 connections that
each send 5 bytes behind a header that promises 48 MB may cost it less than 64 KiB apiece, and
the whole run less than 64 MiB. --reference tolerates what MongoDB itself tolerates
(text that is not UTF-8 is stored as it is).

Standard library only. Ends with `N passed, N failed`.
"""
import argparse
import collections
import pathlib
import random
import socket
import struct
import sys
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import ejson  # noqa: E402
import wire  # noqa: E402
from ejson import D, L, Raw  # noqa: E402

DB = "hostile"
LIMIT_S = 1.0
# Of what a run has taken, so much may stay once this time has passed.
STAYS_AT_MOST = 32 << 20
SETTLES_WITHIN = 30


def i32(n):
    return struct.pack("<i", n)


def doc(*elems):
    b = b"".join(elems)
    return i32(len(b) + 5) + b + b"\0"


def el(t, name, payload):
    return bytes([t]) + (name if isinstance(name, bytes) else name.encode()) + b"\0" + payload


def st(s):
    s = s if isinstance(s, bytes) else s.encode()
    return i32(len(s) + 1) + s + b"\0"


DBELEM = el(2, "$db", st(DB))


def msg(body, flags=0, length=None, opcode=wire.OP_MSG):
    b = struct.pack("<I", flags) + body
    return wire.header(16 + len(b) if length is None else length, opcode) + b


def body0(d):
    return b"\0" + d


def in_find(elem):
    """`elem` placed in the filter of a find."""
    return doc(el(2, "find", st("c")), el(3, "filter", doc(elem)), DBELEM)


def in_insert(d):
    """The document bytes `d` as the only document of an insert's array."""
    return doc(el(2, "insert", st("c")), el(4, "documents", doc(el(3, "0", d))), DBELEM)


def in_sequence(d, size=None, name=b"documents\0"):
    s = name + d
    return body0(doc(el(2, "insert", st("c")), DBELEM)) + b"\1" + i32(len(s) + 4 if size is None else size) + s


# ------------------------------------------------------------ compression by hand


def snappy(data, claim=None):
    """Snappy's block format with literals only."""
    n, out = len(data) if claim is None else claim, b""
    while True:
        out += bytes([n & 0x7F | (0x80 if n > 0x7F else 0)])
        n >>= 7
        if not n:
            break
    for i in range(0, len(data), 60):
        part = data[i:i + 60]
        out += bytes([(len(part) - 1) << 2]) + part
    return out


def zstd(data, claim=None):
    """A zstd frame of one raw block, or of one run-length block when `data` is (byte, count)."""
    rle = isinstance(data, tuple)
    n = data[1] if rle else len(data)
    out = bytes.fromhex("28b52ffd") + b"\xa0" + struct.pack("<I", n if claim is None else claim)
    if not rle:
        return out + ((n << 3) | 1).to_bytes(3, "little") + data
    while n > 0:
        k = min(n, 1 << 17)
        n -= k
        out += ((k << 3) | 2 | (1 if n <= 0 else 0)).to_bytes(3, "little") + bytes([data[0]])
    return out


def compressed(cid, payload, size, orig=wire.OP_MSG):
    b = struct.pack("<iiB", orig, size, cid) + payload
    return wire.header(16 + len(b), wire.OP_COMPRESSED) + b


# ------------------------------------------------------------ the messages


def frames(rnd):
    good = msg(body0(doc(el(16, "ping", i32(1)), DBELEM)))
    for n in [*range(-3, 16), 16, 20, -2**31, 2**31 - 1, 48000001, 50_000_000, 1 << 30]:
        yield i32(n) + good[4:]
    for n in range(17, len(good) - 1, 2):
        yield i32(n) + good[4:]
    for op in [0, 1, 2, 1000, 2001, 2002, 2003, 2005, 2006, 2007, 2010, 2011, 2014, 9999, -1, 2**31 - 1]:
        yield msg(body0(doc(el(16, "ping", i32(1)), DBELEM)), opcode=op)
    yield b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(64))
    yield b"\0" * 16
    yield b"\xff" * 64
    for _ in range(40):
        n = rnd.randrange(16, 300)
        yield i32(n) + rnd.randbytes(n - 4)


def short(rnd):
    """Promises more than comes; judged after our half of the connection is closed."""
    good = msg(body0(in_insert(doc(el(16, "a", i32(1))))))
    for n in [0, 1, 3, 4, 8, 15, 16, 17, 20, 21, 25, 40, len(good) - 1]:
        yield good[:n]
    for n in [100, 1000, 1 << 20, 48_000_000]:
        yield wire.header(n, wire.OP_MSG) + b"\0\0\0\0\0"
        yield wire.header(n, wire.OP_COMPRESSED) + b"\xdd\x07\0\0\0"
        yield wire.header(n, wire.OP_QUERY) + b"\0\0\0\0a"


def op_msg(rnd):
    ping = doc(el(16, "ping", i32(1)), DBELEM)
    for bit in list(range(2, 16)):
        yield msg(body0(ping), flags=1 << bit)
    yield msg(body0(ping) + b"\0\0\0\0", flags=1)
    yield msg(body0(ping) + b"\xff\xff\xff\xff", flags=1)
    yield msg(body0(ping), flags=1)
    yield msg(b"")
    yield msg(b"\0")
    for kind in [2, 3, 4, 127, 255]:
        yield msg(bytes([kind]) + ping)
        yield msg(body0(ping) + bytes([kind]) + ping)
    yield msg(body0(ping) + body0(ping))
    yield msg(body0(ping) + b"\0")
    yield msg(body0(ping) + b"xx")
    yield msg(b"\1" + i32(4 + 2 + 5) + b"x\0" + doc())
    d = doc(el(16, "a", i32(1)))
    full = 4 + 10 + len(d)
    for n in [0, 1, 3, 4, 5, 8, full - 1, full + 1, full + 100, -1, -2**31, 2**31 - 1, 50_000_000]:
        yield msg(in_sequence(d, size=n))
    yield msg(in_sequence(d, name=b"documents"))
    yield msg(in_sequence(d, name=b""))
    yield msg(in_sequence(d, name=b"\xff\xfe\0"))
    yield msg(in_sequence(d[:-1]))
    yield msg(in_sequence(d + b"\5"))
    yield msg(in_sequence(d + d[:-3]))
    yield msg(in_sequence(d) + b"\1" + i32(4 + 10 + len(d)) + b"documents\0" + d)
    yield msg(body0(in_insert(d)) + b"\1" + i32(4 + 10 + len(d)) + b"documents\0" + d)


def bad_elements():
    yield "len+1", el(2, "s", i32(5) + b"abc\0")
    yield "len-1", el(2, "s", i32(3) + b"abc\0")
    for n in [0, -1, -2**31, 2**31 - 1, 1000, 17_000_000]:
        yield f"strlen {n}", el(2, "s", i32(n) + b"abc\0")
        yield f"codelen {n}", el(13, "s", i32(n) + b"abc\0")
        yield f"symlen {n}", el(14, "s", i32(n) + b"abc\0")
        yield f"binlen {n}", el(5, "b", i32(n) + b"\0" + b"abc") if n else el(5, "b", i32(-5) + b"\0abc")
        yield f"doclen {n}", el(3, "d", i32(n) + b"\x10a\0\1\0\0\0\0")
        yield f"arrlen {n}", el(4, "d", i32(n) + b"\x100\0\1\0\0\0\0")
        yield f"cwslen {n}", el(15, "c", i32(n) + st("x") + doc())
        yield f"dbplen {n}", el(12, "p", i32(n) + b"abc\0" + bytes(12))
    yield "no NUL", el(2, "s", i32(3) + b"abc")
    yield "name open", b"\x10abc"
    yield "bool 2", el(8, "b", b"\2")
    yield "bool ff", el(8, "b", b"\xff")
    yield "doc short", el(3, "d", i32(4) + b"\0")
    yield "doc no end", el(3, "d", i32(12) + b"\x10a\0\1\0\0\0\1")
    yield "cws mismatch", el(15, "c", i32(30) + st("x") + doc())
    yield "cws scope", el(15, "c", i32(4 + 6 + 5) + st("x") + i32(50) + b"\0")
    yield "regex open", el(11, "r", b"abc")
    yield "regex half", el(11, "r", b"abc\0i")
    yield "int short", el(16, "i", b"\1\2")
    yield "date short", el(9, "i", b"\1\2\3\4")
    yield "dec short", el(19, "i", b"\1\2\3\4")
    yield "oid short", el(7, "i", b"\1\2\3\4")
    for t in [0x14, 0x15, 0x20, 0x40, 0x7E, 0x80, 0x90, 0xC0, 0xEE, 0xFE]:
        yield f"type {t:#x}", el(t, "x", b"\0" * 8)


def bson(rnd):
    for _, e in bad_elements():
        yield msg(body0(in_find(e)))
        yield msg(body0(in_insert(doc(el(16, "_id", i32(1)), e))))
        yield msg(in_sequence(doc(el(16, "_id", i32(1)), e)))
        yield msg(body0(doc(el(16, "ping", i32(1)), e, DBELEM)))
    d = in_find(el(16, "a", i32(1)))
    for n in [0, 4, 5, len(d) - 1, len(d) + 1, len(d) + 1000, -1, 2**31 - 1, 20_000_000]:
        yield msg(body0(i32(n) + d[4:]))
    yield msg(body0(d[:-1] + b"\1"))


def deep(rnd):
    for depth in [250, 1000, 10_000, 100_000]:
        for t, n in [(3, "a"), (4, "0")]:
            x = doc()
            head = b"".join(bytes([t]) + n.encode() + b"\0" for _ in range(1))
            # built from the inside out without recursion; lengths grow outward
            parts, size = [], len(x)
            for _ in range(depth):
                size += len(head) + 5
                parts.append(i32(size) + head)
            x = b"".join(reversed(parts)) + x + b"\0" * depth
            yield msg(body0(in_insert(x)))
            yield msg(body0(doc(el(2, "find", st("c")), el(3, "filter", x if t == 3 else doc(el(4, "a", x))), DBELEM)))
            yield msg(in_sequence(x))
    for op in ["$and", "$or", "$nor"]:
        q = {"a": 1}
        for _ in range(95):
            q = {op: [q]}
        x = ejson.encode(q)
        for _ in range(150):
            x = doc(el(4, op, doc(el(3, "0", x))))
        yield msg(body0(doc(el(2, "find", st("c")), el(3, "filter", x), DBELEM)))


BAD_UTF8 = [b"\xff", b"\xfe\xfe", b"\x80", b"a\xc3", b"\xc0\x80", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"ok\xe2\x82", b"\xc3\x28"]


def utf8(rnd):
    """Text in documents may be any bytes (crates/server/tests/not_utf8.rs says what becomes of it); paths and patterns are refused."""
    for u in BAD_UTF8:
        yield msg(body0(in_insert(doc(el(2, "s", st(u))))))
        yield msg(body0(in_insert(doc(el(16, u, i32(1))))))
        yield msg(in_sequence(doc(el(2, "s", st(u)))))
        yield msg(body0(in_find(el(2, "s", st(u)))))
        yield msg(body0(in_find(el(16, u, i32(1)))))
        yield msg(body0(in_find(el(11, "r", u + b"\0\0"))))


def utf8_names(rnd):
    """Text that names a command, a database or a collection."""
    for u in BAD_UTF8:
        yield msg(body0(doc(el(16, u, i32(1)), DBELEM)))
        yield msg(body0(doc(el(2, "find", st(b"c" + u)), el(2, "$db", st(b"x\0" + u)))))


def legacy(rnd):
    q = doc(el(16, "isMaster", i32(1)))

    def oq(flags, ns, skip, ret, d):
        b = i32(flags) + ns + i32(skip) + i32(ret) + d
        return wire.header(16 + len(b), wire.OP_QUERY) + b
    yield oq(0, b"admin.$cmd", 0, -1, b"")
    yield oq(0, b"admin.$cmd\0", 0, -1, b"")
    yield oq(0, b"admin.$cmd\0", 0, -1, q[:-1])
    yield oq(0, b"admin.$cmd\0", 0, -1, i32(100) + q[4:])
    yield oq(0, b"admin.$cmd\0", 0, -1, i32(2**31 - 1) + q[4:])
    yield oq(0, b"admin.$cmd\0", 0, -1, i32(-1) + q[4:])
    yield oq(0, b"x" * 50, 0, -1, q)
    yield oq(0, b"x.y\0", 0, 5, doc(el(16, "a", i32(1))))
    for extreme in (-2**31, 2**31 - 1):
        yield oq(0, b"admin.$cmd\0", 0, extreme, q)
    yield oq(0, b"\0", 0, -1, q)
    yield oq(0, b"\xff\xff.$cmd\0", 0, -1, doc(el(16, "find", i32(1))))
    yield oq(0, b"admin.$cmd\0", 0, -1, doc(el(2, "insert", st("c"))))
    for _, e in bad_elements():
        yield oq(0, b"admin.$cmd\0", 0, -1, doc(el(16, "isMaster", i32(1)), e))
    for op, b in [(2004, b""), (2004, b"\0\0\0\0"), (2005, i32(0) + b"x.y\0" + i32(1) + struct.pack("<q", 5)), (2002, i32(0) + b"x.y\0" + doc()), (2007, i32(0) + i32(1)), (2001, i32(0) + b"x.y\0" + i32(0) + doc() + doc()), (2006, i32(0) + b"x.y\0" + i32(0) + doc()), (1, bytes(20))]:
        yield wire.header(16 + len(b), op) + b


def compression(rnd):
    inner = struct.pack("<I", 0) + body0(doc(el(16, "ping", i32(1)), DBELEM))
    n = len(inner)
    zl = zlib.compress(inner)
    for cid in [4, 5, 6, 100, 255]:
        yield compressed(cid, inner, n)
    for good, cid in [(inner, 0), (snappy(inner), 1), (zl, 2), (zstd(inner), 3)]:
        for claim in [0, 1, n - 1, n + 1, n * 2, 16, -1, -2**31, 2**31 - 1, 48_000_001, 60_000_000]:
            yield compressed(cid, good, claim)
        for orig in [2012, 0, 9999, -1]:
            yield compressed(cid, good, n, orig)
        for cut in [0, 1, 2, len(good) // 2, len(good) - 1]:
            yield compressed(cid, good[:cut], n)
        for _ in range(12):
            b = bytearray(good)
            for _ in range(3):
                b[rnd.randrange(min(len(b), 12))] ^= rnd.randrange(1, 256)
            if bytes(b) != good:
                yield compressed(cid, rnd.randbytes(1) + bytes(b)[1:] if rnd.random() < .3 else bytes(b), n + 1)
    for total in [1 << 20, 49_000_000]:
        bomb = zlib.compress(bytes(total), 9)
        for claim in [10, n, 1000, total + 1]:
            yield compressed(2, bomb, claim)
        z = zstd((0, total))
        for claim in [10, n, 1000, total + 1]:
            yield compressed(3, z, claim)
            yield compressed(3, zstd((0, total), claim), claim)
    for claim in [2**31 - 1, 48_000_000, 1 << 25]:
        yield compressed(1, snappy(inner, claim), claim)
        yield compressed(1, b"\xff\xff\xff\xff\x0f", claim)
        yield compressed(1, b"\xff" * 20, claim)
    for b in [b"", b"\1", b"\1\2\3\4", bytes(8), bytes(9)]:
        yield wire.header(16 + len(b), wire.OP_COMPRESSED) + b
    # copies that reach before the start of the output, and overlong ones
    yield compressed(1, b"\x10" + b"\x01\x01" * 4, 16)
    yield compressed(1, b"\x10" + b"\xfe\xff\xff" * 4, 16)
    yield compressed(1, b"\x10" + b"\xfc\xff\xff\xff\xff" + b"x" * 8, 16)


def commands(rnd):
    """Well-formed BSON, ill-formed commands."""
    enc = ejson.encode
    big = "x" * (16 * 1024 * 1024)
    for c in [{}, {"ping": 1}, {"ping": 1, "$db": 5}, {"ping": 1, "$db": None}, {"ping": 1, "$db": ""}, {"$db": "x"}, {"find": "c", "$db": "x" * 64}, {"find": "c", "$db": "a.b"}, {"find": "c\0d", "$db": DB}, {"find": "", "$db": DB}, {"find": 5, "$db": DB}, {"find": {"a": 1}, "$db": DB}, {"insert": "c", "documents": [5], "$db": DB},
              {"insert": "c", "documents": [], "$db": DB}, {"insert": "c", "documents": [{"_id": 1, "x": big}], "$db": DB} , {"insert": "c", "$db": DB}, {"insert": "c", "documents": "x", "$db": DB}, {"update": "c", "updates": [{"q": 1, "u": 2}], "$db": DB}, {"aggregate": "c", "pipeline": [1], "cursor": {}, "$db": DB}, {"aggregate": "c", "pipeline": [{"$nope": 1}], "cursor": {}, "$db": DB}, {"nope": 1, "$db": DB}, {"find": "c", "filter": {"$nope": 1}, "$db": DB}, {"find": "c", "nope": 1, "$db": DB},
              {"find": "c", "filter": {"a": {"$in": 5}}, "$db": DB}, {"find": "c", "filter": {"a": {"$regex": "("}}, "$db": DB}, {"find": "c", "filter": {"a": {"$regex": "(" * 5000 + ")" * 5000}}, "$db": DB}, {"find": "c", "limit": "x", "$db": DB}, {"find": "c", "sort": {("k%d" % i): 1 for i in range(100)}, "$db": DB}, {"getMore": L(2**63 - 1), "collection": "c", "$db": DB}, {"createIndexes": "c", "indexes": [{"key": {("k%d" % i): 1 for i in range(64)}, "name": "x"}], "$db": DB}, {"create": "x" * 300, "$db": DB},
              {"find": "c", "lsid": {"id": 5}, "$db": DB}, {"find": "c", "maxTimeMS": -1, "$db": DB}, {"find": "c", "readConcern": {"level": 5}, "$db": DB}, {"insert": "c", "documents": [{"a": 1}], "writeConcern": {"w": {}}, "$db": DB}, {"find": "c", "collation": {"locale": "zz"}, "$db": DB}, {"find": "c", "$readPreference": {"mode": 5}, "$db": DB}, {"hello": 1, "topologyVersion": {"x": 1}, "maxAwaitTimeMS": 1, "$db": "admin"}, {"hello": 1, "maxAwaitTimeMS": 1, "$db": "admin"}]:
        b = {k: v for k, v in c.items() if not (isinstance(v, str) and "\0" in v)}
        yield msg(body0(enc(c if b == c else c)))
    yield msg(body0(doc(el(2, "insert", st("c")), DBELEM)) + b"\1" + i32(4 + 10 + 16_900_000) + b"documents\0" + i32(16_900_000) + b"\x02s\0" + i32(16_900_000 - 4 - 3 - 4 - 1) + b"x" * (16_900_000 - 4 - 3 - 4 - 2) + b"\0\0")


def damage(rnd):
    """Random damage to good messages; whatever does not break them may be answered."""
    goods = [ejson.encode(d) for d in [
        {"insert": "c", "documents": [{"_id": 5, "a": [1, 2.5, "x", {"b": None}], "c": {"$binary": {"base64": "AAAA", "subType": "00"}}}], "$db": DB},
        {"find": "c", "filter": {"a": {"$gt": 5, "$in": [1, "x"]}, "$or": [{"b": 1}, {"c": {"$exists": True}}]}, "sort": {"a": -1}, "limit": 5, "$db": DB},
        {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a.b": 5}, "$push": {"x": {"$each": [1, 2], "$slice": -3}}}, "upsert": True}], "$db": DB},
        {"aggregate": "c", "pipeline": [{"$match": {"a": 1}}, {"$group": {"_id": "$a", "n": {"$sum": 1}}}], "cursor": {}, "$db": DB},
        {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}], "$db": DB},
        {"insert": "c", "documents": [{"_id": 6, "d": D("1.5"), "e": L(5), "f": True}], "$db": DB}]]
    for _ in range(500):
        b = bytearray(rnd.choice(goods))
        for _ in range(rnd.choice([1, 1, 2, 5, 20])):
            k = rnd.randrange(5)
            p = rnd.randrange(len(b))
            if k < 3:
                b[p] = rnd.choice([0, 1, 0xFF, 0x7F, 0x80, rnd.randrange(256)])
            elif k == 3:
                del b[p:p + rnd.randrange(1, 9)]
            else:
                b[p:p] = rnd.randbytes(rnd.randrange(1, 9))
            if not b:
                b = bytearray(b"\0")
        if rnd.random() < .5 and len(b) > 4:
            b[:4] = i32(len(b))
        yield msg(body0(bytes(b)))


# class: (generator, strict)
CLASSES = {"frames": (frames, True), "short": (short, True), "op_msg": (op_msg, True), "bson": (bson, True), "deep": (deep, True), "utf8": (utf8, False), "utf8_names": (utf8_names, True), "legacy": (legacy, True),
           "compression": (compression, True), "commands": (commands, True), "damage": (damage, False)}


# ------------------------------------------------------------ judging


def ok_of(op, b):
    try:
        d = ejson.decode(b, 5 if op == wire.OP_MSG else 20)
    except Exception:  # noqa: BLE001
        return None
    return d.get("ok") == 1 and not d.get("writeErrors")


def attack(uri, data, half_close):
    """('error' | 'accepted' | 'closed' | 'silent' | 'refused', seconds)"""
    try:
        c = wire.Conn(uri, timeout=5)
    except OSError:
        return "refused", 0.0
    t0 = time.monotonic()
    try:
        try:
            c.send(data)
            # sending a big message takes what it takes; the clock runs from its end
            t0 = time.monotonic()
            if half_close:
                c.sock.shutdown(socket.SHUT_WR)
            c.sock.settimeout(LIMIT_S + 2)
            op, _, _, b = c.recv()
        except (ConnectionError, BrokenPipeError):
            return "closed", time.monotonic() - t0
        except (socket.timeout, TimeoutError):
            return "silent", time.monotonic() - t0
        return ("accepted" if ok_of(op, b) else "error"), time.monotonic() - t0
    finally:
        c.close()


def alive(uri):
    try:
        c = wire.Conn(uri, timeout=3)
        r = c.command("admin", {"ping": 1})
        c.close()
        return r.get("ok") == 1
    except (OSError, ValueError):
        return False


def rss(pid):
    for ln in open(f"/proc/{pid}/status"):
        if ln.startswith("VmRSS"):
            return int(ln.split()[1]) * 1024
    return 0


def lies(uri, pid, count=500):
    """Memory for connections that promise 48 MB and send 5 bytes, beside the same number of idle ones."""
    def grow(data):
        before = rss(pid)
        conns = []
        for _ in range(count):
            c = wire.Conn(uri, timeout=5)
            if data:
                c.send(data)
            conns.append(c)
        time.sleep(0.7)
        g = rss(pid) - before
        for c in conns:
            c.close()
        time.sleep(0.5)
        return g / count
    grow(b"")  # warm: threads, pools
    idle = grow(b"")
    out = []
    for name, op in [("OP_MSG", wire.OP_MSG), ("OP_COMPRESSED", wire.OP_COMPRESSED), ("OP_QUERY", wire.OP_QUERY)]:
        out.append((name, idle, grow(wire.header(48_000_000, op) + b"\0\0\0\0\0")))
    return out


def main():
    ap = argparse.ArgumentParser(usage=__doc__)
    ap.add_argument("uri")
    ap.add_argument("--pid", type=int)
    ap.add_argument("--only")
    ap.add_argument("--reference", action="store_true")
    ap.add_argument("-v", action="store_true")
    a = ap.parse_args()
    if not alive(a.uri):
        print("hostile: no server there", file=sys.stderr)
        return 2
    c = wire.Conn(a.uri)
    c.command(DB, {"insert": "c", "documents": [{"_id": i, "a": i} for i in range(10)]})
    start = rss(a.pid) if a.pid else 0
    passed = failed = 0
    print(f"{'class':12} messages  error  closed  accepted  failed  slowest")
    for name, (fn, strict) in CLASSES.items():
        if a.only and name != a.only:
            continue
        n, slow, down = collections.Counter(), 0.0, False
        for i, data in enumerate(fn(random.Random("hostile/" + name))):
            what, secs = attack(a.uri, data, name == "short" or struct.unpack("<i", data[:4])[0] > len(data) if len(data) >= 4 else True)
            bad = what in ("silent", "refused") or secs > LIMIT_S or (what == "accepted" and strict)
            if what == "accepted" and a.reference:
                bad = False
            n[what] += 1
            n["failed"] += bad
            slow = max(slow, secs)
            if bad and (a.v or n["failed"] <= 3):
                print(f"  {name} #{i}: {what} after {secs:.2f} s: {data[:90].hex()}{'...' if len(data) > 90 else ''}")
            if what == "refused" or (i % 40 == 0 and not alive(a.uri)):
                down = True
                break
        tot = n["error"] + n["closed"] + n["accepted"] + n["silent"] + n["refused"]
        passed += tot - n["failed"]
        failed += n["failed"]
        print(f"{name:12} {tot:8} {n['error']:6} {n['closed']:7} {n['accepted']:9} {n['failed']:7}  {slow * 1000:.0f} ms", flush=True)
        if down or not alive(a.uri):
            print(f"  the server no longer answers after class {name}")
            failed += 1
            break
    else:
        if a.pid:
            # What is free goes back to the system after some seconds, while other work goes on; how much at once differs.
            at_once = grew = rss(a.pid) - start
            until = time.time() + SETTLES_WITHIN
            while grew >= STAYS_AT_MOST and time.time() < until:
                time.sleep(0.5)
                for _ in range(8):
                    alive(a.uri)
                grew = rss(a.pid) - start
            good = grew < STAYS_AT_MOST or a.reference
            passed, failed = passed + good, failed + (not good)
            print(f"memory over the run: {at_once / 1048576:+.1f} MiB, then {grew / 1048576:+.1f} MiB {'' if good else 'TOO MUCH'}")
            for name, idle, g in lies(a.uri, a.pid):
                good = g < 65536
                passed, failed = passed + good, failed + (not good)
                print(f"5 bytes behind a 48 MB promise, {name:13}: {g / 1024:.1f} KiB a connection (idle: {idle / 1024:.1f}) {'' if good else 'TOO MUCH'}")
        if not alive(a.uri):
            failed += 1
    try:
        c.command(DB, {"dropDatabase": 1})
    except OSError:
        pass
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
