#!/usr/bin/env python3
"""What a real server's `explain` says of plans.

    answers.py record URI [OTHER]   asks it, and writes its answers into answers.jsonl; cases that OTHER answers otherwise
                                    are marked as differing
    answers.py run URI              asks another server and says what differs

answers.jsonl starts with the commands that make the data, in database `xp`; then come cases: an explained command, a
verbosity and the answer's essence. The real server has to run with `internalQueryForceClassicEngine`. What differs from run
to run or between machines is left out, and so are steps (`works`), which later versions count otherwise. The Rust test
`plans_are_explained_as_by_a_real_server` replays the file.
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "lib"))
import wire  # noqa: E402

FILE = HERE / "answers.jsonl"
DB = "xp"
LEFT_OUT = {
    "executionTimeMillis", "executionTimeMillisEstimate", "works", "needTime", "needYield", "saveState", "restoreState",
    "isEOF", "totalDataSizeSorted", "serverInfo", "serverParameters", "command", "queryHash", "planCacheKey",
    "rejectedPlans", "allPlansExecution", "seeks", "dupsTested", "dupsDropped", "skipAmount", "explainVersion", "ok",
    "$clusterTime", "operationTime", "maxAccumulatorMemoryUsageBytes", "totalOutputDataSizeBytes",
    "totalDataSizeSortedBytesEstimate", "maxFunctionMemoryUsageBytes", "maxTotalMemoryUsageBytes",
}


def essence(v):
    if isinstance(v, dict):
        if list(v) == ["$numberLong"]:
            return int(v["$numberLong"])
        return {k: essence(x) for k, x in v.items() if k not in LEFT_OUT}
    return [essence(x) for x in v] if isinstance(v, list) else v


def plain(v):
    """Fields in one order, and `true` is not 1."""
    return json.dumps(v, sort_keys=True)


class Asker:
    def __init__(self, uri):
        self.c = wire.Conn(uri)

    def prepare(self, lines):
        self.c.command(DB, {"dropDatabase": 1})
        for line in lines:
            if "setup" in line:
                r = self.c.command(DB, line["setup"])
                assert r.get("ok") == 1, r

    def ask(self, case):
        for coll in ("a", "one"):
            self.c.command(DB, {"planCacheClear": coll})
        r = self.c.command(DB, {"explain": case["cmd"], "verbosity": case["verbosity"]})
        return essence(r) if r.get("ok") == 1 else {"err": r["code"], "text": r["errmsg"]}


def main():
    lines = [json.loads(line) for line in open(FILE, encoding="utf-8")]
    askers = [Asker(uri) for uri in sys.argv[2:]]
    for a in askers:
        a.prepare(lines)
    cases = [line for line in lines if "case" in line]
    wrong = 0
    for case in cases:
        got = [json.loads(json.dumps(a.ask(case))) for a in askers]
        if sys.argv[1] == "record":
            case.pop("differs", None)
            case["expect"] = got[0]
            if len(got) > 1 and plain(got[1]) != plain(got[0]):
                case["differs"] = True
        elif plain(got[0]) != plain(essence(case["expect"])) and not case.get("differs"):
            wrong += 1
            print(f"{case['case']} {case['verbosity']}\n  expected {case['expect']}\n  got      {got[0]}")
    if sys.argv[1] == "record":
        with open(FILE, "w", encoding="utf-8") as f:
            for line in lines:
                f.write(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n")
        print(f"{len(cases)} cases, {sum('differs' in c for c in cases)} differ")
    print(f"{wrong} differ")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
