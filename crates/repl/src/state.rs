//! What this node knows about itself as a member: configuration, state, term, topology version.

use crate::config::ReplSetConfig;
use pando_base::panics::poisoned;
use pando_base::{Error, ErrorCode, Millis, Result, Term};
use pando_bson::ObjectId;
use pando_command::node::TopologyVersion;
use pando_env::sync::Notify;
use pando_topology::Core;
pub use pando_topology::member::{MemberState, election_id};
use std::sync::atomic::{
    AtomicBool, AtomicI64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, MutexGuard};

/// Everything `hello` depends on; each visible change bumps `counter` (R-HELLO-2).
#[derive(Clone, Debug)]
pub struct State {
    pub config: Option<Arc<ReplSetConfig>>,
    /// This node's place in `config.members`.
    pub self_index: usize,
    pub member: MemberState,
    pub term: Term,
    /// User writes are taken.
    pub writable: bool,
    /// `host:port` of the primary this node believes in.
    pub primary: Option<String>,
    /// Counted by the core, from the start of the process.
    pub counter: i64,
    /// Wall time until which a closing node still answers (R-HELLO-7).
    pub quiesce_until_ms: Option<Millis>,
}

impl State {
    pub fn me(&self) -> Option<&str> {
        Some(&self.config.as_ref()?.members.get(self.self_index)?.host)
    }
}

/// What a process is told of the set that it is a member of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Membership {
    Standalone,
    /// `--replSet`
    Of(String),
    /// `--serverless`: of the set whose configuration comes first (SV-MODE-1).
    ToBeLearnt,
}

/// The member state shared by all operations. On a standalone node it only keeps the topology version.
pub struct Repl {
    membership: Membership,
    process_id: ObjectId,
    state: Mutex<State>,
    /// Copies of two hot fields, so that a write costs no lock.
    writable: AtomicBool,
    /// The only member of its set: what its own disk holds is on a majority.
    alone: AtomicBool,
    term: AtomicI64,
    /// This member has what its set had when it started or rolled back; asked for in a set of many tenants only.
    up_to_date: AtomicBool,
    changed: Notify,
}

impl Repl {
    /// `process_id` is new for every start; drivers tell restarts by it.
    pub fn new(membership: Membership, process_id: ObjectId) -> Repl {
        let state = State {
            config: None,
            self_index: 0,
            member: MemberState::Startup,
            term: -1,
            writable: false,
            primary: None,
            counter: 0,
            quiesce_until_ms: None,
        };
        Repl {
            membership,
            process_id,
            state: Mutex::new(state),
            writable: AtomicBool::new(false),
            alone: AtomicBool::new(false),
            term: AtomicI64::new(-1),
            up_to_date: AtomicBool::new(false),
            changed: Notify::new(),
        }
    }
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(poisoned)
    }
    /// Started with `--replSet` or `--serverless`.
    #[inline]
    pub fn is_replicated(&self) -> bool {
        !matches!(self.membership, Membership::Standalone)
    }
    /// The name that this process was told; `None` on a standalone node, and where it is learnt.
    pub fn given_name(&self) -> Option<&str> {
        match &self.membership {
            Membership::Of(name) => Some(name),
            Membership::Standalone | Membership::ToBeLearnt => None,
        }
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
    pub fn require_replication(&self) -> Result<()> {
        match self.is_replicated() {
            true => Ok(()),
            false => Err(Error::new(ErrorCode::NoReplicationEnabled, "not running with --replSet")),
        }
    }
    /// A configuration has been received (then replies carry cluster times).
    #[inline]
    pub fn is_initiated(&self) -> bool {
        self.term() != -1
    }
    /// Primary, and past catching up and draining.
    #[inline]
    pub fn is_primary(&self) -> bool {
        self.writable.load(Relaxed)
    }
    /// Primary of a set of one.
    #[inline]
    pub fn is_alone(&self) -> bool {
        self.alone.load(Relaxed)
    }
    /// Whether tenants may be read here: this member has heard of what became of them while it was away. Whoever sees this sees their blockers.
    #[inline]
    pub fn is_up_to_date(&self) -> bool {
        self.up_to_date.load(Acquire)
    }
    /// Returns when it is.
    pub async fn up_to_date(&self) {
        loop {
            let seen = self.changed.version();
            if self.is_up_to_date() {
                return;
            }
            self.changed.changed(seen).await;
        }
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

    /// Shows what the core is now; wakes those who wait for a newer topology version.
    pub fn show_core(&self, core: &Core) {
        let member = core.state();
        let primary = core.primary().and_then(|id| {
            let config = core.config()?;
            config.members.iter().find(|m| m.id == id).map(|m| m.host.clone())
        });
        {
            let mut s = self.lock();
            s.config = core.config().cloned();
            s.self_index = core.self_index().unwrap_or(0);
            s.member = member;
            s.term = core.term();
            s.writable = core.is_writable();
            s.primary = primary;
            s.counter = core.topology_version();
            s.quiesce_until_ms = core.quiesce_until();
            self.writable.store(s.writable, Relaxed);
            self.alone.store(s.writable && s.config.as_ref().is_some_and(|c| c.members.len() == 1), Relaxed);
            self.term.store(s.term, Relaxed);
            self.up_to_date.store(core.is_up_to_date(), Release);
        }
        self.changed.bump();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standalone_node_writes_without_a_configuration() {
        let repl = Repl::new(Membership::Standalone, ObjectId([1; 12]));
        assert!(repl.accepts_writes());
        assert_eq!(repl.require_config().unwrap_err().code, ErrorCode::NoReplicationEnabled);
    }
}
