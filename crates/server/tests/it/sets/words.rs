//! What the tests of sets say often.

use pando_bson::{Binary, Bson, Document, doc};
use pando_testserver::{Client, Set, is};

pub(crate) fn code(reply: &Document) -> i64 {
    reply.get("code").and_then(Bson::as_i64).unwrap_or(0)
}
pub(crate) fn text(reply: &Document) -> &str {
    reply.get("errmsg").and_then(Bson::as_str).unwrap_or_default()
}
pub(crate) fn number(doc: &Document, path: &str) -> i64 {
    at(doc, path).and_then(Bson::as_i64).unwrap_or_else(|| panic!("no number at {path}: {doc:?}"))
}
/// A value inside documents.
pub(crate) fn at<'a>(doc: &'a Document, path: &str) -> Option<&'a Bson> {
    match path.split_once('.') {
        None => doc.get(path),
        Some((first, rest)) => at(doc.get(first)?.as_doc()?, rest),
    }
}
/// May run on a secondary.
pub(crate) fn anywhere(mut command: Document) -> Document {
    command.push("$readPreference", doc! { "mode": "secondaryPreferred" });
    command
}
pub(crate) fn insert(id: i32, concern: Document) -> Document {
    doc! { "insert": "c", "documents": [{ "_id": id }], "writeConcern": concern }
}
pub(crate) fn majority() -> Document {
    doc! { "w": "majority", "wtimeout": 30_000 }
}
/// A UUID that is known by one number.
pub(crate) fn uuid(n: u8) -> Bson {
    Bson::Binary(Binary { subtype: 4, bytes: vec![n; 16] })
}
/// A retryable command.
pub(crate) fn of_session(mut command: Document, session: u8, number: i64) -> Document {
    command.push("lsid", doc! { "id": uuid(session) });
    command.push("txnNumber", number);
    command
}
/// A command of a transaction; `start`: the first one.
pub(crate) fn within(command: Document, session: u8, number: i64, start: bool) -> Document {
    let mut command = of_session(command, session, number);
    command.push("autocommit", false);
    if start {
        command.push("startTransaction", true);
    }
    command
}
pub(crate) fn commit(session: u8, number: i64) -> Document {
    let commit = doc! { "commitTransaction": 1, "writeConcern": majority(), "$db": "admin" };
    within(commit, session, number, false)
}
pub(crate) async fn count(c: &mut Client) -> i64 {
    number(&c.run(anywhere(doc! { "count": "c" })).await, "n")
}
/// Three members that all have document 0, of which the secondaries fetch nothing more: the set, its primary, the
/// secondaries, a client of the primary.
pub(crate) async fn held_back() -> (Set, usize, Vec<usize>, Client) {
    let set = Set::of(3).await;
    let p = set.primary().await;
    let s = set.secondaries().await;
    let mut c = set.connect(p).await;
    c.ok(insert(0, doc! { "w": 3, "wtimeout": 30_000 })).await;
    for i in &s {
        set.fail_point(*i, "stopReplProducer", true).await;
    }
    (set, p, s, c)
}
/// A new primary begins without what only the old one has.
pub(crate) async fn without_catching_up(set: &Set, primary: usize) {
    let mut config = set.current(primary).await;
    let version = number(&config, "version");
    config.set("version", version + 1);
    config.set("settings", doc! { "heartbeatIntervalMillis": 250, "catchUpTimeoutMillis": 0 });
    assert!(is(&set.reconfig(config, false).await, "ok"));
}
