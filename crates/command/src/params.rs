//! Server parameters: one table of names, types, defaults and when they may be set.
//!
//! Hot readers ask by [`Param`] (`params.int(Param::cursorTimeoutMillis)` is one atomic load);
//! `setParameter` and the command line ask by name. Whoever needs a new parameter adds a row here.

use crate::args::safe_i64;
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{Bson, Value};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A parameter's type, default and range.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    Bool(bool),
    /// Default, least, greatest.
    Int(i64, i64, i64),
    Double(f64, f64, f64),
    Text(&'static str),
    /// A list of strings, comma-separated on the command line and here.
    List(&'static str),
    /// An object; empty by default.
    Object,
    /// Kept elsewhere; shown and set through the log (`logLevel`, `logComponentVerbosity`).
    Log,
}

/// When a parameter may be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct When {
    pub startup: bool,
    pub runtime: bool,
    /// Exists only with `enableTestCommands`.
    pub test_only: bool,
}

const START: When = When { startup: true, runtime: false, test_only: false };
const RUN: When = When { startup: false, runtime: true, test_only: false };
const BOTH: When = When { startup: true, runtime: true, test_only: false };
const NEVER: When = When { startup: false, runtime: false, test_only: false };
const TEST: When = When { startup: true, runtime: true, test_only: true };
const TEST_START: When = When { startup: true, runtime: false, test_only: true };
const MAX32: i64 = i32::MAX as i64;
const ANY32: i64 = i32::MIN as i64;

macro_rules! params {
    ($($name:ident $when:ident $kind:expr;)*) => {
        /// Every parameter, under MongoDB's name.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(u16)]
        pub enum Param { $($name,)* }
        const TABLE: &[(Param, &str, When, Kind)] = &[
            $((Param::$name, stringify!($name), $when, {
                #[allow(unused_imports)]
                use Kind::*;
                $kind
            }),)*
        ];
    };
}

