//! Of what a scan finds, the documents that this shard owns (SYS-215).

use super::flow::key_document;
use super::{Cx, Next, Row, Stage, StageStats};
use crate::source::Owned;
use pando_base::Result;
use pando_bson::RawDoc;
use std::sync::Arc;

pub(super) struct ShardFilterStage {
    input: Box<dyn Stage>,
    owned: Arc<dyn Owned>,
    /// Names of the fields in rows' index keys, where these are judged by.
    key_fields: Vec<String>,
    stats: StageStats,
}

impl ShardFilterStage {
    pub(super) fn new(
        input: Box<dyn Stage>,
        owned: Arc<dyn Owned>,
        key_fields: Vec<String>,
    ) -> ShardFilterStage {
        ShardFilterStage { input, owned, key_fields, stats: StageStats::default() }
    }
    fn owns(&self, row: &Row) -> Result<bool> {
        Ok(match (&row.doc, &row.key) {
            (Some(doc), _) => self.owned.owns(RawDoc::trusted(doc)),
            (None, Some(key)) => self.owned.owns(&key_document(key, &self.key_fields)?),
            (None, None) => false,
        })
    }
}

impl Stage for ShardFilterStage {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next> {
        loop {
            let next = self.input.next(cx)?;
            self.stats.works += 1;
            match &next {
                Next::Row(row) if !self.owns(row)? => {
                    self.stats.chunk_skips += 1;
                    continue;
                }
                Next::Row(_) => self.stats.advanced += 1,
                Next::Eof => self.stats.eof = true,
                Next::Yield => {}
            }
            return Ok(next);
        }
    }
    fn save(&mut self) {
        self.stats.saves += 1;
        self.input.save();
    }
    fn stats(&self) -> StageStats {
        StageStats { inputs: vec![self.input.stats()], ..self.stats.clone() }
    }
}
