"""Arguments of commands that read, write, page, aggregate, administer and diagnose, by values of every type and extreme."""
import os

from .data import CODE, CODEW, D, DATE, INF, L, MAXKEY, MINKEY, NAN, OID, RE, SYM, TS, UNDEF

DOCS = [{"_id": 1, "a": 1, "s": "x"}, {"_id": 2, "a": 2, "s": "y"}, {"_id": 3, "a": 3}]
UUID = {"$binary": {"base64": "ABEiM0RVZneImaq7zN3u/w==", "subType": "04"}}
BYTES = {"$binary": {"base64": "AAEC", "subType": "00"}}
NINF = {"$numberDouble": "-Infinity"}
# One of each type, and the numbers at which a rounding or a bound shows.
ALL_VALUES = [
    None, UNDEF, True, False, 0, 1, -1, 2, 2147483647, -2147483648,
    L(0), L(1), L(-1), L(2**31), L(2**63 - 1), L(-(2**63)),
    0.0, -0.0, 1.0, 0.5, 1.9, -0.5, -1.5, 2147483648.0, 1e19, -1e19, NAN, INF, NINF,
    D("0"), D("1"), D("0.5"), D("1.5"), D("-1"), D("NaN"), D("Infinity"), D("1E+400"),
    "", "a", "1", "$a", "a\0b", {}, {"a": 1}, {"$a": 1}, {"": 1}, {"_id": 1}, {"_id": "x"}, [], [1], ["a"], [{}], [[]],
    BYTES, UUID, OID(1), DATE(0), TS(1, 1), RE("a"), MINKEY, MAXKEY, CODE("a"), SYM("a"), CODEW("a", {}),
]
# The golden files hold a few of each kind; `COMMAND_VALUES=all` asks with all of them.
SOME_VALUES = [None, UNDEF, True, 0, L(1), 0.5, D("1.5"), "", "a\0b", {}, {"a": 1}, [], [1], UUID, BYTES]
VALUES = ALL_VALUES if os.environ.get("COMMAND_VALUES") == "all" else SOME_VALUES
FEW = [None, UNDEF, True, False, 0, 1, -1, L(1), 1.0, 0.5, NAN, D("1"), "", "a", {}, {"a": 1}, {"$a": 1}, [], [1], [{}], UUID, DATE(0), RE("a"), MINKEY]


def read(cmd, **more):
    return {"setup": "steps", "cmd": cmd, **more}


def each(base, names, values=VALUES, **more):
    """The command with each of the arguments in turn, by each of the values."""
    for name in names.split():
        for v in values:
            if name not in ("term", "maxTimeMS") or not numeric(v):
                yield read({**base, name: v}, **more)


def numeric(v):
    """A member that hears of a newer term steps down; a time limit of a millisecond is now met and now not."""
    return isinstance(v, (int, float)) or isinstance(v, dict) and any(k.startswith("$number") for k in v)


def pairs(base, options):
    """Each two of the wrong or odd options, in both orders: which is named first."""
    for i, (a, x) in enumerate(options):
        for j, (b, y) in enumerate(options):
            if i != j and a != b:
                yield read({**base, a: x, b: y})


GENERIC = "readConcern writeConcern maxTimeMS comment $readPreference lsid txnNumber autocommit startTransaction apiVersion apiStrict apiDeprecationErrors $db"
GENERIC_SAFE = "readConcern writeConcern maxTimeMS $readPreference lsid apiVersion apiStrict apiDeprecationErrors"
FIND = "filter sort projection hint skip limit batchSize singleBatch min max returnKey showRecordId tailable awaitData noCursorTimeout collation allowDiskUse let allowPartialResults readOnce ntoreturn term collectionUUID oplogReplay $_requestResumeToken $_resumeAfter legacyRuntimeConstants options foo"


