#!/usr/bin/env python3
"""Differential test: generated cases, a reference server's recorded answers, and a comparer.

    differ.py gen                          count the generated cases by topic
    differ.py record URI [TOPIC ...]       ask a reference server, write golden/<topic>.jsonl
    differ.py beside URI --beside REFERENCE [TOPIC ...] [--sample SHARE]
                                           ask both servers generated cases now, and group what differs
    differ.py run URI [TOPIC ...]          replay the golden files, report differences by topic
        --show N     print up to N differences of a topic (default 3)
        --all        print every difference
        --case ID    replay one case and print what was wanted and what came
        --msg        count differing error texts as failures too
        --oplog      compare the recorded oplog entries of writes too (needs a replica set)
        --json FILE  write every difference there

Standard library only. TOPIC is a prefix, e.g. `match` or `update.push`.
Exit status of `run`: 0 nothing unexplained differs, 1 something does, 2 could not run.
"""
import argparse
import collections
import hashlib
import importlib
import json
import pathlib
import random
import re
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import gen  # noqa: E402,F401  (puts ../lib on the path)
import ejson  # noqa: E402
import wire  # noqa: E402
from gen import data  # noqa: E402

DB, WRITE_COLL, SEED = "df", "w", 20260101
GOLDEN = HERE / "golden"
MODULES = ["match", "project", "update", "fam", "index", "agg", "join", "window", "exprindex", "errors", "expr", "ddl", "ddlargs", "text", "timeseries", "geo", "commands", "manual", "extremes", "orders", "mistakes", "statements", "found"]
VOLATILE = ("$clusterTime", "operationTime", "electionId", "opTime", "ok", "codeName")
NOW_MS = (1704067200000, 2840140800000)  # 2024..2060: dates the server made; data sets hold none of them


def dumps(x):
    return json.dumps(x, ensure_ascii=False, separators=(",", ":"))


# ------------------------------------------------------------------ generating


def generate(prefixes=()):
    """topic -> [case]; equal cases are kept once; the id is a digest of the case's content."""
    out = {}
    for m in MODULES:
        try:
            mod = importlib.import_module("gen." + m)
        except ModuleNotFoundError:
            continue
        for topic, fn in mod.TOPICS.items():
            if prefixes and not any(topic.startswith(p) for p in prefixes):
                continue
            seen = {}
            for c in fn(random.Random(f"{SEED}/{topic}")):
                h = hashlib.sha256(dumps(c).encode()).hexdigest()[:8]
                seen.setdefault(h, {"id": f"{topic}/{h}", **c})
            out[topic] = list(seen.values())
    return out


# ------------------------------------------------------------------ asking a server


