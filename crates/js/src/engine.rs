//! The scripts of one operation, as queries call them.

use crate::guard::Guard;
use crate::interp::Interp;
use pando_base::Result;
use pando_bson::{DocBuf, RawDoc};
use pando_query::ctx::Random;
use pando_query::script::{FunctionId, Operation, Scripts};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What one operation's scripts may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub heap_bytes: usize,
    /// Longest single call.
    pub call: Duration,
}

/// An interpreter that is made when the first script needs it.
pub struct Engine {
    guard: Arc<Guard>,
    limits: Limits,
    random: Arc<dyn Random>,
    interp: Mutex<Option<Interp>>,
}

impl Engine {
    pub fn new(operation: Arc<dyn Operation>, limits: Limits, random: Arc<dyn Random>) -> Engine {
        let guard = Arc::new(Guard::new(operation, limits.call));
        Engine { guard, limits, random, interp: Mutex::new(None) }
    }

    fn with<T>(&self, f: impl FnOnce(&mut Interp) -> Result<T>) -> Result<T> {
        let mut slot = self.interp.lock().unwrap_or_else(PoisonError::into_inner);
        let interp = match &mut *slot {
            Some(interp) => interp,
            empty => {
                self.guard.begin();
                empty.insert(Interp::new(self.guard.clone(), self.limits.heap_bytes, &self.random)?)
            }
        };
        f(interp)
    }
}

impl Scripts for Engine {
    fn compile(&self, code: &str) -> Result<FunctionId> {
        self.with(|i| i.compile(code))
    }
    fn test(&self, f: FunctionId, doc: &RawDoc) -> Result<bool> {
        self.with(|i| i.test(f, doc))
    }
    fn call(&self, f: FunctionId, args: &RawDoc) -> Result<DocBuf> {
        self.with(|i| i.call(f, args))
    }
    fn fold(&self, f: FunctionId, state: &RawDoc, calls: &RawDoc) -> Result<DocBuf> {
        self.with(|i| i.fold(f, state, calls))
    }
    fn follow(&self, operation: Arc<dyn Operation>) {
        self.guard.follow(operation);
    }
}
