//! The stages of a pipeline as explain shows them.

use super::pipeline::Pipeline;
use super::spelled;
use pando_bson::DocBuf;

impl Pipeline {
    /// Each stage as explain spells it; `None` for all but the last of those that one specification stands for.
    pub fn explained(&self) -> Vec<Option<DocBuf>> {
        let mut all = self.shown();
        for stage in all.iter_mut().flatten() {
            *stage = spelled::spelled(stage, &self.ctx);
        }
        spelled::join_limits(&mut all);
        all
    }
    /// Which of the stages are shown.
    pub(super) fn is_shown(&self) -> Vec<bool> {
        let mut all = self.shown();
        spelled::join_limits(&mut all);
        all.iter().map(Option::is_some).collect()
    }
}
