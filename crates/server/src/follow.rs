//! Following one given member without elections: the data path under tests, before a coordinator decides.

use crate::Server;
use pando_base::{Error, OpTime, Result, Term, limits};
use pando_bson::{DocBuf, RawDoc, doc};
use pando_repl::data::initial_sync::InitialSync;
use pando_repl::data::update_position::{self, MemberPosition};
use pando_repl::data::{DataPath, Deps, Metadata, Upper};
use pando_repl::{MemberState, ReplSetConfig};
use pando_rpc::{Options, Pool};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// The coordinator of a node that follows one given member.
struct FixedSource {
    server: Weak<Server>,
    source: String,
    denied_until: Mutex<Duration>,
}

impl Upper for FixedSource {
    fn choose_source(&self, _: OpTime) -> Option<String> {
        let now = self.server.upgrade()?.env.clock.mono();
        let until = *self.denied_until.lock().unwrap_or_else(PoisonError::into_inner);
        (now >= until).then(|| self.source.clone())
    }
    /// There is no other: it is asked again soon, but not at once.
    fn deny_source(&self, _: &str, how_long: Duration, _: &str) {
        if let Some(server) = self.server.upgrade() {
            let until = server.env.clock.mono() + how_long.min(Duration::from_secs(1));
            *self.denied_until.lock().unwrap_or_else(PoisonError::into_inner) = until;
        }
    }
    fn should_change_source(&self, _: &str, _: &Metadata, _: OpTime) -> bool {
        false
    }
    /// R-CP-4: the commit point, but not beyond what we have.
    fn saw_metadata(&self, _: &str, m: &Metadata, last_fetched: OpTime) {
        let (Some(server), Some(q)) = (self.server.upgrade(), &m.query) else { return };
        let mut to = q.committed;
        if to.op_time.t != last_fetched.t {
            to.op_time = to.op_time.min(last_fetched);
        }
        server.progress.advance_committed(to);
    }
    fn position_report(&self) -> Option<DocBuf> {
        let server = self.server.upgrade()?;
        let state = server.repl.state();
        let config = state.config?;
        let p = &server.progress;
        let me = MemberPosition {
            member_id: config.members.get(state.self_index)?.id,
            config_version: config.version,
            applied: p.applied(),
            durable: p.durable(),
            written: Some(p.written()),
        };
        let mut all = vec![me];
        all.extend(p.others().into_iter().filter(|m| m.member_id != me.member_id));
        Some(update_position::command(&all))
    }
    fn progressed(&self) {}
    fn applied_sessions(&self, entries: &[&RawDoc]) {
        if let Some(server) = self.server.upgrade() {
            server.note_applied_statements(entries);
        }
    }
    fn diverged(&self, source: &str, why: &Error) {
        if let Some(server) = self.server.upgrade() {
            let what =
                format!("The oplog of {source} has parted from ours, and rolling back is not built yet");
            server.fatal(&what, &why.message);
        }
    }
    fn fatal(&self, what: &'static str, why: &Error) {
        if let Some(server) = self.server.upgrade() {
            server.fatal(what, &why.message);
        }
    }
    fn term(&self) -> Term {
        self.server.upgrade().map_or(-1, |s| s.repl.term())
    }
    fn committed(&self) -> OpTime {
        self.server.upgrade().map_or(OpTime::NULL, |s| s.progress.committed().op_time)
    }
    fn election_timeout(&self) -> Duration {
        Duration::from_secs(10)
    }
}

impl Server {
    pub(crate) fn start_following(self: &Arc<Self>) {
        let server = self.clone();
        self.env.spawn("replication", async move {
            if let Err(e) = server.follow().await {
                server.fatal("Replication cannot go on", &e.message);
            }
        });
    }
    async fn follow(self: &Arc<Self>) -> Result<()> {
        let Some(source) = self.config.follow.clone() else { return Ok(()) };
        let pool = Pool::new(self.env.clone(), Options::default());
        if !self.take_config_of(&pool, &source).await? {
            return Ok(());
        }
        let deps = Deps {
            env: self.env.clone(),
            catalog: self.catalog.clone(),
            progress: self.progress.clone(),
            upper: Arc::new(FixedSource {
                server: Arc::downgrade(self),
                source,
                denied_until: Mutex::default(),
            }),
            pool,
            workers: self.apply_workers(),
            instance: self.instance.clone(),
        };
        self.progress.reset(self.top_of_log()?);
        if self.storage.log().last().is_zero() || self.catalog.is_copy_unfinished()? {
            self.repl.enter(MemberState::Startup2);
            let sync = InitialSync::default();
            *self.initial_sync.lock().unwrap_or_else(PoisonError::into_inner) = Some(sync.clone());
            let done = sync.run(&deps).await;
            self.initial_sync.lock().unwrap_or_else(PoisonError::into_inner).take();
            if !done? {
                return Ok(());
            }
            self.restore_settings()?;
            self.restore_retryable_writes()?;
        }
        if self.stopping.is_stopping() {
            return Ok(());
        }
        self.repl.enter(MemberState::Secondary);
        let path = DataPath::start(deps);
        *self.data_path.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(path));
        Ok(())
    }
    /// Waits until the source has a configuration and takes it; false when the server stops first.
    async fn take_config_of(&self, pool: &Pool, source: &str) -> Result<bool> {
        let ask = doc! { "replSetGetConfig": 1, "$db": "admin" }.to_raw();
        loop {
            let reply = pool.call(source, &ask, Duration::from_secs(10)).await;
            if let Some(doc) = reply.ok().as_ref().and_then(|r| r.get("config")).and_then(|v| v.as_doc()) {
                let config = ReplSetConfig::parse(doc)?;
                let me = self.config.member_host();
                let at = config.members.iter().position(|m| m.host == me).unwrap_or(0);
                let term = config.term;
                self.repl.install(config, at, term);
                return Ok(true);
            }
            if self.stopping.is_stopping() {
                return Ok(false);
            }
            self.env.clock.sleep(Duration::from_millis(limits::SYNC_SOURCE_RETRY_MS)).await;
        }
    }
}
