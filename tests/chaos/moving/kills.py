"""Who is killed with SIGKILL, when, and when it is started again."""
import threading
import time

# Nothing else of a set is killed until whoever was killed is in its place again.
BACK_S = 60


class Kills:
    def __init__(self, cluster, tell):
        self.cluster, self.tell, self.count, self.late = cluster, tell, 0, []
        self.locks = {s.name: threading.Lock() for s in [cluster.config, *cluster.shards]} | {r.set_name: threading.Lock() for r in cluster.routers}

    def strike(self, who, after, down):
        """Kills the primary of the set `who`, or the router of that name, `after` seconds from now, for `down` seconds. A thread to be joined."""
        t = threading.Thread(target=self.run, args=(who, after, down), daemon=True)
        t.start()
        return t

    def run(self, who, after, down):
        begun = time.monotonic()
        with self.locks[who]:
            routers = [r for r in self.cluster.routers if r.set_name == who]
            time.sleep(max(0, after - (time.monotonic() - begun)))
            victim = routers[0] if routers else self.cluster.set_named(who).primary(20)
            if victim is None:
                self.tell(f"{who} has no primary to kill")
                return
            self.cluster.doomed.add(victim)
            victim.kill()
            self.count += 1
            self.tell(f"killed {who} ({victim.name})")
            time.sleep(down)
            victim.start()
            self.await_back(victim)
            self.cluster.doomed.discard(victim)

    def await_back(self, victim):
        end = time.monotonic() + BACK_S
        while time.monotonic() < end:
            if victim.proc.poll() is not None:
                self.late.append(f"{victim.set_name} {victim.name} ended with {victim.proc.returncode} when it was started again")
                return
            hello = None if hasattr(victim, "configdb") else victim.hello(1)
            if victim.answers() if hello is None else hello.get("secondary") or hello.get("isWritablePrimary"):
                return
            time.sleep(.1)
        self.late.append(f"{victim.set_name} {victim.name} was not back {BACK_S} s after it was started again")
