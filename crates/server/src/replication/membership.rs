//! This node's place in a set: its configuration and vote on disk, which member it is, its coordinator, and its own log.

use super::Replication;
use crate::object_id::new_object_id;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, Timestamp, Uuid};
use pando_bson::{DocBuilder, RawDoc, Value, doc};
use pando_command::Param;
use pando_oplog::entry::{Entry, EntryView, Identity, Object, OpType, Operation, Session};
use pando_repl::data::Position as DataPosition;
use pando_repl::topology::message::LastVote;
use pando_repl::topology::{Boot, Event, MemberState, Position, Positions};
use pando_repl::{Coordinator, ReplSetConfig};
use pando_storage::ReadAt;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

pub(crate) fn config_ns() -> Namespace {
    Namespace::unchecked("local", "system.replset")
}
pub(crate) fn election_ns() -> Namespace {
    Namespace::unchecked("local", "replset.election")
}
/// Where this member's log ended when it left a set for one of its own.
pub(crate) fn left_ns() -> Namespace {
    Namespace::unchecked("local", "replset.leftSet")
}

impl Replication {
    /// This member leaves its set for one of its own: what it holds now is, for that one, no more than a copy of the other's data.
    pub(crate) async fn note_left_set(&self) -> Result<()> {
        let at = self.progress.applied().op_time;
        self.internal.replace_only(&left_ns(), &doc! { "ts": at.ts }.to_raw()).await
    }
    /// Up to there its log is the other set's. Zero if it never left one.
    pub(crate) fn left_set_at(&self) -> Result<Timestamp> {
        let left = self.internal.first(&left_ns())?;
        Ok(match left.as_ref().and_then(|doc| doc.get("ts")) {
            Some(Value::Timestamp(at)) => at,
            _ => Timestamp::ZERO,
        })
    }

