//! `sim --seed N`, `sim --seeds COUNT [--from N]`, `sim meta --seed N`, `sim set --seeds COUNT`, `sim cluster --seeds COUNT`,
//! `sim split --seeds COUNT`, `sim migrate --seeds COUNT`, `sim shards --shards N,N`.

mod cluster_runs;
mod migrate_runs;
mod shards_runs;
mod split_runs;

use pando_sim::crud::{CrudOptions, Failure, Report, run};
use pando_sim::set;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A tenth of a run's time otherwise.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str =
    "usage: sim [set | cluster | split | migrate | shards] [meta] [--seed N | --seeds COUNT [--from N]] [--lives N] [--users N] [--life-ms N]
                 [--members N] [--seconds N] [--between-ms N] [--pause-ms N] [--longest-ms N] [--lines N] [--moves] [--merges]

  --seed N       one run
  --seeds COUNT  seeds N, N+1, … (from 1, or --from)
  set            a real set of members, with elections, instead of one server
                 (--seconds with faults, one every --between-ms; users pause for --pause-ms; of the log of a run that
                 fails --lines are shown)
  cluster        config servers, two shards and two routers, with the same options; --members says how many each set has;
                 with --moves ranges move between the shards all the time
  split          a set of many tenants that splits in two, with the same options, behind the word
  migrate        two sets between which tenants move, with the same options, behind the word; with --merges one set is merged
                 into the other one again and again
  shards         a cluster of --shards N (or N,N,..: several, with a table of what operations cost in each), nothing of it
                 breaks at random; --members says how many config servers there are
  meta           every run twice; the traces must be equal
  --mutant NAME  with one rule of the protocol switched off (built with the feature `mutants`)";

struct Args {
    meta: bool,
    set: bool,
    cluster: bool,
    split: bool,
    migrate: bool,
    shards: Option<shards_runs::Wanted>,
    set_options: set::Options,
    first: u64,
    count: u64,
    options: CrudOptions,
}

fn parse(words: &[String]) -> Option<Args> {
    let mut args = Args {
        meta: false,
        set: false,
        cluster: false,
        split: false,
        migrate: false,
        shards: None,
        set_options: set::Options::default(),
        first: 1,
        count: 1,
        options: CrudOptions::default(),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        #[cfg(feature = "mutants")]
        if word == "--mutant" {
            plant(words.next()?)?;
            continue;
        }
        if word == "--shards" {
            let counts = words.next()?.split(',').map(|n| n.parse().ok()).collect::<Option<Vec<u16>>>()?;
            args.shards.get_or_insert_default().shards = counts;
            continue;
        }
        let mut number = || words.next().and_then(|w| w.parse::<u64>().ok());
        match word.as_str() {
            "meta" => args.meta = true,
            "--moves" => args.set_options.moves = true,
            "--merges" => args.set_options.merges = true,
            "set" => args.set = true,
            "cluster" => args.cluster = true,
            "split" => (args.split, args.set_options) = (true, pando_sim::split::options()),
            "migrate" => (args.migrate, args.set_options) = (true, pando_sim::migrate::options()),
            "shards" => _ = args.shards.get_or_insert_default(),
            "--seed" => args.first = number()?,
            "--seeds" => args.count = number()?,
            "--from" => args.first = number()?,
            "--lives" => args.options.lives = number()? as u32,
            "--users" => args.options.users = number()? as i64,
            "--pause-ms" => args.set_options.pause_ms = number()?.max(1),
            "--members" => args.set_options.members = Some(number()? as u16),
            "--seconds" => args.set_options.seconds = number()?,
            "--between-ms" => args.set_options.between_ms = number()?.max(1),
            "--longest-ms" => args.set_options.longest_ms = number()?.max(1),
            "--lines" => args.set_options.lines = number()? as usize,
            "--life-ms" => args.options.life_ms = number()?.max(1),
            _ => return None,
        }
    }
    Some(args)
}

