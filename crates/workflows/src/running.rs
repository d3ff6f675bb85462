//! One workflow under way: what stands between the machine, which decides, and the shell, which acts.
//!
//! ```text
//!   slot 3, attempt 7 ──► shell ──✕ no answer in time ──► slot 3, attempt 9 ──► shell ──► answer 9 ──► the workflow
//!                                    answer 7, at last: dropped ◄──────────────────────┘
//! ```
//! * Every attempt has a number of its own. An answer counts when its slot is in use and its number is the last one's.
//! * A failure is tried again, told or ends this life of the instance, as [`retry`](crate::retry) says.
//! * While a checkpoint is on its way nothing else begins, so no effect is seen before the state that led to it is safe.
//! * On a primary the first thing is a checkpoint, and the last is that the state document goes.
//! * Behind the end there is nothing: no event gets in, no order comes out.
//!
//! A workflow that breaks a rule is a bug, and stops here with an assertion.

use crate::action::Want;
use crate::mutants::{Mutant, broken};
use crate::retry::{Retry, Verdict, judge};
use crate::{Action, Actions, Event, Level, Resource, Section, Slot, Workflow};
use pando_base::{Error, Millis, Namespace, OpTime, Result, limits};
use pando_bson::DocBuf;
use std::collections::BTreeMap;

/// The machine layer's own slots.
const CHECKPOINT: Slot = Slot::MAX;
const FORGET: Slot = Slot::MAX - 1;

/// Who runs a workflow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Home {
    /// The host on a primary. It has a state document, and the next primary goes on with it.
    Primary,
    /// A command. It has none, and ends with the command.
    Command,
}

/// One attempt at one action.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Id {
    pub slot: Slot,
    pub attempt: u32,
}

/// What the shell has to do, in order.
#[derive(Clone, Debug)]
pub enum Order {
    /// Carry this out after a pause, and answer with the id.
    Carry {
        id: Id,
        action: Action,
        after_ms: Millis,
    },
    /// Nobody waits for this answer any more.
    Cancel(Id),
    Release(Resource),
    Leave(Section),
    /// The client's last write is at this opTime.
    Report(OpTime),
    /// For the log.
    Note(String),
    /// For the log: an action failed and is tried again.
    Failed(Error),
    /// Finished: whoever waits gets this.
    End(Result<DocBuf>),
    /// This life is over; the next primary goes on from the last checkpoint.
    Abandon(Error),
}

/// What an action came to.
#[derive(Clone, Debug)]
pub enum Outcome {
    Done,
    Wrote(Option<OpTime>),
    Found(Vec<Namespace>),
    Reply(DocBuf),
    Random(u64),
}

#[derive(Clone, Debug)]
struct Outstanding {
    attempt: u32,
    tries: u32,
    action: Action,
    retry: Retry,
}

#[derive(Clone, Debug)]
pub struct Running<W: Workflow = Box<dyn Workflow>> {
    workflow: W,
    home: Home,
    now: Millis,
    attempts: u32,
    outstanding: BTreeMap<Slot, Outstanding>,
    /// A checkpoint of this life is on a majority.
    safe: bool,
    /// Said by the workflow; told when the state document is gone.
    result: Option<Result<DocBuf>>,
    over: bool,
}

