"""Who asks for a migration until it is decided, and calls it off at times."""
import time

from splitting.servers import other
from splitting.splitter import HANG_S, Operation

GONE_S = 60
POLL_S = .05
VICTIMS = ["donor's primary", "donor's primary", "donor's secondary", "recipient's primary", "recipient's primary", "recipient", "two recipients",
           "silent primary", "recipient's silent primary", "all"]
DOCUMENTS = ["tenantMigrationDonors", "tenantMigrationRecipients", "tenantMigrationProgress"]


def kills_of_a_round(rng, most, seconds):
    """Who is killed, and when."""
    return [(what, rng.random() * seconds) for what in rng.sample(VICTIMS, rng.randint(1, most))]


class Migration(Operation):
    """One attempt to move a tenant from the set `side` to the other one."""

    def __init__(self, six, side, tenant, tell):
        super().__init__(six, side, tell)
        self.tenant, self.code = tenant, 0

    def what(self):
        """What is to go, as donorStartMigration names it."""
        return {"tenantId": self.tenant}

    def ours(self):
        """Names of what goes, as a pattern."""
        return f"^{self.tenant}_"

    def commit(self):
        begun, state = time.monotonic(), None
        to = self.six.connection(other(self.side))
        while state not in ("committed", "aborted"):
            reply = self.ask("donorStartMigration", recipientConnectionString=to, readPreference={"mode": "primary"}, **self.what())
            if reply is None or time.monotonic() > begun + HANG_S:
                self.outcome = f"hangs in state {state}, behind {self.passed}"
                return
            if reply.get("ok") != 1:
                self.outcome = f"answered {reply}"
                return
            state = reply["state"]
            time.sleep(POLL_S)
        self.seconds, self.outcome = time.monotonic() - begun, state
        why = reply.get("abortReason") or {}
        self.code, self.reason = why.get("code", 0), str(why)

    def abort(self):
        """Of one that the donor does not know yet: once it does."""
        end = time.monotonic() + HANG_S
        while True:
            said = self.abort_by("donorAbortMigration")
            if "NoSuchTenantMigration" not in said or self.outcome or time.monotonic() > end:
                return said
            time.sleep(POLL_S)

    def forget(self):
        """Nothing, or what is wrong."""
        return self.forget_by("donorForgetMigration")

    def state(self):
        return self.six.primary(self.side).all("config", "tenantMigrationDonors", {"_id": self.id})[0]


class Merge(Migration):
    """One attempt to move all tenants that the set `side` has."""

    def __init__(self, six, side, tell):
        super().__init__(six, side, "everybody", tell)

    def what(self):
        return {"protocol": "shard merge"}

    def ours(self):
        return "^t[0-9]+_"


def documents(member):
    """What a member knows of migrations, or why that is not known."""
    try:
        return [(coll, d) for coll in DOCUMENTS for d in member.all("config", coll)]
    except LookupError as e:
        return [str(e)]


def until_gone(six):
    """Nothing, or what is there yet."""
    end = time.monotonic() + GONE_S
    while True:
        left = [(m.i, d) for m in six.members for d in documents(m)]
        if not left or time.monotonic() > end:
            return left
        time.sleep(.1)
