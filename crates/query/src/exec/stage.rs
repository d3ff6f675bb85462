//! What a stage of a running plan is, and what goes from stage to stage.

use super::stats::StageStats;
use crate::facts::Facts;
use crate::source::{RecordId, Source};
use bytes::Bytes;
use pando_base::Result;
use std::sync::Arc;

/// Steps a call may take before it returns [`Step::NeedYield`].
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    pub(super) left: u32,
}

impl Quota {
    pub fn new(steps: u32) -> Quota {
        Quota { left: steps }
    }
    /// Counts work that is more than a row's.
    pub(crate) fn spend(&mut self, steps: u32) {
        self.left = self.left.saturating_sub(steps);
    }
    /// A document is looked at: as much as many steps when it is large.
    #[inline]
    pub(crate) fn spend_document(&mut self, bytes: usize) {
        self.spend((bytes >> 14) as u32);
    }
    #[inline]
    pub(crate) fn tick(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        true
    }
}

/// What a call gave.
#[derive(Debug)]
pub enum Step {
    Row(OutRow),
    /// The quota is used up; call again.
    NeedYield,
    /// Nothing more. A tailable scan may have more later.
    Eof,
}

/// A row of the result.
#[derive(Clone, Debug, Default)]
pub struct OutRow {
    /// The document, projected if the query says so. Empty when only counting.
    pub doc: Bytes,
    pub rid: Option<RecordId>,
    pub facts: Option<Box<Facts>>,
}

/// A row between stages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) rid: Option<RecordId>,
    pub(crate) doc: Option<Bytes>,
    pub(crate) key: Option<Box<KeyData>>,
    /// [`Cx::generation`] when the row was made.
    pub(crate) generation: u32,
    pub(crate) facts: Option<Box<Facts>>,
}

/// An index entry's key.
#[derive(Clone, Debug)]
pub(crate) struct KeyData {
    pub(crate) bytes: Box<[u8]>,
    pub(crate) type_bits: Box<[u8]>,
    pub(crate) directions: pando_bson::keystring::Directions,
}

/// What a stage works with during one call.
pub(crate) struct Cx<'a> {
    pub(crate) src: &'a mut dyn Source,
    pub(crate) quota: &'a mut Quota,
    /// Counts [`Executor::save`] calls: rows of an older generation may be out of date.
    pub(crate) generation: u32,
}

pub(crate) enum Next {
    Row(Row),
    Yield,
    Eof,
}

/// Takes in one document after the other; false when it wants no more.
pub type Each<'a> = dyn FnMut(&[u8]) -> Result<bool> + 'a;

/// Why [`Executor::feed`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fed {
    /// The quota is used up; call again.
    NeedYield,
    /// No more is wanted.
    Stopped,
    Eof,
}

pub(crate) trait Stage: Send {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next>;
    /// Shows the documents of all rows to come, as far as the quota goes. A scan shows them where they lie.
    fn feed(&mut self, cx: &mut Cx<'_>, each: &mut Each<'_>) -> Result<Fed> {
        loop {
            match self.next(cx)? {
                Next::Row(row) if each(row.doc.as_deref().unwrap_or_default())? => {}
                Next::Row(_) => return Ok(Fed::Stopped),
                Next::Yield => return Ok(Fed::NeedYield),
                Next::Eof => return Ok(Fed::Eof),
            }
        }
    }
    /// Drops everything tied to the present snapshot.
    fn save(&mut self);
    fn stats(&self) -> StageStats;
}

/// Disk a query may use.
#[derive(Clone, Default)]
pub struct Resources {
    /// `None`: exceeding the memory is an error.
    pub spill: Option<Arc<dyn crate::sort::SpillSpace>>,
}

pub(crate) fn out_row(row: Row) -> OutRow {
    OutRow { doc: row.doc.unwrap_or_default(), rid: row.rid, facts: row.facts }
}
