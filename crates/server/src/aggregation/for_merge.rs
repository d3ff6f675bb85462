//! The shards' part of a pipeline (`needsMerge`, SH-AGG-2): what the command says of all stages is said to each of them, and rows go out
//! with what they are merged by.

use bytes::Bytes;
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc, Value};
use pando_query::stage::Row;

/// Groups send their states, sorts and samples the keys of their rows.
pub(crate) fn marked(stages: &RawDoc) -> DocBuf {
    let mut out = ArrayBuilder::new();
    for stage in stages.iter().filter_map(|e| e.value().as_doc()) {
        let mark = match stage.first().map(|e| (e.name(), e.value())) {
            Some(("$group", Value::Document(spec))) => Some(("$group", spec, "$willBeMerged")),
            Some((name @ ("$sort" | "$sample"), Value::Document(spec))) => {
                Some((name, spec, "$_internalOutputSortKeyMetadata"))
            }
            _ => None,
        };
        match mark {
            None => _ = out.raw_doc(stage),
            Some((name, spec, mark)) => {
                let mut b = DocBuilder::new();
                b.doc(name, |d| {
                    d.elems_of(spec);
                    if spec.elem(mark).is_none() {
                        d.bool(mark, true);
                    }
                });
                out.raw_doc(&b.finish());
            }
        }
    }
    out.finish()
}

/// A row with `$sortKey` and its like behind its own fields.
pub(crate) fn with_facts(row: &Row) -> Bytes {
    let Some(facts) = row.facts() else { return row.bytes().clone() };
    let mut b = DocBuilder::with_capacity(row.bytes().len() + 64);
    b.elems_of(row.doc());
    if let Some(score) = facts.text_score {
        b.f64("$textScore", score);
    }
    if let Some(key) = &facts.sort_key {
        b.raw_array("$sortKey", key);
    }
    Bytes::from(b.finish().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    #[test]
    fn what_the_command_says_is_said_to_each_stage() {
        let stages =
            doc! { "0": { "$sort": { "a": 1 } }, "1": { "$group": { "_id": "$a" } }, "2": { "$limit": 3 } };
        let said = marked(&stages.to_raw());
        let text: Vec<String> = said.iter().map(|e| e.value().to_string()).collect();
        assert!(text[0].contains("$_internalOutputSortKeyMetadata: true"), "{}", text[0]);
        assert!(text[1].contains("$willBeMerged: true"), "{}", text[1]);
        assert_eq!(text[2], "{ $limit: 3 }");
    }
}