params! {
    KeysRotationIntervalSec START Int(7_776_000, 1, MAX32);
    acceptApiVersion2 START Bool(false);
    allowDiskUseByDefault BOTH Bool(true);
    allowMultipleArbiters START Bool(false);
    auditAuthorizationSuccess BOTH Bool(false);
    authenticationMechanisms START List("SCRAM-SHA-1,SCRAM-SHA-256");
    autoMergerIntervalSecs BOTH Int(3600, 1, MAX32);
    autoMergerMaxNumberOfChunksToMerge BOTH Int(1000, 2, MAX32);
    autoMergerThrottlingMS BOTH Int(15_000, 0, MAX32);
    automationServiceDescriptor BOTH Text("");
    changeStreamOptions RUN Object;
    changeSyncSourceThresholdMillis BOTH Int(5, 0, i64::MAX);
    clientCursorMonitorFrequencySecs BOTH Int(4, 1, MAX32);
    clusterAuthMode RUN Text("undefined");
    collectionClonerBatchSize BOTH Int(0, 0, MAX32);
    connPoolMaxConnsPerHost START Int(200, ANY32, MAX32);
    connectionBurstPerAddress BOTH Int(64, 1, 1_000_000);
    connectionRatePerAddress BOTH Int(0, 0, 1_000_000);
    createRollbackDataFiles BOTH Bool(true);
    cursorTimeoutMillis BOTH Int(600_000, ANY32, MAX32);
    diagnosticDataCollectionEnabled BOTH Bool(true);
    disableLogicalSessionCacheRefresh START Bool(false);
    enableElectionHandoff BOTH Bool(true);
    enableFlowControl BOTH Bool(true);
    enableLocalhostAuthBypass START Bool(true);
    enableOverrideClusterChainingSetting START Bool(false);
    enableReconfigRollbackCommittedWritesCheck BOTH Bool(true);
    enableTestCommands START Bool(false);
    fassertOnLockTimeoutForStepUpDown BOTH Int(30, 0, MAX32);
    fastFailureDetection BOTH Bool(true);
    featureCompatibilityVersion NEVER Text("7.0");
    flowControlDecayConstant BOTH Double(0.5, 0.0, 1.0);
    flowControlFudgeFactor BOTH Double(0.95, 0.0, 1.0);
    flowControlMaxSamples BOTH Int(1_000_000, 1, MAX32);
    flowControlMinTicketsPerSecond BOTH Int(100, 1, MAX32);
    flowControlTargetLagSeconds BOTH Int(10, 1, MAX32);
    flowControlThresholdLagPercentage BOTH Double(0.5, 0.0, 1.0);
    flowControlTicketAdderConstant BOTH Int(1000, 0, MAX32);
    flowControlTicketMultiplierConstant BOTH Double(1.05, 1.0, f64::MAX);
    forceRollbackViaRefetch TEST Bool(false);
    honorSystemUmask START Bool(false);
    indexMaxNumGeneratedKeysPerDocument START Int(100_000, 1, MAX32);
    initialSyncMethod START Text("logical");
    initialSyncSourceReadPreference START Text("");
    initialSyncTransientErrorRetryPeriodSeconds BOTH Int(86_400, 0, MAX32);
    internalDocumentSourceDensifyMaxMemoryBytes BOTH Int(100 << 20, 1, MAX32);
    internalDocumentSourceGroupMaxMemoryBytes BOTH Int(100 << 20, 1, i64::MAX);
    internalDocumentSourceLookupCacheSizeBytes BOTH Int(100 << 20, 0, MAX32);
    internalDocumentSourceSetWindowFieldsMaxMemoryBytes BOTH Int(100 << 20, 1, i64::MAX);
    internalInsertMaxBatchSize BOTH Int(500, 1, MAX32);
    internalLookupStageIntermediateDocumentMaxSizeBytes BOTH Int(100 << 20, limits::BSON_INTERNAL_BYTES_MAX as i64, i64::MAX);
    internalPipelineLengthLimit BOTH Int(1000, 1, MAX32);
    internalQueryExecYieldIterations BOTH Int(1000, ANY32, MAX32);
    internalQueryExecYieldPeriodMS BOTH Int(10, 0, MAX32);
    internalQueryFacetMaxOutputDocSizeBytes BOTH Int(100 << 20, 1, i64::MAX);
    internalQueryJavaScriptFnTimeoutMillis BOTH Int(limits::JS_CALL_MS, 1, MAX32);
    internalQueryJavaScriptHeapSizeLimitMB BOTH Int(limits::JS_HEAP_MEGABYTES, 1, MAX32);
    internalQueryMaxAddToSetBytes BOTH Int(100 << 20, 1, i64::MAX);
    internalQueryMaxAllowedDensifyDocs BOTH Int(500_000, 1, MAX32);
    internalQueryMaxBlockingSortMemoryUsageBytes BOTH Int(100 << 20, 0, MAX32);
    internalQueryMaxPushBytes BOTH Int(100 << 20, 1, MAX32);
    internalQueryMaxRangeBytes BOTH Int(100 << 20, 1, MAX32);
    internalQueryPlanEvaluationWorks BOTH Int(10_000, 1, MAX32);
    internalQueryTopNAccumulatorBytes BOTH Int(100 << 20, 1, MAX32);
    javascriptEnabled START Bool(false);
    journalCommitInterval BOTH Int(100, 1, 500);
    localLogicalSessionTimeoutMinutes START Int(30, 1, MAX32);
    logComponentVerbosity BOTH Log;
    logLevel BOTH Log;
    logicalSessionRefreshMillis START Int(300_000, 1, MAX32);
    maxAcceptableLogicalClockDriftSecs START Int(31_536_000, 1, MAX32);
    maxBSONDepth START Int(200, 20, 250);
    maxIndexBuildMemoryUsageMegabytes BOTH Int(200, 50, MAX32);
    maxLogSizeKB BOTH Int(10, 1, MAX32);
    maxNumActiveUserIndexBuilds BOTH Int(3, 1, MAX32);
    maxNumSyncSourceChangesPerHour BOTH Int(3, 1, MAX32);
    maxSessions START Int(1_000_000, 1, MAX32);
    maxSyncSourceLagSecs START Int(30, 1, MAX32);
    maxTransactionLockRequestTimeoutMillis BOTH Int(5, ANY32, MAX32);
    membersOnlyFromTheirAddresses BOTH Bool(true);
    minSnapshotHistoryWindowInSeconds BOTH Int(300, 0, MAX32);
    multitenancySupport START Bool(false);
    newLinesAllowedInLog BOTH Bool(false);
    notablescan BOTH Bool(false);
    numInitialSyncAttempts BOTH Int(10, 1, MAX32);
    opensslCipherConfig START Text("");
    opensslCipherSuiteConfig START Text("");
    oplogBatchDelayMillis BOTH Int(0, 0, 1000);
    oplogFetcherUsesExhaust START Bool(true);
    orphanCleanupDelaySecs BOTH Int(900, 0, MAX32);
    periodicNoopIntervalSecs START Int(10, 1, MAX32);
    planCacheSize BOTH Text("5%");
    priorityTakeoverFreshnessWindowSeconds START Int(2, 0, MAX32);
    processUmask START Int(63, 0, 63);
    quiet BOTH Bool(false);
    rangeDeleterBatchDelayMS BOTH Int(20, 0, MAX32);
    rangeDeleterBatchSize BOTH Int(2147483647, 0, MAX32);
    recoverFromOplogAsStandalone START Bool(false);
    redactClientLogData BOTH Bool(false);
    replElectionTimeoutOffsetLimitFraction START Double(0.15, 0.01, 1.0);
    replWriterThreadCount START Int(limits::APPLY_WORKERS_MAX as i64, 1, 256);
    requireApiVersion BOTH Bool(false);
    resyncWhenTooStale BOTH Bool(true);
    rollbackTimeLimitSecs BOTH Int(86_400, 1, MAX32);
    scramIterationCount BOTH Int(10_000, 5_000, MAX32);
    scramSHA256IterationCount BOTH Int(15_000, 5_000, MAX32);
    shardSplitGarbageCollectionDelayMS BOTH Int(900_000, 0, MAX32);
    shardSplitTimeoutMS BOTH Int(3_600_000, 1, MAX32);
    shutdownTimeoutMillisForSignaledShutdown BOTH Int(15_000, 0, MAX32);
    slowOpSampleRate NEVER Double(1.0, 0.0, 1.0);
    slowOpThresholdMs NEVER Int(100, ANY32, MAX32);
    storeFindAndModifyImagesInSideCollection BOTH Bool(true);
    suppressNoTLSPeerCertificateWarning BOTH Bool(false);
    syncStallSecs TEST_START Int(limits::SYNC_STALL_SECS_MAX as i64, 1, 86_400);
    syncdelay BOTH Double(60.0, 0.0, 32_400.0);
    takeUnstableCheckpointOnShutdown START Bool(false);
    tenantMigrationBlockingStateTimeoutMS BOTH Int(5_000, 1, MAX32);
    tenantMigrationGarbageCollectionDelayMS BOTH Int(900_000, 0, MAX32);
    testingDiagnosticsEnabled TEST Bool(false);
    tlsMode RUN Text("disabled");
    tlsWithholdClientCertificate START Bool(false);
    tlsX509ExpirationWarningThresholdDays START Int(limits::TLS_EXPIRY_WARNING_DAYS, 0, MAX32);
    traceExceptions BOTH Bool(false);
    transactionLifetimeLimitSeconds BOTH Int(60, 1, MAX32);
    transactionTooLargeForCacheThreshold BOTH Double(0.75, 0.0, 1.0);
    ttlMonitorEnabled BOTH Bool(true);
    ttlMonitorSleepSecs BOTH Int(60, 1, MAX32);
    unsupportedSyncSource START Text("");
    unsyncedWritesInMemory TEST_START Bool(false);
    userCacheInvalidationIntervalSecs BOTH Int(30, 1, 86_400);
    wiredTigerConcurrentReadTransactions BOTH Int(128, 5, MAX32);
    wiredTigerConcurrentWriteTransactions BOTH Int(128, 5, MAX32);
    wiredTigerEngineRuntimeConfig BOTH Text("");
    writePeriodicNoops BOTH Bool(true);
}

