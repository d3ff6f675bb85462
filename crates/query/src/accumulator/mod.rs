//! Accumulators: what `$group` computes per group, also used over arrays by the expressions of the same names.
//!
//! An accumulator takes values one by one and gives a result. When a group moves to disk its state leaves as a
//! [`Accumulator::partial`] value and comes back through [`Accumulator::merge`]. One file per family; the
//! rows that make them known to `$group` are in [`registry`].

mod first_last;
mod list;
mod min_max;
mod n_family;
mod objects;
pub(crate) mod percentile;
mod registry;
mod script;
mod std_dev;
pub(crate) mod sum;

pub(crate) use registry::{AccSpec, names, parse, parse_percentile, parse_window};

use crate::ctx::QueryCtx;
use crate::expr::Val;
use pando_base::Result;

pub(crate) trait Accumulator: Send {
    fn add(&mut self, v: Val<'_>, ctx: &QueryCtx) -> Result<()>;
    fn result(&mut self) -> Result<Val<'static>>;
    /// Whether it can go on after a result was taken.
    fn goes_on(&self) -> bool {
        true
    }
    /// As `add`, for accumulators that choose by a sort key.
    fn add_keyed(&mut self, _key: &[u8], v: Val<'_>, ctx: &QueryCtx) -> Result<()> {
        self.add(v, ctx)
    }
    /// Bytes beyond the struct itself.
    fn heap_bytes(&self) -> usize {
        0
    }
    /// The state as a value that [`Accumulator::merge`] of a fresh accumulator understands.
    fn partial(&mut self) -> Result<Val<'static>>;
    fn merge(&mut self, partial: Val<'_>, ctx: &QueryCtx) -> Result<()>;
}

pub(crate) use first_last::{First, Last};
pub(crate) use list::{AddToSet, Push};
pub(crate) use min_max::{MinMax, Stays};
pub(crate) use n_family::{NFamily, NKind, check_n};
pub(crate) use objects::{MergeObjects, merged};
pub(crate) use std_dev::StdDev;
pub(crate) use sum::{Avg, Sum};
