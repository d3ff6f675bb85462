//! Golden stories, one per rule (`scripts/<area>/*.txt`; the language is in `script/mod.rs`), and the proof that they
//! would notice: with any one rule switched off, a story or the model fails.

#[allow(dead_code, unreachable_pub)]
mod script;

use pando_base::mutants::{Mutant as Planted, activate as plant};
use pando_topology::mutants::{Mutant, activate};
use std::path::{Path, PathBuf};

fn files() -> Vec<PathBuf> {
    fn walk(dir: &Path, out: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).expect("scripts") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, out);
            } else if path.extension().is_some_and(|e| e == "txt") {
                out.push(path);
            }
        }
    }
    let mut out = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts"), &mut out);
    out.sort();
    out
}

#[test]
fn every_story_goes_as_written() {
    let bless = std::env::var("BLESS").is_ok();
    let mut wrong = Vec::new();
    for path in files() {
        let text = std::fs::read_to_string(&path).expect("a script");
        let played = script::play(&text);
        if played.trim_end() == text.trim_end() {
            continue;
        }
        if bless {
            std::fs::write(&path, format!("{}\n", played.trim_end())).expect("writable");
        } else {
            let line = played.lines().zip(text.lines()).position(|(a, b)| a != b).map_or(0, |l| l + 1);
            let got = played.lines().nth(line.saturating_sub(1)).unwrap_or_default();
            wrong.push(format!("{}:{line}: now `{got}`", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Found by the model instead (tests/model.rs).
const BY_MODEL: &[Mutant] = &[
    Mutant::VoteBeforeDurable,
    Mutant::VoteTwice,
    Mutant::CommitBeforeDurable,
    Mutant::CommitByMinority,
    Mutant::VoteForStaleData,
];

/// Not about the core: found by the stories of index builds (tests/index_builds.rs).
const BY_INDEX_BUILDS: &[Mutant] = pando_topology::mutants::OF_INDEX_BUILDS;

/// The stories that a broken rule changes, by the rule; the others.
fn noticed<M: Copy + std::fmt::Debug>(rules: &[M], activate: fn(Option<M>)) -> (Vec<String>, Vec<M>) {
    let stories: Vec<(PathBuf, String)> =
        files().into_iter().map(|p| (p.clone(), std::fs::read_to_string(p).expect("a script"))).collect();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let (mut seen, mut unseen) = (Vec::new(), Vec::new());
    for rule in rules {
        activate(Some(*rule));
        let by = stories.iter().find(|(_, text)| {
            std::panic::catch_unwind(|| script::play(text)).map_or(true, |p| p.trim_end() != text.trim_end())
        });
        activate(None);
        match by {
            Some((path, _)) => {
                seen.push(format!("{rule:?}: {}", path.file_name().unwrap_or_default().to_string_lossy()));
            }
            None => unseen.push(*rule),
        }
    }
    std::panic::set_hook(hook);
    (seen, unseen)
}

#[test]
fn every_broken_rule_changes_a_story() {
    let (seen, mut unseen) = noticed(Mutant::ALL, activate);
    unseen.retain(|m| !BY_MODEL.contains(m) && !BY_INDEX_BUILDS.contains(m));
    println!("{}", seen.join("\n"));
    assert!(unseen.is_empty(), "no story notices {unseen:?}");
}

/// Of the faults planted in the server (`pando_base::mutants`), those in this crate.
#[test]
fn every_fault_planted_in_the_core_changes_a_story() {
    let here = [
        Planted::CommitCountsNonVoters,
        Planted::VoteComparesApplied,
        Planted::JournalBeforeSync,
        Planted::PositionsSurviveRollback,
        Planted::ReconfigInForeignTerm,
    ];
    let (seen, unseen) = noticed(&here, plant);
    println!("{}", seen.join("\n"));
    assert!(unseen.is_empty(), "no story notices {unseen:?}");
}
