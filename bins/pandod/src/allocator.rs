//! The allocator of the binaries.
//!
//! Huge pages are off (a feature in the manifest): a freed part of one stays resident or is cleared anew, which
//! cost a tenth of all CPU while loading and half of the resident memory.
//!
//! What is free goes back to the system a second later, but only when some thread frees a page of the allocator's: a server
//! that nobody uses any more would keep what its busiest moment took. So a thread of its own frees one now and then.

// It sleeps beside the runtime, whose threads have no page to spare when nothing is going on.
#![allow(clippy::disallowed_methods)]

use pando_base::{Error, Result, limits};
use std::time::Duration;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub const NAME: &str = if cfg!(feature = "mimalloc") { "mimalloc" } else { "system" };

/// Starts the thread that gives free memory back.
pub(crate) fn start() -> Result<()> {
    let run = || {
        loop {
            std::thread::sleep(Duration::from_millis(limits::FREE_PAGE_EVERY_MS));
            drop(std::hint::black_box(Vec::<u8>::with_capacity(limits::FREE_PAGE_BYTES)));
        }
    };
    let spawned = std::thread::Builder::new().name("allocator".to_owned()).spawn(run);
    spawned.map(drop).map_err(|e| Error::from(e).context("the thread that gives free memory back"))
}
