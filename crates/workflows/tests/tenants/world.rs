//! Donor, recipient, and the tenant's data: one number that grows with each write that was acknowledged.
//!
//! Both sides are sets: what a majority has survives, what it has not may be lost with the primary. Clients are as wrong as can be: they write to
//! whichever side takes it.

use pando_base::{Error, ErrorCode, OpTime, Result, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_workflows::donate_tenants::{self, Asked, COMMIT, DISCARD, DonateTenants, FORGET, SYNC};
use pando_workflows::receive_tenants::{
    self, CHECK_EMPTY, CLEAR, COPY, FOLLOW, HEAR, MARK, Progress, ReceiveTenants, progress,
};
use pando_workflows::shard_split::{ABORT_BUILDS, BLOCK, EXPIRE, NUMBER, append_op_time};
use pando_workflows::{Action, Home, Id, Order, Outcome, Retry, Running, Target};

pub(crate) const DONOR: usize = 0;
pub(crate) const RECIPIENT: usize = 1;
const SIDES: [&str; 2] = ["donor", "recipient"];
pub(crate) const BLOCKING_LIMIT_MS: i64 = 1000;
const DELAY_MS: i64 = 900_000;

/// What a set keeps.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Kept {
    pub(crate) doc: Option<DocBuf>,
    pub(crate) data: Option<u8>,
    /// Somebody's own, under the same tenant's name.
    pub(crate) foreign: bool,
}

/// What its primary knows, and nobody else.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Memory {
    /// Writes are blocked before the document says so.
    early: bool,
    /// Of the recipient: how far it is to follow; what it was told.
    target: bool,
    committed: bool,
    forgotten: bool,
    nudged: bool,
    rested: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Machine {
    Donor(Running<DonateTenants>),
    Recipient(Running<ReceiveTenants>),
}

macro_rules! of_both {
    ($machine:expr, $r:ident => $what:expr) => {
        match $machine {
            Machine::Donor($r) => $what,
            Machine::Recipient($r) => $what,
        }
    };
}

impl Machine {
    pub(crate) fn under_way(&self) -> Vec<(Id, Action, Retry)> {
        of_both!(self, r => r.under_way())
    }
    fn essence(&self) -> String {
        of_both!(self, r => r.essence())
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    pub(crate) kept: Kept,
    pub(crate) majority: Kept,
    pub(crate) machine: Option<Machine>,
    memory: Memory,
}

/// How much may still go wrong.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Left {
    pub(crate) crashes: u8,
    pub(crate) losses: u8,
    pub(crate) refusals: u8,
    pub(crate) writes: u8,
    pub(crate) aborts: u8,
    pub(crate) strangers: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) sides: [Side; 2],
    pub(crate) acked: u8,
    builds_gone: bool,
    /// What the donor has decided: on a majority.
    decided: Option<bool>,
    foreign_acked: bool,
    recipient_is_over: bool,
    /// The recipient never hears that it was called off: it was not reached, or refused to hear of it.
    pub(crate) untold: bool,
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

fn refuse(code: ErrorCode, text: &'static str) -> Carried {
    Carried::Answer(Err(Error::new(code, text)))
}
fn reply(build: impl FnOnce(&mut DocBuilder)) -> Carried {
    let mut b = DocBuilder::new();
    build(&mut b);
    Carried::Answer(Ok(Outcome::Reply(b.finish())))
}
fn yes() -> Carried {
    reply(|_| {})
}
fn state(doc: Option<&DocBuf>) -> &str {
    doc.and_then(|d| d.get("state")?.as_str()).unwrap_or("")
}
fn has(doc: Option<&DocBuf>, name: &str) -> bool {
    doc.is_some_and(|d| d.elem(name).is_some())
}
fn id() -> Uuid {
    Uuid([9; 16])
}

