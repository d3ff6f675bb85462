//! Recorded answers of a real server to statements of transactions, in whatever order (`tests/differential/transactions`).

use pando_bson::{Binary, Bson, Document, doc, extjson};
use pando_testserver::{Client, World, run};

fn field<'a>(d: &'a Document, name: &str) -> Option<&'a Bson> {
    d.get(name)
}

/// What is compared of a reply.
fn essence(r: &Document) -> Document {
    let mut out = Document::new();
    if !r.get("ok").is_some_and(Bson::is_truthy) {
        out.push("err", r.get("code").cloned().unwrap_or(Bson::Null));
        out.push("labels", r.get("errorLabels").cloned().unwrap_or_else(|| Bson::Array(Vec::new())));
        return out;
    }
    out.push("ok", 1);
    for name in ["n", "nModified", "values", "numIndexesBefore", "numIndexesAfter", "value"] {
        if let Some(v) = r.get(name) {
            out.push(name, v.clone());
        }
    }
    if let Some(batch) = r.get("cursor").and_then(|c| c.as_doc()?.get("firstBatch")) {
        out.push("docs", batch.clone());
    }
    if let Some(errors) = r.get("writeErrors").and_then(Bson::as_array) {
        let pair = |e: &Bson| {
            let e = e.as_doc().expect("a write error is a document");
            Bson::Array(["index", "code"].map(|n| e.get(n).cloned().unwrap_or(Bson::Null)).to_vec())
        };
        out.push("writeErrors", Bson::Array(errors.iter().map(pair).collect()));
    }
    out
}

fn session(script: u32, n: i64) -> Bson {
    let mut bytes = vec![n as u8; 16];
    bytes[..4].copy_from_slice(&script.to_be_bytes());
    Bson::Document(doc! { "id": Bson::Binary(Binary { subtype: 4, bytes }) })
}

async fn differs(c: &mut Client, number: u32, script: &Document) -> Option<String> {
    for coll in ["made", "o"] {
        c.run(doc! { "drop": coll, "$db": "tx" }).await;
    }
    c.run(doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }], "$db": "tx" }).await;
    let three = [1, 2, 3].map(|i| Bson::Document(doc! { "_id": i, "n": 0 })).to_vec();
    c.ok(doc! { "insert": "c", "documents": Bson::Array(three), "$db": "tx" }).await;
    let mut wrong = None;
    for step in script.get("steps").and_then(Bson::as_array).expect("steps") {
        let step = step.as_doc().expect("a step");
        let mut cmd = field(step, "cmd").and_then(Bson::as_doc).expect("a command").clone();
        if let (Some(s), Some(n)) =
            (field(step, "s").and_then(Bson::as_i64), field(step, "n").and_then(Bson::as_i64))
        {
            cmd.push("lsid", session(number, s));
            cmd.push("txnNumber", n);
            if field(step, "plain").is_none() && !cmd.contains("autocommit") {
                cmd.push("autocommit", false);
            }
            if field(step, "start").is_some() {
                cmd.push("startTransaction", true);
            }
        }
        cmd.push("$db", field(step, "db").and_then(Bson::as_str).expect("a database"));
        let shown = format!("{cmd:?}");
        let got = essence(&c.run(cmd).await);
        let expected = field(step, "expect").and_then(Bson::as_doc).expect("an answer");
        if got != *expected {
            wrong =
                Some(format!("{:?}: {shown}\n  expected {expected:?}\n  got {got:?}", script.get("name")));
            break;
        }
    }
    let ended = [1, 2].map(|n| session(number, n)).to_vec();
    c.run(doc! { "killSessions": Bson::Array(ended), "$db": "admin" }).await;
    wrong
}

#[test]
fn a_real_server_answers_the_same_to_statements_in_any_order() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "create": "c", "$db": "tx" }).await;
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/differential/transactions/answers.jsonl");
        let text = std::fs::read_to_string(path).expect("the recorded answers are part of the repository");
        let mut wrong = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let script = extjson::parse(line).expect("a script");
            wrong.extend(differs(&mut c, i as u32, &script).await);
        }
        assert!(text.lines().count() > 400 && wrong.is_empty(), "{}", wrong.join("\n"));
        server.shut_down().await;
    });
}
