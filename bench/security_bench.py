#!/usr/bin/env python3
"""What logins and TLS cost the server: CPU per connection and per operation, beside a server without, and beside a mongod.

    security_bench.py PANDOD [MONGOD] [--rounds N] [--ops N] [--connections N] [--json FILE] [--md FILE]

Of each binary three standalone servers are started: open to all, with logins (--auth), and with TLS (requireTLS, 1.3). One client, raw sockets, so
that what is counted is the server's: the phases of all servers take turns, `--rounds` times over, and the table gives medians.

  connect      a connection, its first hello, and its end
  login        the same, and a login by SCRAM-SHA-256 (15,000 rounds, which the client works out once)
  ping, find   one small command; one document of 1 KiB by its _id
  update       $inc by _id

Needs openssl. Standard library only.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import ssl
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "lib"))
import secured  # noqa: E402
import wire  # noqa: E402
from harness import process_cpu  # noqa: E402

DOCS = 2000
KINDS = ["open", "logins", "TLS"]


class Server:
    def __init__(self, name, binary, kind, port, home, secrets):
        self.name, self.kind, self.port, self.results = name, kind, port, {}
        data = home / f"{name}-{kind}"
        data.mkdir()
        flags = {"open": [], "logins": ["--auth"],
                 "TLS": ["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", secrets.path("member.pem"), "--tlsCAFile", secrets.path("ca.pem"),
                         "--tlsAllowConnectionsWithoutCertificates"]}[kind]
        cmd = [binary, "--dbpath", str(data), "--port", str(port), "--bind_ip", "127.0.0.1", "--nounixsocket", "--quiet", "--logpath", str(data / "log"), *flags]
        self.proc = subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.tls = ssl.create_default_context(cafile=secrets.path("ca.pem")) if kind == "TLS" else None
        conn = secured.listening(self.connect, self.proc, data / "log")
        if kind == "logins":
            conn.ok("admin", {"createUser": secured.USER, "pwd": secured.PASSWORD, "roles": ["root"]})
            conn.log_in(secured.USER, secured.PASSWORD)
        noise = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=900))
        conn.ok("bench", {"insert": "docs", "documents": [{"_id": i, "n": 0, "filler": noise} for i in range(DOCS)]})
        self.conn = conn

    def connect(self):
        conn = wire.Conn(f"127.0.0.1:{self.port}", timeout=30)
        if self.tls:
            conn.sock = self.tls.wrap_socket(conn.sock, server_hostname="127.0.0.1")
        conn.ok("admin", {"hello": 1})
        return conn

    def measure(self, what, count, call):
        cpu = process_cpu(self.proc.pid)
        for i in range(count):
            call(i)
        cpu = process_cpu(self.proc.pid) - cpu
        self.results.setdefault(what, []).append(cpu / count * 1e6)


def turn(server, a):
    def connect(_):
        server.connect().close()

    def login(_):
        conn = server.connect()
        conn.log_in(secured.USER, secured.PASSWORD)
        conn.close()
    conn = server.conn
    server.measure("connect", a.connections, connect)
    if server.kind == "logins":
        server.measure("login", a.connections, login)
    server.measure("ping", a.ops, lambda _: conn.command("admin", {"ping": 1}))
    server.measure("find", a.ops, lambda i: conn.command("bench", {"find": "docs", "filter": {"_id": i * 7 % DOCS}, "limit": 1}))
    server.measure("update", a.ops, lambda i: conn.command("bench", {"update": "docs", "updates": [{"q": {"_id": i * 7 % DOCS}, "u": {"$inc": {"n": 1}}}]}))


def table(servers):
    names = list(dict.fromkeys(s.name for s in servers))
    of = {(s.name, s.kind): {w: statistics.median(v) for w, v in s.results.items()} for s in servers}
    head = ["phase"] + [f"{n}, {k}" for n in names for k in KINDS] + [f"{n}: {k} / open" for n in names for k in KINDS[1:]]
    if len(names) == 2:
        head += [f"{k}: {names[0]} / {names[1]}" for k in KINDS]
    rows = [head, ["---"] * len(head)]
    for what in ("connect", "login", "ping", "find", "update"):
        def value(n, k):
            return of[n, k].get(what)
        def ratio(x, y):
            return f"**{x / y:.2f}**" if x and y else ""
        row = [what] + [f"{value(n, k):,.1f}" if value(n, k) else "" for n in names for k in KINDS]
        row += [ratio(value(n, k), value(n, "open")) for n in names for k in KINDS[1:]]
        if len(names) == 2:
            row += [ratio(value(names[0], k), value(names[1], k)) for k in KINDS]
        rows.append(row)
    return "\n".join("| " + " | ".join(r) + " |" for r in rows)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("binaries", nargs="+", metavar="BINARY")
    ap.add_argument("--rounds", type=int, default=7)
    ap.add_argument("--ops", type=int, default=2000)
    ap.add_argument("--connections", type=int, default=150)
    ap.add_argument("--port", type=int, default=28900)
    ap.add_argument("--json")
    ap.add_argument("--md")
    a = ap.parse_args()
    home = pathlib.Path(tempfile.mkdtemp(prefix="security-bench-"))
    servers = []
    try:
        secrets = secured.Secured("x509", home / "secrets")
        for name, binary in zip(["PandoDB", "mongod"], a.binaries):
            for kind in KINDS:
                servers.append(Server(name, os.path.abspath(binary), kind, a.port + len(servers), home, secrets))
        for n in range(a.rounds + 1):
            for server in servers if n % 2 else reversed(servers):
                turn(server, a)
            if n == 0:  # for warming up
                for server in servers:
                    server.results.clear()
        text = table(servers)
        print(f"CPU of the server, microseconds\n\n{text}")
        if a.md:
            pathlib.Path(a.md).write_text(text + "\n")
        if a.json:
            pathlib.Path(a.json).write_text(json.dumps([{"name": s.name, "kind": s.kind, "us": s.results} for s in servers]))
    finally:
        for server in servers:
            server.proc.kill()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
