//! The stages before a running one, as it pulls from them.

use super::row::Row;
use super::running::Running;
use super::step::{Input, Step};
use crate::ctx::QueryCtx;
use crate::exec::{Each, Fed};
use pando_base::limits::{BSON_INTERNAL_BYTES_MAX, EXPRESSION_VALUES_BYTES_MAX, STAGE_ROWS_PER_TURN};
use pando_base::{Error, ErrorCode, Result, patience};

/// The stages before one stage, with the input in front of them.
pub(crate) struct Upstream<'a> {
    pub(super) stages: &'a mut [Box<dyn Running>],
    /// Rows that each of them gave.
    pub(super) returned: &'a mut [u64],
    pub(super) input: &'a mut dyn Input,
    /// An error came from the input: it has its own context.
    pub(super) input_failed: &'a mut bool,
    /// Rows that stages may still give before others get a chance to run: some make many out of one.
    pub(super) budget: &'a mut u32,
    pub(super) ctx: &'a QueryCtx,
}

impl<'a> Upstream<'a> {
    pub(crate) fn next(&mut self) -> Result<Step> {
        match (self.stages.split_last_mut(), self.returned.split_last_mut()) {
            (Some((last, before)), Some((count, returned))) => {
                if *self.budget == 0 {
                    *self.budget = STAGE_ROWS_PER_TURN;
                    return Ok(Step::NeedYield);
                }
                *self.budget -= 1;
                let step = last.next(&mut Upstream {
                    stages: before,
                    returned,
                    input: self.input,
                    input_failed: self.input_failed,
                    budget: self.budget,
                    ctx: self.ctx,
                })?;
                if let Step::Row(row) = &step {
                    *count += 1;
                    check_row(row)?;
                }
                patience::check()?;
                Ok(step)
            }
            _ => self.input.next().inspect_err(|_| *self.input_failed = true),
        }
    }
    /// Shows the documents to come to `each`.
    pub(crate) fn feed(&mut self, each: &mut Each<'_>) -> Result<Fed> {
        if self.stages.is_empty()
            && let Some(end) = self.input.feed(each)
        {
            return end.inspect_err(|_| *self.input_failed = true);
        }
        if let Some(end) = self.feed_from_last(each) {
            return end;
        }
        loop {
            match self.next()? {
                Step::Row(row) if each(row.bytes())? => {}
                Step::Row(_) => return Ok(Fed::Stopped),
                Step::NeedYield => return Ok(Fed::NeedYield),
                Step::Eof => return Ok(Fed::Eof),
            }
        }
    }
    /// `None` when the last of the stages gives rows only.
    fn feed_from_last(&mut self, each: &mut Each<'_>) -> Option<Result<Fed>> {
        let (last, before) = self.stages.split_last_mut()?;
        let (count, returned) = self.returned.split_last_mut()?;
        let mut up = Upstream {
            stages: before,
            returned,
            input: self.input,
            input_failed: self.input_failed,
            budget: self.budget,
            ctx: self.ctx,
        };
        let mut counted = |doc: &[u8]| {
            *count += 1;
            each(doc)
        };
        last.feed(&mut up, &mut counted)
    }
    pub(crate) fn ctx(&self) -> &'a QueryCtx {
        self.ctx
    }
}

/// A row on its way from stage to stage: as large as a value may be, and then the document around it.
const ROW_BYTES_MAX: usize = EXPRESSION_VALUES_BYTES_MAX + BSON_INTERNAL_BYTES_MAX;
/// Bytes of a row that are copied in one step.
pub(super) const ROW_BYTES_PER_STEP: usize = 1024;

#[inline]
fn check_row(row: &Row) -> Result<()> {
    let bytes = row.bytes().len();
    patience::spend(1 + bytes / ROW_BYTES_PER_STEP)?;
    if bytes <= ROW_BYTES_MAX {
        return Ok(());
    }
    let max = BSON_INTERNAL_BYTES_MAX;
    let text =
        format!("BSONObj size: {bytes} (0x{bytes:X}) is invalid. Size must be between 0 and {max}(16MB)");
    Err(Error::new(ErrorCode::BSONObjectTooLarge, text))
}
