//! Keyfiles, and the first bytes of a connection, of which it is told whether they are TLS.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pando_auth::Keyfile;
use pando_env::tls::First;

fuzz_target!(|data: &[u8]| {
    let _ = First::of(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(keys) = Keyfile::parse("keyfile", text) {
        assert!(!keys.keys().is_empty() && keys.keys().iter().all(|key| !key.is_empty()));
    }
});
