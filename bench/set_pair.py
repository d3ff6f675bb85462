"""What the benches of whole sets share: a set of each binary, phases on one and the other in turn, a table of ratios."""
import json
import os
import pathlib
import re
import shutil
import statistics
import tempfile

import pymongo

import set_bench


class Pair:
    """The sets of one or two binaries. A phase is (name, function of a set, its round); it gives a dict of figures."""

    def __init__(self, specs, port, cache, count=set_bench.MEMBERS):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="set_pair"))
        self.targets, self.names = [set_bench.Target(s) for s in specs if s], []
        self.port, self.cache, self.count = port, cache, count

    def __enter__(self):
        try:
            for i, t in enumerate(self.targets):
                t.set = set_bench.Set(t.binary, self.home / t.name, self.port + 10 * i, self.count, self.cache)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for t in self.targets:
            if t.set:
                t.set.end()
        shutil.rmtree(self.home, ignore_errors=True)

    def run(self, phases, rounds, wanted):
        for name, fn in phases:
            if not re.search(wanted, name):
                continue
            runs = {t.name: [] for t in self.targets}
            for r in range(rounds):
                for t in self.targets if r % 2 == 0 else self.targets[::-1]:
                    runs[t.name].append(fn(t, r))
            self.names.append(name)
            print(name, flush=True)
            for t in self.targets:
                t.results[name] = summary(runs[t.name])
                print(f"    {t.name:10} {words(t.results[name])}", flush=True)

    def report(self, a):
        rows = table(self.targets, self.names)
        print("\n" + "\n".join(rows))
        print(f"\nload average at the end: {os.getloadavg()[0]:.1f}; median of {a.rounds} rounds; pymongo {pymongo.version}")
        if a.md:
            pathlib.Path(a.md).write_text("\n".join(rows) + "\n")
        if a.json:
            pathlib.Path(a.json).write_text(json.dumps({t.name: t.results for t in self.targets}, indent=1))


def summary(runs):
    r = {k: statistics.median(x[k] for x in runs) for k in runs[0] if k != "lat"}
    lats = sorted(v for x in runs for v in x.get("lat", ()))
    if lats:
        r["p50_us"], r["p99_us"] = lats[len(lats) // 2] * 1e6, lats[int(len(lats) * .99)] * 1e6
    return r


def words(r):
    more = "".join(f" {k} {v:,.0f}" for k, v in r.items() if k not in ("ops_s", "cpu_us"))
    return f"{r['ops_s']:>9,.0f} ops/s {r['cpu_us']:>8.1f} us CPU{more}"


def table(targets, names):
    if len(targets) == 1:
        return [f"{n}: {words(targets[0].results[n])}" for n in names]
    ta, tb = targets
    ratio = lambda x, y, k: f"{x[k] / max(y[k], 1e-9):.2f}" if k in x and k in y else ""  # noqa: E731
    out = [f"| phase | {ta.name} ops/s | {tb.name} ops/s | **throughput ratio** | p50 ratio | p99 ratio | {ta.name} CPU µs/op | {tb.name} CPU µs/op | **CPU ratio** |", "|---|---|---|---|---|---|---|---|---|"]
    for n in names:
        x, y = ta.results[n], tb.results[n]
        out.append(f"| {n} | {x['ops_s']:,.0f} | {y['ops_s']:,.0f} | **{ratio(x, y, 'ops_s')}** | {ratio(x, y, 'p50_us')} | {ratio(x, y, 'p99_us')} | {x['cpu_us']:,.0f} | {y['cpu_us']:,.0f} | **{ratio(x, y, 'cpu_us')}** |")
    return out


def arguments(ap):
    ap.add_argument("--a", required=True)
    ap.add_argument("--b")
    ap.add_argument("--port", type=int, default=31460)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--phases", default=".")
    ap.add_argument("--cache", type=float, default=0.3)
    ap.add_argument("--json")
    ap.add_argument("--md")
    return ap
