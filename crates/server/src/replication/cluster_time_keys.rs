//! `admin.system.keys`: the keys that a set signs its cluster times with. A primary makes them, ahead of time, and takes none into
//! use before a majority holds it; all members read them (T-CC-2, T-CC-3). In a cluster the config servers make them for everybody: a shard
//! has none before it belongs to one, and then theirs ([`crate::sharding::time_keys`]).

use super::Replication;
use super::cluster_clock::ClusterTime;
use pando_access::Uninterrupted;
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp, limits};
use pando_command::Param;
use pando_command::cluster_time::{BYTES, Key, Keys, Signature};
use pando_command::roles::ClusterRole;
use pando_env::Component;
use pando_storage::ReadAt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

fn keys_ns() -> Namespace {
    Namespace::unchecked("admin", "system.keys")
}

/// What this server knows of them.
#[derive(Default)]
pub(crate) struct ClusterTimeKeys(Mutex<Known>);

#[derive(Default)]
struct Known {
    keys: Keys,
    /// When they were read last.
    read: Option<Duration>,
    of_cluster: bool,
}

impl ClusterTimeKeys {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// What was read may have been undone. What config servers have told is theirs.
    pub(crate) fn forget(&self) {
        let mut known = self.known();
        if !known.of_cluster {
            *known = Known::default();
        }
    }
    /// Those of the config servers.
    pub(crate) fn take_over(&self, keys: Vec<Key>) {
        *self.known() = Known { keys: Keys::new(keys), read: None, of_cluster: true };
    }
}

impl Replication {
    /// Zeros where nothing is signed, and before the set has a key.
    pub(crate) fn sign_cluster_time(&self, time: Timestamp) -> Signature {
        if !self.config.signs_cluster_times {
            return Signature::default();
        }
        let mut known = self.cluster_time_keys.known();
        if let Some(signature) = known.keys.sign(time) {
            return signature;
        }
        self.read_again(&mut known);
        known.keys.sign(time).unwrap_or_default()
    }
    /// A time from outside that is ahead of this server's (204, 211).
    pub(crate) fn check_cluster_time(&self, time: Timestamp, signature: &Signature) -> Result<()> {
        if !self.config.signs_cluster_times {
            return Ok(());
        }
        let mut known = self.cluster_time_keys.known();
        known.keys.check(time, signature).or_else(|e| {
            let lacks_key = e.code == pando_base::ErrorCode::KeyNotFound;
            if lacks_key && self.read_again(&mut known) { known.keys.check(time, signature) } else { Err(e) }
        })
    }
    /// A time that another node or a client has seen.
    pub(crate) fn advance_cluster_time(&self, seen: Timestamp, signature: Option<&Signature>) -> Result<()> {
        if !self.member.is_replicated() || seen <= self.storage.log().clock() {
            return Ok(());
        }
        if let Some(signature) = signature {
            self.check_cluster_time(seen, signature)?;
        }
        let drift = self.instance.params.int(Param::maxAcceptableLogicalClockDriftSecs);
        let now_secs = (self.env.clock.wall_ms() / 1000).max(0) as u32;
        if seen.secs() > now_secs.saturating_add(drift as u32) {
            return Err(Error::new(
                ErrorCode::ClusterTimeFailsRateLimiter,
                format!(
                    "New $clusterTime, {}, is too far from this node's wall clock time, {now_secs}.",
                    seen.secs()
                ),
            ));
        }
        // Unsigned, nobody has proved where this comes from: far ahead, it is heard and not taken over. A clock never goes back.
        let near = seen.secs() <= now_secs.saturating_add(limits::CLUSTER_TIME_AHEAD_SECS);
        if near || self.config.signs_cluster_times {
            self.storage.log().advance_clock(seen);
        }
        Ok(())
    }
    /// A time after all that this server has seen, and before all that it will give to writes.
    pub(crate) fn next_time(&self) -> Timestamp {
        let log = self.storage.log();
        let next = Timestamp(log.clock().0 + 1);
        log.advance_clock(next);
        next
    }
    fn takes_keys_of_cluster(&self) -> bool {
        self.config.cluster_role == Some(ClusterRole::Shard)
    }
    pub(crate) fn signs_cluster_times(&self) -> bool {
        self.config.signs_cluster_times
    }
    /// Not at every request that names a key of its own invention.
    fn read_again(&self, known: &mut Known) -> bool {
        if self.takes_keys_of_cluster() {
            return false;
        }
        let now = self.env.clock.mono();
        let pause = Duration::from_millis(limits::CLUSTER_TIME_KEYS_READ_MS);
        if known.read.is_some_and(|read| now < read + pause) {
            return false;
        }
        known.read = Some(now);
        match self.committed_keys() {
            Ok(keys) => known.keys = Keys::new(keys),
            Err(e) => self.env.log.warn(Component::Storage, 9100035, "Keys could not be read", |a| {
                a.data("error", &e);
            }),
        }
        true
    }
    /// A key that can still be rolled back signs nothing.
    fn committed_keys(&self) -> Result<Vec<Key>> {
        self.keys_at(ReadAt::At(self.committed()))
    }
    fn keys_at(&self, at: ReadAt) -> Result<Vec<Key>> {
        Ok(self.internal.all(&keys_ns(), at)?.iter().filter_map(|doc| Key::parse(doc)).collect())
    }
    /// On a primary: the keys for now and for the time behind.
    pub(crate) async fn make_cluster_time_keys(&self) -> Result<()> {
        if self.takes_keys_of_cluster() {
            return Ok(());
        }
        let secret = || {
            let mut bytes = [0; BYTES];
            self.env.rng.fill(&mut bytes);
            bytes
        };
        let interval = self.instance.params.int(Param::KeysRotationIntervalSec) as u32;
        // A set that rests has a clock that rests: its next write jumps to the time of day.
        let wall = Timestamp::new((self.env.clock.wall_ms() / 1000).max(0) as u32, 0);
        let now = self.storage.log().clock().max(wall);
        let made = Keys::new(self.keys_at(ReadAt::Latest)?).missing(now, interval, secret);
        for key in made {
            let at = self.internal.put(&Uninterrupted, &keys_ns(), &key.to_doc()).await?;
            self.await_majority(at).await?;
        }
        Ok(())
    }
}

impl ClusterTime for Replication {
    fn cluster_time(&self) -> Option<(Timestamp, Signature)> {
        let time = self.member.is_initiated().then(|| self.storage.log().clock())?;
        Some((time, self.sign_cluster_time(time)))
    }
    fn advance(&self, time: Timestamp, by: &Signature) -> Result<()> {
        self.advance_cluster_time(time, Some(by))
    }
}

/// Keys last for months, so that nobody waits for this.
pub(crate) async fn run(replication: Arc<Replication>) {
    let lasts = replication.instance.params.int(Param::KeysRotationIntervalSec) as u64;
    let every = Duration::from_secs(limits::CLUSTER_TIME_KEYS_CHECK_SECS.min(lasts.div_ceil(2)));
    while replication.lifecycle.pause(every).await {
        if !replication.member.accepts_writes() || !replication.member.is_replicated() {
            continue;
        }
        if let Err(e) = replication.make_cluster_time_keys().await {
            replication.env.log.warn(Component::Repl, 9100036, "Keys were not made; will try again", |a| {
                a.data("error", &e);
            });
        }
    }
}
