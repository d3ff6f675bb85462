//! `setFeatureCompatibilityVersion` of a cluster, straight and through every accident.

use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_workflows::feature_version::{ADVANCE, OPERATION, begin, mutants};
use pando_workflows::kit::{Fault, Kit, Story, World, notice};
use pando_workflows::{Home, Resource, Target, Workflow, configsvr};
use std::cell::RefCell;
use std::rc::Rc;

const SHARDS: [&str; 3] = ["s1", "s2", "s3"];

/// What refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Mood {
    #[default]
    Willing,
    /// The second shard is removed before it is told anything, or between the phases.
    Gone,
    GoneInBetween,
    /// It does not know the version.
    Unwilling,
    /// This node stops at the end.
    NodeRefuses,
}

/// How far a node is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
enum At {
    #[default]
    Old,
    Between,
    New,
}

impl At {
    fn hear(&mut self, body: &RawDoc) {
        let complete = body.get("phase").and_then(|v| v.as_str().map(|phase| phase == "complete"));
        *self = (*self).max(if complete.expect("a phase") { At::New } else { At::Between });
    }
}

#[derive(Default)]
struct Model {
    mood: Mood,
    shards: [At; 3],
    newest: [Timestamp; 3],
    config: At,
    asked: u32,
    looks: u32,
    wrong: Option<String>,
}

type Shared = Rc<RefCell<Model>>;

fn refuse(code: ErrorCode) -> Result<DocBuf> {
    Err(Error::new(code, "the model refuses"))
}
fn number(body: &RawDoc) -> Option<Timestamp> {
    match body.get("changeTimestamp") {
        Some(Value::Timestamp(at)) => Some(at),
        _ => None,
    }
}

impl Model {
    fn hear(&mut self, to: &Target, body: &RawDoc) -> Result<DocBuf> {
        let first = body.first().expect("a command");
        match (to, first.name()) {
            (Target::Own, configsvr::LOOK) => Ok(self.look()),
            (Target::Own, ADVANCE) => {
                if self.mood == Mood::NodeRefuses && self.config == At::Between {
                    return refuse(ErrorCode::InternalError);
                }
                self.config.hear(body);
                self.judge();
                Ok(DocBuf::default())
            }
            (Target::Shard(name), OPERATION) => {
                let i = SHARDS.iter().position(|s| s == name).expect("a shard");
                self.shard(i, body)
            }
            other => panic!("nobody knows {other:?}"),
        }
    }
    /// What no majority has seen of a log is gone with its primary, and the next one may be behind.
    fn look(&mut self) -> DocBuf {
        self.looks += 1;
        let mut b = DocBuilder::new();
        b.timestamp("timestamp", Timestamp::new(500 - self.looks, 1));
        b.array("shards", |list| SHARDS.iter().for_each(|s| _ = list.str(s)));
        b.finish()
    }
    fn is_gone(&self, i: usize) -> bool {
        i == 1 && (self.mood == Mood::Gone || self.mood == Mood::GoneInBetween && self.asked > 1)
    }
    fn shard(&mut self, i: usize, body: &RawDoc) -> Result<DocBuf> {
        self.asked += u32::from(i == 1);
        if self.is_gone(i) {
            return refuse(ErrorCode::ShardNotFound);
        }
        if self.mood == Mood::Unwilling && i == 1 {
            return refuse(ErrorCode::BadValue);
        }
        if let Some(at) = number(body) {
            if self.newest[i] > at {
                return refuse(ErrorCode::TransactionTooOld);
            }
            self.newest[i] = at;
        }
        self.shards[i].hear(body);
        self.judge();
        Ok(DocBuf::default())
    }
    fn there(&self) -> Vec<At> {
        (0..3).filter(|i| !self.is_gone(*i)).map(|i| self.shards[i]).collect()
    }
    /// Of two nodes none uses what the other does not know, and a shard that is added is told what all know.
    fn judge(&mut self) {
        let all = self.there();
        let (least, most) = (all.iter().min().copied(), all.iter().max().copied());
        if least == Some(At::Old) && most == Some(At::New) {
            self.wrong = Some("a shard uses what another one does not know".into());
        }
        if self.config == At::Old && most > Some(At::Old) || self.config == At::New && least < Some(At::New) {
            self.wrong = Some("this node is not the first to begin and the last to end".into());
        }
    }
}

