//! Time series: measurements kept in buckets, as pure code.
//!
//! [`TimeSeries`] says which field is the time and which tells the source; [`Bucket`] takes measurements in. The view
//! that users read is `$_internalUnpackBucket` over the collection of buckets.

mod bucket;
mod compressed;
mod definition;
mod extent;
mod extremes;
mod indexes;
mod meta_only;

pub use crate::geo::BUCKET_OPERATOR as BUCKET_GEO;
pub use crate::matcher::BUCKET_HOLDS;
pub use bucket::{Bucket, NoRoom, id_seconds};
pub use compressed::{is_compressed, measurements_in, uncompressed};
pub use definition::{Bucketing, Granularity, TimeSeries};
pub use extent::{Extent, hides_values};
pub use indexes::{BUCKET_2DSPHERE, index_of_users, index_on_buckets, key_on_buckets};
pub use meta_only::{filter_on_meta, has_source, update_on_meta};

#[cfg(test)]
mod tests;
