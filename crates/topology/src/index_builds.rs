//! Who votes for which index build, and when a primary may commit one or give it up: a state machine beside [`crate::Core`],
//! without I/O.
//!
//! ```text
//!   a member that has its part ──► Vote to whoever is primary ──► written down there ──┐
//!   quorum, configuration, own part ──────────────────────────────────────────────────┴─► Permit, on the primary
//!
//!   a member whose part failed ──► VoteAbort to whoever is primary ──┐
//!   own part failed ─────────────────────────────────────────────────┤
//!   somebody does not want the build any more ───────────────────────┴─► Abort, on the primary; Keep, elsewhere
//! ```
//! * A member votes when it has its part, once for each primary and term: a new primary may not have what the last one wrote
//!   down. It votes again after a rollback, and when a vote was not taken.
//! * A primary permits a build when it has its own part and those who voted meet the quorum as it stands, in the configuration
//!   as it stands. Any change of votes, quorum or configuration is looked at anew.
//! * A member whose part failed tells that in the same way. A primary gives a build up when its own part failed or when
//!   somebody, such a member too, wishes so. A wish is heard by a writable primary or not at all: a step-down forgets it, and a
//!   member tells its failure to the next primary.
//! * Votes and quorum are documents that the set replicates ([`Event::Entries`] tells them as they are now); a build whose
//!   document is missing was begun by a server that did not write one, and nobody is asked.
//! * A document whose build is over goes.
//!
//! The shell carries the actions out and may repeat any event. Of what it finds out at once it tells the documents first and the
//! office last: an office is judged by documents that are not older than it.

use crate::commit_quorum::CommitQuorum;
use crate::config::ReplSetConfig;
use crate::member::Host;
use crate::mutants::{Mutant, broken};
use pando_base::{Term, Uuid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What `config.system.indexBuilds` says of one build.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Entry {
    pub build: Uuid,
    pub quorum: CommitQuorum,
    /// Who has voted.
    pub ready: BTreeSet<String>,
    /// This node's catalog knows an index of this build that is not ready.
    pub unfinished: bool,
}

/// How far a member's part of a build is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Part {
    #[default]
    Building,
    Ready,
    Failed,
}

/// Something happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// This node's configuration and its own name in it.
    Configured { config: Arc<ReplSetConfig>, me: Option<Host> },
    /// Who is primary, as this node sees it; `writable`: this node is, and takes writes.
    Office { term: Term, primary: Option<Host>, writable: bool },
    /// A build runs here; `unwanted`: somebody wishes to give it up.
    Running { build: Uuid, part: Part, unwanted: bool },
    /// It does not any more.
    Ended { build: Uuid },
    /// All documents, as they are now.
    Entries(Vec<Entry>),
    /// What became of a vote.
    Voted { build: Uuid, to: Host, term: Term, taken: bool },
    /// Own writes were taken back, or what this node holds was replaced.
    RolledBack,
}

/// Something to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Tell the primary that this member has its part; [`Event::Voted`] answers.
    Vote { build: Uuid, to: Host, term: Term },
    /// Tell the primary that this member cannot make its part; [`Event::Voted`] answers.
    VoteAbort { build: Uuid, to: Host, term: Term },
    /// The build may be committed here.
    Permit { build: Uuid },
    /// The build is to be given up here. Repeated as long as that has not come true.
    Abort { build: Uuid },
    /// Whoever wished to give the build up is not heard.
    Keep { build: Uuid },
    /// Nobody needs this document any more.
    Forget { build: Uuid },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Build {
    part: Part,
    unwanted: bool,
    /// Which vote is on its way, or was told, to whom and in which term.
    told: Option<(Part, Host, Term)>,
    permitted: bool,
    /// Told to give it up since this was last looked at.
    aborting: bool,
}

/// The builds of one member.
#[derive(Clone, Debug, Default)]
pub struct IndexBuilds {
    config: Option<Arc<ReplSetConfig>>,
    me: Option<Host>,
    term: Term,
    primary: Option<Host>,
    writable: bool,
    builds: BTreeMap<Uuid, Build>,
    /// `None`: not read yet, nothing is decided.
    entries: Option<BTreeMap<Uuid, Entry>>,
}

