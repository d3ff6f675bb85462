#!/usr/bin/env python3
"""pymongo with TLS against servers of its own: modes, certificates, versions, rotation, a set. usage: tls.py BINARY (pandod or mongod; needs openssl)"""
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time

import bson
import pymongo
from pymongo.errors import PyMongoError

binary = os.path.abspath(sys.argv[1])
work = tempfile.mkdtemp(prefix="tls-")
passed, failed, servers = 0, 0, []


def check(name, fn):
    global passed, failed
    try:
        r = fn()
        assert r is None or r, f"gave {r!r}"
        passed += 1
        print("ok    ", name)
    except Exception as e:  # noqa: BLE001
        failed += 1
        print("FAILED", name, type(e).__name__, str(e)[:300])


def openssl(*args):
    subprocess.run(["openssl", *args], cwd=work, check=True, capture_output=True)


def path(name):
    return os.path.join(work, name)


def authority(name):
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "30", "-subj", f"/O=Test/CN={name}")


def certificate(name, subject, extensions, by="ca", password=None, digest="-sha256"):
    with open(path("ext"), "w") as f:
        f.write(extensions)
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", "csr", "-subj", subject)
    openssl("x509", "-req", "-in", "csr", "-CA", f"{by}.pem", "-CAkey", f"{by}.key", "-CAcreateserial", "-out", f"{name}.crt", "-days", "30", "-extfile", "ext", digest)
    key = f"{name}.key"
    if password:
        openssl("pkcs8", "-topk8", "-in", key, "-out", "locked", "-v2", "aes-256-cbc", "-passout", f"pass:{password}")
        key = "locked"
    with open(path(f"{name}.pem"), "w") as f:
        f.write(open(path(f"{name}.crt")).read() + open(path(key)).read())


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, *options, key="server.pem", mode="requireTLS", open_to_all=True):
        self.port = free_port()
        data = tempfile.mkdtemp(dir=work)
        args = [binary, "--port", str(self.port), "--dbpath", data, "--nounixsocket", "--tlsMode", mode, "--tlsCertificateKeyFile", key, "--tlsCAFile", "ca.pem", *options]
        if open_to_all:
            args.append("--tlsAllowConnectionsWithoutCertificates")
        self.log = open(os.path.join(data, "log"), "w+")
        self.process = subprocess.Popen(args, cwd=work, stdout=self.log, stderr=subprocess.STDOUT)
        servers.append(self)
        for _ in range(600):
            if '"Waiting for connections"' in open(self.log.name).read():
                return
            assert self.process.poll() is None, open(self.log.name).read()[-500:]
            time.sleep(0.05)
        raise AssertionError("it does not listen")

    def client(self, host="localhost", **options):
        options = {"tls": True, "tlsCAFile": path("ca.pem"), "serverSelectionTimeoutMS": 3000, "directConnection": True, **options}
        return pymongo.MongoClient(host, self.port, **{k: v for k, v in options.items() if v is not None})

    def ping(self, **options):
        with self.client(**options) as c:
            return c.admin.command("ping")["ok"] == 1

    def refuses(self, text="", **options):
        try:
            self.ping(**options)
        except PyMongoError as e:
            return text in str(e)
        return False

    def with_version(self, version, key=None, minimal=False):
        """Whether a handshake with this version and an exchange succeed."""
        x = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        x.load_verify_locations(path("ca.pem"))
        if minimal or version < ssl.TLSVersion.TLSv1_2:
            x.set_ciphers("ALL:@SECLEVEL=0")
        if key:
            x.load_cert_chain(path(key))
        x.minimum_version = x.maximum_version = version
        body = bson.encode({"hello": 1, "$db": "admin"})
        try:
            with socket.create_connection(("localhost", self.port)) as s, x.wrap_socket(s, server_hostname="localhost") as w:
                w.settimeout(5)
                w.sendall(struct.pack("<iiiiiB", 21 + len(body), 1, 0, 2013, 0, 0) + body)
                return len(w.recv(16)) > 0
        except OSError:
            return False


def rotate(server):
    with server.client() as c:
        before = c.admin.command("serverStatus")["security"]["SSLServerSubjectName"]
        shutil.copy(path("next.pem"), path("rotating.pem"))
        c.admin.command("rotateCertificates")
        return before == "CN=localhost,OU=Servers,O=Test" and c.admin.command("serverStatus")["security"]["SSLServerSubjectName"] == "CN=localhost,OU=Next,O=Test"


def code_of(server, command):
    with server.client() as c:
        try:
            c.admin.command(command)
        except PyMongoError as e:
            return getattr(e, "code", None)


def large(server):
    with server.client() as c:
        docs = [{"_id": i, "x": os.urandom(1 << 20)} for i in range(20)]
        c.t.large.insert_many(docs)
        return list(c.t.large.find().sort("_id")) == docs


