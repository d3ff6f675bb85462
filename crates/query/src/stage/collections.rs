//! The other collections of a server, as pipelines ask for them.

use super::sources::PipelineSource;
use super::step::Input;
use crate::collation::Collation;
use crate::ctx::QueryCtx;
use crate::source::Source;
use pando_base::Result;
use pando_bson::{DocBuf, RawDoc};
use std::sync::Arc;

/// The collections of a server, all read as of the same point.
pub trait Collections: Send + Sync {
    /// What a name stands for now.
    fn resolve(&self, ns: &str) -> Result<Target>;
    /// What a first stage about the collection says; `None` for stages that do not go into a sub-pipeline.
    fn about(&self, _ns: &str, _stage: &PipelineSource) -> Result<Option<Vec<DocBuf>>> {
        Ok(None)
    }
    /// Opens a collection, if it can be done at once.
    fn open(&self, ns: &str) -> Result<Opened>;
    /// Is told what was read of such collections since the last time.
    fn was_read(&self, _read: &Examined) {}
}

/// How much plans over other collections have looked at.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Examined {
    pub docs: u64,
    pub keys: u64,
    pub collection_scans: u64,
}

/// What opening a collection came to.
pub enum Opened {
    /// It takes a while: to be asked again after a yield. Who says so has begun, and gets there even when it is let go of in
    /// between.
    NotYet,
    /// There is no such collection.
    Missing,
    /// It lies here: one snapshot of it.
    Here(Box<dyn Source>),
    /// It lies on other nodes, which run pipelines over it.
    Elsewhere(Box<dyn Elsewhere>),
}

impl From<Option<Box<dyn Source>>> for Opened {
    fn from(found: Option<Box<dyn Source>>) -> Opened {
        found.map_or(Opened::Missing, Opened::Here)
    }
}

/// A collection that lies on other nodes.
pub trait Elsewhere: Send {
    /// Starts a pipeline there, as [`Pipeline::spelled`](super::Pipeline::spelled) wrote it. `q` has the values of the
    /// variables that it names. Where no row is there yet, the stream says `NeedYield`.
    fn run(&mut self, stages: &RawDoc, q: &QueryCtx) -> Result<Box<dyn Input + Send>>;
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
