//! Strings and names that are not UTF-8: stored, compared, indexed and returned byte for byte.
//!
//! `recorded/not_utf8.jsonl` holds commands and what MongoDB 6.0.5 answered; `~ff` stands for the byte. Rows with `refused` are
//! those where a path or the name of a collection is not UTF-8, which PandoDB does not take.

#![allow(clippy::disallowed_methods)]

use pando_bson::extjson;
use pando_bson::{Bson, DocBuilder, Document, Name, Texts, doc};
use pando_testserver::{Client, World, run};

/// The bytes that a recorded text stands for.
fn bytes(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), text);
    while let Some((plain, tail)) = rest.split_once('~') {
        out.extend_from_slice(plain.as_bytes());
        out.push(u8::from_str_radix(&tail[..2], 16).expect("two digits"));
        rest = &tail[2..];
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

/// A value that holds texts, made of bytes.
fn of_texts(v: Texts<'_>) -> Bson {
    let mut b = DocBuilder::new();
    b.texts("", v);
    b.finish().first().map_or(Bson::Null, |e| Bson::from(e.value()))
}

fn string(bytes: &[u8]) -> Bson {
    of_texts(Texts::String(bytes))
}

/// A recorded value with its bytes.
fn decoded(v: Bson) -> Bson {
    match v {
        Bson::String(s) => string(&bytes(&s)),
        Bson::Symbol(s) => of_texts(Texts::Symbol(&bytes(&s))),
        Bson::JavaScript(s) => of_texts(Texts::JavaScript(&bytes(&s))),
        Bson::JavaScriptWithScope(code, scope) => {
            let scope = fields(scope).to_raw();
            of_texts(Texts::JavaScriptWithScope { code: &bytes(&code), scope: &scope })
        }
        Bson::Regex(r) => of_texts(Texts::Regex { pattern: &bytes(&r.pattern), options: &bytes(&r.options) }),
        Bson::Document(d) => Bson::Document(fields(d)),
        Bson::Array(items) => Bson::Array(items.into_iter().map(decoded).collect()),
        other => other,
    }
}

fn fields(d: Document) -> Document {
    let decode = |(name, v): (Name, Bson)| (Name::from(&bytes(&name)[..]), decoded(v));
    Document::from(d.into_iter().map(decode).collect::<Vec<_>>())
}

fn write_errors(reply: &Document) -> &[Bson] {
    reply.get("writeErrors").and_then(Bson::as_array).unwrap_or_default()
}

/// What the recording keeps of a reply.
fn kept(reply: &Document) -> Document {
    if reply.get("ok").and_then(Bson::as_f64) != Some(1.0) {
        return doc! { "code": reply.get("code").cloned().unwrap_or(Bson::Null) };
    }
    let mut out = Document::new();
    if let Some(Bson::Document(cursor)) = reply.get("cursor") {
        out.push("batch", cursor.get("firstBatch").cloned().unwrap_or(Bson::Null));
    }
    if !write_errors(reply).is_empty() {
        let of = |e: &Bson| {
            let kept = ["code", "keyPattern", "keyValue", "hexEncoded"];
            let fields = e.as_doc().into_iter().flat_map(Document::iter);
            let fields = fields.filter(|(name, _)| kept.contains(name));
            Bson::Document(Document::from(fields.map(|(k, v)| (k.to_owned(), v.clone())).collect::<Vec<_>>()))
        };
        out.push("writeErrors", Bson::Array(write_errors(reply).iter().map(of).collect()));
    }
    for name in ["n", "nModified", "values", "value"] {
        if let Some(v) = reply.get(name) {
            out.push(name, v.clone());
        }
    }
    out
}

fn sorted(d: &Document) -> Vec<(String, Bson)> {
    let mut fields: Vec<_> = d.iter().map(|(k, v)| (k.to_owned(), v.clone())).collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    fields
}

async fn replay(c: &mut Client) -> Vec<String> {
    let mut wrong = Vec::new();
    for (at, line) in include_str!("../recorded/not_utf8.jsonl").lines().enumerate() {
        let row = extjson::parse(line).expect("a recorded row");
        let part = |name: &str| fields(row.get(name).and_then(Bson::as_doc).cloned().unwrap_or_default());
        let reply = c.run(part("run")).await;
        let (gives, got) = (part("gives"), kept(&reply));
        let right = match row.contains("refused") {
            true => {
                let codes = write_errors(&reply).iter().filter_map(|e| e.as_doc()?.get("code")?.as_i64());
                let code = codes.chain(reply.get("code").and_then(Bson::as_i64)).next();
                code.is_some_and(|code| code > 1)
            }
            false => sorted(&gives) == sorted(&got),
        };
        if !right {
            let shown = |d: &Document| extjson::to_relaxed(&d.to_raw());
            wrong.push(format!("{}: {line}\n   got {}", at + 1, shown(&reply)));
        }
    }
    wrong
}

#[test]
fn answers_are_those_of_6_0_5() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let wrong = replay(&mut c).await;
        assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    });
}
