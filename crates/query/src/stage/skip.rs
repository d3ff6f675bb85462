//! `$skip`.

use super::needs::Needs;
use super::parsed::Parsed;
use super::running::{Running, Start};
use super::step::Step;
use super::upstream::Upstream;
use crate::expr::ParseCtx;
use crate::matcher::parse_non_negative;
use pando_base::{Error, Result};
use pando_bson::Elem;

/// Not the first so many documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Skip(pub(super) u64);

pub(super) fn parse(e: Elem<'_>, _: &mut ParseCtx<'_>) -> Result<Skip> {
    let n = parse_non_negative(e)
        .map_err(|m| Error::location(5107200, format!("invalid argument to $skip stage: {m}")))?;
    Ok(Skip(n as u64))
}

impl Parsed for Skip {
    fn start(self, _: &mut Start<'_>) -> Result<Box<dyn Running>> {
        Ok(Box::new(Skipping { left: self.0 }))
    }
    fn needs(&self, _: &mut Needs) {}
}

struct Skipping {
    left: u64,
}

impl Running for Skipping {
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
}
