//! Documents that the server keeps for itself, by namespace and `_id`.

use pando_base::{ErrorCode, Namespace, OpTime, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc};
use pando_catalog::{
    Catalog, CollectionOptions, CollectionSource, Interrupt, Uninterrupted, UpdateForm, WriteGuard, WriteOp,
    WriteUnit, find_id, retry_conflicts,
};
use pando_query::source::{Direction, RecordScan, Source};
use pando_storage::ReadAt;

/// How a change of a document is told in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogAs {
    /// The whole new document.
    Replacement,
    /// What became different, where that can be told.
    Difference,
}

/// The server's own collections of one node. Cheap to clone.
///
/// Writes are not validated, go into the log as those of users do where the collection is replicated, and are tried again
/// after a write conflict until `interrupt` says no. None of them waits for other members.
#[derive(Clone)]
pub struct InternalCollections {
    pub(crate) catalog: Catalog,
}

/// Validators are for users.
pub(crate) const OP: WriteOp<'static> = WriteOp {
    session: None,
    bypass_validation: true,
    of_server: true,
    from_migrate: false,
    untrimmed: false,
    image: None,
};

impl InternalCollections {
    pub fn new(catalog: Catalog) -> InternalCollections {
        InternalCollections { catalog }
    }

    /// The first (usually the only) document of a collection.
    pub fn first(&self, ns: &Namespace) -> Result<Option<DocBuf>> {
        let Some(coll) = self.catalog.lookup(ns) else { return Ok(None) };
        let mut source = CollectionSource::new(coll, self.catalog.read_latest()?);
        let first = source.scan_records(RecordScan::all(Direction::Forward))?.next()?;
        Ok(first.map(|(_, doc)| RawDoc::trusted(&doc).to_buf()))
    }
    /// The document whose `_id` is that text.
    pub fn named(&self, ns: &Namespace, name: &str) -> Result<Option<DocBuf>> {
        self.named_as_of(ns, name, ReadAt::Latest)
    }
    /// The same at one time.
    pub fn named_as_of(&self, ns: &Namespace, name: &str, at: ReadAt) -> Result<Option<DocBuf>> {
        let Some(coll) = self.catalog.lookup(ns) else { return Ok(None) };
        let mut key = DocBuilder::new();
        key.str("_id", name);
        let key = key.finish();
        let Some(id) = key.elem("_id") else { return Ok(None) };
        let found = find_id(&self.catalog.storage().begin(at)?, &coll, id)?;
        Ok(found.map(|(_, doc)| RawDoc::trusted(&doc).to_buf()))
    }
    /// Every document of a collection at one time; none where there is no collection.
    pub fn all(&self, ns: &Namespace, at: ReadAt) -> Result<Vec<DocBuf>> {
        let Some(coll) = self.catalog.lookup(ns) else { return Ok(Vec::new()) };
        let mut source = CollectionSource::new(coll, self.catalog.storage().begin(at)?);
        let mut rows = source.scan_records(RecordScan::all(Direction::Forward))?;
        let mut found = Vec::new();
        while let Some((_, doc)) = rows.next()? {
            found.push(RawDoc::trusted(&doc).to_buf());
        }
        Ok(found)
    }
    /// Those of `keys` (`{_id: …}`) that no document has, at one time; `None` where there is no collection.
    pub fn lacking<'k, K>(
        &self,
        ns: &Namespace,
        keys: impl Iterator<Item = (K, &'k RawDoc)>,
    ) -> Result<Option<Vec<K>>> {
        let Some(coll) = self.catalog.lookup(ns) else { return Ok(None) };
        let txn = self.catalog.read_latest()?;
        let mut lacking = Vec::new();
        for (key, doc) in keys {
            let Some(id) = doc.elem("_id") else { continue };
            if find_id(&txn, &coll, id)?.is_none() {
                lacking.push(key);
            }
        }
        Ok(Some(lacking))
    }

