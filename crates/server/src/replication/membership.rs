//! What the replication coordinator needs of this server: its disk, its log, its gate, its data path.

use crate::Server;
use crate::object_id::new_object_id;
use crate::replication::services::Services;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, Term, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc, doc};
use pando_command::Param;
use pando_env::{BoxFuture, Component};
use pando_oplog::entry::{Entry, EntryView, Identity, Object, OpType, Operation};
use pando_repl::data::initial_sync::{Ended, InitialSync};
use pando_repl::data::sync_status::SyncStatus;
use pando_repl::data::{DataPath, Deps, Position as DataPosition};
use pando_repl::topology::message::LastVote;
use pando_repl::topology::{
    Boot, ConfigNote, Event, MemberState, Position, Positions, StateChange, WhyCopyAgain,
};
use pando_repl::{Coordinator, Effects, ReplSetConfig};
use pando_storage::ReadAt;
use std::ops::Bound;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, PoisonError, Weak};

pub(crate) fn config_ns() -> Namespace {
    Namespace::unchecked("local", "system.replset")
}
pub(crate) fn election_ns() -> Namespace {
    Namespace::unchecked("local", "replset.election")
}

impl Server {
    /// At the start: whatever the disk says of this node's place in a set, and the coordinator on top of it.
    pub(crate) async fn take_place(self: &Arc<Self>) -> Result<()> {
        if !self.repl.is_replicated() {
            self.catalog.set_term(-1);
            self.look_for_a_set()?;
            return self.settings.restore();
        }
        self.catalog.gate().close();
        self.look_at_min_valid()?;
        let boot = self.boot().await?;
        let fresh = boot.config.is_none();
        if let Some((config, Some(me))) = &boot.config {
            self.catalog.set_makes_indexes(config.members[*me].build_indexes)?;
        }
        let alone = boot.config.as_ref().is_some_and(|(c, _)| c.members.len() == 1);
        self.progress.reset(self.top_of_log()?);
        self.settings.restore()?;
        self.restore_retryable_writes()?;
        self.restore_prepared()?;
        self.restore_rollback_id()?;
        let has_data = boot.state != MemberState::Startup2 && !fresh;
        let services = self.services.get_or_init(|| Services::new(self));
        services.hooks.startup_recovery_complete();
        if has_data {
            services.hooks.initial_data_available();
            if !self.catalog.is_before_min_valid() {
                self.catalog.resume_builds().await?;
            }
        }
        let effects = Arc::new(ServerEffects(Arc::downgrade(self)));
        let coordinator =
            Coordinator::new(self.env.clone(), self.repl.clone(), self.progress.clone(), effects, boot);
        self.coordinator.get_or_init(|| coordinator).start();
        self.env.spawn("primary's positions", watch_own_log(self.clone()));
        if fresh && let Some(host) = &self.config.auto_initiate {
            let name = self.repl.require_replication()?;
            self.initiate(ReplSetConfig::single(name, host), 0).await?;
        } else if alone {
            self.wait_until_primary().await;
        }
        Ok(())
    }

    /// After a rollback that fetched documents the log may reach far enough already.
    fn look_at_min_valid(&self) -> Result<()> {
        let top = self.top_of_log()?.op_time;
        match self.catalog.min_valid()? {
            Some(mark) if top >= mark.at && !self.catalog.reach_min_valid()? => {
                self.catalog.give_up_data(top)
            }
            _ => Ok(()),
        }
    }

    async fn boot(&self) -> Result<Boot> {
        let set_name = self.repl.require_replication()?.to_owned();
        let top = self.top_of_log()?;
        let config = match self.internal.first(&config_ns())? {
            None => None,
            Some(doc) => {
                let config = self.stored_config(&doc, &set_name)?;
                // A set of one whose port or host changed is still this node's set; its name in the set stays.
                let me = if config.members.len() == 1 { Some(0) } else { self.locate(&config).await };
                Some((Arc::new(config), me))
            }
        };
        let at = Position::new(top.op_time, top.wall);
        let state = if at.op.is_null() || self.catalog.is_copy_unfinished()? {
            MemberState::Startup2
        } else {
            self.follower_state()
        };
        let params = pando_repl::params::of(&self.instance.params);
        let promised = match &config {
            // Nobody else could have been voted for, or hold what this member held.
            Some((config, _)) if config.members.len() == 1 => self.catalog.promised()?,
            _ if self.catalog.is_restored()? => {
                self.restored.store(true, SeqCst);
                OpTime::new(Timestamp::MAX, i64::MAX)
            }
            _ => self.catalog.promised()?,
        };
        Ok(Boot {
            set_name,
            config,
            last_vote: self.last_vote()?,
            positions: Positions::at(at),
            params,
            state,
            promised,
        })
    }