class Asker:
    """Replays cases on one server: loads the data sets once, rebuilds the write collection for each write."""

    def __init__(self, uri, setups, oplog):
        self.c = wire.Conn(uri, timeout=60)
        self.uri, self.setups, self.oplog = uri, setups, oplog
        self.loaded, self.docs, self.plain = set(), {}, False

    def fresh(self):
        """No database of ours exists: each topic starts from nothing."""
        for db in (DB, DB + "2", DB + "_other", DB.upper()):
            self.c.command(db, {"dropDatabase": 1})
        self.loaded.clear()
        self.plain = False

    def reconnect(self):
        for _ in range(50):
            try:
                self.c = wire.Conn(self.uri, timeout=60)
                return
            except OSError:
                time.sleep(0.2)
        raise SystemExit("differ: the server is gone")

    def docs_of(self, name):
        if name not in self.docs:
            s = self.setups[name]
            self.docs[name] = s["docs"] if "docs" in s else self.docs_of(s["same_docs_as"])
        return self.docs[name]

    def load(self, name):
        if name in self.loaded:
            return
        s = self.setups[name]
        self.c.command(DB, {"drop": name})
        if s.get("options"):
            self.c.ok(DB, {"create": name, **s["options"]})
        for ix in s.get("indexes", ()):
            self.c.ok(DB, {"createIndexes": name, "indexes": [ix]})
        if s.get("on"):
            self.load(s["on"])
        docs = self.docs_of(name)
        if docs:
            self.c.ok(DB, {"insert": name, "documents": docs})
        self.loaded.add(name)

    def answer(self, case):
        """The comparable answer to a case: a dict as stored under `expect`."""
        if "setup" in case:
            for name in [case["setup"], *case.get("also", ())]:
                if name in self.setups:
                    self.load(name)
            return self.reply(case, self.docs_of(case["setup"]) if case["setup"] in self.setups else [])
        db = case.get("db", DB)
        # a plain collection left by the case before is emptied, not dropped: thousands of drops cost a server dear
        plain = not any(k in case for k in ("pre", "before", "then", "db")) and set(case["cmd"]) & {"update", "delete", "insert", "findAndModify"}
        if not (plain and self.plain and self.c.command(DB, {"delete": WRITE_COLL, "deletes": [{"q": {}, "limit": 0}]}).get("ok") == 1):
            self.c.command(DB, {"drop": WRITE_COLL})
        self.plain = bool(plain)
        for p in case.get("before", ()):
            self.c.command(p.pop("$db", DB) if "$db" in p else DB, dict(p))
        docs = case.get("docs", [])
        if docs:
            self.c.ok(DB, {"insert": WRITE_COLL, "documents": docs})
        pre = []
        for p in case.get("pre", ()):
            r = self.c.command(DB, p)
            if r.get("ok") != 1:
                pre.append([r.get("code"), r.get("errmsg")])
        since = None
        if case.get("oplog") and self.oplog:
            since = self.c.ok(DB, {"ping": 1}).get("operationTime")
        out = self.reply(case, docs)
        if pre:
            out["pre_errors"] = normal(pre)
        if case.get("after", True):
            try:
                now = self.c.cursor(DB, {"find": WRITE_COLL, "filter": {}})
            except RuntimeError as e:
                now = str(e)
            now = normal(now)
            out["after"] = "same" if dumps(now) == dumps(docs) else now
        for p in case.get("then", ()):
            out.setdefault("then", []).append(self.reply({"cmd": p}, docs))
        if since:
            es = self.c.cursor("local", {"find": "oplog.rs", "filter": {"ts": {"$gt": since}, "ns": f"{DB}.{WRITE_COLL}"}, "sort": {"$natural": 1}})
            out["oplog"] = [{k: normal(e[k]) for k in ("op", "o", "o2") if k in e} for e in es]
        return out

    def reply(self, case, docs):
        cmd = case["cmd"]
        r = self.c.command(case.get("db", DB), cmd)
        if r.get("ok") != 1:
            return error(r)
        if case.get("brief"):
            return {"reply": {}}
        if case.get("shape"):
            return {"reply": shape({k: v for k, v in r.items() if k not in VOLATILE})}
        cur = r.get("cursor")
        if not isinstance(cur, dict) or "firstBatch" not in cur:
            out = normal({k: v for k, v in r.items() if k not in VOLATILE})
            if "distinct" in cmd and isinstance(out.get("values"), list):
                out["values"].sort(key=dumps)  # the order is the plan's affair
            return {"reply": out}
        out = list(cur["firstBatch"])
        if case.get("raw"):
            open_ = cur["id"] != ejson.L(0)
            if open_:
                self.c.command(DB, {"killCursors": cur["ns"].split(".", 1)[1], "cursors": [cur["id"]]})
            return {**rows(out, docs, False), "open": open_}
        db, name = cur["ns"].split(".", 1)
        while cur["id"] != ejson.L(0):
            r = self.c.command(db, {"getMore": cur["id"], "collection": name})
            if r.get("ok") != 1:
                return error(r)
            cur = r["cursor"]
            out += cur["nextBatch"]
        return rows(out, docs, case.get("unordered", False))


def shape(x):
    """The names of a reply and the types of their values; of a list its first."""
    if isinstance(x, dict) and not (len(x) == 1 and next(iter(x)).startswith("$")):
        return {k: shape(v) for k, v in sorted(x.items())}
    if isinstance(x, list):
        return [shape(v) for v in x[:1]]
    if isinstance(x, dict):
        return next(iter(x))
    return type(x).__name__


