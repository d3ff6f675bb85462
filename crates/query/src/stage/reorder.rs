//! Stages that save work when they come earlier: sorts, limits, skips; and stages that hold less.

use super::{Needs, Pipeline, Stage, add_needs};
use pando_base::limits::STAGES_NARROWED_MAX;

impl Pipeline {
    /// A join adds a field to each document: sorted by others, its input may come from an index, or be cut. One walk from
    /// the last stage to the first; a sort that meets another decides.
    pub(super) fn move_sorts_forward(&mut self) {
        if !self.metas.is_empty() || !self.stages.iter().any(|s| s.adds_a_field()) {
            return;
        }
        // The stage that comes first is at the end.
        let (mut done, mut carried) = (Vec::new(), None::<(Box<dyn Stage>, _)>);
        let shown = std::mem::take(&mut self.shown);
        for (stage, shown) in std::mem::take(&mut self.stages).into_iter().zip(shown).rev() {
            let sort = carried.as_ref().and_then(|(sort, _)| sort.sort_pattern());
            let passed = sort.is_some_and(|s| {
                stage.adds_a_field()
                    && s.parts.iter().all(|p| p.meta.is_none() && stage.leaves_alone(&p.path))
            });
            if passed {
                done.push((stage, shown));
            } else if stage.sort_pattern().is_some() {
                carried.get_or_insert((stage, shown));
            } else {
                done.extend(carried.take());
                done.push((stage, shown));
            }
        }
        done.extend(carried);
        (self.stages, self.shown) = done.into_iter().rev().unzip();
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
        let holding = (0..self.stages.len()).filter(|at| self.stages[*at].holds_rows());
        for at in holding.take(STAGES_NARROWED_MAX).collect::<Vec<_>>() {
            let mut needs = Needs::default();
            add_needs(&self.stages[at..], &mut needs);
            if let Some(paths) = needs.fields() {
                let root = |path: &String| path.split('.').next().unwrap_or_default().to_owned();
                self.stages[at].keep_fields(paths.iter().map(root).collect());
            }
        }
    }
}
