//! Index builds of this member: the shell around [`pando_repl::topology::index_builds`], and the documents in
//! `config.system.indexBuilds` that it decides by.
//!
//! One task looks at all there is whenever something may have changed, and once in a while: builds that begin, have their
//! part or end here, votes, quorums, the configuration, the role. Start, step-up and the everyday way are the same.

use crate::lifecycle::Lifecycle;
use crate::replication::Replication;
use pando_access::{Access, InternalCollections, LogAs};
use pando_access::{Maintenance, Uninterrupted, build_entries};
use pando_base::redaction::WithCode;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, Term, Uuid, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value, doc};
use pando_env::sync::Notify;
use pando_env::{Component, Env};
use pando_repl::topology::Host;
use pando_repl::topology::commit_quorum::CommitQuorum;
use pando_repl::topology::index_builds::{Action, Entry, Event, IndexBuilds, Part};
use pando_storage::ReadAt;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

/// This member's part in the set's index builds.
pub(crate) struct IndexBuildsCoordinator {
    env: Env,
    access: Access,
    maintenance: Maintenance,
    internal: InternalCollections,
    replication: Arc<Replication>,
    lifecycle: Arc<Lifecycle>,
    inbox: Inbox,
}

/// What the task is told from elsewhere.
#[derive(Default)]
struct Inbox {
    events: Mutex<Vec<Event>>,
    changed: Notify,
}

