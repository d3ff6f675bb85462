//! What the donor's primary does for a shard split, step by step, as `pando_workflows::shard_split` orders it.

use super::Tenants;
use crate::replication::role_changes::RoleChanges;
use pando_base::{Error, ErrorCode, OpTime, Result, TenantId, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc, Value, doc};
use pando_command::Param;
use pando_repl::ReplSetConfig;
use pando_repl::topology::Event;
use pando_repl::topology::config::Member;
use pando_repl::topology::split;
use pando_repl::topology::write_concern::{Concern, Waiter, Want};
use pando_tenants::{Kind, Operation};
use pando_workflows::ddl::uuid_at;
use pando_workflows::shard_split;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A step's arguments, as far as all have them.
struct Step<'a> {
    roles: &'a RoleChanges,
    tenants: Arc<Tenants>,
    body: &'a RawDoc,
    id: Uuid,
    tag: &'a str,
    set: &'a str,
}

pub(crate) async fn run(roles: &RoleChanges, body: &RawDoc) -> Result<DocBuf> {
    let name = body.first().map_or("", |e| e.name());
    let text = |field: &str| body.get(field).and_then(|v| v.as_str());
    let id = uuid_at(body, "migrationId");
    let (Some(id), Some(tag), Some(set)) = (id, text("recipientTagName"), text("recipientSetName")) else {
        return Err(Error::internal(format!("not a step of a shard split: {body}")));
    };
    let tenants =
        roles.tenants.clone().ok_or_else(|| Error::internal("a shard split without --serverless"))?;
    let step = Step { roles, tenants, body, id, tag, set };
    match name {
        shard_split::VALIDATE => step.validate(),
        shard_split::ABORT_BUILDS => step.abort_builds().await,
        shard_split::BLOCK => step.block(),
        shard_split::LOOK => step.look(),
        shard_split::CATCH_UP => step.catch_up().await,
        shard_split::SPLIT => step.split().await,
        shard_split::NUMBER => step.number(),
        shard_split::EXPIRE => step.expire(),
        _ => Err(Error::internal(format!("no step of a shard split: {name}"))),
    }
}

