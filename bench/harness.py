"""What both benches share: the CPU time of a process, and clients that start together and time each call."""
import multiprocessing as mp
import time

CLIENT_UP_S = 120
CLIENT_DONE_S = 900
# The kernel's clock of a whole process (user + system, ended threads included), in nanoseconds: CPUCLOCK_SCHED.
_PROCESS_CPU = 2


def process_cpu(pid):
    """Seconds of CPU that a process has used, as exact as the scheduler counts."""
    return time.clock_gettime((~pid << 3) | _PROCESS_CPU)


def document(i, rnd, noise):
    """1 KiB: half of the filler `noise`, half one repeated letter, so that compression has something to do but not all."""
    return {"_id": i, "k": rnd.randrange(1 << 30), "g": i % 100, "v": rnd.random(), "who": f"user {i:09}", "filler": noise + "z" * 455}


def _client(make, args, ready, go, out):
    calls, fn = make(*args)
    ready.release()
    go.wait()
    lat, clock = [], time.perf_counter
    for x in calls:
        t = clock()
        fn(x)
        lat.append(clock() - t)
    out.put(lat)


def clients(make, argses, begin, end):
    """One process for each of `argses`: `make(*args)` gives (arguments, function of one argument), called in order when all are up.

    `begin()` and `end()` read the servers' CPU, just before the first call and after the last. Gives (latencies, seconds, CPU seconds).
    """
    ready, go, out = mp.Semaphore(0), mp.Event(), mp.Queue()
    ps = [mp.Process(target=_client, args=(make, args, ready, go, out)) for args in argses]
    for p in ps:
        p.start()
    for _ in ps:
        if not ready.acquire(timeout=CLIENT_UP_S):
            raise RuntimeError("a client did not come up")
    c0, t0 = begin(), time.perf_counter()
    go.set()
    lat = [x for _ in ps for x in out.get(timeout=CLIENT_DONE_S)]
    dt = time.perf_counter() - t0
    cpu = end() - c0
    for p in ps:
        p.join()
    return lat, dt, cpu