def of_a_set():
    members = [Server("--replSet", "rs", open_to_all=False) for _ in range(3)]
    own = {"tlsCertificateKeyFile": path("client.pem")}
    config = {"_id": "rs", "members": [{"_id": i, "host": f"localhost:{m.port}"} for i, m in enumerate(members)]}
    with members[0].client(**own) as c:
        c.admin.command("replSetInitiate", config)
    uri = f"mongodb://localhost:{members[1].port}/?replicaSet=rs&tls=true&tlsCAFile={path('ca.pem')}&tlsCertificateKeyFile={path('client.pem')}"
    with pymongo.MongoClient(uri, serverSelectionTimeoutMS=30000) as c:
        c.get_database("t", write_concern=pymongo.WriteConcern(w=3, wtimeout=30000)).c.insert_one({"_id": 1})
        return len(c.nodes) == 3 and c.t.c.find_one() == {"_id": 1}


authority("ca")
authority("other")
HOSTS = "subjectAltName=DNS:localhost,IP:127.0.0.1\n"
certificate("server", "/O=Test/OU=Servers/CN=localhost", HOSTS)
certificate("next", "/O=Test/OU=Next/CN=localhost", HOSTS)
certificate("elsewhere", "/O=Test/OU=Servers/CN=elsewhere", "subjectAltName=DNS:elsewhere\n")
certificate("client", "/O=Test/OU=Clients/CN=somebody", "extendedKeyUsage=clientAuth\n")
certificate("locked", "/O=Test/OU=Clients/CN=locked", "extendedKeyUsage=clientAuth\n", password="secret")
certificate("weak", "/O=Test/OU=Clients/CN=weak", "extendedKeyUsage=clientAuth\n", digest="-sha1")
certificate("stranger", "/O=Test/OU=Clients/CN=stranger", "extendedKeyUsage=clientAuth\n", by="other")
shutil.copy(path("server.pem"), path("rotating.pem"))
try:
    server = Server()
    check("requireTLS: a client with TLS", server.ping)
    check("... by address", lambda: server.ping(host="127.0.0.1"))
    check("... with a certificate", lambda: server.ping(tlsCertificateKeyFile=path("client.pem")))
    check("... with a certificate whose key has a password", lambda: server.ping(tlsCertificateKeyFile=path("locked.pem"), tlsCertificateKeyFilePassword="secret"))
    check("... that checks nothing", lambda: server.ping(tlsCAFile=None, tlsAllowInvalidCertificates=True))
    check("... is refused with a certificate of a stranger", lambda: server.refuses(tlsCertificateKeyFile=path("stranger.pem")))
    check("... refuses a server that it does not believe", lambda: server.refuses("certificate verify failed", tlsCAFile=path("other.pem")))
    check("... still serves after all that", server.ping)
    check("a client without TLS is refused", lambda: server.refuses(tls=False, tlsCAFile=None))
    check("20 MB there and back", lambda: large(server))
    check("TLS 1.3", lambda: server.with_version(ssl.TLSVersion.TLSv1_3))
    check("TLS 1.2", lambda: server.with_version(ssl.TLSVersion.TLSv1_2))
    check("no TLS 1.1", lambda: not server.with_version(ssl.TLSVersion.TLSv1_1))
    check("no TLS 1.0", lambda: not server.with_version(ssl.TLSVersion.TLSv1))
    check("no certificate signed with SHA-1", lambda: not server.with_version(ssl.TLSVersion.TLSv1_2, "weak.pem", minimal=True))
    check("... where a better one is taken", lambda: server.with_version(ssl.TLSVersion.TLSv1_2, "client.pem", minimal=True))
    check("tlsMode never goes back", lambda: code_of(server, {"setParameter": 1, "tlsMode": "allowTLS"}) == 2)
    strict = Server(open_to_all=False)
    check("a certificate is asked for", lambda: strict.refuses() and strict.ping(tlsCertificateKeyFile=path("client.pem")))
    for mode in ["allowTLS", "preferTLS"]:
        both = Server(mode=mode)
        check(f"{mode}: with TLS and without", lambda: both.ping() and both.ping(tls=False, tlsCAFile=None))
    other = Server(key="elsewhere.pem")
    check("another host's certificate is refused", lambda: other.refuses("Hostname mismatch"))
    check("... unless names do not matter", lambda: other.ping(tlsAllowInvalidHostnames=True))
    newest = Server("--tlsDisabledProtocols", "TLS1_2")
    check("TLS 1.2 turned off", lambda: newest.ping() and not newest.with_version(ssl.TLSVersion.TLSv1_2))
    rotating = Server(key="rotating.pem")
    check("rotateCertificates", lambda: rotate(rotating))
    with open(path("rotating.pem"), "w") as f:
        f.write("garbage")
    check("... keeps the old ones where the new ones are none", lambda: code_of(rotating, {"rotateCertificates": 1}) == 140 and rotating.ping())
    check("three members among themselves", of_a_set)
finally:
    for s in servers:
        s.process.kill()
        s.process.wait()
    shutil.rmtree(work, ignore_errors=True)
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
