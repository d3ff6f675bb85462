//! Remembered winners: which plan was best for a query shape.
//!
//! A winner is not trusted at once. The first one is kept inactive; the second race of its shape makes the entry
//! active when it was won with no more steps, and otherwise doubles the steps that will do. An active entry saves
//! the race; when its plan takes far more steps than then, it is made inactive again.

use pando_base::limits;
use pando_bson::DocBuf;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Remembered plan choices of one collection, by query shape. Dies with the collection's `CollectionInfo`, so
/// index changes need no invalidation.
#[derive(Debug, Default)]
pub struct PlanCache {
    entries: Mutex<BTreeMap<String, CachedPlan>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CachedPlan {
    /// [`super::Solution::signature`] of the winner.
    pub signature: String,
    /// Steps it took to win; taking many more means that the choice has grown bad.
    pub works: u64,
    pub active: bool,
    /// The query it was chosen for, and the plan, as explain shows them.
    pub query: DocBuf,
    pub plan: DocBuf,
    /// Counters of all candidates at the end of the race, the winner's first, and their scores.
    pub trial: Vec<(DocBuf, f64)>,
    /// `queryHash` and `planCacheKey`.
    pub hashes: (String, String),
    pub index_filter: bool,
    /// Unix milliseconds.
    pub created_ms: i64,
}

impl CachedPlan {
    /// Bytes it takes, nearly.
    pub fn size(&self) -> usize {
        let trial: usize = self.trial.iter().map(|(d, _)| d.as_bytes().len() + size_of::<f64>()).sum();
        size_of::<CachedPlan>()
            + self.signature.len()
            + self.query.as_bytes().len()
            + self.plan.as_bytes().len()
            + trial
    }
}

/// What a new winner does to the entry that is there.
fn merged(old: Option<CachedPlan>, new: CachedPlan) -> CachedPlan {
    match old {
        Some(old) if new.works <= old.works => CachedPlan { active: true, ..new },
        Some(old) if !old.active => {
            let works = old.works.saturating_mul(limits::PLAN_CACHE_WORKS_GROWTH).max(old.works + 1);
            CachedPlan { works, ..old }
        }
        Some(old) => old,
        None => new,
    }
}

impl PlanCache {
    pub fn get(&self, key: &str) -> Option<CachedPlan> {
        self.lock().get(key).cloned()
    }
    /// Takes note of the winner of a race.
    pub fn put(&self, key: String, mut plan: CachedPlan) {
        let mut entries = self.lock();
        if entries.len() >= limits::PLAN_CACHE_ENTRIES_MAX && !entries.contains_key(&key) {
            // Any entry will do: a lost one costs one more trial.
            entries.pop_first();
        }
        if entries.len() >= limits::PLAN_CACHE_TRIALS_MAX {
            plan.trial.clear();
        }
        let old = entries.remove(&key);
        entries.insert(key, merged(old, plan));
    }
    /// All entries.
    pub fn all(&self) -> Vec<CachedPlan> {
        self.lock().values().cloned().collect()
    }
    /// Its plan was not as good as remembered.
    pub fn deactivate(&self, key: &str) {
        if let Some(entry) = self.lock().get_mut(key) {
            entry.active = false;
        }
    }
    /// Forgets all plans of a shape, given its `queryHash`.
    pub fn forget_shape(&self, query_hash: &str) {
        self.lock().retain(|_, e| e.hashes.0 != query_hash);
    }
    pub fn clear(&self) {
        self.lock().clear();
    }
    pub fn len(&self) -> usize {
        self.lock().len()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, CachedPlan>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn won(signature: &str, works: u64) -> CachedPlan {
        CachedPlan {
            signature: signature.into(),
            works,
            active: false,
            query: DocBuf::new(),
            plan: DocBuf::new(),
            trial: Vec::new(),
            hashes: ("H".into(), "K".into()),
            index_filter: false,
            created_ms: 0,
        }
    }
    fn state(cache: &PlanCache) -> (String, u64, bool) {
        let e = cache.get("k").unwrap();
        (e.signature, e.works, e.active)
    }

    #[test]
    fn a_winner_is_used_once_it_has_won_twice() {
        let cache = PlanCache::default();
        cache.put("k".into(), won("x", 10));
        assert_eq!(state(&cache), ("x".into(), 10, false));
        cache.put("k".into(), won("y", 30));
        assert_eq!(state(&cache), ("x".into(), 20, false), "more steps: wait for one that takes fewer");
        cache.put("k".into(), won("y", 15));
        assert_eq!(state(&cache), ("y".into(), 15, true));
        cache.put("k".into(), won("z", 99));
        assert_eq!(state(&cache), ("y".into(), 15, true), "an active entry is not made worse");
        cache.deactivate("k");
        assert_eq!(state(&cache), ("y".into(), 15, false));
    }

    #[test]
    fn a_shape_is_forgotten_by_its_hash() {
        let cache = PlanCache::default();
        cache.put("k".into(), won("x", 10));
        cache.forget_shape("other");
        assert_eq!(cache.len(), 1);
        cache.forget_shape("H");
        assert!(cache.is_empty());
    }
}
