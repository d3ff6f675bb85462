//! What clients' requests go by that name no concern: what was set for the cluster (`setDefaultRWConcern`), which the config servers
//! keep and every router asks for now and then; else what is so everywhere (R-DWC-5, SYS-014).

use crate::Router;
use pando_base::Result;
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_command::concern::Provenance;
use pando_command::{ReadConcern, ReadLevel, W, WriteConcern};
use pando_rpc::Retry;
use std::sync::{Arc, Mutex, PoisonError};

/// As one operation finds them; nothing where nothing was set.
#[derive(Clone, Default)]
pub(crate) struct ConcernDefaults {
    pub(crate) read: Option<ReadLevel>,
    pub(crate) write: Option<WriteConcern>,
}

impl ConcernDefaults {
    /// From the reply of `getDefaultRWConcern`.
    fn parse(reply: &RawDoc) -> Result<ConcernDefaults> {
        let set = |source: &str| reply.get(source).and_then(|v| v.as_str()) == Some("global");
        let field = |name: &str, source: &str| reply.get(name).filter(|_| set(source));
        let read = field("defaultReadConcern", "defaultReadConcernSource");
        let read = read.map(|v| ReadConcern::parse(&v)).transpose()?.and_then(|rc| rc.level);
        let write = field("defaultWriteConcern", "defaultWriteConcernSource");
        let write = write.map(|v| WriteConcern::parse(&v)).transpose()?;
        let write = write.map(|wc| WriteConcern { provenance: Provenance::CustomDefault, ..wc });
        Ok(ConcernDefaults { read, write })
    }
    /// The write concern of a request that names none.
    pub(crate) fn write_concern(&self) -> WriteConcern {
        let implicit = || WriteConcern::of(W::Majority, Provenance::ImplicitDefault);
        self.write.clone().unwrap_or_else(implicit)
    }
    pub(crate) fn append_read(&self, b: &mut DocBuilder) {
        let (level, provenance) = match self.read {
            Some(level) => (level, Provenance::CustomDefault),
            None => (ReadLevel::Local, Provenance::ImplicitDefault),
        };
        b.doc("readConcern", |d| _ = d.str("level", level.text()).str("provenance", provenance.text()));
    }
    /// Of one that names how long to wait and no members.
    pub(crate) fn append_write_for(&self, given: &WriteConcern, b: &mut DocBuilder) {
        let wc = WriteConcern { j: given.j, wtimeout_ms: given.wtimeout_ms, ..self.write_concern() };
        b.doc("writeConcern", |d| wc.append_to(d));
    }
    pub(crate) fn append_write(&self, b: &mut DocBuilder) {
        b.doc("writeConcern", |d| self.write_concern().append_to(d));
    }
    /// What a transaction reads by that names no read concern.
    pub(crate) fn of_transaction(&self) -> Option<DocBuf> {
        let level = self.read?;
        let mut b = DocBuilder::new();
        b.str("level", level.text()).str("provenance", Provenance::CustomDefault.text());
        Some(b.finish())
    }
}

/// The newest that this router knows of.
#[derive(Default)]
pub(crate) struct KnownDefaults(Mutex<Arc<ConcernDefaults>>);

impl KnownDefaults {
    pub(crate) fn get(&self) -> Arc<ConcernDefaults> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    fn set(&self, defaults: ConcernDefaults) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(defaults);
    }
}

impl Router {
    /// Asks the config servers. What was known stays where they do not answer.
    pub(crate) async fn refresh_concern_defaults(&self) -> Result<()> {
        let mut b = DocBuilder::new();
        b.i32("getDefaultRWConcern", 1).str("$db", "admin");
        let reply = self.catalog.config.command(&b.finish(), Retry::Idempotent).await?;
        self.concern_defaults.set(ConcernDefaults::parse(&reply)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    #[test]
    fn only_what_was_set_is_told_as_the_clusters() {
        let implicit = doc! { "defaultReadConcern": doc! { "level": "local" }, "defaultReadConcernSource": "implicit",
        "defaultWriteConcern": doc! { "w": "majority", "wtimeout": 0 }, "defaultWriteConcernSource": "implicit" };
        let found = ConcernDefaults::parse(&implicit.to_raw()).unwrap();
        assert!(found.read.is_none() && found.write.is_none() && found.of_transaction().is_none());
        assert_eq!(found.write_concern().provenance, Provenance::ImplicitDefault);
        let set = doc! { "defaultReadConcern": doc! { "level": "majority" }, "defaultReadConcernSource": "global",
        "defaultWriteConcern": doc! { "w": 1, "wtimeout": 7 }, "defaultWriteConcernSource": "global" };
        let found = ConcernDefaults::parse(&set.to_raw()).unwrap();
        let mut b = DocBuilder::new();
        found.append_read(&mut b);
        found.append_write(&mut b);
        let expected = doc! { "readConcern": doc! { "level": "majority", "provenance": "customDefault" },
        "writeConcern": doc! { "w": 1, "wtimeout": 7, "provenance": "customDefault" } };
        assert_eq!(b.finish(), expected.to_raw());
    }
}
