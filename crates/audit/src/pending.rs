//! The event of a change that is under way, for whoever sees the change commit.
//!
//! A command knows what it does to a user, and the observer of writes when that is certain. Between the two lie tries again after conflicts.

use crate::event::Event;
use pando_base::panics::poisoned;
use std::cell::RefCell;
use std::future::Future;
use std::sync::{Arc, Mutex};

/// An event that is recorded once, with the first of the writes that it is about.
#[derive(Clone)]
pub struct Pending(Arc<Mutex<Option<Event>>>);

thread_local! {
    static CURRENT: RefCell<Option<Pending>> = const { RefCell::new(None) };
}

impl Pending {
    pub fn new(event: Event) -> Pending {
        Pending(Arc::new(Mutex::new(Some(event))))
    }
    /// The event, for the first one who asks.
    pub fn take(&self) -> Option<Event> {
        self.0.lock().unwrap_or_else(poisoned).take()
    }
    /// What this thread's work is about.
    pub fn current() -> Option<Pending> {
        CURRENT.with_borrow(Clone::clone)
    }
    /// Runs work whose writes it is about.
    pub async fn during<F: Future>(&self, work: F) -> F::Output {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|cx| {
            let _restored = Restored(CURRENT.replace(Some(self.clone())));
            work.as_mut().poll(cx)
        })
        .await
    }
}

/// Also when the work panics.
struct Restored(Option<Pending>);

impl Drop for Restored {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}
