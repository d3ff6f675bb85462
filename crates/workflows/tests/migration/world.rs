//! Donor, recipient, config servers, and the one document that moves.
//!
//! Both sides are sets: what a majority has survives, what it has not may be lost with the primary. Peers carry out a command at once, or
//! late, or twice; the config servers check what they are to check. What is written by clients is one number that grows.

use pando_base::{Error, ErrorCode, Result, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_workflows::migration::{ABORT, COMMIT, IS_OVER, RELEASE, START, STATUS};
use pando_workflows::move_range::{self, MoveRange};
use pando_workflows::receive_range::{self, ReceiveRange};
use pando_workflows::{Action, Home, Id, LocalWrite, Order, Outcome, Retry, Running, Target};

pub(crate) const DONOR: usize = 0;
pub(crate) const RECIPIENT: usize = 1;
const CONFIG: usize = 2;
pub(crate) const SHARDS: [&str; 2] = ["a", "b"];

/// What a node keeps.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Kept {
    pub(crate) doc: Option<DocBuf>,
    /// `true`: reads are blocked as well.
    pub(crate) section: Option<bool>,
    /// `true`: pending.
    pub(crate) task: Option<bool>,
    pub(crate) data: Option<u8>,
}

#[derive(Clone, Debug)]
pub(crate) enum Machine {
    Donor(Running<MoveRange>),
    Recipient(Running<ReceiveRange>),
}

impl Machine {
    pub(crate) fn under_way(&self) -> Vec<(Id, Action, Retry)> {
        match self {
            Machine::Donor(r) => r.under_way(),
            Machine::Recipient(r) => r.under_way(),
        }
    }
    fn essence(&self) -> String {
        match self {
            Machine::Donor(r) => r.essence(),
            Machine::Recipient(r) => r.essence(),
        }
    }
    fn begin(&mut self, orders: &mut Vec<Order>) {
        match self {
            Machine::Donor(r) => r.begin(0, orders),
            Machine::Recipient(r) => r.begin(0, orders),
        }
    }
    fn answer(&mut self, id: Id, said: Result<Outcome>, orders: &mut Vec<Order>) {
        match self {
            Machine::Donor(r) => r.answer(0, id, said, orders),
            Machine::Recipient(r) => r.answer(0, id, said, orders),
        }
    }
    fn abort(&mut self, orders: &mut Vec<Order>) {
        let why = Error::new(ErrorCode::Interrupted, "model");
        match self {
            Machine::Donor(r) => r.abort(0, why, orders),
            Machine::Recipient(r) => r.abort(0, why, orders),
        }
    }
}

/// One of the two shards.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    pub(crate) kept: Kept,
    pub(crate) majority: Kept,
    pub(crate) machine: Option<Machine>,
    /// Who owns the range, as it believes.
    pub(crate) knows: Option<usize>,
}

/// Of the donor's memory: what is written is kept for one receiver.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Record {
    receiver: Option<i64>,
    /// Documents are given once.
    given: bool,
    news: bool,
}

/// How much may still go wrong.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Left {
    pub(crate) crashes: u8,
    pub(crate) losses: u8,
    pub(crate) refusals: u8,
    pub(crate) writes: u8,
    pub(crate) aborts: u8,
    pub(crate) moves_back: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) sides: [Side; 2],
    pub(crate) owner: usize,
    version: u8,
    pub(crate) acked: u8,
    record: Option<Record>,
    steady: bool,
    nudged: bool,
    draws: u8,
    pub(crate) network: Vec<(usize, DocBuf)>,
    pub(crate) left: Left,
    pub(crate) wrong: Option<String>,
}

/// What came of an action.
pub(crate) enum Carried {
    Answer(Result<Outcome>),
    /// Not yet.
    Waits,
}

fn refuse(text: &'static str) -> Carried {
    Carried::Answer(Err(Error::new(ErrorCode::BadValue, text)))
}
fn reply(build: impl FnOnce(&mut DocBuilder)) -> Carried {
    let mut b = DocBuilder::new();
    build(&mut b);
    Carried::Answer(Ok(Outcome::Reply(b.finish())))
}
fn yes() -> Carried {
    reply(|_| {})
}
fn bound(n: i32) -> DocBuf {
    let mut b = DocBuilder::new();
    b.i32("k", n);
    b.finish()
}
fn version_doc(n: u8) -> DocBuf {
    let mut b = DocBuilder::new();
    b.i32("v", i32::from(n));
    b.finish()
}
fn version_of(doc: Option<&RawDoc>) -> u8 {
    doc.and_then(|d| d.get("v")?.as_i64()).and_then(|n| u8::try_from(n).ok()).expect("a version")
}
fn phase_of(doc: Option<&DocBuf>) -> Option<String> {
    Some(doc?.get("phase")?.as_str()?.to_owned())
}

