//! What a server invents (ids, times, UUIDs) is replaced by names, as the recorder did.

use pando_bson::{Bson, Document, extjson};

/// 2024 to 2060: dates the server made up; the data sets hold none of them.
const NOW_MS: std::ops::Range<i64> = 1_704_067_200_000..2_840_140_800_000;
/// Fields of replies that differ from one run to the next.
pub(super) const VOLATILE: &[&str] =
    &["$clusterTime", "operationTime", "electionId", "opTime", "ok", "codeName"];

/// The comparable form of a value.
pub(super) fn normal(v: &Bson) -> Bson {
    match v {
        Bson::ObjectId(id) if id.0[0] >= 0x60 => "<oid>".into(),
        Bson::DateTime(ms) if NOW_MS.contains(ms) => "<now>".into(),
        Bson::Timestamp(t) if NOW_MS.contains(&(i64::from(t.secs()) * 1000)) => "<ts>".into(),
        Bson::Binary(b) if b.subtype == 4 && b.bytes.len() == 16 && b.bytes.iter().any(|x| *x != 0) => {
            "<uuid>".into()
        }
        Bson::Document(d) => Bson::Document(normal_doc(d)),
        Bson::Array(a) => Bson::Array(a.iter().map(normal).collect()),
        Bson::String(s) if s.len() >= 24 => Bson::String(without_ids(s)),
        other => other.clone(),
    }
}

pub(super) fn normal_doc(d: &Document) -> Document {
    Document::from(d.iter().map(|(k, v)| (k.to_owned(), normal(v))).collect::<Vec<_>>())
}

/// One line of text that stands for the value.
pub(super) fn line(v: &Bson) -> String {
    let wrapped = Document::from(vec![("v".to_owned(), v.clone())]);
    extjson::to_canonical(&wrapped.to_raw())
}

fn hex_run(b: &[u8]) -> usize {
    b.iter().take_while(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f')).count()
}

/// Whether a UUID's 36 characters start here.
fn uuid_here(b: &[u8]) -> bool {
    let mut at = 0;
    for (i, n) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if i > 0 {
            if b.get(at) != Some(&b'-') {
                return false;
            }
            at += 1;
        }
        if b.len() < at + n || hex_run(&b[at..at + n]) != n {
            return false;
        }
        at += n;
    }
    true
}

/// Generated ObjectIds and UUIDs inside an error text.
fn without_ids(s: &str) -> String {
    let (b, mut out, mut i) = (s.as_bytes(), String::new(), 0);
    let word = |i: usize| i < b.len() && (b[i].is_ascii_alphanumeric() || b[i] == b'_');
    while i < b.len() {
        let rest = &s[i..];
        if let Some(id) = rest.strip_prefix("ObjectId('")
            && id.len() >= 26
            && matches!(id.as_bytes()[0], b'6'..=b'9' | b'a'..=b'f')
            && hex_run(id.as_bytes()) == 24
            && id[24..].starts_with("')")
        {
            out.push_str("ObjectId('<oid>')");
            i += 36;
        } else if (i == 0 || !word(i - 1)) && uuid_here(&b[i..]) && !word(i + 36) {
            out.push_str("<uuid>");
            i += 36;
        } else {
            let c = rest.chars().next().expect("inside the text");
            out.push(c);
            i += c.len_utf8();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_ids_in_texts_are_named_and_others_stay() {
        let text = "key { a: ObjectId('6740a1b2c3d4e5f607182930') } of 01234567-89ab-cdef-0123-456789abcdef";
        assert_eq!(without_ids(text), "key { a: ObjectId('<oid>') } of <uuid>");
        let ours = "ObjectId('000000000000000000000001') 5257441694814903567890123456";
        assert_eq!(without_ids(ours), ours);
    }
}
