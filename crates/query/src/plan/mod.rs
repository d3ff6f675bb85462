//! From a query and a collection's indexes to plans.
//!
//! [`solutions`] enumerates the plans worth trying: one per useful index (per choice of condition on array
//! fields), a union of scans for `$or`, an index that gives the wanted order, and, if none of these exist, the
//! scan of the collection. With more than one, the executor lets them race for a few hundred steps and
//! remembers the winner per query shape in the collection's [`PlanCache`].
//!
//! * [`interval`], [`bounds`] — a condition as intervals of values in one index field
//! * `predicates`, `eligible`, `access` — which conditions an index may serve, with arrays, sparse, partial,
//!   collation and wildcard rules
//! * `key_bounds` — intervals as ranges of key bytes
//! * `text` — plans for `$text`
//! * `candidates`, `finish` — whole plans; `explain` — how they are shown; `cache`, `shape` — remembered choices
//! * `filters` — which indexes a shape may use

mod access;
mod bound_field;
pub mod bounds;
mod cache;
mod candidates;
mod clustered;
mod distinct;
mod eligible;
pub mod explain;
mod filters;
mod finish;
mod firsts;
pub mod interval;
mod key_bounds;
mod leftover;
mod near;
mod near_output;
mod node;
mod order;
mod predicates;
mod query;
mod shape;
mod shard_filter;
mod text;
mod union;
mod wildcard_paths;

pub use bound_field::BoundField;
pub use cache::{CachedPlan, PlanCache};
pub use candidates::{Solution, check_one_order, solutions};
pub use distinct::{distinct_plan, reads_only};
pub use eligible::{compares_strings, implies, wildcard_covers};
pub use filters::{IndexFilter, IndexFilters};
pub use firsts::{Firsts, Pick};
pub use key_bounds::{KeyBounds, KeyCheck};
pub use near_output::NearOutput;
pub use node::{
    CollScan, DistinctScan, GeoNear, Gives, IxScan, PlanNode, ProjectKind, SortKeySource, TextMatch,
};
pub use query::{Hint, Query, QueryKind, natural_of};
pub use shape::{cache_key, query_shape};