def find(rnd):
    yield from each({"find": "steps"}, FIND + " " + GENERIC_SAFE)
    for v in VALUES:
        yield read({"find": v})
    odd = [("filter", 1), ("sort", {"a": 5}), ("projection", {"a": 1, "b": 0}), ("hint", "nope"), ("skip", -1), ("limit", -1), ("batchSize", "x"), ("singleBatch", 1), ("min", {"a": 1}), ("returnKey", 1), ("tailable", True), ("awaitData", True), ("collation", {"locale": "xx"}), ("allowDiskUse", 1), ("let", 1), ("readConcern", {"level": "x"}), ("maxTimeMS", -1), ("foo", 1), ("comment", 1), ("readConcern", 1), ("writeConcern", {"w": 1})]
    yield from pairs({"find": "steps"}, odd)
    for h in VALUES:
        yield read({"find": "steps", "hint": {"_id": h}})
        yield read({"find": "steps", "hint": {"$natural": h}})
        yield read({"find": "steps", "sort": {"$natural": h}})
        yield read({"find": "steps", "sort": {"a": h}})
        yield read({"find": "steps", "readConcern": {"level": h}})
        yield read({"find": "steps", "readConcern": {"afterClusterTime": h}})
        yield read({"find": "steps", "readConcern": {"level": "snapshot", "atClusterTime": h}})
    for target in ["nosuch", "chain_view"]:
        yield from each({"find": target}, FIND, FEW, also=["chain", "chain_view"])


def count_distinct(rnd):
    yield from each({"count": "steps"}, "query limit skip hint collation fields collectionUUID foo " + GENERIC_SAFE)
    yield from each({"distinct": "steps", "key": "a"}, "key query collation hint collectionUUID foo " + GENERIC_SAFE)
    for v in VALUES:
        yield read({"count": v})
        yield read({"distinct": v, "key": "a"})
        yield read({"count": "steps", "hint": {"_id": v}})
    yield read({"distinct": "steps"})
    yield from pairs({"count": "steps"}, [("query", 1), ("limit", "x"), ("skip", -1), ("hint", 1), ("collation", 1), ("foo", 1), ("readConcern", 1), ("maxTimeMS", -1)])
    yield from pairs({"distinct": "steps"}, [("key", 1), ("key", "a"), ("query", 1), ("hint", "nope"), ("collation", 1), ("foo", 1), ("readConcern", 1)])


def write(cmd, **more):
    return {"docs": DOCS, "cmd": cmd, **more}


def writes(rnd):
    top = "ordered bypassDocumentValidation writeConcern maxTimeMS let stmtId stmtIds comment collectionUUID isTimeseriesNamespace foo"
    for base in [{"insert": "w", "documents": [{"_id": 9}]}, {"update": "w", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 9}}}]}, {"delete": "w", "deletes": [{"q": {"_id": 1}, "limit": 1}]}]:
        for name in top.split():
            for v in VALUES:
                if name != "maxTimeMS" or not numeric(v):
                    yield write({**base, name: v})
        kind = next(iter(base))
        for v in VALUES:
            yield write({**base, kind: v})
    for v in VALUES:
        yield write({"insert": "w", "documents": v})
        yield write({"insert": "w", "documents": [v]})
        yield write({"update": "w", "updates": v})
        yield write({"update": "w", "updates": [v]})
        yield write({"delete": "w", "deletes": v})
        yield write({"delete": "w", "deletes": [v]})
        yield write({"insert": "w", "documents": [{"_id": v, "n": 1}]})
        for f in "q u upsert multi collation hint arrayFilters c upsertSupplied sampleId foo".split():
            yield write({"update": "w", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 9}}, f: v}]})
        for f in "q limit collation hint sampleId foo".split():
            yield write({"delete": "w", "deletes": [{"q": {"_id": 1}, "limit": 1, f: v}]})
        for f in "w j wtimeout fsync provenance foo getLastError".split():
            yield write({"insert": "w", "documents": [{"_id": 9}], "writeConcern": {f: v}})
    for e in [{"q": {}}, {"u": {}}, {"q": 1, "u": 1}, {"q": {}, "u": {}, "multi": True}, {"q": {}, "u": {"a": 1}, "multi": True}, {"q": {}, "u": {"a": 1, "$set": {"b": 1}}}]:
        yield write({"update": "w", "updates": [e]})
    for e in [{"q": {}}, {"limit": 1}, {"q": {}, "limit": 2}]:
        yield write({"delete": "w", "deletes": [e]})


def find_and_modify(rnd):
    for v in VALUES:
        for f in "query sort remove update new fields upsert bypassDocumentValidation writeConcern maxTimeMS collation arrayFilters hint let stmtId foo".split():
            if f == "remove":
                yield write({"findAndModify": "w", "query": {"_id": 1}, "remove": v})
            yield write({"findAndModify": "w", "query": {"_id": 1}, "update": {"$set": {"a": 9}}, f: v})
        yield write({"findAndModify": v, "query": {"_id": 1}, "update": {"$set": {"a": 9}}})
        yield write({"findAndModify": "w", "query": {"_id": 1}, "remove": True, "new": v})


