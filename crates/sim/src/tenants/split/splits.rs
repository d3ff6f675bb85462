//! When which splits are asked for.

use super::knowledge::{Said, Split};
use super::operator::{Operator, Plan};
use super::shape::{OTHER_RECIPIENT, RECIPIENT, STAY, TENANTS};
use super::{LOOK_MS, Run};
use crate::executor::lock;
use crate::set::Failure;
use std::time::Duration;

/// Attempts of one run, with faults.
const ATTEMPTS_MAX: u8 = 4;
/// Virtual time until the first one, and between two, at most.
const BETWEEN_MS: u64 = 8000;
/// Once everything has healed a split ends within this time: one that was asked for last has to wait for an election, and users.
const ENDS_WITHIN: Duration = Duration::from_secs(150);

/// What will be asked for next.
pub(super) struct Schedule {
    pub(super) next: Duration,
    pub(super) attempts: u8,
    pub(super) last_id: u8,
    /// Virtual time of the first decision to move.
    pub(super) committed_at: Option<Duration>,
}

impl Run {
    fn operator(&self) -> Operator {
        Operator {
            env: self.field.env(self.field.operator),
            addrs: self.field.addrs()[..STAY].to_vec(),
            knowledge: self.knowledge.clone(),
            board: self.field.board.clone(),
        }
    }
    /// Half of the tenants, more or less, and one at least.
    fn some_tenants(&self) -> Vec<usize> {
        let mut tenants: Vec<usize> = (0..TENANTS).filter(|_| self.field.below(2) == 0).collect();
        if tenants.is_empty() {
            tenants.push(self.field.below(TENANTS as u64) as usize);
        }
        tenants
    }
    fn plan(&mut self) -> Plan {
        self.schedule.last_id += 1;
        let calls_off = self.field.below(4) == 0 || !self.shape.commits;
        let longest = [0, 50, 500, 5000][self.field.below(4) as usize];
        Plan {
            id: self.schedule.last_id,
            tenants: self.some_tenants(),
            abort_after: calls_off.then(|| Duration::from_micros(self.field.below(longest * 1000 + 1))),
            other_tag: false,
            told_after: Duration::from_millis(self.field.below(4000)),
            forgets: self.field.below(4) != 0,
        }
    }
    fn begin(&mut self, plan: Plan) {
        lock(&self.knowledge).splits.push(Split {
            id: plan.id,
            tenants: plan.tenants.clone(),
            set: if plan.other_tag { OTHER_RECIPIENT } else { RECIPIENT },
            begun: self.field.world.sim.now(),
            said: None,
            called_off: false,
            block: None,
            forgotten: false,
            over: None,
        });
        let (sim, operator) = (&self.field.world.sim, self.operator());
        let process = self.field.operator;
        if let Some(after) = plan.abort_after {
            sim.spawn(process, "calls off", operator.clone().call_off(plan.id, after));
        }
        sim.spawn(process, "splits", operator.run(plan));
    }

    /// Asks for a split when it is time, for two now and then.
    pub(super) fn split_if_due(&mut self) {
        let now = self.field.world.sim.now();
        let (undecided, committed) = {
            let knowledge = lock(&self.knowledge);
            (knowledge.undecided(), knowledge.committed().is_some())
        };
        if committed {
            self.schedule.committed_at.get_or_insert(now);
            return;
        }
        if undecided > 0 || self.schedule.attempts == ATTEMPTS_MAX || now < self.schedule.next {
            return;
        }
        self.schedule.attempts += 1;
        self.schedule.next = now + Duration::from_millis(self.field.below(BETWEEN_MS));
        let plan = self.plan();
        if self.field.below(4) == 0 {
            let mut beside = self.plan();
            match self.field.below(3) {
                // No tenant of the other one.
                0 => {
                    let free = (0..TENANTS).filter(|t| !plan.tenants.contains(t)).collect::<Vec<_>>();
                    beside.tenants = if free.is_empty() { plan.tenants.clone() } else { free };
                }
                1 => beside.other_tag = true,
                _ => {}
            }
            self.begin(beside);
        }
        if plan.abort_after.is_some() && self.field.below(2) == 0 {
            // It waits for somebody while it is called off.
            self.field.hold_up();
        }
        self.begin(plan);
        if self.field.below(4) != 0 && !self.field.has_hit() {
            self.field.plan_hit();
        }
    }

    /// Every split ends; and where none has committed that should have, one more is asked for.
    pub(super) fn end_splits(&mut self) -> Result<(), Box<Failure>> {
        self.await_splits(|k| k.undecided() == 0, "a split does not end")?;
        if self.shape.commits && lock(&self.knowledge).committed().is_none() {
            self.await_splits(|k| k.under_way() == 0, "a split does not end")?;
            self.forget_all()?;
            let plan = Plan { abort_after: None, ..self.plan() };
            let id = plan.id;
            self.begin(plan);
            self.await_splits(|k| k.undecided() == 0, "a split without faults does not end")?;
            let how = lock(&self.knowledge).split(id).and_then(|s| s.said);
            // A short time limit is one that may pass.
            let may_abort = self.shape.timeout_ms < 60_000 && how == Some(Said::Aborted);
            if how != Some(Said::Committed) && !may_abort {
                return Err(self.field.fail(vec![format!("a split without faults is {how:?}")]));
            }
        }
        self.await_splits(|k| k.under_way() == 0, "a split is not forgotten")
    }
    fn await_splits(
        &mut self,
        done: impl Fn(&super::knowledge::Knowledge) -> bool,
        what: &str,
    ) -> Result<(), Box<Failure>> {
        let end = self.field.world.sim.now() + ENDS_WITHIN;
        while !done(&lock(&self.knowledge)) {
            if self.field.world.sim.now() >= end {
                let splits = lock(&self.knowledge).splits.clone();
                return Err(self.field.fail(vec![format!("{what}: {splits:?}")]));
            }
            self.field.go_on(Duration::from_millis(LOOK_MS))?;
        }
        Ok(())
    }
    /// All that are known, so that they are in nobody's way.
    fn forget_all(&mut self) -> Result<(), Box<Failure>> {
        let process = self.field.world.sim.start_process();
        let operator = Operator { env: self.field.env(process), ..self.operator() };
        let open: Vec<u8> = {
            let knowledge = lock(&self.knowledge);
            knowledge.splits.iter().filter(|s| !s.forgotten).map(|s| s.id).collect()
        };
        let forgetting = async move {
            for id in open {
                operator.forget(id).await;
            }
        };
        let done = self.field.world.sim.block_on(process, ENDS_WITHIN, forgetting);
        self.field.world.sim.kill(process);
        match done {
            Ok(()) => self.field.look(),
            Err(why) => Err(self.field.fail(vec![format!("splits are not forgotten: {why:?}")])),
        }
    }
}
