//! The set that a tenant comes from, as its primary is found: whoever answers as one is asked first the next time.

use crate::replication::role_changes::RoleChanges;
use pando_base::codes::class;
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{DocBuf, RawDoc};
use pando_rpc::{Kind, Retry};
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
    /// 9 for what names no set.
    pub(crate) fn parse(text: &str) -> Result<PeerSet> {
        let wrong = || Error::failed_to_parse(format!("'{text}' is not the name of a set with its members"));
        let (name, hosts) = text.split_once('/').ok_or_else(wrong)?;
        let hosts: Vec<String> = hosts.split(',').map(str::to_owned).collect();
        match name.is_empty() || hosts.iter().any(String::is_empty) {
            true => Err(wrong()),
            false => Ok(PeerSet { name: name.to_owned(), hosts, primary: AtomicUsize::new(0) }),
        }
    }
    /// Asks the primary, whoever that is meanwhile. The command has the effect of one when it is carried out twice.
    ///
    /// # Errors
    /// The primary's own; of the last host where none has answered as one in time.
    pub(crate) async fn call(&self, roles: &RoleChanges, body: &RawDoc) -> Result<DocBuf> {
        let clock = &roles.env.clock;
        let until = clock.mono() + Duration::from_millis(limits::WORKFLOW_CALL_MS_MAX);
        let mut last = Error::new(ErrorCode::HostUnreachable, format!("no primary of {} answers", self.name));
        for tries in 1.. {
            let left = until.saturating_sub(clock.mono());
            if left.is_zero() {
                break;
            }
            let at = self.primary.load(Relaxed) % self.hosts.len();
            let limit = left.min(Duration::from_millis(limits::PEER_SET_HOST_MS_MAX));
            match roles.replication.peers.call(&self.hosts[at], body, Retry::Idempotent, limit).await {
                Ok(reply) => return Ok(reply),
                Err(f) if f.kind == Kind::Command && !is_of_office(&f.error) => return Err(f.error),
                Err(f) => last = f.error,
            }
            self.primary.store((at + 1) % self.hosts.len(), Relaxed);
            if tries % self.hosts.len() == 0 {
                clock.sleep(Duration::from_millis(limits::PEER_SET_PAUSE_MS)).await;
            }
        }
        Err(last)
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
    fn a_set_has_a_name_and_hosts() {
        let set = PeerSet::parse("donor/a:1,b:2").expect("a set");
        assert_eq!((set.name.as_str(), set.hosts.len()), ("donor", 2));
        for wrong in ["", "a:1,b:2", "/a:1", "donor/", "donor/a:1,,b:2"] {
            assert!(PeerSet::parse(wrong).is_err(), "{wrong}");
        }
    }
}
