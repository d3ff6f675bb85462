//! Which names may be created, written and dropped.

use pando_base::ns::EXTERNAL;
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid, limits};
use pando_bson::{RawDoc, Value};

/// Definitions of a database's views are documents there.
pub(crate) const SYSTEM_VIEWS: &str = "system.views";

/// Names under which tables are read. Nobody may write there, whether the tables are shown (on members of a set) or not.
pub fn is_table_name(ns: &Namespace) -> bool {
    match ns.db() {
        "config" => matches!(ns.coll(), "transactions" | "image_collection"),
        "local" => ns.coll() == "replset.minvalid",
        _ => false,
    }
}

/// `system.` collections that exist by design.
fn is_known_system(ns: &Namespace) -> bool {
    let coll = ns.coll();
    let anywhere = matches!(coll, "system.views" | "system.js" | "system.profile" | "system.users")
        || coll.starts_with("system.buckets.");
    anywhere
        || match ns.db() {
            "admin" => {
                matches!(coll, "system.version" | "system.roles" | "system.keys" | "system.backup_users")
            }
            "config" => {
                matches!(coll, "system.sessions" | "system.preimages" | "system.indexBuilds")
                    || coll.starts_with("system.sharding")
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
    // Users whose credentials are elsewhere are of this database, and nothing else is.
    if ns.db() == EXTERNAL {
        return Err(Error::new(ErrorCode::InvalidNamespace, format!("Invalid namespace: {ns}")));
    }
    if coll.contains('$') || coll.starts_with('.') || coll.is_empty() {
        return Err(Error::new(ErrorCode::InvalidNamespace, format!("Invalid collection name: {coll}")));
    }
    if ns.as_str().len() > limits::NAMESPACE_BYTES_MAX {
        let max = limits::NAMESPACE_BYTES_MAX;
        let text = format!("Fully qualified namespace is too long. Namespace: {ns} Max: {max}");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    if coll.contains(".system.") {
        return Err(Error::bad_value(format!("Invalid namespace: {ns}")));
    }
    if is_table_name(ns) {
        return Err(Error::new(ErrorCode::NamespaceExists, format!("Collection {ns} already exists.")));
    }
    if ns.coll().starts_with("system.") && !is_known_system(ns) {
        return Err(Error::new(ErrorCode::InvalidNamespace, format!("Invalid system namespace: {ns}")));
    }
    Ok(())
}

pub(crate) fn cannot_write(ns: &Namespace) -> Error {
    Error::new(ErrorCode::InvalidNamespace, format!("cannot write to {ns}"))
}

/// Error when no view may have this name.
pub fn check_view_name(ns: &Namespace) -> Result<()> {
    let invalid = |text: &'static str| Err(Error::new(ErrorCode::InvalidNamespace, text));
    if ns.coll() == SYSTEM_VIEWS {
        let text = "Cannot create a view called 'system.views': this is a reserved system namespace";
        return invalid(text);
    }
    if ns.coll().starts_with("system.") {
        let text = "View name cannot start with 'system.', which is reserved for system namespaces";
        return invalid(text);
    }
    Ok(())
}

/// The same document must be valid on every member, and valid again.
fn draws_lots(filter: &RawDoc) -> bool {
    filter.iter().any(|e| {
        matches!(e.name(), "$rand" | "$sampleRate")
            || match e.value() {
                Value::Document(d) | Value::Array(d) => draws_lots(d),
                _ => false,
            }
    })
}

/// Error where documents may not be validated (servers must be able to write there), or not by this filter.
pub(crate) fn check_validatable(ns: &Namespace, uuid: Uuid, filter: &RawDoc) -> Result<()> {
    if draws_lots(filter) {
        return Err(Error::location(3_040_500, "$rand not allowed inside collection validators"));
    }
    // Buckets have one of the server's own.
    let system = ns.coll().starts_with("system.") && !ns.coll().starts_with("system.buckets.");
    match ns.db() {
        _ if system => Err(Error::new(
            ErrorCode::InvalidOptions,
            format!("Document validators not allowed on system collection {ns} with UUID {uuid}"),
        )),
        db @ ("admin" | "local" | "config") => Err(Error::new(
            ErrorCode::InvalidOptions,
            format!(
                "Document validators are not allowed on collection {ns} with UUID {uuid} in the {db} internal database"
            ),
        )),
        _ => Ok(()),
    }
}

/// Error when users may not insert, update or delete there.
pub fn check_writable(ns: &Namespace) -> Result<()> {
    let in_local = ns.db() == "local";
    let own = matches!(ns.coll(), "system.views" | "system.profile");
    if own || (in_local && ns.coll() == "oplog.rs") || is_table_name(ns) {
        return Err(cannot_write(ns));
    }
    if in_local && ns.coll() == "system.rollback.id" {
        return Err(Error::new(ErrorCode::InvalidNamespace, format!("Invalid system namespace: {ns}")));
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

/// Error when this collection stays. `exists` says whether there is one, `shows_oplog` whether the log is read under its name.
pub fn check_droppable(ns: &Namespace, exists: bool, shows_oplog: bool) -> Result<()> {
    if ns.db() == "local" && ns.coll() == "oplog.rs" && shows_oplog {
        return Err(Error::location(5_255_000, "can't drop live oplog while replicating"));
    }
    if is_table_name(ns) {
        let text = format!("can't drop {ns}: it shows what the server knows elsewhere");
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    let kept = ns.coll().starts_with("system.") && !is_droppable_system(ns);
    if kept && (exists || (ns.db() == "admin" && ns.coll() == "system.version")) {
        return Err(Error::new(ErrorCode::IllegalOperation, format!("can't drop system collection {ns}")));
    }
    Ok(())
}

/// System collections that may be dropped alone; the others go with their database.
fn is_droppable_system(ns: &Namespace) -> bool {
    let coll = ns.coll();
    matches!(coll, "system.views" | "system.profile")
        || coll.starts_with("system.buckets.")
        || match ns.db() {
            "admin" => coll == "system.keys",
            "config" => matches!(coll, "system.sessions" | "system.preimages"),
            "local" => coll == "system.healthlog",
            _ => false,
        }
}

/// Error when no collection may come from, or go to, such a name.
pub fn check_renamable(from: &Namespace, to: &Namespace) -> Result<()> {
    let illegal = |message: String| Err(Error::new(ErrorCode::IllegalOperation, message));
    if from == to {
        return illegal("Can't rename a collection to itself".to_owned());
    }
    let is_oplog = |ns: &Namespace| ns.db() == "local" && ns.coll() == "oplog.rs";
    if is_oplog(from) {
        return illegal("can't rename live oplog while replicating".to_owned());
    }
    if is_oplog(to) {
        return illegal("can't rename to live oplog while replicating".to_owned());
    }
    if let Err(e) = check_writable(from) {
        return illegal(format!("error with source namespace: {}", e.message));
    }
    if let Err(e) = check_writable(to) {
        return illegal(format!("error with target namespace: {}", e.message));
    }
    if from.db() == "admin" && from.coll() == "system.version" {
        return illegal(
            "renaming the server configuration collection (admin.system.version) is not allowed".to_owned(),
        );
    }
    if from.coll().starts_with("system.buckets.") {
        return illegal("Renaming system.buckets collections is not allowed".to_owned());
    }
    Ok(())
}

/// Error where one of the two would be replicated and the other not.
pub(crate) fn check_both_replicated(from: &Namespace, to: &Namespace) -> Result<()> {
    match from.is_unreplicated() == to.is_unreplicated() {
        true => Ok(()),
        false => Err(Error::new(
            ErrorCode::IllegalOperation,
            "Cannot rename collections between a replicated and an unreplicated database",
        )),
    }
}

/// Error when this database stays.
pub(crate) fn check_database_droppable(db: &str, shows_oplog: bool) -> Result<()> {
    if db == "admin" {
        return Err(Error::new(ErrorCode::IllegalOperation, "Dropping the 'admin' database is prohibited."));
    }
    if db == "local" && shows_oplog {
        return Err(Error::new(
            ErrorCode::IllegalOperation,
            "Cannot drop 'local' database while replication is active",
        ));
    }
    Ok(())
}
