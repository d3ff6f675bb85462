//! What there is, and how large it is.

pub(super) mod cursors;
pub(super) mod list_databases;
pub(super) mod stats;
pub(super) mod validate_db_metadata;
