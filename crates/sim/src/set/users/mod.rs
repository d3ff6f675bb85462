//! Who uses the set, and what was promised to them.

pub(crate) mod acknowledged;
pub(crate) mod anything;
pub(crate) mod appends;
pub(crate) mod bank;
pub(crate) mod caller;
pub(crate) mod concerns;
pub(crate) mod late;
pub(crate) mod lists;
pub(crate) mod register;
pub(crate) mod session;
pub(crate) mod watcher;

use pando_bson::RawDoc;

/// The reply of a member that takes no writes, or takes them no more.
pub(crate) fn is_not_primary(reply: &RawDoc) -> bool {
    matches!(reply.get("code").and_then(|v| v.as_i64()), Some(10107 | 11602 | 13435 | 189 | 91 | 11600))
}