def cursors(rnd):
    for v in VALUES:
        yield read({"getMore": v, "collection": "steps"})
        yield read({"getMore": L(77), "collection": v})
        for f in "batchSize maxTimeMS term lastKnownCommittedOpTime comment readConcern writeConcern foo".split():
            if f == "term" and numeric(v):
                continue
            yield read({"getMore": L(77), "collection": "steps", f: v})
        yield read({"killCursors": v, "cursors": [L(1)]})
        yield read({"killCursors": "steps", "cursors": v})
        yield read({"killCursors": "steps", "cursors": [v]})
        yield read({"killCursors": "steps", "cursors": [L(1)], "foo": v})
        yield read({"aggregate": "steps", "pipeline": [], "cursor": {"batchSize": v}})
        yield read({"listCollections": 1, "cursor": {"batchSize": v}, "filter": {"name": "steps"}})
        yield read({"listIndexes": "steps", "cursor": {"batchSize": v}})
        yield read({"listIndexes": v})
        for f in "filter nameOnly authorizedCollections cursor foo".split():
            yield read({"listCollections": 1, "filter": {"name": "nosuch"}, f: v})
        for f in "cursor foo".split():
            yield read({"listIndexes": "steps", f: v})
    yield read({"getMore": L(77)})
    yield read({"killCursors": "steps"})


AGG = "pipeline explain allowDiskUse cursor bypassDocumentValidation collation hint let needsMerge fromMongos isMapReduceCommand collectionUUID foo requestReshardingResumeToken legacyRuntimeConstants exchange runtimeConstants"


def aggregate(rnd):
    for name in (AGG + " " + GENERIC_SAFE).split():
        for v in VALUES:
            c = read({"aggregate": "steps", "pipeline": [], "cursor": {}, name: v})
            yield {**c, "brief": True} if name == "explain" else c
    for v in VALUES:
        yield read({"aggregate": v, "pipeline": [], "cursor": {}})
        yield read({"aggregate": "steps", "pipeline": [v], "cursor": {}})
        yield read({"aggregate": "steps", "pipeline": [{"$match": {}}, v], "cursor": {}})
        yield read({"aggregate": "steps", "pipeline": [], "cursor": {"foo": v}})
        yield read({"aggregate": "steps", "pipeline": [], "cursor": {}, "hint": {"_id": v}})
        yield {**read({"aggregate": 1, "db": "admin", "pipeline": [{"$currentOp": v}], "cursor": {}}), "brief": True}
    yield read({"aggregate": "steps", "cursor": {}})
    yield read({"aggregate": "steps", "pipeline": []})
    odd = [("pipeline", 1), ("pipeline", [{"$foo": 1}]), ("cursor", 1), ("explain", 1), ("allowDiskUse", 1), ("collation", 1), ("hint", 1), ("let", 1), ("foo", 1), ("readConcern", 1), ("readConcern", {"level": "x"}), ("maxTimeMS", -1), ("explain", True), ("writeConcern", {"w": 1}), ("bypassDocumentValidation", "x")]
    for c in pairs({"aggregate": "steps"}, odd):
        yield {**c, "brief": True} if c["cmd"].get("explain") is True else c


