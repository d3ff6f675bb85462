//! Several of the server's own documents, of several collections, changed together: all of them or none, in one transaction that the
//! log tells in one entry (in a chain of entries where they do not fit into one). And reads of such documents by an index.

use crate::InternalCollections;
use crate::internal_collections::OP;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuf, RawDoc, Value};
use pando_catalog::{
    CollectionSource, Interrupt, TxnId, UpdateForm, WriteGuard, WriteUnit, after_conflict, find_id,
    retry_conflicts,
};
use pando_query::source::{Direction, IndexScan, RecordScan, Source};
use pando_storage::ReadAt;
use std::collections::BTreeMap;
use std::time::Duration;

/// What is to become of one document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// 11000 where there is one with its `_id`, or with its key in a unique index.
    Insert(Namespace, DocBuf),
    /// The document that whoever decided has read, by another with its `_id`.
    Replace {
        ns: Namespace,
        was: DocBuf,
        now: DocBuf,
    },
    Remove {
        ns: Namespace,
        was: DocBuf,
    },
}

impl Change {
    pub fn ns(&self) -> &Namespace {
        match self {
            Change::Insert(ns, _) | Change::Replace { ns, .. } | Change::Remove { ns, .. } => ns,
        }
    }
}

/// How long a commit waits for those that change definitions of the same database.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

impl InternalCollections {
    /// Makes all these changes or none of them, in the order given. `session` tells a transaction of more than one change in the log:
    /// it must be used by nobody else, with a number higher than before. Collections are made where there are none. Returns the
    /// position of the write.
    ///
    /// # Errors
    /// 117 when a document is not what it was when the change was decided upon.
    pub async fn write_together(
        &self,
        interrupt: &dyn Interrupt,
        session: TxnId,
        changes: &[Change],
    ) -> Result<OpTime> {
        let mut guards: BTreeMap<&str, WriteGuard> = BTreeMap::new();
        let mut names: Vec<&Namespace> = changes.iter().map(Change::ns).collect();
        names.sort_unstable_by_key(|ns| ns.as_str());
        names.dedup();
        for ns in names {
            // Several are held at once, always in the order of their names: they are the transaction's, not this task's.
            let guard = self.catalog.write_lock_or_create(ns).await?.leave_task();
            guards.insert(ns.as_str(), guard);
        }
        let lsid = pando_oplog::session::lsid_doc(&session.0);
        for tries in 0.. {
            let one = changes.len() == 1;
            let unit = retry_conflicts(&self.catalog, interrupt, || {
                let mut unit = match guards.values().next() {
                    Some(coll) if one => self.catalog.begin_write_waiting(coll)?,
                    _ => self.catalog.begin_transaction(ReadAt::Latest, session)?,
                };
                changes.iter().try_for_each(|change| self.make(&mut unit, &guards, change))?;
                Ok(unit)
            })
            .await?;
            let done = match one {
                true => unit.commit(),
                false => self
                    .catalog
                    .commit_transaction(unit, &lsid, session, PATIENCE)
                    .await
                    .map(|done| done.last),
            };
            match done {
                Err(e) if e.code == ErrorCode::WriteConflict => {
                    interrupt.check()?;
                    after_conflict(&self.catalog, tries).await;
                }
                done => return done,
            }
        }
        Err(Error::write_conflict())
    }

    pub(crate) fn make(
        &self,
        unit: &mut WriteUnit,
        guards: &BTreeMap<&str, WriteGuard>,
        change: &Change,
    ) -> Result<()> {
        let coll =
            guards.get(change.ns().as_str()).ok_or_else(|| Error::internal("a collection not held"))?;
        let (was, now) = match change {
            Change::Insert(_, doc) => {
                let doc = self.catalog.fix_for_insert(doc)?;
                return self.catalog.insert_within(unit, &OP, coll, &doc);
            }
            Change::Replace { was, now, .. } => (was, Some(now)),
            Change::Remove { was, .. } => (was, None),
        };
        let id = was.elem("_id").ok_or_else(|| Error::internal("a document without _id"))?;
        let found = find_id(unit.txn(), coll, id)?;
        let Some((rid, old)) = found.filter(|(_, old)| old[..] == *was.as_bytes()) else {
            let text = format!("{}: a document has changed meanwhile, it was {was}", change.ns());
            return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
        };
        let old = RawDoc::trusted(&old);
        match now {
            Some(now) => unit.update(&OP, coll, &rid, old, now, UpdateForm::Replacement, &[]),
            None => unit.delete(&OP, coll, &rid, old, &[]),
        }
    }

    /// Up to `max` of the documents whose keys in this index begin with these values, in the order of the index (or against it). None
    /// where there is no such collection or index.
    pub fn by_index(
        &self,
        ns: &Namespace,
        index: &str,
        prefix: &[Value<'_>],
        dir: Direction,
        max: usize,
    ) -> Result<Vec<DocBuf>> {
        let Some(coll) = self.catalog.lookup(ns) else { return Ok(Vec::new()) };
        let mut source = CollectionSource::new(coll, self.catalog.read_latest()?);
        let at = source.collection().indexes.iter().position(|i| i.name == index);
        let Some(at) = at else { return Ok(Vec::new()) };
        let key = || {
            let mut key = KeyBuilder::default();
            for v in prefix {
                key.append(*v);
            }
            key
        };
        let (start, end) = (key().finish_before(), key().finish_after());
        let scan = IndexScan { index: at, start: &start, end: &end, dir, after: None };
        let mut entries = source.scan_index(scan)?;
        let mut found = Vec::new();
        while found.len() < max
            && let Some(entry) = entries.next()?
        {
            if let Some(doc) = source.fetch(&entry.rid)? {
                found.push(RawDoc::trusted(&doc).to_buf());
            }
        }
        Ok(found)
    }
    /// Shows every document of a collection, until `look` has seen enough.
    pub fn look_through(&self, ns: &Namespace, mut look: impl FnMut(&RawDoc) -> Result<bool>) -> Result<()> {
        let Some(coll) = self.catalog.lookup(ns) else { return Ok(()) };
        let mut source = CollectionSource::new(coll, self.catalog.read_latest()?);
        let mut rows = source.scan_records(RecordScan::all(Direction::Forward))?;
        while let Some((_, doc)) = rows.next()? {
            if !look(RawDoc::trusted(&doc))? {
                break;
            }
        }
        Ok(())
    }
    /// Makes the collection with these options where there is none.
    pub async fn ensure_with(
        &self,
        ns: &Namespace,
        options: impl FnOnce() -> pando_catalog::CollectionOptions,
    ) -> Result<()> {
        if self.catalog.lookup(ns).is_some() {
            return Ok(());
        }
        match self.catalog.create_collection(ns, options()).await {
            Err(e) if e.code != ErrorCode::NamespaceExists => Err(e),
            _ => Ok(()),
        }
    }
}
