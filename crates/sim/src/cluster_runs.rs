//! `sim cluster`: seeds of whole clusters, one after the other, and what they came to.

use pando_sim::cluster::{Report, run};
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
    /// Of codes with which definitions and writes of collections that come and go were refused.
    refused: BTreeMap<i64, usize>,
}

impl Total {
    fn add(&mut self, r: &Report) {
        self.seconds += r.time.as_secs_f64();
        for (what, n) in &r.faults {
            *self.faults.entry(what).or_default() += n;
        }
        for (code, n) in &r.users.definitions.refused {
            *self.refused.entry(*code).or_default() += n;
        }
        let all = &mut self.report;
        all.elections += r.elections;
        all.rollbacks += r.rollbacks;
        all.committed += r.committed;
        let (u, of) = (&mut all.users, &r.users);
        u.acknowledged += of.acknowledged;
        u.register_commands += of.register_commands;
        u.majority_reads += of.majority_reads;
        u.transfers += of.transfers;
        u.transactions += of.transactions;
        u.repeated += of.repeated;
        u.looks += of.looks;
        u.events += of.events;
        u.streams += of.streams;
        let (d, of) = (&mut u.documents, &r.users.documents);
        d.inserted += of.inserted;
        d.appended += of.appended;
        d.deleted += of.deleted;
        d.scans += of.scans;
        d.unknown += of.unknown;
        u.moves.moved += r.users.moves.moved;
        u.moves.databases += r.users.moves.databases;
        u.moves.unknown += r.users.moves.unknown;
        r.users.moves.refused.iter().for_each(|(code, n)| *u.moves.refused.entry(*code).or_default() += n);
        let (d, of) = (&mut u.definitions, &r.users.definitions);
        d.created += of.created;
        d.sharded += of.sharded;
        d.refined += of.refined;
        d.renamed += of.renamed;
        d.dropped += of.dropped;
        d.databases_dropped += of.databases_dropped;
        d.indexes += of.indexes;
        d.splits += of.splits;
        d.merges += of.merges;
        d.written += of.written;
        d.transactions += of.transactions;
        d.scans += of.scans;
    }
    pub(crate) fn show(&self) {
        let (hours, faults) = (self.seconds / 3600.0, self.faults.values().sum::<u32>());
        let (r, u) = (&self.report, &self.report.users);
        println!(
            "{} seeds, {} failed; {hours:.2} cluster-hours, {faults} faults ({:.0} an hour), {} elections, {} rollbacks, \
             {} entries committed, {} writes acknowledged, {} register commands, {} majority reads, {} transfers, \
             {} late retries, {} transactions with lists, {} looks at metadata, \
             {} events of {} change streams; {:?}; {:?}; refused {:?}; moves {:?}; {:?}",
            self.seeds,
            self.failed,
            f64::from(faults) / hours,
            r.elections,
            r.rollbacks,
            r.committed,
            u.acknowledged,
            u.register_commands,
            u.majority_reads,
            u.transfers,
            u.repeated,
            u.transactions,
            u.looks,
            u.events,
            u.streams,
            u.documents,
            u.definitions,
            self.refused,
            u.moves,
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
                    "seed {seed}: {:.0} s, {} faults, {} elections, {} rollbacks, {} committed, {} definitions, {} polls, \
                     trace {:016x}",
                    r.time.as_secs_f64(),
                    r.faults.values().sum::<u32>(),
                    r.elections,
                    r.rollbacks,
                    r.committed,
                    r.users.definitions.sharded + r.users.definitions.dropped,
                    r.polls,
                    r.trace
                );
            }
            Err(problems) => {
                self.failed += 1;
                println!("seed {seed} FAILED");
                problems.iter().take(20).for_each(|p| println!("  * {p}"));
                println!("again with: sim cluster --seed {seed}");
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