def sources(rnd):
    """First stages that read no documents, and what they refuse."""
    few = FEW if VALUES is ALL_VALUES else [None, UNDEF, True, {}, {"a": 1}, [], [1], [{}]]
    more = {"also": ["chain", "chain_view"], "brief": True}
    level = ["local", "majority", "available", "linearizable", "snapshot"]
    for coll in ["steps", "chain_view", "nosuch", 1]:
        for stage, options in [("$collStats", ["latencyStats", "storageStats", "count", "queryExecStats", "foo"]), ("$indexStats", ["foo"]), ("$planCacheStats", ["allHosts", "foo"]), ("$listLocalSessions", ["users", "allUsers", "foo"]), ("$listSessions", ["users", "allUsers"]), ("$currentOp", ["allUsers", "idleConnections", "idleCursors", "idleSessions", "localOps", "truncateOps", "backtrace", "foo"]), ("$documents", [])]:
            for v in few:
                yield {**read({"aggregate": coll, "pipeline": [{stage: v}], "cursor": {}}), **more}
                for o in options:
                    yield {**read({"aggregate": coll, "pipeline": [{stage: {o: v}}], "cursor": {}}), **more}
            for x in level:
                yield {**read({"aggregate": coll, "pipeline": [{stage: {}}], "cursor": {}, "readConcern": {"level": x}}), **more}
            yield {**read({"aggregate": coll, "pipeline": [{"$match": {}}, {stage: {}}], "cursor": {}}), **more}
            yield {**read({"aggregate": coll, "pipeline": [{"$facet": {"x": [{stage: {}}]}}], "cursor": {}}), **more}
    for v in few:
        for o in ["allUsers", "idleConnections", "idleCursors", "idleSessions", "localOps", "truncateOps", "backtrace", "foo"]:
            yield {"db": "admin", "cmd": {"aggregate": 1, "pipeline": [{"$currentOp": {o: v}}, {"$limit": 1}], "cursor": {}}, "after": False, "brief": True}
        yield {"db": "admin", "cmd": {"aggregate": 1, "pipeline": [{"$currentOp": v}], "cursor": {}}, "after": False, "brief": True}
    for x in level:
        yield {"db": "admin", "cmd": {"aggregate": 1, "pipeline": [{"$currentOp": {}}], "cursor": {}, "readConcern": {"level": x}}, "after": False, "brief": True}
        yield {"db": "admin", "cmd": {"aggregate": 1, "pipeline": [{"$listLocalSessions": {}}], "cursor": {}, "readConcern": {"level": x}}, "after": False, "brief": True}


SINKS = [("$merge", "into on let whenMatched whenNotMatched foo")]


def sinks(rnd):
    for v in VALUES:
        yield write({"aggregate": "src", "pipeline": [{"$out": v}], "cursor": {}})
        yield write({"aggregate": "w", "pipeline": [{"$merge": v}], "cursor": {}})
        for f in "into on let whenMatched whenNotMatched foo".split():
            yield write({"aggregate": "w", "pipeline": [{"$set": {"n": 1}}, {"$merge": {"into": "w", f: v}}], "cursor": {}})
        for f in "db coll".split():
            yield write({"aggregate": "w", "pipeline": [{"$merge": {"into": {"db": "df", "coll": "w", f: v}}}], "cursor": {}})
            yield write({"aggregate": "w", "pipeline": [{"$out": {"db": "df", "coll": "w", f: v}}], "cursor": {}})
        yield write({"aggregate": "w", "pipeline": [{"$set": {"n": 1}}, {"$merge": {"into": "w", "let": v, "whenMatched": [{"$set": {"z": "$$new.n"}}]}}], "cursor": {}})
        yield write({"aggregate": "w", "let": {"k": v}, "pipeline": [{"$set": {"n": 1}}, {"$merge": {"into": "w", "whenMatched": [{"$set": {"z": "$$k"}}]}}], "cursor": {}})
        yield write({"aggregate": "w", "let": {"k": 1}, "pipeline": [{"$merge": {"into": "w", "let": {"x": "$$k", "y": v}, "whenMatched": [{"$set": {"z": ["$$x", "$$y", "$$k"]}}]}}], "cursor": {}})
        for f in "explain readConcern writeConcern allowDiskUse bypassDocumentValidation maxTimeMS".split():
            c = write({"aggregate": "w", "pipeline": [{"$out": "w"}], "cursor": {}, f: v})
            yield {**c, "brief": True} if f == "explain" else c
    for x in ["local", "majority", "available", "linearizable", "snapshot"]:
        for stage in [{"$out": "w"}, {"$merge": "w"}]:
            yield write({"aggregate": "w", "pipeline": [stage], "cursor": {}, "readConcern": {"level": x}})


