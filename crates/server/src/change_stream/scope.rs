//! What a stream watches: one collection, one database or the whole cluster.

use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_query::change_stream::Spec;

#[derive(Clone, Debug)]
pub(crate) enum Watched {
    Collection(Namespace),
    Database(String),
    Cluster,
}

#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) watched: Watched,
    system: bool,
}

fn is_internal(db: &str) -> bool {
    matches!(db, "admin" | "config" | "local")
}

impl Scope {
    /// From the target of the aggregation; `db.$cmd.aggregate` is the database.
    pub(crate) fn of(ns: &Namespace, spec: &Spec) -> Result<Scope> {
        let whole = ns.coll() == "$cmd.aggregate";
        let (invalid, options) = (ErrorCode::InvalidNamespace, ErrorCode::InvalidOptions);
        if spec.all_changes && !(whole && ns.db() == "admin") {
            return Err(Error::new(
                options,
                format!(
                    "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and \
                     with no collection name; found {ns}"
                ),
            ));
        }
        let on_config = spec.on_config && ns.db() == "config";
        if !spec.all_changes && is_internal(ns.db()) && !on_config {
            let text = format!("$changeStream may not be opened on the internal {} database", ns.db());
            return Err(Error::new(invalid, text));
        }
        if !whole && !spec.system_events && ns.coll().starts_with("system.") {
            let text = format!("$changeStream may not be opened on the internal {ns} collection");
            return Err(Error::new(invalid, text));
        }
        let watched = match (spec.all_changes, whole) {
            (true, _) => Watched::Cluster,
            (_, true) => Watched::Database(ns.db().to_owned()),
            _ => Watched::Collection(ns.clone()),
        };
        Ok(Scope { watched, system: spec.system_events })
    }

    pub(crate) fn has_database(&self, db: &str) -> bool {
        match &self.watched {
            Watched::Collection(ns) => ns.db() == db,
            Watched::Database(name) => name == db,
            Watched::Cluster => !is_internal(db),
        }
    }
    /// `ns` as entries name it.
    pub(crate) fn has(&self, ns: &str) -> bool {
        if let Watched::Collection(own) = &self.watched {
            return own.as_str() == ns;
        }
        let Some((db, coll)) = ns.split_once('.') else { return false };
        let hidden = coll.starts_with('$') || (coll.starts_with("system.") && !self.system);
        !hidden && self.has_database(db)
    }
    /// Whether the end of a collection is the end of the stream.
    pub(crate) fn is_collection(&self) -> bool {
        matches!(self.watched, Watched::Collection(_))
    }
    pub(crate) fn is_database(&self) -> bool {
        matches!(self.watched, Watched::Database(_))
    }
}
