//! One command to one member of a set (SYS-207, SYS-209, SH-REG-2).

use crate::monitors::{Monitors, SetMonitor};
use pando_base::limits;
use pando_bson::{DocBuf, RawDoc};
use pando_env::Env;
use pando_monitor::ReadPreference;
use pando_monitor::select::Criteria;
use pando_rpc::{CallResult, Failure, Kind, Pool, Retry, Sequence, may_retry};
use std::time::Duration;

/// What a call needs: monitors, and connections.
#[derive(Clone)]
pub struct Fleet {
    pub env: Env,
    pub monitors: Monitors,
    pub pool: Pool,
}

/// A reply, and who gave it: cursors go on there.
#[derive(Clone, Debug)]
pub struct Answer {
    pub host: String,
    pub reply: DocBuf,
}

impl Fleet {
    /// Calls a member that `preference` admits. A failure that allows it is tried again, at most three times and at another
    /// member where there is one; each is told to the monitor.
    pub async fn call(
        &self,
        set: &SetMonitor,
        preference: &ReadPreference,
        body: &RawDoc,
        sequences: &[Sequence<'_>],
        retry: Retry,
        limit: Duration,
    ) -> CallResult<Answer> {
        let started = self.env.clock.mono();
        let mut criteria = Criteria::of(preference.clone());
        let mut tries = 0;
        loop {
            tries += 1;
            let left = limit.saturating_sub(self.env.clock.mono() - started);
            let patience = left.min(Duration::from_millis(limits::MONITOR_SELECTION_MS));
            let selected = set.select(criteria.clone(), patience).await;
            let (host, generation) = selected.map_err(|e| Failure::new(Kind::NotSent, e))?;
            let left = limit.saturating_sub(self.env.clock.mono() - started);
            let failure = match self.pool.call_with(&host, body, sequences, retry, left).await {
                Ok(reply) => return Ok(Answer { host, reply }),
                Err(failure) => failure,
            };
            set.failed(&host, generation, &failure);
            if !may_retry(failure.effect(), retry, tries) {
                return Err(failure);
            }
            criteria.avoid = vec![host];
        }
    }
}
