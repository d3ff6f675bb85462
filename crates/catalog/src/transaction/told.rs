//! Who tells observers what becomes of transactions, and of rollbacks.

use crate::Catalog;
use crate::transaction::prepared::id_of;
use crate::write::observer::{OpObserver, Origin, RolledBack, TxnAborted, TxnCommitted, TxnId, TxnWrites};
use pando_bson::{DocBuf, RawDoc};
use pando_oplog::entry::EntryView;
use std::sync::Arc;

impl Catalog {
    /// Calls `tell` with the observers that watch transactions, if there are any.
    pub(crate) fn tell_txn(&self, tell: impl FnOnce(&[Arc<dyn OpObserver>])) {
        let watching: Vec<_> =
            self.observers().iter().filter(|o| o.watches_transactions()).cloned().collect();
        if !watching.is_empty() {
            tell(&watching);
        }
    }
    /// The transaction that ends with this entry has been applied by others, operation by operation.
    pub fn applied_transaction(&self, e: &EntryView<'_>, origin: Origin) {
        let is_set = |name: &str| e.o.get(name).is_some_and(|v| v.is_truthy());
        if e.inner().is_none() || is_set("prepare") || is_set("partialTxn") {
            return;
        }
        self.tell_txn(|observers| {
            let Some(id) = id_of(e.doc) else { return };
            let writes = self.writes_of_chain(e);
            let committed = TxnCommitted {
                id: &id,
                origin,
                prepare: None,
                commit: e.ts,
                at: e.op_time(),
                writes: &writes,
            };
            observers.iter().for_each(|o| o.committed(&committed));
        });
    }
    /// What the entries up to and with this one say; less where the log no longer has them.
    pub(crate) fn writes_of_chain(&self, e: &EntryView<'_>) -> TxnWrites {
        let parts = self.earlier_parts(e.doc).unwrap_or_default();
        let parts = parts.iter().filter_map(|p| EntryView::parse(RawDoc::trusted(p)).ok());
        let mut writes = TxnWrites::default();
        for part in parts.chain([*e]) {
            part.inner().into_iter().flatten().flatten().for_each(|op| writes.add(&op));
        }
        writes
    }
    /// Own entries were undone, and everything else about it has been done.
    pub fn tell_rolled_back(&self, event: &RolledBack<'_>) {
        self.observers().iter().for_each(|o| o.rolled_back(event));
    }
    /// What is to happen when a transaction that is open is given up: it is told, unless it wrote nothing.
    pub(crate) fn when_given_up(&self, id: TxnId) -> impl FnOnce(&[DocBuf]) + Send + 'static {
        let catalog = self.clone();
        move |ops: &[DocBuf]| {
            if ops.is_empty() {
                return;
            }
            catalog.tell_txn(|observers| {
                let writes = &TxnWrites::of(ops);
                let event = TxnAborted { id: &id, origin: Origin::Command, prepare: None, at: None, writes };
                observers.iter().for_each(|o| o.aborted(&event));
            });
        }
    }
}
