//! The arguments of `enableSharding`.

use crate::declare::arguments;
use crate::declare::kinds::Text;

arguments! {
    /// What `enableSharding` asks for. Its first element is a database.
    pub struct EnableShardingArgs of "enableSharding" as "enableSharding", keeping {
        /// The shard that is to have what is not sharded.
        "primaryShard" primary: optional Text,
        "primaryShardId" primary_id: optional Text,
    }
}