impl World {
    pub(crate) fn new(left: Left) -> World {
        let mut w = World {
            sides: [Side::default(), Side::default()],
            acked: 1,
            builds_gone: false,
            decided: None,
            foreign_acked: false,
            recipient_is_over: false,
            untold: false,
            network: Vec::new(),
            left,
            wrong: None,
        };
        w.sides[DONOR].kept.data = Some(1);
        w.sides[DONOR].majority.data = Some(1);
        let asked = Asked {
            id: id(),
            tenant: Some("t"),
            recipient: "r/r:1",
            recipient_set: "r",
            donor: "d/d:1",
            donor_set: "d",
        };
        w.begin(DONOR, &donate_tenants::begin(&asked));
        w
    }
    pub(crate) fn essence(&self) -> String {
        let of = |s: &Side| {
            let machine = s.machine.as_ref().map(Machine::essence);
            format!("{:?} {:?} {machine:?} {:?}", s.kept, s.majority, s.memory)
        };
        let ended = (self.recipient_is_over, self.untold);
        let rest = (self.acked, self.builds_gone, self.decided, self.foreign_acked, ended);
        format!("{} {} {rest:?} {:?} {:?}", of(&self.sides[0]), of(&self.sides[1]), self.network, self.left)
    }
    fn wrong(&mut self, text: impl Into<String>) {
        self.wrong.get_or_insert(text.into());
    }
    fn must(&mut self, holds: bool, text: &str) {
        if !holds {
            self.wrong(text);
        }
    }

    fn begin(&mut self, i: usize, doc: &RawDoc) {
        let mut orders = Vec::new();
        let mut machine = match i {
            DONOR => Machine::Donor(Running::new(DonateTenants::of(doc).expect("a state"), Home::Primary)),
            _ => Machine::Recipient(Running::new(ReceiveTenants::of(doc).expect("a state"), Home::Primary)),
        };
        of_both!(&mut machine, r => r.begin(0, &mut orders));
        self.sides[i].machine = Some(machine);
        self.obey(i, orders);
    }
    pub(crate) fn answer(&mut self, i: usize, id: Id, said: Result<Outcome>) {
        let mut orders = Vec::new();
        if let Some(machine) = &mut self.sides[i].machine {
            of_both!(machine, r => r.answer(0, id, said, &mut orders));
        }
        self.obey(i, orders);
    }
    pub(crate) fn abort(&mut self, i: usize) {
        let mut orders = Vec::new();
        let why = Error::new(ErrorCode::TenantMigrationAborted, "model");
        if let Some(machine) = &mut self.sides[i].machine {
            of_both!(machine, r => r.abort(0, why, &mut orders));
        }
        self.obey(i, orders);
    }
    fn obey(&mut self, i: usize, orders: Vec<Order>) {
        for order in orders {
            if let Order::End(_) = order {
                self.sides[i].machine = None;
            }
        }
        if self.sides.iter().all(|s| s.machine.is_none()) {
            self.check_end();
        }
    }
    /// Nothing is left that nobody cares for.
    fn check_end(&mut self) {
        let [donor, recipient] = [&self.sides[DONOR].kept, &self.sides[RECIPIENT].kept];
        let (of_donor, of_recipient) = (donor.data, recipient.data);
        let left = donor.doc.is_some() || recipient.doc.is_some();
        let foreign = recipient.foreign;
        self.must(!left, "a document is left");
        self.must(foreign == self.foreign_acked, "somebody's own data are gone");
        let acked = Some(self.acked);
        let kept = match self.decided {
            Some(true) => of_recipient == acked && of_donor.is_none(),
            Some(false) => of_donor == acked && of_recipient.is_none(),
            None => false,
        };
        let text =
            format!("decided {:?}: donor {of_donor:?}, recipient {of_recipient:?}, {acked:?}", self.decided);
        self.must(kept, &text);
    }
    /// The primary is another one from now on.
    pub(crate) fn fail_over(&mut self, i: usize, lost: bool) {
        let side = &mut self.sides[i];
        match lost {
            true => side.kept = side.majority.clone(),
            false => side.majority = side.kept.clone(),
        }
        (side.machine, side.memory) = (None, Memory::default());
        self.note_decision();
        if let Some(doc) = self.sides[i].kept.doc.clone() {
            return self.begin(i, &doc);
        }
        if self.sides.iter().all(|s| s.machine.is_none()) && self.decided.is_some() {
            self.check_end();
        }
    }
    /// What a majority of the donor says does not change any more.
    fn note_decision(&mut self) {
        let says = match state(self.sides[DONOR].majority.doc.as_ref()) {
            "committed" => true,
            "aborted" => false,
            _ => return,
        };
        if self.decided.is_none() && says {
            let recipient = &self.sides[RECIPIENT].majority;
            let (has, may) = (recipient.data, has(recipient.doc.as_ref(), "rejectReadsBeforeTimestamp"));
            let text = format!("committed, and the recipient has {has:?} of {}", self.acked);
            self.must(has == Some(self.acked) && may, &text);
        }
        if self.decided.is_some_and(|before| before != says) {
            self.wrong("the decision is another one than before");
        }
        self.decided = Some(says);
    }

