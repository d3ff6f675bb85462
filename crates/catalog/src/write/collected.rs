//! The operations of an open transaction, as its entries will tell them.

use crate::ddl::permit::Permit;
use crate::schema::collection::Collection;
use crate::write::op::WriteOp;
use pando_base::Namespace;
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
    /// Whether they may still come into being when it commits.
    pub(crate) permits: Vec<(Namespace, Permit)>,
    /// Until it is committed or prepared.
    given_up: Option<GivenUp>,
}

/// What is to happen when the transaction is given up; it gets the operations.
type GivenUp = Box<dyn FnOnce(&[DocBuf]) + Send>;

impl Drop for Collected {
    fn drop(&mut self) {
        if let Some(given_up) = self.given_up.take() {
            given_up(&self.ops);
        }
    }
}

impl Collected {
    pub(crate) fn new(given_up: impl FnOnce(&[DocBuf]) + Send + 'static) -> Collected {
        let given_up: Option<GivenUp> = Some(Box::new(given_up));
        Collected { given_up, ops: Vec::new(), bytes: 0, created: Vec::new(), permits: Vec::new() }
    }
    /// It has been committed or prepared: what it wrote.
    pub(crate) fn ended(mut self) -> Vec<DocBuf> {
        self.given_up = None;
        std::mem::take(&mut self.ops)
    }
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
