//! How long an initial sync goes on asking a source that does not answer (R-IS-6).
//!
//! For `initialSyncTransientErrorRetryPeriodSeconds`, a day by default. Earlier when the source has been silent for a
//! while and another member can be copied from: nothing is won by waiting for this one.

use crate::data::sync_status::SyncStatus;
use crate::data::{Deps, Stop};
use pando_base::{Error, ErrorCode, OpTime, limits};
use pando_command::Param;
use pando_rpc::{Failure, Kind};
use std::time::Duration;

const GONE: Duration = Duration::from_secs(limits::INITIAL_SYNC_SOURCE_GONE_SECS);

pub(crate) struct Patience<'a> {
    pub(crate) deps: &'a Deps,
    pub(crate) stop: &'a Stop,
    pub(crate) source: &'a str,
    pub(crate) status: &'a SyncStatus,
}

pub(crate) fn stopped() -> Failure {
    let error = Error::new(ErrorCode::InterruptedAtShutdown, "the initial sync was told to stop");
    Failure::new(Kind::Command, error)
}

/// The same may succeed a moment later.
fn is_transient(f: &Failure) -> bool {
    let network = f.breaks_connection() && f.kind != Kind::Protocol;
    network
        || f.kind == Kind::NotSent
        || matches!(f.code(), ErrorCode::QueryPlanKilled | ErrorCode::CursorNotFound)
}

impl Patience<'_> {
    /// Does `operation` until it succeeds, or until no more can be hoped for.
    pub(crate) async fn trying<T, F>(&self, mut operation: impl FnMut() -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>> + Send,
    {
        loop {
            match self.stop.unless_asked(operation()).await.ok_or_else(stopped)? {
                Ok(v) => {
                    self.worked();
                    return Ok(v);
                }
                Err(f) => self.after(f).await?,
            }
        }
    }
    /// After a failed operation: returns when it may be tried again, or with the failure when it may not.
    pub(crate) async fn after(&self, f: Failure) -> Result<(), Failure> {
        if !is_transient(&f) || self.is_lost() {
            return Err(f);
        }
        let pause = self.deps.env.clock.sleep(Duration::from_millis(limits::INITIAL_SYNC_PAUSE_MS));
        self.stop.unless_asked(pause).await.ok_or_else(stopped)
    }
    fn is_lost(&self) -> bool {
        let silent = self.status.retries(self.deps.env.clock.mono());
        let params = &self.deps.instance.params;
        let secs = params.int(Param::initialSyncTransientErrorRetryPeriodSeconds).max(0) as u64;
        if silent >= Duration::from_secs(secs) {
            return true;
        }
        let other = || self.deps.upper.choose_source(OpTime::NULL).is_some_and(|host| host != self.source);
        silent >= GONE && other()
    }
    /// An operation succeeded.
    pub(crate) fn worked(&self) {
        self.status.reached(self.deps.env.clock.mono());
    }
}
