//! Stages that save work when they come earlier: sorts, limits, skips; and stages that hold less.

use super::{Needs, Pipeline, Stage, add_needs};

impl Pipeline {
    /// A join adds a field to each document: sorted by others, its input may come from an index, or be cut.
    pub(super) fn move_sorts_forward(&mut self) {
        for at in 1..self.stages.len() {
            let Some(pattern) = self.stages[at].sort_pattern().filter(|_| self.metas.is_empty()) else {
                continue;
            };
            let passes = |join: &dyn Stage| {
                join.adds_a_field()
                    && pattern.parts.iter().all(|p| p.meta.is_none() && join.leaves_alone(&p.path))
            };
            let to = (0..at).rev().take_while(|i| passes(&*self.stages[*i])).last().unwrap_or(at);
            self.stages[to..=at].rotate_right(1);
            self.shown[to..=at].rotate_right(1);
        }
    }
    /// What cuts, in front of what reshapes single documents saves work, and may meet a sort.
    pub(super) fn move_limits_forward(&mut self) {
        for at in 1..self.stages.len() {
            let mut to = at;
            let cuts = self.stages[at].as_limit().or(self.stages[at].as_skip()).is_some();
            while cuts && to > 0 && self.stages[to - 1].is_one_for_one() {
                to -= 1;
            }
            self.stages[to..=at].rotate_right(1);
            self.shown[to..=at].rotate_right(1);
        }
        // Of two sorts the later one decides.
        for at in (1..self.stages.len()).rev() {
            if self.stages[at].sort_pattern().is_some() && self.stages[at - 1].sort_pattern().is_some() {
                self.stages.remove(at - 1);
                self.shown.remove(at - 1);
            }
        }
    }
    /// Where rows are held or copied, they have only the fields that somebody looks at.
    pub(super) fn narrow_held(&mut self) {
        for at in 0..self.stages.len() {
            if !self.stages[at].holds_rows() {
                continue;
            }
            let mut needs = Needs::default();
            add_needs(&self.stages[at..], &mut needs);
            if let Some(paths) = needs.fields() {
                let root = |path: &String| path.split('.').next().unwrap_or_default().to_owned();
                self.stages[at].keep_fields(paths.iter().map(root).collect());
            }
        }
    }
}
