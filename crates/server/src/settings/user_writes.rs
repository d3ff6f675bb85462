//! Writes of users can be blocked for the whole set (`setUserWriteBlockMode`), while its data are moved elsewhere.
//!
//! That they are is a document of `config.user_writes_critical_sections`, which every member reads when it changes. The
//! door is an observer of the write path: it refuses what an operation of a client changes in a user's database.
//! Members that apply what a primary did, and the server's own tasks, pass.

use super::Settings;
use pando_access::observer::{Defined, Deleted, Inserted, OpObserver, Updated};
use pando_access::{Collection, WriteOp, WriteUnit};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{DocBuf, RawDoc, Value, doc};
use pando_command::OpCtx;
use pando_env::op_locks;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Which part of the data a section blocks: all of it.
const ALL: &str = "";

fn sections_ns() -> Namespace {
    Namespace::unchecked("config", "user_writes_critical_sections")
}

fn all() -> DocBuf {
    doc! { "_id": ALL }.to_raw()
}

/// Whether they are blocked.
#[derive(Clone, Default)]
pub(crate) struct UserWrites(Arc<AtomicBool>);

impl UserWrites {
    pub(crate) fn are_blocked(&self) -> bool {
        self.0.load(SeqCst)
    }
    fn check(&self, unit: &WriteUnit, db: &str) -> Result<()> {
        let blocked = self.are_blocked()
            && !matches!(db, "admin" | "local" | "config")
            && !unit.is_applying()
            && op_locks::current().is_some_and(|op| !op.passes_write_block());
        match blocked {
            true => Err(Error::new(ErrorCode::UserWritesBlocked, "User writes blocked")),
            false => Ok(()),
        }
    }
    fn check_in(&self, unit: &WriteUnit, coll: &Collection) -> Result<()> {
        self.check(unit, coll.ns.db())
    }
}

impl OpObserver for UserWrites {
    fn inserted(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Inserted<'_>) -> Result<()> {
        self.check_in(unit, e.coll)
    }
    fn updated(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Updated<'_>) -> Result<()> {
        self.check_in(unit, e.coll)
    }
    fn deleted(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Deleted<'_>) -> Result<()> {
        self.check_in(unit, e.coll)
    }
    fn defined(&self, unit: &mut WriteUnit, event: &Defined<'_>) -> Result<()> {
        match event {
            Defined::Created { coll }
            | Defined::Dropped { coll, .. }
            | Defined::Modified { coll, .. }
            | Defined::IndexCreated { coll, .. }
            | Defined::BuildStarted { coll, .. }
            | Defined::IndexDropped { coll, .. } => self.check_in(unit, coll),
            Defined::Renamed { from, to, .. } => {
                self.check_in(unit, from).and_then(|()| self.check(unit, to.db()))
            }
            Defined::DatabaseDropped { db } => self.check(unit, db),
            // Of a build that began before.
            Defined::BuildCommitted { .. } | Defined::BuildAborted { .. } => Ok(()),
        }
    }
}

impl Settings {
    /// Reads back what is stored, at the start and whenever this member applies a change of it.
    pub(super) fn restore_user_writes(&self) -> Result<()> {
        let stored = self.internal.named(&sections_ns(), ALL)?;
        let blocks = |d: &RawDoc| matches!(d.get("blockUserWrites"), Some(Value::Boolean(true)));
        self.user_writes.0.store(stored.is_some_and(|d| blocks(&d)), SeqCst);
        Ok(())
    }
    /// Stores the mode, and puts it in force.
    pub(crate) async fn block_user_writes(&self, ctx: &OpCtx, block: bool) -> Result<()> {
        if block {
            let section = doc! { "_id": ALL, "blockNewUserShardedDDL": false, "blockUserWrites": true };
            self.put(ctx, &sections_ns(), &section.to_raw()).await?;
        } else if let Some(id) = all().first() {
            self.remove(ctx, &sections_ns(), id).await?;
        }
        self.restore_user_writes()
    }
}
