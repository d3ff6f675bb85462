#!/usr/bin/env python3
"""Two builds of the server in short turns: the CPU that each spends per operation, where one client's timings are mostly noise.

    turns.py --a NEW/pandod --b BASE/pandod [--turns 100] [--docs 20000] [--phases RE]

Both servers share one core and the client has another (two cores are enough); a turn is some hundred operations over one
connection that stays, A and B alternate and change who begins. CPU is what the kernel accounted to the server's threads, in
nanoseconds. The first figure is the ratio of what each spent from the first turn to the last, the second the median of the turns'
ratios. A flush or merge that a turn brings about often runs while the other server has its turn: only the first figure has all
of them, so a sum over a server's own turns would charge one server with flushes and not the other, by chance.
"""
import argparse
import glob
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import time

from instructions import PHASES, Loaded, free_port

OPS = {"range of 100 by _id": 60, "insert_many of 100": 10, "delete_many of 100": 10, "scan of all": 2, "group of all": 2}


class Server(Loaded):
    def __init__(self, binary, home, docs):
        home.mkdir()
        port = free_port()
        command = ["taskset", "-c", "1", binary, "--dbpath", str(home), "--port", str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        super().__init__(port, docs)

    def cpu(self):
        """Nanoseconds of all threads so far."""
        return sum(int(pathlib.Path(f).read_text().split()[0]) for f in glob.glob(f"/proc/{self.process.pid}/task/*/schedstat"))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--a", required=True)
    p.add_argument("--b", required=True)
    p.add_argument("--turns", type=int, default=100)
    p.add_argument("--docs", type=int, default=20_000)
    p.add_argument("--phases", default=".")
    a = p.parse_args()
    os.sched_setaffinity(0, {0})
    home = pathlib.Path(tempfile.mkdtemp(prefix="turns-"))
    servers = []
    try:
        for name, binary in ("a", a.a), ("b", a.b):
            servers.append(Server(binary, home / name, a.docs))
        print(f"{'phase':26} CPU a / b  (median)  time a / b   CPU of a")
        for phase in PHASES:
            if re.search(a.phases, phase):
                compare(phase, servers, a.turns)
    finally:
        for s in servers:
            s.process.terminate()
            s.process.wait(60)
        shutil.rmtree(home, ignore_errors=True)


def compare(phase, servers, turns):
    n = OPS.get(phase, 300)
    for s in servers:
        s.run(phase, n, turns + 2)
    first, took, ratios = [s.cpu() for s in servers], [0.0, 0.0], []
    for turn in range(turns):
        one = [0, 0]
        for i in (0, 1) if turn % 2 else (1, 0):
            before, begun = servers[i].cpu(), time.perf_counter()
            servers[i].run(phase, n, turn + 2)
            took[i] += time.perf_counter() - begun
            one[i] = servers[i].cpu() - before
        ratios.append(one[0] / one[1])
    cpu = [s.cpu() - begun for s, begun in zip(servers, first)]
    each = cpu[0] / turns / n / 1000
    print(f"{phase:26} {cpu[0] / cpu[1]:9.3f} {statistics.median(ratios):9.3f} {took[0] / took[1]:11.3f} {each:9.1f} us", flush=True)


if __name__ == "__main__":
    main()
