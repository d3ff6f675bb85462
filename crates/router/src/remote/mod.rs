//! Commands to shards: what goes with each, one or several of them, and when they are routed again.

pub(crate) mod call;
pub(crate) mod envelope;
pub(crate) mod scatter;
pub(crate) mod stale;
pub(crate) mod together;
