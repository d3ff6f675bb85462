//! Hooks at changes of this node's role (R-POS-1). They run inline, in the order of registration, while the change
//! waits: what takes time belongs into a task.

use pando_base::Term;
use pando_base::panics::poisoned;
use std::sync::{Arc, Mutex};

/// What a service may want to know. Every hook does nothing unless it is overridden.
pub trait ReplicaSetAware: Send + Sync {
    /// The log is replayed; nothing is known of the set yet.
    fn on_startup_recovery_complete(&self) {}
    /// This node's data is that of the set: after a start with data, or after an initial sync.
    fn on_initial_data_available(&self) {}
    /// Elected and drained; the first entry of `term` is about to be written.
    fn on_step_up_begin(&self, _term: Term) {}
    /// Writes are permitted.
    fn on_step_up_complete(&self, _term: Term) {}
    /// Primary no more. Only after a step-up that began.
    fn on_step_down(&self) {}
    fn on_become_arbiter(&self) {}
    /// Own writes were taken back.
    fn on_rollback(&self) {}
    fn on_shutdown(&self) {}
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Told {
    recovered: bool,
    data: bool,
    begun: Option<Term>,
    complete: bool,
    arbiter: bool,
    shutdown: bool,
}

/// All services of a node. Whatever the caller says twice is told once.
#[derive(Default)]
pub struct Hooks {
    services: Vec<Arc<dyn ReplicaSetAware>>,
    told: Mutex<Told>,
}

impl Hooks {
    pub fn new(services: Vec<Arc<dyn ReplicaSetAware>>) -> Hooks {
        Hooks { services, told: Mutex::default() }
    }
    /// Calls everybody if `due` says so of what was told before.
    fn tell(&self, due: impl FnOnce(&mut Told) -> bool, call: impl Fn(&dyn ReplicaSetAware)) {
        let due = due(&mut self.told.lock().unwrap_or_else(poisoned));
        if due {
            self.services.iter().for_each(|s| call(&**s));
        }
    }
    pub fn startup_recovery_complete(&self) {
        self.tell(|t| !std::mem::replace(&mut t.recovered, true), |s| s.on_startup_recovery_complete());
    }
    pub fn initial_data_available(&self) {
        self.tell(|t| !std::mem::replace(&mut t.data, true), |s| s.on_initial_data_available());
    }
    pub fn step_up_begin(&self, term: Term) {
        let due = |t: &mut Told| {
            t.complete = false;
            t.begun.replace(term) != Some(term)
        };
        self.tell(due, |s| s.on_step_up_begin(term));
    }
    pub fn step_up_complete(&self, term: Term) {
        let due = |t: &mut Told| t.begun == Some(term) && !std::mem::replace(&mut t.complete, true);
        self.tell(due, |s| s.on_step_up_complete(term));
    }
    pub fn step_down(&self) {
        self.tell(|t| t.begun.take().is_some(), |s| s.on_step_down());
    }
    pub fn become_arbiter(&self) {
        self.tell(|t| !std::mem::replace(&mut t.arbiter, true), |s| s.on_become_arbiter());
    }
    pub fn rollback(&self) {
        self.tell(|_| true, |s| s.on_rollback());
    }
    pub fn shutdown(&self) {
        self.tell(|t| !std::mem::replace(&mut t.shutdown, true), |s| s.on_shutdown());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scribe(&'static str, Arc<Mutex<Vec<String>>>);
    impl Scribe {
        fn note(&self, what: String) {
            self.1.lock().unwrap().push(format!("{}:{what}", self.0));
        }
    }
    impl ReplicaSetAware for Scribe {
        fn on_startup_recovery_complete(&self) {
            self.note("recovered".into());
        }
        fn on_initial_data_available(&self) {
            self.note("data".into());
        }
        fn on_step_up_begin(&self, term: Term) {
            self.note(format!("begin {term}"));
        }
        fn on_step_up_complete(&self, term: Term) {
            self.note(format!("up {term}"));
        }
        fn on_step_down(&self) {
            self.note("down".into());
        }
        fn on_rollback(&self) {
            self.note("rollback".into());
        }
        fn on_shutdown(&self) {
            self.note("shutdown".into());
        }
    }

    #[test]
    fn hooks_run_once_for_each_change_and_in_order() {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let hooks =
            Hooks::new(vec![Arc::new(Scribe("a", lines.clone())), Arc::new(Scribe("b", lines.clone()))]);
        hooks.startup_recovery_complete();
        hooks.initial_data_available();
        hooks.initial_data_available();
        hooks.step_down();
        hooks.step_up_begin(3);
        hooks.step_up_complete(3);
        // A failed conditional step-down makes the same primary writable again.
        hooks.step_up_complete(3);
        hooks.step_down();
        hooks.step_down();
        // Elected, and gone before it wrote.
        hooks.step_up_begin(5);
        hooks.step_down();
        hooks.step_up_complete(5);
        // Each one is told.
        hooks.rollback();
        hooks.rollback();
        hooks.shutdown();
        let of_a: Vec<String> =
            lines.lock().unwrap().iter().filter(|l| l.starts_with("a:")).cloned().collect();
        let story = [
            "recovered",
            "data",
            "begin 3",
            "up 3",
            "down",
            "begin 5",
            "down",
            "rollback",
            "rollback",
            "shutdown",
        ];
        assert_eq!(of_a, story.map(|s| format!("a:{s}")));
        let all = lines.lock().unwrap().clone();
        assert_eq!(all.len(), 20);
        assert!(all.chunks(2).all(|pair| pair[0][2..] == pair[1][2..]), "{all:?}");
    }
}
