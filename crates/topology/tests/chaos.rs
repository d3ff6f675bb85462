//! Seeded storms: crashes that lose unflushed state, cuts in one or both directions, lost and late messages, skewed
//! clocks, step-downs, reconfigurations. Then calm: the set must serve, agree, and hold every acknowledged write.
//!
//! `CHAOS_SEEDS=1000 cargo test -p pando-topology --test chaos -- --nocapture` runs more; `CHAOS_SEED=n` one.

mod world;

use pando_topology::message::StepDownRequest;
use pando_topology::*;
use world::{World, config_of};

fn config_for(seed: u64) -> ReplSetConfig {
    let mut c = match seed % 4 {
        0 | 1 => config_of(3),
        2 => config_of(5),
        _ => {
            // Primary, secondary, arbiter-like mixes: four data members, one arbiter.
            let mut c = config_of(5);
            c.members[4].arbiter_only = true;
            c.members[4].priority = 0.0;
            c
        }
    };
    if seed.is_multiple_of(3) {
        c.members[1].priority = 2.0;
    }
    if seed.is_multiple_of(5) {
        c.settings.chaining_allowed = false;
    }
    if seed.is_multiple_of(7) {
        c.write_concern_majority_journal_default = true;
    }
    // Short timeouts: more elections per simulated hour.
    if seed.is_multiple_of(2) {
        c.settings.election_timeout_ms = 3000;
        c.settings.heartbeat_interval_ms = 500;
        c.settings.heartbeat_timeout_secs = 2;
    }
    c
}

fn fault(w: &mut World) {
    let n = w.nodes.len() as u64;
    let i = w.rng.below(n) as usize;
    let dead = w.nodes.iter().filter(|n| !n.alive).count();
    match w.rng.below(14) {
        0..=2 if dead * 2 < w.nodes.len() - 1 => {
            let i = w.newest_primary().filter(|_| w.rng.chance(500)).unwrap_or(i);
            w.crash(i);
        }
        3 | 4 => {
            if let Some(dead) = w.nodes.iter().position(|n| !n.alive) {
                w.restart(dead);
            }
        }
        5 => w.isolate(i),
        6 => {
            let j = w.rng.below(n) as usize;
            if i != j {
                w.cut.insert((i, j));
            }
        }
        7 => w.loss_per_mille = w.rng.below(200),
        8 => {
            w.delay_max = 1 + w.rng.below(300) as i64;
        }
        9 => {
            let force = w.rng.chance(300);
            let request = StepDownRequest { force, catch_up_ms: 500, period_ms: 2000 };
            if w.nodes[i].alive {
                w.feed(i, Event::StepDown { token: 1, request });
            }
        }
        10 | 11 => reconfigure(w),
        _ => {
            w.cut.clear();
            w.loss_per_mille = 0;
            w.delay_max = 5;
        }
    }
}

/// A safe reconfiguration on whoever takes itself for primary: one member gets or loses its vote, or its priority moves.
fn reconfigure(w: &mut World) {
    let n = w.nodes.len() as u64;
    let (any, k, priority) = (w.rng.below(n) as usize, w.rng.below(n) as usize, w.rng.below(3));
    let i = w.newest_primary().unwrap_or(any);
    let Some(current) =
        w.nodes[i].core.as_ref().filter(|c| c.is_writable()).and_then(|c| c.config().cloned())
    else {
        return;
    };
    let mut next = (*current).clone();
    next.version += 1;
    let m = &mut next.members[k];
    if k == i || m.arbiter_only {
        return;
    }
    match priority {
        0 if m.votes == 1 => (m.votes, m.priority) = (0, 0.0),
        _ if m.votes == 0 => (m.votes, m.priority) = (1, 1.0),
        p => m.priority = p as f64,
    }
    if next.validate().is_err() || next.voters() < 3 {
        return;
    }
    let event = Event::Reconfig { token: 2, config: next.into(), self_index: Some(i), force: false, bump: 0 };
    w.feed(i, event);
}

struct Outcome {
    hours: f64,
    faults: u64,
    acknowledged: usize,
    terms: i64,
    configs: i64,
    roll_backs: u64,
}

