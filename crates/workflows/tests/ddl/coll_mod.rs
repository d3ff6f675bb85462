//! `collMod`, straight and through every accident, while ranges move between the shards; each broken rule is noticed.

use crate::cluster::{NS, at};
use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value, doc};
use pando_workflows::coll_mod::{HERE, LOOK, OPERATION, OWNERS, PARTICIPANT, mutants};
use pando_workflows::kit::{Heard, Kit, Story, World, notice};
use pando_workflows::{Home, Resource, Target, Workflow, ddl};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

const OWN: &str = "s0";
const OLD: u32 = 1;
const NEW: u32 = 2;
/// Of a later definition.
const LATER: u32 = 3;

/// What refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mood {
    Willing,
    /// The database has moved.
    LookFails,
    NodeRefuses,
    ShardRefuses,
    /// Documents of another shard stand in the way of an index that is to become unique.
    HasDuplicates,
    /// A shard that owns a part leaves the cluster once it is told.
    ShardLeaves,
}

/// Something happens before the `n`-th command is heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Move {
    from: &'static str,
    to: &'static str,
    at: usize,
}

/// What is there at the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Scene {
    mood: Mood,
    /// No shards: the collection is not sharded.
    owners: &'static [&'static str],
    moves: Option<Move>,
}

/// The cluster: who owns parts, by which version, and how each shard has the collection.
struct Model {
    scene: Scene,
    clock: u32,
    heard: usize,
    owners: BTreeMap<&'static str, i64>,
    has: BTreeMap<&'static str, u32>,
    fences: BTreeMap<&'static str, Timestamp>,
    gone: BTreeSet<&'static str>,
    /// Late commands are not told by what they say of owners.
    any_version: bool,
}

type Shared = Rc<RefCell<Model>>;

fn name_of(shard: &str) -> &'static str {
    ["s0", "s1", "s2", "s3"].into_iter().find(|name| *name == shard).expect("a shard")
}
fn number(body: &RawDoc) -> Option<Timestamp> {
    match body.get("timestamp") {
        Some(Value::Timestamp(at)) => Some(at),
        _ => None,
    }
}
fn refuse(code: ErrorCode) -> Result<DocBuf> {
    Err(Error::new(code, "the model refuses"))
}

impl Model {
    fn of(scene: Scene) -> Model {
        Model {
            scene,
            clock: 100,
            heard: 0,
            owners: scene.owners.iter().map(|shard| (*shard, 1)).collect(),
            has: [OWN, "s1", "s2", "s3"].map(|shard| (shard, OLD)).into(),
            fences: BTreeMap::new(),
            gone: BTreeSet::new(),
            any_version: false,
        }
    }
    fn is_sharded(&self) -> bool {
        !self.scene.owners.is_empty()
    }
    /// A range moves: who gets its first one gets the collection as its donor has it.
    fn move_range(&mut self, from: &'static str, to: &'static str) {
        if !self.owners.contains_key(to) {
            let definition = self.has[from];
            self.has.insert(to, definition);
        }
        *self.owners.entry(from).or_default() += 1;
        *self.owners.entry(to).or_default() += 1;
    }
    fn hear(&mut self, to: &Target, body: &RawDoc) -> Result<DocBuf> {
        self.heard += 1;
        if let Some(m) = self.scene.moves.filter(|m| m.at == self.heard && self.owners.contains_key(m.from)) {
            self.move_range(m.from, m.to);
        }
        let first = body.first().expect("a command");
        match (to, first.name()) {
            (Target::Own, LOOK) if self.scene.mood == Mood::LookFails => refuse(ErrorCode::StaleDbVersion),
            (Target::Own, LOOK) => {
                self.clock += 1;
                let now = at(self.clock);
                Ok(self.look(Some(now)))
            }
            (Target::Own, OWNERS) => Ok(self.look(None)),
            (Target::Own, HERE) => self.here(body),
            (Target::Shard(shard), PARTICIPANT) => self.participant(name_of(shard), body),
            other => panic!("nobody knows {other:?}"),
        }
    }
    fn look(&self, now: Option<Timestamp>) -> DocBuf {
        let mut b = DocBuilder::new();
        now.into_iter().for_each(|at| _ = b.timestamp("timestamp", at));
        b.bool("isOwner", self.owns(OWN));
        b.array("owners", |list| {
            for (shard, version) in self.owners.iter().filter(|(shard, _)| **shard != OWN) {
                list.doc(|d| {
                    d.str("shard", shard).doc("version", |v| _ = v.i64("shardVersion", *version));
                });
            }
        });
        b.finish()
    }
    fn owns(&self, shard: &str) -> bool {
        !self.is_sharded() || self.owners.contains_key(shard)
    }
    fn take_part(&mut self, shard: &'static str, body: &RawDoc) -> Result<()> {
        let Some(now) = number(body) else { return Ok(()) };
        match self.fences.get(shard) {
            Some(newest) if *newest > now => Err(Error::new(ErrorCode::TransactionTooOld, "late")),
            _ => {
                self.fences.insert(shard, now);
                Ok(())
            }
        }
    }
    fn here(&mut self, body: &RawDoc) -> Result<DocBuf> {
        self.take_part(OWN, body)?;
        let counts = self.owns(OWN);
        if self.scene.mood == Mood::NodeRefuses {
            // What is here of a collection of which nothing is owned may be anything.
            return if counts { refuse(ErrorCode::InvalidOptions) } else { Ok(DocBuf::default()) };
        }
        let old = self.has.insert(OWN, NEW);
        let mut b = DocBuilder::new();
        if counts {
            b.doc("reply", |d| append_told(d, old));
        }
        if !self.is_sharded() {
            b.bool("isAlone", true);
        }
        Ok(b.finish())
    }
    fn participant(&mut self, shard: &'static str, body: &RawDoc) -> Result<DocBuf> {
        if self.gone.contains(shard) {
            return refuse(ErrorCode::ShardNotFound);
        }
        let received = body.get("shardVersion").and_then(|v| v.as_i64());
        if !self.any_version && received != self.owners.get(shard).copied() {
            return refuse(ErrorCode::StaleConfig);
        }
        self.take_part(shard, body)?;
        if shard == "s2" {
            match self.scene.mood {
                Mood::ShardRefuses if !is_tried(body) => return refuse(ErrorCode::OutOfDiskSpace),
                Mood::HasDuplicates => return refuse(ErrorCode::CannotConvertIndexToUnique),
                Mood::ShardLeaves if !is_tried(body) => {
                    self.gone.insert(shard);
                    self.owners.remove(shard);
                    return refuse(ErrorCode::ShardNotFound);
                }
                _ => {}
            }
        }
        let mut b = DocBuilder::new();
        if !is_tried(body) {
            let old = self.has.insert(shard, if self.any_version { NEW + 10 } else { NEW });
            append_told(&mut b, old);
        }
        b.f64("ok", 1.0);
        Ok(b.finish())
    }
}