impl Step<'_> {
    fn config(&self) -> Result<Arc<ReplSetConfig>> {
        self.roles.replication.member.require_config()
    }
    fn tenant_ids(&self) -> impl Iterator<Item = &str> {
        let list = self.body.get("tenantIds").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
        list.iter().filter_map(|e| e.value().as_str())
    }
    fn recipients(&self, hosts: &[String], split: Option<bool>) -> DocBuf {
        let mut b = DocBuilder::new();
        if let Some(split) = split {
            b.bool("split", split);
        }
        b.array("recipients", |list| hosts.iter().for_each(|host| _ = list.str(host)));
        b.i64("timeoutMs", self.roles.instance.params.int(Param::shardSplitTimeoutMS));
        b.finish()
    }

    /// SV-SPLIT-1, SV-LOCK, SV-CMD-4.
    fn validate(&self) -> Result<DocBuf> {
        let tenants: Vec<&str> = self.tenant_ids().collect();
        let state = shard_split::begin(&self.id, &tenants, self.tag, self.set, &self.config()?.name);
        self.tenants.blockers.reserve(&Operation::parse(Kind::ShardSplit, &state)?)?;
        let config = self.config()?;
        let hosts = self.roles.replication.check_split(self.tag, self.set)?;
        // What could not be installed later is told before anybody has to wait; which set that would be does not matter.
        let before = config.recipient_config.as_ref().map(|r| r.name.as_str());
        split::split_config(&config, self.tag, self.set, ObjectId([0; 12]), before)?;
        Ok(self.recipients(&hosts, None))
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
    /// Writes are blocked first, and an entry is written afterwards: whatever of the tenants commits is before it.
    fn block(&self) -> Result<DocBuf> {
        self.tenants.blockers.block_writes(&self.id);
        let at = self.roles.replication.write_noop("the tenants of a shard split are blocked")?;
        Ok(doc! { "blockTimestamp": at.ts }.to_raw())
    }
    /// Whether the configuration in force is the split one; one that is on its way is waited for.
    fn look(&self) -> Result<DocBuf> {
        let replication = &self.roles.replication;
        if replication.is_reconfiguring()? {
            let text = "a reconfiguration is on its way";
            return Err(Error::new(ErrorCode::ConfigurationInProgress, text));
        }
        if let Some(hosts) = replication.is_split_for(self.set) {
            return Ok(self.recipients(&hosts, Some(true)));
        }
        let config = self.config()?;
        let leaves = |m: &&Member| m.tags.iter().any(|(key, _)| key == self.tag);
        let hosts: Vec<String> = config.members.iter().filter(leaves).map(|m| m.host.clone()).collect();
        Ok(self.recipients(&hosts, Some(false)))
    }
    /// SV-SPLIT-8: every member with the tag has what is before `blockTimestamp`.
    async fn catch_up(&self) -> Result<DocBuf> {
        let Some(Value::Timestamp(block)) = self.body.get("blockTimestamp") else {
            return Err(Error::internal("a catch-up without a blockTimestamp"));
        };
        let hosts = self.roles.replication.check_split(self.tag, self.set)?;
        let tags = vec![(self.tag.to_owned(), hosts.len() as u32)];
        let target = self.op_time_of(block)?;
        let concern = Concern { want: Want::Tags(tags), journaled: true };
        let coordinator = self.roles.replication.coordinator()?;
        let waiting = coordinator.ask(|id| Event::Await(Waiter { id, target, concern }));
        let ms = self.body.get("maxTimeMS").and_then(|v| v.as_i64()).unwrap_or(1).max(1);
        let limit = Duration::from_millis(ms as u64);
        match self.roles.env.timeout(limit, waiting).await {
            Some(said) => said.waited()?,
            None => {
                let text = "the recipients have not caught up within shardSplitTimeoutMS";
                return Err(Error::new(ErrorCode::ExceededTimeLimit, text));
            }
        }
        Ok(DocBuf::default())
    }
    /// A place behind `blockTimestamp` that counts in this term: what an earlier primary has blocked lies before it.
    fn op_time_of(&self, block: Timestamp) -> Result<OpTime> {
        let last = self.roles.replication.last_applied();
        if last.ts < block {
            return Err(Error::internal("a blockTimestamp that is ahead of the log"));
        }
        self.roles.replication.write_noop("the recipients of a shard split are waited for")
    }
    /// SV-SPLIT-10.
    async fn split(&self) -> Result<DocBuf> {
        let before = self.config()?.recipient_config.as_ref().map(|r| r.name.clone());
        let before = before.filter(|name| name != self.set);
        if let Some(name) = &before {
            let undecided = |o: &Operation| o.recipient_set == *name && !o.is_decided();
            if self.tenants.blockers.all().iter().any(|(operation, _)| undecided(operation)) {
                let text = format!("members have to leave for {name} first");
                return Err(Error::new(ErrorCode::ConfigurationInProgress, text));
            }
        }
        self.roles.replication.install_split_config(self.tag, self.set, before.as_deref()).await?;
        Ok(DocBuf::default())
    }
    /// SV-DOC-5: a place in this set's log that stands for the decision.
    fn number(&self) -> Result<DocBuf> {
        let at = self.roles.replication.write_noop("a shard split is decided")?;
        let mut b = DocBuilder::new();
        b.doc("opTime", |d| _ = d.timestamp("ts", at.ts).i64("t", at.t));
        Ok(b.finish())
    }
    /// SV-GC-1.
    fn expire(&self) -> Result<DocBuf> {
        let now = self.roles.env.clock.wall_ms();
        let delay = self.roles.instance.params.int(Param::shardSplitGarbageCollectionDelayMS);
        let at = match self.body.get("expireAt") {
            Some(Value::DateTime(at)) => at,
            _ => now.saturating_add(delay),
        };
        let mut b = DocBuilder::new();
        b.date("expireAt", at).i64("afterMs", at.saturating_sub(now).max(0));
        Ok(b.finish())
    }
}