impl Param {
    /// MongoDB's name.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }
}

/// Whether there is a parameter of that name.
pub(crate) fn is_parameter(name: &str) -> bool {
    TABLE.iter().any(|row| row.1 == name) || matches!(name, "comment" | "lsid" | "writeConcern")
}

/// A row as `getParameter: {showDetails: true}` needs it.
#[derive(Clone, Copy, Debug)]
pub struct ParamRow {
    pub param: Param,
    pub name: &'static str,
    pub when: When,
    pub kind: Kind,
}

/// The values of one server.
pub struct Params {
    /// Booleans, integers and the bits of doubles.
    words: Vec<AtomicU64>,
    values: Mutex<BTreeMap<Param, Bson>>,
}

impl Default for Params {
    fn default() -> Self {
        Params::new()
    }
}

impl Params {
    pub fn new() -> Params {
        let mut values = BTreeMap::new();
        let words = TABLE
            .iter()
            .map(|(param, _, _, kind)| {
                AtomicU64::new(match kind {
                    Kind::Bool(b) => u64::from(*b),
                    Kind::Int(n, _, _) => *n as u64,
                    Kind::Double(d, _, _) => d.to_bits(),
                    Kind::Text(s) => put(&mut values, *param, Bson::from(*s)),
                    Kind::List(s) => put(&mut values, *param, list(s)),
                    Kind::Object => put(&mut values, *param, Bson::Document(pando_bson::Document::new())),
                    Kind::Log => 0,
                })
            })
            .collect();
        Params { words, values: Mutex::new(values) }
    }
    fn values(&self) -> MutexGuard<'_, BTreeMap<Param, Bson>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
    #[inline]
    fn word(&self, p: Param) -> u64 {
        self.words[p as usize].load(Relaxed)
    }
    #[inline]
    pub fn bool(&self, p: Param) -> bool {
        self.word(p) != 0
    }
    #[inline]
    pub fn int(&self, p: Param) -> i64 {
        self.word(p) as i64
    }
    #[inline]
    pub fn double(&self, p: Param) -> f64 {
        f64::from_bits(self.word(p))
    }
    pub fn text(&self, p: Param) -> String {
        self.values().get(&p).and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
    }
    /// Overwrites without checks (the process's own configuration, profile's `slowms`).
    pub fn force_int(&self, p: Param, v: i64) {
        self.words[p as usize].store(v as u64, Relaxed);
    }
    pub fn force_double(&self, p: Param, v: f64) {
        self.words[p as usize].store(v.to_bits(), Relaxed);
    }
    pub fn force_text(&self, p: Param, v: &str) {
        self.values().insert(p, Bson::from(v));
    }
    /// The row of a name. Test-only rows are hidden unless test commands are on.
    pub fn find(&self, name: &str) -> Option<ParamRow> {
        self.rows().find(|row| row.name == name)
    }
    /// All rows in order of name.
    pub fn rows(&self) -> impl Iterator<Item = ParamRow> + '_ {
        let test = self.bool(Param::enableTestCommands);
        // The profiler's settings are kept here, but no parameters of MongoDB.
        let shown = |p: Param| !matches!(p, Param::slowOpSampleRate | Param::slowOpThresholdMs);
        TABLE
            .iter()
            .filter(move |row| shown(row.0) && (test || !row.2.test_only))
            .map(|(param, name, when, kind)| ParamRow { param: *param, name, when: *when, kind: *kind })
    }
    /// The value as `getParameter` shows it (`Log` kinds are answered by the command, from the log).
    pub fn get(&self, row: &ParamRow) -> Bson {
        match row.kind {
            Kind::Bool(_) => Bson::Boolean(self.bool(row.param)),
            Kind::Int(_, _, max) => match i32::try_from(self.int(row.param)) {
                Ok(n) if max <= MAX32 => Bson::Int32(n),
                _ => Bson::Int64(self.int(row.param)),
            },
            Kind::Double(..) => Bson::Double(self.double(row.param)),
            Kind::Text(_) | Kind::List(_) | Kind::Object => {
                self.values().get(&row.param).cloned().unwrap_or(Bson::Null)
            }
            Kind::Log => Bson::Int32(0),
        }
    }
    /// Sets from a BSON value; `Err` keeps the old one. Returns the old value.
    pub fn set(&self, row: &ParamRow, v: &Value<'_>) -> Result<Bson> {
        let was = self.get(row);
        let name = row.name;
        match row.kind {
            Kind::Bool(_) => self.store(row.param, u64::from(v.is_truthy())),
            Kind::Int(_, min, max) => {
                let n = safe_i64(v).ok_or_else(|| {
                    Error::bad_value(format!(
                        "Failed validating {name}: Unable to coerce value to integral type"
                    ))
                })?;
                in_range(name, n as f64, min as f64, max as f64, n)?;
                self.store(row.param, n as u64);
            }
            Kind::Double(_, min, max) => {
                let d = v.as_f64().ok_or_else(|| {
                    Error::bad_value(format!("Failed validating {name}: Unable to coerce value to double"))
                })?;
                in_range(name, d, min, max, d)?;
                self.store(row.param, d.to_bits());
            }
            Kind::Text(_) => match v {
                Value::String(s) => self.force_text(row.param, s),
                _ => return Err(Error::bad_value(format!("Failed validating {name}: expected a string"))),
            },
            Kind::List(_) => match v {
                Value::String(s) => drop(self.values().insert(row.param, list(s))),
                _ => return Err(Error::bad_value(format!("Failed validating {name}: expected a string"))),
            },
            Kind::Object => match v {
                Value::Document(d) => {
                    drop(self.values().insert(row.param, Bson::Document(pando_bson::Document::from(*d))));
                }
                _ => return Err(Error::bad_value(format!("Failed validating {name}: expected an object"))),
            },
            Kind::Log => return Err(Error::internal("log settings live in the log")),
        }
        Ok(was)
    }
    fn store(&self, p: Param, word: u64) {
        self.words[p as usize].store(word, Relaxed);
    }
    /// `--setParameter name=text`. Unknown names and bad values are refused with a clear message.
    pub fn set_at_startup(&self, name: &str, text: &str) -> Result<()> {
        let row = TABLE
            .iter()
            .find(|row| row.1 == name)
            .map(|(param, name, when, kind)| ParamRow { param: *param, name, when: *when, kind: *kind })
            .ok_or_else(|| Error::bad_value(format!("Unknown --setParameter '{name}'")))?;
        if !row.when.startup {
            return Err(Error::bad_value(format!("Cannot use --setParameter to set '{name}' at startup")));
        }
        let bad = |want: &str| {
            Error::bad_value(format!("Bad value for parameter '{name}': expected {want}, got '{text}'"))
        };
        match row.kind {
            Kind::Bool(_) => {
                let b = match text {
                    "1" | "true" | "on" | "yes" => true,
                    "0" | "false" | "off" | "no" => false,
                    _ => return Err(bad("true or false")),
                };
                self.store(row.param, u64::from(b));
            }
            Kind::Int(..) => {
                let n: i64 = text.parse().map_err(|_| bad("an integer"))?;
                self.set(&row, &Value::Int64(n))?;
            }
            Kind::Double(..) => {
                let d: f64 = text.parse().map_err(|_| bad("a number"))?;
                self.set(&row, &Value::Double(d))?;
            }
            Kind::Text(_) | Kind::List(_) => drop(self.set(&row, &Value::String(text))?),
            Kind::Object => {
                let doc = pando_bson::extjson::parse(text).map_err(|_| bad("an object in JSON"))?;
                self.set(&row, &Value::Document(&doc.to_raw()))?;
            }
            Kind::Log => return Err(Error::internal("log settings live in the log")),
        }
        Ok(())
    }
}

