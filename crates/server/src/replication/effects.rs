//! What the replication coordinator needs of this server: its disk, its log, its gate, its data path.

use super::membership::{config_ns, election_ns, watch_own_log};
use super::role_changes::RoleChanges;
use crate::replication::service_host::Services;
use pando_base::{Error, ErrorCode, OpTime, Result, Term};
use pando_bson::{DocBuf, doc};
use pando_env::{BoxFuture, Component};
use pando_oplog::entry::EntryView;
use pando_repl::data::Position as DataPosition;
use pando_repl::data::initial_sync::{Ended, InitialSync};
use pando_repl::topology::message::LastVote;
use pando_repl::topology::{ConfigNote, MemberState, Position, StateChange, WhyCopyAgain};
use pando_repl::{Coordinator, Effects, ReplSetConfig};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, PoisonError, Weak};

impl RoleChanges {
    /// At the start: whatever the disk says of this node's place in a set, and the coordinator on top of it.
    pub(crate) async fn take_place(self: &Arc<Self>) -> Result<()> {
        if !self.replication.member.is_replicated() {
            self.maintenance.set_term(-1);
            self.replication.look_for_a_set()?;
            return self.settings.restore();
        }
        self.maintenance.gate().close();
        self.replication.look_at_min_valid()?;
        let boot = self.replication.boot().await?;
        let fresh = boot.config.is_none();
        if let Some((config, Some(me))) = &boot.config {
            self.maintenance.set_makes_indexes(config.members[*me].build_indexes)?;
        }
        let alone = boot.config.as_ref().is_some_and(|(c, _)| c.members.len() == 1);
        self.replication.progress.reset(self.replication.top_of_log()?);
        self.settings.restore()?;
        self.sessions.restore_retryable_writes()?;
        self.sessions.restore_prepared()?;
        self.replication.restore_rollback_id().await?;
        let has_data = boot.state != MemberState::Startup2 && !fresh;
        let services = self.replication.services.get_or_init(|| Services::new(self));
        services.hooks.startup_recovery_complete();
        if has_data {
            services.hooks.initial_data_available();
            if !self.maintenance.is_before_min_valid() {
                self.maintenance.resume_builds().await?;
            }
        }
        let effects = Arc::new(ServerEffects(Arc::downgrade(self)));
        let coordinator = Coordinator::new(
            self.env.clone(),
            self.replication.member.clone(),
            self.replication.progress.clone(),
            effects,
            boot,
            self.config.member_login(),
        );
        self.replication.coordinator.get_or_init(|| coordinator).start();
        self.env.spawn("primary's positions", watch_own_log(self.replication.clone()));
        if fresh && let Some(host) = &self.config.auto_initiate {
            let name = self.replication.member.given_name();
            let name = name.ok_or_else(|| Error::internal("nobody has said which set this is"))?;
            self.replication.initiate(ReplSetConfig::single(name, host), 0).await?;
        } else if alone {
            self.replication.wait_until_primary().await;
        }
        Ok(())
    }
}

struct ServerEffects(Weak<RoleChanges>);

impl ServerEffects {
    fn roles(&self) -> Result<Arc<RoleChanges>> {
        self.0.upgrade().ok_or_else(|| Error::new(ErrorCode::ShutdownInProgress, "the server has stopped"))
    }
}

