//! `$skip`.

use super::{FindPart, Needs, Stage, Step, Upstream};
use crate::expr::ParseCtx;
use crate::matcher::parse_non_negative;
use pando_base::{Error, Result};
use pando_bson::Elem;

struct Skip {
    left: u64,
}

pub(super) fn parse(e: Elem<'_>, _: &mut ParseCtx<'_>, out: &mut Vec<Box<dyn Stage>>) -> Result<()> {
    let n = parse_non_negative(e)
        .map_err(|m| Error::location(5107200, format!("invalid argument to $skip stage: {m}")))?;
    out.push(Box::new(Skip { left: n as u64 }));
    Ok(())
}

impl Stage for Skip {
    fn may_nest(&self) -> bool {
        false
    }
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        loop {
            let step = up.next()?;
            if matches!(step, Step::Row(_)) && self.left > 0 {
                self.left -= 1;
                continue;
            }
            return Ok(step);
        }
    }
    fn needs(&self, _: &mut Needs) {}
    fn as_skip(&self) -> Option<u64> {
        Some(self.left)
    }
    fn push_down(&mut self, find: &mut FindPart) -> bool {
        match find.limit {
            None => {
                find.skip = find.skip.saturating_add(self.left);
                true
            }
            // The plan skips before it limits; with nothing left over this stage ends the rows itself.
            Some(limit) if self.left < limit => {
                find.skip = find.skip.saturating_add(self.left);
                find.limit = Some(limit - self.left);
                true
            }
            Some(_) => false,
        }
    }
}