def explain(rnd):
    inner = {"find": "steps", "filter": {"a": 1}}
    for v in VALUES:
        yield {**read({"explain": v}), "brief": True}
        for f in "verbosity readConcern writeConcern maxTimeMS comment foo".split():
            yield {**read({"explain": inner, f: v}), "brief": True}
        for cmd in [{"find": "steps"}, {"aggregate": "steps", "pipeline": []}, {"count": "steps"}, {"distinct": "steps", "key": "a"}, {"update": "steps", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]}, {"delete": "steps", "deletes": [{"q": {}, "limit": 1}]}, {"findAndModify": "steps", "query": {}, "remove": True}]:
            for f in "readConcern writeConcern maxTimeMS foo cursor".split():
                yield {**read({"explain": {**cmd, f: v}}), "brief": True}
    for cmd in ["insert", "ping", "listCollections", "getMore", "nosuch", "explain", "mapReduce", "create", "bulkWrite"]:
        yield {**read({"explain": {cmd: "steps"}}), "brief": True}


def sessions(rnd):
    ls = {"id": UUID}
    for v in VALUES:
        for cmd in ["endSessions", "refreshSessions", "killSessions"]:
            yield read({cmd: v})
            yield read({cmd: [v]})
            yield read({cmd: [{"id": v}]})
            yield read({cmd: [{"id": UUID, "uid": v}]})
            yield read({cmd: [ls], "foo": v})
            yield read({cmd: [{"id": UUID, "foo": v}]})
        yield read({"killAllSessions": v})
        yield read({"killAllSessions": [v]})
        yield read({"killAllSessions": [{"user": v, "db": "x"}]})
        yield read({"killAllSessions": [{"user": "x", "db": v}]})
        yield read({"killAllSessions": [{"user": "x", "db": "x", "foo": v}]})
        yield read({"killAllSessionsByPattern": v})
        yield read({"killAllSessionsByPattern": [v]})
        for f in "lsid uid users roles foo".split():
            yield read({"killAllSessionsByPattern": [{f: v}]})
        yield read({"startSession": v}, brief=True)
        yield read({"startSession": 1, "foo": v}, brief=True)
        for f in "id uid txnNumber txnUUID foo".split():
            yield read({"ping": 1, "lsid": {"id": UUID, f: v}})
        yield read({"ping": 1, "lsid": v})
        for f in "txnNumber autocommit startTransaction coordinator".split():
            yield {**read({"find": "steps", "lsid": ls, f: v})}
            yield {**read({"find": "steps", "lsid": ls, "txnNumber": L(5), f: v})}
        for cmd in ["commitTransaction", "abortTransaction"]:
            yield {"db": "admin", "cmd": {cmd: v}, "after": False}
            for f in "txnNumber autocommit writeConcern recoveryToken foo".split():
                yield {"db": "admin", "cmd": {cmd: 1, "lsid": ls, "txnNumber": L(5), "autocommit": False, f: v}, "after": False}


