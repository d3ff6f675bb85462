//! A workflow that asks several nodes at once, made for this test: what the machine layer and the kit promise about calls,
//! randomness and the end. Rules of the layer, and of this workflow, are broken one by one; each is noticed.

use pando_base::{ErrorCode, Millis, Result, limits};
use pando_bson::{DocBuf, RawDoc, doc};
use pando_workflows::kit::{Fault, Kit, Story, World, notice};
use pando_workflows::{Actions, Event, Home, Retry, Slot, Target, Workflow, mutants};
use std::cell::Cell;
use std::collections::BTreeMap;

const HOSTS: [&str; 3] = ["a:1", "b:1", "c:1"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Broken {
    /// All but one answer are enough.
    OneIsMissing,
    /// Who is told is not safe before it is told.
    ChoiceNotSafe,
    /// A host that does not answer counts as one with nothing.
    SilenceIsNothing,
    /// It can be stopped when somebody has been told.
    StoppedWhenTold,
    /// One host after the other is asked under one slot.
    OneSlot,
    /// The calls that nobody waits for any more are not what ends it.
    EndsTwice,
    /// What was heard is forgotten in the state document.
    SumUnwritten,
}
const ALL: &[Broken] = &[
    Broken::OneIsMissing,
    Broken::ChoiceNotSafe,
    Broken::SilenceIsNothing,
    Broken::StoppedWhenTold,
    Broken::OneSlot,
    Broken::EndsTwice,
    Broken::SumUnwritten,
];
thread_local! {
    static ACTIVE: Cell<Option<Broken>> = const { Cell::new(None) };
}
fn activate(broken: Option<Broken>) {
    ACTIVE.set(broken);
}
fn broken(rule: Broken) -> bool {
    ACTIVE.get() == Some(rule)
}

/// Asks every host for a number, draws one of them, and tells it the sum.
#[derive(Default)]
struct Survey {
    /// `(number, which call it was)` of each host.
    heard: BTreeMap<Slot, (i64, i64)>,
    /// What is told: to whom, the sum, the sum of the calls' numbers.
    telling: Option<(i64, i64, i64)>,
    over: bool,
}

fn restore(state: &RawDoc) -> Result<Box<dyn Workflow>> {
    let int = |name: &str| state.get(name).and_then(|v| v.as_i64());
    let telling = int("host").map(|host| (host, int("sum").unwrap_or(0), int("calls").unwrap_or(0)));
    Ok(Box::new(Survey { telling, ..Survey::default() }))
}

impl Survey {
    fn resume(&self, out: &mut Actions) {
        match self.telling {
            Some((host, sum, _)) => {
                let to = Target::Host(HOSTS[host as usize].into());
                out.call(0, to, doc! { "told": sum }.to_raw(), Retry::Always);
            }
            None => {
                for (i, host) in HOSTS.iter().enumerate() {
                    let slot = if broken(Broken::OneSlot) { 0 } else { i as Slot };
                    let to = Target::Host((*host).into());
                    out.call(slot, to, doc! { "number": 1 }.to_raw(), Retry::Transient);
                }
            }
        }
    }
    fn heard(&mut self, slot: Slot, reply: &RawDoc, out: &mut Actions) {
        let int = |name: &str| reply.get(name).and_then(|v| v.as_i64()).unwrap_or(0);
        self.heard.insert(slot, (int("n"), int("call")));
        let enough = HOSTS.len() - usize::from(broken(Broken::OneIsMissing));
        if self.heard.len() == enough {
            out.draw(9);
        }
    }
    fn end(&mut self, result: Result<DocBuf>, out: &mut Actions) {
        self.over = true;
        if broken(Broken::EndsTwice) {
            out.done(result.clone());
        }
        out.done(result);
    }
}

impl Workflow for Survey {
    fn step(&mut self, _: Millis, event: Event, out: &mut Actions) {
        assert!(!self.over, "it hears something behind its end: {event:?}");
        match event {
            Event::Begin => out.checkpoint(),
            Event::Durable => self.resume(out),
            Event::Answer { reply: Ok(_), .. } if self.telling.is_some() => {
                let (_, sum, calls) = self.telling.unwrap_or_default();
                self.end(Ok(doc! { "sum": sum, "calls": calls }.to_raw()), out);
            }
            Event::Answer { slot, reply: Ok(reply) } => self.heard(slot, &reply, out),
            Event::Answer { slot, reply: Err(_) } if broken(Broken::SilenceIsNothing) => {
                self.heard(slot, RawDoc::empty(), out);
            }
            Event::Answer { reply: Err(why), .. } => self.end(Err(why), out),
            Event::Random { number, .. } => {
                let sums = self.heard.values().fold((0, 0), |sum, h| (sum.0 + h.0, sum.1 + h.1));
                self.telling = Some((number as i64 % HOSTS.len() as i64, sums.0, sums.1));
                match broken(Broken::ChoiceNotSafe) {
                    true => self.resume(out),
                    false => out.checkpoint(),
                }
            }
            Event::Abort(why) if self.telling.is_none() || broken(Broken::StoppedWhenTold) => {
                self.end(Err(why), out);
            }
            _ => {}
        }
    }
    fn document(&self) -> Option<DocBuf> {
        Some(match self.telling {
            None => doc! { "_id": 1 }.to_raw(),
            Some((host, _, calls)) if broken(Broken::SumUnwritten) => {
                doc! { "_id": 1, "host": host, "calls": calls }.to_raw()
            }
            Some((host, sum, calls)) => doc! { "_id": 1, "host": host, "sum": sum, "calls": calls }.to_raw(),
        })
    }
    fn check(&self) {
        assert!(self.heard.len() <= HOSTS.len());
    }
}

/// Every host has a number, and numbers the calls that it answers.
fn world() -> World {
    let mut calls = BTreeMap::new();
    World::with_peers(Box::new(move |to, body| {
        let Target::Host(host) = to else { panic!("nobody knows {to:?}") };
        let n = HOSTS.iter().position(|h| h == host).unwrap_or_default() as i64 + 1;
        let call = calls.entry(host.clone()).or_insert(0i64);
        *call += i64::from(body.get("number").is_some());
        Ok(doc! { "n": n, "call": *call }.to_raw())
    }))
}

fn end(story: &Story) -> Result<(), String> {
    let w = &story.world;
    let of =
        |host: &str| w.calls.iter().filter(move |c| c.to == Target::Host(host.into())).collect::<Vec<_>>();
    let told = |host: &&str| of(host).iter().any(|c| c.ok && c.body.get("told").is_some());
    let told: Vec<&str> = HOSTS.iter().copied().filter(|h| told(h)).collect();
    let asked =
        |host: &&str| of(host).iter().filter(|c| c.ok && c.body.get("number").is_some()).count() as i64;
    let asked: i64 = HOSTS.iter().map(asked).sum();
    if told.len() > 1 {
        return Err(format!("several are told: {told:?}"));
    }
    for host in HOSTS {
        let pause = limits::WORKFLOW_RETRY_MS as Millis;
        let hasty = |c: &[&pando_workflows::kit::Heard]| !c[0].ok && c[1].at_ms < c[0].at_ms + pause;
        if of(host).windows(2).any(hasty) {
            return Err(format!("{host} is asked again at once"));
        }
    }
    let refused = w.calls.iter().any(|c| !c.ok && c.body.get("number").is_some());
    // What one more call would mend is no reason to fail.
    let must_fail = match story.plan.fault {
        Fault::Failed { code: ErrorCode::BadValue, .. } => refused,
        Fault::FailedEver { code: ErrorCode::HostUnreachable | ErrorCode::BadValue, .. } => refused,
        Fault::Abort { .. } => told.is_empty() && story.first().is_some_and(|r| r.is_err()),
        _ => false,
    };
    match story.last() {
        Some(Err(_)) if !told.is_empty() => Err("one is told, and it fails".into()),
        Some(Err(_)) if must_fail => Ok(()),
        Some(Err(_)) if refused && story.plan.fault.is_lasting() => Ok(()),
        Some(Ok(_)) if must_fail => Err("it does not hear of a failure".into()),
        Some(Ok(r)) => result(story, r, asked),
        None if story.ended_unheard() => Ok(()),
        other => Err(format!("{other:?}")),
    }?;
    let office_lost = |code| code == ErrorCode::NotWritablePrimary || code == ErrorCode::ShutdownInProgress;
    match story.plan.fault {
        // The first action is a checkpoint.
        Fault::Failed { at: 0, code } if office_lost(code) && story.lives < 2 => {
            Err("it goes on on a node that is primary no more".into())
        }
        _ => Ok(()),
    }
}

fn result(story: &Story, result: &DocBuf, asked: i64) -> Result<(), String> {
    let int = |name: &str| result.get(name).and_then(|v| v.as_i64());
    if int("sum") != Some(6) {
        return Err(format!("another sum: {result}"));
    }
    // Of each host the last answer is used; not so where each call is made twice, or in several lives.
    let one_life = story.lives == 1 && !matches!(story.plan.fault, Fault::Twice { .. });
    if one_life && int("calls") != Some(asked) {
        return Err(format!("an answer that came late is used: {result}, {asked} calls"));
    }
    Ok(())
}

fn every_run() -> Result<usize, String> {
    let kit = Kit {
        home: Home::Primary,
        make: &|| Box::<Survey>::default(),
        restore: Some(restore),
        world: &world,
        end: &end,
        orders: 4,
    };
    kit.run_all()
}

#[test]
fn whatever_the_network_does_one_host_is_told_the_sum_or_nobody() {
    let runs = every_run().unwrap();
    println!("{runs} runs");
    assert!(runs > 500, "{runs} runs only");
}

#[test]
fn every_broken_rule_of_the_survey_is_noticed() {
    for (mutant, noticed) in notice(ALL, activate, every_run) {
        println!("{mutant:?}: {}", noticed.as_deref().unwrap_or("-"));
        assert!(noticed.is_some(), "nobody notices {mutant:?}");
    }
}

#[test]
fn every_broken_rule_of_the_machine_layer_is_noticed() {
    for (mutant, noticed) in notice(mutants::Mutant::ALL, mutants::activate, every_run) {
        println!("{mutant:?}: {}", noticed.as_deref().unwrap_or("-"));
        assert!(noticed.is_some(), "nobody notices {mutant:?}");
    }
}
