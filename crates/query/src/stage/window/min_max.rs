//! `$min` and `$max` over a window: only those values are kept that can still become the answer.

use super::bounds::Bounds;
use super::function::Function;
use super::partition::Partition;
use crate::ctx::QueryCtx;
use crate::expr::{Expr, Val};
use pando_base::Result;
use pando_bson::Value;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Range;

pub(super) struct MinMax {
    input: Expr,
    max: bool,
    bounds: Bounds,
    held: Range<usize>,
    /// Positions and values, the answer in front; each is better than all behind it were when it came.
    kept: VecDeque<(usize, Val<'static>)>,
}

impl MinMax {
    pub(super) fn new(input: Expr, max: bool, bounds: Bounds) -> MinMax {
        MinMax { input, max, bounds, held: 0..0, kept: VecDeque::new() }
    }
    fn add(&mut self, at: usize, v: Val<'static>, ctx: &QueryCtx) {
        // Of equals the first counts, except for the largest of a window that documents leave.
        let latest = self.max && !self.bounds.only_grows();
        while let Some((_, last)) = self.kept.back() {
            let order = ctx.compare(last.value().unwrap_or(Value::Null), v.value().unwrap_or(Value::Null));
            let better = if self.max { Ordering::Less } else { Ordering::Greater };
            if order == better || (latest && order.is_eq()) {
                self.kept.pop_back();
            } else {
                break;
            }
        }
        self.kept.push_back((at, v));
    }
}

impl Function for MinMax {
    fn begin(&mut self, _: &Partition, _: &QueryCtx) -> Result<()> {
        self.bounds.restart();
        self.held = 0..0;
        self.kept.clear();
        Ok(())
    }
    fn value(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Val<'static>, usize)> {
        let window = self.bounds.window(p, at)?;
        let from = self.held.end.max(window.start);
        for i in from..window.end {
            let row = p.row(i)?;
            let v = self.input.eval_doc(row.doc(), ctx)?;
            if !v.is_nullish() {
                self.add(i, v.into_owned(), ctx);
            }
        }
        while self.kept.front().is_some_and(|(i, _)| *i < window.start) {
            self.kept.pop_front();
        }
        let steps = window.end.saturating_sub(from) + 1;
        self.held = window;
        Ok((self.kept.front().map_or(Val::NULL, |(_, v)| v.clone()), steps))
    }
}
