//! Accumulators over a window: those of `$group`.

use super::bounds::Bounds;
use super::function::Function;
use super::partition::Partition;
use crate::accumulator::{AccSpec, Accumulator};
use crate::ctx::QueryCtx;
use crate::expr::{Scope, Val};
use pando_base::Result;
use std::ops::Range;

pub(super) struct Accumulate {
    spec: AccSpec,
    bounds: Bounds,
    now: Option<Now>,
}

/// What has been added, and what came of it.
struct Now {
    acc: Box<dyn Accumulator>,
    added: Range<usize>,
    value: Val<'static>,
}

impl Accumulate {
    pub(super) fn new(spec: AccSpec, bounds: Bounds) -> Accumulate {
        let spec = if bounds.only_grows() { spec } else { spec.of_window() };
        Accumulate { spec, bounds, now: None }
    }
}

impl Function for Accumulate {
    fn prepare(&mut self, ctx: &QueryCtx) -> Result<()> {
        self.spec.start(&Val::Missing, ctx).map(drop)
    }
    fn begin(&mut self, _: &Partition, _: &QueryCtx) -> Result<()> {
        self.bounds.restart();
        self.now = None;
        Ok(())
    }
    fn value(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Val<'static>, usize)> {
        let window = self.bounds.window(p, at)?;
        if let Some(now) = &self.now
            && now.added == window
        {
            return Ok((now.value.clone(), 1));
        }
        let grown =
            |now: &Now| now.acc.goes_on() && now.added.start == window.start && now.added.end <= window.end;
        let (mut acc, from) = match self.now.take() {
            Some(now) if grown(&now) => (now.acc, now.added.end),
            _ => (self.spec.start(&Val::Missing, ctx)?, window.start),
        };
        for i in from..window.end {
            self.spec.feed(&mut *acc, &Scope::new(p.row(i)?.doc(), ctx))?;
        }
        let value = acc.result()?;
        let steps = window.end - from + 1;
        self.now = Some(Now { acc, added: window, value: value.clone() });
        Ok((value, steps))
    }
}
