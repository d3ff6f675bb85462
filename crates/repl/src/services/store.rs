//! What workflows need of the node's data, its locks and the other nodes. The server lends it; a test may answer itself.

use pando_base::{Namespace, OpTime, Result};
use pando_bson::DocBuf;
use pando_env::BoxFuture;
use pando_workflows::{Level, LocalWrite, Query, Resource, Section, Target};
use std::collections::BTreeMap;

/// A lock or a section, given back when it is dropped.
pub type Guard = Box<dyn Send>;

pub trait Store: Send + Sync + 'static {
    /// A test may stop a workflow before any of its actions.
    fn before_action(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
    /// Every document of a collection as it is now.
    fn load(&self, ns: &Namespace) -> Result<Vec<DocBuf>>;
    /// Returns when the first entry of this primary's term is on a majority.
    fn first_of_term_committed(&self) -> BoxFuture<'_, Result<()>>;
    /// Where the last entry of it is; `None` when nothing had to be changed.
    fn write<'a>(&'a self, write: &'a LocalWrite) -> BoxFuture<'a, Result<Option<OpTime>>>;
    /// Returns when a majority has what was written up to `upto`, or everything so far.
    fn await_majority(&self, upto: Option<OpTime>) -> BoxFuture<'_, Result<()>>;
    fn read(&self, query: &Query) -> Result<Vec<Namespace>>;
    fn lock<'a>(&'a self, resource: &'a Resource, level: Level) -> BoxFuture<'a, Result<Guard>>;
    fn enter<'a>(&'a self, section: &'a Section) -> BoxFuture<'a, Result<Guard>>;
    /// A command of a service's workflow to another node; a reply with `ok: 0` is an error.
    fn call<'a>(
        &'a self,
        service: &'static str,
        to: &'a Target,
        body: &'a DocBuf,
    ) -> BoxFuture<'a, Result<DocBuf>>;
}

/// What one workflow holds. It goes back when the workflow says so, and at the latest with this.
#[derive(Default)]
pub struct Held {
    locks: BTreeMap<Resource, Guard>,
    sections: BTreeMap<Section, Guard>,
}

impl Held {
    pub fn has(&self, resource: &Resource) -> bool {
        self.locks.contains_key(resource)
    }
    pub fn locked(&mut self, resource: Resource, guard: Guard) {
        self.locks.insert(resource, guard);
    }
    pub fn entered(&mut self, section: Section, guard: Guard) {
        self.sections.insert(section, guard);
    }
    pub fn release(&mut self, resource: &Resource) {
        self.locks.remove(resource);
    }
    pub fn leave(&mut self, section: &Section) {
        self.sections.remove(section);
    }
}
