//! Who waits for whom: locks in memory around reading, deciding and writing (SYS-257, SH-HIST-1).
//!
//! They hold only as long as this process is primary: what the next primary reads is what was written here, and a write of a former
//! primary does not come through.

use pando_access::{Guard, Lock};
use pando_env::Env;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What a change is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Subject {
    /// Which sets become shards: held while one does, and by who tells something to all that there are.
    Membership,
    /// Which shards there are.
    Topology,
    /// Zones of shards and of collections.
    Zones,
    /// `balancer` and its like in `config.settings`.
    Settings,
    /// The entry of a database, whatever case its name is written in.
    Database(String),
    /// The entry of a collection and its chunks.
    Collection(String),
    /// Who may own something: shared by those who give a shard what it had not, held by who takes a shard away.
    Owners,
}

#[derive(Default)]
pub(crate) struct Mutexes(Mutex<BTreeMap<Subject, Lock>>);

impl Mutexes {
    /// Whoever wants several asks for them in the order of [`Subject`].
    pub(crate) async fn lock(&self, env: &Env, subject: Subject) -> Guard {
        self.of(subject).exclusive(&env.clock).await
    }
    /// Keeps those away who lock it, and nobody else who does the same.
    pub(crate) async fn share(&self, env: &Env, subject: Subject) -> Guard {
        self.of(subject).shared(&env.clock).await
    }
    fn of(&self, subject: Subject) -> Lock {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody holds those or waits for them.
        locks.retain(|_, lock| lock.is_shared_with_others());
        locks.entry(subject).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_storage::testing::env;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn one_at_a_time_for_each_subject() {
        let (mutexes, env) = (Mutexes::default(), env());
        let mut cx = Context::from_waker(Waker::noop());
        let mut first = pin!(mutexes.lock(&env, Subject::Collection("d.c".to_owned())));
        let Poll::Ready(held) = first.as_mut().poll(&mut cx) else { panic!("nobody holds it") };
        let mut other = pin!(mutexes.lock(&env, Subject::Collection("d.x".to_owned())));
        assert!(other.as_mut().poll(&mut cx).is_ready());
        let mut second = pin!(mutexes.lock(&env, Subject::Collection("d.c".to_owned())));
        assert!(second.as_mut().poll(&mut cx).is_pending());
        drop(held);
        assert!(second.as_mut().poll(&mut cx).is_ready());
    }
}
