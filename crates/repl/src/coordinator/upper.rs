//! The data path's questions, answered by the core.

use crate::coordinator::{Coordinator, Said, wire};
use crate::data::{Metadata, Upper};
use pando_base::{Error, OpTime, Result, Term};
use pando_bson::DocBuf;
use pando_env::BoxFuture;
use pando_env::sync::Notify;
use pando_oplog::EntryView;
use pando_topology::{Event, Host, MemberState, Positions, SourceChoice};
use std::time::Duration;

impl Upper for Coordinator {
    fn choose_source(&self, last_fetched: OpTime) -> Option<String> {
        match self.choose(last_fetched, last_fetched.is_null()) {
            SourceChoice::Use(peer) => Some(peer.host.to_string()),
            SourceChoice::None(_) => None,
            SourceChoice::CopyAgain(why) => {
                self.tell_refused(self.effects.copy_again(why));
                None
            }
        }
    }
    fn deny_source(&self, host: &str, how_long: Duration, _why: &str) {
        self.tell(Event::SyncSourceDenied { host: host.into(), for_ms: how_long.as_millis() as i64 });
    }
    fn should_change_source(&self, source: &str, _: &Metadata, last_fetched: OpTime) -> bool {
        let mut inner = self.lock();
        std::mem::take(&mut inner.change_source)
            || inner.core.should_change_source(source, last_fetched).is_some()
    }
    fn saw_metadata(&self, source: &str, m: &Metadata, last_fetched: OpTime) {
        let (Some(repl), Some(query)) = (&m.repl, &m.query) else { return };
        self.progress.source_waits(query.positions_awaited);
        self.tell(Event::Fetched {
            from: source.into(),
            repl: wire::repl_metadata(repl),
            oplog: wire::oplog_metadata(query),
            last_fetched,
        });
    }
    fn is_of_another_set(&self, m: &Metadata) -> bool {
        m.repl.as_ref().is_some_and(|d| self.read(|core| core.is_of_another_set(&wire::repl_metadata(d))))
    }
    fn connection_lost(&self, host: &str) {
        let member = self
            .read(|core| core.config().and_then(|c| c.members.iter().find(|m| m.host == host).map(|m| m.id)));
        if let Some(to) = member {
            self.tell(Event::ConnectionLost { to });
        }
    }
    fn news(&self) -> Notify {
        self.stepped.clone()
    }
    fn source_left(&self) {
        self.tell(Event::SyncSourceChosen(None));
    }
    fn position_report(&self) -> Option<DocBuf> {
        let (update, reports) = self.read(|core| (core.update_position(), !core.is_leader()));
        (reports && !update.optimes.is_empty()).then(|| wire::update_position(&update))
    }
    fn progressed(&self) {
        let p = &self.progress;
        let at = wire::of_data;
        self.tell(Event::Progress(Positions {
            written: at(p.written()),
            applied: at(p.applied()),
            durable: at(p.durable()),
        }));
    }
    fn applied_sessions(&self, entries: &[EntryView<'_>]) {
        self.effects.applied_sessions(entries);
    }
    fn take_sessions(&self, sessions: &[DocBuf]) {
        self.effects.take_sessions(sessions);
    }
    fn store_session_records(&self, upto: OpTime) -> BoxFuture<'_, Result<()>> {
        self.effects.store_session_records(upto)
    }
    fn applied_settings(&self) {
        self.effects.applied_settings();
    }
    fn begins_too_late(&self, source: &str, oldest: OpTime) {
        self.tell(Event::BeginsTooLate { host: source.into(), oldest });
    }
    fn too_stale(&self, stale: bool) {
        self.tell(Event::TooStale(stale));
    }
    fn resync(&self) {
        self.tell_refused(self.effects.resync());
    }
    fn local_identity(&self) -> Result<DocBuf> {
        self.effects.local_identity()
    }
    fn own_goes_on(&self) {
        self.effects.own_goes_on();
    }
    fn data_is_valid(&self) {
        self.tell(Event::FollowerState(MemberState::Secondary));
    }
    fn diverged(&self, source: &str, why: &Error) {
        self.effects.diverged(source, why);
    }
    fn fatal(&self, what: &'static str, why: &Error) {
        self.effects.fatal(what, why);
    }
    fn term(&self) -> Term {
        self.repl.term()
    }
    fn committed(&self) -> OpTime {
        self.progress.committed().op_time
    }
    fn election_timeout(&self) -> Duration {
        let ms = self.read(|core| core.config().map_or(10_000, |c| c.settings.election_timeout()));
        Duration::from_millis(ms.max(1) as u64)
    }
    fn delay(&self) -> Duration {
        let secs = self.read(|core| core.self_member().map_or(0, |m| m.secondary_delay_secs));
        Duration::from_secs(secs.max(0) as u64)
    }
}

impl Coordinator {
    /// Something else of the kind may be under way, or this node may have become primary.
    fn tell_refused(&self, resync: Result<()>) {
        if let Err(e) = resync {
            self.env.log.info(pando_env::Component::Repl, 5_860_011, "No resync now", |a| {
                a.data("error", &e);
            });
        }
    }
    /// A member to copy from, for steady following or for an initial sync.
    pub fn choose(&self, last_fetched: OpTime, initial_sync: bool) -> SourceChoice {
        let mut inner = self.lock();
        inner.change_source = false;
        let (token, slot) = inner.answers.open();
        self.step(&mut inner, Event::SyncSourceNeeded { token, last_fetched, initial_sync });
        match slot.take() {
            Some(Said::Source(choice)) => choice,
            _ => SourceChoice::None("the core did not answer"),
        }
    }
    /// Which member is copied from now.
    pub fn sync_source(&self) -> Option<Host> {
        self.read(|core| core.sync_source().cloned())
    }
}
