#!/usr/bin/env python3
"""What tenants' clients notice of a shard split: how long those wait whose tenants move, and what it costs the others.

    cargo build --release -p pandod && cargo build -p pando-checkers
    split_bench.py target/release/pandod [--checker target/debug/check-history] [--splits 50] [--port P]

Sets of three voters and three hidden members of 100 tenants, each of which splits 20 off, one after the other, nobody killed, none called off.
The users are those of `tests/chaos/splits.py`, and every split is judged as there. The wait of a user of a tenant that moves is the longest
time between two of its acknowledged operations, which includes its pause between them and its way to the new set.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

CHAOS = pathlib.Path(__file__).resolve().parents[1] / "tests" / "chaos"


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p))] * 1000


def lines(told, splits):
    waits, took = told["gaps"], told["took"]
    before, during = told["before"], told["during"]
    return ["| | p50 | p99 | longest |", "|---|---|---|---|",
            *(f"| {name} | {percentile(of, .5):,.1f} ms | {percentile(of, .99):,.1f} ms | {percentile(of, 1):,.1f} ms |" for name, of in
              ((f"`commitShardSplit`, {splits} of 20 tenants of 100", took), ("a client of a moved tenant without an answer", waits),
               ("operations of other tenants, before", before), ("operations of other tenants, during the split", during)) if of),
            f"Load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, clients among them."]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("pandod")
    ap.add_argument("--checker", default="target/debug/check-history")
    ap.add_argument("--splits", type=int, default=50)
    ap.add_argument("--port", type=int, default=29400)
    a = ap.parse_args()
    with tempfile.TemporaryDirectory(prefix="pando-split-bench-") as home:
        found = pathlib.Path(home) / "found.json"
        run = subprocess.run([sys.executable, "-u", str(CHAOS / "splits.py"), a.pandod, "-n", str(a.splits), "--checker", a.checker, "--port", str(a.port),
                              "--no-aborts", "--json", str(found)])
        if found.exists():
            print("\n".join(lines(json.loads(found.read_text()), a.splits)))
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
