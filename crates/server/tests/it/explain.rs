//! Recorded explanations of a real server (`tests/differential/explain`).

use pando_bson::{Bson, Document, doc, extjson};
use pando_testserver::{Client, World, run};

/// As in `answers.py`.
const LEFT_OUT: &[&str] = &[
    "executionTimeMillis",
    "executionTimeMillisEstimate",
    "works",
    "needTime",
    "needYield",
    "saveState",
    "restoreState",
    "isEOF",
    "totalDataSizeSorted",
    "serverInfo",
    "serverParameters",
    "command",
    "queryHash",
    "planCacheKey",
    "rejectedPlans",
    "allPlansExecution",
    "seeks",
    "dupsTested",
    "dupsDropped",
    "skipAmount",
    "explainVersion",
    "ok",
    "$clusterTime",
    "operationTime",
    "maxAccumulatorMemoryUsageBytes",
    "totalOutputDataSizeBytes",
    "totalDataSizeSortedBytesEstimate",
    "maxFunctionMemoryUsageBytes",
    "maxTotalMemoryUsageBytes",
];

/// What is compared, with fields in one order and one kind of integer.
fn essence(v: &Bson) -> Bson {
    match v {
        Bson::Document(d) => {
            let kept = d.iter().filter(|(k, _)| !LEFT_OUT.contains(k));
            let mut fields: Vec<(String, Bson)> = kept.map(|(k, v)| (k.to_owned(), essence(v))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Bson::Document(Document::from(fields))
        }
        Bson::Array(a) => Bson::Array(a.iter().map(essence).collect()),
        Bson::Int32(n) => Bson::Int64(i64::from(*n)),
        other => other.clone(),
    }
}

async fn answer(c: &mut Client, case: &Document) -> Bson {
    for coll in ["a", "one"] {
        c.run(doc! { "planCacheClear": coll, "$db": "xp" }).await;
    }
    let part = |name: &str| case.get(name).cloned().expect("a part of the case");
    let reply = c.run(doc! { "explain": part("cmd"), "verbosity": part("verbosity"), "$db": "xp" }).await;
    if reply.get("ok").is_some_and(Bson::is_truthy) {
        return essence(&Bson::Document(reply));
    }
    let field = |name: &str| reply.get(name).cloned().unwrap_or(Bson::Null);
    essence(&Bson::Document(doc! { "err": field("code"), "text": field("errmsg") }))
}

#[test]
fn plans_are_explained_as_by_a_real_server() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/differential/explain/answers.jsonl");
        let text = std::fs::read_to_string(path).expect("the recorded answers are part of the repository");
        let (mut wrong, mut same) = (Vec::new(), 0);
        for line in text.lines() {
            let line = extjson::parse(line).expect("a case");
            if let Some(setup) = line.get("setup").and_then(Bson::as_doc) {
                let mut setup = setup.clone();
                setup.push("$db", "xp");
                c.ok(setup).await;
                continue;
            }
            let (got, expected) =
                (answer(&mut c, &line).await, essence(line.get("expect").expect("an answer")));
            let name = format!("{:?} {:?}", line.get("case"), line.get("verbosity"));
            match (got == expected, line.contains("differs")) {
                (true, false) => same += 1,
                (false, true) => {}
                (true, true) => wrong.push(format!("{name} is the same now: record it so")),
                (false, false) => wrong.push(format!("{name}\n  expected {expected:?}\n  got {got:?}")),
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(same > 300, "{same} explanations are the same");
        server.shut_down().await;
    });
}

#[test]
fn explain_takes_no_document_sequences() {
    run(async {
        let world = World::new();
        let server = world.start(|_| {}).await;
        let mut c = server.connect().await;
        let update = doc! { "q": {}, "u": { "$set": { "a": 1 } } };
        for (command, name) in [(doc! { "find": "c" }, "x"), (doc! { "update": "c" }, "updates")] {
            let reply =
                c.run_with_sequence(doc! { "explain": command }, name, std::slice::from_ref(&update)).await;
            assert_eq!(reply.get("code").and_then(Bson::as_i64), Some(40472), "{reply:?}");
        }
        let done = c.run_with_sequence(doc! { "update": "c" }, "updates", &[update]).await;
        assert_eq!(done.get("ok").and_then(|v| v.as_f64()), Some(1.0), "{done:?}");
        server.shut_down().await;
    });
}
