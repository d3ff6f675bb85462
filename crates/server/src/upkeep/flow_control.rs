//! The tickets that write commands of a primary take: refilled every second by the rule of [`pando_repl::flow_control`].

use crate::lifecycle::Lifecycle;
use crate::replication::Replication;
use pando_base::{Millis, Result, Timestamp, limits};
use pando_bson::RawDoc;
use pando_command::{Instance, OpCtx, Param};
use pando_env::Env;
use pando_env::sync::Notify;
use pando_metrics::{Collector, Counter};
use pando_oplog::EntryView;
use pando_repl::flow_control::{FlowControl, Period, Settings};
use pando_storage::Storage;
use std::ops::Bound;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

struct Tickets {
    /// Left in this period; negative while somebody waits.
    left: AtomicI64,
    permitted: AtomicI64,
    refilled: Notify,
    waited_micros: Counter,
    rule: Mutex<FlowControl>,
}

impl Default for Tickets {
    fn default() -> Tickets {
        Tickets {
            left: AtomicI64::new(limits::FLOW_CONTROL_TICKETS_MAX),
            permitted: AtomicI64::new(limits::FLOW_CONTROL_TICKETS_MAX),
            refilled: Notify::new(),
            waited_micros: Counter::default(),
            rule: Mutex::default(),
        }
    }
}

impl Tickets {
    #[inline]
    fn try_take(&self) -> bool {
        if self.left.fetch_sub(1, Relaxed) > 0 {
            return true;
        }
        self.left.fetch_add(1, Relaxed);
        false
    }
    /// Returns how many were taken since the last refill.
    fn refill(&self, permitted: i64) -> u64 {
        let left = self.left.swap(permitted, Relaxed);
        let taken = self.permitted.swap(permitted, Relaxed) - left;
        self.refilled.bump();
        taken.max(0) as u64
    }
    fn taken(&self) -> u64 {
        (self.permitted.load(Relaxed) - self.left.load(Relaxed)).max(0) as u64
    }
    fn rule(&self) -> std::sync::MutexGuard<'_, FlowControl> {
        self.rule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How fast this primary may write.
pub(crate) struct FlowController {
    env: Env,
    instance: Arc<Instance>,
    storage: Storage,
    replication: Arc<Replication>,
    lifecycle: Arc<Lifecycle>,
    tickets: Tickets,
}

impl FlowController {
    pub(crate) fn new(
        instance: Arc<Instance>,
        storage: Storage,
        replication: Arc<Replication>,
        lifecycle: Arc<Lifecycle>,
    ) -> FlowController {
        let env = instance.env.clone();
        FlowController { env, instance, storage, replication, lifecycle, tickets: Tickets::default() }
    }
    /// Before a write command's first write.
    #[inline]
    pub(crate) async fn take_ticket(&self, ctx: &OpCtx) -> Result<()> {
        if self.tickets.try_take() { Ok(()) } else { self.wait_for_ticket(ctx).await }
    }
    async fn wait_for_ticket(&self, ctx: &OpCtx) -> Result<()> {
        let t = &self.tickets;
        let begun = self.env.clock.mono();
        let wait = async {
            loop {
                let seen = t.refilled.version();
                if t.try_take() {
                    return;
                }
                t.refilled.changed(seen).await;
            }
        };
        let waited = ctx.interruptible(wait).await;
        let took = self.env.clock.mono().saturating_sub(begun);
        t.waited_micros.add(took.as_micros() as u64);
        waited
    }

