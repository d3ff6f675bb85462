//! `{q: <filter>, d: <document>}`: a filter that parses answers, the same with and without the array position.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pando_bson::{RawDoc, extjson::parse};
use pando_query::QueryCtx;
use pando_query::matcher::Matcher;

fuzz_target!(|text: &str| {
    let Ok(doc) = parse(text) else { return };
    let raw = doc.to_raw();
    let part = |name: &str| raw.get(name).and_then(|v| v.as_doc());
    let Ok(matcher) = Matcher::parse(part("q").unwrap_or(RawDoc::empty()), &QueryCtx::default()) else { return };
    let subject = part("d").unwrap_or(&raw);
    let (plain, position) = (matcher.matches(subject), matcher.matches_position(subject));
    match (plain, position) {
        (Ok(yes), Ok(details)) => assert_eq!(yes, details.is_some()),
        (Err(_), Err(_)) => {}
        (a, b) => panic!("{a:?} and {:?}", b.map(|d| d.is_some())),
    }
});