/// Switches one rule of the protocol off, or plants a fault around it.
#[cfg(feature = "mutants")]
fn plant(name: &str) -> Option<()> {
    use pando_base::mutants as planted;
    use pando_routing::mutants as ownership;
    use pando_tenants::mutants as tenants;
    use pando_topology::mutants as rules;
    use pando_workflows::donate_tenants::mutants as donors;
    use pando_workflows::receive_tenants::mutants as recipients;
    use pando_workflows::shard_split::mutants as splits;
    if let Some(m) = planted::Mutant::ALL.iter().find(|m| format!("{m:?}") == name) {
        planted::activate(Some(*m));
        return Some(());
    }
    if let Some(m) = ownership::Mutant::ALL.iter().find(|m| format!("{m:?}") == name) {
        ownership::activate(Some(*m));
        return Some(());
    }
    if let Some(m) = tenants::Mutant::ALL.iter().find(|m| format!("{m:?}") == name) {
        tenants::activate(Some(*m));
        return Some(());
    }
    if let Some(m) = splits::Mutant::ALL.iter().find(|m| format!("{m:?}") == name) {
        splits::activate(Some(*m));
        return Some(());
    }
    // Names that others have, too, have their side before them.
    let is = |side: &str, m: &dyn std::fmt::Debug| name == format!("{m:?}") || name == format!("{side}{m:?}");
    if let Some(m) = donors::Mutant::ALL.iter().find(|m| is("Donor", m)) {
        donors::activate(Some(*m));
        return Some(());
    }
    if let Some(m) = recipients::Mutant::ALL.iter().find(|m| is("Recipient", m)) {
        recipients::activate(Some(*m));
        return Some(());
    }
    rules::activate(Some(*rules::Mutant::ALL.iter().find(|m| format!("{m:?}") == name)?));
    Some(())
}

fn show(failure: &Failure) {
    println!("seed {} FAILED after {:?}", failure.seed, failure.ends);
    for line in failure.log.iter().rev().take(60).rev() {
        println!("    {line}");
    }
    for p in failure.problems.iter().take(20) {
        println!("  * {p}");
    }
    println!("again with: sim --seed {}", failure.seed);
}

/// A seed that takes longer stands still: somebody waits for a lock whose holder was interrupted.
const SEED_TAKES_AT_MOST: Duration = Duration::from_secs(3600);

/// Ends the program, so that a debugger or a core shows where it stood, when a seed does not end.
#[allow(clippy::disallowed_methods)]
fn watch_over(seeds: Arc<AtomicU64>) {
    std::thread::spawn(move || {
        loop {
            let seed = seeds.load(Relaxed);
            std::thread::sleep(SEED_TAKES_AT_MOST);
            if seeds.load(Relaxed) == seed {
                println!("seed {seed} FAILED\n  * it does not end");
                std::process::abort();
            }
        }
    });
}

/// What many seeds came to.
#[derive(Default)]
struct Total {
    seeds: u64,
    failed: u64,
    seconds: f64,
    faults: BTreeMap<&'static str, u32>,
    report: set::Report,
}

impl Total {
    fn add(&mut self, r: &set::Report) {
        self.seconds += r.time.as_secs_f64();
        for (what, n) in &r.faults {
            *self.faults.entry(what).or_default() += n;
        }
        self.report.acknowledged += r.acknowledged;
        self.report.committed += r.committed;
        self.report.register_commands += r.register_commands;
        self.report.majority_reads += r.majority_reads;
        self.report.transfers += r.transfers;
        self.report.repeated += r.repeated;
        self.report.transactions += r.transactions;
        self.report.events += r.events;
        self.report.resumed += r.resumed;
        self.report.begun_anew += r.begun_anew;
        self.report.elections += r.elections;
        self.report.rollbacks += r.rollbacks;
        self.report.undone += r.undone;
        self.report.initial_syncs += r.initial_syncs;
        self.report.without_common_point += r.without_common_point;
        self.report.copied_again += r.copied_again;
    }
    fn show(&self) {
        let (hours, faults) = (self.seconds / 3600.0, self.faults.values().sum::<u32>());
        let r = &self.report;
        println!(
            "{} seeds, {} failed; {hours:.2} cluster-hours, {faults} faults ({:.0} an hour), {} elections, \
             {} rollbacks of {} entries, {} initial syncs, {} sources without a common entry, {} copies for want of \
             one, {} entries committed, {} writes acknowledged, {} register commands, \
             {} majority reads, {} transfers, {} late retries, {} transactions with lists, {} events of change \
             streams ({} resumed, {} begun anew); {:?}",
            self.seeds,
            self.failed,
            f64::from(faults) / hours,
            r.elections,
            r.rollbacks,
            r.undone,
            r.initial_syncs,
            r.without_common_point,
            r.copied_again,
            r.committed,
            r.acknowledged,
            r.register_commands,
            r.majority_reads,
            r.transfers,
            r.repeated,
            r.transactions,
            r.events,
            r.resumed,
            r.begun_anew,
            self.faults
        );
    }
}

