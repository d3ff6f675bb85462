//! The names of tables that were taken in: local rows, one for each collection, and one for the whole.

use super::told::{ImportOrder, Imported, ImportedCollection};
use crate::Catalog;
use crate::schema::durable;
use crate::schema::sizes::Totals;
use pando_base::panics::poisoned;
use pando_base::{Error, Result, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_storage::{Dir, Ident, LoadedTables, ReadAt};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::MutexGuard;

const PREFIX: &[u8] = b"import/";
const PREFIX_END: &[u8] = b"import0";
/// Of the key of the row for a whole import.
const WHOLE_LEN: usize = PREFIX.len() + 16;

/// One collection: its row of the catalog, with tables of this node, as of no particular time.
pub(super) struct Registered {
    pub(super) row: DocBuf,
    pub(super) totals: Totals,
}

fn key_of(import: Uuid, collection: Option<Uuid>) -> Vec<u8> {
    [PREFIX, &import.0, collection.as_ref().map_or(&[][..], |uuid| &uuid.0)].concat()
}

fn damaged(row: &RawDoc) -> Error {
    Error::internal(format!("what this node keeps of collections that were taken in is damaged: {row}"))
}

impl Registered {
    fn encode(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.i64("count", self.totals.count).i64("bytes", self.totals.bytes);
        b.raw_doc("row", &self.row);
        b.finish()
    }
    fn decode(stored: &RawDoc) -> Result<Registered> {
        let number = |name| stored.get(name).and_then(|v| v.as_i64());
        match (number("count"), number("bytes"), stored.get("row").and_then(|v| v.as_doc())) {
            (Some(count), Some(bytes), Some(row)) => {
                Ok(Registered { row: row.to_buf(), totals: Totals { count, bytes } })
            }
            _ => Err(damaged(stored)),
        }
    }
    fn described(&self, now_ms: i64) -> Result<ImportedCollection> {
        let parts = durable::decode(&self.row, now_ms)?.parts;
        Ok(ImportedCollection {
            ns: parts.ns,
            uuid: parts.uuid,
            documents: self.totals.count as u64,
            bytes: self.totals.bytes as u64,
        })
    }
    /// The numbers of its tables.
    fn idents(&self) -> Result<Vec<Ident>> {
        let number = |d: &RawDoc, name: &str| d.get(name).and_then(|v| v.as_i64()).map(|n| Ident(n as u32));
        let indexes = self.row.get("indexes").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
        let of_indexes = indexes.iter().map(|e| number(e.value().as_doc()?, "ident"));
        let all = std::iter::once(number(&self.row, "records")).chain(of_indexes);
        all.collect::<Option<_>>().ok_or_else(|| damaged(&self.row))
    }
}

impl Catalog {
    pub(super) fn lock_imports(&self) -> MutexGuard<'_, u64> {
        self.0.imports.0.lock().unwrap_or_else(poisoned)
    }
    /// What is to be known before tables are loaded, for [`Catalog::register_import`].
    pub(super) fn imports_generation(&self) -> u64 {
        *self.lock_imports()
    }

    /// Names what was loaded, all of it at once, durably.
    pub(super) fn register_import(
        &self,
        order: &ImportOrder,
        at: Timestamp,
        collections: &[(Uuid, Registered)],
        loaded: LoadedTables,
        generation: u64,
    ) -> Result<()> {
        let current = self.lock_imports();
        if *current != generation {
            return Err(Error::internal("this node's data was given up while tables were taken in"));
        }
        let mut unit = self.storage().begin_local()?;
        for (uuid, registered) in collections {
            let key = key_of(order.import, Some(*uuid));
            unit.put(Ident::META, &key, registered.encode().as_bytes())?;
        }
        let mut whole = DocBuilder::new();
        whole.timestamp("at", at).uuid("migration", &order.migration.0).timestamp("since", order.since);
        unit.put(Ident::META, &key_of(order.import, None), whole.finish().as_bytes())?;
        unit.commit()?;
        // Named in memory: whoever looks for tables without a name finds it from here on.
        loaded.keep();
        self.storage().sync_local()
    }

    pub(super) fn registered(&self, import: Uuid, collection: Uuid) -> Result<Option<Registered>> {
        let row =
            self.storage().begin(ReadAt::Applied)?.get(Ident::META, &key_of(import, Some(collection)))?;
        row.map(|row| Registered::decode(RawDoc::trusted(&row))).transpose()
    }
    /// Of one import, or of all; the row of the whole has no collection.
    fn rows_of(&self, import: Option<Uuid>) -> Result<Vec<(Vec<u8>, DocBuf)>> {
        let low = import.map_or_else(|| PREFIX.to_vec(), |id| key_of(id, None));
        let txn = self.storage().begin(ReadAt::Applied)?;
        let mut found = Vec::new();
        let mut rows =
            txn.scan(Ident::META, Bound::Included(&low), Bound::Excluded(PREFIX_END), Dir::Forward)?;
        while let Some((key, row)) = rows.next()? {
            if !key.starts_with(&low) {
                break;
            }
            found.push((key.to_vec(), RawDoc::trusted(&row).to_buf()));
        }
        Ok(found)
    }

    /// What was taken in under this name; `None` where nothing was, or it was forgotten.
    pub fn imported(&self, import: Uuid) -> Result<Option<Imported>> {
        let (mut whole, mut collections) = (None, Vec::new());
        for (key, row) in self.rows_of(Some(import))? {
            if key.len() > WHOLE_LEN {
                collections.push(Registered::decode(&row)?.described(self.now_ms())?);
            } else if let Some(Value::Timestamp(at)) = row.get("at") {
                whole = Some(at);
            } else {
                return Err(damaged(&row));
            }
        }
        Ok(whole.map(|at| Imported { at, collections }))
    }

    /// All that are not forgotten.
    pub fn imports(&self) -> Result<Vec<Uuid>> {
        let rows = self.rows_of(None)?;
        let mut ids: Vec<Uuid> =
            rows.iter().filter_map(|(key, _)| Uuid::from_slice(key.get(PREFIX.len()..WHOLE_LEN)?)).collect();
        ids.dedup();
        Ok(ids)
    }

    /// Those that may be forgotten where everything is that was taken in before `upto`; of one merge, or of all. What is taken in later belongs to
    /// an attempt that goes on, however late it is heard that an earlier one is over.
    pub fn imports_before(&self, migration: Option<Uuid>, upto: Timestamp) -> Result<Vec<Uuid>> {
        let mut found = Vec::new();
        for import in self.imports()? {
            let row = self.storage().begin(ReadAt::Applied)?.get(Ident::META, &key_of(import, None))?;
            // Without the word that all of it is here it is of nobody any more.
            let Some(row) = row else {
                found.push(import);
                continue;
            };
            let row = RawDoc::trusted(&row);
            let of = match row.get("migration") {
                Some(Value::Binary { bytes, .. }) => Uuid::from_slice(bytes),
                _ => None,
            };
            let (Some(of), Some(Value::Timestamp(since))) = (of, row.get("since")) else {
                return Err(damaged(row));
            };
            if since < upto && migration.is_none_or(|wanted| wanted == of) {
                found.push(import);
            }
        }
        Ok(found)
    }

    /// Once this node's tables stand at `upto`, which is behind every entry that takes one of these collections in: no such entry is
    /// applied any more, and nothing need be remembered. Tables that no collection has are dropped. False while they do not stand
    /// there.
    pub fn forget_import(&self, import: Uuid, upto: Timestamp) -> Result<bool> {
        let _names = self.lock_imports();
        let storage = self.storage();
        if storage.recovery_ts().min(storage.stable()) < upto {
            return Ok(false);
        }
        let rows = self.rows_of(Some(import))?;
        self.remove_names(&rows)?;
        let in_use = self.named_idents();
        let at = storage.log().last();
        for (_, row) in rows.iter().filter(|(_, row)| row.get("row").is_some()) {
            for ident in Registered::decode(row)?.idents()? {
                if !in_use.contains(&ident) {
                    storage.drop_ident(ident, at);
                }
            }
        }
        Ok(true)
    }
    fn remove_names(&self, rows: &[(Vec<u8>, DocBuf)]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut unit = self.storage().begin_local()?;
        rows.iter().try_for_each(|(key, _)| unit.delete(Ident::META, key))?;
        unit.commit()?;
        self.storage().sync_local()
    }

    /// This node gives its data up: what was taken in goes with it.
    pub(crate) fn forget_imports(&self) -> Result<()> {
        let mut generation = self.lock_imports();
        *generation += 1;
        self.remove_names(&self.rows_of(None)?)
    }
    /// Rows were taken back by fetching what others have, which nobody can of a collection that does not exist there yet: tables of
    /// such may have lost rows.
    pub(crate) fn forget_imports_not_in_use(&self) -> Result<()> {
        let mut generation = self.lock_imports();
        *generation += 1;
        let mut rows = self.rows_of(None)?;
        let unused = |key: &[u8]| {
            let uuid = key.get(WHOLE_LEN..).and_then(Uuid::from_slice);
            uuid.is_some_and(|uuid| self.lookup_uuid(uuid).is_none())
        };
        // With a collection goes the word that all of them are here.
        let broken: BTreeSet<Vec<u8>> =
            rows.iter().filter(|(key, _)| unused(key)).map(|(key, _)| key[..WHOLE_LEN].to_vec()).collect();
        rows.retain(|(key, _)| unused(key) || broken.contains(key));
        self.remove_names(&rows)
    }

    /// Rows that nobody names are dropped.
    pub(crate) fn drop_unnamed_rows(&self) -> Result<()> {
        let _names = self.lock_imports();
        let mut named: BTreeSet<Ident> = self.named_idents();
        for (_, row) in self.rows_of(None)?.iter().filter(|(_, row)| row.get("row").is_some()) {
            named.extend(Registered::decode(row)?.idents()?);
        }
        self.storage().drop_unnamed(|ident| named.contains(&ident)).map(drop)
    }
}

#[cfg(test)]
impl Catalog {
    /// The numbers of the tables that are named.
    pub(crate) fn idents_of_import(&self, import: Uuid, collection: Uuid) -> Result<Vec<Ident>> {
        self.registered(import, collection)?.map_or(Ok(Vec::new()), |r| r.idents())
    }
}
