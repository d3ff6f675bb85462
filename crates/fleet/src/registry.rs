//! Shards by name, set and host: what `config.shards` says, as of one topology time (SYS-206, SH-REG-1).

use crate::monitors::{Monitors, SetMonitor};
use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_bson::{RawDoc, Value};
use pando_routing::ShardId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A document of `config.shards`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShardEntry {
    pub id: ShardId,
    pub set: String,
    pub hosts: Vec<String>,
    pub zones: Vec<String>,
    pub draining: bool,
    /// When it was added.
    pub topology_time: Timestamp,
}

impl ShardEntry {
    pub fn parse(doc: &RawDoc) -> Result<ShardEntry> {
        let text = |name: &str| doc.get(name).and_then(|v| v.as_str());
        let wrong =
            |what: &str| Error::new(ErrorCode::NoSuchKey, format!("a shard's entry without {what}: {doc}"));
        let id = ShardId::new(text("_id").ok_or_else(|| wrong("_id"))?);
        let host = text("host").ok_or_else(|| wrong("host"))?;
        let (set, hosts) = host.split_once('/').ok_or_else(|| wrong("the name of a set in its host"))?;
        let zones = doc.get("tags").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
        Ok(ShardEntry {
            id,
            set: set.to_owned(),
            hosts: hosts.split(',').map(str::to_owned).collect(),
            zones: zones.iter().filter_map(|e| e.value().as_str().map(str::to_owned)).collect(),
            draining: doc.get("draining").is_some_and(|v| v.is_truthy()),
            topology_time: match doc.get("topologyTime") {
                Some(Value::Timestamp(t)) => t,
                _ => Timestamp::ZERO,
            },
        })
    }
}

/// A shard that can be called.
#[derive(Clone)]
pub struct Shard {
    pub entry: Arc<ShardEntry>,
    pub monitor: SetMonitor,
}

/// All shards at one time. Immutable.
#[derive(Default)]
pub struct Shards {
    by_id: BTreeMap<ShardId, Shard>,
    by_set: BTreeMap<String, ShardId>,
    by_host: BTreeMap<String, ShardId>,
    topology_time: Timestamp,
}

impl Shards {
    pub fn get(&self, id: &ShardId) -> Option<&Shard> {
        self.by_id.get(id)
    }
    pub fn of_set(&self, name: &str) -> Option<&Shard> {
        self.by_id.get(self.by_set.get(name)?)
    }
    pub fn of_host(&self, host: &str) -> Option<&Shard> {
        self.by_id.get(self.by_host.get(host)?)
    }
    pub fn iter(&self) -> impl Iterator<Item = &Shard> {
        self.by_id.values()
    }
    pub fn len(&self) -> usize {
        self.by_id.len()
    }
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
    pub fn topology_time(&self) -> Timestamp {
        self.topology_time
    }
    /// 70 where it is not known.
    pub fn expect(&self, id: &ShardId) -> Result<&Shard> {
        self.get(id).ok_or_else(|| Error::new(ErrorCode::ShardNotFound, format!("Shard {id} not found")))
    }
}

/// The present state, replaced as a whole.
pub struct Registry {
    monitors: Monitors,
    now: Mutex<Arc<Shards>>,
}

impl Registry {
    pub fn new(monitors: Monitors) -> Registry {
        Registry { monitors, now: Mutex::default() }
    }
    pub fn shards(&self) -> Arc<Shards> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    /// Puts what was read at `topology_time` in place of what is there, unless that is newer. Monitors of sets that stay
    /// know what they knew.
    pub fn install(&self, entries: Vec<ShardEntry>, topology_time: Timestamp) {
        let mut next = Shards { topology_time, ..Shards::default() };
        for entry in entries {
            let monitor = self.monitors.of(&entry.set, entry.hosts.iter().map(String::as_str));
            next.by_set.insert(entry.set.clone(), entry.id.clone());
            for host in &entry.hosts {
                next.by_host.insert(host.clone(), entry.id.clone());
            }
            next.by_id.insert(entry.id.clone(), Shard { entry: Arc::new(entry), monitor });
        }
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if now.topology_time <= topology_time {
            let before = std::mem::replace(&mut *now, Arc::new(next));
            drop(now);
            // Monitors that nobody needs any more end outside of the lock.
            drop(before);
        }
    }
}
