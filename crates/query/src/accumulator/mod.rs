//! Accumulators: what `$group` computes per group, also used over arrays by the expressions of the same names.
//!
//! An accumulator takes values one by one and gives a result. When a group moves to disk its state leaves as a
//! [`Accumulator::partial`] value and comes back through [`Accumulator::merge`]. One file per family; the
//! rows that make them known to `$group` are in [`registry`].

mod first_last;
mod keys_of;
mod list;
mod min_max;
mod n_family;
mod objects;
pub(crate) mod percentile;
mod registry;
mod script;
mod state;
mod std_dev;
pub(crate) mod sum;

pub(crate) use first_last::{First, Last};
pub(crate) use list::{AddToSet, Push};
pub(crate) use min_max::{MinMax, Stays};
pub(crate) use n_family::{NFamily, NKind, check_n};
pub(crate) use objects::{MergeObjects, merged};
pub(crate) use percentile::parse_percentile;
pub(crate) use registry::{AccSpec, names, parse, parse_window};
pub(crate) use state::Accumulator;
pub(crate) use std_dev::StdDev;
pub(crate) use sum::{Avg, Sum};
