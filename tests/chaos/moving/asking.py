"""Administrators: who ask for a move or a definition through one router or the other until it has ended one way or the other."""
import dataclasses
import time

from pymongo.errors import OperationFailure, PyMongoError

# An operation that has not ended by then hangs; its kill and the elections that follow are within.
HANG_S = 120
# No single attempt is silent for longer.
SILENT_S = 60
PAUSE_S = .2
# What passes: the network, elections, shutdowns, and whoever is in the way (MongoDB's names are in error_codes of the server).
PASSES = {6, 7, 24, 46, 64, 70, 83, 89, 91, 112, 117, 133, 134, 150, 189, 202, 249, 251, 262, 317, 319, 358, 364, 384, 9001, 10107, 11600, 11602, 13388, 13435, 13436}
# Of these it is not known whether it was carried out: the network, ends of terms and processes, and whoever had not enough time.
CUT = {6, 7, 50, 64, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}


@dataclasses.dataclass
class Outcome:
    kind: str
    code: int = 0
    text: str = ""
    tries: int = 0
    cut: bool = False
    seconds: float = 0.0
    # What each attempt but the last was answered.
    passed: list = dataclasses.field(default_factory=list)

    @property
    def done(self):
        return self.kind == "done"

    def __str__(self):
        why = f" ({self.code}: {self.text[:160]})" if self.code or self.text else ""
        passed = f", behind {', '.join(self.passed[:6])}" if self.passed else ""
        return f"{self.kind}{why} in {self.seconds:.1f} s, {self.tries} tries{passed}"


class Asking:
    """A connection to each router, nothing of which is sent again by the driver."""

    def __init__(self, cluster):
        self.cluster = cluster
        once = {"retryWrites": False, "retryReads": False, "socketTimeoutMS": SILENT_S * 1000, "serverSelectionTimeoutMS": 3000}
        self.clients = [cluster.client(i, **once) for i in range(len(cluster.routers))]
        self.both = cluster.client(0, 1, socketTimeoutMS=SILENT_S * 1000)

    def insist(self, db, command, first=0, seconds=HANG_S, was_done=lambda: False, passes=PASSES):
        """Asks until there is an answer that does not pass. `was_done` looks up what became of an attempt whose answer was lost."""
        begun, out, at = time.monotonic(), Outcome("hangs"), first
        while time.monotonic() < begun + seconds:
            out.tries += 1
            try:
                self.clients[at % len(self.clients)][db].command(command)
                out.kind, out.code, out.text = "done", 0, ""
                break
            except OperationFailure as e:
                out.code, out.text = e.code or 0, str(e.details.get("errmsg", e) if e.details else e)
                out.cut |= out.code in CUT
                if out.code not in passes:
                    # What was cut may have been carried out later, and cannot be done twice.
                    out.kind = "done" if out.cut and was_done() else "refused"
                    break
            except PyMongoError as e:
                out.code, out.text, out.cut = 0, f"{type(e).__name__}: {e}", True
            at += 1
            out.passed.append(str(out.code or out.text.split(":")[0]))
            if out.cut and was_done():
                out.kind = "done"
                break
            time.sleep(PAUSE_S)
        out.seconds = time.monotonic() - begun
        return out

    def look(self, find, seconds=HANG_S):
        """What `find` answers, of a client of both routers; tried again until it answers."""
        end = time.monotonic() + seconds
        while True:
            try:
                return find(self.both)
            except PyMongoError:
                if time.monotonic() > end:
                    raise
                time.sleep(PAUSE_S)