impl Effects for ServerEffects {
    fn persist_vote(&self, vote: LastVote) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let roles = self.roles()?;
            roles.replication.check_own_goes_on()?;
            roles.lifecycle.hold("hangBeforeWritingVote").await;
            let doc = doc! { "term": vote.term, "candidateIndex": vote.candidate_index };
            roles.internal.replace_only(&election_ns(), &doc.to_raw()).await?;
            roles.replication.sync_local().await?;
            // What is kept under another's files may have been read before this was written.
            roles.replication.check_own_goes_on()
        })
    }

    fn persist_config(
        &self,
        config: Arc<ReplSetConfig>,
        note: ConfigNote,
    ) -> BoxFuture<'_, Result<Option<Position>>> {
        Box::pin(async move {
            let roles = self.roles()?;
            roles.replication.check_own_goes_on()?;
            let mut at = None;
            if note == ConfigNote::Initiate {
                roles.replication.services().inspect(|s| s.hooks.initial_data_available());
                roles.maintenance.set_term(-1);
                let op = roles.replication.append_noop(&doc! { "msg": "initiating set" }.to_raw())?;
                roles.storage.log().wait_durable(op.ts).await?;
                roles.replication.progress.reset(roles.replication.top_of_log()?);
                at = Some(Position::new(op, roles.env.clock.wall_ms()));
            }
            if roles.replication.member.config().is_some_and(|now| now.name != config.name) {
                roles.replication.note_left_set().await?;
            }
            roles.internal.replace_only(&config_ns(), &config.to_doc()).await?;
            roles.replication.sync_local().await?;
            roles.replication.check_own_goes_on()?;
            if note == ConfigNote::Reconfig && roles.maintenance.gate().is_open() {
                let doc = doc! { "msg": "Reconfig set", "version": config.version as i32 };
                roles.replication.write_noop_doc(&doc.to_raw())?;
            }
            Ok(at)
        })
    }

    fn locate_self(&self, config: Arc<ReplSetConfig>) -> BoxFuture<'_, Option<usize>> {
        Box::pin(async move {
            match self.roles() {
                Ok(roles) => roles.replication.locate(&config).await,
                Err(_) => None,
            }
        })
    }

    fn commit_point(&self, at: OpTime) {
        if let Ok(roles) = self.roles() {
            roles.replication.services().inspect(|s| s.hooks.commit_point(at));
        }
    }
    fn joined_recipient_set(&self) {
        if let Ok(roles) = self.roles() {
            roles.replication.services().inspect(|s| s.hooks.recipient_config_installed());
        }
    }
    fn writes_end(&self) {
        let Ok(roles) = self.roles() else { return };
        if roles.maintenance.gate().is_open() {
            roles.maintenance.gate().close();
            // They stand where they were when this member became primary, until somebody moves them.
            roles.replication.progress.take_over(&roles.replication.own_positions());
        }
    }
    fn state_changed(&self, change: &StateChange) {
        let Ok(roles) = self.roles() else { return };
        let hooks = roles.replication.services().map(|s| &s.hooks);
        if change.writable {
            // Before anybody writes: what this member knew as a secondary may be older than what its predecessor has committed.
            if let Some(sharding) = &roles.sharding {
                sharding.forget_all();
            }
            roles.maintenance.gate().open();
            hooks.inspect(|h| h.step_up_complete(change.term));
        } else if change.from == MemberState::Primary {
            roles.sessions.abort_open_transactions();
        }
        match change.to {
            MemberState::Primary => {}
            MemberState::Arbiter => drop(hooks.inspect(|h| h.become_arbiter())),
            _ => drop(hooks.inspect(|h| h.step_down())),
        }
    }

    fn follow(&self, on: bool) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let roles = self.roles()?;
            if on { roles.replication.start_data_path() } else { roles.replication.stop_data_path().await }
        })
    }
    fn is_empty(&self) -> Result<bool> {
        let roles = self.roles()?;
        // A rollback says itself how it ended.
        if roles.replication.rollbacks.is_running() {
            return Ok(false);
        }
        Ok(roles.replication.progress.written().op_time.is_null()
            || roles.maintenance.is_copy_unfinished()?)
    }
    fn initial_sync(&self) -> BoxFuture<'_, Result<Position>> {
        Box::pin(async move {
            let roles = self.roles()?;
            roles.initial_sync().await
        })
    }
    fn drain(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.roles()?.replication.drain_data_path().await })
    }

    fn become_writable(&self, term: Term) -> BoxFuture<'_, Result<Position>> {
        Box::pin(async move {
            let roles = self.roles()?;
            roles.replication.services().map_or(Ok(()), |s| s.hooks.step_up_begin(term))?;
            roles.maintenance.set_term(term);
            let op = roles.replication.append_noop(&doc! { "msg": "new primary" }.to_raw())?;
            let at = DataPosition { op_time: op, wall: roles.env.clock.wall_ms() };
            roles.replication.progress.take_over(&[at, at, roles.replication.progress.durable()]);
            roles.storage.log().ask_flush(op.ts);
            Ok(Position::new(op, at.wall))
        })
    }

    fn take_state_lock(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Ok(roles) = self.roles() else { return };
            roles.take_state_lock().await;
        })
    }
    fn release_state_lock(&self) {
        if let Ok(roles) = self.roles()
            && roles.replication.member.is_primary()
        {
            roles.maintenance.gate().open();
        }
    }

    fn applied_sessions(&self, entries: &[EntryView<'_>]) {
        if let Ok(roles) = self.roles() {
            roles.sessions.note_applied_statements(entries);
        }
    }
    fn take_sessions(&self, sessions: &[DocBuf]) {
        if let Ok(roles) = self.roles() {
            roles.sessions.take(sessions);
        }
    }
    fn store_session_records(&self, upto: OpTime) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move { self.roles()?.sessions.keep_copied(upto).await })
    }
    fn applied_settings(&self) {
        if let Ok(roles) = self.roles()
            && let Err(e) = roles.settings.restore()
        {
            roles.lifecycle.fatal("The set's settings could not be read", &e.message);
        }
    }
    fn local_identity(&self) -> Result<DocBuf> {
        let roles = self.roles()?;
        roles.replication.identity_is_staged.store(true, SeqCst);
        roles.replication.local_identity()
    }
    fn own_goes_on(&self) {
        if let Ok(roles) = self.roles() {
            roles.replication.identity_is_staged.store(false, SeqCst);
        }
    }
    fn resync(&self) -> Result<()> {
        self.roles()?.start_resync()
    }
    fn copy_again(&self, why: WhyCopyAgain) -> Result<()> {
        self.roles()?.start_copy_again(why)
    }
    fn diverged(&self, source: &str, why: &Error) {
        if let Ok(roles) = self.roles() {
            roles.env.log.info(
                Component::Rollback,
                21657,
                "The sync source's oplog has parted from ours",
                |a| {
                    a.str("syncSource", source).data("error", &why);
                },
            );
            roles.start_rollback(source.to_owned());
        }
    }
    fn fatal(&self, what: &str, why: &Error) {
        if let Ok(roles) = self.roles()
            && !roles.lifecycle.is_stopping()
        {
            roles.lifecycle.fatal(what, &why.message);
        }
    }
    fn is_stopping(&self) -> bool {
        self.roles().map_or(true, |s| s.lifecycle.is_stopping())
    }
}

