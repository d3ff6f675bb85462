//! One definition at a time for each name (SH-DDL-2). Held in memory: a new primary begins without any.

use super::name_locks::NameLocks;
use pando_access::Guard;
use pando_env::Env;

/// DDL locks of a shard, by namespace or database.
#[derive(Default)]
pub(crate) struct DdlLocks(NameLocks);

impl DdlLocks {
    /// The lock of a collection. That of its database is shared.
    pub(crate) async fn collection(&self, env: &Env, db: &str, ns: &str) -> (Guard, Guard) {
        let database = self.0.of(db).shared(&env.clock).await;
        (database, self.0.of(ns).exclusive(&env.clock).await)
    }
    pub(crate) async fn database(&self, env: &Env, db: &str) -> Guard {
        self.0.of(db).exclusive(&env.clock).await
    }
}
