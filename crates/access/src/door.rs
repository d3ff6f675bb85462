//! The checks that stand before every read, write and change of a definition, each in one sequence.
//!
//! ```text
//!   read    what the name means: the transaction's collection, that of a past time, or that of now
//!           on a shard: the version and the critical section (a stale version ends the statement; a critical section is
//!           waited for outside of the statement), and with them which documents are visible (`placement`)
//!           ── here go: the blocker of a tenant that moves away, the privilege
//!           the Acquisition
//!   write   a view is refused (166), a collection without rows, too (73)
//!           ── here go: the same as for a read, and the block of users' writes
//!           the collection's lock, waited for as long as the operation may; in a transaction it is held already
//!           the collection is made where the statement makes one
//!           in a transaction: no capped collection (263)
//!           the WriteAcquisition
//!   define  in a transaction: nothing but new collections and their indexes (263)
//!           ── here go: the same as for a write, with the version of the database in place of the collection's
//! ```
//!
//! A check that is put at the marked place of [`Access::read`] (in `admit`, which collections that stages read beside the command's own
//! pass, too, and those that a change stream asks for by their UUIDs), [`Access::write`] or the way in of definitions cannot be passed by:
//! an [`Acquisition`], a [`WriteAcquisition`] and a change of a definition are to be had nowhere else. What a check decides for
//! the whole statement (which documents of a collection are this shard's) belongs into the acquisition.
//!
//! Two things a reader might look for are not here. The write gate (may this node write replicated collections now?) is entered
//! with the unit of work, in the catalog, since it must be held until the commit. The block of users' writes
//! is an observer of the write path to this day.
//!
//! `Missing` has no `Refuse`: each command has words of its own for a collection that is not there.

use crate::placement::Visible;
use crate::reading::Reading;
use crate::transaction::open_txn;
use crate::{Access, Acquisition, WriteAcquisition};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_catalog::{Catalog, Collection, CollectionOptions, Named, WriteGuard};
use pando_command::OpCtx;
use pando_routing::check::Access as Kind;
use pando_storage::ReadAt;

/// What a write does where there is no collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// It makes one with default options.
    Create,
    /// It has nothing to do.
    Nothing,
}

impl Access {
    /// What `ns` means to this operation, opened for reading: in a transaction what that has locked, at a time of the past what the
    /// name meant then.
    pub fn read(&self, ctx: &OpCtx, ns: &Namespace, at: ReadAt) -> Result<Reading> {
        let named = match (open_txn(ctx), at) {
            (Some(open), _) => open.named(&self.catalog, ns),
            (None, ReadAt::At(then)) => self.catalog.named_at(ns, then)?,
            (None, _) => self.catalog.snapshot().get(ns).cloned(),
        };
        let visible = self.placed(ctx, ns, Kind::Read)?;
        self.check_snapshot(ctx, ns, &visible, at)?;
        if let Some(Named::Collection(coll)) = &named {
            self.check_is_still_here(ctx, coll, ns, at)?;
        }
        Ok(self.admit(named, visible))
    }

    /// Lets an operation read what a name or a UUID means. Nothing else makes an [`Acquisition`] for reading.
    pub(crate) fn admit(&self, named: Option<Named>, visible: Visible) -> Reading {
        match named {
            None => Reading::Missing,
            Some(Named::View(view)) => Reading::View(view),
            // Blockers and privileges of a read.
            Some(Named::Collection(coll)) => Reading::Collection(Acquisition::new(coll, visible)),
        }
    }

    /// Locks a collection for writing. `None` where there is none and none is to be made.
    pub async fn write(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        missing: Missing,
    ) -> Result<Option<WriteAcquisition>> {
        match missing {
            Missing::Create => self.write_or_create(ctx, ns).await.map(Some),
            Missing::Nothing => self.write_existing(ctx, ns).await,
        }
    }

    /// The same, with [`Missing::Create`].
    pub async fn write_or_create(&self, ctx: &OpCtx, ns: &Namespace) -> Result<WriteAcquisition> {
        if let Some(there) = self.write_existing(ctx, ns).await? {
            return Ok(there);
        }
        let guard = match open_txn(ctx) {
            None => ctx.interruptible(self.permitted(ctx).write_lock_or_create(ns)).await??,
            Some(open) => {
                let options = CollectionOptions::default();
                let coll = open.with(|unit| self.permitted(ctx).create_within(unit, ns, options))?;
                WriteGuard::held_by_transaction(coll)
            }
        };
        // What it would make may have become another shard's meanwhile.
        let visible = self.placed(ctx, ns, Kind::Write)?;
        Ok(WriteAcquisition::new(guard, visible, self.shard_key(ctx, ns)))
    }

    async fn write_existing(&self, ctx: &OpCtx, ns: &Namespace) -> Result<Option<WriteAcquisition>> {
        // Blockers and privileges of a write.
        let guard = match open_txn(ctx) {
            None => lock(&self.catalog, ctx, ns).await?,
            Some(open) => match open.collection(&self.catalog, ns)? {
                None => None,
                Some(coll) => {
                    check_not_capped(&coll)?;
                    Some(WriteGuard::held_by_transaction(coll))
                }
            },
        };
        // Behind the lock: a change of ownership takes it, too.
        let visible = self.placed(ctx, ns, Kind::Write)?;
        self.check_snapshot(ctx, ns, &visible, ReadAt::Latest)?;
        Ok(guard.map(|guard| WriteAcquisition::new(guard, visible, self.shard_key(ctx, ns))))
    }

    /// The way in of every change of a definition that is not part of a transaction, and of what looks at whole collections.
    pub(crate) fn outside_transaction(&self, ctx: &OpCtx) -> Result<Catalog> {
        self.check_database(ctx, &ctx.db)?;
        // Blockers and privileges of a definition.
        if open_txn(ctx).is_none() {
            return Ok(self.permitted(ctx));
        }
        let text = format!("Cannot run '{}' in a multi-document transaction.", ctx.command);
        Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, text))
    }
}

/// Waits for the lock only where it is not free.
async fn lock(catalog: &Catalog, ctx: &OpCtx, ns: &Namespace) -> Result<Option<WriteGuard>> {
    match catalog.try_write_lock(ns) {
        Err(e) if e.code == ErrorCode::LockTimeout => ctx.interruptible(catalog.write_lock(ns)).await?,
        Ok(Some(guard)) => Ok(Some(guard.join_task().await)),
        done => done,
    }
}

fn check_not_capped(coll: &Collection) -> Result<()> {
    if !coll.is_capped() {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::OperationNotSupportedInTransaction,
        format!(
            "Collection '{}' is a capped collection. Writes in transactions are not allowed on capped collections.",
            coll.ns
        ),
    ))
}
