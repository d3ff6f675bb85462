#!/usr/bin/env python3
"""Runs the driver suites that pymongo's source distribution carries against a server.

    run_suites.py URI [SUITE ...] --pymongo DIR [--only RE] [--json FILE] [-v]

SUITE: crud collection-management index-management run-command command-logging-and-monitoring read-write-concern
versioned-api bson-corpus (all of these when none is named); for a set of three members also server-discovery-and-monitoring
retryable-reads retryable-writes server-selection sessions causal-consistency transactions transactions-convenient-api driver-behaviour (together: `set`); or any other
directory under DIR/test with unified files.
DIR is an unpacked pymongo sdist:  pip download --no-deps --no-binary pymongo pymongo==4.20.0 && tar xzf pymongo-4.20.0.tar.gz
The interpreter running this needs dnspython, pytest and pytest-asyncio.

Each test file runs in a process of its own, each test between its own start and end marks, so that a hang or a crash costs
one test. `expected_failures.json` beside this script (`expected_failures.sharded.json` behind routers) maps `suite/file::test` (regular expressions) to the reason why a
failure is accepted. A listed test that passes fails the run, so that the list can only tell the truth.

A skip needs a reason that the server itself gives: its version, its topology, no authentication. The runner reads the test's
requirements and looks whether one of them is really not met; if not, the skip counts as a failure. The other good reason is that
the client has no such method or leaves the test out for a bug of its own.

`driver-behaviour` is pymongo's own Python tests about sets, run by pytest: what happens at a step-down, where reads go, monitoring,
retries, connection pools. They skip by themselves; a skip there is believed.

bson-corpus is run against the server, not against pymongo's codec: every valid document goes in as raw bytes and must come back as the same
bytes; every invalid one must be refused or the connection closed.

Ends with `N passed, N failed, N skipped`; exit status 1 if a test failed that is not listed, or a listed one passed.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
DIRS = {"crud": ["crud/unified"], "collection-management": ["collection_management"], "index-management": ["index_management"], "run-command": ["run_command/unified"],
        "command-logging-and-monitoring": ["command_logging", "command_monitoring"], "read-write-concern": ["read_write_concern/operation"], "versioned-api": ["versioned-api"]}
# What a driver does with a set of several members.
SET_DIRS = {"server-discovery-and-monitoring": ["discovery_and_monitoring/unified"], "retryable-reads": ["retryable_reads/unified"], "retryable-writes": ["retryable_writes/unified"],
            "server-selection": ["server_selection_logging"], "sessions": ["sessions"], "causal-consistency": ["causal_consistency"],
            "transactions": ["transactions/unified"], "transactions-convenient-api": ["transactions-convenient-api/unified"]}
DRIVER = [f"test/test_{x}.py" for x in ("read_preferences", "connections_survive_primary_stepdown_spec", "discovery_and_monitoring", "heartbeat_monitoring", "hello_latched",
          "replica_set_reconfig", "retryable_reads", "retryable_writes", "server_selection", "server_selection_in_window", "session", "streaming_protocol", "monitor",
          "connection_monitoring", "max_staleness", "causal_consistency")]
SET = [*SET_DIRS, "driver-behaviour"]
DEFAULT = [*DIRS, "bson-corpus"]
# Helpers of other drivers that some tests call.
NOT_IN_PYMONGO = {"listCollectionObjects", "listDatabaseObjects", "mapReduce"}
TEST_LIMIT_S = 60


# ------------------------------------------------------------ one file, in a child process


def child(src, path, suite, only):
    """Runs one unified file; JSON lines on the original stdout: {start: name} and {done: name, status, detail}."""
    import unittest
    import warnings
    say_to = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    sys.path.insert(0, src)
    os.chdir(src)
    warnings.simplefilter("ignore")

    def say(**kw):
        say_to.write(json.dumps(kw) + "\n")

    import test as pm
    from test import unified_format
    pm.setup()
    warnings.simplefilter("ignore")
    if not pm.client_context.connected:
        say(fatal="pymongo's tests cannot connect")
        return

    class Marks(unittest.TestResult):
        name, status, detail = "", "", ""

        def put(self, status, detail=""):
            if self.status in ("", "pass", "skip") or status == "fail":
                self.status, self.detail = status, detail

        def addSuccess(self, t):
            self.put("pass")

        def addSkip(self, t, why):
            self.put("skip", why)

        def addFailure(self, t, err):
            self.put("fail", self._exc_info_to_string(err, t)[-3000:])

        addError = addFailure

        def addSubTest(self, t, sub, err):
            if err:
                self.put("fail", self._exc_info_to_string(err, t)[-3000:])

    with tempfile.TemporaryDirectory() as d:
        # the format's own interpreter skips some tests by the class name, which it makes of directory and file
        d = os.path.join(d, suite.split("/")[0].replace("-", "_"))
        os.mkdir(d)
        os.symlink(path, os.path.join(d, os.path.basename(path)))
        for cls in unified_format.generate_test_classes(d, module="test.unified").values():
            names = []
            for t in cls.TEST_SPEC["tests"]:
                if not only or re.search(only, t["description"]):
                    names.append((t["description"], "test_" + t["description"].strip(". ").replace(" ", "_").replace(".", "_")))
            try:
                cls.setUpClass()
            except unittest.SkipTest as e:
                for desc, _ in names:
                    say(done=desc, status="skip", detail=str(e))
                continue
            except Exception as e:  # noqa: BLE001
                for desc, _ in names:
                    say(done=desc, status="fail", detail=repr(e))
                continue
            for desc, attr in names:
                say(start=desc)
                m = Marks()
                cls(attr).run(m)
                say(done=desc, status=m.status or "fail", detail=m.detail)
            cls.tearDownClass()
            cls.doClassCleanups()
    say(bye=True)
    say_to.flush()
    os._exit(0)


def version(text):
    return tuple(int(n) for n in re.findall(r"\d+", text)[:3])


def unmet(requirements, server):
    """Why none of the alternatives in `runOnRequirements` admits this server; None if one does."""
    whys = []
    for r in requirements:
        if "minServerVersion" in r and version(r["minServerVersion"]) > server["version"]:
            whys.append(f"needs server {r['minServerVersion']}")
        elif "maxServerVersion" in r and version(r["maxServerVersion"]) < server["version"][:len(version(r["maxServerVersion"]))]:
            whys.append(f"only up to server {r['maxServerVersion']}")
        elif "topologies" in r and server["topology"] not in r["topologies"]:
            whys.append(f"needs topology {' or '.join(r['topologies'])}")
        elif r.get("auth") and not server["auth"]:
            whys.append("needs authentication")
        elif r.get("serverless") == "require":
            whys.append("needs a serverless instance")
        elif r.get("csfle"):
            whys.append("needs client-side encryption")
        elif any(server["params"].get(k) != v for k, v in r.get("serverParameters", {}).items()):
            whys.append(f"needs server parameters {sorted(r['serverParameters'])}")
        else:
            return None
    return "; ".join(dict.fromkeys(whys)) or None


def about(uri):
    """What the tests' requirements are compared with."""
    sys.path.insert(0, str(HERE.parent / "lib"))
    import wire
    c = wire.Conn(uri, timeout=10)
    hello, params = c.command("admin", {"hello": 1}), c.command("admin", {"getParameter": "*"})
    build = c.command("admin", {"buildInfo": 1})
    topology = "sharded" if hello.get("msg") == "isdbgrid" else "replicaset" if "setName" in hello else "single"
    return {"version": tuple(build["versionArray"][:3]), "topology": topology, "auth": "@" in uri, "params": params}


