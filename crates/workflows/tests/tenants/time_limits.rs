//! A recipient that does not answer: what the donor does without it, and when.

use super::states::document;
use pando_base::{Error, ErrorCode, Millis, OpTime, Timestamp};
use pando_bson::{DocBuf, DocBuilder};
use pando_workflows::donate_tenants::{COMMIT, DonateTenants, FORGET, LOOK_AT_TIMEOUT, SYNC};
use pando_workflows::shard_split::{EXPIRE, NUMBER, append_op_time};
use pando_workflows::{Action, Home, Id, Order, Outcome, Running};

/// A donor's machine whose own node does at once what it is told. The recipient hears nothing.
struct Donor {
    machine: Running<DonateTenants>,
    now: Millis,
    orders: Vec<Order>,
    /// To the recipient, and rests.
    waits: Vec<(Id, Action)>,
}

impl Donor {
    fn of(state: &DocBuf) -> Donor {
        let machine = Running::new(DonateTenants::of(state).expect("a state"), Home::Primary);
        let mut donor = Donor { machine, now: 0, orders: Vec::new(), waits: Vec::new() };
        donor.machine.begin(0, &mut donor.orders);
        donor.settle();
        donor
    }
    fn settle(&mut self) {
        while !self.orders.is_empty() {
            for order in std::mem::take(&mut self.orders) {
                match order {
                    Order::Carry { id, action, .. } => self.carry(id, action),
                    Order::Cancel(id) => self.waits.retain(|(waits, _)| *waits != id),
                    _ => {}
                }
            }
        }
    }
    fn carry(&mut self, id: Id, action: Action) {
        let reply = |fill: fn(&mut DocBuilder)| {
            let mut b = DocBuilder::new();
            fill(&mut b);
            Outcome::Reply(b.finish())
        };
        let outcome = match &action {
            Action::Checkpoint(_) | Action::Forget => Outcome::Done,
            Action::Call { body, .. } => match body.first().expect("a command").name() {
                LOOK_AT_TIMEOUT => reply(|b| _ = b.i64("timeoutMs", 5000)),
                NUMBER => reply(|b| append_op_time(b, "opTime", OpTime::new(Timestamp::new(60, 1), 1))),
                EXPIRE => reply(|b| _ = b.date("expireAt", 7).i64("afterMs", 900)),
                _ => return self.waits.push((id, action)),
            },
            _ => return self.waits.push((id, action)),
        };
        self.machine.answer(self.now, id, Ok(outcome), &mut self.orders);
    }
    fn waiting(&self, wanted: impl Fn(&Action) -> bool) -> Option<Id> {
        self.waits.iter().find(|(_, action)| wanted(action)).map(|(id, _)| *id)
    }
    fn told(&self, name: &str) -> Option<Id> {
        self.waiting(
            |a| matches!(a, Action::Call { body, .. } if body.first().is_some_and(|e| e.name() == name)),
        )
    }
    fn nudge(&mut self) {
        let id = self.waiting(|a| matches!(a, Action::AwaitNudge)).expect("it waits for somebody");
        self.end(id, Ok(Outcome::Done));
    }
    /// So much time goes by.
    fn pass(&mut self, ms: Millis) {
        self.now += ms;
        let id = self.waiting(|a| matches!(a, Action::Rest(rest) if *rest == ms)).expect("it waits so long");
        self.end(id, Ok(Outcome::Done));
    }
    fn end(&mut self, id: Id, said: Result<Outcome, Error>) {
        self.waits.retain(|(waits, _)| *waits != id);
        self.machine.answer(self.now, id, said, &mut self.orders);
        self.settle();
    }
    fn state(&self) -> String {
        let doc = self.machine.document().expect("a document");
        doc.get("state").and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

#[test]
fn tenants_are_not_blocked_for_longer_than_they_may_be_whatever_the_recipient_does() {
    let mut donor = Donor::of(&document("blocking", &["blockTimestamp"]));
    assert!(donor.told(SYNC).is_some(), "the recipient is asked, and says nothing");
    donor.pass(5000);
    assert_eq!(donor.state(), "aborted");
    assert!(donor.told(SYNC).is_none(), "nobody waits for that any more");
}

fn aborted() -> DocBuf {
    let doc = document("aborted", &["commitOrAbortOpTime", "abortReason"]);
    let mut b = DocBuilder::new();
    b.elems_of(&doc).bool("recipientKnows", true);
    b.finish()
}

#[test]
fn what_was_called_off_is_forgotten_though_the_recipient_is_not_there() {
    let mut donor = Donor::of(&aborted());
    assert!(donor.told(FORGET).is_some());
    donor.nudge();
    assert!(donor.told(FORGET).is_some(), "it is waited for");
    assert!(donor.machine.document().is_some_and(|doc| doc.elem("expireAt").is_none()));
    donor.pass(30_000);
    assert!(donor.machine.document().is_some_and(|doc| doc.elem("expireAt").is_some()));
    donor.pass(900);
    assert!(donor.machine.is_over());
}

#[test]
fn who_refuses_to_forget_what_was_called_off_has_nothing_of_it() {
    let mut donor = Donor::of(&aborted());
    let id = donor.told(FORGET).expect("it is told");
    donor.end(id, Err(Error::new(ErrorCode::IllegalOperation, "not with --serverless")));
    donor.nudge();
    assert!(donor.machine.document().is_some_and(|doc| doc.elem("expireAt").is_some()));
}

#[test]
fn what_was_committed_is_not_forgotten_before_the_recipient_knows() {
    let doc = document("committed", &["blockTimestamp", "commitOrAbortOpTime"]);
    let mut b = DocBuilder::new();
    b.elems_of(&doc).bool("recipientKnows", true);
    let mut donor = Donor::of(&b.finish());
    assert!(donor.told(COMMIT).is_some());
    donor.nudge();
    assert!(donor.waiting(|a| matches!(a, Action::Rest(_))).is_none(), "there is no limit to that");
    assert!(donor.told(COMMIT).is_some());
}
