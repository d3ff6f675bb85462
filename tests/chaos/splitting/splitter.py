"""Who asks for a split until it is decided, calls it off at times, and kills servers meanwhile."""
import statistics
import threading
import time
import uuid

import bson

from .callers import AGAIN
from .servers import DONOR, RECIPIENT, TAG

HANG_S = 120
# Nothing longer is waited for within one attempt.
SILENT_S = 60
BACK_S = 60
DOWN_S = 1.5
# Of a split that nobody disturbs, until one has ended.
USUAL_S = 2.0
VICTIMS = ["donor's primary", "donor's secondary", "recipient", "two recipients", "new primary", "all", "silent primary"]
# Behind the decision.
LATE_VICTIMS = ["donor's primary", "donor's secondary", "all donors"]
# Silent: it does not run, until another one is primary, and then it goes on.
SILENT = 5.0


class Kills:
    """Strikes in threads; `late` is who did not come back."""

    def __init__(self, six, rng, tell):
        self.six, self.rng, self.tell, self.late, self.count, self.threads, self.lock = six, rng, tell, [], 0, [], threading.Lock()

    def strike(self, what, after):
        t = threading.Thread(target=self.run, args=(what, after, self.rng.random() * DOWN_S), daemon=True)
        self.threads.append(t)
        t.start()

    def victims(self, what):
        donors, recipients = self.six.of[DONOR], self.six.of[RECIPIENT]
        if what in ("all", "all donors"):
            return donors + (recipients if what == "all" else [])
        if what.startswith("donor") or what == "silent primary":
            p = self.six.primary(DONOR, 15)
            others = [m for m in donors if m is not p and not m.killed]
            return others[:1] if what == "donor's secondary" else [p] if p else []
        if what in ("new primary", "recipient's primary", "recipient's silent primary"):
            p = self.six.primary(RECIPIENT, 20)
            return [p] if p else []
        return self.rng.sample(recipients, 2 if what == "two recipients" else 1)

    def run(self, what, after, down):
        time.sleep(after)
        victims, silent = self.victims(what), "silent" in what
        with self.lock:
            victims = [m for m in victims if not m.killed]
            for m in victims:
                m.silence() if silent else m.kill()
        self.count += len(victims)
        down += SILENT if silent else 0
        self.tell(f"killed {what} ({', '.join(str(m.i) for m in victims)}) for {down:.2f} s")
        time.sleep(down)
        for m in victims:
            m.speak() if silent else m.start()
        for m in victims:
            self.await_back(m)

    def await_back(self, m):
        end = time.monotonic() + BACK_S
        while time.monotonic() < end:
            h = m.hello()
            if m.killed or h.get("secondary") or h.get("isWritablePrimary"):
                return
            if m.proc.poll() is not None:
                self.late.append(f"member {m.i} ended with {m.proc.returncode} when it was started again")
                return
            time.sleep(.1)
        self.late.append(f"member {m.i} was not back {BACK_S} s after it was started again: {m.hello()}")

    def end(self):
        for t in self.threads:
            t.join(BACK_S + 60)


class Operation:
    """Something that is asked of a set's primary until it is decided; `outcome` is committed, aborted or a fault."""

    def __init__(self, six, side, tell):
        self.six, self.side, self.tell = six, side, tell
        self.id, self.outcome, self.reason, self.seconds, self.passed = bson.Binary(uuid.uuid4().bytes, 4), None, None, 0.0, []

    def ask(self, command, seconds=HANG_S, **more):
        """Of the primary, again until one answers; None where nobody does."""
        begun = time.monotonic()
        while time.monotonic() < begun + seconds:
            p = self.six.primary(self.side, 30)
            if p:
                reply = p.ask({command: 1, "migrationId": self.id, **more}, timeout=SILENT_S)
                if not reply.get("network") and reply.get("code") not in AGAIN:
                    return reply
                self.passed.append(str(reply.get("code") or reply.get("errmsg")))
            time.sleep(.02)
        return None

    def abort_by(self, command):
        """committed, aborted or what was answered instead"""
        reply = self.ask(command)
        if reply is None:
            return f"{command} hangs, behind {self.passed}"
        return "aborted" if reply.get("ok") == 1 else "committed" if reply.get("code") == 321 else f"{command} answered {reply}"

    def forget_by(self, command):
        """Nothing, or what is wrong. Whoever asks again after the document is gone is told that there was no such operation (327)."""
        reply = self.ask(command)
        if reply is None or (reply.get("ok") != 1 and reply.get("code") != 327):
            return f"{command} answered {reply}"
        if reply.get("code") == 327 and not self.passed:
            return f"{command} does not know what was {self.outcome}"
        return None


class Split(Operation):
    """One attempt to split these tenants off."""

    def __init__(self, six, tenants, tell):
        super().__init__(six, DONOR, tell)
        self.tenants = tenants

    def commit(self):
        begun = time.monotonic()
        reply = self.ask("commitShardSplit", recipientSetName=RECIPIENT, recipientTagName=TAG, tenantIds=self.tenants)
        self.seconds = time.monotonic() - begun
        if reply is None:
            self.outcome = f"hangs, behind {self.passed}"
        elif reply.get("ok") == 1 and reply.get("state") == "committed":
            self.outcome = "committed"
        elif reply.get("code") == 125:
            self.outcome, self.reason = "aborted", str(reply.get("abortReason"))
        else:
            self.outcome = f"answered {reply}"

    def abort(self):
        return self.abort_by("abortShardSplit")

    def forget(self):
        """Nothing, or what is wrong."""
        wrong = self.forget_by("forgetShardSplit")
        if wrong:
            return wrong
        end = time.monotonic() + 30
        while any(self.documents(m) for m in self.six.of[DONOR]):
            if time.monotonic() > end:
                return "the document of a split is there 30 s after it was forgotten"
            time.sleep(.1)
        return None

    def documents(self, member):
        try:
            return member.all("config", "tenantSplitDonors", {"_id": self.id})
        except LookupError as e:
            return [str(e)]


def usual(took):
    return statistics.median(took or [USUAL_S])


def kills_of_a_round(rng):
    """Who is killed, and when, as a part of the time that a split takes."""
    return [(what, rng.random() * 1.5 - .2) for what in rng.sample(VICTIMS, rng.choice([1, 1, 2, 2, 3]))]