    fn stored_config(&self, doc: &RawDoc, set_name: &str) -> Result<ReplSetConfig> {
        let config = ReplSetConfig::parse(doc)
            .and_then(|c| c.validate().map(|()| c))
            .map_err(|e| e.context("Locally stored replica set configuration is invalid; cannot continue"))?;
        if config.name == set_name {
            return Ok(config);
        }
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
        self.repl.require_replication()?;
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
    async fn wait_until_primary(&self) {
        loop {
            let seen = self.repl.changed().version();
            if self.repl.is_primary() || self.lifecycle.is_stopping() {
                return;
            }
            self.repl.changed().changed(seen).await;
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
        let _entered = self.catalog.gate().enter()?;
        self.append_noop(o)
    }
    /// For a node that is about to open the gate.
    fn append_noop(&self, o: &RawDoc) -> Result<OpTime> {
        let term = self.catalog.term();
        let mut txn = self.storage.begin(ReadAt::Latest)?;
        let slot = self.storage.log().reserve_one();
        let entry = Entry {
            session: None,
            operation: Operation {
                op: OpType::Noop,
                ns: "",
                ui: None,
                from_migrate: false,
                o: Object::Doc(o),
                o2: Identity::None,
                rid: None,
                pre: None,
                image: None,
            },
            term,
            wall: self.env.clock.wall_ms(),
        };
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
        if !self.repl.is_primary() {
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
}

/// A primary's positions move with every commit and with every sync of the log.
async fn watch_own_log(server: Arc<Server>) {
    while !server.lifecycle.is_stopping() {
        let changed = server.repl.changed().version();
        if !server.repl.is_primary() || server.repl.is_alone() {
            crate::lifecycle::either(
                server.repl.changed().changed(changed),
                server.lifecycle.wait_stopping(),
            )
            .await;
            continue;
        }
        let seen = server.storage.log().visible();
        server.tell_own_progress();
        let moved = server.storage.log().wait_visible(seen);
        let stopped = server.lifecycle.wait_stopping();
        crate::lifecycle::either(
            moved,
            crate::lifecycle::either(stopped, server.repl.changed().changed(changed)),
        )
        .await;
    }
}

struct ServerEffects(Weak<Server>);

impl ServerEffects {
    fn server(&self) -> Result<Arc<Server>> {
        self.0.upgrade().ok_or_else(|| Error::new(ErrorCode::ShutdownInProgress, "the server has stopped"))
    }
}

impl Effects for ServerEffects {
    fn persist_vote(&self, vote: LastVote) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let server = self.server()?;
            server.check_own_goes_on()?;
            server.lifecycle.hold("hangBeforeWritingVote").await;
            let doc = doc! { "term": vote.term, "candidateIndex": vote.candidate_index };
            server.internal.replace_only(&election_ns(), &doc.to_raw()).await?;
            server.sync_local().await?;
            // What is kept under another's files may have been read before this was written.
            server.check_own_goes_on()
        })
    }

    fn persist_config(
        &self,
        config: Arc<ReplSetConfig>,
        note: ConfigNote,
    ) -> BoxFuture<'_, Result<Option<Position>>> {
        Box::pin(async move {
            let server = self.server()?;
            server.check_own_goes_on()?;
            let mut at = None;
            if note == ConfigNote::Initiate {
                server.services().inspect(|s| s.hooks.initial_data_available());
                server.catalog.set_term(-1);
                let op = server.append_noop(&doc! { "msg": "initiating set" }.to_raw())?;
                server.storage.log().wait_durable(op.ts).await?;
                server.progress.reset(server.top_of_log()?);
                at = Some(Position::new(op, server.env.clock.wall_ms()));
            }
            server.internal.replace_only(&config_ns(), &config.to_doc()).await?;
            server.sync_local().await?;
            server.check_own_goes_on()?;
            if note == ConfigNote::Reconfig && server.catalog.gate().is_open() {
                let doc = doc! { "msg": "Reconfig set", "version": config.version as i32 };
                server.write_noop_doc(&doc.to_raw())?;
            }
            Ok(at)
        })
    }

