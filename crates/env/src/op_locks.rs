//! The locks of one operation: what it holds, what it waits for, and how often and how long it has.
//!
//! Locks lie below everything that knows of operations. So whoever runs one says so to its thread for as long as it polls it
//! ([`enter`]), and a lock finds the operation there ([`current`]).

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// What a lock protects, in MongoDB's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    FeatureCompatibilityVersion,
    /// The gate of writes, which is closed when a primary steps down.
    ReplicationStateTransition,
    /// Definitions of a database.
    Database,
    /// Writers of a collection share it, a change of its definition has it alone.
    Collection,
}

impl Class {
    pub const ALL: [Class; 4] = [
        Class::FeatureCompatibilityVersion,
        Class::ReplicationStateTransition,
        Class::Database,
        Class::Collection,
    ];
    pub fn name(self) -> &'static str {
        match self {
            Class::FeatureCompatibilityVersion => "FeatureCompatibilityVersion",
            Class::ReplicationStateTransition => "ReplicationStateTransition",
            Class::Database => "Database",
            Class::Collection => "Collection",
        }
    }
}

/// How it is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Shared,
    Exclusive,
}

impl Mode {
    pub const ALL: [Mode; 2] = [Mode::Shared, Mode::Exclusive];
    pub fn of(exclusive: bool) -> Mode {
        if exclusive { Mode::Exclusive } else { Mode::Shared }
    }
    /// Who shares a lock means to write.
    pub fn letter(self) -> &'static str {
        match self {
            Mode::Shared => "w",
            Mode::Exclusive => "W",
        }
    }
}

#[derive(Default, Debug)]
struct Figures {
    held: AtomicU32,
    acquired: AtomicU64,
    waits: AtomicU64,
    micros: AtomicU64,
}

/// How often locks of a class and mode were taken, how often only after a wait, and how long those waits were together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Taken {
    pub acquired: u64,
    pub waits: u64,
    pub micros: u64,
}

#[derive(Default, Debug)]
pub struct OpLocks {
    figures: [[Figures; 2]; 4],
    waiting: AtomicU32,
    /// It may write where users may not for a while.
    passes_write_block: AtomicBool,
}

impl OpLocks {
    pub fn pass_write_block(&self) {
        self.passes_write_block.store(true, Relaxed);
    }
    pub fn passes_write_block(&self) -> bool {
        self.passes_write_block.load(Relaxed)
    }
    fn of(&self, class: Class, mode: Mode) -> &Figures {
        &self.figures[class as usize][mode as usize]
    }
    pub fn acquired(&self, class: Class, mode: Mode) {
        let f = self.of(class, mode);
        f.held.fetch_add(1, Relaxed);
        f.acquired.fetch_add(1, Relaxed);
    }
    /// Let go, or left to somebody else.
    pub fn released(&self, class: Class, mode: Mode) {
        self.of(class, mode).held.fetch_sub(1, Relaxed);
    }
    pub fn waits(&self, class: Class, mode: Mode) {
        self.of(class, mode).waits.fetch_add(1, Relaxed);
        self.waiting.fetch_add(1, Relaxed);
    }
    /// A wait is over, whether it got what it waited for or not.
    pub fn waited(&self, class: Class, mode: Mode, took: Duration) {
        self.of(class, mode).micros.fetch_add(took.as_micros() as u64, Relaxed);
        self.waiting.fetch_sub(1, Relaxed);
    }
    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }
    /// The strongest mode in which a lock of the class is held.
    pub fn held(&self, class: Class) -> Option<Mode> {
        [Mode::Exclusive, Mode::Shared].into_iter().find(|mode| self.of(class, *mode).held.load(Relaxed) > 0)
    }
    pub fn taken(&self, class: Class, mode: Mode) -> Taken {
        let f = self.of(class, mode);
        let load = |n: &AtomicU64| n.load(Relaxed);
        Taken { acquired: load(&f.acquired), waits: load(&f.waits), micros: load(&f.micros) }
    }
    /// For the next operation, once nothing of the last one is held.
    pub fn reset(&mut self) {
        *self = OpLocks::default();
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<OpLocks>>> = const { RefCell::new(None) };
}

/// Until it is dropped, this thread works for an operation.
#[must_use]
pub struct Entered(Option<Arc<OpLocks>>);

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

pub fn enter(locks: &Arc<OpLocks>) -> Entered {
    Entered(CURRENT.replace(Some(locks.clone())))
}
/// The operation that this thread works for.
pub fn current() -> Option<Arc<OpLocks>> {
    CURRENT.with_borrow(Clone::clone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_works_for_the_innermost_operation() {
        let (a, b) = (Arc::new(OpLocks::default()), Arc::new(OpLocks::default()));
        let is = |o: &Arc<OpLocks>| current().is_some_and(|c| Arc::ptr_eq(&c, o));
        let outer = enter(&a);
        assert!(is(&a));
        drop(enter(&b));
        assert!(is(&a));
        drop(outer);
        assert!(current().is_none());
    }

    #[test]
    fn what_is_held_and_what_was_taken_are_told_apart() {
        let op = OpLocks::default();
        op.acquired(Class::Collection, Mode::Shared);
        op.waits(Class::Collection, Mode::Exclusive);
        assert!(op.is_waiting());
        op.waited(Class::Collection, Mode::Exclusive, Duration::from_micros(7));
        op.acquired(Class::Collection, Mode::Exclusive);
        assert_eq!(op.held(Class::Collection), Some(Mode::Exclusive));
        op.released(Class::Collection, Mode::Exclusive);
        assert_eq!((op.held(Class::Collection), op.held(Class::Database)), (Some(Mode::Shared), None));
        let taken = op.taken(Class::Collection, Mode::Exclusive);
        assert_eq!(taken, Taken { acquired: 1, waits: 1, micros: 7 });
        assert!(!op.is_waiting());
    }
}