fn append_told(b: &mut DocBuilder, old: Option<u32>) {
    if old == Some(OLD) {
        b.i32("x_old", OLD as i32).i32("x_new", NEW as i32);
    }
}
fn is_tried(body: &RawDoc) -> bool {
    body.get("dryRun").is_some_and(|v| v.is_truthy())
}
fn is(call: &Heard, command: &str) -> bool {
    call.body.first().is_some_and(|e| e.name() == command)
}
fn changes(call: &Heard) -> bool {
    is(call, HERE) || is(call, PARTICIPANT) && !is_tried(&call.body)
}

fn make() -> Box<dyn Workflow> {
    let request = doc! { "index": { "name": "x_1", "unique": true }, "dryRun": false }.to_raw();
    ddl::restore(&ddl::begin(NS, OPERATION, &request, None)).expect("a state")
}

/// What must be true of each `collMod`, however it went.
fn end(story: &Story, model: &Shared) -> Result<(), String> {
    check_calls(story, model)?;
    let m = model.borrow();
    let scene = m.scene;
    let owners: Vec<&str> = match m.is_sharded() {
        true => m.owners.keys().copied().filter(|shard| !m.gone.contains(shard)).collect(),
        false => vec![OWN],
    };
    let all_are = |definition: u32| owners.iter().all(|shard| m.has[shard] == definition);
    let untouched = scene.owners.iter().chain(&owners).all(|shard| m.has[shard] == OLD);
    // By somebody who was told behind the point of no return: this shard, too, if it got its first range meanwhile.
    let calls = &story.world.calls;
    let here = calls.iter().position(|c| is(c, HERE) && c.ok).unwrap_or(calls.len());
    let was_refused = calls[here..].iter().any(|c| changes(c) && !c.ok);
    match story.last() {
        Some(Ok(_)) if !all_are(NEW) => return Err(format!("it is told to be done: {:?}", m.has)),
        Some(Ok(told)) if story.is_straight() && told.get("x_old").is_none() => {
            return Err(format!("it does not tell what it was: {told}"));
        }
        Some(Ok(_)) => {}
        Some(Err(_)) if story.is_straight() && matches!(scene.mood, Mood::Willing | Mood::ShardLeaves) => {
            return Err("it is refused for nothing".into());
        }
        Some(Err(e)) if !untouched && !was_refused => {
            return Err(format!("it was refused ({e}), and is changed: {:?}", m.has));
        }
        Some(Err(_)) => {}
        None if story.ended_unheard() && (all_are(NEW) || untouched || was_refused) => {}
        None => return Err(format!("it ends, and shards have it otherwise: {:?}", m.has)),
    }
    if matches!(scene.mood, Mood::LookFails | Mood::NodeRefuses | Mood::HasDuplicates)
        && scene.owners.first() == Some(&OWN)
        && !untouched
    {
        return Err(format!("it was refused, and is changed: {:?}", m.has));
    }
    drop(m);
    come_again(story, model)
}

