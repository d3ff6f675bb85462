//! One life of a workflow: from its beginning, or its last checkpoint, to its end or the next accident.

use super::{Fault, Story};
use crate::{Action, Id, Order, Outcome, Restore, Running};
use pando_base::{Error, ErrorCode, Millis, Result};
use std::collections::BTreeSet;

/// More actions than any workflow under test needs.
const ENDLESS: usize = 2000;
/// A lasting failure: longer than anybody tries who may give up.
const LASTING: u32 = 40;

struct Life<'a> {
    story: &'a mut Story,
    running: Running,
    restore: Option<Restore>,
    pending: Vec<(Id, Action, Millis)>,
    /// Answers that come when nobody waits for them.
    late: Vec<(Id, Result<Outcome>)>,
    /// The call that fails, and how often it still does.
    doomed: Option<(Action, u32)>,
    ended: bool,
    abandoned: bool,
}

/// Whether it came to its end.
pub(super) fn live(story: &mut Story, running: Running, restore: Option<Restore>) -> Result<bool, String> {
    story.world.life += 1;
    let mut life = Life {
        story,
        running,
        restore,
        pending: Vec::new(),
        late: Vec::new(),
        doomed: None,
        ended: false,
        abandoned: false,
    };
    let mut orders = Vec::new();
    life.running.begin(life.story.world.now, &mut orders);
    life.obey(orders)?;
    while !life.ended && !life.abandoned {
        if life.pending.is_empty() {
            return Err("it waits for nothing".into());
        }
        if life.story.actions > ENDLESS {
            return Err("it does not end".into());
        }
        if life.one()? {
            return Ok(false);
        }
    }
    life.bring_late()?;
    Ok(life.ended)
}

fn error(code: ErrorCode) -> Error {
    Error::new(code, "planned")
}

/// Actions that cannot go wrong: waiting, and a draw.
fn is_safe(action: &Action) -> bool {
    matches!(action, Action::Rest(_) | Action::AwaitNudge | Action::Draw)
}

