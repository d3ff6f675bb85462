//! Which names may be created, written and dropped.

use crate::Catalog;
use pando_base::{Error, ErrorCode, Namespace, Result, limits};

/// `system.` collections that exist by design.
fn is_known_system(ns: &Namespace) -> bool {
    let coll = ns.coll();
    let anywhere = matches!(coll, "system.views" | "system.js" | "system.profile" | "system.users")
        || coll.starts_with("system.buckets.");
    anywhere
        || match ns.db() {
            "admin" => matches!(
                coll,
                "system.version"
                    | "system.roles"
                    | "system.keys"
                    | "system.new_users"
                    | "system.backup_users"
            ),
            "config" => {
                coll == "system.sessions" || coll == "system.preimages" || coll.starts_with("system.sharding")
            }
            "local" => matches!(
                coll,
                "system.replset" | "system.rollback.id" | "system.healthlog" | "system.indexBuilds"
            ),
            _ => false,
        }
}

/// Error when no collection or view may have this name.
pub fn check_creatable(ns: &Namespace) -> Result<()> {
    let coll = ns.coll();
    if coll.contains('$') || coll.starts_with('.') || coll.is_empty() {
        return Err(Error::new(ErrorCode::InvalidNamespace, format!("Invalid collection name: {coll}")));
    }
    if ns.as_str().len() > limits::NAMESPACE_BYTES_MAX {
        let max = limits::NAMESPACE_BYTES_MAX;
        let text = format!("Fully qualified namespace is too long. Namespace: {ns} Max: {max}");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    if ns.coll().starts_with("system.") && !is_known_system(ns) {
        return Err(Error::new(ErrorCode::InvalidNamespace, format!("Invalid system namespace: {ns}")));
    }
    Ok(())
}

/// Error when users may not insert, update or delete there.
pub fn check_writable(ns: &Namespace) -> Result<()> {
    if ns.coll() == "system.views" {
        return Err(Error::new(ErrorCode::InvalidNamespace, format!("cannot write to {ns}")));
    }
    if ns.db() == "local" && ns.coll() == "oplog.rs" {
        return Err(Error::new(ErrorCode::InvalidNamespace, format!("cannot write to {ns}")));
    }
    check_creatable(ns)
}

pub(crate) fn differs_in_case(existing: &str, wanted: &str) -> Error {
    Error::new(
        ErrorCode::DatabaseDifferCase,
        format!(
            "db already exists with different case already have: [{existing}] trying to create [{wanted}]"
        ),
    )
}

pub(crate) fn check_droppable(catalog: &Catalog, ns: &Namespace) -> Result<()> {
    if ns.db() == "local" && ns.coll() == "oplog.rs" && catalog.exposes_oplog() {
        return Err(Error::location(5_255_000, "can't drop live oplog while replicating"));
    }
    if ns.coll() == "system.version" && ns.db() == "admin" {
        return Err(Error::new(ErrorCode::IllegalOperation, format!("can't drop system collection {ns}")));
    }
    Ok(())
}

pub(crate) fn check_database_droppable(catalog: &Catalog, db: &str) -> Result<()> {
    if db == "admin" {
        return Err(Error::new(ErrorCode::IllegalOperation, "Dropping the 'admin' database is prohibited."));
    }
    if db == "local" && catalog.exposes_oplog() {
        return Err(Error::new(
            ErrorCode::IllegalOperation,
            "Cannot drop 'local' database while replication is active",
        ));
    }
    Ok(())
}
