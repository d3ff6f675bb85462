//! Aggregation pipelines: stages as data, and stages that run.
//!
//! ```text
//!   [{$match: …}, {$group: …}]
//!      │ Pipeline::parse              ▲ Pipeline::spelled, for another server
//!      ▼                              │
//!   Pipeline: stages as data ─────────┴──► Pipeline::split: a part for each shard, a part that merges
//!      │ Pipeline::take_find: leading filter, sort, skip, limit ──► the find planner
//!      ▼ Pipeline::start
//!   Runner:  input ◄─ pulls ─ [$match] ◄─ pulls ─ [$group] ◄─ Runner::next
//! ```
//!
//! A parsed stage ([`parsed::Parsed`], one of [`spec::Spec`]) can be cloned, compared, written down and asked what it
//! depends on; what optimises pipelines ([`optimize`]) looks at that data and moves it about. Starting a stage makes a
//! [`running::Running`] of it, which pulls documents from the ones before. One that is told `NeedYield` returns it at once
//! and goes on where it was when called again, so the caller may drop and reopen its snapshot between calls.
//!
//! One stage per file, one row each in [`registry`]. Reshaping of single documents ([`transform`]) is shared
//! with pipeline updates.

mod add_fields;
mod ask_buckets;
mod bounded_sort;
mod bucket;
mod bucket_auto;
mod bucket_ends;
mod bucket_frontier;
mod bucket_order;
mod collections;
mod conditions;
mod count;
mod densify;
mod dependencies;
mod distances;
mod element;
mod ends_of_buckets;
mod explained;
mod facet;
mod fill;
mod find_part;
mod first_look;
mod foreign;
mod forwarded;
mod geo_near;
mod granularity;
mod graph_lookup;
mod group;
mod group_table;
mod held;
mod in_transaction;
mod into_buckets;
mod involved;
mod join_room;
mod join_stats;
mod limit;
mod local_values;
mod lookup;
mod lookup_hash;
mod lookup_probe;
mod lookup_spec;
mod match_forward;
mod matching;
mod merged;
mod metas;
mod near_buckets;
mod needs;
mod optimize;
mod parse;
mod parsed;
mod paths;
mod pipeline;
mod places;
mod redact;
mod registry;
mod reorder;
mod replace_root;
mod row;
mod runner;
mod running;
mod sample;
pub(crate) mod shape;
mod sinks;
mod skip;
mod sort;
mod sort_by_count;
mod sources;
mod spec;
mod spelled;
mod split;
mod split_event;
mod step;
mod sub_pipeline;
mod transform;
mod union_with;
mod unpack_bucket;
mod unsorted;
mod unwind;
mod update_stage;
mod upstream;
mod window;

pub use ask_buckets::{bucket_filter, partial_filter};
pub use collections::{Collections, Elsewhere, Examined, Opened, Target};
pub use dependencies::Dependencies;
pub use find_part::FindPart;
pub use first_look::{Glance, first_look};
pub use geo_near::NearPart;
pub use held::{Held, RanStage};
pub use in_transaction::check_in_transaction;
pub use involved::involved;
pub use join_stats::JoinStats;
pub use merged::Merged;
pub use pipeline::Pipeline;
pub use places::{NOT_FIRST, NOT_LAST, check_first_stage, check_places, first_stage, place_of_first};
pub(crate) use registry::names;
pub use row::Row;
pub use runner::Runner;
pub use running::RunEnv;
pub use shape::check_plain_projection;
pub use sinks::{Into, Merge, Sink, WhenMatched, WhenNotMatched, sinks_of};
pub use sources::{Literal, PipelineSource};
pub use split::{Asked, MergeHost, MergeOrder, OrderedBy, Split};
pub use step::{Input, Step};
pub(crate) use transform::Transform;
pub use unpack_bucket::measurements;
pub(crate) use update_stage::parse_update_stage;
pub(crate) use window::names as window_names;

#[cfg(test)]
mod ask_buckets_tests;
#[cfg(test)]
mod forwarded_tests;
#[cfg(test)]
mod tests;