    fn locate_self(&self, config: Arc<ReplSetConfig>) -> BoxFuture<'_, Option<usize>> {
        Box::pin(async move {
            match self.server() {
                Ok(server) => server.locate(&config).await,
                Err(_) => None,
            }
        })
    }

    fn state_changed(&self, change: &StateChange) {
        let Ok(server) = self.server() else { return };
        let hooks = server.services().map(|s| &s.hooks);
        if change.writable {
            server.catalog.gate().open();
            hooks.inspect(|h| h.step_up_complete(change.term));
        } else if server.catalog.gate().is_open() {
            server.catalog.gate().close();
            server.abort_open_transactions();
            server.catalog.yield_prepared();
            server.progress.take_over(&server.own_positions());
        }
        match change.to {
            MemberState::Primary => {}
            MemberState::Arbiter => drop(hooks.inspect(|h| h.become_arbiter())),
            _ => drop(hooks.inspect(|h| h.step_down())),
        }
    }

    fn follow(&self, on: bool) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let server = self.server()?;
            if on { server.start_data_path() } else { server.stop_data_path().await }
        })
    }
    fn is_empty(&self) -> Result<bool> {
        let server = self.server()?;
        // A rollback says itself how it ended.
        if server.rollbacks.is_running() {
            return Ok(false);
        }
        Ok(server.progress.written().op_time.is_null() || server.catalog.is_copy_unfinished()?)
    }
    fn initial_sync(&self) -> BoxFuture<'_, Result<Position>> {
        Box::pin(async move {
            let server = self.server()?;
            server.initial_sync().await
        })
    }
    fn drain(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.server()?.stop_data_path().await })
    }

    fn become_writable(&self, term: Term) -> BoxFuture<'_, Result<Position>> {
        Box::pin(async move {
            let server = self.server()?;
            server.services().inspect(|s| s.hooks.step_up_begin(term));
            server.transitions.note(&server.instance.clients, "stepUp", 0);
            server.count_catch_up()?;
            server.retryable.abort_partial();
            server.catalog.lock_prepared()?;
            server.catalog.set_term(term);
            let op = server.append_noop(&doc! { "msg": "new primary" }.to_raw())?;
            let at = DataPosition { op_time: op, wall: server.env.clock.wall_ms() };
            server.progress.take_over(&[at, at, server.progress.durable()]);
            server.storage.log().ask_flush(op.ts);
            Ok(Position::new(op, at.wall))
        })
    }

    fn take_state_lock(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Ok(server) = self.server() else { return };
            server.take_state_lock().await;
        })
    }
    fn release_state_lock(&self) {
        if let Ok(server) = self.server()
            && server.repl.is_primary()
        {
            server.catalog.gate().open();
        }
    }

    fn applied_sessions(&self, entries: &[EntryView<'_>]) {
        if let Ok(server) = self.server() {
            server.note_applied_statements(entries);
        }
    }
    fn take_sessions(&self, sessions: &[DocBuf]) {
        if let Ok(server) = self.server() {
            server.take_sessions(sessions);
        }
    }
    fn keep_sessions(&self, upto: OpTime) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.server()?.keep_copied_sessions(upto).await })
    }
    fn applied_settings(&self) {
        if let Ok(server) = self.server()
            && let Err(e) = server.settings.restore()
        {
            server.lifecycle.fatal("The set's settings could not be read", &e.message);
        }
    }
    fn local_identity(&self) -> Result<DocBuf> {
        let server = self.server()?;
        server.identity_is_staged.store(true, SeqCst);
        server.local_identity()
    }
    fn own_goes_on(&self) {
        if let Ok(server) = self.server() {
            server.identity_is_staged.store(false, SeqCst);
        }
    }
    fn resync(&self) -> Result<()> {
        self.server()?.start_resync()
    }
    fn copy_again(&self, why: WhyCopyAgain) -> Result<()> {
        self.server()?.start_copy_again(why)
    }
    fn diverged(&self, source: &str, why: &Error) {
        if let Ok(server) = self.server() {
            server.env.log.info(
                Component::Rollback,
                21657,
                "The sync source's oplog has parted from ours",
                |a| {
                    a.str("syncSource", source).str("error", &why.message);
                },
            );
            server.start_rollback(source.to_owned());
        }
    }
    fn fatal(&self, what: &str, why: &Error) {
        if let Ok(server) = self.server()
            && !server.lifecycle.is_stopping()
        {
            server.lifecycle.fatal(what, &why.message);
        }
    }
    fn is_stopping(&self) -> bool {
        self.server().map_or(true, |s| s.lifecycle.is_stopping())
    }
}

