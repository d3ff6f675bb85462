//! Whether a collection may still come into being: on a shard the database may have become another one's, or nobody's, since an operation was
//! let in, and whoever sees to that waits for the database's lock, not for operations that have not taken it yet.

use crate::Catalog;
use pando_base::{Namespace, Result};
use std::sync::Arc;

type Judge = dyn Fn(&Namespace) -> Result<()> + Send + Sync;

/// Asked under the lock of its database, right before a collection comes into being; for what a transaction makes, when it commits.
#[derive(Clone)]
pub struct Permit(Arc<Judge>);

impl Permit {
    pub fn new(judge: impl Fn(&Namespace) -> Result<()> + Send + Sync + 'static) -> Permit {
        Permit(Arc::new(judge))
    }
    pub(crate) fn check(&self, ns: &Namespace) -> Result<()> {
        (self.0)(ns)
    }
}

impl Catalog {
    /// The same catalog for an operation that may create collections only as long as its permit says so.
    pub fn permitted_by(&self, permit: Permit) -> Catalog {
        Catalog(self.0.clone(), Some(permit), self.2)
    }
    /// The database's lock must be held.
    pub(crate) fn check_may_come(&self, ns: &Namespace) -> Result<()> {
        self.check_not_dropping(ns)?;
        self.1.iter().try_for_each(|permit| permit.check(ns))
    }
}