impl<W: Workflow> Running<W> {
    pub fn new(workflow: W, home: Home) -> Running<W> {
        let outstanding = BTreeMap::new();
        Running { workflow, home, now: 0, attempts: 0, outstanding, safe: false, result: None, over: false }
    }
    pub fn begin(&mut self, now: Millis, out: &mut Vec<Order>) {
        self.tell(now, Event::Begin, out);
    }
    /// Somebody wants it to end.
    pub fn abort(&mut self, now: Millis, why: Error, out: &mut Vec<Order>) {
        self.tell(now, Event::Abort(why), out);
    }
    /// What an attempt came to.
    pub fn answer(&mut self, now: Millis, id: Id, said: Result<Outcome>, out: &mut Vec<Order>) {
        if self.over && !broken(Mutant::HeardAfterTheEnd) {
            return;
        }
        let late = |o: &Outstanding| o.attempt != id.attempt && !broken(Mutant::LateAnswerTaken);
        let Some(asked) = self.outstanding.get(&id.slot).filter(|o| !late(o)).cloned() else { return };
        match said {
            Ok(outcome) => {
                if !broken(Mutant::DoubledAnswerTaken) {
                    self.outstanding.remove(&id.slot);
                }
                self.carried_out(now, id.slot, &asked.action, outcome, out);
            }
            Err(e) => self.failed(now, id.slot, asked, e, out),
        }
    }
    pub fn is_over(&self) -> bool {
        self.over
    }
    /// Something of this kind is under way.
    pub fn is_under_way(&self, which: impl Fn(&Action) -> bool) -> bool {
        self.outstanding.values().any(|o| which(&o.action))
    }
    pub fn document(&self) -> Option<DocBuf> {
        self.workflow.document()
    }
    /// What is under way.
    #[cfg(feature = "kit")]
    pub fn under_way(&self) -> Vec<(Id, Action, Retry)> {
        let one = |(slot, o): (&Slot, &Outstanding)| {
            (Id { slot: *slot, attempt: o.attempt }, o.action.clone(), o.retry)
        };
        self.outstanding.iter().map(one).collect()
    }
    /// What makes two states different: neither the time nor how many attempts there were.
    #[cfg(feature = "kit")]
    pub fn essence(&self) -> String
    where
        W: std::fmt::Debug,
    {
        let under_way: Vec<_> = self.outstanding.iter().map(|(slot, o)| (slot, &o.action)).collect();
        format!("{:?} {under_way:?} {} {:?} {}", self.workflow, self.safe, self.result, self.over)
    }
    /// See [`Workflow::holds`].
    pub fn holds(&self) -> Vec<(Resource, Level)> {
        self.workflow.holds()
    }

    fn carried_out(
        &mut self,
        now: Millis,
        slot: Slot,
        action: &Action,
        outcome: Outcome,
        out: &mut Vec<Order>,
    ) {
        let event = match (action, outcome) {
            (Action::Checkpoint(_), _) => {
                self.safe = true;
                Event::Durable
            }
            (Action::Forget, _) => {
                self.end(out);
                return;
            }
            (Action::Write(_), Outcome::Wrote(at)) => Event::Wrote { slot, result: Ok(at) },
            (Action::Read(_), Outcome::Found(names)) => Event::Found { slot, result: Ok(names) },
            (Action::Call { .. }, Outcome::Reply(reply)) => Event::Answer { slot, reply: Ok(reply) },
            (Action::Draw, Outcome::Random(number)) => Event::Random { slot, number },
            (Action::Await { .. }, Outcome::Done) => Event::Replicated { slot, result: Ok(()) },
            (Action::Lock(..), Outcome::Done) => Event::Locked { slot, result: Ok(()) },
            (Action::Enter(_), Outcome::Done) => Event::Entered { slot, result: Ok(()) },
            (Action::Rest(_), Outcome::Done) => Event::Rested { slot },
            (Action::AwaitNudge, Outcome::Done) => Event::Nudged { slot },
            (action, outcome) => panic!("a shell answers {action:?} with {outcome:?}"),
        };
        self.tell(now, event, out);
    }

    fn failed(&mut self, now: Millis, slot: Slot, asked: Outstanding, e: Error, out: &mut Vec<Order>) {
        match judge(self.home, &asked.action, asked.retry, asked.tries, &e) {
            Verdict::Abandon => {
                self.outstanding.clear();
                self.over = true;
                out.push(Order::Abandon(e));
            }
            Verdict::Again { after_ms } => {
                out.push(Order::Failed(e));
                self.attempts += 1;
                let id = Id { slot, attempt: self.attempts };
                let again = Outstanding { attempt: id.attempt, tries: asked.tries + 1, ..asked };
                out.push(Order::Carry { id, action: again.action.clone(), after_ms });
                self.outstanding.insert(slot, again);
            }
            Verdict::Tell => {
                self.outstanding.remove(&slot);
                let event = match asked.action {
                    Action::Write(_) => Event::Wrote { slot, result: Err(e) },
                    Action::Read(_) => Event::Found { slot, result: Err(e) },
                    Action::Await { .. } => Event::Replicated { slot, result: Err(e) },
                    Action::Call { .. } => Event::Answer { slot, reply: Err(e) },
                    Action::Lock(..) => Event::Locked { slot, result: Err(e) },
                    Action::Enter(_) => Event::Entered { slot, result: Err(e) },
                    // These are begun with `Retry::Always`.
                    Action::Checkpoint(_)
                    | Action::Rest(_)
                    | Action::AwaitNudge
                    | Action::Draw
                    | Action::Forget => {
                        panic!("a failure is told that has no event: {e}")
                    }
                };
                self.tell(now, event, out);
            }
        }
    }

