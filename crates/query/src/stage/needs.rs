//! Which fields of the input a pipeline looks at.

use std::collections::BTreeSet;

/// Grows stage by stage, from the first on, until one passes nothing on but what it made.
#[derive(Default)]
pub(crate) struct Needs {
    paths: BTreeSet<String>,
    whole: bool,
    settled: bool,
}

impl Needs {
    pub(crate) fn paths(&mut self) -> &mut BTreeSet<String> {
        &mut self.paths
    }
    pub(crate) fn add(&mut self, path: &str) {
        self.paths.insert(path.to_owned());
    }
    pub(crate) fn whole(&mut self) {
        self.whole = true;
    }
    /// Later stages see nothing of the input but what was named so far.
    pub(crate) fn settle(&mut self) {
        self.settled = true;
    }
    pub(crate) fn is_settled(&self) -> bool {
        self.settled || self.whole
    }
    /// The paths, without those that lie under another; `None` for whole documents.
    pub(crate) fn fields(self) -> Option<Vec<String>> {
        if self.whole || !self.settled {
            return None;
        }
        let covered = |path: &str| path.match_indices('.').any(|(at, _)| self.paths.contains(&path[..at]));
        Some(self.paths.iter().filter(|p| !covered(p)).cloned().collect())
    }
}