ADMIN = {
    "getParameter": ({"getParameter": 1, "quiet": 1}, "getParameter quiet allParameters foo comment", True),
    "getLog": ({"getLog": "global"}, "getLog foo", True),
    "logRotate": ({"logRotate": "nosuch"}, "logRotate comment foo", True),
    "hostInfo": ({"hostInfo": 1}, "hostInfo foo", True),
    "listDatabases": ({"listDatabases": 1, "filter": {"name": "nosuch"}}, "listDatabases nameOnly filter authorizedDatabases foo", True),
    "connectionStatus": ({"connectionStatus": 1}, "connectionStatus showPrivileges foo", True),
    "killOp": ({"killOp": 1, "op": 123456789}, "killOp op foo", False),
    "currentOp": ({"currentOp": 1}, "currentOp $ownOps $all foo", True),
    "top": ({"top": 1}, "top foo", True),
    "fsync": ({"fsync": 1}, "fsync foo", True),
    "dropConnections": ({"dropConnections": 1, "hostAndPort": ["localhost:1"]}, "dropConnections hostAndPort foo", False),
    "setDefaultRWConcern": ({"setDefaultRWConcern": 1}, "setDefaultRWConcern foo comment", False),
    "getDefaultRWConcern": ({"getDefaultRWConcern": 1}, "getDefaultRWConcern inMemory foo", True),
    "lockInfo": ({"lockInfo": 1}, "lockInfo foo", True),
    "getCmdLineOpts": ({"getCmdLineOpts": 1}, "getCmdLineOpts foo", True),
    "replSetGetStatus": ({"replSetGetStatus": 1}, "replSetGetStatus initialSync foo", True),
    "replSetGetConfig": ({"replSetGetConfig": 1}, "replSetGetConfig commitmentStatus foo", True),
    "serverStatus": ({"serverStatus": 1}, "serverStatus foo comment", True),
    "buildInfo": ({"buildInfo": 1}, "buildInfo foo", True),
    "connPoolStats": ({"connPoolStats": 1}, "connPoolStats foo", True),
    "whatsmyuri": ({"whatsmyuri": 1}, "whatsmyuri foo", True),
    "ping": ({"ping": 1}, "ping foo comment", False),
    "hello": ({"hello": 1}, "hello saslSupportedMechs comment loadBalanced foo helloOk hostInfo", True),
    "listCommands": ({"listCommands": 1}, "listCommands foo", True),
    "appendOplogNote": ({"appendOplogNote": 1, "data": {"a": 1}}, "appendOplogNote data foo maxClusterTime", True),
    "features": ({"features": 1}, "features oidReset foo", True),
    "isdbgrid": ({"isdbgrid": 1}, "isdbgrid foo", False),
    "shardingState": ({"shardingState": 1}, "shardingState foo", True),
    "rotateCertificates": ({"rotateCertificates": 1}, "rotateCertificates message foo", True),
    "replSetSyncFrom": ({"replSetSyncFrom": "localhost:1"}, "replSetSyncFrom foo", False),
    "replSetMaintenance": ({"replSetMaintenance": 1}, "replSetMaintenance foo", False),
    "replSetFreeze": ({"replSetFreeze": "x"}, "foo", False),
    "waitForFailPoint": ({"waitForFailPoint": "nosuch", "timesEntered": 1, "maxTimeMS": 10}, "waitForFailPoint timesEntered foo", False),
    "configureFailPoint": ({"configureFailPoint": "failCommand", "mode": "off"}, "configureFailPoint mode data foo", False),
    "setFeatureCompatibilityVersion": ({"setFeatureCompatibilityVersion": "9.9"}, "setFeatureCompatibilityVersion foo", False),
    "getDiagnosticData": ({"getDiagnosticData": 1}, "getDiagnosticData foo", True),
    "flushRouterConfig": ({"flushRouterConfig": 1}, "flushRouterConfig foo", False),
    "clearLog": ({"clearLog": "global"}, "clearLog foo", False),
    "logMessage": ({"logMessage": "x"}, "logMessage extra foo", False),
    "replSetTest": ({"replSetTest": 1}, "replSetTest foo", False),
}
DATABASE = {
    "profile": ({"profile": -1}, "profile slowms sampleRate filter foo", True),
    "dataSize": ({"dataSize": "df.steps"}, "dataSize keyPattern min max estimate maxSize maxObjects scale foo", True),
    "collStats": ({"collStats": "steps"}, "collStats scale verbose waitForLock numericOnly foo", True),
    "dbStats": ({"dbStats": 1}, "dbStats scale freeStorage foo", True),
    "dbHash": ({"dbHash": 1}, "dbHash collections foo $_internalReadAtClusterTime", True),
    "validate": ({"validate": "steps"}, "validate full metadata background repair checkBSONConformance enforceFastCount foo", True),
    "compact": ({"compact": "steps", "force": True}, "compact force foo freeSpaceTargetMB", True),
    "reIndex": ({"reIndex": "steps"}, "reIndex foo", False),
    "getLastError": ({"getLastError": 1}, "getLastError foo w j wtimeout", False),
    "planCacheClear": ({"planCacheClear": "steps"}, "planCacheClear query sort projection collation foo", False),
    "planCacheSetFilter": ({"planCacheSetFilter": "steps", "query": {"a": 1}, "indexes": [{"a": 1}]}, "planCacheSetFilter query sort projection collation indexes foo", False),
    "planCacheClearFilters": ({"planCacheClearFilters": "steps"}, "planCacheClearFilters query sort projection collation foo", False),
    "planCacheListFilters": ({"planCacheListFilters": "nosuch"}, "planCacheListFilters foo", False),
    "usersInfo": ({"usersInfo": 1}, "usersInfo showCredentials showPrivileges showAuthenticationRestrictions filter foo", True),
    "rolesInfo": ({"rolesInfo": "x"}, "rolesInfo showPrivileges showBuiltinRoles showAuthenticationRestrictions foo", True),
    "filemd5": ({"filemd5": 1, "root": "fs"}, "filemd5 root partialOk md5state foo", True),
    "echo": ({"echo": 1}, "foo", True),
    "top": ({"top": 1}, "foo", True),
    "driverOIDTest": ({"driverOIDTest": OID(1)}, "driverOIDTest foo", True),
    "mapReduce": ({"mapReduce": "steps", "map": "function() { emit(1, 1) }", "reduce": "function(k, v) { return 1 }", "out": {"inline": 1}}, "mapReduce map reduce out query sort limit finalize scope jsMode verbose bypassDocumentValidation collation writeConcern readConcern maxTimeMS foo", True),
    "cloneCollectionAsCapped": ({"whatsmyuri": 1}, "foo", True),
    "splitVector": ({"splitVector": "df.steps", "keyPattern": {"_id": 1}}, "splitVector keyPattern min max maxChunkSize force maxSplitPoints maxChunkObjects maxChunkSizeBytes foo", True),
    "getShardMap": ({"getShardMap": 1}, "foo", True),
    "currentOp": ({"currentOp": 1}, "foo", True),
    "explain": ({"explain": {"find": "steps"}}, "foo", True),
    "logout": ({"logout": 1}, "logout foo", True),
    "authenticate": ({"authenticate": 1, "mechanism": "x"}, "authenticate mechanism user foo", True),
    "saslStart": ({"saslStart": 1, "mechanism": "x", "payload": ""}, "saslStart mechanism payload foo", True),
    "saslContinue": ({"saslContinue": 1, "payload": ""}, "saslContinue payload conversationId foo", True),
    "getnonce": ({"getnonce": 1}, "getnonce foo", True),
    "listIndexes": ({"listIndexes": "steps"}, "includeBuildUUIDs includeIndexBuildInfo foo", False),
}


