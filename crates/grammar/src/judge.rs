//! What every reply must be, whatever the command was.

use crate::program::Call;
use pando_bson::{Bson, Document};
use std::time::Duration;

/// Room for a command beyond its own limit, and for one that has none, on an idle machine.
const OVERTIME: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(3);

/// What is wrong with a reply by itself.
pub fn complaint(call: &Call, reply: &Document, took: Duration, slack: u32) -> Option<String> {
    shape(reply).or_else(|| pace(call, took, slack))
}

fn shape(reply: &Document) -> Option<String> {
    let ok = match reply.get("ok") {
        Some(Bson::Double(ok)) if *ok == 1.0 || *ok == 0.0 => *ok,
        other => return Some(format!("malformed: ok is {other:?}")),
    };
    let text = |name| reply.get(name).and_then(Bson::as_str).filter(|s| !s.is_empty());
    if ok == 1.0 {
        return cursor(reply);
    }
    // Some old commands of MongoDB fail with a text and nothing else.
    let (message, code) = match (text("errmsg"), reply.get("code"), text("codeName")) {
        (Some(_), None, None) => return None,
        (Some(message), Some(Bson::Int32(code)), Some(_)) => (message, *code),
        (_, code, _) => return Some(format!("malformed: error {code:?} without text or name")),
    };
    // InternalError and UnknownError are what nobody thought of.
    if matches!(code, 1 | 8) && !message.contains("JavaScript") && !message.contains("uncaught exception") {
        return Some(format!("internal error: {}", blurred(message)));
    }
    None
}

fn cursor(reply: &Document) -> Option<String> {
    let cursor = reply.get("cursor")?.as_doc()?;
    let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"));
    match (cursor.get("id"), batch, cursor.get("ns")) {
        (Some(Bson::Int64(_)), Some(Bson::Array(_)), Some(Bson::String(_))) => None,
        _ => Some("malformed: a cursor without id, batch or ns".into()),
    }
}

fn pace(call: &Call, took: Duration, slack: u32) -> Option<String> {
    let given = call.cmd.get("maxTimeMS").and_then(Bson::as_f64).filter(|ms| *ms >= 1.0 && *ms < 1e9);
    let name = call.name();
    if let Some(ms) = given {
        let limit = Duration::from_micros((ms * 1000.0) as u64) + OVERTIME * slack;
        if took > limit && took < LONGEST * slack {
            return Some(format!("slow: {name} passes its maxTimeMS"));
        }
    }
    (took > LONGEST * slack).then(|| format!("slow: {name} takes more than {LONGEST:?}"))
}

/// A text without what differs from case to case: numbers and quoted names.
pub fn blurred(text: &str) -> String {
    let mut out = String::new();
    let mut last = ' ';
    for c in text.chars().take(160) {
        let c = if c.is_ascii_digit() { '#' } else { c };
        if c != '#' || last != '#' {
            out.push(c);
        }
        last = c;
    }
    out
}