pub(crate) fn first_request() -> DocBuf {
    let mut b = DocBuilder::new();
    b.uuid("_id", &Uuid([9; 16]).0).str("nss", "db.c");
    b.str("donorShardId", SHARDS[DONOR]).str("recipientShardId", SHARDS[RECIPIENT]);
    b.doc("range", |d| {
        d.raw_doc("min", &bound(0)).raw_doc("max", &bound(10));
    });
    b.doc("request", |_| {});
    b.finish()
}

impl World {
    pub(crate) fn new(left: Left) -> World {
        let mut w = World {
            sides: [Side::default(), Side::default()],
            owner: DONOR,
            version: 1,
            acked: 1,
            record: None,
            steady: false,
            nudged: false,
            draws: 0,
            network: Vec::new(),
            left,
            wrong: None,
        };
        w.sides[DONOR].kept.data = Some(1);
        w.sides[DONOR].majority.data = Some(1);
        w.sides[DONOR].knows = Some(DONOR);
        let machine = MoveRange::of(&first_request()).expect("a request");
        w.begin(DONOR, Machine::Donor(Running::new(machine, Home::Primary)));
        w
    }
    pub(crate) fn essence(&self) -> String {
        let of = |s: &Side| {
            let machine = s.machine.as_ref().map(Machine::essence);
            format!("{:?} {:?} {machine:?} {:?}", s.kept, s.majority, s.knows)
        };
        let memory = (&self.record, self.steady, self.nudged, self.draws);
        let rest = (self.owner, self.version, self.acked, &self.network, self.left);
        format!("{} {} {memory:?} {rest:?}", of(&self.sides[0]), of(&self.sides[1]))
    }
    fn wrong(&mut self, text: impl Into<String>) {
        self.wrong.get_or_insert(text.into());
    }

    fn begin(&mut self, i: usize, machine: Machine) {
        let mut orders = Vec::new();
        self.sides[i].machine = Some(machine);
        if let Some(m) = &mut self.sides[i].machine {
            m.begin(&mut orders);
        }
        self.obey(i, orders);
    }
    pub(crate) fn answer(&mut self, i: usize, id: Id, said: Result<Outcome>) {
        let mut orders = Vec::new();
        if let Some(m) = &mut self.sides[i].machine {
            m.answer(id, said, &mut orders);
        }
        self.obey(i, orders);
    }
    pub(crate) fn abort(&mut self, i: usize) {
        let mut orders = Vec::new();
        if let Some(m) = &mut self.sides[i].machine {
            m.abort(&mut orders);
        }
        self.obey(i, orders);
    }
    fn obey(&mut self, i: usize, orders: Vec<Order>) {
        for order in orders {
            if let Order::End(result) = order {
                self.sides[i].machine = None;
                let moved = self.owner == RECIPIENT;
                if result.is_ok() != moved {
                    self.wrong(format!("{} says {result:?}, and the owner is {}", SHARDS[i], self.owner));
                }
                if i == RECIPIENT {
                    (self.steady, self.nudged) = (false, false);
                }
            }
        }
        if self.sides.iter().all(|s| s.machine.is_none()) {
            self.check_end();
        }
    }
    /// Nothing is left that nobody cares for.
    fn check_end(&mut self) {
        for i in [DONOR, RECIPIENT] {
            let Kept { doc, section, task, data } = self.sides[i].kept.clone();
            if doc.is_some() || section.is_some() || task == Some(true) {
                self.wrong(format!("{} leaves {doc:?} {section:?} {task:?}", SHARDS[i]));
            }
            if i == self.owner && (data != Some(self.acked) || task.is_some()) {
                self.wrong(format!("the owner {} has {data:?} of {}, and {task:?}", SHARDS[i], self.acked));
            }
            if i != self.owner && data.is_some() && task != Some(false) {
                self.wrong(format!("an orphan on {}, and nobody deletes it", SHARDS[i]));
            }
        }
    }
    /// The primary is another one from now on.
    pub(crate) fn fail_over(&mut self, i: usize, lost: bool) {
        let side = &mut self.sides[i];
        match lost {
            true => side.kept = side.majority.clone(),
            false => side.majority = side.kept.clone(),
        }
        side.machine = None;
        match i {
            DONOR => self.record = None,
            _ => (self.steady, self.nudged) = (false, false),
        }
        let Some(doc) = self.sides[i].kept.doc.clone() else {
            if self.sides.iter().all(|s| s.machine.is_none()) {
                self.check_end();
            }
            return;
        };
        let machine = match i {
            DONOR => Machine::Donor(Running::new(MoveRange::of(&doc).expect("a state"), Home::Primary)),
            _ => Machine::Recipient(Running::new(ReceiveRange::of(&doc).expect("a state"), Home::Primary)),
        };
        self.begin(i, machine);
    }

