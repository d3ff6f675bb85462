"""One client of one tenant: a session that does what drivers do, and goes to the new set when it is told that its tenant has moved."""
import time
import uuid

import bson

from .servers import DONOR, Conn, other

COMMITTED, ABORTED = 321, 325
# What a driver tries again: the network, elections and shutdowns.
AGAIN = {6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}
HANG_S, SILENT_S = 90, 30
PAUSE_S = .02


class Refused(Exception):
    def __init__(self, reply):
        super().__init__(f"{reply.get('code')} {reply.get('codeName')}: {str(reply.get('errmsg'))[:300]}")
        self.reply, self.code = reply, reply.get("code")
        self.transient = "TransientTransactionError" in reply.get("errorLabels", [])


class Hangs(Exception):
    pass


def error_of(reply):
    """Its code, or 0 where all of it was done."""
    if reply.get("ok") != 1:
        return reply.get("code") or -1
    concern = reply.get("writeConcernError")
    if concern:
        return concern["code"]
    errors = reply.get("writeErrors")
    return errors[0]["code"] if errors else 0


class Caller:
    def __init__(self, six, rng):
        self.six, self.rng, self.at, self.conns, self.primary = six, rng, DONOR, {}, None
        self.lsid, self.number = {"id": bson.Binary(uuid.uuid4().bytes, 4)}, 0
        self.operation_time = self.cluster_time = None
        # What it was told: how often each error, and when the tenant moved.
        self.met, self.moved = {}, None
        # Told when it has heard that its tenant has moved.
        self.on_redirect = lambda: None

    def conn(self, member):
        if member.name not in self.conns:
            self.conns[member.name] = Conn(member.name, timeout=SILENT_S)
        return self.conns[member.name]

    def drop(self, member):
        c = self.conns.pop(member.name, None)
        if c:
            c.close()
        self.primary = None

    def leads(self, member):
        h = member.hello(1)
        return h.get("isWritablePrimary") and h.get("setName") == self.at

    def find_primary(self):
        if self.primary is None:
            members = self.six.of[self.at]
            self.primary = next((m for m in self.rng.sample(members, len(members)) if self.leads(m)), None)
        return self.primary

    def send(self, member, db, cmd):
        """The reply; what it says of time is remembered. Raises OSError."""
        if self.cluster_time:
            cmd = {**cmd, "$clusterTime": self.cluster_time}
        reply = self.conn(member).command(db, cmd)
        newer = reply.get("$clusterTime")
        if newer and (not self.cluster_time or newer["clusterTime"] > self.cluster_time["clusterTime"]):
            self.cluster_time = newer
        time_ = reply.get("operationTime")
        if time_ and (not self.operation_time or time_ > self.operation_time):
            self.operation_time = time_
        return reply

    def note(self, code):
        self.met[code] = self.met.get(code, 0) + 1

    def redirect(self):
        """The tenant has moved."""
        self.on_redirect()
        self.at, self.primary = other(self.at), None
        self.moved = self.moved or time.monotonic()

    def may_go(self):
        """Whether its tenant may be elsewhere than here."""
        return self.at == DONOR or self.six.there_and_back

    def concern(self, level):
        c = {"level": level}
        if self.operation_time and level != "linearizable":
            c["afterClusterTime"] = self.operation_time
        return c

    def go_on(self, reply):
        """True where the same is to be sent once more, wherever."""
        code = error_of(reply)
        self.note(code)
        if code == COMMITTED and self.may_go():
            self.redirect()
        elif code == ABORTED:
            pass
        elif code in AGAIN:
            self.primary = None
        else:
            return False
        return True

    def insist(self, db, cmd, where=None):
        """Sends until it is done, to the primary or to any member; errors that mean something else are raised."""
        begun, first = time.monotonic(), True
        while time.monotonic() < begun + HANG_S:
            if not first:
                time.sleep(PAUSE_S)
            first = False
            member = where() if where else self.find_primary()
            if member is None:
                continue
            try:
                reply = self.send(member, db, cmd)
            except (OSError, ValueError):
                self.note("network")
                self.drop(member)
                continue
            if not error_of(reply):
                return reply
            if not self.go_on(reply):
                raise Refused({"code": error_of(reply), **reply} if reply.get("ok") == 1 else reply)
        raise Hangs(f"{cmd} in {db} at the {self.at} was not done in {HANG_S} s, behind {self.met}")

    def write(self, db, cmd):
        """A retryable write: whoever carries it out, and however often it is sent, it is done once."""
        self.number += 1
        named = {"lsid": self.lsid, "txnNumber": bson.Int64(self.number), "writeConcern": {"w": "majority"}}
        return self.insist(db, {**cmd, **named})

    def read(self, db, cmd, level="majority", anywhere=False):
        named = {"lsid": self.lsid, "readConcern": self.concern(level)}
        if anywhere:
            named["$readPreference"] = {"mode": "secondaryPreferred"}
        return self.insist(db, {**cmd, **named}, anywhere and (lambda: self.rng.choice(self.six.of[self.at])) or None)

    def begin(self):
        self.number += 1
        self.within, self.started = None, False

    def in_transaction(self, db, cmd):
        """One statement. Refused or OSError where the transaction is over."""
        named = {"lsid": self.lsid, "txnNumber": bson.Int64(self.number), "autocommit": False}
        if not self.started:
            named |= {"startTransaction": True, "readConcern": self.concern("snapshot")}
            self.within = self.wait_for_primary()
        self.started = True
        try:
            reply = self.send(self.within, db, {**cmd, **named})
        except (OSError, ValueError):
            self.note("network")
            self.drop(self.within)
            raise OSError("a statement of a transaction was not answered") from None
        if error_of(reply):
            self.go_on(reply)
            raise Refused(reply)
        return reply

    def wait_for_primary(self):
        end = time.monotonic() + HANG_S
        while time.monotonic() < end:
            member = self.find_primary()
            if member:
                return member
            time.sleep(PAUSE_S)
        raise Hangs(f"the {self.at} has no primary")

    def commit(self):
        """Sent until there is an answer that says what became of it."""
        named = {"lsid": self.lsid, "txnNumber": bson.Int64(self.number), "autocommit": False, "writeConcern": {"w": "majority"}}
        begun = time.monotonic()
        while time.monotonic() < begun + HANG_S:
            member = self.wait_for_primary()
            try:
                reply = self.send(member, "admin", {"commitTransaction": 1, **named})
            except (OSError, ValueError):
                self.note("network")
                self.drop(member)
                continue
            if not error_of(reply):
                return
            again, refused = self.go_on(reply), Refused(reply)
            # Not so named, it may have been done; whoever is asked next knows.
            if refused.transient or not again:
                raise refused
            time.sleep(PAUSE_S)
        raise Hangs(f"commitTransaction at the {self.at} was not answered in {HANG_S} s, behind {self.met}")

    def abort(self):
        named = {"lsid": self.lsid, "txnNumber": bson.Int64(self.number), "autocommit": False}
        if self.started and self.within:
            try:
                self.send(self.within, "admin", {"abortTransaction": 1, **named})
            except (OSError, ValueError):
                self.drop(self.within)
