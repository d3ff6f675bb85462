"""The commands of MongoDB's manual, page by page: each option by each type, missing, at its ends and beside unknown ones; each kind of
collection and name; the shape of each reply that succeeds."""
import os

from .commands import BYTES, UUID, VALUES
from .data import D, INF, L, MAXKEY, MINKEY, NAN, OID, RE, TS, UNDEF

# What may stand on every command, and a field that no command has.
ENVELOPE = {
    "comment": VALUES, "maxTimeMS": [None, UNDEF, True, "", "1", -1, 0.5, L(2**31), 1e19, NAN, D("0.5"), {}, [], UUID], "writeConcern": None, "readConcern": None,
    "$readPreference": None, "foo": [1, None], "help": [True, False], "apiVersion": ["1", "2", 1], "mayBypassWriteBlocking": [True, 1], "collectionUUID": [UUID, 1],
}
CONCERNS = {
    "writeConcern": [None, 1, "", [], {}, {"w": 1}, {"w": "majority"}, {"w": "nosuch"}, {"w": 0}, {"w": -1}, {"w": 51}, {"w": 2, "wtimeout": 1}, {"w": None}, {"w": []}, {"w": {}}, {"w": 1.5}, {"j": True}, {"j": 1}, {"j": "x"}, {"j": True, "w": 0}, {"wtimeout": -1}, {"wtimeout": "x"}, {"wtimeout": L(2**40)}, {"fsync": True}, {"fsync": True, "j": True}, {"foo": 1}],
    "readConcern": [None, 1, "", [], {}, *({"level": x} for x in ("local", "available", "majority", "linearizable", "snapshot", "nosuch", "", 1, None)), {"afterClusterTime": TS(1, 1)}, {"afterClusterTime": TS(0, 0)}, {"afterClusterTime": 1}, {"level": "snapshot", "atClusterTime": TS(0, 0)}, {"atClusterTime": TS(1, 1)}, {"foo": 1}],
    "$readPreference": [None, 1, "", [], {}, *({"mode": x} for x in ("primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest", "nosuch", 1, None)), {"mode": "primary", "tags": [{"a": "b"}]}, {"mode": "nearest", "tags": 1}, {"mode": "secondary", "maxStalenessSeconds": 90}, {"mode": "secondary", "maxStalenessSeconds": 5}, {"mode": "primary", "hedge": {"enabled": True}}, {"mode": "nearest", "hedge": 1}],
}
for name, values in CONCERNS.items():
    ENVELOPE[name] = values

PLACES = [{"create": "empty"}, {"create": "cap", "capped": True, "size": 4096, "max": 10}, {"create": "ts", "timeseries": {"timeField": "t"}}, {"create": "view", "viewOn": "w", "pipeline": []},
          {"insert": "cap", "documents": [{"_id": 1, "a": 1}]}]
NAMES = ["nosuch", "empty", "cap", "ts", "view", "w", "system.buckets.ts", "system.buckets.nosuch", "system.views", "system.profile", "system.js", "system.foo", "system.indexes", "system.namespaces", "system.users", "system.", "system",
         "$cmd", "$cmd.aggregate", "$a", "a$b", "", ".", ".a", "a.", "a..b", "a b", "a\0b", "x" * 240, "x" * 251, "x" * 252, "x" * 300, "oplog.rs", "oplog.$main", "local.oplog.rs", "nosuch.$cmd", "nosuch.system.foo", "é"]
DATABASES = ["admin", "local", "config", "nosuchdb"]
DOCS = [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]