    /// After a rollback that fetched documents the log may reach far enough already.
    pub(super) fn look_at_min_valid(&self) -> Result<()> {
        let top = self.top_of_log()?.op_time;
        match self.maintenance.min_valid()? {
            Some(mark) if top >= mark.at && !self.maintenance.reach_min_valid()? => {
                self.maintenance.give_up_data(top)
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn boot(&self) -> Result<Boot> {
        self.member.require_replication()?;
        let given = self.member.given_name();
        let top = self.top_of_log()?;
        let config = match self.internal.first(&config_ns())? {
            None => None,
            Some(doc) => {
                let config = self.stored_config(&doc, given)?;
                // A set of one whose port or host changed is still this node's set; its name in the set stays.
                let me = if config.members.len() == 1 { Some(0) } else { self.locate(&config).await };
                Some((Arc::new(config), me))
            }
        };
        let at = Position::new(top.op_time, top.wall);
        let state = if at.op.is_null() || self.maintenance.is_copy_unfinished()? {
            MemberState::Startup2
        } else {
            self.follower_state()
        };
        let params = pando_repl::params::of(&self.instance.params);
        let promised = match &config {
            // Nobody else could have been voted for, or hold what this member held.
            Some((config, _)) if config.members.len() == 1 => self.maintenance.promised()?,
            _ if self.maintenance.is_restored()? => {
                self.restored.store(true, SeqCst);
                OpTime::new(Timestamp::MAX, i64::MAX)
            }
            _ => self.maintenance.promised()?,
        };
        Ok(Boot {
            set_name: given.map(str::to_owned),
            config,
            last_vote: self.last_vote()?,
            positions: Positions::at(at),
            params,
            state,
            promised,
        })
    }

    fn stored_config(&self, doc: &RawDoc, given: Option<&str>) -> Result<ReplSetConfig> {
        let config = ReplSetConfig::parse(doc)
            .and_then(|c| c.validate().map(|()| c))
            .map_err(|e| e.context("Locally stored replica set configuration is invalid; cannot continue"))?;
        let Some(set_name) = given.filter(|name| *name != config.name) else { return Ok(config) };
        Err(Error::new(
            ErrorCode::InvalidReplicaSetConfig,
            format!(
                "Replica set name mismatch: this node was started with {set_name}, but its configuration is for {}",
                config.name
            ),
        ))
    }

    fn last_vote(&self) -> Result<LastVote> {
        let vote = self.internal.first(&election_ns())?;
        let int = |name: &str| vote.as_ref().and_then(|d| d.get(name).and_then(|v| v.as_i64()));
        Ok(LastVote {
            term: int("term").unwrap_or(LastVote::NONE.term),
            candidate_index: int("candidateIndex").unwrap_or(LastVote::NONE.candidate_index),
        })
    }

    /// The coordinator; 76 on a standalone node.
    pub(crate) fn coordinator(&self) -> Result<&Arc<Coordinator>> {
        self.member.require_replication()?;
        self.coordinator
            .get()
            .ok_or_else(|| Error::new(ErrorCode::NotYetInitialized, "replication has not started yet"))
    }

    /// `replSetInitiate` with a checked configuration in which this node is `members[me]`. A set of one is
    /// primary when this returns.
    pub(crate) async fn initiate(&self, mut config: ReplSetConfig, me: usize) -> Result<()> {
        config.settings.replica_set_id = Some(new_object_id(&self.env));
        config.term = 0;
        let alone = config.members.len() == 1;
        let config = Arc::new(config);
        self.coordinator()?.command(|token| Event::Initiate { token, config, self_index: me }).await?;
        if alone {
            self.wait_until_primary().await;
        }
        Ok(())
    }
    pub(super) async fn wait_until_primary(&self) {
        loop {
            let seen = self.member.changed().version();
            if self.member.is_primary() || self.lifecycle.is_stopping() {
                return;
            }
            self.member.changed().changed(seen).await;
        }
    }

    /// Which member of a configuration this process is (R-CONF-12).
    pub(crate) async fn locate(&self, config: &ReplSetConfig) -> Option<usize> {
        self.own_members(config).await.first().copied()
    }
    /// More than one is a mistake.
    pub(crate) async fn own_members(&self, config: &ReplSetConfig) -> Vec<usize> {
        let mut own = Vec::new();
        for (i, m) in config.members.iter().enumerate() {
            if self.is_self(&m.host).await {
                own.push(i);
            }
        }
        own
    }

    /// Whether `host` is an address of this very process.
    pub(crate) async fn is_self(&self, host: &str) -> bool {
        let Some((name, port)) = host.rsplit_once(':') else { return false };
        if port != self.config.port.to_string() {
            return false;
        }
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let facts = self.config.host.facts();
        let any = self.config.bind_ips.iter().any(|ip| matches!(ip.as_str(), "0.0.0.0" | "::" | "*"));
        name == facts.hostname
            || self.config.bind_ips.iter().any(|ip| ip == name)
            || (matches!(name, "localhost" | "127.0.0.1" | "::1")
                && (any
                    || self
                        .config
                        .bind_ips
                        .iter()
                        .any(|ip| matches!(ip.as_str(), "localhost" | "127.0.0.1" | "::1"))))
    }

    /// An entry that changes nothing: `{op: "n", o: {msg}}`.
    pub(crate) fn write_noop(&self, msg: &str) -> Result<OpTime> {
        let mut o = DocBuilder::new();
        o.str("msg", msg);
        self.write_noop_doc(&o.finish())
    }
    pub(crate) fn write_noop_doc(&self, o: &RawDoc) -> Result<OpTime> {
        let _entered = self.maintenance.gate().enter()?;
        self.append_noop(o)
    }
    /// Leaves a note in the log: a moment that no other one of this set has.
    pub(crate) fn note(&self, what: &str, of: &str) -> Result<Timestamp> {
        let mut b = DocBuilder::new();
        b.str("msg", what).str("ns", of);
        self.write_noop_doc(&b.finish()).map(|at| at.ts)
    }
    /// For a node that is about to open the gate.
    pub(super) fn append_noop(&self, o: &RawDoc) -> Result<OpTime> {
        self.append_nothing(None, noop(o))
    }
    /// What a session did on another shard.
    pub(crate) fn write_moved_history(
        &self,
        session: Session<'_>,
        ns: &str,
        ui: Option<Uuid>,
        o: &RawDoc,
        o2: Identity<'_>,
    ) -> Result<OpTime> {
        let _entered = self.maintenance.gate().enter()?;
        self.append_nothing(Some(session), Operation { ns, ui, from_migrate: true, o2, ..noop(o) })
    }
    /// An entry alone.
    fn append_nothing(&self, session: Option<Session<'_>>, operation: Operation<'_>) -> Result<OpTime> {
        let term = self.maintenance.term();
        let mut txn = self.storage.begin(ReadAt::Latest)?;
        let slot = self.storage.log().reserve_one();
        let entry = Entry { session, operation, term, wall: self.env.clock.wall_ms() };
        let ts = slot.ts();
        let mut buf = Vec::with_capacity(256);
        entry.append_to(&mut buf, ts);
        txn.log_entry(slot, RawDoc::trusted(&buf));
        txn.commit()?;
        Ok(OpTime::new(ts, term))
    }

    /// The newest entry of the log.
    pub(crate) fn top_of_log(&self) -> Result<DataPosition> {
        let mut cursor = self.storage.log().read(Bound::Unbounded, true);
        let Some((_, entry)) = cursor.next()? else { return Ok(DataPosition::NULL) };
        let e = EntryView::parse(RawDoc::trusted(&entry))?;
        Ok(DataPosition { op_time: e.op_time(), wall: e.wall })
    }
    pub(crate) fn apply_workers(&self) -> usize {
        let cores = self.config.host.facts().cores as usize;
        let wanted = self.instance.params.int(Param::replWriterThreadCount) as usize;
        (cores * 2).max(2).min(wanted)
    }

    /// Tells the core how far a primary's own log is.
    pub(crate) fn tell_own_progress(&self) {
        if !self.member.is_primary() {
            return;
        }
        let Some(c) = self.coordinator.get() else { return };
        let p = self.positions();
        let applied = Position::new(p.applied, p.applied_wall_ms);
        // Before the first entry of a term is on disk, the durable position belongs to an older term.
        let first = c.read(|core| core.first_of_term());
        let durable = Position::new(p.durable, p.durable_wall_ms);
        let known = first.is_some_and(|f| durable.op.ts >= f.ts);
        let durable = if known { durable } else { c.read(|core| core.positions().durable) };
        c.progressed(applied, applied, durable);
    }

    /// Nothing may be told that the next start, with another member's files, would not know of.
    pub(super) fn check_own_goes_on(&self) -> Result<()> {
        if self.identity_is_staged.load(SeqCst) {
            let text = "this member is about to start again with another member's files";
            return Err(Error::new(ErrorCode::InitialSyncActive, text));
        }
        Ok(())
    }
    pub(crate) async fn sync_local(&self) -> Result<()> {
        let storage = self.storage.clone();
        let synced = self.env.offload(move || storage.sync_local()).await;
        synced.unwrap_or_else(|| Err(Error::internal("the sync failed")))
    }
}

/// A primary's positions move with every commit and with every sync of the log.
pub(super) async fn watch_own_log(replication: Arc<Replication>) {
    while !replication.lifecycle.is_stopping() {
        let changed = replication.member.changed().version();
        if !replication.member.is_primary() || replication.member.is_alone() {
            crate::lifecycle::either(
                replication.member.changed().changed(changed),
                replication.lifecycle.wait_stopping(),
            )
            .await;
            continue;
        }
        let seen = replication.storage.log().visible();
        replication.tell_own_progress();
        let moved = replication.storage.log().wait_visible(seen);
        let stopped = replication.lifecycle.wait_stopping();
        crate::lifecycle::either(
            moved,
            crate::lifecycle::either(stopped, replication.member.changed().changed(changed)),
        )
        .await;
    }
}

fn noop(o: &RawDoc) -> Operation<'_> {
    Operation {
        op: OpType::Noop,
        ns: "",
        ui: None,
        from_migrate: false,
        o: Object::Doc(o),
        o2: Identity::None,
        rid: None,
        pre: None,
        image: None,
    }
}
