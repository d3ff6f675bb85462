//! When which set is merged into the other one, in runs of `--merges`. What a set has goes in one merge; before some of them a part of the tenants has
//! gone the other way, one by one, so that whoever takes others in has some of its own.

use super::super::users::caller::majority;
use super::super::{Home, database};
use super::operator::Plan;
use super::{HOMES, Run, TENANTS};
use crate::executor::lock;
use crate::set::Failure;
use crate::set::users::caller::is_done;
use pando_bson::doc;
use std::time::Duration;

/// Merges and migrations of one run, with faults. Their ids are bytes.
const MERGES_MAX: u8 = 150;
/// Tenants that go back before a merge.
const BACK_MAX: u64 = 5;
/// Virtual time between two merges, at most.
const BETWEEN_MS: u64 = 1500;
/// Until every tenant has something.
const PATIENCE: Duration = Duration::from_secs(60);
/// Of a command that nobody has answered nothing comes any more.
const GHOSTS: Duration = Duration::from_secs(16);

impl Run {
    /// Every tenant has something at its set: a merge tells of those that are there.
    pub(super) fn settle(&mut self) -> Result<(), Box<Failure>> {
        let (sim, operator) = (self.field.world.sim.clone(), self.operator());
        let all = async move {
            for (tenant, home) in HOMES.into_iter().enumerate() {
                let mut first = doc! { "insert": "first", "documents": [{ "_id": 1 }] };
                first.push("writeConcern", majority());
                first.push("$db", database(tenant));
                operator.insist(home, first, |reply| is_done(reply).then_some(())).await;
            }
        };
        match sim.block_on(self.field.operator, PATIENCE, all) {
            Ok(()) => Ok(()),
            Err(why) => Err(self.field.fail(vec![format!("tenants do not come into being: {why:?}")])),
        }
    }
    /// All that a set has, a random one of which is the first.
    fn plan_merge(&mut self, from: Home) -> Plan {
        let mut tenants = self.tenants_of(from);
        if !tenants.is_empty() {
            let first = self.below(tenants.len() as u64) as usize;
            tenants.rotate_left(first);
        }
        let first = tenants.first().copied();
        let plan = self.plan(first.unwrap_or(0), from);
        // Fewer than of migrations: each is all tenants' own.
        let in_its_way = plan.in_its_way && first.is_some() && self.below(2) == 0;
        let abort_after = plan.abort_after.filter(|_| self.below(2) == 0);
        Plan { in_its_way, abort_after, tenants, merges: true, ..plan }
    }
    fn tenants_of(&self, home: Home) -> Vec<usize> {
        let board = lock(&self.field.board);
        (0..TENANTS).filter(|t| board.announced(*t).home == home).collect()
    }
    /// Asks for a merge when it is time.
    pub(super) fn merge_if_due(&mut self) {
        let now = self.field.now();
        if now < self.schedule.next || self.schedule.last_id >= MERGES_MAX {
            return;
        }
        let (is_busy, is_clear) = {
            let knowledge = lock(&self.knowledge);
            (knowledge.under_way().next().is_some(), knowledge.plants.is_empty())
        };
        self.schedule.next = now + Duration::from_millis(self.below(BETWEEN_MS));
        if is_busy {
            // Now and then one is asked for beside another one, and has to wait.
            if self.below(40) == 0 {
                let beside = Plan { in_its_way: false, ..self.plan_merge(self.field.from) };
                self.begin(beside);
            }
            return;
        }
        // Whatever of a tenant is at both sets keeps all where they are: something may be in the way, but not always.
        if !is_clear && self.below(10) != 0 {
            return;
        }
        let counts = Home::BOTH.map(|home| self.tenants_of(home).len());
        let more = if counts[0] >= counts[1] { Home::First } else { Home::Second };
        if counts.contains(&0) && self.below(2) == 0 {
            return self.spread(more);
        }
        // Rarely a set that has nothing.
        let either = !counts.contains(&0) && self.below(2) == 0 || self.below(12) == 0;
        self.field.from = if either { more.other() } else { more };
        let plan = self.plan_merge(self.field.from);
        if plan.abort_after.is_some() && self.below(3) == 0 {
            // It waits for somebody while it is called off.
            self.field.hold_up();
        }
        self.begin(plan);
        if !self.field.has_hit() {
            match self.below(8) {
                0 => {}
                1..=4 => self.field.plan_copy_hit(),
                _ => self.field.plan_hit(),
            }
        }
    }
    /// Some go to the set that has none.
    fn spread(&mut self, from: Home) {
        self.field.from = from;
        let mut left = self.candidates(from);
        for _ in 0..1 + self.below(BACK_MAX) {
            if left.is_empty() {
                return;
            }
            let tenant = left.swap_remove(self.below(left.len() as u64) as usize);
            let plan = Plan { in_its_way: false, ..self.plan(tenant, from) };
            self.begin(plan);
        }
    }
    /// Behind all faults each set is merged into the other one.
    pub(super) fn end_merges(&mut self) -> Result<(), Box<Failure>> {
        self.until(|k| k.plants.is_empty(), "something stays in a tenant's way")?;
        // No newcomer comes late.
        self.field.go_on(GHOSTS)?;
        let first = if self.tenants_of(Home::First).is_empty() { Home::Second } else { Home::First };
        for from in [first, first.other()] {
            self.field.from = from;
            let plan = Plan { abort_after: None, in_its_way: false, ..self.plan_merge(from) };
            self.commits(plan)?;
        }
        Ok(())
    }
    /// Whoever has taken another set's tables in has forgotten that by now.
    pub(super) fn imports_left(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (i, node) in self.field.nodes.iter().enumerate() {
            let Some(server) = node.server() else { continue };
            match server.imports() {
                Ok(left) if left.is_empty() && !server.is_taking_in() => {}
                left => problems.push(format!("machine {i} remembers what it has taken in: {left:?}")),
            }
        }
        problems
    }
}
