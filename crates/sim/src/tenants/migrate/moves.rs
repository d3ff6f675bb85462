//! When which migrations are asked for: some tenants go one way at the same time, then some go this way or back.

use super::super::Home;
use super::super::field::LOOK_MS;
use super::knowledge::{Knowledge, Said};
use super::operator::{Operator, Plan};
use super::{Run, TENANTS};
use crate::executor::lock;
use crate::set::Failure;
use std::time::Duration;

/// Migrations of one run, with faults. Their ids are bytes.
const MIGRATIONS_MAX: u8 = 200;
/// Tenants that go at the same time.
const TOGETHER_MAX: u64 = 5;
/// Virtual time between two that go at the same time, at most.
const BETWEEN_MS: u64 = 1500;
/// Once everything has healed a migration ends within this time: one that was asked for last has to wait for an election, and users.
const ENDS_WITHIN: Duration = Duration::from_secs(150);

/// What will be asked for next.
pub(super) struct Schedule {
    pub(super) next: Duration,
    pub(super) last_id: u8,
    /// Of those that go the same way, so many are still to be asked for.
    left: u64,
}

impl Schedule {
    pub(super) fn new(next: Duration) -> Schedule {
        Schedule { next, last_id: 0, left: 0 }
    }
}

impl Run {
    pub(super) fn operator(&self) -> Operator {
        let (field, addrs) = (&self.field, self.field.addrs());
        Operator {
            env: field.env(field.operator),
            addrs: Home::BOTH.map(|home| addrs[home.machines()].to_vec()),
            knowledge: self.knowledge.clone(),
            board: field.board.clone(),
        }
    }
    pub(super) fn below(&self, n: u64) -> u64 {
        self.field.below(n)
    }
    /// Tenants that may go from a set: they are there, and nothing of them is elsewhere.
    pub(super) fn candidates(&self, from: Home) -> Vec<usize> {
        let (knowledge, board) = (lock(&self.knowledge), lock(&self.field.board));
        let fits = |t: &usize| {
            board.announced(*t).home == from && !knowledge.is_moving(*t) && !knowledge.plants.contains_key(t)
        };
        (0..TENANTS).filter(fits).collect()
    }
    pub(super) fn plan(&mut self, tenant: usize, from: Home) -> Plan {
        self.schedule.last_id += 1;
        let longest = [0, 50, 500, 5000][self.below(4) as usize];
        Plan {
            id: self.schedule.last_id,
            tenants: vec![tenant],
            merges: false,
            from,
            abort_after: (self.below(5) == 0).then(|| Duration::from_micros(self.below(longest * 1000 + 1))),
            in_its_way: self.below(8) == 0,
            told_after: Duration::from_millis(self.below(2000)),
        }
    }
    pub(super) fn begin(&mut self, plan: Plan) {
        let (sim, operator, process) = (&self.field.world.sim, self.operator(), self.field.operator);
        operator.begin(&plan);
        if let Some(after) = plan.abort_after {
            sim.spawn(process, "calls off", operator.clone().call_off(plan.id, after));
        }
        sim.spawn(process, "moves", operator.run(plan));
    }

    /// Asks for a migration when it is time.
    pub(super) fn move_if_due(&mut self) {
        let now = self.field.now();
        if now < self.schedule.next || self.schedule.last_id >= MIGRATIONS_MAX {
            return;
        }
        if self.schedule.left == 0 {
            if lock(&self.knowledge).under_way().next().is_some() {
                return;
            }
            self.schedule.left = 1 + self.below(TOGETHER_MAX);
            self.field.from = Home::BOTH[self.below(2) as usize];
        }
        self.schedule.left -= 1;
        self.schedule.next = now + Duration::from_millis(self.below(BETWEEN_MS));
        // Now and then one goes the other way, and has to wait.
        let from = if self.below(12) == 0 { self.field.from.other() } else { self.field.from };
        let candidates = self.candidates(from);
        if candidates.is_empty() {
            return;
        }
        let tenant = candidates[self.below(candidates.len() as u64) as usize];
        let plan = self.plan(tenant, from);
        if self.below(12) == 0 {
            // The same tenant twice.
            let beside = Plan { in_its_way: false, ..self.plan(tenant, from) };
            self.begin(beside);
        }
        if plan.abort_after.is_some() && self.below(3) == 0 {
            // It waits for somebody while it is called off.
            self.field.hold_up();
        }
        self.begin(plan);
        if self.below(8) != 0 && !self.field.has_hit() {
            self.field.plan_hit();
        }
    }

    /// Every migration ends; and one without faults commits, there and back.
    pub(super) fn end_migrations(&mut self) -> Result<(), Box<Failure>> {
        lock(&self.knowledge).calm = true;
        self.until(|k| k.undecided() == 0, "a migration does not end")?;
        self.until(|k| k.under_way().next().is_none(), "a migration leaves something")?;
        if self.field.options.merges {
            return self.end_merges();
        }
        for from in Home::BOTH {
            let Some(tenant) = self.candidates(from).first().copied() else { continue };
            let plan = Plan { abort_after: None, in_its_way: false, ..self.plan(tenant, from) };
            self.commits(plan)?;
        }
        Ok(())
    }
    /// One without faults.
    pub(super) fn commits(&mut self, plan: Plan) -> Result<(), Box<Failure>> {
        let id = plan.id;
        self.begin(plan);
        self.until(|k| k.undecided() == 0, "a migration without faults does not end")?;
        let migration = lock(&self.knowledge).migration(id).cloned();
        if !migration.as_ref().is_some_and(|m| m.said == Some(Said::Committed)) {
            return Err(self.field.fail(vec![format!("migration {id} without faults is {migration:?}")]));
        }
        self.until(|k| k.under_way().next().is_none(), "a migration leaves something")
    }
    pub(super) fn until(
        &mut self,
        done: impl Fn(&Knowledge) -> bool,
        what: &str,
    ) -> Result<(), Box<Failure>> {
        let end = self.field.now() + ENDS_WITHIN;
        while !done(&lock(&self.knowledge)) {
            if self.field.now() >= end {
                let open: Vec<_> = lock(&self.knowledge).under_way().cloned().collect();
                return Err(self.field.fail(vec![format!("{what}: {open:?}")]));
            }
            self.field.go_on(Duration::from_millis(LOOK_MS))?;
        }
        Ok(())
    }
}