    /// Carries out one action of a side.
    pub(crate) fn carry(&mut self, i: usize, action: &Action) -> Carried {
        let side = &mut self.sides[i];
        let done = || Carried::Answer(Ok(Outcome::Done));
        match action {
            Action::Checkpoint(doc) => {
                let was = state(side.majority.doc.as_ref()).to_owned();
                side.kept.doc = Some(doc.clone());
                side.majority = side.kept.clone();
                let turned = was == "committed" && state(Some(doc)) == "aborted";
                self.must(!turned, "what was committed is aborted");
                if i == DONOR {
                    self.note_decision();
                }
                done()
            }
            Action::Forget => {
                side.kept.doc = None;
                side.majority = side.kept.clone();
                let rested = side.memory.rested;
                // A message does not live as long as a document that may be forgotten.
                self.recipient_is_over |= i == RECIPIENT;
                self.must(rested, &format!("the {} is gone before its time", SIDES[i]));
                done()
            }
            Action::Rest(ms) => {
                side.memory.rested |= *ms == DELAY_MS;
                done()
            }
            // Whoever asked for the migration has it forgotten as soon as it is decided.
            Action::AwaitNudge if i == DONOR => done(),
            Action::AwaitNudge if side.memory.nudged => {
                side.memory.nudged = false;
                done()
            }
            Action::AwaitNudge => Carried::Waits,
            Action::Call { to, body } => self.send(to_of(i, to), body),
            other => panic!("nobody carries out {other:?}"),
        }
    }
    /// A command reaches whom it is for.
    pub(crate) fn send(&mut self, to: usize, body: &DocBuf) -> Carried {
        let name = body.first().expect("a command").name().to_owned();
        match name.as_str() {
            donate_tenants::VALIDATE | donate_tenants::LOOK_AT_TIMEOUT => {
                reply(|b| _ = b.i64("timeoutMs", BLOCKING_LIMIT_MS))
            }
            ABORT_BUILDS => {
                let known = !matches!(state(self.sides[DONOR].majority.doc.as_ref()), "" | "uninitialized");
                self.must(known, "builds are given up, and no majority knows why");
                self.builds_gone = true;
                yes()
            }
            BLOCK => {
                let consistent = progress_of(&self.sides[RECIPIENT].majority) >= Progress::Consistent;
                self.must(self.builds_gone, "builds go on in what is blocked");
                self.must(consistent, "blocked, and the recipient copies still");
                self.sides[DONOR].memory.early = true;
                reply(|b| _ = b.timestamp("blockTimestamp", Timestamp::new(50, 1)))
            }
            NUMBER => reply(|b| append_op_time(b, "opTime", OpTime::new(Timestamp::new(60, 1), 1))),
            EXPIRE => reply(|b| _ = b.date("expireAt", DELAY_MS).i64("afterMs", DELAY_MS)),
            DISCARD => {
                self.must(self.decided == Some(true), "what stays here is thrown away");
                self.sides[DONOR].kept.data = None;
                yes()
            }
            SYNC | COMMIT | FORGET => self.on_recipient(&name, body),
            _ => self.own_of_recipient(&name, to),
        }
    }
    fn own_of_recipient(&mut self, name: &str, to: usize) -> Carried {
        assert_eq!(to, RECIPIENT);
        let donor = self.sides[DONOR].majority.clone();
        let side = &mut self.sides[RECIPIENT];
        let guarded = state(side.majority.doc.as_ref()) == "started";
        let full = side.kept.data.is_some() || side.kept.foreign;
        match name {
            receive_tenants::VALIDATE if full => refuse(ErrorCode::NamespaceExists, "there is something"),
            receive_tenants::VALIDATE => yes(),
            CHECK_EMPTY if full => refuse(ErrorCode::NamespaceExists, "there is something"),
            CHECK_EMPTY => yes(),
            CLEAR => {
                side.kept.data = None;
                side.kept.foreign = false;
                yes()
            }
            COPY => {
                let over = full;
                if !matches!(state(donor.doc.as_ref()), "data sync" | "blocking") {
                    return refuse(ErrorCode::NoSuchTenantMigration, "nothing of the kind");
                }
                side.kept.data = donor.data;
                self.must(guarded, "copied, and others get at it");
                self.must(!over, "copied over something");
                reply(|b| _ = b.timestamp("startApplyingDonorTimestamp", Timestamp::new(40, 1)))
            }
            FOLLOW if !side.memory.target => Carried::Waits,
            FOLLOW => {
                if donor.data.is_some() {
                    side.kept.data = donor.data;
                }
                yes()
            }
            MARK => {
                side.majority = side.kept.clone();
                reply(|b| {
                    b.timestamp("rejectReadsBeforeTimestamp", Timestamp::new(55, 1));
                    b.timestamp("blockTimestamp", Timestamp::new(50, 1));
                })
            }
            HEAR => {
                let memory = side.memory;
                reply(|b| _ = b.bool("committed", memory.committed).bool("forgotten", memory.forgotten))
            }
            other => panic!("nobody knows {other}"),
        }
    }
    fn on_recipient(&mut self, name: &str, body: &DocBuf) -> Carried {
        let of_donor = state(self.sides[DONOR].majority.doc.as_ref()).to_owned();
        let decision = body.get("decision").and_then(|v| v.as_str()).unwrap_or("committed").to_owned();
        if name != SYNC {
            let known = of_donor == decision || of_donor.is_empty() && self.decided.is_some();
            self.must(known, "the recipient is told what no majority knows");
        }
        if self.recipient_is_over {
            return if name == SYNC { refuse(ErrorCode::TenantMigrationAborted, "over") } else { yes() };
        }
        if self.sides[RECIPIENT].machine.is_none() {
            match name {
                SYNC => self.begin(RECIPIENT, &receive_tenants::begin(&id(), body, "r")),
                FORGET if decision == "aborted" => {
                    self.begin(RECIPIENT, &receive_tenants::called_off(&id(), "r"));
                }
                _ => return refuse(ErrorCode::NoSuchTenantMigration, "nobody knows it"),
            }
        }
        let memory = &mut self.sides[RECIPIENT].memory;
        match name {
            SYNC => {
                let target = body.elem("returnAfterReachingDonorTimestamp").is_some();
                memory.target |= target;
                let wanted = if target { Progress::Received } else { Progress::Consistent };
                match progress_of(&self.sides[RECIPIENT].majority) {
                    Progress::Aborted => refuse(ErrorCode::TenantMigrationAborted, "aborted"),
                    at => reply(|b| _ = b.bool("reached", at >= wanted)),
                }
            }
            COMMIT => {
                (memory.committed, memory.nudged) = (true, true);
                match state(self.sides[RECIPIENT].majority.doc.as_ref()) {
                    "committed" => yes(),
                    _ => Carried::Waits,
                }
            }
            _ => {
                memory.committed |= decision == "committed";
                (memory.forgotten, memory.nudged) = (true, true);
                if decision == "aborted" {
                    self.abort(RECIPIENT);
                }
                match has(self.sides[RECIPIENT].majority.doc.as_ref(), "expireAt") {
                    true => yes(),
                    false => Carried::Waits,
                }
            }
        }
    }

