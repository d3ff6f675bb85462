//! How many members, or which, must have an index before a primary makes it ready (`commitQuorum`).

use crate::config::{Member, ReplSetConfig};
use crate::mutants::{Mutant, broken};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, Value};
use std::collections::BTreeSet;

/// The bound on a quorum given as a number.
pub const NODES_MAX: i64 = pando_base::limits::REPLSET_MEMBERS_MAX as i64;

/// A commit quorum as it is given and kept.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum CommitQuorum {
    /// So many of those that hold data; 0: nobody is asked.
    Nodes(u32),
    Majority,
    /// All that vote and hold data.
    VotingMembers,
    /// An entry of `settings.getLastErrorModes`.
    Mode(String),
}

impl CommitQuorum {
    /// `None` for a value of another type.
    pub fn parse(v: &Value<'_>) -> Option<Result<CommitQuorum>> {
        Some(match v {
            Value::String("majority") => Ok(CommitQuorum::Majority),
            Value::String("votingMembers") => Ok(CommitQuorum::VotingMembers),
            Value::String("") => Err(Error::failed_to_parse("commitQuorum can't be an empty string")),
            Value::String(mode) => Ok(CommitQuorum::Mode((*mode).to_owned())),
            v if v.is_number() => match pando_bson::fields::safe_i64(v).unwrap_or(-1) {
                n @ 0..=NODES_MAX => Ok(CommitQuorum::Nodes(n as u32)),
                _ => Err(Error::failed_to_parse(format!(
                    "commitQuorum has to be a non-negative number and not greater than {NODES_MAX}"
                ))),
            },
            _ => return None,
        })
    }
    /// `{commitQuorum: ...}`.
    pub fn to_doc(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        match self {
            CommitQuorum::Nodes(n) => b.i32("commitQuorum", *n as i32),
            CommitQuorum::Majority => b.str("commitQuorum", "majority"),
            CommitQuorum::VotingMembers => b.str("commitQuorum", "votingMembers"),
            CommitQuorum::Mode(mode) => b.str("commitQuorum", mode),
        };
        b.finish()
    }
    /// Nobody is asked: a primary commits when it is ready itself.
    pub fn is_disabled(&self) -> bool {
        *self == CommitQuorum::Nodes(0)
    }
}

impl ReplSetConfig {
    /// Whether this set could ever meet it: 79 for an unknown mode, 278 for more than there is.
    pub fn check_commit_quorum(&self, quorum: &CommitQuorum) -> Result<()> {
        if let CommitQuorum::Mode(mode) = quorum
            && self.mode_tags(mode).is_none()
        {
            return Err(Error::new(
                ErrorCode::UnknownReplWriteConcern,
                format!("No write concern mode named '{mode}' found in replica set configuration"),
            ));
        }
        let hosts = |counts: fn(&Member) -> bool| -> BTreeSet<&str> {
            self.members.iter().filter(|m| counts(m)).map(|m| m.host.as_str()).collect()
        };
        let holders = hosts(Member::is_data_bearing);
        let builders = hosts(|m| m.is_data_bearing() && m.build_indexes);
        let text = if !self.meets(quorum, |host| holders.contains(host)) {
            "Not enough data-bearing nodes to satisfy commit quorum"
        } else if !self.meets(quorum, |host| builders.contains(host)) {
            "Commit quorum cannot depend on buildIndexes:false nodes; use a commit quorum that excludes these nodes"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorCode::UnsatisfiableCommitQuorum, text))
    }

    /// Whether the members that are `ready` are enough. Only members of this configuration that hold data count.
    pub fn meets(&self, quorum: &CommitQuorum, ready: impl Fn(&str) -> bool) -> bool {
        let counts = |m: &&Member| m.is_data_bearing() || broken(Mutant::QuorumCountsArbiters);
        let holders = || self.members.iter().filter(counts).filter(|m| ready(&m.host));
        match quorum {
            CommitQuorum::Nodes(n) => holders().count() >= *n as usize,
            CommitQuorum::Majority => holders().count() >= self.write_majority(),
            CommitQuorum::VotingMembers => {
                let voters = holders().filter(|m| m.is_voter() || broken(Mutant::QuorumCountsNonVoters));
                voters.count() >= self.writable_voters()
            }
            CommitQuorum::Mode(mode) => self.mode_tags(mode).is_some_and(|tags| {
                tags.iter().all(|(key, n)| {
                    let values: BTreeSet<&str> = holders()
                        .flat_map(|m| m.tags.iter().filter(|(k, _)| k == key).map(|(_, v)| v.as_str()))
                        .collect();
                    values.len() >= *n as usize
                })
            }),
        }
    }
}
