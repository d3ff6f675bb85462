//! Finds locks that are asked for in the wrong order, in every test and every build with debug assertions: each of them may
//! be one half of a deadlock, long before two operations meet so that it becomes one.
//!
//! The rules: a database before its collections; two databases in the order of their names; a second collection only under the
//! lock of a database, which keeps others from doing the same the other way round. Locks that a transaction keeps between
//! its statements are not a task's any more ([`super::lock::Guard::leave_task`]): those who wait behind them or for them do so for
//! a limited time.
//!
//! A task is known by the address of its waker, which stays the same as long as the task lives.

use pando_base::HashMap;
use pando_base::panics::poisoned;
use pando_env::op_locks::Class;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex, MutexGuard};

/// What a lock protects.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Resource {
    Database(String),
    Collection,
    FeatureVersion,
    /// Something else, with rules of its own.
    #[default]
    Other,
}

impl Resource {
    /// As whose lock it is counted.
    pub fn class(&self) -> Option<Class> {
        match self {
            Resource::Database(_) => Some(Class::Database),
            Resource::Collection => Some(Class::Collection),
            Resource::FeatureVersion => Some(Class::FeatureCompatibilityVersion),
            Resource::Other => None,
        }
    }
}

static HELD: LazyLock<Mutex<HashMap<usize, Vec<(u64, Resource)>>>> = LazyLock::new(Mutex::default);
static NEXT: AtomicU64 = AtomicU64::new(0);

fn held() -> MutexGuard<'static, HashMap<usize, Vec<(u64, Resource)>>> {
    HELD.lock().unwrap_or_else(poisoned)
}

/// A lock that a task holds.
#[derive(Debug)]
pub(crate) struct Ticket {
    task: usize,
    id: u64,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut held = held();
        if let Some(locks) = held.get_mut(&self.task) {
            locks.retain(|(id, _)| *id != self.id);
            if locks.is_empty() {
                held.remove(&self.task);
            }
        }
    }
}

/// Why the next lock may not be asked for by somebody who holds these.
fn inversion(held: &[Resource], next: &Resource) -> Option<&'static str> {
    let has_database = held.iter().any(|r| matches!(r, Resource::Database(_)));
    let has_collection = held.contains(&Resource::Collection);
    match next {
        Resource::Database(_) if has_collection => Some("a database after a collection"),
        Resource::Database(name) => {
            let later = |r: &Resource| matches!(r, Resource::Database(other) if other >= name);
            held.iter().any(later).then_some("a database after one of a later name")
        }
        Resource::Collection if has_collection && !has_database => {
            Some("a second collection without the lock of a database")
        }
        _ => None,
    }
}

/// The task asks for a lock, or has just got one without asking.
pub(crate) fn check(task: usize, next: &Resource) {
    if task == 0 || *next == Resource::Other {
        return;
    }
    let mine: Vec<Resource> =
        held().get(&task).into_iter().flatten().map(|(_, resource)| resource.clone()).collect();
    if let Some(what) = inversion(&mine, next) {
        panic!("locks out of order: {what}: {mine:?}, then {next:?}");
    }
}

pub(crate) fn note(task: usize, resource: &Resource) -> Option<Ticket> {
    if task == 0 || *resource == Resource::Other {
        return None;
    }
    let id = NEXT.fetch_add(1, Relaxed);
    held().entry(task).or_default().push((id, resource.clone()));
    Some(Ticket { task, id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inversions_are_found_and_the_usual_order_is_not_one() {
        let db = |name: &str| Resource::Database(name.to_owned());
        let coll = Resource::Collection;
        assert_eq!(inversion(&[], &coll), None);
        assert_eq!(inversion(&[db("a")], &coll), None);
        assert_eq!(inversion(&[db("a"), coll.clone()], &coll), None);
        assert_eq!(inversion(&[db("a")], &db("b")), None);
        assert!(inversion(&[db("b")], &db("a")).is_some());
        assert!(inversion(&[db("a")], &db("a")).is_some());
        assert!(inversion(std::slice::from_ref(&coll), &db("a")).is_some());
        assert!(inversion(std::slice::from_ref(&coll), &coll).is_some());
    }

    #[test]
    #[should_panic(expected = "locks out of order: a database after a collection")]
    fn a_task_that_holds_a_collection_may_not_ask_for_a_database() {
        let _held = note(77, &Resource::Collection);
        check(77, &Resource::Database("d".to_owned()));
    }

    #[test]
    fn what_was_let_go_does_not_count() {
        drop(note(78, &Resource::Collection));
        check(78, &Resource::Database("d".to_owned()));
        check(79, &Resource::Collection);
    }
}
