//! Which fields of a document are returned.
