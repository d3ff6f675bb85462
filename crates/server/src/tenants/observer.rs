//! Follows the state documents, on every member; and asks about every write, once it has its slot of the log (SV-MTAB-2, SV-MTAB-5).
//!
//! Members that apply what a primary did are not asked, nor is what a transaction writes before it commits.

use super::{Tenants, check_restorable, is_state, kind_of};
use pando_access::observer::{Defined, Deleted, Inserted, OpObserver, Updated};
use pando_access::{Collection, WriteOp, WriteUnit};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{DocBuf, RawDoc};
use pando_tenants::operation::Phase;
use pando_tenants::{Kind, Operation};
use pando_workflows::ddl::uuid_at;
use pando_workflows::{donate_tenants, receive_tenants, shard_split};
use std::sync::Arc;

pub(crate) struct TenantObserver(pub(crate) Arc<Tenants>);

impl TenantObserver {
    fn is_asked(unit: &WriteUnit) -> bool {
        !unit.is_applying() && !unit.is_local() && !unit.is_transaction()
    }
    /// Of a document. What comes from another set is put by whoever copies it.
    fn check(&self, unit: &WriteUnit, op: &WriteOp<'_>, db: &str) -> Result<()> {
        match Self::is_asked(unit) && !op.from_migrate {
            true => self.0.blockers.check_write(db),
            false => Ok(()),
        }
    }
    /// Of a definition. What comes from another set is defined by whoever copies it, or removed by whoever has given it away.
    fn check_definition(&self, unit: &WriteUnit, db: &str) -> Result<()> {
        match Self::is_asked(unit) && !unit.is_of_other_set() {
            true => self.0.blockers.check_write(db),
            false => Ok(()),
        }
    }
    fn check_build(&self, unit: &WriteUnit, db: &str) -> Result<()> {
        match Self::is_asked(unit) && !unit.is_of_other_set() {
            true => self.0.blockers.check_build(db),
            false => Ok(()),
        }
    }
    /// What it says holds from its commit on. What another member has written must be taken, whatever it is; a document that says
    /// nothing blocks nobody.
    fn follow(
        &self,
        unit: &mut WriteUnit,
        coll: &Collection,
        (old, new): (Option<&RawDoc>, &RawDoc),
    ) -> Result<()> {
        if !is_state(&coll.ns) {
            return Ok(());
        }
        let Some(kind) = kind_of(&coll.ns, new) else { return Ok(()) };
        let here = !unit.is_applying();
        if here {
            check_step(kind, old, new)?;
        }
        let tenants = self.0.clone();
        if let Ok(Some(operation)) = self.0.operation(kind, new) {
            unit.after_commit(move |_| tenants.blockers.follow(operation, here));
        }
        Ok(())
    }
    /// Nobody removes what tells clients where to go before its time (SV-GC-1).
    fn check_may_go(&self, ns: &Namespace, old: &RawDoc) -> Result<()> {
        let Some(kind) = kind_of(ns, old) else { return Ok(()) };
        let parsed = Operation::parse(kind, old);
        let expires = parsed.is_ok_and(|operation| operation.expires || operation.phase == Phase::Begun);
        if expires || self.0.is_of_donor(kind, old) {
            return Ok(());
        }
        let side = if kind.takes() { "recipient" } else { "donor" };
        let text = format!(
            "cannot delete a {side}'s state document {old} since it has not been marked as garbage collectable"
        );
        Err(Error::new(ErrorCode::IllegalOperation, text))
    }
}

/// Whether documents of this kind are in that collection.
fn keeps(ns: &Namespace, kind: Kind) -> bool {
    match kind {
        Kind::ShardSplit => *ns == shard_split::collection(),
        Kind::Donor => *ns == donate_tenants::collection(),
        Kind::Recipient | Kind::MergeRecipient => *ns == receive_tenants::collection(),
    }
}

/// SV-DOC-3.
fn check_step(kind: Kind, old: Option<&RawDoc>, new: &RawDoc) -> Result<()> {
    let parse = |doc: &RawDoc| Operation::parse(kind, doc);
    let next = parse(new)?;
    // The next primary goes on with it: what it could not begin from would keep it from everything else.
    check_restorable(kind, new)?;
    let legal = match old {
        None => next.may_be_first(),
        Some(old) => parse(old).is_ok_and(|before| before.may_become(&next)),
    };
    match legal {
        true => Ok(()),
        false => {
            let text = format!("a {} cannot get into that state: {new}", kind.text());
            Err(Error::new(ErrorCode::IllegalOperation, text))
        }
    }
}

impl OpObserver for TenantObserver {
    fn inserted(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, e: &Inserted<'_>) -> Result<()> {
        self.follow(unit, e.coll, (None, e.doc))?;
        self.check(unit, op, e.coll.ns.db())
    }
    fn updated(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, e: &Updated<'_>) -> Result<()> {
        self.follow(unit, e.coll, (Some(e.old), e.new))?;
        self.check(unit, op, e.coll.ns.db())
    }
    fn deleted(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, e: &Deleted<'_>) -> Result<()> {
        if is_state(&e.coll.ns)
            && let Some(id) = uuid_at(e.old, "_id")
        {
            if !unit.is_applying() {
                self.check_may_go(&e.coll.ns, e.old)?;
            }
            let tenants = self.0.clone();
            unit.after_commit(move |_| {
                tenants.blockers.remove(&id);
                tenants.receptions.forget(&id);
            });
        }
        self.check(unit, op, e.coll.ns.db())
    }
    fn defined(&self, unit: &mut WriteUnit, event: &Defined<'_>) -> Result<()> {
        match event {
            Defined::Dropped { coll } if is_state(&coll.ns) => {
                let tenants = self.0.clone();
                let ns = coll.ns.clone();
                unit.after_commit(move |_| tenants.blockers.retain(|kind| !keeps(&ns, kind)));
                Ok(())
            }
            Defined::IndexCreated { coll, .. } | Defined::BuildStarted { coll, .. } => {
                self.check_build(unit, coll.ns.db())
            }
            Defined::Created { coll }
            | Defined::Dropped { coll }
            | Defined::Modified { coll, .. }
            | Defined::BuildCommitted { coll, .. }
            | Defined::IndexDropped { coll, .. }
            | Defined::Imported { coll, .. } => self.check_definition(unit, coll.ns.db()),
            Defined::Renamed { from, to, .. } => {
                self.check_definition(unit, from.ns.db())?;
                self.check_definition(unit, to.db())
            }
            Defined::DatabaseDropped { db } => self.check_definition(unit, db),
            // The split itself gives builds up.
            Defined::BuildAborted { .. } => Ok(()),
        }
    }
    fn committing(&self, operations: &[DocBuf]) -> Result<()> {
        if !self.0.blockers.any() {
            return Ok(());
        }
        let copied = |o: &&DocBuf| o.get("fromMigrate").is_some_and(|v| v.is_truthy());
        let asked = operations.iter().filter(|o| !copied(o));
        let names = asked.filter_map(|o| o.get("ns")?.as_str().map(str::to_owned));
        let mut databases: Vec<String> =
            names.filter_map(|ns| Some(ns.split_once('.')?.0.to_owned())).collect();
        databases.sort_unstable();
        databases.dedup();
        databases.iter().try_for_each(|db| self.0.blockers.check_write(db))
    }
}
