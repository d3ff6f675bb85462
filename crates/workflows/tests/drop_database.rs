//! `dropDatabase`, straight and through every accident; each broken rule is noticed.

use pando_base::{ErrorCode, Namespace, limits};
use pando_workflows::drop_database::{Asked, DropDatabase, Options, mutants};
use pando_workflows::kit::{Fault, Kit, Plan, Story, World, notice};
use pando_workflows::{Concern, Home, LocalWrite, Resource, Section};

fn ns(name: &str) -> Namespace {
    Namespace::parse(name).expect("a name")
}
fn options(replicated: bool, asked: Asked, wtimeout_ms: i64) -> Options {
    Options { db: "db".into(), replicated, asked, wtimeout_ms }
}
/// Three collections, one of them with views in front of it in the order of names, and one under an index build.
fn filled() -> World {
    let names = ["db.a", "db.system.views", "db.zebra", "other.c"];
    World::of(&names.map(ns), &[ns("db.zebra")])
}
fn bare() -> World {
    World::of(&[ns("other.c")], &[])
}

fn is_drop(write: &LocalWrite) -> bool {
    matches!(write, LocalWrite::DropCollection { .. })
}

/// What must be true of every drop, however it went.
fn end(story: &Story, o: &Options, empty: bool) -> Result<(), String> {
    let w = &story.world;
    let fail = |what: &str| Err(format!("{what}: {:?}", story.results));
    if w.collections_now() != [ns("other.c")].into() {
        return fail("collections are left, or others are gone");
    }
    let pending = Section::DropPending { db: "db".into() };
    let drops: Vec<_> = w.log.iter().filter(|r| is_drop(&r.write)).collect();
    if drops.iter().any(|r| !r.inside.contains(&pending)) {
        return fail("a collection goes, and others may be made");
    }
    let views =
        drops.iter().position(|r| r.write == LocalWrite::DropCollection { ns: ns("db.system.views") });
    if views.is_some_and(|at| at + 1 != drops.len()) {
        return fail("the views do not go last");
    }
    let entries: Vec<_> = w.log.iter().enumerate().filter(|(_, r)| is_entry(&r.write)).collect();
    for (at, r) in &entries {
        if !r.inside.contains(&pending) {
            return fail("the entry is written, and others may have made something");
        }
        let drops = w.log[..*at].iter().rposition(|r| is_drop(&r.write)).map_or(0, |last| last + 1);
        if o.replicated && r.majority < drops {
            return fail("the entry is written before a majority has the drops");
        }
    }
    if w.waited.iter().any(|wait| wait.locked.contains(&Resource::Database("db".into()))) {
        return fail("the database is locked while others are waited for");
    }
    if w.waited.iter().any(|wait| !wait.inside.contains(&pending)) {
        return fail("others may make something while a majority is waited for");
    }
    if w.reports.iter().any(|at| at.is_null()) {
        return fail("the client hears of nothing");
    }
    if story.is_straight() || matches!(story.plan.fault, Fault::Twice { .. }) {
        straight(story, o, empty)?;
    }
    answers(story)
}

fn is_entry(write: &LocalWrite) -> bool {
    matches!(write, LocalWrite::DropDatabase { .. })
}

/// Nothing went wrong: the whole story.
fn straight(story: &Story, o: &Options, empty: bool) -> Result<(), String> {
    let w = &story.world;
    let entries: Vec<_> = w.log.iter().filter(|r| is_entry(&r.write)).collect();
    if entries.is_empty() != empty {
        return Err(format!("{} entries", entries.len()));
    }
    if empty {
        return if w.log.is_empty() && w.waited.is_empty() { Ok(()) } else { Err("much ado".into()) };
    }
    let newest = w.log.iter().filter(|r| is_drop(&r.write)).map(|r| r.at).max();
    let entry = entries.iter().map(|r| r.at).next();
    if w.reports.iter().copied().map(Some).ne([newest, entry]) {
        return Err(format!("the client hears of {:?}", w.reports));
    }
    // Each action twice: each wait too.
    let waits = usize::from(o.replicated) * if story.is_straight() { 1 } else { 2 };
    if w.waited.len() != waits {
        return Err(format!("{} waits", w.waited.len()));
    }
    for wait in &w.waited {
        let more = matches!(o.asked, Asked::Other) || matches!(o.asked, Asked::Nodes(n) if n > 1);
        let concern = if more { Concern::AsAsked } else { Concern::Majority };
        let ms = if o.wtimeout_ms > 0 { o.wtimeout_ms } else { limits::DROP_DATABASE_WAIT_MS };
        if (wait.concern, wait.timeout_ms) != (concern, ms) || Some(wait.upto) != newest {
            return Err(format!("waits for {wait:?}"));
        }
    }
    Ok(())
}

