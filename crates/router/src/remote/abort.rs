//! Ends what shards hold open of a transaction.

use super::envelope::append_session;
use super::shards::Shards;
use pando_base::session_id::SessionId;
use pando_bson::DocBuilder;
use pando_env::together;
use pando_fleet::Fleet;
use pando_metadata_cache::{MetadataCache, limit};
use pando_routing::ShardId;
use pando_rpc::Retry;

impl Shards {
    /// Ends a transaction's parts without waiting for that.
    pub(crate) fn abort_in_background(&self, lsid: SessionId, number: i64, shards: Vec<ShardId>) {
        if !shards.is_empty() {
            let (catalog, fleet) = (self.catalog.clone(), self.fleet.clone());
            let ending = async move { abort_all(&catalog, &fleet, lsid, number, shards).await };
            self.env.spawn("aborts a transaction", ending);
        }
    }
    /// The same, until all have heard of it or cannot be reached.
    pub(crate) async fn abort_and_wait(&self, lsid: SessionId, number: i64, shards: Vec<ShardId>) {
        abort_all(&self.catalog, &self.fleet, lsid, number, shards).await;
    }
}

async fn abort_all(
    catalog: &MetadataCache,
    fleet: &Fleet,
    lsid: SessionId,
    number: i64,
    shards: Vec<ShardId>,
) {
    let mut b = DocBuilder::new();
    b.i32("abortTransaction", 1);
    append_session(&mut b, Some(&lsid));
    b.i64("txnNumber", number).bool("autocommit", false);
    b.doc("writeConcern", |d| _ = d.i32("w", 1)).str("$db", "admin");
    let body = b.finish();
    let (body, primary) = (&body, &pando_monitor::ReadPreference::default());
    let calls = shards.iter().map(|shard| async move {
        let Ok(set) = catalog.set_of(shard).await else { return };
        // A shard that does not hear of it ends its part by itself.
        let _ = fleet.call(&set, primary, body, &[], Retry::Idempotent, limit()).await;
    });
    together(calls.collect()).await;
}
