//! What the primary of a set does that tenants of another one come to, step by step, as `pando_workflows::receive_tenants` orders it.

use super::copy::{Copier, PeerSet, progress};
use super::steps::Step;
use crate::replication::role_changes::RoleChanges;
use pando_base::{Error, ErrorCode, Result, TenantId, TenantScope, Timestamp, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value, doc};
use pando_command::Param;
use pando_tenants::operation::MERGE;
use pando_tenants::{Kind, Operation};
use pando_workflows::{receive_tenants, shard_split};
use std::time::Duration;

const DELAY: Param = Param::tenantMigrationGarbageCollectionDelayMS;

pub(crate) async fn run(roles: &RoleChanges, body: &RawDoc) -> Result<DocBuf> {
    let step = Step::new(roles, body, "tenant migration's recipient")?;
    match step.name() {
        receive_tenants::VALIDATE => validate(&step),
        receive_tenants::CHECK_EMPTY => check_empty(&step).await,
        receive_tenants::CLEAR => {
            with_copier(&step, async |copier| copier.clear().await).await?;
            // Who reads what a majority has must not see it when nobody is refused any more.
            let at = step.roles.replication.write_noop("what was copied of tenants is dropped")?;
            step.roles.replication.await_majority(at).await?;
            forget_imports(&step, true).await?;
            Ok(DocBuf::default())
        }
        receive_tenants::COPY => {
            let merges = is_merge(&step);
            let copy =
                async |copier: &Copier<'_>| if merges { copier.merge().await } else { copier.copy().await };
            let at = with_copier(&step, copy).await?;
            Ok(doc! { "startApplyingDonorTimestamp": at }.to_raw())
        }
        receive_tenants::FOLLOW => follow(&step).await,
        receive_tenants::MARK => mark(&step).await,
        receive_tenants::HEAR => {
            let told = step.tenants.receptions.told(&step.id);
            Ok(doc! { "committed": told.committed, "forgotten": told.forgotten }.to_raw())
        }
        shard_split::EXPIRE => {
            // Nobody follows the donor any more.
            progress::forget(&step.roles.internal, step.id).await?;
            // Whoever waits to hear that it may be forgotten does not wait for this. Another merge may copy by now.
            if step.body.elem("expireAt").is_some() {
                forget_imports(&step, false).await?;
            }
            step.common(DELAY).await
        }
        _ => step.common(DELAY).await,
    }
}

/// Tables that were taken in, in whichever attempt, are collections by now or nothing.
async fn forget_imports(step: &Step<'_>, of_all: bool) -> Result<()> {
    match is_merge(step) {
        true => with_copier(step, async |copier| copier.forget_imports(of_all).await).await,
        false => Ok(()),
    }
}
async fn with_copier<T>(step: &Step<'_>, work: impl AsyncFnOnce(&Copier<'_>) -> Result<T>) -> Result<T> {
    let donor = PeerSet::parse(step.text("donorConnectionString")?)?;
    let tenants: Vec<&str> = step.tenant_ids().collect();
    let whose = match tenants.first() {
        _ if is_merge(step) => TenantScope::several(tenants.iter().copied()),
        Some(tenant) => TenantScope::one(tenant),
        None => return Err(Error::internal("nobody comes")),
    };
    work(&Copier { roles: step.roles, id: step.id, tenants: &tenants, whose, donor: &donor }).await
}

fn is_merge(step: &Step<'_>) -> bool {
    step.text("protocol").is_ok_and(|protocol| protocol == MERGE)
}
/// A database of one of the tenants that is here.
fn database_here(step: &Step<'_>) -> Option<String> {
    let all = step.roles.maintenance.databases();
    all.into_iter().find(|db| TenantId::of(db).is_some_and(|of| step.tenant_ids().any(|t| t == of)))
}
fn is_here(db: &str) -> Error {
    let text = format!("database {db} is here already, and a tenant that comes must have none");
    Error::new(ErrorCode::NamespaceExists, text)
}

/// SV-LOCK; and that none of them is here.
fn validate(step: &Step<'_>) -> Result<DocBuf> {
    PeerSet::parse(step.text("donorConnectionString")?)?;
    let mut b = DocBuilder::new();
    b.elems_of(step.body).uuid("_id", &step.id.0).str("state", "uninitialized");
    let kind = if is_merge(step) { Kind::MergeRecipient } else { Kind::Recipient };
    step.tenants.blockers.reserve(&Operation::parse(kind, &b.finish())?)?;
    match database_here(step) {
        Some(db) => Err(is_here(&db)),
        None => Ok(DocBuf::default()),
    }
}
/// Nobody gets at the tenants any more. Who came before that has a place in the log before the entry that is written here.
async fn check_empty(step: &Step<'_>) -> Result<DocBuf> {
    let replication = &step.roles.replication;
    let at = replication.write_noop("tenants come from another set")?;
    replication.await_majority(at).await?;
    match database_here(step) {
        Some(db) => Err(is_here(&db)),
        None => Ok(DocBuf::default()),
    }
}
/// Carries out what the donor does, until everything is here that this node was told to have.
async fn follow(step: &Step<'_>) -> Result<DocBuf> {
    let Some(Value::Timestamp(start)) = step.body.get("startApplyingDonorTimestamp") else {
        return Err(Error::internal("a donor is followed from no time on"));
    };
    let receptions = &step.tenants.receptions;
    let wait = Duration::from_millis(limits::TENANT_MIGRATION_NEWS_MS);
    with_copier(step, async |copier| {
        let mut upto = start;
        loop {
            let seen = receptions.version();
            let target = receptions.told(&step.id).target;
            upto = match target {
                Some(_) => copier.follow(upto, Duration::ZERO).await?,
                // What is cut off is fetched again: how far it came is noted with what it did.
                None => match receptions.until_told(seen, copier.follow(upto, wait)).await {
                    Some(done) => done?,
                    None => continue,
                },
            };
            if target.is_some_and(|target| upto >= target) {
                return Ok(DocBuf::default());
            }
        }
    })
    .await
}
/// Everything is on a majority, and this set's clock is ahead of whatever the donor's clients know.
async fn mark(step: &Step<'_>) -> Result<DocBuf> {
    let replication = &step.roles.replication;
    let target = step.tenants.receptions.told(&step.id).target;
    let target = target.ok_or_else(|| Error::internal("a tenant has come, and nobody said how far"))?;
    // A reader of the donor's log may have been told of a time a little later, before its members knew of the blocking.
    let beyond = Timestamp::new(target.secs() + limits::TENANT_CLOCK_AHEAD_SECS, 1);
    replication.advance_cluster_time(beyond, None)?;
    let at = replication.write_noop("tenants have come from another set")?;
    replication.await_majority(at).await?;
    let before: Timestamp = at.ts;
    Ok(doc! { "rejectReadsBeforeTimestamp": before, "blockTimestamp": target }.to_raw())
}
