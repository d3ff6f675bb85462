//! convertToCapped and cloneCollectionAsCapped: the newest documents that fit, copied into a capped collection.

use crate::Catalog;
use crate::schema::collection::Collection;
use crate::schema::durable::Parts;
use crate::schema::options::{CAPPED_BYTES_MAX, Capped, CollectionOptions};
use crate::write::crud::retry_conflicts;
use crate::write::interrupt::Interrupt;
use crate::write::op::WriteOp;
use crate::write::record_id;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, limits};
use pando_bson::RawDoc;
use pando_storage::{Dir, ReadAt, Txn};
use std::ops::Bound;
use std::sync::Arc;

fn check_size(size: i64) -> Result<()> {
    match size {
        i64::MIN..0 => Err(Error::bad_value("size has to be >= 0")),
        0..=CAPPED_BYTES_MAX => Ok(()),
        _ => Err(Error::bad_value("size cannot exceed 1 PB")),
    }
}

fn no_source(ns: &Namespace) -> Error {
    Error::new(ErrorCode::NamespaceNotFound, format!("source collection {ns} does not exist"))
}

impl Catalog {
    /// Puts a capped collection with the newest documents of `ns` in its place; indexes other than `_id_` go.
    pub async fn convert_to_capped(
        &self,
        ns: &Namespace,
        size: i64,
        interrupt: &dyn Interrupt,
    ) -> Result<OpTime> {
        if self.lookup(ns).is_some_and(|c| !c.is_stored()) {
            let text = format!("{ns} has no rows of its own and cannot be capped");
            return Err(Error::new(ErrorCode::IllegalOperation, text));
        }
        let _db = self.unless_interrupted(interrupt, self.lock_database(ns.db())).await?;
        let source = self.unless_interrupted(interrupt, self.capped_source(ns)).await??;
        check_size(size)?;
        let suffix: String = self.new_uuid().to_string().chars().take(5).collect();
        let tmp = Namespace::unchecked(ns.db(), &format!("tmp{suffix}.convertToCapped.{}", ns.coll()));
        if ns.coll().starts_with("system.") {
            return Err(Error::bad_value(format!("Invalid namespace: {tmp}")));
        }
        let options = CollectionOptions { temp: true, ..capped_options(&source.coll, size) };
        self.create_collection_locked(&tmp, options)?;
        let done = match self.copy_newest(&source.coll, &tmp, interrupt).await {
            Ok(_) => self.put_copy(&tmp, ns, Some(&source.coll), interrupt).await,
            Err(e) => Err(e),
        };
        if done.is_err() {
            self.drop_copy(&tmp).await?;
        }
        done
    }
    /// A copy gets the name that it was made for, in the place of whatever has it.
    pub(crate) async fn put_copy(
        &self,
        tmp: &Namespace,
        to: &Namespace,
        target: Option<&Collection>,
        interrupt: &dyn Interrupt,
    ) -> Result<OpTime> {
        let copy = self.ddl_lock(tmp).await.ok_or_else(|| Error::internal("the copy is gone"))?;
        let (last, renamed) = retry_conflicts(self, interrupt, || {
            let mut unit = self.begin_unit(copy.coll.replicated)?;
            let renamed = self.rename_in(&mut unit, &copy.coll, to, target, false)?;
            Ok((unit.commit()?, renamed))
        })
        .await?;
        self.publish_rename(&copy.coll, renamed, target, last.ts);
        Ok(last)
    }

    /// Copies the newest documents of `from` into a new capped collection `to` of the same database.
    pub async fn clone_as_capped(
        &self,
        from: &Namespace,
        to: &Namespace,
        size: i64,
        interrupt: &dyn Interrupt,
    ) -> Result<OpTime> {
        crate::schema::names::check_creatable(to)?;
        let _db = self.unless_interrupted(interrupt, self.lock_database(from.db())).await?;
        let source = self.unless_interrupted(interrupt, self.capped_source(from)).await??;
        if self.snapshot().get(to).is_some() {
            return Err(Error::new(
                ErrorCode::NamespaceExists,
                format!(
                    "cloneCollectionAsCapped failed - destination collection {to} already exists. source \
                     collection: {from}"
                ),
            ));
        }
        check_size(size)?;
        let created = self.create_collection_locked(to, capped_options(&source.coll, size))?;
        match self.copy_newest(&source.coll, to, interrupt).await {
            Ok(last) => Ok(if last.is_null() { created } else { last }),
            Err(e) => {
                self.drop_copy(to).await?;
                Err(e)
            }
        }
    }

