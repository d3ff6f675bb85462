//! A configuration on its way in: how far it is, and what the members asked about it say (R-CONF-7).

use crate::config::{Member, ReplSetConfig};
use crate::event::Token;
use crate::member::MemberId;
use crate::message::{Failure, HeartbeatReply};
use pando_base::{Error, ErrorCode};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Stage {
    /// Until the present configuration is committed.
    Precondition,
    Quorum,
    Locating,
    /// Not one of those that stay: of those that leave?
    LocatingRecipient,
    Persisting,
}

/// A configuration on its way in.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ConfigChange {
    pub(crate) id: u64,
    pub(crate) config: Arc<ReplSetConfig>,
    pub(crate) self_index: Option<usize>,
    pub(crate) stage: Stage,
    /// The command to answer.
    pub(crate) token: Option<Token>,
    pub(crate) initiate: bool,
    pub(crate) force: bool,
    /// It is that of a set of its own, for which this node leaves the present one (SV-SPLIT-11).
    pub(crate) leaves: bool,
    /// Answers of the quorum check: `Ok(())`, or why not.
    answers: BTreeMap<MemberId, Result<(), String>>,
}

impl ConfigChange {
    pub(crate) fn installing(
        config: Arc<ReplSetConfig>,
        self_index: Option<usize>,
        token: Option<Token>,
    ) -> Self {
        ConfigChange {
            id: 0,
            config,
            self_index,
            stage: Stage::Persisting,
            token,
            initiate: false,
            force: false,
            leaves: false,
            answers: BTreeMap::new(),
        }
    }
    /// The id that this node has in it.
    fn own_id(&self) -> Option<MemberId> {
        self.self_index.map(|i| self.config.members[i].id)
    }

    /// What a member asked in the quorum check says of it.
    pub(crate) fn take_answer(&mut self, from: MemberId, result: Result<HeartbeatReply, Failure>) {
        let answer = match result {
            Err(failure) => Err(failure.text()),
            Ok(reply) if self.initiate && reply.config_id.version > 0 => {
                Err("it is already a member of a replica set".to_owned())
            }
            Ok(reply) if !self.force && reply.config_id.is_newer_than(self.config.id()) => Err(format!(
                "Our config version of {} is no larger than the version on it, which is {}",
                self.config.version, reply.config_id.version
            )),
            Ok(_) => Ok(()),
        };
        self.answers.insert(from, answer);
    }

    /// This node, or one that has agreed.
    fn agrees(&self, id: MemberId) -> bool {
        Some(id) == self.own_id() || self.answers.get(&id) == Some(&Ok(()))
    }

    /// Whether the quorum check is passed, once that is known; `over` when no more answers come.
    pub(crate) fn quorum(&self, over: bool) -> Option<bool> {
        let members = &self.config.members;
        let others = members.len() - usize::from(self.self_index.is_some());
        let complete = over || self.answers.len() == others;
        let voters = self.config.voters();
        let good_voters = members.iter().filter(|m| m.is_voter() && self.agrees(m.id)).count();
        let enough = good_voters > voters / 2
            && members.iter().any(|m| m.priority > 0.0 && !m.arbiter_only && self.agrees(m.id));
        let all = members.iter().all(|m| self.agrees(m.id));
        let passed = self.force || all || (!self.initiate && enough);
        (passed || complete).then_some(passed)
    }

    /// What the command is told when the quorum check fails.
    pub(crate) fn quorum_failure(&self) -> Error {
        let why = |m: &Member| match self.answers.get(&m.id) {
            Some(Err(why)) => Some(format!("{} failed with {why}", m.host)),
            None if self.own_id() != Some(m.id) => Some(format!("{} failed with no answer in time", m.host)),
            _ => None,
        };
        let failures: Vec<String> = self.config.members.iter().filter_map(why).collect();
        let what = if self.initiate {
            "replSetInitiate quorum check failed because not all proposed set members responded affirmatively: "
                .to_owned()
        } else {
            let voters = self.config.members.iter().filter(|m| m.is_voter() && self.agrees(m.id));
            let there: Vec<&str> = voters.map(|m| m.host.as_str()).collect();
            format!(
                "Quorum check failed because not enough voting nodes responded; required {} but only the following \
                 {} voting nodes responded: {}; the following nodes did not respond affirmatively: ",
                self.config.majority_votes(),
                there.len(),
                there.join(", ")
            )
        };
        Error::new(ErrorCode::NodeNotFound, format!("{what}{}", failures.join(", ")))
    }
}
