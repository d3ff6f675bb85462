//! The name of a shard: `_id` in `config.shards`, by default the name of its replica set.

use std::fmt;
use std::sync::Arc;

/// Cheap to clone; ordered by its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(Arc<str>);

impl ShardId {
    pub fn new(name: &str) -> ShardId {
        ShardId(name.into())
    }
    /// The config servers where they hold data as a shard does (SH-ROLE-1).
    pub fn config() -> ShardId {
        ShardId::new("config")
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl fmt::Debug for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