def error(r):
    e = {"err": [r.get("code"), normal(r.get("errmsg"))]}
    extra = {k: normal(v) for k, v in r.items() if k not in VOLATILE + ("code", "errmsg", "errorLabels")}
    if extra:
        e["extra"] = extra
    return e


def rows(got, docs, unordered):
    got = [normal(d) for d in got]
    by_id = {dumps(d.get("_id")): dumps(d) for d in docs}
    if unordered:
        got.sort(key=dumps)
    if all("_id" in d and by_id.get(dumps(d["_id"])) == dumps(d) for d in got) and len(got) > 0:
        return {"ids": [d["_id"] for d in got]}
    if got and all(list(d) == ["_id"] for d in got):
        return {"only_ids": [d["_id"] for d in got]}
    return {"docs": got}


_oid = re.compile(r"ObjectId\('[6-9a-f][0-9a-f]{23}'\)")
_uuid = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")


def normal(x):
    """Replaces what the server invents (ids, times, UUIDs) by names."""
    if isinstance(x, dict):
        if len(x) == 1:
            if "$oid" in x and x["$oid"] >= "6":
                return "<oid>"
            if "$date" in x and isinstance(x["$date"], dict) and NOW_MS[0] < int(x["$date"]["$numberLong"]) < NOW_MS[1]:
                return "<now>"
            if "$timestamp" in x and NOW_MS[0] < x["$timestamp"]["t"] * 1000 < NOW_MS[1]:
                return "<ts>"
            if "$binary" in x and x["$binary"]["subType"] == "04" and x["$binary"]["base64"].strip("A=") and len(x["$binary"]["base64"]) == 24:
                return "<uuid>"
        return {k: normal(v) for k, v in x.items()}
    if isinstance(x, list):
        return [normal(v) for v in x]
    if isinstance(x, str) and len(x) >= 24:
        return _uuid.sub("<uuid>", _oid.sub("ObjectId('<oid>')", x))
    return x


# ------------------------------------------------------------------ golden files


def read_golden(prefixes=()):
    out = collections.OrderedDict()
    for f in sorted(GOLDEN.glob("*.jsonl")):
        if prefixes and not any(f.stem.startswith(p) or p.startswith(f.stem) for p in prefixes):
            continue
        with open(f, encoding="utf-8") as fh:
            out[f.stem] = [json.loads(ln) for ln in fh]
    return out


def record(uri, prefixes):
    setups = data.setups()
    GOLDEN.mkdir(exist_ok=True)
    a = Asker(uri, setups, True)
    with open(GOLDEN / "setups.json", "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(f"{dumps(k)}:{dumps(v)}" for k, v in setups.items()) + "\n}\n")
    total = size = 0
    for topic, cases in generate(prefixes).items():
        t0, errs = time.monotonic(), collections.Counter()
        lines = []
        a.fresh()
        for c in cases:
            e = a.answer(json.loads(dumps(c)))
            if "err" in e:
                errs[e["err"][0]] += 1
            if "after" in e and e["after"] == "same" and not c.get("docs"):
                del e["after"]
            lines.append(dumps({**c, "expect": e}) + "\n")
        (GOLDEN / f"{topic}.jsonl").write_text("".join(lines), encoding="utf-8")
        total, size = total + len(lines), size + sum(len(x.encode()) for x in lines)
        print(f"{topic:22} {len(lines):5} cases  {sum(len(x) for x in lines) // 1024:5} KiB  {time.monotonic() - t0:5.1f} s  "
              f"errors {sum(errs.values())} {dict(errs.most_common(6))}", flush=True)
    print(f"{total} cases, {size / 1e6:.2f} MB")
    return 0


# ------------------------------------------------------------------ comparing


