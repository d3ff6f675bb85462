//! `{u: <update>, d: <document>, f: <arrayFilters>}`: what an update logs makes the old document into the new one,
//! and replaying it once more changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pando_bson::{RawDoc, Value, extjson::parse};
use pando_query::QueryCtx;
use pando_query::update::{LogForm, UpdatePlan};

fuzz_target!(|text: &str| {
    let Ok(doc) = parse(text) else { return };
    let raw = doc.to_raw();
    let ctx = QueryCtx::default();
    let filters = raw.get("f").and_then(|v| v.as_array());
    let Ok(plan) = UpdatePlan::parse(raw.get("u").unwrap_or(Value::Null), filters, &ctx) else { return };
    let old = raw.get("d").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
    let Ok(outcome) = plan.apply(old, None) else { return };
    if outcome.noop {
        return;
    }
    RawDoc::validate(outcome.new_doc.as_bytes()).expect("a document");
    if let LogForm::Delta(diff) = &outcome.log {
        let replayed = pando_oplog::diff::apply(old, diff).expect("a diff");
        assert_eq!(replayed, outcome.new_doc, "{old} with {:?}", &**diff);
        assert_eq!(pando_oplog::diff::apply(&replayed, diff).expect("a diff"), outcome.new_doc);
    }
});
