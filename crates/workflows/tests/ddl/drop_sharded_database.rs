//! A sharded `dropDatabase`, straight and through every accident; each broken rule is noticed.

use crate::cluster::{DB, Model, Mood, Shared, at, uuid};
use pando_bson::RawDoc;
use pando_workflows::drop_sharded_database::{DROP_HERE, OPERATION, mutants};
use pando_workflows::kit::{Heard, Kit, Story, World, notice};
use pando_workflows::{Home, LocalWrite, Target, Workflow, ddl, whole_database};
use std::cell::RefCell;
use std::rc::Rc;

fn make() -> Box<dyn Workflow> {
    ddl::restore(&ddl::begin(DB, OPERATION, RawDoc::empty(), None)).expect("a state")
}

/// From before its collections here go until its entry is gone nobody gets into the database.
fn stays_shut_while_it_goes(story: &Story) -> Result<(), String> {
    let of = whole_database(DB);
    let is = |call: &Heard, name: &str| call.body.first().is_some_and(|e| e.name() == name);
    let commits = |call: &Heard| is(call, "_configsvrCommitDropDatabase");
    // A later one, of a primary that did not know, finds nothing.
    let first = story.world.calls.iter().find(|call| commits(call) && call.ok);
    if first.is_some_and(|call| call.sections.get(&of).is_none_or(|(_, reads)| !reads)) {
        return Err("the entry goes while clients may be in the database".into());
    }
    let mut open = true;
    for r in &story.world.log {
        match &r.write {
            LocalWrite::EnterSection { ns, .. } if *ns == of => open = false,
            LocalWrite::LeaveSection { ns, .. } if *ns == of => {
                open = true;
                let before = &story.world.calls[..r.calls];
                let went = before.iter().any(|call| is(call, DROP_HERE) && call.ok);
                if went && !before.iter().any(commits) {
                    return Err("clients get into a database whose collections are gone".into());
                }
            }
            _ => {}
        }
    }
    match open {
        true => Ok(()),
        false => Err("the database stays shut".into()),
    }
}

/// What must be true of each drop, however it went.
fn end(story: &Story, model: &Shared) -> Result<(), String> {
    let mut m = model.borrow_mut();
    let gone = m.entries.is_empty() && m.database == Some(2);
    match story.last() {
        Some(Ok(_)) if gone => {}
        Some(Err(_)) if story.plan.fault.is_lasting() => {}
        None if story.ended_unheard() => {}
        other => return Err(format!("gone: {gone}, and the client hears {other:?}")),
    }
    stays_shut_while_it_goes(story)?;
    if !gone {
        return Ok(());
    }
    if m.here.keys().ne(["db.new"]) {
        return Err(format!("of the next database of the name there is {:?}", m.here));
    }
    if m.there.iter().any(|shard| !shard.is_empty()) {
        return Err("parts are left".into());
    }
    // Whatever was ever sent to others arrives once more when the name is another database's.
    let made = (uuid(9), at(901));
    m.mood = Mood::Willing;
    m.entries.insert("db.a".into(), made);
    for shard in 0..2 {
        m.there[shard].insert("db.a".into(), made);
        m.numbers[shard].insert("db.a".into(), made.1);
    }
    for call in story.world.calls.iter().filter(|c| c.to != Target::Own) {
        let _ = m.hear(&call.to, &call.body);
    }
    let intact = m.entries.get("db.a") == Some(&made) && m.there.iter().all(|s| s.get("db.a") == Some(&made));
    match intact && m.database == Some(2) {
        true => Ok(()),
        false => Err("a late command drops another database of the name".into()),
    }
}

fn every_run() -> Result<usize, String> {
    let mut runs = 0;
    for mood in [Mood::Willing, Mood::ShardRefusesTheFirst] {
        let model: RefCell<Shared> = RefCell::default();
        let world = || {
            let filled =
                Model::with(mood).sharded("db.a", (uuid(7), at(50))).sharded("db.b", (uuid(6), at(51)));
            let new: Shared = Rc::new(RefCell::new(Model { eager: true, ..filled }));
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
fn a_database_goes_whatever_happens() {
    let runs = every_run().unwrap();
    println!("{runs} runs");
    assert!(runs > 1000, "{runs} runs only");
}

#[test]
fn every_broken_rule_is_noticed() {
    for (mutant, noticed) in notice(mutants::Mutant::ALL, mutants::activate, every_run) {
        println!("{mutant:?}: {}", noticed.as_deref().unwrap_or("-"));
        assert!(noticed.is_some(), "nobody notices {mutant:?}");
    }
}
