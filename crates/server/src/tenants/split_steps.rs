//! What the donor's primary does for a shard split, step by step, as `pando_workflows::shard_split` orders it.

use super::steps::Step;
use crate::replication::role_changes::RoleChanges;
use pando_base::{Error, ErrorCode, OpTime, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc, Value};
use pando_command::Param;
use pando_repl::ReplSetConfig;
use pando_repl::topology::Event;
use pando_repl::topology::config::Member;
use pando_repl::topology::split;
use pando_repl::topology::write_concern::{Concern, Waiter, Want};
use pando_tenants::{Kind, Operation};
use pando_workflows::shard_split;
use std::sync::Arc;
use std::time::Duration;

struct Split<'a> {
    step: Step<'a>,
    tag: &'a str,
    set: &'a str,
}

pub(crate) async fn run(roles: &RoleChanges, body: &RawDoc) -> Result<DocBuf> {
    let step = Step::new(roles, body, "shard split")?;
    let (tag, set) = (step.text("recipientTagName")?, step.text("recipientSetName")?);
    let split = Split { step, tag, set };
    match split.step.name() {
        shard_split::VALIDATE => split.validate(),
        shard_split::LOOK => split.look(),
        shard_split::CATCH_UP => split.catch_up().await,
        shard_split::SPLIT => split.split().await,
        _ => split.step.common(Param::shardSplitGarbageCollectionDelayMS).await,
    }
}

impl Split<'_> {
    fn config(&self) -> Result<Arc<ReplSetConfig>> {
        self.step.roles.replication.member.require_config()
    }
    fn recipients(&self, hosts: &[String], split: Option<bool>) -> DocBuf {
        let mut b = DocBuilder::new();
        if let Some(split) = split {
            b.bool("split", split);
        }
        b.array("recipients", |list| hosts.iter().for_each(|host| _ = list.str(host)));
        b.i64("timeoutMs", self.step.roles.instance.params.int(Param::shardSplitTimeoutMS));
        b.finish()
    }

    /// SV-SPLIT-1, SV-LOCK, SV-CMD-4.
    fn validate(&self) -> Result<DocBuf> {
        let tenants: Vec<&str> = self.step.tenant_ids().collect();
        let state = shard_split::begin(&self.step.id, &tenants, self.tag, self.set, &self.config()?.name);
        self.step.tenants.blockers.reserve(&Operation::parse(Kind::ShardSplit, &state)?)?;
        let config = self.config()?;
        let hosts = self.step.roles.replication.check_split(self.tag, self.set)?;
        // What could not be installed later is told before anybody has to wait; which set that would be does not matter.
        let before = config.recipient_config.as_ref().map(|r| r.name.as_str());
        split::split_config(&config, self.tag, self.set, ObjectId([0; 12]), before)?;
        Ok(self.recipients(&hosts, None))
    }
    /// Whether the configuration in force is the split one; one that is on its way is waited for.
    fn look(&self) -> Result<DocBuf> {
        let replication = &self.step.roles.replication;
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
        let Some(Value::Timestamp(block)) = self.step.body.get("blockTimestamp") else {
            return Err(Error::internal("a catch-up without a blockTimestamp"));
        };
        let hosts = self.step.roles.replication.check_split(self.tag, self.set)?;
        let tags = vec![(self.tag.to_owned(), hosts.len() as u32)];
        let target = self.op_time_of(block)?;
        let concern = Concern { want: Want::Tags(tags), journaled: true };
        let coordinator = self.step.roles.replication.coordinator()?;
        let waiting = coordinator.ask(|id| Event::Await(Waiter { id, target, concern }));
        let ms = self.step.body.get("maxTimeMS").and_then(|v| v.as_i64()).unwrap_or(1).max(1);
        let limit = Duration::from_millis(ms as u64);
        match self.step.roles.env.timeout(limit, waiting).await {
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
        let last = self.step.roles.replication.last_applied();
        if last.ts < block {
            return Err(Error::internal("a blockTimestamp that is ahead of the log"));
        }
        self.step.roles.replication.write_noop("the recipients of a shard split are waited for")
    }
    /// SV-SPLIT-10.
    async fn split(&self) -> Result<DocBuf> {
        let before = self.config()?.recipient_config.as_ref().map(|r| r.name.clone());
        let before = before.filter(|name| name != self.set);
        if let Some(name) = &before {
            let undecided = |o: &Operation| o.recipient_set == *name && !o.is_decided();
            if self.step.tenants.blockers.all().iter().any(|(operation, _)| undecided(operation)) {
                let text = format!("members have to leave for {name} first");
                return Err(Error::new(ErrorCode::ConfigurationInProgress, text));
            }
        }
        self.step.roles.replication.install_split_config(self.tag, self.set, before.as_deref()).await?;
        Ok(DocBuf::default())
    }
}
