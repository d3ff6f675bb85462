//! How a server ends: who asked, and in which order things stop.

use pando_env::sync::Notify;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

#[derive(Default)]
pub(crate) struct Shutdown {
    requested: AtomicBool,
    /// Background tasks stop at their next turn.
    stopping: AtomicBool,
    changed: Notify,
}

impl Shutdown {
    pub(crate) fn request(&self) {
        self.requested.store(true, SeqCst);
        self.changed.bump();
    }
    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(SeqCst)
    }
    pub(crate) fn stop_tasks(&self) {
        self.stopping.store(true, SeqCst);
        self.changed.bump();
    }
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(SeqCst)
    }
    pub(crate) async fn wait_requested(&self) {
        self.wait(&self.requested).await;
    }
    pub(crate) async fn wait_stopping(&self) {
        self.wait(&self.stopping).await;
    }
    async fn wait(&self, flag: &AtomicBool) {
        loop {
            let seen = self.changed.version();
            if flag.load(SeqCst) {
                return;
            }
            self.changed.changed(seen).await;
        }
    }
}
