//! What the state document of an operation on tenants says, and what that means for them.

use crate::mutants::{Mutant, broken};
use pando_base::{Error, OpTime, Result, Timestamp, Uuid};
use pando_bson::{RawDoc, Value};

/// Kinds of operations on tenants. Those of one kind may run at the same time, those of two may not (SV-LOCK-1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    ShardSplit,
    TenantMigration,
    ShardMerge,
}

impl Kind {
    pub fn text(self) -> &'static str {
        match self {
            Kind::ShardSplit => "shard split",
            Kind::TenantMigration => "tenant migration",
            Kind::ShardMerge => "shard merge",
        }
    }
}

/// How far it is, as its document says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Nobody is affected.
    Begun,
    /// Index builds are given up, and none begins.
    NoBuilds,
    Blocking(Timestamp),
    Committed {
        block: Timestamp,
        at: OpTime,
    },
    Aborted {
        block: Option<Timestamp>,
        at: OpTime,
    },
}

/// An operation as its document tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    pub id: Uuid,
    pub kind: Kind,
    pub tenants: Vec<String>,
    /// The set that the tenants go to.
    pub recipient_set: String,
    pub phase: Phase,
    /// Somebody has said that it may be forgotten: `expireAt` is set.
    pub expires: bool,
}

/// What tenants of an operation may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Everything but begin an index build.
    NoBuilds,
    /// Writes wait for the decision.
    NoWrites,
    /// So do reads of that time and later ones.
    NoWritesNoReads(Timestamp),
    /// All reads wait, too: they are elsewhere, as soon as it is known that a majority knows so. It cannot be otherwise any more, and the new
    /// owner may have other data already.
    Leaves,
    /// They are elsewhere.
    Moved,
    /// They stay, and may do everything.
    Stays,
}

impl Access {
    /// Whether a tenant that two operations name may do this rather than the other: what permits less counts.
    pub(crate) fn outweighs(self, other: Access) -> bool {
        let rank = |access| match access {
            Access::Stays => 0,
            Access::NoBuilds => 1,
            Access::NoWrites => 2,
            Access::NoWritesNoReads(_) => 3,
            Access::Leaves => 4,
            Access::Moved => 5,
        };
        rank(self) > rank(other)
    }
}

fn timestamp_at(doc: &RawDoc, name: &str) -> Option<Timestamp> {
    match doc.get(name)? {
        Value::Timestamp(at) => Some(at),
        _ => None,
    }
}
fn op_time(doc: &RawDoc) -> Option<OpTime> {
    Some(OpTime::new(timestamp_at(doc, "ts")?, doc.get("t")?.as_i64()?))
}
fn tenants(doc: &RawDoc) -> Vec<String> {
    let list = doc.get("tenantIds").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
    list.iter().filter_map(|e| e.value().as_str().map(str::to_owned)).collect()
}

impl Operation {
    /// # Errors
    /// 2 for a document that no operation has left.
    pub fn parse(kind: Kind, doc: &RawDoc) -> Result<Operation> {
        let wrong = || Error::bad_value(format!("not a state of a {}: {doc}", kind.text()));
        let text = |name: &str| doc.get(name).and_then(|v| v.as_str());
        let block = timestamp_at(doc, "blockTimestamp");
        let decided = doc.get("commitOrAbortOpTime").and_then(|v| op_time(v.as_doc()?));
        let id = match doc.get("_id") {
            Some(Value::Binary { subtype: 4, bytes }) => Uuid::from_slice(bytes),
            _ => None,
        };
        let phase = match text("state") {
            Some("uninitialized") => Some(Phase::Begun),
            Some("aborting index builds") => Some(Phase::NoBuilds),
            Some("blocking") => block.map(Phase::Blocking),
            Some("committed") => block.zip(decided).map(|(block, at)| Phase::Committed { block, at }),
            Some("aborted") => decided.map(|at| Phase::Aborted { block, at }),
            _ => None,
        };
        Ok(Operation {
            id: id.ok_or_else(wrong)?,
            kind,
            tenants: tenants(doc),
            recipient_set: text("recipientSetName").unwrap_or_default().to_owned(),
            phase: phase.ok_or_else(wrong)?,
            expires: matches!(doc.get("expireAt"), Some(Value::DateTime(_))),
        })
    }
    /// Whether a document may come into being so (SV-DOC-3).
    pub fn may_be_first(&self) -> bool {
        !self.expires
            && matches!(self.phase, Phase::Begun | Phase::NoBuilds | Phase::Aborted { block: None, .. })
    }
    /// Whether its document may become that one (SV-DOC-3): step by step, and never another operation.
    pub fn may_become(&self, next: &Operation) -> bool {
        use Phase::{Aborted, Begun, Blocking, Committed, NoBuilds};
        let same =
            (self.id, &self.tenants, &self.recipient_set) == (next.id, &next.tenants, &next.recipient_set);
        let step = match (self.phase, next.phase) {
            (before, after) if before == after => self.is_decided() || !next.expires,
            (Begun, NoBuilds | Aborted { block: None, .. }) => !next.expires,
            (NoBuilds, Blocking(_) | Aborted { block: None, .. }) => !next.expires,
            (Blocking(block), Committed { block: kept, .. } | Aborted { block: Some(kept), .. }) => {
                block == kept && !next.expires
            }
            _ => broken(Mutant::AnyStepIsLegal),
        };
        same && step && (next.expires || !self.expires)
    }
    pub fn is_aborted(&self) -> bool {
        matches!(self.phase, Phase::Aborted { .. })
    }
    /// The set that both would make. The one that comes second would find it made, by members that have gone before its own tenants were
    /// blocked: what those had written since would be lost.
    pub fn shares_set_with(&self, other: &Operation) -> bool {
        let splits = self.kind == Kind::ShardSplit && other.kind == Kind::ShardSplit;
        splits
            && !other.is_aborted()
            && !self.recipient_set.is_empty()
            && self.recipient_set == other.recipient_set
    }
    pub fn is_decided(&self) -> bool {
        matches!(self.phase, Phase::Committed { .. } | Phase::Aborted { .. })
    }

    /// What its tenants may do where that much is on a majority; `None`: everything, and nobody is asked. `early`: the primary has blocked
    /// their writes, and the document does not say so yet.
    ///
    /// A decision holds once a majority has it (SV-MTAB-8); or when it may be forgotten, because then it had one before.
    pub fn access(&self, early: bool, committed: Timestamp) -> Option<Access> {
        let holds = |at: OpTime| self.expires || at.ts <= committed || broken(Mutant::DecisionNotAwaited);
        match self.phase {
            Phase::Begun => None,
            Phase::NoBuilds if early => Some(Access::NoWrites),
            Phase::NoBuilds => Some(Access::NoBuilds),
            Phase::Blocking(_) if broken(Mutant::ReadsPass) => Some(Access::NoWrites),
            Phase::Blocking(at) => Some(Access::NoWritesNoReads(at)),
            Phase::Committed { at, .. } if holds(at) => Some(Access::Moved),
            Phase::Committed { block, .. } if broken(Mutant::ReadsPassAfterRestart) => {
                Some(Access::NoWritesNoReads(block))
            }
            Phase::Committed { .. } => Some(Access::Leaves),
            Phase::Aborted { at, .. } if holds(at) => (!self.expires).then_some(Access::Stays),
            Phase::Aborted { block: Some(block), .. } => Some(Access::NoWritesNoReads(block)),
            Phase::Aborted { block: None, .. } if early => Some(Access::NoWrites),
            Phase::Aborted { block: None, .. } => Some(Access::NoBuilds),
        }
    }
}
