//! A collection that the sharding catalog has registered, a document of `config.collections`, as far as it is looked at here.

use super::wrong::{text, wrong};
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_routing::ShardKey;

#[derive(Debug)]
pub(super) struct Registered {
    pub(super) ns: String,
    pub(super) key: ShardKey,
    doc: DocBuf,
}

impl Registered {
    /// # Errors
    /// Where it says of no collection what nobody could route without.
    pub(super) fn parse(doc: DocBuf) -> Result<Registered> {
        let ns = text(&doc, "_id").to_owned();
        if !ns.split_once('.').is_some_and(|(db, coll)| !db.is_empty() && !coll.is_empty()) {
            return Err(Error::bad_value(format!("config.collections has what is no collection's: {doc}")));
        }
        let key = ShardKey::parse(doc.get("key").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty()));
        let key =
            key.map_err(|e| Error::new(e.code, format!("{ns} in config.collections: {}", e.message)))?;
        if !matches!(doc.get("uuid"), Some(Value::Binary { subtype: 4, .. })) {
            return Err(Error::bad_value(format!("{ns} in config.collections has no UUID")));
        }
        Ok(Registered { ns, key, doc })
    }
    /// Its database, and its name there.
    pub(super) fn parts(&self) -> (&str, &str) {
        self.ns.split_once('.').unwrap_or((&self.ns, ""))
    }
    pub(super) fn uuid(&self) -> Value<'_> {
        self.doc.get("uuid").unwrap_or(Value::Null)
    }
    /// Something of what the config servers keep of it that does not fit: `details.collectionUUID` says which collection.
    pub(super) fn wrong(&self, kind: &str, text: &str, more: impl FnOnce(&mut DocBuilder)) -> DocBuf {
        wrong(kind, text, &self.ns, |d| {
            d.value("collectionUUID", self.uuid());
            more(d);
        })
    }
    /// It is of a database that the config servers know nothing of: no router finds it.
    pub(super) fn hidden(&self) -> DocBuf {
        let text = "A collection is registered as sharded, and its database is not registered";
        wrong("HiddenShardedCollection", text, &self.ns, |d| {
            d.raw_doc("collection", &self.doc);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{doc, registered};
    use super::*;

    #[test]
    fn a_collection_without_its_database_is_told_with_all_that_is_registered_of_it() {
        let coll = registered(r#"{"k": 1}"#);
        assert_eq!((coll.parts(), coll.ns.as_str()), (("db", "c.d"), "db.c.d"));
        let told = coll.hidden();
        assert_eq!(text(&told, "type"), "HiddenShardedCollection");
        let details = told.get("details").and_then(|v| v.as_doc()).unwrap();
        assert_eq!(details.iter().map(|e| e.name()).collect::<Vec<_>>(), ["namespace", "collection"]);
        assert_eq!(details.get("collection").and_then(|v| v.as_doc()), Some(&*coll.doc));
    }

    #[test]
    fn an_entry_that_nobody_could_route_by_is_refused_with_its_name() {
        for bad in [r#"{"_id": "db.x", "key": {"k": 1}}"#, r#"{"_id": "db.x", "key": {"k": -1}}"#] {
            let e = Registered::parse(doc(bad)).unwrap_err();
            assert!(e.message.starts_with("db.x in config.collections"), "{}", e.message);
        }
        for bad in [r#"{"_id": 7}"#, r#"{"_id": "db"}"#, r#"{"_id": "db."}"#] {
            let e = Registered::parse(doc(bad)).unwrap_err();
            assert!(
                e.message.starts_with("config.collections has what is no collection's: { _id: "),
                "{}",
                e.message
            );
        }
    }
}
