//! Tables of another set become tables of ours: read in key order, written past the memory tables under numbers of our own.
//!
//! ```text
//!   numbers drawn ─► one run for each of our trees ─► the caller names them ([`LoadedTables::keep`]) │ or they are dropped
//! ```
//! One run for each tree, whatever the number of tables: ten thousand small collections are nine runs, not thirty thousand.
//!
//! The rows carry a time before all others ([`BEFORE_ALL`]), so they are below every stable point and no rollback takes them; the
//! times that they had in their set say nothing here. What makes them visible, and from when on, is the row of the catalog
//! that names their numbers. Until then they are as a bulk load that was broken off: the next start drops them.

use super::ForeignCheckpoint;
use crate::ident::Ident;
use crate::kv::Tree;
use crate::row;
use crate::storage::Storage;
use crate::store::Store;
use pando_base::panics::poisoned;
use pando_base::{Result, Timestamp, limits};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// When rows of another set were committed, as seen from here. Not zero, which marks rows without a log.
pub(crate) const BEFORE_ALL: Timestamp = Timestamp(1);

/// One table that was taken in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadedTable {
    pub theirs: Ident,
    pub ours: Ident,
    pub rows: u64,
    /// Of the values.
    pub bytes: u64,
}

/// Tables that nobody has named yet. Dropping it drops them.
#[must_use]
pub struct LoadedTables {
    store: Arc<Store>,
    tables: Vec<LoadedTable>,
    kept: bool,
}

impl LoadedTables {
    /// In the order in which they were asked for.
    pub fn tables(&self) -> &[LoadedTable] {
        &self.tables
    }
    /// Something durable names them.
    pub fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for LoadedTables {
    fn drop(&mut self) {
        let at = self.store.log.last().0;
        let mut loading = self.store.loading.lock().unwrap_or_else(poisoned);
        for table in &self.tables {
            loading.remove(&table.ours.0);
        }
        if self.kept || self.tables.is_empty() {
            return;
        }
        let mut meta = self.store.meta();
        meta.dropped.extend(self.tables.iter().map(|table| (table.ours.0, at)));
        if let Err(e) = meta.save(&*self.store.env.disk) {
            self.store.log.poison(e);
        }
    }
}

impl Storage {
    /// Reads these record stores and indexes of another set and makes tables of our own of them, durable on return. Asks
    /// `go_on` now and then; its error ends the load, as does whatever cannot be read of theirs. A failed write of ours poisons
    /// the log, as everywhere.
    pub fn load_tables(
        &self,
        from: &ForeignCheckpoint,
        theirs: &[Ident],
        go_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<LoadedTables> {
        let store = &self.store;
        let mut all = LoadedTables { store: store.clone(), tables: Vec::new(), kept: false };
        let mut by_tree: BTreeMap<u8, (Tree, Vec<usize>)> = BTreeMap::new();
        for theirs in theirs {
            let ours = self.create_ident(theirs.kind())?;
            store.loading.lock().unwrap_or_else(poisoned).insert(ours.0);
            let tree = Tree::of(ours.0);
            // Numbers ascend, and so do the keys of each run.
            by_tree.entry(tree.number()).or_insert((tree, Vec::new())).1.push(all.tables.len());
            all.tables.push(LoadedTable { theirs: *theirs, ours, rows: 0, bytes: 0 });
        }
        store.flushed.fetch_max(BEFORE_ALL.0, Ordering::AcqRel);
        for (tree, positions) in by_tree.into_values() {
            let mut run = store.kv.bulk(tree)?;
            for at in positions {
                let table = &mut all.tables[at];
                let mut rows = from.rows(table.theirs);
                while let Some((key, value)) = rows.next()? {
                    let pushed =
                        run.push(row::key(table.ours.0, &key), row::stamped_value(BEFORE_ALL.0, &value));
                    pushed.map_err(|e| store.log.poison(e))?;
                    (table.rows, table.bytes) = (table.rows + 1, table.bytes + value.len() as u64);
                    if table.rows.is_multiple_of(limits::FOREIGN_ROWS_PER_LOOK) {
                        go_on()?;
                    }
                }
                go_on()?;
            }
            run.finish().map_err(|e| store.log.poison(e))?;
            store.mem.next_epoch();
        }
        Ok(all)
    }
}
