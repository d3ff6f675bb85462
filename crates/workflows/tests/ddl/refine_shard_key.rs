//! `refineCollectionShardKey`, straight and through every accident; each broken rule is noticed.

use crate::cluster::{Made, Model, Mood, NS, Shared, at, uuid};
use pando_base::ErrorCode;
use pando_bson::{DocBuf, RawDoc, doc};
use pando_workflows::kit::{Fault, Kit, Story, World, notice};
use pando_workflows::refine_shard_key::{OPERATION, mutants};
use pando_workflows::{Home, Resource, Target, Workflow, ddl};
use std::cell::RefCell;
use std::rc::Rc;

fn make() -> Box<dyn Workflow> {
    let request = doc! { "newShardKey": { "k": 1, "l": 1 } }.to_raw();
    ddl::restore(&ddl::begin(NS, OPERATION, &request, None)).expect("a state")
}
fn made() -> Made {
    (uuid(7), at(50))
}
fn is(body: &RawDoc, command: &str) -> bool {
    body.first().is_some_and(|e| e.name() == command)
}

/// What must be true of each refinement, however it went.
fn end(story: &Story, model: &Shared) -> Result<(), String> {
    let w = &story.world;
    let locks = [Resource::Definition("db".into()), Resource::Definition(NS.into())];
    let mut sent: Vec<&DocBuf> = Vec::new();
    let commits =
        w.calls.iter().enumerate().filter(|(_, c)| is(&c.body, "_configsvrCommitRefineCollectionShardKey"));
    for (i, commit) in commits {
        sent.extend(commit.body.get("giveUp").is_none().then_some(&commit.body));
        if sent[..].iter().any(|body| *body != sent[0]) {
            return Err(
                "attempts are taken for different definitions: one that comes late is not known again".into(),
            );
        }
        if !locks.iter().all(|lock| commit.locked.contains(lock)) {
            return Err("a commit is sent without the locks of its name".into());
        }
        let asked = w.calls[..i].iter().filter(|c| c.ok && is(&c.body, "_shardsvrValidateShardKeyCandidate"));
        if asked.count() < 2 {
            return Err("an owner was not asked whether it can".into());
        }
    }
    let refined = model.borrow().refined;
    told(story, model, refined)?;
    come_again(story, model)
}

fn told(story: &Story, model: &Shared, refined: bool) -> Result<(), String> {
    let (mood, result) = (model.borrow().mood, story.last());
    match (mood, result) {
        (_, None) if story.ended_unheard() => {}
        (Mood::IsThereAlready, Some(Ok(_))) if !refined => {}
        (Mood::IsThereAlready, Some(Err(_))) if !story.is_straight() && !refined => {}
        (Mood::CheckFails, Some(Err(e))) if e.code == ErrorCode::InvalidOptions => {}
        (Mood::CheckFails, Some(Err(_))) if !story.is_straight() => {}
        (_, Some(Ok(_))) if refined => {}
        (_, Some(Err(_))) if !refined => {}
        (_, other) => return Err(format!("refined: {refined}, and the client hears {other:?}")),
    }
    let willing = matches!(mood, Mood::Willing | Mood::ConfigCommitsAndComplains);
    let may_fail = matches!(
        story.plan.fault,
        Fault::Failed { .. } | Fault::FailedEver { .. } | Fault::Lost { .. } | Fault::Late { .. }
    );
    match willing && !refined && !may_fail {
        true => Err(format!("it is given up for nothing: {result:?}")),
        false => Ok(()),
    }
}

/// Whatever was ever sent to others arrives once more behind the end, and when the name is another collection's.
fn come_again(story: &Story, model: &Shared) -> Result<(), String> {
    let mut m = model.borrow_mut();
    m.mood = Mood::Willing;
    let late = || story.world.calls.iter().filter(|c| c.to != Target::Own);
    let before = m.entries.clone();
    for call in late() {
        let _ = m.hear(&call.to, &call.body);
    }
    if story.last().is_some() && before != m.entries {
        return Err("a late command changes what the cluster believes".into());
    }
    let other = (uuid(8), at(901));
    m.entries.insert(NS.into(), other);
    for call in late() {
        let _ = m.hear(&call.to, &call.body);
    }
    match m.entries.get(NS) == Some(&other) {
        true => Ok(()),
        false => Err("a late command changes another collection of the name".into()),
    }
}

fn every_run() -> Result<usize, String> {
    let mut runs = 0;
    for mood in [
        Mood::Willing,
        Mood::CheckFails,
        Mood::IsThereAlready,
        Mood::ShardRefuses,
        Mood::ConfigRefuses,
        Mood::ConfigCommitsAndComplains,
    ] {
        let model: RefCell<Shared> = RefCell::default();
        let world = || {
            let new: Shared = Rc::new(RefCell::new(Model::with(mood).sharded(NS, made())));
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
fn a_shard_key_is_refined_or_is_not_whatever_happens() {
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
