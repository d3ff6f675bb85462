//! What a view stands for, as the shard says that has its definition.

use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{ArrayBuilder, DocBuf, RawDoc};
use pando_query::collation::Collation;

/// What a view stands for, as a shard's error says it.
pub(crate) struct View {
    pub(crate) ns: Namespace,
    pipeline: DocBuf,
    pub(crate) collation: Option<DocBuf>,
}

impl View {
    pub(crate) fn of(e: &Error) -> Result<View> {
        let extra = RawDoc::validate(&e.extra).unwrap_or(RawDoc::empty());
        let view = extra.get("resolvedView").and_then(|v| v.as_doc());
        let view = view.ok_or_else(|| Error::internal("a view that nobody resolved"))?;
        let ns = view.get("ns").and_then(|v| v.as_str()).unwrap_or_default();
        let pipeline = view.get("pipeline").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
        let collation = view.get("collation").and_then(|v| v.as_doc()).map(RawDoc::to_buf);
        Ok(View { ns: Namespace::parse(ns)?, pipeline: pipeline.to_buf(), collation })
    }
    /// 167 where a read has another collation than the view. `named`: behind what is said of it.
    pub(crate) fn check_collation(&self, given: Option<&RawDoc>, named: &str) -> Result<()> {
        let Some(given) = given else { return Ok(()) };
        let own = self.collation.as_deref().map(Collation::stored).transpose()?.flatten();
        if Collation::parse(given)? == own {
            return Ok(());
        }
        let text = format!("Cannot override a view's default collation{named}");
        Err(Error::new(ErrorCode::OptionNotSupportedOnView, text))
    }
    /// Its stages, and these behind them.
    pub(crate) fn with(&self, stages: &RawDoc) -> DocBuf {
        let mut all = ArrayBuilder::new();
        self.pipeline.iter().chain(stages.iter()).for_each(|e| _ = all.value(e.value()));
        all.finish()
    }
}
