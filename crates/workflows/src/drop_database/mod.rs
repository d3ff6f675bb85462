//! `dropDatabase`: its collections go, a majority hears of it, then the database's own entry is written (R-DROP-2).
//!
//! ```text
//!   claiming ─► listing ─► dropping c1 … cn, views last ─► waiting for a majority ─► finishing ─► over
//!      │           └─────── database locked ───────┘                               └ locked ┘
//!      └──────────────── drop pending: nothing can be created in it (215), nobody else drops it ──────┘
//! ```
//! * Up to the end of the wait a failure or an interruption ends the command with its error: what was dropped stays
//!   dropped, the database can be used again. From then on nothing stops it: the entry is written or fails to be.
//! * A database without collections leaves no entry.
//! * Who asks for more than a majority waits for that; who asks for less waits for a majority all the same.
//!
//! There is no state document: a primary that ends in the middle leaves a database with fewer collections, and the client
//! asks again.

pub mod mutants;

use crate::{Actions, Concern, Event, Level, LocalWrite, Query, Resource, Retry, Section, Slot, Workflow};
use mutants::{Mutant, broken};
use pando_base::{Error, Millis, Namespace, OpTime, limits};
use pando_bson::DocBuf;
use std::collections::VecDeque;

/// Where a database keeps the definitions of its views. It goes last, since its collections may be shown through them.
pub const SYSTEM_VIEWS: &str = "system.views";
const WHY: &str = "dropDatabase command";
/// One thing after the other: one slot.
const SLOT: Slot = 0;

/// The `w` that the client gave.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Asked {
    Nothing,
    Nodes(i64),
    /// `majority`, a mode, or tags.
    Other,
}

/// What the client asks for, and where.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    pub db: String,
    /// There may be others to wait for.
    pub replicated: bool,
    pub asked: Asked,
    /// The client's `wtimeout`; 0: none.
    pub wtimeout_ms: Millis,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Phase {
    Claiming,
    Locking,
    Listing,
    Dropping,
    Waiting,
    LockingAgain,
    Finishing,
    Over,
}

/// One drop of a database, as one command runs it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DropDatabase {
    options: Options,
    phase: Phase,
    left: VecDeque<Namespace>,
    dropped: u64,
    newest: OpTime,
}

impl DropDatabase {
    pub fn new(options: Options) -> DropDatabase {
        let left = VecDeque::new();
        DropDatabase { options, phase: Phase::Claiming, left, dropped: 0, newest: OpTime::NULL }
    }
    fn database(&self) -> Resource {
        Resource::Database(self.options.db.clone())
    }
    fn pending(&self) -> Section {
        Section::DropPending { db: self.options.db.clone() }
    }

    fn on_begin(&mut self, out: &mut Actions) {
        match broken(Mutant::NotPending) {
            true => self.lock(Phase::Locking, out),
            false => out.enter(SLOT, self.pending()),
        }
    }
    fn lock(&mut self, phase: Phase, out: &mut Actions) {
        self.phase = phase;
        match phase {
            Phase::Locking if broken(Mutant::ListsUnlocked) => self.list(out),
            Phase::LockingAgain if broken(Mutant::EntryUnlocked) => self.finish(out),
            _ => out.lock(SLOT, self.database(), Level::Exclusive),
        }
    }
    fn list(&mut self, out: &mut Actions) {
        self.phase = Phase::Listing;
        out.read(SLOT, Query::Collections { db: self.options.db.clone() });
    }
    fn on_found(&mut self, mut names: Vec<Namespace>, out: &mut Actions) {
        if !broken(Mutant::ViewsFirst) {
            names.sort_by_key(|ns| ns.coll() == SYSTEM_VIEWS);
        }
        if broken(Mutant::LeavesTheViews) {
            names.retain(|ns| ns.coll() != SYSTEM_VIEWS);
        }
        self.left = names.into();
        self.phase = Phase::Dropping;
        self.drop_next(out);
    }

    /// The first of those that are left goes; behind the last one the others are waited for.
    fn drop_next(&mut self, out: &mut Actions) {
        let Some(ns) = self.left.front().cloned() else { return self.dropped_all(out) };
        let mut writes = Vec::new();
        if !broken(Mutant::BuildsGoOn) {
            writes.push(LocalWrite::AbortIndexBuilds { ns: ns.clone(), why: WHY });
        }
        writes.push(LocalWrite::DropCollection { ns });
        out.write(SLOT, writes, Retry::Never);
    }
    fn on_dropped(&mut self, at: Option<OpTime>, out: &mut Actions) {
        self.left.pop_front();
        // Nothing: it was gone already.
        if let Some(at) = at {
            self.dropped += 1;
            if !broken(Mutant::WaitsForTheFirst) || self.dropped == 1 {
                self.newest = at;
            }
        } else if broken(Mutant::CountsWhatWasGone) {
            self.dropped += 1;
        }
        self.drop_next(out);
    }
    fn dropped_all(&mut self, out: &mut Actions) {
        if !broken(Mutant::LockedWhileWaiting) {
            out.release(self.database());
        }
        if broken(Mutant::PendingEndsEarly) {
            out.leave(self.pending());
        }
        if self.dropped == 0 && !broken(Mutant::EntryForNothing) {
            return self.end(Ok(DocBuf::default()), out);
        }
        if !broken(Mutant::DropsUnreported) {
            out.report(self.newest);
        }
        let waits = self.options.replicated || broken(Mutant::WaitsAlone);
        if waits && !broken(Mutant::EntryAtOnce) {
            self.phase = Phase::Waiting;
            out.await_replicated(SLOT, self.newest, self.concern(), self.timeout_ms());
        } else {
            self.lock(Phase::LockingAgain, out);
        }
    }

