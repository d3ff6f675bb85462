//! Taking and keeping this node's place in its replica set: what [`pando_repl::Repl`] decides is made durable here.

use crate::Server;
use crate::server::new_object_id;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, Term};
use pando_bson::{DocBuilder, RawDoc};
use pando_command::OpCtx;
use pando_env::Component;
use pando_oplog::entry::{Entry, Identity, Object, OpType};
use pando_repl::{Election, ReplSetConfig};
use pando_storage::ReadAt;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

fn config_ns() -> Namespace {
    Namespace::unchecked("local", "system.replset")
}
fn election_ns() -> Namespace {
    Namespace::unchecked("local", "replset.election")
}

/// Lets one configuration change run at a time.
#[derive(Default)]
pub(crate) struct OneAtATime(AtomicBool);

pub(crate) struct Entered<'a>(&'a AtomicBool);

impl OneAtATime {
    fn enter(&self) -> Result<Entered<'_>> {
        if self.0.swap(true, SeqCst) {
            return Err(Error::new(
                ErrorCode::ConfigurationInProgress,
                "replSetInitiate or replSetReconfig is already in progress",
            ));
        }
        Ok(Entered(&self.0))
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}

impl Server {
    /// At the start: take up the stored configuration and stand for election, or initiate if asked to.
    pub(crate) async fn take_place(&self) -> Result<()> {
        if !self.repl.is_replicated() {
            self.catalog.set_term(-1);
            return self.restore_settings();
        }
        let stored = self.local_find_one(&config_ns())?;
        match stored {
            Some(doc) => self.resume(&doc).await?,
            None => {
                if let Some(host) = &self.config.auto_initiate {
                    let name = self.repl.require_replication()?;
                    self.initiate_as(ReplSetConfig::single(name, host), 0).await?;
                }
            }
        }
        self.restore_settings()?;
        self.restore_retryable_writes()?;
        self.restore_retry_images().await
    }

    async fn resume(&self, doc: &RawDoc) -> Result<()> {
        let config = ReplSetConfig::parse(doc)
            .and_then(|c| c.validate().map(|()| c))
            .map_err(|e| e.context("Locally stored replica set configuration is invalid; cannot continue"))?;
        let set_name = self.repl.require_replication()?;
        if config.name != set_name {
            return Err(Error::new(
                ErrorCode::InvalidReplicaSetConfig,
                format!(
                    "Replica set name mismatch: this node was started with {set_name}, but its configuration is for \
                     {}",
                    config.name
                ),
            ));
        }
        // A set of one whose port or host changed is still this node's set; its name in the set stays.
        let term = self.last_vote()?.max(config.term).max(0);
        self.repl.install(config, 0, term);
        self.stand_for_election(term + 1).await
    }

    /// `replSetInitiate` with a checked configuration in which this node is `members[me]`.
    pub(crate) async fn initiate(&self, ctx: &OpCtx, config: ReplSetConfig, me: usize) -> Result<()> {
        ctx.check_interrupt()?;
        self.initiate_as(config, me).await
    }

    async fn initiate_as(&self, mut config: ReplSetConfig, me: usize) -> Result<()> {
        {
            let _one = self.changing_config.enter()?;
            if self.repl.is_initiated() {
                return Err(Error::new(ErrorCode::AlreadyInitialized, "already initialized"));
            }
            config.settings.replica_set_id = Some(new_object_id(&self.env));
            config.term = 0;
            self.catalog.set_term(-1);
            self.write_noop("initiating set")?;
            self.local_replace_one(&config_ns(), &config.to_doc()).await?;
            self.storage.sync_local()?;
            self.repl.install(config, me, 0);
        }
        self.stand_for_election(1).await
    }

    /// With one member the outcome is certain; what matters is that vote and term are durable before any write
    /// of that term (R-ELEC).
    async fn stand_for_election(&self, term: Term) -> Result<()> {
        let before = OpTime::new(self.storage.log().visible(), term - 1);
        self.env.log.info(Component::Election, 21438, "Starting an election", |a| {
            a.i64("newTerm", term);
        });
        let mut vote = DocBuilder::new();
        vote.i64("term", term);
        vote.i64("candidateIndex", self.repl.state().self_index as i64);
        self.local_replace_one(&election_ns(), &vote.finish()).await?;
        if let Some(config) = self.repl.config() {
            let config = ReplSetConfig { term, ..(*config).clone() };
            self.local_replace_one(&config_ns(), &config.to_doc()).await?;
        }
        self.storage.sync_local()?;
        self.catalog.set_term(term);
        let now = self.env.clock.wall_ms();
        let first = self.write_noop("new primary")?;
        self.repl.become_primary(Election {
            reason: "electionTimeout",
            time: first.ts,
            date_ms: now,
            term,
            last_committed: before,
            last_seen: before,
            new_term_start_ms: now,
            writable_ms: self.env.clock.wall_ms(),
        });
        self.env.log.info(
            Component::Repl,
            21331,
            "Transition to primary complete; database writes are now permitted",
            |_| {},
        );
        Ok(())
    }

    /// `replSetReconfig` within a set of one.
    pub(crate) async fn reconfigure(&self, ctx: &OpCtx, mut config: ReplSetConfig, me: usize) -> Result<()> {
        ctx.check_interrupt()?;
        let _one = self.changing_config.enter()?;
        config.term = self.repl.term();
        self.local_replace_one(&config_ns(), &config.to_doc()).await?;
        self.storage.sync_local()?;
        self.repl.reconfigure(config, me);
        let mut note = DocBuilder::new();
        note.str("msg", "Reconfig set");
        note.i32("version", self.repl.config().map_or(0, |c| c.version as i32));
        self.write_noop_doc(&note.finish()).map(drop)
    }

    fn last_vote(&self) -> Result<Term> {
        let vote = self.local_find_one(&election_ns())?;
        Ok(vote.and_then(|d| d.get("term").and_then(|v| v.as_i64())).unwrap_or(0))
    }

    /// Whether `host` is an address of this very process.
    pub(crate) async fn is_self(&self, _ctx: &OpCtx, host: &str) -> bool {
        let Some((name, port)) = host.rsplit_once(':') else { return false };
        if port != self.config.port.to_string() {
            return false;
        }
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let facts = self.config.host.facts();
        matches!(name, "localhost" | "127.0.0.1" | "::1")
            || name == facts.hostname
            || self.config.bind_ips.iter().any(|ip| ip == name)
    }

    /// An entry that changes nothing: `{op: "n", o: {msg}}`.
    pub(crate) fn write_noop(&self, msg: &str) -> Result<OpTime> {
        let mut o = DocBuilder::new();
        o.str("msg", msg);
        self.write_noop_doc(&o.finish())
    }
    pub(crate) fn write_noop_doc(&self, o: &RawDoc) -> Result<OpTime> {
        let term = self.catalog.term();
        let mut txn = self.storage.begin(ReadAt::Latest)?;
        let slot = self.storage.log().reserve_one();
        let entry = Entry {
            session: None,
            op: OpType::Noop,
            ns: "",
            ui: None,
            from_migrate: false,
            o: Object::Doc(o),
            o2: Identity::None,
            rid: None,
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

    pub(crate) fn set_oplog_size(&self, bytes: u64) {
        self.storage.log().set_bytes_max(bytes);
    }
}