def differs(want, got, flags):
    """'' if equal, else the kind of difference: result, code, message, after, oplog, crash."""
    if "crash" in got:
        return "crash"
    if ("err" in want) != ("err" in got):
        return "result"
    kind = ""
    if "err" in want:
        if want["err"][0] != got["err"][0]:
            return "code"
        if want["err"][1] != got["err"][1]:
            kind = "message"
        if want.get("extra") != got.get("extra"):
            return "extra"
    for k in ("ids", "only_ids", "docs", "reply", "open"):
        if dumps(want.get(k)) != dumps(got.get(k)):
            if k == "reply" and dumps(soften(want[k])) == dumps(soften(got.get(k))):
                kind = "message"
                continue
            return "result"
    if "after" in want and dumps(want["after"]) != dumps(got.get("after")):
        return "after"
    if "then" in want or "then" in got:
        for w, g in zip(want.get("then", []), got.get("then", [])):
            k = differs(w, g, flags)
            if k and k != "message":
                return "then"
            kind = kind or k
    if want.get("pre_errors") != got.get("pre_errors"):
        if [e[0] for e in want.get("pre_errors", [])] != [e[0] for e in got.get("pre_errors", [])]:
            return "pre"
        kind = kind or "message"
    if flags.oplog and "oplog" in want and dumps(want["oplog"]) != dumps(got.get("oplog")):
        return "oplog"
    return kind


def soften(x):
    if isinstance(x, dict):
        return {k: ("*" if k == "errmsg" else soften(v)) for k, v in x.items()}
    if isinstance(x, list):
        return [soften(v) for v in x]
    return x


def run(a):
    explained = json.loads((HERE / "explained.json").read_text())
    golden = read_golden(a.topics)
    if not golden:
        print("differ: no golden files for that", file=sys.stderr)
        return 2
    setups = json.loads((GOLDEN / "setups.json").read_text(encoding="utf-8"))
    asker = Asker(a.uri, setups, a.oplog)
    tot, dump, bad_explained = collections.Counter(), [], []
    print(f"{'topic':22} cases  same  diff   msg  explained   kinds")
    for topic, cases in golden.items():
        n, shown, t0 = collections.Counter(), 0, time.monotonic()
        asker.fresh()
        for c in cases:
            want = c.pop("expect")
            if a.case and c["id"] != a.case:
                continue
            if a.topics and not any(c["id"].startswith(p) for p in a.topics):
                continue
            try:
                got = asker.answer(json.loads(dumps(c)))
                got = json.loads(dumps(got))
                if "after" in want and got.get("after") == "same" and want["after"] != "same":
                    got["after"] = c.get("docs", [])
            except Exception as e:  # noqa: BLE001  a server that misbehaves is a difference, not our end
                got = {"crash": f"{type(e).__name__}: {e}"[:300]}
                asker.reconnect()
            n["cases"] += 1
            kind = differs(want, got, a)
            if a.case:
                print(json.dumps({"case": c, "want": want, "got": got, "kind": kind}, ensure_ascii=False, indent=1))
            why = explain(explained, c["id"], kind)
            if not kind:
                n["same"] += 1
            elif why:
                n["explained"] += 1
            elif kind == "message" and not a.msg:
                n["msg"] += 1
            else:
                n["diff"] += 1
                n["kind:" + kind] += 1
            if kind and not why:
                dump.append({"kind": kind, "case": c, "want": want, "got": got})
                if (kind != "message" or a.msg) and (a.all or shown < a.show) and not a.case:
                    shown += 1
                    trim = lambda x: dumps(x)[:400]  # noqa: E731
                    print(f"  [{kind}] {c['id']} {trim({k: v for k, v in c.items() if k not in ('id', 'docs')})}")
                    if c.get("docs"):
                        print(f"     docs {trim(c['docs'])}")
                    for k in want:
                        if dumps(want[k]) != dumps(got.get(k)) and (k != "oplog" or kind == "oplog"):
                            print(f"     {k}: want {trim(want[k])}\n     {' ' * len(k)}  got  {trim(got.get(k, got.get('err', got.get('crash'))))}")
        kinds = " ".join(f"{k[5:]}={v}" for k, v in n.items() if k.startswith("kind:"))
        if n["cases"]:
            print(f"{topic:22} {n['cases']:5} {n['same']:5} {n['diff']:5} {n['msg']:5} {n['explained']:6}       {kinds}  {time.monotonic() - t0:.1f} s", flush=True)
        tot.update(n)
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            f.writelines(dumps(d) + "\n" for d in dump)
    print(f"{tot['cases']} cases: {tot['same']} same, {tot['msg']} differ in error text only, {tot['explained']} explained, {tot['diff']} unexplained")
    return 1 if tot["diff"] else 0