    /// A client writes there, and a majority has it.
    pub(crate) fn client_writes(&mut self, i: usize) -> bool {
        let side = &mut self.sides[i];
        let takes = match i {
            DONOR => {
                let blocked = matches!(state(side.kept.doc.as_ref()), "blocking" | "committed");
                !blocked && !side.memory.early && side.kept.data.is_some()
            }
            _ => state(side.kept.doc.as_ref()) == "committed",
        };
        if !takes {
            return false;
        }
        self.acked += 1;
        side.kept.data = Some(self.acked);
        side.majority = side.kept.clone();
        if i == DONOR {
            self.note_decision();
        }
        let owner = if self.decided == Some(true) { RECIPIENT } else { DONOR };
        self.must(owner == i, &format!("the {} takes a write of what is another's", SIDES[i]));
        true
    }
    /// Somebody else writes to the recipient under the tenant's name.
    pub(crate) fn stranger_writes(&mut self) -> bool {
        let side = &mut self.sides[RECIPIENT];
        if !matches!(state(side.kept.doc.as_ref()), "" | "uninitialized") || self.recipient_is_over {
            return false;
        }
        side.kept.foreign = true;
        side.majority = side.kept.clone();
        self.foreign_acked = true;
        true
    }
}

fn progress_of(kept: &Kept) -> Progress {
    kept.doc.as_ref().map_or(Progress::Copies, |doc| progress(doc))
}

pub(crate) fn to_of(i: usize, to: &Target) -> usize {
    match to {
        Target::Own => i,
        Target::Set(set) if set == "r/r:1" => RECIPIENT,
        other => panic!("nobody knows {other:?}"),
    }
}
