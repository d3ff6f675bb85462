//! Who waits until a write is held by enough members: kept by what they ask for and in the order of their targets, so that
//! progress looks at the first ones only.

use pando_base::{OpTime, Timestamp};
use std::collections::BTreeMap;

/// How many, or which.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Want {
    Nodes(u32),
    Majority,
    /// An entry of `settings.getLastErrorModes`.
    Mode(String),
    /// So many distinct values of each tag.
    Tags(Vec<(String, u32)>),
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Concern {
    pub want: Want,
    /// On disk, not only applied.
    pub journaled: bool,
}

/// Somebody waits for `target` to be held as `concern` says.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Waiter {
    pub id: u64,
    pub target: OpTime,
    pub concern: Concern,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Waiters {
    by_concern: BTreeMap<Concern, BTreeMap<(Timestamp, u64), OpTime>>,
    /// For cancelling.
    places: BTreeMap<u64, (Concern, Timestamp)>,
}

impl Waiters {
    pub(crate) fn add(&mut self, w: Waiter) {
        self.places.insert(w.id, (w.concern.clone(), w.target.ts));
        self.by_concern.entry(w.concern).or_default().insert((w.target.ts, w.id), w.target);
    }
    pub(crate) fn cancel(&mut self, id: u64) {
        if let Some((concern, ts)) = self.places.remove(&id)
            && let Some(queue) = self.by_concern.get_mut(&concern)
        {
            queue.remove(&(ts, id));
            if queue.is_empty() {
                self.by_concern.remove(&concern);
            }
        }
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
    pub(crate) fn concerns(&self) -> impl Iterator<Item = &Concern> {
        self.by_concern.keys()
    }
    /// Of each concern the first ones: whoever waits for more than somebody who goes on waiting is not looked at.
    pub(crate) fn satisfied(&self, is_satisfied: impl Fn(OpTime, &Concern) -> bool) -> Vec<u64> {
        let first_of = |(concern, queue): (&Concern, &BTreeMap<(Timestamp, u64), OpTime>)| -> Vec<u64> {
            let done = queue.iter().take_while(|(_, target)| is_satisfied(**target, concern));
            done.map(|((_, id), _)| *id).collect()
        };
        self.by_concern.iter().flat_map(first_of).collect()
    }
    /// Whoever asks for this waits no longer.
    pub(crate) fn drop_concern(&mut self, concern: &Concern) -> Vec<u64> {
        let queue = self.by_concern.remove(concern).unwrap_or_default();
        let ids: Vec<u64> = queue.into_keys().map(|(_, id)| id).collect();
        for id in &ids {
            self.places.remove(id);
        }
        ids
    }
    pub(crate) fn into_ids(self) -> impl Iterator<Item = u64> {
        self.places.into_keys()
    }
}
