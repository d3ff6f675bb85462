"""What the benches of whole sets share: a set of each binary, phases on one and the other in turn, a table of ratios."""
import json
import os
import pathlib
import re
import shutil
import tempfile

import pymongo

import harness
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
                t.results[name] = harness.summary(runs[t.name])
                print(f"    {t.name:10} {harness.words(t.results[name])}", flush=True)

    def report(self, a):
        rows = harness.pair_table(self.targets, self.names)
        print("\n" + "\n".join(rows))
        print(f"\nload average at the end: {os.getloadavg()[0]:.1f}; median of {a.rounds} rounds; pymongo {pymongo.version}")
        if a.md:
            pathlib.Path(a.md).write_text("\n".join(rows) + "\n")
        if a.json:
            pathlib.Path(a.json).write_text(json.dumps({t.name: t.results for t in self.targets}, indent=1))


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
