//! A pipeline written down for another server, and read again there.
//!
//! It is written as what it has become, so that the other server need not find out again: filters stand where they have moved
//! to, and stages that belong together have names which users may not give (`$_internalDensify` takes what a `$sort`
//! before it gives). Only [`Pipeline::parse_forwarded`] knows these names.

use super::pipeline::Pipeline;
use super::spec::Spec;
use super::split_event;
use crate::ctx::QueryCtx;
use crate::expr::optimize_error;
use pando_base::Result;
use pando_bson::{ArrayBuilder, DocBuf, RawDoc};

impl Pipeline {
    /// The array of stages that [`Pipeline::parse_forwarded`] makes an equal pipeline of. Variables are not in it: who
    /// forwards the pipeline forwards the command's `let` as well.
    pub fn spelled(&self) -> DocBuf {
        let mut all = ArrayBuilder::new();
        if let Some(source) = self.source.text() {
            all.raw_doc(&source);
        }
        for stage in &self.stages {
            match &stage.spec {
                // It comes of somebody asking for sort keys where nothing sorts.
                Spec::Unsorted(_) => {}
                Spec::Lookup(join) => {
                    all.raw_doc(&stage.text);
                    join.absorbed().iter().for_each(|stage| {
                        all.raw_doc(stage);
                    });
                }
                _ => {
                    all.raw_doc(&stage.text);
                }
            }
        }
        if let Some((_, text)) = &self.sink {
            all.raw_doc(text);
        }
        if self.splits_events {
            all.raw_doc(&split_event::text());
        }
        all.finish()
    }

    /// Parses what [`Pipeline::spelled`] wrote. Whether there are a search and a sort for those who ask `$meta` about them
    /// has been looked at where the pipeline was split.
    pub fn parse_forwarded(stages: &RawDoc, ctx: &QueryCtx) -> Result<Pipeline> {
        let mut pipeline = Pipeline::parse_stages(stages, ctx, true)?;
        pipeline.check_near()?;
        pipeline.optimize().map_err(|e| optimize_error("pipeline", e))?;
        Ok(pipeline)
    }
}
