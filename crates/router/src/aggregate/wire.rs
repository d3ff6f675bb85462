//! The shards' part of a pipeline, as servers of release 6.0 and 7.0 read it.
//!
//! `needsMerge` beside it says what newer servers write into single stages: that a group's states and the keys of a sort are sent.

use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc, Value};

const SAID_BY_THE_COMMAND: [&str; 2] = ["$willBeMerged", "$_internalOutputSortKeyMetadata"];

pub(crate) fn stages(spelled: &RawDoc) -> DocBuf {
    let mut out = ArrayBuilder::new();
    for stage in spelled.iter().filter_map(|e| e.value().as_doc()) {
        match stage.first().map(|e| (e.name(), e.value())) {
            Some((name @ ("$group" | "$sort" | "$sample"), Value::Document(spec))) => {
                let mut b = DocBuilder::new();
                b.doc(name, |d| {
                    let said = |name: &str| SAID_BY_THE_COMMAND.contains(&name);
                    spec.iter().filter(|e| !said(e.name())).for_each(|e| _ = d.elem(e));
                });
                out.raw_doc(&b.finish());
            }
            _ => _ = out.raw_doc(stage),
        }
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_metadata_cache::testing::doc;

    #[test]
    fn stages_say_nothing_that_the_command_says() {
        let spelled = doc(r#"{"0": {"$sort": {"a": 1, "$_internalOutputSortKeyMetadata": true}},
                "1": {"$group": {"_id": "$a", "$willBeMerged": true}}, "2": {"$limit": 3}}"#);
        let expected =
            doc(r#"{"0": {"$sort": {"a": 1}}, "1": {"$group": {"_id": "$a"}}, "2": {"$limit": 3}}"#);
        assert_eq!(stages(&spelled), expected);
    }
}
