//! `sim --seed N`, `sim --seeds COUNT [--from N]`, `sim meta --seed N`.

use pando_sim::crud::{CrudOptions, Failure, Report, run};
use pando_sim::{replication, set};
use std::process::ExitCode;

const USAGE: &str =
    "usage: sim [replication | set] [meta] [--seed N | --seeds COUNT [--from N]] [--lives N] [--users N] [--life-ms N] [--pause-ms N]

  --seed N       one run
  --seeds COUNT  seeds N, N+1, … (from 1, or --from)
  replication    a primary and two members that follow it, instead of one server
  set            a real set of three members, with elections
  meta           every run twice; the traces must be equal";

struct Args {
    meta: bool,
    replication: bool,
    set: bool,
    pause_ms: u64,
    first: u64,
    count: u64,
    options: CrudOptions,
}

fn parse(words: &[String]) -> Option<Args> {
    let mut args = Args {
        meta: false,
        replication: false,
        set: false,
        pause_ms: 12,
        first: 1,
        count: 1,
        options: CrudOptions::default(),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|w| w.parse::<u64>().ok());
        match word.as_str() {
            "meta" => args.meta = true,
            "replication" => args.replication = true,
            "set" => args.set = true,
            "--seed" => args.first = number()?,
            "--seeds" => args.count = number()?,
            "--from" => args.first = number()?,
            "--lives" => args.options.lives = number()? as u32,
            "--users" => args.options.users = number()? as i64,
            "--pause-ms" => args.pause_ms = number()?.max(1),
            "--life-ms" => args.options.life_ms = number()?.max(1),
            _ => return None,
        }
    }
    Some(args)
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

/// A set of three; true when the seed failed.
fn elect(seed: u64, meta: bool) -> bool {
    let once = || set::run(seed, &set::Options::default());
    match once() {
        Ok(r) => {
            println!(
                "seed {seed}: {} acknowledged, {} terms, {:.1} s, trace {:016x}, {:?}",
                r.acknowledged,
                r.terms,
                r.time.as_secs_f64(),
                r.trace,
                r.faults
            );
            let differs = meta && once().map_err(|f| f.problems) != Ok(r);
            if differs {
                println!("seed {seed}: two runs DIFFER");
            }
            differs
        }
        Err(f) => {
            println!("seed {seed} FAILED after {:?}", f.faults);
            f.log.iter().rev().take(60).rev().for_each(|line| println!("    {line}"));
            f.problems.iter().take(20).for_each(|p| println!("  * {p}"));
            println!("again with: sim set --seed {seed}");
            true
        }
    }
}

/// A primary and its followers; true when the seed failed.
fn replicate(seed: u64, meta: bool, pause_ms: u64) -> bool {
    let options = replication::Options { pause_ms, ..replication::Options::default() };
    let once = || replication::run(seed, &options);
    match once() {
        Ok(r) => {
            println!(
                "seed {seed}: {} entries, {:.1} s, trace {:016x}, {:?}",
                r.entries,
                r.time.as_secs_f64(),
                r.trace,
                r.faults
            );
            let differs = meta && once().map_err(|f| f.problems) != Ok(r);
            if differs {
                println!("seed {seed}: two runs DIFFER");
            }
            differs
        }
        Err(f) => {
            println!("seed {seed} FAILED after {:?}", f.faults);
            f.log.iter().rev().take(60).rev().for_each(|line| println!("    {line}"));
            f.problems.iter().take(20).for_each(|p| println!("  * {p}"));
            println!("again with: sim replication --seed {seed}");
            true
        }
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(args) = parse(&words) else {
        println!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let mut failed = 0;
    for seed in args.first..args.first + args.count {
        if args.set {
            failed += u32::from(elect(seed, args.meta));
            continue;
        }
        if args.replication {
            failed += u32::from(replicate(seed, args.meta, args.pause_ms));
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
    println!("{} seeds, {failed} failed", args.count);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
