//! The log reaches the disk every `journalCommitInterval` ms, or when someone waits for it.

use super::Replication;
use crate::lifecycle::either;
use pando_command::Param;
use std::sync::Arc;
use std::time::Duration;

pub(crate) async fn run(replication: Arc<Replication>) {
    let log = replication.storage.log().clone();
    while !replication.lifecycle.is_stopping() {
        let interval = replication.instance.params.int(Param::journalCommitInterval).max(1);
        let timer = replication.env.clock.sleep(Duration::from_millis(interval as u64));
        either(either(log.wait_flush_wanted(), timer), replication.lifecycle.wait_stopping()).await;
        if let Some(e) = log.poisoned() {
            return replication.lifecycle.fatal("The log could not be written", &e.message);
        }
        if !log.has_unsynced() {
            continue;
        }
        replication.lifecycle.hold("pauseJournalFlusherThread").await;
        replication.instance.fail_points.panic_if_asked(&*replication.env.rng, "log flusher");
        let flushing = log.clone();
        match replication.env.offload(move || flushing.flush_once()).await {
            // Whoever waits for the disk has been woken already; a test lets the core hear of it later.
            Some(Ok(())) if replication.instance.fail_points.is_active("skipTellingJournalFlush") => {}
            Some(Ok(())) => replication.note_synced(),
            // After a failed sync nothing is known about the file (the log refuses everything from here on).
            Some(Err(e)) => return replication.lifecycle.fatal("The log could not be written", &e.message),
            None => return replication.lifecycle.fatal("The log flusher failed", "panic"),
        }
    }
}