impl Life<'_> {
    /// Carries out one action that is under way. True: this life ends here.
    fn one(&mut self) -> Result<bool, String> {
        let at = self.story.actions;
        let fault = self.story.plan.fault;
        if fault == (Fault::Abort { at, behind: false }) && !self.story.aborted {
            self.abort(ErrorCode::Interrupted)?;
            return Ok(false);
        }
        let (id, action, due) = self.pending.remove(self.next());
        let world = &mut self.story.world;
        world.now = world.now.max(due) + 1;
        self.story.actions += 1;
        self.bring_late()?;
        if self.story.plan.then_crash == Some(at) {
            let _ = self.story.world.carry_out(&action);
            self.story.world.end_of_life(true);
            return Ok(true);
        }
        match fault {
            Fault::Crash { at: k, behind, lost } if k == at => {
                if behind {
                    let _ = self.story.world.carry_out(&action);
                }
                self.story.world.end_of_life(lost);
                return Ok(true);
            }
            Fault::StepDown { at: k, lost } if k == at => {
                self.step_down(id)?;
                self.story.world.end_of_life(lost);
                return Ok(!self.ended);
            }
            _ => {}
        }
        let said = self.carry_out(at, id, &action);
        if fault == (Fault::Abort { at, behind: true }) {
            self.abort(ErrorCode::Interrupted)?;
        }
        self.answer(id, said.clone())?;
        if fault == (Fault::Doubled { at }) {
            self.answer(id, said)?;
        }
        Ok(false)
    }

    /// Which of the actions that are under way comes next.
    fn next(&self) -> usize {
        let first_due = |least: Millis| self.pending.iter().position(|p| p.2 <= least);
        let least = self.pending.iter().map(|p| p.2).min().unwrap_or(0).max(self.story.world.now);
        if self.story.plan.order == 0 {
            return first_due(least).unwrap_or(0);
        }
        let due: Vec<usize> = (0..self.pending.len()).filter(|i| self.pending[*i].2 <= least).collect();
        let mixed = (self.story.plan.order + self.story.actions as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        due.get((mixed >> 33) as usize % due.len().max(1)).copied().unwrap_or(0)
    }

    /// Carries an action out as the plan says.
    fn carry_out(&mut self, at: usize, id: Id, action: &Action) -> Result<Outcome> {
        let fault = self.story.plan.fault;
        let world = &mut self.story.world;
        let fails = |world: &mut super::World, code: ErrorCode| {
            if let Action::Call { to, body } = action {
                world.heard(to, body, false);
            }
            Err(error(code))
        };
        if let Fault::FailedEver { code, .. } = fault
            && let Some((doomed, left)) = &mut self.doomed
            && doomed == action
            && *left > 0
        {
            *left -= 1;
            return fails(world, code);
        }
        match fault {
            Fault::Twice { answer_second } => {
                let first = world.carry_out(action);
                world.repeating = true;
                let second = if is_safe(action) { first.clone() } else { world.carry_out(action) };
                world.repeating = false;
                if answer_second { second } else { first }
            }
            Fault::Lost { at: k } | Fault::Late { at: k } if k == at && !is_safe(action) => {
                let said = world.carry_out(action);
                if matches!(action, Action::Lock(..) | Action::Enter(_)) {
                    return said;
                }
                if fault == (Fault::Late { at }) {
                    self.late.push((id, said));
                }
                Err(error(ErrorCode::NetworkTimeout))
            }
            Fault::Failed { at: k, code } if k == at && !is_safe(action) => fails(world, code),
            Fault::FailedEver { at: k, code } if k == at && matches!(action, Action::Call { .. }) => {
                self.doomed = Some((action.clone(), LASTING));
                fails(world, code)
            }
            _ => world.carry_out(action),
        }
    }

    fn step_down(&mut self, id: Id) -> Result<(), String> {
        self.answer(id, Err(error(ErrorCode::NotWritablePrimary)))?;
        self.abort(ErrorCode::InterruptedDueToReplStateChange)?;
        // What is still wanted of this node fails.
        for _ in 0..ENDLESS {
            let local = |p: &(Id, Action, Millis)| !is_safe(&p.1) && !matches!(p.1, Action::Call { .. });
            let next = self.pending.iter().position(local);
            let Some(next) = next.filter(|_| !self.ended && !self.abandoned) else { return Ok(()) };
            let (id, _, _) = self.pending.remove(next);
            self.answer(id, Err(error(ErrorCode::NotWritablePrimary)))?;
        }
        Err("it goes on on a node that is primary no more".into())
    }

    fn abort(&mut self, code: ErrorCode) -> Result<(), String> {
        self.story.aborted = true;
        let mut orders = Vec::new();
        self.running.abort(self.story.world.now, error(code), &mut orders);
        self.obey(orders)
    }

    fn bring_late(&mut self) -> Result<(), String> {
        for (id, said) in self.late.clone() {
            self.answer(id, said)?;
        }
        Ok(())
    }

    fn answer(&mut self, id: Id, said: Result<Outcome>) -> Result<(), String> {
        let mut orders = Vec::new();
        self.running.answer(self.story.world.now, id, said, &mut orders);
        self.obey(orders)
    }

    fn obey(&mut self, orders: Vec<Order>) -> Result<(), String> {
        for order in orders {
            self.story.orders.push(format!("{order:?}"));
            if self.ended || self.abandoned {
                return Err(format!("behind the end: {order:?}"));
            }
            match order {
                Order::Carry { id, action, after_ms } => {
                    if let (Action::Checkpoint(doc), Some(restore)) = (&action, self.restore) {
                        let restored = restore(doc).map_err(|e| e.to_string())?;
                        let read = restored.document();
                        if read.as_ref() != Some(doc) {
                            return Err(format!("a state document that does not say all: {doc} {read:?}"));
                        }
                        let holds: BTreeSet<_> = restored.holds().into_iter().map(|(r, _)| r).collect();
                        // At the beginning of a life they are still to be taken.
                        if !self.story.world.locks.is_subset(&holds) {
                            return Err(format!("a state document that forgets a lock: {doc}"));
                        }
                    }
                    if self.pending.iter().any(|p| p.0.slot == id.slot) {
                        return Err(format!("two actions at once under slot {}", id.slot));
                    }
                    self.pending.push((id, action, self.story.world.now + after_ms));
                }
                Order::Cancel(id) => self.pending.retain(|p| p.0 != id),
                Order::Release(resource) => drop(self.story.world.locks.remove(&resource)),
                Order::Leave(section) => drop(self.story.world.inside.remove(&section)),
                Order::Report(at) => self.story.world.reports.push(at),
                Order::Note(_) => {}
                Order::Failed(_) => self.story.world.retries += 1,
                Order::End(result) => {
                    self.ended = true;
                    self.story.results.push(result);
                }
                Order::Abandon(_) => {
                    self.abandoned = true;
                    // What it holds goes back with it.
                    self.story.world.locks.clear();
                    self.story.world.inside.clear();
                }
            }
        }
        Ok(())
    }
}