    fn concern(&self) -> Concern {
        let enough = match self.options.asked {
            Asked::Nothing => false,
            Asked::Nodes(n) => n > 1 || broken(Mutant::LessIsEnough),
            Asked::Other => true,
        };
        match enough && !broken(Mutant::MoreIsIgnored) {
            true => Concern::AsAsked,
            false => Concern::Majority,
        }
    }
    fn timeout_ms(&self) -> Millis {
        match self.options.wtimeout_ms {
            _ if broken(Mutant::WaitsForever) => 0,
            given if given > 0 && !broken(Mutant::ClientsTimeIgnored) => given,
            _ => limits::DROP_DATABASE_WAIT_MS,
        }
    }
    fn wait_failed(&mut self, why: &Error, out: &mut Actions) {
        if broken(Mutant::WaitMayFail) {
            return self.lock(Phase::LockingAgain, out);
        }
        let (db, n, newest) = (&self.options.db, self.dropped, self.newest);
        let text = format!(
            "dropDatabase {db} failed waiting for {n} collection drop(s) (most recent drop optime: {{ ts: {}, t: {} }}) \
             to replicate. :: caused by :: {}",
            newest.ts, newest.t, why.message
        );
        self.end(Err(Error::new(why.code, text)), out);
    }

    fn finish(&mut self, out: &mut Actions) {
        self.phase = Phase::Finishing;
        if broken(Mutant::NoEntry) {
            return self.end(Ok(DocBuf::default()), out);
        }
        out.write(SLOT, vec![LocalWrite::DropDatabase { db: self.options.db.clone() }], Retry::Never);
    }
    fn on_finished(&mut self, at: Option<OpTime>, out: &mut Actions) {
        if let Some(at) = at
            && !broken(Mutant::EntryUnreported)
        {
            out.report(at);
        }
        self.end(Ok(DocBuf::default()), out);
    }

    /// Whatever is held goes back first.
    fn end(&mut self, result: Result<DocBuf, Error>, out: &mut Actions) {
        self.phase = Phase::Over;
        if !broken(Mutant::LockKept) {
            out.release(self.database());
        }
        if !broken(Mutant::PendingForEver) {
            out.leave(self.pending());
        }
        out.done(result);
    }
    fn failed(&mut self, why: Error, out: &mut Actions) {
        if self.phase == Phase::Dropping && broken(Mutant::DropMayFail) {
            return self.on_dropped(Some(self.newest), out);
        }
        self.end(Err(why), out);
    }
    fn on_abort(&mut self, why: Error, out: &mut Actions) {
        match self.phase {
            Phase::Claiming | Phase::Locking | Phase::Listing | Phase::Dropping => {
                if !broken(Mutant::DeafBeforeTheWait) {
                    out.cancel(SLOT);
                    self.end(Err(why), out);
                }
            }
            Phase::Waiting => {
                out.cancel(SLOT);
                self.wait_failed(&why, out);
            }
            Phase::LockingAgain | Phase::Finishing if broken(Mutant::StoppedWhileFinishing) => {
                out.cancel(SLOT);
                self.end(Err(why), out);
            }
            Phase::LockingAgain | Phase::Finishing | Phase::Over => {}
        }
    }
}

impl Workflow for DropDatabase {
    fn step(&mut self, _: Millis, event: Event, out: &mut Actions) {
        match event {
            Event::Begin => self.on_begin(out),
            Event::Entered { result: Ok(()), .. } => self.lock(Phase::Locking, out),
            Event::Locked { result: Ok(()), .. } => match self.phase {
                Phase::Locking => self.list(out),
                _ => self.finish(out),
            },
            Event::Found { result: Ok(names), .. } => self.on_found(names, out),
            Event::Wrote { result: Ok(at), .. } => match self.phase {
                Phase::Dropping => self.on_dropped(at, out),
                _ => self.on_finished(at, out),
            },
            Event::Replicated { result: Ok(()), .. } => self.lock(Phase::LockingAgain, out),
            Event::Replicated { result: Err(e), .. } => self.wait_failed(&e, out),
            Event::Entered { result: Err(e), .. }
            | Event::Locked { result: Err(e), .. }
            | Event::Found { result: Err(e), .. }
            | Event::Wrote { result: Err(e), .. } => self.failed(e, out),
            Event::Abort(why) => self.on_abort(why, out),
            Event::Durable
            | Event::Answer { .. }
            | Event::Rested { .. }
            | Event::Nudged { .. }
            | Event::Random { .. } => {}
        }
    }
    fn document(&self) -> Option<DocBuf> {
        None
    }
    fn check(&self) {
        assert!(self.left.is_empty() || self.phase == Phase::Dropping || self.phase == Phase::Over);
        assert!(self.dropped > 0 || self.phase <= Phase::Dropping || self.phase == Phase::Over);
    }
}
