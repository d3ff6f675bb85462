//! Locks that are held while a disk works.
//!
//! They are the standard library's. Whoever finds one taken asks once whether this thread has something better to do than
//! to block: in a simulation, where one thread is all threads, the holder has to be let go on. Elsewhere nobody has said
//! what that would be, and the thread blocks.

use std::sync::{LockResult, MutexGuard, OnceLock, TryLockError};

/// Lets others go on; false when there is nobody, and the thread has to block.
pub type LetOthersGoOn = fn() -> bool;

static OTHERS: OnceLock<LetOthersGoOn> = OnceLock::new();

/// Says once for the whole process what a thread does in place of blocking.
pub fn let_others_go_on_by(how: LetOthersGoOn) {
    let _ = OTHERS.set(how);
}

/// A thread that tries something again and again lets others go on.
pub fn yield_thread() {
    if !OTHERS.get().is_some_and(|let_others_go_on| let_others_go_on()) {
        std::thread::yield_now();
    }
}

/// See the module text.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }
    /// As [`std::sync::Mutex::lock`].
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let Some(let_others_go_on) = OTHERS.get() else { return self.0.lock() };
        loop {
            match self.0.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(e)) => return Err(e),
                Err(TryLockError::WouldBlock) if let_others_go_on() => {}
                Err(TryLockError::WouldBlock) => return self.0.lock(),
            }
        }
    }
}
