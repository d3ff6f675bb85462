//! What the state document of an operation on tenants says, and what that means for them.

use crate::mutants::{Mutant, broken};
use pando_base::{Error, OpTime, Result, Timestamp, Uuid};
use pando_bson::{RawDoc, Value};

/// How a document names the protocol by which all tenants of a set go to another one.
pub const MERGE: &str = "shard merge";

/// Kinds of operations on tenants. Those of one kind may run at the same time, those of two may not (SV-LOCK-1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    ShardSplit,
    /// The donor of a tenant migration, or of a shard merge.
    Donor,
    Recipient,
    MergeRecipient,
}

impl Kind {
    pub fn text(self) -> &'static str {
        match self {
            Kind::ShardSplit => "shard split",
            Kind::Donor => "tenant migration donor",
            Kind::Recipient => "tenant migration recipient",
            Kind::MergeRecipient => "shard merge recipient",
        }
    }
    /// Whether the tenants come here.
    pub fn takes(self) -> bool {
        matches!(self, Kind::Recipient | Kind::MergeRecipient)
    }
}

/// How far it is, as its document says it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub enum Phase {
    /// Nobody is affected.
    Begun,
    /// Index builds are given up, and none begins.
    NoBuilds,
    /// The same, and the recipient copies.
    Syncing,
    Blocking(Timestamp),
    Committed {
        block: Timestamp,
        at: OpTime,
    },
    Aborted {
        block: Option<Timestamp>,
        at: OpTime,
    },
    /// Of a recipient: it copies, or removes what it has copied.
    Receiving {
        aborted: bool,
    },
    /// Of a recipient: it has everything and waits for the donor's word. It has no history before that time.
    Received {
        before: Timestamp,
    },
    /// Of a recipient: the tenants are its own. Its log has what happened to them behind `block`, a time of the donor's.
    Owns {
        before: Timestamp,
        block: Timestamp,
    },
}

/// An operation as its document tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    pub id: Uuid,
    pub kind: Kind,
    pub tenants: Vec<String>,
    /// Whatever tenants there are and will be: a donor that is merged into another set.
    pub all: bool,
    /// The set that the tenants go to; of a recipient, the one they come from.
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
    /// They come here, and nobody but the copier does anything with them.
    Refused,
    /// They have come, and everybody waits for the donor's word.
    Arrives,
    /// They are here, and there is nothing to be read as of a time before that one.
    NoReadsBefore(Timestamp),
}

