//! What stages count, for explain.

/// Counters of one stage and its inputs, in the plan's shape.
#[derive(Clone, Debug, Default)]
pub struct StageStats {
    /// Steps taken.
    pub works: u64,
    /// Rows given.
    pub advanced: u64,
    pub saves: u64,
    pub eof: bool,
    pub keys_examined: u64,
    pub docs_examined: u64,
    pub seeks: u64,
    pub dups_tested: u64,
    pub dups_dropped: u64,
    /// Sorts: bytes of all rows, times and bytes spilled.
    pub sorted_bytes: u64,
    pub spills: u64,
    pub spilled_bytes: u64,
    /// What the stage holds in memory now.
    pub held_bytes: u64,
    /// Documents that a text search found by a term and refused.
    pub docs_rejected: u64,
    /// Documents that belong to another shard.
    pub chunk_skips: u64,
    pub inputs: Vec<StageStats>,
}

impl StageStats {
    pub fn total_keys_examined(&self) -> u64 {
        self.keys_examined + self.inputs.iter().map(StageStats::total_keys_examined).sum::<u64>()
    }
    pub fn total_docs_examined(&self) -> u64 {
        self.docs_examined + self.inputs.iter().map(StageStats::total_docs_examined).sum::<u64>()
    }
    pub fn total_held_bytes(&self) -> u64 {
        self.held_bytes + self.inputs.iter().map(StageStats::total_held_bytes).sum::<u64>()
    }
    /// Steps that gave neither a row nor the end.
    pub fn need_time(&self) -> u64 {
        self.works.saturating_sub(self.advanced + u64::from(self.eof))
    }
    pub fn used_disk(&self) -> bool {
        self.spills > 0 || self.inputs.iter().any(StageStats::used_disk)
    }
}