fn check_calls(story: &Story, model: &Shared) -> Result<(), String> {
    let w = &story.world;
    let locks = [Resource::Definition("db".into()), Resource::Definition(NS.into())];
    let mut first_number = None;
    for call in w.calls.iter().filter(|c| changes(c)) {
        if !locks.iter().all(|lock| call.locked.contains(lock)) {
            return Err("it is changed without the locks of its name".into());
        }
        let Some(now) = number(&call.body) else { continue };
        if *first_number.get_or_insert(now) != now {
            return Err("attempts are taken for different definitions".into());
        }
    }
    // Where this shard owns a part all the time, it has changed it for good before anybody else hears of it.
    let told = w.calls.iter().position(|c| is(c, PARTICIPANT) && !is_tried(&c.body));
    let here = w.calls.iter().position(|c| is(c, HERE) && c.ok);
    if told.is_some_and(|told| here.is_none_or(|here| here > told)) {
        return Err("others are told before it is changed here".into());
    }
    let owns = model.borrow().scene.owners.contains(&OWN);
    if owns && told.is_some_and(|told| w.calls[told..].iter().any(|c| is(c, HERE))) {
        return Err("whoever is primary next may be refused what others have done".into());
    }
    Ok(())
}

/// Whatever was ever sent arrives once more when the collection has been defined anew, whoever owns what by then.
fn come_again(story: &Story, model: &Shared) -> Result<(), String> {
    let mut m = model.borrow_mut();
    m.scene.mood = Mood::Willing;
    m.scene.moves = None;
    m.any_version = true;
    m.gone.clear();
    for shard in [OWN, "s1", "s2", "s3"] {
        m.has.insert(shard, LATER);
        m.fences.insert(shard, at(901));
    }
    for call in story.world.calls.iter().filter(|c| changes(c)) {
        let _ = m.hear(&call.to, &call.body);
    }
    match m.has.values().all(|definition| *definition == LATER) {
        true => Ok(()),
        false => Err(format!("a late command changes what was defined since: {:?}", m.has)),
    }
}

fn scenes() -> Vec<Scene> {
    const BOTH: &[&str] = &[OWN, "s1", "s2"];
    const OTHERS: &[&str] = &["s1", "s2"];
    let still = |mood, owners| Scene { mood, owners, moves: None };
    let mut all = vec![
        still(Mood::Willing, BOTH),
        still(Mood::Willing, OTHERS),
        still(Mood::Willing, &[OWN]),
        still(Mood::Willing, &[]),
        still(Mood::LookFails, BOTH),
        still(Mood::NodeRefuses, BOTH),
        still(Mood::NodeRefuses, OTHERS),
        still(Mood::NodeRefuses, &[]),
        still(Mood::ShardRefuses, BOTH),
        still(Mood::HasDuplicates, BOTH),
        still(Mood::ShardLeaves, BOTH),
    ];
    // Before each of the commands that it takes where nothing goes wrong, and some more.
    for at in 1..=9 {
        for (from, to) in [("s2", "s3"), ("s1", "s2"), (OWN, "s3")] {
            all.push(Scene { moves: Some(Move { from, to, at }), ..still(Mood::Willing, BOTH) });
        }
        all.push(Scene { moves: Some(Move { from: "s1", to: OWN, at }), ..still(Mood::Willing, OTHERS) });
    }
    all
}

fn every_run() -> Result<usize, String> {
    let mut runs = 0;
    for scene in scenes() {
        let model: RefCell<Option<Shared>> = RefCell::default();
        let world = || {
            let new: Shared = Rc::new(RefCell::new(Model::of(scene)));
            *model.borrow_mut() = Some(new.clone());
            World::with_peers(Box::new(move |to, body| new.borrow_mut().hear(to, body)))
        };
        let kit = Kit {
            home: Home::Primary,
            make: &make,
            restore: Some(ddl::restore),
            world: &world,
            end: &|story| end(story, model.borrow().as_ref().expect("a model")),
            orders: 1,
        };
        runs += kit.run_all().map_err(|e| format!("{scene:?}: {e}"))?;
    }
    Ok(runs)
}

#[test]
fn all_owners_have_one_definition_in_the_end_whatever_happens() {
    let runs = every_run().unwrap();
    println!("{runs} runs");
    assert!(runs > 20_000, "{runs} runs only");
}

#[test]
fn every_broken_rule_is_noticed() {
    for (mutant, noticed) in notice(mutants::Mutant::ALL, mutants::activate, every_run) {
        println!("{mutant:?}: {}", noticed.as_deref().unwrap_or("-"));
        assert!(noticed.is_some(), "nobody notices {mutant:?}");
    }
}
