"""What the benches share: the CPU time of a process, clients that start together and time each call, medians and a table of ratios."""
import multiprocessing as mp
import statistics
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


def timed(target, make, argses):
    """A phase of `clients`; what the secondaries still have to do belongs to its operations."""
    def counted():
        target.set.settle()
        return target.set.cpu()
    lat, dt, cpu = clients(make, argses, counted, counted)
    return {"ops_s": len(lat) / dt, "cpu_us": cpu / len(lat) * 1e6, "lat": lat}


def summary(runs):
    """Medians of the rounds; percentiles of all latencies."""
    r = {k: statistics.median(x[k] for x in runs) for k in runs[0] if k != "lat"}
    lats = sorted(v for x in runs for v in x.get("lat", ()))
    if lats:
        r["p50_us"], r["p99_us"] = lats[len(lats) // 2] * 1e6, lats[int(len(lats) * .99)] * 1e6
    return r


def words(r):
    more = "".join(f" {k} {v:,.0f}" for k, v in r.items() if k not in ("ops_s", "cpu_us"))
    return f"{r['ops_s']:>9,.0f} ops/s {r['cpu_us']:>8.1f} us CPU{more}"


def pair_table(targets, names):
    if len(targets) == 1:
        return [f"{n}: {words(targets[0].results[n])}" for n in names]
    ta, tb = targets
    ratio = lambda x, y, k: f"{x[k] / max(y[k], 1e-9):.2f}" if k in x and k in y else ""  # noqa: E731
    out = [f"| phase | {ta.name} ops/s | {tb.name} ops/s | **throughput ratio** | p50 ratio | p99 ratio | {ta.name} CPU µs/op | {tb.name} CPU µs/op | **CPU ratio** |", "|---|---|---|---|---|---|---|---|---|"]
    for n in names:
        x, y = ta.results[n], tb.results[n]
        out.append(f"| {n} | {x['ops_s']:,.0f} | {y['ops_s']:,.0f} | **{ratio(x, y, 'ops_s')}** | {ratio(x, y, 'p50_us')} | {ratio(x, y, 'p99_us')} | {x['cpu_us']:,.0f} | {y['cpu_us']:,.0f} | **{ratio(x, y, 'cpu_us')}** |")
    return out
