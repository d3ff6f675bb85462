//! Changes of definitions: everything that creates, changes, renames and drops for a client passes the door here.

use crate::transaction::open_txn;
use crate::{Access, ByCtx};
use pando_audit::Event;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, Uuid};
use pando_bson::RawDoc;
use pando_catalog::{CollectionOptions, DropWhich, Dropped, IndexesCreated, IndexesDropped, Modified, Named};
use pando_command::OpCtx;
use pando_routing::check::Access as Kind;

impl Access {
    /// What to say where something of that name exists already.
    pub fn taken(&self, ns: &Namespace, by_a_view: bool) -> Option<Error> {
        self.catalog.taken(ns, by_a_view)
    }
    /// Creates the collection that definitions of views like `ns` are kept in, where there is none.
    pub async fn make_room_for_views(&self, ctx: &OpCtx, ns: &Namespace) -> Result<()> {
        self.outside_transaction(ctx)?.make_room_for_views(ns).await
    }
    /// Creates a collection, a time series or a view. In a transaction it becomes part of that: its position is then
    /// [`OpTime::NULL`].
    pub async fn create(&self, ctx: &OpCtx, ns: &Namespace, options: CollectionOptions) -> Result<OpTime> {
        let Some(open) = open_txn(ctx) else {
            let catalog = self.outside_transaction(ctx)?;
            self.check_may_come(ctx, ns)?;
            return catalog.create(ns, options).await;
        };
        self.placed(ctx, ns, Kind::Write)?;
        open.with(|unit| {
            if let Some(Named::View(_)) = self.catalog.snapshot().get(ns) {
                let text = format!("A view already exists. NS: {ns}");
                return Err(Error::new(ErrorCode::NamespaceExists, text));
            }
            self.permitted(ctx).create_within(unit, ns, options)
        })?;
        Ok(OpTime::NULL)
    }
    /// Creates a collection with the UUID that it had elsewhere, outside of transactions.
    pub async fn create_as(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        options: CollectionOptions,
        uuid: Uuid,
    ) -> Result<OpTime> {
        self.outside_transaction(ctx)?.create_as(ns, options, uuid).await
    }
    /// The same of a part of a sharded collection, or of what comes from another shard.
    pub async fn create_part(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        options: CollectionOptions,
        uuid: Uuid,
    ) -> Result<OpTime> {
        self.outside_transaction(ctx)?.of_part().create_as(ns, options, uuid).await
    }
    /// Creates a collection, and nothing else. The collation in `options` is in full form.
    pub async fn create_collection(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        options: CollectionOptions,
    ) -> Result<OpTime> {
        self.outside_transaction(ctx)?.create_collection(ns, options).await
    }
    /// Creates indexes, with default options a collection, and returns when they are ready. In a transaction they are made at
    /// once, for a collection that is empty.
    pub async fn create_indexes(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        specs: &[&RawDoc],
        quorum: &RawDoc,
    ) -> Result<IndexesCreated> {
        self.placed(ctx, ns, Kind::Write)?;
        let Some(open) = open_txn(ctx) else {
            return self.outside_transaction(ctx)?.create_indexes_with(ns, specs, quorum, &ByCtx(ctx)).await;
        };
        let existing = open.collection(&self.catalog, ns)?;
        open.with(|unit| self.permitted(ctx).create_indexes_within(unit, ns, existing.as_ref(), specs))
    }
    /// The same without a say in who must have finished.
    pub async fn create_own_indexes(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        specs: &[&RawDoc],
    ) -> Result<IndexesCreated> {
        self.outside_transaction(ctx)?.create_indexes(ns, specs, &ByCtx(ctx)).await
    }
    pub async fn drop_indexes(
        &self,
        ctx: &OpCtx,
        ns: &Namespace,
        which: DropWhich<'_>,
    ) -> Result<IndexesDropped> {
        self.placed(ctx, ns, Kind::Write)?;
        ctx.interruptible(self.outside_transaction(ctx)?.drop_indexes(ns, which)).await?
    }
    /// Drops a collection, a time series or a view.
    pub async fn drop_collection(&self, ctx: &OpCtx, ns: &Namespace) -> Result<Dropped> {
        let catalog = self.outside_transaction(ctx)?;
        let done = ctx.interruptible(catalog.drop_collection(ns)).await?;
        if let Err(e) = &done
            && e.code == ErrorCode::NamespaceNotFound
        {
            // What is dropped is told by the catalog's observers, which nothing tells of what is not there.
            ctx.client.audit(|| Event::drop_collection(ns.as_str(), e.code));
        }
        done
    }
    /// Drops this shard's part of a collection.
    pub async fn drop_part(&self, ctx: &OpCtx, ns: &Namespace) -> Result<Dropped> {
        ctx.interruptible(self.outside_transaction(ctx)?.of_part().drop_collection(ns)).await?
    }
    /// Drops what was copied into another database: see [`Catalog::drop_copied`].
    pub async fn drop_copied(&self, ctx: &OpCtx, ns: &Namespace) -> Result<Dropped> {
        ctx.interruptible(self.outside_transaction(ctx)?.drop_copied(ns)).await?
    }
    /// Drops a collection that the operation has made for itself, also when it is to stop: nobody else would before the next start.
    pub async fn drop_temporary(&self, ctx: &OpCtx, ns: &Namespace) -> Result<Dropped> {
        self.outside_transaction(ctx)?.drop_collection(ns).await
    }
    /// `collMod`, whose fields were checked.
    pub async fn coll_mod(&self, ctx: &OpCtx, ns: &Namespace, fields: &RawDoc) -> Result<Modified> {
        self.placed(ctx, ns, Kind::Write)?;
        ctx.interruptible(self.outside_transaction(ctx)?.coll_mod(ns, fields)).await?
    }
    pub async fn rename_collection(
        &self,
        ctx: &OpCtx,
        from: &Namespace,
        to: &Namespace,
        drop_target: bool,
    ) -> Result<OpTime> {
        self.outside_transaction(ctx)?.rename_collection(from, to, drop_target, &ByCtx(ctx)).await
    }
    /// The first half of a rename into another database: see [`Catalog::copy_to_database`].
    pub async fn copy_to_database(
        &self,
        ctx: &OpCtx,
        from: &Namespace,
        to: &Namespace,
        uuid: Uuid,
        drop_target: bool,
    ) -> Result<OpTime> {
        let catalog = self.outside_transaction(ctx)?;
        catalog.copy_to_database(from, to, uuid, drop_target, &ByCtx(ctx)).await
    }
    /// The same of a part of a sharded collection, which takes the place of what has that name here.
    pub async fn rename_part(&self, ctx: &OpCtx, from: &Namespace, to: &Namespace) -> Result<OpTime> {
        self.outside_transaction(ctx)?.of_part().rename_collection(from, to, true, &ByCtx(ctx)).await
    }
    /// Keeps the newest documents that fit into `size` bytes.
    pub async fn convert_to_capped(&self, ctx: &OpCtx, ns: &Namespace, size: i64) -> Result<OpTime> {
        self.outside_transaction(ctx)?.convert_to_capped(ns, size, &ByCtx(ctx)).await
    }
    /// The same into a new collection.
    pub async fn clone_as_capped(
        &self,
        ctx: &OpCtx,
        from: &Namespace,
        to: &Namespace,
        size: i64,
    ) -> Result<OpTime> {
        self.outside_transaction(ctx)?.clone_as_capped(from, to, size, &ByCtx(ctx)).await
    }
}
