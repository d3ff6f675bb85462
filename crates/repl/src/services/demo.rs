//! The demo workflow: counts to a target, one document of `config.demoTally` for each number.
//!
//! ```text
//!   held ──nudge──► counting 1, 2 … target ──► summing up ──► done: { counted, sum }
//! ```
//! State document (`config.demoWorkflows`): `{_id, phase, target, restMillis, count, sum}`.

use super::machine::{Action, Event, Machine};
use pando_base::{Error, Millis, Result};
use pando_bson::{Bson, DocBuf, DocBuilder, RawDoc, doc};

pub const NAME: &str = "DemoWorkflowService";
pub const COLLECTION: &str = "demoWorkflows";
pub const TALLY: &str = "demoTally";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Phase {
    /// Waits for a nudge before it begins.
    Held,
    Counting,
    /// Everything is counted.
    SummingUp,
}

impl Phase {
    const ALL: [(Phase, &str); 3] =
        [(Phase::Held, "held"), (Phase::Counting, "counting"), (Phase::SummingUp, "summingUp")];
    fn text(self) -> &'static str {
        Phase::ALL.iter().find(|(p, _)| *p == self).map_or("", |(_, text)| text)
    }
}

struct Demo {
    id: Bson,
    phase: Phase,
    target: i64,
    rest_ms: Millis,
    /// Numbers counted, on a majority with the last checkpoint.
    count: i64,
    sum: i64,
}

/// What an instance starts from.
pub fn begin(id: &Bson, target: i64, rest_ms: Millis, held: bool) -> DocBuf {
    let phase = if held { Phase::Held } else { Phase::Counting };
    Demo { id: id.clone(), phase, target, rest_ms, count: 0, sum: 0 }.document()
}

pub fn restore(state: &RawDoc) -> Result<Box<dyn Machine>> {
    let int = |name: &str| state.get(name).and_then(|v| v.as_i64());
    let phase = state.get("phase").and_then(|v| v.as_str());
    let phase = Phase::ALL.iter().find(|(_, text)| phase == Some(text)).map(|(p, _)| *p);
    let id = state.elem("_id").map(|e| Bson::from(e.value()));
    let (Some(id), Some(phase), Some(target)) = (id, phase, int("target")) else {
        return Err(Error::bad_value(format!("not a state of the demo workflow: {state}")));
    };
    let number = |name: &str| int(name).unwrap_or(0);
    Ok(Box::new(Demo {
        id,
        phase,
        target,
        rest_ms: number("restMillis"),
        count: number("count"),
        sum: number("sum"),
    }))
}

impl Demo {
    fn document(&self) -> DocBuf {
        let mut d = doc! {};
        d.push("_id", self.id.clone());
        d.push("phase", self.phase.text());
        d.push("target", self.target);
        d.push("restMillis", self.rest_ms);
        d.push("count", self.count);
        d.push("sum", self.sum);
        d.to_raw()
    }
    /// The next number's document: the same however often it is put.
    fn tally(&self) -> Action {
        let n = self.count + 1;
        let mut id = doc! {};
        id.push("workflow", self.id.clone());
        id.push("n", n);
        let mut b = DocBuilder::new();
        b.raw_doc("_id", &id.to_raw());
        Action::Put { db: "config", collection: TALLY, doc: b.finish() }
    }
    /// Where a phase begins, be it here or after a failover.
    fn resume(&self) -> Action {
        match self.phase {
            Phase::Held => Action::AwaitNudge,
            Phase::Counting if self.count < self.target && self.rest_ms > 0 => Action::Rest(self.rest_ms),
            Phase::Counting => self.tally(),
            Phase::SummingUp => Action::Done(doc! { "counted": self.count, "sum": self.sum }.to_raw()),
        }
    }
}

impl Machine for Demo {
    fn step(&mut self, event: Event) -> Action {
        match event {
            Event::Begin => Action::Checkpoint(self.document()),
            Event::Durable => self.resume(),
            Event::Nudged => {
                self.phase = Phase::Counting;
                Action::Checkpoint(self.document())
            }
            Event::Rested => self.tally(),
            Event::Put => {
                self.count += 1;
                self.sum += self.count;
                if self.count >= self.target {
                    self.phase = Phase::SummingUp;
                }
                Action::Checkpoint(self.document())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::kit::{Kit, workflow_tests};

    fn kit(held: bool) -> Kit {
        Kit {
            start: begin(&Bson::Int32(7), 4, if held { 5 } else { 0 }, held),
            restore,
            result: doc! { "counted": 4i64, "sum": 10i64 }.to_raw(),
            // One document for each number, none twice.
            documents: 4,
        }
    }
    workflow_tests! { held: kit(true), at_once: kit(false) }

    #[test]
    fn a_state_that_makes_no_sense_is_refused() {
        assert!(restore(&doc! { "_id": 1, "phase": "dancing", "target": 3 }.to_raw()).is_err());
        assert!(restore(&doc! { "phase": "held", "target": 3 }.to_raw()).is_err());
    }
}
