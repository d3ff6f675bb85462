"""How the members of a test's set log in to each other, and the test to them: files and flags. Needs openssl for certificates."""
import base64
import os
import subprocess
import time

KINDS = ["none", "keyfile", "x509"]
USER, PASSWORD = "root", "of the test"


class Secured:
    """`none`: nobody logs in. `keyfile` and `x509`: members do by these, and the test's connections as `root`, without TLS."""

    def __init__(self, kind, home):
        self.kind, self.home = kind, str(home)
        if kind == "none":
            return
        os.makedirs(self.home, exist_ok=True)
        self.write_keys([self.new_key()])
        if kind == "x509":
            self.new_authority("ca")
            self.new_certificate("ca")

    def path(self, name):
        return os.path.join(self.home, name)

    def flags(self):
        keyfile, tls = ["--keyFile", self.path("keyfile")], []
        if self.kind == "none":
            return []
        if self.kind == "x509":
            tls = ["--tlsMode", "preferTLS", "--tlsCertificateKeyFile", self.path("member.pem"), "--tlsCAFile", self.path("authorities.pem"),
                   "--tlsAllowConnectionsWithoutCertificates"]
            keyfile = ["--clusterAuthMode", "x509"]
        return keyfile + tls

    @property
    def asks_for_logins(self):
        return self.kind != "none"

    def create_user(self, conn):
        """By the localhost exception."""
        conn.ok("admin", {"createUser": USER, "pwd": PASSWORD, "roles": ["root"], "writeConcern": {"w": 3, "wtimeout": 30000}})

    def log_in(self, conn):
        if self.asks_for_logins:
            conn.log_in(USER, PASSWORD)
        return conn

    @staticmethod
    def new_key():
        return base64.b64encode(os.urandom(48)).decode()

    def write_keys(self, keys):
        self.keys = keys
        with open(self.path("new"), "w") as f:
            f.write("".join(f"- {key}\n" for key in keys))
        os.chmod(self.path("new"), 0o600)
        os.replace(self.path("new"), self.path("keyfile"))

    def openssl(self, *args):
        subprocess.run(["openssl", *args], cwd=self.home, check=True, capture_output=True)

    def new_authority(self, name):
        """Trusted beside those that are trusted already."""
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "30", "-subj", f"/O=Test/CN={name}")
        with open(self.path("authorities.pem"), "a") as all_of_them, open(self.path(f"{name}.pem")) as one:
            all_of_them.write(one.read())

    def trust_only(self, name):
        with open(self.path(f"{name}.pem")) as one, open(self.path("authorities.pem"), "w") as f:
            f.write(one.read())

    def new_certificate(self, by, name="member", subject="/O=Test/OU=Members/CN=member"):
        """Members have one together: they are told apart by nothing else than their addresses."""
        with open(self.path("extensions"), "w") as f:
            f.write("subjectAltName=DNS:localhost,IP:127.0.0.1," + ",".join(f"IP:10.77.0.{i}" for i in range(1, 8)))
        self.openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "request", "-subj", subject)
        self.openssl("x509", "-req", "-in", "request", "-CA", f"{by}.pem", "-CAkey", f"{by}.key", "-CAcreateserial", "-out", "certificate", "-days", "30",
                     "-extfile", "extensions")
        with open(self.path("new"), "w") as f:
            f.write(open(self.path("certificate")).read() + open(self.path("key")).read())
        os.replace(self.path("new"), self.path(f"{name}.pem"))


def listening(connect, proc, log, patience=60):
    """The first connection to a server that has just been started."""
    until = time.time() + patience
    while True:
        try:
            return connect()
        except OSError:
            if time.time() > until or proc.poll() is not None:
                raise SystemExit(f"it does not start: {log.read_text()[-500:] if log.exists() else ''}")
            time.sleep(.1)