impl IndexBuilds {
    /// Takes one event and adds what is to be done.
    pub fn step(&mut self, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Configured { config, me } => (self.config, self.me) = (Some(config), me),
            Event::Office { term, primary, writable } => {
                if !writable {
                    // The next office looks at every build anew.
                    self.builds.values_mut().for_each(|b| (b.permitted, b.aborting) = (false, false));
                }
                (self.term, self.primary, self.writable) = (term, primary, writable);
            }
            Event::Running { build, part, unwanted } => {
                let b = self.builds.entry(build).or_default();
                (b.part, b.unwanted, b.aborting) = (part, unwanted, false);
            }
            Event::Ended { build } => drop(self.builds.remove(&build)),
            Event::Entries(entries) => {
                self.entries = Some(entries.into_iter().map(|e| (e.build, e)).collect());
            }
            Event::Voted { build, to, term, taken } => {
                if let Some(b) = self.builds.get_mut(&build)
                    && !taken
                    && b.told.as_ref().is_some_and(|(_, host, when)| (host, *when) == (&to, term))
                {
                    b.told = None;
                    // Not at once: the shell tells of this after a pause, and of what there is now soon after.
                    return;
                }
            }
            Event::RolledBack => self.builds.values_mut().for_each(|b| b.told = None),
        }
        self.vote(out);
        self.decide(out);
    }

    fn vote(&mut self, out: &mut Vec<Action>) {
        let Some(primary) = self.primary.clone().filter(|_| self.me.is_some()) else { return };
        let own = self.me.as_ref() == Some(&primary);
        for (build, b) in &mut self.builds {
            let vote = match b.part {
                Part::Building if broken(Mutant::BuildVoteBeforeReady) => Part::Ready,
                Part::Failed if broken(Mutant::BuildFailureUntold) => continue,
                Part::Building => continue,
                part => part,
            };
            let told = match &b.told {
                Some(_) if broken(Mutant::BuildVoteOnlyOnce) => true,
                told => *told == Some((vote, primary.clone(), self.term)),
            };
            // A primary knows what it has written down; it waits until it may write. Its own failure it need not tell.
            let known = self.entries.as_ref().and_then(|all| all.get(build));
            let there = known.is_some_and(|e| self.me.as_ref().is_some_and(|me| e.ready.contains(&**me)));
            let counts = known.is_some_and(|e| !e.quorum.is_disabled()) && !there && vote == Part::Ready;
            if told || (own && !(self.writable && counts)) {
                continue;
            }
            b.told = Some((vote, primary.clone(), self.term));
            let (build, to, term) = (*build, primary.clone(), self.term);
            out.push(match vote {
                Part::Failed => Action::VoteAbort { build, to, term },
                _ => Action::Vote { build, to, term },
            });
        }
    }

    fn decide(&mut self, out: &mut Vec<Action>) {
        self.give_up(out);
        if !self.writable && !broken(Mutant::BuildPermitElsewhere) {
            return;
        }
        let Some(entries) = &self.entries else { return };
        for (build, b) in &mut self.builds {
            let met = match (entries.get(build), &self.config) {
                (Some(e), _) if e.quorum.is_disabled() => true,
                (Some(e), Some(config)) => config.meets(&e.quorum, |host| e.ready.contains(host)),
                (Some(_), None) => false,
                (None, _) => true,
            };
            let own = b.part == Part::Ready || broken(Mutant::BuildPermitUnready);
            let wanted = !b.unwanted || broken(Mutant::BuildPermitUnwanted);
            if own && met && wanted && !b.permitted {
                b.permitted = true;
                out.push(Action::Permit { build: *build });
            }
        }
        for (build, e) in entries {
            if !self.builds.contains_key(build) && (!e.unfinished || broken(Mutant::BuildForgetUnfinished)) {
                out.push(Action::Forget { build: *build });
            }
        }
    }

    fn give_up(&mut self, out: &mut Vec<Action>) {
        for (build, b) in &mut self.builds {
            let build = *build;
            if self.writable || broken(Mutant::BuildAbortElsewhere) {
                if (b.unwanted || b.part == Part::Failed) && !b.aborting {
                    b.aborting = true;
                    out.push(Action::Abort { build });
                }
            } else if b.unwanted && !broken(Mutant::BuildWishOutlivesOffice) {
                b.unwanted = false;
                out.push(Action::Keep { build });
            }
        }
    }

    /// Whether something that was to be done may have failed: the shell looks again soon.
    pub fn is_waiting(&self) -> bool {
        let untold = |b: &Build| b.part != Part::Building && b.told.is_none();
        self.builds.values().any(untold)
    }
}