/// One seed of a set; a panic of the server is a failure as any other.
fn set_once(seed: u64, options: &set::Options) -> Result<set::Report, Vec<String>> {
    let run = || {
        set::run(seed, options).map_err(|f| {
            f.log.iter().for_each(|line| println!("    {line}"));
            println!("    faults so far: {:?}", f.faults);
            f.problems
        })
    };
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(vec!["the server panicked".to_owned()]))
}

fn run_set(args: &Args, total: &mut Total, seed: u64) {
    total.seeds += 1;
    let outcome = set_once(seed, &args.set_options);
    match &outcome {
        Ok(r) => {
            total.add(r);
            println!(
                "seed {seed}: {:.0} s, {} faults, {} elections, {} rollbacks of {}, {} acknowledged, {} committed, \
                 {} polls, trace {:016x}",
                r.time.as_secs_f64(),
                r.faults.values().sum::<u32>(),
                r.elections,
                r.rollbacks,
                r.undone,
                r.acknowledged,
                r.committed,
                r.polls,
                r.trace
            );
        }
        Err(problems) => {
            total.failed += 1;
            println!("seed {seed} FAILED");
            problems.iter().take(20).for_each(|p| println!("  * {p}"));
            println!("again with: sim set --seed {seed}");
        }
    }
    if args.meta && set_once(seed, &args.set_options) != outcome {
        total.failed += 1;
        println!("seed {seed}: two runs DIFFER");
    }
    if total.seeds.is_multiple_of(20) {
        total.show();
    }
}

fn run_shards(args: &Args, wanted: &shards_runs::Wanted) -> ExitCode {
    let members = args.set_options.members.unwrap_or(wanted.config_members);
    let wanted = shards_runs::Wanted { config_members: members, ..wanted.clone() };
    let failed = shards_runs::run_all(args.first, &wanted, args.meta);
    println!("{failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(args) = parse(&words) else {
        println!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let (mut failed, mut total, mut clusters) = (0, Total::default(), cluster_runs::Total::default());
    let (mut splits, mut moves) = (split_runs::Total::default(), migrate_runs::Total::default());
    if let Some(wanted) = &args.shards {
        return run_shards(&args, wanted);
    }
    let under_way = Arc::new(AtomicU64::new(args.first));
    watch_over(under_way.clone());
    for seed in args.first..args.first + args.count {
        under_way.store(seed, Relaxed);
        if args.set {
            run_set(&args, &mut total, seed);
            continue;
        }
        if args.cluster {
            clusters.run(seed, &args.set_options, args.meta);
            continue;
        }
        if args.split {
            splits.run(seed, &args.set_options, args.meta);
            continue;
        }
        if args.migrate {
            moves.run(seed, &args.set_options, args.meta);
            continue;
        }
        let outcome = run(seed, &args.options);
        match &outcome {
            Ok(Report { trace, time, polls, acknowledged, ends, .. }) => println!(
                "seed {seed}: {acknowledged} writes, {polls} polls, {:.1} s, trace {trace:016x}, {ends:?}",
                time.as_secs_f64()
            ),
            Err(failure) => {
                failed += 1;
                show(failure);
            }
        }
        if args.meta {
            let first = outcome.map_err(|f| f.problems);
            let second = run(seed, &args.options).map_err(|f| f.problems);
            if first == second {
                println!("seed {seed}: both runs are equal");
            } else {
                failed += 1;
                println!("seed {seed}: two runs DIFFER: {first:?} and {second:?}");
            }
        }
    }
    if args.set {
        total.show();
        failed = total.failed;
    } else if args.cluster {
        clusters.show();
        failed = clusters.failed;
    } else if args.split {
        splits.show();
        failed = splits.failed;
    } else if args.migrate {
        moves.show();
        failed = moves.failed;
    } else {
        println!("{} seeds, {failed} failed", args.count);
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
