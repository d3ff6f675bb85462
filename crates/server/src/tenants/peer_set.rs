//! Another set, of which only a connection string is known: its primary is asked, whoever that is by now.

use crate::replication::Replication;
use pando_base::codes::class;
use pando_base::panics::poisoned;
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{DocBuf, RawDoc};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

/// `<name>/<host>:<port>,<host>:<port>`
pub(crate) struct PeerSet {
    pub(crate) name: String,
    hosts: Vec<String>,
    /// Who answered as a primary last.
    primary: Mutex<usize>,
}

impl PeerSet {
    /// # Errors
    /// 9 for what does not name a set and one of its members at least.
    pub(crate) fn parse(text: &str) -> Result<PeerSet> {
        let wrong = |why: &str| Error::failed_to_parse(format!("{why}: '{text}'"));
        let (name, hosts) = text.split_once('/').ok_or_else(|| wrong("not the connection string of a replica set"))?;
        let hosts: Vec<String> = hosts.split(',').map(str::to_owned).collect();
        let well = |host: &String| {
            host.rsplit_once(':').is_some_and(|(name, port)| !name.is_empty() && port.parse::<u16>().is_ok())
        };
        if name.is_empty() || !hosts.iter().all(well) {
            return Err(wrong("a set's name and its members as 'host:port' are needed"));
        }
        if hosts.iter().collect::<BTreeSet<_>>().len() != hosts.len() || hosts.len() > limits::REPLSET_MEMBERS_MAX {
            return Err(wrong("a member is named twice, or there are too many"));
        }
        Ok(PeerSet { name: name.to_owned(), hosts, primary: Mutex::new(0) })
    }
    pub(crate) fn hosts(&self) -> &[String] {
        &self.hosts
    }
    /// What the primary says to a command that may be sent twice.
    ///
    /// # Errors
    /// Its own; 133 where nobody there is primary, never one that says so of this node.
    pub(crate) async fn call(&self, replication: &Replication, body: &RawDoc) -> Result<DocBuf> {
        let limit = Duration::from_millis(limits::WORKFLOW_CALL_MS_MAX);
        let first = *self.primary.lock().unwrap_or_else(poisoned);
        let mut last = None;
        for i in 0..self.hosts.len() {
            let at = (first + i) % self.hosts.len();
            let host = &self.hosts[at];
            let said = replication.peers.call(host, body, pando_rpc::Retry::Idempotent, limit).await;
            match said.map_err(Error::from) {
                Err(e) if is_no_primary(&e) => last = Some(e),
                said => {
                    *self.primary.lock().unwrap_or_else(poisoned) = at;
                    return said;
                }
            }
        }
        let text = match last {
            Some(e) => format!("no primary of {} answers: {e}", self.name),
            None => format!("{} has no members", self.name),
        };
        Err(Error::new(ErrorCode::FailedToSatisfyReadPreference, text))
    }
}

/// Whether another member has to be asked.
fn is_no_primary(e: &Error) -> bool {
    e.code.is(class::NOT_PRIMARY | class::SHUTDOWN | class::RECOVERING | class::NETWORK)
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