impl Access {
    /// Whether a tenant that two operations name may do this rather than the other: what permits less counts.
    pub(crate) fn outweighs(self, other: Access) -> bool {
        let rank = |access| match access {
            Access::Stays => 0,
            Access::NoReadsBefore(_) => 1,
            Access::NoBuilds => 2,
            Access::NoWrites => 3,
            Access::NoWritesNoReads(_) => 4,
            Access::Leaves => 5,
            Access::Moved => 6,
            Access::Arrives => 7,
            Access::Refused => 8,
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
    let one = doc.get("tenantId").and_then(|v| v.as_str());
    let list = doc.get("tenantIds").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
    one.into_iter().chain(list.iter().filter_map(|e| e.value().as_str())).map(str::to_owned).collect()
}

/// Of a set that gives tenants away.
fn giving(kind: Kind, state: &str, block: Option<Timestamp>, decided: Option<OpTime>) -> Option<Phase> {
    match state {
        "uninitialized" => Some(Phase::Begun),
        "aborting index builds" => Some(Phase::NoBuilds),
        "data sync" if kind == Kind::Donor => Some(Phase::Syncing),
        "blocking" => block.map(Phase::Blocking),
        "committed" => block.zip(decided).map(|(block, at)| Phase::Committed { block, at }),
        "aborted" => decided.map(|at| Phase::Aborted { block, at }),
        _ => None,
    }
}
/// Of a set that takes them.
fn taking(state: &str, block: Option<Timestamp>, before: Option<Timestamp>) -> Option<Phase> {
    match (state, before) {
        ("uninitialized", None) => Some(Phase::Begun),
        ("started" | "consistent", None) => Some(Phase::Receiving { aborted: false }),
        ("consistent", Some(before)) => Some(Phase::Received { before }),
        ("committed", Some(before)) => Some(Phase::Owns { before, block: block? }),
        ("aborted", _) => Some(Phase::Receiving { aborted: true }),
        _ => None,
    }
}

impl Operation {
    /// # Errors
    /// 2 for a document that no operation has left.
    pub fn parse(kind: Kind, doc: &RawDoc) -> Result<Operation> {
        let wrong = || Error::bad_value(format!("not a state of a {}: {doc}", kind.text()));
        let text = |name: &str| doc.get(name).and_then(|v| v.as_str());
        let decided = doc.get("commitOrAbortOpTime").and_then(|v| op_time(v.as_doc()?));
        let id = match doc.get("_id") {
            Some(Value::Binary { subtype: 4, bytes }) => Uuid::from_slice(bytes),
            _ => None,
        };
        let state = text("state").unwrap_or_default();
        let block = timestamp_at(doc, "blockTimestamp");
        let phase = match kind.takes() {
            true => taking(state, block, timestamp_at(doc, "rejectReadsBeforeTimestamp")),
            false => giving(kind, state, block, decided),
        };
        let other = if kind.takes() { "donorSetName" } else { "recipientSetName" };
        Ok(Operation {
            id: id.ok_or_else(wrong)?,
            kind,
            tenants: tenants(doc),
            all: kind == Kind::Donor && text("protocol") == Some(MERGE),
            recipient_set: text(other).unwrap_or_default().to_owned(),
            phase: phase.ok_or_else(wrong)?,
            expires: matches!(doc.get("expireAt"), Some(Value::DateTime(_))),
        })
    }
    /// Whether a document may come into being so (SV-DOC-3).
    pub fn may_be_first(&self) -> bool {
        use Phase::{Aborted, Begun, NoBuilds, Receiving};
        !self.expires
            && matches!(self.phase, Begun | NoBuilds | Aborted { block: None, .. } | Receiving { .. })
    }
    /// Whether its document may become that one (SV-DOC-3): step by step, and never another operation.
    pub fn may_become(&self, next: &Operation) -> bool {
        use Phase::{Aborted, Begun, Blocking, Committed, NoBuilds, Owns, Received, Receiving, Syncing};
        let same =
            (self.id, &self.tenants, &self.recipient_set) == (next.id, &next.tenants, &next.recipient_set);
        // Which tenants a set has that is merged is known once nobody makes a new one.
        let same = same || self.all && self.id == next.id && self.phase < next.phase;
        let step = match (self.phase, next.phase) {
            (before, after) if before == after => self.is_decided() || !next.expires,
            (Begun, NoBuilds | Aborted { block: None, .. } | Receiving { .. }) => !next.expires,
            (NoBuilds, Syncing) => !next.expires,
            (NoBuilds, Blocking(_)) => self.kind != Kind::Donor && !next.expires,
            (Syncing, Blocking(_)) => !next.expires,
            (NoBuilds | Syncing, Aborted { block: None, .. }) => !next.expires,
            (Blocking(block), Committed { block: kept, .. } | Aborted { block: Some(kept), .. }) => {
                block == kept && !next.expires
            }
            (Receiving { aborted: false }, Received { .. } | Receiving { aborted: true }) => !next.expires,
            (Received { before }, Owns { before: kept, .. }) => before == kept && !next.expires,
            (Received { .. }, Receiving { aborted: true }) => !next.expires,
            _ => broken(Mutant::AnyStepIsLegal),
        };
        same && step && (next.expires || !self.expires)
    }
    pub fn is_aborted(&self) -> bool {
        matches!(self.phase, Phase::Aborted { .. } | Phase::Receiving { aborted: true })
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
        matches!(self.phase, Phase::Committed { .. } | Phase::Owns { .. }) || self.is_aborted()
    }

    /// What its tenants may do where that much is on a majority; `None`: everything, and nobody is asked. `early`: the primary has blocked
    /// their writes, and the document does not say so yet.
    ///
    /// A decision holds once a majority has it (SV-MTAB-8); or when it may be forgotten, because then it had one before.
    pub fn access(&self, early: bool, committed: Timestamp) -> Option<Access> {
        let holds = |at: OpTime| self.expires || at.ts <= committed || broken(Mutant::DecisionNotAwaited);
        match self.phase {
            Phase::Begun => None,
            Phase::NoBuilds | Phase::Syncing if early => Some(Access::NoWrites),
            Phase::NoBuilds | Phase::Syncing => Some(Access::NoBuilds),
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
            // What was copied has gone by then.
            Phase::Receiving { aborted: true } if self.expires => None,
            Phase::Receiving { .. } => Some(Access::Refused),
            Phase::Received { before } if broken(Mutant::AnswersBeforeDecision) => {
                Some(Access::NoReadsBefore(before))
            }
            Phase::Received { .. } => Some(Access::Arrives),
            // A member that has the document and does not know yet how far the majority is could show half of what was copied.
            Phase::Owns { before, .. } if before > committed && !broken(Mutant::OwnsBeforeMajority) => {
                Some(Access::Arrives)
            }
            Phase::Owns { before, .. } => Some(Access::NoReadsBefore(before)),
        }
    }
}
