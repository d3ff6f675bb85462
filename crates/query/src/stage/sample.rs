//! `$sample`: a reservoir of the wanted size, given back in random order.

use super::{Needs, Row, Stage, Step, Upstream};
use crate::expr::ParseCtx;
use crate::number::Number;
use pando_base::limits::SORT_MEMORY_BYTES_MAX;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{Elem, Value};

struct Sample {
    size: u64,
    seen: u64,
    bytes: usize,
    kept: Vec<Row>,
    full: bool,
}

pub(super) fn parse(e: Elem<'_>, _: &mut ParseCtx<'_>, out: &mut Vec<Box<dyn Stage>>) -> Result<()> {
    let Value::Document(spec) = e.value() else {
        return Err(Error::location(28745, "the $sample stage specification must be an object"));
    };
    let mut size = None;
    for f in spec {
        if f.name() != "size" {
            return Err(Error::location(28748, format!("unrecognized option to $sample: {}", f.name())));
        }
        let Some(n) = Number::of(f.value()) else {
            return Err(Error::location(28746, "size argument to $sample must be a number"));
        };
        let n = n.truncate_i64().unwrap_or(i64::MAX);
        if n < 0 {
            return Err(Error::location(28747, "size argument to $sample must not be negative"));
        }
        size = Some(n as u64);
    }
    let size = size.ok_or_else(|| Error::location(28749, "$sample stage must specify a size"))?;
    out.push(Box::new(Sample { size, seen: 0, bytes: 0, kept: Vec::new(), full: false }));
    Ok(())
}

impl Sample {
    fn keep(&mut self, row: Row, up: &Upstream<'_>) -> Result<()> {
        self.seen += 1;
        if (self.kept.len() as u64) < self.size {
            self.bytes += row.bytes().len();
            self.kept.push(row);
        } else {
            let at = up.ctx().random.next_u64() % self.seen;
            if let Some(slot) = usize::try_from(at).ok().and_then(|at| self.kept.get_mut(at)) {
                self.bytes = self.bytes - slot.bytes().len() + row.bytes().len();
                *slot = row;
            }
        }
        if self.bytes > SORT_MEMORY_BYTES_MAX {
            return Err(Error::new(
                ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
                format!("$sample exceeded memory limit of {SORT_MEMORY_BYTES_MAX} bytes"),
            ));
        }
        Ok(())
    }
}

impl Stage for Sample {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        while !self.full {
            match up.next()? {
                Step::Row(row) => self.keep(row, up)?,
                Step::NeedYield => return Ok(Step::NeedYield),
                Step::Eof => {
                    for i in (1..self.kept.len()).rev() {
                        let j = up.ctx().random.next_u64() % (i as u64 + 1);
                        self.kept.swap(i, j as usize);
                    }
                    self.full = true;
                }
            }
        }
        Ok(self.kept.pop().map_or(Step::Eof, Step::Row))
    }
    fn needs(&self, _: &mut Needs) {}
}
