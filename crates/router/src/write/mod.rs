//! Writes: where each statement goes, what is sent together, and what the client is told.

pub(crate) mod batch;
pub(crate) mod execute;
pub(crate) mod new_id;
pub(crate) mod reply;
pub(crate) mod targeting;
pub(crate) mod without_key;
