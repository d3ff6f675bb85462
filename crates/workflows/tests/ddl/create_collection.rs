//! A sharded `shardCollection`, straight and through every accident; each broken rule is noticed.

use crate::cluster::{Model, Mood, NS, Shared, at, ns, uuid};
use pando_base::ErrorCode;
use pando_bson::doc;
use pando_workflows::create_collection::{OPERATION, mutants};
use pando_workflows::kit::{Fault, Kit, Story, World, notice};
use pando_workflows::{Home, LocalWrite, Resource, Target, Workflow, ddl};
use std::cell::RefCell;
use std::rc::Rc;

fn make() -> Box<dyn Workflow> {
    let request = doc! { "shardKey": { "k": 1 } }.to_raw();
    ddl::restore(&ddl::begin(NS, OPERATION, &request, None)).expect("a state")
}

/// The commits that the config servers were sent, without those that take one back.
fn is_commit(body: &pando_bson::RawDoc) -> bool {
    body.first().is_some_and(|e| e.name() == "_configsvrCommitShardCollection")
        && body.get("giveUp").is_none()
}

/// What must be true of each definition, however it went.
fn end(story: &Story, model: &Shared) -> Result<(), String> {
    let w = &story.world;
    let commits: Vec<_> = w.calls.iter().enumerate().filter(|(_, c)| is_commit(&c.body)).collect();
    for (_, commit) in &commits {
        match commit.sections.get(&ns(NS)) {
            Some((_, true)) => {}
            other => return Err(format!("a commit is sent, and others may read or write: {other:?}")),
        }
    }
    let committed = model.borrow().entries.get(NS).copied();
    let first_done = commits.iter().find(|(_, c)| c.ok).map(|(i, _)| *i);
    for r in &w.log {
        match &r.write {
            LocalWrite::EnterSection { .. } => {
                let locks = [Resource::Definition("db".into()), Resource::Definition(NS.into())];
                if !locks.iter().all(|lock| r.locked.contains(lock)) {
                    return Err("a section is entered without the locks of its name".into());
                }
            }
            LocalWrite::LeaveSection { .. }
                if committed.is_some() && first_done.is_some_and(|i| r.calls <= i) =>
            {
                return Err("the section ends before the commit".into());
            }
            _ => {}
        }
    }
    told(story, model)?;
    come_again(story, model)
}

/// Who asks hears what became of it.
fn told(story: &Story, model: &Shared) -> Result<(), String> {
    let (model, result) = (model.borrow(), story.last());
    let committed = model.entries.contains_key(NS);
    match (model.mood, result) {
        (_, None) if story.ended_unheard() => {}
        (Mood::IsThereAlready, Some(Ok(_))) if !committed => {}
        (Mood::CheckFails, Some(Err(e))) if e.code == ErrorCode::InvalidOptions => {}
        // Something else failed before.
        (Mood::CheckFails | Mood::IsThereAlready, Some(Err(_))) if !story.is_straight() => {}
        (_, Some(Ok(_))) if committed => {}
        (_, Some(Err(_))) if !committed => {}
        (_, other) => return Err(format!("committed: {committed}, and the client hears {other:?}")),
    }
    let willing = matches!(model.mood, Mood::Willing | Mood::ConfigCommitsAndComplains);
    let may_fail = matches!(
        story.plan.fault,
        Fault::Failed { .. } | Fault::FailedEver { .. } | Fault::Lost { .. } | Fault::Late { .. }
    );
    if willing && !committed && !may_fail {
        return Err(format!("it is given up for nothing: {result:?}"));
    }
    if committed && model.there.iter().any(|shard| shard.get(NS) != model.entries.get(NS)) {
        return Err("a shard owns a part of what it does not have".into());
    }
    Ok(())
}

/// Whatever was ever sent to others arrives once more, behind the end: by then the collection may have been dropped, and be another.
fn come_again(story: &Story, model: &Shared) -> Result<(), String> {
    let mut model = model.borrow_mut();
    model.mood = Mood::Willing;
    let told = |m: &Model| (m.entries.clone(), m.there.clone());
    let before = told(&model);
    let late = || story.world.calls.iter().filter(|c| c.to != Target::Own);
    for call in late() {
        let _ = model.hear(&call.to, &call.body);
    }
    if before.0 != model.entries {
        return Err("a late command changes what the cluster believes".into());
    }
    // Dropped, as `drop` does it, and made anew by somebody else.
    let after = at(900);
    model.entries.remove(NS);
    model.fences.insert(NS.into(), after);
    for call in late() {
        let _ = model.hear(&call.to, &call.body);
    }
    if model.entries.contains_key(NS) {
        return Err("a late command brings back what was dropped".into());
    }
    let made = (uuid(8), at(901));
    for shard in 0..2 {
        model.there[shard].insert(NS.into(), made);
        model.numbers[shard].insert(NS.into(), made.1);
    }
    for call in late() {
        let _ = model.hear(&call.to, &call.body);
    }
    match model.there.iter().all(|shard| shard.get(NS) == Some(&made)) {
        true => Ok(()),
        false => Err("a late command changes another collection of the name".into()),
    }
}

const MOODS: [Mood; 7] = [
    Mood::Willing,
    Mood::CheckFails,
    Mood::IsThereAlready,
    Mood::ShardRefuses,
    Mood::ShardRefusesTheSecond,
    Mood::ConfigRefuses,
    Mood::ConfigCommitsAndComplains,
];

fn every_run() -> Result<usize, String> {
    let mut runs = 0;
    for mood in MOODS {
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
fn a_collection_is_sharded_or_is_not_whatever_happens() {
    let runs = every_run().unwrap();
    println!("{runs} runs");
    assert!(runs > 3000, "{runs} runs only");
}

#[test]
fn every_broken_rule_is_noticed() {
    for (mutant, noticed) in notice(mutants::Mutant::ALL, mutants::activate, every_run) {
        println!("{mutant:?}: {}", noticed.as_deref().unwrap_or("-"));
        assert!(noticed.is_some(), "nobody notices {mutant:?}");
    }
}
