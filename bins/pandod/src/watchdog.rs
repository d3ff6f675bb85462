//! Ends the process when the disk hangs.
//!
//! A sync that never comes back is worse than one that fails: nothing is reported, every write that waits for the disk
//! waits for ever, and a primary keeps its office because its heartbeats need no disk. So a thread of its own looks at the
//! syncs under way, and ends the process when one takes too long. Nothing is said to the set beforehand: a step-down would
//! have to wait for the same disk. The sockets are closed with the process, and the others elect.

// Who watches the disk must not wait for tasks that wait for the disk.
#![allow(clippy::disallowed_methods)]

use crate::exit;
use pando_base::{Error, Result};
use pando_env::{Component, Log};
use pando_env_tokio::syncs;
use std::time::Duration;

pub(crate) fn start(log: &Log, stall_secs: i64) -> Result<()> {
    let (log, bound) = (log.named("watchdog"), Duration::from_secs(stall_secs.max(1) as u64));
    let run = move || {
        loop {
            std::thread::sleep(bound / 20);
            if let Some(waited) = syncs::longest().filter(|waited| *waited >= bound) {
                end(&log, waited);
            }
        }
    };
    let spawned = std::thread::Builder::new().name("watchdog".to_owned()).spawn(run);
    spawned.map(drop).map_err(|e| Error::from(e).context("the thread that watches the disk"))
}

fn end(log: &Log, waited: Duration) -> ! {
    // The log may lie on the same disk, and its file hang as well: another thread writes it.
    let (told, waited) = (log.clone(), waited.as_secs());
    let telling = std::thread::spawn(move || {
        eprintln!("pandod ends: the disk has not answered a sync for {waited} s");
        told.fatal(Component::Storage, 4080, "Storage Watchdog: the disk does not answer", |a| {
            a.u64("seconds", waited);
        });
    });
    for _ in 0..20 {
        if telling.is_finished() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    std::process::exit(i32::from(exit::WATCHDOG))
}
