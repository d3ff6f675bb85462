//! The tests that every workflow passes: straight through, each action twice, a crash behind each action.

use super::machine::{Action, Event, Machine, Restore};
use pando_bson::DocBuf;
use std::collections::BTreeSet;

pub(crate) struct Kit {
    pub(crate) start: DocBuf,
    pub(crate) restore: Restore,
    /// What it must answer.
    pub(crate) result: DocBuf,
    /// Documents it must leave behind.
    pub(crate) documents: usize,
}

/// The world of one run.
struct World<'a> {
    kit: &'a Kit,
    durable: DocBuf,
    put: BTreeSet<Vec<u8>>,
}

impl World<'_> {
    fn machine(&self) -> Box<dyn Machine> {
        (self.kit.restore)(&self.durable).unwrap()
    }
    /// Carries an action out: what happened, or the result.
    fn carry_out(&mut self, action: &Action) -> Result<Event, DocBuf> {
        Ok(match action {
            Action::Checkpoint(doc) => {
                self.durable = doc.clone();
                Event::Durable
            }
            Action::Put { doc, .. } => {
                self.put.insert(doc.as_bytes().to_vec());
                Event::Put
            }
            Action::Rest(_) => Event::Rested,
            Action::AwaitNudge => Event::Nudged,
            Action::Done(result) => return Err(result.clone()),
        })
    }
}

impl Kit {
    /// Runs to the end; `again` repeats each action, `crash_at` loses all but the last checkpoint after that many.
    pub(crate) fn run(&self, again: bool, crash_at: Option<usize>) -> usize {
        let mut w = World { kit: self, durable: self.start.clone(), put: BTreeSet::new() };
        let mut machine = w.machine();
        let mut event = Event::Begin;
        for step in 0..10_000 {
            let action = machine.step(event);
            assert!(step > 0 || matches!(action, Action::Checkpoint(_)), "the first action is a checkpoint");
            if again {
                let _ = w.carry_out(&action);
            }
            match w.carry_out(&action) {
                Ok(_) if crash_at == Some(step) => {
                    machine = w.machine();
                    event = Event::Begin;
                }
                Ok(next) => event = next,
                Err(result) => {
                    assert_eq!(result.to_string(), self.result.to_string());
                    assert_eq!(w.put.len(), self.documents);
                    return step;
                }
            }
        }
        panic!("it does not end");
    }
}

macro_rules! workflow_tests {
    ($($name:ident: $kit:expr),*) => {$(
        mod $name {
            #[test]
            fn goes_to_the_end() {
                super::super::tests::$name().run(false, None);
            }
            #[test]
            fn bears_every_action_twice() {
                super::super::tests::$name().run(true, None);
            }
            #[test]
            fn resumes_after_a_crash_behind_any_action() {
                let steps = super::super::tests::$name().run(false, None);
                for at in 0..steps {
                    super::super::tests::$name().run(false, Some(at));
                }
            }
        }
        fn $name() -> Kit {
            $kit
        }
    )*};
}
pub(crate) use workflow_tests;
