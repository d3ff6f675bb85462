//! The other collections of a server, as pipelines ask for them.

use super::sources::PipelineSource;
use crate::collation::Collation;
use crate::source::Source;
use pando_base::Result;
use pando_bson::DocBuf;
use std::sync::Arc;

/// The collections of a server, all read as of the same point.
pub trait Collections: Send + Sync {
    /// What a name stands for now.
    fn resolve(&self, ns: &str) -> Result<Target>;
    /// What a first stage about the collection says; `None` for stages that do not go into a sub-pipeline.
    fn about(&self, _ns: &str, _stage: &PipelineSource) -> Result<Option<Vec<DocBuf>>> {
        Ok(None)
    }
    /// `None` when there is no such collection.
    fn open(&self, ns: &str) -> Result<Option<Box<dyn Source>>>;
}

/// A collection, and the stages of the view that was named if one was.
#[derive(Clone, Debug)]
pub struct Target {
    pub ns: String,
    /// An array of stages.
    pub view: Option<DocBuf>,
    /// The view's.
    pub collation: Option<Arc<Collation>>,
}
