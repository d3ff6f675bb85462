//! The demo workflow, straight and through every accident; each broken rule is noticed.

use pando_base::{Error, Namespace};
use pando_bson::{Bson, doc};
use pando_workflows::demo::{self, mutants};
use pando_workflows::kit::{Kit, Story, World, notice};
use pando_workflows::{Home, Workflow};

const TARGET: i64 = 4;

fn make(rest_ms: i64, held: bool) -> Box<dyn Workflow> {
    demo::restore(&demo::begin(&Bson::Int32(7), TARGET, rest_ms, held)).expect("a state")
}

/// Everything is counted once, and whoever had to wait has waited.
fn end(story: &Story, rest_ms: i64, held: bool) -> Result<(), String> {
    let w = &story.world;
    let tally = w.documents(&Namespace::unchecked("config", demo::TALLY));
    if tally.len() as i64 != TARGET {
        return Err(format!("{} documents", tally.len()));
    }
    let expected = doc! { "counted": TARGET, "sum": TARGET * (TARGET + 1) / 2 }.to_raw();
    match story.last() {
        Some(Ok(result)) if *result == expected => {}
        // It ended and took its answer with it.
        None if story.ended_unheard() => {}
        other => return Err(format!("ended with {other:?}")),
    }
    if held != (w.nudges > 0) || (rest_ms > 0) != (w.rests.len() as i64 >= TARGET) {
        return Err(format!("{} nudges, rests {:?}", w.nudges, w.rests));
    }
    if w.majority < w.log.len() {
        return Err("it ended before a majority had what it wrote".into());
    }
    Ok(())
}

fn every_run() -> Result<usize, String> {
    let mut runs = 0;
    for (rest_ms, held) in [(5, true), (0, false)] {
        let kit = Kit {
            home: Home::Primary,
            make: &|| make(rest_ms, held),
            restore: Some(demo::restore),
            world: &World::default,
            end: &|story| end(story, rest_ms, held),
            orders: 1,
        };
        runs += kit.run_all()?;
    }
    Ok(runs)
}

#[test]
fn resumes_after_a_crash_behind_any_action() {
    let runs = every_run().unwrap();
    println!("{runs} runs");
    assert!(runs > 500, "{runs} runs only");
}

#[test]
fn every_broken_rule_is_noticed() {
    for (mutant, noticed) in notice(mutants::Mutant::ALL, mutants::activate, every_run) {
        println!("{mutant:?}: {}", noticed.as_deref().unwrap_or("-"));
        assert!(noticed.is_some(), "nobody notices {mutant:?}");
    }
}

#[test]
fn what_is_under_way_when_it_ends_is_told_to_nobody() {
    let mut running = pando_workflows::Running::new(make(0, false), Home::Primary);
    let mut orders = Vec::new();
    running.begin(0, &mut orders);
    running.abort(1, Error::internal("a wish"), &mut orders);
    assert_eq!(orders.len(), 1, "{orders:?}");
    assert!(!running.is_over());
}
