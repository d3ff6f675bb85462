//! Who uses the set, and what was promised to them.

pub(super) mod acknowledged;
pub(super) mod anything;
pub(super) mod appends;
pub(super) mod bank;
pub(super) mod caller;
pub(super) mod concerns;
pub(super) mod late;
pub(super) mod lists;
pub(super) mod register;
mod session;
pub(super) mod watcher;

use pando_bson::RawDoc;

/// The reply of a member that takes no writes, or takes them no more.
fn is_not_primary(reply: &RawDoc) -> bool {
    matches!(reply.get("code").and_then(|v| v.as_i64()), Some(10107 | 11602 | 13435 | 189 | 91 | 11600))
}
