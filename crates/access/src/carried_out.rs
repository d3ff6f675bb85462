//! What another set's log says of a tenant's documents, carried out here together with the note of how far that log is carried out: in one
//! transaction, so whoever is primary next, here or after a restart, has both or neither, and nothing is done twice.

use crate::InternalCollections;
use crate::maintenance::tenants::TOLD;
use crate::together::{Change, PATIENCE};
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, Uuid};
use pando_catalog::{Interrupt, TxnId, WriteGuard, WriteUnit, after_conflict, retry_conflicts};
use pando_oplog::EntryView;
use pando_storage::ReadAt;
use std::collections::{BTreeMap, BTreeSet};

/// The collections of a transaction, by their names.
type Guards<'a> = BTreeMap<&'a str, WriteGuard>;

fn no_collection(uuid: Option<Uuid>) -> Error {
    let uuid = uuid.map_or_else(|| "none".to_owned(), |uuid| uuid.to_string());
    Error::new(
        ErrorCode::NamespaceNotFound,
        format!("there is no collection with UUID {uuid} of another set's"),
    )
}

impl InternalCollections {
    /// Carries out entries about documents, in their order, and notes that. `session` is used by nobody else, with a number higher than before;
    /// the collection of the note is there already.
    ///
    /// # Errors
    /// 117 where somebody else has noted something meanwhile; as of [`WriteUnit::carry_out`].
    pub async fn carry_out(
        &self,
        interrupt: &dyn Interrupt,
        session: TxnId,
        entries: &[EntryView<'_>],
        note: &Change,
    ) -> Result<OpTime> {
        let names = self.names_of(entries)?;
        let guards = self.lock_all(names.values().chain([note.ns()])).await?;
        let lsid = pando_oplog::session::lsid_doc(&session.0);
        for tries in 0.. {
            let unit = retry_conflicts(&self.catalog, interrupt, || {
                let mut unit = self.catalog.begin_transaction(ReadAt::Latest, session)?;
                entries.iter().try_for_each(|e| carry_out(&mut unit, &names, &guards, e))?;
                self.make(&mut unit, &guards, note)?;
                Ok(unit)
            })
            .await?;
            match self.catalog.commit_transaction(unit, &lsid, session, PATIENCE).await {
                Err(e) if e.code == ErrorCode::WriteConflict => {
                    interrupt.check()?;
                    after_conflict(&self.catalog, tries).await;
                }
                done => return done.map(|done| done.last),
            }
        }
        Err(Error::write_conflict())
    }
    fn names_of(&self, entries: &[EntryView<'_>]) -> Result<BTreeMap<Uuid, Namespace>> {
        let wanted: BTreeSet<Option<Uuid>> = entries.iter().map(|e| e.ui).collect();
        let named = |uuid: Option<Uuid>| {
            let coll = uuid.and_then(|uuid| self.catalog.lookup_uuid(uuid));
            coll.map(|coll| (coll.uuid, coll.ns.clone())).ok_or_else(|| no_collection(uuid))
        };
        wanted.into_iter().map(named).collect()
    }
    async fn lock_all<'a>(&self, names: impl Iterator<Item = &'a Namespace>) -> Result<Guards<'a>> {
        let names: BTreeMap<&str, &Namespace> = names.map(|ns| (ns.as_str(), ns)).collect();
        let mut guards = Guards::new();
        for (name, ns) in names {
            let guard = self.catalog.write_lock(ns).await?.ok_or_else(|| no_collection(None))?;
            // As in `write_together`.
            guards.insert(name, guard.leave_task());
        }
        Ok(guards)
    }
}

fn carry_out(
    unit: &mut WriteUnit,
    names: &BTreeMap<Uuid, Namespace>,
    guards: &Guards<'_>,
    e: &EntryView<'_>,
) -> Result<()> {
    let name = e.ui.and_then(|uuid| names.get(&uuid));
    let coll = name.and_then(|ns| guards.get(ns.as_str())).filter(|coll| Some(coll.uuid) == e.ui);
    unit.carry_out(&TOLD, coll.ok_or_else(|| no_collection(e.ui))?, e)
}
