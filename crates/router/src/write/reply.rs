//! What a client is told of its writes.

use super::batch::Outcome;
use pando_bson::{DocBuf, DocBuilder};
use pando_command::Reply;
use pando_routing::ShardId;

/// Which command it was: updates tell more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    Insert,
    Update,
    Delete,
}

pub(crate) fn reply(mut outcome: Outcome, told: Told) -> Reply {
    let mut r = Reply::new();
    let b = &mut r.body;
    b.i32_or_i64("n", outcome.n);
    if told == Told::Update {
        b.i32_or_i64("nModified", outcome.n_modified);
    }
    outcome.upserted.sort_by_key(|(i, _)| *i);
    if !outcome.upserted.is_empty() {
        b.array("upserted", |a| {
            for (i, id) in &outcome.upserted {
                a.doc(|d| {
                    d.i32("index", *i as i32).elems_of(id);
                });
            }
        });
    }
    outcome.errors.sort_by_key(|(i, _)| *i);
    if !outcome.errors.is_empty() {
        b.array("writeErrors", |a| {
            for (_, e) in &outcome.errors {
                a.raw_doc(e);
            }
        });
    }
    append_write_concern(b, &outcome.write_concern);
    if !outcome.retried.is_empty() {
        outcome.retried.sort_unstable();
        outcome.retried.dedup();
        b.array("retriedStmtIds", |a| {
            for id in &outcome.retried {
                a.value(pando_bson::Value::Int32(*id));
            }
        });
    }
    r
}

/// Shards wait each for itself: what went wrong on one is told as it is, of several together.
pub(crate) fn append_write_concern(b: &mut DocBuilder, all: &[(ShardId, DocBuf)]) {
    let text = |e: &DocBuf| e.get("errmsg").and_then(|v| v.as_str()).unwrap_or_default().to_owned();
    match all {
        [] => {}
        [(_, one)] => drop(b.raw_doc("writeConcernError", one)),
        [(_, first), ..] => {
            let texts: Vec<String> = all.iter().map(|(shard, e)| format!("{} at {shard}", text(e))).collect();
            b.doc("writeConcernError", |d| {
                for e in first.iter().filter(|e| e.name() != "errmsg") {
                    d.elem(e);
                }
                d.str("errmsg", &format!("Multiple errors reported :: {}", texts.join(" :: and :: ")));
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_metadata_cache::testing::doc;

    #[test]
    fn late_shards_are_told_of_together() {
        let late = |shard: &str| (ShardId::new(shard), doc(r#"{"code": 64, "errmsg": "late"}"#));
        let mut b = DocBuilder::new();
        append_write_concern(&mut b, &[late("a"), late("b")]);
        let told = b.finish();
        let text = told.get_path("writeConcernError.errmsg").and_then(|v| v.as_str());
        assert_eq!(text, Some("Multiple errors reported :: late at a :: and :: late at b"));
    }
}