def administer(rnd):
    for base, names, brief in ADMIN.values():
        for name in names.split():
            for v in VALUES:
                c = {"db": "admin", "cmd": {**base, name: v}, "after": False}
                yield {**c, "brief": True} if brief else c
        yield {"cmd": base, "after": False, "brief": True}
    for v in VALUES:
        for p in ["cursorTimeoutMillis", "internalQueryMaxBlockingSortMemoryUsageBytes", "logLevel", "quiet", "notablescan", "ttlMonitorSleepSecs", "maxTransactionLockRequestTimeoutMillis", "transactionLifetimeLimitSeconds", "nosuch", "internalQueryExecYieldPeriodMS", "wiredTigerConcurrentReadTransactions", "logComponentVerbosity", "syncdelay", "enableTestCommands"]:
            if p == "notablescan" and v not in (False, 0):
                continue
            if p in ("syncdelay", "quiet", "internalQueryExecYieldPeriodMS", "internalQueryMaxBlockingSortMemoryUsageBytes", "cursorTimeoutMillis", "ttlMonitorSleepSecs", "maxTransactionLockRequestTimeoutMillis", "transactionLifetimeLimitSeconds", "logLevel", "wiredTigerConcurrentReadTransactions", "logComponentVerbosity") and v in (1, 2, 1.0, True, "1") :
                continue
            yield {"db": "admin", "cmd": {"setParameter": 1, p: v}, "after": False, "brief": True}
        yield {"db": "admin", "cmd": {"getParameter": {"showDetails": v}, "quiet": 1}, "after": False, "brief": True}
        yield {"db": "admin", "cmd": {"getParameter": {"allParameters": v}}, "after": False, "brief": True}
        for f in "defaultReadConcern defaultWriteConcern".split():
            yield {"db": "admin", "cmd": {"setDefaultRWConcern": 1, f: v}, "after": False, "brief": True}


def diagnose(rnd):
    for base, names, brief in DATABASE.values():
        for name in names.split():
            for v in VALUES:
                c = read({**base, name: v})
                yield {**c, "brief": True} if brief else c
    for v in FEW:
        for cmd in ["profile", "dataSize", "collStats", "dbStats", "validate", "top", "getLog", "getParameter"]:
            yield {"db": "local", "cmd": {cmd: v}, "after": False, "brief": True}


TOPICS = {
    "cmd.find": find, "cmd.count": count_distinct, "cmd.writes": writes, "cmd.fam": find_and_modify, "cmd.cursors": cursors, "cmd.aggregate": aggregate, "cmd.sources": sources,
    "cmd.sinks": sinks, "cmd.explain": explain, "cmd.sessions": sessions, "cmd.administer": administer, "cmd.diagnose": diagnose,
}
