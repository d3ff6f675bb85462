//! What the stages of a pipeline ask `$meta` for, and whether there is somebody to tell.

use super::{Needs, Pipeline, Row, Stage, Step, Upstream};
use crate::facts::Facts;
use crate::plan::{check_nearness, no_text_score};
use crate::projection::MetaField;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::DocBuf;

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
}

impl Uses {
    /// The stage at `at` was parsed into those of `stages` from `first` on.
    pub(super) fn note(
        &mut self,
        (at, name): (usize, &str),
        metas: &[MetaField],
        stages: &mut [Box<dyn Stage>],
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
            made.iter_mut().for_each(|s| s.reads_facts());
        }
        if metas.contains(&MetaField::SortKey) && !self.dropped {
            match self.sort {
                Some(sort) => stages[sort].keep_sort_key(),
                None if name == "$project" && !self.reshaped => self.misplaced = true,
                None => self.unsorted = true,
            }
        }
        for (i, stage) in stages.iter().enumerate().skip(first) {
            if stage.sort_pattern().is_some() {
                self.sort = Some(i);
            }
            self.dropped |= stage.drops_facts();
        }
        self.reshaped |= !matches!(name, "$match" | "$unionWith");
        self.metas.extend_from_slice(metas);
        Ok(())
    }
    pub(super) fn nearness(&self) -> bool {
        self.metas.iter().any(|m| m.is_of_near())
    }
    pub(super) fn text_score(&self) -> bool {
        self.has_text && self.metas.contains(&MetaField::TextScore)
    }
}

impl Pipeline {
    /// 2 when sort keys, 40218 when a text score is asked for and there is no search.
    pub(super) fn check_metas(&self) -> Result<()> {
        if self.misplaced {
            return Err(Error::bad_value("cannot use sortKey $meta projection without a sort"));
        }
        if self.stages.first().is_none_or(|s| s.as_near().is_none()) {
            check_nearness(&self.metas)?;
        }
        match self.metas.contains(&MetaField::TextScore) && !self.has_text() {
            true => Err(no_text_score()),
            false => Ok(()),
        }
    }
    /// It begins with a text search.
    pub fn has_text(&self) -> bool {
        self.stages.first().is_some_and(|s| s.has_text())
    }
    /// 27 when it begins with a text search but there is no collection.
    pub fn check_text_without_collection(&self, ns: &Namespace) -> Result<()> {
        if !self.has_text() {
            return Ok(());
        }
        let text = format!("text index required for $text query (no such collection '{ns}')");
        Err(Error::new(ErrorCode::IndexNotFound, text))
    }
    pub(super) fn metas(&self) -> &[MetaField] {
        &self.metas
    }
}

/// In front of all stages where a sort key is asked for and nothing sorts: it has no values.
pub(super) struct Unsorted;

impl Stage for Unsorted {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        Ok(match up.next()? {
            Step::Row(row) => {
                let sort_key = Some(DocBuf::default());
                let facts = Facts { sort_key, ..row.facts().cloned().unwrap_or_default() };
                Step::Row(Row::with_facts(row, Some(Box::new(facts))))
            }
            other => other,
        })
    }
    fn needs(&self, _: &mut Needs) {}
}
