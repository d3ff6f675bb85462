//! Stages with several inputs: one after the other, or merged in order.

use super::record_set::RecordSet;
use super::sort::key_from_index;
use super::{Cx, Next, Row, Stage, StageStats};
use crate::plan::SortKeySource;
use crate::sort::SortPattern;
use pando_base::Result;

/// All rows of all inputs, each record once.
pub(super) struct OrStage {
    inputs: Vec<Box<dyn Stage>>,
    at: usize,
    seen: RecordSet,
    stats: StageStats,
}

impl OrStage {
    pub(super) fn new(inputs: Vec<Box<dyn Stage>>) -> OrStage {
        OrStage { inputs, at: 0, seen: RecordSet::default(), stats: StageStats::default() }
    }
}

impl Stage for OrStage {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next> {
        while let Some(input) = self.inputs.get_mut(self.at) {
            let next = input.next(cx)?;
            self.stats.works += 1;
            match next {
                Next::Row(row) => {
                    if let Some(rid) = &row.rid {
                        self.stats.dups_tested += 1;
                        if !self.seen.insert(rid)? {
                            self.stats.dups_dropped += 1;
                            continue;
                        }
                    }
                    self.stats.advanced += 1;
                    return Ok(Next::Row(row));
                }
                Next::Yield => {
                    return Ok(Next::Yield);
                }
                Next::Eof => self.at += 1,
            }
        }
        self.stats.eof = true;
        Ok(Next::Eof)
    }
    fn save(&mut self) {
        self.stats.saves += 1;
        self.inputs.iter_mut().for_each(|i| i.save());
    }
    fn stats(&self) -> StageStats {
        let inputs = self.inputs.iter().map(|i| i.stats()).collect();
        StageStats { inputs, held_bytes: self.seen.held_bytes(), ..self.stats.clone() }
    }
}

/// Ordered inputs merged by sort key.
pub(super) struct MergeStage {
    inputs: Vec<Box<dyn Stage>>,
    keys: Vec<SortKeySource>,
    heads: Vec<Head>,
    seen: Option<RecordSet>,
    stats: StageStats,
}

enum Head {
    Wanted,
    Row(Vec<u8>, Row),
    Ended,
}

impl MergeStage {
    pub(super) fn new(
        inputs: Vec<Box<dyn Stage>>,
        keys: Vec<SortKeySource>,
        _pattern: &SortPattern,
        dedup: bool,
    ) -> MergeStage {
        let heads = inputs.iter().map(|_| Head::Wanted).collect();
        MergeStage { inputs, keys, heads, seen: dedup.then(RecordSet::default), stats: StageStats::default() }
    }
}

impl Stage for MergeStage {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next> {
        loop {
            for (i, head) in self.heads.iter_mut().enumerate() {
                if matches!(head, Head::Wanted) {
                    self.stats.works += 1;
                    *head = match self.inputs[i].next(cx)? {
                        Next::Row(row) => Head::Row(key_from_index(&row, &self.keys[i])?, row),
                        Next::Eof => Head::Ended,
                        Next::Yield => {
                            return Ok(Next::Yield);
                        }
                    };
                }
            }
            let keyed = self.heads.iter().enumerate().filter_map(|(i, h)| match h {
                Head::Row(key, _) => Some((key, i)),
                _ => None,
            });
            let Some((_, least)) = keyed.min() else {
                self.stats.eof = true;
                return Ok(Next::Eof);
            };
            if let Head::Row(_, row) = std::mem::replace(&mut self.heads[least], Head::Wanted) {
                if let (Some(seen), Some(rid)) = (&mut self.seen, &row.rid) {
                    self.stats.dups_tested += 1;
                    if !seen.insert(rid)? {
                        self.stats.dups_dropped += 1;
                        continue;
                    }
                }
                self.stats.advanced += 1;
                return Ok(Next::Row(row));
            }
        }
    }
    fn save(&mut self) {
        self.stats.saves += 1;
        self.inputs.iter_mut().for_each(|i| i.save());
    }
    fn stats(&self) -> StageStats {
        let inputs = self.inputs.iter().map(|i| i.stats()).collect();
        let held_bytes = self.seen.as_ref().map_or(0, RecordSet::held_bytes);
        StageStats { inputs, held_bytes, ..self.stats.clone() }
    }
}