    /// One step of the workflow, and what it wants.
    fn tell(&mut self, now: Millis, event: Event, out: &mut Vec<Order>) {
        if (self.over || self.result.is_some()) && !broken(Mutant::HeardAfterTheEnd) {
            return;
        }
        self.now = self.now.max(now);
        let mut wants = Actions::default();
        self.workflow.step(self.now, event, &mut wants);
        self.workflow.check();
        for want in wants.0 {
            self.want(want, out);
        }
    }

    fn want(&mut self, want: Want, out: &mut Vec<Order>) {
        assert!(self.result.is_none(), "a workflow goes on after its end: {want:?}");
        match want {
            Want::Begin(slot, action, retry) => {
                assert!(slot < FORGET, "slot {slot} is not for workflows");
                self.start(slot, action, retry, out);
            }
            Want::Checkpoint => {
                let document = self.workflow.document();
                assert!(document.is_some(), "a workflow without a state document has no checkpoint");
                let document = document.unwrap_or_default();
                self.start(CHECKPOINT, Action::Checkpoint(document), Retry::Always, out);
            }
            Want::Release(resource) => out.push(Order::Release(resource)),
            Want::Leave(section) => out.push(Order::Leave(section)),
            Want::Report(at) => out.push(Order::Report(at)),
            Want::Note(text) => out.push(Order::Note(text)),
            Want::Cancel(slot) => self.cancel(slot, out),
            Want::Done(result) => {
                for slot in self.outstanding.keys().copied().collect::<Vec<_>>() {
                    self.cancel(slot, out);
                }
                match self.home {
                    Home::Primary if !broken(Mutant::DocumentLeft) => {
                        self.start(FORGET, Action::Forget, Retry::Always, out);
                        self.result = Some(result);
                    }
                    _ => {
                        self.result = Some(result);
                        self.end(out);
                    }
                }
            }
        }
    }

    fn cancel(&mut self, slot: Slot, out: &mut Vec<Order>) {
        if let Some(o) = self.outstanding.remove(&slot) {
            out.push(Order::Cancel(Id { slot, attempt: o.attempt }));
        }
    }

    fn start(&mut self, slot: Slot, action: Action, retry: Retry, out: &mut Vec<Order>) {
        assert!(!self.outstanding.contains_key(&slot), "slot {slot} is in use: {action:?}");
        assert!(!self.outstanding.contains_key(&CHECKPOINT), "before the checkpoint is safe: {action:?}");
        assert!(self.outstanding.len() < limits::WORKFLOW_ACTIONS_MAX, "too much at once: {action:?}");
        // An instance that ends before its first checkpoint is safe: nobody knows what became of that one.
        let of_document = matches!(action, Action::Checkpoint(_) | Action::Forget);
        assert!(
            self.safe || of_document || self.home == Home::Command,
            "the first action is no checkpoint: {action:?}"
        );
        self.attempts += 1;
        let id = Id { slot, attempt: self.attempts };
        out.push(Order::Carry { id, action: action.clone(), after_ms: 0 });
        self.outstanding.insert(slot, Outstanding { attempt: id.attempt, tries: 1, action, retry });
    }

    fn end(&mut self, out: &mut Vec<Order>) {
        if let Some(result) = self.result.clone()
            && (!self.over || broken(Mutant::HeardAfterTheEnd))
        {
            self.over = true;
            out.push(Order::End(result));
        }
    }
}
