//! A sharded `drop`, straight and through every accident; each broken rule is noticed.

use crate::cluster::{Made, Model, Mood, NS, Shared, at, ns, uuid};
use pando_bson::RawDoc;
use pando_workflows::drop_collection::{OPERATION, mutants};
use pando_workflows::kit::{Kit, Story, World, notice};
use pando_workflows::{Home, LocalWrite, Resource, Target, Workflow, ddl};
use std::cell::RefCell;
use std::rc::Rc;

fn make() -> Box<dyn Workflow> {
    ddl::restore(&ddl::begin(NS, OPERATION, RawDoc::empty(), None)).expect("a state")
}
fn made() -> Made {
    (uuid(7), at(50))
}

fn is(body: &RawDoc, command: &str) -> bool {
    body.first().is_some_and(|e| e.name() == command)
}

/// What must be true of each drop, however it went.
fn end(story: &Story, model: &Shared, sharded: bool) -> Result<(), String> {
    let w = &story.world;
    let locks = [Resource::Definition("db".into()), Resource::Definition(NS.into())];
    for r in &w.log {
        if let LocalWrite::EnterSection { .. } = &r.write
            && !locks.iter().all(|lock| r.locked.contains(lock))
        {
            return Err("a section is entered without the locks of its name".into());
        }
    }
    let dropped = |c: &&pando_workflows::kit::Heard| {
        is(&c.body, "_shardsvrDropCollectionParticipant") || is(&c.body, "dropHere")
    };
    for call in w.calls.iter().filter(dropped) {
        if !matches!(call.sections.get(&ns(NS)), Some((_, true))) {
            return Err(format!("a part goes, and others may read or write: {}", call.body));
        }
    }
    let refused = model.borrow().mood == Mood::NodeRefuses;
    for r in w.log.iter().filter(|r| matches!(r.write, LocalWrite::LeaveSection { .. })) {
        if !refused && w.calls.iter().skip(r.calls).any(|c| dropped(&c)) {
            return Err("it is dropped again when others may have made it anew".into());
        }
    }
    let entry_went = w.calls.iter().position(|c| c.ok && is(&c.body, "_configsvrCommitDropCollection"));
    let part_went = w.calls.iter().position(|c| dropped(&c));
    if sharded && part_went.is_some() && entry_went.is_none_or(|entry| part_went < Some(entry)) {
        return Err("a part goes while routers are sent there".into());
    }
    let gone = {
        let m = model.borrow();
        let there = m.there.iter().any(|shard| shard.contains_key(NS));
        !(m.entries.contains_key(NS) || m.here.contains_key(NS) || sharded && there)
    };
    match story.last() {
        Some(Ok(_)) if gone && !refused => {}
        Some(Err(_)) if refused || story.plan.fault.is_lasting() => {}
        None if story.ended_unheard() => {}
        other => return Err(format!("gone: {gone}, and the client hears {other:?}")),
    }
    match gone {
        true => come_again(story, model),
        false => Ok(()),
    }
}

/// Whatever was ever sent to others arrives once more when the name is another collection's.
fn come_again(story: &Story, model: &Shared) -> Result<(), String> {
    let mut m = model.borrow_mut();
    m.mood = Mood::Willing;
    let made = (uuid(8), at(901));
    m.entries.insert(NS.into(), made);
    for shard in 0..2 {
        m.there[shard].insert(NS.into(), made);
        m.numbers[shard].insert(NS.into(), made.1);
    }
    for call in story.world.calls.iter().filter(|c| c.to != Target::Own) {
        let _ = m.hear(&call.to, &call.body);
    }
    let intact = m.entries.get(NS) == Some(&made) && m.there.iter().all(|s| s.get(NS) == Some(&made));
    if intact { Ok(()) } else { Err("a late command drops another collection of the name".into()) }
}

fn every_run() -> Result<usize, String> {
    let mut runs = 0;
    for (mood, sharded) in [
        (Mood::Willing, true),
        (Mood::ShardRefusesTheFirst, true),
        (Mood::Willing, false),
        (Mood::ShardRefuses, false),
        (Mood::NodeRefuses, false),
    ] {
        let model: RefCell<Shared> = RefCell::default();
        let world = || {
            let empty = Model::with(mood);
            let filled = match sharded {
                true => empty.sharded(NS, made()),
                false => Model { here: [(NS.to_owned(), made())].into(), ..empty },
            };
            let new: Shared = Rc::new(RefCell::new(filled));
            *model.borrow_mut() = new.clone();
            World::with_peers(Box::new(move |to, body| new.borrow_mut().hear(to, body)))
        };
        let kit = Kit {
            home: Home::Primary,
            make: &make,
            restore: Some(ddl::restore),
            world: &world,
            end: &|story| end(story, &model.borrow(), sharded),
            orders: 1,
        };
        runs += kit.run_all().map_err(|e| format!("{mood:?}, sharded: {sharded}: {e}"))?;
    }
    Ok(runs)
}

#[test]
fn a_collection_goes_whatever_happens() {
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