    /// Makes the collection where there is none.
    pub async fn ensure(&self, ns: &Namespace) -> Result<()> {
        match self.catalog.lookup(ns) {
            Some(_) => Ok(()),
            None => self.catalog.write_lock_or_create(ns).await.map(drop),
        }
    }
    /// Drops the collection, if there is one.
    pub async fn drop(&self, ns: &Namespace) -> Result<()> {
        match self.catalog.drop_collection(ns).await {
            Err(e) if e.code != ErrorCode::NamespaceNotFound => Err(e),
            Ok(_) | Err(_) => Ok(()),
        }
    }
    /// Makes the index, and the collection, where there are none.
    pub async fn ensure_index(&self, ns: &Namespace, spec: &RawDoc) -> Result<()> {
        self.catalog.create_indexes(ns, &[spec], &Uninterrupted).await.map(drop)
    }
    /// Makes `doc` the only document of a collection; without an `_id` it takes over the one that is there.
    pub async fn replace_only(&self, ns: &Namespace, doc: &RawDoc) -> Result<()> {
        let coll = self.catalog.write_lock_or_create(ns).await?;
        let mut unit = self.catalog.begin_write(&coll)?;
        let old = {
            let mut source = CollectionSource::within(coll.collection().clone(), unit.txn());
            source.scan_records(RecordScan::all(Direction::Forward))?.next()?
        };
        let Some((rid, old)) = old else {
            drop(unit);
            return self.catalog.insert_unit(&OP, &coll, &[doc], &[]).map(drop);
        };
        let old = RawDoc::trusted(&old);
        let mut b = DocBuilder::with_capacity(doc.byte_len() + 32);
        if let (Some(id), None) = (old.elem("_id"), doc.elem("_id")) {
            b.elem(id);
        }
        b.elems_of(doc);
        let new = b.finish();
        unit.update(&OP, &coll, &rid, old, &new, UpdateForm::Replacement, &[])?;
        unit.commit().map(drop)
    }
    /// Inserts `doc`, or replaces the one with its `_id`. Returns the position of the write.
    pub async fn put(&self, interrupt: &dyn Interrupt, ns: &Namespace, doc: &RawDoc) -> Result<OpTime> {
        let coll = self.catalog.write_lock_or_create(ns).await?;
        retry_conflicts(&self.catalog, interrupt, || {
            let mut unit = self.catalog.begin_write(&coll)?;
            let old = match doc.elem("_id") {
                Some(id) => find_id(unit.txn(), &coll, id)?,
                None => None,
            };
            match old {
                Some((rid, old)) => {
                    let old = RawDoc::trusted(&old);
                    unit.update(&OP, &coll, &rid, old, doc, UpdateForm::Replacement, &[])?;
                    unit.commit()
                }
                None => {
                    drop(unit);
                    self.catalog.insert_unit(&OP, &coll, &[doc], &[])
                }
            }
        })
        .await
    }
    /// The same for several, in one unit of work; nothing where there is no collection.
    pub async fn put_all(&self, interrupt: &dyn Interrupt, ns: &Namespace, docs: &[DocBuf]) -> Result<()> {
        self.each(interrupt, ns, docs, |unit, coll, doc, id| match find_id(unit.txn(), coll, id)? {
            Some((rid, old)) => {
                unit.update(&OP, coll, &rid, RawDoc::trusted(&old), doc, UpdateForm::Replacement, &[])
            }
            None => self.catalog.insert_within(unit, &OP, coll, doc),
        })
        .await
    }
    /// Removes those that have the `_id`s of `keys`, in one unit of work.
    pub async fn remove_all(&self, interrupt: &dyn Interrupt, ns: &Namespace, keys: &[DocBuf]) -> Result<()> {
        self.each(interrupt, ns, keys, |unit, coll, _, id| match find_id(unit.txn(), coll, id)? {
            Some((rid, old)) => unit.delete(&OP, coll, &rid, RawDoc::trusted(&old), &[]),
            None => Ok(()),
        })
        .await
    }
    async fn each(
        &self,
        interrupt: &dyn Interrupt,
        ns: &Namespace,
        docs: &[DocBuf],
        work: impl Fn(&mut WriteUnit, &WriteGuard, &RawDoc, Elem<'_>) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        let Some(coll) = self.catalog.write_lock(ns).await? else { return Ok(()) };
        retry_conflicts(&self.catalog, interrupt, || {
            let mut unit = self.catalog.begin_write(&coll)?;
            for doc in docs {
                if let Some(id) = doc.elem("_id") {
                    work(&mut unit, &coll, doc, id)?;
                }
            }
            unit.commit().map(drop)
        })
        .await
    }
    /// Removes the document with the `_id` of `key`. Returns the position of the write; `None` when there is none to remove.
    pub async fn remove(
        &self,
        interrupt: &dyn Interrupt,
        ns: &Namespace,
        key: &RawDoc,
    ) -> Result<Option<OpTime>> {
        let (Some(coll), Some(id)) = (self.catalog.write_lock(ns).await?, key.elem("_id")) else {
            return Ok(None);
        };
        retry_conflicts(&self.catalog, interrupt, || {
            let mut unit = self.catalog.begin_write(&coll)?;
            let Some((rid, old)) = find_id(unit.txn(), &coll, id)? else { return Ok(None) };
            unit.delete(&OP, &coll, &rid, RawDoc::trusted(&old), &[])?;
            unit.commit().map(Some)
        })
        .await
    }
    /// Replaces the document with the `_id` of `key` by what `change` makes of it; `change` sees `None` when there is no
    /// such document, and leaves everything as it is by returning `None`.
    pub async fn change(
        &self,
        interrupt: &dyn Interrupt,
        ns: &Namespace,
        key: &RawDoc,
        log: LogAs,
        mut change: impl FnMut(Option<&RawDoc>) -> Result<Option<DocBuf>> + Send,
    ) -> Result<Option<OpTime>> {
        let coll = match self.catalog.write_lock(ns).await? {
            Some(coll) => coll,
            None if change(None)?.is_none() => return Ok(None),
            None => self.catalog.write_lock_or_create(ns).await?,
        };
        let Some(id) = key.elem("_id") else { return Ok(None) };
        retry_conflicts(&self.catalog, interrupt, || {
            let mut unit = self.catalog.begin_write(&coll)?;
            let found = find_id(unit.txn(), &coll, id)?;
            let old = found.as_ref().map(|(_, doc)| RawDoc::trusted(doc));
            let Some(new) = change(old)? else { return Ok(None) };
            let (Some((rid, _)), Some(old)) = (&found, old) else {
                drop(unit);
                return self.catalog.insert_unit(&OP, &coll, &[&*new], &[]).map(Some);
            };
            let diff = match log {
                LogAs::Difference => pando_oplog::diff::compute(old, &new),
                LogAs::Replacement => None,
            };
            let form = diff.as_ref().map_or(UpdateForm::Replacement, |d| UpdateForm::Diff(d));
            unit.update(&OP, &coll, rid, old, &new, form, &[])?;
            unit.commit().map(Some)
        })
        .await
    }
    /// Inserts `doc`, into a collection that is made with `options` where there is none.
    pub async fn append(
        &self,
        ns: &Namespace,
        doc: &RawDoc,
        options: impl FnOnce() -> CollectionOptions,
    ) -> Result<()> {
        let coll = match self.catalog.write_lock(ns).await? {
            Some(coll) => coll,
            None => {
                self.catalog.create_collection(ns, options()).await?;
                self.catalog.write_lock_or_create(ns).await?
            }
        };
        self.catalog.insert_unit(&OP, &coll, &[doc], &[]).map(drop)
    }
}
