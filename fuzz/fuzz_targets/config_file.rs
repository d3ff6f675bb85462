//! Configuration files, in both forms, and what they mean.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pando_shell::Config;
use pando_shell::options::parse::config_file;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(settings) = config_file(text) {
        let _ = Config::from_settings(&settings, Vec::new(), Path::new("/"));
    }
});