fn run(seed: u64, storm_ms: i64) -> Outcome {
    let mut w = World::new(seed, config_for(seed));
    w.trace = std::env::var("CHAOS_SEED").is_ok();
    let start = w.now;
    let mut faults = 0;
    while w.now - start < storm_ms {
        if w.rng.chance(250) {
            fault(&mut w);
            faults += 1;
        }
        for i in 0..w.nodes.len() {
            if w.rng.chance(700) {
                w.write(i);
            }
        }
        let pause = 100 + w.rng.below(4000) as i64;
        w.advance(pause);
    }
    // Calm.
    w.heal();
    w.delay_max = 5;
    for i in 0..w.nodes.len() {
        w.restart(i);
    }
    w.advance(2000);
    w.advance_until(60_000, "a primary after the storm", |w| w.newest_primary().is_some());
    w.advance(15_000);
    let before = w.checker.acknowledged.len();
    let p = w.newest_primary().unwrap_or_else(|| panic!("a steady primary\n{}", w.tail()));
    assert!(w.write(p));
    w.advance_until(20_000, "a write is acknowledged", |w| w.checker.acknowledged.len() > before);
    let steady = |w: &World| {
        let top = w.nodes[p].top();
        (0..w.nodes.len()).all(|i| {
            w.core(i).is_arbiter() || (w.nodes[i].top() == top && w.core(i).commit_point().op == top)
        })
    };
    w.advance_until(30_000, "everyone has everything and knows it", steady);
    let data: Vec<usize> = (0..w.nodes.len()).filter(|i| !w.core(*i).is_arbiter()).collect();
    w.checker.final_state(&w.nodes, &data);
    Outcome {
        hours: (w.now - start) as f64 / 3_600_000.0,
        faults,
        acknowledged: w.checker.acknowledged.len(),
        terms: w.core(p).term(),
        configs: w.core(p).config().map_or(0, |c| c.version - 1),
        roll_backs: w.checker.roll_backs,
    }
}

#[test]
fn storms_never_lose_what_was_acknowledged() {
    let one: Option<u64> = std::env::var("CHAOS_SEED").ok().and_then(|s| s.parse().ok());
    let count: u64 = std::env::var("CHAOS_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(30);
    let seeds: Vec<u64> = one.map_or_else(|| (0..count).collect(), |s| vec![s]);
    let (mut hours, mut faults, mut acks, mut terms, mut backs, mut configs) = (0.0, 0, 0, 0, 0, 0);
    for seed in &seeds {
        let result = std::panic::catch_unwind(|| run(*seed, 300_000));
        let Ok(o) = result else { panic!("CHAOS_SEED={seed} fails") };
        hours += o.hours;
        faults += o.faults;
        acks += o.acknowledged;
        terms += o.terms;
        configs += o.configs;
        backs += o.roll_backs;
    }
    println!(
        "{} seeds, {hours:.1} simulated hours, {faults} faults, {acks} acknowledged writes, {terms} terms, {configs} \
         reconfigurations, {backs} rollbacks",
        seeds.len()
    );
    assert!(acks > 0 && backs > 0 || seeds.len() < 10, "the storm must be rough enough to cause rollbacks");
}

/// The storms' own worth: rules whose loss they must notice.
#[test]
#[ignore = "minutes"]
fn storms_find_broken_rules() {
    use pando_topology::mutants::{Mutant, activate};
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut unseen = Vec::new();
    for mutant in [
        Mutant::VoteBeforeDurable,
        Mutant::VoteTwice,
        Mutant::VoteForStaleData,
        Mutant::CommitBeforeDurable,
        Mutant::CommitByMinority,
        Mutant::CommitOlderTerm,
        Mutant::KeepOfficeInOldTerm,
    ] {
        activate(Some(mutant));
        let by = (0..60).find(|seed| std::panic::catch_unwind(|| run(*seed, 300_000)).is_err());
        activate(None);
        println!("{mutant:?}: seed {by:?}");
        if by.is_none() {
            unseen.push(mutant);
        }
    }
    std::panic::set_hook(hook);
    assert!(unseen.is_empty(), "no storm notices {unseen:?}");
}
