//! `{p: [<stages>], d: [<documents>]}`: a pipeline that parses runs to its end or to an error, and gives documents.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pando_bson::{RawDoc, extjson::parse};
use pando_query::QueryCtx;
use pando_query::stage::{Pipeline, Row, RunEnv, Step};

/// Rows taken: an input may make many (`$unwind` of a `$range`).
const ROWS: usize = 1000;

fuzz_target!(|text: &str| {
    let Ok(doc) = parse(text) else { return };
    let raw = doc.to_raw();
    let list = |name: &str| raw.get(name).and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
    let Ok(pipeline) = Pipeline::parse(list("p"), &QueryCtx::default()) else { return };
    let Ok(mut runner) = pipeline.start(&RunEnv::default()) else { return };
    let docs: Vec<Row> = list("d").iter().filter_map(|e| e.value().as_doc()).map(|d| Row::from(d.to_buf())).collect();
    let mut input = docs.into_iter();
    for _ in 0..ROWS {
        match runner.next(&mut input) {
            Ok(Step::Row(row)) => drop(RawDoc::validate(row.doc().as_bytes()).expect("a document")),
            Ok(Step::NeedYield) => {}
            Ok(Step::Eof) | Err(_) => break,
        }
    }
});
