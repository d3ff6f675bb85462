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

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    fn poll<T>(f: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        match f.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(x) => Some(x),
            Poll::Pending => None,
        }
    }

    /// Nobody asks again and again, so nobody who is quicker overtakes (SYS-256).
    #[test]
    fn definitions_of_a_name_come_in_the_order_in_which_they_were_asked_for() {
        let (env, locks) = (pando_storage::testing::env(), DdlLocks::default());
        let held = poll(pin!(locks.collection(&env, "d", "d.c"))).expect("nobody else is there");
        let mut first = pin!(locks.collection(&env, "d", "d.c"));
        assert!(poll(first.as_mut()).is_none());
        // A drop of the database waits for both, and who comes behind it waits for it.
        let mut drops = pin!(locks.exclusive(&env, "d"));
        let mut late = pin!(locks.collection(&env, "d", "d.d"));
        assert!(poll(drops.as_mut()).is_none() && poll(late.as_mut()).is_none());
        drop(held);
        assert!(poll(drops.as_mut()).is_none() && poll(late.as_mut()).is_none());
        let held = poll(first.as_mut()).expect("it is its turn");
        assert!(poll(drops.as_mut()).is_none());
        drop(held);
        assert!(poll(late.as_mut()).is_none());
        drop(poll(drops.as_mut()).expect("everybody who came before is out"));
        assert!(poll(late.as_mut()).is_some());
    }
}
