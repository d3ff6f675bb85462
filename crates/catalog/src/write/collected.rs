//! The operations of an open transaction, as its entries will tell them.

use crate::schema::collection::Collection;
use crate::write::op::WriteOp;
use pando_bson::{DocBuf, DocBuilder};
use pando_oplog::entry::Operation;
use std::sync::Arc;

/// What the log will tell of an open transaction.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) ops: Vec<DocBuf>,
    pub(crate) bytes: usize,
    /// Collections that the transaction made, as they are now.
    pub(crate) created: Vec<Arc<Collection>>,
}

impl Collected {
    pub(crate) fn push(&mut self, op: &WriteOp<'_>, parts: &Operation<'_>) {
        let mut b = DocBuilder::with_capacity(256);
        Operation { from_migrate: op.from_migrate, ..*parts }.append_to(&mut b);
        let doc = b.finish();
        self.bytes += doc.byte_len();
        self.ops.push(doc);
    }
    pub(crate) fn truncate(&mut self, len: usize) {
        self.bytes -= self.ops.drain(len..).map(|op| op.byte_len()).sum::<usize>();
    }
}
