//! What this node knows about itself as a member: configuration, state, term, topology version.

use crate::config::ReplSetConfig;
use pando_base::{Error, ErrorCode, Millis, OpTime, Result, Term, Timestamp};
use pando_bson::ObjectId;
use pando_command::node::TopologyVersion;
use pando_env::sync::Notify;
pub use pando_topology::member::{MemberState, election_id};
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The election this node won last (`electionCandidateMetrics`).
#[derive(Clone, Debug)]
pub struct Election {
    pub reason: &'static str,
    /// Cluster time of the victory (`members[].electionTime`).
    pub time: Timestamp,
    pub date_ms: Millis,
    pub term: Term,
    pub last_committed: OpTime,
    pub last_seen: OpTime,
    /// When the first entry of the term was written, and when it was majority committed.
    pub new_term_start_ms: Millis,
    pub writable_ms: Millis,
}

/// Everything `hello` depends on; each visible change bumps `counter` (R-HELLO-2).
#[derive(Clone, Debug)]
pub struct State {
    pub config: Option<Arc<ReplSetConfig>>,
    /// This node's place in `config.members`.
    pub self_index: usize,
    pub member: MemberState,
    pub term: Term,
    pub election: Option<Arc<Election>>,
    pub counter: i64,
    /// Wall time until which a closing node still answers (R-HELLO-7).
    pub quiesce_until_ms: Option<Millis>,
}

impl State {
    pub fn me(&self) -> Option<&str> {
        Some(&self.config.as_ref()?.members.get(self.self_index)?.host)
    }
}

/// The member state shared by all operations. On a node without `--replSet` it only keeps the topology version.
pub struct Repl {
    set_name: Option<String>,
    process_id: ObjectId,
    state: Mutex<State>,
    /// Copies of two hot fields, so that a write costs no lock.
    member: AtomicU8,
    term: AtomicI64,
    changed: Notify,
}

impl Repl {
    /// `process_id` is new for every start; drivers tell restarts by it.
    pub fn new(set_name: Option<String>, process_id: ObjectId) -> Repl {
        let state = State {
            config: None,
            self_index: 0,
            member: MemberState::Startup,
            term: -1,
            election: None,
            counter: 0,
            quiesce_until_ms: None,
        };
        Repl {
            set_name,
            process_id,
            state: Mutex::new(state),
            member: AtomicU8::new(MemberState::Startup as u8),
            term: AtomicI64::new(-1),
            changed: Notify::new(),
        }
    }
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Started with `--replSet`.
    #[inline]
    pub fn is_replicated(&self) -> bool {
        self.set_name.is_some()
    }
    pub fn set_name(&self) -> Option<&str> {
        self.set_name.as_deref()
    }
    pub fn process_id(&self) -> ObjectId {
        self.process_id
    }
    /// A copy of the whole state.
    pub fn state(&self) -> State {
        self.lock().clone()
    }
    pub fn config(&self) -> Option<Arc<ReplSetConfig>> {
        self.lock().config.clone()
    }
    /// The configuration, or the error of a command that needs one: 76 on a standalone node, 94 before initiate.
    pub fn require_config(&self) -> Result<Arc<ReplSetConfig>> {
        self.require_replication()?;
        self.config()
            .ok_or_else(|| Error::new(ErrorCode::NotYetInitialized, "no replset config has been received"))
    }
    /// Code 76 without `--replSet`.
    pub fn require_replication(&self) -> Result<&str> {
        self.set_name()
            .ok_or_else(|| Error::new(ErrorCode::NoReplicationEnabled, "not running with --replSet"))
    }
    /// A configuration has been received (then replies carry cluster times).
    #[inline]
    pub fn is_initiated(&self) -> bool {
        self.term() != -1
    }
    #[inline]
    pub fn is_primary(&self) -> bool {
        self.member.load(Relaxed) == MemberState::Primary as u8
    }
    /// The current term; -1 on a standalone node and before the first configuration.
    #[inline]
    pub fn term(&self) -> Term {
        self.term.load(Relaxed)
    }
    /// May user data be written here?
    #[inline]
    pub fn accepts_writes(&self) -> bool {
        !self.is_replicated() || self.is_primary()
    }
    /// May user data be read here at all (whatever the read preference)?
    pub fn is_readable(&self) -> bool {
        !self.is_replicated() || matches!(self.lock().member, MemberState::Primary | MemberState::Secondary)
    }
    pub fn topology_version(&self) -> TopologyVersion {
        TopologyVersion { process_id: self.process_id, counter: self.lock().counter }
    }
    /// Wakes when [`Repl::topology_version`] may have changed.
    pub fn changed(&self) -> &Notify {
        &self.changed
    }

