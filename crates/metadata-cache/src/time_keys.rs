//! The keys that a cluster signs its times with: config servers make them, everybody else reads them there (T-CC-2).

use crate::{Ask, ConfigServers, lock};
use pando_base::{ErrorCode, Result, Timestamp, limits};
use pando_bson::DocBuf;
use pando_command::cluster_time::{Key, Keys, Signature};
use std::sync::Mutex;
use std::time::Duration;

/// Those that a node knows.
#[derive(Default)]
pub struct TimeKeys(Mutex<Known>);

#[derive(Default)]
struct Known {
    keys: Keys,
    /// When they were asked for last.
    asked: Option<Duration>,
}

impl TimeKeys {
    /// Zeros where no key is known.
    pub fn sign(&self, time: Timestamp) -> Signature {
        lock(&self.0).keys.sign(time).unwrap_or_default()
    }
    /// 211 for a key that is not known, 204 for a time that nobody signed.
    pub fn check(&self, time: Timestamp, signature: &Signature) -> Result<()> {
        lock(&self.0).keys.check(time, signature)
    }
    /// Whether the config servers may know a key for it that this node does not; not at every request that names a key of its own
    /// invention.
    pub fn should_ask(&self, time: Timestamp, signature: &Signature, now: Duration) -> bool {
        let known = lock(&self.0);
        let pause = Duration::from_millis(limits::CLUSTER_TIME_KEYS_READ_MS);
        let lacks_key = known.keys.check(time, signature).is_err_and(|e| e.code == ErrorCode::KeyNotFound);
        lacks_key && known.asked.is_none_or(|asked| now >= asked + pause)
    }
    /// Takes over what the config servers have.
    pub async fn read(&self, config: &ConfigServers) -> Result<()> {
        lock(&self.0).asked = Some(config.fleet.env.clock.mono());
        let keys = of_cluster(config).await?;
        lock(&self.0).keys = Keys::new(keys);
        Ok(())
    }
}

/// The keys that the config servers have.
pub async fn of_cluster(config: &ConfigServers) -> Result<Vec<Key>> {
    let ask = Ask { db: "admin", ..Ask::of("system.keys", DocBuf::new()) };
    Ok(config.find(&ask).await?.iter().filter_map(|doc| Key::parse(doc)).collect())
}
