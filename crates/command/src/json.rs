//! Documents as JSON text for log lines.

/// The document as relaxed extended JSON, one line.
pub use pando_bson::extjson::to_relaxed as relaxed;
