//! The demo workflow: counts to a target, one document of `config.demoTally` for each number.
//!
//! ```text
//!   held ──nudge──► counting 1, 2 … target ──► summing up ──► done: { counted, sum }
//! ```
//! State document (`config.demoWorkflows`): `{_id, phase, target, restMillis, count, sum}`. Whoever asks for an `_id` that
//! runs joins it, whatever else is asked for.

pub mod mutants;

use crate::{Actions, Event, LocalWrite, Retry, Slot, Workflow};
use mutants::{Mutant, broken};
use pando_base::{Error, Millis, Namespace, Result};
use pando_bson::{Bson, DocBuf, DocBuilder, RawDoc, doc};

pub const NAME: &str = "DemoWorkflowService";
pub const COLLECTION: &str = "demoWorkflows";
pub const TALLY: &str = "demoTally";

/// One thing after the other: one slot.
const SLOT: Slot = 0;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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

#[derive(Clone, Debug)]
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
    Demo { id: id.clone(), phase, target, rest_ms, count: 0, sum: 0 }.state()
}

pub fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    let int = |name: &str| state.get(name).and_then(|v| v.as_i64());
    let phase = state.get("phase").and_then(|v| v.as_str());
    let phase = Phase::ALL.iter().find(|(_, text)| phase == Some(text)).map(|(p, _)| *p);
    let id = state.elem("_id").map(|e| Bson::from(e.value()));
    let (Some(id), Some(phase), Some(target)) = (id, phase, int("target")) else {
        return Err(Error::bad_value(format!("not a state of the demo workflow: {state}")));
    };
    let number = |name: &str| int(name).unwrap_or(0);
    let phase = if broken(Mutant::NobodyIsHeld) { Phase::Counting.max(phase) } else { phase };
    Ok(Box::new(Demo {
        id,
        phase,
        target,
        rest_ms: if broken(Mutant::RestForgotten) { 0 } else { number("restMillis") },
        count: number("count"),
        sum: if broken(Mutant::SumForgotten) { 0 } else { number("sum") },
    }))
}

/// Of a state document, what two starts must agree on to be one.
pub fn options(_: &RawDoc) -> DocBuf {
    DocBuf::default()
}

impl Demo {
    fn state(&self) -> DocBuf {
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
    fn tally(&self, now: Millis, out: &mut Actions) {
        let n = self.count + 1;
        let mut id = doc! {};
        id.push("workflow", self.id.clone());
        id.push("n", n);
        if broken(Mutant::TallyNamedByTime) {
            id.push("at", now);
        }
        let mut b = DocBuilder::new();
        b.raw_doc("_id", &id.to_raw());
        let put = LocalWrite::Put { ns: Namespace::unchecked("config", TALLY), doc: b.finish() };
        out.write(SLOT, vec![put], Retry::Always);
    }
    /// Where a phase begins, be it here or after a failover.
    fn resume(&self, now: Millis, out: &mut Actions) {
        match self.phase {
            Phase::Held => out.await_nudge(SLOT),
            Phase::Counting if self.count < self.target && self.rest_ms > 0 => out.rest(SLOT, self.rest_ms),
            Phase::Counting => self.tally(now, out),
            Phase::SummingUp => {
                out.done(Ok(doc! { "counted": self.count, "sum": self.sum }.to_raw()));
            }
        }
    }
    fn counted(&mut self) {
        self.count += 1;
        self.sum += self.count;
        let last = if broken(Mutant::StopsOneEarly) { self.target - 1 } else { self.target };
        if self.count >= last {
            self.phase = Phase::SummingUp;
        }
    }
}

impl Workflow for Demo {
    fn step(&mut self, now: Millis, event: Event, out: &mut Actions) {
        match event {
            Event::Begin => {
                if broken(Mutant::WritesFirst) && self.phase == Phase::Counting {
                    self.tally(now, out);
                }
                out.checkpoint();
            }
            Event::Durable => self.resume(now, out),
            Event::Nudged { .. } => {
                self.phase = Phase::Counting;
                out.checkpoint();
            }
            Event::Rested { .. } if broken(Mutant::CountsBeforeItWrites) => {
                self.counted();
                out.checkpoint();
            }
            Event::Rested { .. } => self.tally(now, out),
            Event::Wrote { .. } => {
                self.counted();
                out.checkpoint();
            }
            // Nobody takes it back: it ends soon by itself.
            Event::Abort(why) if broken(Mutant::AbortedMidway) => out.done(Err(why)),
            _ => {}
        }
    }
    fn document(&self) -> Option<DocBuf> {
        Some(self.state())
    }
    fn check(&self) {
        assert!(self.count <= self.target.max(1), "counted beyond the target");
        assert_eq!(self.sum, self.count * (self.count + 1) / 2, "the sum is not that of what was counted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_makes_no_sense_is_refused() {
        assert!(restore(&doc! { "_id": 1, "phase": "dancing", "target": 3 }.to_raw()).is_err());
        assert!(restore(&doc! { "phase": "held", "target": 3 }.to_raw()).is_err());
    }
}