fn put(map: &mut BTreeMap<Param, Bson>, p: Param, v: Bson) -> u64 {
    map.insert(p, v);
    0
}

fn list(text: &str) -> Bson {
    Bson::Array(text.split(',').filter(|s| !s.is_empty()).map(Bson::from).collect())
}

fn in_range(name: &str, v: f64, min: f64, max: f64, shown: impl std::fmt::Display) -> Result<()> {
    let bound = |words: &str, limit: f64| {
        Error::new(
            ErrorCode::BadValue,
            format!("Invalid value for parameter {name}: {shown} is not {words} {limit}"),
        )
    };
    if v < min {
        return Err(bound("greater than or equal to", min));
    }
    if v > max {
        return Err(bound("less than or equal to", max));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_and_indexed_by_their_param() {
        assert!(TABLE.windows(2).all(|w| w[0].1 < w[1].1));
        assert!(TABLE.iter().enumerate().all(|(i, row)| row.0 as usize == i));
    }

    #[test]
    fn setting_returns_the_old_value_and_refuses_bad_ones() {
        let p = Params::new();
        let row = p.find("cursorTimeoutMillis").unwrap();
        assert_eq!(p.set(&row, &Value::Int32(5)).unwrap(), Bson::Int32(600_000));
        assert_eq!(p.int(Param::cursorTimeoutMillis), 5);
        let e = p.set(&row, &Value::String("x")).unwrap_err();
        assert_eq!(
            &*e.message,
            "Failed validating cursorTimeoutMillis: Unable to coerce value to integral type"
        );
        let row = p.find("internalQueryMaxBlockingSortMemoryUsageBytes").unwrap();
        let e = p.set(&row, &Value::Int32(-1)).unwrap_err();
        assert_eq!(
            &*e.message,
            "Invalid value for parameter internalQueryMaxBlockingSortMemoryUsageBytes: -1 is not greater than or \
             equal to 0"
        );
    }

    #[test]
    fn test_only_rows_appear_with_test_commands() {
        let p = Params::new();
        assert!(p.find("testingDiagnosticsEnabled").is_none());
        p.set_at_startup("enableTestCommands", "1").unwrap();
        assert!(p.find("testingDiagnosticsEnabled").is_some());
        assert!(p.set_at_startup("nosuch", "1").is_err());
        assert!(p.set_at_startup("enableTestCommands", "maybe").is_err());
    }
}
