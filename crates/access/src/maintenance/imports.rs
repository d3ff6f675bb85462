//! Collections of another set that are taken in by their files.

use super::Maintenance;
use pando_base::{Namespace, OpTime, Result, Timestamp, Uuid};
use pando_catalog::{ImportOrder, Imported};

impl Maintenance {
    /// Reads the collections that are `wanted` out of another set's staged files and names their tables; nobody sees
    /// anything of them. Takes long; `go_on` is asked now and then. May be asked again.
    pub fn take_in(
        &self,
        order: &ImportOrder,
        wanted: &dyn Fn(&Namespace) -> bool,
        go_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Imported> {
        self.catalog.take_in(order, wanted, go_on)
    }
    /// What was taken in under this name; `None` where nothing was, or it was forgotten.
    pub fn imported(&self, import: Uuid) -> Result<Option<Imported>> {
        self.catalog.imported(import)
    }
    /// Under which names something was taken in here.
    pub fn imports(&self) -> Result<Vec<Uuid>> {
        self.catalog.imports()
    }
    /// Those of one merge, or of all, that may be forgotten where everything is that was taken in before `upto`.
    pub fn imports_before(&self, migration: Option<Uuid>, upto: Timestamp) -> Result<Vec<Uuid>> {
        self.catalog.imports_before(migration, upto)
    }
    /// On a primary: makes a collection seen that was taken in, with an entry of the log. `None` where it is there already.
    pub async fn import_collection(&self, import: Uuid, uuid: Uuid) -> Result<Option<OpTime>> {
        self.catalog.of_other_set().import_collection(import, uuid).await
    }
    /// Once this node's tables stand at `upto`, which is behind the entries of all these collections: the names go, and with them the
    /// tables that no collection has. False while they do not stand there.
    pub fn forget_import(&self, import: Uuid, upto: Timestamp) -> Result<bool> {
        self.catalog.forget_import(import, upto)
    }
}
