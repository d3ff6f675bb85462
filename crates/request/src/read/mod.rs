//! Commands that read.

pub mod aggregate;
pub mod count;
pub mod distinct;
pub mod explain;
pub mod file_md5;
pub mod find;
pub mod get_more;
pub mod map_reduce;
pub mod map_reduce_pipeline;
pub mod plan_cache;
pub mod read_concerns;
pub mod resume_token;
