//! Replays the golden files of `tests/differential` on a server and says where its answers differ.
//!
//! The form of the files is described in `tests/differential/README.md`; `differ.py` there does the same by hand
//! and can show one case at a time. This module exists so that the tests need no Python.

mod case;
mod normal;
mod replay;

pub use case::{Case, Explained, Setups};
pub use replay::{Difference, Kind, Replay};

use std::path::{Path, PathBuf};

/// Differences of one topic.
pub struct Report {
    pub topic: String,
    pub cases: usize,
    /// Same code, other text.
    pub messages: usize,
    /// Ids of the cases with an accepted difference.
    pub explained: Vec<String>,
    pub unexplained: Vec<Difference>,
}

/// `tests/differential` of this workspace.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/differential")
}

/// Every topic with golden answers, in order.
pub fn topics() -> Vec<String> {
    let mut out: Vec<String> = std::fs::read_dir(folder().join("golden"))
        .expect("the golden files are part of the repository")
        .filter_map(|e| e.ok()?.file_name().into_string().ok()?.strip_suffix(".jsonl").map(str::to_owned))
        .collect();
    out.sort();
    out
}

/// Replays one topic on the server at `host_port`; of its cases only every `step`th.
pub fn run_topic(
    host_port: &str,
    topic: &str,
    step: usize,
    setups: &Setups,
    explained: &Explained,
) -> Report {
    let cases: Vec<Case> = case::read_topic(topic).into_iter().step_by(step).collect();
    let mut replay = Replay::new(host_port, setups);
    replay.fresh();
    let mut report = Report {
        topic: topic.to_owned(),
        cases: cases.len(),
        messages: 0,
        explained: Vec::new(),
        unexplained: Vec::new(),
    };
    for case in &cases {
        match replay.check(case) {
            None => {}
            Some(d) if explained.covers(&case.id, d.kind.name()) => report.explained.push(d.id),
            Some(d) if d.kind == Kind::Message => report.messages += 1,
            Some(d) => report.unexplained.push(d),
        }
    }
    report
}
