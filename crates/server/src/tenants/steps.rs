//! Steps that the machines of splits and of migrations have in common: index builds are given up, tenants are blocked, a decision gets its place in
//! the log, and a document the time when it goes.

use super::Tenants;
use crate::replication::role_changes::RoleChanges;
use pando_base::{Error, Result, TenantId, Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value, doc};
use pando_command::Param;
use pando_workflows::ddl::uuid_at;
use pando_workflows::shard_split;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A step's arguments, as far as all have them.
pub(super) struct Step<'a> {
    pub(super) roles: &'a RoleChanges,
    pub(super) tenants: Arc<Tenants>,
    pub(super) body: &'a RawDoc,
    pub(super) id: Uuid,
    /// For messages.
    what: &'static str,
}

impl<'a> Step<'a> {
    pub(super) fn new(roles: &'a RoleChanges, body: &'a RawDoc, what: &'static str) -> Result<Step<'a>> {
        let id = uuid_at(body, "migrationId");
        let id = id.ok_or_else(|| Error::internal(format!("not a step of a {what}: {body}")))?;
        let none = || Error::internal(format!("a {what} without --serverless"));
        let tenants = roles.tenants.clone().ok_or_else(none)?;
        Ok(Step { roles, tenants, body, id, what })
    }
    pub(super) fn name(&self) -> &'a str {
        self.body.first().map_or("", |e| e.name())
    }
    pub(super) fn text(&self, field: &str) -> Result<&'a str> {
        let found = self.body.get(field).and_then(|v| v.as_str());
        found.ok_or_else(|| {
            Error::internal(format!("a step of a {} without {field}: {}", self.what, self.body))
        })
    }
    pub(super) fn tenant_ids(&self) -> impl Iterator<Item = &'a str> {
        let list = self.body.get("tenantIds").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
        list.iter().filter_map(|e| e.value().as_str())
    }

    /// One of the common steps. `delay`: how long a document stays that may be forgotten.
    pub(super) async fn common(&self, delay: Param) -> Result<DocBuf> {
        match self.name() {
            shard_split::ABORT_BUILDS => self.abort_builds().await,
            shard_split::BLOCK => self.block().await,
            shard_split::NUMBER => self.number(),
            shard_split::EXPIRE => self.expire(delay),
            name => Err(Error::internal(format!("no step of a {}: {name}", self.what))),
        }
    }
    /// Every member has its blockers by now: no build begins. Those under way are given up.
    async fn abort_builds(&self) -> Result<DocBuf> {
        let maintenance = &self.roles.maintenance;
        let tenants: BTreeSet<&str> = self.tenant_ids().collect();
        for db in maintenance.databases() {
            if !TenantId::of(&db).is_some_and(|tenant| tenants.contains(tenant)) {
                continue;
            }
            // Behind this lock is whoever began before the blockers came.
            let _locked = maintenance.lock_database(&db).await;
            for ns in maintenance.names_in_database(&db) {
                maintenance.abort_builds(&ns, "the tenant moves to another set").await?;
            }
        }
        Ok(DocBuf::default())
    }
    /// Writes are blocked first, and an entry is written afterwards: whatever of the tenants commits is before it. So is the end of every index
    /// build: none has begun since builds were given up, perhaps by another primary, and what that one has left is given up here.
    async fn block(&self) -> Result<DocBuf> {
        self.abort_builds().await?;
        self.tenants.blockers.block_writes(&self.id);
        let text = format!("the tenants of a {} are blocked", self.what);
        let at = self.roles.replication.write_noop(&text)?;
        Ok(doc! { "blockTimestamp": at.ts }.to_raw())
    }
    /// SV-DOC-5: a place in this set's log that stands for the decision.
    fn number(&self) -> Result<DocBuf> {
        let at = self.roles.replication.write_noop(&format!("a {} is decided", self.what))?;
        let mut b = DocBuilder::new();
        shard_split::append_op_time(&mut b, "opTime", at);
        Ok(b.finish())
    }
    /// SV-GC-1.
    fn expire(&self, delay: Param) -> Result<DocBuf> {
        let now = self.roles.env.clock.wall_ms();
        let delay = self.roles.instance.params.int(delay);
        let at = match self.body.get("expireAt") {
            Some(Value::DateTime(at)) => at,
            _ => now.saturating_add(delay),
        };
        let mut b = DocBuilder::new();
        b.date("expireAt", at).i64("afterMs", at.saturating_sub(now).max(0));
        Ok(b.finish())
    }
}
