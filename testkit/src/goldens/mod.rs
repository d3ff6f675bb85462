//! Replays the golden files of `tests/differential` on a server and says where its answers differ.
//!
//! The form of the files is described in `tests/differential/README.md`; `differ.py` there does the same by hand
//! and can show one case at a time. This module exists so that the tests need no Python.

mod case;
mod normal;
mod order;
mod replay;
mod way;

pub use case::{Case, Explained, Setups};
pub use replay::{Difference, Kind, Replay};
pub use way::Way;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Differences of one topic.
pub struct Report {
    pub topic: String,
    pub cases: usize,
    /// Same code, other text.
    pub messages: Vec<Difference>,
    /// Accepted differences.
    pub explained: Vec<Difference>,
    pub unexplained: Vec<Difference>,
    /// Cases that have no meaning on this way.
    pub left_out: usize,
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

/// `GOLDENS_CASES=file`: those that are listed there, one in a line, and no others.
fn only() -> Option<BTreeSet<String>> {
    let listed = std::fs::read_to_string(std::env::var("GOLDENS_CASES").ok()?).expect("a list of cases");
    Some(listed.lines().map(str::to_owned).collect())
}

/// Replays one topic on the server at `host_port`; of its cases only every `step`th.
pub fn run_topic(
    host_port: &str,
    topic: &str,
    step: usize,
    setups: &Setups,
    explained: &Explained,
    way: Way,
) -> Report {
    let mut cases: Vec<Case> = case::read_topic(topic).into_iter().step_by(step).collect();
    if let Some(only) = only() {
        cases.retain(|case| only.contains(&case.id));
    }
    let all = cases.len();
    cases.retain(|case| !way.leaves_out(case));
    let mut replay = Replay::new(host_port, setups, way);
    replay.fresh();
    let mut report = Report {
        topic: topic.to_owned(),
        cases: cases.len(),
        messages: Vec::new(),
        explained: Vec::new(),
        unexplained: Vec::new(),
        left_out: all - cases.len(),
    };
    for case in &cases {
        match replay.check(case) {
            None => {}
            Some(d) if d.kind == Kind::Absent => report.left_out += 1,
            Some(d) if explained.covers(&case.id, d.kind.name()) => report.explained.push(d),
            Some(d) if d.kind == Kind::Message => report.messages.push(d),
            Some(d) if d.kind == Kind::Result && replay.is_as_on_one_set(case) => {}
            Some(d) => report.unexplained.push(d),
        }
    }
    report
}
