//! How a server ends.

pub(crate) mod shutdown;