impl Server {
    /// Nothing may be told that the next start, with another member's files, would not know of.
    fn check_own_goes_on(&self) -> Result<()> {
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

    /// Written, applied, durable of a primary.
    fn own_positions(&self) -> [DataPosition; 3] {
        let p = self.primary_positions();
        let applied = DataPosition { op_time: p.applied, wall: p.applied_wall_ms };
        [applied, applied, DataPosition { op_time: p.durable, wall: p.durable_wall_ms }]
    }

    /// Copies from whom the coordinator chooses, from the end of this node's log.
    pub(crate) fn start_data_path(self: &Arc<Self>) -> Result<()> {
        let mut path = self.data_path.lock().unwrap_or_else(PoisonError::into_inner);
        if path.is_none() {
            self.storage.log().follow()?;
            let top = self.top_of_log()?;
            // What was written just before may not be on disk yet.
            self.progress.take_over(&[top, top, self.progress.durable()]);
            self.progress.synced(self.storage.log().durable());
            *path = Some(Arc::new(DataPath::start(self.data_path_deps()?)));
        }
        Ok(())
    }
    pub(crate) fn data_path_deps(&self) -> Result<Deps> {
        Ok(Deps {
            env: self.env.clone(),
            catalog: self.catalog.clone(),
            progress: self.progress.clone(),
            upper: self.coordinator()?.clone(),
            pool: self.data_pool.clone(),
            workers: self.apply_workers(),
            writes_per_worker: self.config.writes_per_worker,
            instance: self.instance.clone(),
        })
    }
    /// Stops fetching, and returns when everything fetched is applied.
    pub(crate) async fn stop_data_path(&self) -> Result<()> {
        if let Some(sync) = self.initial_sync.lock().unwrap_or_else(PoisonError::into_inner).take() {
            sync.stop();
        }
        let path = self.data_path.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(path) = path.filter(|_| self.lifecycle.fatal_error().is_none()) {
            path.stop().await;
            self.env.log.info(Component::Repl, 21107, "Finished oplog application", |_| {});
        }
        Ok(())
    }
    /// Of the initial sync that runs.
    pub(crate) fn initial_sync_status(&self) -> Option<SyncStatus> {
        let running = self.initial_sync.lock().unwrap_or_else(PoisonError::into_inner);
        running.as_ref().map(|sync| sync.status.clone())
    }
    async fn initial_sync(self: &Arc<Self>) -> Result<Position> {
        let sync = InitialSync::default();
        *self.initial_sync.lock().unwrap_or_else(PoisonError::into_inner) = Some(sync.clone());
        let state = self.repl.state();
        if let Some(me) = state.config.as_ref().and_then(|c| c.members.get(state.self_index)) {
            self.catalog.set_makes_indexes(me.build_indexes)?;
        }
        self.catalog.forget_prepared();
        self.forget_sessions();
        let done = sync.run(&self.data_path_deps()?).await;
        self.initial_sync.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ended = match done? {
            Ended::Copied => None,
            Ended::Stopped => Some("the initial sync was stopped"),
            Ended::CopiedFiles => {
                self.lifecycle.request_restart();
                self.lifecycle.wait_stopping().await;
                Some("the server starts again with the copied files")
            }
        };
        if let Some(why) = ended {
            return Err(Error::new(ErrorCode::ShutdownInProgress, why));
        }
        self.settings.restore()?;
        self.restore_retryable_writes()?;
        self.restore_prepared()?;
        let top = self.top_of_log()?;
        self.progress.reset(top);
        self.catalog.resume_builds().await?;
        self.services().inspect(|s| s.hooks.initial_data_available());
        Ok(Position::new(top.op_time, top.wall))
    }
}
