//! How a set becomes a shard (SYS-201): by a document that the config servers write when it is added, and at each start after that.

use super::Sharding;
use pando_access::observer::{Deleted, Inserted, OpObserver, Updated};
use pando_access::{Collection, InternalCollections, WriteOp, WriteUnit};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::RawDoc;
use pando_env::Component;
use pando_shard::ShardIdentity;
use pando_shard::identity::SHARD_IDENTITY;
use std::sync::{Arc, Weak};

impl Sharding {
    /// At the start: what was written before.
    pub(crate) fn remember_identity(&self, internal: &InternalCollections) -> Result<()> {
        let versions = Namespace::unchecked("admin", "system.version");
        if let Some(doc) = internal.named(&versions, SHARD_IDENTITY)? {
            self.take_identity(self.identity_from(&doc)?);
        }
        Ok(())
    }
    fn identity_from(&self, doc: &RawDoc) -> Result<ShardIdentity> {
        let identity = ShardIdentity::parse(doc)?;
        identity.check_name(self.on_config_servers)?;
        Ok(identity)
    }
    fn take_identity(&self, identity: ShardIdentity) {
        self.env.log.info(Component::Sharding, 22072, "Initializing sharding state", |a| {
            a.str("shardName", identity.shard.as_str());
            a.str("clusterId", &identity.cluster.to_hex());
            a.str("configsvrConnectionString", &identity.config_servers());
        });
        self.become_shard(identity);
    }
}

/// Watches the document, by whatever command it is written.
pub(crate) struct IdentityObserver(pub(crate) Weak<Sharding>);

impl IdentityObserver {
    pub(crate) fn of(sharding: &Arc<Sharding>) -> Arc<IdentityObserver> {
        Arc::new(IdentityObserver(Arc::downgrade(sharding)))
    }
    fn written(&self, unit: &mut WriteUnit, coll: &Collection, doc: &RawDoc) -> Result<()> {
        if !is_it(coll, doc) {
            return Ok(());
        }
        let Some(sharding) = self.0.upgrade() else { return Ok(()) };
        let identity = match sharding.identity_from(doc) {
            Ok(identity) => identity,
            // What is in the log has happened.
            Err(_) if unit.is_applying() => return Ok(()),
            Err(e) => return Err(e),
        };
        if let Some(known) = sharding.metadata.identity()
            && !known.is_same_shard(&identity)
            && !unit.is_applying()
        {
            let text = format!(
                "this set is shard {} of cluster {} already, and cannot become shard {} of cluster {}",
                known.shard,
                known.cluster.to_hex(),
                identity.shard,
                identity.cluster.to_hex()
            );
            return Err(Error::new(ErrorCode::IllegalOperation, text));
        }
        unit.after_commit(move |_| sharding.take_identity(identity));
        Ok(())
    }
}

fn is_it(coll: &Collection, doc: &RawDoc) -> bool {
    coll.ns.as_str() == "admin.system.version"
        && doc.get("_id").and_then(|v| v.as_str()) == Some(SHARD_IDENTITY)
}

impl OpObserver for IdentityObserver {
    fn inserted(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Inserted<'_>) -> Result<()> {
        self.written(unit, e.coll, e.doc)
    }
    fn updated(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Updated<'_>) -> Result<()> {
        self.written(unit, e.coll, e.new)
    }
    fn deleted(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Deleted<'_>) -> Result<()> {
        if is_it(e.coll, e.old) && !unit.is_applying() {
            let text = "cannot delete shardIdentity document while in --shardsvr mode";
            return Err(Error::location(40070, text));
        }
        Ok(())
    }
}
