//! `setUserWriteBlockMode` of a cluster, straight and through every accident.

use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_workflows::kit::{Kit, Story, World, notice};
use pando_workflows::user_writes::{COMMAND, KEEP, begin, mutants};
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
    /// It says no to what it is told first.
    Unwilling,
}

/// One node, be it a shard or the config servers: whether definitions, and writes, of users are blocked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Node {
    definitions: bool,
    writes: bool,
    newest: Timestamp,
}

impl Node {
    fn hear(&mut self, body: &RawDoc) {
        let block = body.get("global").and_then(|v| v.as_bool()).expect("what is asked for");
        let complete = body.get("phase").and_then(|v| v.as_str().map(|phase| phase == "complete"));
        match (block, complete.expect("a phase")) {
            (true, false) => self.definitions = true,
            (true, true) => (self.definitions, self.writes) = (true, true),
            (false, false) => self.writes = false,
            (false, true) => (self.definitions, self.writes) = (false, false),
        }
    }
    fn blocks(&self) -> (bool, bool) {
        (self.definitions, self.writes)
    }
}

#[derive(Default)]
struct Model {
    mood: Mood,
    shards: [Node; 3],
    config: Node,
    /// How often the second shard was told something.
    asked: u32,
    looks: u32,
    /// A definition that begins on one shard would meet another that refuses its writes.
    wrong: Option<String>,
}

type Shared = Rc<RefCell<Model>>;

fn refuse(code: ErrorCode) -> Result<DocBuf> {
    Err(Error::new(code, "the model refuses"))
}
fn number(body: &RawDoc) -> Option<Timestamp> {
    match body.get("timestamp") {
        Some(Value::Timestamp(at)) => Some(at),
        _ => None,
    }
}

impl Model {
    fn with(mood: Mood, blocked: bool) -> Model {
        let all = Node { definitions: blocked, writes: blocked, newest: Timestamp::ZERO };
        Model { mood, shards: [all; 3], config: all, ..Model::default() }
    }
    fn hear(&mut self, to: &Target, body: &RawDoc) -> Result<DocBuf> {
        let first = body.first().expect("a command");
        match (to, first.name()) {
            (Target::Own, configsvr::LOOK) => Ok(self.look()),
            (Target::Own, KEEP) => {
                self.config.hear(body);
                Ok(DocBuf::default())
            }
            (Target::Shard(name), COMMAND) => {
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
        if self.mood == Mood::Unwilling && i == 1 && self.asked < 3 {
            return refuse(ErrorCode::OutOfDiskSpace);
        }
        if let Some(at) = number(body) {
            if self.shards[i].newest > at {
                return refuse(ErrorCode::TransactionTooOld);
            }
            self.shards[i].newest = at;
        }
        self.shards[i].hear(body);
        let there = || (0..3).filter(|i| !self.is_gone(*i)).map(|i| self.shards[i]);
        if there().any(|s| s.writes) && there().any(|s| !s.definitions) {
            self.wrong = Some("a definition may begin while there is a shard that refuses its writes".into());
        }
        Ok(DocBuf::default())
    }
}

/// What must be true of each run, however it went.
fn end(story: &Story, model: &Shared, block: bool) -> Result<(), String> {
    let calls = &story.world.calls;
    if let Some(wrong) = model.borrow().wrong.clone() {
        return Err(wrong);
    }
    let told = calls.iter().filter(|c| matches!(c.to, Target::Shard(_)));
    if told.clone().any(|c| !c.locked.contains(&Resource::Membership)) {
        return Err("a shard could be added that nobody tells".into());
    }
    if told.clone().any(|c| number(&c.body) != told.clone().next().and_then(|first| number(&first.body))) {
        return Err("attempts are taken for different operations".into());
    }
    {
        let m = model.borrow();
        let there = (0..3).filter(|i| !m.is_gone(*i)).map(|i| m.shards[i]);
        if let Some(node) = there.chain([m.config]).find(|node| node.blocks() != (block, block)) {
            return Err(format!("it is over, and there is {node:?}"));
        }
    }
    match story.last() {
        Some(Ok(_)) => {}
        None if story.ended_unheard() => {}
        other => return Err(format!("{other:?}")),
    }
    come_again(story, model, block)
}

/// Whatever was ever sent to shards arrives once more behind the end, and when the opposite has been done.
fn come_again(story: &Story, model: &Shared, block: bool) -> Result<(), String> {
    let m = &mut *model.borrow_mut();
    for opposite in [false, true] {
        m.mood = Mood::Willing;
        if opposite {
            let newest = Timestamp::new(901, 1);
            m.shards = [Node { definitions: !block, writes: !block, newest }; 3];
        }
        let before: Vec<_> = m.shards.iter().map(Node::blocks).collect();
        for call in story.world.calls.iter().filter(|c| c.to != Target::Own) {
            let _ = m.hear(&call.to, &call.body);
        }
        // A shard that was removed is as it is.
        let told = |i: usize| opposite || before[i] == (block, block);
        if (0..3).any(|i| told(i) && m.shards[i].blocks() != before[i]) {
            return Err("a command that comes late has an effect".into());
        }
    }
    Ok(())
}

fn every_run() -> Result<usize, String> {
    let mut runs = 0;
    for (mood, block, before) in [
        (Mood::Willing, true, false),
        (Mood::Willing, false, true),
        (Mood::Willing, true, true),
        (Mood::Gone, true, false),
        (Mood::GoneInBetween, false, true),
        (Mood::Unwilling, true, false),
    ] {
        let model: RefCell<Shared> = RefCell::default();
        let world = || {
            let new: Shared = Rc::new(RefCell::new(Model::with(mood, before)));
            *model.borrow_mut() = new.clone();
            World::with_peers(Box::new(move |to, body| new.borrow_mut().hear(to, body)))
        };
        let make = || -> Box<dyn Workflow> { configsvr::restore(&begin(block)).expect("a state") };
        let kit = Kit {
            home: Home::Primary,
            make: &make,
            restore: Some(configsvr::restore),
            world: &world,
            end: &|story| end(story, &model.borrow(), block),
            orders: 3,
        };
        runs += kit.run_all().map_err(|e| format!("{mood:?}, {block}: {e}"))?;
    }
    Ok(runs)
}

#[test]
fn all_shards_block_the_writes_of_users_or_none_does_whatever_happens() {
    let runs = every_run().unwrap();
    println!("{runs} runs");
    assert!(runs > 2000, "{runs} runs only");
}

#[test]
fn every_broken_rule_of_blocking_is_noticed() {
    for (mutant, noticed) in notice(mutants::Mutant::ALL, mutants::activate, every_run) {
        println!("{mutant:?}: {}", noticed.as_deref().unwrap_or("-"));
        assert!(noticed.is_some(), "nobody notices {mutant:?}");
    }
}

#[test]
fn who_asks_for_the_same_joins_and_documents_of_others_are_refused() {
    assert_eq!(configsvr::options(&begin(true)), configsvr::options(&begin(true)));
    assert_ne!(configsvr::options(&begin(true)), configsvr::options(&begin(false)));
    assert!(configsvr::restore(RawDoc::empty()).is_err());
}
