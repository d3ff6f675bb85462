//! Named places where a test can make the server misbehave (`configureFailPoint`).
//!
//! A fail point costs one relaxed load while it is off. `failCommand`, which the drivers' tests live on, is
//! evaluated by the pipeline; other crates ask for theirs by name once and keep the handle.

use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, RawDoc, Value};
use pando_env::Rng;
use pando_env::sync::Notify;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All fail points this server has.
pub const NAMES: &[&str] = &[
    "failCommand",
    "rsSyncApplyStop",
    "stopReplProducer",
    "rollbackHangAfterTransitionToRollback",
    "rollbackHangAfterIncrementingRollbackId",
    "rollbackHangAfterWritingRollbackFiles",
    "rollbackHangBeforeFetching",
    "rollbackHangAfterRecoveringToStable",
    "initialSyncHangBeforeCopyingDatabases",
    "initialSyncHangDuringCollectionClone",
    "initialSyncHangAfterDataCloning",
    "initialSyncHangBeforeFinish",
    "hangBeforeWritingVote",
    "initialSyncHangAfterKeepingOwnState",
    "initialSyncHangCopyingFiles",
    "failGetMoreAfterCursorCheckout",
    "onPrimaryTransactionalWrite",
    "waitInHello",
    "hangBeforeCheckingForInterrupt",
    "pauseJournalFlusherThread",
    "skipTellingJournalFlush",
    "panicInTask",
    "maxTimeAlwaysTimeOut",
    "maxTimeNeverTimeOut",
    "WTPreserveSnapshotHistoryIndefinitely",
    "WTWriteConflictException",
    "hangAfterStartingIndexBuild",
    "failIndexBuildWithError",
    "hangBeforeIndexBuildCommit",
    "hangAfterCollectionInserts",
    "hangDuringBatchInsert",
    "hangDuringBatchUpdate",
    "hangDuringBatchRemove",
    "hangBeforeWaitingForWriteConcern",
    "waitInFindBeforeMakingBatch",
    "waitAfterPinningCursorBeforeGetMoreBatch",
    "waitWithPinnedCursorDuringGetMoreBatch",
    "failUpgrading",
    "failDowngrading",
    "hangAfterDroppingDatabaseInTransitionToDedicatedConfigServer",
    "hangBeforeWorkflowAction",
    "hangInTenantCopy",
    "overrideBalanceRoundInterval",
];

#[derive(Clone, Copy, PartialEq, Debug)]
enum Mode {
    Off,
    AlwaysOn,
    /// Fires this many more times.
    Times(i64),
    /// Lets this many pass, then always fires.
    Skip(i64),
    /// Fires with this probability.
    Random(f64),
}

/// One fail point.
pub struct FailPoint {
    active: AtomicBool,
    entered: AtomicI64,
    state: Mutex<(Mode, Arc<DocBuf>)>,
    changed: Notify,
}

impl FailPoint {
    fn new() -> FailPoint {
        FailPoint {
            active: AtomicBool::new(false),
            entered: AtomicI64::new(0),
            state: Mutex::new((Mode::Off, Arc::new(DocBuf::new()))),
            changed: Notify::new(),
        }
    }
    fn lock(&self) -> MutexGuard<'_, (Mode, Arc<DocBuf>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// False costs one load; only then is `check` worth calling.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.active.load(Relaxed)
    }
    /// The data document when the fail point fires here. `wanted` sees the data first; a mismatch does not
    /// count as a firing.
    pub fn check(&self, rng: &dyn Rng, wanted: impl FnOnce(&RawDoc) -> bool) -> Option<Arc<DocBuf>> {
        if !self.is_active() {
            return None;
        }
        let mut state = self.lock();
        if !wanted(&state.1) {
            return None;
        }
        match &mut state.0 {
            Mode::Off => return None,
            Mode::AlwaysOn => {}
            Mode::Times(n) => {
                *n -= 1;
                if *n <= 0 {
                    state.0 = Mode::Off;
                    self.active.store(false, Relaxed);
                }
            }
            Mode::Skip(n) if *n > 0 => {
                *n -= 1;
                return None;
            }
            Mode::Skip(_) => {}
            Mode::Random(p) => {
                // 53 bits: the precision of a double in [0, 1).
                let draw = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
                if draw >= *p {
                    return None;
                }
            }
        }
        self.entered.fetch_add(1, Relaxed);
        let data = state.1.clone();
        drop(state);
        self.changed.bump();
        Some(data)
    }
    /// How often it has fired since the start.
    pub fn times_entered(&self) -> i64 {
        self.entered.load(Relaxed)
    }
    /// Waits while the fail point stays on (the `hang...` ones). The caller makes it interruptible.
    pub async fn wait_while_active(&self) {
        loop {
            let seen = self.changed.version();
            if !self.is_active() {
                return;
            }
            self.changed.changed(seen).await;
        }
    }
    /// Waits until it has fired `times` times in all.
    pub async fn wait_entered(&self, times: i64) {
        loop {
            let seen = self.changed.version();
            if self.times_entered() >= times {
                return;
            }
            self.changed.changed(seen).await;
        }
    }
    fn set(&self, mode: Mode, data: DocBuf) {
        *self.lock() = (mode, Arc::new(data));
        self.active.store(mode != Mode::Off, Relaxed);
        self.changed.bump();
    }
    /// `{mode, data}` as `getParameter: failpoint.x` shows it.
    pub fn describe(&self) -> (i32, DocBuf) {
        let state = self.lock();
        let mode = match state.0 {
            Mode::Off => 0,
            Mode::AlwaysOn => 1,
            Mode::Random(_) => 2,
            Mode::Times(_) => 3,
            Mode::Skip(_) => 4,
        };
        (mode, (*state.1).clone())
    }
}

