//! A small world: what this node has written, what a majority has of it, and what other nodes say.

use crate::{Action, Concern, Level, LocalWrite, Outcome, Query, Resource, Section, Target};
use pando_base::{Error, ErrorCode, Millis, Namespace, OpTime, Result, Timestamp};
use pando_bson::{DocBuf, RawDoc};
use std::collections::{BTreeMap, BTreeSet};

/// What other nodes say to a command. Whether they carry the same one out twice is theirs to see to.
pub type Peers = Box<dyn FnMut(&Target, &RawDoc) -> Result<DocBuf>>;

/// One write, and how things were when it was made.
#[derive(Clone, Debug)]
pub struct Record {
    pub write: LocalWrite,
    pub at: OpTime,
    pub life: u32,
    /// Of the writes before it, those that a majority had.
    pub majority: usize,
    pub locked: BTreeSet<Resource>,
    pub inside: BTreeSet<Section>,
    /// How many calls were heard before it.
    pub calls: usize,
}

/// A critical section: whose it is, and whether reads are blocked, too.
pub type Sections = BTreeMap<Namespace, (DocBuf, bool)>;

/// A wait for others.
#[derive(Clone, Debug)]
pub struct Waited {
    pub upto: OpTime,
    pub concern: Concern,
    pub timeout_ms: Millis,
    pub locked: BTreeSet<Resource>,
    pub inside: BTreeSet<Section>,
}

/// What another node was told.
#[derive(Clone, Debug)]
pub struct Heard {
    pub to: Target,
    pub body: DocBuf,
    pub at_ms: Millis,
    pub life: u32,
    pub ok: bool,
    /// Critical sections that a majority had then.
    pub sections: Sections,
    /// Those that this node had.
    pub sections_here: Sections,
    pub locked: BTreeSet<Resource>,
}

#[derive(Default)]
pub struct World {
    /// What there is at the start.
    pub collections: BTreeSet<Namespace>,
    /// Collections with an index build under way, at the start.
    pub building: BTreeSet<Namespace>,
    pub peers: Option<Peers>,
    pub log: Vec<Record>,
    /// How many records a majority has.
    pub majority: usize,
    /// The state document, as a majority has it.
    pub durable: Option<DocBuf>,
    pub locks: BTreeSet<Resource>,
    pub inside: BTreeSet<Section>,
    pub waited: Vec<Waited>,
    pub calls: Vec<Heard>,
    pub rests: Vec<Millis>,
    pub nudges: u32,
    pub reports: Vec<OpTime>,
    /// Actions that failed and were tried again.
    pub retries: u32,
    pub draws: u64,
    /// The state document has been there and has gone.
    pub(super) forgotten: bool,
    pub(super) now: Millis,
    pub(super) life: u32,
    pub(super) repeating: bool,
    clock: u32,
    wrong: Vec<String>,
}

impl World {
    /// With collections, some of them with an index build under way.
    pub fn of(collections: &[Namespace], building: &[Namespace]) -> World {
        let set = |names: &[Namespace]| names.iter().cloned().collect();
        World { collections: set(collections), building: set(building), ..World::default() }
    }
    pub fn with_peers(peers: Peers) -> World {
        World { peers: Some(peers), ..World::default() }
    }
    /// The state document has been there and has gone.
    pub fn is_forgotten(&self) -> bool {
        self.forgotten
    }
    /// Collections as they are now.
    pub fn collections_now(&self) -> BTreeSet<Namespace> {
        let mut now = self.collections.clone();
        for r in &self.log {
            if let LocalWrite::DropCollection { ns } = &r.write {
                now.remove(ns);
            }
        }
        now
    }
    /// Documents of a collection as they are now.
    pub fn documents(&self, ns: &Namespace) -> Vec<DocBuf> {
        let id_of = |doc: &RawDoc| doc.elem("_id").map(|e| pando_bson::Bson::from(e.value()));
        let mut now: Vec<DocBuf> = Vec::new();
        for r in &self.log {
            match &r.write {
                LocalWrite::Put { ns: of, doc } if of == ns => {
                    now.retain(|d| id_of(d) != id_of(doc));
                    now.push(doc.clone());
                }
                LocalWrite::Remove { ns: of, id } if of == ns => now.retain(|d| id_of(d) != id_of(id)),
                _ => {}
            }
        }
        now
    }
    /// Critical sections as they are now.
    pub fn sections_now(&self) -> Sections {
        self.sections_of(self.log.len())
    }
    /// The same after the first records.
    fn sections_of(&self, records: usize) -> Sections {
        let mut now = Sections::new();
        for r in &self.log[..records] {
            match &r.write {
                LocalWrite::EnterSection { ns, reason, block_reads } => {
                    let section = now.entry(ns.clone()).or_insert((reason.clone(), false));
                    section.1 |= block_reads;
                }
                LocalWrite::LeaveSection { ns, .. } => drop(now.remove(ns)),
                _ => {}
            }
        }
        now
    }
    /// What the kit itself has found wrong.
    pub(super) fn verdict(&self) -> Result<(), String> {
        if let Some(first) = self.wrong.first() {
            return Err(first.clone());
        }
        if !self.locks.is_empty() || !self.inside.is_empty() {
            return Err(format!("held behind the end: {:?} {:?}", self.locks, self.inside));
        }
        if let Some((ns, _)) = self.sections_now().first_key_value() {
            return Err(format!("the critical section of {ns} stays behind"));
        }
        match &self.durable {
            Some(doc) => Err(format!("the state document stays behind: {doc}")),
            None => Ok(()),
        }
    }
    pub(super) fn wrong(&mut self, what: impl Into<String>) {
        self.wrong.push(what.into());
    }
    /// The process ends, or its node is primary no more.
    pub(super) fn end_of_life(&mut self, lost: bool) {
        self.locks.clear();
        self.inside.clear();
        if lost {
            self.log.truncate(self.majority);
        } else {
            self.majority = self.log.len();
        }
    }

