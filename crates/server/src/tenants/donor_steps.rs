//! What the primary of a set does whose tenants go to another one, step by step, as `pando_workflows::donate_tenants` orders it.

use super::copy::PeerSet;
use super::steps::Step;
use crate::replication::role_changes::RoleChanges;
use pando_base::{Error, ErrorCode, Result, TenantId};
use pando_bson::{DocBuf, DocBuilder, doc};
use pando_command::Param;
use pando_tenants::{Kind, Operation};
use pando_workflows::{donate_tenants, shard_split};
use std::collections::BTreeSet;

const DELAY: Param = Param::tenantMigrationGarbageCollectionDelayMS;

pub(crate) async fn run(roles: &RoleChanges, body: &pando_bson::RawDoc) -> Result<DocBuf> {
    let step = Step::new(roles, body, "tenant migration")?;
    match step.name() {
        donate_tenants::VALIDATE => validate(&step),
        donate_tenants::LOOK_AT_TIMEOUT => Ok(doc! { "timeoutMs": blocking_limit(&step) }.to_raw()),
        donate_tenants::DISCARD => discard(&step).await,
        shard_split::ABORT_BUILDS => {
            check_no_new_tenants(&step).await?;
            step.common(DELAY).await
        }
        shard_split::EXPIRE => {
            // Of a copy that nobody has ended.
            step.tenants.exports.end(step.id);
            step.roles.backups.close_of(step.id);
            step.common(DELAY).await
        }
        _ => step.common(DELAY).await,
    }
}

fn blocking_limit(step: &Step<'_>) -> i64 {
    step.roles.instance.params.int(Param::tenantMigrationBlockingStateTimeoutMS)
}
/// The tenants that this set has.
fn tenants_here(step: &Step<'_>) -> BTreeSet<String> {
    let all = step.roles.maintenance.databases();
    all.iter().filter_map(|db| TenantId::of(db).map(str::to_owned)).collect()
}
fn is_merge(step: &Step<'_>) -> bool {
    step.text("protocol").is_ok_and(|protocol| protocol == pando_tenants::operation::MERGE)
}

/// SV-LOCK; and whom it would go to.
fn validate(step: &Step<'_>) -> Result<DocBuf> {
    let recipient = PeerSet::parse(step.text("recipientConnectionString")?)?;
    let config = step.roles.replication.member.require_config()?;
    let shared = |host: &&String| config.members.iter().any(|m| m.host == **host);
    if let Some(host) = recipient.hosts().iter().find(shared) {
        return Err(Error::bad_value(format!("{host} is a member of this set")));
    }
    let all = is_merge(step).then(|| tenants_here(step));
    let tenants = match &all {
        Some(all) => all.iter().cloned().collect(),
        None => step.tenant_ids().map(str::to_owned).collect(),
    };
    let mut b = DocBuilder::new();
    b.elems_of(step.body).uuid("_id", &step.id.0).str("state", "uninitialized");
    let operation = Operation { tenants, ..Operation::parse(Kind::Donor, &b.finish())? };
    step.tenants.blockers.reserve(&operation)?;
    let mut b = DocBuilder::new();
    b.i64("timeoutMs", blocking_limit(step));
    if let Some(all) = all {
        b.array("tenantIds", |list| all.iter().for_each(|tenant| _ = list.str(tenant)));
    }
    Ok(b.finish())
}
/// Of a set that is merged: nobody makes a tenant any more, and who came before the blockers is known.
async fn check_no_new_tenants(step: &Step<'_>) -> Result<()> {
    if !is_merge(step) {
        return Ok(());
    }
    // Whoever was asked before the blockers came has a place in the log before this entry, and is seen once a majority has it.
    let replication = &step.roles.replication;
    let at = replication.write_noop("no tenant comes into being any more")?;
    replication.await_majority(at).await?;
    let known: BTreeSet<&str> = step.tenant_ids().collect();
    match tenants_here(step).iter().find(|tenant| !known.contains(tenant.as_str())) {
        None => Ok(()),
        Some(tenant) => {
            let text = format!("tenant {tenant} has come into being meanwhile; start the migration again");
            Err(Error::new(ErrorCode::ConflictingOperationInProgress, text))
        }
    }
}
/// Clients have been told for long enough where the tenants are: what was theirs here goes, and with it whatever could be taken for theirs.
async fn discard(step: &Step<'_>) -> Result<DocBuf> {
    for tenant in step.tenant_ids() {
        step.roles.maintenance.drop_tenant(tenant).await?;
    }
    // Who reads what a majority has reads what was there before, as long as that is not so; and nobody is refused once the document goes.
    let replication = &step.roles.replication;
    let at = replication.write_noop("what tenants have left is dropped")?;
    replication.await_majority(at).await?;
    Ok(DocBuf::default())
}
