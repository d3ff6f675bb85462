//! What a shard has to do for `renameCollection` (SYS-249). The order of things is `pando_workflows::rename_collection`'s.

use super::Ddl;
use crate::commands;
use crate::sharding::fences::{Part, behind};
use crate::sharding::sections;
use pando_access::{Collection, names};
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp, Uuid, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_metadata_cache::Ask;
use pando_request::declare::Kind;
use pando_request::define::rename_collection::{DropTarget, Dropped};
use pando_shard::metadata::KnownDatabase;
use pando_workflows::rename_collection::{self, reason};
use std::sync::Arc;

/// What a step of the coordinator's node is about.
struct Wanted<'a> {
    to: Namespace,
    request: &'a RawDoc,
}

impl<'a> Wanted<'a> {
    fn of(body: &'a RawDoc) -> Result<Wanted<'a>> {
        let lost = || Error::internal(format!("a coordinator's state without a request: {body}"));
        let to = body.get("to").and_then(|v| v.as_str().map(Namespace::parse)).ok_or_else(lost)??;
        Ok(Wanted { to, request: body.get("request").and_then(|v| v.as_doc()).ok_or_else(lost)? })
    }
    fn drop_target(&self) -> Dropped {
        let asked = self.request.get("dropTarget").and_then(DropTarget::read);
        asked.unwrap_or(Dropped::Anything(false))
    }
}

/// What is kept of a sharded collection has longer names than its own.
fn check_sharded_name(to: &Namespace) -> Result<()> {
    let max = limits::SHARDED_NAMESPACE_BYTES_MAX;
    if to.as_str().len() > max {
        let text = format!("Namespace of target collection too long. Namespace: {to}. Max: {max}");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    if to.coll().starts_with("system.") {
        let text = format!("a sharded collection cannot be renamed to {to}");
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    Ok(())
}

fn uuid_at(body: &RawDoc, name: &str) -> Option<Uuid> {
    match body.get(name)? {
        Value::Binary { subtype: 4, bytes } => Uuid::from_slice(bytes),
        _ => None,
    }
}

impl Ddl<'_> {
    /// Whether it can be renamed so, and what that means: see `rename_collection::LOOK`. Asking the config servers first, this node
    /// has heard of every time that they have: the number is above those of all earlier definitions of both names.
    pub(super) async fn look_at_rename(&self, from: &Namespace, body: &RawDoc) -> Result<DocBuf> {
        let wanted = Wanted::of(body)?;
        let to = &wanted.to;
        self.check_has_not_moved(from.db()).await?;
        names::check_renamable(from, to)?;
        self.sharding.refresh_anew(from).await?;
        self.sharding.refresh_anew(to).await?;
        let table = |ns: &Namespace| self.sharding.metadata.known(ns).table().cloned();
        let (source, target) = (table(from), table(to));
        if source.is_some() {
            check_sharded_name(to)?;
        }
        let is_across = from.db() != to.db();
        if is_across && (source.is_some() || target.is_some()) {
            let text = "Source and destination collections must be on the same database.";
            return Err(Error::new(ErrorCode::CommandFailed, text));
        }
        let uuid = match &source {
            Some(table) => table.collection.uuid,
            None => self.source(from)?.uuid,
        };
        if is_across {
            self.check_is_here(to.db()).await?;
        }
        if let Some(expected) = uuid_at(wanted.request, "collectionUUID").filter(|expected| *expected != uuid)
        {
            self.server.access.check_uuid(from, expected)?;
        }
        self.check_target(&wanted, target.as_ref().map(|t| t.collection.uuid))?;
        self.check_no_zones(to).await?;
        let is_building = |c: &Arc<Collection>| !c.building_indexes().is_empty();
        if self.server.access.definitions().collection(from).is_some_and(is_building) {
            let text = format!(
                "cannot perform operation: an index build is currently running for collection '{from}'"
            );
            return Err(Error::new(ErrorCode::BackgroundOperationInProgressForNamespace, text));
        }
        let mut b = DocBuilder::new();
        b.uuid("collectionUUID", &uuid.0);
        if source.is_some() {
            b.object_id("epoch", crate::object_id::new_object_id(self.ctx.env()));
        }
        if let Some(target) = &target {
            b.uuid("targetUUID", &target.collection.uuid.0);
        }
        if is_across {
            b.uuid("copyUUID", &self.server.upkeep.maintenance.new_uuid().0);
        }
        self.append_number(&mut b, "a collection is renamed", from.as_str()).await?;
        Ok(b.finish())
    }
    /// The other database of a rename.
    ///
    /// # Errors
    /// 125 where another shard is its primary, or there is none of that name.
    async fn check_is_here(&self, db: &str) -> Result<()> {
        self.sharding.refresh_database_anew(db).await?;
        if let Some(KnownDatabase::Here(_)) = self.sharding.metadata.known_database(db) {
            return Ok(());
        }
        let text = "Source and destination collections must be on same shard";
        Err(Error::new(ErrorCode::CommandFailed, text))
    }
    /// What is not sharded is here.
    fn source(&self, from: &Namespace) -> Result<Arc<Collection>> {
        let definitions = self.server.access.definitions();
        if definitions.is_view(from) {
            let text = format!("cannot rename view: {from}");
            return Err(Error::new(ErrorCode::CommandNotSupportedOnView, text));
        }
        definitions.collection(from).cloned().ok_or_else(|| {
            Error::new(ErrorCode::NamespaceNotFound, format!("Source collection {from} does not exist"))
        })
    }
    /// Whether what has the name may make room.
    fn check_target(&self, wanted: &Wanted<'_>, sharded: Option<Uuid>) -> Result<()> {
        let (to, definitions) = (&wanted.to, self.server.access.definitions());
        if definitions.is_view(to) {
            let text = format!("a view already exists with that name: {to}");
            return Err(Error::new(ErrorCode::NamespaceExists, text));
        }
        let there = sharded.or_else(|| definitions.collection(to).map(|c| c.uuid));
        if there.is_some() && wanted.drop_target() != Dropped::Anything(false) {
            names::check_droppable(to, true, false)?;
        }
        match wanted.drop_target() {
            Dropped::Anything(true) => Ok(()),
            Dropped::Anything(false) if there.is_none() => Ok(()),
            Dropped::Anything(false) if sharded.is_some() => {
                let text = format!("Sharded target collection {to} exists but dropTarget is not set");
                Err(Error::new(ErrorCode::NamespaceExists, text))
            }
            Dropped::Anything(false) => {
                Err(Error::new(ErrorCode::NamespaceExists, "target namespace exists"))
            }
            Dropped::Uuid(expected) if there == Some(Uuid(expected)) => Ok(()),
            Dropped::Uuid(expected) => self.server.access.check_uuid(to, Uuid(expected)),
        }
    }

    /// Zones of the new name would be another collection's.
    async fn check_no_zones(&self, to: &Namespace) -> Result<()> {
        let mut filter = DocBuilder::new();
        filter.str("ns", to.as_str());
        if self.cluster.catalog.read(&Ask::of("tags", filter.finish())).await?.is_empty() {
            return Ok(());
        }
        let text = format!("Can't rename to target collection {to} because it must not have associated tags");
        Err(Error::new(ErrorCode::CommandFailed, text))
    }

    /// The coordinator's own part; what is not sharded is all here. The same once more changes nothing.
    pub(super) async fn rename_here(&self, from: &Namespace, body: &RawDoc) -> Result<()> {
        let wanted = Wanted::of(body)?;
        let lost = || Error::internal(format!("a rename of nothing: {body}"));
        let uuid = uuid_at(body, "collectionUUID").ok_or_else(lost)?;
        // Whoever makes a collection for a range that comes here is out, or finds the section.
        let _parts = self.take_parts(from, &wanted.to, None).await?;
        if body.get("epoch").is_some() || body.get("targetUUID").is_some() {
            return self.rename_locally(from, &wanted.to, uuid, true).await;
        }
        if let Some(copy) = uuid_at(body, "copyUUID") {
            return self.copy_here(from, &wanted, uuid, copy).await;
        }
        if self.server.access.name_of(uuid).as_ref() == Some(&wanted.to) {
            return Ok(());
        }
        let mut b = DocBuilder::new();
        b.str("renameCollection", from.as_str()).str("to", wanted.to.as_str());
        for option in ["dropTarget", "stayTemp"] {
            wanted.request.elem(option).into_iter().for_each(|e| _ = b.elem(e));
        }
        b.uuid("collectionUUID", &uuid.0);
        let body = b.finish();
        let request = Ddl::request("renameCollection", "admin", &body);
        commands::rename_collection::run(self.server, self.ctx, request).await?;
        self.forget_names(from, &wanted.to);
        Ok(())
    }
    /// A rename into another database as far as the new name has a copy of all there is. That may have been done in an earlier attempt: nobody has
    /// written by either name since.
    async fn copy_here(&self, from: &Namespace, wanted: &Wanted<'_>, uuid: Uuid, copy: Uuid) -> Result<()> {
        let (access, to) = (&self.server.access, &wanted.to);
        if access.name_of(copy).as_ref() != Some(to) {
            access.check_uuid(from, uuid)?;
            self.server.upkeep.admission.before_write(self.ctx).await?;
            let drops = wanted.drop_target() != Dropped::Anything(false);
            self.ctx.wrote(access.copy_to_database(self.ctx, from, to, copy, drops).await?);
        }
        self.forget_names(from, to);
        Ok(())
    }
    /// What was copied goes; what somebody else has made of that name stays.
    pub(super) async fn drop_source(&self, from: &Namespace, body: &RawDoc) -> Result<()> {
        let _part = self.take_part(from, None, true).await?;
        let uuid = uuid_at(body, "collectionUUID");
        let is_it = self.server.access.definitions().collection(from).is_some_and(|c| Some(c.uuid) == uuid);
        match is_it {
            true => self.dropped(from, self.server.access.drop_copied(self.ctx, from).await),
            false => Ok(()),
        }
    }
    /// What this shard has of the collection gets the new name; what has that name here is of what makes room, or nobody's. `tells`: change streams
    /// hear of it from this shard.
    async fn rename_locally(&self, from: &Namespace, to: &Namespace, uuid: Uuid, tells: bool) -> Result<()> {
        let has =
            |ns: &Namespace| self.server.access.definitions().collection(ns).is_some_and(|c| c.uuid == uuid);
        if has(to) {
            // It was done before.
        } else if has(from) {
            let (access, ctx) = (&self.server.access, self.ctx);
            ctx.wrote(match tells {
                true => access.rename_collection(ctx, from, to, true).await?,
                false => access.rename_part(ctx, from, to).await?,
            });
        } else {
            let dropped = self.server.access.drop_part(self.ctx, to).await;
            self.dropped(to, dropped)?;
        }
        self.forget_names(from, to);
        Ok(())
    }
    fn forget_names(&self, from: &Namespace, to: &Namespace) {
        for ns in [from, to] {
            self.server.statistics.top.forget(ns.as_str());
            self.sharding.forget(ns);
        }
    }

    /// Another shard's part: nobody reads or writes by either name from here on, until [`Self::unblock_part`].
    ///
    /// # Errors
    /// 225 when a newer definition of one of the names has been here, or this one is over.
    pub(crate) async fn rename_part(
        &self,
        from: &Namespace,
        to: &Namespace,
        uuid: Uuid,
        at: Option<Timestamp>,
    ) -> Result<()> {
        let _parts = self.take_parts(from, to, at).await?;
        let internal = self.server.access.internal_collections();
        let reason = reason(from, to.as_str());
        // Whoever only reads need not wait for those who write.
        for block_reads in [false, true] {
            for ns in [from, to] {
                let entered =
                    sections::enter(&internal, &self.server.upkeep.maintenance, ns, &reason, block_reads);
                self.ctx.interruptible(entered).await??.into_iter().for_each(|at| self.ctx.wrote(at));
            }
        }
        self.committed().await?;
        self.rename_locally(from, to, uuid, false).await
    }
    /// The names are free: what comes later of this definition, or is of an older one, is refused.
    pub(crate) async fn unblock_part(
        &self,
        from: &Namespace,
        to: &Namespace,
        at: Option<Timestamp>,
    ) -> Result<()> {
        let _parts = self.take_parts(from, to, at.map(behind)).await?;
        let internal = self.server.access.internal_collections();
        let reason = reason(from, to.as_str());
        for ns in [from, to] {
            let left = sections::leave(&internal, ns, &reason).await?;
            left.into_iter().for_each(|at| self.ctx.wrote(at));
        }
        Ok(())
    }
    /// # Errors
    /// 117 while a definition gives the name to another collection, or takes it from this one.
    pub(in crate::commands::shardsvr) fn check_not_renamed_now(&self, ns: &Namespace) -> Result<()> {
        match sections::command(&self.server.access.internal_collections(), ns)?.as_deref() {
            Some(rename_collection::SECTION) => {
                let text = format!("collection {ns} is being renamed");
                Err(Error::new(ErrorCode::ConflictingOperationInProgress, text))
            }
            _ => Ok(()),
        }
    }
    /// Of both names, in their order.
    async fn take_parts(&self, from: &Namespace, to: &Namespace, at: Option<Timestamp>) -> Result<[Part; 2]> {
        let (first, second) = if from.as_str() < to.as_str() { (from, to) } else { (to, from) };
        Ok([self.take_part(first, at, true).await?, self.take_part(second, at, true).await?])
    }
}
