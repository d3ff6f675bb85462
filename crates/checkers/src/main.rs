//! `check-history FILE [--serializable]`: judges a history in the text form of [`pando_checkers::history`].

use pando_checkers::history::{History, Op, Outcome};
use pando_checkers::judge;
use pando_checkers::list_append::Level;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (path, level) = match &words[..] {
        [path] => (path, Level::Snapshot),
        [path, flag] if flag == "--serializable" => (path, Level::Serializable),
        _ => {
            eprintln!(
                "usage: check-history FILE [--serializable]\n\nThe form of the file: crates/checkers/src/history.rs"
            );
            return ExitCode::from(2);
        }
    };
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string());
    let history = match text.and_then(|t| History::parse(&t)) {
        Ok(history) => history,
        Err(e) => {
            eprintln!("{path}: {e}");
            return ExitCode::from(2);
        }
    };
    let of = |o| history.txns.iter().filter(|t| t.outcome == o).count();
    let ops = history.txns.iter().flat_map(|t| &t.ops);
    let reads = ops.clone().filter(|op| matches!(op, Op::Read { .. })).count();
    println!(
        "{} transactions committed, {} aborted, {} unknown; {} appends, {reads} reads; {} events of {} streams",
        of(Outcome::Committed),
        of(Outcome::Aborted),
        of(Outcome::Unknown),
        ops.count() - reads,
        history.streams.values().map(Vec::len).sum::<usize>(),
        history.streams.len()
    );
    let problems = judge(&history, level);
    problems.iter().take(20).for_each(|p| println!("  * {p}"));
    println!("{} problems", problems.len());
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
