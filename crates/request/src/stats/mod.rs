//! Commands that measure and check what is stored.

pub mod coll_stats;
pub mod compact;
pub mod data_size;
pub mod db_stats;
pub mod split_vector;
pub mod validate;
pub mod validate_db_metadata;