impl Inbox {
    fn tell(&self, event: Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        self.changed.bump();
    }
    fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub(crate) async fn run(builds: Arc<IndexBuildsCoordinator>) {
    if !builds.replication.member.is_replicated() {
        return;
    }
    let mut core = IndexBuilds::default();
    let mut known: BTreeSet<Uuid> = BTreeSet::new();
    while !builds.lifecycle.is_stopping() {
        let (news, repl) =
            (builds.maintenance.build_news().clone(), builds.replication.member.changed().clone());
        let (seen_news, seen_repl) = (news.version(), repl.version());
        let inbox = builds.inbox.changed.clone();
        let seen_inbox = inbox.version();
        match builds.look(&mut core, &mut known) {
            Ok(actions) => actions.into_iter().for_each(|a| builds.act(a)),
            Err(e) => {
                builds.env.log.warn(Component::Index, 9100051, "Index builds could not be looked at", |a| {
                    a.data("error", &WithCode(&e));
                });
            }
        }
        let look = match core.is_waiting() || !known.is_empty() {
            true => Duration::from_millis(limits::INDEX_BUILD_VOTE_RETRY_MS),
            false => Duration::from_millis(limits::INDEX_BUILDS_LOOK_MS),
        };
        let (mut a, mut b) = (pin!(news.changed(seen_news)), pin!(repl.changed(seen_repl)));
        let (mut c, mut d) = (pin!(inbox.changed(seen_inbox)), pin!(builds.env.clock.sleep(look)));
        let mut stop = pin!(builds.lifecycle.wait_stopping());
        std::future::poll_fn(|cx| {
            let any = a.as_mut().poll(cx).is_ready()
                | b.as_mut().poll(cx).is_ready()
                | c.as_mut().poll(cx).is_ready()
                | d.as_mut().poll(cx).is_ready()
                | stop.as_mut().poll(cx).is_ready();
            if any { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// A document as the core reads it; a quorum that cannot be read is that of all who vote.
fn parse(doc: &RawDoc) -> Option<(Uuid, CommitQuorum, BTreeSet<String>)> {
    let Some(Value::Binary { bytes, .. }) = doc.get("_id") else { return None };
    let quorum = doc.get("commitQuorum").and_then(|v| CommitQuorum::parse(&v)).and_then(Result::ok);
    let ready = doc.get("commitReadyMembers").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
    let ready = ready.iter().filter_map(|e| e.value().as_str().map(str::to_owned)).collect();
    Some((Uuid::from_slice(bytes)?, quorum.unwrap_or(CommitQuorum::VotingMembers), ready))
}

fn no_such_build(build: Uuid) -> Error {
    Error::new(ErrorCode::NoSuchKey, format!("No index build with UUID: {build}"))
}

/// The document with other fields in the place of those of the same name, or behind all others.
fn with_field(doc: &RawDoc, name: &str, field: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::new();
    for e in doc.iter() {
        match e.name_bytes() == name.as_bytes() {
            true => b.elems_of(field),
            false => b.elem(e),
        };
    }
    if doc.get(name).is_none() {
        b.elems_of(field);
    }
    b.finish()
}

impl IndexBuildsCoordinator {
    pub(crate) fn new(
        access: Access,
        internal: InternalCollections,
        replication: Arc<Replication>,
        lifecycle: Arc<Lifecycle>,
        env: Env,
    ) -> IndexBuildsCoordinator {
        let maintenance = access.maintenance();
        IndexBuildsCoordinator {
            env,
            access,
            maintenance,
            internal,
            replication,
            lifecycle,
            inbox: Inbox::default(),
        }
    }
    /// What was written of builds may have been undone.
    pub(crate) fn rolled_back(&self) {
        self.inbox.tell(Event::RolledBack);
    }

    /// What there is now, told to the core in one go.
    fn look(&self, core: &mut IndexBuilds, known: &mut BTreeSet<Uuid>) -> Result<Vec<Action>> {
        let mut out = Vec::new();
        for event in self.inbox.take() {
            core.step(event, &mut out);
        }
        let state = self.replication.member.state();
        let builds = self.maintenance.builds();
        let entries = match builds.is_empty() && !state.writable {
            true => Vec::new(),
            false => self.entries()?,
        };
        if let Some(config) = &state.config {
            let me = state.me().map(Host::from);
            core.step(Event::Configured { config: config.clone(), me }, &mut out);
        }
        core.step(Event::Entries(entries), &mut out);
        let now: BTreeSet<Uuid> = builds.iter().map(|b| b.uuid).collect();
        for build in known.difference(&now) {
            core.step(Event::Ended { build: *build }, &mut out);
        }
        for b in &builds {
            let part = match (&b.failed, b.ready) {
                (Some(_), _) => Part::Failed,
                (None, true) => Part::Ready,
                (None, false) => Part::Building,
            };
            core.step(Event::Running { build: b.uuid, part, unwanted: b.unwanted }, &mut out);
        }
        *known = now;
        let primary = state.primary.as_deref().map(Host::from);
        core.step(Event::Office { term: state.term, primary, writable: state.writable }, &mut out);
        Ok(out)
    }

    fn entries(&self) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        for doc in self.internal.all(&build_entries::ns(), ReadAt::Latest)? {
            let Some((build, quorum, ready)) = parse(&doc) else { continue };
            found.push(Entry { build, quorum, ready, unfinished: self.maintenance.is_unfinished(build) });
        }
        Ok(found)
    }

    fn act(self: &Arc<Self>, action: Action) {
        let builds = self.clone();
        match action {
            Action::Permit { build } => {
                self.env.log.info(Component::Index, 3_856_201, "Index build: commit quorum satisfied", |a| {
                    a.show("buildUUID", build);
                });
                self.maintenance.permit_build(build);
            }
            Action::Abort { build } => self.maintenance.permit_abort(build),
            Action::Keep { build } => self.maintenance.keep_build(build),
            Action::Vote { build, to, term } => self.env.spawn("index build vote", async move {
                let taken = builds.vote_for(build, &to, term).await;
                builds.tell_of_vote(build, to, term, taken).await;
            }),
            Action::VoteAbort { build, to, term } => self.env.spawn("index build vote", async move {
                let taken = builds.vote_against(build, &to, term).await;
                builds.tell_of_vote(build, to, term, taken).await;
            }),
            Action::Forget { build } => self.env.spawn("index build entry", async move {
                let mut id = DocBuilder::new();
                id.uuid("_id", &build.0);
                // It is looked at again.
                let _ = builds.internal.remove(&Uninterrupted, &build_entries::ns(), &id.finish()).await;
            }),
        }
    }

    async fn tell_of_vote(&self, build: Uuid, to: Host, term: Term, taken: bool) {
        if !taken {
            // Whoever refuses at once would be asked at once again, and nothing else would be done.
            let pause = Duration::from_millis(limits::INDEX_BUILD_VOTE_RETRY_MS);
            self.env.clock.sleep(pause).await;
        }
        self.inbox.tell(Event::Voted { build, to, term, taken });
    }

    /// True when the primary has written it down, on a majority.
    async fn vote_for(&self, build: Uuid, to: &str, term: Term) -> bool {
        let Some(me) = self.replication.member.state().me().map(str::to_owned) else { return false };
        let done = if to == me {
            self.note_vote(build, &me).await.map(drop)
        } else {
            let mut b = DocBuilder::new();
            b.uuid("voteCommitIndexBuild", &build.0);
            b.str("hostAndPort", &me);
            b.raw_doc("writeConcern", &doc! { "w": "majority" }.to_raw());
            b.str("$db", "admin");
            self.call_for_vote(to, &b.finish()).await
        };
        self.is_vote_taken("'voteCommitIndexBuild' command failed.", build, to, term, &done)
    }

    /// True when the primary has heard it: it gives the build up, or is primary no more.
    async fn vote_against(&self, build: Uuid, to: &str, term: Term) -> bool {
        let Some(me) = self.replication.member.state().me().map(str::to_owned) else { return false };
        let builds = self.maintenance.builds();
        let Some(failed) = builds.iter().find(|b| b.uuid == build).and_then(|b| b.failed.clone()) else {
            return false;
        };
        let mut b = DocBuilder::new();
        b.uuid("voteAbortIndexBuild", &build.0);
        b.str("hostAndPort", &me);
        b.str("reason", &failed.to_string());
        b.str("$db", "admin");
        let done = self.call_for_vote(to, &b.finish()).await;
        self.is_vote_taken("'voteAbortIndexBuild' command failed.", build, to, term, &done)
    }

    async fn call_for_vote(&self, to: &str, command: &RawDoc) -> Result<()> {
        let limit = Duration::from_millis(limits::INDEX_BUILD_VOTE_MS_MAX);
        match self.replication.peers.call(to, command, pando_rpc::Retry::Idempotent, limit).await {
            Ok(reply) if reply.get("writeConcernError").is_some() => {
                Err(Error::new(ErrorCode::WriteConcernFailed, "the vote is not on a majority"))
            }
            Ok(_) => Ok(()),
            Err(f) => Err(f.error),
        }
    }
    fn is_vote_taken(
        &self,
        text: &'static str,
        build: Uuid,
        to: &str,
        term: Term,
        done: &Result<()>,
    ) -> bool {
        if let Err(e) = done {
            self.env.log.info(Component::Index, 3_856_202, text, |a| {
                a.show("buildUUID", build).str("primary", to).i64("term", term).data("error", &WithCode(e));
            });
        }
        done.is_ok()
    }

    /// A member cannot make its part: this primary gives the build up, with that member's error.
    pub(crate) fn note_failure(&self, build: Uuid, host: &str, reason: &str) -> Result<()> {
        if !self.replication.member.state().writable {
            return Err(Error::new(ErrorCode::NotWritablePrimary, "not primary"));
        }
        let text = format!("'voteAbortIndexBuild' received from '{host}': {reason}");
        match self.maintenance.unwanted_build(build, Error::new(ErrorCode::IndexBuildAborted, text)) {
            true => Ok(()),
            false => Err(no_such_build(build)),
        }
    }

    /// Before a build is begun on a primary, and at each step-up.
    pub(crate) async fn make_entries(&self) -> Result<()> {
        match self.replication.member.is_replicated() {
            true => self.internal.ensure(&build_entries::ns()).await,
            false => Ok(()),
        }
    }

    /// A member has its part. Nothing is written where nobody is asked.
    pub(crate) async fn note_vote(&self, build: Uuid, host: &str) -> Result<Option<OpTime>> {
        if !self.maintenance.builds().iter().any(|b| b.uuid == build) {
            return Err(no_such_build(build));
        }
        self.change_entry(build, |doc, (_, quorum, ready)| {
            if quorum.is_disabled() || ready.contains(host) {
                return None;
            }
            let voted = doc.get("commitReadyMembers").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
            let mut b = DocBuilder::new();
            b.array("commitReadyMembers", |a| {
                for e in voted.iter() {
                    a.value(e.value());
                }
                a.str(host);
            });
            Some(with_field(doc, "commitReadyMembers", &b.finish()))
        })
        .await
    }

    /// Another quorum for the build of these indexes.
    pub(crate) async fn set_commit_quorum(
        &self,
        ns: &Namespace,
        names: &[&str],
        new: &CommitQuorum,
    ) -> Result<Option<OpTime>> {
        let index_not_found = |text: String| Err(Error::new(ErrorCode::IndexNotFound, text));
        let Some(first) = names.first() else {
            return index_not_found(format!(
                "Cannot set a new commit quorum on an index build in collection '{ns}' without providing any indexes."
            ));
        };
        let definitions = self.access.definitions();
        let Some(coll) = definitions.collection(ns) else {
            let text = format!("Collection '{ns}' was not found.");
            return Err(Error::new(ErrorCode::NamespaceNotFound, text));
        };
        let builds = self.maintenance.builds();
        let Some(build) = builds.iter().find(|b| b.collection == coll.uuid && b.names == names) else {
            return index_not_found(format!(
                "Cannot find an index build on collection '{ns}' with the provided index names"
            ));
        };
        if let Some(config) = self.replication.member.config() {
            config.check_commit_quorum(new)?;
        }
        let mut refused = None;
        let done = self
            .change_entry(build.uuid, |doc, (_, now, _)| {
                if now.is_disabled() || new.is_disabled() {
                    refused = Some(now.clone());
                    return None;
                }
                Some(with_field(doc, "commitQuorum", &new.to_doc()))
            })
            .await?;
        match refused {
            None => Ok(done),
            Some(now) => Err(Error::bad_value(format!(
                "Commit quorum value can be changed only for index builds with commit quorum enabled, nss: '{ns}' first \
                 index name: '{first}' currentCommitQuorum: {} providedCommitQuorum: {}",
                now.to_doc(),
                new.to_doc()
            ))),
        }
    }

    /// Replaces a build's document by what `change` makes of it; the task looks at it at once.
    async fn change_entry(
        &self,
        build: Uuid,
        mut change: impl FnMut(&RawDoc, (Uuid, CommitQuorum, BTreeSet<String>)) -> Option<DocBuf> + Send,
    ) -> Result<Option<OpTime>> {
        let not_found = || {
            let text = format!("No matching IndexBuildEntry found with indexBuildUUID: {build}");
            Error::new(ErrorCode::NoMatchingDocument, text)
        };
        let mut key = DocBuilder::new();
        key.uuid("_id", &build.0);
        let (ns, key) = (build_entries::ns(), key.finish());
        let changed = self.internal.change(&Uninterrupted, &ns, &key, LogAs::Difference, |old| {
            let old = old.ok_or_else(not_found)?;
            Ok(change(old, parse(old).ok_or_else(not_found)?))
        });
        let done = changed.await;
        self.inbox.changed.bump();
        done
    }
}
