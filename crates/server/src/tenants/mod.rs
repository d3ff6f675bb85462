//! Tenants of a set that was started with `--serverless`: who waits and who is refused while some of them are moved elsewhere.
//!
//! ```text
//!   config.tenantSplitDonors ─► observer, or read anew ─► AccessBlockers ◄─ observer ── every write and definition, with its slot
//!       ▲                                                      ▲         ◄─ pipeline ── every read, behind its read concern
//!   the split's machine ── blockTenants, before it says so ────┘         ◄─ pipeline ── who was turned away, and waits
//! ```
//! * [`observer`] — what a state document says holds from its commit on, on every member; and the check of writes;
//! * [`waiting`] — reads, and what becomes of those that were turned away;
//! * [`split_steps`] — what the primary does for a split, step by step (`pando_workflows::shard_split`).

pub(crate) mod observer;
pub(crate) mod split_steps;
pub(crate) mod waiting;

use pando_access::{InternalCollections, Uninterrupted};
use pando_base::Result;
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_repl::Repl;
use pando_storage::ReadAt;
use pando_tenants::{AccessBlockers, Kind, Operation};
use pando_workflows::shard_split;
use std::sync::Arc;

pub(crate) struct Tenants {
    pub(crate) blockers: AccessBlockers,
    internal: InternalCollections,
    member: Arc<Repl>,
}

impl Tenants {
    pub(crate) fn new(internal: InternalCollections, member: Arc<Repl>) -> Tenants {
        Tenants { blockers: AccessBlockers::default(), internal, member }
    }
    /// An operation of a state document. `None`: of the set that this one has come from; its tenants are here now.
    fn operation(&self, doc: &RawDoc) -> Result<Option<Operation>> {
        let operation = Operation::parse(Kind::ShardSplit, doc)?;
        Ok((!self.is_of_donor(doc)).then_some(operation))
    }
    /// Whether a state document is a copy that came with the data of the set that has split: nothing here goes on with it. That set may
    /// have begun other splits as well, or have called off some that nobody had begun.
    pub(crate) fn is_of_donor(&self, doc: &RawDoc) -> bool {
        let Some(config) = self.member.config() else { return false };
        let recipient = doc.get("recipientSetName").and_then(|v| v.as_str());
        recipient == Some(&config.name)
            || shard_split::donor_of(doc).is_some_and(|donor| donor != config.name)
    }

    /// What the documents say is all there is: at the start, behind an initial sync and a rollback, and in a set of its own.
    pub(crate) fn read_documents(&self) -> Result<()> {
        let docs = self.internal.all(&shard_split::collection(), ReadAt::Latest)?;
        let all: Result<Vec<Option<Operation>>> = docs.iter().map(|doc| self.operation(doc)).collect();
        self.blockers.rebuild(all?.into_iter().flatten().collect());
        Ok(())
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
