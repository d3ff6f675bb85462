//! One definition at a time for each name (SH-DDL-3). Held in memory: those of definitions that go on, a new primary takes again before
//! it lets anybody else in.

use pando_access::{Guard, Lock};
use pando_env::Env;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// DDL locks of a shard, by namespace or database.
#[derive(Default)]
pub(crate) struct DdlLocks(Mutex<BTreeMap<String, Lock>>);

impl DdlLocks {
    /// The lock of a collection. That of its database is shared.
    pub(crate) async fn collection(&self, env: &Env, db: &str, ns: &str) -> (Guard, Guard) {
        (self.shared(env, db).await, self.exclusive(env, ns).await)
    }
    pub(crate) async fn shared(&self, env: &Env, name: &str) -> Guard {
        self.of(name).shared(&env.clock).await
    }
    pub(crate) async fn exclusive(&self, env: &Env, name: &str) -> Guard {
        self.of(name).exclusive(&env.clock).await
    }
    fn of(&self, name: &str) -> Lock {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody holds those or waits for them.
        locks.retain(|_, lock| lock.is_shared_with_others());
        locks.entry(name.to_owned()).or_default().clone()
    }
}