def explain_skip(spec, name, detail, server):
    """(status, detail) of a test that the interpreter skipped."""
    if "runOnRequirements" not in detail:
        # what the client cannot do says so by itself
        return ("skip", f"the client: {detail}") if re.search("PyMongo does not support|Implement PYTHON-|^PYTHON ", detail) else ("fail", f"skipped: {detail}")
    test = next((t for t in spec["tests"] if t["description"] == name), {})
    for part in (spec, test):
        if part.get("runOnRequirements"):
            why = unmet(part["runOnRequirements"], server)
            if why:
                return "skip", why
    return "fail", "skipped though this server meets the requirements"


def environment(uri):
    """How pymongo's tests are told where the server is."""
    m = re.match(r"mongodb://(?:([^:@]+):([^@]+)@)?([^:/?,]+)(?::(\d+))?", uri)
    env = dict(os.environ, DB_IP=m.group(3), DB_PORT=m.group(4) or "27017", PYTHONDONTWRITEBYTECODE="1", DISABLE_FLAKY="1")
    if m.group(1):
        env.update(DB_USER=m.group(1), DB_PASSWORD=m.group(2))
    return env


def driver_behaviour(uri, src, only):
    """[(test name, status, detail)] of pymongo's own Python tests; the unified ones among them are run by `run_file`."""
    out = []
    with tempfile.TemporaryDirectory() as d:
        for f in DRIVER:
            report = os.path.join(d, "report.xml")
            cmd = [sys.executable, "-m", "pytest", "-q", "-m", "default", "-p", "no:cacheprovider", "--tb=short", f"--junitxml={report}", f]
            subprocess.run(cmd + (["-k", only] if only else []), cwd=src, env=environment(uri), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=900, check=False)
            if not os.path.exists(report):
                out.append((f"{pathlib.Path(f).stem}::all", "fail", "pytest made no report"))
                continue
            found = {}
            for case in xml.etree.ElementTree.parse(report).iter("testcase"):
                cls = case.get("classname").rpartition(".")[2]
                if cls.startswith("TestUnified"):
                    continue
                bad = [x for x in case if x.tag in ("failure", "error")]
                skip = case.find("skipped")
                status, detail = ("fail", bad[0].text or "") if bad else ("skip", skip.get("message")) if skip is not None else ("pass", "")
                name = f"{pathlib.Path(f).stem}::{cls}.{case.get('name')}"
                if found.get(name, ("",))[0] != "fail":
                    found[name] = (status, detail)
            os.remove(report)
            out += [(n, *r) for n, r in found.items()]
    return out