/// Who asks hears what became of it.
fn answers(story: &Story) -> Result<(), String> {
    let Some(first) = story.first() else { return Ok(()) };
    let entry_in = |life: u32| story.world.log.iter().any(|r| r.life == life && is_entry(&r.write));
    let wrote = story.world.log.iter().any(|r| r.life == 1);
    match (story.plan.fault, first) {
        (Fault::Failed { code, .. }, Err(e)) if e.code != code => Err(format!("another error: {e}")),
        // A lock, a wait or a write that failed is told.
        (Fault::Failed { .. }, Ok(_)) => Err("a failure is not told".into()),
        (Fault::Abort { .. }, Err(e)) if story.aborted && e.code != ErrorCode::Interrupted => {
            Err(format!("another error: {e}"))
        }
        (Fault::Abort { .. }, Err(_)) if entry_in(1) => {
            Err("it is done, and the client hears it is not".into())
        }
        // Only the end cannot be stopped: the last two of its actions.
        (Fault::Abort { at, .. }, Ok(_)) if wrote && at < FINISH => {
            Err("it does not hear that it is killed".into())
        }
        (Fault::Abort { at, .. }, Err(_)) if at >= FINISH && wrote => Err("stopped at the very end".into()),
        _ => Ok(()),
    }
}

/// Of a full database in a set: claim, lock, list, three drops, wait; then comes what cannot be stopped.
const FINISH: usize = 7;

fn kit_runs(o: &Options, world: &dyn Fn() -> World, empty: bool) -> Result<usize, String> {
    let kit = Kit {
        home: Home::Command,
        make: &|| Box::new(DropDatabase::new(o.clone())),
        restore: None,
        world,
        end: &|story| end(story, o, empty),
        orders: 1,
    };
    kit.run_all()
}

fn every_run() -> Result<usize, String> {
    let mut runs = 0;
    for asked in [Asked::Nothing, Asked::Nodes(1), Asked::Nodes(3), Asked::Other] {
        for wtimeout_ms in [0, 300] {
            runs += kit_runs(&options(true, asked, wtimeout_ms), &filled, false)?;
        }
    }
    runs += kit_runs(&options(true, Asked::Nothing, 0), &bare, true)?;
    // Without a set the wait falls away, and what cannot be stopped begins one action earlier.
    runs += straight_alone()?;
    runs += vanished()?;
    Ok(runs)
}

fn straight_alone() -> Result<usize, String> {
    let o = options(false, Asked::Nothing, 0);
    let kit = Kit {
        home: Home::Command,
        make: &|| Box::new(DropDatabase::new(o.clone())),
        restore: None,
        world: &filled,
        end: &|story| end(story, &o, false),
        orders: 1,
    };
    kit.run(Plan::of(Fault::None)).map(|_| 1)
}

/// A collection that is gone when its turn comes counts for nothing: here it is all there was.
fn vanished() -> Result<usize, String> {
    use pando_workflows::{Action, Order, Outcome, Running};
    let o = options(true, Asked::Nothing, 0);
    let mut running = Running::new(Box::new(DropDatabase::new(o)), Home::Command);
    let mut orders = Vec::new();
    running.begin(0, &mut orders);
    for _ in 0..20 {
        let Some(Order::Carry { id, action, .. }) = orders.last().cloned() else { break };
        orders.clear();
        let said = match action {
            Action::Read(_) => Outcome::Found(vec![ns("db.a")]),
            Action::Write(_) => Outcome::Wrote(None),
            Action::Await { .. } => return Err("it waits for nothing".into()),
            _ => Outcome::Done,
        };
        running.answer(0, id, Ok(said), &mut orders);
    }
    match orders.last() {
        Some(Order::End(Ok(_))) => Ok(1),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn a_database_goes_or_can_be_dropped_again_whatever_happens() {
    let runs = every_run().unwrap();
    println!("{runs} runs");
    assert!(runs > 2000, "{runs} runs only");
}

#[test]
fn every_broken_rule_is_noticed() {
    assert!(mutants::Mutant::ALL.len() >= 15);
    for (mutant, noticed) in notice(mutants::Mutant::ALL, mutants::activate, every_run) {
        println!("{mutant:?}: {}", noticed.as_deref().unwrap_or("-"));
        assert!(noticed.is_some(), "nobody notices {mutant:?}");
    }
}

#[test]
fn a_wait_that_fails_tells_how_many_collections_are_gone_and_since_when() {
    let o = options(true, Asked::Nothing, 0);
    let kit = Kit {
        home: Home::Command,
        make: &|| Box::new(DropDatabase::new(o.clone())),
        restore: None,
        world: &filled,
        end: &|_| Ok(()),
        orders: 1,
    };
    let fault = Fault::Failed { at: FINISH - 1, code: ErrorCode::WriteConcernFailed };
    let story = kit.run(Plan::of(fault)).unwrap();
    let Some(Err(e)) = story.first() else { panic!("{:?}", story.results) };
    assert_eq!(
        e.message,
        "dropDatabase db failed waiting for 3 collection drop(s) (most recent drop optime: { ts: Timestamp(1004, 1), \
         t: 1 }) to replicate. :: caused by :: planned"
    );
}