impl RoleChanges {
    async fn initial_sync(self: &Arc<Self>) -> Result<Position> {
        let sync = InitialSync::default();
        *self.replication.initial_sync.lock().unwrap_or_else(PoisonError::into_inner) = Some(sync.clone());
        let state = self.replication.member.state();
        if let Some(me) = state.config.as_ref().and_then(|c| c.members.get(state.self_index)) {
            self.maintenance.set_makes_indexes(me.build_indexes)?;
        }
        self.maintenance.forget_prepared();
        self.sessions.forget();
        let done = sync.run(&self.replication.data_path_deps()?).await;
        self.replication.initial_sync.lock().unwrap_or_else(PoisonError::into_inner).take();
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
        self.sessions.restore_retryable_writes()?;
        self.sessions.restore_prepared()?;
        // Services hear of their first data only; this may be another copy.
        if let Some(sharding) = &self.sharding {
            sharding.read_sections(&self.internal)?;
        }
        if let Some(tenants) = &self.tenants {
            tenants.read_documents()?;
        }
        let top = self.replication.top_of_log()?;
        self.replication.progress.reset(top);
        self.maintenance.resume_builds().await?;
        self.replication.services().inspect(|s| s.hooks.initial_data_available());
        Ok(Position::new(top.op_time, top.wall))
    }
}
