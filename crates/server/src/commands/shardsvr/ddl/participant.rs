//! What a shard does for a definition that another one coordinates.

use super::Ddl;
use crate::commands;
use crate::sharding::fences::Part;
use pando_access::{Collection, CollectionOptions, Dropped};
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp, Uuid};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc};
use std::collections::BTreeSet;

impl Ddl<'_> {
    /// Makes the collection with that UUID, with these options and indexes; what is there of it already stays.
    ///
    /// # Errors
    /// 48 when there is another collection of that name that holds documents.
    pub(crate) async fn create_as_told(
        &self,
        ns: &Namespace,
        uuid: Uuid,
        options: &RawDoc,
        indexes: &RawDoc,
        at: Option<Timestamp>,
    ) -> Result<()> {
        let _part = self.take_part(ns, at, true).await?;
        self.make_part(ns, uuid, options, indexes).await
    }
    /// The same for a range that is to come here, if `still` says that there is such a collection, and whether this shard owns anything of
    /// it. A drop asks the config servers first and its participants then: once they have forgotten the collection nobody may make it anew.
    /// Where nothing of it is owned no definition has come here since, so a part that is otherwise than it is told to be goes, with all that
    /// it may still hold of other shards'.
    pub(crate) async fn create_for_range(
        &self,
        ns: &Namespace,
        uuid: Uuid,
        options: &RawDoc,
        indexes: &RawDoc,
        still: impl AsyncFnOnce() -> Result<bool>,
    ) -> Result<()> {
        let _part = self.take_part(ns, None, true).await?;
        let owns = still().await?;
        let there = self.server.access.definitions().collection(ns).filter(|c| c.uuid == uuid).cloned();
        let as_told = |there: &Collection| {
            let known: BTreeSet<Vec<u8>> =
                there.index_docs(true).into_iter().map(DocBuf::into_bytes).collect();
            let told = indexes.iter().filter_map(|e| e.value().as_doc().map(|d| d.as_bytes().to_vec()));
            *there.options.to_doc() == *options && told.collect::<BTreeSet<_>>() == known
        };
        if there.is_some_and(|there| !owns && !as_told(&there)) {
            let dropped = self.server.access.drop_part(self.ctx, ns).await;
            self.dropped(ns, dropped)?;
        }
        self.make_part(ns, uuid, options, indexes).await
    }
    async fn make_part(&self, ns: &Namespace, uuid: Uuid, options: &RawDoc, indexes: &RawDoc) -> Result<()> {
        let there = self.server.access.definitions().collection(ns).cloned();
        if let Some(other) = there.as_ref().filter(|c| c.uuid != uuid) {
            if self.server.access.internal_collections().first(ns)?.is_some() {
                let text = format!(
                    "there is a collection {ns} with UUID {} here that holds documents; it was to be {uuid}",
                    other.uuid
                );
                return Err(Error::new(ErrorCode::NamespaceExists, text));
            }
            // Left by a definition that was cut off.
            let dropped = self.server.access.drop_part(self.ctx, ns).await?;
            self.ctx.wrote(dropped.last);
        }
        let stored = CollectionOptions::from_stored(options)?;
        if there.is_some_and(|c| c.uuid == uuid) {
            // It is what it is to be, but for indexes.
        } else if stored.time_series.is_some() {
            // Buckets: users make them with their view, which comes by itself.
            self.ctx.wrote(self.server.access.create_part(self.ctx, ns, stored, uuid).await?);
        } else {
            let mut b = DocBuilder::new();
            b.str("create", ns.coll());
            b.elems_of(options);
            let body = b.finish();
            let request = Ddl::request("create", ns.db(), &body);
            commands::create_as(self.server, self.ctx, request, Some(uuid)).await?;
        }
        // The one that a collection is clustered by comes with it.
        let made = |index: &&RawDoc| index.get("clustered").is_none();
        let indexes: Vec<&RawDoc> = indexes.iter().filter_map(|e| e.value().as_doc()).filter(made).collect();
        if !indexes.is_empty() {
            let mut b = DocBuilder::new();
            b.str("createIndexes", ns.coll());
            b.array("indexes", |list| indexes.iter().for_each(|index| as_listed(list, options, index)));
            let body = b.finish();
            commands::create_indexes(self.server, self.ctx, Ddl::request("createIndexes", ns.db(), &body))
                .await?;
        }
        self.sharding.forget(ns);
        Ok(())
    }

    /// While the result is held nobody else takes part in a definition of the name; 225 when a newer one has been here.
    pub(in crate::commands) async fn take_part(
        &self,
        ns: &Namespace,
        at: Option<Timestamp>,
        leaves: bool,
    ) -> Result<Part> {
        let internal = self.server.access.internal_collections();
        let part = self.sharding.take_part(&internal, ns, at, leaves).await?;
        part.wrote.iter().for_each(|at| self.ctx.wrote(*at));
        Ok(part)
    }
    /// Drops this shard's part of a collection.
    pub(crate) async fn drop_part(&self, ns: &Namespace, at: Option<Timestamp>) -> Result<()> {
        let is_here = self.server.access.definitions().named(ns).is_some();
        let _part = self.take_part(ns, at, is_here).await?;
        let dropped = self.server.access.drop_part(self.ctx, ns).await;
        self.dropped(ns, dropped)
    }
    /// The same of a whole database.
    pub(crate) async fn drop_database_part(&self, db: &str, at: Option<Timestamp>) -> Result<()> {
        let internal = self.server.access.internal_collections();
        let part = self.sharding.take_part_in_database(&internal, db, at).await?;
        part.wrote.iter().for_each(|at| self.ctx.wrote(*at));
        self.drop_database_as_told(db).await
    }

    /// Drops the collection, if it is there.
    pub(crate) async fn drop_as_told(&self, ns: &Namespace) -> Result<()> {
        let dropped = self.server.access.drop_collection(self.ctx, ns).await;
        self.dropped(ns, dropped)
    }
    pub(super) fn dropped(&self, ns: &Namespace, dropped: Result<Dropped>) -> Result<()> {
        match dropped {
            Ok(dropped) => self.ctx.wrote(dropped.last),
            Err(e) if e.code == ErrorCode::NamespaceNotFound => {}
            Err(e) => return Err(e),
        }
        self.server.statistics.top.forget(ns.as_str());
        self.sharding.forget(ns);
        Ok(())
    }
}

/// An index without a collation does not say so where indexes are listed, and would get the collection's.
fn as_listed(list: &mut ArrayBuilder, options: &RawDoc, index: &RawDoc) {
    let is_simple = options.get("collation").is_some()
        && index.get("collation").is_none()
        && index.get("name").and_then(|v| v.as_str()) != Some("_id_");
    list.doc(|d| {
        d.elems_of(index);
        if is_simple {
            d.doc("collation", |c| _ = c.str("locale", "simple"));
        }
    });
}
