//! One definition at a time for each name (SH-DDL-3). Held in memory: those of definitions that go on, a new primary takes again before
//! it lets anybody else in.

use super::name_locks::NameLocks;
use pando_access::Guard;
use pando_env::Env;

/// DDL locks of a shard, by namespace or database.
#[derive(Default)]
pub(crate) struct DdlLocks(NameLocks);

impl DdlLocks {
    /// The lock of a collection. That of its database is shared.
    pub(crate) async fn collection(&self, env: &Env, db: &str, ns: &str) -> (Guard, Guard) {
        (self.shared(env, db).await, self.exclusive(env, ns).await)
    }
    pub(crate) async fn shared(&self, env: &Env, name: &str) -> Guard {
        self.0.of(name).shared(&env.clock).await
    }
    pub(crate) async fn exclusive(&self, env: &Env, name: &str) -> Guard {
        self.0.of(name).exclusive(&env.clock).await
    }
}
