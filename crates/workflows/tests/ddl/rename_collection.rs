//! `renameCollection`, straight and through every accident; each broken rule is noticed.

use crate::cluster::{ELSEWHERE, Made, Model, Mood, NS, Shared, TO, at, is_copy, ns, uuid};
use pando_bson::{RawDoc, doc};
use pando_workflows::kit::{Heard, Kit, Story, World, notice};
use pando_workflows::rename_collection::{OPERATION, mutants};
use pando_workflows::{Home, LocalWrite, Resource, Target, Workflow, ddl};
use std::cell::RefCell;
use std::rc::Rc;

fn make(sharded: Sharded) -> Box<dyn Workflow> {
    let request = doc! { "to": sharded.to(), "dropTarget": true }.to_raw();
    ddl::restore(&ddl::begin(NS, OPERATION, &request, None)).expect("a state")
}
fn source() -> Made {
    (uuid(7), at(50))
}
fn target() -> Made {
    (uuid(6), at(40))
}

/// What is sharded when it begins. There is a target always.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sharded {
    Both,
    Source,
    Target,
    Neither,
    /// Nothing, and the target is in another database.
    NeitherAcross,
}

impl Sharded {
    fn to(self) -> &'static str {
        if self == Sharded::NeitherAcross { ELSEWHERE } else { TO }
    }
    fn is_source(self) -> bool {
        matches!(self, Sharded::Both | Sharded::Source)
    }
    fn world(self, mood: Mood) -> Model {
        let mut model = Model::with(mood);
        for (name, made, is_sharded) in [
            (NS, source(), self.is_source()),
            (self.to(), target(), matches!(self, Sharded::Both | Sharded::Target)),
        ] {
            match is_sharded {
                true => model = model.sharded(name, made),
                false => _ = model.here.insert(name.to_owned(), made),
            }
        }
        // One that owns nothing any more and has it all the same, and one that has nothing.
        if self.is_source() {
            model.there[1].remove(NS);
        }
        model
    }
}

fn is(call: &Heard, command: &str) -> bool {
    call.body.first().is_some_and(|e| e.name() == command)
}
fn renames(call: &Heard) -> bool {
    ["_shardsvrRenameCollectionParticipant", "renameHere", "dropRenamed"].iter().any(|name| is(call, name))
}

fn end(story: &Story, model: &Shared, sharded: Sharded) -> Result<(), String> {
    let (w, to) = (&story.world, sharded.to());
    let locks = ["db", &to[..to.len() - 2], NS, to].map(|name| Resource::Definition(name.into()));
    for r in w.log.iter().filter(|r| matches!(r.write, LocalWrite::EnterSection { .. })) {
        if !locks.iter().all(|lock| r.locked.contains(lock)) {
            return Err("a section is entered without the locks of both names".into());
        }
    }
    for call in w.calls.iter().filter(|c| renames(c)) {
        if ![NS, to].iter().all(|name| matches!(call.sections.get(&ns(name)), Some((_, true)))) {
            return Err(format!("it is renamed, and others may read or write: {}", call.body));
        }
    }
    if let Some(first) = w.calls.iter().position(renames) {
        let look = w.calls[..first].iter().rfind(|c| c.ok && is(c, "lookAtRename"));
        if !look.is_some_and(|look| [NS, to].iter().all(|name| look.sections_here.contains_key(&ns(name)))) {
            return Err("it was decided while others could take the names".into());
        }
    }
    for r in w.log.iter().filter(|r| matches!(r.write, LocalWrite::LeaveSection { .. })) {
        if w.calls.iter().skip(r.calls).any(renames) {
            return Err("it is renamed again when others may have used the names".into());
        }
    }
    let commit = w.calls.iter().position(|c| c.ok && is(c, "_configsvrRenameCollectionMetadata"));
    let last_part = w.calls.iter().rposition(|c| is(c, "_shardsvrRenameCollectionParticipant") && !c.ok);
    if commit.is_some() && last_part > commit {
        return Err("a shard renames behind the commit".into());
    }
    let m = model.borrow();
    if m.blocked.iter().any(|names| !names.is_empty()) {
        return Err(format!("another shard keeps its section: {:?}", m.blocked));
    }
    let here = |name: &str| m.here.get(name).map(|made| made.0);
    let there =
        |name: &str| m.there.iter().filter_map(|has| has.get(name)).map(|made| made.0).collect::<Vec<_>>();
    let is_it = |there| if sharded == Sharded::NeitherAcross { is_copy(there) } else { there == source().0 };
    let is_done = here(NS).is_none() && here(to).is_some_and(is_it);
    let elsewhere = match sharded {
        Sharded::Both | Sharded::Source => (Vec::new(), vec![source().0]),
        Sharded::Target | Sharded::Neither | Sharded::NeitherAcross => (Vec::new(), Vec::new()),
    };
    let is_done_everywhere = is_done
        && (there(NS), there(to)) == elsewhere
        && !m.entries.contains_key(NS)
        && m.entries.get(to).map(|made| made.0) == sharded.is_source().then_some(source().0);
    let world = sharded.world(m.mood);
    let is_as_before = m.here == world.here && m.there == world.there && m.entries == world.entries;
    match story.last() {
        Some(Ok(_)) if is_done_everywhere => {}
        Some(Err(_)) if is_as_before && (m.mood != Mood::Willing || story.plan.fault.is_lasting()) => {}
        None if story.ended_unheard() => {}
        other => return Err(format!("done: {is_done_everywhere}, the client hears {other:?}")),
    }
    drop(m);
    come_again(story, model)
}