    /// Changes the state; every change is visible in `hello`, so the counter goes up and waiters wake.
    fn update(&self, change: impl FnOnce(&mut State)) {
        {
            let mut state = self.lock();
            change(&mut state);
            state.counter += 1;
            self.member.store(state.member as u8, Relaxed);
            self.term.store(state.term, Relaxed);
        }
        self.changed.bump();
    }
    /// Takes a configuration in which this node is `members[self_index]`; it becomes a secondary.
    pub fn install(&self, config: ReplSetConfig, self_index: usize, term: Term) {
        self.update(|s| {
            s.config = Some(Arc::new(config));
            s.self_index = self_index;
            s.term = term;
            s.member = MemberState::Secondary;
        });
    }
    /// Enters another member state; role changes have functions of their own.
    pub fn enter(&self, member: MemberState) {
        self.update(|s| s.member = member);
    }
    /// A new configuration of the same set; member state and term stay.
    pub fn reconfigure(&self, config: ReplSetConfig, self_index: usize) {
        self.update(|s| {
            s.config = Some(Arc::new(config));
            s.self_index = self_index;
        });
    }
    /// The configuration on disk does not name this node.
    pub fn install_removed(&self, config: ReplSetConfig) {
        self.update(|s| {
            s.config = Some(Arc::new(config));
            s.member = MemberState::Removed;
        });
    }
    /// Won the election of `election.term`; the caller has made the vote durable and written the first entry
    /// of the term.
    pub fn become_primary(&self, election: Election) {
        self.update(|s| {
            s.term = election.term;
            if let Some(config) = &s.config {
                let mut config = (**config).clone();
                config.term = election.term;
                s.config = Some(Arc::new(config));
            }
            s.election = Some(Arc::new(election));
            s.member = MemberState::Primary;
        });
    }
    /// No more writes; existing reads go on (shutdown).
    pub fn step_down(&self) {
        if self.is_primary() {
            self.update(|s| s.member = MemberState::Secondary);
        }
    }
    /// From now on `hello` answers 91 (R-HELLO-7).
    pub fn quiesce(&self, until_ms: Millis) {
        self.update(|s| s.quiesce_until_ms = Some(until_ms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn election(term: Term) -> Election {
        Election {
            reason: "electionTimeout",
            time: Timestamp::new(1, 1),
            date_ms: 0,
            term,
            last_committed: OpTime::NULL,
            last_seen: OpTime::NULL,
            new_term_start_ms: 0,
            writable_ms: 0,
        }
    }

    #[test]
    fn every_visible_change_moves_the_topology_version() {
        let repl = Repl::new(Some("rs".to_owned()), ObjectId([1; 12]));
        assert!(!repl.accepts_writes());
        assert_eq!(repl.require_config().unwrap_err().code, ErrorCode::NotYetInitialized);
        let before = repl.topology_version().counter;
        repl.install(ReplSetConfig::single("rs", "a:1"), 0, 0);
        assert!(repl.is_readable() && !repl.accepts_writes());
        repl.become_primary(election(3));
        assert!(repl.accepts_writes());
        assert_eq!((repl.term(), repl.config().unwrap().term), (3, 3));
        assert_eq!(repl.topology_version().counter, before + 2);
        repl.step_down();
        assert!(!repl.accepts_writes());
    }

    #[test]
    fn a_standalone_node_writes_without_a_configuration() {
        let repl = Repl::new(None, ObjectId([1; 12]));
        assert!(repl.accepts_writes());
        assert_eq!(repl.require_config().unwrap_err().code, ErrorCode::NoReplicationEnabled);
    }
}
