//! `movePrimary`, straight and through every accident; each broken rule is noticed.

use crate::cluster::{DB, Model, Mood, SHARDS, Shared};
use pando_bson::{RawDoc, doc};
use pando_workflows::kit::{Fault, Kit, Story, World, notice};
use pando_workflows::move_primary::{CLONE, DRAIN, LET_GO, OPERATION, mutants};
use pando_workflows::{Home, Resource, Target, Workflow, ddl, whole_database};
use std::cell::RefCell;
use std::rc::Rc;

fn make() -> Box<dyn Workflow> {
    let request = doc! { "toShard": SHARDS[0] }.to_raw();
    ddl::restore(&ddl::begin(DB, OPERATION, &request, None)).expect("a state")
}
fn is(body: &RawDoc, command: &str) -> bool {
    body.first().is_some_and(|e| e.name() == command)
}

/// What must be true of each move, however it went.
fn end(story: &Story, model: &Shared) -> Result<(), String> {
    let w = &story.world;
    let lock = Resource::Definition(DB.into());
    for (i, call) in w.calls.iter().enumerate() {
        let before = &w.calls[..i];
        if is(&call.body, DRAIN) {
            if !before.iter().any(|c| c.ok && c.life == call.life && is(&c.body, CLONE)) {
                return Err("what was written while it was cloned is not recorded any more".into());
            }
            if !call.sections_here.contains_key(&whole_database(DB)) {
                return Err("what was recorded is given while others write".into());
            }
        }
        if is(&call.body, "_configsvrCommitMovePrimary") && call.body.get("giveUp").is_none() {
            if !matches!(call.sections.get(&whole_database(DB)), Some((_, true))) {
                return Err("a commit is sent, and others may read or write".into());
            }
            if !call.locked.contains(&lock) {
                return Err("a commit is sent without the lock of the database".into());
            }
        }
    }
    let begun = |c: &&pando_workflows::kit::Heard| is(&c.body, CLONE);
    let given_up = w.calls.iter().filter(begun).count() > 0 && model.borrow().primary.is_none();
    if given_up && !w.calls.iter().any(|c| c.ok && is(&c.body, LET_GO)) {
        return Err("the other shard keeps what it was given".into());
    }
    if model.borrow().lost {
        return Err("the database is dropped where it is".into());
    }
    told(story, model)?;
    let mut m = model.borrow_mut();
    m.mood = Mood::Willing;
    let before = (m.database, m.primary.clone());
    for call in w.calls.iter().filter(|c| c.to != Target::Own) {
        let _ = m.hear(&call.to, &call.body);
    }
    match before == (m.database, m.primary.clone()) {
        true => Ok(()),
        false => Err("a late command moves the database".into()),
    }
}

fn told(story: &Story, model: &Shared) -> Result<(), String> {
    let (mood, result, moved) = (model.borrow().mood, story.last(), model.borrow().primary.is_some());
    match (mood, result) {
        (_, None) if story.ended_unheard() => {}
        (Mood::IsThereAlready, Some(Ok(_))) if !moved => {}
        (_, Some(Ok(_))) if moved => {}
        (_, Some(Err(_))) if !moved => {}
        (_, other) => return Err(format!("moved: {moved}, and the client hears {other:?}")),
    }
    let gone_on = matches!(mood, Mood::Willing | Mood::ConfigCommitsAndComplains);
    match gone_on
        && !moved
        && matches!(story.plan.fault, Fault::None | Fault::Twice { .. } | Fault::Doubled { .. })
    {
        true => Err(format!("it is given up for nothing: {result:?}")),
        false => Ok(()),
    }
}

fn every_run() -> Result<usize, String> {
    let mut runs = 0;
    for mood in [
        Mood::Willing,
        Mood::CheckFails,
        Mood::IsThereAlready,
        Mood::ShardRefuses,
        Mood::ShardRefusesTheSecond,
        Mood::ConfigRefuses,
        Mood::ConfigCommitsAndComplains,
    ] {
        let model: RefCell<Shared> = RefCell::default();
        let world = || {
            let new: Shared = Rc::new(RefCell::new(Model::with(mood)));
            *model.borrow_mut() = new.clone();
            World::with_peers(Box::new(move |to, body| new.borrow_mut().hear(to, body)))
        };
        let kit = Kit {
            home: Home::Primary,
            make: &make,
            restore: Some(ddl::restore),
            world: &world,
            end: &|story| end(story, &model.borrow()),
            orders: 1,
        };
        runs += kit.run_all().map_err(|e| format!("{mood:?}: {e}"))?;
    }
    Ok(runs)
}

#[test]
fn a_database_has_one_primary_shard_whatever_happens() {
    let runs = every_run().unwrap();
    println!("{runs} runs");
    assert!(runs > 2000, "{runs} runs only");
}

#[test]
fn every_broken_rule_is_noticed() {
    for (mutant, noticed) in notice(mutants::Mutant::ALL, mutants::activate, every_run) {
        println!("{mutant:?}: {}", noticed.as_deref().unwrap_or("-"));
        assert!(noticed.is_some(), "nobody notices {mutant:?}");
    }
}
