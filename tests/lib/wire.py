"""A small MongoDB wire client over one blocking socket: OP_MSG out, OP_MSG in.

Used by tests that must see exact bytes, or that must run without any driver.
Documents are trees as described in `ejson`.
"""
import base64
import functools
import hashlib
import hmac
import itertools
import os
import re
import socket
import struct

import ejson

OP_REPLY, OP_QUERY, OP_COMPRESSED, OP_MSG = 1, 2004, 2012, 2013
_ids = itertools.count(1)


def host_port(uri):
    m = re.match(r"(?:mongodb://)?(?:[^@/]*@)?\[?([^/?,\]]*?)\]?(?::(\d+))?(?:[/?,]|$)", uri)
    return m.group(1) or "127.0.0.1", int(m.group(2) or 27017)


def header(length, opcode, request_id=None, response_to=0):
    return struct.pack("<iiii", length, next(_ids) if request_id is None else request_id, response_to, opcode)


def op_msg(doc, flags=0, sequences=()):
    """The bytes of one OP_MSG; `sequences` are (name, [documents]) sections of kind 1."""
    b = struct.pack("<I", flags) + b"\0" + ejson.encode(doc)
    for name, docs in sequences:
        s = name.encode() + b"\0" + b"".join(ejson.encode(d) for d in docs)
        b += b"\1" + struct.pack("<i", len(s) + 4) + s
    return header(16 + len(b), OP_MSG) + b


class Closed(ConnectionError):
    """The server closed the connection."""


class Conn:
    def __init__(self, uri, timeout=30.0):
        self.sock = socket.create_connection(host_port(uri), timeout=timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def recv_exact(self, n):
        parts, got = [], 0
        while got < n:
            x = self.sock.recv(min(n - got, 1 << 20))
            if not x:
                raise Closed("closed by the server")
            parts.append(x)
            got += len(x)
        return b"".join(parts)

    def recv(self):
        """One message: (opcode, request id, response to, body bytes)."""
        n, rid, to, op = struct.unpack("<iiii", self.recv_exact(16))
        return op, rid, to, self.recv_exact(n - 16)

    def recv_doc(self):
        op, _, _, b = self.recv()
        if op == OP_MSG:
            return ejson.decode(b, 5)
        if op == OP_REPLY:
            return ejson.decode(b, 20)
        raise ValueError("opcode %d" % op)

    def command(self, db, cmd, sequences=()):
        """The reply as a tree, whatever its `ok`."""
        self.send(op_msg({**cmd, "$db": db}, 0, sequences))
        return self.recv_doc()

    def ok(self, db, cmd, sequences=()):
        r = self.command(db, cmd, sequences)
        if r.get("ok") != 1 or r.get("writeErrors"):
            raise RuntimeError(f"{str(cmd)[:300]} -> {str(r)[:600]}")
        return r

    def log_in(self, user, password, db="admin"):
        """By SCRAM-SHA-256; passwords are plain ASCII."""
        bare = f"n={user},r={base64.b64encode(os.urandom(18)).decode()}"
        start = {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": ejson.BIN(f"n,,{bare}".encode()), "options": {"skipEmptyExchange": True}}
        r = self.ok(db, start)
        challenge = base64.b64decode(r["payload"]["$binary"]["base64"]).decode()
        asked = dict(part.split("=", 1) for part in challenge.split(","))
        salted = salted_password(password, asked["s"], int(asked["i"]))
        key = hmac.digest(salted, b"Client Key", "sha256")
        without_proof = f"c=biws,r={asked['r']}"
        signature = hmac.digest(hashlib.sha256(key).digest(), f"{bare},{challenge},{without_proof}".encode(), "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature))).decode()
        self.ok(db, {"saslContinue": 1, "conversationId": r["conversationId"], "payload": ejson.BIN(f"{without_proof},p={proof}".encode())})

    def cursor(self, db, cmd, batch=None):
        """All documents of a find or aggregate."""
        r = self.ok(db, cmd)["cursor"]
        out = r["firstBatch"]
        name = r["ns"].split(".", 1)[1]
        while int(r["id"]["$numberLong"]):
            more = {"getMore": r["id"], "collection": name}
            if batch:
                more["batchSize"] = batch
            r = self.ok(db, more)["cursor"]
            out += r["nextBatch"]
        return out


@functools.lru_cache(maxsize=64)
def salted_password(password, salt, iterations):
    return hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(salt), iterations)
