//! Tenants of a set that was started with `--serverless`: who waits and who is refused while some of them are moved elsewhere.
//!
//! ```text
//!   config.tenantSplitDonors ─► observer, or read anew ─► AccessBlockers ◄─ observer ── every write and definition, with its slot
//!       ▲                                                      ▲         ◄─ pipeline ── every read, behind its read concern
//!   the split's machine ── blockTenants, before it says so ────┘         ◄─ pipeline ── who was turned away, and waits
//! ```
//! * [`observer`] — what a state document says holds from its commit on, on every member; and the check of writes;
//! * [`waiting`] — reads, and what becomes of those that were turned away;
//! * [`merge`] — the copy of a shard merge: tables of another set are taken in by their files;
//! * [`split_steps`] — what the primary does for a split, step by step (`pando_workflows::shard_split`).

pub(crate) mod merge;
pub(crate) mod observer;
pub(crate) mod split_steps;
pub(crate) mod waiting;

use pando_access::{InternalCollections, Uninterrupted};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_repl::Repl;
use pando_storage::ReadAt;
use pando_tenants::operation::Phase;
use pando_tenants::{AccessBlockers, Kind, Operation};
use pando_workflows::shard_split;
use std::sync::Arc;

pub(crate) struct Tenants {
    pub(crate) blockers: AccessBlockers,
    /// Another set's files are being taken in.
    pub(crate) taking: merge::Taking,
    internal: InternalCollections,
    member: Arc<Repl>,
}

impl Tenants {
    pub(crate) fn new(internal: InternalCollections, member: Arc<Repl>) -> Tenants {
        Tenants { blockers: AccessBlockers::default(), taking: Default::default(), internal, member }
    }
    /// An operation of a state document. `None`: of the set that this one has come from; its tenants are here now.
    fn operation(&self, doc: &RawDoc) -> Result<Option<Operation>> {
        let operation = Operation::parse(Kind::ShardSplit, doc)?;
        Ok((!self.is_of_donor(doc)).then_some(operation))
    }
    /// Whether a state document is a copy that came with the data of the set that has split: nothing here goes on with it.
    pub(crate) fn is_of_donor(&self, doc: &RawDoc) -> bool {
        let donor = doc.get("donorSetName").and_then(|v| v.as_str());
        donor.is_some_and(|donor| self.member.config().is_some_and(|config| config.name != donor))
    }

    /// Whether the primary goes on with a document: of this set's own, and a state of a split.
    pub(crate) fn goes_on_with(&self, doc: &RawDoc) -> bool {
        !self.is_of_donor(doc) && shard_split::restore(doc).is_ok()
    }

    /// What the documents say is all there is: at the start, behind an initial sync and a rollback, and in a set of its own.
    pub(crate) fn read_documents(&self) -> Result<()> {
        let docs = self.internal.all(&shard_split::collection(), ReadAt::Latest)?;
        // What is no state, as of a set that was none with tenants before, says nothing.
        let all = docs.iter().filter_map(|doc| self.operation(doc).ok().flatten());
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
    pub(crate) fn states(&self) -> Vec<DocBuf> {
        let docs = self.internal.all(&shard_split::collection(), ReadAt::Latest).unwrap_or_default();
        docs.into_iter().filter(|doc| !self.is_of_donor(doc)).collect()
    }
    /// The new set's primary removes what came with the data of the old one.
    pub(crate) async fn remove_those_of_donor(&self) -> Result<()> {
        let ns = shard_split::collection();
        let docs = self.internal.all(&ns, ReadAt::Latest)?;
        let key = |doc: &DocBuf| {
            let mut b = DocBuilder::new();
            b.elem(doc.elem("_id")?);
            Some(b.finish())
        };
        let keys: Vec<DocBuf> = docs.iter().filter(|doc| self.is_of_donor(doc)).filter_map(key).collect();
        match keys.is_empty() {
            true => Ok(()),
            false => self.internal.remove_all(&Uninterrupted, &ns, &keys).await,
        }
    }
}
