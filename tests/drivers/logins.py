#!/usr/bin/env python3
"""The drivers' smoke tests, logged in by each mechanism, with TLS and without.

    logins.py BINARY [--python P] [--node NODE_MODULES] [--mongosh PATH] [--rust PATH] [--dump] [--port P] [-v]

Two sets of one member of BINARY, with a keyfile: one without TLS and one that requires it. Users with credentials of one mechanism and of both, and one that is
a certificate's subject. Each client that is given runs its smoke test (README.md) with each connection string. Needs openssl; --rust is the program
of tests/drivers/rust (`cargo build` there). With --dump also the traffic of mongodump and mongorestore (dump.py).
Ends with `N passed, N failed` (runs).
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
import secured  # noqa: E402
import wire  # noqa: E402

SUBJECT = "CN=ann,OU=Users,O=Test"
USERS = {"sha1": ["SCRAM-SHA-1"], "sha256": ["SCRAM-SHA-256"], "both": None}


class Server:
    def __init__(self, a, port, secrets, home, tls):
        data = home / f"data{port}"
        data.mkdir()
        flags = ["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", secrets.path("member.pem"), "--tlsCAFile", secrets.path("ca.pem"),
                 "--tlsAllowConnectionsWithoutCertificates"] if tls else []
        cmd = [a.binary, "--dbpath", str(data), "--port", str(port), "--bind_ip", "127.0.0.1", "--nounixsocket", "--replSet", "rs",
               "--keyFile", secrets.path("keyfile"), "--logpath", str(data / "log"), *flags]
        self.proc, self.port = subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), port
        self.context = None
        if tls:
            import ssl
            self.context = ssl.create_default_context(cafile=secrets.path("ca.pem"))
        conn = secured.listening(self.connect, self.proc, data / "log")
        conn.ok("admin", {"replSetInitiate": {"_id": "rs", "members": [{"_id": 0, "host": f"127.0.0.1:{port}"}]}})
        while not conn.ok("admin", {"hello": 1}).get("isWritablePrimary"):
            time.sleep(.05)
        conn.ok("admin", {"createUser": "boss", "pwd": "x", "roles": ["root"]})
        conn.log_in("boss", "x")
        for name, mechanisms in USERS.items():
            conn.ok("admin", {"createUser": name, "pwd": f"p@ss/{name}", "roles": ["root"], **({"mechanisms": mechanisms} if mechanisms else {})})
        conn.ok("$external", {"createUser": SUBJECT, "roles": [{"role": "root", "db": "admin"}]})

    def connect(self):
        conn = wire.Conn(f"127.0.0.1:{self.port}", timeout=20)
        if self.context:
            conn.sock = self.context.wrap_socket(conn.sock, server_hostname="127.0.0.1")
        return conn


def strings(plain, encrypted, secrets):
    """(what it is, connection string)"""
    for name, server in ("plain", plain), ("TLS", encrypted):
        tls = f"&tls=true&tlsCAFile={secrets.path('ca.pem')}" if server is encrypted else ""
        for user in USERS:
            mechanisms = [None, *(USERS[user] or ["SCRAM-SHA-1", "SCRAM-SHA-256"])]
            for mechanism in mechanisms:
                wanted = f"&authMechanism={mechanism}" if mechanism else ""
                yield (f"{name}, {user}, {mechanism or 'negotiated'}",
                       f"mongodb://{user}:p%40ss%2F{user}@127.0.0.1:{server.port}/?replicaSet=rs&authSource=admin{wanted}{tls}")
    yield ("TLS, MONGODB-X509", f"mongodb://127.0.0.1:{encrypted.port}/?replicaSet=rs&authSource=$external&authMechanism=MONGODB-X509"
           f"&tls=true&tlsCAFile={secrets.path('ca.pem')}&tlsCertificateKeyFile={secrets.path('ann.pem')}")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("binary")
    ap.add_argument("--python", default=sys.executable)
    ap.add_argument("--node")
    ap.add_argument("--mongosh")
    ap.add_argument("--rust")
    ap.add_argument("--dump", action="store_true")
    ap.add_argument("--port", type=int, default=28780)
    ap.add_argument("-v", action="store_true")
    a = ap.parse_args()
    a.binary = os.path.abspath(a.binary)
    clients = {"pymongo": lambda uri: [a.python, str(HERE / "smoke.py"), uri]}
    if a.node:
        clients["node"] = lambda uri: ["node", str(HERE / "smoke.mjs"), uri]
    if a.mongosh:
        clients["mongosh"] = lambda uri: [a.mongosh, "--quiet", uri, "--file", str(HERE / "smoke.mongosh.js")]
    if a.rust:
        clients["rust"] = lambda uri: [os.path.abspath(a.rust), uri]
    if a.dump:
        clients["dump"] = lambda uri: [a.python, str(HERE / "dump.py"), uri, uri, "--seconds", "0.2"]
    env = {**os.environ, **({"NODE_MODULES": os.path.abspath(a.node)} if a.node else {})}
    home = pathlib.Path(tempfile.mkdtemp(prefix="logins-"))
    secrets, servers, passed, failed = secured.Secured("x509", home / "secrets"), [], 0, 0
    secrets.new_certificate("ca", name="ann", subject="/O=Test/OU=Users/CN=ann")
    try:
        servers = [Server(a, a.port + i, secrets, home, tls) for i, tls in enumerate((False, True))]
        for what, uri in strings(*servers, secrets):
            for client, command in clients.items():
                r = subprocess.run(command(uri), env=env, capture_output=True, text=True, timeout=300)
                last = (r.stdout.strip().splitlines() or ["nothing"])[-1]
                good = r.returncode == 0 and last.endswith(" 0 failed")
                passed, failed = passed + good, failed + (not good)
                if a.v or not good:
                    print(f"{'ok    ' if good else 'FAILED'} {client}, {what}: {last}", flush=True)
                if not good:
                    print("\n".join([x for x in r.stdout.splitlines() if "FAILED" in x][:5] + r.stderr.splitlines()[-5:])[:800])
    finally:
        for s in servers:
            s.proc.kill()
        shutil.rmtree(home, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 0 if not failed else 1


if __name__ == "__main__":
    sys.exit(main())
