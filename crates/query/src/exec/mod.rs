//! The executor: pulls rows through a plan's stages, stops when its quota is used up, and can be put away.
//!
//! ```text
//!   next(source, quota) ──► Project ─► Sort ─► Fetch ─► IxScan ─► source cursor
//!        Row / NeedYield / Eof          ▲ keeps what it has collected across yields
//! ```
//!
//! * A stage is asked for its next row and answers with a row, "out of quota" or "end". Out of quota unwinds
//!   the whole stack; the next call goes on where it stopped.
//! * The caller owns the [`Source`](crate::source::Source). It may hand in the same one again, or [`Executor::save`] first and come
//!   back later with another one at a newer snapshot (`getMore`, or a yield): scans then reopen their
//!   cursors after the last entry they consumed. Rows that a blocking stage kept from before are checked
//!   against the filter again when their documents are fetched.
//! * With several candidate plans the first calls let them race ([`race`]); what the winner has found
//!   meanwhile is kept.

mod build;
mod combine;
mod distinct;
mod executor;
mod flow;
mod near;
mod race;
mod record_set;
mod scan;
mod shard_filter;
mod sort;
mod stage;
pub mod stats;
mod text;

pub use executor::Executor;
pub use race::{Rejected, Trial};
pub(crate) use stage::{Cx, KeyData, Next, Row, Stage};
pub use stage::{Each, Fed, OutRow, Quota, Resources, Step};
pub use stats::StageStats;

#[cfg(test)]
mod tests;