/// The registry.
pub struct FailPoints {
    /// Evaluated by the pipeline before and after each command.
    pub fail_command: Arc<FailPoint>,
    /// Evaluated before a session's write commits.
    pub on_transactional_write: Arc<FailPoint>,
    /// While on, any operation with a time limit has reached it.
    pub max_time_always: Arc<FailPoint>,
    /// While on, no operation reaches its time limit.
    pub max_time_never: Arc<FailPoint>,
    by_name: BTreeMap<&'static str, Arc<FailPoint>>,
}

impl Default for FailPoints {
    fn default() -> Self {
        FailPoints::new()
    }
}

impl FailPoints {
    pub fn new() -> FailPoints {
        let by_name: BTreeMap<_, _> = NAMES.iter().map(|name| (*name, Arc::new(FailPoint::new()))).collect();
        let get = |name| by_name.get(name).cloned().unwrap_or_else(|| Arc::new(FailPoint::new()));
        FailPoints {
            fail_command: get("failCommand"),
            on_transactional_write: get("onPrimaryTransactionalWrite"),
            max_time_always: get("maxTimeAlwaysTimeOut"),
            max_time_never: get("maxTimeNeverTimeOut"),
            by_name,
        }
    }
    pub fn get(&self, name: &str) -> Option<&Arc<FailPoint>> {
        self.by_name.get(name)
    }
    pub fn is_active(&self, name: &str) -> bool {
        self.get(name).is_some_and(|point| point.is_active())
    }
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Arc<FailPoint>)> {
        self.by_name.iter().map(|(name, fp)| (*name, fp))
    }
    /// `panicInTask` with `{task: <name>}`: background work finds an invariant broken.
    pub fn panic_if_asked(&self, rng: &dyn Rng, task: &str) {
        let Some(point) = self.get("panicInTask").filter(|p| p.is_active()) else { return };
        if point.check(rng, |data| data.get("task").and_then(|v| v.as_str()) == Some(task)).is_some() {
            panic!("a test asked for a panic in {task}");
        }
    }
    /// The named fail point, or 266.
    pub fn find(&self, name: &str) -> Result<&Arc<FailPoint>> {
        self.get(name).ok_or_else(|| Error::new(ErrorCode::FailPointSetFailed, format!("{name} not found")))
    }
    /// `configureFailPoint: name, mode, data`. Returns how often it had fired before.
    pub fn configure(&self, name: &str, command: &RawDoc) -> Result<i64> {
        let fp = self.find(name)?;
        let mode = parse_mode(command.get("mode"))?;
        let data = match command.get("data") {
            None => DocBuf::new(),
            Some(Value::Document(d) | Value::Array(d)) => d.to_buf(),
            Some(_) => return Err(Error::type_mismatch("the 'data' option must be a JSON object")),
        };
        if name == "failCommand" {
            check_fail_command(&data)?;
        }
        let before = fp.times_entered();
        fp.set(mode, data);
        Ok(before)
    }
}