def run_file(uri, src, path, suite, only, server):
    """[(test name, status, detail)]"""
    with open(path, encoding="utf-8") as f:
        spec = json.load(f)
    if not isinstance(spec, dict) or "schemaVersion" not in spec:
        return []
    tests = [t for t in spec["tests"] if not only or re.search(only, t["description"])]
    lacks = {t["description"]: m for t in tests for m in NOT_IN_PYMONGO & {o["name"] for o in t["operations"]}}
    out = [(n, "skip", f"the client: PyMongo does not support {m}()") for n, m in lacks.items()]
    names = [t["description"] for t in tests if t["description"] not in lacks]
    if not names:
        return out
    env = environment(uri)
    p = subprocess.Popen([sys.executable, __file__, "--child", src, path, suite, "|".join(f"^{re.escape(n)}$" for n in names)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    state = {"at": None, "done": {}, "fatal": "", "err": ""}
    timer = [None]

    def arm():
        if timer[0]:
            timer[0].cancel()
        timer[0] = threading.Timer(TEST_LIMIT_S, p.kill)
        timer[0].start()
    arm()
    drain = threading.Thread(target=lambda: state.update(err=p.stderr.read()[-1500:]))
    drain.start()
    for ln in p.stdout:
        arm()
        try:
            x = json.loads(ln)
        except ValueError:
            continue
        if "start" in x:
            state["at"] = x["start"]
        elif "done" in x:
            state["done"][x["done"]] = (x["status"], x["detail"])
            state["at"] = None
        elif "fatal" in x:
            state["fatal"] = x["fatal"]
    p.wait()
    timer[0].cancel()
    drain.join()
    for n in dict.fromkeys(names):
        if n in state["done"]:
            status, detail = state["done"][n]
            out.append((n, *(explain_skip(spec, n, detail, server) if status == "skip" else (status, detail))))
        elif n == state["at"]:
            out.append((n, "fail", f"no end after {TEST_LIMIT_S} s, or the test process died\n{state['err']}"))
        else:
            out.append((n, "fail", state["fatal"] or f"not reached\n{state['err']}"))
    return out


# ------------------------------------------------------------ bson-corpus against the server


def corpus(uri, src, only):
    sys.path.insert(0, str(HERE.parent / "lib"))
    import struct

    import ejson
    import wire
    c = wire.Conn(uri, timeout=10)
    c.command("corpus", {"drop": "c"})
    for f in sorted((pathlib.Path(src) / "test" / "bson_corpus").glob("*.json")):
        spec = json.loads(f.read_text(encoding="utf-8"))
        for kind in ("valid", "decodeErrors"):
            for case in spec.get(kind, []):
                name = f"{f.stem}::{kind}: {case['description']}"
                if only and not re.search(only, name):
                    continue
                raw = bytes.fromhex(case["canonical_bson"] if kind == "valid" else case["bson"])
                try:
                    c = c or wire.Conn(uri, timeout=10)
                    if kind == "valid":
                        # wrapped, so that names and _id of the document itself do not matter
                        r = c.command("corpus", {"insert": "c", "documents": [{"_id": 1, "d": ejson.Raw(raw)}]})
                        if r.get("ok") != 1 or r.get("writeErrors"):
                            yield name, "fail", f"refused: {r.get('errmsg') or r.get('writeErrors')}"
                            continue
                        c.send(wire.op_msg({"find": "c", "filter": {"_id": 1}, "$db": "corpus"}))
                        body = c.recv()[3]
                        got = body.find(raw)
                        yield name, "pass" if got > 0 else "fail", "" if got > 0 else f"came back otherwise: {body[5:200].hex()}"
                        c.command("corpus", {"delete": "c", "deletes": [{"q": {}, "limit": 0}]})
                    else:
                        if len(raw) < 5 or struct.unpack("<i", raw[:4])[0] != len(raw):
                            # the length itself lies: only as a message's whole document
                            b = struct.pack("<I", 0) + b"\0" + raw
                            c.send(wire.header(16 + len(b), wire.OP_MSG) + b)
                            r = c.recv_doc()
                        else:
                            r = c.command("corpus", {"insert": "c", "documents": [{"_id": 1, "d": ejson.Raw(raw)}]})
                        bad = r.get("ok") == 1 and not r.get("writeErrors")
                        yield name, "fail" if bad else "pass", "accepted" if bad else ""
                        if bad:
                            c.command("corpus", {"delete": "c", "deletes": [{"q": {}, "limit": 0}]})
                except OSError as e:
                    c = None
                    yield name, "pass" if kind == "decodeErrors" and isinstance(e, ConnectionError) else "fail", f"{type(e).__name__}: {e}"
    if c:
        c.command("corpus", {"dropDatabase": 1})


# ------------------------------------------------------------ all of it


def main():
    ap = argparse.ArgumentParser(usage=__doc__)
    ap.add_argument("uri")
    ap.add_argument("suites", nargs="*")
    ap.add_argument("--pymongo", default=os.environ.get("PYMONGO_SRC"))
    ap.add_argument("--only")
    ap.add_argument("--json")
    ap.add_argument("-v", action="store_true")
    a = ap.parse_args()
    if not a.pymongo or not os.path.isfile(os.path.join(a.pymongo, "test", "unified_format.py")):
        sys.exit("run_suites: name an unpacked pymongo sdist with --pymongo or $PYMONGO_SRC")
    src = os.path.abspath(a.pymongo)
    server = about(a.uri)
    accepted = HERE / ("expected_failures.sharded.json" if server["topology"] == "sharded" else "expected_failures.json")
    known = json.loads(accepted.read_text())
    tot, all_results, unlisted, better = collections.Counter(), {}, [], []
    skips = collections.Counter()
    print(f"{'suite':32} applicable passed failed listed skipped")
    for suite in [s for x in a.suites or DEFAULT for s in (SET if x == "set" else [x])]:
        n = collections.Counter()
        if suite == "bson-corpus":
            results = [(f"{suite}/{t}", s, d) for t, s, d in corpus(a.uri, src, a.only)]
        elif suite == "driver-behaviour":
            results = [(f"{suite}/{t}", s, d) for t, s, d in driver_behaviour(a.uri, src, a.only)]
        else:
            results = []
            for d in {**DIRS, **SET_DIRS}.get(suite, [suite]):
                for f in sorted((pathlib.Path(src) / "test" / d).rglob("*.json")):
                    results += [(f"{suite}/{f.stem}::{t}", s, de) for t, s, de in run_file(a.uri, src, str(f), suite, a.only, server)]
        for tid, status, detail in results:
            why = next((k for k in known if re.fullmatch(k, tid)), None)
            all_results[tid] = {"status": status, "detail": detail}
            if status == "fail" and why:
                n["listed"] += 1
            else:
                n[status] += 1
                if status == "pass" and why:
                    better.append(tid)
                if status == "fail":
                    unlisted.append((tid, detail))
                elif status == "skip":
                    skips[detail] += 1
        tot.update(n)
        applicable = n["pass"] + n["fail"] + n["listed"]
        print(f"{suite:32} {applicable:10} {n['pass']:6} {n['fail']:6} {n['listed']:6} {n['skip']:7}", flush=True)
    print("\nskipped because:")
    for d, k in skips.most_common():
        print(f"  {k:4}  {d[:150]}")
    if unlisted:
        print("\nfailed:")
        for tid, detail in unlisted:
            lines = detail.strip().splitlines() or [""]
            print(f"  {tid}\n      {lines[-1][:300]}")
            if a.v:
                print("\n".join("        " + x for x in lines[-25:]))
    ran = tot["pass"] + tot["fail"] + tot["listed"]
    print(f"\n{ran} applicable, {100 * tot['pass'] / max(ran, 1):.1f} % passed; {tot['listed']} fail for reasons listed in {accepted.name}")
    for tid in better:
        print(f"listed in {accepted.name}, but passed: {tid}")
    if not a.only:
        ran_suites = {t.split("/")[0] for t in all_results}
        for k in sorted(k for k in known if k.split("/")[0] in ran_suites and not any(re.fullmatch(k, t) for t in all_results)):
            print(f"listed in {accepted.name}, but there is no such test: {k}")
            better.append(k)
    if a.json:
        with open(a.json, "w") as f:
            json.dump(all_results, f, indent=1)
    print(f"{tot['pass']} passed, {tot['fail'] + tot['listed']} failed, {tot['skip']} skipped")
    return 1 if tot["fail"] or better or not ran else 0


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--child":
        child(*sys.argv[2:6])
    else:
        sys.exit(main())
