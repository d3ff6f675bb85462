//! What happens to a node as a member of its set, told to the services that want to know (R-POS-1): one list of services, in
//! one order. Hooks run inline while the change waits: what takes time belongs into a task. Some run under the
//! coordinator's lock (role, commit point): there nobody may ask the coordinator.
//!
//! A service may build upon those before it. So whatever begins is told first to last, and whatever ends, last to first:
//!
//! | hook | order | when |
//! |---|---|---|
//! | `on_startup_recovery_complete` | forward | the log is replayed; nothing is known of the set yet; once |
//! | `on_initial_data_available` | forward | this node's data is that of the set, which it is a member of now; once |
//! | `on_become_arbiter` | forward | a member without data; once |
//! | `on_step_up_begin` | forward | elected and drained; the first entry of the term is about to be written |
//! | `on_step_up_complete` | forward | writes are permitted, for the first time in this term |
//! | `on_commit_point` | forward | the set's commit point has moved on; it never moves back within one set. Not in a set of one: there it is the end of the durable log |
//! | `on_recipient_config_installed` | forward | this node has left its set for one of its own (SV-SPLIT-11): the commit point begins anew; under the coordinator's lock |
//! | `on_step_down` | reverse | primary no more; only after a step-up that began, complete or not |
//! | `on_rollback_begin` | reverse | in ROLLBACK, nothing is changed yet |
//! | `on_rollback_end` | forward | over; own writes were taken back, or nothing was |
//! | `on_shutdown` | reverse | before the node leaves its set; once |
//!
//! The write gate is none of the services: it opens before `on_step_up_complete` and is shut before `on_step_down`. An
//! attempt to step down shuts it too, and opens it again where it fails; nobody is told of that. What observers of writes are
//! told of a rollback (`OpObserver::rolled_back`) comes before `on_rollback_end`.

use pando_base::panics::poisoned;
use pando_base::{OpTime, Result, Term};
use std::sync::{Arc, Mutex};

/// What a service may want to know. Every hook does nothing unless it is overridden.
pub trait ReplicaSetAware: Send + Sync {
    /// As the list of services names it.
    fn name(&self) -> &'static str;
    fn on_startup_recovery_complete(&self) {}
    fn on_initial_data_available(&self) {}
    fn on_become_arbiter(&self) {}
    /// A failure keeps the node from becoming a primary; services behind it are not told.
    fn on_step_up_begin(&self, _term: Term) -> Result<()> {
        Ok(())
    }
    fn on_step_up_complete(&self, _term: Term) {}
    fn on_commit_point(&self, _at: OpTime) {}
    fn on_recipient_config_installed(&self) {}
    fn on_step_down(&self) {}
    fn on_rollback_begin(&self) {}
    fn on_rollback_end(&self, _taken_back: bool) {}
    fn on_shutdown(&self) {}
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Told {
    recovered: bool,
    data: bool,
    begun: Option<Term>,
    complete: bool,
    arbiter: bool,
    committed: Option<OpTime>,
    rolls_back: bool,
    shutdown: bool,
}

/// All services of a node. Whatever the caller says twice is told once.
#[derive(Default)]
pub struct Hooks {
    services: Vec<Arc<dyn ReplicaSetAware>>,
    told: Mutex<Told>,
}

impl Hooks {
    /// Told in this order, and of ends in the reverse.
    pub fn new(services: Vec<Arc<dyn ReplicaSetAware>>) -> Hooks {
        Hooks { services, told: Mutex::default() }
    }
    pub fn names(&self) -> Vec<&'static str> {
        self.services.iter().map(|s| s.name()).collect()
    }
    /// Whether it is to be told, after what was told before.
    fn is_due(&self, due: impl FnOnce(&mut Told) -> bool) -> bool {
        due(&mut self.told.lock().unwrap_or_else(poisoned))
    }
    fn forward(&self, due: impl FnOnce(&mut Told) -> bool, call: impl Fn(&dyn ReplicaSetAware)) {
        if self.is_due(due) {
            self.services.iter().for_each(|s| call(&**s));
        }
    }
    fn reverse(&self, due: impl FnOnce(&mut Told) -> bool, call: impl Fn(&dyn ReplicaSetAware)) {
        if self.is_due(due) {
            self.services.iter().rev().for_each(|s| call(&**s));
        }
    }

    pub fn startup_recovery_complete(&self) {
        self.forward(|t| !std::mem::replace(&mut t.recovered, true), |s| s.on_startup_recovery_complete());
    }
    pub fn initial_data_available(&self) {
        self.forward(|t| !std::mem::replace(&mut t.data, true), |s| s.on_initial_data_available());
    }
    pub fn become_arbiter(&self) {
        self.forward(|t| !std::mem::replace(&mut t.arbiter, true), |s| s.on_become_arbiter());
    }
    pub fn step_up_begin(&self, term: Term) -> Result<()> {
        let due = self.is_due(|t| {
            t.complete = false;
            t.begun.replace(term) != Some(term)
        });
        if !due {
            return Ok(());
        }
        self.services.iter().try_for_each(|s| s.on_step_up_begin(term))
    }
    pub fn step_up_complete(&self, term: Term) {
        let due = |t: &mut Told| t.begun == Some(term) && !std::mem::replace(&mut t.complete, true);
        self.forward(due, |s| s.on_step_up_complete(term));
    }
    pub fn commit_point(&self, at: OpTime) {
        let due = |t: &mut Told| {
            let moved = t.committed.is_none_or(|before| before < at);
            if moved {
                t.committed = Some(at);
            }
            moved
        };
        self.forward(due, |s| s.on_commit_point(at));
    }
    pub fn recipient_config_installed(&self) {
        let due = |t: &mut Told| {
            t.committed = None;
            true
        };
        self.forward(due, |s| s.on_recipient_config_installed());
    }
    pub fn step_down(&self) {
        self.reverse(|t| t.begun.take().is_some(), |s| s.on_step_down());
    }
    pub fn rollback_begin(&self) {
        self.reverse(|t| !std::mem::replace(&mut t.rolls_back, true), |s| s.on_rollback_begin());
    }
    pub fn rollback_end(&self, taken_back: bool) {
        self.forward(|t| std::mem::take(&mut t.rolls_back), |s| s.on_rollback_end(taken_back));
    }
    pub fn shutdown(&self) {
        self.reverse(|t| !std::mem::replace(&mut t.shutdown, true), |s| s.on_shutdown());
    }
}

#[cfg(test)]
#[path = "aware_tests.rs"]
mod tests;
