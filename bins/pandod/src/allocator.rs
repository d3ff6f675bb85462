//! The allocator of the binaries.
//!
//! Huge pages are off (a feature in the manifest): a freed part of one stays resident or is cleared anew, which
//! cost a tenth of all CPU while loading and half of the resident memory.

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub const NAME: &str = if cfg!(feature = "mimalloc") { "mimalloc" } else { "system" };
