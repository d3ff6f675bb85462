//! Stages that save work when they come earlier: sorts, limits, skips; and stages that hold less.

use super::needs::Needs;
use super::pipeline::Pipeline;
use super::spec::{Spec, Stage, add_needs};
use pando_base::limits::STAGES_NARROWED_MAX;

/// A join whose matches stay together.
fn joining(stage: &Stage) -> Option<&super::lookup_spec::Lookup> {
    match &stage.spec {
        Spec::Lookup(join) if join.unwind.is_none() => Some(join),
        _ => None,
    }
}

impl Pipeline {
    /// A join adds a field to each document: sorted by others, its input may come from an index, or be cut. One walk from
    /// the last stage to the first; a sort that meets another decides.
    pub(super) fn move_sorts_forward(&mut self) {
        if !self.metas.is_empty() || !self.stages.iter().any(|s| joining(s).is_some()) {
            return;
        }
        // The stage that comes first is at the end.
        let (mut done, mut carried) = (Vec::new(), None::<Stage>);
        for stage in std::mem::take(&mut self.stages).into_iter().rev() {
            let sort = carried.as_ref().and_then(|carried| carried.sort());
            let passed = sort.zip(joining(&stage)).is_some_and(|(sort, join)| {
                sort.pattern.parts.iter().all(|p| p.meta.is_none() && join.leaves_alone(&p.path))
            });
            if passed {
                done.push(stage);
            } else if stage.sort().is_some() {
                carried.get_or_insert(stage);
            } else {
                done.extend(carried.take());
                done.push(stage);
            }
        }
        done.extend(carried);
        done.reverse();
        self.stages = done;
    }
    /// What cuts, in front of what reshapes single documents saves work, and may meet a sort.
    pub(super) fn move_limits_forward(&mut self) {
        for at in 1..self.stages.len() {
            let mut to = at;
            let cuts = matches!(self.stages[at].spec, Spec::Limit(_) | Spec::Skip(_));
            while cuts && to > 0 && self.stages[to - 1].is_one_for_one() {
                to -= 1;
            }
            // What reshapes right behind a union does so to both parts of it, before anybody counts.
            if to > 0 && self.stages[to - 1].is_union() {
                to += self.stages[to..at].iter().take_while(|s| s.is_reshaping()).count();
            }
            self.stages[to..=at].rotate_right(1);
        }
        // Of two sorts the later one decides.
        for at in (1..self.stages.len()).rev() {
            if self.stages[at].sort().is_some() && self.stages[at - 1].sort().is_some() {
                self.stages.remove(at - 1);
            }
        }
    }
    /// Where rows are held or copied, they have only the fields that somebody looks at.
    pub(super) fn narrow_held(&mut self) {
        let holding = (0..self.stages.len()).filter(|at| self.stages[*at].kept_fields().is_some());
        for at in holding.take(STAGES_NARROWED_MAX).collect::<Vec<_>>() {
            let mut needs = Needs::default();
            add_needs(&self.stages[at..], &mut needs);
            if let (Some(paths), Some(keep)) = (needs.fields(), self.stages[at].kept_fields_mut()) {
                let root = |path: &String| path.split('.').next().unwrap_or_default().to_owned();
                *keep = Some(paths.iter().map(root).collect());
            }
        }
    }
}
