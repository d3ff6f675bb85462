//! `cargo xtask <command>`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let tree = xtask::tree::Tree::load();
    match words.as_slice() {
        ["tidy"] => {
            let problems = xtask::tidy::run(&tree);
            for p in &problems {
                println!("{p}");
            }
            println!("tidy: {} files, {} problems", tree.files.len(), problems.len());
            if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        ["tour", name] => {
            for stop in xtask::tour::stops(&tree, name) {
                println!("{}/{}  {}:{}  {}", stop.number, stop.of, stop.file, stop.line, stop.item);
            }
            ExitCode::SUCCESS
        }
        ["supply"] => supply(None),
        ["supply", what @ ("--notices" | "--sbom"), file] => supply(Some((*what, *file))),
        ["fuzz-grammar"] => fuzz_grammar("soak", "120", &todays_seed()),
        ["fuzz-grammar", "--seconds", seconds] => fuzz_grammar("soak", seconds, &todays_seed()),
        ["fuzz-grammar", "--seconds", seconds, "--seed", seed] => fuzz_grammar("soak", seconds, seed),
        ["fuzz-grammar", "--seconds", seconds, "--seed", seed, "--profile", profile] => {
            fuzz_grammar(profile, seconds, seed)
        }
        _ => {
            println!(
                "usage: cargo xtask tidy | cargo xtask tour <insert|find|apply> | cargo xtask supply [--notices FILE | --sbom FILE] | cargo xtask fuzz-grammar [--seconds N [--seed N [--profile NAME]]]"
            );
            ExitCode::FAILURE
        }
    }
}

/// Checks what others wrote against what may be used, or lists it in a file.
fn supply(list: Option<(&str, &str)>) -> ExitCode {
    use xtask::supply::{notices, packages, policy, sbom};
    let packages = match packages() {
        Ok(packages) => packages,
        Err(e) => {
            println!("{e}");
            return ExitCode::FAILURE;
        }
    };
    if let Some((what, file)) = list {
        let text = match what {
            "--sbom" => sbom::json(&packages, env!("CARGO_PKG_VERSION")),
            _ => notices::text(&packages),
        };
        return match std::fs::write(file, text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => {
                println!("{file}: {e}");
                ExitCode::FAILURE
            }
        };
    }
    let problems = policy::check(&packages);
    problems.iter().for_each(|p| println!("{p}"));
    println!("supply: {} crates of others, {} problems", packages.len(), problems.len());
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Seeds that go on from those of other days.
#[allow(clippy::disallowed_methods)] // a tool, and the day is all it asks of the clock
fn todays_seed() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    (now.map_or(1, |d| d.as_secs()) * 10_000).to_string()
}

/// Programs from the grammar on one server for so many seconds, then commands of administration for a quarter of them.
fn fuzz_grammar(profile: &str, seconds: &str, seed: &str) -> ExitCode {
    let Ok(n) = seconds.parse::<u64>() else {
        println!("--seconds takes a number");
        return ExitCode::FAILURE;
    };
    let quarter = (n / 4).max(1).to_string();
    for (seconds, admin) in [(seconds, false), (quarter.as_str(), true)] {
        let mut run = std::process::Command::new("cargo");
        run.args([
            "run",
            "--profile",
            profile,
            "-p",
            "pando-grammar",
            "--",
            "--seed",
            seed,
            "--seconds",
            seconds,
        ]);
        if admin {
            run.arg("--admin");
        }
        if !run.status().is_ok_and(|s| s.success()) {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
