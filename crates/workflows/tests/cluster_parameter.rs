//! `setClusterParameter` of a cluster, straight and through every accident.

use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value, doc};
use pando_workflows::cluster_parameter::{COMMAND, KEEP, begin, mutants};
use pando_workflows::kit::{Kit, Story, World, notice};
use pando_workflows::{Home, Resource, Target, Workflow, configsvr};
use std::cell::RefCell;
use std::rc::Rc;

const SHARDS: [&str; 3] = ["s1", "s2", "s3"];

/// What refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Mood {
    #[default]
    Willing,
    /// The second shard was removed before it is told anything.
    Gone,
    /// It says no to what it is told first.
    Unwilling,
}

/// One node, be it a shard or the config servers: the value, its time, and the newest number that was here.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Node {
    value: i64,
    time: Timestamp,
    newest: Timestamp,
}

#[derive(Default)]
struct Model {
    mood: Mood,
    shards: [Node; 3],
    config: Node,
    asked: u32,
    looks: u32,
}

type Shared = Rc<RefCell<Model>>;

fn refuse(code: ErrorCode) -> Result<DocBuf> {
    Err(Error::new(code, "the model refuses"))
}
fn time(body: &RawDoc, field: &str) -> Option<Timestamp> {
    match body.get(field) {
        Some(Value::Timestamp(at)) => Some(at),
        _ => None,
    }
}

impl Node {
    fn hear(&mut self, body: &RawDoc) -> Result<DocBuf> {
        if let Some(at) = time(body, "timestamp") {
            if self.newest > at {
                return refuse(ErrorCode::TransactionTooOld);
            }
            self.newest = at;
        }
        let value = body.first().and_then(|e| e.value().as_doc()?.get("p")?.as_i64());
        self.value = value.expect("a value");
        self.time = time(body, "clusterParameterTime").expect("a time");
        Ok(DocBuf::default())
    }
}

impl Model {
    fn hear(&mut self, to: &Target, body: &RawDoc) -> Result<DocBuf> {
        let first = body.first().expect("a command");
        match (to, first.name()) {
            (Target::Own, configsvr::LOOK) => Ok(self.look()),
            (Target::Own, KEEP) => self.config.hear(body),
            (Target::Shard(name), COMMAND) => {
                let i = SHARDS.iter().position(|s| s == name).expect("a shard");
                self.asked += u32::from(i == 1);
                match self.mood {
                    Mood::Gone if i == 1 => refuse(ErrorCode::ShardNotFound),
                    Mood::Unwilling if i == 1 && self.asked < 3 => refuse(ErrorCode::OutOfDiskSpace),
                    _ => self.shards[i].hear(body),
                }
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
}

/// What must be true of each run, however it went.
fn end(story: &Story, model: &Shared) -> Result<(), String> {
    let m = &mut *model.borrow_mut();
    let told = || story.world.calls.iter().filter(|c| matches!(c.to, Target::Shard(_)));
    if told().any(|c| !c.locked.contains(&Resource::Membership)) {
        return Err("a shard could be added that nobody tells".into());
    }
    if told().any(|c| time(&c.body, "timestamp") != told().next().and_then(|c| time(&c.body, "timestamp"))) {
        return Err("attempts are taken for different operations".into());
    }
    let there = || (0..3).filter(|i| m.mood != Mood::Gone || *i != 1);
    let wanted = (7, m.config.time);
    if m.config.value != 7 || there().any(|i| (m.shards[i].value, m.shards[i].time) != wanted) {
        return Err(format!("it is over, and there are {:?} beside {:?}", m.shards, m.config));
    }
    match story.last() {
        Some(Ok(_)) => {}
        None if story.ended_unheard() => {}
        other => return Err(format!("{other:?}")),
    }
    // Whatever was ever sent to shards arrives once more when another value has been set.
    m.mood = Mood::Willing;
    let (value, later) = (8, Timestamp::new(901, 1));
    m.shards = [(); 3].map(|()| Node { value, time: later, newest: later });
    for call in told() {
        let _ = m.hear(&call.to, &call.body);
    }
    match m.shards.iter().all(|shard| shard.value == value) {
        true => Ok(()),
        false => Err("a command that comes late has an effect".into()),
    }
}

fn every_run() -> Result<usize, String> {
    let mut runs = 0;
    for mood in [Mood::Willing, Mood::Gone, Mood::Unwilling] {
        let model: RefCell<Shared> = RefCell::default();
        let world = || {
            let new: Shared = Rc::new(RefCell::new(Model { mood, ..Model::default() }));
            *model.borrow_mut() = new.clone();
            World::with_peers(Box::new(move |to, body| new.borrow_mut().hear(to, body)))
        };
        let make = || -> Box<dyn Workflow> {
            configsvr::restore(&begin(&doc! { "p": 7 }.to_raw())).expect("a state")
        };
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
fn a_parameter_is_the_same_on_all_shards_whatever_happens() {
    let runs = every_run().unwrap();
    println!("{runs} runs");
    assert!(runs > 500, "{runs} runs only");
}

#[test]
fn every_broken_rule_of_setting_it_is_noticed() {
    for (mutant, noticed) in notice(mutants::Mutant::ALL, mutants::activate, every_run) {
        println!("{mutant:?}: {}", noticed.as_deref().unwrap_or("-"));
        assert!(noticed.is_some(), "nobody notices {mutant:?}");
    }
}

#[test]
fn who_sets_the_same_joins() {
    let of = |n: i32| configsvr::options(&begin(&doc! { "p": n }.to_raw()));
    assert!(of(1) == of(1) && of(1) != of(2));
}