/// Whatever was ever sent to others arrives once more when both names are other collections'.
fn come_again(story: &Story, model: &Shared) -> Result<(), String> {
    let mut m = model.borrow_mut();
    m.mood = Mood::Willing;
    let others = [(NS, (uuid(8), at(901))), (TO, (uuid(9), at(902)))];
    for (name, made) in others {
        m.entries.insert(name.into(), made);
        m.here.insert(name.into(), made);
        m.there.iter_mut().for_each(|has| _ = has.insert(name.into(), made));
    }
    for call in story.world.calls.iter().filter(|c| c.to != Target::Own) {
        let _ = m.hear(&call.to, &call.body);
    }
    let intact = others.iter().all(|(name, made)| {
        m.entries.get(*name) == Some(made) && m.there.iter().all(|has| has.get(*name) == Some(made))
    });
    if m.blocked.iter().any(|names| !names.is_empty()) {
        return Err("a late command blocks the names for ever".into());
    }
    if intact { Ok(()) } else { Err("a late command renames another collection".into()) }
}

fn every_run() -> Result<usize, String> {
    let mut runs = 0;
    for (mood, sharded) in [
        (Mood::Willing, Sharded::Both),
        (Mood::ShardRefusesTheFirst, Sharded::Source),
        (Mood::ConfigCommitsAndComplains, Sharded::Source),
        (Mood::Willing, Sharded::Target),
        (Mood::Willing, Sharded::Neither),
        (Mood::NodeRefuses, Sharded::Neither),
        (Mood::CheckFails, Sharded::Both),
        (Mood::Willing, Sharded::NeitherAcross),
        (Mood::NodeRefuses, Sharded::NeitherAcross),
    ] {
        let model: RefCell<Shared> = RefCell::default();
        let world = || {
            let new: Shared = Rc::new(RefCell::new(sharded.world(mood)));
            *model.borrow_mut() = new.clone();
            World::with_peers(Box::new(move |to, body: &RawDoc| new.borrow_mut().hear(to, body)))
        };
        let kit = Kit {
            home: Home::Primary,
            make: &|| make(sharded),
            restore: Some(ddl::restore),
            world: &world,
            end: &|story| end(story, &model.borrow(), sharded),
            orders: 1,
        };
        runs += kit.run_all().map_err(|e| format!("{mood:?}, {sharded:?}: {e}"))?;
    }
    Ok(runs)
}

#[test]
fn a_collection_has_one_name_whatever_happens() {
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
