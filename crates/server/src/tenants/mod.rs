//! Tenants of a set that was started with `--serverless`: who waits and who is refused while some of them are moved elsewhere.
//!
//! ```text
//!   state documents ─► observer, or read anew ─► AccessBlockers ◄─ observer ── every write and definition, with its slot
//!       ▲                                                      ▲         ◄─ pipeline ── every read, behind its read concern
//!   the split's machine ── blockTenants, before it says so ────┘         ◄─ pipeline ── who was turned away, and waits
//! ```
//! * [`observer`] — what a state document says holds from its commit on, on every member; and the check of writes;
//! * [`waiting`] — reads, and what becomes of those that were turned away;
//! * [`merge`] — the copy of a shard merge: tables of another set are taken in by their files;
//! * [`exports`] — a tenant's data that this primary holds still for another set; [`copy`] — the same taken over from another one;
//! * [`split_steps`], [`donor_steps`], [`recipient_steps`] — what the primary does for a split, and for tenants that go to another set or come
//!   from one, step by step (`pando_workflows`: `shard_split`, `donate_tenants`, `receive_tenants`);
//! * [`receptions`] — what this primary was told of tenants that come.

pub(crate) mod copy;
pub(crate) mod donor_steps;
pub(crate) mod exports;
pub(crate) mod merge;
pub(crate) mod observer;
pub(crate) mod receptions;
pub(crate) mod recipient_steps;
pub(crate) mod split_steps;
mod steps;
pub(crate) mod waiting;

use pando_access::{InternalCollections, Uninterrupted};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_repl::Repl;
use pando_storage::ReadAt;
use pando_tenants::operation::{MERGE, Phase};
use pando_tenants::{AccessBlockers, Kind, Operation};
use pando_workflows::{donate_tenants, receive_tenants, shard_split};
use receptions::Receptions;
use std::sync::Arc;

pub(crate) struct Tenants {
    pub(crate) blockers: AccessBlockers,
    pub(crate) receptions: Receptions,
    pub(crate) exports: exports::Exports,
    /// Another set's files are being taken in.
    pub(crate) taking: merge::Taking,
    internal: InternalCollections,
    member: Arc<Repl>,
}

/// Which operation a state document of this collection is of.
pub(crate) fn kind_of(ns: &Namespace, doc: &RawDoc) -> Option<Kind> {
    let merges = || doc.get("protocol").and_then(|v| v.as_str()) == Some(MERGE);
    match ns {
        ns if *ns == shard_split::collection() => Some(Kind::ShardSplit),
        ns if *ns == donate_tenants::collection() => Some(Kind::Donor),
        ns if *ns == receive_tenants::collection() => {
            Some(if merges() { Kind::MergeRecipient } else { Kind::Recipient })
        }
        _ => None,
    }
}
/// Where state documents are.
pub(crate) fn collections() -> [Namespace; 3] {
    [shard_split::collection(), donate_tenants::collection(), receive_tenants::collection()]
}
pub(crate) fn is_state(ns: &Namespace) -> bool {
    ns.db() == "config" && collections().contains(ns)
}
/// Whether the primary could go on with a document.
///
/// # Errors
/// 2.
pub(crate) fn check_restorable(kind: Kind, doc: &RawDoc) -> Result<()> {
    match kind {
        Kind::ShardSplit => shard_split::restore(doc).map(drop),
        Kind::Donor => donate_tenants::restore(doc).map(drop),
        Kind::Recipient | Kind::MergeRecipient => receive_tenants::restore(doc).map(drop),
    }
}

impl Tenants {
    pub(crate) fn new(internal: InternalCollections, member: Arc<Repl>) -> Tenants {
        Tenants {
            blockers: AccessBlockers::default(),
            exports: Default::default(),
            receptions: Receptions::default(),
            taking: Default::default(),
            internal,
            member,
        }
    }
    /// An operation of a state document. `None`: of the set that this one has come from; its tenants are here now.
    fn operation(&self, kind: Kind, doc: &RawDoc) -> Result<Option<Operation>> {
        let operation = Operation::parse(kind, doc)?;
        Ok((!self.is_of_donor(kind, doc)).then_some(operation))
    }
    /// Whether a state document is a copy that came with the data of the set that has split: nothing here goes on with it.
    pub(crate) fn is_of_donor(&self, kind: Kind, doc: &RawDoc) -> bool {
        let own = if kind.takes() { "recipientSetName" } else { "donorSetName" };
        let set = doc.get(own).and_then(|v| v.as_str());
        set.is_some_and(|set| self.member.config().is_some_and(|config| config.name != set))
    }

    /// Whether the primary goes on with a document: of this set's own, and a state of such an operation.
    pub(crate) fn goes_on_with(&self, ns: &Namespace, doc: &RawDoc) -> bool {
        kind_of(ns, doc)
            .is_some_and(|kind| !self.is_of_donor(kind, doc) && check_restorable(kind, doc).is_ok())
    }
    /// All state documents that lie here, whosever they are.
    fn documents(&self) -> Result<Vec<(Namespace, Kind, DocBuf)>> {
        let mut all = Vec::new();
        for ns in collections() {
            for doc in self.internal.all(&ns, ReadAt::Latest)? {
                all.extend(kind_of(&ns, &doc).map(|kind| (ns.clone(), kind, doc)));
            }
        }
        Ok(all)
    }

    /// What the documents say is all there is: at the start, behind an initial sync and a rollback, and in a set of its own.
    pub(crate) fn read_documents(&self) -> Result<()> {
        // What is no state, as of a set that was none with tenants before, says nothing.
        let all = self.documents()?;
        let all = all.iter().filter_map(|(_, kind, doc)| self.operation(*kind, doc).ok().flatten());
        self.blockers.rebuild(all.collect());
        Ok(())
    }
    /// A configuration of a user's takes the place of the one that tells members to leave: while a split is undecided, one of them may not
    /// have heard of it yet, and would be in no set.
    ///
    /// # Errors
    /// 117.
    pub(crate) fn check_may_reconfigure(&self) -> Result<()> {
        let under_way = |o: &Operation| matches!(o.phase, Phase::Blocking(_));
        match self.blockers.all().into_iter().find(|(operation, _)| under_way(operation)) {
            None => Ok(()),
            Some((operation, _)) => {
                let text = format!("the set is being split: {}", operation.id);
                Err(Error::new(ErrorCode::ConflictingOperationInProgress, text))
            }
        }
    }
    /// The state documents of this set's own operations. What cannot be read now is not shown.
    pub(crate) fn states(&self) -> Vec<(Kind, DocBuf)> {
        let all = self.documents().unwrap_or_default().into_iter();
        let own = all.filter(|(_, kind, doc)| !self.is_of_donor(*kind, doc));
        own.map(|(_, kind, doc)| (kind, doc)).collect()
    }
    /// The new set's primary removes what came with the data of the old one.
    pub(crate) async fn remove_those_of_donor(&self) -> Result<()> {
        for (ns, kind, doc) in self.documents()? {
            if let Some(id) = doc.elem("_id").filter(|_| self.is_of_donor(kind, &doc)) {
                let mut key = DocBuilder::new();
                key.elem(id);
                self.internal.remove_all(&Uninterrupted, &ns, &[key.finish()]).await?;
            }
        }
        Ok(())
    }
}
