//! The machine layer, one rule at a time.

use pando_base::{Error, ErrorCode, Millis};
use pando_bson::{DocBuf, doc};
use pando_workflows::{
    Action, Actions, Event, Home, Id, Order, Outcome, Retry, Running, Slot, Target, Workflow,
};

/// A workflow that does what the test says.
struct Scripted(Box<dyn FnMut(Event, &mut Actions) + Send>);

impl Workflow for Scripted {
    fn step(&mut self, _: Millis, event: Event, out: &mut Actions) {
        (self.0)(event, out);
    }
    fn document(&self) -> Option<DocBuf> {
        Some(doc! { "_id": 1 }.to_raw())
    }
    fn check(&self) {}
}

struct Bench {
    running: Running,
    orders: Vec<Order>,
}

impl Bench {
    fn new(home: Home, script: impl FnMut(Event, &mut Actions) + Send + 'static) -> Bench {
        let workflow: Box<dyn Workflow> = Box::new(Scripted(Box::new(script)));
        let running = Running::new(workflow, home);
        let mut b = Bench { running, orders: Vec::new() };
        b.running.begin(0, &mut b.orders);
        b
    }
    /// What is to be carried out since the last time.
    fn carried(&mut self) -> Vec<(Id, Action, Millis)> {
        let carried = self.orders.iter().filter_map(|o| match o {
            Order::Carry { id, action, after_ms } => Some((*id, action.clone(), *after_ms)),
            _ => None,
        });
        let carried = carried.collect();
        self.orders.clear();
        carried
    }
    fn answer(&mut self, id: Id, said: Result<Outcome, ErrorCode>) {
        let said = said.map_err(|code| Error::new(code, "scripted"));
        self.running.answer(0, id, said, &mut self.orders);
    }
    fn ended(&self) -> Option<bool> {
        self.orders.iter().find_map(|o| match o {
            Order::End(result) => Some(result.is_ok()),
            _ => None,
        })
    }
}

fn call(out: &mut Actions, slot: Slot) {
    let to = Target::Host(format!("h{slot}:1"));
    out.call(slot, to, doc! { "ping": 1 }.to_raw(), Retry::Transient);
}
fn reply() -> Result<Outcome, ErrorCode> {
    Ok(Outcome::Reply(doc! { "ok": 1 }.to_raw()))
}

#[test]
fn an_answer_counts_for_the_last_attempt_and_once() {
    let mut heard = 0;
    let mut b = Bench::new(Home::Command, move |event, out| match event {
        Event::Begin => call(out, 3),
        Event::Answer { slot: 3, reply: Ok(_) } => {
            heard += 1;
            assert_eq!(heard, 1);
            out.rest(3, 7);
        }
        other => panic!("{other:?}"),
    });
    let first = b.carried()[0].0;
    b.answer(first, Err(ErrorCode::NetworkTimeout));
    let again = b.carried();
    let (second, _, after_ms) = again[0].clone();
    assert!(second.slot == 3 && second.attempt > first.attempt && after_ms > 0);
    b.answer(first, reply());
    assert!(b.orders.is_empty(), "late: {:?}", b.orders);
    b.answer(second, reply());
    assert_eq!(b.carried().len(), 1);
    b.answer(second, reply());
    assert!(b.orders.is_empty(), "doubled: {:?}", b.orders);
    b.answer(Id { slot: 99, attempt: 1 }, reply());
    assert!(b.orders.is_empty(), "unknown: {:?}", b.orders);
}

#[test]
fn a_definition_of_five_thousand_shards_calls_all_of_them_at_once() {
    const SHARDS: u32 = 5000;
    let mut left = SHARDS;
    let mut b = Bench::new(Home::Command, move |event, out| match event {
        Event::Begin => (0..SHARDS).for_each(|slot| call(out, slot)),
        Event::Answer { reply, .. } => {
            left -= 1;
            if left == 0 {
                out.done(reply);
            }
        }
        other => panic!("{other:?}"),
    });
    let calls = b.carried();
    assert_eq!(calls.len() as u32, SHARDS);
    calls.into_iter().for_each(|(id, ..)| b.answer(id, reply()));
    assert_eq!(b.ended(), Some(true));
}

#[test]
fn calls_to_several_nodes_are_under_way_at_once_and_the_end_cancels_what_is_left() {
    let mut b = Bench::new(Home::Command, |event, out| match event {
        Event::Begin => (0..3).for_each(|slot| call(out, slot)),
        Event::Answer { reply, .. } => out.done(reply),
        other => panic!("{other:?}"),
    });
    let calls = b.carried();
    assert_eq!(calls.len(), 3);
    b.answer(calls[1].0, reply());
    let cancelled: Vec<Slot> = b
        .orders
        .iter()
        .filter_map(|o| match o {
            Order::Cancel(id) => Some(id.slot),
            _ => None,
        })
        .collect();
    assert_eq!((cancelled, b.ended()), (vec![0, 2], Some(true)));
    b.orders.clear();
    b.answer(calls[0].0, reply());
    b.running.abort(0, Error::internal("late"), &mut b.orders);
    assert!(b.orders.is_empty() && b.running.is_over(), "{:?}", b.orders);
}

#[test]
fn an_instance_ends_when_its_document_is_gone() {
    let mut b = Bench::new(Home::Primary, |event, out| match event {
        Event::Begin => out.checkpoint(),
        Event::Durable => out.done(Ok(doc! { "n": 1 }.to_raw())),
        other => panic!("{other:?}"),
    });
    let checkpoint = b.carried()[0].clone();
    assert_eq!(checkpoint.1, Action::Checkpoint(doc! { "_id": 1 }.to_raw()));
    b.answer(checkpoint.0, Ok(Outcome::Done));
    assert_eq!(b.ended(), None);
    let forget = b.carried()[0].clone();
    assert_eq!(forget.1, Action::Forget);
    b.answer(forget.0, Err(ErrorCode::OutOfDiskSpace));
    let again = b.carried()[0].0;
    b.answer(again, Ok(Outcome::Done));
    assert_eq!(b.ended(), Some(true));
}

#[test]
fn an_instance_is_over_here_when_its_node_is_primary_no_more() {
    let mut b = Bench::new(Home::Primary, |event, out| match event {
        Event::Begin => out.checkpoint(),
        other => panic!("{other:?}"),
    });
    let id = b.carried()[0].0;
    b.answer(id, Err(ErrorCode::NotWritablePrimary));
    assert!(matches!(b.orders[..], [Order::Abandon(_)]), "{:?}", b.orders);
    assert!(b.running.is_over());
}

#[test]
#[should_panic(expected = "before the checkpoint is safe")]
fn nothing_begins_while_a_checkpoint_is_on_its_way() {
    Bench::new(Home::Primary, |_, out| {
        out.checkpoint();
        call(out, 0);
    });
}

#[test]
#[should_panic(expected = "the first action is no checkpoint")]
fn an_instance_begins_with_a_checkpoint() {
    Bench::new(Home::Primary, |_, out| call(out, 0));
}

#[test]
#[should_panic(expected = "slot 4 is in use")]
fn a_slot_holds_one_action() {
    Bench::new(Home::Command, |_, out| {
        call(out, 4);
        call(out, 4);
    });
}