# command: its arguments, the options that are varied, what else is asked
#   w: it writes, so collections are made anew   c: it names a collection   a: it runs on admin   s: only the reply's shape counts   n: it may not be asked with numbers
COMMANDS = {
    "aggregate": ({"aggregate": "w", "pipeline": [], "cursor": {}}, "", "c"),
    "count": ({"count": "w"}, "", "c"),
    "distinct": ({"distinct": "w", "key": "a"}, "", "c"),
    "find": ({"find": "w"}, "", "c"),
    "mapReduce": ({"mapReduce": "w", "map": "function() { emit(1, 1) }", "reduce": "function(k, v) { return 1 }", "out": {"inline": 1}}, "", "c"),
    "mapReduce.out": ({"mapReduce": "w", "map": "function() { emit(1, 1) }", "reduce": "function(k, v) { return 1 }", "out": "w2"}, "map reduce out finalize scope query sort limit", "w"),
    "insert": ({"insert": "w", "documents": [{"_id": 9}]}, "", "wc"),
    "update": ({"update": "w", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": 9}}}]}, "", "wc"),
    "update.upsert": ({"update": "w", "updates": [{"q": {"_id": 7}, "u": {"$set": {"a": 9}}, "upsert": True}]}, "", "wc"),
    "delete": ({"delete": "w", "deletes": [{"q": {"_id": 1}, "limit": 1}]}, "", "wc"),
    "findAndModify": ({"findAndModify": "w", "query": {"_id": 1}, "update": {"$set": {"a": 9}}}, "", "wc"),
    "findAndModify.remove": ({"findAndModify": "w", "query": {"_id": 1}, "remove": True}, "", "wc"),
    "getMore": ({"getMore": L(77), "collection": "w"}, "collection", ""),
    "killCursors": ({"killCursors": "w", "cursors": [L(1)]}, "", "c"),
    "planCacheClear": ({"planCacheClear": "w"}, "", "c"),
    "planCacheSetFilter": ({"planCacheSetFilter": "w", "query": {"a": 1}, "indexes": [{"a": 1}]}, "", "c"),
    "planCacheClearFilters": ({"planCacheClearFilters": "w"}, "", "c"),
    "planCacheListFilters": ({"planCacheListFilters": "w"}, "", "c"),
    "create": ({"create": "w2"}, "", "wc"),
    "createIndexes": ({"createIndexes": "w", "indexes": [{"key": {"b": 1}, "name": "b"}]}, "indexes commitQuorum ignoreUnknownIndexOptions", "wc"),
    "drop": ({"drop": "w"}, "", "wc"),
    "dropDatabase": ({"dropDatabase": 1}, "", "w"),
    "dropIndexes": ({"dropIndexes": "w", "index": "*"}, "index", "wc"),
    "collMod": ({"collMod": "w"}, "", "wc"),
    "convertToCapped": ({"convertToCapped": "w", "size": 4096}, "size", "wc"),
    "cloneCollectionAsCapped": ({"cloneCollectionAsCapped": "w", "toCollection": "w2", "size": 4096}, "size toCollection temp", "wc"),
    "renameCollection": ({"renameCollection": "df.w", "to": "df.w2"}, "", "wa"),
    "listCollections": ({"listCollections": 1, "filter": {"name": "w"}}, "", "s"),
    "listIndexes": ({"listIndexes": "w"}, "", "c"),
    "listDatabases": ({"listDatabases": 1, "filter": {"name": "df"}}, "listDatabases filter nameOnly authorizedDatabases", "as"),
    "compact": ({"compact": "w", "force": True}, "", "wcs"),
    "reIndex": ({"reIndex": "w"}, "", "wc"),
    "validate": ({"validate": "w"}, "", "wcs"),
    "collStats": ({"collStats": "w"}, "scale waitForFilesToBeFreed", "wcb"),
    "dataSize": ({"dataSize": "df.w"}, "keyPattern min max maxSize maxObjects estimate", "wcs"),
    "dbStats": ({"dbStats": 1}, "dbStats scale freeStorage", "s"),
    "dbHash": ({"dbHash": 1}, "dbHash collections", "s"),
    "applyOps": ({"applyOps": []}, "applyOps allowAtomic alwaysUpsert preCondition oplogApplicationMode", "wa"),
    "applyOps.n": ({"applyOps": [{"op": "n", "ns": "", "o": {"a": 1}}]}, "", "wa"),
    "hello": ({"hello": 1}, "hello helloOk client compression topologyVersion maxAwaitTimeMS saslSupportedMechs speculativeAuthenticate hostInfo internalClient", "s"),
    "isMaster": ({"isMaster": 1}, "isMaster helloOk", "s"),
    "replSetGetConfig": ({"replSetGetConfig": 1}, "replSetGetConfig commitmentStatus includeNewlyAdded $_internalIncludeNewlyAdded", "as"),
    "replSetGetStatus": ({"replSetGetStatus": 1}, "replSetGetStatus initialSync", "ab"),
    "replSetInitiate": ({"replSetInitiate": {"_id": "rs"}}, "replSetInitiate", "as"),
    "replSetFreeze": ({"replSetFreeze": 1}, "replSetFreeze", "as"),
    "replSetMaintenance": ({"replSetMaintenance": 1}, "replSetMaintenance", "as"),
    "replSetSyncFrom": ({"replSetSyncFrom": "localhost:1"}, "replSetSyncFrom", "as"),
    "replSetResizeOplog": ({"replSetResizeOplog": 1}, "size minRetentionHours replSetResizeOplog", "as"),
    "replSetAbortPrimaryCatchUp": ({"replSetAbortPrimaryCatchUp": 1}, "replSetAbortPrimaryCatchUp", "as"),
    "replSetGetRBID": ({"replSetGetRBID": 1}, "replSetGetRBID", "as"),
    "replSetStepUp": ({"replSetStepUp": 1}, "replSetStepUp skipDryRun", "as"),
    "appendOplogNote": ({"appendOplogNote": 1, "data": {"a": 1}}, "appendOplogNote data maxClusterTime", "as"),
    "abortTransaction": ({"abortTransaction": 1}, "abortTransaction recoveryToken", "a"),
    "commitTransaction": ({"commitTransaction": 1}, "commitTransaction recoveryToken commitTimestamp durableTimestamp", "a"),
    "endSessions": ({"endSessions": []}, "endSessions", ""),
    "killAllSessions": ({"killAllSessions": [{"user": "x", "db": "y"}]}, "killAllSessions", ""),
    "killAllSessionsByPattern": ({"killAllSessionsByPattern": [{"users": [{"user": "x", "db": "y"}]}]}, "killAllSessionsByPattern", ""),
    "killSessions": ({"killSessions": [{"id": UUID}]}, "killSessions", ""),
    "refreshSessions": ({"refreshSessions": []}, "refreshSessions", ""),
    "startSession": ({"startSession": 1}, "startSession", "s"),
    "connPoolSync": ({"connPoolSync": 1}, "connPoolSync", "as"),
    "currentOp": ({"currentOp": 1}, "currentOp $all $ownOps $truncateOps", "ab"),
    "dropConnections": ({"dropConnections": 1, "hostAndPort": ["x:1"]}, "dropConnections hostAndPort", "as"),
    "filemd5": ({"filemd5": 1, "root": "fs"}, "filemd5 root partialOk md5state", "s"),
    "fsyncUnlock": ({"fsyncUnlock": 1}, "fsyncUnlock", "a"),
    "getDefaultRWConcern": ({"getDefaultRWConcern": 1}, "getDefaultRWConcern inMemory", "as"),
    "setDefaultRWConcern": ({"setDefaultRWConcern": 1}, "setDefaultRWConcern", "as"),
    "getClusterParameter": ({"getClusterParameter": "changeStreamOptions"}, "getClusterParameter omitInFTDC", "as"),
    "setClusterParameter": ({"setClusterParameter": {"nosuch": {}}}, "setClusterParameter", "as"),
    "getParameter": ({"getParameter": 1, "quiet": 1}, "getParameter", "ab"),
    "setParameter": ({"setParameter": 1, "quiet": False}, "setParameter", "as"),
    "killOp": ({"killOp": 1, "op": 999999999}, "killOp op", "as"),
    "logRotate": ({"logRotate": "nosuch"}, "", "as"),
    "setFeatureCompatibilityVersion": ({"setFeatureCompatibilityVersion": "nosuch"}, "setFeatureCompatibilityVersion downgradeOnDiskChanges fromConfigServer", "as"),
    "setIndexCommitQuorum": ({"setIndexCommitQuorum": "w", "indexNames": ["a"], "commitQuorum": 1}, "indexNames commitQuorum", "c"),
    "setUserWriteBlockMode": ({"setUserWriteBlockMode": 1, "global": False}, "setUserWriteBlockMode global", "a"),
    "splitVector": ({"splitVector": "df.w", "keyPattern": {"_id": 1}, "maxChunkSizeBytes": 1000}, "keyPattern min max maxChunkSize force maxSplitPoints maxChunkObjects maxChunkSizeBytes", ""),
    "buildInfo": ({"buildInfo": 1}, "buildInfo", "b"),
    "connPoolStats": ({"connPoolStats": 1}, "connPoolStats", "b"),
    "connectionStatus": ({"connectionStatus": 1}, "connectionStatus showPrivileges", "s"),
    "driverOIDTest": ({"driverOIDTest": OID(1)}, "driverOIDTest", "s"),
    "explain": ({"explain": {"count": "w"}}, "explain verbosity", "b"),
    "features": ({"features": 1}, "features oidReset", "s"),
    "getCmdLineOpts": ({"getCmdLineOpts": 1}, "getCmdLineOpts", "ab"),
    "getLog": ({"getLog": "global"}, "getLog", "as"),
    "hostInfo": ({"hostInfo": 1}, "hostInfo", "b"),
    "listCommands": ({"listCommands": 1}, "listCommands", "b"),
    "lockInfo": ({"lockInfo": 1}, "lockInfo", "as"),
    "ping": ({"ping": 1}, "ping", ""),
    "profile": ({"profile": -1}, "slowms sampleRate filter", "b"),
    "serverStatus": ({"serverStatus": 1}, "serverStatus repl metrics locks mirroredReads latchAnalysis", "b"),
    "top": ({"top": 1}, "top", "ab"),
    "validateDBMetadata": ({"validateDBMetadata": 1, "apiParameters": {"version": "1", "strict": True}}, "validateDBMetadata apiParameters db collection", "s"),
    "whatsmyuri": ({"whatsmyuri": 1}, "whatsmyuri", "b"),
    "whatsmysni": ({"whatsmysni": 1}, "whatsmysni", "as"),
    "getDiagnosticData": ({"getDiagnosticData": 1}, "getDiagnosticData", "ab"),
    "isSelf": ({"_isSelf": 1}, "_isSelf", "s"),
    "getLastError": ({"getLastError": 1}, "getLastError", "b"),
    "rotateCertificates": ({"rotateCertificates": 1}, "rotateCertificates message", "as"),
    "configureFailPoint": ({"configureFailPoint": "failCommand", "mode": "off"}, "configureFailPoint mode data", "as"),
    "waitForFailPoint": ({"waitForFailPoint": "nosuch", "timesEntered": 1, "maxTimeMS": 50}, "waitForFailPoint timesEntered", "as"),
    "sleep": ({"sleep": 1, "secs": 0, "millis": 1}, "lock lockTarget", "as"),
    "dbCheck": ({"dbCheck": "nosuch"}, "dbCheck minKey maxKey maxCount maxSize maxCountPerSecond batchWriteConcern", ""),
    "replSetTest": ({"replSetTest": 1}, "replSetTest getLastStableRecoveryTimestamp restartHeartbeats", "as"),
    "captrunc": ({"captrunc": "cap", "n": 1}, "captrunc n inc", "wc"),
    "emptycapped": ({"emptycapped": "cap"}, "emptycapped", "wc"),
    "godinsert": ({"godinsert": "w", "obj": {"_id": 9}}, "godinsert obj", "wc"),
    "_hashBSONElement": ({"_hashBSONElement": 1, "key": 1}, "key seed", ""),
    "cpuload": ({"cpuload": 1, "cpuFactor": 0.001}, "cpuload cpuFactor", ""),
    "availableQueryOptions": ({"availableQueryOptions": 1}, "availableQueryOptions", ""),
    "reapLogicalSessionCacheNow": ({"reapLogicalSessionCacheNow": 1}, "reapLogicalSessionCacheNow", "a"),
    "refreshLogicalSessionCacheNow": ({"refreshLogicalSessionCacheNow": 1}, "refreshLogicalSessionCacheNow", "a"),
    "makeSnapshot": ({"makeSnapshot": 1}, "makeSnapshot", "as"),
    "stageDebug": ({"stageDebug": {}}, "stageDebug", ""),
    "getFreeMonitoringStatus": ({"getFreeMonitoringStatus": 1}, "getFreeMonitoringStatus", "as"),
    "setFreeMonitoring": ({"setFreeMonitoring": 1, "action": "nosuch"}, "setFreeMonitoring action", "as"),
    "stopRecordingTraffic": ({"stopRecordingTraffic": 1}, "stopRecordingTraffic", "as"),
    "startRecordingTraffic": ({"startRecordingTraffic": 1, "filename": ""}, "startRecordingTraffic filename bufferSize maxFileSize", "as"),
    "setProfilingFilterGlobally": ({"setProfilingFilterGlobally": 1, "filter": {}}, "setProfilingFilterGlobally filter", "as"),
    "_killOperations": ({"_killOperations": 1, "operationKeys": []}, "_killOperations operationKeys", "as"),
    "internalRenameIfOptionsAndIndexesMatch": ({"internalRenameIfOptionsAndIndexesMatch": 1, "from": "df.w", "to": "df.w2", "collectionOptions": {}, "indexes": []}, "from to collectionOptions indexes", "wa"),
    "shardingState": ({"shardingState": 1}, "shardingState", "as"),
    "getShardMap": ({"getShardMap": 1}, "", "as"),
    "flushRouterConfig": ({"flushRouterConfig": 1}, "flushRouterConfig", "as"),
    "getShardVersion": ({"getShardVersion": "df.w"}, "", "as"),
    "cleanupOrphaned": ({"cleanupOrphaned": "df.w"}, "", "as"),
    "logout": ({"logout": 1}, "logout", "s"),
    "getnonce": ({"getnonce": 1}, "getnonce", "s"),
    "usersInfo": ({"usersInfo": 1}, "usersInfo showPrivileges filter", ""),
    "rolesInfo": ({"rolesInfo": "nosuch"}, "rolesInfo showBuiltinRoles showAuthenticationRestrictions", ""),
    "dropUser": ({"dropUser": "nosuch"}, "dropUser", ""),
    "dropRole": ({"dropRole": "nosuch"}, "dropRole", ""),
    "dropAllUsersFromDatabase": ({"dropAllUsersFromDatabase": 1}, "dropAllUsersFromDatabase", ""),
    "dropAllRolesFromDatabase": ({"dropAllRolesFromDatabase": 1}, "dropAllRolesFromDatabase", ""),
    "invalidateUserCache": ({"invalidateUserCache": 1}, "invalidateUserCache", ""),
    "echo": ({"echo": 1}, "echo", ""),
    "testDeprecation": ({"testDeprecation": 1}, "testDeprecation", ""),
    "clearLog": ({"clearLog": "nosuch"}, "clearLog", "as"),
    "logMessage": ({"logMessage": "x"}, "logMessage extra", "as"),
    "compactStructuredEncryptionData": ({"compactStructuredEncryptionData": "w", "compactionTokens": {}}, "compactionTokens", "c"),
    "testInternalTransactions": ({"testInternalTransactions": 1, "commandInfos": []}, "commandInfos", "a"),
}
# One millisecond more or less must not make a difference; a member must not step down.
UNSAFE = {("sleep", "lock"), ("sleep", "lockTarget"), ("cpuload", "cpuFactor"), ("setFeatureCompatibilityVersion", "downgradeOnDiskChanges")}
ONE_OF_EACH = [None, UNDEF, True, False, 0, 1, -1, L(1), L(2**63 - 1), 0.5, -0.5, 1e19, NAN, INF, D("1.5"), D("NaN"), "", "a", "$a", "a.b", "a\0b", {}, {"a": 1}, {"$a": 1}, [], [1], ["a"], [{}], [None], BYTES, UUID, OID(1), {"$date": {"$numberLong": "0"}}, TS(1, 1), RE("a"), MINKEY, MAXKEY, {"$code": "a"}, {"$symbol": "a"}]


# The golden files hold a share of all this, and nothing that runs JavaScript; `COMMAND_VALUES=all` asks everything.
ALL = os.environ.get("COMMAND_VALUES") == "all"
UNBUILT = ("dbCheck", "_killOperations", "internalRenameIfOptionsAndIndexesMatch", "stageDebug", "compactStructuredEncryptionData", "testInternalTransactions", "cleanupOrphaned", "getShardVersion")
if not ALL:
    COMMANDS = {k: v for k, v in COMMANDS.items() if not k.startswith("mapReduce") and k not in UNBUILT}


def some(share):
    """Of a topic's cases a share, always the same."""
    return lambda cases: lambda rnd: (c for c in cases(rnd) if ALL or rnd.random() < share)


def one(spec, cmd, **more):
    base, _, kinds = spec
    c = {"docs": DOCS, "before": [{"drop": n} for n in ("empty", "cap", "ts", "view", "w2")], "pre": PLACES, "cmd": cmd} if "w" in kinds else {"setup": "steps", "also": ["chain", "chain_view"], "cmd": {**cmd}}
    if "w" in kinds and "c" not in kinds:
        c = {"docs": DOCS, "cmd": cmd}
    if "a" in kinds:
        c["db"] = "admin"
    if "s" in kinds:
        c["shape"] = True
    if "b" in kinds:
        c["brief"] = True
    return {**c, **more}


@some(.12)
def options(rnd):
    for name, spec in COMMANDS.items():
        base, names, kinds = spec
        yield one(spec, base)
        if "a" in kinds:
            yield one(spec, base, db="df")
        for f in names.split():
            if (name, f) in UNSAFE:
                continue
            for v in ONE_OF_EACH:
                if not (name == "setUserWriteBlockMode" and v is True):
                    yield one(spec, {**base, f: v})
            if f in base and f != next(iter(base)):
                yield one(spec, {k: v for k, v in base.items() if k != f})


@some(.07)
def envelope(rnd):
    for name, spec in COMMANDS.items():
        for f, values in ENVELOPE.items():
            for v in values:
                if not (f == "maxTimeMS" and name == "waitForFailPoint"):
                    yield one(spec, {**spec[0], f: v})


@some(.15)
def names(rnd):
    for name, spec in COMMANDS.items():
        base, _, kinds = spec
        if "c" not in kinds:
            continue
        first = next(iter(base))
        plain = {"before": [{"drop": n} for n in ("empty", "cap", "ts", "view", "w2")], "pre": PLACES, "docs": DOCS}
        shape = {"shape": True} if "s" in kinds else {"brief": True} if "b" in kinds else {}
        for n in NAMES + ONE_OF_EACH:
            if n == "system.buckets.ts" and first in ("cloneCollectionAsCapped", "convertToCapped") or n == "system.views" and first == "godinsert":
                continue  # ends the real server, or its views
            n = "df." + n if name == "dataSize" and isinstance(n, str) else n
            yield {**plain, **shape, "cmd": {**base, first: n}, "after": False}
        for db in DATABASES:
            for n in ("nosuch", "system.foo", "system.buckets.x"):
                if n == "nosuch" and first in ("create", "insert", "update"):
                    continue
                yield {**shape, "db": db, "before": [{"$db": db, "drop": n}], "cmd": {**base, first: n}, "after": False}


TOPICS = {"manual.options": options, "manual.envelope": envelope, "manual.names": names}