def beside(a):
    """Asks a real server and ours the same generated cases now, and prints in groups what they answer differently."""
    sys.path.insert(0, str(HERE))
    generated = generate(a.topics)
    setups = json.loads((GOLDEN / "setups.json").read_text(encoding="utf-8"))
    theirs, ours = Asker(a.beside, setups, False), Asker(a.uri, setups, False)
    total, different, dump = 0, 0, []
    for topic, cases in generated.items():
        groups, n = collections.OrderedDict(), 0
        theirs.fresh()
        ours.fresh()
        for c in cases:
            if a.sample and random.Random(c["id"]).random() > a.sample:
                continue
            n += 1
            try:
                want = json.loads(dumps(theirs.answer(json.loads(dumps(c)))))
            except Exception as e:  # noqa: BLE001  what ends a real server tells nothing about ours
                print(f"  the reference did not answer {dumps(c['cmd'])[:200]}: {type(e).__name__}", flush=True)
                time.sleep(8)
                theirs.reconnect()
                theirs.loaded.clear()
                continue
            try:
                got = json.loads(dumps(ours.answer(json.loads(dumps(c)))))
            except Exception as e:  # noqa: BLE001  a server that misbehaves is a difference, not our end
                got = {"crash": f"{type(e).__name__}: {e}"[:300]}
                ours.reconnect()
            kind = differs(want, got, a)
            if not kind or kind == "message" and not a.msg:
                continue
            told = lambda x: dumps(x["err"])[:160] if "err" in x else "answer"  # noqa: E731
            groups.setdefault((kind, list(c["cmd"])[0], told(want), told(got)), []).append((c, want, got))
            dump.append({"kind": kind, "case": c, "want": want, "got": got})
        found = sum(map(len, groups.values()))
        print(f"{topic}: {n} cases, {found} differ in {len(groups)} ways", flush=True)
        for (kind, name, w, g), cs in sorted(groups.items(), key=lambda kv: -len(kv[1])):
            print(f"  {len(cs):4} [{kind}] {name}: want {w}\n                got {g}")
            for c, want, got in cs[:a.show]:
                print(f"         {dumps({k: v for k, v in c.items() if k not in ('id', 'docs', 'setup')})[:300]}")
                if w == g == "answer":
                    print(f"           want {dumps(want)[:400]}\n           got  {dumps(got)[:400]}")
        total, different = total + n, different + found
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            f.writelines(dumps(d) + "\n" for d in dump)
    print(f"{total} cases, {different} differ")
    return 1 if different else 0


def explain(table, case_id, kind):
    """The accepted reason for a difference, from explained.json."""
    for e in table:
        if kind in e["kinds"] and (case_id in e.get("cases", ()) or case_id.split("/")[0] in e.get("topics", ())):
            return e["reason"]
    return None


def main():
    ap = argparse.ArgumentParser(usage=__doc__)
    ap.add_argument("what", choices=["gen", "record", "run", "beside"])
    ap.add_argument("uri", nargs="?", default="mongodb://127.0.0.1:27017")
    ap.add_argument("topics", nargs="*")
    ap.add_argument("--show", type=int, default=3)
    ap.add_argument("--all", action="store_true")
    ap.add_argument("--case")
    ap.add_argument("--msg", action="store_true")
    ap.add_argument("--oplog", action="store_true")
    ap.add_argument("--json")
    ap.add_argument("--beside", help="a real server's URI, for `beside`")
    ap.add_argument("--sample", type=float, help="with `beside`: the share of cases to ask")
    a = ap.parse_args()
    if a.what == "gen":
        g = generate(a.topics)
        for t, cs in g.items():
            print(f"{t:22} {len(cs):5}")
        print(sum(map(len, g.values())), "cases")
        return 0
    if a.what == "beside":
        return beside(a)
    if a.case and not a.topics:
        a.topics = [a.case.split("/")[0]]
    return record(a.uri, a.topics) if a.what == "record" else run(a)


if __name__ == "__main__":
    sys.exit(main())
