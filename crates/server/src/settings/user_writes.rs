//! Writes of users can be blocked while data are moved elsewhere (`setUserWriteBlockMode`): those of a whole set, or of a whole cluster,
//! and there before them definitions that several shards take part in.
//!
//! That they are is a document of `config.user_writes_critical_sections`, which every member goes by: an observer follows it. The
//! door is an observer of the write path, too: it refuses what an operation of a client changes in a user's database.
//! Members that apply what a primary did, and the server's own tasks, pass.

use super::Settings;
use pando_access::observer::{Defined, Deleted, Inserted, OpObserver, Updated};
use pando_access::{Collection, Uninterrupted, WriteOp, WriteUnit};
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result};
use pando_bson::{DocBuf, RawDoc, Value, doc};
use pando_env::op_locks;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Which part of the data a section blocks: all of it.
const ALL: &str = "";

const SECTIONS: &str = "config.user_writes_critical_sections";

pub(crate) fn sections_ns() -> Namespace {
    Namespace::unchecked("config", "user_writes_critical_sections")
}
pub(crate) fn blocked() -> Error {
    Error::new(ErrorCode::UserWritesBlocked, "User writes blocked")
}

/// What is blocked.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Blocked {
    /// No definition begins that several shards take part in.
    pub(crate) definitions: bool,
    pub(crate) writes: bool,
}

/// One phase of blocking, or of letting in, a whole cluster's (see `pando_workflows::user_writes`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Prepare,
    Complete,
}

impl Phase {
    pub(crate) fn parse(text: &str) -> Option<Phase> {
        match text {
            "prepare" => Some(Phase::Prepare),
            "complete" => Some(Phase::Complete),
            _ => None,
        }
    }
}

impl Blocked {
    fn from_doc(doc: &RawDoc) -> Blocked {
        let says = |field: &str| matches!(doc.get(field), Some(Value::Boolean(true)));
        Blocked { definitions: says("blockNewUserShardedDDL"), writes: says("blockUserWrites") }
    }
    fn to_doc(self) -> DocBuf {
        let Blocked { definitions, writes } = self;
        doc! { "_id": ALL, "blockNewUserShardedDDL": definitions, "blockUserWrites": writes }.to_raw()
    }
    /// What a phase makes of it. One that comes again changes nothing.
    pub(crate) fn after(self, phase: Phase, block: bool) -> Blocked {
        match (block, phase) {
            (true, Phase::Prepare) => Blocked { definitions: true, ..self },
            (true, Phase::Complete) => Blocked { definitions: true, writes: true },
            (false, Phase::Prepare) => Blocked { writes: false, ..self },
            (false, Phase::Complete) => Blocked::default(),
        }
    }
}

/// Whether they are blocked.
#[derive(Clone, Default)]
pub(crate) struct UserWrites(Arc<Flags>);

#[derive(Default)]
struct Flags {
    definitions: AtomicBool,
    writes: AtomicBool,
}

impl UserWrites {
    fn set(&self, now: Blocked) {
        self.0.definitions.store(now.definitions, SeqCst);
        self.0.writes.store(now.writes, SeqCst);
    }
    pub(crate) fn are_blocked(&self) -> bool {
        self.0.writes.load(SeqCst)
    }
    pub(crate) fn definitions_are_blocked(&self) -> bool {
        self.0.definitions.load(SeqCst)
    }
    fn check(&self, unit: &WriteUnit, db: &str) -> Result<()> {
        let refused = self.are_blocked()
            && !matches!(db, "admin" | "local" | "config")
            && !unit.is_applying()
            && op_locks::current().is_some_and(|op| !op.passes_write_block());
        if refused { Err(blocked()) } else { Ok(()) }
    }
    fn check_in(&self, unit: &WriteUnit, coll: &Collection) -> Result<()> {
        self.check(unit, coll.ns.db())
    }
    /// What a section says holds from its commit on.
    fn follow(&self, unit: &mut WriteUnit, coll: &Collection, doc: &RawDoc, is_there: bool) {
        if coll.ns.as_str() != SECTIONS || doc.get("_id").and_then(|v| v.as_str()) != Some(ALL) {
            return;
        }
        let now = if is_there { Blocked::from_doc(doc) } else { Blocked::default() };
        let flags = self.clone();
        unit.after_commit(move |_| flags.set(now));
    }
}

impl OpObserver for UserWrites {
    fn inserted(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Inserted<'_>) -> Result<()> {
        self.follow(unit, e.coll, e.doc, true);
        self.check_in(unit, e.coll)
    }
    fn updated(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Updated<'_>) -> Result<()> {
        self.follow(unit, e.coll, e.new, true);
        self.check_in(unit, e.coll)
    }
    fn deleted(&self, unit: &mut WriteUnit, _: &WriteOp<'_>, e: &Deleted<'_>) -> Result<()> {
        self.follow(unit, e.coll, e.old, false);
        self.check_in(unit, e.coll)
    }
    fn defined(&self, unit: &mut WriteUnit, event: &Defined<'_>) -> Result<()> {
        match event {
            Defined::Created { coll }
            | Defined::Dropped { coll }
            | Defined::Modified { coll, .. }
            | Defined::IndexCreated { coll, .. }
            | Defined::BuildStarted { coll, .. }
            | Defined::IndexDropped { coll, .. } => self.check_in(unit, coll),
            Defined::Renamed { from, to, .. } => {
                self.check_in(unit, from).and_then(|()| self.check(unit, to.db()))
            }
            Defined::DatabaseDropped { db } => self.check(unit, db),
            // Of a build that began before; no user's.
            Defined::BuildCommitted { .. } | Defined::BuildAborted { .. } | Defined::Imported { .. } => {
                Ok(())
            }
        }
    }
}

impl Settings {
    pub(crate) fn blocked_user_writes(&self) -> Result<Blocked> {
        let stored = self.internal.named(&sections_ns(), ALL)?;
        Ok(stored.map_or_else(Blocked::default, |doc| Blocked::from_doc(&doc)))
    }
    /// Reads back what is stored, at the start and whenever this member applies a change of it.
    pub(super) fn restore_user_writes(&self) -> Result<()> {
        self.user_writes.set(self.blocked_user_writes()?);
        Ok(())
    }
    /// Stores what is blocked from now on, which puts it in force. `None` where it was so.
    pub(crate) async fn block_user_writes(&self, now: Blocked) -> Result<Option<OpTime>> {
        if self.blocked_user_writes()? == now {
            return Ok(None);
        }
        let doc = now.to_doc();
        match now == Blocked::default() {
            true => self.internal.remove(&Uninterrupted, &sections_ns(), &doc).await,
            false => self.internal.put(&Uninterrupted, &sections_ns(), &doc).await.map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As 6.0.5 does, asked phase by phase.
    #[test]
    fn a_phase_makes_of_it_what_it_says_whatever_was_before() {
        let all = [(false, false), (true, false), (true, true), (false, true)];
        let after = |block, phase| {
            all.map(|(definitions, writes)| {
                let now = Blocked { definitions, writes }.after(phase, block);
                assert_eq!(Blocked::from_doc(&now.to_doc()), now);
                (now.definitions, now.writes)
            })
        };
        let (t, f) = (true, false);
        assert_eq!(after(true, Phase::Prepare), [(t, f), (t, f), (t, t), (t, t)]);
        assert_eq!(after(true, Phase::Complete), [(t, t); 4]);
        assert_eq!(after(false, Phase::Prepare), [(f, f), (t, f), (t, f), (f, f)]);
        assert_eq!(after(false, Phase::Complete), [(f, f); 4]);
    }
}
