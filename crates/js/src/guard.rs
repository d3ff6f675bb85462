//! Whether a running script must stop: asked by the interpreter's loop, by its allocator and by the prelude's fences.

use pando_base::limits::JS_ASIDE_MS_MAX;
use pando_base::{Error, ErrorCode};
use pando_query::script::Operation;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A call that takes longer steps aside, and again whenever it has taken twice as long.
const LONG_CALL: Duration = Duration::from_millis(5);

pub(crate) struct Guard {
    operation: Mutex<Arc<dyn Operation>>,
    /// Longest single call.
    limit: Duration,
    began_ns: AtomicU64,
    /// When the call steps aside next.
    aside_ns: AtomicU64,
    stopped: AtomicBool,
    out_of_memory: AtomicBool,
    why: Mutex<Option<Error>>,
}

impl Guard {
    pub(crate) fn new(operation: Arc<dyn Operation>, limit: Duration) -> Guard {
        Guard {
            operation: Mutex::new(operation),
            limit,
            began_ns: AtomicU64::new(0),
            aside_ns: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            out_of_memory: AtomicBool::new(false),
            why: Mutex::new(None),
        }
    }

    pub(crate) fn follow(&self, operation: Arc<dyn Operation>) {
        *self.operation.lock().unwrap_or_else(PoisonError::into_inner) = operation;
    }
    fn operation(&self) -> Arc<dyn Operation> {
        self.operation.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A call begins.
    pub(crate) fn begin(&self) {
        self.began_ns.store(self.operation().now().as_nanos() as u64, Relaxed);
        self.aside_ns.store(LONG_CALL.as_nanos() as u64, Relaxed);
        self.stopped.store(false, Relaxed);
        self.out_of_memory.store(false, Relaxed);
    }
    pub(crate) fn note_out_of_memory(&self) {
        self.out_of_memory.store(true, Relaxed);
    }
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.out_of_memory.load(Relaxed)
    }
    pub(crate) fn stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }
    /// Why the call was stopped.
    pub(crate) fn why(&self) -> Option<Error> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// True when the script must stop now.
    pub(crate) fn check(&self) -> bool {
        if self.stopped() {
            return true;
        }
        let operation = self.operation();
        let ran = operation.now().saturating_sub(Duration::from_nanos(self.began_ns.load(Relaxed)));
        let ran_ns = ran.as_nanos() as u64;
        if ran_ns > self.aside_ns.load(Relaxed) {
            self.aside_ns.store(ran_ns * 2, Relaxed);
            operation.step_aside((ran / 5).min(Duration::from_millis(JS_ASIDE_MS_MAX)));
        }
        let interrupted = || Error::new(ErrorCode::Interrupted, "JavaScript execution interrupted");
        let verdict = operation.check().and(if ran > self.limit { Err(interrupted()) } else { Ok(()) });
        let Err(e) = verdict else { return false };
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
        self.stopped.store(true, Relaxed);
        true
    }

    /// `sleep(ms)`; true when it was cut short.
    pub(crate) fn sleep(&self, d: Duration) -> bool {
        const STEP: Duration = Duration::from_millis(10);
        let operation = self.operation();
        let until = operation.now() + d;
        while !self.check() {
            let left = until.saturating_sub(operation.now());
            if left.is_zero() {
                return false;
            }
            operation.pause(left.min(STEP));
        }
        true
    }
}
