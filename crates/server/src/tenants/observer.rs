//! Follows the state documents, on every member; and asks about every write, once it has its slot of the log (SV-MTAB-2, SV-MTAB-5).
//!
//! Members that apply what a primary did are not asked, nor is what a transaction writes before it commits.

use super::Tenants;
use pando_access::observer::{Defined, Deleted, Inserted, OpObserver, Updated};
use pando_access::{Collection, WriteOp, WriteUnit};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, RawDoc};
use pando_tenants::operation::Phase;
use pando_tenants::{Kind, Operation};
use pando_workflows::ddl::uuid_at;
use pando_workflows::shard_split;
use std::sync::Arc;

pub(crate) struct TenantObserver(pub(crate) Arc<Tenants>);

impl TenantObserver {
    fn is_asked(unit: &WriteUnit) -> bool {
        !unit.is_applying() && !unit.is_local() && !unit.is_transaction()
    }
    fn check(&self, unit: &WriteUnit, db: &str) -> Result<()> {
        if Self::is_asked(unit) { self.0.blockers.check_write(db) } else { Ok(()) }
    }
    fn check_build(&self, unit: &WriteUnit, db: &str) -> Result<()> {
        if Self::is_asked(unit) { self.0.blockers.check_build(db) } else { Ok(()) }
    }
    fn is_state(coll: &Collection) -> bool {
        coll.ns == shard_split::collection()
    }
    /// What it says holds from its commit on. What another member has written must be taken, whatever it is; a document that says
    /// nothing blocks nobody.
    fn follow(
        &self,
        unit: &mut WriteUnit,
        coll: &Collection,
        (old, new): (Option<&RawDoc>, &RawDoc),
    ) -> Result<()> {
        if !Self::is_state(coll) {
            return Ok(());
        }
        let here = !unit.is_applying();
        if here {
            check_step(old, new)?;
        }
        let tenants = self.0.clone();
        if let Ok(Some(operation)) = self.0.operation(new) {
            unit.after_commit(move |_| tenants.blockers.follow(operation, here));
        }
        Ok(())
    }
    /// Nobody removes what tells clients where to go before its time (SV-GC-1).
    fn check_may_go(&self, old: &RawDoc) -> Result<()> {
        let expires = parse(old).is_ok_and(|operation| operation.expires || operation.phase == Phase::Begun);
        if expires || self.0.is_of_donor(old) {
            return Ok(());
        }
        let text = format!(
            "cannot delete a donor's state document {old} since it has not been marked as garbage collectable"
        );
        Err(Error::new(ErrorCode::IllegalOperation, text))
    }
}

fn parse(doc: &RawDoc) -> Result<Operation> {
    Operation::parse(Kind::ShardSplit, doc)
}

/// SV-DOC-3.
fn check_step(old: Option<&RawDoc>, new: &RawDoc) -> Result<()> {
    let next = parse(new)?;
    // The next primary goes on with it: what it could not begin from would keep it from everything else.
    shard_split::restore(new)?;
    let legal = match old {
        None => next.may_be_first(),
        Some(old) => parse(old).is_ok_and(|before| before.may_become(&next)),
    };
    match legal {
        true => Ok(()),
        false => {
            let text = format!("a shard split cannot get into that state: {new}");
            Err(Error::new(ErrorCode::IllegalOperation, text))
        }
    }
}

impl OpObserver for TenantObserver {
    fn inserted(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Inserted<'_>) -> Result<()> {
        self.follow(unit, e.coll, (None, e.doc))?;
        self.check(unit, e.coll.ns.db())
    }
    fn updated(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Updated<'_>) -> Result<()> {
        self.follow(unit, e.coll, (Some(e.old), e.new))?;
        self.check(unit, e.coll.ns.db())
    }
    fn deleted(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Deleted<'_>) -> Result<()> {
        if Self::is_state(e.coll)
            && let Some(id) = uuid_at(e.old, "_id")
        {
            if !unit.is_applying() {
                self.check_may_go(e.old)?;
            }
            let tenants = self.0.clone();
            unit.after_commit(move |_| tenants.blockers.remove(&id));
        }
        self.check(unit, e.coll.ns.db())
    }
    fn defined(&self, unit: &mut WriteUnit, event: &Defined<'_>) -> Result<()> {
        match event {
            Defined::Dropped { coll, .. } if Self::is_state(coll) => {
                let tenants = self.0.clone();
                unit.after_commit(move |_| tenants.blockers.rebuild(Vec::new()));
                Ok(())
            }
            Defined::IndexCreated { coll, .. } | Defined::BuildStarted { coll, .. } => {
                self.check_build(unit, coll.ns.db())
            }
            Defined::Created { coll }
            | Defined::Dropped { coll, .. }
            | Defined::Modified { coll, .. }
            | Defined::BuildCommitted { coll, .. }
            | Defined::IndexDropped { coll, .. }
            | Defined::Imported { coll, .. } => self.check(unit, coll.ns.db()),
            Defined::Renamed { from, to, .. } => {
                self.check(unit, from.ns.db())?;
                self.check(unit, to.db())
            }
            Defined::DatabaseDropped { db } => self.check(unit, db),
            // The split itself gives builds up.
            Defined::BuildAborted { .. } => Ok(()),
        }
    }
    fn committing(&self, operations: &[DocBuf]) -> Result<()> {
        if !self.0.blockers.any() {
            return Ok(());
        }
        let names = operations.iter().filter_map(|o| o.get("ns")?.as_str().map(str::to_owned));
        let mut databases: Vec<String> =
            names.filter_map(|ns| Some(ns.split_once('.')?.0.to_owned())).collect();
        databases.sort_unstable();
        databases.dedup();
        databases.iter().try_for_each(|db| self.0.blockers.check_write(db))
    }
}
