//! What every call to a shard goes through: who the shards are, connections, and the times that all calls hand on.

use crate::write::new_id::Stamps;
use pando_env::Env;
use pando_fleet::Fleet;
use pando_metadata_cache::MetadataCache;
use pando_metadata_cache::Times;
use std::sync::Arc;

/// Cheap to clone.
#[derive(Clone)]
pub struct Shards {
    pub(crate) env: Env,
    pub(crate) times: Arc<Times>,
    pub(crate) fleet: Fleet,
    pub(crate) catalog: Arc<MetadataCache>,
    pub(crate) stamps: Arc<Stamps>,
}