    async fn capped_source(&self, ns: &Namespace) -> Result<crate::catalog::DdlGuard> {
        if let Some(view) = self.lookup_view(ns) {
            return Err(crate::catalog::is_a_view(&view));
        }
        self.abort_builds(ns, "collection converted to capped").await?;
        self.ddl_lock(ns).await.ok_or_else(|| no_source(ns))
    }

    pub(crate) async fn drop_copy(&self, ns: &Namespace) -> Result<()> {
        let Some(g) = self.ddl_lock(ns).await else { return Ok(()) };
        self.drop_guarded(&g).await.map(drop)
    }

    async fn copy_newest(
        &self,
        source: &Arc<Collection>,
        to: &Namespace,
        interrupt: &dyn Interrupt,
    ) -> Result<OpTime> {
        let copy = self.lookup(to).ok_or_else(|| Error::internal("the copy is gone"))?;
        let txn = self.storage().begin(ReadAt::Latest)?;
        let start = first_that_fits(&txn, source, copy.options.capped)?;
        let from = start.as_deref().map_or(Bound::Unbounded, Bound::Included);
        self.copy_records(&txn, (source, from), &copy, interrupt).await
    }

    /// Copies documents from a record on, in units of work; as an insert of a user does, it waits while there is no room for more rows that no
    /// majority has.
    pub(crate) async fn copy_records(
        &self,
        txn: &Txn,
        (source, from): (&Collection, Bound<&[u8]>),
        copy: &Arc<Collection>,
        interrupt: &dyn Interrupt,
    ) -> Result<OpTime> {
        let mut cursor = txn.scan(source.records, from, Bound::Unbounded, Dir::Forward)?;
        let op = WriteOp { bypass_validation: true, ..WriteOp::default() };
        let mut last = OpTime::NULL;
        loop {
            interrupt.check()?;
            let mut batch = Vec::new();
            let mut bytes = 0;
            while batch.len() < limits::INSERT_UNIT_DOCS_MAX && bytes < limits::INSERT_UNIT_BYTES_MAX {
                let Some((_, doc)) = cursor.next()? else { break };
                bytes += doc.len();
                batch.push(doc);
            }
            if batch.is_empty() {
                return Ok(last);
            }
            let docs: Vec<&RawDoc> = batch.iter().map(|d| RawDoc::trusted(d)).collect();
            last = retry_conflicts(self, interrupt, || self.insert_unit(&op, copy, &docs, &[])).await?;
            self.env().tasks.yield_now().await;
        }
    }
}

fn capped_options(source: &Collection, size: i64) -> CollectionOptions {
    let kept = Parts::of(source).options;
    CollectionOptions {
        capped: Some(Capped::new(size, None)),
        collation: kept.collation,
        validator: kept.validator,
        validation_level: kept.validation_level,
        validation_action: kept.validation_action,
        ..CollectionOptions::default()
    }
}

/// The storage key of the oldest record that is copied; `None` = all fit.
fn first_that_fits(txn: &Txn, source: &Collection, bounds: Option<Capped>) -> Result<Option<Vec<u8>>> {
    let size = bounds.map_or(i64::MAX, |b| b.size);
    let mut cursor = txn.scan(source.records, Bound::Unbounded, Bound::Unbounded, Dir::Backward)?;
    let (mut bytes, mut first) = (0i64, None);
    while let Some((key, doc)) = cursor.next()? {
        bytes += doc.len() as i64;
        if bytes > size && first.is_some() {
            return Ok(first);
        }
        first = Some(record_id::storage_key(&record_id::from_storage_key(source.is_clustered(), &key)?));
    }
    Ok(None)
}
