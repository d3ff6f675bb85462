//! The set that a tenant comes from, as its primary is found: whoever answers as one is asked first the next time.

use crate::replication::role_changes::RoleChanges;
use pando_base::codes::class;
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{DocBuf, RawDoc};
use pando_rpc::{Kind, Retry};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// `name/host:port,host:port`.
#[derive(Debug)]
pub(crate) struct PeerSet {
    pub(crate) name: String,
    hosts: Vec<String>,
    /// Of the hosts, the one that has answered last.
    primary: AtomicUsize,
}

impl PeerSet {
    /// # Errors
    /// 9 for what does not name a set and one of its members at least.
    pub(crate) fn parse(text: &str) -> Result<PeerSet> {
        let wrong = |why: &str| Error::failed_to_parse(format!("{why}: '{text}'"));
        let (name, hosts) =
            text.split_once('/').ok_or_else(|| wrong("not the connection string of a replica set"))?;
        let hosts: Vec<String> = hosts.split(',').map(str::to_owned).collect();
        let well = |host: &String| {
            host.rsplit_once(':').is_some_and(|(name, port)| !name.is_empty() && port.parse::<u16>().is_ok())
        };
        if name.is_empty() || !hosts.iter().all(well) {
            return Err(wrong("a set's name and its members as 'host:port' are needed"));
        }
        let different = hosts.iter().collect::<BTreeSet<_>>().len();
        if different != hosts.len() || hosts.len() > limits::REPLSET_MEMBERS_MAX {
            return Err(wrong("a member is named twice, or there are too many"));
        }
        Ok(PeerSet { name: name.to_owned(), hosts, primary: AtomicUsize::new(0) })
    }
    pub(crate) fn hosts(&self) -> &[String] {
        &self.hosts
    }
    /// Who has answered last.
    pub(crate) fn primary(&self) -> &str {
        &self.hosts[self.primary.load(Relaxed) % self.hosts.len()]
    }
    /// Asks the primary, whoever that is meanwhile. The command has the effect of one when it is carried out twice.
    ///
    /// # Errors
    /// The primary's own; 133 where none has answered as one in time, never what a node says that is primary no more: it is not this one.
    pub(crate) async fn call(&self, roles: &RoleChanges, body: &RawDoc) -> Result<DocBuf> {
        let limit = Duration::from_millis(limits::WORKFLOW_CALL_MS_MAX);
        self.call_within(roles, body, Duration::from_millis(limits::PEER_SET_HOST_MS_MAX), limit).await
    }
    /// The same with how long one host may take, and all of it.
    pub(crate) async fn call_within(
        &self,
        roles: &RoleChanges,
        body: &RawDoc,
        of_host: Duration,
        of_all: Duration,
    ) -> Result<DocBuf> {
        let clock = &roles.env.clock;
        let until = clock.mono() + of_all;
        let mut last = None;
        for tries in 1.. {
            let left = until.saturating_sub(clock.mono());
            if left.is_zero() {
                break;
            }
            let at = self.primary.load(Relaxed) % self.hosts.len();
            let limit = left.min(of_host);
            match roles.replication.peers.call(&self.hosts[at], body, Retry::Idempotent, limit).await {
                Ok(reply) => return Ok(reply),
                Err(f) if f.kind == Kind::Command && !is_of_office(&f.error) => return Err(f.error),
                Err(f) => last = Some(f.error),
            }
            self.primary.store((at + 1) % self.hosts.len(), Relaxed);
            if tries % self.hosts.len() == 0 {
                clock.sleep(Duration::from_millis(limits::PEER_SET_PAUSE_MS)).await;
            }
        }
        let why = last.map_or_else(String::new, |why| format!(" :: caused by :: {why}"));
        let text = format!("no primary of {} answers{why}", self.name);
        Err(Error::new(ErrorCode::FailedToSatisfyReadPreference, text))
    }
}

/// Another member may answer instead.
fn is_of_office(e: &Error) -> bool {
    e.code.is(class::NOT_PRIMARY | class::INTERRUPTION) || e.code == ErrorCode::ShutdownInProgress
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_named_with_its_members() {
        let set = PeerSet::parse("r/a:1,b:2").unwrap();
        assert_eq!((set.name.as_str(), set.hosts()), ("r", &["a:1".to_owned(), "b:2".to_owned()][..]));
        for bad in ["", "r", "r/", "/a:1", "r/a", "r/a:x", "r/a:1,", "r/a:1,a:1", "a:1,b:1"] {
            let e = PeerSet::parse(bad).err().unwrap_or_else(|| panic!("{bad} is taken"));
            assert_eq!(e.code, ErrorCode::FailedToParse);
        }
    }
}
