//! The arguments of `currentOp`.

use crate::declare::arguments;
use crate::declare::kinds::Truth;
use pando_bson::{DocBuf, DocBuilder};

arguments! {
    /// What `currentOp` asks for.
    pub struct CurrentOpArgs of "currentOp" as "currentOp", keeping {
        /// Connections without a running operation too.
        "$all" all: optional Truth,
        "$ownOps" own_ops: optional Truth,
        "$truncateOps" truncate_ops: optional Truth,
    }
}

impl CurrentOpArgs<'_> {
    /// Every other argument is a condition on what is shown.
    pub fn filter(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        for e in &self.passthrough {
            b.elem(*e);
        }
        b.finish()
    }
}
