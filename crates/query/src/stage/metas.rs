//! What the stages of a pipeline ask `$meta` for, and whether there is somebody to tell.

use super::skip::Skip;
use super::spec::{Spec, Stage};
use crate::facts::MetaField;
use pando_base::{Error, Result};

/// Grows while stages are parsed.
#[derive(Default)]
pub(super) struct Uses {
    pub(super) metas: Vec<MetaField>,
    has_text: bool,
    /// Position of the `$sort` whose keys are in the rows.
    sort: Option<usize>,
    dropped: bool,
    /// Sort keys are asked for where there is no sort.
    pub(super) unsorted: bool,
    /// And that by a projection of the collection itself.
    pub(super) misplaced: bool,
    /// Something but filters and unions came before.
    reshaped: bool,
    /// How many of `metas` only the stage before has asked for, to sort by them.
    sorted_by: usize,
}

impl Uses {
    /// The stage at `at` was parsed into those of `stages` from `first` on.
    pub(super) fn note(
        &mut self,
        (at, name): (usize, &str),
        metas: &[MetaField],
        stages: &mut [Stage],
        first: usize,
    ) -> Result<()> {
        let made = &mut stages[first..];
        if made.iter().any(|s| s.has_text()) {
            if at > 0 {
                return Err(Error::location(
                    17313,
                    "$match with $text is only allowed as the first pipeline stage",
                ));
            }
            self.has_text = true;
        }
        let known = |m: &MetaField| matches!(m, MetaField::TextScore | MetaField::SortKey) || m.is_of_near();
        let asks = metas.iter().any(known);
        if asks {
            for stage in made.iter_mut() {
                if let Spec::Group(group) = &mut stage.spec {
                    group.reads_facts = true;
                }
            }
        }
        if metas.contains(&MetaField::SortKey) && !self.dropped {
            match self.sort {
                Some(at) => stages[at].sort_mut().into_iter().for_each(|s| s.keep_key = true),
                None if !self.reshaped && stages.get(first).is_some_and(Stage::is_inclusion) => {
                    self.misplaced = true
                }
                None => self.unsorted = true,
            }
        }
        // A sort right behind takes the place of one.
        let sorts = stages.get(first).is_some_and(|s| s.sort().is_some());
        if sorts {
            self.metas.truncate(self.metas.len() - self.sorted_by);
        }
        self.sorted_by = if sorts && stages.len() == first + 1 { metas.len() } else { 0 };
        for (i, stage) in stages.iter().enumerate().skip(first) {
            if stage.sort().is_some() {
                self.sort = Some(i);
            }
            self.dropped |= stage.drops_facts();
        }
        let goes = stages.get(first).is_some_and(|s| matches!(s.spec, Spec::Skip(Skip(0))));
        // What cuts comes before what reshapes single documents, which then is none of the collection's own.
        if self.misplaced && !asks && !goes && stages.get(first).is_some_and(Stage::cuts) {
            let behind = stages[..first].iter().rev().take_while(|s| s.is_reshaping());
            let asked = behind.filter(|s| s.is_inclusion()).last();
            if asked.is_some() {
                (self.misplaced, self.unsorted) = (false, true);
            }
        }
        self.reshaped |= !matches!(name, "$match" | "$unionWith") && !goes;
        self.metas.extend_from_slice(metas);
        Ok(())
    }
    pub(super) fn has_text(&self) -> bool {
        self.has_text
    }
    pub(super) fn nearness(&self) -> bool {
        self.metas.iter().any(|m| m.is_of_near())
    }
    pub(super) fn text_score(&self) -> bool {
        self.has_text && self.metas.contains(&MetaField::TextScore)
    }
}