    /// Carries out one action of a side.
    pub(crate) fn carry(&mut self, i: usize, action: &Action) -> Carried {
        let side = &mut self.sides[i];
        let done = || Carried::Answer(Ok(Outcome::Done));
        match action {
            Action::Checkpoint(doc) => {
                side.kept.doc = Some(doc.clone());
                side.majority = side.kept.clone();
                done()
            }
            Action::Forget => {
                side.kept.doc = None;
                side.majority = side.kept.clone();
                done()
            }
            Action::Await { .. } => {
                side.majority = side.kept.clone();
                done()
            }
            Action::Write(writes) => {
                for write in writes {
                    self.write(i, write);
                }
                Carried::Answer(Ok(Outcome::Wrote(None)))
            }
            Action::Rest(_) => done(),
            Action::Draw => {
                self.draws += 1;
                Carried::Answer(Ok(Outcome::Random(u64::from(self.draws))))
            }
            Action::AwaitNudge if self.nudged => {
                self.nudged = false;
                done()
            }
            Action::AwaitNudge => Carried::Waits,
            Action::Call { to, body } => self.send(to_of(i, to), body),
            other => panic!("nobody carries out {other:?}"),
        }
    }
    fn write(&mut self, i: usize, write: &LocalWrite) {
        let kept = &mut self.sides[i].kept;
        match write {
            LocalWrite::Put { doc, .. } => kept.task = Some(doc.get("pending").is_some()),
            LocalWrite::Remove { .. } => kept.task = None,
            LocalWrite::EnterSection { block_reads, .. } => {
                kept.section = Some(kept.section.unwrap_or(false) || *block_reads);
            }
            LocalWrite::LeaveSection { .. } => {
                kept.section = None;
                self.sides[i].knows = None;
            }
            other => panic!("nobody writes {other:?}"),
        }
    }
    /// A command reaches whom it is for.
    pub(crate) fn send(&mut self, to: usize, body: &DocBuf) -> Carried {
        let name = body.first().expect("a command").name().to_owned();
        match name.as_str() {
            "_configsvrCommitChunkMigration" => self.commit(body),
            "_configsvrEnsureChunkVersionIsGreaterThan" => {
                let given = version_of(body.get("version").and_then(|v| v.as_doc()));
                if self.owner == DONOR && self.version == given {
                    self.version += 1;
                }
                yes()
            }
            move_range::LOOK => match self.owner {
                DONOR => reply(|b| {
                    b.uuid("collectionUuid", &Uuid([7; 16]).0).raw_doc("keyPattern", &bound(1));
                    b.doc("chunk", |d| {
                        d.raw_doc("min", &bound(0)).raw_doc("max", &bound(10));
                        d.raw_doc("version", &version_doc(self.version));
                    });
                    b.raw_doc("collectionVersion", &version_doc(self.version));
                }),
                _ => refuse("it is not its own"),
            },
            move_range::RECORD => {
                self.record = Some(Record { receiver: None, given: false, news: false });
                yes()
            }
            move_range::NUMBER => reply(|b| _ = b.timestamp("timestamp", Timestamp::new(50, 1))),
            move_range::RESOLVE | receive_range::RESOLVE => {
                let moved = self.owner == RECIPIENT;
                if name == receive_range::RESOLVE {
                    self.sides[to].knows = Some(self.owner);
                }
                reply(|b| _ = b.bool("moved", moved))
            }
            move_range::LET_GO => {
                self.record = None;
                self.sides[to].knows = Some(self.owner);
                yes()
            }
            IS_OVER => {
                let phase = phase_of(self.sides[DONOR].majority.doc.as_ref());
                let over = matches!(phase.as_deref(), None | Some("committed" | "aborted"));
                reply(|b| _ = b.bool("over", over))
            }
            receive_range::PREPARE if self.owner == RECIPIENT => refuse("it is its own"),
            receive_range::PREPARE if self.sides[RECIPIENT].kept.task == Some(false) => {
                refuse("something waits to be deleted")
            }
            receive_range::PREPARE | receive_range::MAKE => yes(),
            receive_range::CLONE | receive_range::CATCH_UP | receive_range::DRAIN => self.give(&name, body),
            START | STATUS | COMMIT | RELEASE | ABORT => self.on_recipient(&name, body),
            other => panic!("nobody knows {other}"),
        }
    }
    fn commit(&mut self, body: &DocBuf) -> Carried {
        let chunk = body.get("migratedChunk").and_then(|v| v.as_doc().map(RawDoc::to_buf)).expect("a chunk");
        let given = version_of(chunk.get("lastmod").and_then(|v| v.as_doc()));
        if self.owner == RECIPIENT {
            return yes();
        }
        if given != self.version {
            return refuse("another version");
        }
        (self.owner, self.version) = (RECIPIENT, self.version + 1);
        let [donor, recipient] = [&self.sides[DONOR], &self.sides[RECIPIENT]];
        if recipient.majority.data != Some(self.acked) {
            self.wrong(format!(
                "committed, and the recipient has {:?} of {}",
                recipient.majority.data, self.acked
            ));
        } else if donor.kept.section != Some(true) {
            self.wrong("committed, and the donor still answers reads");
        } else if recipient.majority.section != Some(true) {
            self.wrong("committed, and the recipient may serve what may be another's");
        } else if recipient.majority.task.is_none() || donor.majority.doc.is_none() {
            self.wrong("committed, and nobody would know");
        }
        yes()
    }
    /// The recipient takes what the donor has for it.
    fn give(&mut self, name: &str, body: &DocBuf) -> Carried {
        let receiver = body.get("receiver").and_then(|v| v.as_i64());
        let Some(record) = &mut self.record else { return refuse("nobody records") };
        if record.receiver.is_some() && record.receiver != receiver {
            return refuse("another one has been given to");
        }
        record.receiver = receiver.or(record.receiver);
        let news = std::mem::take(&mut record.news);
        let first = name == receive_range::CLONE && !std::mem::replace(&mut record.given, true);
        if news || first {
            self.sides[RECIPIENT].kept.data = self.sides[DONOR].kept.data;
            if self.sides[RECIPIENT].majority.task.is_none() {
                self.wrong("a document comes, and nobody would delete it");
            }
        }
        if name == receive_range::CATCH_UP {
            self.steady |= !news;
        }
        reply(|b| _ = b.bool("empty", !news))
    }
    fn on_recipient(&mut self, name: &str, body: &DocBuf) -> Carried {
        let there = self.sides[RECIPIENT].machine.is_some();
        match name {
            START if there => yes(),
            START => {
                let machine = ReceiveRange::of(body).expect("a request");
                self.begin(RECIPIENT, Machine::Recipient(Running::new(machine, Home::Primary)));
                yes()
            }
            STATUS => {
                let state = if self.steady { "steady" } else { "clone" };
                reply(|b| _ = b.bool("active", there).str("state", state))
            }
            COMMIT if !there => refuse("nobody knows it"),
            COMMIT => {
                self.nudged = true;
                let entered = phase_of(self.sides[RECIPIENT].majority.doc.as_ref());
                if entered.as_deref() == Some("entered") { yes() } else { Carried::Waits }
            }
            RELEASE if !there => yes(),
            RELEASE => {
                self.nudged = true;
                Carried::Waits
            }
            _ => {
                self.nudged |= there;
                self.abort(RECIPIENT);
                yes()
            }
        }
    }
    /// A client writes there, and a majority has it.
    pub(crate) fn client_writes(&mut self, i: usize) -> bool {
        let side = &mut self.sides[i];
        if side.kept.section.is_some() {
            return false;
        }
        let knows = match i {
            DONOR => side.knows.unwrap_or(self.owner),
            // Routers tell it what they have seen.
            _ => self.owner,
        };
        if knows != i {
            return false;
        }
        self.acked += 1;
        side.kept.data = Some(self.acked);
        side.majority = side.kept.clone();
        if i == DONOR
            && let Some(record) = &mut self.record
        {
            record.news = true;
        }
        if self.owner != i {
            self.wrong(format!("{} takes a write of what is another's", SHARDS[i]));
        }
        true
    }
    /// The range deleter. It does not look twice: that the task is there has to be enough.
    pub(crate) fn delete_range(&mut self, i: usize) -> bool {
        let side = &mut self.sides[i];
        if side.kept.task != Some(false) || side.majority.task != Some(false) {
            return false;
        }
        side.kept.task = None;
        side.kept.data = None;
        side.majority = side.kept.clone();
        if self.owner == i {
            self.wrong(format!("{} deletes its own", SHARDS[i]));
        }
        true
    }
    /// Another migration has brought it back meanwhile.
    pub(crate) fn move_back(&mut self) -> bool {
        let idle = self.sides.iter().all(|s| s.machine.is_none() && s.kept.task.is_none());
        if !idle || self.owner != RECIPIENT {
            return false;
        }
        (self.owner, self.version) = (DONOR, self.version + 1);
        self.sides[DONOR].kept.data = self.sides[RECIPIENT].kept.data.take();
        for side in &mut self.sides {
            (side.majority, side.knows) = (side.kept.clone(), None);
        }
        true
    }
}

pub(crate) fn to_of(i: usize, to: &Target) -> usize {
    match to {
        Target::Own => i,
        Target::ConfigServers => CONFIG,
        Target::Shard(name) => SHARDS.iter().position(|s| s == name).expect("a shard"),
        Target::Host(host) | Target::Set(host) => panic!("nobody knows {host}"),
    }
}