fn parse_mode(v: Option<Value<'_>>) -> Result<Mode> {
    let choices = || {
        Error::bad_value(
            "'mode' must be one of 'off', 'alwaysOn', '{times:n}', '{skip:n}' or '{activationProbability:p}'",
        )
    };
    let doc = match v {
        None => {
            return Err(Error::new(
                ErrorCode::IllegalOperation,
                "When setting a failpoint, you must supply a 'mode'",
            ));
        }
        Some(Value::String("off")) => return Ok(Mode::Off),
        Some(Value::String("alwaysOn")) => return Ok(Mode::AlwaysOn),
        Some(Value::String(other)) => return Err(Error::bad_value(format!("unknown mode: {other}"))),
        Some(Value::Document(d)) => d,
        Some(_) => return Err(Error::type_mismatch("'mode' must be a string or JSON object")),
    };
    if let Some(v) = doc.get("times") {
        return match counted("times", &v)? {
            0 => Ok(Mode::Off),
            n => Ok(Mode::Times(n)),
        };
    }
    if let Some(v) = doc.get("skip") {
        return Ok(Mode::Skip(counted("skip", &v)?));
    }
    match doc.get("activationProbability") {
        Some(v) => match v.as_f64() {
            Some(p) if (0.0..=1.0).contains(&p) => Ok(Mode::Random(p)),
            Some(p) => {
                Err(Error::bad_value(format!("activationProbability must be between 0.0 and 1.0; found {p}")))
            }
            None => Err(Error::type_mismatch(
                "the 'activationProbability' option to 'mode' must be a double between 0 and 1",
            )),
        },
        None => Err(choices()),
    }
}

fn counted(name: &str, v: &Value<'_>) -> Result<i64> {
    let n = crate::args::safe_i64(v).ok_or_else(|| {
        Error::type_mismatch(format!(
            "Expected field \"{name}\" to have numeric type, but found {}",
            v.type_name()
        ))
    })?;
    if n < 0 {
        return Err(Error::bad_value(format!("'{name}' option to 'mode' must be positive")));
    }
    if n > i64::from(i32::MAX) {
        return Err(Error::bad_value(format!("'{name}' option to 'mode' is too large")));
    }
    Ok(n)
}

/// Types of `failCommand`'s data, so that a misspelt test fails loudly.
fn check_fail_command(data: &RawDoc) -> Result<()> {
    for e in data.iter() {
        let v = e.value();
        let ok = match e.name() {
            "failCommands" | "errorLabels" => v.as_array().is_some(),
            "errorCode" | "blockTimeMS" => v.is_number(),
            "closeConnection"
            | "blockConnection"
            | "failAllCommands"
            | "failInternalCommands"
            | "failLocalClients" => matches!(v, Value::Boolean(_)) || v.is_number(),
            "writeConcernError" | "errorExtraInfo" => v.as_doc().is_some(),
            "appName" | "threadName" | "namespace" => v.as_str().is_some(),
            _ => true,
        };
        if !ok {
            return Err(Error::type_mismatch(format!(
                "failCommand: the field '{}' has the wrong type {}",
                e.name(),
                v.type_name()
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    struct Fixed;
    impl Rng for Fixed {
        fn next_u64(&self) -> u64 {
            u64::MAX / 2
        }
    }
    fn fires(fp: &FailPoint) -> bool {
        fp.check(&Fixed, |_| true).is_some()
    }

    #[test]
    fn times_fires_that_often_and_then_turns_itself_off() {
        let all = FailPoints::new();
        let cmd = doc! { "mode": { "times": 2 }, "data": { "errorCode": 5 } };
        assert_eq!(all.configure("failCommand", &cmd.to_raw()).unwrap(), 0);
        let fp = &all.fail_command;
        assert!(fp.check(&Fixed, |_| false).is_none(), "a mismatch does not count");
        assert_eq!([fires(fp), fires(fp), fires(fp)], [true, true, false]);
        assert_eq!(all.configure("failCommand", &doc! { "mode": "off" }.to_raw()).unwrap(), 2);
    }

    #[test]
    fn skip_lets_some_pass_and_probability_draws() {
        let all = FailPoints::new();
        all.configure("failCommand", &doc! { "mode": { "skip": 1 } }.to_raw()).unwrap();
        assert_eq!([fires(&all.fail_command), fires(&all.fail_command)], [false, true]);
        all.configure("failCommand", &doc! { "mode": { "activationProbability": 0.4 } }.to_raw()).unwrap();
        assert!(!fires(&all.fail_command));
        all.configure("failCommand", &doc! { "mode": { "activationProbability": 0.6 } }.to_raw()).unwrap();
        assert!(fires(&all.fail_command));
    }

    #[test]
    fn bad_settings_get_mongodb_codes() {
        let all = FailPoints::new();
        for (d, code) in [
            (doc! {}, 20),
            (doc! { "mode": "foo" }, 2),
            (doc! { "mode": 1 }, 14),
            (doc! { "mode": { "times": -1 } }, 2),
            (doc! { "mode": { "times": "x" } }, 14),
            (doc! { "mode": { "foo": 1 } }, 2),
            (doc! { "mode": "alwaysOn", "data": 1 }, 14),
        ] {
            assert_eq!(all.configure("failCommand", &d.to_raw()).unwrap_err().code.0, code);
        }
        assert_eq!(all.configure("nosuch", &doc! {}.to_raw()).unwrap_err().code.0, 266);
    }
}