    fn settings(&self) -> Settings {
        let p = &self.instance.params;
        Settings {
            target_lag_secs: p.int(Param::flowControlTargetLagSeconds),
            threshold_fraction: p.double(Param::flowControlThresholdLagPercentage),
            min_per_period: p.int(Param::flowControlMinTicketsPerSecond),
            adder: p.int(Param::flowControlTicketAdderConstant),
            multiplier: p.double(Param::flowControlTicketMultiplierConstant),
            decay: p.double(Param::flowControlDecayConstant),
            fudge: p.double(Param::flowControlFudgeFactor),
            samples_max: p.int(Param::flowControlMaxSamples) as usize,
        }
    }
    /// Age of the oldest own entry beyond the commit point.
    fn majority_lag_ms(&self, committed: Timestamp) -> Millis {
        let mut beyond = self.storage.log().read(Bound::Excluded(committed), false);
        let oldest = beyond.next().ok().flatten();
        let wall =
            oldest.and_then(|(_, bytes)| EntryView::parse(RawDoc::trusted(&bytes)).ok().map(|e| e.wall));
        wall.map_or(0, |wall| self.env.clock.wall_ms().saturating_sub(wall))
    }
    fn is_controlled(&self) -> bool {
        // Before the first commit point nobody can lag behind it.
        !self.replication.positions().committed.is_null()
            && self.replication.member.is_primary()
            && !self.replication.member.is_alone()
            && self.instance.params.bool(Param::enableFlowControl)
    }

    /// `serverStatus.flowControl`.
    pub(crate) fn collect(&self, to: &mut Collector<'_>) {
        let shown = self.tickets.rule().shown();
        let enabled = self.instance.params.bool(Param::enableFlowControl);
        let permitted = self.tickets.permitted.load(Relaxed) as i32;
        let waited = self.tickets.waited_micros.get();
        to.gauge("enabled", enabled, "boolean", "Whether writes are slowed down while the majority lags")
            .gauge("targetRateLimit", permitted, "tickets per second", "Writes that may begin in a second")
            .counter("timeAcquiringMicros", waited, "microseconds", "Time that writes waited for tickets")
            .gauge("locksPerKiloOp", shown.locks_per_kilo_op, "tickets", "Tickets taken for 1000 operations")
            .gauge(
                "sustainerRate",
                shown.sustainer_rate as i32,
                "operations per second",
                "What the majority's members keep up with",
            )
            .gauge("isLagged", shown.is_lagged, "boolean", "Whether the majority lags now")
            .counter(
                "isLaggedCount",
                shown.lagged_count as i32,
                "times",
                "Times that the majority began to lag",
            )
            .counter(
                "isLaggedTimeMicros",
                shown.lagged_micros,
                "microseconds",
                "Time in which the majority lagged",
            );
    }
}

/// One turn per sample; the rate is decided once per period.
pub(crate) async fn run(flow: Arc<FlowController>) {
    let turn =
        Duration::from_millis(limits::FLOW_CONTROL_PERIOD_MS) / limits::FLOW_CONTROL_SAMPLES_PER_PERIOD;
    let mut turns = 0;
    let mut begun = flow.env.clock.mono();
    while flow.lifecycle.pause(turn).await {
        turns += 1;
        let due = turns % limits::FLOW_CONTROL_SAMPLES_PER_PERIOD == 0;
        if !flow.is_controlled() {
            if due {
                flow.tickets.refill(limits::FLOW_CONTROL_TICKETS_MAX);
                flow.tickets.rule().rest();
            }
            begun = flow.env.clock.mono();
            continue;
        }
        let settings = flow.settings();
        let at = flow.replication.positions();
        let documents = &flow.instance.metrics.documents;
        let written = documents.inserted.get() + documents.updated.get() + documents.deleted.get();
        let lag_ms = flow.majority_lag_ms(at.committed.ts);
        let mut rule = flow.tickets.rule();
        rule.sample(at.applied.ts, written, &settings);
        if !due {
            continue;
        }
        let now = flow.env.clock.mono();
        let period = Period {
            micros: now.saturating_sub(begun).as_micros() as u64,
            committed: at.committed.ts,
            lag_ms,
            tickets: flow.tickets.taken(),
        };
        begun = now;
        let permitted = rule.next(&period, &settings);
        drop(rule);
        flow.tickets.refill(permitted);
    }
}
