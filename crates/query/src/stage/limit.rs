//! `$limit`.

use super::{FindPart, Needs, Stage, Step, Upstream};
use crate::expr::ParseCtx;
use crate::matcher::parse_non_negative;
use pando_base::{Error, Result};
use pando_bson::Elem;

struct Limit {
    left: u64,
}

pub(super) fn parse(e: Elem<'_>, _: &mut ParseCtx<'_>, out: &mut Vec<Box<dyn Stage>>) -> Result<()> {
    let n = parse_non_negative(e)
        .map_err(|m| Error::location(5107201, format!("invalid argument to $limit stage: {m}")))?;
    if n == 0 {
        return Err(Error::location(15958, "the limit must be positive"));
    }
    out.push(limit(n as u64));
    Ok(())
}

pub(super) fn limit(n: u64) -> Box<dyn Stage> {
    Box::new(Limit { left: n })
}

impl Stage for Limit {
    fn may_nest(&self) -> bool {
        false
    }
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        if self.left == 0 {
            return Ok(Step::Eof);
        }
        let step = up.next()?;
        if matches!(step, Step::Row(_)) {
            self.left -= 1;
        }
        Ok(step)
    }
    fn needs(&self, _: &mut Needs) {}
    fn push_down(&mut self, find: &mut FindPart) -> bool {
        find.limit = Some(find.limit.map_or(self.left, |l| l.min(self.left)));
        true
    }
    fn as_limit(&self) -> Option<u64> {
        Some(self.left)
    }
}
