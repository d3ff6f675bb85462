//! `sim migrate`: seeds of two sets between which tenants move, one after the other, and what they came to.

use pando_sim::migrate::{Report, run};
use pando_sim::set::Options;
use std::collections::BTreeMap;

/// What many seeds came to.
#[derive(Default)]
pub(crate) struct Total {
    pub(crate) seeds: u64,
    pub(crate) failed: u64,
    seconds: f64,
    faults: BTreeMap<&'static str, u32>,
    report: Report,
}

impl Total {
    fn add(&mut self, r: &Report) {
        self.seconds += r.time.as_secs_f64();
        for (what, n) in &r.faults {
            *self.faults.entry(what).or_default() += n;
        }
        let all = &mut self.report;
        all.elections += r.elections;
        all.rollbacks += r.rollbacks;
        all.entries += r.entries;
        all.committed += r.committed;
        all.aborted += r.aborted;
        all.refused += r.refused;
        all.merged += r.merged;
        all.merges_aborted += r.merges_aborted;
        all.merges_refused += r.merges_refused;
        all.tenants_merged += r.tenants_merged;
        all.lacking += r.lacking;
        all.imports_undone += r.imports_undone;
        all.newcomers += r.newcomers;
        all.nobodys += r.nobodys;
        all.moved += r.moved;
        all.stayed += r.stayed;
        all.acknowledged += r.acknowledged;
        all.repeated += r.repeated;
        all.repeated_elsewhere += r.repeated_elsewhere;
        all.reads += r.reads;
        all.register_commands += r.register_commands;
        all.transactions += r.transactions;
        all.definitions += r.definitions;
        all.plants_kept += r.plants_kept;
        all.turned_away += r.turned_away;
        r.reasons.iter().for_each(|(code, n)| *all.reasons.entry(code.clone()).or_default() += n);
        r.steps.iter().for_each(|(step, n)| *all.steps.entry(*step).or_default() += n);
    }
    pub(crate) fn show(&self) {
        let (hours, faults) = (self.seconds / 3600.0, self.faults.values().sum::<u32>());
        let r = &self.report;
        println!(
            "{} seeds, {} failed; {hours:.2} cluster-hours, {faults} faults ({:.0} an hour), {} elections, {} rollbacks, \
             migrations: {} committed, {} aborted, {} refused; merges: {} committed with {} tenants, {} aborted, {} refused, {} publications undone, \
             {} members lacked what was taken in; aborted by themselves {:?}; {} newcomers, {} documents of no tenant; {} entries committed, {} writes acknowledged, {} late retries \
             ({} at the other set), {} reads, {} register commands, {} transactions with lists, {} commands told to go, \
             {} told to stay, {} definitions, {} times something in the way was kept, {} stray writes turned away; hit before steps {:?}; {:?}",
            self.seeds,
            self.failed,
            f64::from(faults) / hours,
            r.elections,
            r.rollbacks,
            r.committed,
            r.aborted,
            r.refused,
            r.merged,
            r.tenants_merged,
            r.merges_aborted,
            r.merges_refused,
            r.imports_undone,
            r.lacking,
            r.reasons,
            r.newcomers,
            r.nobodys,
            r.entries,
            r.acknowledged,
            r.repeated,
            r.repeated_elsewhere,
            r.reads,
            r.register_commands,
            r.transactions,
            r.moved,
            r.stayed,
            r.definitions,
            r.plants_kept,
            r.turned_away,
            r.steps,
            self.faults
        );
    }
    /// One seed, or the same twice.
    pub(crate) fn run(&mut self, seed: u64, options: &Options, twice: bool) {
        self.seeds += 1;
        let outcome = once(seed, options);
        match &outcome {
            Ok(r) => {
                self.add(r);
                println!(
                    "seed {seed}: {:.0} s, {} faults, {} elections, {} rollbacks, {} committed, {} aborted, {} refused, \
                     merges {} committed, {} aborted, {} refused ({} undone, {} lacking), {} polls, trace {:016x}",
                    r.time.as_secs_f64(),
                    r.faults.values().sum::<u32>(),
                    r.elections,
                    r.rollbacks,
                    r.committed,
                    r.aborted,
                    r.refused,
                    r.merged,
                    r.merges_aborted,
                    r.merges_refused,
                    r.imports_undone,
                    r.lacking,
                    r.polls,
                    r.trace
                );
            }
            Err(problems) => {
                self.failed += 1;
                println!("seed {seed} FAILED");
                problems.iter().take(20).for_each(|p| println!("  * {p}"));
                let merges = if options.merges { " --merges" } else { "" };
                println!("again with: sim migrate{merges} --seed {seed}");
            }
        }
        if twice && once(seed, options) != outcome {
            self.failed += 1;
            println!("seed {seed}: two runs DIFFER");
        }
        if self.seeds.is_multiple_of(20) {
            self.show();
        }
    }
}

/// A panic of a server is a failure as any other.
fn once(seed: u64, options: &Options) -> Result<Report, Vec<String>> {
    let run = || {
        run(seed, options).map_err(|f| {
            f.log.iter().for_each(|line| println!("    {line}"));
            println!("    faults so far: {:?}", f.faults);
            f.problems
        })
    };
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(vec!["the simulation panicked".to_owned()]))
}
