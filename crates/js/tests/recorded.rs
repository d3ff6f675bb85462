//! What the scripts of a real server (6.0.5) answered, beside ours. `record.py` made the cases.

use pando_base::Result;
use pando_bson::extjson::{parse, to_canonical};
use pando_bson::{DocBuilder, Document, RawDoc};
use pando_js::{Engine, Limits};
use pando_query::ctx::SeededRandom;
use pando_query::script::{Operation, Scripts};
use std::sync::Arc;
use std::time::Duration;

/// Scripts that differ, with a part of their answer, and why.
const EXPLAINED: &[(&str, &str, &str)] = &[
    ("bsonWoCompare", "1.0", "only the sign is the same"),
    ("x", "[object Object]", "objects of documents call themselves BSON there"),
    ("x", "GMT+0000", "dates name their zone there"),
    ("Object.keys(Object(x))", "[]", "a timestamp's parts are seen there"),
];

struct Endless;

impl Operation for Endless {
    fn check(&self) -> Result<()> {
        Ok(())
    }
    fn now(&self) -> Duration {
        Duration::ZERO
    }
    fn step_aside(&self, _: Duration) {}
    fn pause(&self, _: Duration) {}
}

/// `{v: value}` or `{code: number}`.
fn run(case: &RawDoc) -> String {
    let limits = Limits { heap_bytes: 32 << 20, call: Duration::from_secs(60) };
    let engine = Engine::new(Arc::new(Endless), limits, Arc::new(SeededRandom::new(1)));
    let mut b = DocBuilder::new();
    let answer = match (case.get("where").and_then(|v| v.as_str()), case.get("doc").and_then(|v| v.as_doc()))
    {
        (Some(code), Some(doc)) => engine.compile(code).and_then(|f| engine.test(f, doc)).map(|yes| {
            b.bool("v", yes);
        }),
        _ => {
            let code = case.get("function").and_then(|v| v.as_str()).expect("a function");
            let args = case.get("args").and_then(|v| v.as_array()).expect("arguments");
            engine.compile(code).and_then(|f| engine.call(f, args)).map(|answer| {
                let e = answer.first().expect("a value");
                b.raw(e.ty, "v", e.data());
            })
        }
    };
    if let Err(e) = answer {
        b.i32("code", e.code.0);
    }
    to_canonical(&b.finish())
}

#[test]
fn scripts_answer_as_those_of_a_real_server() {
    let (mut cases, mut different) = (0, Vec::new());
    for line in include_str!("recorded.json").lines() {
        let case: Document = parse(line).expect("a case");
        let case = case.to_raw();
        let code = case.get("where").or(case.get("function")).and_then(|v| v.as_str()).unwrap_or_default();
        let want = case.get("r").and_then(|v| v.as_doc()).map(to_canonical).unwrap_or_default();
        let got = run(&case);
        cases += 1;
        if got != want && !EXPLAINED.iter().any(|(c, g, _)| code.contains(c) && got.contains(g)) {
            different.push(format!("{code}: {got}, not {want} ({})", to_canonical(&case)));
        }
    }
    assert!(cases > 500, "{cases}");
    assert!(different.is_empty(), "{} of {cases}:\n{}", different.len(), different.join("\n"));
}
