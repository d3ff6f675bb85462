//! The allocator of the binaries, and how it is set up.
//!
//! Huge pages are off (a feature in the manifest): a freed part of one stays resident or is cleared anew, which
//! cost a tenth of all CPU while loading and half of the resident memory. Freed pages go back to the system
//! after a second, not after 10 ms: large batches and flushes come again soon.

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub const NAME: &str = if cfg!(feature = "mimalloc") { "mimalloc" } else { "system" };

/// `mi_option_purge_delay`, which the binding has no name for.
#[cfg(feature = "mimalloc")]
const PURGE_DELAY: std::ffi::c_int = 15;

/// Applies the settings; an environment variable (`MIMALLOC_PURGE_DELAY`) still overrides them.
#[cfg(feature = "mimalloc")]
#[allow(unsafe_code)]
pub fn set_up() {
    use pando_base::limits;
    // SAFETY: sets one integer of the allocator; any thread may, at any time.
    unsafe { libmimalloc_sys::mi_option_set_default(PURGE_DELAY, limits::ALLOCATOR_PURGE_DELAY_MS) }
}

#[cfg(not(feature = "mimalloc"))]
pub fn set_up() {}

#[cfg(all(test, feature = "mimalloc"))]
mod tests {
    /// The option's number belongs to the allocator's version: it must be the one that a setting changes.
    #[test]
    #[allow(unsafe_code)]
    fn the_option_is_the_purge_delay() {
        // SAFETY: reads one integer.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(super::PURGE_DELAY) };
        if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
            super::set_up();
            assert_eq!(delay(), pando_base::limits::ALLOCATOR_PURGE_DELAY_MS);
        }
    }
}