    pub(super) fn carry_out(&mut self, action: &Action) -> Result<Outcome> {
        match action {
            Action::Checkpoint(doc) => {
                self.durable = Some(doc.clone());
                self.majority = self.log.len();
            }
            Action::Forget => {
                self.durable = None;
                self.forgotten = true;
                self.majority = self.log.len();
            }
            Action::Write(writes) => {
                let mut last = None;
                for w in writes {
                    last = self.write(w).or(last);
                }
                return Ok(Outcome::Wrote(last));
            }
            Action::Read(Query::Collections { db }) => {
                if !self.holds(db) {
                    self.wrong("the collections of a database are listed without its lock");
                }
                let of_db = self.collections_now().into_iter().filter(|ns| ns.db() == db);
                return Ok(Outcome::Found(of_db.collect()));
            }
            Action::Await { upto, concern, timeout_ms } => self.wait(*upto, *concern, *timeout_ms),
            Action::Call { to, body } => return self.call(to, body),
            Action::Lock(resource, level) => {
                let new = self.locks.insert(resource.clone());
                if !new && !self.repeating && *level == Level::Exclusive {
                    self.wrong(format!("waits for a lock that it holds: {resource:?}"));
                }
            }
            Action::Enter(section) => {
                if !self.inside.insert(section.clone()) {
                    return Err(Error::new(ErrorCode::DatabaseDropPending, "somebody is inside"));
                }
            }
            Action::Rest(ms) => {
                self.now += ms;
                self.rests.push(*ms);
            }
            Action::AwaitNudge => self.nudges += 1,
            // Never the same twice in a row.
            Action::Draw => {
                self.draws += 1;
                return Ok(Outcome::Random(self.draws));
            }
        }
        Ok(Outcome::Done)
    }

    fn holds(&self, db: &str) -> bool {
        self.locks.contains(&Resource::Database(db.to_owned()))
    }
    fn write(&mut self, write: &LocalWrite) -> Option<OpTime> {
        match write {
            LocalWrite::Put { .. } | LocalWrite::Remove { .. } => {}
            LocalWrite::AbortIndexBuilds { ns, .. } => {
                if !self.is_building(ns) {
                    return None;
                }
            }
            LocalWrite::DropCollection { ns } => {
                if !self.collections_now().contains(ns) {
                    return None;
                }
                if self.is_building(ns) {
                    self.wrong(format!("{ns} is dropped while an index of it is built"));
                }
                if !self.holds(ns.db()) {
                    self.wrong(format!("{ns} is dropped without the lock of its database"));
                }
            }
            LocalWrite::DropDatabase { db } => {
                if !self.holds(db) {
                    self.wrong("the entry of a database is written without its lock");
                }
                if self.collections_now().iter().any(|ns| ns.db() == db) {
                    self.wrong("the entry of a database is written while it has collections");
                }
            }
            LocalWrite::EnterSection { ns, reason, block_reads } => match self.sections_now().get(ns) {
                Some((other, _)) if other != reason => {
                    self.wrong(format!("the section of {ns} belongs to another"));
                    return None;
                }
                Some((_, reads)) if *reads || !block_reads => return None,
                _ => {}
            },
            LocalWrite::LeaveSection { ns, reason } => {
                if self.sections_now().get(ns).is_none_or(|(whose, _)| whose != reason) {
                    return None;
                }
            }
        }
        self.clock += 1;
        let at = OpTime::new(Timestamp::new(1000 + self.clock, 1), i64::from(self.life));
        self.log.push(Record {
            write: write.clone(),
            at,
            life: self.life,
            majority: self.majority,
            locked: self.locks.clone(),
            inside: self.inside.clone(),
            calls: self.calls.len(),
        });
        Some(at)
    }
    fn is_building(&self, ns: &Namespace) -> bool {
        let aborted =
            |r: &Record| matches!(&r.write, LocalWrite::AbortIndexBuilds { ns: of, .. } if of == ns);
        self.building.contains(ns) && !self.log.iter().any(aborted)
    }
    fn wait(&mut self, upto: OpTime, concern: Concern, timeout_ms: Millis) {
        let have = self.log.iter().take_while(|r| upto.is_null() || r.at <= upto).count();
        self.majority = self.majority.max(have);
        let (locked, inside) = (self.locks.clone(), self.inside.clone());
        self.waited.push(Waited { upto, concern, timeout_ms, locked, inside });
    }
    fn call(&mut self, to: &Target, body: &DocBuf) -> Result<Outcome> {
        let said = match &mut self.peers {
            Some(peers) => peers(to, body),
            None => Err(Error::new(ErrorCode::HostUnreachable, "there is nobody")),
        };
        self.heard(to, body, said.is_ok());
        said.map(Outcome::Reply)
    }
    /// Notes a call, whether or not it arrived.
    pub(super) fn heard(&mut self, to: &Target, body: &DocBuf, ok: bool) {
        let sections = self.sections_of(self.majority);
        let locked = self.locks.clone();
        self.calls.push(Heard {
            to: to.clone(),
            body: body.clone(),
            at_ms: self.now,
            life: self.life,
            ok,
            sections,
            sections_here: self.sections_now(),
            locked,
        });
    }
}
