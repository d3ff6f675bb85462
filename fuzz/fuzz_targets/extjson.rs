//! Any text as extended JSON; what is read prints, and reads back as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pando_bson::extjson::{parse, to_canonical, to_relaxed};

fuzz_target!(|text: &str| {
    let Ok(doc) = parse(text) else { return };
    let raw = doc.to_raw();
    let canonical = to_canonical(&raw);
    let again = parse(&canonical).expect("own output").to_raw();
    assert_eq!(to_canonical(&again), canonical);
    parse(&to_relaxed(&raw)).expect("own output");
});
