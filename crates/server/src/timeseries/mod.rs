//! Writes to a time series: measurements go into buckets, updates speak of sources, deletes of these or of measurements.
//!
//! ```text
//! insert ─► stage: a bucket per source and span, from memory, from the collection or new ─► one unit of work
//! update, delete by source ─► the same on the collection of buckets
//! delete by anything else ─► buckets that may hold such measurements, written without them
//! ```

mod by_source;
mod insert;
mod measured;
mod open_buckets;
mod stage;

pub(crate) use open_buckets::{BucketCounts, OpenBuckets};