/// What must be true of each run, however it went.
fn end(story: &Story, model: &Shared) -> Result<(), String> {
    if let Some(wrong) = model.borrow().wrong.clone() {
        return Err(wrong);
    }
    let told = story.world.calls.iter().filter(|c| matches!(c.to, Target::Shard(_)));
    if told.clone().any(|c| !c.locked.contains(&Resource::Membership)) {
        return Err("a shard could be added that nobody tells".into());
    }
    if told.clone().any(|c| number(&c.body) != told.clone().next().and_then(|first| number(&first.body))) {
        return Err("attempts are taken for different operations".into());
    }
    {
        let m = model.borrow();
        let is_done = m.config == At::New && m.there().iter().all(|at| *at == At::New);
        let may_fail = matches!(
            story.plan.fault,
            Fault::Failed { .. } | Fault::FailedEver { .. } | Fault::Lost { .. } | Fault::Late { .. }
        );
        match (m.mood, story.last()) {
            (_, None) if story.ended_unheard() => {}
            (Mood::Unwilling | Mood::NodeRefuses, Some(Err(_))) if !is_done => {}
            (_, Some(Err(_))) if may_fail => {}
            (Mood::Willing | Mood::Gone | Mood::GoneInBetween, Some(Ok(_))) if is_done => {}
            (mood, other) => return Err(format!("{mood:?}, {is_done}: {other:?}")),
        }
    }
    come_again(story, model)
}

/// Whatever was ever sent to shards arrives once more when it has been made undone.
fn come_again(story: &Story, model: &Shared) -> Result<(), String> {
    let m = &mut *model.borrow_mut();
    m.mood = Mood::Willing;
    m.newest = [Timestamp::new(901, 1); 3];
    m.shards = [At::Old; 3];
    for call in story.world.calls.iter().filter(|c| c.to != Target::Own) {
        let _ = m.hear(&call.to, &call.body);
    }
    match m.shards == [At::Old; 3] {
        true => Ok(()),
        false => Err("a command that comes late has an effect".into()),
    }
}

fn every_run() -> Result<usize, String> {
    let mut runs = 0;
    for mood in [Mood::Willing, Mood::Gone, Mood::GoneInBetween, Mood::Unwilling, Mood::NodeRefuses] {
        let model: RefCell<Shared> = RefCell::default();
        let world = || {
            let new: Shared = Rc::new(RefCell::new(Model { mood, ..Model::default() }));
            *model.borrow_mut() = new.clone();
            World::with_peers(Box::new(move |to, body| new.borrow_mut().hear(to, body)))
        };
        let make = || -> Box<dyn Workflow> { configsvr::restore(&begin("7.0")).expect("a state") };
        let kit = Kit {
            home: Home::Primary,
            make: &make,
            restore: Some(configsvr::restore),
            world: &world,
            end: &|story| end(story, &model.borrow()),
            orders: 3,
        };
        runs += kit.run_all().map_err(|e| format!("{mood:?}: {e}"))?;
    }
    Ok(runs)
}

#[test]
fn no_node_of_a_cluster_uses_features_that_another_does_not_know_whatever_happens() {
    let runs = every_run().unwrap();
    println!("{runs} runs");
    assert!(runs > 2000, "{runs} runs only");
}

#[test]
fn every_broken_rule_of_the_feature_version_is_noticed() {
    for (mutant, noticed) in notice(mutants::Mutant::ALL, mutants::activate, every_run) {
        println!("{mutant:?}: {}", noticed.as_deref().unwrap_or("-"));
        assert!(noticed.is_some(), "nobody notices {mutant:?}");
    }
}
