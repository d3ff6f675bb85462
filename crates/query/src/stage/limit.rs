//! `$limit`.

use super::needs::Needs;
use super::parsed::Parsed;
use super::running::{Running, Start};
use super::step::Step;
use super::upstream::Upstream;
use crate::expr::ParseCtx;
use crate::matcher::parse_non_negative;
use pando_base::{Error, Result};
use pando_bson::Elem;

/// So many documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit(pub(super) u64);

pub(super) fn parse(e: Elem<'_>, _: &mut ParseCtx<'_>) -> Result<Limit> {
    let n = parse_non_negative(e)
        .map_err(|m| Error::location(5107201, format!("invalid argument to $limit stage: {m}")))?;
    if n == 0 {
        return Err(Error::location(15958, "the limit must be positive"));
    }
    Ok(Limit(n as u64))
}

impl Parsed for Limit {
    fn start(self, _: &mut Start<'_>) -> Result<Box<dyn Running>> {
        Ok(Box::new(Limiting { left: self.0 }))
    }
    fn needs(&self, _: &mut Needs) {}
}

struct Limiting {
    left: u64,
}

impl Running for Limiting {
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
}
