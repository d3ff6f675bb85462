//! A sharded collection gets another name (SYS-249): its entry and its zones go to the new name, chunks are known by the UUID, which
//! stays. A sharded collection that had the name makes room in the same transaction.

use crate::documents::with_fields;
use crate::manager::CatalogManager;
use crate::metadata::ns;
use crate::mutexes::Subject;
use pando_access::{Change, Interrupt};
use pando_base::{Error, ErrorCode, Result, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, ObjectId, Value};
use pando_routing::CollectionEntry;

/// What `_configsvrRenameCollectionMetadata` asks for.
pub struct Rename {
    pub from: String,
    pub to: String,
    pub uuid: Uuid,
    /// What it will be of, with `at`; `None`: it is not sharded.
    pub epoch: Option<ObjectId>,
    /// Of the sharded collection that makes room.
    pub target: Option<Uuid>,
    /// The number of the definition (see `pando_workflows::ddl`).
    pub at: Timestamp,
}

/// What is stored under the two names.
struct Names {
    source: Option<DocBuf>,
    source_tags: Vec<DocBuf>,
    target: Option<DocBuf>,
    target_tags: Vec<DocBuf>,
}

impl CatalogManager {
    /// The same once more, or late, changes nothing.
    ///
    /// # Errors
    /// 26 where the collection is not there, 48 where another one has the name that was not to make room.
    pub async fn rename_collection(
        &self,
        interrupt: &dyn Interrupt,
        client: &str,
        rename: &Rename,
    ) -> Result<()> {
        self.prepare().await?;
        let _zones = self.lock(interrupt, Subject::Zones).await?;
        let (first, second) = match rename.from < rename.to {
            true => (&rename.from, &rename.to),
            false => (&rename.to, &rename.from),
        };
        let _first = self.lock(interrupt, Subject::Collection(first.clone())).await?;
        let _second = self.lock(interrupt, Subject::Collection(second.clone())).await?;
        // Both have this definition's number once it is made.
        if self.fence(&rename.from)?.max(self.fence(&rename.to)?) >= Some(rename.at) {
            return self.finish_rename(interrupt, rename).await;
        }
        let metadata = self.metadata();
        let names = Names {
            source: metadata.collection(&rename.from)?,
            source_tags: metadata.tags(&rename.from)?,
            target: metadata.collection(&rename.to)?,
            target_tags: metadata.tags(&rename.to)?,
        };
        let mut changes = rename.changes(&names)?;
        for name in [&rename.from, &rename.to] {
            changes.extend(self.fenced(name, rename.at)?);
        }
        let mut d = DocBuilder::new();
        d.str("source", &rename.from).str("destination", &rename.to);
        let detail = d.finish();
        self.log_change(client, "renameCollection.metadata", &rename.from, &detail).await;
        self.write(interrupt, &changes).await?;
        self.finish_rename(interrupt, rename).await
    }
    /// Nobody reads the chunks of what has made room.
    async fn finish_rename(&self, interrupt: &dyn Interrupt, rename: &Rename) -> Result<()> {
        match rename.target {
            Some(target) => self.remove_chunks(interrupt, target).await,
            None => Ok(()),
        }
    }
}

impl Rename {
    fn changes(&self, names: &Names) -> Result<Vec<Change>> {
        let uuid_of = |doc: &DocBuf| CollectionEntry::parse(doc).map(|entry| entry.uuid);
        let mut changes = Vec::new();
        if let Some(target) = &names.target {
            if Some(uuid_of(target)?) != self.target {
                let text = format!("target namespace exists: {}", self.to);
                return Err(Error::new(ErrorCode::NamespaceExists, text));
            }
            changes.push(Change::Remove { ns: ns("collections"), was: target.clone() });
        }
        let removed = |was: &DocBuf| Change::Remove { ns: ns("tags"), was: was.clone() };
        changes.extend(names.target_tags.iter().map(removed));
        if let Some(epoch) = self.epoch {
            let is_it = |doc: &&DocBuf| uuid_of(doc).is_ok_and(|uuid| uuid == self.uuid);
            let was = names.source.as_ref().filter(is_it).ok_or_else(|| {
                let text = format!("there is no sharded collection {} with UUID {}", self.from, self.uuid);
                Error::new(ErrorCode::NamespaceNotFound, text)
            })?;
            let fields = [
                ("_id", Some(Value::String(&self.to))),
                ("lastmodEpoch", Some(Value::ObjectId(epoch))),
                ("timestamp", Some(Value::Timestamp(self.at))),
            ];
            let now = with_fields(was, &fields);
            changes.push(Change::Remove { ns: ns("collections"), was: was.clone() });
            changes.push(Change::Insert(ns("collections"), now));
            let renamed = |was: &DocBuf| Change::Replace {
                ns: ns("tags"),
                was: was.clone(),
                now: with_fields(was, &[("ns", Some(Value::String(&self.to)))]),
            };
            changes.extend(names.source_tags.iter().map(renamed));
        }
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stored;
    use pando_bson::doc;

    fn rename(epoch: Option<ObjectId>, target: Option<Uuid>, uuid: Uuid) -> Rename {
        let at = Timestamp::new(20, 1);
        Rename { from: "d.c".to_owned(), to: "d.e".to_owned(), uuid, epoch, target, at }
    }
    fn code(r: Result<Vec<Change>>) -> Option<i32> {
        r.err().map(|e| e.code.0)
    }

    #[test]
    fn entry_and_zones_go_to_the_new_name_and_what_had_it_makes_room() {
        let stored = stored(&[(Value::MinKey, "a"), (Value::Int32(0), "b")]);
        let entry = stored.doc.clone();
        let uuid = stored.entry().uuid;
        let other = with_fields(&entry, &[("_id", Some(Value::String("d.e")))]);
        let zone =
            |ns: &str| doc! { "_id": 1, "ns": ns, "min": { "a": 0 }, "max": { "a": 5 }, "tag": "z" }.to_raw();
        let names = Names {
            source: Some(entry),
            source_tags: vec![zone("d.c")],
            target: Some(other),
            target_tags: vec![zone("d.e")],
        };
        let epoch = Some(ObjectId([9; 12]));
        let changes = rename(epoch, Some(uuid), uuid).changes(&names).unwrap();
        let kinds: Vec<&str> = changes
            .iter()
            .map(|c| match c {
                Change::Remove { .. } => "remove",
                Change::Insert(..) => "insert",
                Change::Replace { .. } => "replace",
            })
            .collect();
        assert_eq!(kinds, ["remove", "remove", "remove", "insert", "replace"]);
        let now = changes.iter().find_map(|c| match c {
            Change::Insert(_, doc) => CollectionEntry::parse(doc).ok(),
            _ => None,
        });
        let now = now.expect("an entry");
        assert_eq!(
            (now.ns.as_str(), now.uuid, now.generation.timestamp),
            ("d.e", uuid, Timestamp::new(20, 1))
        );
        assert_eq!(now.key, stored.entry().key);
        // What was not to make room stays, and nothing is made of what is not there.
        assert_eq!(code(rename(epoch, None, uuid).changes(&names)), Some(48));
        assert_eq!(code(rename(epoch, Some(uuid), Uuid([3; 16])).changes(&names)), Some(26));
        // What is not sharded takes the place alone.
        assert_eq!(rename(None, Some(uuid), Uuid([3; 16])).changes(&names).unwrap().len(), 2);
    }
}
